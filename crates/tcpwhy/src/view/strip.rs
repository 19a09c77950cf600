//! A strip over time: one letter a column for the state that held most of it, an axis under it.
//!
//! The report keeps 512 cells or fewer. A column takes the letter that most of its cells have,
//! the earliest of equals; with fewer cells than columns a cell spans several. A lone event can
//! vanish in a majority, so retransmissions are marked in a row of their own, always.

use super::page::{Ink, Page, Span, plain};
use crate::report::{Direction, State, Strip};
use tcpwhy_words::units::Duration;

/// The strip of a direction with its marks, axis and legend.
pub(super) fn write(page: &mut Page, lifetime_ns: i64, direction: &Direction) {
    if direction.strip.is_empty() {
        return;
    }
    page.heading("Over time");
    let columns = page.width() - 4;
    body(page, 2, columns, lifetime_ns, direction);
}

/// The strip alone.
pub(super) fn line(page: &mut Page, indent: usize, columns: usize, direction: &Direction) {
    if direction.strip.is_empty() {
        return;
    }
    let cells = fit(&direction.strip, columns);
    let mut row: Vec<Span> = vec![plain(" ".repeat(indent))];
    for run in cells.chunk_by(|a, b| a == b) {
        let letters: String = run.iter().map(|state| state.letter()).collect();
        row.push((super::family::ink(run[0]), letters));
    }
    page.row(&row);
}

/// Strip, marks, axis and legend at `indent` in `columns`.
pub(super) fn body(
    page: &mut Page,
    indent: usize,
    columns: usize,
    lifetime_ns: i64,
    direction: &Direction,
) {
    let margin = plain(" ".repeat(indent));
    let cells = fit(&direction.strip, columns);
    let mut row: Vec<Span> = vec![margin.clone()];
    for run in cells.chunk_by(|a, b| a == b) {
        let letters: String = run.iter().map(|state| state.letter()).collect();
        row.push((super::family::ink(run[0]), letters));
    }
    page.row(&row);
    let marks = marks(direction, columns, lifetime_ns);
    if let Some(marks) = &marks {
        page.row(&[margin.clone(), (Ink::Alarm, marks.clone())]);
    }
    let (ticks, labels) = axis(lifetime_ns, columns);
    page.row(&[margin.clone(), (Ink::Faint, ticks)]);
    page.row(&[margin, (Ink::Faint, labels)]);
    legend(page, indent, &cells, marks.is_some());
}

fn legend(page: &mut Page, indent: usize, cells: &[State], marked: bool) {
    let mut used: Vec<State> = Vec::new();
    for state in cells {
        if !used.contains(state) {
            used.push(*state);
        }
    }
    let mut spans = Vec::new();
    for state in &used {
        spans.push((super::family::ink(*state), state.letter().to_string()));
        spans.push(plain(format!("\u{a0}{},", state.name())));
        spans.push(plain(" "));
    }
    if marked {
        spans.push((Ink::Alarm, "^".to_owned()));
        spans.push(plain("\u{a0}retransmission"));
    } else if let [.., (_, last), _] = &mut spans[..] {
        last.pop();
    }
    page.wrapped(indent, indent, &spans);
}

/// The strip's states in exactly `columns`.
fn fit(strip: &Strip, columns: usize) -> Vec<State> {
    let states: Vec<State> = strip.states().collect();
    (0..columns)
        .map(|column| {
            let first = column * states.len() / columns;
            let last = ((column + 1) * states.len()).div_ceil(columns).max(first + 1);
            majority(states.get(first..last.min(states.len())).unwrap_or_default())
        })
        .collect()
}

fn majority(cells: &[State]) -> State {
    let mut counts = [0_usize; State::COUNT];
    for state in cells {
        counts[*state as usize] += 1;
    }
    let most = counts.iter().max().copied().unwrap_or(0);
    cells.iter().copied().find(|state| counts[*state as usize] == most).unwrap_or(State::Unknown)
}

/// `^` where something was retransmitted; `None` where nothing was.
fn marks(direction: &Direction, columns: usize, lifetime_ns: i64) -> Option<String> {
    let mut row = vec![' '; columns];
    for retransmission in &direction.retransmissions {
        row[column_of(retransmission.at_ns, lifetime_ns, columns)] = '^';
    }
    (!direction.retransmissions.is_empty()).then(|| row.into_iter().collect())
}

/// The column of an instant, the nearest one if it lies outside the lifetime.
pub(super) fn column_of(at_ns: i64, lifetime_ns: i64, columns: usize) -> usize {
    let lifetime = i128::from(lifetime_ns.max(1));
    let column = i128::from(at_ns) * columns as i128 / lifetime;
    column.clamp(0, columns as i128 - 1) as usize
}

/// Tick marks and their labels, at round times.
pub(super) fn axis(lifetime_ns: i64, columns: usize) -> (String, String) {
    let mut ticks: Vec<char> = vec!['-'; columns];
    let mut labels: Vec<char> = Vec::new();
    let step = round_step(lifetime_ns, columns);
    let mut at_ns = 0_i64;
    loop {
        let column = column_of(at_ns, lifetime_ns, columns);
        let label = if at_ns == 0 { "0".to_owned() } else { label(at_ns) };
        let fits = column + label.len() <= columns && (labels.is_empty() || labels.len() < column);
        if fits {
            ticks[column] = '|';
            labels.resize(column, ' ');
            labels.extend(label.chars());
        }
        match at_ns.checked_add(step) {
            Some(next) if next < lifetime_ns => at_ns = next,
            _ => break,
        }
    }
    let end = Duration(lifetime_ns.max(0)).to_string();
    if labels.len() + 2 + end.len() <= columns {
        labels.resize(columns - end.len(), ' ');
        labels.extend(end.chars());
    }
    (ticks.into_iter().collect(), labels.into_iter().collect())
}

/// 1, 2 or 5 times a power of ten, so that ticks stand at least 10 columns apart.
fn round_step(lifetime_ns: i64, columns: usize) -> i64 {
    let ticks = (columns / 10).max(1) as i64;
    let least = (lifetime_ns.max(1) / ticks).max(1);
    let mut power = 1_i64;
    loop {
        for factor in [1, 2, 5] {
            match power.checked_mul(factor) {
                Some(step) if step >= least => return step,
                Some(_) => {}
                None => return i64::MAX,
            }
        }
        match power.checked_mul(10) {
            Some(next) => power = next,
            None => return i64::MAX,
        }
    }
}

/// A round time without needless digits: `10 ms`, `1.5 s`.
fn label(ns: i64) -> String {
    let text = Duration(ns).to_string();
    match text.split_once(' ') {
        Some((number, unit)) if number.contains('.') => {
            format!("{} {unit}", number.trim_end_matches('0').trim_end_matches('.'))
        }
        _ => text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_column_takes_what_most_of_its_cells_have() {
        let letters = |strip: &str, columns| -> String {
            let strip = strip.chars().filter_map(State::from_letter).collect();
            fit(&strip, columns).iter().map(|state| state.letter()).collect()
        };
        assert_eq!(letters("hhhsssll", 4), "hhsl");
        assert_eq!(letters("hs", 4), "hhss");
    }

    #[test]
    fn ticks_stand_at_round_times() {
        let (ticks, labels) = axis(63_063_000, 70);
        assert_eq!(ticks, "|----------|----------|----------|----------|----------|--------------");
        assert_eq!(
            labels,
            "0          10 ms      20 ms      30 ms      40 ms      50 ms   63.1 ms"
        );
    }

    #[test]
    fn absurd_lifetimes_have_an_axis_too() {
        for lifetime in [i64::MIN, -1, 0, 1, i64::MAX] {
            let (ticks, labels) = axis(lifetime, 40);
            assert_eq!(ticks.len(), 40);
            assert!(labels.starts_with('0'));
        }
    }
}
