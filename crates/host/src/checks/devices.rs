//! Interfaces and queueing disciplines beside themselves at the first look.

use super::words;
use crate::finding::Scope;
use crate::seen::{Asked, Growth, Missing, Seen, Time};
use crate::snapshot::{Link, LinkCounters, Qdisc, Source};

/// An interface, and what it was at the first look.
#[derive(Clone, Copy, Debug)]
pub(super) struct Device<'a> {
    pub(super) now: &'a Link,
    pub(super) before: Option<&'a Link>,
    /// It was not there at the first look: its counters began between the looks, not with the host.
    is_new: bool,
    time: Time,
}

/// All interfaces but loopback.
pub(super) fn devices<'a>(seen: &Seen<'a>) -> Asked<Vec<Device<'a>>> {
    let first = seen.before.and_then(|look| look.links.as_deref());
    let earlier = first.unwrap_or_default();
    let here = seen.links()?.iter().enumerate().filter(|(_, link)| !link.loopback);
    let device = |(place, now): (usize, &'a Link)| {
        let before = same(earlier, place, |link| link.name == now.name && link.index == now.index);
        let is_new = before.is_none() && first.is_some() && !seen.snapshot.pasted;
        Device { now, before, is_new, time: seen.time() }
    };
    Ok(here.map(device).collect())
}

/// The one that `is` says, which mostly is at the same place: thousands of interfaces are no square of them.
fn same<T>(all: &[T], place: usize, is: impl Fn(&T) -> bool) -> Option<&T> {
    all.get(place).filter(|each| is(each)).or_else(|| all.iter().find(|each| is(each)))
}

impl<'a> Device<'a> {
    pub(super) fn name(&self) -> &'a str {
        &self.now.name
    }

    /// How far a number of the interface went.
    pub(super) fn growth(&self, of: impl Fn(&Link) -> Option<u64>) -> Option<Growth> {
        if self.is_new { None } else { self.time.growth(of(self.now)?, self.before.and_then(of)) }
    }

    /// How far these of its counters went, taken together: at least so far where only some of them were seen.
    pub(super) fn counted(&self, names: &[&str]) -> Option<Growth> {
        self.growth(|link| count(link, names))
    }

    /// The counter of its driver that went farthest among those that `is_one` names, if any went at all.
    pub(super) fn driver(&self, is_one: impl Fn(&str) -> bool) -> Option<(&'a str, Growth)> {
        let names = self.now.driver_counters.as_ref()?.keys().filter(|name| is_one(name));
        let grown = names.filter_map(|name| {
            let of = |link: &Link| link.driver_counters.as_ref()?.get(name).copied();
            Some((name.as_str(), self.growth(of)?))
        });
        grown.filter(|(_, growth)| growth.by > 0).max_by_key(|(_, growth)| growth.by)
    }

    /// Bits a second, both ways, between the looks.
    pub(super) fn bit_rate(&self) -> Option<f64> {
        let bytes = self.counted(&["rx_bytes", "tx_bytes"])?;
        (!bytes.since_start).then(|| bytes.per_second() * 8.0)
    }

    /// It can carry something.
    pub(super) fn is_running(&self) -> bool {
        self.now.up && self.now.carrier
    }
}

/// Ends a check where no interface shows any of these counters.
pub(super) fn need_counters(all: &[Device<'_>], names: &[&str]) -> Asked<()> {
    let is_blind = !all.is_empty() && all.iter().all(|device| count(device.now, names).is_none());
    if is_blind { Err(Missing::part(Source::Links, names.join(", "))) } else { Ok(()) }
}

/// What was found in the counters of drivers; where that is nothing, and only some of these were pasted, it was not
/// seen whether all is well.
pub(super) fn unless_cut<T>(seen: &Seen<'_>, found: Vec<T>) -> Asked<Vec<T>> {
    let is_cut = seen.links()?.iter().any(|link| link.driver_counters_cut);
    if found.is_empty() && is_cut {
        return Err(Missing::part(Source::Ethtool, "driver counters (only some were pasted)"));
    }
    Ok(found)
}

/// The sum of these counters. Where a tool added some up (`rx_dropped+rx_missed_errors`), that sum counts if all
/// of its parts are asked for.
fn count(link: &Link, names: &[&str]) -> Option<u64> {
    if let Some(counters) = &link.counters {
        return names.iter().filter_map(|name| of_name(counters, name)).reduce(u64::saturating_add);
    }
    let some = link.some_counters.as_ref()?.iter();
    some.filter(|(name, _)| name.split('+').all(|part| names.contains(&part)))
        .map(|(_, count)| *count)
        .reduce(u64::saturating_add)
}

fn of_name(counters: &LinkCounters, name: &str) -> Option<u64> {
    Some(match name {
        "rx_packets" => counters.rx_packets,
        "rx_bytes" => counters.rx_bytes,
        "rx_errors" => counters.rx_errors,
        "tx_bytes" => counters.tx_bytes,
        "rx_dropped" => counters.rx_dropped,
        "rx_crc_errors" => counters.rx_crc_errors,
        "rx_frame_errors" => counters.rx_frame_errors,
        "rx_fifo_errors" => counters.rx_fifo_errors,
        "rx_missed_errors" => counters.rx_missed_errors,
        "tx_aborted_errors" => counters.tx_aborted_errors,
        "tx_carrier_errors" => counters.tx_carrier_errors,
        "tx_fifo_errors" => counters.tx_fifo_errors,
        "rx_nohandler" => counters.rx_nohandler?,
        "rx_otherhost_dropped" => counters.rx_otherhost_dropped?,
        _ => return None,
    })
}

/// Whose a finding about these interfaces is.
pub(super) fn scope(names: &[&str]) -> Scope {
    match names {
        [one] => Scope::Interface((*one).to_owned()),
        _ => Scope::Netns,
    }
}

/// `eth0`, or `eth0 and eth1`, or `12 interfaces`.
pub(super) fn told(names: &[&str]) -> String {
    if names.len() > 3 { format!("{} interfaces", names.len()) } else { words::named(names) }
}

/// How far a number of a queueing discipline went.
pub(super) fn qdisc_growth(
    seen: &Seen<'_>,
    place: usize,
    now: &Qdisc,
    of: impl Fn(&Qdisc) -> u64,
) -> Option<Growth> {
    let first = seen.before.and_then(|look| look.qdiscs.as_deref());
    let key = |each: &Qdisc| (each.handle, each.parent, each.uncounted);
    let is = |each: &Qdisc| key(each) == key(now) && each.dev == now.dev && each.kind == now.kind;
    let before = same(first.unwrap_or_default(), place, is).map(&of);
    let is_new = before.is_none() && first.is_some() && !seen.snapshot.pasted;
    if now.uncounted || is_new { None } else { seen.growth_of(of(now), before) }
}

/// The parent of a root queueing discipline (`TC_H_ROOT`, Linux `include/uapi/linux/pkt_sched.h`).
pub(super) const ROOT: u32 = u32::MAX;

/// The root queueing disciplines with their places in the list.
pub(super) fn roots<'a>(seen: &Seen<'a>) -> Asked<Vec<(usize, &'a Qdisc)>> {
    Ok(seen.qdiscs()?.iter().enumerate().filter(|(_, each)| each.parent == ROOT).collect())
}

/// The root queueing disciplines, where the statistics of all were seen.
pub(super) fn counted_roots<'a>(seen: &Seen<'a>) -> Asked<Vec<(usize, &'a Qdisc)>> {
    seen.counted_qdiscs().and_then(|_| roots(seen))
}

/// A queueing discipline as tc(8) writes it: kind and parameters.
pub(super) fn tc_words(qdisc: &Qdisc) -> String {
    let mut out = qdisc.kind.clone();
    for (name, value) in &qdisc.options {
        out.push(' ');
        out.push_str(name);
        if !value.is_empty() {
            out.push(' ');
            out.push_str(value);
        }
    }
    out
}

/// Something hangs below this root: putting another in its place loses classes and filters.
pub(super) fn has_children(seen: &Seen<'_>, root: &Qdisc) -> bool {
    const MAJOR: u32 = 0xffff_0000;
    root.handle != 0
        && seen.qdiscs().is_ok_and(|all| {
            all.iter().any(|each| {
                each.dev == root.dev
                    && each.parent != ROOT
                    && each.parent & MAJOR == root.handle & MAJOR
            })
        })
}
