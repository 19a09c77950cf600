//! Windows stay below 64 KiB: window scaling is switched off, or connections came about without it.
//!
//! # What it says
//! The window field of TCP has 16 bits. Without the window scale option, which both ends must offer in their
//! SYNs, no more than 65,535 bytes can be under way to a receiver: 65,535 / round trip is the fastest
//! that such a connection can go, in both directions.
//!
//! # How we know
//! `net.ipv4.tcp_window_scaling` is 0; or it is 1 and connections over more than a millisecond of round trip
//! have no `wscale` in `tcpi_options`.
//!
//! # What it is not
//! A connection that carries little does not suffer. Where the setting is on, who left the option out is not
//! known: an old peer, a proxy for SYNs before the server, or SYN cookies on this host that had no timestamps
//! to keep it in.
//!
//! # What to do
//! Set it to 1, the kernel's default. Where it is 1: capture a SYN and its answer on both hosts, and see
//! who sent it without the option; SYN proxies of load balancers and firewalls have a switch for it.
//! Connections that are open stay as they are.
//!
//! # Sources
//! RFC 7323 section 2; Linux `tcp_syn_options`, `tcp_synack_options`, `cookie_timestamp_decode` (v6.12). One
//! millisecond (65 MB/s): ours, not measured.

use super::flows::{self, bits, rate, time};
use super::{Check, words};
use crate::finding::{Confidence, Evidence, Finding, Group, Scope, Severity};
use crate::flow::Flow;
use crate::seen::{Asked, Seen};

pub(super) const CHECK: Check = Check {
    code: "WINDOW_SCALING_OFF",
    file: include_str!("window_scaling_off.rs"),
    group: Group::Receiving,
    judge,
};

const KEY: &str = "net.ipv4.tcp_window_scaling";
/// `TCPI_OPT_WSCALE`, Linux `include/uapi/linux/tcp.h`.
const SCALED: u8 = 4;
const LONG_NS: u64 = 1_000_000;
const WINDOW: u64 = 65_535;

fn judge(seen: &Seen<'_>) -> Asked<Vec<Finding>> {
    let is_off = seen.number(KEY).map(|value| value.map(|value| value == 0));
    let without = without(seen);
    match (is_off, without) {
        (Ok(Some(true)), without) => Ok(vec![switched_off(seen, &without.unwrap_or_default())]),
        (is_off, Ok(without)) if !without.is_empty() => {
            Ok(vec![left_out(seen, &without, is_off == Ok(Some(false)))])
        }
        (Err(missing), _) | (_, Err(missing)) => Err(missing),
        _ => Ok(Vec::new()),
    }
}

/// Connections without the option over a path on which that can be felt.
fn without<'s, 'a>(seen: &'s Seen<'a>) -> Asked<Vec<&'s Flow<'a>>> {
    let plain = flows::known(seen)?.into_iter().filter(|(_, info)| {
        info.options.is_some_and(|options| options & SCALED == 0)
            && info.rtt_ns.is_some_and(|rtt| rtt > LONG_NS)
    });
    Ok(flows::worst(plain.map(|(flow, _)| flow).collect(), moved))
}

/// Bytes in both directions: between the looks, or ever.
fn moved(flow: &Flow<'_>) -> u64 {
    let both = |info: &crate::snapshot::Info| {
        Some(info.bytes_acked.unwrap_or(0).saturating_add(info.bytes_received.unwrap_or(0)))
    };
    flow.grew(both).or_else(|| both(flow.info()?)).unwrap_or(0)
}

fn switched_off(seen: &Seen<'_>, without: &[&Flow<'_>]) -> Finding {
    let mut evidence = vec![words::setting(KEY, &0)];
    evidence.extend(shown(seen, without));
    let here = if without.is_empty() {
        "over a round trip of 20 ms that is 26.2 Mbit/s".to_owned()
    } else {
        fastest(without)
    };
    Finding {
        severity: Severity::Error,
        confidence: Confidence::High,
        scope: Scope::Netns,
        title: "no window exceeds 64 KiB: window scaling is off".to_owned(),
        why: format!("at most 65,535 bytes are under way to a receiver at any time; {here}."),
        not: "not that a connection here waits for it: one that carries little does not".to_owned(),
        evidence,
        fixes: vec![words::set(seen, KEY, &1, "switch it on again", "for new connections", "")],
        ..Finding::default()
    }
}

fn left_out(seen: &Seen<'_>, without: &[&Flow<'_>], is_on: bool) -> Finding {
    // What was wanted of a connection is not known; one that moves half of what it can is near its cap.
    let is_felt = |flow: &&&Flow<'_>| {
        let moved = flow.before.and_then(|_| rate(moved(flow), seen.apart_ns()?));
        let most = flow.info().and_then(|info| rate(WINDOW, info.rtt_ns?));
        moved.zip(most).is_some_and(|(moved, most)| moved >= most / 2)
    };
    let felt = without.iter().filter(is_felt).count();
    let near = match felt {
        0 => String::new(),
        felt => format!("; {felt} of them moved at least half of that between the looks"),
    };
    Finding {
        severity: if felt > 0 { Severity::Error } else { Severity::Warning },
        confidence: Confidence::High,
        scope: Scope::Netns,
        title: format!(
            "{} came about without window scaling",
            flows::counted(seen, without)
        ),
        why: format!(
            "{}at most 65,535 bytes are under way to a receiver at any time; {}{near}.",
            if is_on {
                "this host offers it now, so the peers or something between may have left it out; "
            } else {
                ""
            },
            fastest(without)
        ),
        not: "who left it out: an old peer, a proxy for SYNs, or SYN cookies of this host without timestamps"
            .to_owned(),
        evidence: shown(seen, without),
        fixes: vec![words::advise(
            "capture a SYN and its answer on both hosts to see who leaves the option out; SYN proxies have \
             a switch for it",
            "",
        )],
        ..Finding::default()
    }
}

fn fastest(without: &[&Flow<'_>]) -> String {
    let rtts = without.iter().filter_map(|flow| flow.info()?.rtt_ns);
    let (short, long) =
        rtts.fold((u64::MAX, 0), |(short, long), rtt| (short.min(rtt), long.max(rtt)));
    let at = |rtt| format!("{} over {}", bits(rate(WINDOW, rtt).unwrap_or(0)), time(rtt));
    if short == long {
        format!("that is {}", at(long))
    } else {
        format!("that is {}, {}", at(short), at(long))
    }
}

fn shown(seen: &Seen<'_>, without: &[&Flow<'_>]) -> Vec<Evidence> {
    flows::evidence(seen, without, |flow| {
        let rtt = flow.info().and_then(|info| info.rtt_ns).unwrap_or(0);
        format!("no wscale, rtt {}", time(rtt))
    })
}

#[cfg(test)]
mod tests {
    use super::super::sample::{host, judged, missing, shown};
    use super::super::sample_flows::{connected, socket};
    use super::*;
    use crate::snapshot::{Info, Memory, Snapshot, Source};

    fn over(rtt_ns: u64, options: u8, setting: &str) -> Snapshot {
        let info = |acked| Info {
            options: Some(options),
            rtt_ns: Some(rtt_ns),
            bytes_acked: Some(acked),
            ..Info::default()
        };
        let at = |acked| vec![socket(0, &info(acked), Memory::default())];
        connected(&[(KEY, setting)], at(0), at(20_000_000))
    }

    #[test]
    fn a_switch_that_is_off_caps_every_connection() {
        insta::assert_snapshot!(shown(&CHECK, &over(20_000_000, 3, "0")));
    }

    #[test]
    fn connections_without_the_option_are_told_where_this_host_offers_it() {
        insta::assert_snapshot!(shown(&CHECK, &over(20_000_000, 3, "1")));
    }

    #[test]
    fn a_connection_with_the_option_or_over_a_short_path_is_well() {
        assert_eq!(judged(&CHECK, &over(20_000_000, 7, "1")), Ok(Vec::new()));
        assert_eq!(judged(&CHECK, &over(1_000_000, 3, "1")), Ok(Vec::new()));
        assert_eq!(judged(&CHECK, &over(1_000_001, 3, "1")).expect("seen").len(), 1);
    }

    #[test]
    fn the_setting_is_judged_without_sockets_and_not_without_both() {
        assert_eq!(judged(&CHECK, &host(&[(KEY, "0")])).expect("seen").len(), 1);
        assert_eq!(missing(&CHECK, &host(&[(KEY, "1")])).source, Source::Sockets);
    }
}
