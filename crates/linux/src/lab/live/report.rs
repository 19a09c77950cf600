//! What the stage tells the lab: one line of JSON on standard output.

use std::io::Write as _;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use super::stage::Trouble;
use crate::lab::backend::{LabError, Manifest, Refusal};

/// How it went.
#[derive(Debug, Deserialize, Serialize)]
pub(super) enum Report {
    /// The plan can be carried out.
    Possible,
    /// It was carried out.
    Done(Box<Manifest>),
    /// The hosts and the path stand, until the lab ends.
    Open(Doors),
    /// It was not, or not to its end.
    Trouble(Trouble),
}

/// Ways into the hosts: files that setns(2) takes.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
pub struct Doors {
    /// The user namespace that owns them, where it took one.
    pub users: Option<PathBuf>,
    /// The client's network.
    pub client: PathBuf,
    /// The server's.
    pub server: PathBuf,
}

impl Report {
    /// Tells it.
    pub(super) fn tell(&self) {
        let mut out = std::io::stdout().lock();
        // If nobody listens any more, nobody needs it.
        let _ = serde_json::to_writer(&mut out, self);
        let _ = out.write_all(b"\n").and_then(|()| out.flush());
    }

    /// Hears it; none if the stage ended without a word.
    pub(super) fn hear(text: &str) -> Option<Self> {
        text.lines().rev().find_map(|line| serde_json::from_str(line).ok())
    }
}

impl Trouble {
    /// As the lab's users know it.
    pub(super) fn into_error(self, backend: &str) -> LabError {
        match self {
            Self::Refused { what, why, instead } => {
                LabError::Refused(Refusal { backend: backend.to_owned(), what, why, instead })
            }
            Self::Missing { doing, why, advice } => LabError::Missing { doing, why, advice },
            Self::Ended { why, advice } => LabError::Ended { why, advice },
            Self::File { path, why, errno } => LabError::File {
                doing: "write",
                path: PathBuf::from(path),
                source: errno
                    .map_or_else(|| std::io::Error::other(why), std::io::Error::from_raw_os_error),
            },
        }
    }
}

impl From<LabError> for Trouble {
    fn from(error: LabError) -> Self {
        match error {
            LabError::File { path, source, .. } => Self::File {
                path: path.display().to_string(),
                why: source.to_string(),
                errno: source.raw_os_error(),
            },
            LabError::Refused(refusal) => {
                Self::Refused { what: refusal.what, why: refusal.why, instead: refusal.instead }
            }
            LabError::Missing { doing, why, advice } => Self::Missing { doing, why, advice },
            LabError::Ended { why, advice } => Self::Ended { why, advice },
            LabError::Interrupted => Self::Ended { why: error.to_string(), advice: String::new() },
        }
    }
}
