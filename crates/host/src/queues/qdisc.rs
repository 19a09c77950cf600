//! Queueing disciplines: what each kind holds, and how it keeps it short.
//!
//! A root and those below it follow one another; the queues of a device that are alike (`mq`) are one stage. What
//! is below a shaper empties at its rate.

use super::{Amount, Drain, Inside, Stage, Way};
use crate::paste::qdiscs::{rate, size};
use crate::seen::Seen;
use crate::snapshot::{Link, Qdisc};
use tcpwhy_words::printed::stamp;

/// The stages of an interface's queueing disciplines, in order.
pub(super) fn stages(inside: &Inside<'_, '_>) -> Vec<Stage> {
    let unseen = |what: &str| vec![Stage::new(Way::Sending, "qdisc").unseen(what)];
    let Some(all) = &inside.seen.now.qdiscs else { return unseen("tc -s qdisc") };
    let mut here: Vec<&Qdisc> =
        all.iter().filter(|qdisc| qdisc.dev == inside.link.name && !is_ingress(qdisc)).collect();
    if here.is_empty() {
        return unseen("tc -s qdisc of this interface");
    }
    here.sort_by_key(|qdisc| (qdisc.parent != ROOT, qdisc.parent, qdisc.handle));
    let mut groups: Vec<Vec<&Qdisc>> = Vec::new();
    for qdisc in here.iter().copied() {
        let is_alike = |other: &Qdisc| {
            (&other.kind, &other.options) == (&qdisc.kind, &qdisc.options)
                && above(other, &here).is_some_and(|root| root.kind == "mq")
                && above(other, &here).map(|root| root.handle)
                    == above(qdisc, &here).map(|root| root.handle)
        };
        match groups.last_mut() {
            Some(group) if group.first().is_some_and(|first| is_alike(first)) => group.push(qdisc),
            _ => groups.push(vec![qdisc]),
        }
    }
    groups.iter().map(|group| stage(inside, group, drain(inside, group, &here))).collect()
}

/// `TC_H_ROOT` (`include/uapi/linux/pkt_sched.h`).
const ROOT: u32 = u32::MAX;

/// `TC_H_INGRESS`, and `clsact` at the same place: nothing waits there.
fn is_ingress(qdisc: &Qdisc) -> bool {
    qdisc.parent == 0xffff_fff1 || matches!(&*qdisc.kind, "ingress" | "clsact")
}

/// The one whose class or queue this one hangs on.
fn above<'q>(qdisc: &Qdisc, all: &[&'q Qdisc]) -> Option<&'q Qdisc> {
    let major = qdisc.parent & 0xffff_0000;
    all.iter()
        .copied()
        .find(|other| qdisc.parent != ROOT && other.handle == major && *other != qdisc)
}

/// Classes share the rate out: what waits in one of them waits for its rate, not for that of the link.
pub(super) fn is_shared_out(seen: &Seen<'_>, dev: &str) -> bool {
    let shares = |qdisc: &Qdisc| qdisc.parent == ROOT && matches!(&*qdisc.kind, "htb" | "hfsc");
    let all = seen.now.qdiscs.as_deref().unwrap_or_default();
    all.iter().any(|qdisc| qdisc.dev == dev && shares(qdisc))
}

/// The rate of a shaper that all packets of the interface pass.
pub(super) fn root_rate(inside: &Inside<'_, '_>) -> Option<u64> {
    let all = inside.seen.now.qdiscs.as_deref()?;
    all.iter()
        .filter(|qdisc| qdisc.dev == inside.link.name && qdisc.parent == ROOT)
        .find_map(own_rate)
}

/// At the rate of the slowest shaper above it and its own.
fn drain(inside: &Inside<'_, '_>, group: &[&Qdisc], all: &[&Qdisc]) -> Drain {
    let mut drain = inside.drain;
    let mut here = group.first().copied();
    // A tree of qdiscs is eight deep at most (`TC_HTB_MAXDEPTH`); what was seen may be a ring.
    for _ in 0..8 {
        let Some(qdisc) = here else { break };
        drain = drain.at_most(own_rate(qdisc));
        here = above(qdisc, all);
    }
    drain
}

fn own_rate(qdisc: &Qdisc) -> Option<u64> {
    let named = |name| qdisc.options.get(name).and_then(|text| rate(text));
    qdisc.rate.or_else(|| named("rate")).or_else(|| named("bandwidth"))
}

fn stage(inside: &Inside<'_, '_>, group: &[&Qdisc], drain: Drain) -> Stage {
    let Some(first) = group.first().copied() else { return Stage::default() };
    let handle = match first.handle >> 16 {
        0 => String::new(),
        major => format!(" {major:x}:"),
    };
    let name = match group.len() {
        1 => format!("qdisc {}{handle}", first.kind),
        _ => format!("qdisc {}", first.kind),
    };
    let mut stage = kind(first, inside.link, Stage::new(Way::Sending, name), drain);
    if group.len() > 1 {
        stage.each = format!("each of {} queues", group.len());
    }
    if drain.rate != inside.drain.rate
        && let Some(rate) = drain.rate
    {
        stage.notes.push(format!("it empties at {}", tcpwhy_words::units::BitRate(rate)));
    }
    if group.iter().any(|qdisc| qdisc.uncounted) {
        stage.unseen.push("what waits and was dropped (tc -s qdisc)".to_owned());
        return stage;
    }
    let total = |of: fn(&Qdisc) -> u64| group.iter().map(|qdisc| of(qdisc)).sum::<u64>();
    stage.now = Some(Amount::Packets(total(|qdisc| qdisc.qlen)));
    stage.dropped = Some(total(|qdisc| qdisc.drops));
    let before = inside.seen.before.and_then(|look| look.qdiscs.as_deref());
    stage.dropped_since = before.and_then(|before| {
        let place = |qdisc: &Qdisc| (qdisc.handle, qdisc.parent);
        let then = |qdisc: &Qdisc| {
            let same = |then: &&Qdisc| then.dev == qdisc.dev && place(then) == place(qdisc);
            before.iter().find(same).and_then(|then| qdisc.drops.checked_sub(then.drops))
        };
        group.iter().map(|qdisc| then(qdisc)).sum()
    });
    if total(|qdisc| qdisc.requeues) > 0 {
        stage.notes.push(format!("the ring was full {} times", total(|qdisc| qdisc.requeues)));
    }
    stage
}

/// What a kind holds: tc(8) and its pages, v6.12 `net/sched/sch_*.c`.
fn kind(qdisc: &Qdisc, link: &Link, mut stage: Stage, drain: Drain) -> Stage {
    stage.when_full = DROPPED.into();
    stage.parameter = Some("limit".to_owned());
    let limit = qdisc.options.get("limit").map(String::as_str);
    let packets = limit.and_then(packets);
    match &*qdisc.kind {
        "noqueue" | "mq" | "mqprio" => holds_nothing(&qdisc.kind, stage),
        "pfifo_fast" => pfifo_fast(link, stage, drain),
        "fq_codel" | "codel" | "pie" | "fq_pie" => managed(qdisc, limited(stage, packets, drain)),
        "fq" => fair(qdisc, limited(stage, packets, drain), drain),
        "tbf" => token_bucket(qdisc, stage, drain),
        "bfifo" | "red" | "gred" => limited(stage, limit.and_then(size).map(Amount::Bytes), drain),
        "htb" => hierarchy(qdisc, stage, drain),
        "hfsc" | "prio" | "drr" | "qfq" | "ets" => {
            stage.parameter = None;
            stage.when_full.clear();
            stage.note("sorts packets into classes: what they hold is in the qdiscs below, or one of tc's own")
        }
        "netem" => {
            let stage = limited(stage, packets, drain);
            stage.note("an emulator: it delays, loses or slows down on purpose. A test that was forgotten?")
        }
        "cake" => {
            stage.parameter = Some("memlimit".to_owned());
            stage
                .note("keeps flows apart and drops or marks what waits too long")
                .unseen("its limit of memory (tc -s qdisc: memory used .. of ..)")
        }
        _ => {
            let bytes = limit.and_then(size).map(Amount::Bytes);
            limited(stage, packets.or(bytes), drain)
        }
    }
}

const DROPPED: &str = "packets are dropped";

fn limited(stage: Stage, limit: Option<Amount>, drain: Drain) -> Stage {
    let stage = stage.limited(limit, drain);
    if limit.is_none() { stage.unseen("its limit") } else { stage }
}

/// `10240p`; a number alone is of packets, too, where the kind counts them.
fn packets(text: &str) -> Option<Amount> {
    text.strip_suffix('p').unwrap_or(text).parse().ok().map(Amount::Packets)
}

fn holds_nothing(kind: &str, mut stage: Stage) -> Stage {
    stage.parameter = None;
    stage.when_full.clear();
    if kind == "noqueue" {
        return stage.note("nothing waits in it: packets go to the device at once");
    }
    stage.note("holds nothing itself: each send queue of the device has one of its own")
}

/// Three bands; since Linux 4.16 each of the interface's `txqueuelen` (v4.16 `net/sched/sch_generic.c`,
/// `pfifo_fast_init`), before all three together.
fn pfifo_fast(link: &Link, stage: Stage, drain: Drain) -> Stage {
    let limit = link.txqlen.map(|packets| Amount::Packets(packets.into()));
    let mut stage = stage.limited(limit, drain);
    stage.parameter = Some("txqueuelen".to_owned());
    stage.each = "each of 3 bands".into();
    if limit.is_none() {
        stage.unseen.push("txqueuelen (ip link)".to_owned());
    }
    stage.note(
        "first come, first served within a band, and nearly all has the same: a download delays all that \
         comes behind it. Before Linux 4.16 the bands shared the limit",
    )
}

/// `CoDel` (RFC 8289 §4) and PIE (RFC 8033 §4) watch the wait, not the length.
fn managed(qdisc: &Qdisc, mut stage: Stage) -> Stage {
    if let Some(bytes) = qdisc.options.get("memory_limit").and_then(|text| size(text)) {
        stage.notes.push(format!("and {} of memory at most", tcpwhy_words::said::bytes(bytes)));
    }
    match qdisc.options.get("target") {
        Some(target) => stage.notes.push(format!(
            "it drops or marks before that: what goes on waiting longer than its target of {target} makes \
             senders slow down, so the limit is met by bursts and by what does not react"
        )),
        None => stage.unseen.push("its target".to_owned()),
    }
    if qdisc.kind.starts_with("fq") {
        stage.notes.push(
            "flows have queues of their own: a short one hardly waits for a long one".to_owned(),
        );
    }
    stage
}

/// tc-fq(8).
fn fair(qdisc: &Qdisc, stage: Stage, drain: Drain) -> Stage {
    let flow = qdisc.options.get("flow_limit").and_then(|text| packets(text));
    let mut stage =
        stage.note("flows have queues of their own, and paced ones wait here for their turn");
    match flow.map(|limit| (limit, drain.longest_wait_ns(limit))) {
        Some((Amount::Packets(count), wait)) => {
            let wait = wait.and_then(|ns| i64::try_from(ns).ok());
            let wait = wait
                .map_or_else(String::new, |ns| format!(": {} alone", tcpwhy_words::said::time(ns)));
            stage.notes.push(format!("one flow holds {count} packets at most{wait}"));
        }
        _ => stage.unseen.push("its flow_limit".to_owned()),
    }
    stage
}

/// tc-tbf(8): tc prints `lat`, what the limit is at the rate beyond the bucket.
fn token_bucket(qdisc: &Qdisc, stage: Stage, drain: Drain) -> Stage {
    let of = |name: &str| qdisc.options.get(name).map(String::as_str);
    let burst = of("burst").or_else(|| of("buffer")).and_then(|text| size(text.split('/').next()?));
    let by_latency = || {
        let (rate, ns) = (own_rate(qdisc)?, span_ns(of("lat").or_else(|| of("latency"))?)?);
        let bytes = u128::from(rate) * u128::from(ns) / 8_000_000_000;
        u64::try_from(bytes).ok()?.checked_add(burst?)
    };
    let limit = of("limit").and_then(size).or_else(by_latency);
    let mut stage = limited(stage, limit.map(Amount::Bytes), drain);
    stage.parameter = Some("limit, or latency".to_owned());
    stage.note("a shaper: its rate is the bottleneck of all behind it, whatever the link carries")
}

/// tc-htb(8): what no class takes passes unshaped, from a queue of `direct_qlen` packets.
fn hierarchy(qdisc: &Qdisc, stage: Stage, drain: Drain) -> Stage {
    let direct = qdisc.options.get("direct_qlen").and_then(|text| packets(text));
    let mut stage = stage.limited(direct, drain);
    stage.parameter = Some("direct_qlen".to_owned());
    stage.each = "what has no class".into();
    let passed = qdisc.own.get("direct_packets_stat").copied();
    let printed = || qdisc.options.get("direct_packets_stat").and_then(|text| text.parse().ok());
    if let Some(passed) = passed.or_else(printed).filter(|passed| *passed > 0) {
        stage.notes.push(format!("{passed} packets had no class and passed unshaped"));
    }
    stage.unseen("the rates of its classes (tc -s class)")
}

/// `50ms`, `1.02s`, `500us`, as tc prints times.
fn span_ns(text: &str) -> Option<u64> {
    let (number, divisor) = if let Some(number) = text.strip_suffix("us") {
        (number, 1_000_000)
    } else if let Some(number) = text.strip_suffix("ms") {
        (number, 1_000)
    } else {
        (text.strip_suffix('s')?, 1)
    };
    u64::try_from(stamp::decimal(number)? / divisor).ok()
}
