//! Loss episodes: when repairing began, what it repaired, and whether it was needed.
//!
//! An episode begins with the first sign of a hole (a SACK block or a duplicate ACK), becomes a
//! repair when something is sent again, and ends when everything sent before it is acknowledged.
//! Signs without a repair were reordering and cost nothing. Before the first repeat, too, the sender
//! waits for what it waited for: the method begins recovery with the sign, the kernel does not. A
//! repair was not needed if each of its repeats is proven needless ([`super::repeats`]). A probe of
//! the tail is no episode, but if it was needed it cuts the window, too.

use std::collections::VecDeque;

use super::Sender;
use super::growth::ExitCause;
use super::holes::Holes;
use super::repeats::{Needless, Repeat, Repeats};
use super::sends::segments_of;
use super::stuck::Heads;
use super::window::Filled;
use crate::flow::event::{Block, Event};
use crate::limits::proof::{Proof, Proven};
use crate::limits::sense::{DUP_THRESH, EPISODES, LISTED, ORIGINALS, REORDERED, REPEATS, ran_out};
use crate::measure::doubled::Doubled;
use crate::measure::flight::{DAMAGED, RETRANSMITTED, UNSEEN};
use crate::measure::ipid::Step;
use crate::measure::loss::Lost;
use crate::measure::policer::Policer;
use crate::report::{InFlightAtLoss, Retransmission, State};

/// What an episode turned out to be.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub(crate) enum Kind {
    /// Signs of a hole only.
    #[default]
    Signs,
    /// Something was sent again.
    Repair,
    /// Slowed down for marks.
    Ecn,
}

/// One episode.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Episode {
    pub(crate) id: u32,
    /// Everything up to here was sent before it.
    pub(crate) high: i64,
    pub(crate) kind: Kind,
    pub(crate) timeout: bool,
    /// Bytes sent again, and how many of them are proven needless.
    repeated: i64,
    needless: i64,
    /// What was lost first had arrived here damaged.
    damaged: bool,
    /// Segments of which the receiver told that they came behind the hole, and when they were enough to repair it.
    behind: u64,
    told: Option<i64>,
}

impl Episode {
    /// Whether nothing of what was sent again was needed.
    fn is_spurious(&self) -> bool {
        self.repeated > 0 && self.needless >= self.repeated
    }
}

/// All episodes of a direction.
#[derive(Clone, Debug, Default)]
pub(crate) struct Repairs {
    open: Option<Episode>,
    past: VecDeque<Episode>,
    next_id: u32,
    pub(crate) flights_at_loss: Vec<InFlightAtLoss>,
    /// Lost originals, for the loss pattern.
    pub(crate) lost: Vec<Lost>,
    pub(crate) episodes: u64,
    pub(crate) heads: Heads,
    policer: Policer,
    /// What was lost before the tap.
    pub(crate) holes: Holes,
    pub(crate) doubled: Doubled,
    repeats: Repeats,
    /// The probe that sent the tail again, until it shows whether that was lost.
    probe: Option<Probe>,
}

/// A probe of the tail that sent again what lies in `range`, with so many segments in flight.
#[derive(Clone, Copy, Debug)]
struct Probe {
    range: Block,
    flight: u64,
}

impl Repairs {
    /// `event` sends the tail again, by the timer of the probe, with so many segments in flight.
    pub(crate) fn note_probe(&mut self, event: &Event, flight: u64) {
        self.probe = Some(Probe { range: (event.seq, event.end()), flight });
    }

    /// Whether an ACK of just so much may be the probe's.
    pub(crate) fn is_probes_answer(&self, ack: i64) -> bool {
        self.probe.is_some_and(|probe| ack == probe.range.1)
    }

    pub(crate) fn note_repeat(&mut self, event: &Event, is_probe: bool) {
        let open = self.open.as_mut().filter(|e| e.kind == Kind::Repair && !is_probe);
        if let Some(episode) = open {
            episode.repeated += i64::from(event.len);
            self.repeats.push(Repeat::of(event, episode.id));
        } else {
            self.repeats.push(Repeat::of(event, 0));
        }
    }

    fn note_needless(&mut self, told: Needless) {
        let all = self.open.iter_mut().chain(self.past.iter_mut().rev());
        if let Some(episode) = all.into_iter().find(|e| told.episode != 0 && e.id == told.episode) {
            episode.needless += told.bytes;
        }
    }

    /// Whether the losses so far are a policer's.
    pub(crate) fn are_policed(&self) -> bool {
        self.policer.is_one()
    }

    /// Id of the open episode, 0 without one.
    pub(crate) fn current(&self) -> u32 {
        self.open.map_or(0, |e| e.id)
    }

    /// Whether something was sent again and is not yet settled.
    pub(crate) fn is_repairing(&self) -> bool {
        self.open.is_some_and(|e| e.kind == Kind::Repair)
    }

    fn open_at(&mut self, high: i64) -> &mut Episode {
        if self.open.is_none() {
            self.next_id += 1;
        }
        let id = self.next_id;
        self.open.get_or_insert(Episode { id, high, ..Episode::default() })
    }

    /// At `at` the receiver tells of `segments` behind a hole.
    pub(crate) fn on_duplicate(&mut self, high: i64, segments: u64, at: i64) {
        let episode = self.open_at(high);
        episode.behind += segments;
        if episode.behind >= DUP_THRESH {
            episode.told.get_or_insert(at);
        }
    }

    /// Something is sent again; whether it is the episode's first. What was waited for before that
    /// was no repair: while a hole may be reordering, Linux goes on sending (`TCP_CA_Disorder`).
    pub(crate) fn begin(&mut self, high: i64) -> bool {
        // A repair cuts the window; the probe does not once more (`tcp_init_cwnd_reduction`).
        self.probe = None;
        let kind = self.open_at(high).kind;
        if kind == Kind::Repair {
            return false;
        }
        if kind == Kind::Signs {
            self.next_id += 1;
        }
        let id = self.next_id;
        if let Some(episode) = &mut self.open {
            (episode.id, episode.kind) = (id, Kind::Repair);
            // What was sent between the sign and the repeat is repaired, too (`tcp_enter_recovery`: `high_seq`).
            episode.high = episode.high.max(high);
        }
        self.episodes += 1;
        true
    }

    /// As [`begin`](Self::begin), where what is sent again never came to the tap before.
    pub(crate) fn begin_tail(&mut self, high: i64, timeout: bool) -> bool {
        let begins = self.begin(high);
        if let Some(episode) = &mut self.open {
            episode.timeout |= timeout;
        }
        begins
    }

    /// Whether `event`, new at the tap, repeats what was lost with the tail whose repair a timeout began.
    pub(crate) fn repeats_tail(&self, event: &Event) -> bool {
        self.open.is_some_and(|e| e.kind == Kind::Repair && e.timeout && event.seq < e.high)
    }

    /// A congestion mark was echoed.
    pub(crate) fn on_ece(&mut self, high: i64) {
        let episode = self.open_at(high);
        if episode.kind == Kind::Signs {
            episode.kind = Kind::Ecn;
        }
    }

    /// `una` moved or not: settles the open episode.
    pub(crate) fn on_progress(&mut self, una: i64) {
        let Some(episode) = self.open else { return };
        let settled = una >= episode.high;
        if settled {
            self.open = None;
            if self.past.len() == EPISODES {
                self.past.pop_front();
            }
            self.past.push_back(episode);
        }
    }

    /// What the episode `id` was; `None` while it is open or long forgotten.
    pub(crate) fn verdict(&self, id: u32) -> Option<State> {
        if id == 0 {
            return None;
        }
        // Asked soon after it: it is among the last.
        let found = self.open.iter().chain(self.past.iter().rev()).find(|e| e.id == id)?;
        match found.kind {
            Kind::Signs => None,
            Kind::Ecn => Some(State::RecoveryEcn),
            Kind::Repair if found.damaged => Some(State::RecoveryCorrupt),
            Kind::Repair if found.is_spurious() => Some(State::RecoveryReorderSpurious),
            Kind::Repair => Some(State::RecoveryLoss),
        }
    }

    /// Whether the episode `id` is still open.
    pub(crate) fn is_open(&self, id: u32) -> bool {
        id != 0 && self.open.is_some_and(|e| e.id == id)
    }
}

impl Sender {
    /// Data at or below `nxt`: a retransmission, a late arrival, or needless.
    pub(crate) fn on_repeat(&mut self, event: &Event, at: i64, segments: u64, step: Step) {
        if self.is_probe_of_shut(event, at) {
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
            self.list(event, at, "unnecessary", Vec::new());
            return;
        }
        let cause = self.cause_of_repeat(event, at);
        match cause {
            "rto" => self.tally.rto += segments,
            "tlp" => self.tally.tlp += segments,
            _ => self.tally.fast += segments,
        }
        let original =
            self.flight.overlapping(event.seq, event.end()).next().map(|e| (e.at, e.frame));
        self.note_head(event, at, original);
        if event.seq <= self.flight.una {
            self.silence.on_repeat(self.flight.una, (at, event.frame), original);
        }
        self.repairs.note_repeat(event, cause == "tlp");
        let originals = self.mark_repeated(event, at);
        self.list(event, at, cause, originals);
        self.progress.at = at;
    }

    /// Which timer or sign made the sender repeat, with the wait before it named.
    fn cause_of_repeat(&mut self, event: &Event, at: i64) -> &'static str {
        let quiet = at - self.progress.at.max(self.sends.last);
        let (rto, lone) = (self.trips.timers.rto(), self.flight.outstanding() <= self.terms.mss);
        let signs = self.repairs.current() != 0;
        let in_timeout = self.repairs.open.is_some_and(|e| e.timeout && e.kind == Kind::Repair);
        let is_timer = |timer: i64| ran_out(timer, quiet);
        let tail = event.end() == self.flight.nxt;
        let nxt = self.flight.nxt;
        // The probe is scheduled no later than the RTO, and goes first (`tcp_schedule_loss_probe`).
        let may_probe = tail && !signs && self.terms.sack && !self.progress.tail_probed;
        let cause = if may_probe && is_timer(self.trips.timers.pto(lone)) {
            self.progress.tail_probed = true;
            self.repairs.note_probe(event, self.flight.outstanding_segments());
            "tlp"
        } else if in_timeout || is_timer(rto) && (event.seq <= self.flight.una || !signs) {
            // Beyond `una`, nothing told of a hole: the capture lacks the ACK that moved it.
            "rto"
        } else {
            "fast"
        };
        let timer_wait = match cause {
            "rto" if !in_timeout || is_timer(rto) => Some(Proven::Timeout),
            "tlp" => Some(Proven::Probe),
            _ => None,
        };
        if let Some(timer) = timer_wait {
            self.prove(self.progress.at.max(self.sends.last), timer);
        }
        if cause != "tlp" {
            if self.repairs.begin(nxt) {
                self.on_first_repair(event, at);
                if cause == "fast" {
                    self.repair_since_told();
                }
            }
            if let Some(episode) = &mut self.repairs.open {
                episode.timeout |= cause == "rto";
            }
        }
        cause
    }

    /// What repaired first may have stood in a queue that does not show, and seems to be sent late by that; the signs
    /// of the hole had no such queue before them.
    fn repair_since_told(&mut self) {
        let Some(Episode { id, told: Some(told), .. }) = self.repairs.open else { return };
        if !self.terms.sees_queues {
            self.proofs.push(Proof::Episode { since: told, id });
        }
    }

    /// An episode's first repair: where the flight stood when the lost original went out.
    fn on_first_repair(&mut self, event: &Event, at: i64) {
        let original = self.flight.overlapping(event.seq, event.end()).next().copied();
        if let Some(original) = original
            && self.repairs.flights_at_loss.len() < LISTED
        {
            let seen = original.flags & UNSEEN == 0;
            self.repairs.flights_at_loss.push(InFlightAtLoss {
                at_ns: original.at,
                bytes: self.repairs.holes.flight_with(&original).max(0) as u64,
                frame: seen.then_some(original.frame),
            });
        }
        if let Some(original) = original {
            let least = self.least_rtt();
            let queued = self.book.closed.is_queue_standing(least);
            // A policer's credit was spent when the last before it had passed.
            let since =
                self.repairs.holes.at(original.start).map_or(original.at, |hole| hole.since);
            self.repairs.policer.on_loss(since, event.seq, queued, least);
            if let Some(episode) = &mut self.repairs.open {
                episode.damaged = original.flags & DAMAGED != 0;
            }
        }
        self.cut_window(self.flight.outstanding_segments(), at);
    }

    /// A repair is over, but what is missing now was sent after it began and sent again in it: that loss is known,
    /// and the next repair begins at once (`tcp_fastretrans_alert`, `tcp_time_to_recover` by `lost_out`).
    pub(crate) fn repair_on(&mut self, at: i64) {
        let una = self.flight.una;
        let head = self.flight.overlapping(una, una + 1).next().copied();
        // One repeat may reach over the end of what the repair was for: it is no second one.
        let has_another = self.tally.lost + self.tally.spurious > self.repairs.episodes;
        if let Some(head) = head.filter(|head| has_another && head.flags & RETRANSMITTED != 0) {
            self.repairs.begin(self.flight.nxt);
            if let Some(episode) = &mut self.repairs.open {
                episode.damaged = head.flags & DAMAGED != 0;
            }
            self.cut_window(self.flight.outstanding_segments(), at);
        }
    }

    /// The sender cuts its congestion window, of `cwnd` segments or more, because of a loss.
    pub(crate) fn cut_window(&mut self, cwnd: u64, at: i64) {
        // What the round waited for before that, it waited for without knowing of the loss.
        let phase = self.phase();
        if self.book.open.sends > 0 {
            self.book.open.before_loss.get_or_insert(phase);
        }
        self.growth.cut(cwnd);
        self.window.filled = Filled::default();
        self.avoidance.on_loss(cwnd);
        self.growth.leave_slow_start(at, Some(cwnd), ExitCause::Loss);
        self.replay.exit();
    }

    /// Whether the probe of the tail was needed, as the sender learns by the ACK `event`: Linux cuts
    /// the window when something sent after the probe is acknowledged, and nothing has told that the
    /// probe came twice: a D-SACK, or an ACK that says nothing new (`tcp_process_tlp_ack`).
    /// `news` if this one does.
    pub(crate) fn watch_probe(&mut self, event: &Event, at: i64, news: bool) {
        let Some(Probe { range, flight }) = self.repairs.probe else { return };
        if event.ack > range.1 {
            self.repairs.probe = None;
            let cwnd = self.replay.cwnd(0).high.unwrap_or(0);
            self.cut_window(cwnd.max(flight).max(self.flight.outstanding_segments()), at);
        } else if event.ack == range.1 && !news {
            self.repairs.probe = None;
        }
    }

    /// Marks what `event` repeats; the frames of the originals.
    fn mark_repeated(&mut self, event: &Event, at: i64) -> Vec<u64> {
        let mut originals = Vec::new();
        let (mut repeated, mut damaged, episode) = (0, 0, self.repairs.current());
        let listing = self.repairs.is_repairing() && self.repairs.lost.len() < LISTED;
        for entry in self.flight.overlapping(event.seq, event.end()) {
            if entry.frame != 0 && originals.len() < ORIGINALS {
                originals.push(entry.frame);
            }
            if listing && entry.flags & RETRANSMITTED == 0 {
                let flight = self.repairs.holes.flight_with(entry);
                let (at, position) = (entry.at, entry.segments_to);
                self.repairs.lost.push(Lost { at, position, flight, episode });
            }
            if entry.flags & (DAMAGED | RETRANSMITTED) == DAMAGED {
                damaged += u64::from(entry.segments);
            }
            entry.flags = (entry.flags | RETRANSMITTED) & !UNSEEN;
            entry.at = at;
            repeated += entry.end.min(event.end()) - entry.start.max(event.seq);
        }
        self.flight.retransmitted_out += repeated;
        self.tally.damaged += damaged;
        self.tally.lost += segments_of(event.len, self.terms.mss);
        originals
    }

    pub(crate) fn list(&mut self, event: &Event, at: i64, cause: &str, originals: Vec<u64>) {
        if self.terms.detail && self.retransmissions.len() < LISTED {
            self.retransmissions.push(Retransmission {
                at_ns: at,
                frame: event.frame,
                seq: event.seq,
                bytes: u64::from(event.len),
                cause: cause.to_owned(),
                spurious: false,
                originals,
                lost: None,
            });
        }
    }

    /// The receiver reports data it got twice (RFC 2883).
    pub(crate) fn on_dsack(&mut self, block: Block) {
        self.repairs.doubled.on_dsack(block, self.flight.nxt, self.terms.mss);
        // What was sent once and arrived twice was doubled on the way: no repeat is told of.
        let mut repeats = core::mem::take(&mut self.repairs.repeats);
        repeats.on_duplicate(block).for_each(|told| self.note_needless(told));
        self.repairs.repeats = repeats;
        let is_other = |probe: &Probe| probe.range.0 >= block.1 || probe.range.1 <= block.0;
        self.repairs.probe = self.repairs.probe.filter(is_other);
    }

    /// The ACK `event` fills a hole at `una`: its echo tells by what.
    pub(crate) fn watch_echo(&mut self, event: &Event, una: i64) {
        if self.repairs.repeats.are_before(una) {
            return;
        }
        let mut repeats = core::mem::take(&mut self.repairs.repeats);
        repeats.on_echo(event, una).for_each(|told| self.note_needless(told));
        self.repairs.repeats = repeats;
    }

    /// Data was sent again although the receiver had it.
    fn note_needless(&mut self, told: Needless) {
        let segments = told.segments(self.terms.mss);
        self.repairs.note_needless(told);
        if segments == 0 {
            return;
        }
        self.tally.spurious += segments;
        self.tally.lost = self.tally.lost.saturating_sub(segments);
        let listed = self.retransmissions.iter_mut().rev().take(REPEATS);
        let is_whole = told.of.0 == told.of.1;
        let mut listed = listed.into_iter().filter(|_| is_whole);
        if let Some(listed) = listed.find(|r| r.seq == told.start && !r.spurious) {
            listed.spurious = true;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::Terms;
    use super::*;

    #[test]
    fn what_was_waited_for_before_the_first_repeat_was_no_repair() {
        let mut repairs = Repairs::default();
        repairs.on_duplicate(9, 1, 0);
        let signs = repairs.current();
        assert!(repairs.begin(9), "the first repeat");
        assert!(!repairs.begin(9), "the second");
        assert_eq!(repairs.verdict(signs), None);
        assert_eq!(repairs.verdict(repairs.current()), Some(State::RecoveryLoss));
    }

    #[test]
    fn a_repair_lasts_until_what_was_sent_before_its_first_repeat_has_come() {
        let mut repairs = Repairs::default();
        repairs.on_duplicate(9, 1, 0);
        repairs.begin(12);
        repairs.begin(20);
        repairs.on_progress(11);
        assert!(repairs.is_repairing(), "sent between the sign and the repeat");
        repairs.on_progress(12);
        assert!(!repairs.is_repairing(), "what came behind the first repeat is none of it");
    }

    #[test]
    fn where_queues_do_not_show_a_repair_begins_when_enough_has_come_behind_the_hole() {
        let repaired_since = |sees_queues, signs: &[(u64, i64)]| {
            let mut sender = Sender::new(Terms { sees_queues, ..Terms::default() }, true, 0);
            for &(segments, at) in signs {
                sender.repairs.on_duplicate(9, segments, at);
            }
            sender.repairs.begin(9);
            sender.repair_since_told();
            let repair = sender.repairs.current();
            sender.proofs.iter().find_map(|proof| match *proof {
                Proof::Episode { since, id } if id == repair => Some(since),
                _ => None,
            })
        };
        let one_by_one = [(1, 10), (1, 20), (1, 30), (1, 40)];
        assert_eq!(repaired_since(false, &one_by_one), Some(30));
        assert_eq!(repaired_since(false, &[(1, 10), (2, 20)]), Some(20), "one ACK for two");
        assert_eq!(repaired_since(false, &[(1, 10), (1, 20)]), None, "two may be reordering");
        assert_eq!(repaired_since(true, &one_by_one), None, "its time is that of the repeat");
    }

    #[test]
    fn a_repair_among_marks_goes_on_with_their_episode() {
        let mut repairs = Repairs::default();
        repairs.on_ece(9);
        let marks = repairs.current();
        assert!(repairs.begin(9));
        assert_eq!(repairs.verdict(marks), Some(State::RecoveryLoss));
    }
}
