//! Transfers of both directions, and which answers which.
//!
//! A request is a transfer of the client, its response the next transfer of the server that
//! starts before the client's next. Think time is measured at the server's stack: from the
//! arrival of the request's last byte to the first byte of the response; what the tap sees is
//! longer by the round trip between tap and server.
//!
//! What a TLS server sends before its first answer, and which asks or answers nothing, is left aside as far as
//! the records' lengths tell it ([`crate::flow::tls_behind`]); so is the alert that closes TLS (RFC 8446
//! section 6.1), a lone short record right before the client's FIN.

use crate::clocks::TapTime;
use crate::flow::requests::Request;
use crate::flow::tls_behind::{self, Kind};
use crate::limits::sender::transfers::Run;
use crate::limits::walk::Walker;
use crate::offsets::Offset;
use crate::report::{Early, EarlyKind, Exchange, Http, RoundRange, TimeIn, Transfer};

/// The longest alert that closes TLS, with HTTP/2's GOAWAY before it: 2 B of plaintext, and 17 B of a frame,
/// each in a record of its own with a header of 5 B and 17 to 24 B of protection.
const GOODBYE: i64 = 64;
/// An acknowledgement of SETTINGS as a record: a header, an empty frame, the most protection.
const ACKNOWLEDGEMENT: i64 = 5 + 9 + 24;

/// What is in clear of exchanges: headers of TLS records, HTTP/1.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Clear<'a> {
    /// What came before the first answer.
    pub(crate) early: Option<tls_behind::Early>,
    /// Offset of the client's FIN, if this is TLS.
    pub(crate) fin_at: Option<Offset>,
    /// HTTP/1 requests, by their offsets.
    pub(crate) requests: &'a [Request],
}

/// A transfer with the side that sent it.
#[derive(Clone, Copy, Debug)]
struct Placed<'a> {
    side: usize,
    run: Run,
    time_in: &'a TimeIn,
    shift: i64,
}

impl Placed<'_> {
    fn transfer(&self, lifetime: i64) -> Transfer {
        let Self { side, run, time_in, shift } = *self;
        Transfer {
            from: if side == 0 { "client" } else { "server" }.into(),
            start_ns: run.start.in_report(shift).clamp(0, lifetime),
            end_ns: run.end.max(run.start).in_report(shift).clamp(0, lifetime),
            bytes: (run.to - run.from).max(0) as u64,
            // A copy is as long as it need be.
            time_in: time_in.clone(),
            rounds: Some(RoundRange { first: run.first_round, last: run.last_round }),
        }
    }
}

/// All transfers by start.
pub(crate) fn transfers(walkers: &[Walker; 2], lifetime: i64) -> Vec<Transfer> {
    placed(walkers).iter().map(|placed| placed.transfer(lifetime)).collect()
}

/// The exchanges among them; `floors` are the constant round trips between the tap and each side.
pub(crate) fn pairs(walkers: &[Walker; 2], floors: [i64; 2], clear: Clear<'_>) -> Vec<Exchange> {
    pair(&placed(walkers), floors, clear)
}

fn placed(walkers: &[Walker; 2]) -> Vec<Placed<'_>> {
    let count = walkers.iter().map(|walker| walker.sender.transfers.runs.len()).sum();
    let mut placed = Vec::with_capacity(count);
    for (side, walker) in walkers.iter().enumerate() {
        let (shift, transfers) = (walker.sender.shift_in, &walker.sender.transfers);
        let runs = transfers.runs.iter().zip(&transfers.times);
        placed.extend(runs.map(|(run, time_in)| Placed { side, run: *run, time_in, shift }));
    }
    placed.sort_by_key(|p| (p.run.start.in_report(p.shift), p.side));
    placed
}

fn pair(placed: &[Placed<'_>], floors: [i64; 2], clear: Clear<'_>) -> Vec<Exchange> {
    let requests = placed.iter().filter(|p| p.side == 0).count();
    let mut exchanges = Vec::with_capacity(requests);
    let mut at = 0;
    // A request and all up to the next, which are the server's; before the first may be more of those.
    while at < placed.len() {
        let begun = at;
        at += 1;
        while placed.get(at).is_some_and(|next| next.side == 1 || clear.asks_nothing(next)) {
            at += 1;
        }
        let [request @ Placed { side: 0, .. }, answers @ ..] = &placed[begun..at] else {
            continue;
        };
        if !(at == placed.len() && answers.is_empty() && clear.is_goodbye(request)) {
            exchanges.push(exchange(begun, request, answers, floors, clear));
        }
    }
    exchanges
}

impl Clear<'_> {
    /// Whether a transfer only acknowledges SETTINGS.
    fn asks_nothing(&self, transfer: &Placed<'_>) -> bool {
        let acknowledged = self.early.and_then(|early| early.acknowledged);
        transfer.side == 0
            && acknowledged == Some(transfer.run.from)
            && transfer.run.to - transfer.run.from <= ACKNOWLEDGEMENT
    }

    /// Whether a transfer without an answer only closes TLS.
    fn is_goodbye(&self, transfer: &Placed<'_>) -> bool {
        self.fin_at == Some(transfer.run.to) && transfer.run.to - transfer.run.from <= GOODBYE
    }
}

/// A request, which is number `at` of the transfers, and what follows it.
fn exchange(
    at: usize,
    request: &Placed<'_>,
    answers: &[Placed<'_>],
    floors: [i64; 2],
    Clear { early, requests, .. }: Clear<'_>,
) -> Exchange {
    let number = |answer: usize| (at + 1 + answer) as u64;
    let first = answers.first();
    let think = first.and_then(|a| a.run.after_peer);
    let begun = request.run.start.in_report(request.shift);
    let last = answers.iter().rev().find(|answer| answer.side == 1);
    let whole = Exchange {
        request: at as u64,
        response: first.map(|_| number(0)),
        think_ns: think.map(|t| t + floors[1]),
        server_think_ns: think,
        // What left the server passes the tap, and then it is at the client.
        first_byte_ns: first.map(|a| a.run.start.passes(floors[1]).at_stack() - request.run.start),
        total_ns: last.map(|a| a.run.end.in_report(a.shift) - begun),
        early: None,
        http: http(requests, request.run),
    };
    let asked =
        |early: &tls_behind::Early| (request.run.from..request.run.to).contains(&early.request);
    let holds = |offset| {
        answers.iter().position(|a| a.side == 1 && (a.run.from..a.run.to).contains(&offset))
    };
    let Some(early) = early.filter(asked) else { return whole };
    let Some(answer) = holds(early.answer) else { return whole };
    let since_request = |at: TapTime| at - early.request_at;
    let server_think = |at: TapTime| (since_request(at) - floors[1]).max(0);
    let undecided = early.kind == Kind::Undecided;
    let decided = |ns: i64| (!undecided).then_some(ns);
    let first_byte_ns = early.answer_at.at_stack() - request.run.start;
    let response = if undecided { holds(early.may_answer) } else { Some(answer) };
    Exchange {
        response: response.map(number).or(whole.response),
        think_ns: decided(since_request(early.answer_at)),
        server_think_ns: decided(server_think(early.answer_at)),
        first_byte_ns: decided(first_byte_ns),
        early: Some(Early {
            kind: kind(early.kind),
            start_ns: first.map_or(0, |a| a.run.start.in_report(a.shift)),
            records: early.records,
            bytes: early.bytes,
            first_byte_ns,
            server_think_ns: server_think(early.answer_at),
            or_server_think_ns: undecided.then(|| server_think(early.may_answer_at)),
        }),
        ..whole
    }
}

/// What the request in `run` asks for. They stand in their order.
fn http(requests: &[Request], run: Run) -> Option<Box<Http>> {
    let at = requests.partition_point(|each| each.from < run.from);
    let Request { method, target, status, .. } =
        requests.get(at).filter(|each| each.from < run.to)?;
    Some(Box::new(Http { method: (*method).into(), target: target.to_string(), status: *status }))
}

const fn kind(kind: Kind) -> EarlyKind {
    match kind {
        Kind::Tickets => EarlyKind::Tickets,
        Kind::Settings => EarlyKind::Settings,
        Kind::Unasked => EarlyKind::Unasked,
        Kind::Undecided => EarlyKind::Undecided,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clocks::StackTime;

    const MS: i64 = 1_000_000;
    /// Between the tap and the server; the tap is at the client.
    const FLOORS: [i64; 2] = [0, 20 * MS];

    /// Exchanges of transfers, each with its side, start and end in milliseconds and offsets.
    fn exchanges(transfers: &[(usize, i64, i64, [i64; 2])], clear: Clear<'_>) -> Vec<Exchange> {
        let time_in = TimeIn::default();
        let place = |&(side, start, end, [from, to]): &(usize, i64, i64, [i64; 2])| {
            let after_peer = (side == 1).then_some(0);
            let run = Run {
                end: StackTime(end * MS),
                to: Offset::at(to),
                after_peer,
                ..Run::at(StackTime(start * MS), Offset::at(from), 0)
            };
            Placed { side, run, time_in: &time_in, shift: 0 }
        };
        let placed: Vec<Placed<'_>> = transfers.iter().map(place).collect();
        pair(&placed, FLOORS, clear)
    }

    /// A request of 186 B at 0 ms, 510 B at once, more after 250 ms, and 24 B at the end.
    const TAPE: [(usize, i64, i64, [i64; 2]); 4] = [
        (0, 0, 20, [517, 703]),
        (1, 10, 91, [1_323, 1_833]),
        (1, 260, 340, [1_833, 102_030]),
        (0, 341, 361, [703, 727]),
    ];

    /// What the records of the tape tell.
    fn clear(kind: Kind) -> Clear<'static> {
        let early = tls_behind::Early {
            request: Offset::at(597),
            request_at: TapTime(0),
            acknowledged: None,
            records: 2,
            bytes: 510,
            kind,
            may_answer: Offset::at(1_323),
            may_answer_at: TapTime(20 * MS),
            answer: Offset::at(1_833),
            answer_at: TapTime(270 * MS),
        };
        Clear { early: Some(early), fin_at: Some(Offset::at(727)), requests: &[] }
    }

    #[test]
    fn the_answer_comes_behind_session_tickets() {
        let exchange = &exchanges(&TAPE, clear(Kind::Tickets))[0];
        assert_eq!((exchange.request, exchange.response), (0, Some(2)));
        assert_eq!(exchange.server_think_ns, Some(250 * MS));
        assert_eq!(exchange.first_byte_ns, Some(270 * MS));
        let early = exchange.early.as_ref().expect("tickets");
        assert_eq!((early.kind, early.or_server_think_ns), (EarlyKind::Tickets, None));
    }

    #[test]
    fn where_it_is_not_decided_both_readings_are_told_and_none_is_the_number() {
        let exchange = &exchanges(&TAPE, clear(Kind::Undecided))[0];
        assert_eq!((exchange.response, exchange.server_think_ns), (Some(1), None));
        let early = exchange.early.as_ref().expect("two readings");
        assert_eq!((early.server_think_ns, early.or_server_think_ns), (250 * MS, Some(0)));
    }

    #[test]
    fn without_records_the_first_data_is_the_answer() {
        let exchange = &exchanges(&TAPE, Clear::default())[0];
        assert_eq!((exchange.response, exchange.server_think_ns), (Some(1), Some(0)));
        assert_eq!(exchange.early, None);
    }

    #[test]
    fn what_closes_tls_is_no_request() {
        assert_eq!(exchanges(&TAPE, clear(Kind::Tickets)).len(), 1);
        let plain = Clear { fin_at: None, ..clear(Kind::Tickets) };
        assert_eq!(exchanges(&TAPE, plain).len(), 2, "not TLS, or no FIN behind it");
        for (bytes, requests) in [(GOODBYE, 1), (GOODBYE + 1, 2)] {
            let mut tape = TAPE;
            tape[3].3[1] = 703 + bytes;
            let clear = Clear { fin_at: Some(Offset::at(703 + bytes)), ..clear(Kind::Tickets) };
            assert_eq!(exchanges(&tape, clear).len(), requests, "{bytes}");
        }
    }

    #[test]
    fn a_request_in_clear_is_told_with_its_exchange() {
        let ask = |from, target: &str| Request {
            from,
            method: "GET",
            target: target.into(),
            status: Some(200),
        };
        let requests = [
            ask(Offset::at(517), "/a"),
            ask(Offset::at(703), "/b"),
            ask(Offset::at(800), "/behind"),
        ];
        let clear = Clear { requests: &requests, ..Clear::default() };
        let found = exchanges(&TAPE, clear);
        let targets = found.iter().map(|each| each.http.as_ref().map(|http| &*http.target));
        assert_eq!(targets.collect::<Vec<_>>(), [Some("/a"), Some("/b")]);
    }

    #[test]
    fn an_acknowledgement_of_settings_is_no_request() {
        let tape = [TAPE[0], TAPE[1], (0, 92, 112, [703, 734]), TAPE[2]];
        let mut clear = clear(Kind::Settings);
        assert_eq!(exchanges(&tape, clear).len(), 2, "some request");
        clear.early.as_mut().expect("is there").acknowledged = Some(Offset::at(703));
        let exchange = &exchanges(&tape, clear)[..];
        assert_eq!((exchange.len(), exchange[0].response), (1, Some(3)));
        assert_eq!(exchange[0].server_think_ns, Some(250 * MS));
    }
}
