//! What let data out since the open wait began: the ACKs that took something out of the flight.

use crate::clocks::StackTime;
use crate::limits::sense::WAIT_ACKS;
use crate::offsets::Offset;
use std::collections::VecDeque;

/// ACKs of the open wait, and the last of all.
#[derive(Clone, Debug, Default)]
pub(crate) struct Releases {
    /// The ACKs of the open wait, oldest first.
    pub(crate) acks: VecDeque<Advance>,
    /// The last one also carried data of the peer.
    pub(crate) by_data: bool,
    /// When something last left the flight.
    pub(crate) last: Option<StackTime>,
}

/// An ACK that took something out of the flight.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct Advance {
    pub(crate) at: StackTime,
    /// Up to where all was acknowledged then.
    pub(crate) una: Offset,
}

impl Releases {
    /// Takes over the room of `old`, which is done.
    pub(crate) fn reuse(&mut self, old: &mut Self) {
        core::mem::swap(&mut self.acks, &mut old.acks);
        self.acks.clear();
    }

    /// Something left the flight at `at`, and all up to `una` is acknowledged; `by_data` if it came on data of the
    /// peer.
    pub(crate) fn push(&mut self, at: StackTime, una: Offset, by_data: bool) {
        if self.acks.len() == WAIT_ACKS {
            self.acks.pop_front();
        }
        self.acks.push_back(Advance { at, una });
        self.last = Some(at);
        self.by_data = by_data;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wait_remembers_its_newest_acks() {
        let mut releases = Releases::default();
        (0..100).for_each(|at| releases.push(StackTime(at), Offset::at(10 * at), at == 99));
        let [first, last] =
            [36, 99].map(|at| Some(Advance { at: StackTime(at), una: Offset::at(10 * at) }));
        assert_eq!((releases.acks.front(), releases.acks.back()), (first.as_ref(), last.as_ref()));
        assert!(releases.by_data);
    }
}
