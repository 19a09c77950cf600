//! Packets found no route.
//!
//! # What it says
//! A packet to a network that no route knows, or that a route forbids, is not sent; one that came in and cannot go on is dropped.
//!
//! # How we know
//! `OutNoRoutes` or `InNoRoutes` grew by more than one a second.
//!
//! # What it is not
//! Not which packets: programs that try IPv6 where there is none, or a broadcast that nobody wants, count too.
//!
//! # What to do
//! Look at the routes, and for a program that reports "No route to host" or "Network is unreachable".
//!
//! # Sources
//! Linux `ip_route_output_key_hash_rcu`, `ip_error` (v6.12, `net/ipv4/route.c`); RFC 4293. One a second: ours, not measured.

use super::{Check, words};
use crate::finding::{Evidence, Finding, Group, Scope, Severity};
use crate::seen::{Asked, Growth, Missing, Seen};
use crate::snapshot::Source;

pub(super) const CHECK: Check =
    Check { code: "NO_ROUTE", file: include_str!("no_route.rs"), group: Group::Routing, judge };

const COUNTERS: [(&str, &str); 3] =
    [("Ip", "OutNoRoutes"), ("Ip6", "OutNoRoutes"), ("IpExt", "InNoRoutes")];

fn judge(seen: &Seen<'_>) -> Asked<Vec<Finding>> {
    let mut hit: Vec<(&str, &str, Growth)> = Vec::new();
    for (group, name) in COUNTERS {
        // A host without IPv6 has no such group.
        let growth = if group == "Ip6" {
            seen.growth(group, name).ok().flatten()
        } else {
            seen.growth(group, name)?
        };
        if let Some(growth) = growth {
            hit.push((group, name, growth));
        }
    }
    seen.before.ok_or(Missing::all(Source::SecondLook))?;
    hit.retain(|(.., growth)| growth.per_second() > 1.0);
    if hit.is_empty() {
        return Ok(Vec::new());
    }
    let leaves = hit.iter().any(|(_, name, _)| *name == "OutNoRoutes");
    let mut evidence: Vec<Evidence> =
        hit.iter().map(|(group, name, growth)| words::counter(group, name, *growth)).collect();
    let defaults = seen.snapshot.routes.as_ref().map(|routes| {
        routes.iter().filter(|route| route.to.is_none() && route.kind == "unicast").count()
    });
    evidence.extend(defaults.map(|count| {
        Evidence::new("ip route show table all default", format!("{count} default routes"))
    }));
    Ok(vec![Finding {
        severity: if leaves { Severity::Warning } else { Severity::Info },
        confidence: words::sure(hit[0].2),
        scope: Scope::Netns,
        title: if leaves {
            "packets could not be sent for want of a route".to_owned()
        } else {
            "packets came in that could not go on for want of a route".to_owned()
        },
        why: match defaults {
            Some(0) => "there is no default route: whatever is not on a network of this host is out of reach.".to_owned(),
            _ if leaves => "a connection to such a place fails at once; a program may try another address after it.".to_owned(),
            _ => "they are dropped; if they belong to a connection, it hangs.".to_owned(),
        },
        not: "not which packets: programs that try IPv6 where there is none count, too".to_owned(),
        evidence,
        fixes: vec![words::advise("see what `ip route get ADDRESS` says for the addresses in question", "")],
        ..Finding::default()
    }])
}

#[cfg(test)]
mod tests {
    use super::super::sample::{counted, host, judged, missing, once, shown};
    use super::*;
    use crate::snapshot::{Route, Snapshot};

    fn lost(out: i64, inwards: i64) -> Snapshot {
        let host = counted(host(&[]), "Ip", "OutNoRoutes", [3, 3 + out]);
        let mut host = counted(host, "IpExt", "InNoRoutes", [3, 3 + inwards]);
        host.routes = Some(vec![Route { kind: "blackhole".to_owned(), ..Route::default() }]);
        host
    }

    #[test]
    fn packets_without_a_way_out_are_told() {
        insta::assert_snapshot!(shown(&CHECK, &lost(40, 0)));
    }

    #[test]
    fn one_a_second_is_nothing_and_what_came_in_is_only_told() {
        assert_eq!(judged(&CHECK, &lost(10, 10)), Ok(Vec::new()));
        assert_eq!(judged(&CHECK, &lost(11, 0)).expect("seen")[0].severity, Severity::Warning);
        assert_eq!(judged(&CHECK, &lost(0, 11)).expect("seen")[0].severity, Severity::Info);
    }

    #[test]
    fn without_counters_or_a_second_look_nothing_is_said() {
        assert_eq!(missing(&CHECK, &host(&[])).source, Source::Counters);
        assert_eq!(missing(&CHECK, &once(lost(40, 0))).source, Source::SecondLook);
    }
}
