//! What would make connections faster.

use tcpwhy::report::PredictedBy;
use tcpwhy::view::{self, Change};

use crate::column::{Column, int, text};
use crate::whole::{OfConnection, Whole, count, keys};

/// A change of a connection.
pub(super) struct Row<'a> {
    whole: &'a Whole<'a>,
    rank: usize,
    change: Change,
}

impl OfConnection for Row<'_> {
    fn whole(&self) -> &Whole<'_> {
        self.whole
    }
}

pub(super) fn rows<'a>(all: &'a [Whole<'a>]) -> Vec<Row<'a>> {
    let of = |whole: &'a Whole<'a>| {
        let ranked = view::changes(whole.connection).into_iter().enumerate();
        ranked.map(move |(rank, change)| Row { whole, rank, change })
    };
    all.iter().flat_map(of).collect()
}

pub(super) fn columns<'a>() -> Vec<Column<Row<'a>>> {
    let mut columns = keys();
    columns.extend([
        text("client_ip", "Address of who opened the connection.", |row: &Row<'_>| {
            Some(row.whole.connection.client.ip().to_string().into())
        }),
        text("server_ip", "Address of the other end.", |row| {
            Some(row.whole.connection.server.ip().to_string().into())
        }),
        int("rank", "Its rank on the first screen, from 0.", |row| count(row.rank as u64)),
        text("change", "Who does what.", |row| Some((&*row.change.label).into())),
        text("kind", "The same without its value: alike for many connections.", |row| {
            Some(row.change.kind().into())
        }),
        text("code", "The finding that it is against (`tcpwhy doc CODE`).", |row| {
            Some((&*row.change.code).into())
        }),
        text("confidence", "How sure the finding is: shown, likely or possible.", |row| {
            row.change.sure.map(|sure| sure.name().into())
        }),
        int("gain_low_ns", "Saved at least.", |row| Some(row.change.gain.low_ns)),
        int("gain_ns", "Saved most likely.", |row| Some(row.change.gain.best_ns)),
        int("gain_high_ns", "Saved at most.", |row| Some(row.change.gain.high_ns)),
        int("gain_of_ns", "The time that the gain is a part of.", |row| {
            Some(row.change.gain.now_ns)
        }),
        text("gain_by", "How the gain was found: arithmetic or model.", |row| {
            Some(by(row.change.gain.by).into())
        }),
        text("command", "The command that does it, where there is one.", |row| {
            row.change.command.as_deref().map(Into::into)
        }),
    ]);
    columns
}

/// How a gain was found.
pub(super) const fn by(by: PredictedBy) -> &'static str {
    match by {
        PredictedBy::Arithmetic => "arithmetic",
        PredictedBy::Model => "model",
    }
}
