//! Sockets counted by their state, where a count reaches a bound.
//!
//! # What it says
//! `ss -ant` counted by state is what people look at first. Most counts mean nothing by themselves. Four have a bound:
//! half-open connections fill the queue of SYNs, `TIME-WAIT` occupies ports of this host towards a peer,
//! `CLOSE-WAIT` ends only when the program closes, and `SYN-SENT` lasts one round trip where the peer answers.
//!
//! # How we know
//! `SYN-RECV` reaches `somaxconn`, which bounds the queue of each listener. `TIME-WAIT` reaches the number of ports in
//! `ip_local_port_range`, or `tcp_max_tw_buckets`. `CLOSE-WAIT` is more than `ESTAB`, or
//! `SYN-SENT` is: most connections last longer than their first round trip, so their SYNs go without an answer.
//!
//! # What it is not
//! Counts alone do not tell which end connected: `TIME-WAIT` of a server occupies no port of its own. A setting that was
//! not seen is no bound.
//!
//! # What to do
//! Look at the sockets themselves: `ss -tan state close-wait`, with `-p` for the program.
//!
//! # Sources
//! tcp(7); RFC 9293 sections 3.3.2 and 3.5; Linux `inet_csk_reqsk_queue_is_full`, `tcp_time_wait` (v6.1). A hundred
//! `CLOSE-WAIT` or `SYN-SENT`: ours, not measured.

use std::collections::BTreeMap;

use super::{Check, words};
use crate::finding::{Confidence, Evidence, Finding, Group, Scope, Severity};
use crate::seen::{Asked, Missing, Seen};
use crate::snapshot::Source;
use tcpwhy_words::said::grouped;

pub(super) const CHECK: Check = Check {
    code: "STATE_COUNTS",
    file: include_str!("state_counts.rs"),
    group: Group::Closing,
    judge,
};

/// Fewer are no leak that anybody would look for.
const MANY: u64 = 100;

fn judge(seen: &Seen<'_>) -> Asked<Vec<Finding>> {
    let states =
        seen.now.states.as_ref().ok_or(Missing::part(Source::Sockets, "counts by state"))?;
    let of = |name: &str| states.get(name).copied().unwrap_or(0);
    let found = [
        half_open(seen, of("SYN-RECV")),
        time_wait(seen, of("TIME-WAIT")),
        close_wait(states),
        unanswered(states),
    ];
    Ok(found
        .into_iter()
        .flatten()
        .map(|found| Finding { confidence: Confidence::Medium, scope: Scope::Netns, ..found })
        .collect())
}

fn counted(state: &str, count: u64) -> Evidence {
    Evidence::new("ss -ant, counted by state", format!("{} {state}", grouped(count)))
}

fn half_open(seen: &Seen<'_>, count: u64) -> Option<Finding> {
    let key = "net.core.somaxconn";
    let most = seen.number(key).ok()?.and_then(|most| u64::try_from(most).ok())?;
    (count >= most && most > 0).then(|| Finding {
        severity: Severity::Warning,
        title: format!(
            "{} connections are half-open, as many as a queue of SYNs may hold ({most})",
            grouped(count)
        ),
        why: "a listener whose queue is full drops SYNs or answers with cookies.".to_owned(),
        not: "not whose: several listeners may share them".to_owned(),
        evidence: vec![counted("SYN-RECV", count), words::setting(key, &most)],
        fixes: vec![words::advise(
            "see which listener: ss -tan state syn-recv, and nstat -az TcpExtTCPReqQFull*",
            "",
        )],
        ..Finding::default()
    })
}

fn time_wait(seen: &Seen<'_>, count: u64) -> Option<Finding> {
    let key = "net.ipv4.ip_local_port_range";
    let range = seen.numbers::<2>(key).ok().flatten();
    let ports = range.and_then(|[low, high]| u64::try_from(high - low + 1).ok());
    let buckets = "net.ipv4.tcp_max_tw_buckets";
    let most = seen.number(buckets).ok().flatten().and_then(|most| u64::try_from(most).ok());
    if let Some(most) = most.filter(|most| count >= *most) {
        return Some(Finding {
            severity: Severity::Warning,
            title: format!(
                "{} sockets are in TIME-WAIT, as many as may be ({most})",
                grouped(count)
            ),
            why: "further ones are dropped at once: a late segment may meet a new connection."
                .to_owned(),
            not: "not that a transfer is slow for it".to_owned(),
            evidence: vec![counted("TIME-WAIT", count), words::setting(buckets, &most)],
            ..Finding::default()
        });
    }
    let ports = ports.filter(|ports| count >= *ports)?;
    Some(Finding {
        severity: Severity::Info,
        title: format!(
            "{} sockets are in TIME-WAIT, and {} ports are there for connections to one peer",
            grouped(count),
            grouped(ports)
        ),
        why: "where this host connects to one address and port, each occupies a port for a minute."
            .to_owned(),
        not: "not which end connected: those of a server occupy no port of its own".to_owned(),
        evidence: vec![counted("TIME-WAIT", count), words::setting(key, &seen.setting(key).ok()??)],
        fixes: vec![words::advise("keep connections open and use them again", "")],
        ..Finding::default()
    })
}

fn close_wait(states: &BTreeMap<String, u64>) -> Option<Finding> {
    let (waiting, open) = (states.get("CLOSE-WAIT").copied()?, states.get("ESTAB").copied()?);
    (waiting >= MANY && waiting > open).then(|| Finding {
        severity: Severity::Warning,
        title: format!("{} sockets are in CLOSE-WAIT, more than are open ({})", grouped(waiting), grouped(open)),
        why: "the peer has closed, and a program of this host has not: nothing but its close() ends that state.".to_owned(),
        not: "not which program: ss -tanp state close-wait tells it".to_owned(),
        evidence: vec![counted("CLOSE-WAIT", waiting), counted("ESTAB", open)],
        fixes: vec![words::advise("let the program close its descriptors when a read returns 0", "")],
        ..Finding::default()
    })
}

/// By Little's law as many connections are in `SYN-SENT` as are begun in the time until the answer.
fn unanswered(states: &BTreeMap<String, u64>) -> Option<Finding> {
    let (asking, open) = (states.get("SYN-SENT").copied()?, states.get("ESTAB").copied()?);
    (asking >= MANY && asking > open).then(|| Finding {
        severity: Severity::Warning,
        title: format!("{} connections wait for an answer to their SYN, more than are open ({})", grouped(asking), grouped(open)),
        why: "an answer takes one round trip: sockets pile up where none comes, and each SYN is retransmitted after a second.".to_owned(),
        not: "not whose: a scanner or a load generator makes as many on purpose".to_owned(),
        evidence: vec![counted("SYN-SENT", asking), counted("ESTAB", open)],
        fixes: vec![words::advise("see to whom: ss -tanp state syn-sent; then whether that host is up and a firewall lets SYNs pass", "")],
        ..Finding::default()
    })
}

#[cfg(test)]
mod tests {
    use super::super::sample::{host, judged, missing, once, shown};
    use super::*;
    use crate::snapshot::Snapshot;

    fn counts(settings: &[(&str, &str)], all: &[(&str, u64)]) -> Snapshot {
        let mut host = once(host(settings));
        let all = all.iter().map(|(name, count)| ((*name).to_owned(), *count)).collect();
        host.looks[0].states = Some(all);
        host
    }

    #[test]
    fn a_program_that_does_not_close_is_told() {
        let leaking = counts(&[], &[("CLOSE-WAIT", 4_100), ("ESTAB", 37)]);
        insta::assert_snapshot!(shown(&CHECK, &leaking));
    }

    #[test]
    fn each_bound_is_one_and_below_it_nothing_is_said() {
        let titles = |settings: &[(&str, &str)], all: &[(&str, u64)]| {
            judged(&CHECK, &counts(settings, all)).expect("seen").len()
        };
        let somaxconn = [("net.core.somaxconn", "128")];
        assert_eq!(titles(&somaxconn, &[("SYN-RECV", 128)]), 1);
        assert_eq!(titles(&somaxconn, &[("SYN-RECV", 127)]), 0);
        let range = [("net.ipv4.ip_local_port_range", "32768 60999")];
        assert_eq!(titles(&range, &[("TIME-WAIT", 28_232)]), 1);
        assert_eq!(titles(&range, &[("TIME-WAIT", 28_231)]), 0);
        assert_eq!(titles(&[], &[("TIME-WAIT", 400_000), ("SYN-RECV", 9_000)]), 0);
        assert_eq!(titles(&[], &[("CLOSE-WAIT", 99), ("ESTAB", 1)]), 0);
        assert_eq!(titles(&[], &[("CLOSE-WAIT", 400), ("ESTAB", 400)]), 0);
        assert_eq!(titles(&[], &[("SYN-SENT", 100), ("ESTAB", 99)]), 1);
        assert_eq!(titles(&[], &[("SYN-SENT", 100), ("ESTAB", 100)]), 0);
        assert_eq!(titles(&[], &[("SYN-SENT", 99), ("ESTAB", 1)]), 0);
    }

    #[test]
    fn without_counts_nothing_is_said() {
        assert_eq!(missing(&CHECK, &host(&[])).source, Source::Sockets);
    }
}
