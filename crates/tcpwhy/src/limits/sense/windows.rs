//! The receiver's window and its reader, the congestion window and its growth.

use super::Share;
use crate::segments::Segments;

/// A window within this share of its maximum is at it. Ours: what a receiver rounds its window to is less (a
/// segment, or the unit of its scale); not measured. For `sender/edge`, `sender/window`.
pub(crate) const AT_MAXIMUM: Share = Share(95, 100);

/// Rounds whose largest window is remembered, once and twice: what is at its maximum is so of these. Ours: not
/// measured. For `sender/window`.
pub(crate) const RECENT_ROUNDS: u64 = 8;

/// A window of this share of its largest, or less, has shrunk: something lies unread. Ours: a quarter, more than
/// what overhead of small packets takes; not measured. For `sender/edge`.
pub(crate) const SHRUNK: Share = Share(3, 4);

/// With less of the window left than this share, Linux may wait for more before it sends (v6.18
/// `tcp_tso_should_defer`, `tcp_tso_win_divisor` 3). For `sender/edge`, `sender/ended`, `sender/sends`.
pub(crate) const DEFERRED: Share = Share(1, 3);

/// A window of less than this share of the largest is too small to be announced (RFC 9293 section 3.8.6.2.2). For
/// `sender/unseen`.
pub(crate) const SILLY: Share = Share(1, 2);

/// As many rounds whose flights fill a window show that it holds the sender. Ours: one may seem to by what waits in
/// queues, where a window grows along with flights that double; not measured. For `sender/window`.
pub(crate) const FILLED_ROUNDS: u32 = 3;

/// A flight that something else holds ends within a segment of a window of this many by a chance of one in sixteen:
/// the guess puts its end between half the window and all of it. Ours: not measured. For `sender/unseen`.
pub(crate) const TELLING_SEGMENTS: i64 = 32;

/// Less than this beyond a window is damage or a probe. Ours: a super-segment. For `sender/gaps`.
pub(crate) const HOLE_BYTES: i64 = 65_536;

/// ACKs in a row that let nothing out are no delayed release of a full window: Linux waits for at most some to fill
/// a super-segment (v6.18 `tcp_tso_should_defer`). Ours: not measured. For `sender/ended`.
pub(crate) const UNANSWERED: usize = 4;

/// This many answers to full windows tell of a reader. Ours: half of those remembered ([`super::ANSWERS`]). For
/// `sender/reader`.
pub(crate) const ENOUGH_ANSWERS: usize = 8;

/// Answers to full windows are weighed once in so many. Ours: to spare time. For `sender/reader`.
pub(crate) const WEIGHED_EACH: u64 = 4;

/// This share of the bytes must have been answered so to name a reader. Ours: three of four; not measured. For
/// `sender/reader`.
pub(crate) const MOSTLY: Share = Share(3, 4);

/// An answer that comes sooner after the data than this was not kept back: it is what hosts take to handle a batch,
/// and what 64 KiB take on a link of 1 Gbit/s, which a receiver may join and answer at once. Ours: not measured.
/// For `sender/edge`, `sender/ended`, `sender/reader`.
pub(crate) const PROMPT_NS: i64 = 1_000_000;

/// As much where the tap sees the data come: the batch alone. Ours: not measured. For `sender/reader`.
pub(crate) const PROMPT_AT_RECEIVER_NS: i64 = 250_000;

/// Whoever answers within this is on the tap's host. Ours: not measured; a way by cable and a switch takes as long.
/// For `sender/reader`.
pub(crate) const AT_RECEIVER_NS: i64 = 50_000;

/// Later by less than this share of a round trip is worth no other name. Ours: not measured. For `sender/reader`.
pub(crate) const WORTH: Share = Share(1, 8);

/// The middle half of a reader's answers is as late, give or take this share. Ours: not measured. For
/// `sender/reader`.
pub(crate) const ALIKE_ANSWERS: Share = Share(1, 4);

/// Flights that stay the same this many rounds have a lid (limits-method section 6: 4 rounds). For `near/rounds`,
/// `pulse`, `rule/cwnd`, `sender/writes`.
pub(crate) const LID_ROUNDS: usize = 4;

/// Flights that stay the same this many rounds have a lid where no loss has cut the window. Linux v6.18
/// `tcp_cubic.c`, `bictcp_update`: with nothing to regain a window that is used grows at least as Reno's would, by
/// a segment in 1.9 rounds (`beta_scale`), which would be four. Reno's grows by eight. For `near/rounds`, `rule/cwnd`,
/// `sender/growth`.
pub(crate) const UNCUT_LID_ROUNDS: u32 = 8;

/// Of a larger window Linux makes segments of half of it, so that two are under way; of a smaller one a segment is the whole
/// (Linux v6.18 `tcp_bound_to_half_wnd`, `TCP_MSS_DEFAULT`). For `sender/edge`.
pub(crate) const TINY_WINDOW: i64 = 536;

/// Flights to the segment alike in this many rounds have a lid though the window was seen to creep: it grows by three segments
/// meanwhile (Linux `bictcp_update`, as above), and ACKs that end the first and the last round hide one each. It
/// shows for a round once two more are closed behind it: of a lid from the fourth on. For `near/rounds`.
pub(crate) const CREPT_LID_ROUNDS: usize = 6;

/// A window that a loss has cut stays the same for less. Linux v6.18 `tcp_cubic.c`, `bictcp_update`: the curve is
/// 410/1024 segments a second to the third around its plateau, so it takes 2.7 s from one segment below it to one
/// above; all others grow faster, or not at all. For `near/rounds`, `rule/cwnd`.
pub(crate) const PLATEAU_NS: i64 = 3_000_000_000;

/// A window that is used grows by a segment in as many rounds at least, since a loss cut it to no less than nothing. Linux
/// v6.18 `tcp_cubic.c`, `bictcp_update`: as Reno's would, by a segment in 1.9 rounds (`beta_scale`). For `near/rounds`.
pub(crate) const RENO_ROUNDS: u64 = 2;

/// A window that stays the same for this share of [`PLATEAU_NS`] may have a lid. Ours: half, so that most rounds of a
/// plateau name it. For `rule/cwnd`.
pub(crate) const MAY_BE_LID: Share = Share(1, 2);

/// Flights are of one size if they differ by at most this many segments (limits-method section 6: to the segment).
/// For `near/afar`, `near/rounds`, `sender/book`, `sender/growth`.
pub(crate) const SAME_SEGMENTS: Segments = Segments::new(1);

/// Flights that go up and down by more than this share of the larger swing. Ours: an eighth, more than a window
/// grows in a round; not measured. For `near/rounds`, `sender/book`.
pub(crate) const SWINGS: Share = Share(1, 8);

/// A flight of less than this share of the replayed window does not fill it. Ours: a fifth less; ACKs that are
/// thinned move the replay by less. For `round`.
pub(crate) const BELOW_WINDOW: Share = Share(4, 5);

/// A flight that fills the window is no less than this share of what was in flight before: it is counted when its
/// last was sent, and an ACK may have come meanwhile. Ours: not measured. For `sender/book`, `sender/growth`.
pub(crate) const FILLS: Share = Share(7, 8);

/// A round of slow start sends this share of what the one before it sent, or more: it doubles, or grows by half
/// where every second segment is acknowledged and each ACK counts for one (RFC 3465 section 2.1). For
/// `sender/growth`.
pub(crate) const DOUBLES: Share = Share(3, 2);

/// What a window in congestion avoidance grows by in a round is at most this share of it, or a segment: CUBIC's
/// twentieth (Linux v6.1 `bictcp_update`, where no loss was yet), and Reno's segment (RFC 5681 section 3.1). For
/// `sender/growth`.
pub(crate) const AVOIDANCE: Share = Share(1, 16);

/// This many of three slow rounds must have grown if slow start has ended. Ours: two; one may be chance. For
/// `sender/growth`.
pub(crate) const GROWN_STEPS: u32 = 2;

/// ACKs of this many segments each are thinned: RFC 5681 section 4.2 asks for one at least every second segment.
/// Ours: half a segment more. For `sender/growth`.
pub(crate) const THINNED: Share = Share(5, 2);

/// Linux v6.18 `TCP_INIT_CWND` (RFC 6928): assumed where the first flight did not fill the window. For
/// `sender/replay`, `sender/short`.
pub(crate) const LINUX_INITIAL_WINDOW: u64 = 10;

/// More than the window by this many segments is a probe or a split segment, not a contradiction. Ours: limited
/// transmit allows two (RFC 3042). For `sender/replay`.
pub(crate) const SLACK: u64 = 2;

/// A window that has a threshold starts behind a pause at this share (Linux v6.18 `tcp_current_ssthresh`). For
/// `sender/pauses`.
pub(crate) const AFTER_PAUSE: Share = Share(3, 4);

/// ACKs that come within this share of a round trip make one batch for the replay. Ours: not measured. For
/// `sender/sends`.
pub(crate) const BATCH: Share = Share(1, 8);

/// A burst lasts no longer than this share of a round trip. Ours: what is sent later may answer its own first. For
/// `sender/sends`.
pub(crate) const BURST_TRIPS: Share = Share(1, 2);

/// Rounds that one hypothesis of congestion control alone must explain to be named. Ours: not measured. For
/// `sender/avoidance`.
pub(crate) const EXPLAINED_ROUNDS: u64 = 8;

/// And how many times those of the other. Ours: not measured. For `sender/avoidance`.
pub(crate) const CLEARLY: u64 = 4;

/// A flight is a hypothesis's window if it differs by this share of it. Ours: ACKs on the way when it was seen. For
/// `sender/avoidance`.
pub(crate) const REPLAYED: Share = Share(1, 10);

/// Or by this many segments: limited transmit (RFC 3042). For `sender/avoidance`.
pub(crate) const REPLAYED_SEGMENTS: u64 = 2;

/// Below this many segments no sign of `HyStart` counts (Linux v6.1 `hystart_low_window`). For `sender/hystart`.
pub(crate) const HYSTART_SEGMENTS: Segments = Segments::new(16);

/// ACKs at most this far apart are one train (Linux v6.1 `hystart_ack_delta_us`). For `sender/hystart`.
pub(crate) const TRAIN_GAP_NS: i64 = 2_000_000;

/// A train of this share of the least round trip ends slow start (Linux v6.1 `hystart_update`). For
/// `sender/hystart`.
pub(crate) const TRAIN: Share = Share(1, 2);

/// Round trips that tell of a round (Linux v6.1 `HYSTART_MIN_SAMPLES`). For `sender/hystart`.
pub(crate) const HYSTART_SAMPLES: i64 = 8;

/// How far above the least a round trip counts (Linux v6.1 `HYSTART_DELAY_THRESH`). For `sender/hystart`.
pub(crate) const HYSTART_DELAY: Share = Share(1, 8);

/// At least and at most (Linux v6.1 `HYSTART_DELAY_MIN`, `HYSTART_DELAY_MAX`). For `sender/hystart`.
pub(crate) const HYSTART_DELAY_NS: (i64, i64) = (4_000_000, 16_000_000);

/// The least send buffer lets this many full segments be in flight: half of its 4608 bytes is what a packet costs
/// besides (Linux v6.1 `SOCK_MIN_SNDBUF`, `include/net/sock.h`). For `rule/buffer`.
pub(crate) const LEAST_BUFFER_SEGMENTS: Segments = Segments::new(2);
