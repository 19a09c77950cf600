//! The kernel's own words about what a check looks for.
//!
//! They are evidence beside counters. Alone they tell that it happened, at some time since the host started and at
//! least so often, for the log holds back most of such lines.

use super::words;
use crate::finding::{Confidence, Evidence, Finding, Severity};
use crate::seen::{Asked, Seen};
use crate::snapshot::{Event, Said};

/// What a check found, with the log's lines about `event` beside it. Where it found nothing, or could not look,
/// the finding that `alone` makes of the lines: whose they are goes in, title and the rest come out.
pub(super) fn beside(
    seen: &Seen<'_>,
    event: Event,
    found: Asked<Vec<Finding>>,
    alone: impl Fn(&[&Said]) -> Finding,
) -> Asked<Vec<Finding>> {
    let said: Vec<&Said> = seen.snapshot.said.iter().filter(|said| said.event == event).collect();
    if said.is_empty() {
        return found;
    }
    let lines = said.iter().take(words::WORST).map(|said| {
        Evidence::new(format!("dmesg, {}", words::count(said.lines, "line")), &*said.last)
    });
    match found {
        Ok(mut found) if !found.is_empty() => {
            found[0].evidence.extend(lines);
            Ok(found)
        }
        found => {
            let unseen = found.err().map(|missing| missing.to_string());
            Ok(vec![Finding {
                severity: Severity::Warning,
                confidence: Confidence::Low,
                not: "not when: the log tells of all the time since the host started, and not whether it happens now"
                    .to_owned(),
                evidence: lines.collect(),
                unseen: unseen.into_iter().collect(),
                ..alone(&said)
            }])
        }
    }
}

/// Whose lines they are: `port 80 and port 443`; nothing where the kernel does not say.
pub(super) fn whose(said: &[&Said]) -> String {
    let all: Vec<&str> = said.iter().filter_map(|said| said.of.as_deref()).collect();
    words::named(&all)
}

#[cfg(test)]
mod tests {
    use super::super::{CHECKS, judge};
    use super::*;
    use crate::paste;
    use crate::snapshot::Snapshot;

    const LOG: &str = "[1.5] TCP: request_sock_TCP: Possible SYN flooding on port 80. Sending cookies.\n\
        [2.5] nf_conntrack: nf_conntrack: table full, dropping packet\n\
        [3.5] nf_conntrack: nf_conntrack: table full, dropping packet\n\
        [4.5] TCP: out of memory -- consider tuning tcp_mem\n\
        [5.5] TCP: too many orphaned sockets\n\
        [6.5] NETDEV WATCHDOG: eth0 (e1000e): transmit queue 0 timed out\n\
        [7.5] neighbour: arp_cache: neighbor table overflow!\n";

    fn pasted(text: &str) -> Snapshot {
        paste::read(text).snapshot
    }

    #[test]
    fn each_line_alone_is_told_by_its_check_as_perhaps_long_past() {
        let mut found = judge(&pasted(LOG)).findings;
        found.sort_by(|one, other| one.code.cmp(&other.code));
        let told = found.iter().map(|found| {
            let Finding { code, severity, confidence, scope, title, why, not, evidence, unseen, .. } = found;
            let fixes: Vec<&str> = found.fixes.iter().map(|fix| fix.what.as_str()).collect();
            format!(
                "{code} {severity:?} {confidence:?} {scope:?}: {title}\n  {why}\n  {not}\n  {evidence:?}\n  {unseen:?}\n  {fixes:?}\n"
            )
        });
        insta::assert_snapshot!(told.collect::<String>());
    }

    #[test]
    fn without_the_lines_no_check_says_more() {
        let without =
            pasted("[1.5] e1000e 0000:00:19.0 eth0: NIC Link is Up\nnet.ipv4.tcp_sack = 1\n");
        assert_eq!(judge(&without).findings, []);
        assert_eq!(judge(&without).unseen.len() + judge(&without).well.len(), CHECKS.len());
    }

    #[test]
    fn lines_stand_beside_the_counters_of_the_same() {
        let counters =
            "$ nstat -az\nTcpExtTCPReqQFullDrop 3 0.0\nTcpExtTCPReqQFullDoCookies 0 0.0\n";
        let evidence = |text: &str| {
            let found = judge(&pasted(text)).findings;
            let found = found.into_iter().find(|found| found.code == "SYN_QUEUE").expect("dropped");
            (
                found.title,
                found.evidence.iter().filter(|each| each.source.starts_with("dmesg")).count(),
            )
        };
        let (title, none) = evidence(counters);
        assert_eq!((evidence(&format!("{LOG}{counters}")), none), ((title, 1), 0));
    }
}
