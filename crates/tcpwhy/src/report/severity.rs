//! Is something wrong?

use serde::{Deserialize, Serialize};

/// Whether a finding tells of something that is wrong, whatever time it took.
#[derive(Clone, Copy, Debug, Default, Eq, Ord, PartialEq, PartialOrd, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Severity {
    /// Good to know.
    #[default]
    Note,
    /// It works as designed, and takes time: distance, slow start, a full link.
    Limit,
    /// A setting, a program or a device works against the transfer.
    Wrong,
    /// It did not work: no answer, refused, a peer that is gone.
    Broken,
}

impl Severity {
    /// All of them, the least first.
    pub const ALL: [Self; 4] = [Self::Note, Self::Limit, Self::Wrong, Self::Broken];

    /// As reports have it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Note => "note",
            Self::Limit => "limit",
            Self::Wrong => "wrong",
            Self::Broken => "broken",
        }
    }
}
