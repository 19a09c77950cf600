//! A shaper on this host caps the rate of an interface.
//!
//! # What it says
//! `tbf`, `htb`, `hfsc` and `cake` with a bandwidth let packets leave no faster than they are told. Nobody who looks at
//! the cable's speed sees that.
//!
//! # How we know
//! Such a discipline is there; it is at work if its count of packets held back (`overlimits`) or dropped grew. How
//! near its rate the traffic is, is told where both are seen. Rates of the classes of `htb` and `hfsc` are not looked at.
//!
//! # What it is not
//! Not a fault: a shaper below the rate of the next bottleneck keeps the queue here, where it can be kept short.
//! One without `overhead` and `linklayer` counts Ethernet frames: on DSL or another line with headers of its own it lets too
//! much through, and the queue moves to the modem.
//!
//! # What to do
//! Compare its rate with what the line gives. Tell it what each packet costs there (`overhead`, `linklayer`, for
//! `cake` also `docsis`, `ethernet`, `pppoe-vcmux`, ...).
//!
//! # Sources
//! tc-tbf(8), tc-htb(8), tc-cake(8), tc-stab(8); Linux `qdisc_overlimit_increment`. Nine tenths of the rate: ours, not measured.

use core::cmp::Reverse;

use super::devices::{self, ROOT, qdisc_growth, tc_words};
use super::{Check, words};
use crate::host::finding::{Confidence, Evidence, Finding, Group, Severity};
use crate::host::seen::{Asked, Growth, Seen};
use crate::host::snapshot::Qdisc;

pub(super) const CHECK: Check =
    Check { code: "SHAPER", file: include_str!("shaper.rs"), group: Group::Queues, judge };

#[derive(Clone, Copy, Debug)]
struct Shaper<'a> {
    qdisc: &'a Qdisc,
    held_back: Option<Growth>,
    dropped: Option<Growth>,
    bits_per_second: Option<f64>,
}

fn judge(seen: &Seen<'_>) -> Asked<Vec<Finding>> {
    let all = seen.qdiscs()?.iter().enumerate().filter(|(_, each)| is_shaper(each));
    let mut shapers: Vec<Shaper<'_>> = all.map(|(place, each)| shaper(seen, place, each)).collect();
    shapers.sort_by_key(|each| {
        (!is_at_work(each), Reverse(each.dropped.map(|grown| grown.by)), &each.qdisc.dev)
    });
    let Some(worst) = shapers.first() else { return Ok(Vec::new()) };
    let at_work = shapers.iter().filter(|each| is_at_work(each)).count();
    let concerned = if at_work > 0 { &shapers[..at_work] } else { &shapers[..] };
    let mut names: Vec<&str> = concerned.iter().map(|each| each.qdisc.dev.as_str()).collect();
    names.dedup();
    let rate =
        worst.qdisc.rate.map_or_else(String::new, |rate| format!(" at {}", mbit(rate as f64)));
    let is_near = worst
        .bits_per_second
        .zip(worst.qdisc.rate)
        .is_some_and(|(now, most)| now * 10.0 >= most as f64 * 9.0);
    let plain: Vec<&str> = concerned
        .iter()
        .filter(|each| lacks_overhead(each.qdisc))
        .map(|each| each.qdisc.dev.as_str())
        .collect();
    Ok(vec![Finding {
        severity: if at_work > 0 { Severity::Warning } else { Severity::Info },
        confidence: if is_near { Confidence::High } else { Confidence::Medium },
        scope: devices::scope(&names),
        title: if at_work > 0 {
            format!("a shaper ({}) holds back what leaves through {}{rate}", worst.qdisc.kind, devices::told(&names))
        } else {
            format!("a shaper ({}) caps {}{rate}; it holds nothing back now", worst.qdisc.kind, devices::told(&names))
        },
        why: match worst.bits_per_second {
            Some(now) if is_near => format!("{} leave now, so it is this rate that limits.", mbit(now)),
            Some(now) => format!("{} leave now; bursts above the rate wait in it.", mbit(now)),
            None => "nothing leaves faster than it lets, whatever the cable could carry.".to_owned(),
        },
        not: "not a fault: a shaper just below the rate of the line keeps the queue where it can be kept short".to_owned(),
        evidence: concerned.iter().take(words::WORST).map(evidence).collect(),
        fixes: if plain.is_empty() {
            Vec::new()
        } else {
            vec![words::advise(
                format!("if the line adds headers of its own (DSL, PPPoE, cable), tell the shaper of {}: overhead and linklayer", words::named(&plain)),
                "set too large it gives rate away",
            )]
        },
        ..Finding::default()
    }])
}

/// `cake` shapes only with a bandwidth.
fn is_shaper(qdisc: &Qdisc) -> bool {
    match qdisc.kind.as_str() {
        "tbf" | "htb" | "hfsc" | "cbq" => true,
        "cake" => qdisc.rate.is_some_and(|rate| rate > 0),
        _ => false,
    }
}

fn shaper<'a>(seen: &Seen<'_>, place: usize, qdisc: &'a Qdisc) -> Shaper<'a> {
    let now = |of: fn(&Qdisc) -> u64| {
        qdisc_growth(seen, place, qdisc, of).filter(|grown| !grown.since_start)
    };
    Shaper {
        qdisc,
        held_back: now(|q| q.overlimits),
        dropped: now(|q| q.drops),
        bits_per_second: now(|q| q.bytes).map(|grown| grown.per_second() * 8.0),
    }
}

fn is_at_work(shaper: &Shaper<'_>) -> bool {
    [shaper.held_back, shaper.dropped].into_iter().flatten().any(|grown| grown.by > 0)
}

/// Classes of `htb` and `hfsc` have it each for itself, and are not looked at.
fn lacks_overhead(qdisc: &Qdisc) -> bool {
    let has = |name: &str| qdisc.options.contains_key(name);
    match qdisc.kind.as_str() {
        "tbf" => !has("overhead") && !has("linklayer"),
        "cake" => has("raw") || !["overhead", "atm", "ptm", "noatm"].into_iter().any(has),
        _ => false,
    }
}

fn evidence(shaper: &Shaper<'_>) -> Evidence {
    let Shaper { qdisc, held_back, dropped, .. } = shaper;
    let mut said = tc_words(qdisc);
    for (what, grown) in [("held back", held_back), ("dropped", dropped)] {
        if let Some(grown) = grown {
            said = format!("{said}, {what} {}", words::grown(*grown));
        }
    }
    let place = if qdisc.parent == ROOT { "" } else { " (below the root)" };
    Evidence::new(format!("tc -s qdisc show dev {}{place}", qdisc.dev), said)
}

fn mbit(bits_per_second: f64) -> String {
    format!("{:.1} Mbit/s", bits_per_second / 1e6)
}

#[cfg(test)]
mod tests {
    use super::super::parts::{each_look, root};
    use super::super::sample::{host, judged, missing, shown};
    use super::*;
    use crate::host::snapshot::{Snapshot, Source};

    fn shaped(qdisc: &Qdisc, overlimits: u64, bytes: u64) -> Snapshot {
        each_look(host(&[]), |nth, look| {
            let shaped =
                Qdisc { overlimits: overlimits * nth, bytes: bytes * nth, ..qdisc.clone() };
            look.qdiscs = Some(vec![shaped]);
        })
    }

    fn tbf() -> Qdisc {
        let options =
            [("rate".to_owned(), "8Mbit".to_owned()), ("lat".to_owned(), "50ms".to_owned())];
        Qdisc { rate: Some(8_000_000), handle: 0x8002_0000, options: options.into(), ..root("tbf") }
    }

    #[test]
    fn a_shaper_that_holds_back_at_its_rate_is_what_limits() {
        insta::assert_snapshot!(shown(&CHECK, &shaped(&tbf(), 500, 9_500_000)));
    }

    #[test]
    fn one_that_holds_nothing_back_is_only_told() {
        let found = judged(&CHECK, &shaped(&tbf(), 0, 1000)).expect("seen");
        assert_eq!((found[0].severity, found[0].confidence), (Severity::Info, Confidence::Medium));
    }

    #[test]
    fn nine_tenths_of_the_rate_are_near_it_and_less_is_not() {
        let sure = |bytes| judged(&CHECK, &shaped(&tbf(), 1, bytes)).expect("seen")[0].confidence;
        assert_eq!((sure(9_000_000), sure(8_999_990)), (Confidence::High, Confidence::Medium));
    }

    #[test]
    fn one_that_knows_its_overhead_needs_no_advice() {
        let mut told = tbf();
        told.options.insert("overhead".to_owned(), "22".to_owned());
        assert!(judged(&CHECK, &shaped(&told, 1, 1000)).expect("seen")[0].fixes.is_empty());
    }

    #[test]
    fn cake_without_a_bandwidth_shapes_nothing() {
        assert_eq!(judged(&CHECK, &shaped(&root("cake"), 500, 1000)), Ok(Vec::new()));
    }

    #[test]
    fn without_queueing_disciplines_nothing_is_said() {
        assert_eq!(missing(&CHECK, &host(&[])).source, Source::Qdiscs);
    }
}
