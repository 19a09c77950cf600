//! Packets the capture holds twice: `-i any` sees some on two interfaces, mirrors send two copies.
//!
//! Question: is this packet a second copy of one already seen, or a packet of its own?
//! A copy repeats every field. Where the IP identification is a real counter that settles it:
//! a retransmission gets a new one. Without it (IPv6, constant identification), two data packets
//! equal in all fields within a millisecond are a copy, but bare ACKs repeat legitimately
//! (duplicate ACKs): they count as copies only once most data packets of the connection have
//! been seen twice. A retransmission within one tick of the timestamp clock on IPv6 cannot be
//! told from a copy.
//!
//! A router or a bridge meets each packet again on its way out, perhaps much later and cut into
//! other sizes, so fields do not tell. There every direction is followed where it was first met;
//! what comes by elsewhere, changed as forwarding changes it, and brings nothing new, was met
//! before. A retransmission that takes another interface than its original did, and has fewer hops
//! left there, cannot be told from that.

use super::event::{Event, FIN, FLAGS, FROM_SERVER, ID, SYN, Side, TS};
use crate::wire::{Direction, IpInfo, LinkInfo};

/// Copies follow their original within this (limits-method section 2). Ours: not measured.
const WITHIN_NS: i64 = 1_000_000;
/// The same packet met on another interface, behind a delay of this host's own.
const OTHER_INTERFACE_WITHIN_NS: i64 = 1_000_000_000;

/// Packets looked back at.
pub(crate) const RECENT: usize = 8;

/// Where a packet was met, and how worn it was: interface, direction and hops left in one number,
/// for nearly all packets of one side are met at the same spot.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub(crate) struct Spot(u64);

impl Spot {
    const INCOMING: u64 = 1;
    const OUTGOING: u64 = 2;

    #[inline]
    pub(crate) fn of(ip: IpInfo, link: LinkInfo) -> Self {
        let direction = match link.direction {
            None => 0,
            Some(Direction::Incoming) => Self::INCOMING,
            Some(Direction::Outgoing) => Self::OUTGOING,
        };
        Self(u64::from(link.interface) << 32 | direction << 16 | Self::hops(ip.ttl))
    }

    /// None, or one more than the header said.
    pub(super) fn hops(ttl: Option<u8>) -> u64 {
        ttl.map_or(0, |left| u64::from(left) + 1)
    }

    /// The last eight bits of the interface's number.
    pub(super) const fn interface(self) -> u8 {
        (self.0 >> 32) as u8
    }

    pub(super) const fn hops_left(self) -> u64 {
        self.0 & 0xffff
    }

    const fn direction(self) -> u64 {
        self.0 >> 16 & 0xffff
    }

    /// Whether packets met here are those of `first`, forwarded.
    fn is_behind(self, first: Self) -> bool {
        let elsewhere = self.0 >> 16 != first.0 >> 16;
        let went_out = first.direction() == Self::INCOMING && self.direction() == Self::OUTGOING;
        elsewhere && (went_out || self.hops_left() < first.hops_left())
    }
}

/// Where one direction was first met, and how far it had come there.
#[derive(Clone, Copy, Debug, Default)]
struct First {
    spot: Option<Spot>,
    end: i64,
    ack: i64,
}

impl First {
    /// Whether `event` sends or acknowledges what none before did: then it is no copy of any.
    fn is_new(&self, event: &Event) -> bool {
        end_of(event) > self.end || event.ack > self.ack
    }

    /// Whether `event` at `spot` was met before where this direction is followed.
    fn has_seen(&mut self, event: &Event, spot: Spot) -> bool {
        let end = end_of(event);
        let first = *self.spot.get_or_insert(spot);
        if first != spot && spot.is_behind(first) && end <= self.end && event.ack <= self.ack {
            return true;
        }
        (self.end, self.ack) = (self.end.max(end), self.ack.max(event.ack));
        false
    }
}

/// Offset after all that `event` takes of its direction's numbers.
fn end_of(event: &Event) -> i64 {
    event.end() + i64::from(event.has(SYN)) + i64::from(event.has(FIN))
}

/// How often packets of a connection were seen twice, and where they are met.
#[derive(Clone, Debug, Default)]
pub(crate) struct Copies {
    singles: u32,
    doubles: u32,
    first: [First; 2],
}

impl Copies {
    /// Whether `event` brings nothing that none before it did, so that it may be a copy.
    pub(super) fn may_be_copy(&self, event: &Event) -> bool {
        !self.first[event.side()].is_new(event)
    }

    /// Whether `event`, met at `spot`, is a copy of a packet already seen; `met` says whether one
    /// of the last was just like it ([`is_met_again`]).
    pub(super) fn is_copy(&mut self, event: &Event, spot: Spot, met: bool) -> bool {
        if self.first[event.side()].has_seen(event, spot) {
            return true;
        }
        // A SYN or FIN is repeated after a timeout only.
        let strong = is_counted(event) || event.len > 0 || event.bits & (SYN | FIN) != 0;
        if met && (strong || self.doubles > 4 && self.doubles > 4 * self.singles) {
            if strong {
                self.doubles += 1;
                self.singles = self.singles.saturating_sub(1);
            }
            return true;
        }
        self.singles += u32::from(strong);
        false
    }

    /// Where packets of `side` are met, and up to which end and ACK they were.
    pub(super) fn front(&self, side: Side) -> Option<(Spot, i64, i64)> {
        let First { spot, end, ack } = self.first[side];
        Some((spot?, end, ack))
    }

    /// Packets of `side` that brought something new were met where all of them are, up to `end`
    /// and `ack`.
    pub(super) fn move_front(&mut self, side: Side, end: i64, ack: i64) {
        (self.first[side].end, self.first[side].ack) = (end, ack);
    }

    /// Counts such packets: those of which a copy would be known.
    #[inline]
    pub(super) fn count_new(&mut self, strong: u32) {
        self.singles += strong;
    }
}

/// Whether `event` is just like `old`, SACK blocks apart, and came close enough behind it.
pub(super) fn is_met_again(old: &Event, event: &Event) -> bool {
    let age = event.tap - old.tap;
    let near = age <= WITHIN_NS
        || (old.interface != event.interface
            && age <= OTHER_INTERFACE_WITHIN_NS
            && is_counted(event));
    near && same_packet(old, event)
}

/// Whether the identification is one that a stack counts up. Zero is what Linux sends where it
/// needs none (`ip_select_ident` with DF and no socket).
pub(super) fn is_counted(event: &Event) -> bool {
    event.has(ID) && event.id != 0
}

fn same_packet(a: &Event, b: &Event) -> bool {
    // What the packet itself says, not what was found about it.
    const SAID: u16 = FLAGS | FROM_SERVER | TS | ID;
    a.bits & SAID == b.bits & SAID
        && a.id == b.id
        && a.seq == b.seq
        && a.len == b.len
        && a.ack == b.ack
        && a.window == b.window
        && (a.tsval, a.tsecr) == (b.tsval, b.tsecr)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::flow::event::FROM_SERVER;

    fn data(at: i64, seq: i64, len: u32) -> Event {
        Event { tap: at, seq, len, bits: FROM_SERVER, ..Event::default() }
    }

    fn spot(interface: u64, direction: Direction, hops_left: u64) -> Spot {
        let direction = match direction {
            Direction::Incoming => Spot::INCOMING,
            Direction::Outgoing => Spot::OUTGOING,
        };
        Spot(interface << 32 | direction << 16 | (hops_left + 1))
    }

    #[test]
    fn a_router_meets_packets_again_on_their_way_out_however_cut() {
        let (inward, outward) =
            (spot(3, Direction::Incoming, 64), spot(4, Direction::Outgoing, 63));
        let mut copies = Copies::default();
        assert!(!copies.is_copy(&data(0, 0, 2896), inward, false));
        assert!(!copies.is_copy(&data(5, 2896, 2896), inward, false));
        // Twenty milliseconds in the router's queue.
        assert!(copies.is_copy(&data(20_000_000, 0, 1448), outward, false));
        assert!(copies.is_copy(&data(20_000_001, 1448, 1448), outward, false));
        // Sent again by the server: met where it was first met, so it is no copy.
        assert!(!copies.is_copy(&data(40_000_000, 0, 1448), inward, false));
        assert!(copies.is_copy(&data(60_000_000, 0, 1448), outward, false));
    }

    #[test]
    fn what_is_new_elsewhere_is_no_copy() {
        let mut copies = Copies::default();
        assert!(!copies.is_copy(&data(0, 0, 1448), spot(3, Direction::Incoming, 64), false));
        // One byte more than was met before.
        assert!(!copies.is_copy(&data(5, 1, 1448), spot(4, Direction::Outgoing, 63), false));
    }

    #[test]
    fn a_second_link_with_as_many_hops_left_is_no_way_out() {
        let mut copies = Copies::default();
        assert!(!copies.is_copy(&data(0, 0, 1448), spot(3, Direction::Incoming, 64), false));
        let again = data(300_000_000, 0, 1448);
        assert!(!copies.is_copy(&again, spot(4, Direction::Incoming, 64), false));
        assert!(copies.is_copy(
            &data(300_000_010, 0, 1448),
            spot(4, Direction::Incoming, 63),
            false
        ));
    }
}
