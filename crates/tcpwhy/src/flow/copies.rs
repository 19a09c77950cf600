//! Packets the capture holds twice: `-i any` sees some on two interfaces, mirrors send two copies.
//!
//! Question: is this packet a second copy of one already seen, or a packet of its own?
//! A copy repeats every field. Where the IP identification is a real counter that settles it:
//! a retransmission gets a new one. Without it (IPv6, constant identification), two data packets
//! equal in all fields within a millisecond are a copy (unless a device said in between that the first was too large:
//! then it is retransmitted at once, RFC 8201 section 5.4), but bare ACKs repeat legitimately
//! (duplicate ACKs): they count as copies only once most data packets of the connection have
//! been seen twice. A retransmission within one tick of the timestamp clock on IPv6 cannot be
//! told from a copy.
//!
//! Captures of two hosts that were joined into one hold each packet twice, as far apart as the path is long. There a
//! copy has the identification and the time stamps of its original (a SYN the time stamps: Linux counts no SYN-ACKs),
//! and once one was met that way, more packets are remembered than the last few.
//!
//! A router or a bridge meets each packet again on its way out, perhaps much later and cut into
//! other sizes, so fields do not tell. There every direction is followed where it was first met;
//! what comes by elsewhere, changed as forwarding changes it, and brings nothing new, was met
//! before. A retransmission that takes another interface than its original did, and has fewer hops
//! left there, cannot be told from that.

use crate::clocks::TapTime;
use crate::offsets::Offset;
use std::collections::BTreeMap;

use super::event::{Event, FIN, FLAGS, FROM_SERVER, ID, SYN, Side, TS};
use crate::wire::{Direction, IpInfo, LinkInfo};

/// Copies follow their original within this (limits-method section 2). Ours: not measured.
const WITHIN_NS: i64 = 1_000_000;
/// The same packet met on another interface, behind a delay of this host's own, or at another host.
const ELSEWHERE_WITHIN_NS: i64 = 1_000_000_000;
/// Packets remembered where copies come from another host. Ours: what 100 Mbit/s carry in that time.
const MOST_REMEMBERED: usize = 8_192;

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
    end: Offset,
    ack: Offset,
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
fn end_of(event: &Event) -> Offset {
    event.end() + i64::from(event.has(SYN)) + i64::from(event.has(FIN))
}

/// How often packets of a connection were seen twice, and where they are met.
#[derive(Clone, Debug, Default)]
pub(crate) struct Copies {
    singles: u32,
    doubles: u32,
    /// When a device said last of packets of each side that they are too large.
    too_big: [Option<TapTime>; 2],
    first: [First; 2],
    /// What was met in the last second, and when, if copies come from far.
    remembered: Option<BTreeMap<Said, TapTime>>,
}

/// What a packet says.
type Said = (u16, u16, Offset, u32, Offset, u16, [u32; 2]);

impl Copies {
    /// Whether `event` brings nothing that none before it did, so that it may be a copy.
    pub(super) fn may_be_copy(&self, event: &Event) -> bool {
        !self.first[event.side()].is_new(event)
    }

    /// Whether `event`, met at `spot`, is a copy of a packet already seen; `met` says whether one
    /// of the last was just like it ([`met_again_after`]).
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

    /// Whether a copy met so long behind its original is the first that shows that they come from far.
    pub(super) fn are_from_far(&self, age: i64) -> bool {
        age > WITHIN_NS && self.remembered.is_none()
    }

    /// A device said at `tap` that packets of `side` are too large.
    pub(super) fn expect_repeats(&mut self, side: Side, tap: TapTime) {
        self.too_big[side] = Some(tap);
    }

    /// Whether `event`, just like a packet so long before it, is that packet retransmitted because it was too large. Where
    /// packets are captured twice that was seen before.
    pub(super) fn is_expected_repeat(&self, event: &Event, age: i64) -> bool {
        let told = self.too_big[event.side()];
        self.doubles == 0
            && event.len > 0
            && told.is_some_and(|told| (event.tap - age..=event.tap).contains(&told))
    }

    /// Remembers these packets and those to come.
    pub(super) fn begin_remembering(&mut self, events: impl Iterator<Item = Event>) {
        self.remembered = Some(events.map(|event| (said(&event), event.tap)).collect());
    }

    /// Whether a packet just like `event` is remembered.
    pub(super) fn is_remembered(&self, event: &Event) -> bool {
        let met = self.remembered.as_ref().and_then(|met| met.get(&said(event)));
        met.is_some_and(|met| event.tap - *met <= ELSEWHERE_WITHIN_NS) && is_told_apart(event)
    }

    /// Remembers `event`, which is no copy, if that is of use.
    pub(super) fn remember(&mut self, event: &Event) {
        let Some(met) = &mut self.remembered else { return };
        if met.len() == MOST_REMEMBERED {
            // Where more come in a second, the newest are the likelier originals.
            let mut within = ELSEWHERE_WITHIN_NS;
            while met.len() > MOST_REMEMBERED / 2 && within > 0 {
                met.retain(|_, tap| event.tap - *tap <= within);
                within /= 2;
            }
            if met.len() == MOST_REMEMBERED {
                met.clear();
            }
        }
        met.insert(said(event), event.tap);
    }

    /// Where packets of `side` are met, and up to which end and ACK they were; `None` if each has to be looked at.
    pub(super) fn front(&self, side: Side) -> Option<(Spot, Offset, Offset)> {
        if self.remembered.is_some() {
            return None;
        }
        let First { spot, end, ack } = self.first[side];
        Some((spot?, end, ack))
    }

    /// Packets of `side` that brought something new were met where all of them are, up to `end`
    /// and `ack`.
    pub(super) fn move_front(&mut self, side: Side, end: Offset, ack: Offset) {
        (self.first[side].end, self.first[side].ack) = (end, ack);
    }

    /// Counts such packets: those whose copy would be known.
    #[inline]
    pub(super) fn count_new(&mut self, strong: u32) {
        self.singles += strong;
    }
}

/// How long `event` came behind `old`, if it is just like that, SACK blocks apart, and came close enough.
pub(super) fn met_again_after(old: &Event, event: &Event) -> Option<i64> {
    let age = event.tap - old.tap;
    let elsewhere = old.interface != event.interface && is_counted(event) || is_told_apart(event);
    let near = age <= WITHIN_NS || age <= ELSEWHERE_WITHIN_NS && elsewhere;
    (near && said(old) == said(event)).then_some(age)
}

/// Whether a packet that says the same as `event` is that packet, and no repeat by its sender.
fn is_told_apart(event: &Event) -> bool {
    event.has(TS) && (is_counted(event) || event.has(SYN))
}

/// Whether the identification is one that a stack counts up. Zero is what Linux sends where it
/// needs none (`ip_select_ident` with DF and no socket).
pub(super) fn is_counted(event: &Event) -> bool {
    event.has(ID) && event.id != 0
}

/// What the packet itself says, not what was found about it.
fn said(event: &Event) -> Said {
    const SAID: u16 = FLAGS | FROM_SERVER | TS | ID;
    let Event { bits, id, seq, len, ack, window, tsval, tsecr, .. } = *event;
    (bits & SAID, id, seq, len, ack, window, [tsval, tsecr])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::flow::event::FROM_SERVER;

    fn data(at: i64, seq: i64, len: u32) -> Event {
        Event { tap: TapTime(at), seq: Offset::at(seq), len, bits: FROM_SERVER, ..Event::default() }
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
        // Retransmitted by the server: met where it was first met, so it is no copy.
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

    #[test]
    fn a_packet_of_the_same_number_and_time_stamps_within_a_second_is_the_same_packet() {
        let old = Event { id: 7, tsval: 5, bits: FROM_SERVER | TS | ID, ..data(0, 0, 1448) };
        let met = |change: fn(&mut Event), after: i64| {
            let mut event = old;
            change(&mut event);
            let mut first = old;
            (first.bits, first.id) = (event.bits, event.id);
            event.tap = TapTime(after);
            met_again_after(&first, &event)
        };
        let second = ELSEWHERE_WITHIN_NS;
        assert_eq!(met(|_| {}, second), Some(second));
        assert_eq!(met(|_| {}, second + 1), None);
        assert_eq!(met(|event| event.tsval += 1, WITHIN_NS), None, "it was retransmitted");
        assert_eq!(
            met(|event| event.bits &= !TS, WITHIN_NS + 1),
            None,
            "nothing proves the number"
        );
        assert_eq!(met(|event| event.id = 0, WITHIN_NS + 1), None, "nobody counts these");
        assert_eq!(
            met(|event| (event.id, event.bits) = (0, event.bits | SYN), second),
            Some(second)
        );
    }

    #[test]
    fn what_was_too_large_is_sent_again_at_once_and_is_no_copy() {
        let again = Event {
            tap: TapTime(100),
            seq: Offset::FIRST,
            len: 7140,
            bits: FROM_SERVER,
            ..Event::default()
        };
        let is_repeat = |told: Option<(Side, i64)>, age| {
            let mut copies = Copies::default();
            if let Some((side, tap)) = told {
                copies.expect_repeats(side, TapTime(tap));
            }
            copies.is_expected_repeat(&again, age)
        };
        assert!(is_repeat(Some((1, 60)), 90), "behind the original at 10");
        assert!(!is_repeat(None, 90));
        assert!(!is_repeat(Some((1, 9)), 90), "of something before");
        assert!(!is_repeat(Some((1, 60)), 30), "a copy of what was retransmitted at 70");
        assert!(!is_repeat(Some((0, 60)), 90), "of the other side's packets");
        let mut twice = Copies::default();
        let here = spot(3, Direction::Incoming, 64);
        assert!(!twice.is_copy(&data(0, 0, 100), here, false));
        assert!(twice.is_copy(&data(1, 0, 100), here, true));
        twice.expect_repeats(1, TapTime(60));
        assert!(!twice.is_expected_repeat(&again, 90), "each packet is captured twice");
    }

    #[test]
    fn packets_are_remembered_once_a_copy_came_from_far_and_a_bounded_number_of_them() {
        let event =
            |id: u16| Event { id, tap: TapTime(id.into()), bits: TS | ID, ..data(0, 0, 1448) };
        let mut copies = Copies::default();
        assert!(!copies.are_from_far(WITHIN_NS), "a neighbour tells nothing of two hosts");
        assert!(copies.are_from_far(WITHIN_NS + 1));
        copies.remember(&event(1));
        assert!(!copies.is_remembered(&event(1)));
        copies.begin_remembering([event(1)].into_iter());
        assert!(copies.is_remembered(&event(1)));
        (1..=9_000).for_each(|id| copies.remember(&event(id)));
        assert!(copies.is_remembered(&event(9_000)) && !copies.is_remembered(&event(1)));
        assert!(copies.is_remembered(&event(8_100)), "the newest are kept when there are too many");
        assert!(copies.remembered.is_some_and(|met| met.len() <= MOST_REMEMBERED));
    }
}
