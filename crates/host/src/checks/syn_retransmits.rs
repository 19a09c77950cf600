//! Handshakes need more than one try.
//!
//! # What it says
//! A SYN or its answer was not answered in time and retransmitted: the connection opened a second later, or three,
//! or seven, or not at all. To the program that is a slow `connect`.
//!
//! # How we know
//! `TCPSynRetrans` is at least 1 % of the connections opened from and towards this host (`ActiveOpens`,
//! `PassiveOpens`), and at least five. Sockets show who waits now: in `SYN-SENT` and `SYN-RECV`. Without
//! the counters only those in `SYN-SENT` count; where their timers show, only those with repeats.
//!
//! # What it is not
//! Not that SYNs were lost: a full accept queue at the peer, a firewall that drops, or a full table of connection
//! tracking look the same from here.
//!
//! # What to do
//! If one destination stands out, look at its accept queue and at the firewalls before it. Where SYN answers are
//! repeated (`SYN-RECV`), the way back to the clients is the suspect, or they are a scan.
//!
//! # Sources
//! Linux `tcp_rtx_synack`, `__tcp_retransmit_skb` (both count), `TCP_TIMEOUT_INIT` of a second (v6.12); RFC 6298
//! section 2. 1 %, 10 % and five: ours, not measured.

use core::cmp::Reverse;
use std::collections::BTreeMap;

use super::{Check, counters, words};
use crate::finding::{Confidence, Evidence, Finding, Group, Scope, Severity};
use crate::seen::{Asked, Seen};
use crate::snapshot::State;
use tcpwhy_words::said::count;

pub(super) const CHECK: Check = Check {
    code: "SYN_RETRANSMITS",
    file: include_str!("syn_retransmits.rs"),
    group: Group::Connecting,
    judge,
};

const LEAST: u64 = 5;
const NAMED: usize = 5;

fn judge(seen: &Seen<'_>) -> Asked<Vec<Finding>> {
    counted(seen).or_else(|missing| of_sockets(seen).map(|found| vec![found]).ok_or(missing))
}

/// Without counters: sockets that wait for an answer to their SYN.
fn of_sockets(seen: &Seen<'_>) -> Option<Finding> {
    let sockets = seen.sockets().ok()?.iter().filter(|socket| socket.state == State::SynSent);
    // One that was just sent is none, where the timer tells; else it may be one.
    let waiting: Vec<_> =
        sockets.filter(|socket| socket.timer.is_none_or(|timer| timer.retransmits > 0)).collect();
    let repeated = waiting.iter().filter(|socket| socket.timer.is_some()).count();
    let first = waiting.first()?;
    let evidence = waiting.iter().take(NAMED).map(|socket| {
        let said = socket.timer.map_or_else(
            || "SYN-SENT".to_owned(),
            |timer| format!("SYN-SENT, retransmitted {} times", timer.retransmits),
        );
        Evidence::new(format!("ss -tno state syn-sent dst {}", socket.remote), said)
    });
    Some(Finding {
        severity: if repeated > 0 { Severity::Warning } else { Severity::Info },
        confidence: if repeated > 0 { Confidence::High } else { Confidence::Low },
        scope: Scope::Netns,
        title: format!(
            "{} waited for an answer to the SYN: the first to {}",
            count(waiting.len() as u64, "connection"),
            first.remote
        ),
        why: "until the answer comes the connection does not open; a SYN is retransmitted after a second, then two, then four."
            .to_owned(),
        not: if repeated > 0 {
            "not that SYNs are lost: a full accept queue at the peer or a firewall that drops looks the same"
        } else {
            "not for how long: a SYN that was just sent looks the same; `ss -tno state syn-sent` shows the repeats"
        }
        .to_owned(),
        evidence: evidence.collect(),
        fixes: vec![words::advise(
            "look again: if it is still there, see whether the peer listens, its accept queue, and the firewalls before it",
            "",
        )],
        ..Finding::default()
    })
}

fn counted(seen: &Seen<'_>) -> Asked<Vec<Finding>> {
    let Some(again) = counters::grew(seen, counters::TCP_EXT, "TCPSynRetrans")? else {
        return Ok(Vec::new());
    };
    let (ours, theirs) =
        (counters::by(seen, "Tcp", "ActiveOpens")?, counters::by(seen, "Tcp", "PassiveOpens")?);
    let opened = ours.saturating_add(theirs);
    if again.by < LEAST || again.by.saturating_mul(100) < opened {
        return Ok(Vec::new());
    }
    let failed = counters::grew(seen, "Tcp", "AttemptFails").ok().flatten();
    let bad =
        if again.by.saturating_mul(10) >= opened { Severity::Error } else { Severity::Warning };
    let mut evidence = vec![
        words::counter(counters::TCP_EXT, "TCPSynRetrans", again),
        Evidence::new("/proc/net/snmp Tcp.ActiveOpens", ours.to_string()),
        Evidence::new("/proc/net/snmp Tcp.PassiveOpens", theirs.to_string()),
    ];
    evidence.extend(failed.map(|failed| words::counter("Tcp", "AttemptFails", failed)));
    evidence.extend(waiting(seen));
    Ok(vec![Finding {
        severity: counters::severity(again, bad),
        confidence: words::sure(again),
        scope: Scope::Netns,
        title: format!("SYNs and their answers are retransmitted: {}", words::grown(again)),
        why: format!(
            "that is beside {}: each first repeat is a second in which the connection does not open.",
            count(opened, "connection") + " opened"
        ),
        not: "not that SYNs are lost: a full accept queue at the peer or a firewall that drops looks the same"
            .to_owned(),
        evidence,
        fixes: vec![words::advise(
            "look at the destinations named: their accept queues, and the firewalls before them",
            "",
        )],
        ..Finding::default()
    }])
}

/// Destinations that have not answered a repeated SYN, and clients that have not answered a repeated answer.
fn waiting(seen: &Seen<'_>) -> Vec<Evidence> {
    let mut sent: BTreeMap<String, u64> = BTreeMap::new();
    let mut answered = 0_u64;
    for socket in seen.sockets().unwrap_or_default() {
        let is_repeated = socket.timer.is_some_and(|timer| timer.retransmits > 0);
        match socket.state {
            State::SynSent if is_repeated => {
                *sent.entry(socket.remote.to_string()).or_default() += 1;
            }
            State::SynRecv if is_repeated => answered += 1,
            _ => {}
        }
    }
    let mut sent: Vec<_> = sent.into_iter().collect();
    sent.sort_by_key(|(remote, number)| (Reverse(*number), remote.clone()));
    let mut evidence: Vec<_> = sent
        .into_iter()
        .take(NAMED)
        .map(|(remote, number)| {
            let value = format!("{} without an answer", count(number, "repeated SYN"));
            Evidence::new(format!("ss -tno state syn-sent dst {remote}"), value)
        })
        .collect();
    if answered > 0 {
        let value = format!("{} without an ACK", count(answered, "repeated answer"));
        evidence.push(Evidence::new("ss -tno state syn-recv", value));
    }
    evidence
}

#[cfg(test)]
mod tests {
    use super::super::sample::{counted, host, judged, missing, shown};
    use super::super::sample_flows::{connected, socket};
    use super::*;
    use crate::snapshot::{Info, Memory, Snapshot, Source, Timer};

    fn opening(host: Snapshot, opened: i64, again: i64) -> Snapshot {
        let host = counted(host, "Tcp", "ActiveOpens", [100, 100 + opened]);
        counted(host, "TcpExt", "TCPSynRetrans", [100, 100 + again])
    }

    #[test]
    fn repeated_syns_are_told_with_their_destination() {
        let at = || {
            let mut socket = socket(0, &Info::default(), Memory::default());
            socket.state = State::SynSent;
            socket.timer = Some(Timer { kind: 1, retransmits: 2, expires_ms: 900 });
            vec![socket]
        };
        insta::assert_snapshot!(shown(&CHECK, &opening(connected(&[], at(), at()), 60, 9)));
    }

    #[test]
    fn one_in_a_hundred_and_five_at_least_are_the_border() {
        let severity = |opened, again| {
            let found = judged(&CHECK, &opening(host(&[]), opened, again)).expect("seen");
            found.first().map(|found| found.severity)
        };
        assert_eq!([severity(10, 4), severity(501, 5)], [None, None]);
        assert_eq!([severity(500, 5), severity(51, 5)], [Some(Severity::Warning); 2]);
        assert_eq!(severity(50, 5), Some(Severity::Error));
    }

    #[test]
    fn without_counters_a_socket_that_waits_is_told_but_not_one_whose_syn_was_just_sent() {
        let severity = |timer: &str| {
            let text = format!("tcp 0 1 10.0.0.5:41234 10.0.0.77:5432 SYN_SENT {timer}\n");
            let found = judged(&CHECK, &crate::paste::read(&text).snapshot);
            found.ok().map(|found| found[0].severity)
        };
        assert_eq!(severity(""), Some(Severity::Info));
        assert_eq!(severity("on (3.10/2/0)"), Some(Severity::Warning));
        assert_eq!(severity("on (0.90/0/0)"), None);
    }

    #[test]
    fn without_counters_nothing_is_said() {
        assert_eq!(missing(&CHECK, &host(&[])).source, Source::Counters);
    }
}
