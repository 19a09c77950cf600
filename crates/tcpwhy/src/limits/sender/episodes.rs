//! Loss episodes: when repairing began, and what it turned out to be.
//!
//! An episode begins with the first sign of a hole (a SACK block or a duplicate ACK), becomes a
//! repair with the first retransmission, and ends when everything sent before it is acknowledged.
//! Signs without a repair were reordering and cost nothing. Before the first repeat, too, the sender
//! waits for what it waited for: the method begins recovery with the sign, the kernel does not.

use crate::clocks::StackTime;
use crate::offsets::Offset;
use crate::segments::Segments;
use std::collections::VecDeque;

use crate::flow::event::Event;
use crate::limits::sense::{DUP_THRESH, EPISODES};
use crate::report::State;

/// What an episode turned out to be.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub(crate) enum Kind {
    /// Signs of a hole only.
    #[default]
    Signs,
    /// Something was retransmitted.
    Repair,
    /// Slowed down for marks.
    Ecn,
}

/// One episode.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Episode {
    pub(crate) id: u32,
    /// Everything up to here was sent before it.
    pub(crate) high: Offset,
    pub(crate) kind: Kind,
    pub(crate) timeout: bool,
    /// Retransmitted bytes, and how many of them are proven needless.
    repeated: i64,
    needless: i64,
    /// What was lost first had arrived here damaged.
    pub(super) damaged: bool,
    /// Segments above the hole that SACK reported, and when they were enough to repair it.
    behind: Segments,
    pub(super) told: Option<StackTime>,
}

impl Episode {
    /// Whether no retransmission was needed.
    fn is_spurious(&self) -> bool {
        self.repeated > 0 && self.needless >= self.repeated
    }
}

/// All episodes of a direction.
#[derive(Clone, Debug, Default)]
pub(crate) struct Episodes {
    pub(super) open: Option<Episode>,
    past: VecDeque<Episode>,
    next_id: u32,
    /// Those that repaired something.
    pub(crate) count: u64,
}

impl Episodes {
    /// Id of the open episode, 0 without one.
    pub(crate) fn current(&self) -> u32 {
        self.open.map_or(0, |e| e.id)
    }

    /// Whether a retransmission is not yet settled.
    pub(crate) fn is_repairing(&self) -> bool {
        self.open.is_some_and(|e| e.kind == Kind::Repair)
    }

    fn open_at(&mut self, high: Offset) -> &mut Episode {
        if self.open.is_none() {
            self.next_id += 1;
        }
        let id = self.next_id;
        self.open.get_or_insert(Episode { id, high, ..Episode::default() })
    }

    /// At `at` the receiver tells of `segments` behind a hole.
    pub(crate) fn on_duplicate(&mut self, high: Offset, segments: Segments, at: StackTime) {
        let episode = self.open_at(high);
        episode.behind += segments;
        if episode.behind >= DUP_THRESH {
            episode.told.get_or_insert(at);
        }
    }

    /// Something is retransmitted; whether it is the episode's first. What was waited for before that was no repair:
    /// while a hole may be reordering, Linux goes on sending (`TCP_CA_Disorder`).
    pub(crate) fn begin(&mut self, high: Offset) -> bool {
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
        self.count += 1;
        true
    }

    /// As [`begin`](Self::begin), where the original of the retransmission never came to the tap.
    pub(crate) fn begin_tail(&mut self, high: Offset, timeout: bool) -> bool {
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
    pub(crate) fn on_ece(&mut self, high: Offset) {
        let episode = self.open_at(high);
        if episode.kind == Kind::Signs {
            episode.kind = Kind::Ecn;
        }
    }

    /// `una` moved or not: settles the open episode.
    pub(crate) fn on_progress(&mut self, una: Offset) {
        if let Some(episode) = self.open.take_if(|episode| una >= episode.high) {
            self.settle(episode);
        }
    }

    /// Whether nothing of the repair `id` was needed, which then is over, if it was not. What a timeout repeats first
    /// tells nothing of the rest that it goes on to repeat.
    pub(super) fn end_needless(&mut self, id: u32) -> bool {
        let is_needless = |e: &Episode| e.id == id && !e.timeout && e.is_spurious();
        if let Some(episode) = self.open.take_if(|episode| is_needless(episode)) {
            self.settle(episode);
            return true;
        }
        id != 0 && self.past.iter().rev().any(is_needless)
    }

    fn settle(&mut self, episode: Episode) {
        if self.past.len() == EPISODES {
            self.past.pop_front();
        }
        self.past.push_back(episode);
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

    /// Whether a timeout began the episode `id`.
    pub(crate) fn is_behind_timeout(&self, id: u32) -> bool {
        self.open.iter().chain(self.past.iter().rev()).any(|e| e.id == id && e.timeout)
    }

    /// Whether the episode `id` is still open.
    pub(crate) fn is_open(&self, id: u32) -> bool {
        id != 0 && self.open.is_some_and(|e| e.id == id)
    }

    /// These bytes are retransmitted: id of the repair that they belong to, 0 if to none.
    pub(super) fn note_repeat(&mut self, bytes: u32) -> u32 {
        let Some(episode) = self.open.as_mut().filter(|e| e.kind == Kind::Repair) else { return 0 };
        episode.repeated += i64::from(bytes);
        episode.id
    }

    /// These bytes that episode `id` retransmitted were not needed.
    pub(super) fn note_needless(&mut self, id: u32, bytes: i64) {
        let all = self.open.iter_mut().chain(self.past.iter_mut().rev());
        if let Some(episode) = all.into_iter().find(|e| id != 0 && e.id == id) {
            episode.needless += bytes;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_waited_for_before_the_first_repeat_was_no_repair() {
        let mut repairs = Episodes::default();
        repairs.on_duplicate(Offset::at(9), Segments::new(1), StackTime(0));
        let signs = repairs.current();
        assert!(repairs.begin(Offset::at(9)), "the first repeat");
        assert!(!repairs.begin(Offset::at(9)), "the second");
        assert_eq!(repairs.verdict(signs), None);
        assert_eq!(repairs.verdict(repairs.current()), Some(State::RecoveryLoss));
    }

    #[test]
    fn a_repair_lasts_until_what_was_sent_before_its_first_repeat_has_come() {
        let mut repairs = Episodes::default();
        repairs.on_duplicate(Offset::at(9), Segments::new(1), StackTime(0));
        repairs.begin(Offset::at(12));
        repairs.begin(Offset::at(20));
        repairs.on_progress(Offset::at(11));
        assert!(repairs.is_repairing(), "sent between the sign and the repeat");
        repairs.on_progress(Offset::at(12));
        assert!(!repairs.is_repairing(), "what came behind the first repeat is none of it");
    }

    #[test]
    fn a_repair_is_over_when_none_of_it_was_needed_but_a_timeouts() {
        let is_over = |needless: i64, timeout: bool| {
            let mut repairs = Episodes::default();
            repairs.on_duplicate(Offset::at(9), Segments::new(1), StackTime(0));
            repairs.begin_tail(Offset::at(12), timeout);
            let id = repairs.note_repeat(100);
            repairs.note_needless(id, needless);
            (repairs.end_needless(id), repairs.is_repairing())
        };
        assert_eq!(is_over(100, false), (true, false));
        assert_eq!(is_over(99, false), (false, true), "a part of it was");
        assert_eq!(is_over(100, true), (false, true), "more may be repeated");
    }

    #[test]
    fn a_repair_among_marks_goes_on_with_their_episode() {
        let mut repairs = Episodes::default();
        repairs.on_ece(Offset::at(9));
        let marks = repairs.current();
        assert!(repairs.begin(Offset::at(9)));
        assert_eq!(repairs.verdict(marks), Some(State::RecoveryLoss));
    }
}
