//! Slow start ended before the path was full, and the window crept on from there.
//!
//! # What it says
//! The congestion window stopped doubling although neither loss nor a full path called for it, and
//! grew by little each round afterwards. Two things do that: a threshold remembered from an earlier
//! connection to the same address, and `HyStart`, which guesses from the spacing or delay of ACKs
//! that the path is nearly full.
//!
//! # How we know
//! Without a loss before, two rounds of three grew by less than half; then intervals in the states
//! `cwnd.cached_ssthresh` and `cwnd.avoidance` hold at least a tenth of the working time, with no
//! queue standing. A long train of ACKs or a round trip above `HyStart`'s bound in that round names
//! `HyStart`; where neither shows, a remembered or configured threshold is the likeliest left.
//!
//! # What it is not
//! Not loss, not a congestion mark (`ECN`), not a receiver's window, and not a full path. Where the flight was near what the path
//! holds, the end of slow start was right.
//!
//! # What to do
//! Remembered threshold: `ip tcp_metrics show ADDRESS` on the sender shows it, `ip tcp_metrics
//! delete ADDRESS` drops it; kernels from 5.6 on neither keep nor use one, nor that of a route, unless
//! `net.ipv4.tcp_no_ssthresh_metrics_save` is 0: there look at the send buffer and the program. `HyStart`: CUBIC's
//! module parameter `hystart_detect` chooses which signs count (2: delay only); or another
//! controller. The cost is a window that may overshoot the queue.
//!
//! # Sources
//! Linux `hystart_update`, `bictcp_acked` (`net/ipv4/tcp_cubic.c`), `tcp_init_metrics`
//! (`tcp_metrics.c`; commit 65e6d90168f3 in 5.6), v6.1; RFC 9406 (`HyStart++`), which Linux does not
//! implement.

use super::case::{Case, Told, in_each};
use super::{Rule, remedies};
use crate::report::{Connection, Finding, Remedy, Severity, SlowStartExit, State};
use tcpwhy_words::said;

pub(super) const RULE: Rule = Rule {
    code: "SLOW_START_ENDED_EARLY",
    severity: Severity::Limit,
    file: include_str!("slow_start_ended_early.rs"),
    find,
};

fn find(connection: &Connection) -> Vec<Finding> {
    in_each(connection, |case| {
        let exit = case.direction.slow_start_exit.as_deref()?;
        let cause = Cause::of(exit)?;
        let mut held = case.held(|s| matches!(s, State::CwndCachedSsthresh | State::CwndAvoidance));
        held.limits.retain(|limit| limit.end_ns > exit.at_ns);
        let marked = case.direction.events.ecn_echo > 0;
        if !held.is_worth_naming() || case.lost_something() || marked {
            return None;
        }
        let at = exit.ssthresh.map_or_else(String::new, |segments| {
            format!(" at {}", said::count(segments, "segment"))
        });
        let told = Told {
            title: format!("slow start ended{at}, before the path was full"),
            why: format!(
                "without loss or queue the flight stopped doubling after {} and crept on: {}.",
                said::time(exit.at_ns),
                cause.words()
            ),
            not: format!(
                "not loss, not a full path, not the {}'s window: all had room",
                case.receiver()
            ),
            remedies: vec![cause.remedy(case)],
        };
        Some(held.finding(RULE.code, told))
    })
}

#[derive(Clone, Copy, Debug)]
enum Cause {
    Remembered,
    Train,
    Delay,
}

impl Cause {
    fn of(exit: &SlowStartExit) -> Option<Self> {
        match &*exit.cause {
            "cached_ssthresh" => Some(Self::Remembered),
            "hystart_train" => Some(Self::Train),
            "hystart_delay" => Some(Self::Delay),
            _ => None,
        }
    }

    fn words(self) -> &'static str {
        match self {
            Self::Remembered => {
                "nothing on the wire ended it, which leaves a threshold remembered from an earlier connection, \
                 or set on the route, where the kernel uses them (from 5.6 on not by default: then a send buffer or \
                 the program is likelier)"
            }
            Self::Train => {
                "a train of ACKs half a round trip long, which CUBIC's HyStart takes for a nearly full path"
            }
            Self::Delay => "a round trip above CUBIC's bound for a nearly full path (HyStart)",
        }
    }

    fn remedy(self, case: &Case<'_>) -> Remedy {
        match self {
            Self::Remembered => remedies::metrics(case),
            Self::Train | Self::Delay => remedies::bbr(case),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::sample::{self, held_by};
    use super::*;

    fn ended_by(cause: &str, share: i64) -> Connection {
        let mut connection = held_by(State::CwndAvoidance, share);
        let direction = connection.directions[1].as_mut().expect("data");
        let cause = cause.to_owned();
        let exit = SlowStartExit { at_ns: 1, cause, ssthresh: Some(44), measured_by: None };
        direction.slow_start_exit = Some(Box::new(exit));
        connection
    }

    #[test]
    fn a_remembered_threshold_is_told_as_the_likeliest_left() {
        insta::assert_snapshot!(sample::shown(&find(&ended_by("cached_ssthresh", 5_000))));
    }

    #[test]
    fn hystart_is_told_by_what_it_saw() {
        let why = |cause| find(&ended_by(cause, 5_000))[0].why.clone();
        assert!(why("hystart_train").contains("train of ACKs"));
        assert!(why("hystart_delay").contains("round trip above"));
    }

    #[test]
    fn a_congestion_mark_ends_slow_start_rightly() {
        let mut connection = ended_by("hystart_train", 5_000);
        connection.directions[1].as_mut().expect("data").events.ecn_echo = 1;
        assert!(find(&connection).is_empty());
    }

    #[test]
    fn a_loss_ends_slow_start_rightly() {
        assert!(find(&ended_by("loss", 5_000)).is_empty());
    }

    #[test]
    fn a_tenth_is_enough_and_less_is_not() {
        assert_eq!(find(&ended_by("hystart_train", 1_000)).len(), 1);
        assert!(find(&ended_by("hystart_train", 999)).is_empty());
    }
}
