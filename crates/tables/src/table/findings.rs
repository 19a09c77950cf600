//! Findings, with what their causes cost and what to do.

use tcpwhy::report::{Finding, Gain, Remedy};

use super::changes::by;
use crate::column::{Column, int, text, texts, time};
use crate::whole::{OfConnection, Whole, count, keys};

/// A finding of a connection.
pub(super) struct Row<'a> {
    whole: &'a Whole<'a>,
    number: usize,
    finding: &'a Finding,
}

impl OfConnection for Row<'_> {
    fn whole(&self) -> &Whole<'_> {
        self.whole
    }
}

impl Row<'_> {
    fn gain(&self) -> Option<&Gain> {
        self.finding.gain.as_ref()
    }

    fn remedy(&self) -> Option<&Remedy> {
        self.finding.remedies.first()
    }
}

pub(super) fn rows<'a>(all: &'a [Whole<'a>]) -> Vec<Row<'a>> {
    let of = |whole: &'a Whole<'a>| {
        let numbered = whole.connection.findings.iter().enumerate();
        numbered.map(move |(number, finding)| Row { whole, number, finding })
    };
    all.iter().flat_map(of).collect()
}

pub(super) fn columns<'a>() -> Vec<Column<Row<'a>>> {
    let mut columns = keys();
    columns.extend(what());
    columns.extend(gains());
    columns.extend(remedies());
    columns
}

fn what<'a>() -> [Column<Row<'a>>; 11] {
    [
        int("finding", "Its rank in the connection, from 0.", |row: &Row<'_>| {
            count(row.number as u64)
        }),
        text("code", "Stable code (`tcpwhy doc CODE`).", |row| Some((&*row.finding.code).into())),
        text("severity", "broken, wrong, limit or note.", |row| {
            Some(row.finding.severity.name().into())
        }),
        text("title", "One line.", |row| Some((&*row.finding.title).into())),
        text("why", "Why it is said.", |row| Some((&*row.finding.why).into())),
        text("sender", "Whose data it speaks of; null for the connection as a whole.", |row| {
            row.finding.from.as_deref().map(Into::into)
        }),
        text("confidence", "How sure its intervals are: shown, likely or possible.", |row| {
            row.finding.sure.map(|sure| sure.name().into())
        }),
        texts("alternatives", "States that the packets allow for a good part, too.", |row| {
            row.finding.alternative.iter().map(|state| state.name().into()).collect()
        }),
        text("explained_by", "The finding that explains the same time better.", |row| {
            row.finding.explained_by.as_deref().map(Into::into)
        }),
        time("first_seen_time", "Where it first shows; null without dates or a place.", |row| {
            row.whole.at(row.finding.evidence.first()?.from_ns)
        }),
        int("seen_ns", "For how long it was seen. It is no gain.", |row| {
            Some(row.finding.seen_in_ns)
        }),
    ]
}

fn gains<'a>() -> [Column<Row<'a>>; 5] {
    [
        int(
            "gain_low_ns",
            "Saved at least if its cause were gone; null where nothing tells.",
            |row: &Row<'_>| row.gain().map(|gain| gain.low_ns),
        ),
        int("gain_ns", "Saved most likely.", |row| row.gain().map(|gain| gain.best_ns)),
        int("gain_high_ns", "Saved at most.", |row| row.gain().map(|gain| gain.high_ns)),
        int("gain_of_ns", "The time that the gain is a part of.", |row| {
            row.gain().map(|gain| gain.now_ns)
        }),
        text("gain_by", "How the gain was found: arithmetic or model.", |row| {
            row.gain().map(|gain| by(gain.by).into())
        }),
    ]
}

fn remedies<'a>() -> [Column<Row<'a>>; 5] {
    [
        text("remedy", "What to change first; null where nothing is advised.", |row: &Row<'_>| {
            Some((&*row.remedy()?.what).into())
        }),
        text(
            "remedy_by",
            "Who does: sender, receiver, client, server, application, path.",
            |row| Some((&*row.remedy()?.who).into()),
        ),
        text("remedy_on", "Whose host it is done on: client or server.", |row| {
            row.remedy()?.on.as_deref().map(Into::into)
        }),
        text("setting", "The setting's name, where it is one.", |row| {
            row.remedy()?.knob.as_deref().map(Into::into)
        }),
        text("command", "The command that does it, where there is one.", |row| {
            row.remedy()?.command.as_deref().map(Into::into)
        }),
    ]
}
