//! A small piece of data waits on this host for an acknowledgment before it is sent.
//!
//! # What it says
//! Nagle's algorithm holds a packet that is not full while an earlier one is unacknowledged. If the peer delays its
//! acknowledgment because it waits for the rest of the message, both wait: 40 ms and more for each such message.
//!
//! # How we know
//! At every look less than a full segment was unsent while something was in flight and both windows had room. That
//! the program did not set `TCP_NODELAY` is certain only where the socket itself was asked.
//!
//! # What it is not
//! `TCP_CORK`, and for a moment the kernel's own corking (`tcp_autocorking`), hold small packets, too. Without the
//! socket's options this is one explanation.
//!
//! # What to do
//! Set `TCP_NODELAY` in programs that exchange messages, or write each message in one call. It is no trick:
//! most protocols need it.
//!
//! # Sources
//! RFC 9293 section 3.7.4; Linux `tcp_nagle_check`, `TCP_ATO_MIN` (40 ms), `TCP_DELACK_MAX` (200 ms) (v6.12).

use super::{Check, flows, words};
use crate::finding::{Confidence, Finding, Group, Scope, Severity};
use crate::flow::Flow;
use crate::seen::{Asked, Missing, Seen};
use crate::snapshot::{Socket, Source};

pub(super) const CHECK: Check =
    Check { code: "NAGLE", file: include_str!("nagle.rs"), group: Group::Sending, judge };

fn judge(seen: &Seen<'_>) -> Asked<Vec<Finding>> {
    let known = flows::known(seen)?;
    if seen.before.is_none() {
        return Err(Missing::all(Source::SecondLook));
    }
    let held = known.into_iter().map(|(flow, _)| flow);
    let held = held.filter(|flow| flow.before.is_some() && flow.always(holds) && !is_off(flow));
    let held = flows::worst(held.collect(), is_sure);
    let Some(first) = held.first() else { return Ok(Vec::new()) };
    let sure = is_sure(first);
    Ok(vec![Finding {
        severity: if sure { Severity::Warning } else { Severity::Info },
        confidence: if sure { Confidence::High } else { Confidence::Low },
        scope: Scope::Netns,
        title: format!("small packets of {} wait for an acknowledgment", flows::counted(seen, &held)),
        why: "the kernel holds a packet that is not full while an earlier one is unacknowledged; a peer that \
              delays its acknowledgment makes that 40 to 200 ms."
            .to_owned(),
        not: if sure {
            "not that the program needs it at once: its peer may not wait for it".to_owned()
        } else {
            "not that it is Nagle's algorithm: TCP_CORK and the kernel's own corking do the same".to_owned()
        },
        evidence: flows::evidence(seen, &held, says),
        fixes: vec![words::advise("set TCP_NODELAY in the program, or write each message in one call", "")],
        unseen: if sure {
            Vec::new()
        } else {
            vec![Missing::part(Source::Locks, "TCP_NODELAY: --socket PID:FD").to_string()]
        },
        ..Finding::default()
    }])
}

fn holds(socket: &Socket) -> bool {
    let holds = || {
        let info = socket.info.as_deref()?;
        let (mss, in_flight) = (u64::from(info.snd_mss?), u64::from(info.unacked?));
        let notsent = info.notsent_bytes?;
        let is_small = notsent > 0 && notsent < mss && in_flight > 0;
        let has_room = in_flight < u64::from(info.snd_cwnd?)
            && (in_flight + 1) * mss <= u64::from(info.snd_wnd?);
        Some(is_small && has_room)
    };
    holds().unwrap_or(false)
}

fn is_off(flow: &Flow<'_>) -> bool {
    flow.now.locks.and_then(|locks| locks.nodelay) == Some(true)
}

fn is_sure(flow: &Flow<'_>) -> bool {
    let locks = flow.now.locks.unwrap_or_default();
    locks.nodelay == Some(false) && locks.cork == Some(false)
}

fn says(flow: &Flow<'_>) -> String {
    let Some(info) = flow.info() else { return String::new() };
    let option = if is_sure(flow) { ", TCP_NODELAY off" } else { "" };
    format!(
        "notsent {} with {} in flight, cwnd {}{option}",
        info.notsent_bytes.unwrap_or(0),
        info.unacked.unwrap_or(0),
        info.snd_cwnd.unwrap_or(0)
    )
}

#[cfg(test)]
mod tests {
    use super::super::sample::{host, judged, missing, once, shown};
    use super::super::sample_flows::{connected, socket};
    use super::*;
    use crate::snapshot::{Info, Locks, Memory, Snapshot};

    fn waiting(notsent: u64, unacked: u32, nodelay: Option<bool>) -> Snapshot {
        let info = Info {
            notsent_bytes: Some(notsent),
            unacked: Some(unacked),
            snd_cwnd: Some(10),
            snd_mss: Some(1448),
            snd_wnd: Some(64_000),
            ..Info::default()
        };
        let at = || {
            let mut socket = socket(0, &info, Memory::default());
            let locks = Locks { nodelay, cork: Some(false), ..Locks::default() };
            socket.locks = nodelay.map(|_| locks);
            vec![socket]
        };
        connected(&[], at(), at())
    }

    #[test]
    fn a_packet_that_is_not_full_waits_for_the_one_before() {
        insta::assert_snapshot!(shown(&CHECK, &waiting(300, 1, Some(false))));
    }

    #[test]
    fn full_packets_and_idle_or_full_windows_and_the_option_are_none() {
        for host in [
            waiting(1448, 1, None),
            waiting(300, 0, None),
            waiting(300, 10, None),
            waiting(300, 1, Some(true)),
            waiting(0, 1, None),
        ] {
            assert_eq!(judged(&CHECK, &host), Ok(Vec::new()));
        }
        let found = judged(&CHECK, &waiting(1447, 9, None)).expect("seen");
        assert_eq!((found[0].severity, found[0].confidence), (Severity::Info, Confidence::Low));
    }

    #[test]
    fn one_look_is_a_moment_and_says_nothing() {
        assert_eq!(missing(&CHECK, &once(waiting(300, 1, None))).source, Source::SecondLook);
        assert_eq!(missing(&CHECK, &host(&[])).source, Source::Sockets);
    }
}
