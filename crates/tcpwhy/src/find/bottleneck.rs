//! The path is full, and the queue in it is this transfer's own.
//!
//! # What it says
//! The narrowest link carries what it can. This transfer sends faster than that link delivers, so
//! its packets queue there and the round trip grows with the flight.
//!
//! # How we know
//! Intervals in the state `bandwidth.self_queue`. Packets left the narrowest link one behind the other for a round trip and
//! more: whichever window or repair ran beside it, no more could pass. Or, where they do not show that, the delivery rate stayed flat, or a loss that cut the
//! window left it as it was, while the round trip stood above its least and followed the flight; or flights
//! grew by a fifth and the rate did not (the queue may then empty once a round trip). They hold at least a
//! tenth of the working time.
//!
//! # What it is not
//! Not a window and not a buffer: with more in flight only the queue grows. Not a fault of the
//! network either, unless the rate is less than was bought. A shaper on the sending host looks
//! alike where the capture cannot tell; then it is said.
//!
//! # What to do
//! More rate, or fewer bytes (compression, caching, smaller images). Where others suffer from the
//! queue (calls, games), put a queue with a short standing time there (`fq_codel`, CAKE), or send
//! less bluntly (BBR). No window, buffer or initial window makes this transfer faster.
//!
//! # Sources
//! `docs/reference/limits-method.md` section 6; RFC 8289 (`CoDel`), RFC 8290 (`FQ-CoDel`).

use super::case::{Case, Told, in_each};
use super::{Rule, remedies};
use crate::report::{Connection, Finding, Severity, State};
use tcpwhy_words::said;
use tcpwhy_words::units::BitRate;

pub(super) const RULE: Rule = Rule {
    code: "BOTTLENECK",
    severity: Severity::Limit,
    file: include_str!("bottleneck.rs"),
    find,
};

fn find(connection: &Connection) -> Vec<Finding> {
    in_each(connection, |case| {
        use State::{AppWindow, CwndClamp, RwndCap, RwndReader, Sndbuf};
        let held = case.held(|state| state == State::BandwidthSelfQueue);
        if !held.is_worth_naming() {
            return None;
        }
        let rate = delivers(case);
        let told = Told {
            title: "the path is full; the queue in it is this transfer's own".to_owned(),
            why: format!("{rate}{}.", queue(case)),
            not: held.not(&[
                ("not a window", &[RwndCap, RwndReader, CwndClamp, AppWindow]),
                ("not a buffer", &[Sndbuf]),
                ("not cured by more in flight: only the queue would grow", &[]),
            ]),
            remedies: vec![
                remedies::program(case.at, "send fewer bytes (compress, cache)"),
                remedies::path(
                    "more rate; where others wait behind this transfer, a queue that stays short (fq_codel, CAKE)",
                ),
            ],
        };
        Some(held.finding(RULE.code, told))
    })
}

/// What the link carries, by its own rate where packets show it, else by what was delivered.
fn delivers(case: &Case<'_>) -> String {
    let link = case.direction.link.as_deref().filter(|link| link.full_ns > 0);
    match (link, case.direction.bottleneck_rate_bps) {
        (Some(link), _) => {
            let (rate, busy) = (BitRate(link.rate_bps.best), said::time(link.busy_ns));
            let gave = match (link.proven, link.varies) {
                (true, false) => "the narrowest link carries",
                (true, true) => "the path gave about",
                // Without time stamps the sender may have spaced what comes as evenly.
                (false, _) => "the narrowest link seems to carry",
            };
            let floor = said::time(link.floor_ns);
            format!(
                "{gave} {rate} and was busy for {busy}; what was sent takes it {floor} at least"
            )
        }
        (None, Some(rate)) => format!("it delivers {} of payload", BitRate(rate)),
        (None, None) => "it delivers its rate".to_owned(),
    }
}

/// How much longer a round trip takes than at its least, to follow other words.
pub(super) fn queue(case: &Case<'_>) -> String {
    let rtt = &case.direction.rtt;
    match (rtt.min_ns, rtt.median_ns) {
        (Some(least), Some(median)) if median > least => format!(
            "; a round trip takes {} instead of {}, the rest is queue",
            said::time(median),
            said::time(least)
        ),
        _ => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::super::sample::{self, held_by};
    use super::*;
    use crate::report::{Link, LinkRate};

    #[test]
    fn a_full_path_is_told() {
        let found = find(&held_by(State::BandwidthSelfQueue, 5_000));
        assert_eq!(found.len(), 1);
        insta::assert_snapshot!(sample::shown(&found));
    }

    #[test]
    fn a_link_that_is_not_proven_only_seems_to_carry_so_much() {
        let why = |proven, varies| {
            let mut connection = held_by(State::BandwidthSelfQueue, 5_000);
            let rate_bps = LinkRate { low: 2_000_000, best: 2_000_000, high: 2_000_000 };
            let link = Link { proven, varies, rate_bps, full_ns: 1, ..Link::default() };
            for direction in connection.directions.iter_mut().flatten() {
                direction.link = Some(Box::new(link.clone()));
            }
            find(&connection)[0].why.clone()
        };
        assert!(why(true, false).contains("the narrowest link carries 2.00 Mbit/s"));
        assert!(why(true, true).contains("the path gave about 2.00 Mbit/s"));
        assert!(why(false, false).contains("seems to carry"));
    }

    #[test]
    fn a_tenth_is_enough_and_less_is_not() {
        assert_eq!(find(&held_by(State::BandwidthSelfQueue, 1_000)).len(), 1);
        assert!(find(&held_by(State::BandwidthSelfQueue, 999)).is_empty());
    }

    #[test]
    fn a_download_that_only_slow_start_held_is_no_such_thing() {
        assert!(find(&sample::download()).is_empty());
    }
}
