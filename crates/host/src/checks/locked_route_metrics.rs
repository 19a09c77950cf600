//! A route fixes what TCP would otherwise find out for itself.
//!
//! # What it says
//! A metric of a route that is locked holds for all connections over it, whatever they find out: a locked
//! `cwnd` is the largest congestion window that they may have, a locked `mtu` cannot be lowered by path MTU
//! discovery, a locked `ssthresh` ends their slow start.
//!
//! # How we know
//! The route has `cwnd`, `ssthresh`, `mtu`, `window` or `rto_min` with `lock`. Connections to it whose congestion
//! window is at a locked `cwnd` are counted.
//!
//! # What it is not
//! Someone set it on purpose, and may have had a reason that still holds: a locked `mtu` keeps packets small on a path
//! that swallows the messages which would tell so.
//!
//! # What to do
//! Ask who set it and why; leave it out if nobody knows.
//!
//! # Sources
//! ip-route(8); Linux `tcp_init_metrics` (a locked `cwnd` becomes `snd_cwnd_clamp`), `ip_rt_update_pmtu` (v6.12).

use super::{Check, flows, routes};
use crate::finding::{Confidence, Finding, Fix, Group, Severity};
use crate::seen::{Asked, Seen};
use crate::snapshot::Route;
use tcpwhy_words::said::{count, listed, time};

pub(super) const CHECK: Check = Check {
    code: "LOCKED_ROUTE_METRICS",
    file: include_str!("locked_route_metrics.rs"),
    group: Group::Sending,
    judge,
};

const CONCERNED: [&str; 5] = ["cwnd", "ssthresh", "mtu", "window", "rto_min"];

fn judge(seen: &Seen<'_>) -> Asked<Vec<Finding>> {
    let locked = routes::all(seen)?.filter_map(|route| {
        let locks = locks(route);
        (!locks.is_empty()).then(|| of_route(seen, route, &locks))
    });
    Ok(locked.collect())
}

/// Metrics that bind what TCP would find out.
fn locks(route: &Route) -> Vec<&str> {
    let locks = route.locked.iter().map(String::as_str);
    locks.filter(|lock| CONCERNED.contains(lock)).collect()
}

fn of_route(seen: &Seen<'_>, route: &Route, locks: &[&str]) -> Finding {
    let held = held(seen, route);
    let value = |lock: &&str| match route.metrics.get(*lock) {
        Some(&ns) if *lock == "rto_min" => {
            format!("{lock} {}", time(i64::try_from(ns).unwrap_or(i64::MAX)))
        }
        Some(value) => format!("{lock} {value}"),
        None => (*lock).to_owned(),
    };
    let locked: Vec<String> = locks.iter().map(value).collect();
    let now = match held {
        0 => String::new(),
        held => {
            format!("; {} stand{} at it now", count(held as u64, "connection"), flows::verb_s(held))
        }
    };
    Finding {
        severity: if held > 0 { Severity::Error } else { Severity::Warning },
        confidence: Confidence::High,
        scope: routes::scope(route),
        title: format!("{} locks {}", routes::named(route), listed(&locked)),
        why: format!("all connections over it are bound by that, whatever they find out{now}."),
        not: "not that it is a mistake: someone set it on purpose".to_owned(),
        evidence: vec![routes::evidence(route)],
        fixes: vec![fix(route, locks)],
        ..Finding::default()
    }
}

fn fix(route: &Route, locks: &[&str]) -> Fix {
    let mut fix = routes::leave_out(route, locks);
    if locks.contains(&"mtu") {
        fix.risk.push_str(
            "; a locked mtu may be there because messages that packets are too big do not come back from the path: \
             without it, full packets may be lost there for good",
        );
    }
    fix
}

/// Connections to its destination with all of a locked window in flight. A more specific route may carry
/// them: then their window would stand at this one's lock by chance only.
fn held(seen: &Seen<'_>, route: &Route) -> usize {
    let cwnd = route.metrics.get("cwnd").filter(|_| route.locked.iter().any(|lock| lock == "cwnd"));
    let Some(cwnd) = cwnd else { return 0 };
    let stands = |flow: &crate::Flow<'_>| {
        flow.info().is_some_and(|info| {
            info.snd_cwnd.map(u64::from) == Some(*cwnd)
                && info.unacked.map(u64::from) == Some(*cwnd)
        })
    };
    let flows = seen.flows().unwrap_or_default();
    flows.iter().filter(|flow| route.leads_to(flow.peer()) && stands(flow)).count()
}

#[cfg(test)]
mod tests {
    use super::super::sample::{host, judged, missing, shown};
    use super::super::sample_flows::{connected, socket};
    use super::*;
    use crate::snapshot::{Info, Memory, Snapshot, Source};

    fn with(metrics: &[(&str, u64)], locked: &[&str], unacked: u32) -> Snapshot {
        let route = Route {
            line: "10.0.0.0/24 dev eth0 cwnd lock 20 mtu 1400".to_owned(),
            to: Some(([10, 0, 0, 0].into(), 24)),
            table: 254,
            metrics: metrics.iter().map(|(name, value)| ((*name).to_owned(), *value)).collect(),
            locked: locked.iter().map(|lock| (*lock).to_owned()).collect(),
            ..Route::default()
        };
        let info = Info { snd_cwnd: Some(20), unacked: Some(unacked), ..Info::default() };
        let at = || vec![socket(0, &info, Memory::default())];
        Snapshot { routes: Some(vec![route]), ..connected(&[], at(), at()) }
    }

    #[test]
    fn a_locked_window_that_a_connection_stands_at() {
        insta::assert_snapshot!(shown(
            &CHECK,
            &with(&[("cwnd", 20), ("mtu", 1400)], &["cwnd"], 20)
        ));
    }

    #[test]
    fn one_that_nobody_stands_at_is_a_warning_and_a_metric_without_lock_is_none() {
        let found = judged(&CHECK, &with(&[("cwnd", 20)], &["cwnd"], 19)).expect("seen");
        assert_eq!(found[0].severity, Severity::Warning);
        assert_eq!(judged(&CHECK, &with(&[("mtu", 1400)], &[], 20)), Ok(Vec::new()));
    }

    #[test]
    fn a_time_is_told_as_one_and_a_locked_mtu_as_perhaps_needed() {
        let found = |name, value| {
            judged(&CHECK, &with(&[(name, value)], &[name], 0)).expect("seen").remove(0)
        };
        let [timer, mtu] = [found("rto_min", 5_000_000), found("mtu", 1400)];
        assert!(timer.title.ends_with("locks rto_min 5.00 ms"), "{}", timer.title);
        let is_warned = |of: &Finding| of.fixes[0].risk.contains("lost there for good");
        assert!(is_warned(&mtu) && !is_warned(&timer));
    }

    #[test]
    fn a_peer_is_in_a_route_by_its_prefix() {
        let route =
            |to: [u8; 4], length| Route { to: Some((to.into(), length)), ..Route::default() };
        let peer = [10, 0, 0, 7].into();
        assert!(route([10, 0, 0, 0], 29).leads_to(peer));
        assert!(!route([10, 0, 0, 8], 29).leads_to(peer));
        assert!(Route::default().leads_to(peer));
        assert!(route([0, 0, 0, 0], 0).leads_to(peer));
    }

    #[test]
    fn without_routes_nothing_is_said() {
        assert_eq!(missing(&CHECK, &host(&[])).source, Source::Routes);
    }
}
