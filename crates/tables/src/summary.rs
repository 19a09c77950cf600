//! What to change where, over a folder of tables: changes ranked by what they would save, and what did not work.
//!
//! What is added up is what the first screen of each connection says. Changes of one connection share its time, so that
//! the sums of several changes do not add up to one of all.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::path::Path;

use arrow_array::cast::AsArray;
use arrow_array::types::Int64Type;
use arrow_array::{Array, Int64Array, RecordBatch, StringArray};
use serde::Serialize;
use tcpwhy::report::Sure;

use crate::Table;
use crate::read::{Part, ReadError, each, parts};

/// Which rows are asked for.
#[derive(Clone, Debug, Default)]
pub struct Asked {
    /// Of captures of this host only.
    pub host: Option<String>,
    /// Of this day (UTC, `2026-11-29`) or later.
    pub since: Option<String>,
    /// Of this day or earlier.
    pub until: Option<String>,
}

/// What a folder of tables says.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Summary {
    /// Hosts whose captures these are; those without a name are one.
    pub hosts: usize,
    /// The first and the last day; `None` where the captures have no dates.
    pub days: Option<[String; 2]>,
    /// Connections.
    pub connections: u64,
    /// Those of them that did not do what they were made for.
    pub failed: u64,
    /// Time in which somebody waited, over all connections.
    pub active_ns: i64,
    /// What would help, the most first.
    pub changes: Vec<Change>,
    /// What did not work, the most frequent first.
    pub failures: Vec<Failure>,
}

/// A change over all connections that it would help.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Change {
    /// Who does what.
    pub kind: String,
    /// The finding that it is against.
    pub code: String,
    /// The least and the greatest value that was advised, where the change has one.
    pub values: Option<[u64; 2]>,
    /// Connections that it would help.
    pub connections: u64,
    /// Hosts in whose captures these are.
    pub hosts: usize,
    /// Saved at least, over all of them.
    pub gain_low_ns: i64,
    /// Saved most likely.
    pub gain_ns: i64,
    /// Saved at most.
    pub gain_high_ns: i64,
    /// Of the gain, what the model found by repeating the transfers; the rest is arithmetic.
    pub by_model_ns: i64,
    /// How sure the causes are: the surest word for which nine tenths of the gain or more are as sure.
    pub confidence: String,
    /// Where it is to be done, the most gain first: hosts, or pairs of them where a path is to be changed.
    pub places: Vec<Place>,
    /// How many places there are.
    pub of_places: usize,
    /// A command that does it, of the connection that gains most.
    pub command: Option<String>,
}

/// Where a change is to be done.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Place {
    /// An address, or two.
    pub name: String,
    /// Connections that it would help there.
    pub connections: u64,
    /// What it would save there.
    pub gain_ns: i64,
}

/// What did not work, by its code.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Failure {
    /// The finding's code.
    pub code: String,
    /// Connections.
    pub connections: u64,
    /// Their servers, the most frequent first, with how many connections each has.
    pub servers: Vec<(String, u64)>,
    /// How many servers there are.
    pub of_servers: usize,
}

/// Places that are named. Ours: a line of them.
const NAMED: usize = 3;

impl Summary {
    /// Reads what is asked for of a folder.
    ///
    /// # Errors
    /// There are no tables, or one cannot be read.
    pub fn of(folder: &Path, asked: &Asked) -> Result<Self, ReadError> {
        let mut all = Gathered::default();
        for part in wanted(folder, Table::Connections, asked)? {
            all.hosts.insert(part.host.clone());
            all.days.extend(part.day.clone());
            each(&part.path, &CONNECTION, |rows| all.connections(rows))?;
        }
        // Where nothing would help, there is no such table.
        if folder.join(Table::Changes.name()).is_dir() {
            for part in wanted(folder, Table::Changes, asked)? {
                each(&part.path, &CHANGE, |rows| all.changes(rows, part.host.as_deref()))?;
            }
        }
        Ok(all.summed_up())
    }
}

fn wanted(folder: &Path, table: Table, asked: &Asked) -> Result<Vec<Part>, ReadError> {
    let mut parts = parts(folder, table)?;
    let is_asked = |part: &Part| {
        let since = asked.since.is_none() || part.day >= asked.since;
        let until = asked.until.is_none() || (part.day.is_some() && part.day <= asked.until);
        since && until && (asked.host.is_none() || part.host == asked.host)
    };
    parts.retain(is_asked);
    Ok(parts)
}

/// Columns that are read.
const CONNECTION: [&str; 3] = ["active_ns", "failure", "server_ip"];
const CHANGE: [&str; 11] = [
    "client_ip",
    "server_ip",
    "change",
    "kind",
    "code",
    "confidence",
    "gain_low_ns",
    "gain_ns",
    "gain_high_ns",
    "gain_by",
    "command",
];

#[derive(Default)]
struct Gathered {
    hosts: BTreeSet<Option<String>>,
    days: BTreeSet<String>,
    connections: u64,
    failed: u64,
    active_ns: i64,
    /// By code, and server.
    failures: BTreeMap<String, HashMap<String, u64>>,
    /// By kind and code.
    changes: BTreeMap<(String, String), Sum>,
}

/// A change's sums.
#[derive(Default)]
struct Sum {
    values: Option<[u64; 2]>,
    connections: u64,
    hosts: BTreeSet<Option<String>>,
    low: i64,
    best: i64,
    high: i64,
    by_model: i64,
    /// Gain by how sure.
    sure: BTreeMap<Sure, i64>,
    /// Gain and connections by place.
    places: HashMap<String, (i64, u64)>,
    command: Option<(i64, String)>,
}

impl Gathered {
    fn connections(&mut self, rows: &RecordBatch) {
        let (active, failure) = (ints(rows, "active_ns"), texts(rows, "failure"));
        let servers = texts(rows, "server_ip");
        self.connections += rows.num_rows() as u64;
        for at in 0..rows.num_rows() {
            self.active_ns = self.active_ns.saturating_add(int(active, at));
            if failure.is_valid(at) {
                self.failed += 1;
                let servers_of = self.failures.entry(failure.value(at).to_owned()).or_default();
                *servers_of.entry(text(servers, at).to_owned()).or_default() += 1;
            }
        }
    }

    fn changes(&mut self, rows: &RecordBatch, host: Option<&str>) {
        let named = |name| texts(rows, name);
        let (clients, servers) = (named("client_ip"), named("server_ip"));
        let (changes, kinds, codes) = (named("change"), named("kind"), named("code"));
        let (sure, by, commands) = (named("confidence"), named("gain_by"), named("command"));
        let gains = ["gain_low_ns", "gain_ns", "gain_high_ns"].map(|name| ints(rows, name));
        for at in 0..rows.num_rows() {
            let kind = text(kinds, at);
            let key = (kind.to_owned(), text(codes, at).to_owned());
            let sum = self.changes.entry(key).or_default();
            let [low, best, high] = gains.map(|gain| int(gain, at));
            sum.connections += 1;
            sum.hosts.insert(host.map(str::to_owned));
            sum.low = sum.low.saturating_add(low);
            sum.best = sum.best.saturating_add(best);
            sum.high = sum.high.saturating_add(high);
            if text(by, at) == "model" {
                sum.by_model = sum.by_model.saturating_add(best);
            }
            *sum.sure.entry(word(text(sure, at))).or_default() += best.max(1);
            let value = text(changes, at).strip_prefix(kind).and_then(|v| v.trim().parse().ok());
            if let Some(value) = value {
                let [least, most] = sum.values.get_or_insert([value, value]);
                (*least, *most) = ((*least).min(value), (*most).max(value));
            }
            let place = place(kind, text(clients, at), text(servers, at));
            let (gain, count) = sum.places.entry(place).or_default();
            (*gain, *count) = (gain.saturating_add(best), *count + 1);
            let is_more = sum.command.as_ref().is_none_or(|(gain, _)| best > *gain);
            if commands.is_valid(at) && is_more {
                sum.command = Some((best, commands.value(at).to_owned()));
            }
        }
    }

    fn summed_up(self) -> Summary {
        let mut changes: Vec<_> = self.changes.into_iter().map(Change::of).collect();
        changes.sort_by_key(|change| Reverse(change.gain_ns));
        let mut failures: Vec<_> = self.failures.into_iter().map(Failure::of).collect();
        failures.sort_by_key(|failure| Reverse(failure.connections));
        let days = self.days.first().zip(self.days.last());
        Summary {
            hosts: self.hosts.len(),
            days: days.map(|(first, last)| [first.clone(), last.clone()]),
            connections: self.connections,
            failed: self.failed,
            active_ns: self.active_ns,
            changes,
            failures,
        }
    }
}

impl Change {
    fn of(((kind, code), sum): ((String, String), Sum)) -> Self {
        let of_places = sum.places.len();
        let place = |(name, (gain_ns, connections)): (String, (i64, u64))| Place {
            name,
            connections,
            gain_ns,
        };
        let mut places: Vec<_> = sum.places.into_iter().map(place).collect();
        places.sort_by(|a, b| b.gain_ns.cmp(&a.gain_ns).then_with(|| a.name.cmp(&b.name)));
        places.truncate(NAMED);
        let parts = sum.sure.iter().map(|(sure, gain)| (*sure, *gain));
        Self {
            kind,
            code,
            values: sum.values,
            connections: sum.connections,
            hosts: sum.hosts.len(),
            gain_low_ns: sum.low,
            gain_ns: sum.best,
            gain_high_ns: sum.high,
            by_model_ns: sum.by_model,
            confidence: Sure::of_parts(&parts).name().to_owned(),
            places,
            of_places,
            command: sum.command.map(|(_, command)| command),
        }
    }
}

impl Failure {
    fn of((code, servers): (String, HashMap<String, u64>)) -> Self {
        let of_servers = servers.len();
        let connections = servers.values().sum();
        let mut servers: Vec<_> = servers.into_iter().collect();
        servers.sort_by(|a, b| b.1.cmp(&a.1).then_with(|| a.0.cmp(&b.0)));
        servers.truncate(NAMED);
        Self { code, connections, servers, of_servers }
    }
}

/// Where a change of this kind is to be done.
fn place(kind: &str, client: &str, server: &str) -> String {
    match kind.split_once(':').map(|(who, _)| who) {
        Some("client") => client.to_owned(),
        Some("server") => server.to_owned(),
        _ => format!("{client} and {server}"),
    }
}

/// A word of confidence; a finding of the connection as a whole has none, and rests on what is plainly there.
fn word(name: &str) -> Sure {
    Sure::ALL.into_iter().find(|sure| sure.name() == name).unwrap_or(Sure::Shown)
}

fn ints<'a>(rows: &'a RecordBatch, name: &str) -> &'a Int64Array {
    column(rows, name).as_primitive::<Int64Type>()
}

fn texts<'a>(rows: &'a RecordBatch, name: &str) -> &'a StringArray {
    column(rows, name).as_string::<i32>()
}

fn column<'a>(rows: &'a RecordBatch, name: &str) -> &'a dyn Array {
    rows.column_by_name(name).expect("it was asked for")
}

fn int(column: &Int64Array, at: usize) -> i64 {
    if column.is_null(at) { 0 } else { column.value(at) }
}

fn text(column: &StringArray, at: usize) -> &str {
    if column.is_null(at) { "" } else { column.value(at) }
}
