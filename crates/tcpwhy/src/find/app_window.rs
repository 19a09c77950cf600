//! The application protocol's own window is full.
//!
//! # What it says
//! HTTP/2, SSH and others have windows of their own inside the connection: the receiving program tells
//! the sending program how much it may send. Here that window, not TCP's, let no more go.
//!
//! # How we know
//! Intervals in the state `app_window`: the flight stood at one size for rounds, and what released the
//! next send was a small piece of data from the peer, not a bare ACK. They hold at least a tenth of the
//! working time. Such a flight may be a full send buffer too; where the packets allow that, it is said.
//!
//! # What it is not
//! Not TCP's windows, which had room, and not the path. No setting of a host helps.
//!
//! # What to do
//! Change the protocol's window in the receiving program: the stream and connection windows of HTTP/2
//! (65,535 bytes unless `SETTINGS_INITIAL_WINDOW_SIZE` and `WINDOW_UPDATE` say more), the channel window
//! of SSH. It needs the rate times the round trip. Cost: memory in the program for each stream.
//!
//! # Sources
//! RFC 9113 section 6.9.2 (65,535 bytes at first), RFC 4254 section 5.2 (channel windows).

use super::case::{Told, in_each};
use super::send_buffer::usual_flight;
use super::windows::at_most;
use super::{Rule, remedies};
use crate::report::{Connection, Finding, Severity, State};
use tcpwhy_words::said;

pub(super) const RULE: Rule = Rule {
    code: "APP_WINDOW",
    severity: Severity::Wrong,
    file: include_str!("app_window.rs"),
    find,
};

fn find(connection: &Connection) -> Vec<Finding> {
    in_each(connection, |case| {
        let held = case.held(|state| state == State::AppWindow);
        if !held.is_worth_naming() {
            return None;
        }
        let flight = usual_flight(case, State::AppWindow)?;
        let told = Told {
            title: format!(
                "the application's own window lets no more than {} be in flight",
                said::bytes(flight)
            ),
            why: format!(
                "small pieces of data from the {}, not bare ACKs, released what the {} sent next, for {} in \
                 all{}.",
                case.receiver(),
                case.sender(),
                said::time(held.time_ns()),
                at_most(case, flight)
            ),
            not: "not TCP's windows: both had room; not the path".to_owned(),
            remedies: vec![remedies::program(
                1 - case.at,
                "raise the protocol's window in the program (HTTP/2: stream and connection window; SSH: channel \
                 window) to the rate you want times the round trip",
            )],
        };
        Some(held.finding(RULE.code, told))
    })
}

#[cfg(test)]
mod tests {
    use super::super::case::working_ns;
    use super::super::sample::{self, Sim};
    use super::*;

    /// A transfer with a flight of one size, whose waits are of `state`.
    fn waits_of(state: State) -> Connection {
        let mut connection = Sim { bytes: 1_000_000, buffer: 65_160, ..Sim::default() }.run();
        let direction = connection.directions[1].as_mut().expect("data");
        direction.limits.iter_mut().filter(|l| l.state == State::Sndbuf).for_each(|l| {
            l.state = state;
        });
        let stopped = direction.rounds.iter_mut().filter(|r| r.limited_by == State::Sndbuf);
        stopped.for_each(|round| round.limited_by = state);
        connection
    }

    #[test]
    fn a_flight_released_by_small_answers_is_told() {
        let found = find(&waits_of(State::AppWindow));
        assert_eq!(found.len(), 1);
        insta::assert_snapshot!(sample::shown(&found));
    }

    #[test]
    fn the_same_flight_released_by_acks_is_not() {
        assert!(find(&waits_of(State::Sndbuf)).is_empty());
    }

    #[test]
    fn a_tenth_is_enough_and_less_is_not() {
        let connection = waits_of(State::AppWindow);
        let (cost, active) = (find(&connection)[0].cost_ns, working_ns(&connection));
        for (more, number) in [(10 * cost - active, 1), (10 * cost - active + 10, 0)] {
            let mut stretched = connection.clone();
            sample::stretch_opening(&mut stretched, more);
            assert_eq!(find(&stretched).len(), number, "{more}");
        }
    }
}
