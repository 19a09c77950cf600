//! Silence of one direction that was not an application's: meanwhile TCP held the other one.
//!
//! Each direction's account says what held its own sender. While Nagle's algorithm keeps back the second half of a
//! request, the server has nothing to send and its account says that the client is to speak next; but the client's
//! program has spoken. Both accounts lie side by side here: silence of one of them during which the other names a
//! window, a timer, a repair or the path is TCP's.

use super::{Connection, Direction, State, TimeIn};
use tcpwhy_words::units::Duration;

/// By TCP or by what it runs over, an open direction was held: it had something to send.
const fn is_held(state: State) -> bool {
    use State as S;
    !matches!(
        state,
        S::CaptureGap
            | S::Handshake
            | S::SynRetry
            | S::LastFlight
            | S::Receiving
            | S::IdleAppThink
            | S::IdlePeerThink
            | S::App
            | S::IdleKeptOpen
            | S::SilenceNoAnswer
            | S::SilenceCutShort
            | S::Closing
            | S::Unknown
    )
}

impl Connection {
    /// How much of each silent state of direction `at` passed while TCP held the other direction. Without the
    /// intervals of both, as much as may have: no silence is claimed that was none.
    pub(crate) fn held_while_silent(&self, at: usize) -> TimeIn {
        let [Some(own), Some(other)] = [at, 1 - at].map(|at| self.directions[at].as_deref()) else {
            return TimeIn::default();
        };
        if own.limits.is_empty() || other.limits.is_empty() {
            return at_most(own, other);
        }
        let mut held = TimeIn::default();
        let mut others = other.limits.iter().filter(|each| is_held(each.state)).peekable();
        for silent in own.limits.iter().filter(|each| each.state.is_silence()) {
            while let Some(each) = others.peek() {
                let (from, to) =
                    (each.start_ns.max(silent.start_ns), each.end_ns.min(silent.end_ns));
                held.add(silent.state, Duration(to.saturating_sub(from).max(0)));
                if each.end_ns > silent.end_ns {
                    break;
                }
                others.next();
            }
        }
        held
    }
}

/// All the other direction's waits, laid into this one's silence.
fn at_most(own: &Direction, other: &Direction) -> TimeIn {
    let waits = other.time_in.iter().filter(|(state, _)| is_held(*state));
    let mut left = waits.fold(Duration::ZERO, |sum, (_, span)| sum + span);
    let mut held = TimeIn::default();
    for (state, span) in own.time_in.iter().filter(|(state, _)| state.is_silence()) {
        let part = span.min(left).max(Duration::ZERO);
        held.add(state, part);
        left -= part;
    }
    held
}

#[cfg(test)]
mod tests {
    use super::super::Limit;
    use super::*;
    use crate::find::sample;

    fn direction(pieces: &[(State, i64, i64)]) -> Box<Direction> {
        let limit = |&(state, start_ns, end_ns): &(State, i64, i64)| Limit {
            start_ns,
            end_ns,
            state,
            confidence: super::super::Sure::Shown,
            alternative: Vec::new(),
            evidence: super::super::LimitEvidence::default(),
        };
        let mut time_in = TimeIn::default();
        time_in.add_all(pieces.iter().map(|each| (each.0, Duration(each.2 - each.1))));
        let limits = pieces.iter().map(limit).collect();
        Box::new(Direction { limits, time_in, ..Direction::default() })
    }

    fn held(own: &[(State, i64, i64)], other: &[(State, i64, i64)]) -> Vec<(State, i64)> {
        let mut connection = sample::download();
        connection.directions = [direction(other), direction(own)].map(Some);
        let exact: Vec<_> = connection.held_while_silent(1).iter().map(|(s, t)| (s, t.0)).collect();
        connection.directions.iter_mut().flatten().for_each(|each| each.limits.clear());
        let most = connection.held_while_silent(1).total().0;
        assert!(most >= exact.iter().map(|each| each.1).sum());
        exact
    }

    #[test]
    fn what_nagle_held_is_not_the_programs_silence() {
        let own =
            [(State::IdlePeerThink, 0, 40), (State::IdleAppThink, 40, 50), (State::App, 50, 60)];
        let nagle = [(State::IdleAppThink, 0, 5), (State::NagleDelack, 5, 43)];
        let expected = [(State::IdleAppThink, 3), (State::IdlePeerThink, 35)];
        assert_eq!(held(&own, &nagle), expected);
    }

    #[test]
    fn silence_of_both_is_silence() {
        let own = [(State::IdlePeerThink, 0, 40)];
        assert_eq!(held(&own, &[(State::IdleAppThink, 0, 40)]), []);
        assert_eq!(held(&own, &[(State::LastFlight, 0, 40)]), [], "distance holds nobody back");
    }

    #[test]
    fn what_ends_where_the_silence_begins_held_nothing_of_it() {
        let own = [(State::CwndSlowStart, 0, 10), (State::IdlePeerThink, 10, 40)];
        let rest = (State::IdleAppThink, 10, 40);
        assert_eq!(held(&own, &[(State::RwndCap, 0, 10), rest]), []);
        assert_eq!(
            held(&own, &[(State::RwndCap, 0, 11), (State::IdleAppThink, 11, 40)]),
            [(State::IdlePeerThink, 1)]
        );
    }

    #[test]
    fn one_wait_may_lie_across_several_silences() {
        let own = [
            (State::IdlePeerThink, 0, 10),
            (State::Receiving, 10, 20),
            (State::IdlePeerThink, 20, 30),
        ];
        assert_eq!(held(&own, &[(State::NagleDelack, 5, 25)]), [(State::IdlePeerThink, 10)]);
    }
}
