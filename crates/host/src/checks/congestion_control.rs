//! Connections do not use the congestion control that was meant for them.
//!
//! # What it says
//! `net.ipv4.tcp_congestion_control` names the algorithm of new connections. `reno` there is mostly what was left
//! when another one's module could not be loaded: it needs very long to use a fast long path. Open connections
//! may use another one than the setting names, because a program, a route or their namespace chose it.
//!
//! # How we know
//! The setting is `reno`; or it names what `tcp_available_congestion_control` lacks; or at least a tenth of ten or
//! more connections use another one.
//!
//! # What it is not
//! Another algorithm than the default is no fault: programs choose one (`TCP_CONGESTION`), routes do
//! (`congctl`), and a connection keeps what the setting was when it opened.
//!
//! # What to do
//! Load the module (`tcp_cubic`, `tcp_bbr`) at the start of the host, and set the algorithm afterwards. A namespace
//! that is not the first may set only what `tcp_allowed_congestion_control` has; a new one begins with what the first is set to.
//!
//! # Sources
//! Linux `tcp_assign_congestion_control`, `tcp_set_default_congestion_control` (v6.12); RFC 9438 section 1 on Reno
//! over fast long paths. A tenth: ours, not measured.

use std::collections::BTreeMap;

use super::{Check, flows, words};
use crate::finding::{Confidence, Evidence, Finding, Fix, Group, Scope, Severity};
use crate::seen::{Asked, Seen};
use tcpwhy_words::said::count;

pub(super) const CHECK: Check = Check {
    code: "CONGESTION_CONTROL",
    file: include_str!("congestion_control.rs"),
    group: Group::Losses,
    judge,
};

const KEY: &str = "net.ipv4.tcp_congestion_control";
/// Of fewer connections a tenth is nothing to tell of. Ours.
const LEAST: usize = 10;
const ALLOWED: &str = "net.ipv4.tcp_allowed_congestion_control";
const AVAILABLE: &str = "net.ipv4.tcp_available_congestion_control";

fn judge(seen: &Seen<'_>) -> Asked<Vec<Finding>> {
    let Some(set) = seen.setting(KEY)? else { return Ok(Vec::new()) };
    let available = seen.setting(AVAILABLE).ok().flatten();
    let is_there = |name: &str| available.is_none_or(|all| all.split(' ').any(|each| each == name));
    if set == "reno" || !is_there(set) {
        return Ok(vec![of_setting(seen, set, available)]);
    }
    Ok(others(seen, set).into_iter().collect())
}

fn of_setting(seen: &Seen<'_>, set: &str, available: Option<&str>) -> Finding {
    let has_cubic = available.is_some_and(|all| all.split(' ').any(|each| each == "cubic"));
    let fix = if has_cubic && !may_set(seen, "cubic") {
        Fix {
            applies: "for new connections".to_owned(),
            ..words::advise(
                format!("have the host allow cubic ({ALLOWED}), then set it in this namespace"),
                "",
            )
        }
    } else if has_cubic {
        words::set(seen, KEY, &"cubic", "use cubic", "for new connections", "")
    } else {
        Fix {
            applies: "for new connections".to_owned(),
            ..words::advise("load tcp_cubic or tcp_bbr at the start of the host, then set it", "")
        }
    };
    let (title, why) = if set == "reno" {
        (
            "new connections use Reno".to_owned(),
            "after a loss it wins back one segment a round trip: 10 Gbit/s over 100 ms take more than an \
             hour.",
        )
    } else {
        (
            format!("{set} is set and not available"),
            "new connections use something else, or the module is loaded by nobody.",
        )
    };
    let available = available.map(|all| words::setting(AVAILABLE, &all));
    Finding {
        severity: Severity::Warning,
        confidence: Confidence::High,
        scope: Scope::Netns,
        title,
        why: why.to_owned(),
        not: "not that a transfer here was slow for it: short paths hardly feel it".to_owned(),
        evidence: core::iter::once(words::setting(KEY, &set)).chain(available).collect(),
        fixes: vec![fix],
        ..Finding::default()
    }
}

/// `tcp_set_default_congestion_control`: only the first namespace may set what is not allowed to all.
fn may_set(seen: &Seen<'_>, name: &str) -> bool {
    let allowed = seen.setting(ALLOWED).ok().flatten();
    seen.snapshot.initial_netns != Some(false)
        || allowed.is_none_or(|all| all.split(' ').any(|each| each == name))
}

fn others(seen: &Seen<'_>, set: &str) -> Option<Finding> {
    let known = flows::known(seen).ok()?;
    let mut used: BTreeMap<&str, usize> = BTreeMap::new();
    for controller in known.iter().filter_map(|(flow, _)| flow.now.congestion.as_deref()) {
        *used.entry(controller).or_default() += 1;
    }
    let all: usize = used.values().sum();
    let other: usize =
        used.iter().filter(|(name, _)| **name != set).map(|(_, number)| number).sum();
    if other == 0 || all < LEAST || other * 10 < all {
        return None;
    }
    let by_name: Vec<String> =
        used.iter().map(|(name, number)| format!("{name} {number}")).collect();
    Some(Finding {
        severity: Severity::Info,
        confidence: Confidence::High,
        scope: Scope::Netns,
        title: format!("{} of {all} {} not use {set}", count(other as u64, "connection"), if other == 1 { "does" } else { "do" }),
        why: "a program, a route or the setting of an earlier time chose another one: what is set here does \
              not concern them."
            .to_owned(),
        not: "not a fault: most who choose one do it on purpose".to_owned(),
        evidence: vec![words::setting(KEY, &set), Evidence::new("ss -ti", by_name.join(", "))],
        ..Finding::default()
    })
}

#[cfg(test)]
mod tests {
    use super::super::sample::{host, judged, missing, shown};
    use super::super::sample_flows::{connected, socket};
    use super::*;
    use crate::snapshot::{Info, Memory, Snapshot, Source};

    #[test]
    fn reno_where_cubic_is_there() {
        insta::assert_snapshot!(shown(&CHECK, &host(&[(KEY, "reno"), (AVAILABLE, "reno cubic")])));
    }

    #[test]
    fn a_namespace_sets_only_what_the_host_allows() {
        let sets = |initial_netns, allowed| {
            let host = host(&[(KEY, "reno"), (AVAILABLE, "reno cubic"), (ALLOWED, allowed)]);
            let host = Snapshot { initial_netns, ..host };
            judged(&CHECK, &host).expect("seen")[0].fixes[0].set.is_some()
        };
        assert!(sets(Some(true), "reno") && sets(Some(false), "reno cubic"));
        assert!(!sets(Some(false), "reno bbr"));
    }

    #[test]
    fn a_name_that_is_not_available_is_told_and_one_that_is_or_may_be_is_well() {
        let number =
            |set, all| judged(&CHECK, &host(&[(KEY, set), (AVAILABLE, all)])).expect("seen").len();
        assert_eq!([number("bbr", "reno cubic"), number("bbr", "reno bbr")], [1, 0]);
        assert_eq!(judged(&CHECK, &host(&[(KEY, "bbr")])), Ok(Vec::new()));
    }

    fn using(cubic: u16, bbr: u16) -> Snapshot {
        let at = |number, name: &str| {
            let mut socket = socket(number, &Info::default(), Memory::default());
            socket.congestion = Some(name.to_owned());
            socket
        };
        let all =
            || (0..cubic).map(|n| at(n, "cubic")).chain((0..bbr).map(|n| at(1000 + n, "bbr")));
        connected(&[(KEY, "cubic")], all().collect(), all().collect())
    }

    #[test]
    fn a_tenth_that_uses_another_one_is_the_border() {
        insta::assert_snapshot!(shown(&CHECK, &using(9, 1)));
        assert_eq!(judged(&CHECK, &using(10, 1)), Ok(Vec::new()));
        assert_eq!(judged(&CHECK, &using(0, 9)), Ok(Vec::new()));
    }

    #[test]
    fn without_settings_nothing_is_said() {
        let none = Snapshot { settings: None, ..host(&[]) };
        assert_eq!(missing(&CHECK, &none).source, Source::Settings);
    }
}
