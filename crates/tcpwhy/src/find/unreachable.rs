//! A device said that it cannot or may not deliver the connection's packets.
//!
//! # What it says
//! A router, a firewall or the host itself answered with an ICMP error instead of passing a packet on: there is no way
//! to its destination, or a rule forbids it, or its hop limit ran out. The connection was not opened, or it waited for
//! timers meanwhile.
//!
//! # How we know
//! The error quotes this connection's packet. Of a connection that was never opened it is the only answer. Of one
//! that was open it counts where a timer or a repair ran just then, and holds a tenth of the working time.
//!
//! # What it is not
//! Not the server's program, and not a full queue: the device says why. Not always the end: TCP goes on trying when a
//! connection is open (RFC 1122), and a way may come back. "Time exceeded" is a loop of routes, or a tool such as
//! traceroute that sets a small hop limit on purpose. Such errors can be forged (RFC 5927). One that changed nothing
//! appears among the facts alone.
//!
//! # What to do
//! Go to the device that said it. Network unreachable: it has no route. Host unreachable: its neighbour does not answer
//! ARP or neighbour discovery, so the host is down, or its address is wrong. Prohibited, and port unreachable for TCP:
//! a firewall rule that rejects (iptables' REJECT says port unreachable). Time exceeded: `traceroute` shows the loop.
//!
//! # Sources
//! RFC 792, RFC 4443 section 3, RFC 1122 section 4.2.3.9, RFC 5461; Linux `tcp_v4_err`, `tcp_v6_err`, `ip_error`,
//! `ipv4_link_failure` (v6.1, `net/ipv4/tcp_ipv4.c`, `net/ipv6/tcp_ipv6.c`, `net/ipv4/route.c`).

use super::case::{Case, Told, active_ns, filter, in_each};
use super::{Rule, remedies};
use crate::icmp::said;
use crate::report::{Connection, Evidence, Finding, IcmpErrors, Remedy, Severity, State};
use tcpwhy_words::said;

pub(super) const RULE: Rule = Rule {
    code: "UNREACHABLE",
    severity: Severity::Broken,
    file: include_str!("unreachable.rs"),
    find,
};

fn find(connection: &Connection) -> Vec<Finding> {
    if let Some(error) = refusal(connection) {
        return vec![not_opened(connection, error)];
    }
    in_each(connection, running)
}

/// Whether the error says that packets are not delivered, and no more.
pub(super) fn is_such(error: &IcmpErrors) -> bool {
    error.kind.ends_with("unreachable")
        || matches!(&*error.kind, "prohibited" | "time_exceeded" | "source_route_failed")
}

/// What was said of the handshake of a connection that was never opened.
pub(super) fn refusal(connection: &Connection) -> Option<&IcmpErrors> {
    let opened =
        connection.handshake_rtt_ns.is_some() || connection.directions.iter().any(Option::is_some);
    // Whose SYN-ACK came back was not turned back on the way there.
    let side = match &connection.syns {
        _ if opened => return None,
        [Some(_), None] => "client",
        [_, Some(_)] => "server",
        [None, None] => return None,
    };
    let about = |each: &&IcmpErrors| each.about.as_deref() == Some(side) && is_such(each);
    connection.icmp.iter().find(about)
}

/// Whether it may be of a probe whose hop limit was meant to run out.
pub(super) fn may_be_meant(connection: &Connection, error: &IcmpErrors) -> bool {
    let at = usize::from(error.about.as_deref() == Some("server"));
    let sent = connection.syns[at].as_ref().map_or(1, |syn| syn.sent);
    error.kind == "time_exceeded" && sent <= 1
}

/// How long it was tried, up to what was said last.
pub(super) fn waited_ns(connection: &Connection, error: &IcmpErrors) -> i64 {
    connection.duration_ns.max(error.last_ns.unwrap_or(0))
}

fn not_opened(connection: &Connection, error: &IcmpErrors) -> Finding {
    let at = usize::from(error.about.as_deref() == Some("server"));
    let what = ["SYN", "SYN-ACK"][at];
    let sent = connection.syns[at].as_ref().map_or(1, |syn| syn.sent);
    let (from_ns, to_ns) = (error.first_ns.unwrap_or(0), error.last_ns.unwrap_or(0));
    let cost_ns = waited_ns(connection, error);
    let may_be_meant = may_be_meant(connection, error);
    Finding {
        code: RULE.code.to_owned(),
        severity: if may_be_meant { Severity::Wrong } else { RULE.severity },
        title: format!("the {what} was not delivered: {}", said(error)),
        why: format!(
            "the {what} was sent {}, and the error quotes it; nothing else came back.",
            said::times(u64::from(sent))
        ),
        not: "not the server's program, which learned nothing of it, and not a queue".to_owned(),
        evidence: vec![Evidence {
            from_ns,
            to_ns,
            frames: error.frames,
            filter: filter(error.frames),
            text: said(error),
        }],
        cost_ns,
        of_ns: cost_ns,
        remedies: vec![help(error)],
        ..Finding::default()
    }
}

/// The same of a connection that was open, where timers ran meanwhile.
fn running(case: &Case<'_>) -> Option<Finding> {
    let about = |each: &&IcmpErrors| each.about.as_deref() == Some(case.sender()) && is_such(each);
    let error = case.connection.icmp.iter().find(about)?;
    let (first, last) = (error.first_ns?, error.last_ns?);
    let mut held = case.held(|state| {
        matches!(state, State::SilenceNoAck | State::RtoWait | State::TlpWait | State::RecoveryLoss)
    });
    held.limits.retain(|each| each.start_ns <= last && each.end_ns >= first);
    if !held.is_worth_naming() {
        return None;
    }
    let told = Told {
        title: format!("packets of the {} were not delivered: {}", case.sender(), said(error)),
        why: format!(
            "the {} waited {} of {} for timers and repairs while it was said.",
            case.sender(),
            said::time(held.time_ns()),
            said::time(active_ns(case.connection))
        ),
        not: "not a full queue and not chance: the device says why it dropped them".to_owned(),
        remedies: vec![help(error)],
    };
    Some(held.finding(RULE.code, told))
}

fn help(error: &IcmpErrors) -> Remedy {
    let from = error.from;
    remedies::path(match &*error.kind {
        "net_unreachable" => {
            format!("give {from} a route to the destination, or correct the address")
        }
        "host_unreachable" => format!(
            "see whether the destination is up and answers ARP or neighbour discovery of {from}, and whether the \
             address is right"
        ),
        "prohibited" | "port_unreachable" => {
            format!("see the firewall of {from}: a rule there rejects this")
        }
        "time_exceeded" => format!(
            "look for a loop of routes around {from} (traceroute shows it), unless a tool such as traceroute sent this"
        ),
        _ => format!("see why {from} cannot deliver it: its routes, its firewall, the address"),
    })
}

#[cfg(test)]
mod tests {
    use core::net::IpAddr;

    use super::super::sample::{self, held_by};
    use super::*;
    use crate::report::Syn;

    fn error(kind: &'static str, about: &'static str) -> IcmpErrors {
        IcmpErrors {
            kind: kind.into(),
            about: Some(about.into()),
            from: IpAddr::from([10, 0, 0, 254]),
            mtu: None,
            count: 1,
            first_ns: Some(50_000),
            last_ns: Some(50_000),
            ..sample::icmp_errors()
        }
    }

    /// A client that sent a SYN so often, and what came back.
    fn asked(times: u32, kind: &'static str) -> Connection {
        let mut connection = sample::download();
        connection.directions = [None, None];
        (connection.transfers, connection.exchanges) = (Vec::new(), Vec::new());
        connection.syns = [Some(Syn { sent: times, ..Syn::default() }), None];
        connection.handshake_rtt_ns = None;
        connection.icmp = vec![error(kind, "client")];
        connection
    }

    #[test]
    fn a_syn_that_a_device_turned_back_is_told_first() {
        let connection = asked(2, "prohibited");
        insta::assert_snapshot!(sample::shown(&find(&connection)));
        assert_eq!(super::super::findings(&connection)[0].code, RULE.code);
    }

    #[test]
    fn a_hop_limit_that_ran_out_once_may_be_meant() {
        let severity = |times| find(&asked(times, "time_exceeded"))[0].severity;
        assert_eq!([severity(1), severity(2)], [Severity::Wrong, Severity::Broken]);
    }

    #[test]
    fn other_errors_and_those_about_the_other_side_are_not_this() {
        assert!(find(&asked(2, "too_big")).is_empty());
        assert!(find(&asked(2, "source_quench")).is_empty());
        let mut connection = asked(2, "host_unreachable");
        connection.icmp = vec![error("host_unreachable", "server")];
        assert!(find(&connection).is_empty());
    }

    #[test]
    fn of_an_open_connection_it_counts_where_a_timer_ran_just_then() {
        let mut connection = held_by(State::RtoWait, 5_000);
        let limits = &connection.directions[1].as_ref().expect("data").limits;
        let wait = limits.iter().find(|each| each.state == State::RtoWait).expect("held");
        let (start, end) = (wait.start_ns, wait.end_ns);
        let mut at = |ns| {
            let mut error = error("host_unreachable", "server");
            (error.first_ns, error.last_ns) = (Some(ns), Some(ns));
            connection.icmp = vec![error];
            find(&connection).len()
        };
        assert_eq!([at(start), at(end), at(end + 1)], [1, 1, 0]);
        assert!(find(&sample::download()).is_empty());
    }
}
