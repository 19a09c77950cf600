//! Packets were dropped because they came in where the kernel would not send the answer.
//!
//! # What it says
//! With `rp_filter=1` the kernel drops a packet whose source it would reach through another interface; with 2, one
//! whose source it cannot reach at all. On a host with several ways out honest packets are lost so,
//! and connections over one of the ways hang.
//!
//! # How we know
//! `IPReversePathFilter` grew. What counts for an interface is the larger of `conf.all.rp_filter` and its own. One that
//! received nothing between the looks is left out; those that no default route leaves by come first.
//!
//! # What it is not
//! Not that the packets were honest: dropping forged ones is what the filter is for. The counter does not say which
//! interface they came through.
//!
//! # What to do
//! Best: give the packets a way back, by a rule for each source address. Else set the interface to 2 (loose): its
//! own 2 wins over the 1 of `all`, while its own 0 does not.
//!
//! # Sources
//! Linux `fib_validate_source`, `IN_DEV_RPFILTER` (the larger of both), `ip_rcv_finish_core` (v6.12); RFC 3704.

use std::collections::BTreeSet;

use super::devices::{self, Device};
use super::{Check, words};
use crate::finding::{Confidence, Evidence, Finding, Fix, Group, Scope};
use crate::seen::{Asked, Seen};
use crate::snapshot::Link;

pub(super) const CHECK: Check = Check {
    code: "REVERSE_PATH_FILTER",
    file: include_str!("reverse_path_filter.rs"),
    group: Group::Routing,
    judge,
};

const NAME: &str = "IPReversePathFilter";

fn judge(seen: &Seen<'_>) -> Asked<Vec<Finding>> {
    let Some(grown) = seen.growth("TcpExt", NAME)?.filter(|growth| growth.by > 0) else {
        return Ok(Vec::new());
    };
    let strict = interfaces(seen, 1);
    let loose = interfaces(seen, 2);
    let ways = default_ways(seen).map(|ways| ways.len());
    let mut evidence = vec![words::counter("TcpExt", NAME, grown)];
    let told = strict.iter().chain(&loose).take(words::WORST);
    evidence.extend(told.map(|(dev, value)| {
        Evidence::new(
            format!("rp_filter of {dev}, the larger of its own and that of all"),
            value.to_string(),
        )
    }));
    evidence.extend(ways.map(|ways| {
        Evidence::new(
            "ip route show table all; ip rule",
            format!("interfaces with a default route: {ways}"),
        )
    }));
    let is_split = ways.is_some_and(|ways| ways > 1);
    let devs: Vec<&str> = strict.iter().map(|(dev, _)| dev.as_str()).collect();
    let why = if strict.is_empty() && loose.is_empty() {
        "a filter looks whether the answer to a packet would leave by the interface that it came in by; how \
         strict it is where these came in was not seen."
            .to_owned()
    } else if strict.is_empty() {
        "the filter is loose: the kernel has no route at all to where these packets came from."
            .to_owned()
    } else {
        format!(
            "on {} a packet is dropped if its answer would leave by another interface; a connection that comes in \
             that way hangs in its handshake.",
            words::named(&devs)
        )
    };
    Ok(vec![Finding {
        severity: words::of_drops(grown),
        confidence: match words::sure(grown) {
            Confidence::High if !is_split || seen.links().is_err() => Confidence::Medium,
            sure => sure,
        },
        scope: Scope::Netns,
        title: format!("packets were dropped by the reverse path filter: {}", words::grown(grown)),
        why,
        not: "not that they were honest: forged ones are dropped so, too, and the counter names no interface".to_owned(),
        evidence,
        fixes: fixes(seen, &strict),
        unseen: [("routes", seen.snapshot.routes.is_none()), ("links", seen.links().is_err())]
            .into_iter()
            .filter(|(_, is_unseen)| *is_unseen)
            .map(|(what, _)| what.to_owned())
            .collect(),
        ..Finding::default()
    }
    .all_together()])
}

/// Interfaces that can carry something and whose filter is `mode`, with that mode; loopback is never filtered.
/// First those that no default route leaves by: few answers do.
fn interfaces(seen: &Seen<'_>, mode: i64) -> Vec<(String, i64)> {
    let all = seen.number("net.ipv4.conf.all.rp_filter").ok().flatten().unwrap_or(0);
    let Ok(links) = seen.links() else { return of_settings(seen, all, mode) };
    let has_address = |link: &Link| link.addresses.iter().any(|(address, _)| address.is_ipv4());
    let are_seen = links.iter().any(has_address);
    let devices = devices::devices(seen).unwrap_or_default();
    let silent: Vec<&str> = devices
        .iter()
        .filter(|device| device.counted(&["rx_packets"]).is_some_and(|came| came.by == 0))
        .map(Device::name)
        .collect();
    let ways = default_ways(seen).unwrap_or_default();
    let mut found: Vec<_> = links
        .iter()
        .filter(|link| link.up && !link.loopback && link.master.is_none())
        // What has no address of IPv4 is rarely the way of a connection.
        .filter(|link| !are_seen || has_address(link))
        .filter(|link| !silent.contains(&link.name.as_str()))
        .filter_map(|link| {
            let own = seen.number(&key(&link.name)).ok().flatten()?;
            (own.max(all) == mode).then(|| (link.name.clone(), mode))
        })
        .collect();
    found.sort_by_key(|(dev, _)| ways.contains(dev.as_str()));
    found
}

/// Where no interfaces were seen, those that have a setting.
fn of_settings(seen: &Seen<'_>, all: i64, mode: i64) -> Vec<(String, i64)> {
    let settings = seen.snapshot.settings.iter().flat_map(|settings| settings.values.keys());
    let names = settings.filter_map(|key| {
        let name = key.strip_prefix("net.ipv4.conf.")?.strip_suffix(".rp_filter")?;
        // The first two stand for others.
        (!["all", "default", "lo"].contains(&name)).then(|| name.replace('/', "."))
    });
    let counts = |dev: &String| seen.number(&key(dev)).ok().flatten().map(|own| own.max(all));
    names.filter(|dev| counts(dev) == Some(mode)).map(|dev| (dev, mode)).collect()
}

/// sysctl(8) writes the dot of a VLAN's name as a slash.
fn key(dev: &str) -> String {
    format!("net.ipv4.conf.{}.rp_filter", dev.replace('.', "/"))
}

/// Interfaces with a default route of IPv4, in any table.
fn default_ways<'a>(seen: &Seen<'a>) -> Option<BTreeSet<&'a str>> {
    let routes = seen.snapshot.routes.as_ref()?.iter();
    let default = routes.filter(|route| route.to.is_none() && !route.ipv6);
    Some(default.filter_map(|route| route.dev.as_deref()).collect())
}

fn fixes(seen: &Seen<'_>, strict: &[(String, i64)]) -> Vec<Fix> {
    let mut fixes = vec![words::advise(
        "see whose they are: sysctl -w net.ipv4.conf.all.log_martians=1 for some minutes, then dmesg",
        "",
    )];
    fixes.push(words::advise(
        if strict.is_empty() {
            "give the kernel a route to where they come from"
        } else {
            "if they are honest, give them a way back: a rule and a table for each source address (ip rule add from ADDRESS)"
        },
        "",
    ));
    fixes.extend(strict.iter().take(words::WORST).map(|(dev, _)| {
        words::set(
            seen,
            &key(dev),
            &2,
            format!("make the filter of {dev} loose: the 2 of an interface wins over the 1 of all"),
            words::AT_ONCE,
            "forged source addresses that have some route pass; audits such as Lynis ask for 1",
        )
    }));
    fixes
}

#[cfg(test)]
mod tests {
    use super::super::parts::{each_look, link};
    use super::super::sample::{counted, host, judged, missing, once, shown};
    use super::*;
    use crate::finding::{Change, Severity};
    use crate::snapshot::{LinkCounters, Route, Snapshot, Source};

    /// Packets come in by both interfaces.
    fn filtered(all: &str, own: &str, from_to: [i64; 2]) -> Snapshot {
        let settings = [
            ("net.ipv4.conf.all.rp_filter", all),
            ("net.ipv4.conf.eth0.rp_filter", own),
            ("net.ipv4.conf.eth1/7.rp_filter", own),
        ];
        let mut host = each_look(host(&settings), |nth, look| {
            look.links = Some(["eth0", "eth1.7"].map(|name| received(name, 100 * nth)).into());
        });
        let way = |dev: &str| Route { dev: Some(dev.to_owned()), ..Route::default() };
        host.routes = Some(vec![way("eth0"), way("eth1.7")]);
        counted(host, "TcpExt", NAME, from_to)
    }

    fn received(name: &str, rx_packets: u64) -> Link {
        let counters = LinkCounters { rx_packets, ..LinkCounters::default() };
        Link { counters: Some(counters), ..link(name) }
    }

    #[test]
    fn the_interface_that_is_no_way_out_comes_first_and_one_that_received_nothing_is_left_out() {
        let first = |host: &Snapshot| match &judged(&CHECK, host).expect("seen")[0].fixes[2].set {
            Some(Change::Sysctl { key, .. }) => key.clone(),
            other => panic!("{other:?}"),
        };
        let mut host = filtered("1", "0", [3, 50]);
        host.routes.as_mut().expect("seen").truncate(1);
        assert_eq!(first(&host), "net.ipv4.conf.eth1/7.rp_filter");
        host.looks[1].links.as_mut().expect("seen")[1] = received("eth1.7", 0);
        assert_eq!(first(&host), "net.ipv4.conf.eth0.rp_filter");
    }

    #[test]
    fn drops_with_two_ways_out_are_an_error_and_all_counts_for_each() {
        insta::assert_snapshot!(shown(&CHECK, &filtered("1", "0", [3, 50])));
    }

    #[test]
    fn interfaces_that_were_not_seen_are_those_with_a_setting() {
        let host = each_look(filtered("1", "0", [3, 50]), |_, look| look.links = None);
        let found = judged(&CHECK, &host).expect("seen");
        assert!(found[0].why.contains("eth0 and eth1.7"), "{}", found[0].why);
        assert!(found[0].confidence != Confidence::High, "they may be down");
        assert!(found[0].unseen.contains(&"links".to_owned()), "{:?}", found[0].unseen);
        let host = each_look(filtered("0", "0", [3, 50]), |_, look| look.links = None);
        let found = judged(&CHECK, &host).expect("seen");
        assert!(found[0].why.contains("was not seen"), "{}", found[0].why);
    }

    #[test]
    fn a_loose_filter_that_drops_has_no_route_back() {
        let found = judged(&CHECK, &filtered("1", "2", [3, 50])).expect("seen");
        assert!(found[0].why.contains("no route"), "{}", found[0].why);
        assert!(found[0].fixes.iter().all(|fix| fix.set.is_none()));
    }

    #[test]
    fn drops_of_before_are_nothing_and_one_look_is_unsure() {
        assert_eq!(judged(&CHECK, &filtered("1", "0", [50, 50])), Ok(Vec::new()));
        let found = judged(&CHECK, &once(filtered("1", "0", [50, 50]))).expect("seen");
        assert_eq!((found[0].severity, found[0].confidence), (Severity::Warning, Confidence::Low));
    }

    #[test]
    fn without_counters_nothing_is_said() {
        assert_eq!(missing(&CHECK, &host(&[])).source, Source::Counters);
    }
}
