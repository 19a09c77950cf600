//! What would make a connection faster, as its first screen ranks it; for tables.

use super::faster;
use crate::answer;
use crate::report::{Connection, Gain, Sure};

/// A change that would help.
#[derive(Clone, Debug, PartialEq)]
pub struct Change {
    /// Who does what: `server: route with initcwnd 44`.
    pub label: String,
    /// The code of the finding that it is against.
    pub code: String,
    /// How sure the finding is; `None` for one of the connection as a whole.
    pub sure: Option<Sure>,
    /// What it would save.
    pub gain: Gain,
    /// The command that does it, if there is one.
    pub command: Option<String>,
}

impl Change {
    /// The same without its value: what is alike on many connections.
    pub fn kind(&self) -> &str {
        self.label.trim_end_matches(|c: char| c.is_ascii_digit()).trim_end()
    }
}

/// The changes that would help, the best first.
pub fn changes(connection: &Connection) -> Vec<Change> {
    let causes = answer::causes(connection);
    let faster = faster::list(connection, &causes);
    let helping = faster.changes.iter().filter(|change| faster::helps(change, faster.now));
    let of = |change: &answer::change::Change<'_>| {
        let cause = causes.iter().find(|cause| cause.code == change.code);
        Some(Change {
            label: change.label.clone(),
            code: change.code.to_owned(),
            sure: cause.and_then(|cause| cause.sure),
            gain: change.gain?,
            command: change.command.map(str::to_owned),
        })
    };
    helping.filter_map(of).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changes_of_a_kind_differ_in_their_value() {
        let change = |label: &str| Change {
            label: label.to_owned(),
            code: String::new(),
            sure: None,
            gain: Gain::default(),
            command: None,
        };
        assert_eq!(change("server: route with initcwnd 44").kind(), "server: route with initcwnd");
        assert_eq!(change("both: window scaling").kind(), "both: window scaling");
    }
}
