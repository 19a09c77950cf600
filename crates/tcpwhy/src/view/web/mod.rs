//! What a page in the browser shows: the report, the words of its first screens, and the series of its graphs.
//!
//! The page's code lays out and draws; every sentence, figure and series comes from here, so that the command, a
//! written page and a capture dropped on a page say the same. [`screen`] has the words, [`picture`] the graphs, and [`svg`] writes
//! these as files.

mod listed;
pub mod picture;
mod screen;
pub mod svg;

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;

use super::family::Family;
use super::{Sort, choose, words};
use crate::answer::words::Ends;
use crate::report::{Connection, Report, State};
use listed::Listed;
use picture::Figure;
use screen::Screen;

/// The format of the page's data; the report in it has its own.
pub const FORMAT: &str = "tcpwhy-page/1";

/// Connections whose graphs a page holds. Ours: one who looks at more asks for them by number.
pub const PICTURED: usize = 24;

/// Marks that a page holds at most; the connection that goes beyond is the last. Ours: 10 MB of a page.
const MARKS: usize = 2_000_000;

/// All that a page shows.
#[derive(Debug, Serialize)]
pub struct Shown<'a> {
    format: &'static str,
    version: &'static str,
    report: Listed<'a>,
    /// What is said above the table of several connections.
    head: String,
    states: Vec<StateWords>,
    /// In the order of the report's connections.
    screens: Vec<Screen>,
    /// The order of the table: what did not work first, then the longest wait.
    order: Vec<usize>,
    /// Graphs of each direction, by the connection's number.
    pictures: Pictures,
    /// What the model needs to repeat them, as JSON of its own, or why it cannot.
    fits: BTreeMap<u64, Fitted>,
    /// Changes that the page tries when it opens, `KEY=VALUE` of the scenario language.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tries: Vec<String>,
    /// What is shown as text: of each host, what its settings say.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    texts: Vec<Text>,
}

/// What a page unpacks when its first picture is drawn.
#[derive(Debug, Default, Serialize)]
pub struct Later<'a> {
    pictures: Pictures,
    /// By their place in the report.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    connections: Vec<(usize, &'a Connection)>,
}

impl Later<'_> {
    /// Whether all is drawn at once.
    pub fn is_empty(&self) -> bool {
        self.pictures.is_empty() && self.connections.is_empty()
    }
}

/// What the model of a page begins with.
#[derive(Debug, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Fitted {
    /// What it fitted to the capture.
    Fit(String),
    /// Why it cannot.
    Unfit(String),
}

/// A text with its title.
#[derive(Debug, Serialize)]
struct Text {
    title: String,
    text: String,
}

/// Connections that a page knows all of at once; of others it has what their rows show. Ours: the table shows as many before it is
/// asked for more.
const AT_ONCE: usize = 200;

/// Marks of a series that a page draws first. Ours: more than columns of pixels, and a page opens with them at once.
const FIRST: usize = 4096;

/// Graphs of each direction, by the connection's number.
pub type Pictures = BTreeMap<u64, [Option<Vec<Figure>>; 2]>;

impl<'a> Shown<'a> {
    /// The same with what is drawn at once, and apart from it what comes later: graphs with all their marks where these have
    /// more, and what is known of connections far down in the table.
    #[must_use]
    pub fn first_level(mut self) -> (Self, Later<'a>) {
        let is_long = |both: &[Option<Vec<Figure>>; 2]| {
            let series = both.iter().flatten().flatten().flat_map(|figure| &figure.series);
            series.into_iter().any(|series| series.len() > FIRST)
        };
        let mut later = Later::default();
        for (id, both) in &mut self.pictures {
            if is_long(both) {
                let coarse = |figures: &Vec<Figure>| {
                    figures.iter().map(|figure| figure.coarse(FIRST)).collect()
                };
                let first = [0, 1].map(|at| both[at].as_ref().map(coarse));
                later.pictures.insert(*id, core::mem::replace(both, first));
            }
        }
        let all = &self.report.of.connections;
        let first: BTreeSet<usize> = self.order.iter().take(AT_ONCE).copied().collect();
        if first.len() < all.len() {
            later.connections =
                (0..all.len()).filter(|at| !first.contains(at)).map(|at| (at, &all[at])).collect();
            self.report.first = Some(first);
        }
        (self, later)
    }

    /// The same, with what `fit` makes of each connection that has graphs.
    #[must_use]
    pub fn fitted_by(self, fit: impl Fn(&Connection) -> Fitted) -> Self {
        let pictured = |each: &&Connection| self.pictures.contains_key(&each.id);
        let drawn = self.report.of.connections.iter().filter(pictured);
        let fits = drawn.map(|each| (each.id, fit(each))).collect();
        Self { fits, ..self }
    }

    /// The same, and the page tries these changes when it opens.
    #[must_use]
    pub fn trying(self, tries: Vec<String>) -> Self {
        Self { tries, ..self }
    }

    /// The same with a text.
    #[must_use]
    pub fn with_text(mut self, title: String, text: String) -> Self {
        self.texts.push(Text { title, text });
        self
    }
}

/// A state's letter, its name in the JSON, what a bar of the client's and of the server's data is called, and its colour.
#[derive(Debug, Serialize)]
struct StateWords {
    letter: char,
    name: &'static str,
    bar: [String; 2],
    family: Family,
}

/// What a page shows of `report`, whose answers are filled in.
pub fn shown(report: &Report) -> Shown<'_> {
    let order = choose::connections(report, Sort::Worst, usize::MAX);
    let mut pictures = BTreeMap::new();
    let mut left = MARKS;
    for connection in order.iter().filter_map(|at| report.connections.get(*at)) {
        if pictures.len() >= PICTURED || left == 0 {
            break;
        }
        let both = [0, 1].map(|at| {
            let direction = connection.directions[at].as_ref()?;
            picture::figures(connection, at, direction)
        });
        if both.iter().all(Option::is_none) {
            continue;
        }
        let marks = both.iter().flatten().flatten().map(Figure::marks).sum();
        left = left.saturating_sub(marks);
        pictures.insert(connection.id, both);
    }
    let states = State::all().map(|state| StateWords {
        letter: state.letter(),
        name: state.name(),
        bar: [0, 1].map(|at| Ends::of(at).put_in(crate::answer::words::bar(state))),
        family: Family::of(state),
    });
    Shown {
        format: FORMAT,
        version: env!("CARGO_PKG_VERSION"),
        report: Listed { of: report, first: None },
        head: head(report),
        states: states.collect(),
        screens: report.connections.iter().map(|each| screen::of(report, each)).collect(),
        order,
        pictures,
        fits: BTreeMap::new(),
        tries: Vec::new(),
        texts: Vec::new(),
    }
}

fn head(report: &Report) -> String {
    let totals = &report.totals;
    let failed = match totals.failed {
        0 => String::new(),
        failed => format!("{failed} failed, "),
    };
    format!(
        "{}: {failed}{}, {}",
        words::count(totals.connections, "connection"),
        words::bytes(totals.bytes),
        words::count(totals.retransmitted, "retransmission"),
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::view::sample;

    #[test]
    fn a_page_has_a_screen_for_each_connection_and_a_word_for_each_state() {
        let report = Report {
            connections: vec![sample::connection(0, "10.0.0.1:1", "10.0.0.2:2", 100)],
            ..Report::default()
        };
        let shown = serde_json::to_value(shown(&report)).expect("JSON");
        assert_eq!(shown["format"], FORMAT);
        assert_eq!(shown["screens"].as_array().map(Vec::len), Some(1));
        assert_eq!(shown["order"][0], 0);
        assert_eq!(shown["states"].as_array().map(Vec::len), Some(State::COUNT));
        assert_eq!(shown["states"][1]["bar"][1], "handshake");
    }
}
