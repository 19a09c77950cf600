//! Many connections: totals, what held all transfers in sum, and the worst ones as a table.
//!
//! Only the rows that are printed are formatted, and finding them takes linear time, so a capture
//! of a hundred thousand connections costs no more than reading its report once. Columns that do
//! not fit the page go first by their worth: the start, then the rate; at last each row takes two
//! lines.

use core::fmt::Write as _;

use super::columns::Columns;
use super::page::{Ink, Page, plain};
use super::{Options, Sort, choose, spent, words};
use crate::report::{Connection, Report, TimeIn};
use crate::units::{BitRate, Bytes, Duration};

/// The table of all connections.
pub fn render(report: &Report, options: &Options) -> String {
    let mut page = Page::new(options.width, options.color);
    write(&mut page, report, options);
    page.into_text()
}

/// The same, onto a page.
pub(super) fn write(page: &mut Page, report: &Report, options: &Options) {
    let totals = Totals::of(report, options.sort);
    totals.write(page, report.connections.len());
    if totals.time_in.total() > Duration::ZERO {
        spent::write_sum(page, "Where the time went, over all transfers", &totals.time_in);
    }
    let shown = choose::by_keys(&totals.keys, options.top);
    let rows: Vec<Row> = shown.iter().map(|at| Row::of(&report.connections[*at])).collect();
    page.heading(&title(options.sort, rows.len(), report.connections.len()));
    let cells: Vec<[String; 10]> = rows.iter().map(|row| row.cells.clone()).collect();
    let (layout, fits) = TABLE.fit(&cells, page.width());
    if fits {
        TABLE.titles(page, &layout);
        for row in &rows {
            TABLE.row(page, &layout, &row.cells, (HELD, row.ink));
        }
        let legend = "longest: its longest transfer, silence of applications not counted; rate: over \
                      all its transfers; retr: retransmitted segments";
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

/// What all connections add up to, and what each is sorted by, from one look at each: there may be
/// more of them than any cache holds.
#[derive(Default)]
struct Totals {
    bytes: u64,
    transfers: u64,
    retransmitted: u64,
    silent: u64,
    time_in: TimeIn,
    keys: Vec<i64>,
}

impl Totals {
    fn of(report: &Report, sort: Sort) -> Self {
        let mut totals = Self::default();
        for connection in &report.connections {
            totals.bytes = totals.bytes.saturating_add(choose::bytes(connection));
            totals.transfers = totals.transfers.saturating_add(connection.transfers.len() as u64);
            for (_, direction) in choose::present(connection) {
                totals.retransmitted =
                    totals.retransmitted.saturating_add(choose::retransmitted(direction));
            }
            totals.silent += u64::from(choose::present(connection).next().is_none());
            choose::add_time_in_transfers(connection, &mut totals.time_in);
            totals.keys.push(choose::key(connection, sort));
        }
        totals
    }

    fn write(&self, page: &mut Page, connections: usize) {
        let mut text = format!(
            "{}, {}, {}, {}",
            words::count(connections as u64, "connection"),
            words::count(self.transfers, "transfer"),
            words::bytes(self.bytes),
            words::count(self.retransmitted, "retransmission"),
        );
        if self.silent > 0 {
            let _ = write!(
                text,
                "; {} of the connections carried no data",
                words::grouped(self.silent)
            );
        }
        page.wrapped(0, 2, &[(Ink::Strong, text)]);
    }
}

fn title(sort: Sort, shown: usize, of: usize) -> String {
    let order = match sort {
        Sort::Worst => "longest transfer first",
        Sort::Duration => "longest first",
        Sort::Bytes => "most bytes first",
        Sort::Rate => "slowest first",
        Sort::Retransmissions => "most retransmissions first",
        Sort::Start => "in the order of their start",
    };
    let number = if shown < of {
        format!("{} of {} connections", words::grouped(shown as u64), words::grouped(of as u64))
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
}

/// Where the state stands that held most of the time.
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
        let time_in = choose::time_in_transfers(connection);
        let dominant = choose::dominant(&time_in);
        let carried = choose::present(connection).next().is_some();
        let held = match dominant {
            Some((state, span)) => {
                format!("{} {}", words::percent(span.0, time_in.total().0), state.name())
            }
            None if carried => "unknown".to_owned(),
            None => "no data".to_owned(),
        };
        let retransmitted = choose::present(connection)
            .fold(0_u64, |sum, (_, each)| sum.saturating_add(choose::retransmitted(each)));
        let cells = [
            connection.id.to_string(),
            connection.client_shown(),
            connection.server_shown(),
            time_of_day(&connection.start).to_owned(),
            Duration(connection.duration_ns).to_string(),
            choose::worst(connection).map_or_else(|| "-".to_owned(), |span| span.to_string()),
            Bytes(choose::bytes(connection)).to_string(),
            choose::rate(connection)
                .filter(|rate| rate.0 > 0)
                .map_or_else(|| "-".to_owned(), |rate: BitRate| rate.to_string()),
            held,
            words::grouped(retransmitted),
        ];
        let ink = dominant.map_or(Ink::Plain, |row| Ink::Of(row.0));
        Self { id: connection.id, cells, ink }
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
            format!("from {start}, {bytes} in {duration}, longest transfer {longest}, {rate}, ");
        let end = format!(", {retransmitted}\u{a0}retransmitted");
        page.wrapped(4, 6, &[plain(numbers), (row.ink, held), plain(end)]);
    }
}
