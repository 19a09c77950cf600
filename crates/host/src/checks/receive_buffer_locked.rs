//! A program set the size of its receive buffer, and the window that this gives is full.
//!
//! # What it says
//! `SO_RCVBUF` fixes a socket's buffer: the kernel doubles what was asked for (at most `rmem_max`) and never
//! lets it grow again, whatever `tcp_rmem` says. On these connections a round trip brings as much as the
//! fixed window admits: they would be faster if the program had left it alone.
//!
//! # How we know
//! A round trip brings at least 70 % of the window, the program reads what comes, no queue is in the path,
//! and the buffer did not grow between the looks and is below the third number of `tcp_rmem` though autotuning is on:
//! autotuning keeps a window of at least twice what a round trip brings. It is certain where the socket itself was asked (`SO_BUF_LOCK`),
//! likely where the buffer is exactly twice `net.core.rmem_max`, else one explanation.
//!
//! # What it is not
//! Where the lock was not asked for: lack of memory for TCP also stops buffers from growing.
//!
//! # What to do
//! Remove `SO_RCVBUF` from the program's configuration (`rcvbuf=` of nginx, `socket options` of Samba,
//! `--sockopts` of rsync, receive buffer sizes of database drivers). If it cannot be removed, ask for at least
//! the bandwidth-delay product, and raise `net.core.rmem_max`, which bounds it.
//!
//! # Sources
//! socket(7); Linux `sk_setsockopt`, `tcp_rcv_space_adjust` (`SOCK_RCVBUF_LOCK`; v6.12); `SO_BUF_LOCK` since
//! 5.15. 70 %: ours, not measured.

use super::flows::{self, bits, rate, time};
use super::received::{amount, fills, is_queued, is_read, window};
use super::{Check, buffer_lock, words};
use crate::finding::{Confidence, Finding, Group, Scope, Severity};
use crate::flow::Flow;
use crate::seen::{Asked, Missing, Seen};
use crate::snapshot::{Socket, Source};
use tcpwhy_words::said::bytes;

pub(super) const CHECK: Check = Check {
    code: "RECEIVE_BUFFER_LOCKED",
    file: include_str!("receive_buffer_locked.rs"),
    group: Group::Receiving,
    judge,
};

const MOST: &str = "net.core.rmem_max";
/// What we propose for `rmem_max`: the third number that `tcp_rmem` has had for long. Ours.
const ENOUGH: i64 = 6 << 20;

fn judge(seen: &Seen<'_>) -> Asked<Vec<Finding>> {
    let sizes = seen.numbers::<3>("net.ipv4.tcp_rmem")?.unwrap_or_default();
    let is_tuned = seen.number("net.ipv4.tcp_moderate_rcvbuf")? != Some(0);
    let most = seen.number(MOST)?;
    let suspects = flows::measured(seen)?.into_iter().filter_map(|(flow, info, memory)| {
        let may_be = match locked(flow) {
            Some(locked) => locked,
            // Before autotuning starts a buffer has the second number, and ends at the third.
            None => {
                stays(flow)
                    && is_tuned
                    && i64::from(memory.rcvbuf) != sizes[1]
                    && i64::from(memory.rcvbuf) < sizes[2]
            }
        };
        let is_full = may_be && is_read(seen, flow) && !is_queued(info) && fills(seen, flow, info)?;
        is_full.then_some(flow)
    });
    let full = flows::worst(suspects.collect(), amount);
    let Some(worst) = full.first() else { return Ok(Vec::new()) };
    let confidence = sure(worst, most);
    let mut found = Finding {
        severity: if seen.before.is_some() && confidence > Confidence::Low {
            Severity::Error
        } else {
            Severity::Warning
        },
        confidence: if seen.before.is_some() { confidence } else { Confidence::Low },
        scope: Scope::Netns,
        title: format!(
            "{} fill{} a receive buffer that does not grow",
            flows::counted(seen, &full),
            flows::verb_s(full.len())
        ),
        why: why(worst, confidence),
        not: "not that the path carries more: the sender may be at a limit of its own, too"
            .to_owned(),
        evidence: flows::evidence(seen, &full, says),
        fixes: buffer_lock::fixes(
            seen,
            "SO_RCVBUF",
            MOST,
            most.filter(|most| *most < ENOUGH && is_bound(worst, *most)).map(|_| ENOUGH),
        ),
        ..Finding::default()
    };
    found.evidence.extend(most.map(|most| words::setting(MOST, &most)));
    if confidence < Confidence::High {
        found.unseen.push(Missing::part(Source::Locks, "SO_BUF_LOCK: --socket PID:FD").to_string());
    }
    if seen.before.is_none() {
        found.unseen.push(Missing::all(Source::SecondLook).to_string());
    }
    Ok(vec![found])
}

/// It did not grow between the looks.
fn stays(flow: &Flow<'_>) -> bool {
    let rcvbuf = |socket: &Socket| socket.memory.map(|memory| memory.rcvbuf);
    flow.before.is_some_and(|before| rcvbuf(before) == rcvbuf(flow.now))
}

fn locked(flow: &Flow<'_>) -> Option<bool> {
    flow.now.locks?.rcvbuf
}

fn sure(flow: &Flow<'_>, most: Option<i64>) -> Confidence {
    let rcvbuf = flow.memory().map(|memory| i64::from(memory.rcvbuf));
    match locked(flow) {
        Some(_) => Confidence::High,
        None if rcvbuf.is_some() && rcvbuf == most.and_then(|most| most.checked_mul(2)) => {
            Confidence::Medium
        }
        None => Confidence::Low,
    }
}

fn why(worst: &Flow<'_>, confidence: Confidence) -> String {
    let (window, rtt) =
        worst.info().and_then(|info| Some((window(info)?, info.rcv_rtt_ns?))).unwrap_or_default();
    let how = match confidence {
        Confidence::High => "the program fixed it with SO_RCVBUF",
        Confidence::Medium => "it is twice rmem_max, as SO_RCVBUF makes it",
        Confidence::Low => "autotuning would have made it larger, unless memory for TCP is short",
    };
    format!(
        "the worst has a window of {} that is full each round trip of {}: {}; {how}.",
        bytes(window),
        time(rtt),
        bits(rate(window, rtt).unwrap_or(0))
    )
}

fn says(flow: &Flow<'_>) -> String {
    let Some((info, memory)) = flow.info().zip(flow.memory()) else { return String::new() };
    let rtt = time(info.rcv_rtt_ns.unwrap_or(0));
    format!("rb{}, window {}, rcv_rtt {rtt}", memory.rcvbuf, bytes(window(info).unwrap_or(0)))
}

/// The kernel cut what the program asked for: raising the bound gives it more.
fn is_bound(flow: &Flow<'_>, most: i64) -> bool {
    flow.memory().is_some_and(|memory| i64::from(memory.rcvbuf) >= most.saturating_mul(2))
}

#[cfg(test)]
mod tests {
    use super::super::sample::{host, judged, missing, shown};
    use super::super::sample_flows::{connected, socket};
    use super::*;
    use crate::snapshot::{Info, Locks, Memory, Snapshot};

    const SETTINGS: &[(&str, &str)] = &[
        ("net.ipv4.tcp_rmem", "4096 131072 6291456"),
        ("net.ipv4.tcp_moderate_rcvbuf", "1"),
        (MOST, "212992"),
    ];

    /// A round trip of 20 ms brings this much of a window of 200,000 bytes.
    fn downloading(rcvbuf: u32, in_a_round_trip: u64, lock: Option<bool>) -> Snapshot {
        let info = |received| Info {
            bytes_received: Some(received),
            rcv_ssthresh: Some(200_000),
            rcv_rtt_ns: Some(20_000_000),
            min_rtt_ns: Some(19_000_000),
            ..Info::default()
        };
        let memory = Memory { rcvbuf, rmem: 1000, ..Memory::default() };
        let locks = lock.map(|lock| Locks { rcvbuf: Some(lock), ..Locks::default() });
        let at = |received| {
            let mut socket = socket(0, &info(received), memory);
            socket.locks = locks;
            vec![socket]
        };
        connected(SETTINGS, at(0), at(in_a_round_trip * 500))
    }

    #[test]
    fn a_lock_that_was_seen_is_certain() {
        insta::assert_snapshot!(shown(&CHECK, &downloading(425_984, 150_000, Some(true))));
        let found = judged(&CHECK, &downloading(425_983, 150_000, Some(true))).expect("seen");
        assert_eq!(found[0].fixes.len(), 1, "the bound did not cut it");
    }

    #[test]
    fn twice_rmem_max_is_likely_and_another_size_is_one_explanation() {
        let sure = |rcvbuf| {
            judged(&CHECK, &downloading(rcvbuf, 150_000, None)).expect("seen")[0].confidence
        };
        assert_eq!(sure(425_984), Confidence::Medium);
        assert_eq!(sure(425_983), Confidence::Low);
    }

    #[test]
    fn a_window_with_room_or_a_buffer_without_lock_or_at_its_ceiling_is_none() {
        for host in [
            downloading(400_000, 139_000, Some(true)),
            downloading(400_000, 150_000, Some(false)),
            downloading(6_291_456, 150_000, None),
            downloading(131_072, 150_000, None),
        ] {
            assert_eq!(judged(&CHECK, &host), Ok(Vec::new()));
        }
    }

    #[test]
    fn without_sockets_nothing_is_said() {
        assert_eq!(missing(&CHECK, &host(SETTINGS)).source, Source::Sockets);
    }
}
