//! Data waits long in send buffers before it is sent.
//!
//! # What it says
//! A program may write far more than the connection sends: the rest waits in the send buffer. What it writes next,
//! however urgent, is behind that: a server that multiplexes requests (HTTP/2, gRPC) answers late though the
//! network is idle enough.
//!
//! # How we know
//! At every look at least 1 MiB was written and not sent (`notsent`), and at the rate at which the peer receives
//! that is more than a second. No bound is set (`tcp_notsent_lowat`).
//!
//! # What it is not
//! For plain downloads that is harmless: the whole file has to go anyway.
//!
//! # What to do
//! Set `net.ipv4.tcp_notsent_lowat` to 131072, or the socket option in the program: it is then told that there is room
//! only when less than that is unsent.
//!
//! # Sources
//! tcp(7); Linux `tcp_stream_memory_free`, `tcp_notsent_lowat` (v6.12). 1 MiB and a second: ours, not measured; 128 KiB
//! is what tuned's profile for throughput sets.

use super::flows::{self, rate, time};
use super::{Check, words};
use crate::finding::{Confidence, Finding, Group, Scope, Severity};
use crate::flow::Flow;
use crate::seen::{Asked, Seen};
use crate::snapshot::{Info, Socket};
use tcpwhy_words::said::bytes;

pub(super) const CHECK: Check = Check {
    code: "UNSENT_BACKLOG",
    file: include_str!("unsent_backlog.rs"),
    group: Group::Sending,
    judge,
};

const KEY: &str = "net.ipv4.tcp_notsent_lowat";
const MUCH: u64 = 1 << 20;
const LONG_NS: u64 = 1_000_000_000;

fn judge(seen: &Seen<'_>) -> Asked<Vec<Finding>> {
    let Some(bound) = seen.number(KEY)? else { return Ok(Vec::new()) };
    // Without a bound it is UINT_MAX, which some kernels print as -1.
    if (0..i64::from(i32::MAX)).contains(&bound) {
        return Ok(Vec::new());
    }
    let is_bound = |flow: &Flow<'_>| {
        flow.now.locks.and_then(|locks| locks.notsent_lowat).is_some_and(|bound| bound < u32::MAX)
    };
    let late =
        flows::known(seen)?.into_iter().filter(|(flow, _)| flow.always(is_late) && !is_bound(flow));
    let late =
        flows::worst(late.map(|(flow, _)| flow).collect(), |flow| flow.info().and_then(wait));
    let Some(worst) = late.first() else { return Ok(Vec::new()) };
    let mut evidence = vec![words::setting(KEY, &bound)];
    evidence.extend(flows::evidence(seen, &late, |flow| {
        let notsent = flow.info().and_then(|info| info.notsent_bytes).unwrap_or(0);
        format!(
            "notsent {}, {} at its rate",
            bytes(notsent),
            time(flow.info().and_then(wait).unwrap_or(0))
        )
    }));
    Ok(vec![Finding {
        severity: Severity::Info,
        confidence: if seen.before.is_some() { Confidence::High } else { Confidence::Low },
        scope: Scope::Netns,
        title: format!("data waits long in the send buffers of {}", flows::counted(seen, &late)),
        why: format!(
            "what a program writes now leaves this host only after {} on the worst of them; a server that \
             answers many requests on one connection feels that.",
            time(worst.info().and_then(wait).unwrap_or(0))
        ),
        not: "not that a plain download suffers: all of it has to go anyway".to_owned(),
        evidence,
        fixes: vec![words::set(
            seen,
            KEY,
            &131_072,
            "let programs write only when less than 128 KiB is unsent",
            words::AT_ONCE,
            "more system calls; a program that is slow to write may leave the connection idle",
        )],
        ..Finding::default()
    }])
}

fn is_late(socket: &Socket) -> bool {
    socket.info.as_deref().is_some_and(|info| {
        info.notsent_bytes.is_some_and(|notsent| notsent >= MUCH)
            && wait(info).is_some_and(|wait| wait > LONG_NS)
    })
}

/// How long what is unsent takes at the rate of delivery.
fn wait(info: &Info) -> Option<u64> {
    // Bytes over bytes a second, in nanoseconds.
    rate(info.notsent_bytes?, info.delivery_rate.filter(|rate| *rate > 0)?)
}

#[cfg(test)]
mod tests {
    use super::super::sample::{host, judged, missing, shown};
    use super::super::sample_flows::{connected, socket};
    use super::*;
    use crate::snapshot::{Memory, Snapshot, Source};

    fn writing(setting: &str, notsent: u64, rate: u64) -> Snapshot {
        let info =
            Info { notsent_bytes: Some(notsent), delivery_rate: Some(rate), ..Info::default() };
        let at = || vec![socket(0, &info, Memory::default())];
        connected(&[(KEY, setting)], at(), at())
    }

    #[test]
    fn three_seconds_of_data_before_the_next_write() {
        insta::assert_snapshot!(shown(&CHECK, &writing("4294967295", 3 << 20, 1 << 20)));
    }

    #[test]
    fn a_mebibyte_for_more_than_a_second_without_a_bound_is_the_border() {
        let number = |setting, notsent, rate| {
            judged(&CHECK, &writing(setting, notsent, rate)).expect("seen").len()
        };
        assert_eq!([number("-1", MUCH, MUCH - 1), number("-1", MUCH, MUCH)], [1, 0]);
        assert_eq!([number("-1", MUCH - 1, 1000), number("131072", MUCH, 1000)], [0, 0]);
    }

    #[test]
    fn without_sockets_nothing_is_said() {
        assert_eq!(missing(&CHECK, &host(&[(KEY, "-1")])).source, Source::Sockets);
    }
}
