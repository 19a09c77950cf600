//! A receiving host's driver: what arrives within a moment is merged before TCP sees it (GRO).

use super::events::Event;
use super::{Connection, Packet, Side, Tap, Upon, World};
use crate::segment::{Flags, Segment};

/// Largest merged packet, with its headers (`GRO_LEGACY_MAX_SIZE` of include/linux/netdevice.h).
const MOST: u32 = 65_536;

impl World {
    /// A packet reaches its host, whose driver may wait for more.
    pub(super) fn deliver(&mut self, packet: Packet, to: Side) {
        let Packet { connection, segment, damaged, .. } = packet;
        if damaged {
            return self.drop_damaged(connection, to, &segment);
        }
        let Some(wait) = self.configs[to.index()].kernel.gather_ns else {
            return self.hand_up(connection, to, &segment);
        };
        let most = MOST - self.configs[to.index()].link.ip_header();
        if let Some(held) = self.gathered(connection, to) {
            if held.merge(&segment, most) {
                return;
            }
            self.hand_up_gathered(connection, to);
        }
        let waits = segment.len > 0 && !segment.flags.has(Flags::SYN.with(Flags::RST));
        match self.connections.get_mut(connection as usize) {
            Some(Connection { gathered, .. }) if waits => {
                gathered[to.index()] = Some(segment);
                self.events.plan(self.now + wait, Event::Gathered(connection, to));
            }
            _ => self.hand_up(connection, to, &segment),
        }
    }

    /// A packet whose checksum does not fit is merged with none, and TCP never sees it.
    fn drop_damaged(&mut self, connection: u32, to: Side, segment: &Segment) {
        self.hand_up_gathered(connection, to);
        self.trace.see(Tap::from(to), self.now, connection, to.peer(), segment);
    }

    /// The driver waits no longer.
    pub(super) fn hand_up_gathered(&mut self, connection: u32, to: Side) {
        let held = self.connections.get_mut(connection as usize);
        if let Some(segment) = held.and_then(|each| each.gathered[to.index()].take()) {
            self.hand_up(connection, to, &segment);
        }
    }

    /// Whether a reader goes on later: it runs when its host is done with all that the driver gathered
    /// (`net_rx_action` takes it in one go, before any process).
    pub(super) fn is_put_off(&mut self, connection: u32, side: Side) -> bool {
        let Some(wait) = self.configs[side.index()].kernel.gather_ns else { return false };
        let at = self.now + wait;
        let Some(end) = self.end(connection, side).filter(|end| end.app.waits_for_data()) else {
            return false;
        };
        if end.pause == u64::MAX {
            end.pause = at;
            self.events.plan(at, Event::App(connection, side));
        }
        true
    }

    fn gathered(&mut self, connection: u32, to: Side) -> Option<&mut Segment> {
        self.connections.get_mut(connection as usize)?.gathered[to.index()].as_mut()
    }

    /// A packet reaches TCP.
    fn hand_up(&mut self, connection: u32, to: Side, segment: &Segment) {
        self.trace.see(Tap::from(to), self.now, connection, to.peer(), segment);
        if self.end(connection, to).is_some() {
            self.with_socket(connection, to, |socket, now, out| {
                socket.on_segment(now, segment, out);
            });
            self.trace_state(connection, to);
            self.note(connection, to, Upon::Arrival);
        } else if to == Side::Server && segment.flags.has(Flags::SYN) {
            self.accept(connection, segment);
        }
    }
}
