//! Many connections: totals, what was waited for in sum, what was found, and the worst ones as a table.
//!
//! Only the rows that are printed are formatted, and finding them takes linear time, so a capture
//! of a hundred thousand connections costs no more than reading its report once. Columns that do
//! not fit the page go first by their worth: the start, then the rate; at last each row takes two
//! lines.

use core::fmt::Write as _;
use std::collections::BTreeMap;

use super::called;
use super::columns::Columns;
use super::page::{Ink, Page, plain};
use super::{Options, Sort, choose, failed, found, spent, words};
use crate::report::{Connection, Report, Totals};
use tcpwhy_words::units::{BitRate, Bytes, Duration};

/// The table of all connections.
pub fn render(report: &Report, options: &Options) -> String {
    let mut page = Page::new(options.width, options.color);
    write(&mut page, report, options);
    page.into_text()
}

/// The same, onto a page.
pub(super) fn write(page: &mut Page, report: &Report, options: &Options) {
    let totals = &report.totals;
    failed::write(page, report);
    write_totals(page, totals);
    if totals.waited.total() > Duration::ZERO {
        let title = "Where the time went, from the SYNs to the last ACKs of data, in sum";
        spent::write_sum(page, title, &totals.waited);
    }
    found::write(page, report);
    let rows = rows(report, options);
    let shown = rows.iter().map(|row| 1 + row.alike).sum();
    page.heading(&title(options.sort, shown, totals));
    let cells: Vec<[String; 10]> = rows.iter().map(|row| row.cells.clone()).collect();
    let (layout, fits) = TABLE.fit(&cells, page.width());
    if fits {
        TABLE.titles(page, &layout);
        for row in &rows {
            TABLE.row(page, &layout, &row.cells, (HELD, row.ink));
        }
        let legend = "longest: the longest wait, for a request, the server and the answer, the first with the \
                      handshake; silence between them not counted; rate: over all its transfers; retr: \
                      retransmitted segments";
        page.wrapped(2, 2, &[(Ink::Faint, legend.to_owned())]);
    } else {
        two_lines_each(page, &rows);
    }
    if let Some(row) = rows.first() {
        page.blank();
        let hint =
            format!("One of them in full: --connection N, for example --connection {}", row.id);
        page.wrapped(0, 2, &[plain(hint)]);
    }
}

/// The sums, in a sentence.
fn write_totals(page: &mut Page, totals: &Totals) {
    let mut text = format!(
        "{}, {}, {}, {}",
        words::count(totals.connections, "connection"),
        words::count(totals.transfers, "transfer"),
        words::bytes(totals.bytes),
        words::count(totals.retransmitted, "retransmission"),
    );
    if totals.silent > 0 {
        let _ = write!(text, "; {} carried no data", words::count(totals.silent, "connection"));
    }
    page.wrapped(0, 2, &[(Ink::Strong, text)]);
}

/// The rows asked for. Where the worst come first, connections to one server that failed in one way take one row.
fn rows(report: &Report, options: &Options) -> Vec<Row> {
    let folds = options.sort == Sort::Worst && report.totals.failed > 1;
    let number = if folds { usize::MAX } else { options.top };
    let mut at_row = BTreeMap::new();
    let mut rows: Vec<Row> = Vec::new();
    for at in choose::connections(report, options.sort, number) {
        let connection = &report.connections[at];
        let failure = connection.failure.as_ref().filter(|_| folds);
        let kind = failure.map(|failure| (connection.server, failure.kind, &failure.code));
        if let Some(row) = kind.and_then(|kind| at_row.get(&kind)) {
            let row: &mut Row = &mut rows[*row];
            row.alike += 1;
        } else if rows.len() < options.top {
            at_row.extend(kind.map(|kind| (kind, rows.len())));
            rows.push(Row::of(connection));
        } else if failure.is_none() {
            // Those that failed come first.
            break;
        }
    }
    for row in rows.iter_mut().filter(|row| row.alike > 0) {
        let number = words::grouped(row.alike + 1);
        row.cells[HELD] = format!("{number} times {}", row.cells[HELD]);
    }
    rows
}

fn title(sort: Sort, shown: u64, totals: &Totals) -> String {
    let of = totals.connections;
    let order = match sort {
        Sort::Worst if totals.failed > 0 => "failed ones first, then the longest wait",
        Sort::Worst => "longest wait first",
        Sort::Duration => "longest first",
        Sort::Bytes => "most bytes first",
        Sort::Rate => "slowest first",
        Sort::Retransmissions => "most retransmissions first",
        Sort::Start => "in the order of their start",
    };
    let number = if shown < of {
        format!("{} of {} connections", words::grouped(shown), words::grouped(of))
    } else {
        "Connections".to_owned()
    };
    format!("{number}, {order}")
}

/// One connection's cells.
struct Row {
    id: u64,
    cells: [String; 10],
    ink: Ink,
    /// Others that this row covers.
    alike: u64,
}

/// The column of the state that held most of the time.
const HELD: usize = 8;

const TABLE: Columns<10> = Columns {
    titles: [
        "id",
        "client",
        "server",
        "start",
        "duration",
        "longest",
        "bytes",
        "rate",
        "held most by",
        "retr",
    ],
    words: &[1, 2, 3, HELD],
    given_up: &[3, 7],
};

impl Row {
    fn of(connection: &Connection) -> Self {
        let time_in = choose::time_waited(connection);
        let dominant = choose::dominant(&time_in);
        let failure = connection.failure.as_deref();
        let held = match dominant {
            _ if failure.is_some() => failure.map_or_else(String::new, failed::cell),
            Some((state, span)) => {
                format!("{} {}", words::percent(span.0, time_in.total().0), state.name())
            }
            None if connection.carried_data() => "unknown".to_owned(),
            None => "no data".to_owned(),
        };
        let cells = [
            connection.id.to_string(),
            connection.client_shown(),
            called::in_a_row(connection),
            time_of_day(&connection.start).to_owned(),
            Duration(connection.duration_ns).to_string(),
            failure
                .map(|failure| Duration(failure.waited_ns))
                .or_else(|| choose::worst(connection))
                .map_or_else(|| "-".to_owned(), |span| span.to_string()),
            Bytes(connection.bytes()).to_string(),
            choose::rate(connection)
                .filter(|rate| rate.0 > 0)
                .map_or_else(|| "-".to_owned(), |rate: BitRate| rate.to_string()),
            held,
            words::grouped(connection.retransmitted()),
        ];
        let ink = dominant.map_or(Ink::Plain, |row| super::family::ink(row.0));
        let ink = if failure.is_some() { Ink::Alarm } else { ink };
        Self { id: connection.id, cells, ink, alike: 0 }
    }
}

/// Hours to milliseconds of an RFC 3339 time, or the text as it is.
fn time_of_day(start: &str) -> &str {
    let time = start.split_once('T').map_or(start, |(_, time)| time);
    time.get(..12).unwrap_or(time)
}

fn two_lines_each(page: &mut Page, rows: &[Row]) {
    for row in rows {
        let [id, client, server, start, duration, longest, bytes, rate, held, retransmitted] =
            row.cells.each_ref().map(|cell| words::tie(cell));
        page.wrapped(2, 4, &[(Ink::Strong, id), plain(format!(" {client} -> {server}"))]);
        let numbers =
            format!("from {start}, {bytes} in {duration}, longest wait {longest}, {rate}, ");
        let end = format!(", {retransmitted}\u{a0}retransmitted");
        page.wrapped(4, 6, &[plain(numbers), (row.ink, held), plain(end)]);
    }
}
