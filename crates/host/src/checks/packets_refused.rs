//! Packets of open connections are refused: wrong checksums, old timestamps, beyond the window.
//!
//! # What it says
//! They arrived and were thrown away because something in them was not as it must be. The sender has to send
//! them again, and they are refused again if the cause stays.
//!
//! # How we know
//! `InCsumErrors` (of TCP or IP) grew; or `PAWSEstab`, `TSEcrRejected` or `BeyondWindow` grew by more than one a second.
//!
//! # What it is not
//! Repeats that cross their acknowledgment also have old timestamps: a few are normal. The finding speaks of
//! `tcp_tw_recycle` and address translation is over: it went with Linux 4.12.
//!
//! # What to do
//! Wrong checksums: memory or a firmware on the way flips bits; see whether they come by one interface. Old timestamps:
//! several hosts behind one address, or a box that rewrites them.
//!
//! # Sources
//! RFC 7323 section 5; Linux `tcp_validate_incoming`, `tcp_ack`, `tcp_v4_rcv` (v6.12). One a second: ours, not
//! measured.

use super::{Check, counters, words};
use crate::finding::{Evidence, Finding, Group, Scope, Severity};
use crate::seen::{Asked, Growth, Seen};
use tcpwhy_words::said::listed;

pub(super) const CHECK: Check = Check {
    code: "PACKETS_REFUSED",
    file: include_str!("packets_refused.rs"),
    group: Group::Losses,
    judge,
};

const WRONG: [(&str, &str); 2] = [("Tcp", "InCsumErrors"), ("IpExt", "InCsumErrors")];
const SPOILT: &str = "their checksums were wrong";
const OLD: [&str; 3] = ["PAWSEstab", "TSEcrRejected", "BeyondWindow"];

fn judge(seen: &Seen<'_>) -> Asked<Vec<Finding>> {
    let mut refused: Vec<(Evidence, Growth, &str)> = Vec::new();
    let mut unseen = Vec::new();
    for (group, name) in WRONG {
        match counters::grew(seen, group, name) {
            Ok(growth) => refused
                .extend(growth.map(|growth| (words::counter(group, name, growth), growth, SPOILT))),
            Err(missing) => unseen.push(missing),
        }
    }
    match counters::grown(seen, &OLD) {
        Ok(grown) => refused.extend(
            grown
                .into_iter()
                .filter(|(_, growth)| !growth.since_start && growth.per_second() > 1.0)
                .map(|(name, growth)| {
                    (words::counter(counters::TCP_EXT, name, growth), growth, told(name))
                }),
        ),
        Err(missing) => unseen.push(missing),
    }
    let Some((_, most, _)) = refused.iter().max_by_key(|(_, growth, _)| growth.by) else {
        return unseen.into_iter().next().map_or(Ok(Vec::new()), Err);
    };
    let most = *most;
    // Repeats that are late have old timestamps, too: only wrong checksums are surely spoilt data.
    let is_spoilt =
        refused.iter().any(|(_, growth, why)| *why == SPOILT && growth.per_second() > 1.0);
    let bad = if is_spoilt { Severity::Error } else { Severity::Warning };
    let mut why: Vec<String> = refused.iter().map(|(.., why)| (*why).to_owned()).collect();
    why.dedup();
    Ok(vec![Finding {
        severity: counters::severity(most, bad),
        confidence: words::sure(most),
        scope: Scope::Netns,
        title: format!("packets that arrived were refused: {}", words::grown(most)),
        why: format!(
            "{}; each has to be retransmitted, and is refused again while the cause stays.",
            listed(&why)
        ),
        not: "not which device spoilt them".to_owned(),
        evidence: refused.into_iter().map(|(evidence, ..)| evidence).collect(),
        fixes: vec![words::advise(
            "see whether they come by one interface or from one peer: a capture shows both",
            "",
        )],
        unseen: unseen.iter().map(ToString::to_string).collect(),
        ..Finding::default()
    }])
}

fn told(name: &str) -> &'static str {
    match name {
        "PAWSEstab" => "their timestamps were older than what had come before",
        "TSEcrRejected" => "they echoed timestamps that this host never sent",
        _ => "they lay beyond the window that this host had announced",
    }
}

#[cfg(test)]
mod tests {
    use super::super::sample::{counted, host, judged, missing, once, shown};
    use super::*;
    use crate::finding::Confidence;
    use crate::snapshot::{Snapshot, Source};

    fn refusing(group: &str, name: &str, by: i64) -> Snapshot {
        let host = counted(host(&[]), "Tcp", "InSegs", [0, 9]);
        let host = counted(counted(host, "IpExt", "InOctets", [0, 9]), "TcpExt", "TW", [0, 9]);
        counted(host, group, name, [5, 5 + by])
    }

    #[test]
    fn wrong_checksums() {
        insta::assert_snapshot!(shown(&CHECK, &refusing("Tcp", "InCsumErrors", 12)));
    }

    #[test]
    fn one_wrong_checksum_is_told_and_old_timestamps_from_one_a_second_on() {
        let severity = |group, name, by| {
            judged(&CHECK, &refusing(group, name, by)).expect("seen").first().map(|it| it.severity)
        };
        assert_eq!(severity("IpExt", "InCsumErrors", 0), None);
        assert_eq!(severity("IpExt", "InCsumErrors", 1), Some(Severity::Warning));
        assert_eq!(severity("TcpExt", "PAWSEstab", 10), None);
        assert_eq!(severity("TcpExt", "PAWSEstab", 11), Some(Severity::Warning));
    }

    #[test]
    fn checksums_since_the_start_are_less_sure_and_no_counters_are_missing() {
        let found = judged(&CHECK, &once(refusing("Tcp", "InCsumErrors", 12))).expect("seen");
        assert_eq!(found[0].confidence, Confidence::Low);
        assert_eq!(missing(&CHECK, &host(&[])).source, Source::Counters);
    }
}
