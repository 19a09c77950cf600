//! Segments were lost between the sender's TCP and the capture point on its own host.
//!
//! # What it says
//! The sending host itself dropped segments that its TCP had sent: a queue that drops as it hands on, a netem, a
//! filter, the device of a container or a virtual machine. The network behind the capture point never had them.
//!
//! # How we know
//! Seen at the sender's host, its numbers skip bytes that the receiver then says it lacks, and they pass for the first
//! time when they are repaired. The capture has not just missed them: of all that did arrive it has missed nothing, and
//! a capture misses what arrives as often as the rest. Two such losses far apart are enough, if three quarters of all
//! losses are such and ten times as many segments passed. The repairs, and the window that they cut, held at least a
//! tenth of the working time.
//!
//! # What it is not
//! Not the network, and not what lies below the capture point: what the card or its driver drops has been captured
//! before. Not what a queue refuses at once: TCP knows of that, and skips nothing. Where only the least distance says
//! that the capture is the sender's, a device right before it looks the same.
//!
//! # What to do
//! On the sender, see what drops: `tc -s qdisc show` for each device that the packets pass (a netem there is a
//! forgotten test), `ip -s link`, the drop counters of filters (`nft list ruleset`), a container's own devices.
//!
//! # Sources
//! Linux v6.1: `dev_hard_start_xmit` (captures see what has left the queue), `netem_enqueue` (a loss there is a success
//! to TCP), `tbf_segment` and `codel_dequeue` (likewise), `tcp_transmit_skb` (a refusal comes back). Ours: two, three
//! quarters and ten times, not measured.

use super::case::{Told, in_each};
use super::loss_congestion::{held_by_any_loss, lost};
use super::losses::unseen_at_sender;
use super::{Rule, remedies};
use crate::report::{Connection, Finding, Severity};
use tcpwhy_words::said;

pub(super) const RULE: Rule = Rule {
    code: "LOSS_LOCAL",
    severity: Severity::Wrong,
    file: include_str!("loss_local.rs"),
    find,
};

fn find(connection: &Connection) -> Vec<Finding> {
    in_each(connection, |case| {
        let (unseen, all) = unseen_at_sender(case)?;
        let (held, pattern) = held_by_any_loss(case)?;
        let sender = case.sender();
        let told = Told {
            title: format!("segments were lost on the {sender}'s own host"),
            why: format!(
                "{}. The capture on that host saw {} for the first time when they were repaired, and missed nothing \
                 of what came through.",
                lost(case, pattern),
                if unseen == all {
                    "them".to_owned()
                } else {
                    format!("{} of {}", said::grouped(unseen), said::grouped(all))
                },
            ),
            not: "not behind the capture point: what is lost there has passed it".to_owned(),
            remedies: vec![remedies::drops(case)],
        };
        Some(held.finding(RULE.code, told))
    })
}

#[cfg(test)]
mod tests {
    use super::super::sample::{self, lossy};
    use super::*;
    use crate::report::{Direction, Retransmission, Syn, Vantage};

    /// The lossy download seen at the server, with as many repairs of what the capture saw and did not see, changed by
    /// `change`.
    fn told(unseen: usize, seen: usize, change: impl Fn(&mut Connection)) -> Vec<Finding> {
        let mut connection = lossy(sample::pattern("random", 20), 5_000);
        connection.vantage = Vantage::Server;
        connection.syns = [Some(Syn::default()), Some(Syn::default())];
        let repair = |originals| Retransmission { originals, ..Retransmission::default() };
        let direction = connection.directions[1].as_mut().expect("data");
        direction.retransmissions = vec![repair(Vec::new()); unseen];
        direction.retransmissions.extend(vec![repair(vec![7]); seen]);
        change(&mut connection);
        find(&connection)
    }

    fn down(connection: &mut Connection) -> &mut Direction {
        connection.directions[1].as_mut().expect("data")
    }

    #[test]
    fn what_never_passed_the_tap_at_its_sender_was_lost_there() {
        let found = told(20, 0, |_| ());
        assert_eq!(found.len(), 1);
        insta::assert_snapshot!(sample::shown(&found));
        assert!(told(15, 5, |_| ())[0].why.contains("15 of 20"));
        assert!(told(14, 6, |_| ()).is_empty(), "more than a quarter had passed");
    }

    #[test]
    fn a_capture_that_missed_what_arrived_proves_nothing() {
        assert!(told(20, 0, |c| down(c).events.not_captured = 1).is_empty());
    }

    #[test]
    fn two_losses_far_apart_are_enough_and_one_is_not() {
        let apart = |number| told(2, 0, move |c| down(c).in_flight_at_loss.truncate(number)).len();
        assert_eq!([apart(2), apart(1)], [1, 0]);
        assert!(
            told(2, 0, |c| down(c).in_flight_at_loss.iter_mut().for_each(|l| l.frame = Some(1)))
                .is_empty()
        );
    }

    #[test]
    fn elsewhere_or_in_the_midst_of_a_connection_it_is_not_known() {
        for vantage in [Vantage::Client, Vantage::Middle, Vantage::Unknown] {
            assert!(told(20, 0, |c| c.vantage = vantage).is_empty());
        }
        assert!(told(20, 0, |c| c.syns[1] = None).is_empty());
    }

    #[test]
    fn ten_times_as_much_has_to_have_passed() {
        let passed = |segments| told(20, 0, move |c| down(c).segments = segments).len();
        assert_eq!([passed(200), passed(199)], [1, 0]);
    }

    #[test]
    fn a_tenth_is_enough_and_less_is_not() {
        let held = |share| {
            let mut connection = lossy(sample::pattern("random", 20), share);
            connection.vantage = Vantage::Server;
            connection.syns = [Some(Syn::default()), Some(Syn::default())];
            down(&mut connection).retransmissions = vec![Retransmission::default(); 20];
            find(&connection).len()
        };
        assert_eq!([held(1_000), held(999)], [1, 0]);
    }
}
