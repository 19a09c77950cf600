//! A time-sequence picture for the terminal: bytes upwards, time to the right.
//!
//! The packets are not in the report, so the picture is drawn from what is: each round puts a
//! step of its new bytes at its start (*sent*, in braille dots); what was in flight after the
//! round's last send tells how much had been acknowledged then (*acknowledged*), and the room that
//! was left tells where the receiver's window ended (*window edge*, left out where it is unknown
//! or above the picture). Each retransmission is an `R` at its time and sequence number. The
//! strip of states under it shares the time axis. A step is drawn at one instant although a round
//! may have sent its bytes bit by bit: the page of the HTML view is the finer one.

use super::page::{Ink, Page, Span, plain};
use super::{Options, strip, words};
use crate::report::{Connection, Direction, Round};

/// Character rows of the picture.
const ROWS: usize = 16;

/// Columns left of the picture.
const GUTTER: usize = 11;

/// Dots of a braille character.
const DOTS: (usize, usize) = (2, 4);

/// The picture of one direction (0: client to server) of a connection.
pub fn render(connection: &Connection, direction: usize, options: &Options) -> String {
    let mut page = Page::new(options.width, options.color);
    if let Some(Some(each)) = connection.directions.get(direction) {
        write(&mut page, connection, direction, each);
    }
    page.into_text()
}

/// The same, onto a page.
pub(super) fn write(page: &mut Page, connection: &Connection, at: usize, direction: &Direction) {
    let ends = words::ends(at);
    page.heading(&format!("Bytes over time, {} to {}", ends.sender, ends.receiver));
    let columns = page.width() - GUTTER - 2;
    if direction.rounds.is_empty() {
        page.wrapped(2, 2, &[plain("no rounds were kept of this direction: nothing to draw")]);
    } else {
        let picture = Picture::draw(connection, at, direction, columns);
        picture.write(page);
    }
    if !direction.strip.is_empty() {
        strip::body(page, GUTTER, columns, connection.duration_ns, direction);
    }
}

/// What is in a character cell.
#[derive(Clone, Copy, Eq, PartialEq)]
enum Cell {
    Empty,
    Edge,
    Acknowledged,
    /// Braille dots, as the low byte of U+2800.
    Sent(u8),
    Retransmitted,
}

struct Picture {
    cells: Vec<[Cell; ROWS]>,
    top: u64,
    edge_above: bool,
}

impl Picture {
    fn draw(connection: &Connection, at: usize, direction: &Direction, columns: usize) -> Self {
        let lifetime = connection.duration_ns;
        let curves = Curves::of(connection, at, &direction.rounds);
        let top = curves.sent.iter().map(|point| point.1).max().unwrap_or(0).max(1);
        let mut picture =
            Self { cells: vec![[Cell::Empty; ROWS]; columns], top, edge_above: false };
        picture.edge_above = curves.edge.iter().any(|point| point.1 > top);
        for (points, cell) in
            [(&curves.edge, Cell::Edge), (&curves.acknowledged, Cell::Acknowledged)]
        {
            for (column, range) in steps(points, lifetime, columns).into_iter().enumerate() {
                if let Some((low, high)) = range.filter(|range| range.0 <= top) {
                    for row in picture.row(high)..=picture.row(low) {
                        picture.cells[column][row] = cell;
                    }
                }
            }
        }
        for (column, range) in
            steps(&curves.sent, lifetime, columns * DOTS.0).into_iter().enumerate()
        {
            if let Some((low, high)) = range {
                for row in picture.dot_row(high)..=picture.dot_row(low) {
                    picture.dot(column, row);
                }
            }
        }
        for retransmission in &direction.retransmissions {
            let column = strip::column_of(retransmission.at_ns, lifetime, columns);
            let bytes = u64::try_from(retransmission.seq).unwrap_or(0);
            let row = picture.row(bytes);
            picture.cells[column][row] = Cell::Retransmitted;
        }
        picture
    }

    /// The row of dots of a number of bytes; the row of characters is a quarter of it.
    fn dot_row(&self, bytes: u64) -> usize {
        let last = (ROWS * DOTS.1 - 1) as u128;
        let up = u128::from(bytes.min(self.top)) * last / u128::from(self.top);
        (last - up) as usize
    }

    fn row(&self, bytes: u64) -> usize {
        self.dot_row(bytes) / DOTS.1
    }

    /// Sets one braille dot (Unicode 1.1, block U+2800: dots 1-3 and 7 left, 4-6 and 8 right).
    fn dot(&mut self, column: usize, row: usize) {
        const BITS: [[u8; 4]; 2] = [[0x01, 0x02, 0x04, 0x40], [0x08, 0x10, 0x20, 0x80]];
        let bit = BITS[column % DOTS.0][row % DOTS.1];
        let cell = &mut self.cells[column / DOTS.0][row / DOTS.1];
        *cell = match *cell {
            Cell::Sent(bits) => Cell::Sent(bits | bit),
            _ => Cell::Sent(bit),
        };
    }

    fn write(&self, page: &mut Page) {
        for row in 0..ROWS {
            let label = match row {
                0 => words::bytes(self.top),
                r if r == ROWS / 2 => words::bytes(self.top / 2),
                r if r == ROWS - 1 => "0".to_owned(),
                _ => String::new(),
            };
            let mut spans: Vec<Span> =
                vec![(Ink::Faint, format!("{label:>width$} ", width = GUTTER - 1))];
            for run in self.cells.chunk_by(|a, b| ink(a[row]) == ink(b[row])) {
                let text: String = run.iter().map(|column| glyph(column[row])).collect();
                spans.push((ink(run[0][row]), text));
            }
            page.row(&spans);
        }
        let mut legend = "⣀⡇\u{a0}sent, ·\u{a0}acknowledged".to_owned();
        if self.cells.iter().any(|column| column.contains(&Cell::Edge)) {
            legend.push_str(", ╌\u{a0}edge of the receiver's window");
        }
        if self.edge_above {
            legend.push_str(" (partly above the picture)");
        }
        if self.cells.iter().any(|column| column.contains(&Cell::Retransmitted)) {
            legend.push_str(", R\u{a0}retransmission");
        }
        page.wrapped(GUTTER, GUTTER, &[(Ink::Faint, legend)]);
    }
}

const fn ink(cell: Cell) -> Ink {
    match cell {
        Cell::Empty | Cell::Sent(_) => Ink::Plain,
        Cell::Edge | Cell::Acknowledged => Ink::Faint,
        Cell::Retransmitted => Ink::Alarm,
    }
}

fn glyph(cell: Cell) -> char {
    match cell {
        Cell::Empty => ' ',
        Cell::Edge => '╌',
        Cell::Acknowledged => '·',
        Cell::Sent(bits) => char::from_u32(0x2800 + u32::from(bits)).unwrap_or('#'),
        Cell::Retransmitted => 'R',
    }
}

/// A value from an instant on.
type Point = (i64, u64);

/// The three curves as points in the order of time.
struct Curves {
    sent: Vec<Point>,
    acknowledged: Vec<Point>,
    edge: Vec<Point>,
}

impl Curves {
    fn of(connection: &Connection, at: usize, rounds: &[Round]) -> Self {
        let (mut sent, mut acknowledged, mut edge) = (Vec::new(), Vec::new(), Vec::new());
        let mut total = 0_u64;
        sent.extend(rounds.first().map(|round| (round.start_ns, 0)));
        for round in rounds {
            total = total.saturating_add(round.bytes);
            sent.push((round.start_ns, total));
            acknowledged.push((round.start_ns, total.saturating_sub(round.in_flight_bytes)));
            let room = round.window_room_bytes.and_then(|room| u64::try_from(room).ok());
            edge.extend(room.map(|room| (round.start_ns, total.saturating_add(room))));
        }
        let from = words::ends(at).sender;
        let ends =
            connection.transfers.iter().filter(|each| each.from == from).map(|each| each.end_ns);
        acknowledged.extend(ends.max().map(|end| (end, total)));
        Self { sent, acknowledged, edge }
    }
}

/// Lowest and highest value in each column of a curve that keeps its value until the next point.
///
/// Columns before the first point have none. Both ends of a jump stay visible.
fn steps(points: &[Point], lifetime_ns: i64, columns: usize) -> Vec<Option<(u64, u64)>> {
    let mut ranges: Vec<Option<(u64, u64)>> = vec![None; columns];
    let mut held: Option<(usize, u64)> = None;
    for &(at_ns, value) in points {
        let column = strip::column_of(at_ns, lifetime_ns, columns);
        if let Some((from, before)) = held {
            for range in ranges.iter_mut().take(column + 1).skip(from) {
                *range = Some(widened(*range, before));
            }
        }
        ranges[column] = Some(widened(ranges[column], value));
        held = Some((column, value));
    }
    if let Some((from, value)) = held {
        for range in ranges.iter_mut().skip(from) {
            *range = Some(widened(*range, value));
        }
    }
    ranges
}

fn widened(range: Option<(u64, u64)>, value: u64) -> (u64, u64) {
    range.map_or((value, value), |(low, high)| (low.min(value), high.max(value)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_step_keeps_both_its_ends() {
        let ranges = steps(&[(0, 10), (50, 30)], 100, 4);
        assert_eq!(ranges, [Some((10, 10)), Some((10, 10)), Some((10, 30)), Some((30, 30))]);
    }

    #[test]
    fn many_points_in_a_column_keep_their_extremes() {
        let points: Vec<Point> = (0..1_000).map(|at| (at, at as u64)).collect();
        assert_eq!(steps(&points, 1_000, 2), [Some((0, 499)), Some((499, 999))]);
    }
}
