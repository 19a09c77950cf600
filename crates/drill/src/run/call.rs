//! A system call as data: its arguments, what it is to do, what came of it.

use super::names;
use crate::script::{Call, Expression};

/// What a call returns, and the first thing it filled in that is not what the script says.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Outcome {
    pub(super) value: i64,
    pub(super) errno: Option<&'static str>,
    pub(super) filled: Option<Filled>,
}

/// What a call filled in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Filled {
    pub(super) what: &'static str,
    pub(super) expected: String,
    pub(super) got: String,
}

impl Outcome {
    pub(super) fn value(value: i64) -> Outcome {
        Outcome { value, ..Outcome::default() }
    }

    pub(super) fn error(errno: &'static str) -> Outcome {
        Outcome { value: -1, errno: Some(errno), filled: None }
    }

    /// The same, with a number that was filled in.
    pub(super) fn filling(self, what: &'static str, expected: i64, got: i64) -> Outcome {
        let differs = expected != got && self.filled.is_none();
        let filled =
            differs.then(|| Filled { what, expected: expected.to_string(), got: got.to_string() });
        Outcome { filled: filled.or(self.filled), ..self }
    }

    /// The same, with a text that was filled in.
    pub(super) fn filling_text(self, what: &'static str, expected: &str, got: &str) -> Outcome {
        let named = |text: &str| if text.is_empty() { "0".to_string() } else { text.to_string() };
        let differs = expected != got && self.filled.is_none();
        let filled = differs.then(|| Filled { what, expected: named(expected), got: named(got) });
        Outcome { filled: filled.or(self.filled), ..self }
    }

    /// How it differs from what the script says.
    pub(super) fn against(&self, call: &Call) -> Option<String> {
        let same_value = match &call.result {
            Expression::Ellipsis => true,
            result => names::number(result) == Ok(self.value),
        };
        let same_error = call.errno.as_deref().is_none_or(|errno| Some(errno) == self.errno);
        if !same_value || !same_error {
            return Some(match self.errno {
                Some(errno) => format!("-1 {errno}"),
                None => self.value.to_string(),
            });
        }
        let filled = self.filled.as_ref()?;
        Some(format!("{} {} instead of {}", filled.what, filled.got, filled.expected))
    }
}

/// A call as a script writes it, without what it sets.
pub(super) fn said(call: &Call) -> String {
    let result = match &call.result {
        Expression::Int(value) => value.to_string(),
        Expression::Ellipsis => "...".into(),
        other => names::number(other).map_or_else(|name| name, |value| value.to_string()),
    };
    let errno = call.errno.as_deref().map(|errno| format!(" {errno}")).unwrap_or_default();
    format!("{}(..) = {result}{errno}", call.name)
}

/// A call that may have to wait.
#[derive(Clone, Debug)]
pub(super) enum Operation {
    /// It has returned already.
    Ended(Outcome),
    Connect {
        end: usize,
    },
    Accept {
        end: usize,
        descriptor: i64,
        nonblocking: bool,
    },
    Read {
        end: usize,
        bytes: u64,
        flags: i64,
        queue: Option<i64>,
    },
    Write {
        end: usize,
        bytes: u64,
        taken: u64,
        flags: i64,
        /// Where segments end whatever follows.
        borders: Vec<u64>,
    },
    Poll {
        wanted: Vec<(i64, i64, i64)>,
        deadline_ns: Option<u64>,
        at_once: bool,
    },
    EpollWait {
        epoll: i64,
        wanted: Vec<(i64, i64)>,
        most: usize,
        deadline_ns: Option<u64>,
        at_once: bool,
    },
}

pub(super) type Made = Result<Operation, String>;

/// A call with its arguments.
pub(super) struct Arguments<'a> {
    pub(super) call: &'a Call,
}

impl Arguments<'_> {
    pub(super) fn at(&self, index: usize) -> Result<&Expression, String> {
        self.call
            .arguments
            .get(index)
            .ok_or_else(|| format!("{} with too few arguments", self.call.name))
    }

    pub(super) fn number(&self, index: usize) -> Result<i64, String> {
        names::number(self.at(index)?)
    }

    /// The name that is there.
    pub(super) fn word(&self, index: usize) -> Result<&str, String> {
        match self.at(index)? {
            Expression::Word(word) => Ok(word),
            _ => Err(format!("{} with such an argument", self.call.name)),
        }
    }

    /// A field of the structure that is there.
    pub(super) fn field(&self, index: usize, name: &str) -> Option<&Expression> {
        field(self.call.arguments.get(index)?, name)
    }

    /// Bytes of the buffers in `[{..., 10}, {..., 20}]`.
    pub(super) fn buffers(list: &Expression) -> Result<u64, String> {
        let sizes = Self::sizes(list)?;
        Ok(sizes.into_iter().fold(0, u64::saturating_add))
    }

    /// The same, one by one.
    pub(super) fn sizes(list: &Expression) -> Result<Vec<u64>, String> {
        let Expression::List(all) = list else { return Err("buffers that are no list".into()) };
        let size = |buffer: &Expression| match buffer {
            Expression::Struct(parts) if parts.len() == 2 => {
                u64::try_from(names::number(&parts[1])?).map_err(|_| "a negative length".into())
            }
            _ => Err("a buffer of that form".to_string()),
        };
        all.iter().map(size).collect()
    }

    /// A call to read or write bytes at no place. What it should have waited for is not looked at.
    pub(super) fn has_bad_pointer(&self) -> bool {
        let names = ["read", "recv", "recvfrom", "write", "send", "sendto"];
        let is_null = |at: &Expression| matches!(at, Expression::Word(word) if word == "NULL");
        names.contains(&self.call.name.as_str())
            && self.call.arguments.get(1).is_some_and(is_null)
            && self.number(2).is_ok_and(|bytes| bytes > 0)
    }

    /// A number of bytes.
    pub(super) fn bytes_at(&self, index: usize) -> Result<u64, String> {
        u64::try_from(self.number(index)?).map_err(|_| "a negative length".into())
    }

    /// The length behind a buffer, which is `...`: any other is a bad pointer.
    pub(super) fn bytes(&self, index: usize) -> Result<u64, String> {
        if index > 0 && !matches!(self.at(index - 1)?, Expression::Ellipsis | Expression::Text(_)) {
            return Err(format!("{} of a buffer at a given place", self.call.name));
        }
        self.bytes_at(index)
    }
}

/// A field of a structure.
pub(super) fn field<'a>(structure: &'a Expression, name: &str) -> Option<&'a Expression> {
    let Expression::Struct(fields) = structure else { return None };
    fields.iter().find_map(|field| match field {
        Expression::Field(known, value) if known == name => Some(&**value),
        _ => None,
    })
}
