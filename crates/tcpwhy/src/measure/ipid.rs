//! The ledger of IP identifications: what this sender put on the wire that the tap never saw.
//!
//! Linux gives a connected IPv4 socket a counter that advances by one a wire segment
//! (`ip_select_ident_segs`; a super-segment takes as many as it is split into). A jump means that
//! packets were lost between the stack and the tap, or missed by the capture. IPv6 has none.
//!
//! Other stacks send constant or random numbers, or count all that the host sends, to anybody or to one peer:
//! the field of an unfragmented datagram means nothing (RFC 6864 section 4.1). So the ledger has to know whose
//! the counter is. A SYN that only Linux writes tells that it is the socket's own; one of Windows, Apple or BSD
//! that it is not. Where no SYN tells, a long run without a gap shows a counter that hardly anybody else moves:
//! it gives the order of packets, but what is missing in it may have been sent to others. And a counter that jumps
//! again and again though no byte is missing is moved by others, whoever sent the SYN.

use crate::flow::event::{Event, ID};
use crate::offsets::Offset;
use crate::segments::Segments;

/// A jump by more than this is no counter of this connection. Ours: an outage of a second at
/// 20 Mbit/s swallows 1,700 segments; a random number falls into the range once in 32 times.
const MAX_JUMP: u16 = 2048;
/// Steps before the ledger of an own counter is believed.
const MIN_STEPS: u32 = 4;
/// Steps before one of an unknown host is, for the order alone. Ours: not measured.
const LONG_RUN: u32 = 64;

/// Whose counter a sender's identifications are.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub(crate) enum Counter {
    /// The socket's own, as Linux counts.
    Own,
    /// Nobody knows.
    #[default]
    Unknown,
    /// The host's, a peer's, or none at all.
    Others,
}

/// What the counter says of a packet.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Step {
    /// Nothing.
    Unknown,
    /// It was sent after all others seen, and this many segments are missing before it.
    After(u16),
    /// It was sent before one already seen: the network reordered them.
    Before,
}

/// One sender's counter.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Ledger {
    counter: Counter,
    next: Option<u16>,
    steps: u32,
    breaks: u32,
    /// Jumps before packets that no byte was missing before.
    jumps: u32,
    /// Offset behind all that was sent.
    end: Offset,
}

impl Ledger {
    /// Learns whose the counter is.
    pub(crate) fn is_of(&mut self, counter: Counter) {
        self.counter = counter;
    }

    /// Whether the sender is known to count its packets of this connection, and no others.
    pub(crate) fn is_believed(&self) -> bool {
        self.counter == Counter::Own && self.orders()
    }

    /// Whether the numbers tell the order of the packets.
    fn orders(&self) -> bool {
        match self.counter {
            // Ours: of an own counter a quarter may be missing, which a queue of the host's own refused.
            Counter::Own => {
                self.steps >= MIN_STEPS
                    && self.breaks * 10 <= self.steps
                    && self.jumps * 4 <= self.steps
            }
            Counter::Unknown => {
                let odd = self.breaks + self.jumps;
                self.steps >= LONG_RUN && odd * LONG_RUN <= self.steps
            }
            Counter::Others => false,
        }
    }

    /// The number of the next packet, once one was seen.
    pub(crate) fn next(&self) -> Option<u16> {
        self.next
    }

    /// Takes this many packets, up to the one before `next`. Each of them had the next number.
    pub(crate) fn go_on(&mut self, next: u16, packets: u32) {
        self.next = Some(next);
        self.steps += packets;
    }

    /// What was taken so ends at this offset.
    pub(crate) fn reach(&mut self, end: Offset) {
        self.end = self.end.max(end);
    }

    /// Takes a packet of `segments` wire segments.
    pub(crate) fn push(&mut self, event: &Event, segments: Segments) -> Step {
        let is_next = event.seq == self.end;
        self.reach(event.end());
        if !event.has(ID) || self.counter == Counter::Others || self.is_uncounted(event) {
            return Step::Unknown;
        }
        let following = event.id.wrapping_add(step(segments));
        let Some(expected) = self.next else {
            self.next = Some(following);
            return Step::Unknown;
        };
        let orders = self.orders();
        let back = expected.wrapping_sub(event.id);
        if orders && (1..=MAX_JUMP).contains(&back) {
            return Step::Before;
        }
        self.next = Some(following);
        match event.id.wrapping_sub(expected) {
            0 => self.steps += 1,
            jump if jump <= MAX_JUMP => {
                self.jumps += u32::from(is_next);
                let missing = if self.counter == Counter::Own { jump } else { 0 };
                return if orders { Step::After(missing) } else { Step::Unknown };
            }
            _ => self.breaks += 1,
        }
        if orders { Step::After(0) } else { Step::Unknown }
    }

    /// Whether `event` has none of the counter's numbers: Linux sends a SYN-ACK and some resets with 0
    /// (`ip_build_and_send_pkt`).
    fn is_uncounted(&self, event: &Event) -> bool {
        let is_near = |next: u16| next <= MAX_JUMP || next.wrapping_neg() <= MAX_JUMP;
        event.id == 0 && !self.next.is_some_and(is_near)
    }
}

/// How many numbers a packet of `segments` wire segments takes.
pub(crate) fn step(segments: Segments) -> u16 {
    segments.get().clamp(1, 1 << 15) as u16
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Steps of packets that bring no bytes, of a socket's own counter.
    fn steps(ids: &[(u16, u64)]) -> Vec<Step> {
        let mut ledger = Ledger { counter: Counter::Own, ..Ledger::default() };
        let event = |id| Event { id, bits: ID, ..Event::default() };
        ids.iter()
            .map(|(id, segments)| ledger.push(&event(*id), Segments::new(*segments)))
            .collect()
    }

    /// The step to a packet behind this many of `counter`. Each of them carries one new byte. The number goes on
    /// by `jumps` more at every second of them, and by `jump` more before the last.
    fn told(counter: Counter, packets: u16, jumps: u16, jump: u16) -> Step {
        let mut ledger = Ledger { counter, ..Ledger::default() };
        let mut push = |seq: i64, id: u16| {
            ledger.push(
                &Event { id, seq: Offset::at(seq), len: 1, bits: ID, ..Event::default() },
                Segments::new(1),
            )
        };
        for number in 0..packets {
            push(i64::from(number), 100 + number + number / 2 * jumps);
        }
        push(i64::from(packets), 100 + packets + packets / 2 * jumps + jump)
    }

    #[test]
    fn whose_counter_it_is_says_what_a_jump_means() {
        assert_eq!(told(Counter::Own, 6, 0, 3), Step::After(3));
        assert_eq!(told(Counter::Unknown, 64, 0, 3), Step::Unknown, "63 steps");
        assert_eq!(told(Counter::Unknown, 65, 0, 3), Step::After(0), "the order, but no loss");
        assert_eq!(told(Counter::Others, 99, 0, 3), Step::Unknown);
    }

    #[test]
    fn a_counter_that_jumps_where_no_byte_is_missing_is_moved_by_others() {
        assert_eq!(told(Counter::Own, 99, 1, 3), Step::Unknown);
        assert_eq!(told(Counter::Unknown, 999, 1, 3), Step::Unknown);
    }

    #[test]
    fn a_zero_that_the_counter_is_far_from_is_none_of_its_numbers() {
        let ids = [(0, 1), (500, 1), (501, 1), (502, 1), (503, 1), (504, 1), (0, 1), (505, 1)];
        let ids = ids.map(|(id, segments)| (if id == 0 { 0 } else { id + 9000 }, segments));
        assert_eq!(steps(&ids)[6..], [Step::Unknown, Step::After(0)]);
    }

    #[test]
    fn a_jump_of_a_counter_is_missing_segments() {
        let seen = steps(&[(65_533, 1), (65_534, 2), (0, 1), (1, 1), (2, 1), (6, 1)]);
        assert_eq!(seen.last(), Some(&Step::After(3)));
    }

    #[test]
    fn a_step_back_is_reordering() {
        let seen = steps(&[(1, 1), (2, 1), (3, 1), (4, 1), (5, 1), (7, 1), (6, 1), (8, 1)]);
        assert_eq!(seen[6..], [Step::Before, Step::After(0)]);
    }

    #[test]
    fn random_numbers_say_nothing() {
        let seen = steps(&[(7, 1), (900, 1), (30_000, 1), (4, 1), (5, 1), (8, 1)]);
        assert_eq!(seen.last(), Some(&Step::Unknown));
    }
}
