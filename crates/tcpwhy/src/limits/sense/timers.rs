//! When a timer ran out, what follows its cause at once, and how long a receiver may delay.

use crate::segments::Segments;
use core::ops::RangeInclusive;

use super::Share;

/// A quiet time of at least this share of a timer's length is that timer's (limits-method
/// section 6): the estimate of the timer lacks the sender's jiffies and samples we did not see.
const RAN_OUT: Share = Share(80, 100);

/// A probe comes at most so late, of its timer's length, besides jiffies. Ours: as much too late as [`RAN_OUT`] allows
/// too early; not measured.
const PROBE_IN_TIME: Share = Share(120, 100);

/// Timers are this late at most: two jiffies of Linux at HZ=100. For `sender/timers`.
pub(crate) const JIFFIES_NS: i64 = 20_000_000;

/// Timeouts in a row that are thought of where nothing counts them. Ours: six make the last wait 64 times the
/// first. For `sender/timers`.
pub(crate) const MOST_TIMEOUTS: u32 = 6;

/// Timeouts in a row that are thought of where a counter tells how many packets are missing. Ours: one more than
/// Linux allows before it gives up (v6.18 `TCP_RETR2`, 15). For `sender/timers`.
pub(crate) const COUNTED_TIMEOUTS: u64 = 16;

/// What nothing answered for so long and then went out by itself, a timer sent. Ours: the least that the timer of
/// the probe waits (Linux v6.18 `tcp_schedule_loss_probe`: 2 ms, and a tick may have begun). For `sender/before`.
pub(crate) const LEAST_TIMER_NS: i64 = 1_000_000;

/// Sends within this of an ACK were released by it (limits-method section 4), at least. For `sender/trips`.
pub(crate) const RELEASE_MIN_NS: i64 = 50_000;

/// Sends within this share of the round trip of their cause were released by it (limits-method section 4). For
/// `sender/trips`.
pub(crate) const RELEASE_SHARE: Share = Share(3, 100);

/// The round trip to judge by where none is known. Ours: a guess, a hall's. For `sender/trips`.
pub(crate) const GUESSED_RTT_NS: i64 = 1_000_000;

/// A sender that was late by this share of the round trip at most used the answer that came before. Ours: not
/// measured. For `sender/ended`.
pub(crate) const SOON: Share = Share(1, 10);

/// An ACK this much later than the least round trip was delayed by the receiver's timer: 40 to 200 ms in Linux
/// (v6.18 `TCP_DELACK_MIN`, `TCP_DELACK_MAX`), less jiffies and path noise. For `sender/trips`.
pub(crate) const DELAYED_ACK_NS: RangeInclusive<i64> = 35_000_000..=210_000_000;

/// No receiver may delay an ACK longer, nor that of every second full segment (RFC 9293 section 3.8.6.3). For
/// `sender/acks`.
pub(crate) const LONGEST_DELAYED_ACK_NS: i64 = 500_000_000;

/// A receiver may wait for a second full segment before it answers (RFC 1122 section 4.2.3.2); for one more it does
/// so at once. For `sender/acks`, `sender/edge`, `sender/ended`, `sender/reader`.
pub(crate) const DELAYABLE_SEGMENTS: i64 = 2;

/// As many rounds after which a path is believed to have become longer. Ours: not measured; a queue of others
/// seldom lasts that long without emptying once. For `sender/trips`.
pub(crate) const LONGER_ROUNDS: u32 = 8;

/// A round trip is a jump if it is this much longer than the one before it. Ours: two segments more in a queue make
/// a round trip longer by 24 ms at 1 Mbit/s, but hardly twice as long again at once; not measured. For
/// `sender/jumps`.
pub(crate) const JUMP_NS: i64 = 5_000_000;

/// And if it is longer than that by this many times itself. Ours, as [`JUMP_NS`]. For `sender/jumps`.
pub(crate) const JUMP_TIMES: i64 = 2;

/// A jump has passed when a later round trip is longer than the one before by this share of it at most. Ours: half
/// of the excess. For `sender/jumps`.
pub(crate) const JUMP_PASSED: Share = Share(1, 2);

/// The peer's data counts as one flow while its gaps are shorter than this and than [`FLOWING_TRIPS`]. Ours: a
/// sender that waits for ACKs pauses one round trip. For `sender/acks`.
pub(crate) const FLOWING_NS: i64 = 10_000_000;

/// Of the round trip, as [`FLOWING_NS`]. Ours. For `sender/acks`.
pub(crate) const FLOWING_TRIPS: Share = Share(3, 2);

/// Without better evidence, a hole filled within this share of the least round trip was reordering: a repair takes
/// a whole one. Ours: a quarter for jitter; not measured. For `sender/repair`.
pub(crate) const REORDERED: Share = Share(75, 100);

/// Segments that came behind a hole, after which Linux repairs it (v6.18 `tcp_reordering`, RFC 5681 section 3.2).
/// For `sender/episodes`.
pub(crate) const DUP_THRESH: Segments = Segments::new(3);

/// Whether a timer of this length ran out in a `quiet` time. For `sender/edge`, `sender/repair`, `sender/timers`.
pub(crate) fn ran_out(timer: i64, quiet: i64) -> bool {
    RAN_OUT.is_reached(quiet, timer)
}

/// Whether a `quiet` time is no longer than a timer that ends at the `latest` may have taken, as far as its length
/// is known. For `sender/timers`.
pub(crate) fn may_end_by(latest: i64, quiet: i64) -> bool {
    RAN_OUT.is_reached(latest, quiet)
}

/// Whether a probe whose timer has this length is still in time after a `quiet` time. For `sender/timers`.
pub(crate) fn is_probe_in_time(timer: i64, quiet: i64) -> bool {
    quiet <= PROBE_IN_TIME.of(timer) + JIFFIES_NS
}
