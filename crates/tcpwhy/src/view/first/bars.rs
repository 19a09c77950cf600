//! Where the lifetime went: at most six bars, and the strip.

use super::super::page::{Ink, Page, Span, bar, plain};
use super::super::{strip, words};
use crate::answer;
use crate::answer::words as short;
use crate::find;
use crate::report::{Connection, Direction, State};

/// Bars at most, and the columns of their names.
const BARS: usize = 6;
const NAME: usize = 22;

/// What one bar needs at least: the heading, the bar, the strip, and the line of trust with a blank above.
const AROUND: usize = 5;

/// Columns that are too few for a bar.
const NARROW: usize = 8;

/// The bars and the strip in `room` lines.
pub(super) fn write(page: &mut Page, connection: &Connection, room: usize) {
    let Some((at, direction)) = answer::main(connection) else { return };
    let lifetime = connection.duration_ns;
    let rows = rows(connection, at, direction);
    if rows.is_empty() || lifetime <= 0 || room <= AROUND {
        return;
    }
    let number = room.saturating_sub(AROUND).clamp(1, BARS);
    let worth = rows.iter().filter(|row| row.1.saturating_mul(100) >= lifetime).count();
    let number = number.min(worth).max(1);
    page.heading(&heading(connection));
    let columns = page.width().saturating_sub(NAME + 9 + 6 + 4);
    let rest = rows.iter().skip(number).fold(0, |sum: i64, row| sum.saturating_add(row.1));
    for (index, (name, spent, state)) in rows.iter().take(number).enumerate() {
        let share = words::percent(*spent, lifetime).replace('\u{a0}', " ");
        let time = words::time(*spent).replace('\u{a0}', " ");
        let mut spans: Vec<Span> = vec![
            (super::super::family::ink(*state), state.letter().to_string()),
            plain(format!(" {name:<NAME$}{time:>9}{share:>6}")),
        ];
        let is_last = index + 1 == number;
        let tail = if is_last && rest.saturating_mul(100) >= lifetime {
            format!("  rest {}", words::time(rest))
        } else {
            String::new()
        };
        if columns >= NARROW {
            let width = columns.saturating_sub(tail.chars().count());
            let full = bar(*spent as f64 / lifetime as f64, columns);
            let full: String = full.trim_end().chars().take(width).collect();
            spans.push(plain("  "));
            spans.push((super::super::family::ink(*state), full));
        }
        if columns >= NARROW {
            spans.push((Ink::Faint, tail));
        }
        page.row(&spans);
    }
    if room >= AROUND + 2 {
        strip::line(page, 2, page.width() - 4, direction);
    }
}

/// Where shares above are of another time than those of the bars, both are shown.
fn heading(connection: &Connection) -> String {
    /// A difference of one in this many shows in the shares. Ours.
    const SHOWS: i64 = 20;
    let lifetime = connection.duration_ns;
    let active = find::active_ns(connection);
    let went = format!("Where {} went", words::time(lifetime));
    let differs = active > 0 && (lifetime - active).saturating_mul(SHOWS) > lifetime;
    if differs {
        format!("{went} (the shares above are of the {} in use)", words::time(active))
    } else {
        went
    }
}

/// Names, times and a state for the colour, the longest first.
pub(in crate::view) fn rows(
    connection: &Connection,
    at: usize,
    direction: &Direction,
) -> Vec<(String, i64, State)> {
    let ends = short::Ends::of(at);
    let held = connection.held_while_silent(at).get(State::IdlePeerThink).0;
    let mut rows: Vec<(String, i64, State)> = Vec::new();
    let mut add = |name: String, spent: i64, state: State| {
        if spent <= 0 {
            return;
        }
        match rows.iter_mut().find(|row| row.0 == name) {
            Some(row) => row.1 = row.1.saturating_add(spent),
            None => rows.push((name, spent, state)),
        }
    };
    for (state, span) in direction.time_in.ranked() {
        let own = if state == State::IdlePeerThink { span.0.saturating_sub(held) } else { span.0 };
        add(ends.put_in(short::bar(state)), own, state);
    }
    add(format!("{}'s data held", ends.receiver), held, State::NagleDelack);
    rows.sort_by_key(|row| core::cmp::Reverse(row.1));
    rows
}
