//! `tcpwhy repro`: a captured connection as a packetdrill script.
//!
//! The capture is read twice: for its account, which tells the connections apart and when the
//! application held back; and for the packets of the one that is asked for.

use std::io::Read as _;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use anyhow::Context as _;
use clap::{Args, ValueEnum};
use tcpwhy::capture::{Item, Reader};
use tcpwhy::report::Connection;
use tcpwhy::wire;
use tcpwhy_model::repro::{self, Captured};

use super::one;
use super::signals::stop_on_signals;
use crate::exit::Exit;
use crate::read::Input;
use crate::{complain, number, output};

/// Flags of `tcpwhy repro`.
#[derive(Args, Debug)]
pub struct ReproFlags {
    /// A capture that holds the connection from its SYN on
    #[arg(value_name = "FILE")]
    pub file: PathBuf,
    /// Which connection, by its number in the report [default: the only one, or the one with most data]
    #[arg(long, value_name = "N", value_parser = number::connection)]
    pub connection: Option<u64>,
    /// Which host the script is about [default: the one that sent more data]
    #[arg(long, value_name = "HOST")]
    pub of: Option<Host>,
}

/// The ends of a connection.
#[derive(Clone, Copy, Debug, Eq, PartialEq, ValueEnum)]
pub enum Host {
    /// Who connected.
    Client,
    /// Who accepted.
    Server,
}

impl From<Host> for repro::Host {
    fn from(host: Host) -> Self {
        match host {
            Host::Client => Self::Client,
            Host::Server => Self::Server,
        }
    }
}

/// Reads, chooses, prints.
///
/// # Errors
/// A signal handler cannot be set, the capture cannot be read again, or the script cannot be written.
pub fn run(flags: &ReproFlags) -> anyhow::Result<Exit> {
    let input = Input::named(&flags.file);
    let stop = stop_on_signals().context("cannot listen for Ctrl-C")?;
    let connection = match one::connection(&input, flags.connection, true, &stop, &mut complain) {
        Ok(connection) => connection,
        Err(refused) => return Ok(refused.told()),
    };
    let host = flags.of.map_or_else(|| sender(&connection), repro::Host::from);
    let packets = packets(&input, &connection).context("cannot read the packets again")?;
    match repro::script(&connection, &packets, host) {
        Ok(script) => {
            output::print(&script).context("cannot write the script")?;
            Ok(Exit::Analysed)
        }
        Err(why) => {
            complain(&format!("no script of connection {}: {why}", connection.id));
            Ok(Exit::Unreadable)
        }
    }
}

/// Who sent more.
fn sender(connection: &Connection) -> repro::Host {
    let bytes =
        |side: usize| connection.directions[side].as_ref().map_or(0, |direction| direction.bytes);
    if bytes(0) > bytes(1) { repro::Host::Client } else { repro::Host::Server }
}

/// The connection's packets, in the order of capture.
fn packets(input: &Input, connection: &Connection) -> anyhow::Result<Vec<Captured>> {
    let mut source = input.open(&Arc::new(AtomicU64::new(0)))?;
    let (mut reader, mut found) = (Reader::new(), Vec::new());
    let mut each = |item: Item<'_>| match item {
        Item::Frame(frame) => {
            if let Ok(segment) = wire::parse(&frame) {
                found.extend(of_connection(&segment, connection));
            }
        }
        Item::Segment(segment) => found.extend(of_connection(&segment, connection)),
        _ => {}
    };
    let mut buffer = vec![0; CHUNK];
    loop {
        let filled = source.read(&mut buffer)?;
        // What is damaged was told when the capture was read first.
        if filled == 0 || reader.push(&buffer[..filled], &mut each).is_err() {
            break;
        }
    }
    let _ = reader.finish(&mut each);
    Ok(found)
}

/// Bytes read at a time; as for plain files when they are explained.
const CHUNK: usize = 64 << 10;

fn of_connection(segment: &wire::Segment<'_>, connection: &Connection) -> Option<Captured> {
    let frames = connection.frames.first..=connection.frames.last;
    let from = match (segment.source, segment.destination) {
        (source, destination)
            if (source, destination) == (connection.client, connection.server) =>
        {
            repro::Host::Client
        }
        (source, destination)
            if (source, destination) == (connection.server, connection.client) =>
        {
            repro::Host::Server
        }
        _ => return None,
    };
    frames.contains(&segment.frame).then(|| Captured::of(segment, from))
}
