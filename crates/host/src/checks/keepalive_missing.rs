//! Many idle connections have no keepalive, or probe later than a NAT or a load balancer forgets them.
//!
//! # What it says
//! NAT, firewalls and load balancers forget a silent connection, many after 350 s or less. The next request over it
//! is then reset, or waits for timeouts until the program opens another.
//!
//! # How we know
//! More than 100 open connections, not on loopback, have been silent for five minutes and have no timer running; or they have that of
//! keepalive, and it fires later than 350 s after the peer was last heard (two hours by default).
//!
//! # What it is not
//! Not that something on the path forgets them: that depends on the path. Many programs probe by themselves.
//!
//! # What to do
//! Switch keepalive on in the program (`SO_KEEPALIVE`, `TCP_KEEPIDLE`). `tcp_keepalive_time` counts only for sockets that have it on.
//!
//! # Sources
//! RFC 9293 section 3.8.4; tcp(7); Linux `tcp_keepalive_timer` (v6.12). 100 connections, five minutes: ours, not measured; 350 s: AWS Network
//! Load Balancer, its user guide.

use super::{Check, words};
use crate::finding::{Confidence, Evidence, Finding, Group, Scope, Severity};
use crate::seen::{Asked, Missing, Seen};
use crate::snapshot::{Socket, Source, State};

pub(super) const CHECK: Check = Check {
    code: "KEEPALIVE_MISSING",
    file: include_str!("keepalive_missing.rs"),
    group: Group::Connecting,
    judge,
};

const KEY: &str = "net.ipv4.tcp_keepalive_time";
const MANY: usize = 100;
const IDLE_NS: u64 = 300_000_000_000;
/// Idle timeout of the AWS Network Load Balancer, by its user guide; other clouds have 240 to 600 s.
const FORGOTTEN_NS: u64 = 350_000_000_000;
/// The kind of timer that keepalive is (`sock_diag(7)`).
const KEEPALIVE: u8 = 2;

fn judge(seen: &Seen<'_>) -> Asked<Vec<Finding>> {
    let sockets = seen.sockets()?;
    // Text without `ss -o` shows no timer of any socket.
    if seen.snapshot.pasted && sockets.iter().all(|socket| socket.timer.is_none()) {
        return Err(Missing::part(Source::Sockets, "timers: ss -o"));
    }
    let idle: Vec<&Socket> = sockets.iter().filter(|socket| is_idle(socket)).collect();
    let without = idle.iter().filter(|socket| socket.timer.is_none()).count();
    let probed = idle.iter().filter(|socket| is_probed_late(socket)).count();
    let late = seen.number(KEY).ok().flatten().filter(|_| probed > MANY);
    if without <= MANY && late.is_none() {
        return Ok(Vec::new());
    }
    let mut evidence = vec![Evidence::new(
        "ss -tnoi state established",
        format!(
            "{} silent for five minutes: {without} without a timer, {probed} that keepalive probes later than after 350 s",
            idle.len()
        ),
    )];
    evidence.extend(late.map(|seconds| words::setting(KEY, &seconds)));
    let mut fixes = vec![words::advise(
        "switch keepalive on in the program (SO_KEEPALIVE), with a time below that of the path",
        "",
    )];
    if late.is_some() {
        fixes.push(words::set(
            seen,
            KEY,
            &300,
            "probe after five minutes: for sockets with keepalive that set no time of their own",
            words::AT_ONCE,
            "a packet each five minutes for each of them; mobile peers wake up for it",
        ));
    }
    Ok(vec![Finding {
        severity: Severity::Info,
        confidence: Confidence::Low,
        scope: Scope::Netns,
        title: if without > MANY {
            format!("{without} idle connections are not kept alive")
        } else {
            format!(
                "{probed} idle connections are first probed after {} s, later than many paths forget them",
                late.unwrap_or(0)
            )
        },
        why: "a NAT or load balancer on the path forgets silent connections, many after 350 s; the next request on such a one is \
              reset or waits for timeouts."
            .to_owned(),
        not: "not that anything on these paths forgets them, nor that the programs do not probe by themselves".to_owned(),
        evidence,
        fixes,
        ..Finding::default()
    }])
}

/// From the last word of the peer until its keepalive fires.
fn is_probed_late(socket: &Socket) -> bool {
    let heard_ns = socket.info.as_ref().and_then(|info| info.last_ack_recv_ns).unwrap_or(0);
    socket.timer.is_some_and(|timer| {
        timer.kind == KEEPALIVE && u64::from(timer.expires_ms) * 1_000_000 + heard_ns > FORGOTTEN_NS
    })
}

fn is_idle(socket: &Socket) -> bool {
    let silent = socket
        .info
        .as_ref()
        .and_then(|info| Some(info.last_data_sent_ns?.min(info.last_data_recv_ns?)));
    socket.state == State::Established
        && !socket.remote.ip().is_loopback()
        && silent.is_some_and(|silent| silent > IDLE_NS)
}

#[cfg(test)]
mod tests {
    use super::super::parts::{each_look, peers, silent, socket};
    use super::super::sample::{host, judged, missing, shown};
    use super::*;
    use crate::snapshot::{Snapshot, Timer};

    fn idle(count: u16, for_s: u64, timer: Option<Timer>) -> Snapshot {
        each_look(host(&[(KEY, "7200")]), |_, look| {
            let one = |peer: String| Socket {
                timer,
                ..silent(socket(State::Established, "10.0.0.1:80", &peer), for_s)
            };
            look.sockets = Some(peers(count, one));
        })
    }

    const PROBED: Option<Timer> =
        Some(Timer { kind: KEEPALIVE, retransmits: 0, expires_ms: 6_900_000 });

    #[test]
    fn many_idle_connections_without_a_timer_are_told() {
        insta::assert_snapshot!(shown(&CHECK, &idle(101, 301, None)));
    }

    #[test]
    fn a_hundred_or_five_minutes_are_nothing() {
        assert_eq!(judged(&CHECK, &idle(100, 301, None)), Ok(Vec::new()));
        assert_eq!(judged(&CHECK, &idle(101, 300, None)), Ok(Vec::new()));
    }

    #[test]
    fn keepalives_of_two_hours_are_late_and_those_of_five_minutes_are_not() {
        let found = judged(&CHECK, &idle(101, 301, PROBED)).expect("seen");
        assert!(format!("{:?}", found[0].fixes).contains("\"300\""), "{found:?}");
        let soon = PROBED.map(|timer| Timer { expires_ms: 49_000, ..timer });
        assert_eq!(judged(&CHECK, &idle(101, 301, soon)), Ok(Vec::new()));
        let later = PROBED.map(|timer| Timer { expires_ms: 49_001, ..timer });
        assert_eq!(judged(&CHECK, &idle(101, 301, later)).expect("seen").len(), 1);
    }

    #[test]
    fn without_sockets_or_timers_nothing_is_said() {
        assert_eq!(missing(&CHECK, &host(&[])).source, Source::Sockets);
        let mut pasted = idle(101, 301, None);
        pasted.pasted = true;
        assert!(missing(&CHECK, &pasted).of.is_some());
    }
}
