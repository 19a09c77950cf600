//! Data was sent that never came to the capture point, and no repair of it did.
//!
//! # What it says
//! Seen at the receiver or on the way: the sender's own numbers prove that it sent more than came. The hole was never
//! filled. Where only small segments come through, large ones vanish on the way: a black hole.
//!
//! # How we know
//! Later data or a FIN came behind the missing bytes, or a bare ACK of the sender carries the number of the byte behind
//! them. The receiver says meanwhile that it lacks them, and for a second or more no repair came. That it is a matter of
//! size is likely where the hole holds more than 536 bytes and nothing that came is as long as a full segment.
//!
//! # What it is not
//! Not the server's program: it has answered. Not the receiver, which asks for the missing bytes. The capture was
//! not taken on the sender's host, where missing data would be the capture's own loss.
//!
//! # What to do
//! By size: let ICMP "fragmentation needed" and "packet too big" through, or lower the MSS where the narrow link begins (a
//! tunnel, a VPN, a switch port with a smaller MTU); on the sender `net.ipv4.tcp_mtu_probing=1` finds a size that
//! passes. Else find where on the way the segments are dropped: capture on the sender's side and in between.
//!
//! # Sources
//! RFC 9293 section 3.4 (numbers of bare ACKs), RFC 2018 (SACK), RFC 2923 section 2.1 (black holes), RFC 4821; RFC 9293
//! section 3.7.1 (536 bytes).

use super::case::{active_ns, filter};
use super::{Rule, remedies};
use crate::report::{Connection, Ending, EndingKind, Evidence, Finding, Remedy, Severity};
use tcpwhy_words::said;

pub(super) const RULE: Rule = Rule {
    code: "NEVER_ARRIVED",
    severity: Severity::Broken,
    file: include_str!("never_arrived.rs"),
    find,
};

/// Payload that any path carries (RFC 9293 section 3.7.1, the default MSS).
const ALWAYS_PASSES: u64 = 536;

fn find(connection: &Connection) -> Vec<Finding> {
    let ending = connection.ending.as_deref();
    let ending = ending.filter(|ending| ending.kind == EndingKind::NeverArrived);
    ending.map(|ending| told(connection, ending)).into_iter().collect()
}

/// Whether only short segments came through.
fn is_by_size(connection: &Connection, ending: &Ending) -> bool {
    let full = u64::from(connection.mss.unwrap_or(0));
    ending.bytes > ALWAYS_PASSES
        && ending.bytes > ending.arrived_bytes
        && ending.arrived_bytes < full
}

fn told(connection: &Connection, ending: &Ending) -> Finding {
    let [sender, receiver] = match &*ending.from {
        "server" => ["server", "client"],
        _ => ["client", "server"],
    };
    let by_size = is_by_size(connection, ending);
    let cost_ns = ending.until_ns - ending.since_ns;
    let missing = said::bytes(ending.bytes);
    let proof = if ending.later_came {
        format!("what the {sender} sent behind them came")
    } else {
        format!("the {sender}'s own sequence numbers count them as sent")
    };
    let small = match (by_size, ending.arrived_bytes) {
        (false, _) => String::new(),
        (true, 0) => " No data segment came at all; small packets without data did.".to_owned(),
        (true, bytes) => format!(
            " Only segments of up to {} came: larger ones likely vanish on the way.",
            said::bytes(bytes)
        ),
    };
    let end = if ending.open { ", up to the end of the capture" } else { "" };
    Finding {
        code: RULE.code.to_owned(),
        severity: RULE.severity,
        title: if by_size {
            format!(
                "{missing} from the {sender} never arrived: likely a black hole for large segments"
            )
        } else {
            format!("{missing} from the {sender} never arrived, and no repair came")
        },
        why: format!(
            "{proof}; the {receiver} still lacked them {} later{end}.{small}",
            said::time(cost_ns)
        ),
        not: format!(
            "not the {sender}'s program, which had sent them; not the {receiver}, which lacks them"
        ),
        evidence: vec![Evidence {
            from_ns: ending.since_ns,
            to_ns: ending.until_ns,
            frames: ending.frames,
            filter: filter(ending.frames),
            text: format!("{missing} missing"),
        }],
        cost_ns,
        of_ns: active_ns(connection).max(cost_ns),
        remedies: help(by_size, usize::from(sender == "server")),
        ..Finding::default()
    }
}

fn help(by_size: bool, at: usize) -> Vec<Remedy> {
    let capture = remedies::path(
        "capture on the sender's side and in between: between the two captures that differ they are lost",
    );
    if !by_size {
        return vec![capture];
    }
    vec![
        remedies::path(
            "let ICMP \"fragmentation needed\" through to the sender, or lower the MSS of SYNs where the narrow link \
             begins (a tunnel, a VPN, a switch port with a smaller MTU)",
        ),
        remedies::look(
            at,
            "until then, let TCP look for a size that passes (for all connections of the host)",
            "sysctl net.ipv4.tcp_mtu_probing",
        ),
        capture,
    ]
}

#[cfg(test)]
mod tests {
    use super::super::sample;
    use super::*;

    fn ended(bytes: u64, arrived_bytes: u64) -> Connection {
        let ending = Ending {
            kind: EndingKind::NeverArrived,
            from: "server".into(),
            since_ns: 40_000_000,
            until_ns: 6_040_000_000,
            bytes,
            arrived_bytes,
            later_came: arrived_bytes > 0,
            ..Ending::default()
        };
        Connection { ending: Some(Box::new(ending)), mss: Some(1_448), ..sample::download() }
    }

    #[test]
    fn where_only_the_short_tail_came_the_size_is_likely_what_stops_the_rest() {
        insta::assert_snapshot!(sample::shown(&find(&ended(8_688, 341))));
    }

    #[test]
    fn where_full_segments_came_too_the_size_is_not_blamed() {
        let title = |bytes, arrived| find(&ended(bytes, arrived))[0].title.clone();
        assert!(title(8_688, 1_447).contains("black hole"));
        assert!(!title(8_688, 1_448).contains("black hole"));
        assert!(!title(536, 341).contains("black hole"), "any path carries that");
        assert!(title(537, 341).contains("black hole"));
    }
}
