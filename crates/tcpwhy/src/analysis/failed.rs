//! Did a connection do what it was made for: was it opened, and was its last request answered?
//!
//! The connection alone tells it, for each of 100,000. A retransmitted SYN was not answered in time (RFC 9293
//! section 3.8.1). A SYN that was sent once may be answered behind the capture's end. A request is data of the
//! client that no data of the server followed. Many protocols let a client speak without an answer, so three
//! conditions hold for a request. Each request before it had an answer, or it is the first and short. Its size shows
//! that it is no mere reaction (a pong, an acknowledgement inside TLS). The silence behind it is long for this
//! server.
//!
//! Left out: connections whose SYNs the capture lacks, since who asked whom is a guess there.

use crate::flow::facts::Facts;
use crate::report::{End, Failure, FailureKind, Transfer};

/// A silence worth telling. Ours: a second, as the timer of a SYN (RFC 6298 section 2).
pub(crate) const LONG_NS: i64 = 1_000_000_000;
/// The same for a SYN that its client did not send again. Ours: three such timers.
pub(crate) const ONE_SYN_NS: i64 = 3 * LONG_NS;
/// The first data of a client is a request if it is no longer. Ours: an HTTP request with cookies; what is longer
/// may be an upload that nobody answers.
const LONGEST_FIRST: u64 = 16_384;
/// Records of TLS that ask for nothing are no longer: `close_notify`, an acknowledgement of SETTINGS, a `WINDOW_UPDATE`, a
/// PING (RFC 9113 section 6), each with header and protection. Ours: 100 B, two of them.
const LONGEST_ASIDE: u64 = 100;

/// What did not work, of a connection with these transfers.
pub(crate) fn of(facts: &Facts, transfers: &[Transfer]) -> Option<Failure> {
    match (&facts.sides[0].syn, &facts.sides[1].syn) {
        (Some(_), None) if !facts.carries_data() => never_opened(facts),
        (Some(_), Some(_)) => unanswered(facts, transfers),
        _ => None,
    }
}

fn never_opened(facts: &Facts) -> Option<Failure> {
    let tries = facts.sides[0].syns;
    let refused = facts.reset.as_ref().is_some_and(|reset| reset.by == "server");
    let kind = if refused { FailureKind::Refused } else { FailureKind::NoAnswer };
    // Anything else of the client shows an answer that the capture lacks.
    if !refused && facts.packets != u64::from(tries) {
        return None;
    }
    Some(Failure {
        kind,
        code: Some("SYN_UNANSWERED".into()),
        waited_ns: facts.lifetime(),
        tries,
        open: !refused && tries == 1,
    })
}

fn unanswered(facts: &Facts, transfers: &[Transfer]) -> Option<Failure> {
    let last = transfers.last().filter(|last| last.from == "client")?;
    // Of a server whose first segments were lost the answer seems to begin before the request.
    if transfers.iter().any(|each| each.from == "server" && each.end_ns > last.end_ns) {
        return None;
    }
    let closed = facts.sides.iter().filter_map(|side| side.fin_tap).min().map(|at| at.0);
    let reset = facts.reset.as_ref().map(|reset| reset.at_ns);
    let ended = closed.into_iter().chain(reset).min();
    let waited = ended.unwrap_or(facts.lifetime()).saturating_sub(last.end_ns).max(0);
    longest_answer(transfers)?;
    let is_aside = facts.tls.report().is_some() && last.bytes <= LONGEST_ASIDE;
    let open = ended.is_none() && facts.end == End::Open;
    let is_long = is_long(transfers, waited);
    (!is_aside && (open || is_long)).then_some(Failure {
        kind: FailureKind::RequestUnanswered,
        code: None,
        waited_ns: waited,
        tries: 0,
        open,
    })
}

/// Whether `waited` is a long silence behind a request, for the server that gave the answers before.
pub(super) fn is_long(transfers: &[Transfer], waited: i64) -> bool {
    longest_answer(transfers)
        .is_some_and(|longest| waited >= LONG_NS.max(longest.saturating_mul(3)))
}

/// The longest that was waited for an answer so far, 0 before the first; `None` where the client's last data need be
/// no request.
fn longest_answer(transfers: &[Transfer]) -> Option<i64> {
    let (last, before) = transfers.split_last()?;
    if before.iter().all(|each| each.from == "server") {
        // A server that speaks first says who it is; one that sends more serves already.
        let is_short = transfers.iter().all(|each| each.bytes <= LONGEST_FIRST);
        return is_short.then_some(0);
    }
    let turns = || transfers.windows(2);
    if turns().any(|pair| pair[0].from == "client" && pair[1].from == "client") {
        return None;
    }
    let requests = || before.iter().filter(|each| each.from == "client");
    let least = requests().map(|each| each.bytes).min()?;
    // A pong, or an acknowledgement of the application's, is shorter than what asks.
    if last.bytes < least / 2 {
        return None;
    }
    let answered = |pair: &[Transfer]| {
        (pair[1].from == "server").then(|| pair[1].start_ns.saturating_sub(pair[0].end_ns))
    };
    turns().filter_map(answered).max()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn transfer(from: &'static str, ms: i64, bytes: u64) -> Transfer {
        let (start_ns, end_ns) = (ms * 1_000_000, (ms + 20) * 1_000_000);
        Transfer { from: from.into(), start_ns, end_ns, bytes, ..Transfer::default() }
    }

    #[test]
    fn the_first_data_of_a_client_is_a_request_unless_it_is_long() {
        assert_eq!(longest_answer(&[transfer("client", 0, 78)]), Some(0));
        assert_eq!(longest_answer(&[transfer("client", 0, LONGEST_FIRST)]), Some(0));
        assert_eq!(longest_answer(&[transfer("client", 0, LONGEST_FIRST + 1)]), None);
        let banner = [transfer("server", 0, 21), transfer("client", 40, 25)];
        assert_eq!(longest_answer(&banner), Some(0));
    }

    #[test]
    fn where_the_client_speaks_without_answers_nothing_is_told() {
        let log = [transfer("client", 0, 200), transfer("client", 900, 200)];
        assert_eq!(longest_answer(&log), None);
        let topics = [
            transfer("client", 0, 40),
            transfer("server", 30, 4),
            transfer("client", 100, 60),
            transfer("client", 900, 60),
        ];
        assert_eq!(longest_answer(&topics), None);
    }

    #[test]
    fn a_reaction_is_shorter_than_a_request() {
        let said = |bytes| {
            longest_answer(&[
                transfer("client", 0, 100),
                transfer("server", 70, 9_000),
                transfer("client", 200, bytes),
            ])
        };
        assert_eq!(said(50), Some(50_000_000));
        assert_eq!(said(49), None);
    }
}
