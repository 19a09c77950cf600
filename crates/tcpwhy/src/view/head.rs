//! The first lines of a connection: who sent how much in what time, and the facts one asks first.

use super::called;
use super::choose;
use super::page::{Ink, Page, plain};
use super::words;
use crate::report::{Connection, Direction, End, Part, SenderStack, Vantage, WindowScaling};

/// `sender -> receiver   512 KiB in 63.1 ms   round trip 7.2 ms`, then the facts.
pub(super) fn write(page: &mut Page, connection: &Connection) {
    headline(page, connection);
    let facts = facts(connection);
    page.wrapped(2, 2, &[plain(facts.join("; "))]);
    if let Some(part) = connection.part {
        let text = format!(
            "only from {} to {} of its {}, as asked for: times count from there, and numbers not of \
             time are of the whole connection",
            words::time(part.from_ns),
            words::time(part.to_ns),
            words::time(part.of_ns)
        );
        page.wrapped(2, 4, &[plain(text)]);
    }
    page.wrapped(2, 2, &[(Ink::Faint, which(connection))]);
    if let Some(facts) = called::facts(connection) {
        page.wrapped(2, 4, &[plain(facts)]);
    }
    if !connection.vantage_evidence.is_empty() {
        let evidence = format!("where it was taken: {}", connection.vantage_evidence);
        page.wrapped(2, 4, &[(Ink::Faint, evidence)]);
    }
    if let Some(note) = &connection.window_scaling_note {
        page.wrapped(2, 4, &[(Ink::Faint, note.clone())]);
    }
    if let Some(other) = other_connection_note(connection) {
        page.wrapped(2, 4, &[(Ink::Faint, other)]);
    }
}

fn headline(page: &mut Page, connection: &Connection) {
    let main = choose::directions(connection).into_iter().next();
    let (from, to) = match main {
        Some((1, _)) => (called::server(connection), connection.client_shown()),
        _ => (connection.client_shown(), called::server(connection)),
    };
    let lasted = words::time(connection.duration_ns);
    let mut parts = vec![format!("{from} -> {to}")];
    match main {
        Some((at, direction)) => parts.push(match connection.part {
            None => format!("{} in {lasted}", words::bytes(direction.bytes)),
            Some(Part { bytes, .. }) => {
                let all = words::bytes(direction.bytes);
                let new = bytes[at].map_or_else(|| "part".to_owned(), words::bytes);
                format!("{new} of {all} in {lasted}")
            }
        }),
        None => parts.push(format!("no data in {lasted}")),
    }
    let round_trip =
        main.and_then(|(_, direction)| direction.rtt.median_ns.or(direction.rtt.min_ns));
    match round_trip.or(connection.handshake_rtt_ns) {
        Some(ns) => parts.push(format!("round trip {}", words::time(ns))),
        None => parts.push("round trip unknown".to_owned()),
    }
    let line = parts.join("   ");
    if line.chars().count() <= page.width() {
        page.row(&[(Ink::Strong, line)]);
    } else {
        page.wrapped(0, 2, &[(Ink::Strong, parts.remove(0))]);
        page.row(&[(Ink::Strong, format!("  {}", parts.join("   ")))]);
    }
}

fn facts(connection: &Connection) -> Vec<String> {
    let mut facts = vec![vantage(connection)];
    facts.extend(windows(connection).map(str::to_owned));
    facts.extend(connection.mss.map(|mss| format!("MSS {}", words::exact_bytes(u64::from(mss)))));
    facts.extend(stacks(&connection.sender_stack));
    facts.push(match (connection.end, &connection.reset) {
        (End::Fin, _) => "closed with FIN".to_owned(),
        (End::Rst, None) => "cut off with RST".to_owned(),
        (End::Rst, Some(reset)) => format!("cut off with RST by the {}", reset.by),
        (End::Open, _) => "still open when the capture ended".to_owned(),
    });
    facts
}

/// What is known of the windows' scale. A connection that never opened has no windows.
fn windows(connection: &Connection) -> Option<&'static str> {
    match (connection.window_scaling, &connection.syns) {
        (WindowScaling::Used, [None, None]) => {
            Some("handshake not captured, the windows' scale is what its socket says")
        }
        (WindowScaling::Used, _) => Some("windows scaled"),
        (WindowScaling::NotNegotiated, _) => Some("windows not scaled, so never above 64 KiB"),
        (WindowScaling::HandshakeNotSeen, [Some(_), Some(_)]) => {
            Some("the SYNs' options not captured, so the windows' scale is an estimate")
        }
        (WindowScaling::HandshakeNotSeen, [Some(_), None])
            if connection.present().next().is_none() =>
        {
            None
        }
        (WindowScaling::HandshakeNotSeen, _) => {
            Some("handshake not captured, so the windows' scale is an estimate")
        }
    }
}

/// Ours: a host that holds its packets back for less than this does nothing a reader looks for.
const WORTH_SAYING_NS: i64 = 100_000;

fn vantage(connection: &Connection) -> String {
    let place = match connection.vantage {
        Vantage::Client => "taken on the client",
        Vantage::Server => "taken on the server",
        Vantage::Middle => "taken between the two",
        Vantage::Unknown => "where it was taken is not proven",
    };
    match connection.egress_delay_ns {
        Some(delay) if delay.high >= WORTH_SAYING_NS => {
            let range = if delay.low == delay.high {
                words::time(delay.low)
            } else {
                format!("{} to {}", words::time(delay.low), words::time(delay.high))
            };
            format!("{place}, where packets leave {range} after its TCP sent them")
        }
        _ => place.to_owned(),
    }
}

fn stacks(stacks: &[SenderStack; 2]) -> Option<String> {
    let known = |stack: &SenderStack| !matches!(&*stack.name, "" | "unknown");
    let [client, server] = stacks;
    match (known(client), known(server)) {
        (true, true) if client.name == server.name => {
            Some(format!("both ends run {}", client.name))
        }
        (true, true) => Some(format!("client runs {}, server {}", client.name, server.name)),
        (true, false) => Some(format!("client runs {}", client.name)),
        (false, true) => Some(format!("server runs {}", server.name)),
        (false, false) => None,
    }
}

/// The direction that is not shown in full, and what was left out of the account.
fn other_connection_note(connection: &Connection) -> Option<String> {
    let shown = choose::directions(connection);
    let mut notes: Vec<String> = connection
        .present()
        .filter(|(at, _)| shown.iter().all(|(each, _)| each != at))
        .map(|(at, direction): (usize, &Direction)| {
            let ends = words::ends(at);
            format!("{} from the {} the other way", words::bytes(direction.bytes), ends.sender)
        })
        .collect();
    if connection.duplicates > 0 {
        let copies = words::count(connection.duplicates, "packet");
        notes.push(if connection.has_few_copies() {
            format!("{copies} came twice, doubled on the way or captured twice, and left out")
        } else {
            format!("{copies} captured twice and left out")
        });
    }
    if connection.truncated {
        notes.push(
            "lists of this connection were cut short to bound memory; totals are whole".to_owned(),
        );
    }
    (!notes.is_empty()).then(|| notes.join("; "))
}

/// Which connection of the capture this is.
fn which(connection: &Connection) -> String {
    let mut parts = vec![format!("connection {}", connection.id)];
    parts.extend(connection.stream.map(|stream| format!("tcp.stream {stream}")));
    let packets = words::count(connection.packets, "packet");
    parts.push(match words::frames(connection.frames) {
        Some(frames) => format!("{packets} in {frames}"),
        None => packets,
    });
    if !connection.start.is_empty() {
        parts.push(format!("from {}", connection.start));
    }
    parts.join(", ")
}

#[cfg(test)]
mod tests {
    use super::super::sample;
    use super::*;
    use crate::report::Syn;

    /// Whether a word is said of windows.
    fn tells_of_windows(connection: &Connection) -> bool {
        facts(connection).iter().any(|fact| fact.contains("window"))
    }

    #[test]
    fn of_a_connection_that_never_opened_nothing_is_said_of_windows() {
        let whole = sample::midway().connections.remove(0);
        assert!(tells_of_windows(&whole), "it begins midway");
        let asked = Connection { syns: [Some(Syn::default()), None], ..whole };
        assert!(tells_of_windows(&asked), "data flowed: only the answer was not captured");
        let refused = Connection { directions: [None, None], ..asked };
        assert!(!tells_of_windows(&refused));
        let unseen = Connection { syns: [None; 2], ..refused };
        assert!(tells_of_windows(&unseen), "it may have opened before");
    }
}
