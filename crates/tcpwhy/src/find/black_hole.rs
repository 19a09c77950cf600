//! Full-size segments never arrive, smaller ones do.
//!
//! # What it says
//! A link on the way carries less than a full segment, and the device before it drops what is longer
//! without a word (or its word, an ICMP message, is dropped). Handshake and short requests pass, and the
//! first full segment is sent again and again in vain.
//!
//! # How we know
//! The segment at the head of the flight was sent at least three times, always at one size, and no segment
//! of that size is known to have arrived, while smaller ones did. It is a full one, or has more than 536
//! bytes, which any path carries. And its bytes passed at last in smaller pieces, or the peer reported
//! meanwhile (SACK, duplicate ACKs) that something sent after it had arrived. The waits for its timers hold at least
//! a tenth of the working time.
//!
//! # What it is not
//! Not loss, which strikes all sizes. Not a peer or a path that is gone: something arrived. The peer's own data, FIN or RST are no sign of that. Where only full segments were
//! sent and the peer answered nothing at all, this is not told from a peer that died: then only the
//! timeouts are named.
//!
//! # What to do
//! On the path: let ICMP "fragmentation needed" and "packet too big" through, or lower the MSS that passes
//! the narrow link (`tcp option maxseg size set rt mtu`, a clamp at the tunnel). On the sender, until then:
//! `net.ipv4.tcp_mtu_probing=1` lets it find a size that passes, after some timeouts; a route with a smaller
//! `mtu` does so at once.
//!
//! # Sources
//! RFC 2923 section 2.1 (black holes), RFC 4821 (probing); Linux `tcp_mtu_probing`, `tcp_write_timeout`
//! (v6.1, `net/ipv4/tcp_timer.c`); RFC 9293 section 3.7.1 (536 bytes). Ours: three sends, not measured.

use super::case::{Case, Told, in_each};
use super::{Rule, path_mtu, remedies};
use crate::icmp::said;
use crate::report::{Connection, Finding, Severity, State, StuckSegment};
use tcpwhy_words::said;

pub(super) const RULE: Rule = Rule {
    code: "BLACK_HOLE",
    severity: Severity::Broken,
    file: include_str!("black_hole.rs"),
    find,
};

/// A head was sent so often before it is called stuck. Ours: the original and two repeats.
const FEWEST_SENDS: u64 = 3;
/// Payload that any path carries (RFC 9293 section 3.7.1, the default MSS).
const ALWAYS_PASSES: u64 = 536;

fn find(connection: &Connection) -> Vec<Finding> {
    in_each(connection, |case| {
        let stuck = stuck(case)?;
        let mut held = case.held(|state| {
            matches!(
                state,
                State::SilenceNoAck | State::RtoWait | State::TlpWait | State::RecoveryLoss
            )
        });
        held.limits.retain(|limit| limit.end_ns > stuck.from_ns);
        if !held.is_worth_naming() {
            return None;
        }
        let (sender, receiver) = (case.sender(), case.receiver());
        let end = match stuck.passed_bytes {
            Some(bytes) => format!("its bytes passed in pieces of {}", said::bytes(bytes)),
            None => {
                format!("the {receiver} reported meanwhile that what was sent after it had arrived")
            }
        };
        let (smaller, arrived) = match stuck.arrived_bytes {
            0 => ("", "the handshake passed, and no larger packet".to_owned()),
            bytes => (
                ", smaller ones do",
                format!("the largest that arrived had {}", said::bytes(bytes)),
            ),
        };
        let end = match path_mtu::error(case) {
            Some(error) => format!("{end}; {}", said(error)),
            None => end,
        };
        let told = Told {
            title: format!("segments of {} never arrive{smaller}", said::bytes(stuck.bytes)),
            why: format!(
                "the {sender} sent one {} in {}; {arrived}; {end}.",
                said::times(stuck.sent),
                said::time(stuck.to_ns - stuck.from_ns)
            ),
            not: "not chance, which strikes small segments as well; a device that lets no data of this \
                  connection through would look alike where nothing smaller was tried"
                .to_owned(),
            remedies: help(case),
        };
        Some(held.finding(RULE.code, told))
    })
}

/// The segment that was stuck for its size, if that is sure.
fn stuck<'a>(case: &Case<'a>) -> Option<&'a StuckSegment> {
    case.direction.stuck_segment.as_deref().filter(|stuck| {
        let is_full = case.mss().is_some_and(|mss| stuck.bytes >= mss);
        (is_full || stuck.bytes > ALWAYS_PASSES)
            && stuck.sent >= FEWEST_SENDS
            && (stuck.passed_bytes.is_some() || stuck.peer_heard)
    })
}

/// Whether timers ran out for this.
pub(super) fn explains(case: &Case<'_>) -> bool {
    stuck(case).is_some()
}

fn help(case: &Case<'_>) -> Vec<crate::report::Remedy> {
    vec![
        remedies::path(
            "let ICMP \"fragmentation needed\" through to the sender, or lower the MSS of SYNs where the narrow link \
             begins (a tunnel, a VPN)",
        ),
        remedies::sysctl(
            case,
            case.at,
            "net.ipv4.tcp_mtu_probing",
            "1",
            "until then, let TCP look for a size that passes once timers have run out (for all connections of the \
             host)"
                .to_owned(),
        ),
    ]
}

#[cfg(test)]
mod tests {
    use super::super::sample::{self, held_by};
    use super::*;

    fn stuck_at(bytes: u64, sent: u64) -> Connection {
        let mut connection = held_by(State::RtoWait, 5_000);
        let direction = connection.directions[1].as_mut().expect("data");
        direction.stuck_segment = Some(Box::new(StuckSegment {
            bytes,
            sent,
            to_ns: 3_000_000_000,
            arrived_bytes: 200,
            passed_bytes: Some(1_024),
            ..StuckSegment::default()
        }));
        connection
    }

    #[test]
    fn full_segments_that_pass_only_in_pieces_are_told_and_no_timeout_beside_them() {
        let connection = stuck_at(1_448, 4);
        insta::assert_snapshot!(sample::shown(&find(&connection)));
        let found = super::super::findings(&connection);
        assert!(found.iter().all(|finding| finding.code != "TIMEOUT"));
    }

    #[test]
    fn three_sends_are_enough_and_two_are_not() {
        assert_eq!(find(&stuck_at(1_448, 3)).len(), 1);
        assert!(find(&stuck_at(1_448, 2)).is_empty());
    }

    #[test]
    fn what_any_path_carries_is_not_too_long() {
        assert_eq!([find(&stuck_at(537, 4)).len(), find(&stuck_at(536, 4)).len()], [1, 0]);
        let mut small = stuck_at(400, 4);
        small.mss = Some(400);
        assert_eq!(find(&small).len(), 1, "a full segment");
    }

    #[test]
    fn a_peer_that_says_nothing_may_be_gone() {
        let mut connection = stuck_at(1_448, 4);
        let direction = connection.directions[1].as_mut().expect("data");
        let stuck = direction.stuck_segment.as_mut().expect("stuck");
        stuck.passed_bytes = None;
        assert!(find(&connection).is_empty());
        let direction = connection.directions[1].as_mut().expect("data");
        direction.stuck_segment.as_mut().expect("stuck").peer_heard = true;
        assert_eq!(find(&connection).len(), 1);
    }
}
