//! Flags of `tcpwhy live`.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;

use crate::flags::Color;
use crate::number;

/// What is shown below the flags.
pub const AFTER: &str = "\
Nothing is changed and no packet is sent. Everyone may see all connections of the network namespace; which process
holds each takes root or CAP_SYS_PTRACE, the last figures of those that end CAP_NET_ADMIN.

  tcpwhy live                                    what holds the connections of this host
  tcpwhy live --once --filter 'port 443 and slow'
  tcpwhy live --for 30s --filter 'process=nginx'
  tcpwhy live --json --interval 5s --filter 'net 10.0.0.0/8' | jq -c 'select(.state == \"rto_wait\")'
  sudo tcpwhy live --container 3f4e5d6c --once   a container, by its id; --pod for all of a pod
  sudo tcpwhy live --capture-when 'state=rto_wait for 2s'
  tcpwhy live --metrics 127.0.0.1:9464           what connections wait for, for Prometheus
  tcpwhy live --for 5m --save slow.jsonl; tcpwhy live slow.jsonl

A filter has the words of `explain --filter`, in which `src` and `client` are this host's end, and besides
state=NAME, where rwnd stands for all of rwnd.*, tcp=ESTABLISHED, process=NAME or its number, and slow: something holds
it that is not a program.

Exit status: 0 looked, 2 wrong usage, 3 what was named cannot be looked at or read.";

/// Flags of `tcpwhy live`.
#[derive(Args, Clone, Debug)]
pub struct LiveFlags {
    /// Looks that --save wrote, to look at them again [default: this host]
    #[arg(value_name = "FILE", conflicts_with_all = ["netns", "container", "pod", "save", "interval", "duration"])]
    pub file: Option<PathBuf>,

    /// Look twice, one interval apart, and print what holds the connections; so it is also without a terminal
    #[arg(long, conflicts_with = "json")]
    pub once: bool,
    /// Print each connection at each look as one line of JSON (docs/live.md)
    #[arg(long)]
    pub json: bool,
    /// Time from one look to the next: 200ms, 1s, 1m
    #[arg(long, value_name = "TIME", value_parser = interval, default_value = "1s")]
    pub interval: Duration,
    /// End after this time, and say where the time of each connection went: 30s, 5m
    #[arg(long = "for", value_name = "TIME", value_parser = number::duration, conflicts_with = "once")]
    pub duration: Option<Duration>,
    /// Only these connections: `port 443 and slow`, `net 10.0.0.0/8`, `state=rto_wait or state=zero_window`
    #[arg(long, value_name = "EXPRESSION")]
    pub filter: Option<String>,

    /// Look at another network namespace: a name of `ip netns`, a process's number, or a file
    #[arg(long, value_name = "NAME|PID|PATH", conflicts_with_all = ["container", "pod"])]
    pub netns: Option<String>,
    /// Look at a container, by its id or the first letters of it
    #[arg(long, value_name = "ID", conflicts_with = "pod")]
    pub container: Option<String>,
    /// Look at a pod, by its UID
    #[arg(long, value_name = "UID")]
    pub pod: Option<String>,

    /// Serve what the looks add up to as metrics for Prometheus: 127.0.0.1:9464, :9464 (docs/metrics.md)
    #[arg(long, value_name = "ADDRESS", conflicts_with_all = ["file", "once", "json", "filter"])]
    pub metrics: Option<String>,
    /// Names of ports, peers and control groups in metrics, as a file in TOML
    #[arg(long, value_name = "FILE", requires = "metrics")]
    pub metrics_rules: Option<PathBuf>,

    /// Write all looks to a file, to look at them again; at most 1 GiB
    #[arg(long, value_name = "FILE")]
    pub save: Option<PathBuf>,
    /// Write over a file that is there
    #[arg(long, requires = "save")]
    pub force: bool,

    /// Capture a connection once this holds of it for so long, and explain that: `state=rto_wait for 2s`, `slow for 5s`
    #[arg(long, value_name = "CONDITION", conflicts_with_all = ["file", "once"])]
    pub capture_when: Option<String>,
    /// How long each capture lasts; it ends with its connection
    #[arg(long, value_name = "TIME", value_parser = number::duration, default_value = "10s", requires = "capture_when")]
    pub capture_for: Duration,
    /// Packets each capture holds: 500K, 16M
    #[arg(long, value_name = "SIZE", value_parser = number::size, default_value = "16M", requires = "capture_when")]
    pub capture_size: u64,
    /// How many captures may run at once
    #[arg(long, value_name = "NUMBER", value_parser = captures, default_value = "4", requires = "capture_when")]
    pub captures: usize,
    /// Where the captures go [default: here]
    #[arg(long, value_name = "FOLDER", requires = "capture_when")]
    pub capture_to: Option<PathBuf>,

    /// Colour the text
    #[arg(long, value_name = "WHEN", value_enum, default_value_t)]
    pub color: Color,
    /// Columns of the text [default: the terminal's, 100 elsewhere]
    #[arg(long, value_name = "COLUMNS", value_parser = number::width)]
    pub width: Option<u16>,
}

/// A time of at least a millisecond, which a look takes.
fn interval(text: &str) -> Result<Duration, String> {
    let time = number::duration(text)?;
    if time < LEAST {
        Err("a look takes a millisecond or more: give 10ms or more".to_owned())
    } else {
        Ok(time)
    }
}

/// How many captures run at once.
fn captures(text: &str) -> Result<usize, String> {
    let number: Option<usize> = text.parse().ok().filter(|number| (1..=64).contains(number));
    number
        .ok_or_else(|| "give a whole number from 1 to 64: each takes a buffer of 16 MiB".to_owned())
}

/// Ours: a look at 1,000 sockets takes 2 ms.
const LEAST: Duration = Duration::from_millis(10);
