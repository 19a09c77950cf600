//! Flags of `tcpwhy record`, and what they mean.

use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::Args;
use tcpwhy_linux::record::recording::{Options, Scope};

use crate::number;

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
    /// Write over a file that is there
    #[arg(long)]
    pub force: bool,

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
    #[arg(long, value_name = "SIZE", default_value = "256M", value_parser = size)]
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

/// Reads `500K`, `256M`, `2G`: powers of 1024.
fn size(text: &str) -> Result<u64, String> {
    let (number, unit) = number::split(text);
    let number: u64 = number.parse().map_err(|_| HOW_MUCH.to_owned())?;
    let shift = match unit.trim_end_matches(['B', 'i']).to_ascii_uppercase().as_str() {
        "" => 0,
        "K" => 10,
        "M" => 20,
        "G" => 30,
        _ => return Err(format!("`{unit}` is no unit of size: {HOW_MUCH}")),
    };
    let bytes = number.checked_mul(1 << shift).ok_or_else(|| format!("{text} is too much"))?;
    if bytes < LEAST { Err(format!("it is too small: {HOW_MUCH}")) } else { Ok(bytes) }
}

const HOW_MUCH: &str = "give a whole number with its unit, from 64K on, such as 500K, 256M or 2G";

/// Ours: holds the head of a file and some hundred packets.
const LEAST: u64 = 64 << 10;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_have_units() {
        assert_eq!(size("256M"), Ok(256 << 20));
        assert_eq!(size("100k"), Ok(100 << 10));
        assert_eq!(size("2GiB"), Ok(2 << 30));
        for odd in ["", "M", "10", "99999999999G", "1T", "1.5M"] {
            assert!(size(odd).is_err(), "{odd}");
        }
    }
}
