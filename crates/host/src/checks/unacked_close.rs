//! Many connections were closed here and their peers do not acknowledge the end.
//!
//! # What it says
//! In `FIN_WAIT1`, `CLOSING` and `LAST_ACK` this side has sent its FIN and waits for its ACK, often behind data that the peer does not take.
//! Each holds its unsent data in memory until the kernel gives up.
//!
//! # How we know
//! More than 1,000 connections are in these states.
//!
//! # What it is not
//! Not a fault of the program: it did close. Peers that vanished (mobile ones, a reset path) and peers whose window is shut look alike,
//! but for the window.
//!
//! # What to do
//! See to whom they go. `tcp_orphan_retries` shortens the wait of those that no process holds; those that a process holds with `shutdown` wait
//! as `tcp_retries2` says.
//!
//! # Sources
//! Linux `tcp_orphan_retries`, `tcp_write_timeout`, `tcp_probe_timer` (v6.12, `net/ipv4/tcp_timer.c`). 1,000: ours, not measured.

use core::cmp::Reverse;
use core::net::IpAddr;
use std::collections::BTreeMap;

use super::{Check, words};
use crate::finding::{Confidence, Evidence, Finding, Group, Scope, Severity};
use crate::seen::{Asked, Seen};
use crate::snapshot::{Socket, State};

pub(super) const CHECK: Check = Check {
    code: "UNACKED_CLOSE",
    file: include_str!("unacked_close.rs"),
    group: Group::Closing,
    judge,
};

const MANY: usize = 1000;

fn judge(seen: &Seen<'_>) -> Asked<Vec<Finding>> {
    let closing = seen
        .sockets()?
        .iter()
        .filter(|socket| matches!(socket.state, State::FinWait1 | State::Closing | State::LastAck));
    let closing: Vec<&Socket> = closing.collect();
    if closing.len() <= MANY {
        return Ok(Vec::new());
    }
    let shut = closing
        .iter()
        .filter(|socket| socket.info.as_ref().is_some_and(|info| info.snd_wnd == Some(0)))
        .count();
    let held: u64 = closing.iter().map(|socket| u64::from(socket.send_queue)).sum();
    let orphans = closing
        .iter()
        .filter(|socket| socket.is_orphan() == Some(true) && socket.owner.is_none())
        .count();
    let peer = busiest(&closing);
    let mut evidence = vec![Evidence::new(
        "ss -tnoie state fin-wait-1 state last-ack state closing",
        format!(
            "{} connections, {orphans} without a process, {held} bytes not acknowledged, {shut} behind a shut window",
            closing.len()
        ),
    )];
    evidence.extend(
        peer.map(|(peer, count)| Evidence::new(format!("of these to {peer}"), count.to_string())),
    );
    let orphan_retries = seen.number("net.ipv4.tcp_orphan_retries").ok().flatten();
    evidence.extend(
        orphan_retries.map(|retries| words::setting("net.ipv4.tcp_orphan_retries", &retries)),
    );
    Ok(vec![Finding {
        severity: Severity::Warning,
        confidence: Confidence::Medium,
        scope: Scope::Netns,
        title: format!("{} connections wait for the ACK of their FIN", closing.len()),
        why: format!(
            "they hold {held} bytes that their peers did not acknowledge{}.",
            if shut > 0 {
                format!("; for {shut} of them the window is shut")
            } else {
                String::new()
            }
        ),
        not: "not why: peers that vanished, a path that drops, or readers that stopped".to_owned(),
        evidence,
        fixes: vec![words::advise("see to whom they go, and whether those still answer", "")],
        ..Finding::default()
    }])
}

/// The peer with the most, if it has a tenth of all.
fn busiest(closing: &[&Socket]) -> Option<(IpAddr, usize)> {
    let mut peers: BTreeMap<IpAddr, usize> = BTreeMap::new();
    for socket in closing {
        *peers.entry(socket.remote.ip()).or_default() += 1;
    }
    peers
        .into_iter()
        .min_by_key(|(peer, count)| (Reverse(*count), *peer))
        .filter(|(_, count)| count * 10 >= closing.len())
}

#[cfg(test)]
mod tests {
    use super::super::parts::{each_look, peers, silent, socket};
    use super::super::sample::{host, judged, missing, shown};
    use super::*;
    use crate::snapshot::{Snapshot, Source};

    fn closing(count: u16) -> Snapshot {
        each_look(host(&[("net.ipv4.tcp_orphan_retries", "0")]), |_, look| {
            let one = |peer: String| {
                let mut one = silent(socket(State::FinWait1, "10.0.0.1:80", &peer), 9);
                (one.send_queue, one.inode, one.owner) = (1000, 0, None);
                one.info.as_mut().expect("info").snd_wnd = Some(0);
                one
            };
            look.sockets = Some(peers(count, one));
        })
    }

    #[test]
    fn a_pile_of_ends_that_nobody_acknowledges_is_told_with_its_peer() {
        insta::assert_snapshot!(shown(&CHECK, &closing(1001)));
    }

    #[test]
    fn a_thousand_are_nothing() {
        assert_eq!(judged(&CHECK, &closing(1000)), Ok(Vec::new()));
    }

    #[test]
    fn without_sockets_nothing_is_said() {
        assert_eq!(missing(&CHECK, &host(&[])).source, Source::Sockets);
    }
}
