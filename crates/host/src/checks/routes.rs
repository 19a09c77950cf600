//! Routes with metrics, and how to set one without a metric.

use crate::finding::{Change, Evidence, Fix, Scope};
use crate::seen::{Asked, Missing, Seen};
use crate::snapshot::{Route, Source};
use tcpwhy_words::said;

/// Routes that lead anywhere.
///
/// # Errors
/// They were not seen.
pub(super) fn all<'a>(seen: &Seen<'a>) -> Asked<impl Iterator<Item = &'a Route>> {
    let routes = seen.snapshot.routes.as_ref().ok_or(Missing::all(Source::Routes))?;
    Ok(routes.iter())
}

/// Where it can be read again.
pub(super) fn evidence(route: &Route) -> Evidence {
    let family = if route.ipv6 { "-6 " } else { "" };
    Evidence::new(format!("ip {family}route show table {}", route.table), route.line.clone())
}

/// `the default route`, `the route to 10.0.0.0/24`.
pub(super) fn named(route: &Route) -> String {
    route.to.map_or_else(
        || "the default route".to_owned(),
        |(to, length)| format!("the route to {to}/{length}"),
    )
}

pub(super) fn scope(route: &Route) -> Scope {
    let to = |(to, length)| format!("{to}/{length}");
    Scope::Peer(route.to.map_or_else(|| "default".to_owned(), to))
}

/// The same route without some metrics.
fn without(route: &Route, metrics: &[&str]) -> Option<Change> {
    let to = route.line_without(metrics)?;
    let is_changed = to != route.line;
    is_changed.then(|| Change::Route { from: route.line.clone(), to, ipv6: route.ipv6 })
}

/// A fix that leaves these metrics out. Other findings of the route may ask for more: the script makes one change
/// of them.
pub(super) fn leave_out(route: &Route, metrics: &[&str]) -> Fix {
    let names: Vec<String> = metrics.iter().map(|metric| (*metric).to_owned()).collect();
    Fix {
        what: format!("leave {} out of the route", said::listed(&names)),
        risk: "the route belongs to whoever set it: change it there, too".to_owned(),
        set: without(route, metrics),
        applies: "for new connections".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::super::sample::{host, judged};
    use super::super::{initial_windows_of_routes, locked_route_metrics, timer_settings};
    use super::*;
    use crate::script::scripts;
    use crate::snapshot::Snapshot;

    #[test]
    fn each_finding_of_a_route_leaves_out_what_it_is_about() {
        let route = Route {
            line: "10.0.0.0/24 dev eth0 mtu lock 1400 initcwnd 4 rto_min 5ms".to_owned(),
            metrics: [("mtu", 1400), ("initcwnd", 4), ("rto_min", 5_000_000)]
                .map(|(name, value)| (name.to_owned(), value))
                .into(),
            locked: vec!["mtu".to_owned()],
            ..Route::default()
        };
        let host = Snapshot { routes: Some(vec![route]), ..host(&[]) };
        let asked = [
            (locked_route_metrics::CHECK, "10.0.0.0/24 dev eth0 initcwnd 4 rto_min 5ms"),
            (initial_windows_of_routes::CHECK, "10.0.0.0/24 dev eth0 mtu lock 1400 rto_min 5ms"),
            (timer_settings::CHECK, "10.0.0.0/24 dev eth0 mtu lock 1400 initcwnd 4"),
        ];
        let mut all = Vec::new();
        for (check, wanted) in &asked {
            let found = judged(check, &host).expect("seen").remove(0);
            let Some(Change::Route { to, .. }) = &found.fixes[0].set else {
                panic!("{} changes no route", check.code);
            };
            assert_eq!(to, wanted, "{}", check.code);
            all.push(found);
        }
        // Of one severity they are left out in one step; what is merely worth knowing stays.
        let fix = scripts(&host, &all).expect("something to set").fix;
        assert!(fix.contains("'ip route replace 10.0.0.0/24 dev eth0 rto_min 5ms'"), "{fix}");
    }

    #[test]
    fn a_metric_is_left_out_with_its_lock_and_nothing_else() {
        let line = "default via 10.0.0.1 dev eth0 mtu lock 1400 initcwnd 4";
        let route = Route { line: line.to_owned(), ..Route::default() };
        let to = |metric| match without(&route, &[metric]) {
            Some(Change::Route { to, .. }) => Some(to),
            _ => None,
        };
        assert_eq!(to("mtu").as_deref(), Some("default via 10.0.0.1 dev eth0 initcwnd 4"));
        assert_eq!(to("initcwnd").as_deref(), Some("default via 10.0.0.1 dev eth0 mtu lock 1400"));
        assert_eq!(to("cwnd"), None);
    }
}
