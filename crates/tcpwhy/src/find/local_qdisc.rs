//! Packets stood in a queue of the sending host itself.
//!
//! # What it says
//! Between the sender's TCP and the capture point on its own host packets waited: a shaper, a
//! traffic class, netem, or the card's own queue. The host, not the network, sets this rate.
//!
//! # How we know
//! Intervals in the state `local_qdisc`: the time between stack and tap, which timestamps show,
//! grew above its constant part while packets left in an even rhythm. They hold at least a tenth of
//! the working time. A queue on the path right behind the host looks alike where the tap is not on
//! the host: then the packets allow both, and it is said.
//!
//! # What it is not
//! Not the application, although the host sends slower than it could. Not TCP's own pacing, which
//! spaces packets before they are counted as sent (`PACING`); `fq` holds paced ones as a queue does.
//!
//! # What to do
//! Look at the queues of the device that the route uses: `tc -s qdisc show dev DEV` names the
//! shaper (tbf, htb, cake, `fq` with `maxrate`), its rate, its backlog and its drops; a netem there is a forgotten test.
//! Change the shaper's rate, or accept it: no setting of TCP brings more through.
//!
//! # Sources
//! `docs/reference/limits-method.md` section 1 (two clocks); Linux `net/sched/sch_tbf.c`,
//! `sch_htb.c`, `sch_netem.c` (v6.1).

use super::case::{Told, in_each};
use super::{Rule, remedies};
use crate::report::{Connection, Finding, Severity, State};
use tcpwhy_words::said;
use tcpwhy_words::units::BitRate;

pub(super) const RULE: Rule = Rule {
    code: "LOCAL_QDISC",
    severity: Severity::Wrong,
    file: include_str!("local_qdisc.rs"),
    find,
};

fn find(connection: &Connection) -> Vec<Finding> {
    in_each(connection, |case| {
        let held = case.held(|state| state == State::LocalQdisc);
        if !held.is_worth_naming() {
            return None;
        }
        let sender = case.sender();
        let rate = case
            .direction
            .bottleneck_rate_bps
            .map_or_else(String::new, |rate| format!(" at about {}", BitRate(rate)));
        let told = Told {
            title: format!("packets stood in a queue of the {sender}'s own host"),
            why: format!(
                "they left the host{rate}, later than its TCP had sent them, for {} in all.",
                said::time(held.time_ns())
            ),
            not: "not the network behind that host; no setting of TCP brings more through"
                .to_owned(),
            remedies: vec![remedies::queues(case)],
        };
        Some(held.finding(RULE.code, told))
    })
}

#[cfg(test)]
mod tests {
    use super::super::sample::{self, held_by};
    use super::*;

    #[test]
    fn a_queue_on_the_host_is_told() {
        let found = find(&held_by(State::LocalQdisc, 5_000));
        assert_eq!(found.len(), 1);
        insta::assert_snapshot!(sample::shown(&found));
    }

    #[test]
    fn a_tenth_is_enough_and_less_is_not() {
        assert_eq!(find(&held_by(State::LocalQdisc, 1_000)).len(), 1);
        assert!(find(&held_by(State::LocalQdisc, 999)).is_empty());
    }

    #[test]
    fn a_download_that_only_slow_start_held_is_no_such_thing() {
        assert!(find(&sample::download()).is_empty());
    }
}
