//! A few frames of one connection: their TCP headers, and nothing of their payload.
//!
//! The capture is read once more, from its start to the last of the frames asked for.

use std::fmt::Write as _;
use std::io::Read as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use tcpwhy::capture::{Item, Reader};
use tcpwhy::report::Connection;
use tcpwhy::units::Seq;
use tcpwhy::wire::{Flags, Segment, parse};
use tcpwhy_mcp::{Frame, Frames, Opened, Refused};

use crate::read::Input;

/// Bytes of a capture that are read at a time. Ours.
const CHUNK: usize = 1 << 18;

/// Frames of `connection` from frame number `from` on, `most` of them at most.
///
/// # Errors
/// The capture cannot be read.
pub(super) fn listed(
    file: &Opened,
    connection: &Connection,
    from: u64,
    most: usize,
    stop: &AtomicBool,
) -> Result<Frames, Refused> {
    let cannot =
        |why: &dyn core::fmt::Display| Refused(format!("cannot read {}: {why}", file.name()));
    let mut source =
        Input::File(file.path()).open(&Arc::default()).map_err(|error| cannot(&error.why))?;
    let mut list = List::new(connection, from, most);
    let (mut reader, mut buffer) = (Reader::new(), vec![0; CHUNK]);
    while !list.is_done {
        if stop.load(Ordering::Relaxed) {
            return Err(Refused("the question was cancelled".to_owned()));
        }
        let read = source.read(&mut buffer).map_err(|error| cannot(&error))?;
        let mut take = |item: Item<'_>| list.item(&item);
        // `explain` tells of damage; what came before it is here.
        if read == 0 {
            let _ = reader.finish(&mut take);
            break;
        }
        if reader.push(&buffer[..read], &mut take).is_err() {
            break;
        }
    }
    Ok(list.found)
}

/// What is looked for, and what was found.
struct List<'a> {
    connection: &'a Connection,
    from: u64,
    most: usize,
    /// The first packet's time.
    start_ns: Option<i64>,
    /// What each side's numbers count from.
    base: [Option<Seq>; 2],
    is_done: bool,
    found: Frames,
}

impl<'a> List<'a> {
    fn new(connection: &'a Connection, from: u64, most: usize) -> Self {
        let found = Frames { connection: connection.id, ..Frames::default() };
        let (start_ns, base) = (None, [None; 2]);
        Self { connection, from, most, start_ns, base, is_done: false, found }
    }

    fn item(&mut self, item: &Item<'_>) {
        match item {
            Item::Frame(frame) if self.may_be(frame.frame) => {
                if let Ok(segment) = parse(frame) {
                    self.segment(&segment);
                }
            }
            Item::Segment(segment) if self.may_be(segment.frame) => self.segment(segment),
            _ => {}
        }
    }

    /// Whether a frame of that number may be one of the connection.
    fn may_be(&mut self, frame: u64) -> bool {
        let frames = self.connection.frames;
        self.is_done |= frame > frames.last;
        !self.is_done && frame >= frames.first
    }

    fn segment(&mut self, segment: &Segment<'_>) {
        let Connection { client, server, network, .. } = self.connection;
        let side = match (segment.source, segment.destination) {
            (from, to) if (from, to) == (*client, *server) => 0,
            (from, to) if (from, to) == (*server, *client) => 1,
            _ => return,
        };
        if segment.network != *network {
            return;
        }
        let at_ns = segment.time.0;
        let start_ns = *self.start_ns.get_or_insert(at_ns);
        // As Wireshark counts: a SYN has 0, and without one the first byte that was seen has 1.
        let is_syn = segment.flags.has(Flags::SYN);
        let first = if is_syn { segment.seq } else { Seq(segment.seq.0.wrapping_sub(1)) };
        let base = *self.base[side].get_or_insert(first);
        let acked = segment.flags.has(Flags::ACK).then_some(segment.ack);
        let acked_base =
            acked.map(|ack| *self.base[1 - side].get_or_insert(Seq(ack.0.wrapping_sub(1))));
        if segment.frame < self.from {
            return;
        }
        if self.found.frames.len() == self.most {
            self.found.next_frame = Some(segment.frame);
            self.is_done = true;
            return;
        }
        self.found.frames.push(Frame {
            frame: segment.frame,
            time_ns: at_ns.saturating_sub(start_ns),
            from: if side == 0 { "client" } else { "server" }.to_owned(),
            flags: segment.flags.names().collect::<Vec<_>>().join(","),
            seq: beyond(segment.seq, base),
            len: segment.payload_len,
            ack: acked.zip(acked_base).map(|(ack, base)| beyond(ack, base)),
        });
    }
}

/// How far a number lies behind the first, modulo 2^32, as Wireshark prints it.
fn beyond(number: Seq, first: Seq) -> i64 {
    i64::from(number.0.wrapping_sub(first.0))
}

/// The frames as text.
pub(super) fn in_words(found: &Frames, connection: &Connection) -> String {
    let (client, server) = (connection.client_shown(), connection.server_shown());
    let mut text = format!("connection {}: client {client}, server {server}\n", found.connection);
    if found.frames.is_empty() {
        let frames = connection.frames;
        let _ = writeln!(
            text,
            "no frame from there on: it has frames {}-{}",
            frames.first, frames.last
        );
    }
    for Frame { frame, time_ns, from, flags, seq, len, ack } in &found.frames {
        let time = *time_ns as f64 / 1e9;
        let ack = ack.map(|ack| format!(" ack {ack}")).unwrap_or_default();
        let _ = writeln!(
            text,
            "{frame:>8}  {time:>13.6} s  {from}  {flags:<11}  seq {seq} len {len}{ack}"
        );
    }
    if let Some(next) = found.next_frame {
        let _ = writeln!(text, "more follow: ask from {next} on");
    }
    text
}
