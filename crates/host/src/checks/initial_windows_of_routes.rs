//! A route changes how much connections send or admit in their first round trip.
//!
//! # What it says
//! Connections begin with ten segments, and admit about 64 KiB. `initcwnd` and `initrwnd` of a route change
//! that for all connections over it. Less makes each short transfer wait for more round trips; much more is
//! a burst that a short queue on the way drops.
//!
//! # How we know
//! A route has `initcwnd` below 10 or above 64, or an `initrwnd` that admits less than 64 KiB.
//!
//! # What it is not
//! Ten is Linux's default since 2.6.39; what textbooks say of one segment is older. `initcwnd 10 10000`, as an article
//! has it, is an error for ip(8): `initcwnd 10 ssthresh 10000` is meant.
//!
//! # What to do
//! Leave out what is below the default. Above it, see whether the first round trip of new connections loses
//! packets; 20 to 32 are common where round trips are long. What a client admits bounds it, about 64 KiB.
//!
//! # Sources
//! RFC 6928; ip-route(8); Linux `tcp_init_cwnd`, `tcp_select_initial_window` (v6.12). 64 segments: ours, not
//! measured.

use super::{Check, routes};
use crate::finding::{Confidence, Finding, Group, Severity};
use crate::seen::{Asked, Seen};
use crate::snapshot::Route;
use tcpwhy_words::said::listed;

pub(super) const CHECK: Check = Check {
    code: "INITIAL_WINDOWS_OF_ROUTES",
    file: include_str!("initial_windows_of_routes.rs"),
    group: Group::Sending,
    judge,
};

/// `TCP_INIT_CWND`, Linux v6.12 `include/net/tcp.h`.
const DEFAULT: u64 = 10;
const MANY: u64 = 64;
/// What a receiver admits at first: `tcp_select_initial_window` rounds 64 KiB down to segments.
const ADMITTED: u64 = 64_240;
const MSS: u64 = 1460;

fn judge(seen: &Seen<'_>) -> Asked<Vec<Finding>> {
    Ok(routes::all(seen)?.filter_map(of_route).collect())
}

/// One finding a route: a fix replaces all of it.
fn of_route(route: &Route) -> Option<Finding> {
    let odd: Vec<(&str, String, &str)> =
        [sent(route), admitted(route)].into_iter().flatten().collect();
    if odd.is_empty() {
        return None;
    }
    let metrics: Vec<&str> = odd.iter().map(|(metric, ..)| *metric).collect();
    let does: Vec<String> = odd.iter().map(|(_, does, _)| does.clone()).collect();
    let why: Vec<&str> = odd.iter().map(|(_, _, why)| *why).collect();
    Some(Finding {
        severity: Severity::Warning,
        confidence: Confidence::High,
        scope: routes::scope(route),
        title: format!("{} has connections {}", routes::named(route), listed(&does)),
        why: format!("{}.", why.join("; ")),
        not:
            "not that a transfer here was slow for it: long ones hardly feel their first round trip"
                .to_owned(),
        evidence: vec![routes::evidence(route)],
        fixes: vec![routes::leave_out(route, &metrics)],
        ..Finding::default()
    })
}

fn sent(route: &Route) -> Option<(&'static str, String, &'static str)> {
    let segments = *route.metrics.get("initcwnd")?;
    let why = if segments < DEFAULT {
        "less than the default of 10: each short transfer over it waits for more round trips than it must"
    } else if segments > MANY {
        "a burst of that size at the start of each connection: a short queue on the way drops part of it, \
         and repairing that costs more than the round trips saved"
    } else {
        return None;
    };
    Some(("initcwnd", format!("begin with {segments} segments"), why))
}

fn admitted(route: &Route) -> Option<(&'static str, String, &'static str)> {
    let segments = *route.metrics.get("initrwnd")?;
    let why = "less than the 64 KiB that the kernel admits at first: a peer with a larger first burst waits";
    let does = format!("admit {segments} segments in their first round trip");
    (segments.saturating_mul(MSS) < ADMITTED).then_some(("initrwnd", does, why))
}

#[cfg(test)]
mod tests {
    use super::super::sample::{host, judged, missing, shown};
    use super::*;
    use crate::snapshot::{Snapshot, Source};

    fn with(metric: &str, value: u64) -> Snapshot {
        let route = Route {
            line: format!("default via 10.0.0.1 dev eth0 {metric} {value}"),
            table: 254,
            metrics: [(metric.to_owned(), value)].into(),
            ..Route::default()
        };
        Snapshot { routes: Some(vec![route]), ..host(&[]) }
    }

    #[test]
    fn a_small_first_burst() {
        insta::assert_snapshot!(shown(&CHECK, &with("initcwnd", 2)));
    }

    #[test]
    fn a_small_first_window() {
        insta::assert_snapshot!(shown(&CHECK, &with("initrwnd", 10)));
    }

    #[test]
    fn from_the_default_to_sixty_four_all_is_well() {
        let number = |metric, value| judged(&CHECK, &with(metric, value)).expect("seen").len();
        assert_eq!([9, 10, 64, 65].map(|value| number("initcwnd", value)), [1, 0, 0, 1]);
        assert_eq!([43, 44].map(|value| number("initrwnd", value)), [1, 0]);
    }

    #[test]
    fn of_a_full_table_of_routes_twenty_are_listed_and_the_rest_counted() {
        let of = |number: usize| {
            let one = with("initcwnd", 2);
            let route = one.routes.as_ref().and_then(|routes| routes.first().cloned());
            Snapshot { routes: Some(vec![route.expect("a route"); number]), ..one }
        };
        let found = |number| {
            let judged = super::super::judge(&of(number));
            judged.findings.into_iter().filter(|found| found.code == CHECK.code).collect::<Vec<_>>()
        };
        assert_eq!(found(20).len(), 20);
        assert!(!found(20)[19].title.contains("more like it"), "{}", found(20)[19].title);
        assert_eq!(found(40_000).len(), 20);
        assert!(
            found(40_000)[19].title.contains("and 39980 more like it"),
            "{}",
            found(40_000)[19].title
        );
    }

    #[test]
    fn without_routes_nothing_is_said() {
        assert_eq!(missing(&CHECK, &host(&[])).source, Source::Routes);
    }
}
