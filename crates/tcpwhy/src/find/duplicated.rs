//! The path delivered segments twice.
//!
//! # What it says
//! A device on the way made copies of packets, and the receiver's TCP got both. Nobody sent anything again.
//!
//! # How we know
//! The receiver reported ranges that it got twice (D-SACK) though the capture holds no retransmission of them. Taken at
//! the receiver, the capture holds the copies too. A copy that the capture made (two interfaces, a mirror port) never
//! reached the receiver's TCP and gets no D-SACK. At the sender, where no copy is seen, it takes three such reports, and
//! a capture that lacks nothing. Copies of packets without data get no report: only their
//! number beside the others tells of them.
//!
//! # What it is not
//! Not a retransmission, and not a fault of the capture. It costs little by itself: the copies' share of the link. But
//! D-SACKs speak of needless retransmissions to the sender. Linux takes reordering for larger by them, and repairs
//! real losses later.
//!
//! # What to do
//! Find the device that doubles, by a capture on each side of it: a loop of bridges or switches, a mirror port that
//! leads back into the network, bonding in broadcast mode, two gateways of one address (VRRP, HSRP) that both forward,
//! two tunnels, a Wi-Fi hop whose acknowledgements get lost. Copies with fewer hops left took a longer way.
//!
//! # Sources
//! RFC 2883 section 4 (D-SACK), RFC 3708 section 3 (packets doubled by the network); Linux `tcp_send_dupack`,
//! `tcp_check_dsack` (v6.1, `net/ipv4/tcp_input.c`).

use super::case::{Case, active_ns, filter, in_each};
use super::{Rule, remedies};
use crate::report::{Connection, Evidence, Finding, Severity};
use tcpwhy_words::said;

pub(super) const RULE: Rule = Rule {
    code: "DUPLICATED",
    severity: Severity::Note,
    file: include_str!("duplicated.rs"),
    find,
};

fn find(connection: &Connection) -> Vec<Finding> {
    in_each(connection, |case| {
        let doubled = case.direction.events.doubled;
        (doubled > 0).then(|| Finding {
            code: RULE.code.to_owned(),
            // The copies' share of the link is no time that anybody waited.
            severity: Severity::Note,
            title: "the path delivered segments twice".to_owned(),
            why: why(case, doubled),
            not: "not retransmitted by the sender, and not copies that the capture made: those never reach the receiver's \
                  TCP"
                .to_owned(),
            evidence: vec![evidence(connection)],
            cost_ns: 0,
            of_ns: active_ns(connection),
            remedies: vec![
                remedies::path(
                    "capture on both sides of each hop to find the device that doubles: a loop of switches, a mirror \
                     port, bonding in broadcast mode, two gateways that both forward, a Wi-Fi hop",
                ),
                remedies::host(
                    case.at,
                    "see whether such reports come from other peers, too",
                    "nstat -az TcpExtTCPDSACKRecv TcpExtTCPDSACKOfoRecv TcpExtTCPDSACKIgnoredDubious",
                ),
            ], ..Finding::default() })
    })
}

fn why(case: &Case<'_>, doubled: u64) -> String {
    let segments = case.direction.segments;
    let share = said::percent(
        i64::try_from(doubled).unwrap_or(i64::MAX),
        i64::try_from(segments).unwrap_or(i64::MAX),
    );
    format!(
        "on the way from the {} to the {}, {} of {} ({share}) were doubled: the {} reported by D-SACK that it got them \
         twice, and none of them was retransmitted. Such reports make a sender expect reordering, and repair losses later.",
        case.sender(),
        case.receiver(),
        said::grouped(doubled),
        said::count(segments, "segment"),
        case.receiver(),
    )
}

fn evidence(connection: &Connection) -> Evidence {
    let frames = connection.frames;
    Evidence {
        from_ns: 0,
        to_ns: connection.duration_ns,
        frames,
        filter: format!("{} && tcp.options.sack.dsack", filter(frames)),
        text: "the receiver's D-SACKs".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::super::sample;
    use super::*;

    fn with(doubled: u64) -> Vec<Finding> {
        let mut connection = sample::download();
        connection.directions[1].as_mut().expect("data").events.doubled = doubled;
        find(&connection)
    }

    #[test]
    fn doubled_segments_are_told() {
        let found = with(4);
        assert_eq!(found.len(), 1);
        insta::assert_snapshot!(sample::shown(&found));
    }

    #[test]
    fn none_are_not() {
        assert!(with(0).is_empty());
    }
}
