//! What the tap sees.

use tcpwhy_model::segment::{Flags, Segment};

/// A segment, or some that were joined, on the tap.
#[derive(Clone, Debug)]
pub(super) struct Sent {
    /// The connection that it is of; none if it answers what belongs to no connection.
    pub(super) owner: Option<usize>,
    pub(super) at_ns: u64,
    pub(super) segment: Segment,
    /// The last one that was joined.
    pub(super) last: Segment,
}

impl Sent {
    pub(super) fn new(owner: Option<usize>, at_ns: u64, segment: Segment) -> Sent {
        Sent { owner, at_ns, segment, last: segment }
    }

    /// Appends one that goes on where this ends: the whole has the flags of the last, as if one
    /// super-segment had been cut so.
    pub(super) fn join(&mut self, more: &Sent) {
        self.segment.len += more.segment.len;
        let reduced =
            if self.segment.flags.has(Flags::CWR) { Flags::CWR } else { Flags::default() };
        self.segment.flags = more.segment.flags.with(reduced);
        self.at_ns = more.at_ns;
        self.last = more.segment;
    }
}
