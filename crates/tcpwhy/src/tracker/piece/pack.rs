//! Segments into a piece.

use core::mem;
use core::net::SocketAddr;

use foldhash::fast::FixedState;
use hashbrown::HashMap;

use super::told::told;
use super::{KNOWN, NEW, OPTIONS, PAYLOAD, PLACE, SACK, STAMPS, Said, TOO_BIG, USUAL, shape};
use crate::packed::{put, put_end, put_error, put_signed, put_some};
use crate::wire::{Checksum, Direction, Flags, IcmpError, IpInfo, LinkInfo, Options, Segment};

/// Writes one piece after another.
#[derive(Debug, Default)]
pub(super) struct Packer {
    out: Vec<u8>,
    senders: HashMap<([SocketAddr; 2], u32), usize, FixedState>,
    said: Vec<Said>,
    time: i64,
    frame: u64,
}

impl Packer {
    pub(super) const fn len(&self) -> usize {
        self.out.len()
    }

    /// What was written. The next piece begins anew.
    pub(super) fn piece(&mut self) -> Vec<u8> {
        mem::take(self).out
    }

    pub(super) fn too_big(&mut self, error: &IcmpError) {
        self.out.push(TOO_BIG);
        put_error(&mut self.out, error);
    }

    pub(super) fn push(&mut self, segment: &Segment<'_>, is_usual: bool) {
        let ends = [segment.source, segment.destination];
        let known = self.senders.get(&(ends, segment.network)).copied();
        let at = known.unwrap_or(self.said.len());
        if known.is_none() {
            self.senders.insert((ends, segment.network), at);
            self.said.push(Said::nothing(ends, segment.network));
        }
        let Self { out, said, time, frame, .. } = self;
        let said = &mut said[at];
        let what = what(segment, said) | if is_usual { USUAL } else { 0 };
        if known.is_some() {
            out.push(what | KNOWN);
            put(out, at as u64);
        } else {
            out.push(what | NEW);
            for end in ends {
                put_end(out, end);
            }
            put(out, segment.network.into());
        }
        put_signed(out, segment.time.0.wrapping_sub(*time));
        put(out, segment.frame.wrapping_sub(*frame));
        (*time, *frame) = (segment.time.0, segment.frame);
        put_head(out, segment, said);
        if what & PLACE != 0 {
            put_place(out, segment.ip, segment.link, said);
        } else if let Some(id) = segment.ip.id {
            put_id(out, id, said);
        }
        if what & OPTIONS != 0 {
            put_options(out, &segment.options);
        }
        if what & SACK != 0 {
            put(out, segment.options.sack_count.into());
            for (left, right) in segment.options.sack_blocks() {
                put_signed(out, left.since(segment.ack).into());
                put_signed(out, right.since(*left).into());
            }
        }
        if segment.flags.has(Flags::SYN) {
            said.start.opens(segment.seq);
        }
        if what & PAYLOAD != 0 {
            put_payload(out, segment, said);
        }
        said.remember(segment);
    }
}

/// What an entry has to tell.
fn what(segment: &Segment<'_>, said: &Said) -> u8 {
    let options = &segment.options;
    let same_ip = IpInfo { id: said.ip.id, ..segment.ip } == said.ip
        && segment.ip.id.is_some() == said.ip.id.is_some();
    let bits = [
        (OPTIONS, shape(options) != said.options),
        (STAMPS, options.timestamps.is_some()),
        (PAYLOAD, !segment.payload.is_empty()),
        (PLACE, !same_ip || segment.link != said.link),
        (SACK, options.sack_count > 0),
    ];
    bits.iter().filter(|(_, is_so)| *is_so).map(|(bit, _)| bit).sum()
}

fn put_head(out: &mut Vec<u8>, segment: &Segment<'_>, said: &Said) {
    put_signed(out, segment.seq.since(said.next).into());
    put_signed(out, segment.ack.since(said.ack).into());
    put(out, (segment.flags.0 ^ said.flags.0).into());
    put_signed(out, i64::from(segment.window) - i64::from(said.window));
    put(out, segment.payload_len.into());
    if let Some((sent, echoed)) = segment.options.timestamps {
        put_signed(out, sent.wrapping_sub(said.stamps.0).cast_signed().into());
        put_signed(out, echoed.wrapping_sub(said.stamps.1).cast_signed().into());
    }
}

fn put_id(out: &mut Vec<u8>, id: u16, said: &Said) {
    put_signed(out, id.wrapping_sub(said.id).cast_signed().into());
}

fn put_place(out: &mut Vec<u8>, ip: IpInfo, link: LinkInfo, said: &Said) {
    let LinkInfo { direction, interface, checksum, seq_unshown } = link;
    out.push(ip.id.is_some().into());
    if let Some(id) = ip.id {
        put_id(out, id, said);
    }
    put_some(out, ip.ttl.map(u64::from));
    put_some(out, ip.ecn.map(u64::from));
    let direction = match direction {
        None => 0,
        Some(Direction::Incoming) => 1,
        Some(Direction::Outgoing) => 2,
    };
    let checksum = match checksum {
        None => 0,
        Some(Checksum::Good) => 1,
        Some(Checksum::Offloaded) => 2,
        Some(Checksum::Bad) => 3,
    };
    out.push(direction | checksum << 2 | u8::from(seq_unshown) << 4);
    put(out, interface.into());
}

fn put_options(out: &mut Vec<u8>, options: &Options) {
    put_some(out, options.mss.map(u64::from));
    put_some(out, options.window_scale.map(u64::from));
    put_some(out, options.fast_open.map(u64::from));
    out.push(u8::from(options.sack_permitted) | u8::from(options.incomplete) << 1);
    out.extend_from_slice(&options.order);
    out.push(options.len);
}

/// How much was captured, and the bytes of it that go on.
fn put_payload(out: &mut Vec<u8>, segment: &Segment<'_>, said: &mut Said) {
    put(out, segment.payload.len() as u64);
    let mut upto = 0;
    told(segment.payload, segment.seq, &mut said.start, |from, bytes| {
        put(out, bytes.len() as u64);
        put(out, (from - upto) as u64);
        out.extend_from_slice(bytes);
        upto = from + bytes.len();
    });
    put(out, 0);
}
