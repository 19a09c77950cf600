//! From the sequence numbers a listing shows to those that were on the wire.
//!
//! `tcpdump` keeps one pair of bases for each connection, taken from the first packet with ACK
//! that it prints and anew from each SYN-ACK: `seq` of that packet for its sender, `ack - 1` for
//! the other side. That packet is printed as it was on the wire, later ones with ACK relative to
//! the bases, packets without ACK never (print-tcp.c of tcpdump 4.99). With `-S` all are printed
//! as they were.
//!
//! We do the same backwards. Whether a packet's numbers are relative is decided by which reading
//! comes nearer to what the connection is expected to send next: this copes with `-S`, with
//! pastes that lack the packet with the bases (then the SYN's number is in, or zero), with
//! several listings in one file and with reused ports.
//!
//! A pure ACK shows no `seq` (unless `-vv`); it gets the highest number its sender has reached. Where
//! a listing starts midway with one, its sender's base stays hidden and is taken as zero: that side's
//! numbers are then off by a constant, in both directions alike.

use core::net::SocketAddr;
use std::collections::BTreeMap;

use super::segment::{Dialect, Printed};
use crate::wire::Flags;
use tcpwhy_words::units::Seq;

/// Connections remembered in each of two generations. Ours: 2 x 32,768 entries are under 10 MB.
const GENERATION: usize = 32_768;
/// Numbers below this may well be relative ones. Ours: an initial sequence number is as small by
/// chance in one of 256 connections.
const SMALL: u32 = 1 << 24;
/// A number this far from what is expected contradicts it; half of what windows can span.
const ABSURD: u64 = 1 << 28;
/// A number this near to what is expected supports it.
const NEAR: u64 = 1 << 20;

/// The numbers of one segment as they were on the wire.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub(super) struct Numbers {
    pub(super) seq: Seq,
    pub(super) ack: Seq,
    pub(super) sack: [(Seq, Seq); 4],
    pub(super) window: u16,
    /// The window shown does not fit, and its scale is not known.
    pub(super) window_cut: bool,
}

/// All connections of a file.
#[derive(Debug, Default)]
pub(super) struct Connections {
    young: BTreeMap<Pair, Connection>,
    old: BTreeMap<Pair, Connection>,
    /// Counts the listings: `tcpdump` forgets its bases when it starts anew.
    listing: u64,
    /// What the connections of this listing agreed on.
    shown: Option<Shown>,
}

type Pair = (u32, SocketAddr, SocketAddr);

/// How a listing shows sequence numbers.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Shown {
    AsOnTheWire,
    Relative,
}

#[derive(Clone, Copy, Debug, Default)]
struct Connection {
    /// The side with the lower address, then the other.
    sides: [Side; 2],
    listing: u64,
    shown: Option<Shown>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Side {
    /// What `tcpdump` takes this side's numbers relative to.
    base: Option<u32>,
    /// Number of the SYN, where one was listed.
    syn: Option<u32>,
    /// The highest number this side has reached, by its own segments or the other's ACKs.
    next: Option<u32>,
    /// What its SYN said of the scale of windows.
    scale: Option<Scale>,
}

/// The scale of a side's windows.
#[derive(Clone, Copy, Debug)]
struct Scale {
    shift: u8,
    /// A window came that is no multiple of it: the list shows windows as they were on the wire.
    is_unused: bool,
}

impl Connections {
    /// Takes note that another run of `tcpdump` begins.
    pub(super) fn begin_listing(&mut self) {
        self.listing += 1;
        self.shown = None;
    }

    /// The numbers of the segment `printed`, sent by `from` to `to`.
    pub(super) fn resolve(
        &mut self,
        network: u32,
        from: SocketAddr,
        to: SocketAddr,
        printed: &Printed,
    ) -> Numbers {
        let (pair, own) =
            if from <= to { ((network, from, to), 0) } else { ((network, to, from), 1) };
        let listing = self.listing;
        let mut shown = self.shown;
        let connection = self.entry(pair);
        if connection.listing != listing {
            connection.listing = listing;
            connection.shown = None;
            connection.sides.iter_mut().for_each(|side| side.base = None);
        }
        let numbers = connection.resolve(own, printed, &mut shown);
        self.shown = shown;
        numbers
    }

    /// How many connections are remembered.
    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        self.young.len() + self.old.len()
    }

    fn entry(&mut self, pair: Pair) -> &mut Connection {
        if !self.young.contains_key(&pair) {
            if self.young.len() >= GENERATION {
                self.old = core::mem::take(&mut self.young);
            }
            let known = self.old.remove(&pair).unwrap_or_default();
            self.young.insert(pair, known);
        }
        self.young.entry(pair).or_default()
    }
}

impl Connection {
    fn resolve(&mut self, own: usize, printed: &Printed, listing: &mut Option<Shown>) -> Numbers {
        let (syn, ack) = (printed.flags.has(Flags::SYN), printed.flags.has(Flags::ACK));
        let mut numbers = match (syn, ack) {
            _ if printed.dialect != Dialect::Tcpdump => self.as_shown(own, printed),
            (true, _) => self.on_syn(own, printed),
            (false, false) => {
                Numbers { seq: Seq(self.without_ack(own, printed)), ..Numbers::default() }
            }
            (false, true) => self.on_ack(own, printed, listing),
        };
        self.advance(own, printed, numbers);
        (numbers.window, numbers.window_cut) = self.window(own, printed);
        numbers
    }

    /// Numbers that all lines show in one way, from zero or as on the wire: a constant apart in each direction.
    fn as_shown(&mut self, own: usize, printed: &Printed) -> Numbers {
        if printed.flags.has(Flags::SYN) {
            let offered = printed.options.window_scale.map(|shift| shift.min(14));
            self.sides[own] = Side::default();
            self.sides[own].scale =
                Some(Scale { shift: offered.unwrap_or(0), is_unused: offered.is_none() });
        }
        let seq = printed.seq.or(self.sides[own].next).unwrap_or_default();
        let sack = printed.sack(|block| block);
        let ack = Seq(printed.ack.unwrap_or_default());
        Numbers { seq: Seq(seq), ack, sack, ..Numbers::default() }
    }

    /// The window field, and whether what is shown does not fit in it. Wireshark shows windows scaled once it
    /// has seen both SYNs and both offer it (packet-tcp.c, `tcp_info_append_uint` of "Win").
    fn window(&mut self, own: usize, printed: &Printed) -> (u16, bool) {
        let shown = printed.window.unwrap_or_default();
        let offered = |side: &Side| side.scale.is_some_and(|scale| !scale.is_unused);
        let is_scaled = printed.dialect == Dialect::Wireshark
            && !printed.flags.has(Flags::SYN)
            && self.sides.iter().all(offered);
        let mut field = shown;
        if let Some(scale) = self.sides[own].scale.as_mut().filter(|_| is_scaled) {
            if shown.trailing_zeros() >= u32::from(scale.shift) {
                field = shown >> scale.shift;
            } else {
                scale.is_unused = true;
            }
        }
        (u16::try_from(field).unwrap_or(u16::MAX), field > u32::from(u16::MAX))
    }

    /// A SYN shows its numbers as they were; with ACK it sets the bases of both sides.
    fn on_syn(&mut self, own: usize, printed: &Printed) -> Numbers {
        let seq = printed.seq.unwrap_or_default();
        let ack = printed.ack.unwrap_or_default();
        if self.sides[own].syn != Some(seq) {
            self.sides[own].next = None;
            self.sides[own].syn = Some(seq);
        }
        if printed.flags.has(Flags::ACK) {
            self.sides[own].base = Some(seq);
            let peer = &mut self.sides[1 - own];
            let isn = ack.wrapping_sub(1);
            peer.base = Some(isn);
            if peer.syn != Some(isn) {
                *peer = Side { base: peer.base, syn: Some(isn), ..Side::default() };
            }
        }
        let sack = printed.sack(|block| moved(block, ack.wrapping_sub(1)));
        Numbers { seq: Seq(seq), ack: Seq(ack), sack, ..Numbers::default() }
    }

    /// Without ACK (a bare RST) the number is shown as it was; where the connection's true
    /// numbers are unknown, that would be a jump, and the number expected next is better.
    fn without_ack(&self, own: usize, printed: &Printed) -> u32 {
        let side = self.sides[own];
        let expected = side.next.or(side.base);
        match (printed.seq, expected) {
            (Some(seq), Some(next)) if distance(seq, next) > ABSURD && next < SMALL => next,
            (Some(seq), _) => seq,
            (None, expected) => expected.unwrap_or_default(),
        }
    }

    fn on_ack(&mut self, own: usize, printed: &Printed, listing: &mut Option<Shown>) -> Numbers {
        let first = self.sides.iter().all(|side| side.base.is_none());
        let readings =
            [Shown::AsOnTheWire, Shown::Relative].map(|shown| self.read(shown, own, printed));
        let shown = self.choose(&readings, first, printed, listing);
        let reading = &readings[usize::from(shown == Shown::Relative)];
        if shown == Shown::AsOnTheWire && (first || self.shown == Some(Shown::Relative)) {
            // tcpdump takes its bases here: it has just started, or forgotten the connection.
            self.sides[own].base = reading.seq.or(self.sides[own].next);
            self.sides[1 - own].base = reading.ack.map(|ack| ack.wrapping_sub(1));
        }
        if !first && self.shown.is_none() {
            self.shown = Some(shown);
        }
        let side = self.sides[own];
        let seq = reading.seq.or(side.next).or(side.base).unwrap_or_default();
        let ack = reading.ack.unwrap_or_default();
        // SACK edges follow the acknowledgement, but are relative even in the packet with the bases.
        let shift = match shown {
            Shown::AsOnTheWire if !first => 0,
            Shown::AsOnTheWire => ack.wrapping_sub(1),
            Shown::Relative => ack.wrapping_sub(printed.ack.unwrap_or_default()),
        };
        let sack = printed.sack(|block| nearest_block(block, ack, shift, first));
        Numbers { seq: Seq(seq), ack: Seq(ack), sack, ..Numbers::default() }
    }

    /// The numbers of `printed` if it shows them in the way `shown`.
    fn read(&self, shown: Shown, own: usize, printed: &Printed) -> Reading {
        let mut reading = Reading::default();
        for (number, side, out) in [
            (printed.seq, self.sides[own], &mut reading.seq),
            (printed.ack, self.sides[1 - own], &mut reading.ack),
        ] {
            let Some(number) = number else { continue };
            let origins = match shown {
                Shown::AsOnTheWire => [Some(0), None],
                Shown::Relative if side.base.is_none() && side.syn.is_none() => [Some(0), None],
                Shown::Relative => [side.base, side.syn],
            };
            let candidates =
                origins.into_iter().flatten().map(|origin| number.wrapping_add(origin));
            let nearest = candidates.min_by_key(|&n| side.next.map_or(0, |next| distance(n, next)));
            reading.off += match (nearest, side.next) {
                (Some(n), Some(next)) => distance(n, next),
                _ => 0,
            };
            *out = nearest;
        }
        reading
    }

    fn choose(
        &mut self,
        [wire, relative]: &[Reading; 2],
        first: bool,
        printed: &Printed,
        listing: &mut Option<Shown>,
    ) -> Shown {
        let contradicts = |a: &Reading, b: &Reading| a.off > ABSURD && b.off < NEAR;
        let small = |n: Option<u32>| n.is_none_or(|n| n < SMALL);
        if contradicts(relative, wire) {
            if !first {
                *listing = listing.or(Some(Shown::AsOnTheWire));
            }
            return Shown::AsOnTheWire;
        }
        if contradicts(wire, relative) {
            *listing = Some(Shown::Relative);
            return Shown::Relative;
        }
        if let Some(shown) = self.shown {
            return shown;
        }
        if first {
            let syn_listed = self.sides.iter().any(|side| side.syn.is_some());
            let looks_relative = small(printed.seq) && small(printed.ack);
            if !looks_relative {
                return Shown::AsOnTheWire;
            }
            // The packet with the bases is missing: relative to the SYN, or else to zero.
            let shown = if syn_listed { Shown::Relative } else { Shown::AsOnTheWire };
            self.shown = Some(shown);
            return shown;
        }
        match *listing {
            Some(shown) => shown,
            None if wire.off.saturating_mul(16) < relative.off => Shown::AsOnTheWire,
            None => Shown::Relative,
        }
    }

    fn advance(&mut self, own: usize, printed: &Printed, numbers: Numbers) {
        let phantom =
            u32::from(printed.flags.has(Flags::SYN)) + u32::from(printed.flags.has(Flags::FIN));
        let end = numbers.seq.0.wrapping_add(printed.payload_len).wrapping_add(phantom);
        self.sides[own].reach(end);
        if printed.flags.has(Flags::ACK) {
            self.sides[1 - own].reach(numbers.ack.0);
        }
    }
}

impl Side {
    fn reach(&mut self, number: u32) {
        if self.next.is_none_or(|next| Seq(number).since(Seq(next)) > 0) {
            self.next = Some(number);
        }
    }
}

/// One way to read a packet's numbers.
#[derive(Debug, Default)]
struct Reading {
    seq: Option<u32>,
    ack: Option<u32>,
    /// How far they lie from what is expected, both together.
    off: u64,
}

/// A SACK block moved by `shift`; where that is `in_doubt`, only if it comes nearer to `ack`.
fn nearest_block(block: (Seq, Seq), ack: u32, shift: u32, in_doubt: bool) -> (Seq, Seq) {
    let there = moved(block, shift);
    let keep = in_doubt && distance(block.0.0, ack) < distance(there.0.0, ack);
    if keep { block } else { there }
}

fn moved((left, right): (Seq, Seq), shift: u32) -> (Seq, Seq) {
    (Seq(left.0.wrapping_add(shift)), Seq(right.0.wrapping_add(shift)))
}

fn distance(a: u32, b: u32) -> u64 {
    u64::from(Seq(a).since(Seq(b)).unsigned_abs())
}
