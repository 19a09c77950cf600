//! Byte queue limits: how many bytes a driver may have in its ring.
//!
//! Follows `dql_queued`, `dql_completed` and `dql_avail` of `lib/dynamic_queue_limits.c` and its
//! header (v4.18 to v6.18), field by field, on counters of 32 bits that wrap.

use crate::scenario::plan::Device;

/// `struct dql`.
#[derive(Clone, Copy, Debug)]
pub(super) struct Dql {
    num_queued: u32,
    adj_limit: u32,
    last_obj_cnt: u32,
    limit: u32,
    num_completed: u32,
    prev_ovlimit: u32,
    prev_num_queued: u32,
    prev_last_obj_cnt: u32,
    lowest_slack: u32,
    slack_start_time: u64,
    max_limit: u32,
    min_limit: u32,
    /// In ticks.
    slack_hold_time: u64,
}

impl Dql {
    /// `dql_init` and `dql_reset`; a second of slack before the limit falls (`netdev_queue`'s HZ).
    pub(super) fn new(device: &Device, hz: u32, jiffies: u64) -> Self {
        Self {
            num_queued: 0,
            adj_limit: 0,
            last_obj_cnt: 0,
            limit: 0,
            num_completed: 0,
            prev_ovlimit: 0,
            prev_num_queued: 0,
            prev_last_obj_cnt: 0,
            lowest_slack: u32::MAX,
            slack_start_time: jiffies,
            max_limit: device.limit_max.unwrap_or(MAX_LIMIT).min(MAX_LIMIT),
            min_limit: device.limit_min,
            slack_hold_time: u64::from(hz),
        }
    }

    /// The limit.
    pub(super) const fn limit(&self) -> u32 {
        self.limit
    }

    /// Whether another packet may be queued: it may go over the limit then (`dql_avail`).
    pub(super) const fn is_open(&self) -> bool {
        self.adj_limit.wrapping_sub(self.num_queued).cast_signed() >= 0
    }

    /// A packet was queued.
    pub(super) const fn queued(&mut self, bytes: u32) {
        self.last_obj_cnt = bytes;
        self.num_queued = self.num_queued.wrapping_add(bytes);
    }

    /// This many bytes were sent.
    pub(super) fn completed(&mut self, bytes: u32, jiffies: u64) {
        let num_queued = self.num_queued;
        let completed = self.num_completed.wrapping_add(bytes);
        let mut limit = self.limit;
        let mut ovlimit = over(num_queued.wrapping_sub(self.num_completed), limit);
        let inprogress = num_queued.wrapping_sub(completed);
        let prev_inprogress = self.prev_num_queued.wrapping_sub(self.num_completed);
        let all_prev_completed = completed.wrapping_sub(self.prev_num_queued).cast_signed() >= 0;
        let starved =
            (ovlimit > 0 && inprogress == 0) || (self.prev_ovlimit > 0 && all_prev_completed);
        if starved {
            limit = limit
                .wrapping_add(over(completed, self.prev_num_queued))
                .wrapping_add(self.prev_ovlimit);
            self.slack_start_time = jiffies;
            self.lowest_slack = u32::MAX;
        } else if inprogress > 0 && prev_inprogress > 0 && !all_prev_completed {
            let done = completed.wrapping_sub(self.num_completed);
            let slack = over(limit.wrapping_add(self.prev_ovlimit), done.wrapping_mul(2));
            let slack_last_objs = if self.prev_ovlimit > 0 {
                over(self.prev_last_obj_cnt, self.prev_ovlimit)
            } else {
                0
            };
            self.lowest_slack = self.lowest_slack.min(slack.max(slack_last_objs));
            if jiffies > self.slack_start_time + self.slack_hold_time {
                limit = over(limit, self.lowest_slack);
                self.slack_start_time = jiffies;
                self.lowest_slack = u32::MAX;
            }
        }
        limit = limit.max(self.min_limit).min(self.max_limit);
        if limit != self.limit {
            self.limit = limit;
            ovlimit = 0;
        }
        self.adj_limit = limit.wrapping_add(completed);
        self.prev_ovlimit = ovlimit;
        self.prev_last_obj_cnt = self.last_obj_cnt;
        self.num_completed = completed;
        self.prev_num_queued = num_queued;
    }
}

/// By how much `a` is greater (`POSDIFF`).
const fn over(a: u32, b: u32) -> u32 {
    let difference = a.wrapping_sub(b);
    if difference.cast_signed() > 0 { difference } else { 0 }
}

/// `DQL_MAX_LIMIT`: half the counters' range, less the largest packet (`DQL_MAX_OBJECT`).
const MAX_LIMIT: u32 = u32::MAX / 2 - u32::MAX / 16;
