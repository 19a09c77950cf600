//! Opening the connection took much longer than a round trip does.
//!
//! # What it says
//! SYN, SYN-ACK and the client's ACK take one round trip, and no program has a part in them. Here they took much longer
//! than later packets needed for the same way, although no SYN was repeated.
//!
//! # How we know
//! The time from the SYN to the ACK of the SYN-ACK, against the shortest round trip of the connection and against data
//! that was acknowledged in less than half of that time. 200 ms more are needed.
//!
//! # What it is not
//! Not distance, which all packets have. Not the server's program, which learns of a connection only behind its
//! handshake. Not a lost SYN (`SYN_RETRY`). Whether a host or the way held the SYN up one capture does not tell: a
//! queue that stood just then does the same.
//!
//! # What to do
//! See with a capture on the server's host when it got the SYN and when it answered. There at once: look for what holds
//! first packets up, as a firewall or NAT that sets a flow up, address resolution, a mobile link that sleeps. There late:
//! the host was busy or paused, or what answers for it (a SYN proxy, a load balancer) opens a connection of its own first.
//!
//! # Sources
//! RFC 9293 section 3.5; Linux `tcp_conn_request`, which answers a SYN as it comes (v6.1, `net/ipv4/tcp_input.c`). Ours:
//! 200 ms, more than the jitter of a working path.

use super::case::{Case, active_ns, filter, severity};
use super::{Rule, remedies};
use crate::report::{Connection, Evidence, Finding, ScalingRefusedBy, Severity, Sure};
use tcpwhy_words::said;

pub(super) const RULE: Rule = Rule {
    code: "SLOW_HANDSHAKE",
    severity: Severity::Wrong,
    file: include_str!("slow_handshake.rs"),
    find,
};

/// A handshake is slow if it takes this much longer than the shortest round trip.
const LATE_NS: i64 = 200_000_000;

fn find(connection: &Connection) -> Vec<Finding> {
    late(connection).map(|(took, least)| told(connection, took, least)).into_iter().collect()
}

/// How long the handshake took, and the shortest round trip, if that is much less.
fn late(connection: &Connection) -> Option<(i64, i64)> {
    let took = connection.handshake_rtt_ns?;
    // A device nearer than the server may answer all that comes later.
    let is_near_device = connection.window_scaling_refused_by == Some(ScalingRefusedBy::Device);
    let sent_once =
        |syn: &Option<crate::report::Syn>| syn.as_ref().is_some_and(|syn| syn.sent == 1);
    if is_near_device || !connection.syns.iter().all(sent_once) {
        return None;
    }
    let (client, server) = (connection.tap_to_client_rtt_ns?, connection.tap_to_server_rtt_ns?);
    let measured = [0, 1].into_iter().filter_map(|at| Case::of(connection, at)?.rtt()).min();
    let least = measured.unwrap_or(0).max(client.saturating_add(server));
    let acknowledged = connection.transfers.iter().map(|each| each.end_ns - each.start_ns);
    let is_shown = acknowledged.filter(|took| *took > 0).any(|data| data * 2 <= took);
    let is_late = took.saturating_sub(least) >= LATE_NS && least * 2 <= took;
    (is_late && is_shown).then_some((took, least))
}

fn told(connection: &Connection, took: i64, least: i64) -> Finding {
    let (cost_ns, of_ns) = (took - least, active_ns(connection).max(took));
    let frames = connection.frames;
    Finding {
        code: RULE.code.to_owned(),
        severity: severity(RULE.code, cost_ns, Sure::Likely),
        title: format!(
            "the handshake took {}, though a round trip takes {}",
            said::time(took),
            said::time(least)
        ),
        why: format!(
            "{} more than the way needs passed between the SYN and the ACK of the SYN-ACK, and none was repeated; data \
             was acknowledged in less than half of that.",
            said::time(cost_ns)
        ),
        not: "not distance, and not the server's program, which no SYN reaches".to_owned(),
        evidence: vec![Evidence {
            from_ns: 0,
            to_ns: took,
            frames,
            filter: format!("{} && tcp.flags.syn == 1", filter(frames)),
            text: "SYN and SYN-ACK".to_owned(),
        }],
        cost_ns,
        of_ns,
        remedies: vec![
            remedies::path(
                "see on the server's host when the SYN came and when it was answered: late there, the host was busy or a \
                 proxy in front opens its own connection first; else a firewall, address resolution, a sleeping mobile \
                 link or a queue held it up",
            ),
            remedies::program(remedies::CLIENT, "keep connections open and use them again"),
        ],
        ..Finding::default()
    }
}

#[cfg(test)]
mod tests {
    use super::super::sample::{self, Sim};
    use super::*;

    const MS: i64 = 1_000_000;

    /// A short download at 20 ms whose handshake took so long.
    fn opened_in(took: i64) -> Connection {
        let mut connection = Sim { bytes: 1_400, ..Sim::default() }.run();
        connection.handshake_rtt_ns = Some(took);
        connection
    }

    #[test]
    fn a_handshake_much_longer_than_a_round_trip_is_told() {
        let title = &find(&opened_in(900 * MS))[0].title;
        assert!(title.contains("the handshake took 900 ms"), "{title}");
    }

    #[test]
    fn two_hundred_milliseconds_more_are_needed() {
        let least = late(&opened_in(900 * MS)).expect("late").1;
        assert!(late(&opened_in(least + LATE_NS)).is_some());
        assert!(late(&opened_in(least + LATE_NS - 1)).is_none());
        assert!(find(&sample::download()).is_empty());
    }

    #[test]
    fn a_syn_that_was_repeated_is_another_matter() {
        let mut connection = opened_in(900 * MS);
        connection.syns[0].as_mut().expect("seen").sent = 2;
        assert!(find(&connection).is_empty());
    }
}
