//! One sentence a transfer: where its time went, in the order of size.
//!
//! The states that hold at least a tenth are named, at most three of them, with what else the
//! packets allow and how sure it is where that does not go without saying. When an application's
//! silence holds most of the connection's life, that is said first: it is not TCP. Transfers much
//! shorter than the longest one are only counted.

use super::choose;
use super::doubt::Doubt;
use super::page::{Ink, Page, Span, plain};
use super::words::{self, Ends, ends, spent};
use crate::answer::held_ack::{is_timers, rounds_of};
use crate::report::{Connection, Direction, Round, State, TimeIn, Transfer};
use tcpwhy_words::units::{BitRate, Bytes, Duration};

/// Transfers with a sentence of their own.
const TRANSFERS: usize = 3;

/// Rounds listed by number.
const ROUNDS: usize = 6;

/// States named in a sentence.
const STATES: usize = 3;

/// Ours: smaller shares, and transfers of a smaller share of the longest one, are not worth words
/// in a verdict; the table below it has all the time.
const WORTH_NAMING_PERCENT: f64 = 10.0;

/// Ours: of two applications, one that was silent for less of the time than this is not named.
const WORTH_SAYING_PERCENT: f64 = 1.0;

/// The verdict on a connection and on its worst transfers.
pub(super) fn write(page: &mut Page, connection: &Connection) {
    let main = choose::directions(connection).into_iter().next();
    if main.is_none() {
        let text = "No data was transferred: there is no transfer to explain.";
        page.wrapped(2, 4, &[plain(text)]);
    }
    let silent = main.and_then(|(at, direction)| not_tcp(connection, at, direction));
    let sentences = if silent.is_some() { 1 } else { TRANSFERS };
    if let Some(text) = silent {
        page.wrapped(2, 4, &[(Ink::Strong, text)]);
    }
    let mut worst = choose::worst_transfers(connection, sentences);
    if let Some(longest) = worst.first().map(|at| connection.transfers[*at].worked()) {
        let share = |at: &usize| connection.transfers[*at].worked().percent_of(longest);
        let mut first = true;
        worst.retain(|at| {
            core::mem::replace(&mut first, false) || share(at) >= WORTH_NAMING_PERCENT
        });
    }
    let several = worst.len() > 1;
    for &at in &worst {
        let numbered = several.then_some(at + 1);
        page.wrapped(2, 4, &sentence(connection, &connection.transfers[at], numbered));
    }
    if connection.transfers.len() > worst.len() {
        let number = words::grouped(connection.transfers.len() as u64);
        let text = match worst.len() {
            1 => format!("(the longest of {number} transfers)"),
            some => format!("(the {some} longest of {number} transfers)"),
        };
        page.wrapped(4, 4, &[(Ink::Faint, text)]);
    }
}

/// "Most of this is not TCP", when so.
fn not_tcp(connection: &Connection, at: usize, direction: &Direction) -> Option<String> {
    let found = |code: &str| connection.findings.iter().any(|finding| finding.code == code);
    // Whoever looked for findings knows more: which silence ended with a timer, whose window is misread, and what the other
    // side did.
    if !connection.findings.is_empty() && !found("NOT_TCP") {
        return None;
    }
    // While TCP holds the other side's data back this one is silent, too.
    let held = connection.held_while_silent(at);
    let time = |state| direction.time_in.get(state) - held.get(state);
    let silent = choose::silence(&direction.time_in) - held.total();
    let lifetime = connection.duration_ns;
    if i128::from(silent.0) * 2 <= i128::from(lifetime) || lifetime <= 0 {
        return None;
    }
    let ends = ends(at);
    let sender = time(State::IdleAppThink) + time(State::App);
    let mut shares = [(ends.sender, sender), (ends.receiver, time(State::IdlePeerThink))];
    shares.sort_by_key(|(_, span)| core::cmp::Reverse(*span));
    let shares: Vec<String> = shares
        .into_iter()
        .filter(|(_, span)| span.percent_of(silent) >= WORTH_SAYING_PERCENT)
        .map(|(who, span)| format!("the {who}'s application for {}", words::time(span.0)))
        .collect();
    Some(format!(
        "Most of this is not TCP: {} of the time ({}) there was nothing to send; TCP waited for {}.",
        words::percent(silent.0, lifetime),
        words::time(silent.0),
        words::listed(&shares)
    ))
}

/// The sentence on one transfer, with its number (from 1) where there are several.
fn sentence(connection: &Connection, transfer: &Transfer, numbered: Option<usize>) -> Vec<Span> {
    let unnamed = Ends { sender: "sender", receiver: "receiver" };
    let ends = choose::direction_of(transfer).map_or(unnamed, ends);
    let took = Duration(transfer.end_ns) - Duration(transfer.start_ns);
    let rate = BitRate::of(Bytes(transfer.bytes), took)
        .filter(|_| transfer.bytes >= choose::WORTH_A_RATE)
        .map_or_else(String::new, |rate| format!(" ({})", words::rate(rate.0)));
    let number = numbered.map_or_else(String::new, |at| format!("Transfer {at}: "));
    let bytes = words::bytes(transfer.bytes);
    if took <= Duration::ZERO && connection.part.is_none() {
        let text = format!(
            "{number}{bytes} from the {}, and no ACK of it was captured: how long it took is not known.",
            ends.sender
        );
        return vec![plain(text)];
    }
    let took_words = words::time(took.0);
    let mut spans =
        vec![plain(format!("{number}{bytes} from the {} in {took_words}{rate}: ", ends.sender))];
    let rounds = rounds_of(connection, transfer);
    let named = named_states(&transfer.time_in, took);
    if named.is_empty() {
        spans.push(plain("where the time went is not known."));
    }
    for (at, (state, span)) in named.iter().enumerate() {
        let end = if at + 1 == named.len() { "." } else { "; " };
        let notes: Vec<String> = in_rounds(rounds, *state)
            .into_iter()
            .chain(doubt(connection, transfer, *state))
            .collect();
        let notes =
            if notes.is_empty() { String::new() } else { format!(" ({})", notes.join("; ")) };
        let doing = match state {
            State::LastFlight if waits_behind_others(connection) => {
                format!("waiting for the last ACKs, behind another connection's data{notes}")
            }
            // Distance decides nothing where the connection waits in vain.
            State::LastFlight if waits_in_vain(connection) => {
                format!("waiting for the last ACK (one round trip){notes}")
            }
            State::LastFlight if is_timers(connection, transfer) => format!(
                "waiting for the last ACK, which the {}'s delayed-ACK timer held back as it seems{notes}",
                ends.receiver
            ),
            _ => format!("{}{notes}", spent(*state, ends)),
        };
        if *span == took {
            spans.push((Ink::Strong, "all of it".to_owned()));
            spans.push(plain(format!(" {doing}{end}")));
        } else {
            let of_it = if at == 0 { " of it" } else { "" };
            spans.push((Ink::Strong, words::percent(span.0, took.0)));
            spans.push(plain(format!("{of_it} ({}) {doing}{end}", words::time(span.0))));
        }
    }
    spans
}

/// Whether something was waited for that never came, or for a window that was shut most of the time.
fn waits_in_vain(connection: &Connection) -> bool {
    let shut = |direction: &Direction| direction.time_in.get(State::ZeroWindow).0;
    let directions = connection.directions.iter().flatten();
    connection.ending.is_some()
        || directions.map(|direction| shut(direction)).any(|ns| ns > connection.duration_ns / 2)
}

/// Whether another connection of the capture fills the queue that this one's packets stand in.
fn waits_behind_others(connection: &Connection) -> bool {
    connection.findings.iter().any(|finding| finding.code == "OTHERS_QUEUE")
}

/// `likely, it may be cwnd.avoidance`, where it is not shown.
fn doubt(connection: &Connection, transfer: &Transfer, state: State) -> Option<String> {
    let direction = connection.directions[choose::direction_of(transfer)?].as_ref()?;
    let span = (transfer.start_ns, transfer.end_ns);
    let doubt = Doubt::about(state, &direction.limits, span);
    let other = doubt.names().map(|names| format!("it may be {names}"));
    let parts: Vec<String> = doubt.sure().into_iter().chain(other).collect();
    (!parts.is_empty()).then(|| parts.join(", "))
}

/// `rounds 1, 2, 4 and 6; cwnd 10, 20, 72, 161`: which rounds ended in a wait for `state`.
fn in_rounds((first, rounds): (u64, &[Round]), state: State) -> Option<String> {
    let of_state = || (first..).zip(rounds).filter(|(_, round)| round.limited_by == state);
    let number = of_state().count();
    if number == 0 {
        return None;
    }
    if number > ROUNDS {
        return Some(format!("{number} of {} rounds", rounds.len()));
    }
    let numbers: Vec<String> = of_state().map(|(at, _)| at.to_string()).collect();
    let noun = if number == 1 { "round" } else { "rounds" };
    let cwnd: Option<Vec<String>> =
        of_state().map(|(_, round)| Some(round.cwnd.best?.to_string())).collect();
    let cwnd = cwnd.filter(|_| state.is_congestion_window());
    let cwnd = cwnd.map_or_else(String::new, |each| format!("; cwnd {}", each.join(", ")));
    Some(format!("{noun} {}{cwnd}", words::listed(&numbers)))
}

/// The states worth naming, longest first; always the longest one.
fn named_states(time_in: &TimeIn, took: Duration) -> Vec<(State, Duration)> {
    let ranked = time_in.ranked().into_iter().filter(|(_, span)| span.0 > 0);
    ranked
        .enumerate()
        .filter(|(at, (_, span))| *at == 0 || span.percent_of(took) >= WORTH_NAMING_PERCENT)
        .map(|(_, row)| row)
        .take(STATES)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::super::sample;
    use super::*;
    use crate::report::Sure;

    /// What is said of a connection of 100 ms whose server's application is silent for `ns` of it.
    fn said(ns: i64) -> Option<String> {
        let connection = sample::connection(0, "10.0.0.1:1", "10.0.0.2:2", 100_000_000);
        let rows = [(State::IdleAppThink, ns), (State::CwndSlowStart, 100_000_000 - ns)];
        let direction = Direction { time_in: sample::time_in(&rows), ..Direction::default() };
        not_tcp(&connection, 1, &direction)
    }

    #[test]
    fn silence_of_more_than_half_the_time_is_not_tcp() {
        let text = said(50_000_001).expect("more than half").replace('\u{a0}', " ");
        let expected = "Most of this is not TCP: 50 % of the time (50.0 ms) there was nothing to \
                        send; TCP waited for the server's application for 50.0 ms.";
        assert_eq!(text, expected);
    }

    #[test]
    fn where_findings_were_looked_for_theirs_decides() {
        let said_beside = |code: &str| {
            let mut connection = sample::connection(0, "10.0.0.1:1", "10.0.0.2:2", 100_000_000);
            let rows = [(State::IdleAppThink, 90_000_000), (State::CwndSlowStart, 10_000_000)];
            let direction = Direction { time_in: sample::time_in(&rows), ..Direction::default() };
            let code = code.to_owned();
            connection.findings = vec![crate::report::Finding { code, ..Default::default() }];
            not_tcp(&connection, 1, &direction)
        };
        assert_eq!(said_beside("LOSS"), None, "its silence may have ended with a timer");
        assert!(said_beside("NOT_TCP").is_some());
    }

    #[test]
    fn silence_of_half_the_time_is_not_most_of_it() {
        assert_eq!(said(50_000_000), None);
        assert_eq!(said(0), None);
    }

    #[test]
    fn time_in_which_tcp_held_the_other_side_is_not_the_applications() {
        let mut connection = sample::connection(0, "10.0.0.1:1", "10.0.0.2:2", 100_000_000);
        let rows = [(State::IdlePeerThink, 90_000_000), (State::LastFlight, 10_000_000)];
        let server = Direction { time_in: sample::time_in(&rows), ..Direction::default() };
        let mut held = |nagle: i64| {
            let rows = [(State::NagleDelack, nagle), (State::IdleAppThink, 100_000_000 - nagle)];
            let client = Direction { time_in: sample::time_in(&rows), ..Direction::default() };
            connection.directions = [Some(Box::new(client)), Some(Box::new(server.clone()))];
            not_tcp(&connection, 1, &server)
        };
        assert_eq!(held(80_000_000), None);
        assert_eq!(held(40_000_000), None, "half is not most");
        let text = held(39_999_999).expect("just more than half").replace('\u{a0}', " ");
        assert!(text.contains("(50.0 ms)") && text.contains("the client's application"), "{text}");
    }

    fn sentence_of(connection: &Connection, at: usize) -> String {
        let spans = sentence(connection, &connection.transfers[at], None);
        let text: String = spans.into_iter().map(|span| span.1).collect();
        text.replace('\u{a0}', " ")
    }

    #[test]
    fn a_guess_is_called_one_and_names_what_else_it_may_be() {
        let mut connection = sample::worked_example().connections.remove(0);
        assert!(!sentence_of(&connection, 1).contains("it may be"));
        for limit in &mut connection.directions[1].as_mut().expect("data").limits {
            if limit.state == State::CwndSlowStart {
                limit.confidence = Sure::Possible;
                limit.alternative = vec![State::App, State::Sndbuf];
            }
        }
        let text = sentence_of(&connection, 1);
        assert!(text.contains("; possible, it may be sndbuf or app); 2"), "{text}");
    }

    #[test]
    fn what_was_never_acknowledged_has_no_duration() {
        let mut connection = sample::worked_example().connections.remove(0);
        connection.transfers[0].end_ns = connection.transfers[0].start_ns;
        assert_eq!(
            sentence_of(&connection, 0),
            "147 B from the client, and no ACK of it was captured: how long it took is not known."
        );
    }

    #[test]
    fn rounds_out_of_the_list_are_not_named() {
        let mut report = sample::worked_example();
        let connection = &mut report.connections[0];
        connection.transfers[1].rounds =
            Some(crate::report::RoundRange { first: u64::MAX, last: 0 });
        let (_, rounds) = rounds_of(connection, &connection.transfers[1]);
        assert!(rounds.is_empty());
    }
}
