//! `fq` at a host: each packet at its time, flows in turn.
//!
//! Follows `fq_enqueue`, `fq_dequeue` and `fq_check_throttled` of `net/sched/sch_fq.c` (v5.10 to
//! v6.12) with its defaults. Departure times are TCP's (since v4.20 it sets them; before, `fq`
//! made them of the socket's rate, to the same end). One band, no horizon: TCP's packets have one
//! priority and near times.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use super::HandedDown;

/// The discipline and what waits in it.
#[derive(Clone, Debug)]
pub(super) struct Fq<P> {
    flows: BTreeMap<u32, Flow<P>>,
    new: VecDeque<u32>,
    old: VecDeque<u32>,
    /// Flows whose next packet has to wait, by its time.
    throttled: BTreeSet<(u64, u32)>,
    packets: usize,
    timer_slack: u64,
    tick_ns: u64,
}

#[derive(Clone, Debug)]
struct Flow<P> {
    waiting: VecDeque<P>,
    credit: i64,
    /// Tick when it was last found empty.
    age: u64,
    place: Place,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Place {
    Detached,
    Listed,
    Throttled,
}

impl<P: HandedDown> Fq<P> {
    pub(super) fn new(hz: u32, timer_slack: u64) -> Self {
        Self {
            flows: BTreeMap::new(),
            new: VecDeque::new(),
            old: VecDeque::new(),
            throttled: BTreeSet::new(),
            packets: 0,
            timer_slack,
            tick_ns: 1_000_000_000 / u64::from(hz),
        }
    }

    pub(super) const fn packets(&self) -> usize {
        self.packets
    }

    /// Takes a packet in, or hands it back if there is no room.
    pub(super) fn enqueue(&mut self, clock_ns: u64, packet: P) -> Result<(), P> {
        let id = packet.flow();
        let flow = self.flows.entry(id).or_insert_with(|| Flow {
            waiting: VecDeque::new(),
            credit: INITIAL_QUANTUM,
            age: 0,
            place: Place::Detached,
        });
        if self.packets >= LIMIT || flow.waiting.len() >= FLOW_LIMIT {
            return Err(packet);
        }
        if flow.place == Place::Detached {
            flow.place = Place::Listed;
            self.new.push_back(id);
            let ticks = clock_ns / self.tick_ns;
            if ticks > flow.age + REFILL_NS.div_ceil(self.tick_ns) {
                flow.credit = flow.credit.max(QUANTUM);
            }
        }
        flow.waiting.push_back(packet);
        self.packets += 1;
        Ok(())
    }

    /// The packet that may leave now.
    pub(super) fn dequeue(&mut self, now: u64, clock_ns: u64) -> Option<P> {
        while let Some(&(at, id)) = self.throttled.first()
            && at <= now
        {
            self.throttled.pop_first();
            if let Some(flow) = self.flows.get_mut(&id) {
                flow.place = Place::Listed;
                self.old.push_back(id);
            }
        }
        loop {
            let is_new = !self.new.is_empty();
            let list = if is_new { &mut self.new } else { &mut self.old };
            let id = *list.front()?;
            let flow = self.flows.get_mut(&id)?;
            if flow.credit <= 0 {
                flow.credit += QUANTUM;
                list.pop_front();
                self.old.push_back(id);
                continue;
            }
            let Some(departs) = flow.waiting.front().map(HandedDown::departs_ns) else {
                list.pop_front();
                if is_new && !self.old.is_empty() {
                    self.old.push_back(id);
                } else {
                    flow.place = Place::Detached;
                    flow.age = clock_ns / self.tick_ns;
                }
                continue;
            };
            if departs > now {
                list.pop_front();
                flow.place = Place::Throttled;
                self.throttled.insert((departs, id));
                continue;
            }
            let packet = flow.waiting.pop_front()?;
            flow.credit -= i64::from(packet.wire_bytes());
            self.packets -= 1;
            return Some(packet);
        }
    }

    /// When a packet may leave that may not yet.
    pub(super) fn due(&self) -> Option<u64> {
        self.throttled.first().map(|(at, _)| at + self.timer_slack)
    }
}

// Defaults of `fq_init`: two frames, ten of them at first, 10,000 packets, 100 of a flow, 40 ms.
const QUANTUM: i64 = 2 * 1514;
const INITIAL_QUANTUM: i64 = 10 * 1514;
const LIMIT: usize = 10_000;
const FLOW_LIMIT: usize = 100;
const REFILL_NS: u64 = 40_000_000;

/// The timer may come this much later (`timer_slack`, v5.8 and newer).
pub(super) const TIMER_SLACK_NS: u64 = 10_000;
