//! The ports for outgoing connections towards one peer are nearly used up.
//!
//! # What it says
//! A connection is told apart by both addresses and both ports. Towards one port of one peer, from one
//! address, only the local port differs, and it is taken from `ip_local_port_range`. When all are taken,
//! `connect` fails with `EADDRNOTAVAIL`; long before that it searches long for a free one.
//!
//! # How we know
//! More than four fifths of the usable ports are taken towards one peer's port: open connections, and those in
//! `TIME_WAIT` that may not be used again. Ports that a program asked for outside of the range, or of those reserved,
//! do not count.
//!
//! # What it is not
//! Not a limit of the host: towards another peer the same ports are free. Programs that `bind` before they
//! connect share the range over all peers, which sockets do not show. The kernel has no counter for it.
//!
//! # What to do
//! Keep connections and use them again: then none waits in `TIME_WAIT`. Otherwise more addresses on either
//! side, a wider range, or `tcp_tw_reuse=1` where most of them are in `TIME_WAIT`.
//!
//! # Sources
//! Linux `__inet_hash_connect` (v6.12, `net/ipv4/inet_hashtables.c`), `tcp_twsk_unique` (`net/ipv4/tcp_ipv4.c`);
//! ip(7). Four fifths: ours, not measured.

use core::cmp::Reverse;
use core::net::{IpAddr, SocketAddr};
use std::collections::{BTreeMap, BTreeSet};

use super::{Check, words};
use crate::finding::{Confidence, Evidence, Finding, Fix, Group, Scope, Severity};
use crate::seen::{Asked, Missing, Seen};
use crate::snapshot::{Source, State};

pub(super) const CHECK: Check = Check {
    code: "EPHEMERAL_PORTS",
    file: include_str!("ephemeral_ports.rs"),
    group: Group::Connecting,
    judge,
};

const RANGE: &str = "net.ipv4.ip_local_port_range";
const REUSE: &str = "net.ipv4.tcp_tw_reuse";

#[derive(Clone, Copy, Debug, Default)]
struct Taken {
    open: u64,
    waiting: u64,
}

impl Taken {
    const fn all(self) -> u64 {
        self.open + self.waiting
    }
}

fn judge(seen: &Seen<'_>) -> Asked<Vec<Finding>> {
    let Some([low, high]) = seen.numbers::<2>(RANGE)? else { return Ok(Vec::new()) };
    let ports = Usable::of(seen, low, high);
    let usable = ports.count();
    if usable == 0 {
        return Ok(Vec::new());
    }
    let mut full: Vec<_> = towards(seen, &ports)?
        .into_iter()
        .filter(|(_, taken)| words::above_percent(taken.all(), 80, usable))
        .collect();
    full.sort_by_key(|(_, taken)| Reverse(taken.all()));
    let Some(&((from, to), worst)) = full.first() else { return Ok(Vec::new()) };
    let evidence = full.iter().take(words::WORST).map(|((from, to), taken)| {
        Evidence::new(
            format!("ss -tan src {from} dst {to}"),
            format!("{} open, {} in TIME_WAIT", taken.open, taken.waiting),
        )
    });
    let mut evidence: Vec<_> = evidence.collect();
    evidence.push(words::setting(RANGE, &format!("{low} {high}")));
    Ok(vec![Finding {
        severity: if worst.all() >= usable { Severity::Error } else { Severity::Warning },
        confidence: Confidence::High,
        scope: Scope::Peer(to.to_string()),
        title: format!("{} of {usable} ports from {from} to {to} are taken", worst.all()),
        why: format!(
            "each connection to {to} needs a port of its own; when none is left connect() fails with \
             EADDRNOTAVAIL, and the fuller the range, the longer it searches.{}",
            others(full.len())
        ),
        not: "not a limit for other peers: towards them the same ports are free".to_owned(),
        evidence,
        fixes: fixes(seen, worst, [low, high]),
        unseen: seen
            .now
            .time_wait
            .is_none()
            .then(|| "sockets in TIME_WAIT".to_owned())
            .into_iter()
            .collect(),
        ..Finding::default()
    }])
}

fn others(full: usize) -> String {
    if full > 1 {
        format!(" {} more are as full.", words::count(full as u64 - 1, "pair"))
    } else {
        String::new()
    }
}

/// The ports that the kernel chooses from: those of the range that are not reserved.
struct Usable {
    low: i64,
    high: i64,
    reserved: Vec<[i64; 2]>,
}

impl Usable {
    fn of(seen: &Seen<'_>, low: i64, high: i64) -> Self {
        let text = seen.setting("net.ipv4.ip_local_reserved_ports").ok().flatten().unwrap_or("");
        let part = |part: &str| {
            let (from, to) = part.trim().split_once('-').unwrap_or((part.trim(), part.trim()));
            Some([from.parse().ok()?, to.parse().ok()?])
        };
        Self { low, high, reserved: text.split(',').filter_map(part).collect() }
    }

    fn count(&self) -> u64 {
        let Self { low, high, reserved } = self;
        let taken = reserved.iter().map(|[from, to]| (to.min(high) - from.max(low) + 1).max(0));
        (high - low + 1 - taken.sum::<i64>()).max(0).unsigned_abs()
    }

    fn has(&self, port: u16) -> bool {
        let port = i64::from(port);
        (self.low..=self.high).contains(&port)
            && !self.reserved.iter().any(|[from, to]| (from..=to).contains(&&port))
    }
}

/// What is taken, by this host's address and the peer's port.
fn towards(seen: &Seen<'_>, ports: &Usable) -> Asked<BTreeMap<(IpAddr, SocketAddr), Taken>> {
    let listening: BTreeSet<u16> =
        seen.listeners()?.iter().map(|listener| listener.local.port()).collect();
    let mut taken: BTreeMap<(IpAddr, SocketAddr), Taken> = BTreeMap::new();
    for socket in seen.sockets()? {
        let port = socket.local.port();
        let connects = ports.has(port) && !listening.contains(&port);
        if connects && !matches!(socket.state, State::SynRecv | State::Close) {
            taken.entry((socket.local.ip(), socket.remote)).or_default().open += 1;
        }
    }
    let reuse = seen.number(REUSE).ok().flatten();
    for waiting in seen.now.time_wait.iter().flatten() {
        let is_loopback = waiting.local.is_loopback() || waiting.remote.ip().is_loopback();
        let is_free = reuse == Some(1) || (reuse == Some(2) && is_loopback);
        if waiting.local_port.is_none() && waiting.remote.port() != 0 && !is_free {
            taken.entry((waiting.local, waiting.remote)).or_default().waiting +=
                u64::from(waiting.count);
        }
    }
    if taken.is_empty() && seen.now.time_wait.is_none() && seen.snapshot.pasted {
        return Err(Missing::part(Source::Sockets, "those in TIME_WAIT"));
    }
    Ok(taken)
}

fn fixes(seen: &Seen<'_>, worst: Taken, [low, high]: [i64; 2]) -> Vec<Fix> {
    let mut fixes = vec![words::advise(
        "keep connections open and use them again (a pool, HTTP keep-alive), or spread them over more addresses",
        "",
    )];
    if worst.waiting > worst.open && seen.number(REUSE).ok().flatten().is_some_and(|on| on != 1) {
        fixes.push(words::set(
            seen,
            REUSE,
            &1,
            "let a new connection take the port of one in TIME_WAIT after a second",
            words::AT_ONCE,
            "needs timestamps on both sides; a firewall between that still remembers the old connection may drop the new one",
        ));
    }
    if low > LOWEST {
        let listeners = seen.listeners().unwrap_or_default().iter();
        let mut ports: Vec<u16> = listeners
            .map(|listener| listener.local.port())
            .filter(|port| (LOWEST..low).contains(&i64::from(*port)))
            .collect();
        ports.sort_unstable();
        ports.dedup();
        let ports: Vec<String> = ports.iter().map(u16::to_string).collect();
        let risk = if ports.is_empty() {
            "a program that starts later may find its port taken: reserve it in ip_local_reserved_ports".to_owned()
        } else {
            format!(
                "programs listen on {} inside the new range: put these into ip_local_reserved_ports first",
                words::named(&ports)
            )
        };
        fixes.push(words::set(
            seen,
            RANGE,
            &format!("{LOWEST} {high}"),
            "widen the range",
            words::AT_ONCE,
            &risk,
        ));
    }
    fixes
}

/// The least port that we propose. Ours, not measured: below it registered services are dense.
const LOWEST: i64 = 10_240;

#[cfg(test)]
mod tests {
    use super::super::parts::{each_look, socket};
    use super::super::sample::{host, judged, listener, missing, shown};
    use super::*;
    use crate::snapshot::{Occupied, Snapshot};

    const SETTINGS: [(&str, &str); 3] = [
        (RANGE, "32768 32867"),
        (REUSE, "2"),
        ("net.ipv4.ip_local_reserved_ports", "8080,32860-32900"),
    ];

    /// 92 ports are usable.
    fn connected(open: u16, waiting: u32, settings: &[(&str, &str)]) -> Snapshot {
        each_look(host(settings), |_, look| {
            let to_db =
                |port| socket(State::Established, &format!("10.0.0.1:{port}"), "10.0.0.5:5432");
            look.sockets = Some((32768..32768 + open).map(to_db).collect());
            look.listeners = Some(vec![listener(0, 128, 0)]);
            look.time_wait = Some(vec![Occupied {
                local: "10.0.0.1".parse().expect("an address"),
                local_port: None,
                remote: "10.0.0.5:5432".parse().expect("an address"),
                count: waiting,
            }]);
        })
    }

    #[test]
    fn a_range_full_of_connections_that_wait_is_told_with_the_peer() {
        insta::assert_snapshot!(shown(&CHECK, &connected(10, 70, &SETTINGS)));
    }

    #[test]
    fn four_fifths_are_not_enough_and_a_range_that_is_used_up_is_an_error() {
        assert_eq!(judged(&CHECK, &connected(3, 70, &SETTINGS)), Ok(Vec::new()));
        let found = judged(&CHECK, &connected(4, 70, &SETTINGS)).expect("seen");
        assert_eq!(found[0].severity, Severity::Warning);
        let found = judged(&CHECK, &connected(22, 70, &SETTINGS)).expect("seen");
        assert_eq!(found[0].severity, Severity::Error);
    }

    #[test]
    fn ports_that_the_kernel_does_not_choose_take_none_of_the_range() {
        let mut host = connected(4, 70, &SETTINGS);
        assert_eq!(judged(&CHECK, &host).map(|found| found.len()), Ok(1), "more than four fifths");
        let mut waiting = host.looks[1].time_wait.take().expect("some");
        waiting[0].count = 69;
        let asked_for = |port| Occupied { local_port: Some(port), count: 1, ..waiting[0].clone() };
        let beyond = [32767, 32868].map(asked_for);
        waiting.extend(beyond);
        host.looks[1].time_wait = Some(waiting);
        let to_db = |port| socket(State::Established, &format!("10.0.0.1:{port}"), "10.0.0.5:5432");
        for port in [32767, 32860, 32867, 32868] {
            host.looks[1].sockets.as_mut().expect("some").push(to_db(port));
        }
        assert_eq!(judged(&CHECK, &host), Ok(Vec::new()), "73 of 92, and six beside them");
        host.looks[1].sockets.as_mut().expect("some").push(to_db(32859));
        assert_eq!(
            judged(&CHECK, &host).map(|found| found.len()),
            Ok(1),
            "the last that is usable"
        );
    }

    #[test]
    fn ports_in_time_wait_that_may_be_used_again_are_free() {
        let reused = [SETTINGS[0], (REUSE, "1")];
        assert_eq!(judged(&CHECK, &connected(10, 90, &reused)), Ok(Vec::new()));
    }

    #[test]
    fn connections_that_were_accepted_on_a_port_of_the_range_are_not_ours() {
        let mut host = connected(0, 0, &SETTINGS);
        let accepted =
            |port| socket(State::Established, "10.0.0.1:32800", &format!("10.0.0.5:{port}"));
        let mut here = listener(0, 128, 0);
        here.local = "0.0.0.0:32800".parse().expect("an address");
        host.looks[1].listeners = Some(vec![here]);
        host.looks[1].sockets = Some((1000..1100).map(accepted).collect());
        assert_eq!(judged(&CHECK, &host), Ok(Vec::new()));
    }

    #[test]
    fn without_sockets_nothing_is_said() {
        assert_eq!(missing(&CHECK, &host(&SETTINGS)).source, Source::Sockets);
    }
}
