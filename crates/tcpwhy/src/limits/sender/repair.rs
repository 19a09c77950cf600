//! Repairs: what was retransmitted, why, and whether it was needed.
//!
//! A repair was not needed if each of its repeats is proven needless ([`super::repeats`]). A probe of
//! the tail is no episode ([`super::episodes`]), but if it was needed it cuts the window, too ([`super::probe`]).

use super::Sender;
use super::episodes::{Episode, Episodes, Kind};
use super::growth::ExitCause;
use super::losses::Losses;
use super::probe::TailProbe;
use super::repeats::{Repeat, Repeats};
use super::sends::segments_of;
use super::stuck::Heads;
use super::window::Filled;
use crate::clocks::StackTime;
use crate::flow::event::Event;
use crate::limits::proof::{Proof, Proven};
use crate::limits::round::Round;
use crate::limits::sense::{FLIGHTS, LISTED, ORIGINALS, REORDERED, ran_out};
use crate::measure::doubled::Doubled;
use crate::measure::drops::Flights;
use crate::measure::flight::{DAMAGED, RETRANSMITTED, UNSEEN};
use crate::measure::ipid::Step;
use crate::offsets::Offset;
use crate::report::{RepeatCause, Retransmission};
use crate::segments::Segments;

/// The repairs of a direction.
#[derive(Clone, Debug, Default)]
pub(crate) struct Repairs {
    pub(crate) episodes: Episodes,
    pub(crate) losses: Losses,
    pub(crate) heads: Heads,
    pub(crate) doubled: Doubled,
    pub(super) repeats: Repeats,
    pub(crate) probe: TailProbe,
}

impl Repairs {
    pub(crate) fn note_repeat(&mut self, event: &Event, is_probe: bool) {
        let episode = if is_probe { 0 } else { self.episodes.note_repeat(event.len) };
        self.repeats.push(Repeat::of(event, episode));
    }

    /// Something is retransmitted; whether it is the episode's first. What was waited for before that was no repair:
    /// while a hole may be reordering, Linux goes on sending (`TCP_CA_Disorder`).
    pub(crate) fn begin(&mut self, high: Offset) -> bool {
        self.probe.end();
        self.episodes.begin(high)
    }

    /// As [`begin`](Self::begin), where the original of the retransmission never came to the tap.
    pub(crate) fn begin_tail(&mut self, high: Offset, timeout: bool) -> bool {
        self.probe.end();
        self.episodes.begin_tail(high, timeout)
    }
}

impl Sender {
    /// Data at or below `nxt`: a retransmission, a late arrival, or needless.
    pub(crate) fn on_repeat(
        &mut self,
        event: &Event,
        at: StackTime,
        segments: Segments,
        step: Step,
    ) {
        if self.is_probe_of_shut(event, at) {
            return;
        }
        if self.came_late(event, segments) {
            return;
        }
        self.repairs.doubled.on_repeat((event.seq, event.end()));
        if event.end() <= self.flight.nxt {
            self.take_unexplained(event, step);
        }
        let hole = self.flight.is_unseen(event.seq.max(self.flight.una), event.end());
        let hole_age =
            self.flight.overlapping(event.seq, event.end()).map(|e| at - e.at).max().unwrap_or(0);
        let late = match step {
            Step::Before => true,
            Step::After(_) => false,
            Step::Unknown => hole_age < REORDERED.of(self.rtt_scale()),
        };
        if hole && late && event.end() > self.flight.una {
            self.tally.out_of_order += segments;
            self.flight.fill(event.seq, event.end(), at, event.frame, 0);
            return;
        }
        if self.is_of_before(event, at, step) {
            self.repeat_of_before(event, at, segments);
            return;
        }
        if event.end() <= self.flight.una {
            self.watch_lost_acks(at);
            self.tally.unnecessary += segments;
            self.list(event, at, RepeatCause::Unnecessary, Vec::new());
            return;
        }
        let cause = self.cause_of_repeat(event, at);
        match cause {
            RepeatCause::Rto => self.tally.rto += segments,
            RepeatCause::Tlp => self.tally.tlp += segments,
            _ => self.tally.fast += segments,
        }
        let original =
            self.flight.overlapping(event.seq, event.end()).next().map(|e| (e.at, e.frame));
        self.note_head(event, at, original);
        if event.seq <= self.flight.una {
            self.silence.on_repeat(self.flight.una, (at, event.frame), original);
        }
        if cause == RepeatCause::Fast {
            self.note_mending(event, at);
        }
        self.repairs.note_repeat(event, cause == RepeatCause::Tlp);
        let originals = self.mark_repeated(event, at);
        self.list(event, at, cause, originals);
        self.progress.at = at;
    }

    /// Which timer or sign made the sender repeat, with the wait before it named.
    fn cause_of_repeat(&mut self, event: &Event, at: StackTime) -> RepeatCause {
        let quiet = at - self.progress.at.max(self.sends.last);
        let (rto, lone) = (self.trips.timers.rto(), self.flight.outstanding() <= self.terms.mss);
        let signs = self.repairs.episodes.current() != 0;
        let in_timeout =
            self.repairs.episodes.open.is_some_and(|e| e.timeout && e.kind == Kind::Repair);
        let is_timer = |timer: i64| ran_out(timer, quiet);
        let tail = event.end() == self.flight.nxt;
        let nxt = self.flight.nxt;
        // The probe is scheduled no later than the RTO, and goes first (`tcp_schedule_loss_probe`).
        let may_probe = tail && !signs && self.terms.sack && !self.progress.tail_probed;
        let cause = if may_probe && is_timer(self.trips.timers.pto(lone)) {
            self.progress.tail_probed = true;
            self.repairs.probe.begin(event, self.flight.outstanding_segments());
            RepeatCause::Tlp
        } else if in_timeout || is_timer(rto) && (event.seq <= self.flight.una || !signs) {
            // Beyond `una`, nothing told of a hole: the capture lacks the ACK that moved it.
            RepeatCause::Rto
        } else {
            RepeatCause::Fast
        };
        let timer_wait = match cause {
            RepeatCause::Rto if !in_timeout || is_timer(rto) => Some(Proven::Timeout),
            RepeatCause::Tlp => Some(Proven::Probe),
            _ => None,
        };
        if let Some(timer) = timer_wait {
            self.prove(self.progress.at.max(self.sends.last), timer);
        }
        if cause != RepeatCause::Tlp {
            if self.repairs.begin(nxt) {
                self.on_first_repair(event, at);
                if cause == RepeatCause::Fast {
                    self.repair_since_told();
                }
            }
            if let Some(episode) = &mut self.repairs.episodes.open {
                episode.timeout |= cause == RepeatCause::Rto;
            }
        }
        cause
    }

    /// What repaired first may have stood in a queue that does not show, and seems to be sent late by that; the signs
    /// of the hole had no such queue before them.
    fn repair_since_told(&mut self) {
        let Some(Episode { id, told: Some(told), .. }) = self.repairs.episodes.open else { return };
        if !self.terms.sees_queues {
            self.proofs.push(Proof::Episode { since: told, id });
        }
    }

    /// An episode's first repair: where the flight stood when the lost original went out.
    fn on_first_repair(&mut self, event: &Event, at: StackTime) {
        let original = self.flight.overlapping(event.seq, event.end()).next().copied();
        if let Some(original) = original {
            let least = self.least_rtt();
            let queued = self.book.closed.is_queue_standing(least);
            self.repairs.losses.on_first(&original, event.seq, queued, least);
            if let Some(episode) = &mut self.repairs.episodes.open {
                episode.damaged = original.flags & DAMAGED != 0;
            }
        }
        self.cut_window(self.flight.outstanding_segments(), at);
    }

    /// A repair is over, but what is missing now was sent after it began and retransmitted in it: that loss is known,
    /// and the next repair begins at once (`tcp_fastretrans_alert`, `tcp_time_to_recover` by `lost_out`).
    pub(crate) fn repair_on(&mut self, at: StackTime) {
        let una = self.flight.una;
        let head = self.flight.overlapping(una, una + 1).next().copied();
        // One repeat may reach over the end of what the repair was for: it is no second one.
        let has_another =
            (self.tally.lost + self.tally.spurious).get() > self.repairs.episodes.count;
        if let Some(head) = head.filter(|head| has_another && head.flags & RETRANSMITTED != 0) {
            self.repairs.begin(self.flight.nxt);
            if let Some(episode) = &mut self.repairs.episodes.open {
                episode.damaged = head.flags & DAMAGED != 0;
            }
            self.cut_window(self.flight.outstanding_segments(), at);
        }
    }

    /// The sender cuts its congestion window, of `cwnd` segments or more, because of a loss.
    pub(crate) fn cut_window(&mut self, cwnd: Segments, at: StackTime) {
        // What the round waited for before that, it waited for without knowing of the loss.
        let phase = self.phase();
        if self.book.open.sends > 0 {
            self.book.open.before_loss.get_or_insert(phase);
        }
        let episodes = &self.repairs.episodes;
        self.growth.cut(cwnd, if episodes.is_repairing() { episodes.current() } else { 0 });
        self.window.filled = Filled::default();
        self.avoidance.on_loss(cwnd);
        self.pauses.before_cut = core::mem::take(&mut self.pauses.since_cut);
        self.growth.leave_slow_start(at, Some(cwnd), ExitCause::Loss);
        self.replay.exit();
    }

    /// Something more of `repair` is proven needless. If that was its last, the sender takes the window back that it had
    /// cut, and goes on as before (Linux v6.1 `tcp_try_undo_dsack`, `tcp_try_undo_partial`, `tcp_try_undo_recovery`).
    pub(super) fn take_back(&mut self, repair: u32) {
        if self.repairs.episodes.end_needless(repair) && self.growth.give_back(repair) {
            self.avoidance.forget_loss();
            self.pauses.since_cut = self.pauses.since_cut.max(self.pauses.before_cut);
        }
    }

    /// Something is sent at `at`, new or again. In a repair only the sender's host shows whether an arrival let it out.
    pub(super) fn note_mending(&mut self, event: &Event, at: StackTime) {
        if !self.repairs.episodes.is_repairing() {
            return;
        }
        let Some(behind) = self.behind_arrival(event.tap) else { return };
        let arrived = event.tap.left(self.terms.own_way) - behind;
        let (since, behind) = (self.sends.last, behind.min(at - arrived) - self.terms.spread);
        if self.book.open.mending.push(at - since, behind) {
            self.proofs.push(Proof::ByItself { since });
        }
    }

    /// Marks what `event` repeats; the frames of the originals.
    fn mark_repeated(&mut self, event: &Event, at: StackTime) -> Vec<u64> {
        let mut originals = Vec::new();
        let (mut repeated, mut damaged, episode) = (0, 0, self.repairs.episodes.current());
        let listing = self.repairs.episodes.is_repairing();
        if listing {
            self.note_repair(event, at);
        }
        for entry in self.flight.overlapping(event.seq, event.end()) {
            if entry.frame != 0 && originals.len() < ORIGINALS {
                originals.push(entry.frame);
            }
            if listing && entry.flags & RETRANSMITTED == 0 {
                self.repairs.losses.push(entry, episode);
            }
            if entry.flags & (DAMAGED | RETRANSMITTED) == DAMAGED {
                damaged += u64::from(entry.segments);
            }
            entry.flags = (entry.flags | RETRANSMITTED) & !UNSEEN;
            entry.at = at;
            repeated += entry.end.min(event.end()) - entry.start.max(event.seq);
        }
        self.flight.retransmitted_out += repeated;
        self.tally.damaged += Segments::new(damaged);
        self.tally.lost += segments_of(event.len, self.terms.mss);
        originals
    }

    /// `event` repairs at `at` what a policer may have dropped.
    fn note_repair(&mut self, event: &Event, at: StackTime) {
        let (least_rtt, mss) = (self.least_rtt(), self.terms.mss);
        let newest = || self.book.closed.kept.iter().rev().take(FLIGHTS);
        let waited = newest().find_map(Round::rtt).map_or(i64::MAX, |rtt| rtt - least_rtt);
        let silence = newest().map(|round| round.tap_gap).max().unwrap_or(0);
        let original = self.flight.overlapping(event.seq, event.end()).next().copied();
        let flights = Flights { silence, waited, least_rtt, mss };
        self.repairs.losses.on_repair(event, original.as_ref(), at, flights);
    }

    pub(crate) fn list(
        &mut self,
        event: &Event,
        at: StackTime,
        cause: RepeatCause,
        originals: Vec<u64>,
    ) {
        if self.terms.detail && self.retransmissions.len() < LISTED {
            self.retransmissions.push(Retransmission {
                at_ns: at.0,
                frame: event.frame,
                seq: event.seq.get(),
                bytes: u64::from(event.len),
                cause,
                spurious: false,
                originals,
                lost: None,
            });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::Terms;
    use super::*;

    #[test]
    fn where_queues_do_not_show_a_repair_begins_when_enough_has_come_behind_the_hole() {
        let repaired_since = |sees_queues, signs: &[(u64, i64)]| {
            let mut sender = Sender::new(Terms { sees_queues, ..Terms::default() }, true, 0);
            for &(segments, at) in signs {
                sender.repairs.episodes.on_duplicate(
                    Offset::at(9),
                    Segments::new(segments),
                    StackTime(at),
                );
            }
            sender.repairs.begin(Offset::at(9));
            sender.repair_since_told();
            let repair = sender.repairs.episodes.current();
            sender.proofs.iter().find_map(|proof| match *proof {
                Proof::Episode { since, id } if id == repair => Some(since),
                _ => None,
            })
        };
        let one_by_one = [(1, 10), (1, 20), (1, 30), (1, 40)];
        assert_eq!(repaired_since(false, &one_by_one), Some(StackTime(30)));
        assert_eq!(
            repaired_since(false, &[(1, 10), (2, 20)]),
            Some(StackTime(20)),
            "one ACK for two"
        );
        assert_eq!(repaired_since(false, &[(1, 10), (1, 20)]), None, "two may be reordering");
        assert_eq!(repaired_since(true, &one_by_one), None, "its time is that of the repeat");
    }
}
