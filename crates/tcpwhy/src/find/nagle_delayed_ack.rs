//! A short segment was held back until an ACK came (Nagle's algorithm against delayed ACKs).
//!
//! # What it says
//! The sender had a small piece to send and did not: Nagle's algorithm lets only one short segment
//! be unacknowledged. The receiver in turn delays its ACK, hoping to send it with data. Each waits
//! for the other, 40 to 200 ms in Linux.
//!
//! # How we know
//! Intervals in the state `nagle_delack`: a short segment was released by the ACK of the short one
//! before it, with room in all windows; most surely where that ACK came 35 to 210 ms later than the
//! least round trip. They hold at least a tenth of the working time. An application that writes its
//! next small piece only once the answer to the last has come looks alike; where the packets allow
//! that, it is said.
//!
//! # What it is not
//! Not a window: a short segment fills none. Where the receiver acknowledged at once, each such wait
//! is a round trip; where it delayed its ACKs, a timer's time besides.
//!
//! # What to do
//! The sending program: write a message in one call (`writev`, a buffer, `MSG_MORE`), or set
//! `TCP_NODELAY`. Failing that the receiving program can set `TCP_QUICKACK` after each read. Either one
//! is enough. Cost of `TCP_NODELAY`: more small packets if the program writes byte by byte.
//!
//! # Sources
//! RFC 9293 section 3.7.4 (Nagle), RFC 9293 section 3.8.6.3 (delayed ACKs); Linux
//! `tcp_nagle_check`, `tcp_minshall_check`, `TCP_ATO_MIN` 40 ms, `TCP_DELACK_MAX` 200 ms (v6.1,
//! `net/ipv4/tcp_output.c`, `include/net/tcp.h`).

use super::case::{Told, early_spans, in_each, lies_in};
use super::{Rule, remedies};
use crate::report::{Connection, Finding, Severity, State};
use tcpwhy_words::said;

pub(super) const RULE: Rule = Rule {
    code: "NAGLE_DELAYED_ACK",
    severity: Severity::Wrong,
    file: include_str!("nagle_delayed_ack.rs"),
    find,
};

/// Less than this above a round trip is no delayed ACK: `TCP_DELACK_MIN`, less jiffies and noise.
const LEAST_DELAY_NS: i64 = 35_000_000;

fn find(connection: &Connection) -> Vec<Finding> {
    in_each(connection, |case| {
        let mut held = case.held(|state| state == State::NagleDelack);
        // Nobody waits for session tickets.
        let early = early_spans(connection);
        held.limits.retain(|limit| case.at == 0 || !lies_in(limit, &early));
        if !held.is_worth_naming() {
            return None;
        }
        let (sender, receiver) = (case.sender(), case.receiver());
        let longest = held.limits.iter().map(|each| each.end_ns - each.start_ns).max()?;
        let late = case.rtt().is_some_and(|rtt| longest >= rtt + LEAST_DELAY_NS);
        let delay =
            if late { format!(", and the {receiver} delays its ACKs") } else { String::new() };
        let told = Told {
            title: format!("the {sender} held small pieces back until ACKs came"),
            why: format!(
                "{}, {} at the longest: the {sender} does not send a second short segment before the first is \
                 acknowledged{delay}.",
                held.times(),
                said::time(longest)
            ),
            not: "not a window: a short segment fills none".to_owned(),
            remedies: vec![remedies::program(
                case.at,
                "write each message in one call in the program, or set TCP_NODELAY (then byte-by-byte writes \
                 become packets)",
            )],
        };
        let mut finding = held.finding(RULE.code, told);
        if late {
            finding.remedies.push(remedies::program(
                1 - case.at,
                "failing that, set TCP_QUICKACK after each read in the program",
            ));
        }
        Some(finding)
    })
}

#[cfg(test)]
mod tests {
    use super::super::sample::{self, held_by};
    use super::*;

    #[test]
    fn what_nagle_and_delayed_acks_hold_is_told() {
        let found = find(&held_by(State::NagleDelack, 5_000));
        assert_eq!(found.len(), 1);
        insta::assert_snapshot!(sample::shown(&found));
    }

    #[test]
    fn a_tenth_is_enough_and_less_is_not() {
        assert_eq!(find(&held_by(State::NagleDelack, 1_000)).len(), 1);
        assert!(find(&held_by(State::NagleDelack, 999)).is_empty());
    }

    #[test]
    fn a_download_that_only_slow_start_held_is_no_such_thing() {
        assert!(find(&sample::download()).is_empty());
    }
}
