//! Counters as the checks weigh them: those that grew, how bad that is at most, and shares of one another.

use crate::finding::{Evidence, Severity};
use crate::seen::{Asked, Growth, Missing, Seen};
use crate::snapshot::Source;

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
///
/// # Errors
/// As for [`Seen::growth`].
pub(super) fn by(seen: &Seen<'_>, group: &str, name: &str) -> Asked<u64> {
    Ok(seen.growth(group, name)?.map_or(0, |growth| growth.by))
}

/// Segments that were retransmitted. `RetransSegs` counts SYNs and their answers too (`__tcp_retransmit_skb`,
/// `tcp_rtx_synack`, Linux v6.12), and `TCPSynRetrans` these alone: kernels before 3.18 lack it, and a text may.
#[derive(Clone, Copy, Debug)]
pub(super) struct Again {
    /// With data; where SYNs were not told apart, with them: then it is a bound.
    pub(super) data: Growth,
    /// SYNs were told apart.
    pub(super) is_exact: bool,
}

impl Again {
    /// It as evidence.
    pub(super) fn evidence(&self) -> Evidence {
        let syns = if self.is_exact { " without SYNs" } else { " (with SYNs)" };
        Evidence::new(format!("/proc/net/snmp Tcp.RetransSegs{syns}"), words::grown(self.data))
    }

    /// What would have told SYNs apart; nothing where they were.
    ///
    /// # Errors
    /// That.
    pub(super) fn exact(&self) -> Asked<()> {
        let missing = || Missing::part(Source::Counters, SYNS);
        if self.is_exact { Ok(()) } else { Err(missing()) }
    }
}

const SYNS: &str = "TCPSynRetrans";

/// What was retransmitted; `None` if nothing was.
///
/// # Errors
/// As for [`grew`], of `RetransSegs`.
pub(super) fn data_again(seen: &Seen<'_>) -> Asked<Option<Again>> {
    let Some(all) = grew(seen, "Tcp", "RetransSegs")? else { return Ok(None) };
    let syns = by(seen, TCP_EXT, SYNS).ok();
    let data = all.by.saturating_sub(syns.unwrap_or(0));
    let data = Growth { by: data, ..all };
    Ok((data.by > 0).then_some(Again { data, is_exact: syns.is_some() }))
}

/// Counters of `TcpExt` that grew, with their names, in the order of the names. One that was not seen keeps
/// none of the others back.
///
/// # Errors
/// None of them grew, and one was not seen.
pub(super) fn grown<'n>(seen: &Seen<'_>, names: &[&'n str]) -> Asked<Vec<(&'n str, Growth)>> {
    let (mut known, mut unseen) = (Vec::new(), None);
    for name in names {
        match grew(seen, TCP_EXT, name) {
            Ok(growth) => known.extend(growth.map(|growth| (*name, growth))),
            Err(missing) => unseen = unseen.or(Some(missing)),
        }
    }
    unseen.filter(|_| known.is_empty()).map_or(Ok(known), Err)
}

/// Those of them that grew as evidence beside what is known without them.
pub(super) fn beside(seen: &Seen<'_>, names: &[&str]) -> Vec<Evidence> {
    evidence(&grown(seen, names).unwrap_or_default())
}

/// Counters of `TcpExt` that grew as evidence.
pub(super) fn evidence(grown: &[(&str, Growth)]) -> Vec<Evidence> {
    grown.iter().map(|(name, growth)| words::counter(TCP_EXT, name, *growth)).collect()
}

/// What grew while the host was looked at is as bad as it is. What did at some time is a warning at most,
/// and below one in a thousand seconds worth knowing; where that time was not seen, below as many as ten days
/// would have then. Ours, not measured.
pub(super) fn severity(growth: Growth, seen_now: Severity) -> Severity {
    let is_rare = match growth.over_ns {
        0 => growth.by < 1000,
        _ => growth.per_second() < 0.001,
    };
    match growth.since_start {
        false => seen_now,
        true if is_rare => Severity::Info,
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
