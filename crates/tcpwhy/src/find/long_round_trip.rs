//! The path is slow: each round trip takes longer than distance on Earth explains.
//!
//! # What it says
//! Opening the connection, the first request and whatever else waits for an answer costs one round trip each, and on
//! this path even the shortest one is long. The finding says how long, and how often it was waited for at least.
//!
//! # How we know
//! Two answers of hosts' TCPs, which no program delays: the SYN-ACK (or its ACK) and the ACK of data. The shorter of them
//! takes 300 ms or more. Light in a fibre needs 200 ms for half the way around the Earth and back, and cables are half as
//! long again. Where the acknowledging host does not run Linux, which sends the first ACKs at once, 200 ms are left for a
//! delayed one.
//!
//! # What it is not
//! Not the server's program: TCP answers before that gets anything. Not a queue that this connection filled itself: the
//! shortest round trip counts, and it is mostly the first. Not a server that only answers SYNs late, nor a delayed ACK:
//! both would have to be slow.
//!
//! # What to do
//! Find what the way passes: a satellite (600 ms), a mobile link far from its mast, a tunnel by way of another continent,
//! or a queue that others keep full (`ping` at a quiet time is shorter then). Else spend fewer round trips: keep
//! connections open, ask for more at once, TLS 1.3, a server or cache nearer to the client.
//!
//! # Sources
//! RFC 2488 section 2 (a geostationary satellite adds 250 ms each way), RFC 1122 section 4.2.3.2 (delayed ACKs); Linux
//! `tcp_enter_quickack_mode` (v6.1, `net/ipv4/tcp_input.c`). Ours: 300 ms, of 200,000 km/s in fibre, 20,000 km and a
//! detour of one half.

use super::case::{Case, active_ns, filter, severity};
use super::{Rule, remedies};
use crate::report::{Connection, Evidence, Finding, Severity, Sure};
use tcpwhy_words::said;

pub(super) const RULE: Rule = Rule {
    code: "LONG_ROUND_TRIP",
    severity: Severity::Limit,
    file: include_str!("long_round_trip.rs"),
    find,
};

/// Longer than distance on Earth explains.
const FAR_NS: i64 = 300_000_000;
/// Another system than Linux may delay an ACK of data by this. Ours: Windows and BSD delay by 200 ms at most.
const DELAYED_ACK_NS: i64 = 200_000_000;

fn find(connection: &Connection) -> Vec<Finding> {
    shortest(connection).map(|rtt| told(connection, rtt)).into_iter().collect()
}

/// The shortest round trip, if it is that long by two sources.
fn shortest(connection: &Connection) -> Option<i64> {
    let handshake = connection.handshake_rtt_ns?;
    // From the tap to both hosts and back, as far as known; each is the least of all answers.
    let ways = [connection.tap_to_client_rtt_ns, connection.tap_to_server_rtt_ns];
    let [client, server] = ways.map(|way| way.unwrap_or(0));
    let least = client.saturating_add(server).min(handshake);
    let measured = [0, 1].into_iter().filter_map(|at| Case::of(connection, at)?.rtt()).min();
    let least = measured.map_or(least, |rtt| rtt.min(least));
    let far = usize::from(server >= client);
    (least >= FAR_NS && is_far_by_data(connection, far)).then_some(least)
}

/// Whether data to `far`, the host farther from the tap, was acknowledged so late, too.
fn is_far_by_data(connection: &Connection, far: usize) -> bool {
    let may_delay = connection.sender_stack[far].name != "linux";
    let far_ns = FAR_NS + if may_delay { DELAYED_ACK_NS } else { 0 };
    let Some(case) = Case::of(connection, 1 - far) else { return false };
    let shortest =
        case.transfers().map(|each| each.end_ns - each.start_ns).filter(|ns| *ns > 0).min();
    shortest.is_some_and(|took| took >= far_ns)
}

fn told(connection: &Connection, rtt: i64) -> Finding {
    let answered =
        connection.exchanges.iter().filter(|each| each.response.is_some()).count() as i64;
    let trips = 1 + answered;
    let of_ns = active_ns(connection);
    let cost_ns = rtt.saturating_mul(trips).min(of_ns);
    let frames = connection.frames;
    Finding {
        code: RULE.code.to_owned(),
        severity: severity(RULE.code, cost_ns, Sure::Shown),
        title: format!("the path is slow: each round trip takes {} or more", said::time(rtt)),
        why: format!(
            "the SYN-ACK and the ACK of data took at least that, and no program delays these; the handshake and {} waited \
             for one each.",
            said::count(answered.unsigned_abs(), "request")
        ),
        not: "not the server's program, and not a queue that this connection filled itself; half the Earth away are 200 to \
              300 ms"
            .to_owned(),
        evidence: vec![Evidence {
            from_ns: 0,
            to_ns: connection.handshake_rtt_ns.unwrap_or(0),
            frames,
            filter: filter(frames),
            text: format!(
                "the handshake took {}",
                said::time(connection.handshake_rtt_ns.unwrap_or(rtt))
            ),
        }],
        cost_ns,
        of_ns,
        remedies: vec![
            remedies::path(
                "find what the way passes: a satellite (600 ms), a mobile link, a tunnel through another continent, or a \
                 queue that others keep full (ping at a quiet time, mtr)",
            ),
            remedies::program(
                remedies::CLIENT,
                "spend fewer round trips: keep connections open, ask for more at once, a server or cache nearer",
            ),
        ], ..Finding::default() }
}

#[cfg(test)]
mod tests {
    use super::super::sample::{self, Sim};
    use super::*;

    const MS: i64 = 1_000_000;

    fn over(rtt: i64) -> Vec<Finding> {
        find(&Sim { bytes: 1_400, rtt, ..Sim::default() }.run())
    }

    #[test]
    fn a_round_trip_that_no_distance_explains_is_told() {
        insta::assert_snapshot!(sample::shown(&over(880 * MS)));
    }

    #[test]
    fn half_the_earth_is_no_finding() {
        assert!(over(299 * MS).is_empty());
        assert!(over(20 * MS).is_empty());
    }

    #[test]
    fn a_server_that_only_answers_the_syn_late_is_no_slow_path() {
        let mut connection = Sim { bytes: 1_400, ..Sim::default() }.run();
        connection.handshake_rtt_ns = Some(900 * MS);
        assert!(find(&connection).is_empty());
    }
}
