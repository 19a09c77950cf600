//! The marks of a series. Of more marks than pixels, each column of pixels shows the least and the most; marks that are
//! rare are drawn one by one.

use super::pen::Pen;
use super::{Scale, ink};
use crate::view::web::picture::{Mark, Series};

/// The least and the most of a mark.
pub(super) fn values(series: &Series, at: usize) -> (f64, f64) {
    let least = series.least[at];
    let more = series.height.get(at).copied().unwrap_or(0);
    (least as f64, least.saturating_add(more) as f64)
}

fn from(series: &Series, at: usize) -> f64 {
    series.at[at] as f64
}

fn until(series: &Series, at: usize) -> f64 {
    series.at[at].saturating_add(series.lasts.get(at).copied().unwrap_or(0)) as f64
}

/// As browsers round: halves go up.
fn whole(value: f64) -> f64 {
    (value + 0.5).floor()
}

pub(super) fn draw(pen: &mut Pen, series: &Series, to: Scale) {
    // A value behind the end holds nothing that is to be seen.
    let number = series.at.partition_point(|at| (*at as f64) < to.end + 1.0);
    if number == 0 {
        return;
    }
    let color = ink::of(series.ink);
    match series.mark {
        Mark::Spans => spans(pen, series, number, to, color),
        Mark::Steps | Mark::Area | Mark::Band => held(pen, series, number, to, color),
        Mark::Dots => dots(pen, series, number, to, color),
        Mark::Crosses => crosses(pen, series, number, to, color),
        Mark::Ticks => ticks(pen, series, number, to, color),
    }
}

fn ticks(pen: &mut Pen, series: &Series, number: usize, to: Scale, color: &str) {
    let foot = to.frame.height - to.frame.bottom;
    // Closer together they say nothing.
    if number as f64 * 4.0 > to.frame.width {
        return;
    }
    for at in 0..number {
        pen.rect((whole(to.x(from(series, at))), foot - 7.0), (1.0, 7.0), color, 1.0);
    }
}

/// A bar that grows while its neighbours touch it.
struct Bar {
    column: f64,
    top: f64,
    foot: f64,
    wide: f64,
}

fn spans(pen: &mut Pen, series: &Series, number: usize, to: Scale, color: &str) {
    let (least, thick) = if series.rare { (5.0, 3.0) } else { (1.5, 2.0) };
    let put = |pen: &mut Pen, bar: &Bar| {
        let tall = (bar.foot - bar.top).max(least);
        let at = (bar.column - thick / 2.0, f64::midpoint(bar.top, bar.foot) - tall / 2.0);
        pen.rect(at, (f64::max(thick, bar.wide), tall), color, 1.0);
    };
    let mut open: Option<Bar> = None;
    for at in 0..number {
        let column = whole(to.x(from(series, at)) * 2.0) / 2.0;
        let (low, high) = values(series, at);
        let (top, foot) = (to.y(high), to.y(low));
        let wide = to.x(until(series, at)) - column;
        match &mut open {
            #[expect(clippy::float_cmp, reason = "both are halves of pixels")]
            Some(bar) if bar.column == column && top <= bar.foot + 1.0 && foot >= bar.top - 1.0 => {
                (bar.top, bar.foot) = (bar.top.min(top), bar.foot.max(foot));
                bar.wide = bar.wide.max(wide);
            }
            _ => {
                if let Some(bar) = open.replace(Bar { column, top, foot, wide: wide.max(0.0) }) {
                    put(pen, &bar);
                }
            }
        }
    }
    if let Some(bar) = open {
        put(pen, &bar);
    }
}

fn held(pen: &mut Pen, series: &Series, number: usize, to: Scale, color: &str) {
    let frame = to.frame;
    let edge = frame.width - frame.right;
    let mut points: Vec<(f64, f64)> = Vec::new();
    let mut lows: Vec<(f64, f64)> = Vec::new();
    let mut before: Option<f64> = None;
    let mut at = 0;
    while at < number {
        let x = to.x(from(series, at)).max(frame.left);
        // All that falls into this half of a pixel: its extremes, and its last value is held.
        let (mut low, mut high) = values(series, at);
        let mut next = at + 1;
        while next < number && to.x(from(series, next)) < x + 0.5 {
            let (least, most) = values(series, next);
            (low, high) = (low.min(least), high.max(most));
            next += 1;
        }
        points.extend(before.map(|y| (x, y)));
        if high > low && series.mark != Mark::Band {
            points.extend([(x, to.y(low)), (x, to.y(high))]);
        }
        let (least, most) = values(series, next - 1);
        let y = to.y(most);
        points.push((x, y));
        lows.push((x, to.y(least)));
        before = Some(y);
        at = next;
    }
    points.extend(before.map(|y| (edge, y)));
    let foot = frame.height - frame.bottom;
    if series.mark == Mark::Area {
        let floor = [(edge, foot), (points[0].0, foot)];
        let around: Vec<_> = points.iter().copied().chain(floor).collect();
        pen.fill(&around, color, 0.13);
    }
    if series.mark == Mark::Band {
        let floor = steps(&lows, edge);
        let around: Vec<_> = points.iter().copied().chain(floor.iter().rev().copied()).collect();
        pen.fill(&around, color, 0.28);
        pen.path(&floor, color, 1.0, "");
    }
    let is_rule = ["least", "bdp", "buffer"].contains(&series.ink);
    pen.path(&points, color, 1.6, if is_rule { "5 4" } else { "" });
}

/// The steps through `places`, up to `edge`.
fn steps(places: &[(f64, f64)], edge: f64) -> Vec<(f64, f64)> {
    let mut steps: Vec<(f64, f64)> = Vec::new();
    for (x, y) in places {
        let before = steps.last().map(|last| (*x, last.1));
        steps.extend(before);
        steps.push((*x, *y));
    }
    let last = steps.last().map(|last| (edge, last.1));
    steps.extend(last);
    steps
}

fn dots(pen: &mut Pen, series: &Series, number: usize, to: Scale, color: &str) {
    let mut seen = std::collections::BTreeSet::new();
    for at in 0..number {
        let (low, high) = values(series, at);
        let (x, top, foot) = (whole(to.x(from(series, at))), whole(to.y(high)), whole(to.y(low)));
        let is_new = seen.insert((x as i64, top as i64));
        if is_new || foot > top {
            pen.rect((x - 1.5, top - 1.5), (3.0, foot - top + 3.0), color, 1.0);
        }
    }
}

fn crosses(pen: &mut Pen, series: &Series, number: usize, to: Scale, color: &str) {
    const LIFT: (f64, f64) = (f64::NAN, f64::NAN);
    let mut points: Vec<(f64, f64)> = Vec::new();
    let mut before = None;
    for at in 0..number {
        let (x, y) = (whole(to.x(from(series, at))), whole(to.y(values(series, at).1)));
        if before.replace((x, y)) == Some((x, y)) {
            continue;
        }
        points.extend([(x - 4.0, y - 4.0), (x + 4.0, y + 4.0), LIFT]);
        points.extend([(x - 4.0, y + 4.0), (x + 4.0, y - 4.0), LIFT]);
    }
    pen.path(&points, color, 1.6, "");
}
