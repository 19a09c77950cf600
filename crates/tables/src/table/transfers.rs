//! Runs of application data.

use tcpwhy::report::Transfer;

use crate::column::{Column, int, spans, text, time};
use crate::whole::{OfConnection, Whole, count, keys};

/// A transfer of a connection.
pub(super) struct Row<'a> {
    whole: &'a Whole<'a>,
    number: usize,
    transfer: &'a Transfer,
}

impl OfConnection for Row<'_> {
    fn whole(&self) -> &Whole<'_> {
        self.whole
    }
}

impl Row<'_> {
    fn duration_ns(&self) -> i64 {
        self.transfer.end_ns.saturating_sub(self.transfer.start_ns)
    }
}

pub(super) fn rows<'a>(all: &'a [Whole<'a>]) -> Vec<Row<'a>> {
    let of = |whole: &'a Whole<'a>| {
        let numbered = whole.connection.transfers.iter().enumerate();
        numbered.map(move |(number, transfer)| Row { whole, number, transfer })
    };
    all.iter().flat_map(of).collect()
}

pub(super) fn columns<'a>() -> Vec<Column<Row<'a>>> {
    let mut columns = keys();
    columns.extend([
        int("transfer", "Its number in the connection, from 0.", |row: &Row<'_>| {
            count(row.number as u64)
        }),
        text("sender", "Who sent it: client or server.", |row| Some((&*row.transfer.from).into())),
        time("start_time", "Its first byte; null where the input has no dates.", |row| {
            row.whole.at(row.transfer.start_ns)
        }),
        int("start_ns", "Its first byte.", |row| Some(row.transfer.start_ns)),
        int("end_ns", "Its last send, or the last ACK of its data.", |row| {
            Some(row.transfer.end_ns)
        }),
        int("duration_ns", "From its start to its end.", |row| Some(row.duration_ns())),
        int("payload_bytes", "Payload, each byte counted once.", |row| count(row.transfer.bytes)),
        int("rate_bps", "Payload over duration, in bits per second; null for an instant.", rate),
        text("state", "What held it longest (`tcpwhy doc STATE`).", |row| {
            row.transfer.time_in.ranked().first().map(|most| most.0.name().into())
        }),
        int("state_ns", "For how long that did.", |row| {
            row.transfer.time_in.ranked().first().map(|most| most.1.0)
        }),
        spans("time_in_ns", "Nanoseconds in each state; they add up to the duration.", |row| {
            row.transfer.time_in.iter().map(|(state, span)| (state.name().into(), span.0)).collect()
        }),
    ]);
    columns
}

fn rate(row: &Row<'_>) -> Option<i64> {
    let bits = i128::from(row.transfer.bytes) * 8 * 1_000_000_000;
    let rate = bits.checked_div(i128::from(row.duration_ns().max(0)))?;
    i64::try_from(rate).ok()
}
