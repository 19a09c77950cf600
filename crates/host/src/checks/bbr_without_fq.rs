//! Many connections use BBR, and their interface does not pace for them.
//!
//! # What it says
//! BBR sends at a pace. Since Linux 4.13 TCP paces by itself where the queueing discipline does not, with a timer for
//! each connection: for thousands of them `fq`, which paces in one place, takes less processor time.
//!
//! # How we know
//! At least 1,000 open connections use `bbr`, and an interface with addresses of theirs has no `fq`.
//!
//! # What it is not
//! "BBR needs fq" was true before 4.13. Now it works without, and for few connections nothing is gained.
//! `net.core.default_qdisc` says nothing of the disciplines that exist: it counts for those created later.
//!
//! # What to do
//! Replace the root by `fq`; on an interface with several queues set `net.core.default_qdisc=fq` and replace the root by
//! `mq`, which then has `fq` for each queue.
//!
//! # Sources
//! Linux `tcp_pacing_check`, `tcp_needs_internal_pacing`, commit 218af599fa63 (4.13). 1,000: ours, not measured.

use std::collections::BTreeSet;

use super::{Check, flows, words};
use crate::finding::{Confidence, Evidence, Finding, Group, Scope, Severity};
use crate::seen::{Asked, Missing, Seen};
use crate::snapshot::{Qdisc, Source};

pub(super) const CHECK: Check = Check {
    code: "BBR_WITHOUT_FQ",
    file: include_str!("bbr_without_fq.rs"),
    group: Group::Losses,
    judge,
};

const MANY: usize = 1000;

fn judge(seen: &Seen<'_>) -> Asked<Vec<Finding>> {
    let known = flows::known(seen)?;
    let paced = known.iter().filter(|(flow, _)| {
        flow.now.congestion.as_deref().is_some_and(|name| name.starts_with("bbr"))
    });
    let paced: Vec<_> = paced.map(|(flow, _)| *flow).collect();
    if paced.len() < MANY {
        return Ok(Vec::new());
    }
    let qdiscs = seen.qdiscs()?;
    let links = seen.links()?;
    let addresses: BTreeSet<_> =
        paced.iter().map(|flow| flow.now.local.ip().to_canonical()).collect();
    let devs = links
        .iter()
        .filter(|link| link.addresses.iter().any(|(address, _)| addresses.contains(address)))
        .map(|link| link.name.as_str());
    let without: Vec<&str> = devs
        .filter(|dev| {
            let mut kinds = qdiscs.iter().filter(|qdisc| qdisc.dev == *dev).peekable();
            kinds.peek().is_some() && !kinds.any(|qdisc| qdisc.kind == "fq")
        })
        .collect();
    if without.is_empty() {
        return if links.iter().all(|link| link.addresses.is_empty()) {
            Err(Missing::part(Source::Links, "addresses"))
        } else {
            Ok(Vec::new())
        };
    }
    Ok(vec![Finding {
        severity: Severity::Info,
        confidence: Confidence::Medium,
        scope: Scope::Netns,
        title: format!(
            "{} pace{} with BBR by timers of their own",
            flows::counted(seen, &paced),
            flows::verb_s(paced.len())
        ),
        why: format!(
            "the discipline fq would pace them in one place; {} has none.",
            without.join(", ")
        ),
        not: "not that they are slower for it: BBR works without fq since Linux 4.13".to_owned(),
        evidence: without.iter().map(|dev| kinds(dev, qdiscs)).collect(),
        fixes: vec![words::advise(
            "replace the root discipline by fq, or where it is mq set net.core.default_qdisc=fq and replace mq",
            "packets that wait in the old discipline are dropped",
        )],
        ..Finding::default()
    }])
}

fn kinds(dev: &str, qdiscs: &[Qdisc]) -> Evidence {
    let of_dev = qdiscs.iter().filter(|qdisc| qdisc.dev == dev);
    let mut kinds: Vec<_> = of_dev.map(|qdisc| qdisc.kind.as_str()).collect();
    kinds.dedup();
    Evidence::new(format!("tc qdisc show dev {dev}"), kinds.join(" "))
}

#[cfg(test)]
mod tests {
    use super::super::sample::{host, judged, missing, shown};
    use super::super::sample_flows::{connected, socket};
    use super::*;
    use crate::snapshot::{Info, Link, Memory, Snapshot};

    fn pacing(number: u16, kind: &str) -> Snapshot {
        let at = || {
            let each = (0..number).map(|number| {
                let mut socket = socket(number, &Info::default(), Memory::default());
                socket.congestion = Some("bbr".to_owned());
                socket
            });
            each.collect()
        };
        let mut host = connected(&[], at(), at());
        let dev = || "eth0".to_owned();
        let addresses = vec![([10, 0, 0, 1].into(), 24)];
        host.looks[1].links = Some(vec![Link { name: dev(), addresses, ..Link::default() }]);
        host.looks[1].qdiscs =
            Some(vec![Qdisc { dev: dev(), kind: kind.to_owned(), ..Qdisc::default() }]);
        host
    }

    #[test]
    fn a_thousand_connections_with_timers() {
        insta::assert_snapshot!(shown(&CHECK, &pacing(1000, "fq_codel")));
    }

    #[test]
    fn fewer_or_with_fq_all_is_well() {
        assert_eq!(judged(&CHECK, &pacing(999, "fq_codel")), Ok(Vec::new()));
        assert_eq!(judged(&CHECK, &pacing(1000, "fq")), Ok(Vec::new()));
    }

    #[test]
    fn without_sockets_or_disciplines_nothing_is_said() {
        assert_eq!(missing(&CHECK, &host(&[])).source, Source::Sockets);
        let mut host = pacing(1000, "fq");
        host.looks[1].qdiscs = None;
        assert_eq!(missing(&CHECK, &host).source, Source::Qdiscs);
    }
}
