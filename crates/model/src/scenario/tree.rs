//! A scenario's text as a tree in which every value knows where it was written, and layers of
//! such trees: the file, a variant's changes, overrides from the command line.
//!
//! A later layer wins. Where one thing can be said in two ways (a delay of one way and the round
//! trip of both; a download and a post), what a later layer says also takes away what an earlier
//! one said in the other way, so that `--set path.loss=0` means what it says.

use std::collections::BTreeMap;
use std::sync::Arc;

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::error::{Place, ScenarioError, shown};

/// A value and where it was written.
#[derive(Clone, Debug, Default)]
pub(super) struct Node {
    pub(super) place: Place,
    pub(super) value: Value,
}

#[derive(Clone, Debug)]
pub(super) enum Value {
    Text(String),
    Integer(i64),
    Switch(bool),
    List(Vec<Node>),
    Table(Table),
}

impl Default for Value {
    fn default() -> Self {
        Self::Table(Table::new())
    }
}

/// Keys with where each was written, and their values.
pub(super) type Table = BTreeMap<String, (Place, Node)>;

impl Node {
    /// Reads a file.
    pub(super) fn read(text: &str) -> Result<Self, ScenarioError> {
        if text.len() > MOST_BYTES {
            let what = format!("it has {} bytes; scenarios have at most {MOST_BYTES}", text.len());
            return Err(ScenarioError::new(&Place::Unwritten, what));
        }
        let lines = Lines::of(text);
        let table = DeTable::parse(text).map_err(|error| no_toml(text, &lines, &error))?;
        let place = |at: usize| lines.place(at);
        Ok(Self {
            place: Place::Unwritten,
            value: Value::Table(from_table(table.get_ref(), true, &place)?),
        })
    }

    /// Reads an override, `KEY=VALUE`: the key dotted as in the file, the value as there or bare.
    pub(super) fn read_override(text: &str) -> Result<Self, ScenarioError> {
        let place = Place::Set(Arc::from(shown(text).as_str()));
        let (key, value) = text.split_once('=').ok_or_else(|| {
            ScenarioError::new(&place, "there is no `=`; write it as `path.rtt=20ms`")
        })?;
        if text.len() > MOST_BYTES || key.split('.').count() > MAX_DEPTH {
            return Err(ScenarioError::new(&place, "it is too long"));
        }
        if key.split('.').any(|part| part.trim().is_empty()) {
            let what = "a part of the name is empty; write it as `path.rtt=20ms`";
            return Err(ScenarioError::new(&place, what));
        }
        let whole = format!("v = {value}");
        let parsed = DeTable::parse(&whole).ok();
        let parsed = parsed.as_ref().and_then(|table| table.get_ref().get("v"));
        let node = match parsed {
            Some(value) => from_value(value, &|_| place.clone())?,
            None => Self { place: place.clone(), value: Value::Text(value.trim().to_owned()) },
        };
        Ok(key.split('.').rev().fold(node, |inner, part| Self {
            place: place.clone(),
            value: Value::Table(Table::from([(part.trim().to_owned(), (place.clone(), inner))])),
        }))
    }

    /// The value of a key, if this is a table that has it.
    pub(super) fn child(&self, key: &str) -> Option<&Self> {
        match &self.value {
            Value::Table(table) => table.get(key).map(|(_, node)| node),
            _ => None,
        }
    }

    /// Takes a key out.
    pub(super) fn take(&mut self, key: &str) -> Option<(Place, Self)> {
        match &mut self.value {
            Value::Table(table) => table.remove(key),
            _ => None,
        }
    }

    /// Lays a later layer over this one.
    pub(super) fn overlay(&mut self, later: &Self) {
        supersede_path(self, later);
        supersede_applications(self, later);
        self.merge(later);
    }

    fn merge(&mut self, later: &Self) {
        match (&mut self.value, &later.value) {
            (Value::Table(own), Value::Table(others)) => {
                for (key, (place, node)) in others {
                    match own.get_mut(key) {
                        Some((_, mine)) => mine.merge(node),
                        None => drop(own.insert(key.clone(), (place.clone(), node.clone()))),
                    }
                }
            }
            _ => self.clone_from(later),
        }
    }

    pub(super) fn table_mut(&mut self, key: &str) -> Option<&mut Table> {
        match &mut self.value {
            Value::Table(table) => match table.get_mut(key) {
                Some((_, Self { value: Value::Table(inner), .. })) => Some(inner),
                _ => None,
            },
            _ => None,
        }
    }
}

/// What both ways have, said for both at once, takes away what was said for one.
fn supersede_path(base: &mut Node, later: &Node) {
    let Some(Value::Table(said)) = later.child("path").map(|path| &path.value) else { return };
    let Some(path) = base.table_mut("path") else { return };
    for key in said.keys() {
        let (key, other) = match key.as_str() {
            "rtt" => ("delay", None),
            "rate" | "bucket" => {
                (key.as_str(), Some(if key == "rate" { "bucket" } else { "rate" }))
            }
            _ => (key.as_str(), None),
        };
        for way in ["down", "up"] {
            if let Some((_, Node { value: Value::Table(way), .. })) = path.get_mut(way) {
                way.remove(key);
                other.map(|other| way.remove(other));
            }
        }
    }
}

/// An application does one thing: what a later layer says it does replaces what it did.
fn supersede_applications(base: &mut Node, later: &Node) {
    for (holder, named) in [("application", false), ("applications", true)] {
        let Some(Value::Table(said)) = later.child(holder).map(|node| &node.value) else {
            continue;
        };
        let Some(had) = base.table_mut(holder) else { continue };
        if !named {
            drop_other_verbs(had, said);
            continue;
        }
        for (name, (_, node)) in said {
            if let (Some((_, Node { value: Value::Table(had), .. })), Value::Table(said)) =
                (had.get_mut(name), &node.value)
            {
                drop_other_verbs(had, said);
            }
        }
    }
}

fn drop_other_verbs(had: &mut Table, said: &Table) {
    if VERBS.iter().any(|verb| said.contains_key(*verb)) {
        had.retain(|key, _| !VERBS.contains(&key.as_str()) || said.contains_key(key));
    }
}

/// What an application may do; `client` and `server` are free step lists.
pub(super) const VERBS: [&str; 6] = ["download", "post", "exchange", "send", "client", "server"];

/// A dotted key names the same whether quoted or not (`"net.ipv4.tcp_sack"`), unless it is a name
/// that the user chose: that of a variant.
fn from_table(
    table: &DeTable<'_>,
    dotted: bool,
    place: &dyn Fn(usize) -> Place,
) -> Result<Table, ScenarioError> {
    let mut nodes = Table::new();
    for (key, value) in table {
        let at = place(key.span().start);
        let node = match value.get_ref() {
            DeValue::Table(names) if key.get_ref() == "variants" => Node {
                place: place(value.span().start),
                value: Value::Table(from_table(names, false, place)?),
            },
            _ => from_value(value, place)?,
        };
        let parts: Vec<_> =
            if dotted { key.get_ref().split('.').collect() } else { vec![key.get_ref().as_ref()] };
        let Some((first, rest)) = parts.split_first() else { continue };
        if rest.len() > MAX_DEPTH {
            return Err(ScenarioError::new(&at, "this key has too many parts"));
        }
        let node = rest.iter().rev().fold(node, |inner, part| Node {
            place: at.clone(),
            value: Value::Table(Table::from([((*part).to_owned(), (at.clone(), inner))])),
        });
        match nodes.get_mut(*first) {
            Some((_, own)) => own.merge(&node),
            None => drop(nodes.insert((*first).to_owned(), (at, node))),
        }
    }
    Ok(nodes)
}

fn from_value(
    value: &Spanned<DeValue<'_>>,
    place: &dyn Fn(usize) -> Place,
) -> Result<Node, ScenarioError> {
    let at = place(value.span().start);
    let value = match value.get_ref() {
        DeValue::String(text) => Value::Text(text.to_string()),
        // Kept as written: `1.5` may be a share's number, and its unit decides what it is.
        DeValue::Float(float) => Value::Text(float.as_str().to_owned()),
        DeValue::Integer(integer) => {
            let number = i64::from_str_radix(&integer.as_str().replace('_', ""), integer.radix());
            Value::Integer(number.map_err(|_| {
                ScenarioError::new(&at, format!("`{integer}` is greater than any number here"))
            })?)
        }
        DeValue::Boolean(switch) => Value::Switch(*switch),
        DeValue::Array(list) => Value::List(
            list.iter().map(|value| from_value(value, place)).collect::<Result<_, _>>()?,
        ),
        DeValue::Table(table) => Value::Table(from_table(table, true, place)?),
        DeValue::Datetime(date) => {
            return Err(ScenarioError::new(
                &at,
                format!("`{date}` is a date; nothing here has one"),
            ));
        }
    };
    Ok(Node { place: at, value })
}

/// What the TOML reader says, with what to do about the two slips that are most frequent.
fn no_toml(text: &str, lines: &Lines<'_>, error: &toml::de::Error) -> ScenarioError {
    let span = error.span().unwrap_or_default();
    let said = error.message().lines().collect::<Vec<_>>().join(", ");
    let what = if said == "duplicate key" {
        let key = text.get(span.clone()).unwrap_or_default().trim_matches(['"', '\'']);
        format!("`{}` is written twice; keep one of them", shown(key))
    } else if said.contains("must be quoted") {
        format!("{said}; times, rates and sizes are text, as \"40ms\"")
    } else {
        said
    };
    ScenarioError::new(&lines.place(span.start), what)
}

/// Turns byte offsets into lines and columns.
struct Lines<'t> {
    text: &'t str,
    starts: Vec<usize>,
}

impl<'t> Lines<'t> {
    fn of(text: &'t str) -> Self {
        let ends = text.bytes().enumerate().filter(|(_, byte)| *byte == b'\n');
        Self { text, starts: core::iter::once(0).chain(ends.map(|(at, _)| at + 1)).collect() }
    }

    fn place(&self, at: usize) -> Place {
        let line = self.starts.partition_point(|start| *start <= at).max(1);
        let start = self.starts[line - 1];
        let before = self.text.get(start..at.min(self.text.len())).unwrap_or_default();
        Place::File { line, column: before.chars().count() + 1 }
    }
}

/// Bytes that a scenario has at most. Ours: a hundred times the longest one shipped.
pub const MOST_BYTES: usize = 1 << 20;

/// Ours: twice the deepest key there is.
const MAX_DEPTH: usize = 16;
