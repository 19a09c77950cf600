//! What an event proves of time that has passed.
//!
//! The sender's parts tell facts, and the account takes them down: they never see it.

use crate::clocks::StackTime;
use crate::limits::wait::Wait;

/// What time was for.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Proven {
    /// A SYN or SYN-ACK was retransmitted.
    SynRepeated,
    /// The timer of the tail's probe ran out, or that of retransmission: the capture shows the retransmission.
    Probe,
    Timeout,
    /// The same where something of it is missing in the capture.
    ProbeUnseen,
    TimeoutUnseen,
    /// The original of the retransmission is older than the capture.
    TimeoutBeforeCapture,
    /// A lone segment turned out to be a repeat.
    LoneRepeat,
    /// The capture lacks packets.
    Gap,
    /// It lacks what an ACK tells of.
    UnseenSends,
}

/// A proof, in the order in which they came.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Proof {
    /// All time since then was for this.
    Since { since: StackTime, what: Proven },
    /// What was sent now, `since` what was sent before it, came by itself: no arrival let it out.
    ByItself { since: StackTime },
    /// All time since then belongs to the loss episode.
    Episode { since: StackTime, id: u32 },
    /// A hole of the capture begins, and the flight of the open wait had filled the receiver's window.
    FullBeforeHole(Wait),
    /// The open wait is over, though nothing shows what ended it.
    NextWait,
}
