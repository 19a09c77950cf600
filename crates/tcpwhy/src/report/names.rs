//! What people call a connection and its requests by.

use serde::{Deserialize, Serialize};

use super::Text;

/// Names of a connection, as far as the capture tells them in clear. Bytes that belong in no URI are escaped as `%1B`.
#[derive(Clone, Debug, Default, Eq, PartialEq, Serialize, Deserialize)]
pub struct Names {
    /// The server's name.
    pub server: Option<String>,
    /// Where that stood: `sni` (TLS), `dns` (an answer of a name server), `http_host`.
    pub server_by: Option<Text>,
    /// What the server's port is registered for or known to be used for: `https`, `postgresql`. It proves nothing.
    pub service: Option<Text>,
    /// The version of TLS that the server took.
    pub tls_version: Option<Text>,
    /// The protocol that the server chose (ALPN), where it is in clear: before TLS 1.3.
    pub alpn: Option<String>,
    /// The protocols that the client offered (ALPN), eight at most.
    pub alpn_offered: Vec<String>,
    /// The programs that held the client's and the server's socket, where a recording tells.
    #[serde(default)]
    pub programs: [Option<String>; 2],
}

/// An HTTP/1 request in clear.
#[derive(Clone, Debug, Default, Eq, PartialEq, Serialize, Deserialize)]
pub struct Http {
    /// Its method.
    pub method: Text,
    /// Its target without the query, cut to 120 characters.
    pub target: String,
    /// The status of its answer; `None` if none was seen.
    pub status: Option<u16>,
}
