//! Beats: sends that a clear silence parts from those before. Did a program write each by its timer?
//!
//! A buffer or a window lets data out when ACKs arrive, which shows at the sender's host alone: from afar ACKs that their
//! own way spaces let out beats as even. A pace lets out two segments at a time, or what its rate moves in a
//! millisecond (Linux: `tcp_tso_autosize`), and waits the longer the more it let out (`tcp_update_skb_after_send`). A
//! program's timer knows neither. And a short segment leaves only when nothing is queued behind it (`tcp_write_xmit`):
//! what a pace holds does not end so.
//!
//! Nagle's algorithm fills small writes up to whole segments. Then beats come one or two writes apart, and distances
//! are multiples of one. A short segment that comes alone behind a whole one begins no beat: an ACK let it go.

use crate::clocks::StackTime;
use crate::limits::sense::{
    BEAT_SILENCE, BURST_GAP_NS, DRAINED, DRAINED_LATE, ENOUGH_BEATS, EVEN_BEATS, LARGE_BEAT,
    MOST_UNITS, NEARLY_ALL, ODD_BEATS, OFF_BEAT, PACED_NS, SAME_RATE, SMALL_BEAT,
    SMALL_QUANTUM_TRIP_NS, STOPPED_BEATS,
};
use crate::offsets::Offset;

/// The open beat.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Beat {
    /// When it began, and at which offset.
    began: Option<(StackTime, Offset)>,
    /// The longest silence lately.
    hush: i64,
    /// The distance that others are multiples of.
    unit: i64,
    /// The time up to the next that each 1024 bytes of the last one took.
    slowness: i64,
    /// A short segment belongs to it.
    is_drained: bool,
    /// The last short segment that came alone, and the send before it.
    lone: Option<(StackTime, StackTime)>,
}

/// A send of new data.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sent {
    pub(crate) at: StackTime,
    /// The send before it, and whether that was a short segment.
    pub(crate) before: (StackTime, bool),
    /// Where its data begins.
    pub(crate) from: Offset,
    pub(crate) short: bool,
    pub(crate) mss: i64,
}

/// The beats of one round, or of several.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Beats {
    count: u32,
    /// Those that came one unit behind the one before, or several.
    on_time: u32,
    /// Time from one to the next, in microseconds; bytes.
    gaps: i64,
    sizes: i64,
    /// Of those whose rate up to the next is not that of the one before: how many kept time, and how many did not.
    odd_on_time: u32,
    odd_late: u32,
    /// Those of more segments than a pace lets out at once.
    large: u32,
    /// Those with a short segment, and the time from them to the next.
    drained: u32,
    drained_gaps: i64,
    mss: i64,
}

impl Beats {
    /// Takes a send, and moves `beat` on.
    #[inline]
    pub(crate) fn push(&mut self, sent: &Sent, beat: &mut Beat) {
        if sent.short || sent.at - sent.before.0 > BURST_GAP_NS {
            self.begin(sent, beat);
        }
    }

    fn begin(&mut self, sent: &Sent, beat: &mut Beat) {
        // The silence goes on across a short segment that came alone.
        let lone = beat.lone.take().filter(|(at, _)| *at == sent.before.0);
        let before = lone.map_or(sent.before.0, |(_, before)| before);
        let silence = sent.at - before;
        if sent.at - sent.before.0 > BURST_GAP_NS {
            if sent.short && !sent.before.1 {
                (beat.lone, beat.is_drained) = (Some((sent.at, before)), true);
                return;
            }
            if let Some((began, from)) = beat.began {
                let hush = beat.hush - beat.hush / 32;
                beat.hush = hush.max(silence);
                if BEAT_SILENCE.is_reached(silence, hush) {
                    self.count(sent, beat, (began, from));
                    (beat.began, beat.is_drained) = (Some((sent.at, sent.from)), false);
                }
            } else {
                (beat.began, beat.is_drained) = (Some((sent.at, sent.from)), false);
            }
        }
        beat.is_drained |= sent.short;
    }

    /// Counts the beat that `began` at an offset.
    fn count(&mut self, sent: &Sent, beat: &mut Beat, (began, from): (StackTime, Offset)) {
        // Microseconds keep sums of squares within 128 bits whatever times are.
        let (gap, size) = ((sent.at - began) / 1000, (sent.from - from).max(1));
        self.count += 1;
        let is_on_time = beat.keeps_time(gap);
        self.on_time += u32::from(is_on_time);
        self.gaps += gap;
        self.sizes += size;
        let slowness = gap.saturating_mul(1024) / size;
        let last = core::mem::replace(&mut beat.slowness, slowness);
        if !SAME_RATE.is_kept((slowness - last).abs(), slowness.max(last)) {
            self.odd_on_time += u32::from(is_on_time);
            self.odd_late += u32::from(!is_on_time);
        }
        self.large += u32::from(LARGE_BEAT.is_reached(size, sent.mss));
        if beat.is_drained {
            self.drained += 1;
            self.drained_gaps += gap;
        }
        self.mss = sent.mss;
    }

    /// Those of several rounds.
    pub(crate) fn sum<'a>(rounds: impl Iterator<Item = &'a Self>) -> Self {
        rounds.fold(Self::default(), |sum, one| Self {
            count: sum.count + one.count,
            on_time: sum.on_time + one.on_time,
            gaps: sum.gaps + one.gaps,
            sizes: sum.sizes + one.sizes,
            odd_on_time: sum.odd_on_time + one.odd_on_time,
            odd_late: sum.odd_late + one.odd_late,
            large: sum.large + one.large,
            drained: sum.drained + one.drained,
            drained_gaps: sum.drained_gaps + one.drained_gaps,
            mss: sum.mss.max(one.mss),
        })
    }

    /// Whether nearly all came by one timer.
    fn are_timed(&self) -> bool {
        self.count >= ENOUGH_BEATS && EVEN_BEATS.is_reached(self.on_time, self.count)
    }

    /// Whether a pace of the least that Linux lets out at once would have come as often, or less.
    fn are_slow(&self) -> bool {
        self.gaps * 1000 > PACED_NS * i64::from(self.count)
    }

    /// Whether each was more than a pace lets out at once. On a way this short Linux lets out more (`tcp_min_rtt`).
    fn exceed_a_pace(&self, least: i64) -> bool {
        least > SMALL_QUANTUM_TRIP_NS
            && self.are_slow()
            && NEARLY_ALL.is_reached(self.large, self.count)
    }

    /// Whether a pace would not have kept to their times: it waits the longer the more it let out.
    fn keep_time_whatever_their_size(&self) -> bool {
        let is_small = SMALL_BEAT.is_kept(self.sizes, self.mss * i64::from(self.count));
        (self.are_slow() || is_small)
            && self.odd_on_time >= ODD_BEATS
            && STOPPED_BEATS.is_kept(self.odd_late, self.odd_on_time)
    }

    /// Whether nothing was left to send again and again, and the next came no later than elsewhere.
    fn drain(&self) -> bool {
        let late = i128::from(self.drained_gaps) * i128::from(self.count);
        DRAINED.is_reached(self.drained, self.count)
            && DRAINED_LATE.is_kept(late, i128::from(self.gaps) * i128::from(self.drained))
    }

    /// Whether a timer let them go that knows no rate: nothing that holds data back does so.
    pub(crate) fn are_writes(&self, least: i64) -> bool {
        self.are_timed()
            && (self.exceed_a_pace(least) || self.keep_time_whatever_their_size() || self.drain())
    }
}

impl Beat {
    /// Whether `gap` is the unit or a few of them; it moves on.
    fn keeps_time(&mut self, gap: i64) -> bool {
        let units = |of: i64, unit: i64| {
            let times = (of + unit / 2) / unit.max(1);
            let is_whole = OFF_BEAT.is_kept((of - times * unit).abs(), unit);
            (is_whole && (1..=MOST_UNITS).contains(&times)).then_some(times)
        };
        if self.unit <= 0 {
            self.unit = gap;
            return false;
        }
        match units(gap, self.unit) {
            Some(1) => {
                self.unit += (gap - self.unit) / 8;
                true
            }
            Some(_) => true,
            None => {
                let is_part = units(self.unit, gap).is_some();
                if gap < self.unit {
                    self.unit = gap;
                } else {
                    // Until a shorter one shows, this may be the unit.
                    self.unit += (gap - self.unit) / 8;
                }
                is_part
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MSS: i64 = 1448;
    const MS: i64 = 1_000_000;
    const TRIP: i64 = 30 * MS;

    /// Beats of these lengths and distances to the next, over and over; a short segment ends those that are no whole
    /// number of segments.
    fn beats(pattern: &[(i64, i64)], times: usize) -> Beats {
        let (mut beats, mut beat) = (Beats::default(), Beat::default());
        let (mut at, mut from) = (StackTime(0), 0);
        let mut before = (StackTime(-10 * MS), false);
        for (size, gap) in pattern.iter().cycle().take(times) {
            let mut sent = 0;
            while sent < *size {
                let len = MSS.min(size - sent);
                let (from, short) = (from + sent, len < MSS);
                beats
                    .push(&Sent { at, before, from: Offset::at(from), short, mss: MSS }, &mut beat);
                (before, sent) = ((at, short), sent + len);
            }
            from += size;
            at += *gap;
        }
        beats
    }

    fn are_writes(pattern: &[(i64, i64)], times: usize) -> bool {
        beats(pattern, times).are_writes(TRIP)
    }

    #[test]
    fn two_segments_at_a_rate_are_a_pace() {
        assert!(beats(&[(2 * MSS, 3 * MS)], 20).are_timed());
        assert!(!are_writes(&[(2 * MSS, 3 * MS)], 20));
        let grown = [(2 * MSS, 3 * MS), (3 * MSS, 4_500_000)];
        assert!(!are_writes(&grown, 20), "it waits the longer the more it let out");
    }

    #[test]
    fn what_is_more_than_a_pace_lets_out_at_once_was_written_so() {
        assert!(are_writes(&[(10 * MSS, 7 * MS)], 20));
        assert!(!are_writes(&[(10 * MSS, 4 * MS)], 20), "as much as its rate moves meanwhile");
        assert!(!are_writes(&[(10 * MSS, 7 * MS)], 8), "seven distances");
        assert!(!are_writes(&[(10 * MSS, 7 * MS), (10 * MSS, 11 * MS)], 20), "no timer");
        let near = beats(&[(10 * MSS, 7 * MS)], 20);
        let told =
            [SMALL_QUANTUM_TRIP_NS, SMALL_QUANTUM_TRIP_NS + 1].map(|trip| near.are_writes(trip));
        assert_eq!(told, [false, true], "near hosts get more at once");
    }

    #[test]
    fn a_timer_does_not_wait_longer_for_more() {
        let alternate =
            [(2 * MSS, 5 * MS), (2 * MSS, 5 * MS), (2 * MSS, 5 * MS), (3 * MSS, 5 * MS)];
        assert!(are_writes(&alternate, 24));
        let lone = |times| {
            let mut pattern = vec![(2 * MSS, 5 * MS); times];
            pattern.insert(10, (3 * MSS, 5 * MS));
            are_writes(&pattern, times)
        };
        assert!(!lone(40), "one of another size");
    }

    #[test]
    fn small_writes_that_fill_segments_come_one_or_two_writes_apart() {
        assert!(are_writes(&[(MSS, MS), (MSS, 2 * MS), (MSS, MS)], 40));
        assert!(!are_writes(&[(MSS, MS)], 40), "a pace of single segments");
        let stopped = [(MSS, MS), (MSS, MS), (MSS, MS), (MSS, 10 * MS)];
        assert!(!are_writes(&stopped, 40), "a window stops a pace");
    }

    #[test]
    fn what_ends_short_again_and_again_left_nothing_behind() {
        let pattern = |whole: usize, after: i64| {
            let mut pattern = vec![(2 * MSS, 3 * MS); whole];
            pattern.push((2 * MSS - 1, after));
            are_writes(&pattern, 80)
        };
        assert!(pattern(11, 3 * MS));
        assert!(!pattern(30, 3 * MS), "one of thirty-one");
        assert!(!pattern(11, 6 * MS), "the next write came late: a pace let out this one");
    }

    #[test]
    fn a_short_segment_between_two_writes_parts_no_beat() {
        let (mut beats, mut beat) = (Beats::default(), Beat::default());
        let mut before = (StackTime(-MS), false);
        for number in 0..12 {
            let (at, from) = (StackTime(number * 12 * MS), number * 20_000);
            for (at, from, short) in [(at, from, false), (at + 7 * MS, from + 18_824, true)] {
                beats
                    .push(&Sent { at, before, from: Offset::at(from), short, mss: MSS }, &mut beat);
                before = (at, short);
            }
        }
        assert!(beats.count == 11 && beats.are_writes(TRIP), "{beats:?}");
    }
}
