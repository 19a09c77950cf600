//! The segments of a report's connections, one by one: its captures are read once more.
//!
//! ```text
//! bytes -> Intake -> Segments -> Captured: whose it is, and how the streams were behind it
//! ```
//!
//! The connections are those of the finished report. So a segment has the names that all else of its connection has, and what
//! is not asked about has no segments. Held are the connections' ends, and a course of each that is passing.

use std::collections::VecDeque;

use foldhash::fast::FixedState;
use hashbrown::HashMap;

use super::intake::Intake;
use crate::capture::{CaptureError, Frame};
use crate::report::{Connection, Report};
use crate::tracker::{Follow, Key};
use crate::wire::{Flags, IcmpError, Segment, Usual};
use tcpwhy_words::units::{Seq, Time};

/// Segments whose ACK is waited for at most, of each side. Ours: a flight of 90 MB.
const OUT: usize = 1 << 16;

/// A captured segment.
///
/// Numbers are relative, as Wireshark shows them: 0 is the SYN's and 1 the first byte's, or the first captured
/// one's without the SYN. They do not wrap.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Captured {
    /// The place of its connection in the report.
    pub connection: usize,
    /// Who sent it: 0 the client, 1 the server.
    pub side: usize,
    /// Its packet in the input.
    pub frame: u64,
    /// Since the connection's first packet.
    pub at_ns: i64,
    /// The number of its first byte, or of its SYN.
    pub seq: i64,
    /// What it acknowledges; `None` without ACK.
    pub ack: Option<i64>,
    /// Payload on the wire.
    pub payload_len: u32,
    /// Flags of its header.
    pub flags: Flags,
    /// The window's field as sent.
    pub window_field: u16,
    /// The window in bytes; `None` where the scaling was not captured.
    pub window: Option<u64>,
    /// SACK blocks, from the first number to the one behind the last.
    pub sacked: Vec<(i64, i64)>,
    /// It carries payload below what had passed before.
    pub is_repeat: bool,
    /// What its sender sent and had not been acknowledged behind it.
    pub in_flight: u64,
    /// The same of the other side's data.
    pub peer_in_flight: u64,
    /// From the tap to its sender and back, where it acknowledges data that passed once.
    pub rtt_ns: Option<i64>,
}

/// Reads a report's captures once more, in their order.
#[derive(Debug)]
pub struct Segments {
    intake: Intake,
    walk: Walk,
    /// Packets of each capture, as they were read for the report.
    packets: Vec<u64>,
}

impl Segments {
    /// Of the connections of `report`.
    pub fn of(report: &Report) -> Self {
        let packets = report.captures.iter().map(|capture| capture.packets).collect();
        Self { intake: Intake::new(), walk: Walk::of(&report.connections), packets }
    }

    /// The next capture. Of one that has grown, what is new belongs to nothing.
    pub fn begin(&mut self, source: &str) {
        let number = self.intake.captures.len();
        let before: u64 = self.packets.iter().take(number).sum();
        self.intake.begin(source);
        self.intake.frames_before = before;
        self.walk.until = before + self.packets.get(number).copied().unwrap_or(0);
    }

    /// Takes the next bytes of the capture begun last.
    ///
    /// # Errors
    /// As of [`Intake::push`].
    pub fn push(&mut self, bytes: &[u8]) -> Result<(), CaptureError> {
        self.intake.read(Some(bytes), &mut self.walk)
    }

    /// Ends the capture.
    ///
    /// # Errors
    /// As of [`Intake::end`].
    pub fn end(&mut self) -> Result<(), CaptureError> {
        self.intake.close(&mut self.walk)
    }

    /// Whether the capture begun last gave as many packets as it did for the report.
    pub fn is_whole(&self) -> bool {
        let number = self.intake.captures.len().saturating_sub(1);
        let read = self.intake.captures.last().map_or(0, |capture| capture.packets);
        self.packets.get(number).is_none_or(|packets| read >= *packets)
    }

    /// The segments since the last call, in the order of their packets.
    pub fn ready(&mut self) -> Vec<Captured> {
        core::mem::take(&mut self.walk.ready)
    }
}

/// Follows the segments of known connections.
#[derive(Debug)]
struct Walk {
    /// The connections between the same ends, in the order of their first packets.
    between: HashMap<Key, Vec<usize>, FixedState>,
    courses: Vec<Course>,
    ready: Vec<Captured>,
    /// The last frame of the capture.
    until: u64,
}

/// A connection while it passes.
#[derive(Debug)]
struct Course {
    first: u64,
    last: u64,
    client: core::net::SocketAddr,
    passing: Option<Box<Passing>>,
}

/// How it is now.
#[derive(Debug)]
struct Passing {
    began: Time,
    sides: [Stream; 2],
}

/// What one side sent.
#[derive(Debug, Default)]
struct Stream {
    /// The number that is 0.
    base: Option<Seq>,
    /// The greatest relative number met, near which the next are.
    near: i64,
    /// Behind the last byte that has passed, and the last that was acknowledged.
    high: i64,
    acked: i64,
    /// Its SYN was captured, and by how much that shifts windows.
    has_syn: bool,
    shift: Option<u8>,
    /// Ends of segments whose ACK is waited for, and when they passed.
    out: VecDeque<(i64, Time)>,
    /// Up to here an ACK tells no round trip: it passed twice (Karn's rule, RFC 6298 section 3).
    repeated: i64,
}

impl Walk {
    fn of(connections: &[Connection]) -> Self {
        let mut between: HashMap<Key, Vec<usize>, FixedState> = HashMap::default();
        for (place, connection) in connections.iter().enumerate() {
            let ends = [connection.client, connection.server];
            between.entry(Key::between(ends).within(connection.network)).or_default().push(place);
        }
        for those in between.values_mut() {
            those.sort_by_key(|place| connections[*place].frames.first);
        }
        let course = |connection: &Connection| {
            let (first, last) = (connection.frames.first, connection.frames.last);
            Course { first, last, client: connection.client, passing: None }
        };
        let courses = connections.iter().map(course).collect();
        Self { between, courses, ready: Vec::new(), until: 0 }
    }

    /// Takes a segment, if its connection is one of these.
    fn take(&mut self, segment: &Segment<'_>) {
        let frame = segment.frame;
        if frame > self.until {
            return;
        }
        let Some(those) = self.between.get(&Key::of(segment)) else { return };
        let begun = those.partition_point(|place| self.courses[*place].first <= frame);
        let Some(place) = begun.checked_sub(1).and_then(|at| those.get(at)).copied() else {
            return;
        };
        let course = &mut self.courses[place];
        if frame > course.last {
            return;
        }
        let side = usize::from(!segment.is_from(&course.client));
        let passing = course.passing.get_or_insert_with(|| Box::new(Passing::from(segment.time)));
        let captured = passing.take(side, segment);
        self.ready.push(Captured { connection: place, ..captured });
        if frame == course.last {
            course.passing = None;
        }
    }
}

impl Passing {
    fn from(began: Time) -> Self {
        Self { began, sides: Default::default() }
    }

    fn take(&mut self, side: usize, segment: &Segment<'_>) -> Captured {
        let Segment { flags, payload_len, time, .. } = *segment;
        let [client, server] = &mut self.sides;
        let (own, peer) = if side == 0 { (client, server) } else { (server, client) };
        if flags.has(Flags::SYN) {
            own.has_syn = true;
            own.shift = segment.options.window_scale.map(|shift| shift.min(MOST_SHIFT));
        }
        let seq = own.seq(segment.seq, flags.has(Flags::SYN));
        // What a SYN carries begins behind its own number.
        let data = seq.saturating_add(i64::from(flags.has(Flags::SYN)));
        let is_repeat = payload_len > 0 && own.sent(data, payload_len, time);
        let ack = flags.has(Flags::ACK).then(|| peer.relative(segment.ack));
        let rtt_ns = ack.and_then(|ack| peer.answered(ack, time));
        let blocks = segment.options.sack_blocks().iter();
        let sacked = blocks.map(|(from, to)| (peer.relative(*from), peer.relative(*to))).collect();
        let shift = if flags.has(Flags::SYN) { Some(0) } else { shift(own, peer) };
        Captured {
            connection: 0,
            side,
            frame: segment.frame,
            at_ns: time.since(self.began).0,
            seq,
            ack,
            payload_len,
            flags,
            window_field: segment.window,
            window: shift.map(|shift| u64::from(segment.window) << shift),
            sacked,
            is_repeat,
            in_flight: own.in_flight(),
            peer_in_flight: peer.in_flight(),
            rtt_ns,
        }
    }
}

/// The largest shift of windows (RFC 7323 section 2.3).
const MOST_SHIFT: u8 = 14;

/// By how much the windows that `own` announces are shifted: not at all unless both SYNs allow it.
fn shift(own: &Stream, peer: &Stream) -> Option<u8> {
    (own.has_syn && peer.has_syn).then(|| own.shift.filter(|_| peer.shift.is_some()).unwrap_or(0))
}

impl Stream {
    /// The relative number of a segment that this side sent.
    fn seq(&mut self, seq: Seq, is_syn: bool) -> i64 {
        if self.base.is_none() && is_syn {
            self.base = Some(seq);
        }
        self.relative(seq)
    }

    /// The relative number near those that were met. The first one is 1 if nobody knows better.
    fn relative(&mut self, seq: Seq) -> i64 {
        let base = *self.base.get_or_insert(Seq(seq.0.wrapping_sub(1)));
        let near = base.0.wrapping_add(self.near as u32);
        let relative = self.near + i64::from(seq.0.wrapping_sub(near) as i32);
        self.near = self.near.max(relative);
        relative
    }

    /// Data of it passes; whether some of it is below what had passed.
    fn sent(&mut self, from: i64, payload_len: u32, time: Time) -> bool {
        let end = from.saturating_add(i64::from(payload_len));
        self.near = self.near.max(end);
        let is_repeat = from < self.high;
        if is_repeat {
            self.repeated = self.repeated.max(self.high);
        }
        if self.acked == 0 {
            // Nothing was acknowledged yet: what came before was not sent here.
            self.acked = from;
        }
        if end > self.high {
            self.high = end;
            if self.out.len() < OUT {
                self.out.push_back((end, time));
            }
        }
        is_repeat
    }

    /// The other side acknowledges up to `ack`: the round trip, if it tells one.
    fn answered(&mut self, ack: i64, time: Time) -> Option<i64> {
        if ack <= self.acked {
            return None;
        }
        self.acked = ack;
        let mut last = None;
        while let Some(out) = self.out.front().copied().filter(|out| out.0 <= ack) {
            last = Some(out);
            self.out.pop_front();
        }
        let (_, sent) = last.filter(|last| last.0 > self.repeated)?;
        Some(time.since(sent).0.max(0))
    }

    fn in_flight(&self) -> u64 {
        u64::try_from(self.high.saturating_sub(self.acked)).unwrap_or(0)
    }
}

impl Follow for Walk {
    fn push_usual(&mut self, usual: &Usual<'_>, _: &Frame<'_>) {
        self.take(&usual.segment());
    }

    fn push(&mut self, segment: &Segment<'_>) {
        self.take(segment);
    }

    fn gap(&mut self) {}

    fn too_big(&mut self, _: &IcmpError) {}
}
