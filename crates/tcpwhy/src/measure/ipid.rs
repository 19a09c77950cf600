//! The ledger of IP identifications: what this sender put on the wire that the tap never saw.
//!
//! Linux gives a connected IPv4 socket a counter that advances by one a wire segment
//! (`ip_select_ident_segs`; a super-segment takes as many as it is split into). A jump means that
//! packets were lost between the stack and the tap, or missed by the capture. Other stacks send
//! constant, global or random numbers: the ledger speaks only while the numbers step as a counter
//! does. IPv6 has none.

use crate::flow::event::{Event, ID};

/// A jump by more than this is no counter of this connection. Ours: a burst of losses of 64
/// segments is a TSO super-segment and a half.
const MAX_JUMP: u16 = 64;
/// Steps before the ledger is believed.
const MIN_STEPS: u32 = 4;

/// One sender's counter.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Ledger {
    next: Option<u16>,
    steps: u32,
    breaks: u32,
}

impl Ledger {
    /// Takes a packet of `segments` wire segments; how many segments are missing before it, `None`
    /// where the numbers do not tell.
    pub(crate) fn push(&mut self, event: &Event, segments: u64) -> Option<u16> {
        if !event.has(ID) {
            return None;
        }
        let taken = segments.clamp(1, 1 << 15) as u16;
        let expected = self.next.replace(event.id.wrapping_add(taken))?;
        match event.id.wrapping_sub(expected) {
            0 => self.steps += 1,
            jump if jump <= MAX_JUMP => {
                let believed = self.steps >= MIN_STEPS && self.breaks * 10 <= self.steps;
                return believed.then_some(jump);
            }
            _ => self.breaks += 1,
        }
        Some(0).filter(|_| self.steps >= MIN_STEPS)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn missing(ids: &[(u16, u64)]) -> Vec<Option<u16>> {
        let mut ledger = Ledger::default();
        let event = |id| Event { id, bits: ID, ..Event::default() };
        ids.iter().map(|(id, segments)| ledger.push(&event(*id), *segments)).collect()
    }

    #[test]
    fn a_jump_of_a_counter_is_missing_segments() {
        let seen = missing(&[(65_533, 1), (65_534, 2), (0, 1), (1, 1), (2, 1), (6, 1)]);
        assert_eq!(seen.last(), Some(&Some(3)));
    }

    #[test]
    fn random_numbers_say_nothing() {
        let seen = missing(&[(7, 1), (900, 1), (30_000, 1), (4, 1), (5, 1), (8, 1)]);
        assert_eq!(seen.last(), Some(&None));
    }
}
