//! A shaper on this host caps the rate of an interface.
//!
//! # What it says
//! `tbf`, `htb`, `hfsc` and `cake` with a bandwidth let packets leave no faster than their setting. Nobody who looks at
//! the cable's speed sees that.
//!
//! # How we know
//! Such a discipline is there; it is at work if its count of packets held back (`overlimits`) or dropped grew. How
//! near its rate the traffic is, the finding says where it sees both; of `htb` and `hfsc` it names the class that is nearest
//! to what it may have: its `ceil`, or at the root of `htb`, where there is no class to borrow from, its rate.
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
//! tc-tbf(8), tc-htb(8), tc-cake(8), tc-stab(8); Linux `qdisc_overlimit_increment`, `htb_activate_prios`,
//! `htb_class_mode` (v6.12). Nine tenths of the rate: ours, not measured.

use core::cmp::Reverse;

use super::devices::{self, ROOT, qdisc_growth, tc_words};
use super::{Check, words};
use crate::finding::{Confidence, Evidence, Finding, Group, Severity};
use crate::seen::{Asked, Growth, Seen};
use crate::snapshot::{Look, Qdisc};

pub(super) const CHECK: Check =
    Check { code: "SHAPER", file: include_str!("shaper.rs"), group: Group::Queues, judge };

#[derive(Clone, Copy, Debug)]
struct Shaper<'a> {
    qdisc: &'a Qdisc,
    /// Of several classes that nearest to its ceiling: what follows is its.
    class: Option<&'a Qdisc>,
    /// Bits a second that it lets pass.
    rate: Option<u64>,
    bits_per_second: Option<f64>,
    held_back: Option<Growth>,
    dropped: Option<Growth>,
    /// It counts no headers of the line beyond Ethernet's.
    is_plain: bool,
    /// It was looked at once only.
    is_once: bool,
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
    let plain = concerned.iter().filter(|each| each.is_plain);
    let plain: Vec<&str> = plain.map(|each| each.qdisc.dev.as_str()).collect();
    let advice = words::advise(
        format!(
            "if the line adds headers of its own (DSL, PPPoE, cable), tell the shaper of {}: overhead and linklayer",
            words::named(&plain)
        ),
        "set too large it gives rate away",
    );
    Ok(vec![Finding {
        severity: if at_work > 0 { Severity::Warning } else { Severity::Info },
        confidence: if is_near(worst) { Confidence::High } else { Confidence::Medium },
        scope: devices::scope(&names),
        title: title(worst, &devices::told(&names)),
        why: why(worst),
        not: "not a fault: a shaper just below the rate of the line keeps the queue where it can be kept short".to_owned(),
        evidence: concerned.iter().take(words::WORST).map(evidence).collect(),
        fixes: if plain.is_empty() { Vec::new() } else { vec![advice] },
        ..Finding::default()
    }])
}

fn title(worst: &Shaper<'_>, names: &str) -> String {
    let rate = worst.rate.map_or_else(String::new, |rate| format!(" at {}", mbit(rate as f64)));
    let kind = &worst.qdisc.kind;
    if is_at_work(worst) {
        format!("a shaper ({kind}) holds back what leaves through {names}{rate}")
    } else if worst.is_once {
        let Qdisc { overlimits, qlen, .. } = worst.qdisc;
        let held = if *overlimits > 0 || *qlen > 0 {
            let waiting = words::count(*qlen, "packet");
            format!("it held back {overlimits} times so far, {waiting} wait in it")
        } else {
            "whether it holds back shows at a second look".to_owned()
        };
        format!("a shaper ({kind}) caps {names}{rate}; {held}")
    } else {
        format!("a shaper ({kind}) caps {names}{rate}; it holds nothing back now")
    }
}

fn why(worst: &Shaper<'_>) -> String {
    let whose = worst
        .class
        .map_or_else(String::new, |class| format!(" by its class {}", tc_handle(class.handle)));
    match worst.bits_per_second {
        Some(now) if is_near(worst) => {
            format!("{} leave{whose} now, so it is this rate that limits.", mbit(now))
        }
        Some(now) => format!("{} leave{whose} now; bursts above the rate wait in it.", mbit(now)),
        None => "nothing leaves faster than it lets, whatever the cable could carry.".to_owned(),
    }
}

/// Nine tenths of its rate.
fn is_near(shaper: &Shaper<'_>) -> bool {
    let both = shaper.bits_per_second.zip(shaper.rate);
    both.is_some_and(|(now, most)| now * 10.0 >= most as f64 * 9.0)
}

/// `cake` shapes only with a bandwidth.
pub(super) fn is_shaper(qdisc: &Qdisc) -> bool {
    match qdisc.kind.as_str() {
        "tbf" | "htb" | "hfsc" | "cbq" => true,
        "cake" => qdisc.rate.is_some_and(|rate| rate > 0),
        _ => false,
    }
}

fn shaper<'a>(seen: &Seen<'a>, place: usize, qdisc: &'a Qdisc) -> Shaper<'a> {
    let now = |of: fn(&Qdisc) -> u64| {
        qdisc_growth(seen, place, qdisc, of).filter(|grown| !grown.since_start)
    };
    let alone = Shaper {
        qdisc,
        class: None,
        rate: qdisc.rate,
        bits_per_second: now(|q| q.bytes).map(|grown| grown.per_second() * 8.0),
        held_back: now(|q| q.overlimits),
        dropped: now(|q| q.drops),
        is_plain: is_plain(qdisc),
        is_once: seen.before.is_none(),
    };
    let classes = classes_of(seen.now, qdisc);
    let Some((class, rate, bits_per_second)) = nearest(seen, &classes) else {
        return alone;
    };
    Shaper {
        class: Some(class),
        rate: Some(rate),
        bits_per_second: Some(bits_per_second),
        is_plain: qdisc.kind == "htb" && classes.iter().all(|class| has_no_overhead(class)),
        ..alone
    }
}

fn classes_of<'a>(look: &'a Look, qdisc: &Qdisc) -> Vec<&'a Qdisc> {
    const MAJOR: u32 = 0xffff_0000;
    let all = look.classes.iter().flatten();
    all.filter(|class| class.dev == qdisc.dev && class.handle & MAJOR == qdisc.handle & MAJOR)
        .collect()
}

/// The class that carries the largest part of what it may, with that and what it carries, in bits a second.
fn nearest<'a>(seen: &Seen<'_>, classes: &[&'a Qdisc]) -> Option<(&'a Qdisc, u64, f64)> {
    let earlier = seen.before?.classes.as_deref()?;
    let seconds = seen.apart_ns().filter(|apart| *apart > 0)? as f64 / 1e9;
    let carried = classes.iter().filter_map(|class| {
        let then =
            earlier.iter().find(|then| then.dev == class.dev && then.handle == class.handle)?;
        let bits = class.bytes.checked_sub(then.bytes)? as f64 * 8.0;
        let most = ceiling(class)?;
        (most > 0).then_some((*class, most, bits / seconds))
    });
    carried.max_by(|one, other| (one.2 / one.1 as f64).total_cmp(&(other.2 / other.1 as f64)))
}

/// What a class may have: a class of `htb` above its rate waits for one above it that lends.
fn ceiling(class: &Qdisc) -> Option<u64> {
    let lends = !(class.kind == "htb" && class.parent == ROOT);
    let ceil = class.options.get("ceil").filter(|_| lends).and_then(|ceil| tc_rate(ceil));
    ceil.or(class.rate)
}

/// Bits a second of `10Mbit`, as tc(8) prints it.
fn tc_rate(text: &str) -> Option<u64> {
    let (number, factor) =
        [("Tbit", 1e12), ("Gbit", 1e9), ("Mbit", 1e6), ("Kbit", 1e3), ("bit", 1.0)]
            .into_iter()
            .find_map(|(unit, factor)| Some((text.strip_suffix(unit)?, factor)))?;
    let rate = number.parse::<f64>().ok()? * factor;
    (rate.is_finite() && rate >= 0.0).then_some(rate as u64)
}

/// `1:10`.
pub(super) fn tc_handle(handle: u32) -> String {
    format!("{:x}:{:x}", handle >> 16, handle & 0xffff)
}

fn is_at_work(shaper: &Shaper<'_>) -> bool {
    [shaper.held_back, shaper.dropped].into_iter().flatten().any(|grown| grown.by > 0)
}

/// Classes of `htb` have it each for itself. That of a size table (tc-stab(8)) is not seen.
fn is_plain(qdisc: &Qdisc) -> bool {
    match qdisc.kind.as_str() {
        "tbf" => has_no_overhead(qdisc),
        "cake" => {
            let has = |name: &&str| qdisc.options.contains_key(*name);
            has(&"raw") || !["overhead", "atm", "ptm", "noatm"].iter().any(has)
        }
        _ => false,
    }
}

fn has_no_overhead(qdisc: &Qdisc) -> bool {
    !["overhead", "linklayer"].into_iter().any(|name| qdisc.options.contains_key(name))
}

fn evidence(shaper: &Shaper<'_>) -> Evidence {
    let Shaper { qdisc, class, held_back, dropped, .. } = shaper;
    let mut said = tc_words(qdisc);
    if let Some(class) = class {
        let most = shaper.rate.map_or_else(String::new, |rate| mbit(rate as f64));
        said = format!("{said}; class {} may have {most}", tc_handle(class.handle));
    }
    for (what, grown) in [("held back", held_back), ("dropped", dropped)] {
        if let Some(grown) = grown.filter(|grown| grown.by > 0) {
            said = format!("{said}, {what} {}", words::grown(grown));
        }
    }
    let place = if qdisc.parent == ROOT { "" } else { " (below the root)" };
    Evidence::new(format!("tc -s qdisc show dev {}{place}", words::device(&qdisc.dev)), said)
}

fn mbit(bits_per_second: f64) -> String {
    format!("{:.1} Mbit/s", bits_per_second / 1e6)
}

#[cfg(test)]
mod tests {
    use super::super::parts::{each_look, root};
    use super::super::sample::{host, judged, missing, shown};
    use super::*;
    use crate::snapshot::{Snapshot, Source};

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

    fn htb(ceil: &str, overhead: bool) -> Snapshot {
        below(0x1_0001, ceil, overhead)
    }

    fn below(parent: u32, ceil: &str, overhead: bool) -> Snapshot {
        let own = Qdisc { handle: 0x1_0000, ..root("htb") };
        each_look(shaped(&own, 9, 0), |nth, look| {
            let class = |handle, bytes| {
                let mut options = vec![("ceil".to_owned(), ceil.to_owned())];
                options.extend(overhead.then(|| ("overhead".to_owned(), "8".to_owned())));
                let options = options.into_iter().collect();
                Qdisc { handle, bytes, options, parent, rate: Some(1_000_000), ..root("htb") }
            };
            look.classes = Some(vec![
                class(0x1_0010, 6_000_000 * nth),
                class(0x1_0020, 1000 * nth),
                class(0x2_0010, 90_000_000 * nth),
            ]);
        })
    }

    #[test]
    fn of_classes_the_one_at_its_ceiling_is_told() {
        insta::assert_snapshot!(shown(&CHECK, &htb("5Mbit", false)));
        let far = judged(&CHECK, &htb("6Mbit", true)).expect("seen");
        assert_eq!((far[0].confidence, far[0].fixes.len()), (Confidence::Medium, 0));
    }

    #[test]
    fn a_class_with_none_above_it_has_its_rate_and_borrows_nothing() {
        let found = judged(&CHECK, &below(ROOT, "9Mbit", false)).expect("seen");
        assert!(found[0].title.ends_with("at 1.0 Mbit/s"), "{}", found[0].title);
        assert_eq!(found[0].confidence, Confidence::High);
    }

    #[test]
    fn rates_are_read_as_tc_prints_them() {
        let read = ["1.5Gbit", "500Kbit", "8bit", "fast", "-1bit"].map(tc_rate);
        assert_eq!(read, [Some(1_500_000_000), Some(500_000), Some(8), None, None]);
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
