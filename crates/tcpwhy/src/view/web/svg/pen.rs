//! Writes the elements of a picture.

use std::fmt::Write as _;

/// As the page has it, without quotes.
pub(super) const FONT: &str = "system-ui, Segoe UI, Roboto, DejaVu Sans, sans-serif";

/// The elements so far.
#[derive(Debug, Default)]
pub(super) struct Pen {
    parts: String,
    clips: usize,
}

type Place = (f64, f64);

impl Pen {
    pub(super) fn into_parts(self) -> String {
        self.parts
    }

    /// Writing to a text does not fail.
    fn put(&mut self, element: core::fmt::Arguments<'_>) {
        let _ = self.parts.write_fmt(element);
    }

    pub(super) fn rect(&mut self, at: Place, size: Place, fill: &str, alpha: f64) {
        let faint = if alpha < 1.0 { format!(" fill-opacity=\"{alpha}\"") } else { String::new() };
        self.put(format_args!(
            "<rect x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\" fill=\"{fill}\"{faint}/>",
            short(at.0),
            short(at.1),
            short(size.0),
            short(size.1)
        ));
    }

    /// A line through points; one that is no number lifts the pen.
    pub(super) fn path(&mut self, points: &[Place], stroke: &str, width: f64, dash: &str) {
        let dashes =
            if dash.is_empty() { String::new() } else { format!(" stroke-dasharray=\"{dash}\"") };
        let path = traced(points);
        self.put(format_args!(
            "<path d=\"{path}\" fill=\"none\" stroke=\"{stroke}\" stroke-width=\"{width}\"{dashes}/>"
        ));
    }

    pub(super) fn fill(&mut self, points: &[Place], fill: &str, alpha: f64) {
        let path = traced(points);
        self.put(format_args!("<path d=\"{path}Z\" fill=\"{fill}\" fill-opacity=\"{alpha}\"/>"));
    }

    pub(super) fn text(&mut self, at: Place, text: &str, fill: &str, anchor: &str, size: u32) {
        self.put(format_args!(
            "<text x=\"{}\" y=\"{}\" font-size=\"{size}\" fill=\"{fill}\" text-anchor=\"{anchor}\" \
             dominant-baseline=\"central\">{}</text>",
            short(at.0),
            short(at.1),
            escaped(text)
        ));
    }

    pub(super) fn clip(&mut self, at: Place, size: Place, draw: impl FnOnce(&mut Self)) {
        self.clips += 1;
        let number = self.clips;
        self.put(format_args!(
            "<clipPath id=\"clip{number}\"><rect x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\"/></clipPath><g \
             clip-path=\"url(#clip{number})\">",
            short(at.0),
            short(at.1),
            short(size.0),
            short(size.1)
        ));
        draw(self);
        self.parts.push_str("</g>");
    }
}

fn traced(points: &[Place]) -> String {
    let mut path = String::with_capacity(points.len() * 12);
    let mut up = true;
    for (x, y) in points {
        if x.is_nan() {
            up = true;
            continue;
        }
        let _ = write!(path, "{}{} {}", if up { 'M' } else { 'L' }, short(*x), short(*y));
        up = false;
    }
    path
}

/// A tenth of a pixel is fine enough. Halves go up, as browsers round.
fn short(value: f64) -> f64 {
    let tenths = (value * 10.0 + 0.5).floor();
    // Never a negative zero.
    if tenths == 0.0 { 0.0 } else { tenths / 10.0 }
}

/// A text in which nothing is markup.
pub(super) fn escaped(text: &str) -> String {
    let mut safe = String::with_capacity(text.len());
    for sign in text.chars() {
        match sign {
            '&' | '<' | '>' | '"' | '\'' => {
                let _ = write!(safe, "&#{};", sign as u32);
            }
            '\t' | '\n' | '\r' => safe.push(sign),
            '\0'..='\x1f' | '\u{fffe}' | '\u{ffff}' => safe.push('\u{fffd}'),
            _ => safe.push(sign),
        }
    }
    safe
}
