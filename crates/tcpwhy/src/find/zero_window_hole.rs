//! The receiver's buffer is full of data behind a hole.
//!
//! # What it says
//! The receiver shut its window while data was missing before what it held. Its program can read none of that, so that it
//! is not the program that keeps the window shut. The missing bytes would free the buffer.
//!
//! # How we know
//! ACKs announce a window of 0 and report, by SACK, data behind a hole; most of the ACKs with a window of 0 do. They
//! hold at least a tenth of the working time.
//!
//! # What it is not
//! Not a program that does not read (`ZERO_WINDOW`). Whether the missing bytes are lost on the way, or come and are
//! not taken because the buffer is full, the retransmissions show: in a capture on the receiver's host they come.
//!
//! # What to do
//! Find why the missing bytes are lost, as for any loss. Where they come and are not taken, the receiver's kernel dropped
//! them for want of memory: its counters tell. A larger receive buffer (`net.ipv4.tcp_rmem`, no `SO_RCVBUF`) leaves room
//! for them.
//!
//! # Sources
//! RFC 2018 section 3 (SACK), RFC 9293 section 3.8.6; Linux `tcp_data_queue`, `tcp_prune_ofo_queue`
//! (v6.1, `net/ipv4/tcp_input.c`; counters `TCPZeroWindowDrop`, `OfoPruned`, `TCPRcvQDrop`).

use super::case::{Case, Told, in_each};
use super::{Rule, remedies};
use crate::report::{Connection, Finding, Severity, ShutWithHole, State};
use tcpwhy_words::said;

pub(super) const RULE: Rule = Rule {
    code: "ZERO_WINDOW_HOLE",
    severity: Severity::Wrong,
    file: include_str!("zero_window_hole.rs"),
    find,
};

fn find(connection: &Connection) -> Vec<Finding> {
    in_each(connection, |case| {
        let hole = hole(case)?;
        let held = case.held(|state| state == State::ZeroWindow);
        if !held.is_worth_naming() {
            return None;
        }
        let (sender, receiver) = (case.sender(), case.receiver());
        let [missing, behind] = [hole.missing_bytes, hole.held_bytes].map(said::bytes);
        let told = Told {
            title: format!(
                "the {receiver}'s buffer is full of data behind a hole: {missing} are missing"
            ),
            why: format!(
                "{} with a window of 0 report {behind} behind a hole of {missing}, for {}.",
                said::count(hole.with_hole, "ACK"),
                said::time(held.time_ns())
            ),
            not: format!(
                "not the {receiver}'s application: it cannot read past the hole; not the {sender}'s windows"
            ),
            remedies: vec![
                remedies::look(
                    1 - case.at,
                    "see whether the missing bytes come and are not taken for want of memory",
                    "nstat -az TcpExtTCPZeroWindowDrop TcpExtTCPRcvQDrop TcpExtOfoPruned; ss -tmi",
                ),
                remedies::look(
                    1 - case.at,
                    "give the receive buffer more room, and let the system tune it (no SO_RCVBUF)",
                    "sysctl net.ipv4.tcp_rmem net.ipv4.tcp_mem",
                ),
                remedies::path("find where the missing bytes are lost, if they do not come"),
            ],
        };
        Some(held.finding(RULE.code, told))
    })
}

/// The hole that kept the window shut, if most of the ACKs with a window of 0 report one.
fn hole(case: &Case<'_>) -> Option<ShutWithHole> {
    case.direction.shut_with_hole.filter(|hole| hole.with_hole * 2 > hole.acks)
}

/// Whether a window was shut for this.
pub(super) fn explains(case: &Case<'_>) -> bool {
    hole(case).is_some()
}

#[cfg(test)]
mod tests {
    use super::super::sample::{self, held_by};
    use super::*;

    fn shut(acks: u64, with_hole: u64) -> Connection {
        let mut connection = held_by(State::ZeroWindow, 5_000);
        let direction = connection.directions[1].as_mut().expect("data");
        direction.shut_with_hole =
            Some(ShutWithHole { acks, with_hole, missing_bytes: 602, held_bytes: 41_586 });
        connection
    }

    #[test]
    fn a_buffer_full_of_data_behind_a_hole_is_not_the_programs() {
        let connection = shut(3, 3);
        insta::assert_snapshot!(sample::shown(&find(&connection)));
        let found = super::super::findings(&connection);
        assert!(found.iter().all(|finding| finding.code != "ZERO_WINDOW"));
    }

    #[test]
    fn a_hole_that_was_there_for_half_of_the_time_is_not_enough() {
        assert!(find(&shut(4, 2)).is_empty());
        assert_eq!(find(&shut(4, 3)).len(), 1);
    }
}
