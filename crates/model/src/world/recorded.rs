//! What a capture recorded of a connection, in place of what the hosts' rules and chance would make.

use super::{Side, World};
use crate::segment::Segment;
use crate::socket::Offered;
use serde::{Deserialize, Serialize};

/// What happened to the first connection of a run, each by the client and the server.
#[derive(Clone, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
pub struct Recorded {
    /// The windows that the side offered; `None` leaves them to its kernel.
    pub offered: [Option<Offered>; 2],
    /// Bytes that the side sent and that were lost, counted from its first: the first segment that
    /// carries one is lost, and the next too if it is listed twice.
    pub lost: [Vec<u64>; 2],
}

impl World {
    /// The same run, given up as unfinished after this many events, or as many packets: a single instant may have
    /// thousands.
    #[must_use]
    pub const fn at_most(mut self, events: u64) -> Self {
        self.most_events = events;
        self
    }

    /// The same run, but for what was recorded; a threshold of a route is remembered from a connection
    /// before.
    #[must_use]
    pub fn with(mut self, recorded: &Recorded) -> Self {
        for (config, offered) in self.configs.iter_mut().zip(&recorded.offered) {
            config.offered.clone_from(offered);
        }
        self.remember_route(Side::Client);
        self.remember_route(Side::Server);
        for (losses, lost) in self.losses.iter_mut().zip(&recorded.lost) {
            losses.left.clone_from(lost);
            losses.left.sort_unstable();
        }
        self
    }

    /// Whether a segment was lost in the capture; then it is taken from the list.
    pub(super) fn is_recorded_as_lost(
        &mut self,
        connection: u32,
        side: Side,
        segment: &Segment,
    ) -> bool {
        let first = isn(side, connection).wrapping_add(1);
        let from = u64::from(segment.seq.wrapping_sub(first));
        connection == 0 && self.losses[side.index()].take(from, u64::from(segment.len))
    }
}

/// What a capture lost of one side's stream.
#[derive(Clone, Debug, Default)]
pub(super) struct Losses {
    /// Its bytes that no segment has taken away here yet, in order.
    left: Vec<u64>,
    /// Segments with data so far.
    seen: u64,
    /// Which of these were lost, counted from 1.
    pub(super) numbers: Vec<u64>,
}

impl Losses {
    /// Whether the segment with these bytes is lost.
    fn take(&mut self, from: u64, len: u64) -> bool {
        if self.left.is_empty() || len == 0 {
            return false;
        }
        self.seen += 1;
        let inside = self.left.partition_point(|byte| *byte < from)
            ..self.left.partition_point(|byte| *byte < from + len);
        let is_lost = !inside.is_empty();
        // One of each: what is listed twice is lost the next time too.
        let mut last = None;
        let mut at = 0;
        self.left.retain(|byte| {
            let taken = inside.contains(&at) && last.replace(*byte) != Some(*byte);
            at += 1;
            !taken
        });
        if is_lost {
            self.numbers.push(self.seen);
        }
        is_lost
    }
}

/// Initial sequence numbers are as good as any; they differ so that a mistake shows.
pub(super) const fn isn(side: Side, connection: u32) -> u32 {
    0x1000_0000 * (1 + side.index() as u32) + connection * 0x0010_0000
}
