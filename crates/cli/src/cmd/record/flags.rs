//! Flags of `tcpwhy record`, and what they mean.

use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::Args;
use tcpwhy_linux::record::recording::{Options, Scope};

use crate::number;
use crate::recording::is_stdout;

/// The text below the flags.
pub const AFTER: &str = "Examples:
  tcpwhy record -- curl -s https://www.example.com/    a command, with all that it starts
  tcpwhy record --pid 4711 --for 30s                   a process that runs already
  tcpwhy record --port 5432 --host 10.0.0.7            connections by their ends
  tcpwhy record --for 10s -o all.pcapng                all TCP of this host for 10 s
  ssh host tcpwhy record -o - -- curl -s URL | tcpwhy -

Without a command, a process, a port or an address it records all TCP of this host until Ctrl-C. Packets
take root or CAP_NET_RAW. `tcpwhy FILE` explains the recording again, anywhere.";

/// Flags of `tcpwhy record`.
#[derive(Args, Debug, Default)]
pub struct RecordFlags {
    /// The command whose connections are recorded, with its arguments, which are not recorded
    #[arg(value_name = "COMMAND", trailing_var_arg = true, allow_hyphen_values = true)]
    pub command: Vec<String>,

    /// File to write; `-` for standard output, and no explanation: what the command prints goes to
    /// standard error then [default: tcpwhy-DATE-TIME.pcapng]
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,
    /// Write a page for the browser, too, with graphs of what was recorded
    #[arg(long, value_name = "FILE")]
    pub html: Option<PathBuf>,
    /// Write over a file that is there
    #[arg(long)]
    pub force: bool,

    /// Make a capture of what a recording left in this folder (usually .) when it was killed, and explain it
    #[arg(long, value_name = "DIR", conflicts_with_all = ["command", "output", "pid", "ports", "hosts", "duration"])]
    pub recover: Option<PathBuf>,

    /// Record the connections of this process and its descendants
    #[arg(long, value_name = "N", value_parser = number::process, conflicts_with_all = ["command", "ports", "hosts"])]
    pub pid: Option<u32>,
    /// Record connections from or to this port; may be given several times
    #[arg(long = "port", value_name = "N", value_parser = number::port, conflicts_with = "command")]
    pub ports: Vec<u16>,
    /// Record connections from or to this address; may be given several times
    #[arg(long = "host", value_name = "ADDRESS", value_parser = number::host, conflicts_with = "command")]
    pub hosts: Vec<IpAddr>,
    /// End after this time: 500ms, 30s, 5m [default: with the command, or on Ctrl-C]
    #[arg(long = "for", value_name = "TIME", value_parser = number::duration)]
    pub duration: Option<Duration>,

    /// Interface to capture on
    #[arg(long, value_name = "NAME", default_value = "any")]
    pub interface: String,
    /// Bytes kept of each packet, from its IP header on: 100 hold all of TCP's; of DNS more is kept
    #[arg(long, value_name = "BYTES", default_value_t = 100, value_parser = number::snap_length)]
    pub snaplen: u32,
    /// End the capture at this size, and go on without packets: 500K, 256M, 2G
    #[arg(long, value_name = "SIZE", default_value = "256M", value_parser = number::size)]
    pub max_size: u64,
}

impl RecordFlags {
    /// What is to be recorded, with room for what is not yet narrowed in `spool`.
    pub(super) fn options(&self, spool: &Path) -> Options {
        let scope = match (self.command.is_empty(), self.pid) {
            (false, _) => Scope::Command,
            (true, Some(process)) => Scope::Process(process),
            (true, None) => Scope::Ends { ports: self.ports.clone(), hosts: self.hosts.clone() },
        };
        Options {
            interface: self.interface.clone(),
            snap_length: self.snaplen,
            max_bytes: self.max_size,
            scope,
            spool: spool.to_owned(),
        }
    }
}

impl RecordFlags {
    /// What is recorded without a command, until when and where to.
    pub(super) fn in_words(&self, path: &Path) -> String {
        let ends = self.ports.iter().map(|port| format!("port {port}"));
        let ends: Vec<_> = ends.chain(self.hosts.iter().map(ToString::to_string)).collect();
        let whose = match (self.pid, &ends[..]) {
            (Some(process), _) => {
                format!("the TCP connections of process {process} and its descendants")
            }
            (None, []) => "all TCP connections of this host".to_owned(),
            (None, _) => format!("TCP connections from or to {}", ends.join(" or ")),
        };
        let place = match &*self.interface {
            "any" => String::new(),
            interface => format!(" on {interface}"),
        };
        let until = match self.duration {
            Some(time) => format!("for {}; Ctrl-C ends it sooner", seconds(time)),
            None => "until you end it: Ctrl-C ends it".to_owned(),
        };
        let then = if is_stdout(path) {
            "and prints the recording".to_owned()
        } else {
            format!("and explains what is in {}", path.display())
        };
        let most = self.max_size >> 20;
        format!("recording {whose}{place}, at most {most} MiB of packets, {until} {then}")
    }
}

/// `30 s`, `0.5 s`
fn seconds(time: Duration) -> String {
    format!("{} s", time.as_secs_f64())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_recorded_is_said_before_it_is() {
        let plain = RecordFlags {
            interface: "any".to_owned(),
            max_size: 256 << 20,
            ..RecordFlags::default()
        };
        assert_eq!(
            plain.in_words(Path::new("x.pcapng")),
            "recording all TCP connections of this host, at most 256 MiB of packets, until you end it: Ctrl-C ends it and \
             explains what is in x.pcapng"
        );
        let chosen = RecordFlags {
            ports: vec![5432],
            interface: "eth0".to_owned(),
            duration: Some(Duration::from_millis(1500)),
            ..plain
        };
        let said = chosen.in_words(Path::new("-"));
        assert!(
            said.contains("from or to port 5432 on eth0") && said.contains("for 1.5 s"),
            "{said}"
        );
        assert!(said.ends_with("prints the recording"), "{said}");
    }
}
