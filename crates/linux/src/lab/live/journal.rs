//! What the emulator did with each packet, written down off the emulator's thread.
//!
//! One JSON object a line in [`folder::PACKETS`], all instants in nanoseconds since 1970:
//!
//! | field | |
//! |---|---|
//! | `t` | arrival at the sending host's tap |
//! | `way`, `n` | `down` (server to client) or `up`, and its number there |
//! | `bytes`, `data` | length on layer 2 (IP packet and 14), TCP payload |
//! | `from`, `to`, `seq`, `ack`, `flags`, `id` | ports, TCP's fields, IPv4's identification |
//! | `queue_bytes`, `queue_packets` | what it found waiting |
//! | `fate` | `delivered`, `lost`, `queue_full`, `policed`, `too_long`, `refused`; `copy` is the second of a packet delivered twice |
//! | `left` | when it left the link |
//! | `due`, `sent` | when it was to be at the receiving stack, and when it was given to it |
//! | `held_back`, `flipped` | it was reordered; this bit of its payload was flipped |
//!
//! Lines stand in the order of their fates. The captures that the emulator takes (in the middle,
//! and where a tap is not at its stack) are sorted by time.

use std::collections::BinaryHeap;
use std::fs::File;
use std::io::{self, BufWriter, Write as _};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, TryRecvError};
use std::time::Duration;

use serde::Serialize;

use super::clock::Clocks;
use super::emulate::{Decision, Fate};
use super::packet::View;
use super::sys;
use super::tap::Capture;
use crate::lab::backend::{ClockMap, LabError};
use crate::lab::folder;

/// What the emulator hands over.
#[derive(Debug)]
pub(super) enum Record {
    /// A packet's fate.
    Packet(Line),
    /// A packet as a tap sees it.
    Frame(Frame),
}

/// Which way.
#[derive(Clone, Copy, Debug, Eq, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum WayName {
    /// Server to client.
    Down,
    /// Client to server.
    Up,
}

/// A packet's fate, on `CLOCK_MONOTONIC`.
#[derive(Clone, Copy, Debug)]
pub(super) struct Line {
    pub(super) way: WayName,
    pub(super) decision: Decision,
    pub(super) view: View,
    /// When it was given to the receiving stack.
    pub(super) sent_ns: Option<u64>,
    /// It is the second of two.
    pub(super) copy: bool,
}

/// Where the emulator captures.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub(super) enum Tap {
    Client,
    Server,
    Middle,
}

/// A packet as a tap sees it.
#[derive(Debug, Eq, Ord, PartialEq, PartialOrd)]
pub(super) struct Frame {
    // First, for it orders frames.
    pub(super) at_ns: u64,
    pub(super) tap: Tap,
    pub(super) length: u32,
    pub(super) bytes: Box<[u8]>,
}

/// Writes records down until the emulator is done with them.
///
/// `failed` is set as soon as a file cannot be written; what comes after is thrown away, so that
/// the emulator never finds the channel full for that.
///
/// # Errors
/// The first file that could not be written.
pub(super) fn write(
    folder: &Path,
    taps: &[Tap],
    snap_length: u32,
    records: &Receiver<Record>,
    failed: &AtomicBool,
) -> Result<ClockMap, LabError> {
    let mut journal = Journal::open(folder, taps, snap_length);
    let mut outcome = Ok(());
    loop {
        match records.try_recv() {
            Ok(record) => {
                if let Ok(journal) = &mut journal
                    && outcome.is_ok()
                {
                    outcome = journal.add(record);
                }
            }
            // Asked now and then instead of woken, for waking us would cost the emulator a call.
            Err(TryRecvError::Empty) => std::thread::sleep(LOOK),
            Err(TryRecvError::Disconnected) => break,
        }
        if outcome.is_err() || journal.is_err() {
            failed.store(true, Ordering::Relaxed);
        }
    }
    outcome?;
    journal?.finish()
}

struct Journal {
    packets: BufWriter<File>,
    path: PathBuf,
    captures: Vec<(Tap, Capture)>,
    /// Frames not yet written, for later ones may be earlier.
    frames: BinaryHeap<std::cmp::Reverse<Frame>>,
    clocks: Clocks,
}

impl Journal {
    fn open(folder: &Path, taps: &[Tap], snap_length: u32) -> Result<Self, LabError> {
        let path = folder.join(folder::PACKETS);
        let file = File::create(&path).map_err(|source| LabError::writing(&path, source))?;
        let captures = taps
            .iter()
            .map(|tap| Ok((*tap, Capture::create(&folder.join(tap.file()), snap_length)?)))
            .collect::<Result<_, LabError>>()?;
        Ok(Self {
            packets: BufWriter::with_capacity(BUFFER, file),
            path,
            captures,
            frames: BinaryHeap::new(),
            clocks: Clocks::new(),
        })
    }

    fn add(&mut self, record: Record) -> Result<(), LabError> {
        self.clocks.look();
        match record {
            Record::Frame(frame) => {
                self.frames.push(std::cmp::Reverse(frame));
                self.write_frames(sys::monotonic_ns().saturating_sub(HORIZON_NS))
            }
            Record::Packet(line) => {
                let row = Row::new(&line, &self.clocks);
                serde_json::to_writer(&mut self.packets, &row)
                    .map_err(io::Error::from)
                    .and_then(|()| self.packets.write_all(b"\n"))
                    .map_err(|source| LabError::writing(&self.path, source))
            }
        }
    }

    /// Writes the frames up to an instant.
    fn write_frames(&mut self, until: u64) -> Result<(), LabError> {
        while self.frames.peek().is_some_and(|frame| frame.0.at_ns <= until) {
            let Some(std::cmp::Reverse(frame)) = self.frames.pop() else { break };
            let at = self.clocks.real(frame.at_ns);
            if let Some((_, capture)) = self.captures.iter_mut().find(|(tap, _)| *tap == frame.tap)
            {
                capture.add(at, &frame.bytes, frame.length)?;
            }
        }
        Ok(())
    }

    fn finish(mut self) -> Result<ClockMap, LabError> {
        self.write_frames(u64::MAX)?;
        self.packets.flush().map_err(|source| LabError::writing(&self.path, source))?;
        for (_, capture) in self.captures {
            capture.finish()?;
        }
        Ok(self.clocks.finish())
    }
}

impl Tap {
    /// Its file in the run's folder.
    pub(super) const fn file(self) -> &'static str {
        folder::CAPTURES[match self {
            Self::Client => 0,
            Self::Server => 1,
            Self::Middle => 2,
        }]
    }
}

/// A line of the journal.
#[derive(Debug, Serialize)]
struct Row {
    t: u64,
    way: WayName,
    n: u64,
    bytes: u32,
    data: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    from: Option<u16>,
    #[serde(skip_serializing_if = "Option::is_none")]
    to: Option<u16>,
    #[serde(skip_serializing_if = "Option::is_none")]
    seq: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    ack: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    flags: Option<u8>,
    #[serde(skip_serializing_if = "Option::is_none")]
    id: Option<u16>,
    queue_bytes: u64,
    queue_packets: u64,
    fate: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    left: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    due: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    sent: Option<u64>,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    held_back: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    flipped: Option<u32>,
}

impl Row {
    fn new(line: &Line, clocks: &Clocks) -> Self {
        let Decision { packet, arrived_ns, found, fate } = line.decision;
        let (mut due, mut held, mut bit) = (None, false, None);
        let word = match fate {
            Fate::QueueFull => "queue_full",
            Fate::Policed => "policed",
            Fate::TooLong => "too_long",
            Fate::Lost { .. } => "lost",
            Fate::Delivered { stack_ns, held_back, flipped, .. } => {
                (due, held, bit) = (Some(clocks.real(stack_ns)), held_back, flipped);
                match (line.sent_ns, line.copy) {
                    (None, _) => "refused",
                    (_, true) => "copy",
                    (_, false) => "delivered",
                }
            }
        };
        let tcp = line.view.tcp;
        Self {
            t: clocks.real(arrived_ns),
            way: line.way,
            n: packet.number,
            bytes: packet.bytes,
            data: packet.data,
            from: tcp.map(|tcp| tcp.ports.0),
            to: tcp.map(|tcp| tcp.ports.1),
            seq: tcp.map(|tcp| tcp.seq),
            ack: tcp.map(|tcp| tcp.ack),
            flags: tcp.map(|tcp| tcp.flags),
            id: line.view.id,
            queue_bytes: found.bytes,
            queue_packets: found.packets,
            fate: word,
            left: fate.left_ns().map(|at| clocks.real(at)),
            due,
            sent: line.sent_ns.map(|at| clocks.real(at)),
            held_back: held,
            flipped: bit,
        }
    }
}

/// Ours: a record waits at most so long for its writer while there is room for 0.5 s of them.
const LOOK: Duration = Duration::from_millis(2);

/// Ours: frames reach the journal at their instant or before it, unless the emulator is later than
/// any believable run.
const HORIZON_NS: u64 = 500_000_000;

const BUFFER: usize = 1 << 20;
