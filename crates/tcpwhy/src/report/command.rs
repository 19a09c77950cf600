//! The command that `tcpwhy record` recorded, and where its time went.

use serde::{Deserialize, Serialize};

/// A command, from its start to its end.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Command {
    /// Its program; arguments are not recorded.
    pub program: String,
    /// When it was started: RFC 3339.
    pub start: String,
    /// From there to its end.
    pub duration_ns: i64,
    /// Its exit status; `None` if a signal ended it, or it went on when the recording ended.
    pub status: Option<i64>,
    /// The signal that ended it.
    pub signal: Option<i64>,
    /// Where its time went.
    pub spent: Spent,
}

/// Where the time of a command went. Each instant counts once, so the fields add up to its duration;
/// where several things went on at once, the one that comes last here counts, `rest_ns` apart.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq, Serialize, Deserialize)]
pub struct Spent {
    /// Before the first packet of all.
    pub start_ns: i64,
    /// A name was asked for.
    pub dns_ns: i64,
    /// A connection was being opened.
    pub connect_ns: i64,
    /// TLS was being agreed on.
    pub tls_ns: i64,
    /// A request was on its way, and the first byte of the response on its way back.
    pub request_ns: i64,
    /// The server had the request and had not begun to respond.
    pub server_ns: i64,
    /// A response, or data without a request, was on its way.
    pub transfer_ns: i64,
    /// None of these: the command itself.
    pub rest_ns: i64,
}

impl Spent {
    /// The sum of all.
    pub const fn total_ns(&self) -> i64 {
        self.start_ns
            + self.dns_ns
            + self.connect_ns
            + self.tls_ns
            + self.request_ns
            + self.server_ns
            + self.transfer_ns
            + self.rest_ns
    }
}
