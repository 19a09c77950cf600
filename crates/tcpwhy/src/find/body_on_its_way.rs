//! The request itself was long on its way: the handler is not what took the time.
//!
//! # What it says
//! A server that starts its clock when a request's head arrives counts the time in which the body is
//! still coming. "The handler took 100 ms" may be 99 ms of network and 1 ms of handler. Here most of
//! the time from the request's first byte to the response's first byte went by before the body's
//! last byte had come.
//!
//! # How we know
//! The request took more than one round trip's flight to arrive; from its first byte to its last ACK at
//! least a tenth of the active time went by, and the server thought for at most a quarter of that.
//!
//! # What it is not
//! Not the handler, and nothing that its profile would show but a wait in a read. What held the body
//! is in the account of the client's direction: mostly slow start on a new connection, the server's
//! window, or the client's own writing. Only where the server's window was full because its program did
//! not read (`rwnd.reader`, `zero_window`) for a tenth of the body's way or more, the handler is not
//! acquitted: then the finding says that it took the body slowly.
//!
//! # What to do
//! Measure from the last byte of the body. Then see what else was found on this connection: what held
//! the body is what to change; a connection that is kept open and used again sends a body of this size
//! in fewer round trips. Where the server read slowly, see what its program does between reads.
//!
//! # Sources
//! RFC 5681 section 3.1; RFC 9110 section 6.4 (content follows the head). Ours: a quarter and a tenth, not
//! measured.

use super::case::{Case, Told, active_ns};
use super::{Rule, remedies};
use crate::report::{Connection, Exchange, Finding, Remedy, Severity, State, Transfer};
use tcpwhy_words::said;
use tcpwhy_words::units::Duration;

pub(super) const RULE: Rule = Rule {
    code: "BODY_ON_ITS_WAY",
    severity: Severity::Limit,
    file: include_str!("body_on_its_way.rs"),
    find,
};

/// The server thought for at most this share of the body's way. Ours, not measured.
const MOST_THINKING_PERCENT: i64 = 25;

/// Who did not read for this share of the body's way is not acquitted. Ours, not measured: what a verdict
/// names in a sentence.
const SLOW_READING_PERCENT: i64 = 10;

fn find(connection: &Connection) -> Vec<Finding> {
    let Some(case) = Case::of(connection, 0) else { return Vec::new() };
    let longest = connection.exchanges.iter().filter_map(|each| body(connection, each));
    let Some((request, think)) = longest.max_by_key(|(request, _)| length(request)) else {
        return Vec::new();
    };
    let mut held = case.held(|state| {
        !matches!(state, State::Receiving | State::IdleAppThink | State::IdlePeerThink)
    });
    held.limits.retain(|limit| limit.start_ns < request.end_ns && limit.end_ns > request.start_ns);
    let share = Duration(length(request)).percent_of(Duration(active_ns(connection)));
    if share < 10.0 || held.limits.is_empty() {
        return Vec::new();
    }
    let (came, thought) = (said::time(length(request)), said::time(think.max(0)));
    let held_by = main_wait(request).map_or_else(String::new, |state| {
        format!("; most of that in {} ({})", state.name(), state.meaning())
    });
    let title = format!(
        "the request's body took {came} to arrive; the server then answered within {thought}"
    );
    let why =
        format!("{} came in {}{held_by}.", said::bytes(request.bytes), flights(&case, request));
    let told = match unread(request) {
        Some(unread) => read_slowly(&case, &title, &why, unread),
        None => Told {
            title,
            why,
            not: "not the handler, though a clock started at the request's head would say so"
                .to_owned(),
            remedies: vec![measure_from_the_end()],
        },
    };
    vec![held.finding_of(length(request), RULE.code, told)]
}

/// The program that got the body let it wait: what then took the time may be the handler.
fn read_slowly(case: &Case<'_>, title: &str, why: &str, unread: i64) -> Told {
    let time = said::time(unread);
    Told {
        title: format!("{title}, but read the body slowly"),
        why: format!(
            "{why} For {time} of that its window was full of what its program had not read."
        ),
        not: format!("not the network alone: for {time} the body waited for the server's program"),
        remedies: vec![remedies::reader(case), measure_from_the_end()],
    }
}

fn measure_from_the_end() -> Remedy {
    remedies::application(
        "measure the handler from the last byte of the body; keep connections open, so that bodies go out \
         in fewer round trips",
    )
}

/// How long the body waited for its reader, if that was a good part of its way.
fn unread(request: &Transfer) -> Option<i64> {
    let reading = [State::RwndReader, State::ZeroWindow];
    let unread: i64 = reading.into_iter().map(|state| request.time_in.get(state).0).sum();
    let whole = length(request).saturating_mul(SLOW_READING_PERCENT);
    (unread > 0 && unread.saturating_mul(100) >= whole).then_some(unread)
}

fn length(transfer: &Transfer) -> i64 {
    transfer.end_ns - transfer.start_ns
}

/// The request of an exchange whose body took most of the time to the answer, with the think time.
fn body<'a>(connection: &'a Connection, exchange: &Exchange) -> Option<(&'a Transfer, i64)> {
    let request = connection.transfers.get(usize::try_from(exchange.request).ok()?)?;
    let think = exchange.server_think_ns.filter(|_| exchange.response.is_some())?;
    let rounds = request.rounds?;
    let several = rounds.last > rounds.first;
    (several && think.saturating_mul(100) <= length(request).saturating_mul(MOST_THINKING_PERCENT))
        .then_some((request, think))
}

fn flights(case: &Case<'_>, request: &Transfer) -> String {
    let rounds = request.rounds.map_or(0, |range| range.last + 1 - range.first);
    let rtt = case
        .rtt()
        .map_or_else(String::new, |rtt| format!(" of a round trip of {}", said::time(rtt)));
    format!("{}{rtt}", said::count(rounds, "flight"))
}

/// What held most of the request's time.
fn main_wait(request: &Transfer) -> Option<State> {
    let (state, span) = request.time_in.ranked().into_iter().next()?;
    (span.0 * 2 >= length(request) && state != State::LastFlight && state != State::Unknown)
        .then_some(state)
}

#[cfg(test)]
mod tests {
    use super::super::sample::{self, Sim};
    use super::*;

    const MS: i64 = 1_000_000;

    fn posts(bytes: u64, think: i64) -> Connection {
        Sim { upload: true, bytes, think, ..Sim::default() }.run()
    }

    #[test]
    fn a_body_that_takes_five_round_trips_is_not_the_handlers_time() {
        let found = find(&posts(500_000, MS));
        assert_eq!(found.len(), 1);
        insta::assert_snapshot!(sample::shown(&found));
    }

    #[test]
    fn a_handler_that_takes_its_time_is_not_excused() {
        assert!(find(&posts(500_000, 200 * MS)).is_empty());
    }

    /// The body; this many thousandths of its way went by in a state of the reader's.
    fn read_in(state: State, thousandths: i64) -> Finding {
        let mut connection = posts(500_000, MS);
        let request = &mut connection.transfers[0];
        let unread = length(request) * thousandths / 1000 + i64::from(thousandths % 100 == 0);
        request.time_in.add(state, Duration(unread));
        find(&connection).remove(0)
    }

    #[test]
    fn a_handler_that_reads_the_body_slowly_is_not_acquitted() {
        let found = read_in(State::RwndReader, 500);
        insta::assert_snapshot!(sample::shown(&[found]));
        assert!(read_in(State::ZeroWindow, 500).title.contains("slowly"));
    }

    #[test]
    fn a_tenth_unread_is_slow_and_less_is_not() {
        assert!(read_in(State::RwndReader, 100).title.contains("slowly"));
        let found = read_in(State::RwndReader, 99);
        assert!(!found.title.contains("slowly") && found.not.starts_with("not the handler"));
    }

    #[test]
    fn a_window_at_its_maximum_is_not_the_readers() {
        assert!(read_in(State::RwndCap, 500).not.starts_with("not the handler"));
    }

    #[test]
    fn a_body_of_one_flight_is_just_distance() {
        assert!(find(&posts(10_000, MS)).is_empty());
    }

    #[test]
    fn a_quarter_is_the_most_that_the_server_may_have_thought() {
        let connection = posts(500_000, MS);
        let body = find(&connection)[0].cost_ns;
        for (think, number) in [(body / 4, 1), (body / 4 + 1, 0)] {
            let mut changed = connection.clone();
            changed.exchanges[0].server_think_ns = Some(think);
            assert_eq!(find(&changed).len(), number, "{think}");
        }
    }
}
