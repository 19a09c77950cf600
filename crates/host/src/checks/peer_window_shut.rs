//! Peers keep their windows shut: this host can only ask whether they have opened.
//!
//! # What it says
//! A receiver whose buffer is full announces a window of 0. The sender then waits for the persist timer, sends a probe, and
//! waits twice as long for the next one, up to two minutes. The peer's program does not read, or reads too slowly.
//!
//! # How we know
//! The persist timer of a socket runs (`timer:(persist,..)` of `ss -o`), nothing is in flight, and it has fired before:
//! `backoff`, or the number of probes in the timer. One look tells it.
//!
//! # What it is not
//! No fault of this host or the path: the probes are answered, or the connection would be given up. A window smaller than a
//! segment, which the sender does not use up, looks the same.
//!
//! # What to do
//! Look at the program on the peer: what it waits for (a disk, a paused player, a lock), and its Recv-Q there.
//!
//! # Sources
//! RFC 9293 section 3.8.6.1; Linux `tcp_probe_timer`, `tcp_send_probe0`, `inet_csk_diag_fill` (`ICSK_TIME_PROBE0` is
//! timer 4 of `sock_diag(7)`), v6.12.

use core::fmt::Write as _;

use super::flows::{self, time};
use super::{Check, words};
use crate::finding::{Confidence, Finding, Group, Scope, Severity};
use crate::flow::Flow;
use crate::seen::{Asked, Missing, Seen};
use crate::snapshot::Source;
use tcpwhy_words::said::{bytes, grouped};

pub(super) const CHECK: Check = Check {
    code: "PEER_WINDOW_SHUT",
    file: include_str!("peer_window_shut.rs"),
    group: Group::Sending,
    judge,
};

/// The persist timer (`sock_diag(7)`).
const PERSIST: u8 = 4;

fn judge(seen: &Seen<'_>) -> Asked<Vec<Finding>> {
    let flows = seen.flows()?;
    let all: Vec<_> = flows.iter().filter(|flow| !flow.is_within_host()).collect();
    let is_blind =
        !all.is_empty() && all.iter().all(|flow| flow.now.timer.is_none()) && seen.snapshot.pasted;
    let shut = all.into_iter().filter(|flow| probes(flow) > 0);
    let shut = flows::worst(shut.collect(), waiting);
    if shut.is_empty() {
        let missing = Missing::part(Source::Sockets, "timers: ss -o");
        return if is_blind { Err(missing) } else { Ok(Vec::new()) };
    }
    let data: u64 = shut.iter().map(|flow| waiting(flow)).sum();
    Ok(vec![Finding {
        severity: Severity::Warning,
        confidence: Confidence::High,
        scope: Scope::Netns,
        title: format!(
            "{} wait{} for a peer whose window is shut: zero window, {} not sent",
            flows::counted(seen, &shut),
            flows::verb_s(shut.len()),
            bytes(data)
        ),
        why: "the persist timer runs and has fired: the peer's buffer is full, and its program does not read. \
              Each probe waits twice as long as the one before, up to two minutes."
            .to_owned(),
        not: "not a fault of this host or of the path: probes are answered, or the connection would be given up"
            .to_owned(),
        evidence: flows::evidence(seen, &shut, says),
        fixes: vec![words::advise(
            "look at the peer's program: what it waits for, and its Recv-Q (ss -tinm there)",
            "",
        )],
        ..Finding::default()
    }])
}

/// How often the persist timer has fired; 0 where it does not run.
pub(super) fn probes(flow: &Flow<'_>) -> u8 {
    let runs = flow.now.timer.filter(|timer| timer.kind == PERSIST);
    let backoff = flow.info().and_then(|info| info.backoff).unwrap_or(0);
    runs.map_or(0, |timer| timer.retransmits.max(backoff))
}

/// What waits to be sent.
fn waiting(flow: &Flow<'_>) -> u64 {
    let notsent = flow.info().and_then(|info| info.notsent_bytes);
    notsent.unwrap_or(u64::from(flow.now.send_queue))
}

fn says(flow: &Flow<'_>) -> String {
    let next = flow.now.timer.map_or(0, |timer| u64::from(timer.expires_ms) * 1_000_000);
    let mut said = format!(
        "timer persist, backoff {}, the next probe in {}, notsent {}",
        probes(flow),
        time(next),
        grouped(waiting(flow))
    );
    let info = flow.info();
    if let Some(window) = info.and_then(|info| info.snd_wnd) {
        let _ = write!(said, ", snd_wnd {window}");
    }
    if let Some(ago) = info.and_then(|info| info.last_data_sent_ns) {
        let _ = write!(said, ", data last sent {} ago", time(ago));
    }
    said
}

#[cfg(test)]
mod tests {
    use super::super::sample::{host, judged, missing, once, shown};
    use super::super::sample_flows::{connected, socket};
    use super::*;
    use crate::snapshot::{Info, Memory, Snapshot, Timer};

    fn probing(kind: u8, retransmits: u8, backoff: Option<u8>) -> Snapshot {
        let info = Info { backoff, notsent_bytes: Some(70_000), ..Info::default() };
        let mut socket = socket(0, &info, Memory::default());
        socket.timer = Some(Timer { kind, retransmits, expires_ms: 9_000 });
        once(connected(&[], Vec::new(), vec![socket]))
    }

    #[test]
    fn a_peer_that_does_not_read() {
        insta::assert_snapshot!(shown(&CHECK, &probing(PERSIST, 0, Some(9))));
    }

    #[test]
    fn a_timer_that_has_not_fired_or_is_another_is_none() {
        let number = |kind, retransmits, backoff| {
            judged(&CHECK, &probing(kind, retransmits, backoff)).expect("seen").len()
        };
        assert_eq!([number(PERSIST, 1, None), number(PERSIST, 0, Some(1))], [1, 1]);
        assert_eq!([number(PERSIST, 0, Some(0)), number(PERSIST, 0, None)], [0, 0]);
        assert_eq!([number(1, 5, Some(5)), number(2, 5, None)], [0, 0]);
    }

    #[test]
    fn without_sockets_or_their_timers_nothing_is_said() {
        assert_eq!(missing(&CHECK, &host(&[])).source, Source::Sockets);
        let mut pasted = probing(PERSIST, 3, None);
        pasted.pasted = true;
        for socket in pasted.looks[0].sockets.iter_mut().flatten() {
            socket.timer = None;
        }
        assert!(missing(&CHECK, &pasted).to_string().contains("ss -o"));
    }
}
