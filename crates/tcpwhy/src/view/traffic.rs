//! What the applications did: requests with their think times, TLS handshake flights.

use super::called;
use super::page::Page;
use super::words;
use crate::report::{Connection, Early, EarlyKind, Exchange, Tls, TlsFlight};

/// Exchanges listed one by one; the rest is summed up.
const EXCHANGES: usize = 5;

/// Flights of a TLS handshake listed one by one.
const FLIGHTS: usize = 8;

/// Exchanges and TLS of a connection; nothing if there are none.
pub(super) fn write(page: &mut Page, connection: &Connection) {
    if !connection.exchanges.is_empty() {
        page.heading("Requests");
        for (at, exchange) in connection.exchanges.iter().take(EXCHANGES).enumerate() {
            let text = called::before(exchange) + &describe(connection, exchange);
            page.item(&format!("request {}", at + 1), &text);
        }
        if connection.exchanges.len() > EXCHANGES {
            page.item("all", &summary(&connection.exchanges));
        }
    }
    if let Some(tls) = &connection.tls {
        page.heading("TLS handshake");
        describe_tls(page, tls);
    }
}

/// Size of the answer that begins with transfer `first`: all that its sender sent until the other side did, with pauses or not.
fn answer(connection: &Connection, first: u64) -> String {
    let transfers = usize::try_from(first).ok().and_then(|at| connection.transfers.get(at..));
    let Some([first, rest @ ..]) = transfers else { return "unknown size".to_owned() };
    let rest: Vec<u64> =
        rest.iter().take_while(|each| each.from == first.from).map(|each| each.bytes).collect();
    let bytes = rest.iter().fold(first.bytes, |sum, bytes| sum.saturating_add(*bytes));
    let pieces = match rest.len() as u64 {
        0 => String::new(),
        more => format!(" in {} with pauses between", words::count(more + 1, "piece")),
    };
    format!("{}{pieces}", words::bytes(bytes))
}

fn describe(connection: &Connection, exchange: &Exchange) -> String {
    let size = |at: u64| {
        let at = usize::try_from(at).ok()?;
        Some(words::bytes(connection.transfers.get(at)?.bytes))
    };
    let request = size(exchange.request).unwrap_or_else(|| "unknown size".to_owned());
    let Some(response) = exchange.response else {
        return format!("{request}, no response in the capture");
    };
    let mut parts = vec![format!("{request}, answered with {}", answer(connection, response))];
    match (exchange.server_think_ns, exchange.think_ns) {
        _ if exchange.early.is_some() => parts.extend(exchange.early.as_ref().map(behind)),
        (Some(0), _) => parts.push("the server answered at once".to_owned()),
        (Some(server), _) => parts.push(format!("the server thought for {}", words::time(server))),
        (None, Some(tap)) => {
            parts
                .push(format!("answer after {} as seen here, distance included", words::time(tap)));
        }
        (None, None) => {}
    }
    parts.extend(exchange.first_byte_ns.map(|ns| format!("first byte after {}", words::time(ns))));
    parts.extend(exchange.total_ns.map(|ns| format!("all of it after {}", words::time(ns))));
    parts.join("; ")
}

/// How long the server thought, where something came before the answer or may have.
fn behind(early: &Early) -> String {
    let what = match early.kind {
        EarlyKind::Tickets => "looks like session tickets",
        EarlyKind::Settings => "looks like HTTP/2's settings",
        EarlyKind::Unasked => "was sent before the request was there",
        EarlyKind::Undecided => {
            let or = early.or_server_think_ns.map_or_else(|| "?".to_owned(), words::time);
            return format!(
                "the server thought for {} if the first {} are session tickets or settings, for {or} if they \
                 begin the answer (the records' headers cannot tell)",
                words::time(early.server_think_ns),
                words::bytes(early.bytes),
            );
        }
    };
    format!(
        "the server thought for {}, to the first byte after what {what} ({})",
        words::time(early.server_think_ns),
        words::bytes(early.bytes)
    )
}

fn summary(exchanges: &[Exchange]) -> String {
    let mut parts = vec![words::count(exchanges.len() as u64, "request")];
    let unanswered = exchanges.iter().filter(|each| each.response.is_none()).count();
    if unanswered > 0 {
        parts.push(format!("{} without a response", words::grouped(unanswered as u64)));
    }
    let thought = exchanges.iter().enumerate();
    let thought =
        thought.filter_map(|(at, each)| Some((each.server_think_ns.or(each.think_ns)?, at)));
    let mut thought: Vec<(i64, usize)> = thought.collect();
    thought.sort_unstable();
    if let Some((most, at)) = thought.last() {
        let median = thought[thought.len() / 2].0;
        let sum = thought.iter().fold(0_i64, |sum, (ns, _)| sum.saturating_add(*ns));
        parts.push(format!(
            "the server thought for {} (median), {} at most (request {}), {} in all",
            words::time(median),
            words::time(*most),
            at + 1,
            words::time(sum)
        ));
    }
    parts.join("; ")
}

fn describe_tls(page: &mut Page, tls: &Tls) {
    let took = match tls.end_ns {
        Some(end) => format!(
            "{}, from {} to the first application data at {}",
            words::time(end.saturating_sub(tls.start_ns)),
            words::time(tls.start_ns),
            words::time(end)
        ),
        None => format!("from {}; no application data followed", words::time(tls.start_ns)),
    };
    page.item("took", &took);
    for flight in tls.flights.iter().take(FLIGHTS) {
        let TlsFlight { from, start_ns, bytes, records } = flight;
        let what = format!(
            "{} at {}: {}",
            words::bytes(*bytes),
            words::time(*start_ns),
            if records.is_empty() { "records unknown".to_owned() } else { records.join(", ") }
        );
        page.item(from, &what);
    }
    if tls.flights.len() > FLIGHTS {
        let more = (tls.flights.len() - FLIGHTS) as u64;
        page.item("", &format!("and {}", words::count(more, "more flight")));
    }
}

#[cfg(test)]
mod tests {
    use super::super::sample;
    use super::*;
    use crate::report::Transfer;

    #[test]
    fn an_answer_has_all_its_pieces_up_to_the_next_request() {
        let connection = sample::keep_alive().connections.remove(0);
        let [request, response] = [0, 1].map(|at| connection.transfers[at].clone());
        let answered = |pieces: usize, then: &[Transfer]| {
            let mut connection = connection.clone();
            connection.transfers = vec![request.clone()];
            connection.transfers.extend(vec![Transfer { bytes: 700, ..response.clone() }; pieces]);
            connection.transfers.extend(then.to_vec());
            answer(&connection, 1).replace('\u{a0}', " ")
        };
        assert_eq!(answered(1, &[]), "700 B");
        assert_eq!(answered(1, &[request.clone(), response.clone()]), "700 B");
        assert_eq!(
            answered(3, core::slice::from_ref(&request)),
            "2,100 B in 3 pieces with pauses between"
        );
        assert_eq!(answered(0, &[]), "unknown size");
    }
}
