//! What is wrong with a scenario, and where.

use core::fmt;
use std::sync::Arc;

/// Where something was written.
#[derive(Clone, Debug, Default, Eq, Ord, PartialEq, PartialOrd)]
pub enum Place {
    /// Nowhere: it is a default, or what lacks a line.
    #[default]
    Unwritten,
    /// In the file; both count from 1, columns in characters.
    File {
        /// Line.
        line: usize,
        /// Column.
        column: usize,
    },
    /// In an override, as it was given.
    Set(Arc<str>),
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unwritten => Ok(()),
            Self::File { line, column } => write!(f, "line {line}, column {column}: "),
            Self::Set(text) => write!(f, "in `--set {text}`: "),
        }
    }
}

/// What is wrong with a scenario; reads well after "cannot read x.toml: ".
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct ScenarioError {
    /// Where.
    pub place: Place,
    /// What, likely why, and what to write instead.
    pub what: String,
}

impl ScenarioError {
    pub(super) fn new(place: &Place, what: impl Into<String>) -> Self {
        Self { place: place.clone(), what: what.into() }
    }

    /// A word that is none of `known`; `what` comes before the word, as `unknown step`.
    pub(super) fn unknown<'a>(
        place: &Place,
        what: &str,
        word: &str,
        known: impl IntoIterator<Item = &'a str>,
    ) -> Self {
        let known: Vec<_> = known.into_iter().collect();
        let advice = nearest(word, &known).map_or_else(
            || format!("known are {}", known.join(", ")),
            |near| format!("did you mean `{near}`?"),
        );
        Self::new(place, format!("{what} `{}`; {advice}", shown(word)))
    }
}

impl fmt::Display for ScenarioError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{}", self.place, self.what)
    }
}

impl core::error::Error for ScenarioError {}

/// A word as an error shows it: hostile text may be long.
pub(super) fn shown(word: &str) -> String {
    const LONGEST: usize = 60;
    match word.char_indices().nth(LONGEST) {
        Some((at, _)) => format!("{}...", &word[..at]),
        None => word.to_owned(),
    }
}

/// The known word that `word` most likely meant, if any is near: a third of its letters differ.
pub fn nearest<'a>(word: &str, known: &[&'a str]) -> Option<&'a str> {
    if word.len() > 64 {
        return None;
    }
    let ranked = known.iter().map(|known| (distance(word, known), *known));
    ranked.min().filter(|(far, known)| *far <= known.len().max(3) / 3).map(|(_, known)| known)
}

/// Letters to insert, delete, replace or swap with a neighbour (restricted Damerau-Levenshtein).
fn distance(a: &str, b: &str) -> usize {
    let (a, b): (Vec<char>, Vec<char>) =
        (a.to_lowercase().chars().collect(), b.to_lowercase().chars().collect());
    let mut rows = vec![vec![0; b.len() + 1]; a.len() + 1];
    for (i, row) in rows.iter_mut().enumerate() {
        row[0] = i;
    }
    rows[0] = (0..=b.len()).collect();
    for i in 1..=a.len() {
        for j in 1..=b.len() {
            let differ = usize::from(a[i - 1] != b[j - 1]);
            let mut least =
                (rows[i - 1][j] + 1).min(rows[i][j - 1] + 1).min(rows[i - 1][j - 1] + differ);
            if i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] {
                least = least.min(rows[i - 2][j - 2] + 1);
            }
            rows[i][j] = least;
        }
    }
    rows[a.len()][b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slips_of_the_finger_find_the_word() {
        let known = ["rtt", "rate", "queue", "loss", "jitter"];
        assert_eq!(nearest("queu", &known), Some("queue"));
        assert_eq!(nearest("rtate", &known), Some("rate"));
        assert_eq!(nearest("qeuue", &known), Some("queue"));
        assert_eq!(nearest("Loss", &known), Some("loss"));
        assert_eq!(nearest("bandwidth", &known), None);
    }
}
