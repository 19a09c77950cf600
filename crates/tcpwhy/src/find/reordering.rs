//! Segments were retransmitted that had not been lost (reordering, or a delay taken for loss).
//!
//! # What it says
//! The receiver reported gaps, or a timer ran out, and the sender repaired; but the originals had
//! only been overtaken or late. The repair cost bytes and often a cut of the congestion window.
//!
//! # How we know
//! Intervals in the state `recovery.reorder_spurious`: everything that was retransmitted was reported
//! as a duplicate (D-SACK), or the echoed timestamp was the original's. Where nothing at all was lost,
//! the window cut for them and its slow growth count too. They hold at least a tenth of the working time.
//!
//! At the receiver's host and in between it is less sure: what was repaired may have been lost behind the
//! capture point, where only the receiver's D-SACK tells, and then `LOSS` may stand for it.
//!
//! # What it is not
//! Not loss: nothing was missing in the end. Linux undoes the cut once it learns so; the time until
//! then is gone.
//!
//! # What to do
//! On the path: packets of one connection must keep one way (bonding by packets, `balance-rr`, ECMP
//! by packet, several receive queues without flow steering reorder them). Where a sudden delay made
//! a timer run out, look at what stood still then (a radio, a sleeping host). On the hosts leave
//! SACK, D-SACK and timestamps on: they are what tells the sender. Raising `tcp_reordering` is
//! obsolete under RACK.
//!
//! # Sources
//! RFC 2883 (D-SACK), RFC 3522 (Eifel), RFC 8985 section 6.2 (RACK's reordering window); Linux
//! `tcp_try_undo_recovery`, `tcp_check_sack_reordering` (v6.1, `net/ipv4/tcp_input.c`).

use super::case::{Told, in_each};
use super::losses::after_losses;
use super::{Rule, remedies};
use crate::report::{Connection, Finding, Severity, State};
use tcpwhy_words::said;

pub(super) const RULE: Rule = Rule {
    code: "SPURIOUS_REPAIR",
    severity: Severity::Wrong,
    file: include_str!("reordering.rs"),
    find,
};

fn find(connection: &Connection) -> Vec<Finding> {
    in_each(connection, |case| {
        let needless = |state| state == State::RecoveryReorderSpurious;
        // Where nothing was lost, all that was repaired and grown back is the needless repairs' doing.
        let held = match case.direction.events.lost {
            0 => after_losses(case, needless),
            _ => case.held(needless),
        };
        let repairs = case.held(needless);
        if repairs.limits.is_empty() || !held.is_worth_naming() {
            return None;
        }
        let growing = match held.time_ns() - repairs.time_ns() {
            0 => String::new(),
            time => {
                format!(", {} of it with the window growing back that was cut", said::time(time))
            }
        };
        let number = match case.direction.retransmitted.spurious {
            0 => String::new(),
            some => format!("{} were retransmitted for nothing; ", said::count(some, "segment")),
        };
        let told = Told {
            title: "segments were retransmitted that had not been lost".to_owned(),
            why: format!(
                "{number}the originals had only been overtaken or late, and the {} spent {} on it{growing}.",
                case.sender(),
                said::time(held.time_ns())
            ),
            not: "not loss: nothing was missing in the end".to_owned(),
            remedies: vec![remedies::path(
                "keep the packets of one connection on one way (no bonding or ECMP by packet); where a delay made \
                 a timer run out, find what stood still then",
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
    fn a_needless_repair_is_told() {
        let found = find(&held_by(State::RecoveryReorderSpurious, 5_000));
        assert_eq!(found.len(), 1);
        insta::assert_snapshot!(sample::shown(&found));
    }

    #[test]
    fn the_growth_after_needless_repairs_counts_where_nothing_was_lost() {
        let cost = |lost: u64| {
            let mut connection = held_by(State::RecoveryReorderSpurious, 5_000);
            let direction = connection.directions[1].as_mut().expect("data");
            direction.events.lost = lost;
            let first = crate::report::InFlightAtLoss::default();
            direction.in_flight_at_loss.push(first);
            let flight = direction.limits.iter_mut().find(|l| l.state == State::LastFlight);
            flight.expect("one").state = State::CwndAvoidance;
            let found = find(&connection);
            assert_eq!(found[0].why.contains("growing back"), lost == 0, "{}", found[0].why);
            found[0].cost_ns
        };
        assert!(cost(0) > cost(1), "{} {}", cost(0), cost(1));
    }

    #[test]
    fn a_tenth_is_enough_and_less_is_not() {
        assert_eq!(find(&held_by(State::RecoveryReorderSpurious, 1_000)).len(), 1);
        assert!(find(&held_by(State::RecoveryReorderSpurious, 999)).is_empty());
    }

    #[test]
    fn a_download_that_only_slow_start_held_is_no_such_thing() {
        assert!(find(&sample::download()).is_empty());
    }
}
