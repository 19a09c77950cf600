//! The table of rounds, as articles draw it by hand: what was sent in each round trip, and what
//! the wait after it was for.
//!
//! A round runs from its first send to the ACK of the first data sent after that. Its bytes are
//! the new payload first sent in it; `limited by` is the wait that follows its last send. The
//! congestion window is shown as the best estimate, with its bounds where they differ. Rounds
//! count from 1, as people do.

use super::Options;
use super::columns::Columns;
use super::page::{Ink, Page, plain};
use super::words;
use crate::report::{Connection, Cwnd, Direction, Round};
use crate::units::Duration;

/// Rounds printed; the JSON has all that were kept.
const ROUNDS: usize = 1_000;

/// The table of one direction (0: client to server) of a connection.
pub fn render(connection: &Connection, direction: usize, options: &Options) -> String {
    let mut page = Page::new(options.width, options.color);
    if let Some(Some(each)) = connection.directions.get(direction) {
        write(&mut page, direction, each);
    }
    page.into_text()
}

/// The same, onto a page.
pub(super) fn write(page: &mut Page, at: usize, direction: &Direction) {
    let ends = words::ends(at);
    page.heading(&format!("Rounds, {} to {}", ends.sender, ends.receiver));
    if direction.rounds.is_empty() {
        page.wrapped(2, 2, &[plain("no rounds were kept of this direction")]);
        return;
    }
    let shown = &direction.rounds[..direction.rounds.len().min(ROUNDS)];
    let rows: Vec<[String; 10]> =
        shown.iter().enumerate().map(|(at, round)| cells(at, round)).collect();
    let (layout, _) = TABLE.fit(&rows, page.width());
    TABLE.titles(page, &layout);
    for (round, row) in shown.iter().zip(&rows) {
        TABLE.row(page, &layout, row, (LIMITED_BY, Ink::Of(round.limited_by)));
    }
    if direction.rounds.len() > ROUNDS {
        let more = (direction.rounds.len() - ROUNDS) as u64;
        page.wrapped(
            2,
            2,
            &[plain(format!("and {}; the JSON has them", words::count(more, "more round")))],
        );
    }
    let legend = "in flight, room (of the receiver's window): bytes after the round's last send; \
                  cwnd in segments; limited by: the wait after that send";
    page.wrapped(2, 2, &[(Ink::Faint, legend.to_owned())]);
}

/// Where the state stands.
const LIMITED_BY: usize = 8;

const TABLE: Columns<10> = Columns {
    titles: [
        "#",
        "start",
        "segments",
        "bytes",
        "in flight",
        "RTT",
        "room",
        "cwnd",
        "limited by",
        "frames",
    ],
    words: &[LIMITED_BY, 9],
    given_up: &[4, 9, 1, 6, 2],
};

fn cells(at: usize, round: &Round) -> [String; 10] {
    let unknown = || "?".to_owned();
    [
        (at + 1).to_string(),
        Duration(round.start_ns).to_string(),
        words::grouped(round.segments),
        words::grouped(round.bytes),
        words::grouped(round.in_flight_bytes),
        round.rtt_ns.map_or_else(unknown, |ns| Duration(ns).to_string()),
        round.window_room_bytes.map_or_else(unknown, words::grouped_signed),
        cwnd(round.cwnd),
        round.limited_by.name().to_owned(),
        match (round.frames.first, round.frames.last) {
            (0, 0) => unknown(),
            (first, last) => format!("{first}-{last}"),
        },
    ]
}

/// `72`, `72 (64-80)`, `>=64`, `<=80`, `?`.
fn cwnd(cwnd: Cwnd) -> String {
    match (cwnd.best, cwnd.low, cwnd.high) {
        (Some(best), Some(low), Some(high)) if (low, high) != (best, best) => {
            format!("{best} ({low}-{high})")
        }
        (Some(best), ..) => best.to_string(),
        (None, Some(low), Some(high)) if low == high => low.to_string(),
        (None, Some(low), Some(high)) => format!("{low}-{high}"),
        (None, Some(low), None) => format!(">={low}"),
        (None, None, Some(high)) => format!("<={high}"),
        (None, None, None) => "?".to_owned(),
    }
}
