//! ACKs wait in a queue on their way back, and the sender for them.
//!
//! # What it says
//! The data comes through, but the ACKs for it wait in a queue: before a thin uplink, or one that an upload beside fills.
//! The sender sees a long round trip, and each window of data waits for it.
//!
//! # How we know
//! Intervals in the state `ack_path`: the round trip was above its least by half and more, or while what came through was
//! always the same, and most of that the ACKs took. At the sender's host their time stamps tell when they left and so
//! how much longer than at the least they were on their way. At other hosts the data tells: it echoes the newest ACK that
//! had come when it was sent, so what had left the receiver before and is not echoed was still on its way. They hold at
//! least a tenth of the working time.
//!
//! # What it is not
//! Not the program at either end, though from the receiver's side each answer to an ACK comes late. Not a buffer: it was
//! not full, its ACKs were late. And not a full link in the direction of the data: that carries more.
//!
//! # What to do
//! The remedy is in the other direction. Where the receiver's side sends much beside (a backup, a video call), a queue
//! that stays short and gives each flow its turn (`fq_codel`, CAKE) at its router's way out lets ACKs pass; CAKE's
//! `ack-filter` thins them where the uplink is slow. Or send less beside, or give the upload a limit below the uplink's
//! rate. A larger window does not help: it only lets more ACKs wait.
//!
//! # Sources
//! RFC 3449 (TCP over asymmetric paths) sections 2 and 5; RFC 7323 section 4.3 (which stamp is echoed); RFC 8290
//! (`fq_codel`); tc-cake(8) (`ack-filter`).

use super::bottleneck;
use super::case::{Told, in_each};
use super::{Rule, remedies};
use crate::report::{Connection, Finding, Severity, State};
use tcpwhy_words::said;

pub(super) const RULE: Rule =
    Rule { code: "ACK_PATH", severity: Severity::Limit, file: include_str!("ack_path.rs"), find };

fn find(connection: &Connection) -> Vec<Finding> {
    in_each(connection, |case| {
        let held = case.held(|state| state == State::AckPath);
        if !held.is_worth_naming() {
            return None;
        }
        let told = Told {
            title: "ACKs wait in a queue on their way back".to_owned(),
            why: format!(
                "the {} waits for ACKs that stand in queues on their way to it, for {} in all{}.",
                case.sender(),
                said::time(held.time_ns()),
                bottleneck::queue(case)
            ),
            not: held.not(&[
                ("not a program", &[]),
                ("not a full link in the direction of the data", &[]),
            ]),
            remedies: vec![remedies::path(
                "at the way out towards the sender, a queue that stays short (fq_codel, CAKE, with ack-filter before a slow \
                     uplink), or less sent beside",
            )],
        };
        Some(held.finding(RULE.code, told))
    })
}

#[cfg(test)]
mod tests {
    use super::super::sample::{self, held_by};
    use super::*;

    #[test]
    fn acks_that_queue_are_told() {
        let found = find(&held_by(State::AckPath, 5_000));
        assert_eq!(found.len(), 1);
        insta::assert_snapshot!(sample::shown(&found));
    }

    #[test]
    fn a_tenth_is_enough_and_less_is_not() {
        assert_eq!(find(&held_by(State::AckPath, 1_000)).len(), 1);
        assert!(find(&held_by(State::AckPath, 999)).is_empty());
    }
}
