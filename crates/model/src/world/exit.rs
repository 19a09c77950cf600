//! From a socket to the wire: a host's device if it has one, the cutting of super-segments, taps,
//! and what else shares a path's link.

use std::collections::VecDeque;

use super::events::Event;
use super::{Side, Tap, World};
use crate::path::{Device, ETHERNET, HandedDown, Left, OnWire};
use crate::segment::{Ecn, Segment};

/// A segment below TCP, and whose it is.
#[derive(Clone, Copy, Debug)]
pub(super) struct Packet {
    pub(super) connection: u32,
    pub(super) segment: Segment,
    /// Bytes on layer 2, those of all headers of a super-segment counted.
    wire: u32,
    /// Bytes of one packet's headers.
    headers: u32,
    /// A bit of its payload has flipped.
    pub(super) damaged: bool,
}

impl Packet {
    fn of(connection: u32, segment: Segment, ip_header: u32) -> Self {
        let headers = ip_header + segment.header_bytes() + ETHERNET;
        let wire = headers * segment.piece_count() + segment.len;
        Self { connection, segment, wire, headers, damaged: false }
    }
}

impl OnWire for Packet {
    fn wire_bytes(&self) -> u32 {
        self.wire
    }

    fn has_data(&self) -> bool {
        self.segment.len > 0
    }

    fn flow(&self) -> u32 {
        self.connection
    }

    fn mark_congestion(&mut self) -> bool {
        let is_capable = self.segment.ecn != Ecn::NotEct;
        if is_capable {
            self.segment.ecn = Ecn::Ce;
        }
        is_capable
    }

    fn damage(&mut self) {
        self.damaged = true;
    }

    fn is_cross_traffic(&self) -> bool {
        self.connection == CROSS
    }
}

impl HandedDown for Packet {
    fn departs_ns(&self) -> u64 {
        self.segment.departs_ns
    }

    fn pieces(&self) -> VecDeque<Self> {
        let headers = self.headers;
        let of = |segment: Segment| Self { segment, wire: headers + segment.len, ..*self };
        self.segment.pieces().map(of).collect()
    }
}

impl World {
    /// Takes what a socket handed down on its way.
    pub(super) fn send_all(&mut self, connection: u32, side: Side, out: &mut Vec<Segment>) {
        if out.is_empty() {
            return;
        }
        if self.devices[side.index()].is_some() {
            self.send_by_device(connection, side, out);
            return;
        }
        for mut segment in out.drain(..) {
            self.number(connection, side, &mut segment);
            self.trace.hand_down(self.now, connection, side, &segment);
            for piece in segment.pieces() {
                self.trace.see(Tap::from(side), self.now, connection, side, &piece);
                let ip_header = self.configs[side.index()].link.ip_header();
                self.put_on_way(side, Packet::of(connection, piece, ip_header));
            }
        }
        self.plan_way(side);
    }

    /// Gives a segment the IPv4 identification of its first packet.
    fn number(&mut self, connection: u32, side: Side, segment: &mut Segment) {
        if let Some(end) = self.end(connection, side) {
            segment.id = end.packets;
            end.packets = end.packets.wrapping_add(segment.piece_count() as u16);
        }
    }

    /// Bytes that a host's device would let pass at once.
    pub(super) fn passes(&self, side: Side) -> u64 {
        self.devices[side.index()].as_ref().map_or(0, |device| device.passes(self.now))
    }

    fn send_by_device(&mut self, connection: u32, side: Side, out: &mut Vec<Segment>) {
        let (now, ip_header) = (self.now, self.configs[side.index()].link.ip_header());
        let mut refused: Option<Segment> = None;
        for mut segment in out.drain(..) {
            // TCP stops sending data at the first that is refused.
            if refused.is_some() && segment.len > 0 {
                continue;
            }
            self.number(connection, side, &mut segment);
            let packet = Packet::of(connection, segment, ip_header);
            let device = self.devices[side.index()].as_mut();
            if device.is_none_or(|device| device.offer(now, packet)) {
                self.trace.hand_down(now, connection, side, &segment);
            } else {
                refused.get_or_insert(segment);
            }
        }
        if let Some(segment) = refused
            && let Some(end) = self.end(connection, side)
        {
            end.socket.on_refused(now, &segment);
        }
        self.depart(side);
    }

    /// What a device let go goes on, and its sockets learn of it.
    fn depart(&mut self, side: Side) {
        // Who learns of it may send more; that goes on in the loop that is under way.
        if std::mem::replace(&mut self.departing, true) {
            return;
        }
        loop {
            let mut freed: Vec<(u32, u32)> = Vec::new();
            while let Some(left) = self.devices[side.index()].as_mut().and_then(Device::poll) {
                match left {
                    Left::Seen(packet) => {
                        for piece in packet.segment.pieces() {
                            let tap = Tap::from(side);
                            self.trace.see(tap, self.now, packet.connection, side, &piece);
                        }
                    }
                    Left::Sent(packet) => self.put_on_way(side, packet),
                    Left::Freed(Packet { connection, segment, .. }) if segment.truesize > 0 => {
                        match freed.iter_mut().find(|(other, _)| *other == connection) {
                            Some((_, sum)) => *sum += segment.truesize,
                            None => freed.push((connection, segment.truesize)),
                        }
                    }
                    Left::Freed(_) => {}
                }
            }
            if freed.is_empty() {
                break;
            }
            for (connection, truesize) in freed {
                self.with_socket(connection, side, |socket, now, out| {
                    socket.on_departed(now, truesize, out);
                });
            }
        }
        self.departing = false;
        self.plan_way(side);
        self.plan_device(side);
    }

    /// Something happens in a device.
    pub(super) fn on_device(&mut self, side: Side) {
        let now = self.now;
        if self.device_due[side.index()] != now {
            return;
        }
        self.device_due[side.index()] = u64::MAX;
        if let Some(device) = &mut self.devices[side.index()] {
            device.advance(now);
        }
        self.depart(side);
    }

    fn plan_device(&mut self, side: Side) {
        let due = self.devices[side.index()].as_ref().and_then(Device::next);
        if let Some(at) = due.map(|at| at.max(self.now))
            && at < self.device_due[side.index()]
        {
            self.device_due[side.index()] = at;
            self.events.plan(at, Event::Device(side));
        }
    }

    /// A packet of the wire comes to its way.
    fn put_on_way(&mut self, side: Side, packet: Packet) {
        let (connection, seq) = (packet.connection, packet.segment.seq);
        if self.is_recorded_as_lost(connection, side, &packet.segment) {
            return;
        }
        if let Some(mtu) = self.ways[side.index()].offer(self.now, packet) {
            // The first router says so, from behind the host's tap.
            let host = if side == Side::Client { &self.plan.client } else { &self.plan.server };
            let at = self.now + 2 * host.stack_to_tap_ns;
            self.events.plan(at, Event::TooLong(connection, side, mtu, seq));
        }
    }

    /// Other traffic begins, if there is any and none is planned.
    pub(super) fn plan_cross(&mut self, from: Side) {
        if self.cross_due[from.index()].is_none() && self.ways[from.index()].cross().is_some() {
            self.cross_due[from.index()] = Some(self.now);
            self.events.plan(self.now, Event::Cross(from));
        }
    }

    /// A frame of other traffic comes to a link.
    pub(super) fn on_cross(&mut self, from: Side) {
        let Some(cross) = self.ways[from.index()].cross() else {
            self.cross_due[from.index()] = None;
            return;
        };
        let segment = Segment::default();
        let packet =
            Packet { connection: CROSS, segment, wire: cross.bytes, headers: 0, damaged: false };
        // If it is longer than the link takes, no sender here learns of it.
        let _ = self.ways[from.index()].offer(self.now, packet);
        let bits = u128::from(cross.bytes) * 8 * 1_000_000_000;
        let next = self.now + (bits / u128::from(cross.rate.max(1))) as u64;
        self.cross_due[from.index()] = Some(next);
        self.events.plan(next.max(self.now + 1), Event::Cross(from));
        self.plan_way(from);
    }
}

/// Whose other traffic is.
const CROSS: u32 = u32::MAX;
