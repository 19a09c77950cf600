//! The flags of `explain` as typed, before anything is checked against the world.

use std::num::NonZero;
use std::path::PathBuf;

use clap::{Args, ValueEnum};

use crate::choose::Sort;
use crate::fail::{self, FailOn};
use crate::number;
use crate::rate::PathRate;
use crate::window::Instant;

/// Reads `server=snap.json`.
fn host_snapshot(text: &str) -> Result<(&'static str, PathBuf), String> {
    match text.split_once('=') {
        Some(("client", file)) => Ok(("client", file.into())),
        Some(("server", file)) => Ok(("server", file.into())),
        _ => Err("say whose it is: client=FILE or server=FILE".to_owned()),
    }
}

/// Flags of `tcpwhy explain`.
#[derive(Args, Debug, Default)]
#[expect(clippy::struct_excessive_bools, reason = "one for each flag without a value")]
pub struct ExplainFlags {
    /// Captures: pcap, pcapng or what tcpdump prints, plain or packed with gzip, zstd or lz4;
    /// `-` for standard input. Several captures are one rotated capture, in any order: captures of the
    /// same packets in two places are to be explained one by one. What a host's tools printed (ss,
    /// netstat, nstat, sysctl, ip, ethtool, ..) is taken as well, in several files of one host or of
    /// several, alone or beside a capture
    #[arg(value_name = "FILE")]
    pub files: Vec<PathBuf>,

    /// Lay beside the captures what the hosts recorded themselves: `ss -tin` once or in a loop,
    /// `TCP_INFO` as JSON lines, `tcp_probe` from perf, trace-cmd or a trace file, `nstat` before and
    /// after, `iperf3 -J`, `strace -T` with -ttt, -tt or -r, `perf trace`
    ///
    /// The content of a file tells its format. Name these files after the captures, or give --with for each. What
    /// was estimated becomes measured, and contradictions are shown.
    #[arg(long, value_name = "FILE", num_args = 1..)]
    pub with: Vec<PathBuf>,
    /// Name settings of a host beside the remedies for it, from a snapshot that `tcpwhy check --save` took there, or
    /// from what sysctl and `ip route` printed there
    #[arg(long, value_name = "client|server=FILE", value_parser = host_snapshot)]
    pub host_snapshot: Vec<(&'static str, PathBuf)>,
    /// The path's rate, if you know it: 2gbit, 100mbit; 10MB/s or, as tc writes bytes, 10mbps
    #[arg(long, value_name = "RATE")]
    pub rate: Option<PathRate>,

    /// Print the report as JSON, in the form of docs/report.schema.json
    #[arg(long, conflicts_with_all = ["csv", "summary", "rounds", "plot"])]
    pub json: bool,
    /// Print one line of comma-separated values for each connection and direction
    #[arg(long, conflicts_with_all = ["summary", "rounds", "plot"])]
    pub csv: bool,
    /// Print one line for each connection, with columns that stay as they are (docs/scripting.md)
    #[arg(long, conflicts_with_all = ["rounds", "plot"])]
    pub summary: bool,
    /// Write a page for the browser, with graphs, into this file (`-` for standard output). It needs no network, and a
    /// capture dropped on it is explained there
    #[arg(long, value_name = "FILE", conflicts_with_all = ["json", "csv", "summary", "rounds", "plot", "full"])]
    pub html: Option<PathBuf>,
    /// Write the page's graphs as SVG files into this folder, too
    #[arg(long, value_name = "DIR")]
    pub svg: Option<PathBuf>,
    /// Write tables (connections, transfers, requests, limits, rounds, findings, changes) as Parquet files into this
    /// folder, by day and host (docs/tables.md). A run over the same files replaces what it wrote before
    #[arg(long, value_name = "DIR", conflicts_with_all = ["json", "csv", "summary", "html", "rounds", "plot", "full"])]
    pub parquet: Option<PathBuf>,
    /// Whose captures these are: the name of the partition that --parquet writes
    #[arg(long, value_name = "NAME", requires = "parquet")]
    pub host: Option<String>,
    /// With --parquet, write the table `segments`, too: a row for each captured segment. The captures are read once more
    /// for it
    #[arg(long, requires = "parquet", conflicts_with_all = ["anonymize", "from", "to"])]
    pub segments: bool,
    /// Show all that was found, with evidence, numbers and frames, instead of one screen
    #[arg(long, conflicts_with_all = ["json", "csv", "summary"])]
    pub full: bool,
    /// Show each round: what was sent, how the windows stood, what stopped it
    #[arg(long)]
    pub rounds: bool,
    /// Draw sequence numbers over time
    #[arg(long)]
    pub plot: bool,

    /// Explain this connection only, by its number in the report
    #[arg(long, value_name = "N", value_parser = number::connection)]
    pub connection: Option<u64>,
    /// Explain matching connections only: 'host 10.0.0.1 and port 80'
    ///
    /// The words of tcpdump's filters: host, net, port, portrange, and, or, not, parentheses.
    /// src (or client) and dst (or server) are who opened the connection and who accepted it.
    /// A host may be given by name where a packet listing prints names.
    #[arg(long, value_name = "EXPRESSION")]
    pub filter: Option<String>,
    /// Explain what happened from this time on: +1.5s after the first packet, 10:45:49.05, or
    /// RFC 3339; all packets are read, for what came before tells what these mean
    #[arg(long, value_name = "TIME")]
    pub from: Option<Instant>,
    /// Explain what happened up to this time
    #[arg(long, value_name = "TIME")]
    pub to: Option<Instant>,

    /// Show at most this many connections [default: 10 in tables, all in JSON and CSV]
    #[arg(long, value_name = "N", value_parser = number::top)]
    pub top: Option<u32>,
    /// Order of connections [default: worst first in tables, by start in JSON and CSV]
    #[arg(long, value_name = "KEY")]
    pub sort: Option<Sort>,
    /// Replace all addresses, each consistently, to share the report
    #[arg(long)]
    pub anonymize: bool,
    /// Do not run the model of Linux TCP for what is advised; its durations are arithmetic then
    #[arg(long)]
    pub no_predict: bool,

    /// Analyse on this many threads; the answer is the same on any number [default: all cores]
    #[arg(long, value_name = "N", value_parser = number::threads)]
    pub threads: Option<NonZero<usize>>,

    /// End with exit status 1 if something of this kind was found: broken, wrong, limit, note, or a
    /// finding's code; several by commas
    #[arg(long, value_name = "KIND|CODE", value_delimiter = ',', value_parser = fail::parse)]
    pub fail_on: Vec<FailOn>,

    /// When to use colour
    #[arg(long, value_name = "WHEN", default_value = "auto")]
    pub color: Color,
    /// Width of the text in columns [default: that of the terminal, else 100]
    #[arg(long, value_name = "COLUMNS", value_parser = number::width)]
    pub width: Option<u16>,
}

/// When to use colour.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq, ValueEnum)]
pub enum Color {
    /// On a terminal, unless `NO_COLOR` is set; always if `CLICOLOR_FORCE` is.
    #[default]
    Auto,
    /// Even into a file.
    Always,
    /// Nowhere.
    Never,
}
