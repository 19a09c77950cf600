//! Ticks at round places, with labels in one unit.

use super::pen::Pen;
use super::{Scale, Unit, ink, units};

/// Round places, and how they are called.
pub(super) struct Ticks {
    pub(super) at: Vec<f64>,
    scale: f64,
    unit: &'static str,
    digits: usize,
}

impl Ticks {
    /// From `low` to `high`, at most `most` of them.
    pub(super) fn of(low: f64, high: f64, most: f64, unit: Unit) -> Self {
        let span = (high - low).max(1.0);
        let size = low.abs().max(high.abs());
        // In a small piece far from zero the larger unit would need many digits.
        let fits = |each: &&(f64, &str)| each.0 <= size && each.0 <= span * 1000.0;
        let (scale, name) = *units(unit).iter().rfind(fits).unwrap_or(&units(unit)[0]);
        let step = round_step(span / scale / most.max(1.0)) * scale;
        let digits = (-libm::floor(libm::log10(step / scale) + 1e-9)).clamp(0.0, 9.0);
        let mut at = Vec::new();
        let mut number = (low / step - 1e-9).ceil();
        while number * step <= high + step * 1e-9 && at.len() < 1000 {
            at.push(number * step);
            number += 1.0;
        }
        Self { at, scale, unit: name, digits: digits as usize }
    }

    pub(super) fn label(&self, value: f64) -> String {
        if value == 0.0 {
            return "0".to_owned();
        }
        format!("{:.*}\u{a0}{}", self.digits, value / self.scale, self.unit)
    }
}

/// 1, 2 or 5 times a power of ten, not below `least`.
fn round_step(least: f64) -> f64 {
    let power = libm::pow(10.0, libm::floor(libm::log10(least.max(1e-12))));
    let fits = |factor: &f64| factor * power >= least * (1.0 - 1e-9);
    [1.0, 2.0, 5.0].into_iter().find(fits).unwrap_or(10.0) * power
}

/// The grid, the labels of both axes, and the name of the upright one.
pub(super) fn draw(pen: &mut Pen, unit: Unit, name: &str, to: Scale) {
    let frame = to.frame;
    let (right, foot) = (frame.width - frame.right, frame.height - frame.bottom);
    let rows = Ticks::of(to.low, to.high, (frame.tall() / 36.0).floor().max(2.0), unit);
    for value in &rows.at {
        let y = (to.y(*value) + 0.5).floor() + 0.5;
        if *value < 0.0 || y < frame.top || y > foot + 1.0 {
            continue;
        }
        pen.path(&[(frame.left, y), (right, y)], ink::GRID, 1.0, "");
        pen.text((frame.left - 6.0, y), &rows.label(*value), ink::FAINT, "end", 11);
    }
    let columns = Ticks::of(to.start, to.end, most_columns(to), Unit::Time);
    for time in &columns.at {
        let x = (to.x(*time) + 0.5).floor() + 0.5;
        pen.path(&[(x, frame.top), (x, foot)], ink::GRID, 1.0, "");
        pen.text((x, foot + 12.0), &columns.label(*time), ink::FAINT, anchor(x, to), 11);
    }
    let corner =
        [(frame.left + 0.5, frame.top), (frame.left + 0.5, foot + 0.5), (right, foot + 0.5)];
    pen.path(&corner, ink::FAINT, 1.0, "");
    pen.text((frame.left, frame.top - 10.0), name, ink::FAINT, "start", 11);
}

/// Labels of time that fit.
pub(super) fn most_columns(to: Scale) -> f64 {
    (to.frame.wide() / 95.0).floor().max(2.0)
}

/// A label at the rim stays inside.
pub(super) fn anchor(x: f64, to: Scale) -> &'static str {
    if x > to.frame.width - to.frame.right - 24.0 {
        "end"
    } else if x < to.frame.left + 12.0 {
        "start"
    } else {
        "middle"
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_are_round_and_lie_inside() {
        let ticks = Ticks::of(0.0, 63_063_000.0, 7.0, Unit::Time);
        let labels: Vec<_> = ticks.at.iter().map(|at| ticks.label(*at)).collect();
        assert_eq!(labels.join(" ").replace('\u{a0}', ""), "0 10ms 20ms 30ms 40ms 50ms 60ms");
        for (low, high) in [(0.0, 1.0), (5.0, 5.0), (0.0, 9e18), (1e12, 1e12 + 10.0)] {
            assert!(Ticks::of(low, high, 8.0, Unit::Time).at.len() < 20);
        }
    }
}
