//! Names that were asked for before connections were opened.

use core::net::{IpAddr, SocketAddr};

use serde::{Deserialize, Serialize};

use super::Text;

/// A question to a name server and its answer (DNS over UDP).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Lookup {
    /// The name asked for.
    pub name: String,
    /// What of it: `A`, `AAAA`, or `TYPE65` and the like.
    pub kind: Text,
    /// Who asked.
    pub client: SocketAddr,
    /// Who was asked.
    pub resolver: SocketAddr,
    /// Capture time of the first question: RFC 3339.
    pub start: String,
    /// The question's number in its message.
    #[serde(default)]
    pub id: u16,
    /// How often the question was sent.
    pub asked: u64,
    /// First question to the last one that repeats it; 0 where it was sent once.
    #[serde(default)]
    pub last_asked_ns: i64,
    /// First question to first answer; `None` without one.
    pub duration_ns: Option<i64>,
    /// `NOERROR`, `NXDOMAIN` and so on; `None` without an answer.
    pub answer: Option<Text>,
    /// Addresses in the answer, as far as it was captured.
    pub addresses: Vec<IpAddr>,
    /// Frame of the first question.
    pub frame: u64,
}
