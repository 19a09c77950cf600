//! The table of rounds, as articles draw it by hand: what was sent in each round trip, and what
//! the wait after it was for.
//!
//! A round runs from its first send to the ACK of the first data sent after that. Its bytes are
//! the new payload first sent in it; `limited by` is the wait that follows its last send. The
//! congestion window is shown as the best estimate, with its bounds where they differ. Rounds
//! count from 1, as people do. Where many in a row say the same, the middle of them is only counted.

use super::Options;
use super::columns::Columns;
use super::page::{Ink, Page, plain};
use super::words;
use crate::report::{Connection, Cwnd, Direction, Round};
use tcpwhy_words::units::Duration;

/// Lines printed; the JSON has all rounds that were kept.
const LINES: usize = 1_000;

/// Rounds in a row that say the same are folded if there are at least this many: the first two and the last are
/// shown. Ours: fewer lines than this are as quickly read as skipped.
const FOLDED_FROM: usize = 8;

/// Rounds say the same if their waits do, and their flights are within this of each other. Ours.
const ALIKE_PERCENT: u64 = 10;

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
    let lines = folded(&direction.rounds);
    let shown = &lines[..lines.len().min(LINES)];
    let rows: Vec<[String; 10]> = shown.iter().filter_map(|line| line.cells(direction)).collect();
    let (layout, _) = TABLE.fit(&rows, page.width());
    TABLE.titles(page, &layout);
    let mut rows = rows.iter();
    for line in shown {
        match *line {
            Line::Round(at) => {
                let Some(row) = rows.next() else { continue };
                let ink = super::family::ink(direction.rounds[at].limited_by);
                TABLE.row(page, &layout, row, (LIMITED_BY, ink));
            }
            Line::Alike(number) => {
                let text = format!("... {} like these", words::count(number, "more round"));
                page.row(&[(Ink::Faint, format!("    {text}"))]);
            }
        }
    }
    if lines.len() > LINES {
        let left: u64 = lines[LINES..].iter().map(|line| line.rounds()).sum();
        let more = words::count(left, "more round");
        page.wrapped(2, 2, &[plain(format!("and {more}; the JSON has them"))]);
    }
    let legend = "in flight, room (of the receiver's window): bytes after the round's last send; \
                  cwnd in segments; limited by: the wait after that send";
    page.wrapped(2, 2, &[(Ink::Faint, legend.to_owned())]);
}

/// A line of the table.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Line {
    /// The round at this place.
    Round(usize),
    /// This many rounds, left out between two that are like them.
    Alike(u64),
}

impl Line {
    fn cells(self, direction: &Direction) -> Option<[String; 10]> {
        match self {
            Self::Round(at) => direction.rounds.get(at).map(|round| cells(at, round)),
            Self::Alike(_) => None,
        }
    }

    const fn rounds(self) -> u64 {
        match self {
            Self::Round(_) => 1,
            Self::Alike(number) => number,
        }
    }
}

/// The lines for `rounds`: runs of those that say the same show their first two and their last.
fn folded(rounds: &[Round]) -> Vec<Line> {
    let mut lines = Vec::new();
    let mut at = 0;
    while let Some(first) = rounds.get(at) {
        let run = rounds[at..].iter().take_while(|round| is_like(first, round)).count();
        if run >= FOLDED_FROM {
            let last = at + run - 1;
            let shown = [
                Line::Round(at),
                Line::Round(at + 1),
                Line::Alike(run as u64 - 3),
                Line::Round(last),
            ];
            lines.extend(shown);
        } else {
            lines.extend((at..at + run).map(Line::Round));
        }
        at += run;
    }
    lines
}

/// Whether a round says what the first of a run does.
fn is_like(first: &Round, round: &Round) -> bool {
    let (one, other) = (first.in_flight_bytes, round.in_flight_bytes);
    round.limited_by == first.limited_by
        && one.abs_diff(other).saturating_mul(100) <= one.saturating_mul(ALIKE_PERCENT)
}

/// The column of the state.
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::{FrameRange, State};

    /// Rounds with these bytes in flight each.
    fn with_flights(flights: &[u64]) -> Vec<Round> {
        let round = |bytes: &u64| Round {
            start_ns: 0,
            bytes: *bytes,
            segments: 1,
            rtt_ns: None,
            window_room_bytes: None,
            cwnd: Cwnd::default(),
            cwnd_measured_by: None,
            limited_by: State::RwndCap,
            in_flight_bytes: *bytes,
            delivery_rate_bps: None,
            bdp_bytes: None,
            frames: FrameRange { first: 1, last: 1 },
        };
        flights.iter().map(round).collect()
    }

    #[test]
    fn eight_rounds_alike_are_folded_and_seven_are_not() {
        let folded = |number: usize| folded(&with_flights(&vec![65_000; number]));
        let eight = [Line::Round(0), Line::Round(1), Line::Alike(5), Line::Round(7)];
        assert_eq!(folded(8), eight);
        assert_eq!(folded(7).len(), 7);
    }

    #[test]
    fn no_round_is_lost_and_another_flight_or_wait_begins_a_run() {
        let mut rounds = with_flights(&[&[100_u64; 10][..], &[111; 10], &[110; 10]].concat());
        rounds[15].limited_by = State::Sndbuf;
        let lines = folded(&rounds);
        assert_eq!(lines.iter().map(|line| line.rounds()).sum::<u64>(), 30);
        // Ten of 100; of 111 five and one and four with the ten of 110.
        assert_eq!(lines.len(), 4 + 5 + 1 + 4);
    }
}
