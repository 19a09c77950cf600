//! What a direction could not be faster than: each ceiling with its rate, who sets it, and when it was met.
//!
//! The question: what is the limit, and what comes next? The lowest is the limit; the distance to the next is the most
//! that its removal can gain.

use super::page::Page;
use super::words::{self, Ends};
use crate::gain;
use crate::report::{Ceiling, CeilingKind as Kind, Connection, Direction, State};

/// The ceilings of one direction of `connection`, the lowest first; nothing where none is known.
pub(super) fn write(page: &mut Page, connection: &Connection, at: usize, direction: &Direction) {
    let Some(lowest) = direction.ceilings.first() else { return };
    let ends = words::ends(at);
    page.heading(&format!("Ceilings, {} to {}", ends.sender, ends.receiver));
    for each in &direction.ceilings {
        let computed = if each.proven { "" } else { " (computed)" };
        let loss = (each.kind == Kind::Loss).then(|| gain::by_loss(connection, at)).flatten();
        let by_loss = loss.map_or_else(String::new, |[cubic, reno]| {
            let [cubic, reno] = [cubic, reno].map(words::rate);
            format!(": CUBIC {cubic}, Reno (Mathis) {reno}")
        });
        let who = who(each, direction, ends);
        let text = format!("{who}{by_loss}{computed}{}", met(each, direction));
        page.item(&words::rate(each.rate_bps), &text);
    }
    if let Some(next) = direction.ceilings.get(1).filter(|_| lowest.rate_bps > 0) {
        let times = next.rate_bps as f64 / lowest.rate_bps as f64;
        let next = who(next, direction, ends);
        page.item("next", &format!("{next}: {times:.1} times the lowest"));
    }
}

/// Who sets it.
fn who(ceiling: &Ceiling, direction: &Direction, Ends { sender, receiver }: Ends) -> String {
    match ceiling.kind {
        Kind::Link => "the narrowest link".to_owned(),
        Kind::ReceiveWindow => {
            format!("the {receiver}'s largest receive window each round trip")
        }
        Kind::CongestionWindow => {
            format!("the {sender}'s largest congestion window each round trip")
        }
        Kind::SendBuffer => format!("the {sender}'s send buffer each round trip"),
        Kind::Loss => "what the losses leave to the congestion control".to_owned(),
        Kind::Application if is_writer(ceiling, direction) => {
            format!("the {sender}'s program, as fast as it writes")
        }
        Kind::Application => format!("the {receiver}'s program, as fast as it reads"),
        Kind::InitialWindow => "the climb from the initial window, with all else open".to_owned(),
    }
}

/// Whether the pace is that of the program that writes.
fn is_writer(ceiling: &Ceiling, direction: &Direction) -> bool {
    let written = direction.time_in.get(State::App).0;
    let read = [State::RwndReader, State::ZeroWindow].map(|state| direction.time_in.get(state).0);
    let read = read.iter().fold(0_i64, |sum, each| sum.saturating_add(*each));
    let off = |time: i64| time.abs_diff(ceiling.met_ns);
    written > 0 && off(written) <= off(read)
}

/// `; met for 2.06 s, from 111 ms to 2.17 s`
fn met(ceiling: &Ceiling, direction: &Direction) -> String {
    if ceiling.met_ns <= 0 {
        return "; not met".to_owned();
    }
    let states = gain::met_by(ceiling.kind);
    let own = || direction.limits.iter().filter(|limit| states.contains(&limit.state));
    let first = own().map(|limit| limit.start_ns).min();
    let last = own().map(|limit| limit.end_ns).max();
    let when = first.zip(last).map_or_else(String::new, |(first, last)| {
        format!(", from {} to {}", words::time(first), words::time(last))
    });
    format!("; met for {}{when}", words::time(ceiling.met_ns))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::find::sample;

    fn shown(connection: &Connection) -> String {
        let mut page = Page::new(80, false);
        let direction = connection.directions[1].as_deref().expect("data");
        write(&mut page, connection, 1, direction);
        page.into_text()
    }

    #[test]
    fn the_lowest_comes_first_and_the_next_is_told() {
        let mut connection = sample::download();
        gain::fill(&mut connection);
        insta::assert_snapshot!(shown(&connection));
    }

    #[test]
    fn a_direction_without_ceilings_has_no_table() {
        let mut connection = sample::download();
        connection.directions[1].as_mut().expect("data").ceilings.clear();
        assert_eq!(shown(&connection), "");
    }

    #[test]
    fn a_program_that_writes_is_told_from_one_that_reads() {
        let mut connection = sample::download();
        let direction = connection.directions[1].as_mut().expect("data");
        for state in [State::App, State::RwndReader] {
            let ends = words::ends(1);
            let ceiling = Ceiling { kind: Kind::Application, rate_bps: 1, met_ns: 7, proven: true };
            direction.time_in = crate::report::TimeIn::default();
            direction.time_in.add(state, tcpwhy_words::units::Duration(7));
            let who = who(&ceiling, direction, ends);
            assert_eq!(who.contains("writes"), state == State::App, "{who}");
        }
    }
}
