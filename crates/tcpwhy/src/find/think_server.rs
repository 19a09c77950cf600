//! The server's application took its time to answer.
//!
//! # What it says
//! Between the last byte of a request, as it reached the server's host, and the first byte of the
//! response nothing moved: the program there (or what it asked in turn) was at work.
//!
//! # How we know
//! Intervals in the state `idle.app_think` of the server between a request and its response; all
//! that the server had sent before was acknowledged. The round trip between the tap and the server is
//! taken off, so distance is not counted as thinking. What a TLS server sends before its first answer (session
//! tickets, HTTP/2's settings), told by the records' lengths, is no answer: the wait goes on behind it. They hold at least a tenth of the active time.
//!
//! # What it is not
//! Not TCP and not the network: nothing was waiting to be sent. Not a timer of the server for an answer that
//! was lost on its way here: where the first segment is alone before a hole, as after a timeout, nobody is
//! named. The time may be spent in another
//! service, a database, a disk, a lock, or a queue for a worker before the program even saw the
//! request: a capture cannot tell these apart. A device nearer than the server may be what answers.
//!
//! # What to do
//! Look at the server's own log and traces for these requests. No setting of TCP helps.
//!
//! # Sources
//! `docs/reference/limits-method.md` section 6 (whose silence it is); Ours: `testdata/waits`, where
//! the think time is configured.

use super::case::{Case, Told, active_ns, early_spans, lies_in};
use super::{Rule, remedies};
use crate::report::{
    Connection, EarlyKind, Exchange, Finding, Limit, ScalingRefusedBy, Severity, State,
};
use tcpwhy_words::said;

pub(super) const RULE: Rule = Rule {
    code: "THINK_SERVER",
    severity: Severity::Wrong,
    file: include_str!("think_server.rs"),
    find,
};

fn find(connection: &Connection) -> Vec<Finding> {
    let Some(case) = Case::of(connection, 1) else { return Vec::new() };
    let early = early_spans(connection);
    let mut held = case
        .held(|state| {
            // Of what came early the rest is judged below.
            let of_early = matches!(state, State::NagleDelack | State::LastFlight);
            state == State::IdleAppThink || of_early && !early.is_empty()
        })
        .and_the_other_is(1, |state| state.is_silence() || state == State::LastFlight);
    let waits = answered(connection);
    held.limits.retain(|limit| {
        (limit.state == State::IdleAppThink || lies_in(limit, &early))
            && waits.iter().any(|(from, to)| limit.start_ns < *to && limit.end_ns > *from)
            && !ends_with_a_timer(&case, limit)
    });
    if !held.is_share_of(active_ns(connection)) {
        return Vec::new();
    }
    // What a wait is made of counts as one: behind session tickets it is several intervals.
    let of_wait = |(from, to): &(i64, i64)| -> i64 {
        let of = held.limits.iter().filter(|each| each.start_ns < *to && each.end_ns > *from);
        of.map(|each| each.end_ns - each.start_ns).sum()
    };
    let spans: Vec<i64> = waits.iter().map(of_wait).filter(|span| *span > 0).collect();
    let longest = spans.iter().copied().max().unwrap_or(0);
    let (who, way) = if device_between(connection) {
        (
            "whoever is behind the device that answers for the server",
            "; the way from that device to the server is in it",
        )
    } else {
        ("the server's application", "")
    };
    let how_often = match spans.len() {
        0 | 1 => String::new(),
        number => format!(", {number} times, {} at the longest", said::time(longest)),
    };
    let told = Told {
        title: format!("{who} took its time to answer{how_often}"),
        why: format!(
            "the request was there and all that was sent before was acknowledged{way}{}.",
            behind(connection)
        ),
        not: "not TCP: nothing was waiting to be sent".to_owned(),
        remedies: vec![remedies::program(
            remedies::SERVER,
            "look at the program's log or traces for these requests; no setting of TCP helps",
        )],
    };
    vec![held.finding(RULE.code, told)]
}

/// Whether what ended this silence was a repair: one segment alone, which TCP sends where a timer has run out
/// (the loss window, RFC 5681 section 3.1), with a hole behind it that was never seen to be filled before. So
/// the originals had been sent already, and did not come this far.
pub(super) fn ends_with_a_timer(case: &Case<'_>, silence: &Limit) -> bool {
    let rounds = &case.direction.rounds;
    let at = rounds.partition_point(|round| round.start_ns < silence.end_ns);
    if rounds.get(at).is_none_or(|round| round.start_ns != silence.end_ns) {
        return false;
    }
    if rounds[at].segments != 1 || rounds[at].cwnd.high != Some(1) {
        return false;
    }
    let next = rounds.get(at + 1).map_or(i64::MAX, |round| round.start_ns);
    let mut holes = case.direction.in_flight_at_loss.iter().filter(|loss| loss.frame.is_none());
    holes.any(|hole| (rounds[at].start_ns..=next).contains(&hole.at_ns))
}

/// Whether something nearer than the server answers in its name, as its handshake showed.
const fn device_between(connection: &Connection) -> bool {
    matches!(connection.window_scaling_refused_by, Some(ScalingRefusedBy::Device))
}

/// What came before an answer of this connection, in words to follow others.
fn behind(connection: &Connection) -> &'static str {
    let kind = |each: &Exchange| each.early.as_ref().map(|early| early.kind);
    match connection.exchanges.iter().find_map(kind) {
        Some(EarlyKind::Tickets) => {
            "; the first answer begins after what looks like session tickets"
        }
        Some(EarlyKind::Settings) => {
            "; the first answer begins after what looks like HTTP/2's settings"
        }
        Some(EarlyKind::Unasked) => {
            "; the first answer begins after what was sent before the request came"
        }
        Some(EarlyKind::Undecided) => {
            "; what comes before the first pause may be session tickets or the beginning of the answer"
        }
        None => "",
    }
}

/// From the first byte of each request to the first of its response, or behind what may come before that.
fn answered(connection: &Connection) -> Vec<(i64, i64)> {
    let transfer = |at: u64| connection.transfers.get(usize::try_from(at).ok()?);
    let span = |each: &Exchange| {
        let begun = transfer(each.request)?.start_ns;
        let early = each.early.as_ref().map(|early| begun.saturating_add(early.first_byte_ns));
        Some((begun, early.unwrap_or(transfer(each.response?)?.start_ns)))
    };
    let sure = connection.exchanges.iter().filter(|each| !took_a_longer_way(connection, each));
    sure.filter_map(span).collect()
}

/// Whether the request's own round trip was longer than the shortest one by more than a delayed ACK explains, and by at
/// least half of what looks like thinking: the path was slower just then, and how much of it was the program's time the
/// packets do not tell. The ACK came before the answer, so the request was there by then.
fn took_a_longer_way(connection: &Connection, exchange: &Exchange) -> bool {
    let longer = || {
        let request = usize::try_from(exchange.request).ok()?;
        let request = connection.transfers.get(request)?;
        let is_one_segment = request.bytes <= u64::from(connection.mss?);
        let took = request.end_ns - request.start_ns;
        let ways = [connection.tap_to_client_rtt_ns, connection.tap_to_server_rtt_ns];
        let excess = took - ways.iter().flatten().sum::<i64>();
        let is_acked_before = took < exchange.first_byte_ns?;
        let think = exchange.server_think_ns?;
        Some(is_one_segment && is_acked_before && excess > DELAYED_ACK_NS && think < 2 * excess)
    };
    longer().unwrap_or(false)
}

/// The longest that common stacks delay an ACK: Linux v6.1 `include/net/tcp.h`, `TCP_DELACK_MAX`.
const DELAYED_ACK_NS: i64 = 200_000_000;

#[cfg(test)]
mod tests {
    use super::super::sample::{self, Sim};
    use super::*;
    use crate::report::{Early, InFlightAtLoss};

    const MS: i64 = 1_000_000;

    #[test]
    fn a_request_that_took_a_longer_way_says_nothing_of_the_program() {
        let found = |acked_after: i64| {
            let mut connection = thinks(300 * MS);
            let request = &mut connection.transfers[0];
            request.end_ns = request.start_ns + acked_after;
            let exchange = &mut connection.exchanges[0];
            exchange.first_byte_ns = Some(320 * MS);
            find(&connection).len()
        };
        assert_eq!(found(20 * MS), 1);
        assert_eq!(found(220 * MS), 1, "a delayed ACK");
        assert_eq!(found(300 * MS), 0);
        assert_eq!(found(320 * MS), 1, "with the answer");
    }

    fn thinks(think: i64) -> Connection {
        Sim { bytes: 5_000, think, ..Sim::default() }.run()
    }

    #[test]
    fn a_server_that_thinks_is_told() {
        let found = find(&thinks(300 * MS));
        assert_eq!(found.len(), 1);
        insta::assert_snapshot!(sample::shown(&found));
    }

    #[test]
    fn several_requests_are_counted() {
        let found = find(&Sim { bytes: 5_000, think: 50 * MS, times: 3, ..Sim::default() }.run());
        assert!(found[0].title.contains("3 times"), "{}", found[0].title);
    }

    /// The server's data begins with session tickets, which Nagle's algorithm held for 50 ms.
    fn behind_tickets(kind: EarlyKind) -> Connection {
        let mut connection = thinks(300 * MS);
        let exchange = &mut connection.exchanges[0];
        let (request, response) =
            (exchange.request as usize, exchange.response.expect("an answer"));
        let answer_ns = connection.transfers[response as usize].start_ns;
        let request_ns = connection.transfers[request].start_ns;
        let server = connection.directions[1].as_mut().expect("data");
        let silence = server
            .limits
            .iter_mut()
            .find(|limit| limit.state == State::IdleAppThink && limit.end_ns == answer_ns);
        let silence = silence.expect("the server thinks");
        let start_ns = silence.start_ns;
        silence.start_ns += 50 * MS;
        let end_ns = silence.start_ns;
        let nagle = Limit { state: State::NagleDelack, start_ns, end_ns, ..silence.clone() };
        server.limits.insert(0, nagle);
        exchange.early = Some(Early {
            kind,
            start_ns,
            records: 2,
            bytes: 510,
            first_byte_ns: answer_ns - request_ns,
            server_think_ns: 300 * MS,
            or_server_think_ns: None,
        });
        connection
    }

    #[test]
    fn the_wait_goes_on_behind_session_tickets() {
        let found = find(&behind_tickets(EarlyKind::Tickets));
        assert!(found[0].why.contains("after what looks like session tickets"), "{}", found[0].why);
        assert!(!found[0].title.contains("times"), "one wait: {}", found[0].title);
        let undecided = find(&behind_tickets(EarlyKind::Undecided));
        assert!(
            undecided[0].why.contains("or the beginning of the answer"),
            "{}",
            undecided[0].why
        );
        assert_eq!(
            found[0].cost_ns - undecided[0].cost_ns,
            50 * MS,
            "its pieces may be the answer's"
        );
    }

    #[test]
    fn where_a_device_answers_for_the_server_the_server_is_not_blamed() {
        let mut connection = thinks(300 * MS);
        connection.window_scaling_refused_by = Some(ScalingRefusedBy::Device);
        let found = find(&connection);
        assert!(!found[0].title.contains("server's application"), "{}", found[0].title);
    }

    #[test]
    fn an_answer_that_begins_alone_before_a_hole_was_sent_before() {
        let after_a_timeout = |segments, frame| {
            let mut connection = Sim { think: 300 * MS, ..Sim::default() }.run();
            let direction = connection.directions[1].as_mut().expect("data");
            let first = &mut direction.rounds[0];
            first.segments = segments;
            first.cwnd.high = Some(segments);
            let at_ns = direction.rounds[1].start_ns;
            direction.in_flight_at_loss = vec![InFlightAtLoss { at_ns, bytes: 9_000, frame }];
            find(&connection).len()
        };
        assert_eq!(after_a_timeout(1, None), 0);
        assert_eq!(after_a_timeout(2, None), 1, "an initial window, a part of it lost");
        assert_eq!(after_a_timeout(1, Some(9)), 1, "its original was captured: it was sent after");
    }

    #[test]
    fn the_round_trip_is_not_thinking() {
        assert!(find(&thinks(100_000)).is_empty());
    }

    #[test]
    fn a_tenth_is_enough_and_less_is_not() {
        let connection = thinks(50 * MS);
        let (cost, active) = (find(&connection)[0].cost_ns, active_ns(&connection));
        for (more, number) in [(10 * cost - active, 1), (10 * cost - active + 10, 0)] {
            let mut stretched = connection.clone();
            sample::stretch_opening(&mut stretched, more);
            assert_eq!(find(&stretched).len(), number, "{more}");
        }
    }
}
