//! What a check says.

use serde::{Deserialize, Serialize};

/// How bad it is.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    /// Worth knowing.
    #[default]
    Info,
    /// It costs time or will.
    Warning,
    /// Data is lost, connections fail, or the rate is capped.
    Error,
}

/// How sure we are.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(rename_all = "lowercase")]
pub enum Confidence {
    /// One of several explanations, or counters since the start of the host.
    Low,
    /// Likely.
    #[default]
    Medium,
    /// The kernel says so.
    High,
}

/// What is in the way. The order is that of the report.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(rename_all = "snake_case")]
pub enum Group {
    /// Connections are refused, dropped or slow to open.
    Connecting,
    /// The receiver's buffers and windows.
    Receiving,
    /// Send buffers, initial windows, pacing.
    Sending,
    /// Losses, timeouts and congestion control.
    Losses,
    /// Interfaces, rings and queueing disciplines.
    Queues,
    /// Processors, memory, disks, neighbours of a virtual machine.
    Host,
    /// Connections that do not close.
    Closing,
    /// Routes and addresses.
    Routing,
    /// Settings that do nothing, contradict one another or are old. Shown with `--all`.
    #[default]
    Hygiene,
}

/// Whose it is.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "kind", content = "name")]
pub enum Scope {
    /// The whole host: not visible or not changeable from another network namespace.
    #[default]
    Host,
    /// This network namespace.
    Netns,
    /// An interface.
    Interface(String),
    /// A listener, by its address.
    Listener(String),
    /// A process.
    Process(String),
    /// A peer or a route.
    Peer(String),
}

/// A value that was seen.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Evidence {
    /// Where it can be read again: `/proc/net/netstat TcpExt.ListenOverflows`, `ss -ltn`.
    pub source: String,
    /// What it said.
    pub value: String,
}

/// A change that would help.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Fix {
    /// What to do, in words.
    pub what: String,
    /// What it costs or may break.
    pub risk: String,
    /// The setting that it changes, its value now and then; `None` where no setting does it.
    pub set: Option<Change>,
    /// For whom it works: `at once`, `for new connections`, `for new listeners`, `after a restart of NAME`.
    pub applies: String,
}

/// A change of a setting that can be carried out and taken back. Commands are made from it in one place.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "of")]
pub enum Change {
    /// `sysctl -w KEY='TO'`, and a line in a file of sysctl.d(5).
    Sysctl {
        /// `net.ipv4.tcp_rmem`.
        key: String,
        /// The value that was seen.
        from: String,
        /// The value proposed.
        to: String,
    },
    /// `ip route replace LINE`.
    Route {
        /// The line that was seen.
        from: String,
        /// The line proposed.
        to: String,
        /// Of IPv6.
        ipv6: bool,
    },
    /// `ethtool OPTION DEV WORDS`.
    Ethtool {
        /// The interface.
        dev: String,
        /// `-G`, `-K`, `-L`, `-C`, `-A`.
        option: String,
        /// `rx 256`.
        from: String,
        /// `rx 1024`.
        to: String,
    },
    /// `tc qdisc replace dev DEV root WORDS`, or `tc qdisc del dev DEV root`.
    Qdisc {
        /// The interface.
        dev: String,
        /// The root that was seen: its kind, its parameters, and its handle (0: nobody asked for it).
        from: String,
        /// Its handle.
        handle: u32,
        /// The root proposed; empty: none, so that the kernel's default comes back.
        to: String,
    },
    /// Writing a file below `/sys` or `/proc` that is no sysctl.
    File {
        /// The file.
        path: String,
        /// The value that was seen.
        from: String,
        /// The value proposed.
        to: String,
    },
    /// `ip link set dev DEV WORDS`.
    Link {
        /// The interface.
        dev: String,
        /// `mtu 9000`.
        from: String,
        /// `mtu 1500`.
        to: String,
    },
    /// `ip tcp_metrics delete PEER`: what the kernel remembers cannot be put back, and is learned anew.
    Forget {
        /// The peer.
        peer: String,
        /// What it remembered.
        from: String,
    },
}

/// Something found.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Finding {
    /// Stable code; `tcpwhy doc CODE` explains it.
    pub code: String,
    /// How bad.
    pub severity: Severity,
    /// How sure.
    pub confidence: Confidence,
    /// What is in the way.
    pub group: Group,
    /// Whose it is.
    pub scope: Scope,
    /// One line.
    pub title: String,
    /// Why it matters here: the rule with this host's numbers.
    pub why: String,
    /// What it does not prove.
    pub not: String,
    /// What was seen, and where.
    pub evidence: Vec<Evidence>,
    /// What would help, best first.
    pub fixes: Vec<Fix>,
    /// Of the fixes that settings make, this many belong to the first one and follow it: none helps in full
    /// without the others. Those after them are other ways to the same end.
    pub with_first: usize,
    /// What would have made it surer, and was not seen.
    pub unseen: Vec<String>,
}

/// The fixes of a finding that settings make.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Ways<'a> {
    /// The best way: all of these together.
    pub(crate) first: Vec<&'a Fix>,
    /// What would do instead.
    pub(crate) others: Vec<&'a Fix>,
}

impl Finding {
    /// What belongs together, and what would do instead.
    pub(crate) fn ways(&self) -> Ways<'_> {
        let mut first: Vec<&Fix> = self.fixes.iter().filter(|fix| fix.set.is_some()).collect();
        let others = first.split_off(first.len().min(self.with_first.saturating_add(1)));
        Ways { first, others }
    }

    /// All that settings make belongs together.
    pub(super) fn all_together(mut self) -> Self {
        let settings = self.fixes.iter().filter(|fix| fix.set.is_some()).count();
        self.with_first = settings.saturating_sub(1);
        self
    }
}

impl Evidence {
    /// `value` as `source` said it.
    pub fn new(source: impl Into<String>, value: impl Into<String>) -> Self {
        Self { source: source.into(), value: value.into() }
    }
}
