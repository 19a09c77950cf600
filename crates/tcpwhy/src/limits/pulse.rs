//! The bursts of a round as pulses: was it a clock of the sender's own that set them off?
//!
//! A paced sender puts out its data in pulses at even distances (Linux: one or two segments, or what
//! its rate moves in a millisecond, `tcp_tso_autosize`), whenever ACKs arrive. So does an
//! application that writes by a timer. How pulses end tells them apart. Linux and the BSDs set PSH
//! on the last segment of a write (`tcp_push`) or of all that is buffered (`tcp_output`): a pulse
//! that ends without it left data behind, and it was not the application that stopped it. (One that
//! asks for `MSG_MORE` or `TCP_CORK` while it waits for its disk looks the same.) With PSH it may have
//! been, but need not: Linux sets it on every super-segment (seen in 6.1; `__tcp_transmit_skb`), and on
//! the whole segments of a writer that a full buffer blocks (`sk_stream_wait_memory`). What an
//! application writes is seldom a whole number of segments.

use crate::clocks::StackTime;
use crate::limits::sense::{
    ALIKE, BURST_GAP_NS, BY_CLOCK, ENOUGH_PULSES, EVEN_ALIKE, EVEN_VARIANCE, KEPT_DISTANCES,
    LID_ROUNDS, MANY, MISSED_TIMES, NEARLY_ALL, NEVER, NO_ANSWER, NO_CHANCE, PROMPT_BY_CHANCE,
    PULSE_PROMPT_NS, STEADIER, WHOLE_ALIKE, WHOLE_SHORT,
};

/// What released the first send of a pulse.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Cause {
    /// Something that arrived just before, so long before the tap on the sender's host saw the send; 0
    /// elsewhere, where queues make a send late.
    Arrival { before: i64 },
    /// Nothing that arrived, or only by chance.
    Own,
    /// The send before it: no pulse begins.
    Burst,
}

/// The last send.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Before {
    pub(crate) at: StackTime,
    /// It carried PSH.
    pub(crate) pushed: bool,
    /// It was shorter than a full segment.
    pub(crate) short: bool,
    /// When its pulse began, and how long after the one before it.
    pub(crate) began: Option<StackTime>,
    pub(crate) gap: i64,
    /// How long behind what arrived last it began, where that tells something.
    pub(crate) behind: Option<i64>,
    /// The last of these distances that was like the one before it, 0 without one.
    pub(crate) tick: i64,
}

impl Before {
    /// Whether the pulse that was due after the last one has not come by `at`: not the clock held
    /// it then.
    pub(crate) fn is_pulse_missed(&self, at: StackTime) -> bool {
        let tick = if self.tick > 0 { self.tick } else { self.gap };
        self.began.is_some_and(|began| at - began > MISSED_TIMES * tick)
    }

    /// Before the first send.
    pub(crate) const NONE: Self =
        Self { at: NEVER, pushed: true, short: false, began: None, gap: 0, behind: None, tick: 0 };
}

/// The pulses of one round, or of several.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Pulses {
    /// Those set off by the sender itself, and by an arrival.
    own: u32,
    drawn: u32,
    /// Of the drawn ones, those that came as promptly as answers do.
    prompt: u32,
    /// Of those before them: how many left data behind, and how many ended with a short segment.
    unfinished: u32,
    short: u32,
    /// Distances from one to the next: how many, how many of these are like the one before, their
    /// sum, and that of their squares.
    gaps: u32,
    alike: u32,
    gap_sum: i64,
    gap_squares: i128,
    /// Of them, those that stayed alike although what arrived before each of the two did so at other times.
    kept: u32,
}

impl Pulses {
    /// Takes a send at `at` that follows `before`, and moves that on; so long `behind` what arrived last, where
    /// that tells something.
    pub(crate) fn push(
        &mut self,
        at: StackTime,
        before: &mut Before,
        cause: Cause,
        behind: Option<i64>,
    ) {
        let apart = before.began.map_or(0, |began| at - began);
        match cause {
            Cause::Own => self.own += 1,
            Cause::Arrival { before } => {
                self.drawn += 1;
                self.prompt += u32::from(before <= PULSE_PROMPT_NS.max(NO_CHANCE.of(apart)));
            }
            Cause::Burst => {}
        }
        if at - before.at > BURST_GAP_NS
            && let Some(began) = before.began.replace(at)
        {
            let gap = at - began;
            self.unfinished += u32::from(!before.pushed);
            self.short += u32::from(before.short);
            self.gaps += 1;
            if ALIKE.is_kept((gap - before.gap).abs(), gap) {
                self.alike += 1;
                before.tick = gap;
            }
            // Nothing arrived since the pulse before where the capture lacks an ACK.
            let behind = behind.filter(|behind| *behind < gap);
            if let (Some(behind), Some(earlier)) = (behind, before.behind) {
                let (moved, shifted) = ((gap - before.gap).abs(), (behind - earlier).abs());
                self.kept += u32::from(shifted > moved * STEADIER && shifted > PULSE_PROMPT_NS);
            }
            (before.gap, before.behind) = (gap, behind);
            self.gap_sum += gap;
            self.gap_squares += i128::from(gap) * i128::from(gap);
        }
    }

    /// Those of several rounds.
    pub(crate) fn sum<'a>(rounds: impl Iterator<Item = &'a Self>) -> Self {
        rounds.fold(Self::default(), |sum, one| Self {
            own: sum.own + one.own,
            drawn: sum.drawn + one.drawn,
            prompt: sum.prompt + one.prompt,
            unfinished: sum.unfinished + one.unfinished,
            short: sum.short + one.short,
            gaps: sum.gaps + one.gaps,
            alike: sum.alike + one.alike,
            gap_sum: sum.gap_sum + one.gap_sum,
            gap_squares: sum.gap_squares + one.gap_squares,
            kept: sum.kept + one.kept,
        })
    }

    /// Whether the sender itself set off most of them. What follows an arrival by some time each time, and
    /// hardly ever at once as answers do, was not set off by it.
    pub(crate) fn are_own(&self) -> bool {
        let all = self.own + self.drawn;
        let by_chance = all >= ENOUGH_PULSES && PROMPT_BY_CHANCE.is_kept(self.prompt, all);
        self.own > 0 && self.own >= self.drawn || by_chance || self.are_kept()
    }

    /// Whether they kept their distances where what arrived before them came earlier or later than before: an answer
    /// would have, too.
    fn are_kept(&self) -> bool {
        self.gaps >= ENOUGH_PULSES && KEPT_DISTANCES.is_reached(self.kept, self.gaps)
    }

    /// Whether they came at even distances.
    pub(crate) fn are_even(&self) -> bool {
        if self.gaps < ENOUGH_PULSES || self.gap_sum <= 0 {
            return false;
        }
        let (n, sum) = (i128::from(self.gaps), i128::from(self.gap_sum));
        let variance_n2 = n * self.gap_squares - sum * sum;
        !EVEN_VARIANCE.is_reached(variance_n2, sum * sum)
            || EVEN_ALIKE.is_reached(self.alike, self.gaps)
    }

    /// Whether nearly all left data behind: the application had written more.
    pub(crate) fn are_unfinished(&self) -> bool {
        self.gaps >= ENOUGH_PULSES && NEARLY_ALL.is_reached(self.unfinished, self.gaps)
    }

    /// Whether nearly none ended as writes do, and what distance they have is no chance.
    pub(crate) fn end_whole(&self) -> bool {
        self.gaps >= ENOUGH_PULSES
            && WHOLE_SHORT.is_kept(self.short, self.gaps)
            && WHOLE_ALIKE.is_reached(self.alike, self.gaps)
    }

    /// Whether full segments went out at even distances, as Linux paces them.
    pub(crate) fn are_even_and_whole(&self) -> bool {
        self.are_even() && self.end_whole()
    }

    /// Whether nearly all ended as writes do, with a short segment: of as many as make flights of one size a lid.
    pub(crate) fn all_end_short(&self) -> bool {
        self.gaps >= LID_ROUNDS as u32 && NEARLY_ALL.is_reached(self.short, self.gaps)
    }

    /// Whether many ended as writes do, with a short segment.
    pub(crate) fn end_short(&self) -> bool {
        self.gaps >= ENOUGH_PULSES && MANY.is_reached(self.short, self.gaps)
    }
}

/// What went out in the repairs of a round, new or again: how many bursts there were, and how many came by themselves.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Mending {
    bursts: u32,
    by_itself: u32,
}

impl Mending {
    /// Takes a send so long `apart` from the one before it, and so long `behind` what arrived last. Whether it came by
    /// itself: a host that is slow answers late, too, but as late whenever it is to answer.
    pub(crate) fn push(&mut self, apart: i64, behind: i64) -> bool {
        if apart <= BURST_GAP_NS {
            return false;
        }
        let by_itself = behind > PULSE_PROMPT_NS.max(NO_ANSWER.of(apart));
        self.bursts += 1;
        self.by_itself += u32::from(by_itself);
        by_itself
    }

    /// That of several rounds.
    pub(crate) fn sum<'a>(rounds: impl Iterator<Item = &'a Self>) -> Self {
        rounds.fold(Self::default(), |sum, one| Self {
            bursts: sum.bursts + one.bursts,
            by_itself: sum.by_itself + one.by_itself,
        })
    }

    /// Whether enough came by themselves that it was no chance.
    pub(crate) fn have_a_clock(self) -> bool {
        self.by_itself >= ENOUGH_PULSES && BY_CLOCK.is_reached(self.by_itself, self.bursts)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// How each pulse ends: in the midst of a write, with a writer's last full segment, with a
    /// write's rest.
    const MIDST: (bool, bool) = (false, false);
    const BLOCKED: (bool, bool) = (true, false);
    const WRITTEN: (bool, bool) = (true, true);

    const MS: i64 = 1_000_000;

    /// Pulses of two segments at these times.
    fn pulses(times: &[i64], (pushed, short): (bool, bool), cause: Cause) -> Pulses {
        let (mut pulses, mut before) = (Pulses::default(), Before::NONE);
        for &at in times {
            pulses.push(StackTime(at), &mut before, cause, None);
            before.at = StackTime(at);
            pulses.push(StackTime(at), &mut before, Cause::Burst, None);
            before = Before { pushed, short, ..before };
        }
        pulses
    }

    fn every(gap: i64, times: i64) -> Vec<i64> {
        (0..times).map(|n| n * gap).collect()
    }

    #[test]
    fn segments_that_leave_together_are_one_pulse() {
        let even = pulses(&every(1_700_000, 9), MIDST, Cause::Own);
        assert!(even.are_even() && even.are_own() && even.are_unfinished() && !even.end_short());
        assert!(!pulses(&every(1_700_000, 8), MIDST, Cause::Own).are_even(), "seven gaps");
    }

    /// Adds one that an arrival sets off at once.
    fn answer(pulses: &mut Pulses) {
        let mut before = Before { at: StackTime(0), ..Before::NONE };
        pulses.push(StackTime(0), &mut before, Cause::Arrival { before: 0 }, None);
    }

    #[test]
    fn what_arrivals_set_off_is_not_the_senders_clock() {
        let mut mixed = pulses(&every(1_700_000, 9), MIDST, Cause::Own);
        (0..9).for_each(|_| answer(&mut mixed));
        assert!(mixed.are_own());
        answer(&mut mixed);
        assert!(!mixed.are_own());
    }

    #[test]
    fn what_follows_arrivals_late_each_time_was_not_set_off_by_them() {
        let drawn = |before| pulses(&every(1_700_000, 9), MIDST, Cause::Arrival { before });
        assert!(drawn(PULSE_PROMPT_NS + 1).are_own());
        assert!(!drawn(PULSE_PROMPT_NS).are_own(), "as promptly as answers leave");
        let mut swept = drawn(PULSE_PROMPT_NS + 1);
        answer(&mut swept);
        assert!(swept.are_own(), "one of ten comes by chance");
        answer(&mut swept);
        assert!(!swept.are_own());
        let few = pulses(&every(1_700_000, 7), MIDST, Cause::Arrival { before: 99_000 });
        assert!(!few.are_own());
    }

    /// Sixteen even pulses as prompt as answers. Each of `others` came `time` behind the last arrival, and the rest
    /// 10 us.
    fn behind(others: &[usize], time: i64) -> Pulses {
        let (mut pulses, mut before) = (Pulses::default(), Before::NONE);
        for (number, at) in every(1_700_000, 17).into_iter().enumerate() {
            let behind = if others.contains(&number) { time } else { 10_000 };
            pulses.push(
                StackTime(at),
                &mut before,
                Cause::Arrival { before: behind },
                Some(behind),
            );
            before = Before { at: StackTime(at), ..before };
        }
        pulses
    }

    #[test]
    fn what_keeps_its_distance_whenever_something_arrives_was_not_set_off_by_it() {
        assert!(
            behind(&[5], PULSE_PROMPT_NS + 10_001).are_own(),
            "there, and back: two of sixteen"
        );
        assert!(!behind(&[16], PULSE_PROMPT_NS + 10_001).are_own(), "one of sixteen");
        assert!(!behind(&[5], PULSE_PROMPT_NS + 10_000).are_own(), "no more than answers vary");
        assert!(!behind(&[5, 9], 1_710_000).are_own(), "the capture lacks what arrived");
    }

    #[test]
    fn a_write_each_time_is_told_by_its_end() {
        let written = pulses(&every(1_700_000, 9), WRITTEN, Cause::Own);
        assert!(written.end_short() && !written.are_unfinished());
        let blocked = pulses(&every(1_700_000, 9), BLOCKED, Cause::Own);
        assert!(!blocked.end_short() && !blocked.are_unfinished());
    }

    #[test]
    fn uneven_distances_have_no_clock() {
        let mut times = every(1_700_000, 12);
        for at in times.iter_mut().step_by(2) {
            *at += 600_000;
        }
        assert!(!pulses(&times, MIDST, Cause::Own).are_even());
    }

    #[test]
    fn a_clock_may_be_stopped_now_and_then() {
        let stopped = |run: i64| -> Vec<i64> {
            (0..12).map(|n| n * 2_000_000 + n / run * 30_000_000).collect()
        };
        assert!(pulses(&stopped(6), MIDST, Cause::Own).are_even());
        assert!(
            !pulses(&stopped(3), MIDST, Cause::Own).are_even(),
            "one of three is like the last"
        );
    }

    /// Whether bursts of a repair, 2 ms apart, had a clock: `late` of them came `behind` an arrival.
    fn mended(bursts: usize, late: usize, behind: i64) -> bool {
        let mut mending = Mending::default();
        for number in 0..bursts {
            mending.push(2_000_000, if number < late { behind } else { PULSE_PROMPT_NS });
            mending.push(BURST_GAP_NS, behind);
        }
        mending.have_a_clock()
    }

    #[test]
    fn what_comes_by_itself_in_a_repair_again_and_again_has_a_clock() {
        assert!(mended(8, 8, MS) && mended(32, 8, MS));
        assert!(!mended(33, 8, MS), "less than a quarter: windows let out the others");
        assert!(!mended(8, 7, MS), "seven tell nothing");
        assert!(!mended(8, 8, MS / 4), "a slow host answers within an eighth of the distance");
    }

    #[test]
    fn a_pulse_is_missed_at_twice_its_distance() {
        let mut before = Before::NONE;
        assert!(!before.is_pulse_missed(StackTime(1_000_000)), "none has come");
        let mut pulses = Pulses::default();
        for at in [0, 2_000_000, 4_000_000, 9_000_000] {
            pulses.push(StackTime(at), &mut before, Cause::Own, None);
            before.at = StackTime(at);
        }
        assert!(!before.is_pulse_missed(StackTime(13_000_000)));
        assert!(
            before.is_pulse_missed(StackTime(13_000_001)),
            "the stop before the last tells no distance"
        );
    }

    #[test]
    fn rounds_too_short_to_tell_tell_together() {
        let (one, two) = (every(2_000_000, 5), every(2_000_000, 6));
        let (one, two) = (pulses(&one, MIDST, Cause::Own), pulses(&two, MIDST, Cause::Own));
        assert!(!one.are_even() && !two.are_even());
        assert!(Pulses::sum([one, two].iter()).are_even());
    }
}
