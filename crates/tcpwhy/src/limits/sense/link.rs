//! Queues, rates and spacing.

use super::Share;

/// A queue is one only above this (limits-method section 6). For `round`.
pub(crate) const QUEUE_MIN_NS: i64 = 1_000_000;

/// And above this share of the least round trip (limits-method section 6). For `round`.
pub(crate) const QUEUE: Share = Share(1, 10);

/// What waits this long below TCP is in a queue: the sender's own time is known to the tick of its time stamps, which
/// is 1 ms in Linux (v6.18 `TCP_TS_HZ`). For `sender/ended`, `sender/short`, `sender/stop`.
pub(crate) const OWN_QUEUE_NS: i64 = 1_000_000;

/// A queue of this share of the least round trip never emptied in the round. Ours: not measured. For `rule/ack_path`, `rule/link`.
pub(crate) const NEVER_EMPTY: Share = Share(1, 2);

/// As many round trips tell so of a round. Ours: not measured. For `rule/link`.
pub(crate) const QUEUE_SAMPLES: i64 = 8;

/// Rates are flat if the least is within this share of the most. The method asks for 5 %. Ours: 10 %, set while
/// developing against the simulated kernel; no experiment of its own. For `near/rate`.
pub(crate) const FLAT: Share = Share(1, 10);

/// A rate of this share of another is as fast (limits-method section 6: 5 %). For `near/rate`.
pub(crate) const AS_FAST: Share = Share(95, 100);

/// Rounds that tell of a rate (limits-method section 6: 4 rounds). For `near/rate`.
pub(crate) const FLAT_ROUNDS: usize = 4;

/// A rate that changes by this share varies. Ours: a third; not measured. For `near/rate`.
pub(crate) const VARIES: Share = Share(1, 3);

/// As many changes, up and down, are a link that varies. Ours: not measured. For `near/rate`.
pub(crate) const VARIED_STEPS: u32 = 3;

/// A full link of one's own makes the round trip grow per cent for per cent with the flight; one that others fill,
/// too, by less. The border lies at this part of it. Ours: half. For `near/rate`.
pub(crate) const OWN_SLOPE: f64 = 0.5;

/// With this many times the error of the estimate between. Ours: two, nineteen of twenty by chance. For `near/rate`.
pub(crate) const SLOPE_ERRORS: f64 = 2.0;

/// A flight that varies by less, as a part of it, cannot show that. Ours: 5 %. For `near/rate`.
pub(crate) const LEAST_VARIATION: f64 = 0.05;

/// Nor can fewer rounds. Ours: two parameters need more than three points. For `near/rate`.
pub(crate) const SLOPE_ROUNDS: usize = 4;

/// Fewer packets do not show whether a stream pauses. Ours: not measured. For `near/afar`.
pub(crate) const STREAM_PACKETS: u32 = 16;

/// In this many rounds flights show that they grow by a segment a round. Ours: not measured. For `near/afar`.
pub(crate) const OPENING_ROUNDS: u64 = 5;

/// By this much less than as many segments as there are rounds: the first has none before it, and one may not have
/// grown. Ours. For `near/afar`.
pub(crate) const OPENING_MISSES: u64 = 2;

/// A round whose longest silence is this share of it came without a pause: a flight that a window stops and that
/// does not fill the path leaves it silent for the rest of the round trip. Ours: an eighth. For `round`.
pub(crate) const SMOOTH: Share = Share(1, 8);

/// As many gaps between sends tell so. Ours: with fewer, even ones are longer than [`SMOOTH`]. For `round`.
pub(crate) const SMOOTH_GAPS: i64 = 8;

/// Data keeps passing the tap if no silence is longer than this share of the round. Ours: a quarter, for a link of
/// few packets a round has no shorter ones. For `round`.
pub(crate) const PASSES: Share = Share(1, 4);

/// ACKs keep coming if no silence is longer than this share of the round: half a round of silence is no link that
/// was busy throughout. Ours. For `round`.
pub(crate) const ANSWERED: Share = Share(1, 2);

/// What a pace spaces pauses for no more than this share of the round, a full window for most of it, unless it just
/// fills the path. Ours: a half, made with one pace of three pulses a round. For `rule/buffer`.
pub(crate) const PACED_PAUSE: Share = Share(1, 2);

/// Fewer ACKs do not show how close packets come. Ours: of these the closest seventh are three. For `near/spacing`.
pub(crate) const SPACED_STEPS: usize = 24;

/// Rounds that must tell of one spacing. Ours: half of what limits-method section 6 looks at around one. For
/// `near/spacing`.
pub(crate) const SPACED_ROUNDS: usize = 3;

/// Their rates are one if the least is this share of the most. Ours: a tenth, as [`FLAT`]. For `near/spacing`.
pub(crate) const ONE_SPACING: Share = Share(9, 10);

/// Steps of this share of the fastest are the link's. Ours: where jitter spreads distances evenly by a third and
/// more, a seventh of them lies wider than that; what it spreads less is no share of [`SHARED`]. For
/// `near/spacing`.
pub(crate) const CLOSE: Share = Share(9, 10);

/// Of as many ACKs one may be faster than the link, by chance. Ours: a fiftieth. For `near/spacing`.
pub(crate) const ONE_ASTRAY: usize = 50;

/// More than this share of the steps are as close as the link lets them be. Ours: a seventh. For `near/spacing`.
pub(crate) const CLOSEST: Share = Share(1, 7);

/// The rate of the link is that of the step in the middle of those. Ours: half of a seventh. For `near/spacing`.
pub(crate) const MID_CLOSEST: Share = Share(1, 14);

/// They come within this share of the mean distance: else what they are for differs, and the ACKs' own way is the
/// narrow one. Ours: not measured. For `near/spacing`.
pub(crate) const CLOSER: Share = Share(3, 4);

/// This share of the steps or more are changes between close and far: of two that share a link in turns a third or
/// more are, of a link that runs slower for a while one is. Ours: a fifth. For `near/spacing`.
pub(crate) const TURNS: Share = Share(1, 5);

/// A link that this sender got no more of than this share is shared. Ours: a third of it goes to others. For
/// `near/spacing`.
pub(crate) const SHARED: Share = Share(2, 3);

/// Where it got less than this share of what its closest packets say, they did not come from a queue one by one:
/// radio links and hosts let out bunches of packets at a rate that is not the link's. Ours: an eighth. For
/// `near/spacing`.
pub(crate) const NOT_BUNCHED: Share = Share(1, 8);

/// What came strays this many ACKs from an even rate and more where it is shared. Ours: two and a half to three for a
/// token bucket in front of a link twice as fast and beside constant traffic, seven and more beside other
/// connections. For `near/spacing`.
pub(crate) const STRAYED_STEPS: i128 = 5;

/// Rounds whose silences and round trips tell how flights left of late. Ours: what was dropped, its repair, and one for
/// rounds without a sample. For `sender/repair`.
pub(crate) const FLIGHTS: usize = 3;
