//! How much is remembered. Memory is bounded, whatever comes; what is forgotten makes an account coarser, not wrong.

/// Rounds before one that a decision about it looks at. Ours: two take part in most tests, one more for chance. For
/// `near/rate`, `near/rounds`.
pub(crate) const ROUNDS_BEFORE: usize = 3;

/// Rounds behind it that a decision waits for (limits-method section 6). Ours: what is sent in one is answered in
/// the next, and shows in the one behind that. For `near/rate`, `near/rounds`, `walk/settle`.
pub(crate) const ROUNDS_AFTER: usize = 2;

/// Rounds kept for decisions. Ours: a decision looks three rounds back and two ahead, a lid at all. For
/// `near/rounds`.
pub(crate) const ROUNDS: usize = 10;

/// Steps between ACKs that are kept, the newest. Ours: enough for the closest hundredths to be more than one. For
/// `near/spacing`.
pub(crate) const STEPS: usize = 64;

/// Answers to full windows that are remembered. Ours: a receiver's last seconds. For `sender/reader`.
pub(crate) const ANSWERS: usize = 16;

/// ACKs of one wait that are remembered, and pieces of it that they tell apart. Ours: the oldest of them are no
/// neighbours of the send that ends the wait. For `account/waits`, `sender/releases`.
pub(crate) const WAIT_ACKS: usize = 64;

/// ACKs and frames of a batch for the replay. Ours: a batch ends with the first ACK after a send, so more are sends
/// without ACKs or ACKs without sends, which the replay can do without. For `sender/batch`.
pub(crate) const BATCHED: usize = 4096;

/// Episodes of repair remembered for late D-SACKs. Ours: more than a round trip has. For `sender/episodes`.
pub(crate) const EPISODES: usize = 64;

/// Frames of originals that a repeat names. Ours: a super-segment's. For `sender/repair`.
pub(crate) const ORIGINALS: usize = 64;

/// Holes remembered until they are repaired. Ours: an episode needs its first. For `sender/holes`.
pub(crate) const HOLES: usize = 64;

/// Repeats remembered: as many as one round trip's. Ours: not measured. For `sender/repeats`.
pub(crate) const REPEATS: usize = 256;

/// Jumps of the round trip kept of one direction. Ours: more than a reader looks at. For `sender/jumps`.
pub(crate) const JUMPS: usize = 64;

/// Flights kept before every other one is dropped. Ours: more than a picture shows. For `sender/samples`.
pub(crate) const SAMPLES: usize = 1000;

/// Rounds listed in the report. Ours: more than a picture shows. For `sender/book`.
pub(crate) const LISTED_ROUNDS: usize = 10_000;

/// Retransmissions listed, and flights at losses, of one direction. Ours: more than a reader looks at. For
/// `sender/losses`, `sender/repair`, `walk`.
pub(crate) const LISTED: usize = 2000;

/// Transfers kept of one direction; later ones are counted only. Ours: half a megabyte. For `sender/transfers`.
pub(crate) const TRANSFERS: usize = 4096;

/// Tables of times that are kept for the next connection. Ours: most have one or two transfers. For
/// `sender/transfers`.
pub(crate) const SPARE_TABLES: usize = 8;

/// Packets that the short way of turns looks through in vain. Ours: not measured. For `quick/turns`.
pub(crate) const TURN_PACKETS: usize = 64;

/// Pieces a decision may wait for: of more, the oldest is booked as it is. Ours: what is decided is merged, so a
/// round costs a few, and a wait has this many only if its window or its repairs come and go. For `walk`,
/// `walk/settle`.
pub(crate) const PIECES: usize = 16_000;

/// Intervals held back for what may yet be told of them. Ours: 3 MB with the one that is too many. Each is of one
/// state, and few transfers have as many. For `account/due`.
pub(crate) const HELD_BACK: usize = (1 << 15) - 1;

/// Intervals kept of one direction. Ours: 20,000 of 120 bytes are 2.4 MB, more than a page can draw; half of them
/// are left out at a time. For `account/ledger`.
pub(crate) const INTERVALS: usize = 20_000;

/// Cells of a strip, and how many are folded when it is full. Ours: more than a terminal is wide. For
/// `account/ledger`.
pub(crate) const STRIP_CELLS: usize = 512;

/// Runs of a strip before cells are laid. Ours: as much memory as a few cells take. For `account/ledger`.
pub(crate) const STRIP_RUNS: usize = 48;

/// Slices of a strip that was kept as runs, at most. Ours: as wide as a page. For `account/ledger`.
pub(crate) const STRIP_SLICES: i64 = 128;
