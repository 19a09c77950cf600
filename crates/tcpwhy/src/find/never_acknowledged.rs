//! Data was sent again and again, and its ACK never came.
//!
//! # What it says
//! One side sent data and heard nothing of it, though TCP sent it again and again, each time after a longer wait. Nothing
//! was repaired. Where nothing else came back either, the other host or the path is gone; where something did, only these
//! segments or their ACKs do not get through.
//!
//! # How we know
//! The oldest data was sent three times or more, and a second later, to the end of the capture, no ACK of it had come.
//! The window was not 0: then repeats are probes, and nothing need be lost.
//!
//! # What it is not
//! Not a loss that was repaired late (`TIMEOUT`). Not the application, which had written. Not segments that are too long
//! for the path (`BLACK_HOLE`, `PATH_MTU`), nor a server that does not take the connection (`ACCEPT_QUEUE`). A capture
//! that ends early says only that no ACK had come by then.
//!
//! # What to do
//! See whether the other host is still there and knows the connection: a host that was switched off or changed its
//! address, a firewall, NAT or load balancer that forgot an idle connection, a route that changed. A capture on the other
//! host tells which way is cut. How long a sender tries is set by `net.ipv4.tcp_retries2` (15 repeats are a quarter of
//! an hour and more) or, for one socket, by `TCP_USER_TIMEOUT`; keepalives find out about a dead peer while nothing is
//! sent, and keep entries of firewalls alive.
//!
//! # Sources
//! RFC 9293 section 3.8.3 (giving up), RFC 6298 section 5 (doubling), RFC 5482 (user timeout), RFC 5382 section 5
//! (NAT forgets idle connections); Linux `tcp_write_timeout` (v6.1, `net/ipv4/tcp_timer.c`). Ours: three sends and a
//! second, not measured.

use super::case::{Case, active_ns, filter};
use super::{Rule, accept_queue, black_hole, path_mtu, remedies};
use crate::report::{Connection, Ending, EndingKind, Evidence, Finding, Remedy, Severity, State};
use tcpwhy_words::said;

pub(super) const RULE: Rule = Rule {
    code: "NEVER_ACKNOWLEDGED",
    severity: Severity::Broken,
    file: include_str!("never_acknowledged.rs"),
    find,
};

fn find(connection: &Connection) -> Vec<Finding> {
    let ending = connection.ending.as_deref();
    let ending = ending.filter(|ending| ending.kind == EndingKind::NeverAcknowledged);
    ending.and_then(|ending| told(connection, ending)).into_iter().collect()
}

fn told(connection: &Connection, ending: &Ending) -> Option<Finding> {
    let at = usize::from(&*ending.from == "server");
    if let Some(case) = Case::of(connection, at)
        && (black_hole::explains(&case)
            || path_mtu::explains(&case)
            || accept_queue::holds_all(&case, |state| state == State::SilenceNoAck))
    {
        return None;
    }
    let [sender, receiver] = [["client", "server"], ["server", "client"]][at];
    let is_long = may_be_too_long(connection, at, ending);
    let cost_ns = ending.until_ns - ending.since_ns;
    let times = said::count(ending.sent, "time");
    let span = ending.last_sent_ns.unwrap_or(ending.until_ns) - ending.since_ns;
    let end = if ending.open { " by the end of the capture" } else { "" };
    Some(Finding {
        code: RULE.code.to_owned(),
        severity: RULE.severity,
        title: format!(
            "{} of the {sender} were never acknowledged{end}",
            said::bytes(ending.bytes)
        ),
        why: format!(
            "the {sender} sent the first of them {times} in {}, and no ACK came. {}{}",
            said::time(span),
            heard(ending, receiver),
            if is_long {
                " Nothing as long as they are ever arrived: they may be too long for the path."
            } else {
                ""
            }
        ),
        not: "not a repair: nothing of it got through; not an application's silence".to_owned(),
        evidence: vec![Evidence {
            from_ns: ending.since_ns,
            to_ns: ending.until_ns,
            frames: ending.frames,
            filter: filter(ending.frames),
            text: format!("sent {times} and never acknowledged"),
        }],
        cost_ns,
        of_ns: active_ns(connection).max(cost_ns),
        remedies: help(at, ending, is_long),
        ..Finding::default()
    })
}

/// Whether the receiver is there, and no full segment ever arrived.
fn may_be_too_long(connection: &Connection, at: usize, ending: &Ending) -> bool {
    let full = u64::from(connection.mss.unwrap_or(u32::MAX));
    let stuck = connection.directions[at].as_ref().and_then(|d| d.stuck_segment.as_deref());
    ending.heard_ns.is_some()
        && stuck.is_some_and(|stuck| stuck.bytes >= full && ending.arrived_bytes < stuck.bytes)
}

/// What the receiver said meanwhile.
fn heard(ending: &Ending, receiver: &str) -> String {
    let since = |at: i64| said::time((at - ending.since_ns).max(0));
    match ending.heard_ns {
        None if ending.later_came => format!(
            "The {receiver} had reported later data before, and then said nothing more: the {receiver} or the path is \
             gone."
        ),
        None => {
            format!("Nothing came back from the {receiver}: the {receiver} or the path is gone.")
        }
        Some(at) => format!(
            "The {receiver} is there: {} after the first send it still asked for this data. These segments do not get \
             through to it.",
            since(at)
        ),
    }
}

fn help(at: usize, ending: &Ending, is_long: bool) -> Vec<Remedy> {
    let mut help = vec![remedies::path(
        "capture on the other host too: it shows whether these segments arrive, and whether ACKs leave",
    )];
    if is_long {
        help.push(remedies::look(
            at,
            "see whether smaller segments pass: let TCP look for a size that does (for all connections of the host)",
            "sysctl net.ipv4.tcp_mtu_probing",
        ));
    }
    if ending.heard_ns.is_none() {
        help.push(remedies::path(
            "see whether that host is up, and whether a firewall, NAT or load balancer forgot this connection",
        ));
    }
    help.push(remedies::look(
        at,
        "to give up sooner set TCP_USER_TIMEOUT on the socket; tcp_retries2 does it for the whole host, keepalives for \
         connections that idle",
        "sysctl net.ipv4.tcp_retries2 net.ipv4.tcp_keepalive_time",
    ));
    help
}

#[cfg(test)]
mod tests {
    use super::super::sample;
    use super::*;
    use crate::report::StuckSegment;

    fn ended(heard_ns: Option<i64>) -> Connection {
        let ending = Ending {
            kind: EndingKind::NeverAcknowledged,
            from: "server".into(),
            since_ns: 1_000_000_000,
            until_ns: 15_000_000_000,
            bytes: 2_000,
            sent: 7,
            last_sent_ns: Some(14_000_000_000),
            heard_ns,
            ..Ending::default()
        };
        Connection { ending: Some(Box::new(ending)), ..sample::download() }
    }

    #[test]
    fn a_peer_that_says_nothing_is_gone_or_cut_off() {
        insta::assert_snapshot!(sample::shown(&find(&ended(None))));
        let found = super::super::findings(&ended(None));
        assert_eq!(found[0].code, RULE.code, "what failed comes first");
    }

    #[test]
    fn a_peer_that_was_heard_is_there() {
        let why = &find(&ended(Some(3_000_000_000)))[0].why;
        assert!(why.contains("2.00 s after the first send it still asked"), "{why}");
    }

    #[test]
    fn full_segments_that_a_peer_lacks_may_be_too_long() {
        let told = |bytes, heard_ns| {
            let mut connection = ended(heard_ns);
            connection.mss = Some(1_448);
            let stuck = StuckSegment { bytes, sent: 7, ..StuckSegment::default() };
            connection.directions[1].as_mut().expect("data").stuck_segment = Some(Box::new(stuck));
            find(&connection)[0].why.contains("too long for the path")
        };
        assert!(told(1_448, Some(3_000_000_000)));
        assert!(!told(1_447, Some(3_000_000_000)), "no full segment");
        assert!(!told(1_448, None), "perhaps nothing passes");
    }

    #[test]
    fn another_end_is_none_of_this() {
        let mut connection = ended(None);
        connection.ending.as_mut().expect("one").kind = EndingKind::NoAnswer;
        assert!(find(&connection).is_empty());
    }
}
