//! Events of a connection on their way to the analysis, with their SACK blocks.
//!
//! Blocks are numbered through the connection, so that an event finds its own in any part of the
//! list that holds them.

use super::event::{Block, Event};

/// Consecutive events of one connection.
#[derive(Clone, Debug, Default)]
pub(crate) struct Gathered {
    pub(crate) events: Vec<Event>,
    /// SACK blocks of those events, and the number of the first.
    sacks: Vec<Block>,
    first_sack: u32,
}

impl Gathered {
    /// Forgets all, and keeps the room.
    pub(crate) fn clear(&mut self) {
        self.events.clear();
        self.sacks.clear();
        self.first_sack = 0;
    }

    /// Begins, empty, behind what `earlier` ends with.
    pub(super) fn go_on_from(&mut self, earlier: &Self) {
        self.clear();
        self.first_sack = earlier.first_sack.wrapping_add(earlier.sacks.len() as u32);
    }

    /// Keeps the SACK blocks of `event`, which is still to be stored.
    pub(super) fn keep_blocks(&mut self, event: &mut Event, blocks: &[Block]) {
        event.sack_at = self.first_sack.wrapping_add(self.sacks.len() as u32);
        event.sack_count = blocks.len() as u8;
        self.sacks.extend(blocks);
    }

    /// The SACK blocks of `event`.
    pub(crate) fn blocks(&self, event: &Event) -> &[Block] {
        let count = usize::from(event.sack_count);
        if count == 0 {
            return &[];
        }
        let from = event.sack_at.wrapping_sub(self.first_sack) as usize;
        let blocks = self.sacks.get(from..).and_then(|rest| rest.get(..count));
        blocks.unwrap_or_default()
    }

    /// The events from the last to the first, with their SACK blocks.
    pub(super) fn backwards(&self) -> impl Iterator<Item = (&Event, &[Block])> {
        self.events.iter().rev().map(|event| (event, self.blocks(event)))
    }

    /// Keeps the last `number` of its events and of those of `later`, which go on from it.
    pub(super) fn keep_last(&mut self, number: usize, later: &Self) {
        let kept = number.saturating_sub(later.events.len());
        self.drop_events(self.events.len().saturating_sub(kept));
        let from = later.events.len().saturating_sub(number);
        let mut sacks_from = 0;
        if self.events.is_empty() {
            sacks_from = later.sacks_before(from);
            self.sacks.clear();
            self.first_sack = later.first_sack.wrapping_add(sacks_from as u32);
        }
        self.events.extend(&later.events[from..]);
        self.sacks.extend(&later.sacks[sacks_from..]);
    }

    /// Puts what is left of `before`, from which this goes on, in front of it.
    pub(crate) fn follow(&mut self, before: &mut Self) {
        if before.events.is_empty() {
            return;
        }
        self.events.splice(..0, before.events.drain(..));
        self.sacks.splice(..0, before.sacks.drain(..));
        self.first_sack = before.first_sack;
    }

    /// Takes all but the first `done` of `from`.
    pub(crate) fn take_rest(&mut self, from: &Self, done: usize) {
        let gone = from.sacks_before(done);
        self.events.extend(&from.events[done..]);
        self.sacks.extend(&from.sacks[gone..]);
        self.first_sack = from.first_sack.wrapping_add(gone as u32);
    }

    /// Forgets the first `done` events.
    fn drop_events(&mut self, done: usize) {
        let gone = self.sacks_before(done);
        self.events.drain(..done);
        self.sacks.drain(..gone);
        self.first_sack = self.first_sack.wrapping_add(gone as u32);
    }

    /// How many SACK blocks come before those of the events from `at` on.
    fn sacks_before(&self, at: usize) -> usize {
        let next = self.events[at..].iter().find(|event| event.sack_count > 0);
        let before = next.map(|event| event.sack_at.wrapping_sub(self.first_sack) as usize);
        before.unwrap_or(self.sacks.len()).min(self.sacks.len())
    }
}
