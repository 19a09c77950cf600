//! A capture's segments in pieces, to be followed elsewhere.
//!
//! ```text
//! capture -> Cutter -> pieces of each shard --(another machine)--> Tracker::follow_piece
//! ```
//!
//! What becomes of a connection depends on its shard's segments alone, in their order, where the intervals of all
//! connections are kept ([`super::shard`]): so the shard is what segments are sorted by. A piece has what a segment says
//! ([`Segment`]), with the bytes of its payload that anybody reads ([`told`]). Each can be unpacked by itself.

mod pack;
mod told;
mod unpack;

use core::mem;
use core::net::SocketAddr;

use self::pack::Packer;
use self::told::Start;
use super::batch::Follow;
use super::key::Key;
use super::{SHARDS, shard_of};
use crate::capture::Frame;
use crate::wire::{Flags, IcmpError, IpInfo, LinkInfo, Options, Segment, Usual};
use tcpwhy_words::units::Seq;

pub use crate::packed::Odd;

/// Bytes of a piece that is handed on. Ours: some ten thousand segments, beside which the names of their connections
/// take little; 64 of them are held at most.
const ENOUGH: usize = 1 << 20;

/// What an entry is, in its lowest bits.
const TOO_BIG: u8 = 0;
/// Of a sender that was met before, and of a new one.
const KNOWN: u8 = 1;
const NEW: u8 = 2;
const WHAT: u8 = 3;
/// It came in a usual frame.
const USUAL: u8 = 4;
/// Its options are of another kind than the sender's last.
const OPTIONS: u8 = 8;
const STAMPS: u8 = 16;
/// Some of its payload was captured.
const PAYLOAD: u8 = 32;
/// What IP and the link tell differs from the sender's last, but for the packet's number.
const PLACE: u8 = 64;
const SACK: u8 = 128;

/// What was last said by one sender to one receiver: entries tell the difference.
#[derive(Clone, Debug)]
struct Said {
    ends: [SocketAddr; 2],
    network: u32,
    next: Seq,
    ack: Seq,
    flags: Flags,
    window: u16,
    stamps: (u32, u32),
    id: u16,
    ip: IpInfo,
    link: LinkInfo,
    /// Without time stamps and SACK blocks.
    options: Options,
    start: Start,
}

impl Said {
    fn nothing(ends: [SocketAddr; 2], network: u32) -> Self {
        Self {
            ends,
            network,
            next: Seq(0),
            ack: Seq(0),
            flags: Flags(0),
            window: 0,
            stamps: (0, 0),
            id: 0,
            ip: IpInfo::default(),
            link: LinkInfo::default(),
            options: Options::default(),
            start: Start::default(),
        }
    }

    /// What `segment` says, for the next to differ from.
    fn remember(&mut self, segment: &Segment<'_>) {
        self.next = Seq(segment.seq.0.wrapping_add(segment.payload_len));
        (self.ack, self.flags, self.window) = (segment.ack, segment.flags, segment.window);
        self.stamps = segment.options.timestamps.unwrap_or(self.stamps);
        self.id = segment.ip.id.unwrap_or(self.id);
        (self.ip, self.link) = (segment.ip, segment.link);
        self.options = shape(&segment.options);
    }
}

/// Options without what changes from segment to segment.
fn shape(options: &Options) -> Options {
    Options { timestamps: None, sack: Default::default(), sack_count: 0, ..*options }
}

/// Sorts what is read of a capture into pieces.
#[derive(Debug)]
pub struct Cutter {
    packers: Vec<Packer>,
    ready: Vec<(usize, Vec<u8>)>,
}

impl Default for Cutter {
    fn default() -> Self {
        let packers = (0..SHARDS).map(|_| Packer::default()).collect();
        Self { packers, ready: Vec::new() }
    }
}

impl Cutter {
    /// Pieces that are large enough, each with its shard; in order for each shard.
    pub fn ready(&mut self) -> Vec<(usize, Vec<u8>)> {
        mem::take(&mut self.ready)
    }

    /// All that is left.
    pub fn rest(&mut self) -> Vec<(usize, Vec<u8>)> {
        let Self { packers, ready } = self;
        let rest = packers.iter_mut().map(Packer::piece).enumerate();
        ready.extend(rest.filter(|(_, piece)| !piece.is_empty()));
        self.ready()
    }

    fn end_if_enough(&mut self, at: usize) {
        if self.packers[at].len() >= ENOUGH {
            let piece = self.packers[at].piece();
            self.ready.push((at, piece));
        }
    }
}

impl Follow for Cutter {
    fn push_usual(&mut self, usual: &Usual<'_>, _: &Frame<'_>) {
        let at = shard_of(usual.ends.mixed());
        self.packers[at].push(&usual.segment(), true);
        self.end_if_enough(at);
    }

    fn push(&mut self, segment: &Segment<'_>) {
        let at = shard_of(Key::of(segment).mixed());
        self.packers[at].push(segment, false);
        self.end_if_enough(at);
    }

    fn gap(&mut self) {
        // Only packet listings have gaps, and they are not cut.
    }

    fn too_big(&mut self, error: &IcmpError) {
        if let Some(ends) = error.quoted.ends() {
            self.packers[shard_of(Key::between(ends).mixed())].too_big(error);
        }
    }
}

#[cfg(test)]
mod tests;
