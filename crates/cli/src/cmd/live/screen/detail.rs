//! One connection: what holds it, what shows it, what would help, and its last minutes as graphs.

use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::{Color, Modifier, Style};
use ratatui::symbols::Marker;
use ratatui::text::{Line, Span};
use ratatui::widgets::{Axis, Chart, Dataset, GraphType, Paragraph, Wrap};
use tcpwhy::live::{Cell, Connection, remedy};
use tcpwhy::view::live::{figures, sentence, spent};

use super::{Screen, Seen, table, words};

/// Above the highest line there is room. Ours.
const HEADROOM: f64 = 1.1;

/// Rows below which a graph shows nothing. Ours.
const GRAPH_ROWS: u16 = 6;

impl Screen {
    /// Draws the chosen connection.
    pub(super) fn detail(&mut self, frame: &mut Frame<'_>, seen: &Seen<'_>, area: Rect) {
        let shown = self.shown(seen);
        let at = self.cursor(&shown);
        let Some(connection) = shown.get(at) else {
            return frame.render_widget(Paragraph::new("The connection is gone."), area);
        };
        let text = lines(seen, connection);
        let words = Paragraph::new(text).wrap(Wrap { trim: false });
        let rows = u16::try_from(words.line_count(area.width)).unwrap_or(u16::MAX);
        let has_graphs = area.height > rows + GRAPH_ROWS && connection.strip.len() > 1;
        let rows = if has_graphs { rows } else { area.height.saturating_sub(1) };
        let parts =
            Layout::vertical([Constraint::Length(rows), Constraint::Length(1), Constraint::Min(0)]);
        let [top, strip, below] = parts.areas(area);
        self.stop(words.line_count(area.width), top);
        frame.render_widget(words.scroll((self.scroll, 0)), top);
        frame.render_widget(table::strip(connection, usize::from(strip.width)), strip);
        if has_graphs {
            graphs(frame, connection, below);
        }
    }
}

fn lines(seen: &Seen<'_>, connection: &Connection) -> Vec<Line<'static>> {
    let socket = &connection.socket;
    let process = words::process(seen, connection);
    let process = if process.is_empty() { process } else { format!(" ({process})") };
    let bold = Style::new().add_modifier(Modifier::BOLD);
    let head =
        format!("{} -> {}{process}", words::end(socket.local, 60), words::end(socket.remote, 60));
    let mut lines = vec![Line::styled(head, bold), Line::raw(figures(connection).join(", "))];
    if let Some(held) = &connection.held {
        let since = connection.last_ns.saturating_sub(connection.since_ns);
        let since = if since > 0 { format!(" For {}.", words::span(since)) } else { String::new() };
        lines.push(Line::styled(sentence(held.state, held.sure) + &since, words::ink(held.state)));
        lines.push(Line::styled(format!("  {}", held.by), words::faint()));
        lines.extend(remedy(held).map(Line::raw));
    }
    if let Some(reader) = connection.reader.filter(|_| connection.lags()) {
        lines.push(Line::raw(reader.words("Its own program")));
    }
    lines.extend(spent(connection).map(Line::raw));
    lines
}

/// A graph's lines: their name, colour and points.
struct Drawn {
    name: &'static str,
    color: u8,
    points: Vec<(f64, f64)>,
}

fn graphs(frame: &mut Frame<'_>, connection: &Connection, area: Rect) {
    let cells: Vec<Cell> = connection.strip.iter().copied().collect();
    let last = cells.last().map_or(0, |cell| cell.t_ns);
    let at = |cell: &Cell| -(last.saturating_sub(cell.t_ns) as f64) / 1e9;
    let line = |name, color, value: &dyn Fn(&Cell) -> Option<u64>| Drawn {
        name,
        color,
        points: cells.iter().filter_map(|c| Some((at(c), value(c)? as f64))).collect(),
    };
    // A congestion window, a threshold or a round trip of 0 is none.
    let some = |value: u32| (value > 0).then_some(u64::from(value));
    let window = |cell: &Cell| u64::from(cell.peer_window?).checked_div(cell.mss.into());
    let from = cells.first().map_or(-1.0, at);
    let mut all = vec![
        ("rate", vec![line("acknowledged", 36, &|c| c.sent_bps)], Unit::Rate),
        (
            "segments",
            vec![
                line("cwnd", 214, &|c| some(c.cwnd)),
                line("ssthresh", 245, &|c| some(c.ssthresh)),
                line("window", 74, &window),
                line("flight", 220, &|c| c.unacked.map(u64::from)),
            ],
            Unit::Count,
        ),
        ("round trip", vec![line("smoothed", 175, &|c| some(c.rtt_us))], Unit::Micros),
    ];
    let across = if area.width >= 110 {
        3
    } else if area.width >= 60 {
        2
    } else {
        1
    };
    all.truncate(across);
    let parts = Layout::horizontal(vec![Constraint::Fill(1); across]).split(area);
    for ((title, lines, unit), part) in all.iter().zip(parts.iter()) {
        graph(frame, *part, title, lines, *unit, from);
    }
}

/// What a graph's numbers are.
#[derive(Clone, Copy)]
enum Unit {
    Rate,
    Count,
    Micros,
}

impl Unit {
    fn said(self, value: f64) -> String {
        match self {
            Self::Rate => words::rate(Some(value as u64)),
            Self::Count => format!("{value:.0}"),
            Self::Micros => words::span((value * 1_000.0) as u64),
        }
    }
}

fn graph(frame: &mut Frame<'_>, area: Rect, title: &str, lines: &[Drawn], unit: Unit, from: f64) {
    let [names, area] = Layout::vertical([Constraint::Length(1), Constraint::Min(0)]).areas(area);
    frame.render_widget(legend(title, lines, names.width), names);
    let values = lines.iter().flat_map(|line| line.points.iter().map(|point| point.1));
    let top = values.fold(0.0_f64, f64::max).max(1.0) * HEADROOM;
    let sets = lines.iter().filter(|line| !line.points.is_empty()).map(|line| {
        Dataset::default()
            .marker(Marker::Braille)
            .graph_type(GraphType::Line)
            .style(Style::new().fg(Color::Indexed(line.color)))
            .data(&line.points)
    });
    let x = Axis::default()
        .bounds([from.min(-1.0), 0.0])
        .labels([format!("-{}", words::span((-from * 1e9) as u64)), "now".to_owned()]);
    let y = Axis::default().bounds([0.0, top]).labels(["0".to_owned(), unit.said(top)]);
    let chart = Chart::new(sets.collect()).x_axis(x).y_axis(y).style(words::faint());
    frame.render_widget(chart, area);
}

/// A graph's name, and those of its lines in their colours.
fn legend(title: &str, lines: &[Drawn], width: u16) -> Line<'static> {
    let mut spans = vec![Span::styled(format!("{title}:"), words::faint())];
    for line in lines.iter().filter(|line| !line.points.is_empty()) {
        spans.push(Span::raw(" "));
        spans.push(Span::styled(line.name, Style::new().fg(Color::Indexed(line.color))));
    }
    // Above the graph's own left edge, if there is room.
    let used: usize = spans.iter().map(Span::width).sum();
    spans.insert(0, Span::raw(" ".repeat(usize::from(width).saturating_sub(used).min(5))));
    Line::from(spans)
}
