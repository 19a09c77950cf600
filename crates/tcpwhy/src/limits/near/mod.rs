//! The rounds around a wait, and what they tell that one wait cannot.
//!
//! Waits that an ACK ended look alike whether the congestion window, the send buffer, an application's window or the
//! path's rate held the sender. Rounds tell them apart: does the flight grow, does the round trip grow with it, does
//! the rate?

pub(crate) mod afar;
pub(crate) mod rate;
pub(crate) mod rounds;
pub(crate) mod spacing;

pub(crate) use rounds::Rounds;

use super::beat::Beats;
use super::pulse::{Mending, Pulses};
use super::round::{Round, is_queue};
use super::wait::Wait;
use crate::report::State;

/// The rounds around one.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Near<'a> {
    rounds: &'a Rounds,
    /// Which of them it is; `None` if none is closed yet.
    at: Option<usize>,
    /// The path's least round trip, in nanoseconds.
    pub(crate) least: i64,
}

impl<'a> Near<'a> {
    /// Those around round `number`, or the last closed one while that is open.
    pub(crate) fn new(rounds: &'a Rounds, number: u64, least: i64) -> Self {
        Self { rounds, at: rounds.index(number), least }
    }

    /// Whether any is closed.
    pub(crate) fn is_known(&self) -> bool {
        self.at.is_some()
    }

    fn at(&self) -> usize {
        self.at.unwrap_or(0)
    }

    /// The round of the wait.
    pub(crate) fn this(&self) -> &'a Round {
        &self.rounds.kept[self.at()]
    }

    /// How long packets stood in queues in all of it.
    pub(crate) fn queue(&self) -> i64 {
        if self.is_known() { self.this().standing_queue(self.least) } else { 0 }
    }

    /// Whether that is a queue.
    pub(crate) fn has_queue(&self) -> bool {
        is_queue(self.queue(), self.least)
    }

    /// How long ACKs stood in queues on their way back in all of it.
    pub(crate) fn queue_back(&self) -> i64 {
        if self.is_known() { self.this().queue_back() } else { 0 }
    }

    /// Whether its data stood in a queue all along, too.
    pub(crate) fn has_queue_elsewhere(&self) -> bool {
        is_queue(self.this().queue_elsewhere(self.least), self.least)
    }

    /// How long each of its sends stood on the sender's own host, if that is a queue.
    pub(crate) fn own_queue(&self) -> Option<i64> {
        self.this().local_queue(self.least)
    }

    /// How long packets stood in the queue that `state` speaks of.
    pub(crate) fn queue_of(&self, state: State) -> i64 {
        match state {
            State::LocalQdisc if self.is_known() => self.own_queue().unwrap_or(self.queue()),
            State::AckPath => self.queue_back(),
            _ => self.queue(),
        }
    }

    /// The pulses of the rounds around it; each round may hold just one or two.
    pub(crate) fn pulses(&self) -> Pulses {
        self.rounds.pulses_near(self.at())
    }

    /// The beats of the same rounds.
    pub(crate) fn beats(&self) -> Beats {
        self.rounds.beats_near(self.at())
    }

    /// Whether what came in beats was written by a timer, and no ACK let it out, as shows at the sender's host.
    pub(crate) fn beats_are_written(&self) -> bool {
        self.this().tap_at_sender
            && !self.has_queue()
            && self.pulses().are_own()
            && self.beats().are_writes(self.least)
    }

    /// Pulses of the nearest rounds.
    pub(crate) fn pulses_around(&self) -> Pulses {
        Pulses::sum(self.rounds.around(self.at()).filter(|r| !r.loss).map(|r| &r.pulses))
    }

    /// Whether its sends came at even distances or without a pause.
    pub(crate) fn has_even_sends(&self) -> bool {
        self.pulses().are_even() || self.this().is_smooth()
    }

    /// Whether the sender spaced its sends by a clock of its own. Without an even one only sends that came by
    /// themselves can be paced.
    pub(crate) fn is_paced(&self, by_itself: bool) -> bool {
        let pulses = self.pulses();
        pulses.are_own() && (self.has_even_sends() || by_itself && pulses.end_whole())
    }

    /// Whether what went out in repairs of late came by itself so often that the sender has a clock, or it spaced its sends
    /// by one before and behind this repair.
    pub(crate) fn has_clock_in_repairs(&self) -> bool {
        let seen = self.rounds.kept.iter().filter(|round| !round.holed);
        Mending::sum(seen.map(|round| &round.mending)).have_a_clock() || self.is_paced(true)
    }

    /// Whether its rate is that of those around it.
    pub(crate) fn is_rate_flat(&self) -> bool {
        self.rounds.is_rate_flat(self.at())
    }

    /// Whether the rate went up and down though a queue stood.
    pub(crate) fn is_rate_variable(&self) -> bool {
        self.rounds.is_rate_variable(self.at(), self.least)
    }

    /// Whether its ACKs came further apart by far than at the fastest rate with a queue before.
    pub(crate) fn is_slower_than_before(&self) -> bool {
        self.this().is_slower && !self.this().loss
    }

    /// Whether it ran at a rate at which a queue had stood.
    pub(crate) fn runs_at_full_rate(&self) -> bool {
        self.rounds.runs_at_full_rate(self.at())
    }

    /// Whether it ran at a rate that a loss did not change, or those around it together did.
    pub(crate) fn ran_so_across_a_loss(&self) -> bool {
        self.rounds.ran_so_across_a_loss(self.at())
    }

    pub(crate) fn keeps_rate_across_loss(&self) -> bool {
        self.rounds.keeps_rate_across_loss(self.at())
    }

    /// Whether the queue is made by this sender, where that shows.
    pub(crate) fn follows_own_flight(&self) -> Option<bool> {
        self.rounds.follows_own_flight(self.least)
    }

    /// Whether its packets show that others have a part of the link.
    pub(crate) fn is_shared(&self) -> bool {
        self.rounds.shared_link(self.at()).is_some()
    }

    /// Whether data kept passing the tap.
    pub(crate) fn passes_steadily(&self) -> bool {
        self.rounds.passes_steadily(self.at(), self.least)
    }

    /// Whether flights grow by a segment a round.
    pub(crate) fn opens(&self) -> bool {
        self.rounds.opens_at(self.at())
    }

    /// Whether flights stand still, or swing.
    pub(crate) fn stands_still(&self) -> bool {
        self.rounds.stands_still(self.at())
    }

    /// Whether something else than the congestion window stopped the flight: ACKs passed that would have let more out,
    /// or it is smaller than that window.
    pub(crate) fn is_below_window(&self, wait: &Wait) -> bool {
        wait.has_passed_over_acks || self.rounds.stays_below_window(self.at())
    }

    /// Whether the flight has a lid that is not the congestion window.
    pub(crate) fn is_under_lid(&self, wait: &Wait) -> bool {
        self.is_below_window(wait) || self.rounds.has_lid(self.at())
    }
}
