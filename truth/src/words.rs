//! How often each word of a report's certainty is right.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::classes::Fit;

/// What was said so sure, the surest first.
pub const WORDS: [&str; 3] = ["shown", "likely", "possible"];

/// Time that was said to be one state, by word and that state; what is not decided is no claim. All times in nanoseconds.
#[derive(Clone, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
pub struct Words {
    by_word: BTreeMap<String, BTreeMap<String, [u64; 2]>>,
}

impl Words {
    /// Takes in that a report said `state` in this `word`.
    pub(crate) fn book(&mut self, word: &str, state: &str, fit: Fit, ns: u64) {
        if state == "unknown" || ns == 0 {
            return;
        }
        let own = self.by_word.entry(word.to_owned()).or_default();
        let [right, said] = own.entry(state.to_owned()).or_default();
        *said += ns;
        *right += if fit <= Fit::Wide { ns } else { 0 };
    }

    /// Adds those of another run.
    pub(crate) fn add(&mut self, other: &Self) {
        for (word, rows) in &other.by_word {
            let own = self.by_word.entry(word.clone()).or_default();
            for (state, [right, said]) in rows {
                let row = own.entry(state.clone()).or_default();
                row[0] += right;
                row[1] += said;
            }
        }
    }

    /// Of what was said in this word: what was right, and all.
    pub fn of(&self, word: &str) -> [u64; 2] {
        let rows = self.by_word.get(word).into_iter().flat_map(BTreeMap::values);
        rows.fold([0, 0], |[right, said], row| [right + row[0], said + row[1]])
    }

    /// The same by state, what was wrong for longest first.
    pub fn states(&self, word: &str) -> Vec<(&str, [u64; 2])> {
        let rows = self.by_word.get(word).into_iter().flatten();
        let mut rows: Vec<_> = rows.map(|(state, row)| (state.as_str(), *row)).collect();
        rows.sort_by_key(|(state, [right, said])| (core::cmp::Reverse(said - right), *state));
        rows
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_word_is_as_good_as_what_was_said_in_it() {
        let mut one = Words::default();
        one.book("shown", "rwnd.cap", Fit::Narrow, 60);
        one.book("shown", "rwnd.cap", Fit::Wide, 30);
        one.book("shown", "app", Fit::Alternative, 10);
        one.book("possible", "unknown", Fit::Alternative, 99);
        let mut sum = one.clone();
        sum.add(&one);
        assert_eq!(sum.of("shown"), [180, 200]);
        assert_eq!(sum.of("possible"), [0, 0], "it claims nothing");
        assert_eq!(sum.states("shown"), [("app", [0, 20]), ("rwnd.cap", [180, 180])]);
    }
}
