//! Nagle's algorithm: a short segment waits until the one before it is acknowledged (RFC 9293 section 3.7.4), which
//! the receiver may delay (`TCP_DELACK_MIN`).

use super::Verdict;
use super::rivals::Seen;
use crate::limits::wait::{Flown, Wait};
use crate::report::State::{App, LastFlight, NagleDelack};

/// A short segment went out when the short one before it was acknowledged (`tcp_minshall_check`). If that came at
/// once, and it is just as long, though more is written while one waits, an application that writes once in a round
/// trip is likelier.
pub(super) fn held_short(wait: &Wait) -> Option<Verdict> {
    let short = wait.behind_short?;
    Some(match () {
        () if wait.ack_was_delayed => Verdict::likely(NagleDelack),
        () if short.is_as_long => Verdict::likely(App).seen(Seen::ShortBehindShort),
        () => Verdict::likely(NagleDelack).seen(Seen::ShortBehindShort),
    })
}

/// A short segment went out behind a short one, with so little in flight that no window and no buffer was full: Nagle's
/// algorithm held it for the ACK, or the application wrote once a round trip.
pub(super) fn short_behind_short(wait: &Wait) -> Option<Verdict> {
    if !wait.is_let_out_by_ack() || !wait.both_short {
        return None;
    }
    if wait.flown != Flown::More && wait.ack_was_delayed {
        return Some(Verdict::likely(NagleDelack));
    }
    (wait.flown == Flown::LessThanOne && wait.had_room)
        .then_some(Verdict::likely(NagleDelack).seen(Seen::ShortBehindShort))
}

/// A short end of a tail that was lost before the tap may have been held meanwhile.
pub(super) fn end_of_tail(wait: &Wait) -> Option<Verdict> {
    (wait.is_by_itself_after_all() && wait.ends_probed_tail)
        .then_some(Verdict::likely(LastFlight).seen(Seen::ShortTail))
}
