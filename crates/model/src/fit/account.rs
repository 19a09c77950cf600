//! What is compared between a capture and the model: one direction's time, by state.

use serde::{Deserialize, Serialize};
use tcpwhy::report::{Direction, State, TimeIn};
use tcpwhy::units::Duration;

/// One direction from its handshake to its last acknowledgment.
#[derive(Clone, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
pub struct Account {
    /// How long that is.
    pub ns: i64,
    /// Time in each state; adds up to it.
    pub time_in: TimeIn,
    /// Rounds.
    pub rounds: u64,
    /// Unique bytes.
    pub bytes: u64,
    /// Retransmitted segments.
    pub resent: u64,
    /// Bytes of the first round.
    pub first_flight: u64,
    /// Most bytes in flight.
    pub most_in_flight: u64,
}

impl Account {
    /// The account of a direction, as a report has it.
    pub fn of(direction: &Direction) -> Self {
        let mut time_in = TimeIn::default();
        let held = direction.time_in.iter().filter(|(state, _)| !is_around(*state));
        time_in.add_all(held);
        Self {
            ns: time_in.total().0,
            time_in,
            rounds: direction.rounds.len() as u64,
            bytes: direction.bytes,
            resent: direction.retransmitted.total(),
            first_flight: direction.rounds.first().map_or(0, |round| round.bytes),
            most_in_flight: direction.max_in_flight_bytes,
        }
    }

    /// The part of it in which TCP or the path had something to do: what applications let pass
    /// says nothing of them.
    pub fn busy_ns(&self) -> i64 {
        let silent = |state| matches!(family(state), State::App | State::IdlePeerThink);
        let silence: i64 =
            self.time_in.iter().filter(|(state, _)| silent(*state)).map(|(_, span)| span.0).sum();
        self.ns - silence
    }

    /// The same where no threshold was remembered: what looks like one is another end of slow start.
    #[must_use]
    pub(crate) fn without_remembered(mut self) -> Self {
        let held = self.time_in.get(State::CwndCachedSsthresh);
        self.time_in.add(State::CwndCachedSsthresh, -held);
        self.time_in.add(State::CwndAvoidance, held);
        let kept = self.time_in.iter().filter(|(_, span)| *span != Duration::ZERO);
        let kept: Vec<_> = kept.collect();
        self.time_in = TimeIn::default();
        self.time_in.add_all(kept.into_iter());
        self
    }

    /// What is left of it without its beginning.
    #[must_use]
    pub fn less(&self, beginning: &Self) -> Self {
        let mut time_in = TimeIn::default();
        for (state, span) in self.time_in.iter() {
            let rest = (span.0 - beginning.time_in.get(state).0).max(0);
            time_in.add(state, Duration(rest));
        }
        Self {
            ns: self.ns - beginning.ns,
            time_in,
            rounds: self.rounds - beginning.rounds.min(self.rounds),
            bytes: self.bytes - beginning.bytes.min(self.bytes),
            resent: self.resent - beginning.resent.min(self.resent),
            ..*self
        }
    }

    /// Where the two differ: the state whose time does most, and by how much of `self`'s time.
    /// States that one capture does not tell apart count as one.
    pub fn widest_gap(&self, other: &Self) -> (State, i64) {
        let gap = |state: State| (sum(&other.time_in, state) - sum(&self.time_in, state)).abs();
        let widest = State::all().map(family).max_by_key(|state| gap(*state));
        widest.map_or((State::Unknown, 0), |state| (state, gap(state)))
    }
}

/// Time in all states of a family.
fn sum(time_in: &TimeIn, of: State) -> i64 {
    time_in.iter().filter(|(state, _)| family(*state) == of).map(|(_, span)| span.0).sum()
}

/// Before and after the data.
const fn is_around(state: State) -> bool {
    matches!(state, State::Handshake | State::SynRetry | State::IdleKeptOpen | State::Closing)
}

/// A receiver's window has three reasons and a full path several, which packets often cannot tell
/// apart; nor whether an application was late for a moment or silent.
const fn family(state: State) -> State {
    match state {
        State::RwndAutotune | State::RwndReader => State::RwndCap,
        State::BandwidthExternal | State::BandwidthVariable | State::LocalQdisc => {
            State::BandwidthSelfQueue
        }
        State::IdleAppThink => State::App,
        other => other,
    }
}
