//! Connections as findings tell of them: whose they are, to whom, and the worst of many.

use core::cmp::Reverse;
use std::collections::BTreeMap;

use crate::finding::Evidence;
use crate::flow::Flow;
use crate::seen::{Asked, Missing, Seen};
use crate::snapshot::{Info, Link, Memory, Source, State};
use tcpwhy_words::said;

/// How many connections a finding names; the others are counted.
const NAMED: usize = 5;

/// Connections to other hosts that can carry data, with their `TCP_INFO`.
///
/// # Errors
/// Sockets were not seen, or nothing but their addresses.
pub(super) fn known<'s, 'a>(seen: &'s Seen<'a>) -> Asked<Vec<(&'s Flow<'a>, &'a Info)>> {
    let open = |flow: &&Flow<'_>| {
        matches!(
            flow.now.state,
            State::Established | State::CloseWait | State::FinWait1 | State::FinWait2
        ) && !flow.is_within_host()
    };
    let all: Vec<_> = seen.flows()?.iter().filter(open).collect();
    let known: Vec<_> =
        all.iter().filter_map(|flow| flow.info().map(|info| (*flow, info))).collect();
    if known.is_empty() && !all.is_empty() {
        return Err(Missing::part(Source::Sockets, "TCP_INFO: ss -i"));
    }
    Ok(known)
}

/// The same with their memory.
///
/// # Errors
/// As for [`known`], or nothing of their memory was seen.
pub(super) fn measured<'s, 'a>(
    seen: &'s Seen<'a>,
) -> Asked<Vec<(&'s Flow<'a>, &'a Info, &'a Memory)>> {
    let known = known(seen)?;
    let measured: Vec<_> = known
        .iter()
        .filter_map(|(flow, info)| flow.memory().map(|memory| (*flow, *info, memory)))
        .collect();
    if measured.is_empty() && !known.is_empty() {
        return Err(Missing::part(Source::Sockets, "SKMEMINFO: ss -m"));
    }
    Ok(measured)
}

/// The flows with the highest score first; order among equals is that of their ends.
pub(super) fn worst<'s, 'a, S: Ord>(
    mut flows: Vec<&'s Flow<'a>>,
    score: impl Fn(&Flow<'_>) -> S,
) -> Vec<&'s Flow<'a>> {
    flows.sort_by_cached_key(|flow| (Reverse(score(flow)), flow.now.remote, flow.now.local));
    flows
}

/// The first few as evidence.
pub(super) fn evidence(
    seen: &Seen<'_>,
    worst: &[&Flow<'_>],
    says: impl Fn(&Flow<'_>) -> String,
) -> Vec<Evidence> {
    let each = worst.iter().take(NAMED).map(|flow| {
        let (local, remote) = (flow.now.local, flow.now.remote);
        let whose = owner(seen, flow).map_or_else(String::new, |name| format!("{name}: "));
        Evidence::new(format!("ss -tinm 'src {local} and dst {remote}'"), whose + &says(flow))
    });
    each.collect()
}

/// `1 connection`, `12 connections of nginx and curl`.
pub(super) fn counted(seen: &Seen<'_>, flows: &[&Flow<'_>]) -> String {
    let number = said::count(flows.len() as u64, "connection");
    let mut owners: BTreeMap<&str, usize> = BTreeMap::new();
    for name in flows.iter().filter_map(|flow| owner(seen, flow)) {
        *owners.entry(name).or_default() += 1;
    }
    let mut names: Vec<_> = owners.into_iter().collect();
    names.sort_by_key(|(name, number)| (Reverse(*number), *name));
    let shown: Vec<String> = match names.len() {
        0 => return number,
        1..=3 => names.iter().map(|(name, _)| (*name).to_owned()).collect(),
        more => {
            let first = names.iter().take(2).map(|(name, _)| (*name).to_owned());
            first.chain([said::count(more as u64 - 2, "other program")]).collect()
        }
    };
    format!("{number} of {}", said::listed(&shown))
}

fn owner<'a>(seen: &Seen<'a>, flow: &Flow<'_>) -> Option<&'a str> {
    let process = seen.processes().ok()?.get(&flow.now.owner?.pid)?;
    Some(process.name.as_str())
}

/// Sockets that dropped packets between the looks, for whatever reason (`SK_MEMINFO_DROPS`), those on this
/// host included; none where that was not seen.
pub(super) fn dropping<'s, 'a>(seen: &'s Seen<'a>) -> Vec<&'s Flow<'a>> {
    let flows = seen.flows().unwrap_or_default();
    let dropping = flows.iter().filter(|flow| dropped(flow) > 0);
    worst(dropping.collect(), dropped)
}

/// How many packets it dropped between the looks.
pub(super) fn dropped(flow: &Flow<'_>) -> u32 {
    let drops = || flow.memory()?.drops.checked_sub(flow.before?.memory?.drops);
    drops().unwrap_or(0)
}

/// `s` or nothing, for a verb of as many subjects.
pub(super) const fn verb_s(subjects: usize) -> &'static str {
    if subjects == 1 { "s" } else { "" }
}

/// The interface that has this flow's address.
pub(super) fn link<'a>(seen: &Seen<'a>, flow: &Flow<'_>) -> Option<&'a Link> {
    let address = flow.now.local.ip().to_canonical();
    seen.links().ok()?.iter().find(|link| link.addresses.iter().any(|(own, _)| *own == address))
}

/// Bytes that pass in `ns` at this many bytes a second.
pub(super) fn bytes_in(per_second: u64, ns: u64) -> u64 {
    u64::try_from(u128::from(per_second) * u128::from(ns) / 1_000_000_000).unwrap_or(u64::MAX)
}

/// Bytes a second of this many bytes in `ns`.
pub(super) fn rate(bytes: u64, ns: u64) -> Option<u64> {
    let rate = (u128::from(bytes) * 1_000_000_000).checked_div(u128::from(ns))?;
    u64::try_from(rate).ok()
}

/// Time as findings write it.
pub(super) fn time(ns: u64) -> String {
    said::time(i64::try_from(ns).unwrap_or(i64::MAX))
}

/// A rate in bits, of one in bytes.
pub(super) fn bits(bytes_per_second: u64) -> String {
    tcpwhy_words::units::BitRate(bytes_per_second.saturating_mul(8)).to_string()
}
