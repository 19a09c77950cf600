//! The receiving application reads more slowly than the data comes.
//!
//! # What it says
//! The receiver's window was full, and its buffer holds data that the program has not read. The sender
//! waited at the window's edge.
//!
//! # How we know
//! Intervals in the state `rwnd.reader`: less than a segment was left of a window that was smaller
//! than it had been in the last rounds, and in half of the rounds or more less than three quarters of the
//! largest. Or the receiver answered all of a flight at once and late: later than a round trip after it had come, or
//! again and again by as much, of an eighth of one or more. Linux
//! answers every second segment while it can offer its whole window, and else when the program reads. A
//! program that reads everything, but rarely, does that as well, and a larger buffer would help it: so these
//! are less sure, unless the window was once much larger, so that something stays unread. They hold at least a tenth of the working time and three round
//! trips: for less, the receiving kernel's own accounting may shrink it. A window that shut altogether
//! is `ZERO_WINDOW`.
//!
//! # What it is not
//! Not the network, and not the buffer's size: a larger one fills as well, only later. An ACK proves
//! that the receiving kernel has the data, not that the program has.
//!
//! # What to do
//! Look at the program on the receiver: `ss -tmi` shows bytes in Recv-Q while it is late; a trace of
//! its system calls shows what it does between its reads (writing to a disk, waiting for a lock, too
//! small reads). Memory pressure on that host shrinks windows too. No setting of TCP helps.
//!
//! # Sources
//! RFC 9293 section 3.8.6.2, RFC 1122 section 4.2.3.2; Linux `__tcp_select_window`, `__tcp_ack_snd_check` and
//! `tcp_cleanup_rbuf` (v6.1, `net/ipv4/tcp_output.c`, `tcp_input.c`, `tcp.c`).

use super::case::{Told, in_each};
use super::window_cap::lags;
use super::{Rule, pacing, remedies};
use crate::report::{Connection, Finding, Severity, State};
use tcpwhy_words::said;

pub(super) const RULE: Rule = Rule {
    code: "SLOW_READER",
    severity: Severity::Wrong,
    file: include_str!("slow_reader.rs"),
    find,
};

/// A window that shrinks for less than this many round trips may be the receiving kernel's accounting.
/// Ours: seen for one round trip where a flight filled the first window (Linux 6.1,
/// `testdata/kernel/initcwnd100`).
const LEAST_ROUND_TRIPS: i64 = 3;

fn find(connection: &Connection) -> Vec<Finding> {
    in_each(connection, |case| {
        let held = case.held(|state| state == State::RwndReader);
        let lasting = case.rtt().is_some_and(|rtt| held.time_ns() >= LEAST_ROUND_TRIPS * rtt);
        if !held.is_worth_naming() || !lasting || !lags(case) {
            return None;
        }
        let (sender, receiver) = (case.sender(), case.receiver());
        let seen = if held.may_be(State::RwndCap) {
            "full windows reopened late, as where the program had not read"
        } else {
            "its window shrank and was full"
        };
        let paced =
            pacing::is_receivers(case) && case.held(|s| s == State::Pacing).is_worth_naming();
        let told = Told {
            title: format!("the {receiver}'s application reads too slowly"),
            why: format!(
                "{seen}: the {sender} waited {} for it to be read{}.",
                said::time(held.time_ns()),
                if paced { ", and kept to the pace that this allowed between" } else { "" }
            ),
            not: held.not(&[
                ("not the network", &[]),
                (
                    "not the buffer's size: a larger one fills as well, only later",
                    &[State::RwndCap],
                ),
            ]),
            remedies: vec![remedies::reads_at_once(case)],
        };
        Some(held.finding(RULE.code, told))
    })
}

#[cfg(test)]
mod tests {
    use super::super::sample::{self, held_by};
    use super::*;

    #[test]
    fn a_window_that_shrank_and_was_full_is_told() {
        let found = find(&held_by(State::RwndReader, 5_000));
        assert_eq!(found.len(), 1);
        assert_eq!(found[0].severity, Severity::Wrong);
        insta::assert_snapshot!(sample::shown(&found));
    }

    #[test]
    fn a_tenth_is_enough_and_less_is_not() {
        assert_eq!(find(&held_by(State::RwndReader, 1_000)).len(), 1);
        assert!(find(&held_by(State::RwndReader, 999)).is_empty());
    }

    #[test]
    fn a_window_that_shrinks_for_three_round_trips_is_told_and_for_less_is_not() {
        let mut connection = held_by(State::RwndReader, 5_000);
        let held = find(&connection)[0].cost_ns;
        for (rtt, number) in [(held / 3, 1), (held / 3 + 1, 0)] {
            connection.directions[1].as_mut().expect("data").rtt.min_ns = Some(rtt);
            assert_eq!(find(&connection).len(), number, "{rtt}");
        }
    }

    #[test]
    fn a_window_that_did_not_shrink_is_a_readers_where_answers_were_kept_back() {
        let mut connection = held_by(State::RwndReader, 5_000);
        let direction = connection.directions[1].as_mut().expect("data");
        for round in &mut direction.rounds {
            round.window_room_bytes = Some(100_000 - round.in_flight_bytes as i64);
        }
        let found = |connection: &Connection| {
            let rules = [find, super::super::window_cap::RULE.find];
            rules.map(|rule| rule(connection).len())
        };
        assert_eq!(found(&connection)[0], 0, "it is a buffer's accounting");
        let direction = connection.directions[1].as_mut().expect("data");
        for limit in direction.limits.iter_mut().filter(|l| l.state == State::RwndReader) {
            limit.alternative = vec![State::RwndCap];
        }
        assert_eq!(found(&connection), [1, 0]);
        let told = &find(&connection)[0];
        assert!(told.why.starts_with("full windows reopened late"), "{}", told.why);
        assert!(!told.not.contains("buffer"), "a larger one may help: {}", told.not);
    }

    #[test]
    fn a_reader_in_time_is_not_blamed() {
        assert!(find(&sample::download()).is_empty());
    }
}
