//! Counters as the checks weigh them: those that grew, how bad that is at most, and shares of one another.

use crate::host::finding::{Evidence, Severity};
use crate::host::seen::{Asked, Growth, Seen};

use super::words;

pub(super) const TCP_EXT: &str = "TcpExt";

/// How far a counter went; `None` if it did not, or this kernel does not have it.
///
/// # Errors
/// Its group was not seen.
pub(super) fn grew(seen: &Seen<'_>, group: &str, name: &str) -> Asked<Option<Growth>> {
    Ok(seen.growth(group, name)?.filter(|growth| growth.by > 0))
}

/// How far it went, 0 where it is not there.
pub(super) fn by(seen: &Seen<'_>, group: &str, name: &str) -> Asked<u64> {
    Ok(seen.growth(group, name)?.map_or(0, |growth| growth.by))
}

/// Segments with data that were sent again: `RetransSegs` counts SYNs and their answers too
/// (`__tcp_retransmit_skb`, `tcp_rtx_synack`, Linux v6.12), and `TCPSynRetrans` these alone.
///
/// # Errors
/// As for [`grew`].
pub(super) fn data_again(seen: &Seen<'_>) -> Asked<Option<Growth>> {
    let Some(all) = grew(seen, "Tcp", "RetransSegs")? else { return Ok(None) };
    let data = all.by.saturating_sub(by(seen, TCP_EXT, "TCPSynRetrans")?);
    Ok((data > 0).then_some(Growth { by: data, ..all }))
}

/// Counters of `TcpExt` that grew, with their names, in the order of the names.
pub(super) fn grown<'n>(seen: &Seen<'_>, names: &[&'n str]) -> Asked<Vec<(&'n str, Growth)>> {
    let each =
        names.iter().map(|name| Ok(grew(seen, TCP_EXT, name)?.map(|growth| (*name, growth))));
    each.filter_map(Result::transpose).collect()
}

/// Counters of `TcpExt` that grew as evidence.
pub(super) fn evidence(grown: &[(&str, Growth)]) -> Vec<Evidence> {
    grown.iter().map(|(name, growth)| words::counter(TCP_EXT, name, *growth)).collect()
}

/// What grew while the host was looked at is as bad as it is. What did at some time is a warning at most,
/// and below one in a thousand seconds worth knowing. Ours, not measured.
pub(super) fn severity(growth: Growth, seen_now: Severity) -> Severity {
    match growth.since_start {
        false => seen_now,
        true if growth.per_second() < 0.001 => Severity::Info,
        true => seen_now.min(Severity::Warning),
    }
}

/// The growth that tells most: the largest.
pub(super) fn largest(grown: &[(&str, Growth)]) -> Option<Growth> {
    grown.iter().map(|(_, growth)| *growth).max_by_key(|growth| growth.by)
}

/// Whether `part` is at least `percent` of `whole`.
pub(super) const fn is_share(part: u64, whole: u64, percent: u64) -> bool {
    part.saturating_mul(100) >= whole.saturating_mul(percent) && whole > 0
}
