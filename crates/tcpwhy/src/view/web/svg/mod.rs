//! A graph as an SVG file, for tickets and slides: what the page's button saves, from the same series and by the same
//! layout. `page/src/graph` has these rules for the screen, and a test of the page compares both files byte for byte.

mod axes;
mod ink;
mod marks;
mod pen;
mod strip;

use std::fmt::Write as _;

use crate::report::{Connection, Direction};
use crate::view::web::picture::{self, Figure, Series, Unit};
use pen::Pen;

/// Size of a file's picture.
const SIZE: (f64, f64) = (1200.0, 560.0);

/// Height of the strip below the graph.
const STRIP: f64 = 58.0;

/// Where the graph's own area lies in its frame.
#[derive(Clone, Copy, Debug)]
struct Frame {
    width: f64,
    height: f64,
    left: f64,
    right: f64,
    top: f64,
    bottom: f64,
}

impl Frame {
    const fn of(width: f64, height: f64, top: f64) -> Self {
        Self { width, height, left: 74.0, right: 14.0, top, bottom: 24.0 }
    }

    fn wide(self) -> f64 {
        self.width - self.left - self.right
    }

    fn tall(self) -> f64 {
        self.height - self.top - self.bottom
    }
}

/// From a graph's quantities to places.
#[derive(Clone, Copy, Debug)]
struct Scale {
    frame: Frame,
    start: f64,
    end: f64,
    low: f64,
    high: f64,
}

impl Scale {
    fn x(self, time: f64) -> f64 {
        self.frame.left + ((time - self.start) / (self.end - self.start)) * self.frame.wide()
    }

    fn y(self, value: f64) -> f64 {
        let part = (value - self.low) / (self.high - self.low);
        self.frame.top + (1.0 - part) * self.frame.tall()
    }
}

/// The graphs of a direction, each with its name and its file's content; none if nothing was kept to draw.
pub fn graphs(connection: &Connection, at: usize) -> Vec<(&'static str, String)> {
    let Some(direction) = connection.directions.get(at).and_then(Option::as_ref) else {
        return Vec::new();
    };
    let figures = picture::figures(connection, at, direction).unwrap_or_default();
    let graph = |figure: &Figure| (figure.id, file(connection, direction, figure));
    figures.iter().map(graph).collect()
}

/// What held the sender of a direction over time, as a file's content; none if nothing was sent.
pub fn strip(connection: &Connection, at: usize) -> Option<String> {
    let direction = connection.directions.get(at)?.as_ref()?;
    let (width, height) = (SIZE.0, STRIP);
    let mut pen = Pen::default();
    let frame = Frame::of(width, height, 4.0);
    let end = connection.duration_ns.max(1) as f64;
    let scale = Scale { frame, start: 0.0, end, low: 0.0, high: 1.0 };
    strip::draw(&mut pen, direction, connection.duration_ns, scale);
    Some(whole("what held the sender", (width, height), pen))
}

fn file(connection: &Connection, direction: &Direction, figure: &Figure) -> String {
    let (width, height) = SIZE;
    let end = connection.duration_ns.max(1) as f64;
    let title = format!("{}: {} and {}", figure.title, connection.server, connection.client);
    let mut pen = Pen::default();
    pen.text((14.0, 18.0), &title, ink::TEXT, "start", 15);
    let mut x = 14.0;
    for series in &figure.series {
        pen.rect((x, 34.0), (10.0, 10.0), ink::of(series.ink), 1.0);
        pen.text((x + 15.0, 39.0), series.name, ink::FAINT, "start", 12);
        x += 30.0 + series.name.len() as f64 * 7.0;
    }
    let frame = Frame::of(width, height - STRIP, 78.0);
    let (low, high) = range(figure);
    let scale = Scale { frame, start: 0.0, end, low, high };
    axes::draw(&mut pen, figure.unit, figure.axis, scale);
    pen.clip((frame.left, frame.top), (frame.wide(), frame.tall()), |pen| {
        let usual = figure.series.iter().filter(|series| !series.rare);
        for series in usual.chain(figure.series.iter().filter(|series| series.rare)) {
            marks::draw(pen, series, scale);
        }
    });
    let under = Frame::of(width, height, height - STRIP + 4.0);
    strip::draw(&mut pen, direction, connection.duration_ns, Scale { frame: under, ..scale });
    whole(&title, SIZE, pen)
}

/// What was drawn, as a file's content.
fn whole(title: &str, (width, height): (f64, f64), pen: Pen) -> String {
    let mut text = String::new();
    // Writing to a text does not fail.
    let _ = write!(
        text,
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width}\" height=\"{height}\" viewBox=\"0 0 {width} \
         {height}\" font-family=\"{}\"><title>{}</title><rect width=\"{width}\" height=\"{height}\" \
         fill=\"{}\"/>{}</svg>",
        pen::FONT,
        pen::escaped(title),
        ink::GROUND,
        pen.into_parts()
    );
    text.push('\n');
    text
}

/// A window that is far above the data would press it to the floor: such ceilings do not decide the scale.
const CEILINGS: [&str; 5] = ["edge", "window", "cwnd", "bdp", "buffer"];
const FAR: f64 = 2.5;

fn range(figure: &Figure) -> (f64, f64) {
    let is_ceiling = |series: &Series| CEILINGS.contains(&series.ink);
    let others = figure.series.iter().any(|series| !is_ceiling(series));
    let (mut low, mut high, mut ceiling) = (f64::INFINITY, f64::NEG_INFINITY, f64::NEG_INFINITY);
    for series in figure.series.iter().filter(|series| series.mark != picture::Mark::Ticks) {
        for at in 0..series.len() {
            let (least, most) = marks::values(series, at);
            if others && is_ceiling(series) {
                ceiling = ceiling.max(most);
            } else {
                (low, high) = (low.min(least), high.max(most));
            }
        }
    }
    if low > high {
        return (0.0, ceiling.max(1.0));
    }
    let from_zero = figure.id != "sequence";
    if from_zero {
        low = 0.0;
    }
    if ceiling > high {
        high = ceiling.min(low + (high - low) * FAR);
    }
    let room = ((high - low) * 0.06).max(1.0);
    (if from_zero { 0.0 } else { low - room }, high + room)
}

/// Whether values of this quantity have binary units.
fn units(unit: Unit) -> &'static [(f64, &'static str)] {
    match unit {
        Unit::Bytes => &[
            (1.0, "B"),
            (1024.0, "KiB"),
            (1_048_576.0, "MiB"),
            (1_073_741_824.0, "GiB"),
            (1_099_511_627_776.0, "TiB"),
        ],
        Unit::Rate => &[(1.0, "bit/s"), (1e3, "kbit/s"), (1e6, "Mbit/s"), (1e9, "Gbit/s")],
        Unit::Time => &[(1.0, "ns"), (1e3, "µs"), (1e6, "ms"), (1e9, "s")],
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::{Sent, Trail};
    use crate::view::sample;

    #[test]
    fn hostile_names_are_text_and_a_lone_repeat_is_a_mark() {
        let mut connection = sample::connection(0, "10.0.0.1:1", "10.0.0.2:2", 100);
        let sent = |at_ns: i64, from: i64| Sent {
            at_ns,
            until_ns: at_ns,
            from,
            to: from + 100,
            flight: 100,
            packets: 1,
            frame: 7,
        };
        let mut trail = Trail::default();
        trail.sends.push(sent(0, 0));
        trail.sends.push(sent(10, 100));
        trail.late.push(sent(20, 0));
        connection.duration_ns = 40;
        connection.directions[1] =
            Some(Direction { trail: Some(Box::new(trail)), ..Direction::default() }.into());
        let graphs = graphs(&connection, 1);
        let sequence = &graphs.iter().find(|graph| graph.0 == "sequence").expect("one").1;
        assert!(sequence.starts_with("<svg ") && sequence.ends_with("</svg>\n"));
        assert_eq!(sequence.matches(ink::of("late")).count(), 2, "in the legend, and drawn");
        assert_eq!(pen::escaped("<b>&\"'"), "&#60;b&#62;&#38;&#34;&#39;");
    }

    #[test]
    fn nothing_kept_is_no_file() {
        let connection = sample::connection(0, "10.0.0.1:1", "10.0.0.2:2", 100);
        assert!(graphs(&connection, 0).is_empty() && graphs(&connection, 9).is_empty());
    }
}
