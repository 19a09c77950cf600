//! Packets met twice: which did the capture double, and which the path?
//!
//! A copy that the capture made (any interface, a mirror) never reached the receiver's TCP. A copy that the path
//! made did. The receiver's TCP answers it with a D-SACK of its range (RFC 2883 section 4, Linux
//! `tcp_send_dupack`), though nothing there was retransmitted. So two things speak for the path at the receiver:
//! the copy, and the D-SACK for it. At the sender there is the D-SACK alone. A retransmission that the capture
//! lacks would give one, too.

use crate::flow::facts::Facts;
use crate::flow::side::SideInfo;
use crate::limits::walk::Walker;
use crate::segments::Segments;

/// D-SACKs that have to come where no copy was met. Ours: not measured.
const FEWEST_ALONE: u64 = 3;

/// Segments of the direction that `walker` follows, and `sender` sent, which the path doubled.
pub(super) fn by_path(sender: &SideInfo, walker: &Walker) -> u64 {
    let told = walker.sender.repairs.doubled.segments;
    let met = sender.data_copies;
    // Where most copies got no D-SACK the capture makes copies, and may have taken a repeat for one.
    let is_met = met > 0 && told * 2 >= met;
    let stands_alone =
        met == 0 && told >= FEWEST_ALONE && walker.sender.tally.not_captured == Segments::NONE;
    if is_met || stands_alone { told } else { 0 }
}

/// Copies that the capture made. Where the path made those of data, it made the others of that side.
pub(super) fn by_capture(facts: &Facts, walkers: Option<&[Walker; 2]>) -> u64 {
    let Some(walkers) = walkers else { return facts.duplicates };
    let of_path = facts
        .sides
        .iter()
        .zip(walkers)
        .map(|(side, walker)| if by_path(side, walker) > 0 { side.copies } else { 0 });
    facts.duplicates.saturating_sub(of_path.sum())
}
