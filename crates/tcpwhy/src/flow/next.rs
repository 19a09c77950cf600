//! Where a segment that goes on as the last did is expected.

use super::copies::Spot;
use crate::offsets::Offset;
use tcpwhy_words::units::Seq;

/// Where the next segment of one side goes on.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Next {
    /// A segment may go on here.
    pub(super) is_open: bool,
    /// The window last announced, as it is in the header, and in bytes; 0 if none was.
    pub(super) window: u16,
    pub(super) room: i64,
    /// The number of the next byte, and its offset.
    pub(super) seq: Seq,
    pub(super) at: Offset,
    /// The number last acknowledged, which is the newest, and its offset.
    pub(super) ack: Seq,
    pub(super) acked: Offset,
    /// Up to where this side's own numbers were met, with SYN and FIN.
    pub(super) met: Offset,
    pub(super) spot: Spot,
}
