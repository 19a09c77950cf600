//! Flags of `tcpwhy check`.

use std::net::IpAddr;
use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, ValueEnum};
use tcpwhy::host::Severity;
use tcpwhy_model::scenario::Quantity;

use crate::flags::Color;
use crate::number;
use crate::rate::PathRate;

/// What is shown below the flags.
pub const AFTER: &str = "\
Nothing is changed. Counters are read twice, ten seconds apart, for what happened since the host started may be
long over.

  sudo tcpwhy check
  sudo tcpwhy check --save web-1.json      # on the host; then anywhere: tcpwhy check web-1.json
  sudo tcpwhy check --netns 4711           # the network namespace of a container's process
  ssh host 'sysctl -a; ss -tinm; nstat -az' 2>/dev/null | tcpwhy check -
  tcpwhy check --path 10.0.0.7 --rate 1gbit --rtt 20ms
  tcpwhy check --path 10.0.0.7 --capture slow.pcap
  sudo tcpwhy check --queues eth0 --rate 5mbit
  sudo tcpwhy check --script /tmp/tcp      # fix.sh and rollback.sh

Exit status: 0 judged, 1 something as bad as --fail-on says, 2 wrong usage, 3 input that cannot be read.";

/// Flags of `tcpwhy check`.
#[derive(Args, Debug)]
#[expect(clippy::struct_excessive_bools, reason = "each is a flag of its own")]
pub struct CheckFlags {
    /// A snapshot that --save wrote, or what commands printed, as it was pasted: sysctl, ss, nstat, netstat -s,
    /// ethtool, ip, tc, dmesg, `/proc/net/softnet_stat`; `-` for standard input [default: this host]
    #[arg(value_name = "FILE", conflicts_with_all = ["apart", "netns", "save", "socket", "drops"])]
    pub file: Option<PathBuf>,

    /// Time between the two looks: 500ms, 10s, 5m; 0 looks once [default: 10s]
    #[arg(long = "for", value_name = "TIME", value_parser = apart)]
    pub apart: Option<Duration>,
    /// Look at another network namespace: a name of `ip netns`, a process's number, or a file
    #[arg(long, value_name = "NAME|PID")]
    pub netns: Option<String>,
    /// Ask one socket for what only its owner sees (buffers locked by the program, `TCP_NODELAY`): process and
    /// descriptor, as `ss -tp` prints them
    ///
    /// The descriptor is copied for a moment: a close by the program at that instant sends its FIN when the copy
    /// is gone.
    #[arg(long, value_name = "PID:FD", value_parser = socket)]
    pub socket: Option<(u32, u32)>,
    /// Count the packets that the kernel drops between the two looks, by its own reasons (root, Linux 5.17)
    #[arg(long)]
    pub drops: bool,
    /// Write what was seen to a file; `tcpwhy check FILE` judges it anywhere
    #[arg(long, value_name = "FILE")]
    pub save: Option<PathBuf>,
    /// Write over a snapshot that is there
    #[arg(long, requires = "save")]
    pub force: bool,

    /// Show the path inside this host through an interface: what waits where, its limits, drops, and the
    /// longest delay, at --rate or the speed of its link
    #[arg(long, value_name = "DEV", conflicts_with_all = ["path", "script", "fail_on"])]
    pub queues: Option<String>,
    /// What a path to this address asks of this host, and what the model makes of today's settings
    #[arg(long, value_name = "ADDRESS", value_parser = number::host, conflicts_with_all = ["script", "fail_on"])]
    pub path: Option<IpAddr>,
    /// A capture of connections to that address, for what --rate and --rtt do not say
    #[arg(long, value_name = "FILE", requires = "path")]
    pub capture: Option<PathBuf>,
    /// The rate of the path or the interface: 1gbit, 100mbit [default: what the capture shows or open connections to
    /// that address have reached, or the speed of the link]
    #[arg(long, value_name = "RATE")]
    pub rate: Option<PathRate>,
    /// Its round trip: 20ms [default: the least of the capture, or of open connections to it]
    #[arg(long, value_name = "TIME", value_parser = rtt, requires = "path")]
    pub rtt: Option<u64>,

    /// Show also settings that do nothing or are old, what TCP counted, and which checks found nothing
    #[arg(long)]
    pub all: bool,
    /// Print the answer as JSON, in the form of docs/check.schema.json
    #[arg(long)]
    pub json: bool,
    /// Write a page for the browser into this file (`-` for standard output)
    #[arg(long, value_name = "FILE", conflicts_with_all = ["json", "queues", "path", "script"])]
    pub html: Option<PathBuf>,
    /// Exit with status 1 if something at least as bad was found
    #[arg(long, value_name = "SEVERITY")]
    pub fail_on: Option<FailOn>,
    /// Write fix.sh and rollback.sh into a folder
    #[arg(long, value_name = "DIR")]
    pub script: Option<PathBuf>,
    /// List all checks
    #[arg(long, exclusive = true)]
    pub list: bool,

    /// Colour the text
    #[arg(long, value_name = "WHEN", value_enum, default_value_t)]
    pub color: Color,
    /// Columns of the text [default: the terminal's, 100 elsewhere]
    #[arg(long, value_name = "COLUMNS", value_parser = number::width)]
    pub width: Option<u16>,
}

/// The least severity that fails.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub enum FailOn {
    /// Anything at all.
    Info,
    /// What costs time or will.
    Warning,
    /// Lost data, failing connections, a capped rate.
    Error,
}

impl From<FailOn> for Severity {
    fn from(limit: FailOn) -> Self {
        match limit {
            FailOn::Info => Self::Info,
            FailOn::Warning => Self::Warning,
            FailOn::Error => Self::Error,
        }
    }
}

/// As `record --for`, and 0 for one look only.
fn apart(text: &str) -> Result<Duration, String> {
    if matches!(text, "0" | "0s") { Ok(Duration::ZERO) } else { number::duration(text) }
}

/// Reads `20ms` as nanoseconds.
fn rtt(text: &str) -> Result<u64, String> {
    Quantity::Time.read(text).map_err(|error| error.to_string())
}

/// Reads `4711:12`.
fn socket(text: &str) -> Result<(u32, u32), String> {
    let read = || {
        let (pid, fd) = text.split_once([':', ','])?;
        Some((pid.parse().ok().filter(|pid| *pid > 0)?, fd.parse().ok()?))
    };
    read().ok_or_else(|| "give process and descriptor as `ss -tp` prints them: 4711:12".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_socket_is_named_by_process_and_descriptor() {
        assert_eq!(socket("4711:12"), Ok((4711, 12)));
        for odd in ["", "4711", "0:1", "x:1", "1:", ":1"] {
            assert!(socket(odd).is_err(), "{odd}");
        }
    }

    #[test]
    fn no_time_is_one_look() {
        assert_eq!(apart("0"), Ok(Duration::ZERO));
        assert_eq!(apart("250ms"), Ok(Duration::from_millis(250)));
        assert!(apart("-1s").is_err() && apart("5").is_err());
    }
}
