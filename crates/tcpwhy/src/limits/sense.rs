//! Thresholds that more than one part judges by.

/// Flights that stay the same this many rounds have a lid (limits-method section 6: 4 rounds).
pub(crate) const LID_ROUNDS: usize = 4;

/// A window that a loss has cut stands still for less. Linux v6.18 `tcp_cubic.c`, `bictcp_update`: the
/// curve is 410/1024 segments a second to the third around its plateau, so it takes 2.7 s from one
/// segment below it to one above; all others grow faster, or not at all.
pub(crate) const PLATEAU_NS: i64 = 3_000_000_000;
