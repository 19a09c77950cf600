//! Timers of TCP are set shorter than its peers can answer, or give up too soon.
//!
//! # What it says
//! A retransmission timeout below the time for which peers delay their acknowledgments (40 to 200 ms) fires though
//! nothing is lost. A small `tcp_retries2` ends connections over a path that is gone for some seconds only.
//!
//! # How we know
//! `tcp_rto_min_us` or a route's `rto_min` is below 40 ms, or `tcp_retries2` below 8.
//!
//! # What it is not
//! Within a data centre whose hosts acknowledge at once a short timeout is right. To notice dead peers sooner a program
//! has `TCP_USER_TIMEOUT`: it need not concern all connections.
//!
//! # What to do
//! Set the defaults: 200 ms, and 15 repeats (about a quarter of an hour).
//!
//! # Sources
//! RFC 6298 section 2.4; RFC 1122 section 4.2.3.5 (at least 100 s; 8 repeats with timeouts of 200 ms and more); Linux
//! `TCP_RTO_MIN`, `TCP_ATO_MIN`, `tcp_rto_min`, `retransmits_timed_out` (v6.12).

use super::flows::time;
use super::{Check, counters, routes, words};
use crate::finding::{Confidence, Finding, Group, Scope, Severity};
use crate::seen::{Asked, Seen};
use crate::snapshot::Route;

pub(super) const CHECK: Check = Check {
    code: "TIMER_SETTINGS",
    file: include_str!("timer_settings.rs"),
    group: Group::Losses,
    judge,
};

const RTO_MIN: &str = "net.ipv4.tcp_rto_min_us";
const RETRIES: &str = "net.ipv4.tcp_retries2";
/// `TCP_ATO_MIN`, Linux v6.12 `include/net/tcp.h`: HZ/25, the shortest delay of an acknowledgment.
const SHORTEST_DELAY_NS: u64 = 40_000_000;

fn judge(seen: &Seen<'_>) -> Asked<Vec<Finding>> {
    let mut found = Vec::new();
    let (least, retries) = (seen.number(RTO_MIN), seen.number(RETRIES));
    if let Some(us) = least.clone().ok().flatten().and_then(|us| u64::try_from(us).ok())
        && us.saturating_mul(1000) < SHORTEST_DELAY_NS
    {
        found.push(Finding {
            scope: Scope::Netns,
            title: format!("retransmission timeouts may be as short as {}", time(us * 1000)),
            evidence: vec![words::setting(RTO_MIN, &us)],
            fixes: vec![words::set(
                seen,
                RTO_MIN,
                &200_000,
                "set the kernel's default of 200 ms",
                "for new connections",
                "",
            )],
            ..early(seen)
        });
    }
    for route in seen.snapshot.routes.iter().flatten() {
        let Some(least) = short_timeout(route) else { continue };
        found.push(Finding {
            scope: routes::scope(route),
            title: format!("{} allows timeouts as short as {}", routes::named(route), time(least)),
            evidence: vec![routes::evidence(route)],
            fixes: vec![routes::leave_out(route, &["rto_min"])],
            ..early(seen)
        });
    }
    if let Some(retries) = retries.clone().ok().flatten().filter(|retries| *retries < 8) {
        found.push(Finding {
            severity: Severity::Info,
            confidence: Confidence::High,
            scope: Scope::Netns,
            title: format!("connections are given up after {retries} repeats"),
            why: "less than the 100 s that hosts shall hold out: a path that is gone for some seconds ends all \
                  connections over it."
                .to_owned(),
            not: "not that it is a mistake: some clusters want to fail fast".to_owned(),
            evidence: vec![words::setting(RETRIES, &retries)],
            fixes: vec![words::set(
                seen,
                RETRIES,
                &15,
                "set the kernel's default, and TCP_USER_TIMEOUT in programs that want to know sooner",
                words::AT_ONCE,
                "dead peers are noticed later",
            )],
            ..Finding::default()
        });
    }
    // The key of the first came with Linux 6.11.
    let needed =
        if seen.is_kernel_from(6, 11) == Some(false) { retries } else { retries.and(least) };
    if found.is_empty() { needed.map(|_| found) } else { Ok(found) }
}

/// The least timeout of a route, where peers may delay their acknowledgments for longer.
pub(super) fn short_timeout(route: &Route) -> Option<u64> {
    route.metrics.get("rto_min").copied().filter(|ns| *ns < SHORTEST_DELAY_NS)
}

/// Worse where timeouts proved needless between the looks.
fn early(seen: &Seen<'_>) -> Finding {
    let needless = counters::grew(seen, counters::TCP_EXT, "TCPSpuriousRTOs").ok().flatten();
    let now = needless.is_some_and(|needless| !needless.since_start);
    let told = if now { "; between the looks some proved needless" } else { "" };
    Finding {
        severity: if now { Severity::Warning } else { Severity::Info },
        confidence: Confidence::Medium,
        why: format!(
            "peers may delay an acknowledgment by 40 to 200 ms, and are taken for silent then{told}."
        ),
        not: "not where all peers acknowledge at once, as within some data centres".to_owned(),
        ..Finding::default()
    }
}

#[cfg(test)]
mod tests {
    use super::super::sample::{counted, host, judged, missing, shown};
    use super::*;
    use crate::snapshot::{Snapshot, Source};

    #[test]
    fn timeouts_shorter_than_delayed_acknowledgments() {
        let host = counted(host(&[(RTO_MIN, "5000")]), "TcpExt", "TCPSpuriousRTOs", [0, 3]);
        insta::assert_snapshot!(shown(&CHECK, &host));
    }

    #[test]
    fn a_route_may_set_them_too() {
        let route = Route {
            line: "10.0.0.0/24 dev eth0 rto_min 5ms".to_owned(),
            to: Some(([10, 0, 0, 0].into(), 24)),
            metrics: [("rto_min".to_owned(), 5_000_000)].into(),
            ..Route::default()
        };
        insta::assert_snapshot!(shown(
            &CHECK,
            &Snapshot { routes: Some(vec![route]), ..host(&[]) }
        ));
    }

    #[test]
    fn each_setting_is_judged_without_the_other_and_none_is_missed_that_the_kernel_lacks() {
        let pasted = |value: &str, kernel: &str| {
            let mut some = host(&[(RETRIES, value)]);
            some.settings.as_mut().expect("settings").complete = false;
            Snapshot { kernel: Some(kernel.to_owned()), ..some }
        };
        assert_eq!(judged(&CHECK, &pasted("5", "6.12.1")).expect("seen").len(), 1);
        assert_eq!(judged(&CHECK, &pasted("15", "5.10.0-30-amd64")), Ok(Vec::new()));
        assert_eq!(missing(&CHECK, &pasted("15", "6.12.1")).of.as_deref(), Some(RTO_MIN));
    }

    #[test]
    fn borders() {
        let number = |key, value| judged(&CHECK, &host(&[(key, value)])).expect("seen").len();
        assert_eq!([number(RTO_MIN, "39999"), number(RTO_MIN, "40000")], [1, 0]);
        assert_eq!([number(RETRIES, "7"), number(RETRIES, "8")], [1, 0]);
        let none = Snapshot { settings: None, ..host(&[]) };
        assert_eq!(missing(&CHECK, &none).source, Source::Settings);
    }
}
