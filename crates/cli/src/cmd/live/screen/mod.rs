//! `tcpwhy live` on a terminal: the connections that are open, those that something holds first.
//!
//! ```text
//! key  -> Screen (which view, what is chosen, the filter) -> Turn
//! Seen (course, listeners, what was said) -> Screen::draw -> a frame: head, one view, the line of keys
//! ```
//!
//! A frame is a pure function of what was seen and of the screen's own state: `run` alone touches the terminal.

mod detail;
mod help;
mod keys;
mod listeners;
mod run;
mod table;
#[cfg(test)]
mod tests;
mod totals;
mod words;

use std::collections::BTreeMap;
use std::net::SocketAddr;

use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::{Modifier, Style};
use ratatui::text::{Line, Span};
use ratatui::widgets::{Paragraph, Wrap};
use tcpwhy::host::snapshot::Listener;
use tcpwhy::live::Connection;

pub(crate) use run::{Tick, run};

/// What there is to show.
#[derive(Clone, Debug)]
pub(crate) struct Seen<'a> {
    /// Those that were asked for, what hurts first.
    pub(crate) connections: Vec<&'a Connection>,
    pub(crate) listeners: &'a [Listener],
    /// Names of processes by their number.
    pub(crate) processes: &'a BTreeMap<u32, String>,
    /// What is looked at, and when: the left of the head.
    pub(crate) title: String,
    /// What could not be seen and what captures told, the newest last.
    pub(crate) said: &'a [String],
}

/// Rows that what was said last may take. Ours: two ends, a file's name and a verdict at 80 columns.
const SAID_ROWS: u16 = 3;

/// Which of the views is shown.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub(super) enum View {
    /// All connections.
    #[default]
    Table,
    /// One of them.
    Detail,
    Listeners,
    Totals(totals::By),
    Help,
}

/// By what the table is sorted.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub(super) enum Sort {
    /// What stands still first, then what is held.
    #[default]
    Hurts,
    Rate,
    RoundTrip,
    Peer,
}

/// The screen's own state.
#[derive(Clone, Debug, Default)]
pub(crate) struct Screen {
    view: View,
    sort: Sort,
    /// Only connections in whose ends, process or state this occurs.
    filter: String,
    /// The filter is being typed.
    is_typing: bool,
    /// Connections with nothing to send are shown, too.
    shows_idle: bool,
    /// The connection under the cursor; it stays under it when others come and go.
    chosen: Option<(SocketAddr, SocketAddr)>,
    /// The first row that is shown.
    top: usize,
    /// How far the detail or a list is scrolled.
    scroll: u16,
    /// Nothing new is shown until it is pressed again.
    pub(super) is_paused: bool,
}

/// What a key asks of the loop.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Turn {
    Stay,
    Quit,
}

impl Screen {
    /// Draws all of it.
    pub(super) fn draw(&mut self, frame: &mut Frame<'_>, seen: &Seen<'_>) {
        let all = frame.area();
        let said = seen.said.last().map(|said| {
            Paragraph::new(Line::styled(said.as_str(), words::faint())).wrap(Wrap { trim: true })
        });
        let lines = said.as_ref().map_or(0, |said| said.line_count(all.width));
        let rows = u16::try_from(lines).unwrap_or(u16::MAX).min(SAID_ROWS).min(all.height / 4);
        let areas = Layout::vertical([
            Constraint::Length(1),
            Constraint::Length(rows),
            Constraint::Min(0),
            Constraint::Length(1),
        ]);
        let [head, told, body, foot] = areas.areas(all);
        frame.render_widget(self.head(seen, head), head);
        if let Some(said) = said {
            frame.render_widget(said, told);
        }
        match self.view {
            View::Table => self.table(frame, seen, body),
            View::Detail => self.detail(frame, seen, body),
            View::Listeners => {
                self.stop(seen.listeners.len() + 1, body);
                listeners::draw(frame, seen, body, self.scroll);
            }
            View::Totals(by) => {
                self.stop(totals::sums(seen, by).len() + 1, body);
                totals::draw(frame, seen, body, by, self.scroll);
            }
            View::Help => {
                let page = help::page();
                self.stop(page.line_count(body.width), body);
                frame.render_widget(page.scroll((self.scroll, 0)), body);
            }
        }
        frame.render_widget(self.foot(foot.width), foot);
    }

    /// Nothing scrolls beyond the last of `lines`.
    fn stop(&mut self, lines: usize, area: Rect) {
        let beyond = lines.saturating_sub(usize::from(area.height));
        self.scroll = self.scroll.min(u16::try_from(beyond).unwrap_or(u16::MAX));
    }

    /// What is looked at, and how many connections are how.
    fn head(&self, seen: &Seen<'_>, area: Rect) -> Line<'static> {
        let (mut still, mut held, mut idle) = (0_u32, 0_u32, 0_u32);
        for each in &seen.connections {
            match &each.held {
                Some(_) if each.stands_still() => still += 1,
                Some(_) => held += 1,
                None => idle += 1,
            }
        }
        let paused = if self.is_paused { "  paused" } else { "" };
        // The longest of these that there is room for.
        let counts = [
            format!("{still} standing still, {held} held, {idle} with nothing to send"),
            format!("{still} standing still, {held} held"),
            format!("{still} still, {held} held"),
        ];
        let room = usize::from(area.width).saturating_sub(paused.len());
        let title = format!("{}  ", seen.title);
        let (title, counts) = counts
            .iter()
            .map(|counts| (title.as_str(), counts))
            .chain(counts.iter().map(|counts| ("", counts)))
            .find(|(title, counts)| title.chars().count() + counts.len() <= room)
            .unwrap_or(("", &counts[2]));
        let bold = Style::new().add_modifier(Modifier::BOLD);
        Line::from(vec![
            Span::styled(title.to_owned(), bold),
            Span::raw(format!("{counts}{paused}")),
        ])
    }

    /// The keys that there is room for.
    fn foot(&self, width: u16) -> Line<'static> {
        if self.is_typing {
            return Line::from(format!("/{}_  Enter keeps it, Esc drops it", self.filter));
        }
        let keys = match self.view {
            View::Table => {
                "? help  Enter detail  / filter  s sort  i idle  l listeners  t totals  q quit"
            }
            View::Detail => "? help  Esc back  arrows next  PgDn scroll  q quit",
            View::Totals(_) => "? help  t next  arrows scroll  Esc back  q quit",
            View::Listeners | View::Help => "Esc back  arrows scroll  q quit",
        };
        let sort = if self.view == View::Table { self.sort.label() } else { "" };
        let filter =
            if self.filter.is_empty() { String::new() } else { format!("[/{}] ", self.filter) };
        let mut line = format!("{filter}{sort}");
        for key in keys.split("  ") {
            let gap = if line.is_empty() || line.ends_with(' ') { "" } else { "  " };
            if line.chars().count() + gap.len() + key.len() > usize::from(width) {
                break;
            }
            line = line + gap + key;
        }
        Line::styled(line, words::faint())
    }

    /// The connections that are shown, in their order.
    fn shown<'a>(&self, seen: &Seen<'a>) -> Vec<&'a Connection> {
        let mut all = seen.connections.clone();
        all.retain(|each| (self.shows_idle || is_told(each)) && self.matches(seen, each));
        match self.sort {
            Sort::Hurts => {}
            Sort::Rate => all.sort_by_key(|each| std::cmp::Reverse(words::rate_of(each))),
            Sort::RoundTrip => all.sort_by_key(|each| {
                let rtt = each.socket.info.as_deref().and_then(|info| info.rtt_ns);
                std::cmp::Reverse(rtt.unwrap_or(0))
            }),
            Sort::Peer => all.sort_by_key(|each| (each.socket.remote, each.socket.local)),
        }
        all
    }

    fn matches(&self, seen: &Seen<'_>, connection: &Connection) -> bool {
        if self.filter.is_empty() {
            return true;
        }
        let socket = &connection.socket;
        let state = connection.held.as_ref().map_or("", |held| held.state.name());
        let words = [
            socket.local.to_string(),
            socket.remote.to_string(),
            words::process(seen, connection),
            state.to_owned(),
            words::held(connection).to_owned(),
        ];
        let filter = self.filter.to_lowercase();
        words.iter().any(|word| word.to_lowercase().contains(&filter))
    }
}

/// Whether something holds it, or its own program lags.
fn is_told(connection: &Connection) -> bool {
    connection.held.is_some() || connection.lags()
}
