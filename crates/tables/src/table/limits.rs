//! Intervals, and what held the sender in them.

use tcpwhy::report::Limit;

use crate::column::{Column, int, text, texts, time};
use crate::whole::{OfConnection, Whole, count, keys};

/// An interval of one direction.
pub(super) struct Row<'a> {
    whole: &'a Whole<'a>,
    sender: &'static str,
    limit: &'a Limit,
}

impl OfConnection for Row<'_> {
    fn whole(&self) -> &Whole<'_> {
        self.whole
    }
}

pub(super) fn rows<'a>(all: &'a [Whole<'a>]) -> Vec<Row<'a>> {
    let of = |whole: &'a Whole<'a>| {
        whole.connection.present().flat_map(move |(side, direction)| {
            let sender = super::SENDERS[side];
            direction.limits.iter().map(move |limit| Row { whole, sender, limit })
        })
    };
    all.iter().flat_map(of).collect()
}

pub(super) fn columns<'a>() -> Vec<Column<Row<'a>>> {
    let mut columns = keys();
    columns.extend([
        text("sender", "Whose data it is of: client or server.", |row: &Row<'_>| {
            Some(row.sender.into())
        }),
        time("start_time", "Its start; null where the input has no dates.", |row| {
            row.whole.at(row.limit.start_ns)
        }),
        int("start_ns", "Its start.", |row| Some(row.limit.start_ns)),
        int("end_ns", "Its end, where the next begins.", |row| Some(row.limit.end_ns)),
        int("duration_ns", "From its start to its end.", |row| {
            Some(row.limit.end_ns.saturating_sub(row.limit.start_ns))
        }),
        text("state", "What held the sender (`tcpwhy doc STATE`).", |row| {
            Some(row.limit.state.name().into())
        }),
        text("confidence", "How sure that is: shown, likely or possible.", |row| {
            Some(row.limit.confidence.name().into())
        }),
        texts("alternatives", "States that the packets do not tell apart from it.", |row| {
            row.limit.alternative.iter().map(|state| state.name().into()).collect()
        }),
        text("evidence", "What shows it, in words.", |row| {
            Some((&*row.limit.evidence.text).into())
        }),
        int("first_frame", "The frame that it begins with.", |row| {
            count(row.limit.evidence.frames.first)
        }),
        int("last_frame", "The frame that it ends with.", |row| {
            count(row.limit.evidence.frames.last)
        }),
    ]);
    columns
}
