//! A table of a scenario with the keys it may have: typed access, defaults, ranges, and what the
//! manual says of each.
//!
//! [`Key`] is the only place where a key's unit, default and range stand: reading obeys it, and a
//! test holds `docs/scenarios.md` to it.

use super::error::{Place, ScenarioError, shown};
use super::tree::{Node, Table, Value};
use super::units::Quantity;

/// A key a table may have.
#[derive(Clone, Copy, Debug)]
pub(super) struct Key {
    pub(super) name: &'static str,
    pub(super) kind: Kind,
    /// As a user would write it; empty if there is none.
    pub(super) default: &'static str,
    pub(super) meaning: &'static str,
}

/// What a key's value is.
#[derive(Clone, Copy, Debug)]
pub(super) enum Kind {
    /// A quantity from this least to this most.
    Of(Quantity, u64, u64),
    /// A number from this least to this most.
    Count(u64, u64),
    /// `true` or `false`.
    Switch,
    /// Anything in this form.
    Text(&'static str),
    /// A table of its own, described elsewhere.
    Table(&'static str),
    /// A list of what is described elsewhere.
    List(&'static str),
}

/// Shortens the tables of keys.
pub(super) const fn key(
    name: &'static str,
    kind: Kind,
    default: &'static str,
    meaning: &'static str,
) -> Key {
    Key { name, kind, default, meaning }
}

/// A table being read.
pub(super) struct Section<'n> {
    /// Dotted, as the user would write it; empty at the top.
    pub(super) path: String,
    pub(super) place: Place,
    keys: &'static [Key],
    table: Option<&'n Table>,
}

impl<'n> Section<'n> {
    /// Opens a table; one that is absent has all defaults.
    pub(super) fn open(
        path: impl Into<String>,
        keys: &'static [Key],
        node: Option<&'n Node>,
    ) -> Result<Self, ScenarioError> {
        let path = path.into();
        let Some(node) = node else {
            return Ok(Self { path, place: Place::Unwritten, keys, table: None });
        };
        let Value::Table(table) = &node.value else {
            let what = format!("`{path}` is a table: write `[{path}]` and its keys below");
            return Err(ScenarioError::new(&node.place, what));
        };
        for (word, (place, _)) in table {
            if !keys.iter().any(|key| key.name == word) {
                let of = if path.is_empty() { "a scenario" } else { &format!("`{path}`") };
                let known = keys.iter().map(|key| key.name);
                return Err(ScenarioError::unknown(
                    place,
                    &format!("{of} has no key"),
                    word,
                    known,
                ));
            }
        }
        Ok(Self { path, place: node.place.clone(), keys, table: Some(table) })
    }

    /// The names and values below a key, if it is there.
    pub(super) fn table(&self, name: &str) -> Result<Option<&'n Table>, ScenarioError> {
        match self.node(name).map(|node| (&node.value, &node.place)) {
            None => Ok(None),
            Some((Value::Table(table), _)) => Ok(Some(table)),
            Some((_, place)) => {
                let what = format!("`{}` is a table of names and values", self.name(name));
                Err(ScenarioError::new(place, what))
            }
        }
    }

    /// Whether the user wrote it.
    pub(super) fn has(&self, name: &str) -> bool {
        self.node(name).is_some()
    }

    /// What the user wrote.
    pub(super) fn node(&self, name: &str) -> Option<&'n Node> {
        self.table?.get(name).map(|(_, node)| node)
    }

    /// Where the user wrote a key, or the table without it.
    pub(super) fn place(&self, name: &str) -> &Place {
        self.table.and_then(|table| table.get(name)).map_or(&self.place, |(place, _)| place)
    }

    /// The key's name with its table's.
    pub(super) fn name(&self, key: &str) -> String {
        if self.path.is_empty() { key.to_owned() } else { format!("{}.{key}", self.path) }
    }

    /// A quantity or a number, with its default.
    ///
    /// Asking for a key that the table does not list is a mistake of ours, seen by every test.
    pub(super) fn number(&self, name: &str) -> Result<Option<u64>, ScenarioError> {
        let key = self.keys.iter().find(|key| key.name == name);
        let key = key.expect("a key is listed before it is read");
        match self.node(name) {
            Some(node) => self.checked(key, node).map(Some),
            None if key.default.is_empty() => Ok(None),
            None => {
                let value = Value::Text(key.default.to_owned());
                self.checked(key, &Node { place: Place::Unwritten, value }).map(Some)
            }
        }
    }

    /// A number that has a default.
    pub(super) fn figure(&self, name: &str) -> Result<u64, ScenarioError> {
        self.number(name).map(Option::unwrap_or_default)
    }

    fn checked(&self, key: &Key, node: &Node) -> Result<u64, ScenarioError> {
        let wrong = |what: String| {
            ScenarioError::new(&node.place, format!("`{}`: {what}", self.name(key.name)))
        };
        let (value, low, high) = match key.kind {
            Kind::Of(quantity, low, high) => {
                let value = match &node.value {
                    Value::Text(text) => quantity.read(text).map_err(|e| wrong(e.to_string()))?,
                    // Bytes need no unit; of anything else only nothing does.
                    Value::Integer(number) if quantity == Quantity::Size || *number == 0 => {
                        u64::try_from(*number)
                            .map_err(|_| wrong(format!("{number} is negative")))?
                    }
                    Value::Integer(number) => {
                        let example = quantity.example();
                        return Err(wrong(format!(
                            "{number} has no unit; write it as \"{example}\""
                        )));
                    }
                    _ => return Err(wrong(format!("write it as \"{}\"", quantity.example()))),
                };
                (value, low, high)
            }
            Kind::Count(low, high) => {
                let told = |e| wrong(format!("{e}; write one from {low} to {high}"));
                (count(node).map_err(told)?, low, high)
            }
            _ => unreachable!("only numbers are read as numbers"),
        };
        if value < low || value > high {
            let (low, high) = (key.kind.write(low), key.kind.write(high));
            let value = key.kind.write(value);
            return Err(wrong(format!("{value} is out of range; it goes from {low} to {high}")));
        }
        Ok(value)
    }

    /// `true` or `false`.
    pub(super) fn switch(&self, name: &str) -> Result<bool, ScenarioError> {
        let key = self.keys.iter().find(|key| key.name == name);
        match self.node(name).map(|node| (&node.value, &node.place)) {
            None => Ok(key.is_some_and(|key| key.default == "true")),
            Some((Value::Switch(on), _)) => Ok(*on),
            Some((_, place)) => {
                let what = format!("`{}`: write true or false, without quotes", self.name(name));
                Err(ScenarioError::new(place, what))
            }
        }
    }

    /// Text, with its default; a number will do for it.
    pub(super) fn text(&self, name: &str) -> Result<Option<(&Place, String)>, ScenarioError> {
        if let Some(node) = self.node(name) {
            return Ok(Some((&node.place, self.text_of(name, node)?)));
        }
        let default = self.keys.iter().find(|key| key.name == name).map_or("", |key| key.default);
        Ok((!default.is_empty()).then(|| (&self.place, default.to_owned())))
    }

    /// A value as text.
    pub(super) fn text_of(&self, name: &str, node: &Node) -> Result<String, ScenarioError> {
        match &node.value {
            Value::Text(text) => Ok(text.clone()),
            Value::Integer(number) => Ok(number.to_string()),
            _ => {
                let what = format!("`{}`: write text in quotes", self.name(name));
                Err(ScenarioError::new(&node.place, what))
            }
        }
    }

    /// A list.
    pub(super) fn list(&self, name: &str) -> Result<&'n [Node], ScenarioError> {
        match self.node(name).map(|node| (&node.value, &node.place)) {
            None => Ok(&[]),
            Some((Value::List(list), _)) => Ok(list),
            Some((_, place)) => {
                let what = format!("`{}` is a list: write it in brackets", self.name(name));
                Err(ScenarioError::new(place, what))
            }
        }
    }
}

fn count(node: &Node) -> Result<u64, String> {
    match &node.value {
        Value::Integer(number) => {
            u64::try_from(*number).map_err(|_| format!("{number} is negative"))
        }
        Value::Text(text) => {
            text.trim().parse().map_err(|_| format!("`{}` is not a whole number", shown(text)))
        }
        _ => Err("this is not a number".to_owned()),
    }
}

impl Kind {
    /// A number of this kind, as the user would write it.
    pub(super) fn write(self, value: u64) -> String {
        match self {
            Self::Of(quantity, ..) => quantity.write(value),
            _ => value.to_string(),
        }
    }

    /// The form of a value, for the manual.
    pub(super) fn form(self) -> String {
        match self {
            Self::Of(quantity, low, high) => format!(
                "{}, {} to {}",
                match quantity {
                    Quantity::Time => "time",
                    Quantity::Size => "size",
                    Quantity::Rate => "rate",
                    Quantity::Share => "share",
                },
                quantity.write(low),
                quantity.write(high)
            ),
            Self::Count(low, high) => format!("number, {low} to {high}"),
            Self::Switch => "true or false".to_owned(),
            Self::Text(form) | Self::List(form) | Self::Table(form) => form.to_owned(),
        }
    }
}
