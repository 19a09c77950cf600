//! Sets of labels, a bounded number of them.

use std::collections::HashMap;
use std::sync::Arc;

use tcpwhy_words::page::harmless;

/// What has no set of its own.
pub(super) const OTHER: &str = "other";

/// Characters of a label at most. Ours: the path of a pod in Kubernetes fits in.
const LONGEST: usize = 128;

/// Looks without a connection after which a set may be taken for another. Ours: ten minutes at one look a second.
const FORGET: u64 = 600;

/// What a group of connections is told apart by.
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
pub(super) struct Labels {
    /// A port on which this host listens, or the name that it was given; `ephemeral` where this host connected.
    pub port: Arc<str>,
    /// Whose socket it is.
    pub cgroup: Arc<str>,
    /// Who is at the other end.
    pub peer: Arc<str>,
}

impl Labels {
    /// Of these words, as they can be shown.
    pub(super) fn of(port: &str, cgroup: &str, peer: &str) -> Self {
        let [port, cgroup, peer] = [port, cgroup, peer].map(|word| Arc::from(label(word)));
        Self { port, cgroup, peer }
    }
}

/// `word` as a label: without what a terminal or a page obeys, and not too long.
pub(super) fn label(word: &str) -> String {
    word.chars().take(LONGEST).map(harmless).collect()
}

/// The sets that there are. The first one is of what no longer has a place.
#[derive(Clone, Debug)]
pub(super) struct Groups {
    by: HashMap<Labels, usize>,
    all: Vec<Labels>,
    /// When each was last in use.
    used: Vec<u64>,
    limit: usize,
}

/// A place among the sets.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Place {
    /// It had one.
    Known(usize),
    /// It got one, which may have been another's.
    New(usize),
    /// There was none left.
    Full,
}

impl Groups {
    pub(super) fn new(limit: usize) -> Self {
        let other = Labels::of(OTHER, OTHER, OTHER);
        Self { by: HashMap::from([(other.clone(), 0)]), all: vec![other], used: vec![0], limit }
    }

    /// The place of `labels` at `look`.
    pub(super) fn place(&mut self, labels: Labels, look: u64) -> Place {
        if let Some(at) = self.by.get(&labels) {
            self.used[*at] = look;
            return Place::Known(*at);
        }
        let at = if self.all.len() <= self.limit {
            self.all.push(labels.clone());
            self.used.push(look);
            self.all.len() - 1
        } else {
            let idle = (1..self.all.len()).min_by_key(|at| self.used[*at]);
            let Some(at) = idle.filter(|at| self.used[*at] + FORGET <= look) else {
                return Place::Full;
            };
            self.by.remove(&self.all[at]);
            self.all[at] = labels.clone();
            self.used[at] = look;
            at
        };
        self.by.insert(labels, at);
        Place::New(at)
    }

    /// The set at `at` is in use.
    pub(super) fn uses(&mut self, at: usize, look: u64) {
        self.used[at] = look;
    }

    pub(super) fn labels(&self) -> &[Labels] {
        &self.all
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(port: &str) -> Labels {
        Labels::of(port, "", "")
    }

    #[test]
    fn what_finds_no_place_is_other_until_one_was_long_idle() {
        let mut groups = Groups::new(2);
        assert_eq!(groups.place(of("a"), 1), Place::New(1));
        assert_eq!(groups.place(of("b"), 1), Place::New(2));
        assert_eq!(groups.place(of("a"), 1), Place::Known(1));
        assert_eq!(groups.place(of("c"), 2), Place::Full);
        groups.uses(2, FORGET);
        assert_eq!(groups.place(of("c"), FORGET), Place::Full, "one look too early");
        assert_eq!(groups.place(of("c"), FORGET + 1), Place::New(1));
        assert_eq!(groups.labels()[1], of("c"));
        assert_eq!(groups.place(of("a"), FORGET + 1), Place::Full);
    }

    #[test]
    fn labels_have_no_control_characters_and_an_end() {
        assert_eq!(label("a\nb\u{1b}[31m\u{85}"), "a b\u{fffd}[31m\u{fffd}");
        assert_eq!(label(&"ü".repeat(200)).chars().count(), 128);
    }
}
