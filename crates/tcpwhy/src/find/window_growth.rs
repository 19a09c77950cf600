//! The receiver's window grows, but later than the sender could use it.
//!
//! # What it says
//! A receiver begins with a window of about 64 KiB and opens it as data comes in and is read. Here
//! the sender was ready for more and waited at the window's edge, and the window was larger later.
//!
//! # How we know
//! Intervals in the state `rwnd.autotune`: less than a segment was left of the window, the congestion
//! window allowed more, and the window grew beyond all it was before. They hold at least a tenth of the working time.
//!
//! # What it is not
//! Not the network. Not a cap: intervals in which the window stood at its maximum (`rwnd.cap`) are not of
//! this finding (`WINDOW_CAP` is for those), unless a window that came later was larger by more than a
//! twentieth: then it had only not grown yet. Not the
//! sender's slow start, which comes first where both are full.
//!
//! # What to do
//! Use a connection again: its window is open already. Linux grows the buffer by what the program
//! reads in a round trip, so a program that reads at once, and everything, opens it sooner. An
//! initial window (`initcwnd`) beyond the receiver's first window brings nothing. A large second
//! number of `net.ipv4.tcp_rmem` is no remedy: it costs memory for every socket, has broken downloads,
//! and the SYN cannot announce more than 64 KiB anyway.
//!
//! # Sources
//! Linux `tcp_grow_window`, `tcp_rcv_space_adjust`, `tcp_select_initial_window` (v6.1,
//! `net/ipv4/tcp_input.c`, `tcp_output.c`); RFC 7323 section 2.2 (a SYN's window is not scaled).

use super::case::{Case, Told, in_each, window_at};
use super::window_cap::not_the_sender;
use super::{Rule, remedies, window_cap, window_scale};
use crate::report::{Connection, Finding, Round, Severity, State};
use tcpwhy_words::said;

pub(super) const RULE: Rule = Rule {
    code: "WINDOW_GROWTH",
    severity: Severity::Limit,
    file: include_str!("window_growth.rs"),
    find,
};

fn find(connection: &Connection) -> Vec<Finding> {
    in_each(connection, |case| {
        // A window that stood for a while and grew after all was no cap.
        let is_no_cap = window_cap::stays(case) == Some(false);
        let is_late =
            |state| state == State::RwndAutotune || (is_no_cap && state == State::RwndCap);
        let mut held = case.held(is_late);
        held.limits.retain(|limit| grew_after(case, limit.start_ns));
        if !held.is_worth_naming() || window_scale::explains(case) {
            return None;
        }
        let (sender, receiver) = (case.sender(), case.receiver());
        let was_late =
            |round: &&Round| is_late(round.limited_by) && grew_after(case, round.start_ns);
        let stopped = case.direction.rounds.iter().filter(was_late);
        let windows: Vec<String> =
            stopped.filter_map(window_at).take(4).map(said::exact_bytes).collect();
        let windows = if windows.is_empty() {
            String::new()
        } else {
            format!(" ({})", said::listed(&windows))
        };
        let told = Told {
            title: format!("the {receiver}'s window opened later than the {sender} could use it"),
            why: format!(
                "the {sender} filled it to the edge{windows} and waited, {} in all; it grew afterwards.",
                said::time(held.time_ns())
            ),
            not: not_the_sender(case, &held),
            remedies: vec![
                remedies::program(
                    remedies::CLIENT,
                    "keep the connection open and use it again: its windows are open then",
                ),
                remedies::program(
                    1 - case.at,
                    "let the program read at once and everything: the kernel opens the window by what is read in \
                     a round trip",
                ),
            ],
        };
        Some(held.finding(RULE.code, told))
    })
}

/// Whether a later window was larger than that of the round at `at_ns`.
fn grew_after(case: &Case<'_>, at_ns: i64) -> bool {
    let rounds = &case.direction.rounds;
    let next = rounds.partition_point(|round| round.start_ns <= at_ns);
    let (sofar, later) = rounds.split_at(next);
    let then = sofar.last().and_then(window_at);
    then.is_some_and(|then| later.iter().filter_map(window_at).any(|window| window > then))
}

#[cfg(test)]
mod tests {
    use super::super::sample::{self, Sim};
    use super::*;

    #[test]
    fn a_window_that_grows_behind_the_sender_is_told() {
        let late = Sim { initial: 100, first_window: 30_000, ..Sim::default() }.run();
        let found = find(&late);
        assert_eq!(found.len(), 1);
        insta::assert_snapshot!(sample::shown(&found));
    }

    #[test]
    fn a_window_that_never_grew_again_did_not_open_late() {
        let mut late = Sim { initial: 100, first_window: 30_000, ..Sim::default() }.run();
        let direction = late.directions[1].as_mut().expect("data");
        let largest = direction.rounds.iter().filter_map(window_at).max().expect("windows");
        for round in &mut direction.rounds {
            round.window_room_bytes = Some((largest - round.in_flight_bytes) as i64);
        }
        assert!(find(&late).is_empty());
    }

    #[test]
    fn a_window_at_its_maximum_is_not_said_to_have_grown() {
        let mut late = Sim { initial: 100, first_window: 30_000, ..Sim::default() }.run();
        let direction = late.directions[1].as_mut().expect("data");
        for limit in &mut direction.limits {
            if limit.state == State::RwndAutotune {
                limit.state = State::RwndCap;
            }
        }
        assert!(find(&late).is_empty());
    }

    #[test]
    fn a_window_that_stood_for_a_while_and_then_grew_was_no_cap() {
        let found = |more_percent: u64| {
            let mut late = Sim { initial: 100, first_window: 30_000, ..Sim::default() }.run();
            let direction = late.directions[1].as_mut().expect("data");
            let late_rounds = direction.rounds.iter_mut();
            let mut capped: Vec<_> =
                late_rounds.filter(|round| round.limited_by == State::RwndAutotune).collect();
            for round in &mut capped {
                round.limited_by = State::RwndCap;
                round.window_room_bytes = Some(0);
                round.in_flight_bytes = 30_000;
            }
            for limit in &mut direction.limits {
                if limit.state == State::RwndAutotune {
                    limit.state = State::RwndCap;
                }
            }
            let last = direction.rounds.last_mut().expect("rounds");
            (last.window_room_bytes, last.in_flight_bytes) = (Some(0), 300 * (100 + more_percent));
            for round in &mut direction.rounds {
                let largest = 300 * (100 + more_percent);
                round.in_flight_bytes = round.in_flight_bytes.min(largest);
                round.window_room_bytes = Some(0);
            }
            (find(&late).len(), (window_cap::RULE.find)(&late).len())
        };
        assert_eq!(found(6), (1, 0));
        assert_eq!(found(5), (0, 1), "a twentieth more is the same window");
    }

    #[test]
    fn a_window_that_grows_ahead_of_the_sender_is_not() {
        assert!(find(&sample::download()).is_empty());
    }

    #[test]
    fn a_window_that_never_grows_is_a_cap() {
        let capped =
            Sim { initial: 100, first_window: 30_000, window: 30_000, ..Sim::default() }.run();
        assert!(find(&capped).is_empty());
    }
}
