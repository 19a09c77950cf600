//! The TLS handshake took a good part of the time.
//!
//! # What it says
//! Before the first request the TLS handshake takes round trips of its own, after the one of TCP:
//! one with TLS 1.3, two with TLS 1.2, more if the server asks for another key share or its
//! certificates fill more than the first flight.
//!
//! # How we know
//! The clear headers of TLS records show the handshake from its first record to the client's first
//! flight after the server's hello; that span holds at least a tenth of the active time. The
//! changes of direction in it, two of them a round trip, are counted. Nothing is decrypted.
//!
//! # What it is not
//! Not the server's application: no request was sent yet. Part of the span may be computing (keys,
//! certificates) or the client's wait for a revocation check; a capture does not tell.
//!
//! # What to do
//! Keep connections open and use them again. TLS 1.3 on both sides, or a resumed session of TLS 1.2 (tickets),
//! takes one round trip instead of two; only early data saves that one, too, where repeating a request does no
//! harm. Keep
//! the certificate chain short enough for the server's first flight (some 14 KB).
//!
//! # Sources
//! RFC 8446 sections 2, 2.1 to 2.3 and 5.1, RFC 5246 section 7.3; RFC 6928 (the first flight).

use super::case::{Case, active_ns, filter, severity};
use super::{Rule, remedies};
use crate::report::{Connection, Evidence, Finding, FrameRange, Severity, Sure};
use tcpwhy_words::said;

pub(super) const RULE: Rule = Rule {
    code: "TLS_ROUND_TRIPS",
    severity: Severity::Limit,
    file: include_str!("tls_round_trips.rs"),
    find,
};

/// Clear headers show the flights; TLS 1.3 hides where exactly its handshake ends.
const SURE: Sure = Sure::Likely;

fn find(connection: &Connection) -> Vec<Finding> {
    let Some(tls) = &connection.tls else { return Vec::new() };
    let Some(end_ns) = tls.end_ns.filter(|end| *end > tls.start_ns) else { return Vec::new() };
    let (cost_ns, active) = (end_ns - tls.start_ns, active_ns(connection));
    if cost_ns * 10 < active {
        return Vec::new();
    }
    let turns = (tls.flights.len() as u64).saturating_sub(1);
    let rtt = Case::of(connection, 0).and_then(|case| case.rtt()).or(connection.handshake_rtt_ns);
    let rtt = rtt.map_or_else(String::new, |rtt| format!(" of {} each", said::time(rtt)));
    let trips = match turns {
        0 | 1 => "less than one round trip".to_owned(),
        even if even % 2 == 0 => said::count(even / 2, "round trip"),
        odd => format!("{} and a half", said::count(odd / 2, "round trip")),
    };
    let of_server = tls.flights.iter().filter(|flight| flight.from == "server");
    let certificates = of_server.map(|flight| flight.bytes).max().unwrap_or(0);
    let frames = frames(connection, end_ns);
    vec![Finding {
        code: RULE.code.to_owned(),
        severity: severity(RULE.code, cost_ns, SURE),
        title: "the TLS handshake took a good part of the time".to_owned(),
        why: format!(
            "it went to and fro for {trips}{rtt}; the server's longest flight in it was {}.",
            said::bytes(certificates)
        ),
        not: "not the server's application: no request was sent yet".to_owned(),
        evidence: vec![Evidence {
            from_ns: tls.start_ns,
            to_ns: end_ns,
            frames,
            filter: format!("({}) && tls.handshake", filter(frames)),
            text: format!("{} flights, told by the records' clear headers", tls.flights.len()),
        }],
        cost_ns,
        of_ns: active,
        remedies: vec![
            remedies::program(remedies::CLIENT, "keep the connection open and use it again"),
            remedies::application(if turns > 2 {
                "resume sessions (tickets) and use TLS 1.3 on both sides: a round trip less"
            } else {
                "early data (TLS 1.3) for requests that may come twice: nothing else takes fewer round trips than this"
            }),
        ],
        ..Finding::default()
    }]
}

/// The connection's frames up to where some interval shows that the handshake was over.
fn frames(connection: &Connection, end_ns: i64) -> FrameRange {
    let all = connection.frames;
    let limits = connection.directions.iter().flatten().flat_map(|direction| &direction.limits);
    let after = limits.filter(|limit| limit.start_ns >= end_ns && limit.evidence.frames.first > 0);
    let last = after.map(|limit| limit.evidence.frames.first).min().unwrap_or(all.last);
    FrameRange { first: all.first, last }
}

#[cfg(test)]
mod tests {
    use super::super::sample;
    use super::*;
    use crate::report::{Tls, TlsFlight};

    /// The download with a TLS handshake of `flights` flights before it, for this share of the time.
    fn with_tls(flights: usize, share_in_10_000: i64) -> Connection {
        let mut connection = sample::download();
        let length = active_ns(&connection) * share_in_10_000 / 10_000;
        let flight = |at: usize| TlsFlight {
            from: if at.is_multiple_of(2) { "client" } else { "server" }.to_owned(),
            start_ns: 0,
            bytes: 3_000,
            records: vec!["handshake".to_owned()],
        };
        let flights = (0..flights).map(flight).collect();
        connection.tls = Some(Tls { start_ns: 0, end_ns: Some(length), flights });
        connection
    }

    #[test]
    fn a_handshake_of_two_round_trips_is_told() {
        let found = find(&with_tls(5, 3_000));
        assert_eq!(found.len(), 1);
        insta::assert_snapshot!(sample::shown(&found));
    }

    #[test]
    fn a_tenth_is_enough_and_less_is_not() {
        assert_eq!(find(&with_tls(3, 1_001)).len(), 1);
        assert!(find(&with_tls(3, 999)).is_empty());
    }

    #[test]
    fn one_round_trip_is_the_least_and_only_early_data_saves_it() {
        let advice = |flights| {
            let remedies = &find(&with_tls(flights, 3_000))[0].remedies;
            remedies.last().map(|remedy| remedy.what.clone()).expect("advice")
        };
        assert!(advice(3).contains("early data"));
        assert!(advice(4).contains("a round trip less"));
    }

    #[test]
    fn a_handshake_whose_end_was_not_seen_is_not_measured() {
        let mut connection = with_tls(3, 5_000);
        connection.tls.as_mut().expect("TLS").end_ns = None;
        assert!(find(&connection).is_empty());
    }
}
