//! What held the sender over time, below a graph.

use super::axes::{Ticks, anchor, most_columns};
use super::pen::Pen;
use super::{Scale, Unit, ink};
use crate::report::{Direction, State};

/// Height of the band.
const TALL: f64 = 26.0;

pub(super) fn draw(pen: &mut Pen, direction: &Direction, lifetime: i64, to: Scale) {
    let frame = to.frame;
    let (left, right) = (frame.left, frame.width - frame.right);
    let pieces = pieces(direction, lifetime);
    pen.clip((left, frame.top), (frame.wide(), TALL), |pen| {
        for (from, until, state) in pieces {
            if until < to.start || from > to.end {
                continue;
            }
            let (from, until) = (to.x(from).max(left), to.x(until).min(right));
            let gap = if until - from > 3.0 { 1.0 } else { 0.0 };
            let size = ((until - from - gap).max(1.0), TALL);
            pen.rect((from, frame.top), size, ink::state(state), 1.0);
            if until - from > 13.0 {
                let middle = (f64::midpoint(from, until), frame.top + TALL / 2.0);
                pen.text(middle, &state.letter().to_string(), ink::LETTER, "middle", 12);
            }
        }
    });
    let columns = Ticks::of(to.start, to.end, most_columns(to), Unit::Time);
    for time in &columns.at {
        let x = to.x(*time);
        let place = (x, frame.top + TALL + 11.0);
        pen.text(place, &columns.label(*time), ink::FAINT, anchor(x, to), 11);
    }
}

/// The intervals where they are known, else the equal slices of the strip.
fn pieces(direction: &Direction, lifetime: i64) -> Vec<(f64, f64, State)> {
    if !direction.limits.is_empty() {
        let each = direction.limits.iter();
        return each
            .map(|limit| (limit.start_ns as f64, limit.end_ns as f64, limit.state))
            .collect();
    }
    let states: Vec<State> = direction.strip.states().collect();
    let edge = |index: usize| lifetime as f64 * index as f64 / states.len() as f64;
    let mut pieces: Vec<(f64, f64, State)> = Vec::new();
    for (index, state) in states.iter().enumerate() {
        match pieces.last_mut() {
            Some(last) if last.2 == *state => last.1 = edge(index + 1),
            _ => pieces.push((edge(index), edge(index + 1), *state)),
        }
    }
    pieces
}
