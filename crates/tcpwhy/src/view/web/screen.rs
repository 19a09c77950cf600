//! The words of a connection's first screen, and of its row in the table: those of the terminal.

use serde::Serialize;

use super::super::first::{bars, head, many, trust};
use super::super::{faster, words};
use crate::answer;
use crate::find;
use crate::report::{Connection, Finding, Report};

/// Remedies of what did not work. Ours: as on the terminal.
const ADVISED: usize = 3;

/// One connection.
#[derive(Debug, Serialize)]
pub(super) struct Screen {
    id: u64,
    who: String,
    what: String,
    failed: Option<String>,
    /// The direction that the answer speaks of.
    main: Option<usize>,
    now: String,
    changes: Vec<Row>,
    below: Option<&'static str>,
    advice: Vec<Advice>,
    took: String,
    bars: Vec<Bar>,
    trust: String,
    row: Cells,
}

/// What would be faster.
#[derive(Debug, Serialize)]
struct Row {
    label: String,
    then: String,
    gain: String,
    /// In nanoseconds, for a bar.
    saves: Option<[i64; 2]>,
    code: String,
    command: Option<String>,
}

/// What to do about what did not work.
#[derive(Debug, Serialize)]
struct Advice {
    who: String,
    what: String,
    command: Option<String>,
}

/// Where the time went.
#[derive(Debug, Serialize)]
struct Bar {
    name: String,
    ns: i64,
    time: String,
    share: String,
    letter: char,
}

/// A row of the table of connections.
#[derive(Debug, Serialize)]
struct Cells {
    peer: String,
    what: String,
    took: String,
    took_ns: i64,
    why: String,
    gain: String,
}

/// The screen of `connection`.
pub(super) fn of(report: &Report, connection: &Connection) -> Screen {
    let causes = answer::causes(connection);
    let failed = find::failed(connection).next().is_some();
    let main = answer::main(connection);
    let (now, changes, below) =
        if failed { (0, Vec::new(), None) } else { changes(connection, &causes) };
    let bars = main.map(|(at, direction)| bars::rows(connection, at, direction));
    let lifetime = connection.duration_ns;
    let bar = |(name, ns, state): (String, i64, crate::report::State)| Bar {
        name,
        ns,
        time: words::time(ns),
        share: words::percent(ns, lifetime),
        letter: state.letter(),
    };
    Screen {
        id: connection.id,
        who: head::who(connection),
        what: head::what(connection),
        failed: failed.then(|| causes.first().map(|first| first.code.clone())).flatten(),
        main: main.map(|main| main.0),
        now: words::time(now),
        changes,
        below,
        advice: if failed { advice(&causes) } else { Vec::new() },
        took: words::time(lifetime),
        bars: bars.into_iter().flatten().map(bar).collect(),
        trust: trust::rests_on(report, connection),
        row: row(connection),
    }
}

fn changes(connection: &Connection, causes: &[&Finding]) -> (i64, Vec<Row>, Option<&'static str>) {
    let listed = faster::list(connection, causes);
    let now = listed.now;
    let rows = listed.changes.into_iter().map(|change| {
        let (then, gain) = change.gain.map_or_else(Default::default, faster::figures);
        let helps = change.gain.is_none() || faster::helps(&change, now);
        Row {
            then,
            gain,
            saves: change.gain.map(|gain| [gain.low_ns, gain.high_ns]),
            code: change.code.to_owned(),
            command: change.command.filter(|_| helps).map(str::to_owned),
            label: change.label,
        }
    });
    (now, rows.collect(), faster::below(causes))
}

fn advice(causes: &[&Finding]) -> Vec<Advice> {
    let remedies = causes.first().into_iter().flat_map(|finding| &finding.remedies);
    let told = remedies.take(ADVISED).map(|remedy| Advice {
        who: remedy.on.as_deref().unwrap_or(&remedy.who).to_owned(),
        what: remedy.what.clone(),
        command: remedy.command.clone(),
    });
    told.collect()
}

fn row(connection: &Connection) -> Cells {
    let cells = many::cells_of(connection);
    let took_ns = match connection.failure.as_deref() {
        Some(failure) => failure.waited_ns,
        None => Some(find::active_ns(connection))
            .filter(|active| *active > 0)
            .unwrap_or(connection.duration_ns),
    };
    Cells {
        peer: cells.peer,
        what: cells.what,
        took: cells.took,
        took_ns,
        why: cells.why,
        gain: cells.gain,
    }
}
