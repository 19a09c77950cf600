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

use super::event::{Event, FIN, ID, SYN};
use crate::wire::{Direction, Segment};

/// Copies follow their original within this (limits-method section 2). Ours: not measured.
const WITHIN_NS: i64 = 1_000_000;
/// The same packet met on another interface, behind a delay of this host's own.
const OTHER_INTERFACE_WITHIN_NS: i64 = 1_000_000_000;

/// Packets looked back at.
const RECENT: usize = 8;

/// Where a packet was met, and how worn it was.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub(crate) struct Spot {
    interface: u32,
    direction: Option<Direction>,
    hops_left: Option<u8>,
}

impl Spot {
    pub(crate) fn of(segment: &Segment<'_>) -> Self {
        let (link, ip) = (&segment.link, &segment.ip);
        Self { interface: link.interface, direction: link.direction, hops_left: ip.ttl }
    }

    /// Whether packets met here are those of `first`, forwarded.
    fn is_behind(self, first: Self) -> bool {
        let elsewhere = self.interface != first.interface || self.direction != first.direction;
        let went_out = first.direction == Some(Direction::Incoming)
            && self.direction == Some(Direction::Outgoing);
        elsewhere && (went_out || self.hops_left < first.hops_left)
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

/// When and where a packet was seen.
#[derive(Clone, Copy, Debug, Default)]
struct Seen {
    tap: i64,
    interface: u32,
}

/// The last packets of a connection.
#[derive(Clone, Debug, Default)]
pub(crate) struct Copies {
    recent: [Seen; RECENT],
    /// What each had in its fields, zero where there is no packet yet.
    digests: [u64; RECENT],
    next: usize,
    singles: u32,
    doubles: u32,
    first: [First; 2],
}

impl Copies {
    /// Whether `event`, met at `spot`, is a copy of a packet already seen; `sack_mark` is a
    /// fingerprint of its SACK blocks.
    pub(crate) fn is_copy(&mut self, event: &Event, spot: Spot, sack_mark: u32) -> bool {
        let first = &mut self.first[event.side()];
        let is_new = first.is_new(event);
        if first.has_seen(event, spot) {
            return true;
        }
        let interface = spot.interface;
        // A SYN or FIN is repeated after a timeout only.
        let strong = counted(event) || event.len > 0 || event.bits & (SYN | FIN) != 0;
        let digest = digest(event, sack_mark);
        // Without a branch per packet, so that all are compared at once.
        let alike = || -> u32 { self.digests.iter().map(|old| u32::from(*old == digest)).sum() };
        let is_near = |old: &Seen| {
            let age = event.tap - old.tap;
            age <= WITHIN_NS
                || (old.interface != interface
                    && age <= OTHER_INTERFACE_WITHIN_NS
                    && counted(event))
        };
        let met = !is_new
            && alike() > 0
            && self.recent.iter().zip(&self.digests).any(|(old, d)| *d == digest && is_near(old));
        if met && (strong || self.doubles > 4 && self.doubles > 4 * self.singles) {
            if strong {
                self.doubles += 1;
                self.singles = self.singles.saturating_sub(1);
            }
            return true;
        }
        self.singles += u32::from(strong);
        self.recent[self.next] = Seen { tap: event.tap, interface };
        self.digests[self.next] = digest;
        self.next = (self.next + 1) % RECENT;
        false
    }
}

/// A number that is never zero, equal for packets that are equal in every field, and for others
/// with a chance of 2^-63: products of 64 by 64 bits folded together, as wyhash does.
fn digest(event: &Event, sack_mark: u32) -> u64 {
    let stamps = u64::from(event.tsval) << 32 | u64::from(event.tsecr);
    let size = u64::from(event.len) << 32 | u64::from(event.window) << 16 | u64::from(event.id);
    let rest = u64::from(sack_mark) << 32 | u64::from(event.bits);
    let numbers = fold(event.seq as u64 ^ FOLDS[0], event.ack as u64 ^ FOLDS[1]);
    let others = fold(stamps ^ FOLDS[1], size ^ FOLDS[2]);
    fold(numbers ^ FOLDS[2], others ^ rest ^ FOLDS[0]) | 1
}

/// Both halves of a product, mixed.
fn fold(a: u64, b: u64) -> u64 {
    let product = u128::from(a) * u128::from(b);
    product as u64 ^ (product >> 64) as u64
}

/// Ours: the fractions of the square roots of 2, 3 and 5, odd.
const FOLDS: [u64; 3] = [0x6a09_e667_f3bc_c909, 0xbb67_ae85_84ca_a73b, 0x3c6e_f372_fe94_f82b];

/// Whether the identification is one that a stack counts up. Zero is what Linux sends where it
/// needs none (`ip_select_ident` with DF and no socket).
fn counted(event: &Event) -> bool {
    event.has(ID) && event.id != 0
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::flow::event::FROM_SERVER;

    fn data(at: i64, seq: i64, len: u32) -> Event {
        Event { tap: at, seq, len, bits: FROM_SERVER, ..Event::default() }
    }

    fn spot(interface: u32, direction: Direction, hops_left: u8) -> Spot {
        Spot { interface, direction: Some(direction), hops_left: Some(hops_left) }
    }

    #[test]
    fn a_router_meets_packets_again_on_their_way_out_however_cut() {
        let (inward, outward) =
            (spot(3, Direction::Incoming, 64), spot(4, Direction::Outgoing, 63));
        let mut copies = Copies::default();
        assert!(!copies.is_copy(&data(0, 0, 2896), inward, 0));
        assert!(!copies.is_copy(&data(5, 2896, 2896), inward, 0));
        // Twenty milliseconds in the router's queue.
        assert!(copies.is_copy(&data(20_000_000, 0, 1448), outward, 0));
        assert!(copies.is_copy(&data(20_000_001, 1448, 1448), outward, 0));
        // Sent again by the server: met where it was first met, so it is no copy.
        assert!(!copies.is_copy(&data(40_000_000, 0, 1448), inward, 0));
        assert!(copies.is_copy(&data(60_000_000, 0, 1448), outward, 0));
    }

    #[test]
    fn what_is_new_elsewhere_is_no_copy() {
        let mut copies = Copies::default();
        assert!(!copies.is_copy(&data(0, 0, 1448), spot(3, Direction::Incoming, 64), 0));
        // One byte more than was met before.
        assert!(!copies.is_copy(&data(5, 1, 1448), spot(4, Direction::Outgoing, 63), 0));
    }

    #[test]
    fn a_second_link_with_as_many_hops_left_is_no_way_out() {
        let mut copies = Copies::default();
        assert!(!copies.is_copy(&data(0, 0, 1448), spot(3, Direction::Incoming, 64), 0));
        let again = data(300_000_000, 0, 1448);
        assert!(!copies.is_copy(&again, spot(4, Direction::Incoming, 64), 0));
        assert!(copies.is_copy(&data(300_000_010, 0, 1448), spot(4, Direction::Incoming, 63), 0));
    }
}
