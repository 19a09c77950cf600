//! All connections, a row each.

use ratatui::Frame;
use ratatui::layout::{Constraint, Rect};
use ratatui::style::{Modifier, Style};
use ratatui::text::{Line, Span};
use ratatui::widgets::{Cell, Paragraph, Row, Table, Wrap};
use tcpwhy::live::Connection;

use super::{Screen, Seen, words};

/// Which columns there is room for, and how wide they are; 0 leaves one out.
#[derive(Clone, Copy, Debug)]
struct Columns {
    peer: u16,
    port: u16,
    process: u16,
    held: u16,
    since: u16,
    rate: u16,
    rtt: u16,
    strip: u16,
}

impl Columns {
    fn of(width: u16) -> Self {
        let (peer, held) = (21, 16);
        let narrow = Self { peer, port: 0, process: 0, held, since: 0, rate: 0, rtt: 0, strip: 0 };
        let mut columns = match width {
            0..50 => Self { peer: width.saturating_sub(held + 1), ..narrow },
            50..76 => Self { since: 5, rate: 6, ..narrow },
            76..110 => Self { process: 10, since: 5, rate: 6, rtt: 6, ..narrow },
            _ => Self { port: 6, process: 15, since: 6, rate: 6, rtt: 6, ..narrow },
        };
        let used: u16 = columns.all().iter().filter(|each| **each > 0).map(|each| each + 1).sum();
        columns.strip = width.saturating_sub(used).min(120);
        if columns.strip < 5 {
            columns.strip = 0;
        }
        columns
    }

    const fn all(&self) -> [u16; 8] {
        [self.peer, self.port, self.process, self.held, self.since, self.rate, self.rtt, self.strip]
    }

    fn widths(&self) -> Vec<Constraint> {
        self.all().into_iter().filter(|each| *each > 0).map(Constraint::Length).collect()
    }

    /// Those of eight cells that have room.
    fn keep<T>(&self, cells: [T; 8]) -> Vec<T> {
        cells
            .into_iter()
            .zip(self.all())
            .filter(|(_, width)| *width > 0)
            .map(|(cell, _)| cell)
            .collect()
    }
}

const HEADS: [&str; 8] =
    ["peer", "port", "process", "held by", "since", "rate", "rtt", "last looks"];

impl Screen {
    /// Draws the table, with the chosen connection in sight.
    pub(super) fn table(&mut self, frame: &mut Frame<'_>, seen: &Seen<'_>, area: Rect) {
        let shown = self.shown(seen);
        if shown.is_empty() {
            let matching = seen.connections.iter().filter(|each| self.matches(seen, each));
            let why = match (self.filter.is_empty(), self.shows_idle, matching.count()) {
                (false, _, 0) => "No connection matches the filter.",
                (true, true, _) => "No connection is open.",
                (false, ..) => {
                    "Nothing holds what matches the filter. i shows those with nothing to send."
                }
                (true, false, _) => {
                    "Nothing holds any connection. i shows those with nothing to send."
                }
            };
            let why = Paragraph::new(why).wrap(Wrap { trim: false });
            return frame.render_widget(why, area);
        }
        let at = self.cursor(&shown);
        let rows = usize::from(area.height.saturating_sub(1)).max(1);
        self.top =
            self.top.clamp((at + 1).saturating_sub(rows), at).min(shown.len().saturating_sub(rows));
        let columns = Columns::of(area.width);
        let in_sight = shown.iter().enumerate().skip(self.top).take(rows);
        let body = in_sight.map(|(nth, each)| row(seen, each, columns, nth == at));
        let heads = columns.keep(HEADS.map(|head| Cell::new(Line::styled(head, words::faint()))));
        let table = Table::new(body, columns.widths()).header(Row::new(heads)).column_spacing(1);
        frame.render_widget(table, area);
    }

    /// Where the chosen connection is; the first one is chosen where it is gone.
    pub(super) fn cursor(&mut self, shown: &[&Connection]) -> usize {
        let is_chosen =
            |each: &&Connection| Some((each.socket.local, each.socket.remote)) == self.chosen;
        let at = shown
            .iter()
            .position(is_chosen)
            .unwrap_or_else(|| self.top.min(shown.len().saturating_sub(1)));
        self.chosen = shown.get(at).map(|each| (each.socket.local, each.socket.remote));
        at
    }
}

fn row(
    seen: &Seen<'_>,
    connection: &Connection,
    columns: Columns,
    is_chosen: bool,
) -> Row<'static> {
    let socket = &connection.socket;
    let state = connection.held.as_ref().map(|held| held.state);
    let since = connection.last_ns.saturating_sub(connection.since_ns);
    let rtt = socket.info.as_deref().and_then(|info| info.rtt_ns);
    let style = state.map_or_else(Style::new, words::ink);
    let cells = [
        Cell::new(words::end(socket.remote, usize::from(columns.peer))),
        Cell::new(socket.local.port().to_string()),
        Cell::new(words::process(seen, connection)),
        Cell::new(Line::styled(words::held(connection), style)),
        Cell::new(if state.is_some() && since > 0 { words::span(since) } else { String::new() }),
        Cell::new(words::rate(words::rate_of(connection))),
        Cell::new(rtt.map_or_else(String::new, words::span)),
        Cell::new(strip(connection, usize::from(columns.strip))),
    ];
    let row = Row::new(columns.keep(cells));
    if is_chosen { row.style(Style::new().add_modifier(Modifier::REVERSED)) } else { row }
}

/// The last looks, a letter each, the newest on the right.
pub(super) fn strip(connection: &Connection, width: usize) -> Line<'static> {
    let cells = connection.strip.iter().skip(connection.strip.len().saturating_sub(width));
    let pad = width.saturating_sub(connection.strip.len());
    let mut spans = vec![Span::raw(" ".repeat(pad))];
    spans.extend(cells.map(|cell| match cell.state {
        Some(state) => Span::styled(state.letter().to_string(), words::ink(state)),
        None => Span::styled("·", words::faint()),
    }));
    Line::from(spans)
}
