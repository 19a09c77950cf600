//! When the link was busy: every gap between departures held against the link's rate.
//!
//! A link that works whenever a packet waits (Lindley 1952) was busy throughout a gap whose first packet had been sent
//! before the last one left, if the gap is no longer than what was sent in it takes. Losses count as sent: an empty
//! queue does not overflow.

use super::full::Runs;
use super::gap::Gap;
use super::places::Places;
use super::stretch::{SLACK_PACKETS, Scale, Stretch};

/// All that was held against the link's rate so far.
#[derive(Clone, Debug, Default)]
pub(super) struct Course {
    pub(super) runs: Runs,
    pub(super) places: Places,
    /// Time of all gaps, and what all that was delivered takes.
    pub(super) whole: f64,
    pub(super) floor: f64,
    /// Delays that the queue of this flow alone leaves unexplained, of so many.
    unexplained: f64,
    delays: f64,
}

impl Course {
    /// Holds the first `count` of `gaps` against the link's rate; those behind only bound them. Returns when the last of the
    /// `count` ended, on the tap's clock.
    pub(super) fn take(&mut self, gaps: &[Gap], count: usize, scale: Scale) -> Option<i64> {
        let mut stretches = stretches(gaps, scale);
        stretches.truncate(count);
        self.explain(&stretches, scale);
        let slack = SLACK_PACKETS * scale.packet;
        for stretch in &stretches {
            let work = f64::from(stretch.gap.work) * scale.per;
            self.runs.push(span(stretch, scale, slack), work, scale);
            self.places.push(stretch, scale.per);
            self.whole += stretch.time();
            self.floor += work;
        }
        stretches.last().map(|last| (last.to + scale.terms.late) as i64)
    }

    /// Takes what was only counted: this many bytes came through in a time. Whether no such link lets them.
    pub(super) fn count(&mut self, span: (f64, f64), bytes: f64, scale: Scale) -> bool {
        let work = bytes * scale.per;
        self.whole += span.1 - span.0;
        self.floor += work;
        self.runs.count(span, work)
    }

    /// How much of the packets' delays the queue of this flow alone explains: 1 all, 0 or less nothing.
    pub(super) fn explained(&self) -> f64 {
        if self.delays > 0.0 { 1.0 - self.unexplained / self.delays } else { 0.0 }
    }

    /// Models the queue, anew from what was measured once a round trip. What send times do not tell counts for neither
    /// side.
    fn explain(&mut self, stretches: &[Stretch], scale: Scale) {
        let Scale { per, packet, terms } = scale;
        let Some(tick) = terms.tick else { return };
        let mut anchor: Option<f64> = None;
        let mut left = 0.0_f64;
        for stretch in stretches {
            if anchor.is_none_or(|anchor| stretch.from - anchor >= terms.trip) {
                (left, anchor) = (stretch.from, Some(stretch.from));
            }
            let Gap { work, sent, packets, .. } = stretch.gap;
            let last = f64::from(work) / f64::from(packets.max(1)) * per;
            // Lost packets took no turn that is known of.
            let turns = if sent == work { f64::from(work) * per } else { last };
            let first = if sent == work { stretch.first } else { stretch.last };
            left = (left.max(first) + turns).max(stretch.last + last);
            let (delay, model) = ((stretch.to - stretch.last).max(0.0), left - stretch.last);
            self.delays += ((delay - packet).abs() - tick as f64).max(0.0);
            self.unexplained += ((delay - model).abs() - tick as f64).max(0.0);
        }
    }
}

/// The gaps on the departures' clock. What tells of a departure can be late and never early, so what left later bounds
/// what left before: that undoes ACKs that came together. Without send times it would undo bursts, too.
fn stretches(gaps: &[Gap], scale: Scale) -> Vec<Stretch> {
    let Scale { per, terms, .. } = scale;
    let stretch = |gap: &Gap| Stretch {
        from: gap.from as f64 - terms.late,
        to: gap.to as f64 - terms.late,
        first: gap.first as f64,
        last: gap.last as f64,
        is_causal: true,
        gap: *gap,
    };
    let mut all: Vec<Stretch> = gaps.iter().map(stretch).collect();
    let Some(tick) = terms.tick else { return all };
    for at in (1..all.len()).rev() {
        let most = (all[at].to - f64::from(all[at].gap.work) * per).max(all[at - 1].last);
        if all[at - 1].to > most {
            (all[at - 1].to, all[at].from) = (most, most);
        }
    }
    if let Some(first) = all.first_mut() {
        first.from = first.from.min(first.to - f64::from(first.gap.work) * per);
    }
    for stretch in &mut all {
        stretch.is_causal = stretch.first <= stretch.from + tick as f64;
    }
    all
}

/// When the link worked in a gap.
fn span(stretch: &Stretch, scale: Scale, slack: f64) -> (f64, f64) {
    let Gap { work, sent, .. } = stretch.gap;
    let [took, might] = [work, sent].map(|bytes| f64::from(bytes) * scale.per);
    if stretch.is_causal && stretch.time() <= might + slack {
        return (stretch.from, stretch.to);
    }
    if scale.terms.tick != Some(0) {
        return ((stretch.to - took).max(stretch.from), stretch.to);
    }
    // It was idle until the first came, if that came late; else it stood still at the end of its work.
    let from = stretch.first.max(stretch.from);
    let to = if sent == work { from + took } else { stretch.to };
    (from.max(to - might), to.min(stretch.to).max(from))
}

#[cfg(test)]
mod tests {
    use super::super::gap::Terms;
    use super::*;
    use crate::clocks::TapTime;

    /// One byte takes this many nanoseconds.
    const PER: f64 = 100.0;
    const PACKET: u32 = 1_000;
    const TURN: i64 = 100_000;
    const BASE: i64 = 1_000_000;

    fn scale() -> Scale {
        let terms = Terms { late: BASE as f64, trip: BASE as f64, own: 0, tick: Some(0) };
        Scale { per: PER, packet: f64::from(PACKET) * PER, terms }
    }

    /// A gap of one packet from one departure to the next, which was sent at `first`.
    fn gap(from: i64, to: i64, first: i64) -> Gap {
        let (from, to) = (from + BASE, to + BASE);
        let (work, sent, packets, chain) = (PACKET, PACKET, 1, 1);
        let number = ((from - BASE) / TURN) as u64;
        Gap { from, to, coarse: 0, first, last: first, work, sent, packets, chain, number }
    }

    fn taken(gaps: &[Gap], scale: Scale) -> Course {
        let mut course = Course::default();
        course.take(gaps, gaps.len(), scale);
        course.runs.close(scale);
        course
    }

    fn measured(gaps: &[Gap]) -> Course {
        taken(gaps, scale())
    }

    #[test]
    fn a_link_with_packets_waiting_is_busy_and_full() {
        let gaps: Vec<Gap> = (0..40).map(|n| gap(n * TURN, (n + 1) * TURN, 0)).collect();
        let busy = measured(&gaps);
        let told = [busy.runs.worked, busy.whole, busy.floor].map(|time| time as i64);
        assert_eq!(told, [40 * TURN; 3]);
        assert_eq!(busy.runs.full, [(TapTime(0), TapTime(40 * TURN))]);
    }

    #[test]
    fn a_link_that_waits_for_packets_is_busy_for_their_turns_only() {
        // Each is sent four turns after the one before it left.
        let sent = |n: i64| n * 5 * TURN + 4 * TURN;
        let gaps: Vec<Gap> =
            (0..40).map(|n| gap(n * 5 * TURN, (n + 1) * 5 * TURN, sent(n))).collect();
        let busy = measured(&gaps);
        assert_eq!(busy.runs.worked as i64, 40 * TURN);
        assert!(busy.runs.full.is_empty());
    }

    #[test]
    fn a_link_is_full_while_no_more_than_a_tenth_of_it_idles() {
        // Each packet is sent `wait` after the one before it left.
        let late = |wait: i64| {
            let each = TURN + wait;
            let gaps: Vec<Gap> =
                (0..80).map(|n| gap(n * each, (n + 1) * each, n * each + wait)).collect();
            measured(&gaps).runs.full.len()
        };
        assert_eq!(late(TURN / 10), 1);
        assert_eq!(late(TURN / 8), 0);
    }

    #[test]
    fn what_is_judged_in_parts_is_judged_alike() {
        let gaps: Vec<Gap> =
            (0..90).map(|n| gap(n * TURN, (n + 1) * TURN, (n - 20) * TURN)).collect();
        let mut course = Course::default();
        assert_eq!(course.take(&gaps, 40, scale()), Some(BASE + 40 * TURN));
        course.take(&gaps[40..], 50, scale());
        course.runs.close(scale());
        assert_eq!(course.runs.full, measured(&gaps).runs.full);
        assert_eq!(course.runs.busy, [(TapTime(0), TapTime(90 * TURN))]);
    }

    #[test]
    fn a_link_that_paused_worked_for_what_came_through_however_coarse_send_times_are() {
        let paused: Vec<Gap> =
            (0..40).map(|n| gap(n * 4 * TURN, (n + 1) * 4 * TURN, n * 4 * TURN + TURN)).collect();
        let worked = |tick| {
            let terms = Terms { tick, ..scale().terms };
            taken(&paused, Scale { terms, ..scale() }).runs.worked as i64
        };
        assert_eq!([worked(Some(0)), worked(Some(TURN)), worked(None)], [40 * TURN; 3]);
    }

    #[test]
    fn acks_that_come_together_hide_no_work() {
        // All ACKs of ten packets come when the last is due.
        let late = |n: i64| gap(n / 10 * 10 * TURN, (n / 10 + 1) * 10 * TURN, 0);
        let mut gaps: Vec<Gap> = (0..40).map(late).collect();
        let behind = gaps.iter_mut().enumerate().filter(|(at, _)| at % 10 != 0);
        behind.for_each(|(_, gap)| gap.from = gap.to);
        assert_eq!(measured(&gaps).runs.full, [(TapTime(0), TapTime(40 * TURN))]);
    }

    #[test]
    fn a_queue_of_its_own_explains_delays_that_grow_so() {
        // A paced sender: each packet leaves as it comes.
        let paced: Vec<Gap> = (0..40).map(|n| gap(n * TURN, (n + 1) * TURN, n * TURN)).collect();
        assert!(measured(&paced).explained() <= 0.0);
        let queued: Vec<Gap> = (0..40).map(|n| gap(n * TURN, (n + 1) * TURN, 0)).collect();
        assert!(measured(&queued).explained() > 0.9);
    }
}
