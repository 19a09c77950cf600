//! The ledger of IP identifications: what this sender put on the wire that the tap never saw.
//!
//! Linux gives a connected IPv4 socket a counter that advances by one a wire segment
//! (`ip_select_ident_segs`; a super-segment takes as many as it is split into). A jump means that
//! packets were lost between the stack and the tap, or missed by the capture. Other stacks send
//! constant, global or random numbers: the ledger speaks only while the numbers step as a counter
//! does. IPv6 has none.

use crate::flow::event::{Event, ID};

/// A jump by more than this is no counter of this connection. Ours: an outage of a second at
/// 20 Mbit/s swallows 1,700 segments; a random number falls into the range once in 32 times.
const MAX_JUMP: u16 = 2048;
/// Steps before the ledger is believed.
const MIN_STEPS: u32 = 4;

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
    next: Option<u16>,
    steps: u32,
    breaks: u32,
}

impl Ledger {
    /// Whether the sender is known to count.
    pub(crate) fn is_believed(&self) -> bool {
        self.steps >= MIN_STEPS && self.breaks * 10 <= self.steps
    }

    /// The number of the next packet, once one was seen.
    pub(crate) fn next(&self) -> Option<u16> {
        self.next
    }

    /// Takes so many packets, each of which had the next number, up to the one before `next`.
    pub(crate) fn go_on(&mut self, next: u16, packets: u32) {
        self.next = Some(next);
        self.steps += packets;
    }

    /// Takes a packet of `segments` wire segments.
    pub(crate) fn push(&mut self, event: &Event, segments: u64) -> Step {
        if !event.has(ID) {
            return Step::Unknown;
        }
        let following = event.id.wrapping_add(step(segments));
        let Some(expected) = self.next else {
            self.next = Some(following);
            return Step::Unknown;
        };
        let believed = self.is_believed();
        let back = expected.wrapping_sub(event.id);
        if believed && (1..=MAX_JUMP).contains(&back) {
            return Step::Before;
        }
        self.next = Some(following);
        match event.id.wrapping_sub(expected) {
            0 => self.steps += 1,
            jump if jump <= MAX_JUMP => {
                return if believed { Step::After(jump) } else { Step::Unknown };
            }
            _ => self.breaks += 1,
        }
        if believed { Step::After(0) } else { Step::Unknown }
    }
}

/// How many numbers a packet of `segments` wire segments takes.
pub(crate) fn step(segments: u64) -> u16 {
    segments.clamp(1, 1 << 15) as u16
}

#[cfg(test)]
mod tests {
    use super::*;

    fn steps(ids: &[(u16, u64)]) -> Vec<Step> {
        let mut ledger = Ledger::default();
        let event = |id| Event { id, bits: ID, ..Event::default() };
        ids.iter().map(|(id, segments)| ledger.push(&event(*id), *segments)).collect()
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
