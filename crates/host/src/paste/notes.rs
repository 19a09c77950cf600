//! How a text was read: what was not understood of it, and what contradicts itself.

use std::collections::BTreeSet;

/// How many of the lines that were not understood are kept. Ours: they are for a person to read.
pub(super) const KEPT: usize = 10;
/// How a pasted text was read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Notes {
    /// Lines that are part of some tool's output.
    pub read: u64,
    /// Lines that are not, without those that are blank, comments or commands.
    pub unknown: u64,
    /// A date in it is earlier than one above: its looks are not in the order of their times.
    pub backwards: bool,
    /// Hosts whose prompts it has: of more than one it is no picture of any.
    pub hosts: BTreeSet<String>,
    /// The first of these, and of those that were known and could not be used.
    pub first: Vec<Note>,
    /// Settings told again with another value.
    pub differ: u64,
    /// The first of these lines.
    pub differing: Vec<Note>,
}

/// A line that was not read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Note {
    /// Its number, from 1.
    pub line: u64,
    /// How it begins.
    pub text: String,
    /// Why it could not be used; `None` where it was not understood at all.
    pub why: Option<String>,
}

impl Notes {
    pub(super) fn unknown(&mut self, number: u64, text: &str) {
        self.unknown += 1;
        self.remark(number, text, None);
    }

    pub(super) fn remark(&mut self, line: u64, text: &str, why: Option<String>) {
        if self.first.len() < KEPT {
            self.first.push(Note::new(line, text, why));
        }
    }

    pub(super) fn differs(&mut self, line: u64, text: &str, why: String) {
        self.read += 1;
        self.differ += 1;
        if self.differing.len() < KEPT {
            self.differing.push(Note::new(line, text, Some(why)));
        }
    }
}

impl Note {
    pub(super) fn new(line: u64, text: &str, why: Option<String>) -> Self {
        Self { line, text: text.trim().chars().take(80).collect(), why }
    }
}
