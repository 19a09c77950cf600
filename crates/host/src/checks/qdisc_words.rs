//! What the queueing disciplines of pasted text do here, in words.
//!
//! # What it says
//! `tc -s qdisc` is short for those who know it. tcpwhy describes each discipline that is before an interface in a sentence:
//! what its kind does, how much passed, how much it dropped or held back, and what waits in it.
//!
//! # How we know
//! The text of `tc -s qdisc` itself.
//!
//! # What it is not
//! Not a fault. What of it costs time has a finding of its own (`QDISC_DROPS`, `STANDING_QUEUE`, `SHAPER`, `NETEM`).
//!
//! # What to do
//! Paste the output twice, some seconds apart: what grew between the two is what happens now.
//!
//! # Sources
//! tc(8), tc-fq_codel(8), tc-fq(8), tc-tbf(8), tc-netem(8); Linux `gnet_stats_copy_queue` (v6.1).

use super::devices::{self, ROOT};
use super::{Check, words};
use crate::finding::{Confidence, Evidence, Finding, Group, Severity};
use crate::seen::{Asked, Seen};
use crate::snapshot::Qdisc;
use tcpwhy_words::said::{bytes, grouped};

pub(super) const CHECK: Check = Check {
    code: "QDISC_WORDS",
    file: include_str!("qdisc_words.rs"),
    group: Group::Queues,
    judge,
};

fn judge(seen: &Seen<'_>) -> Asked<Vec<Finding>> {
    let all = seen.qdiscs()?;
    // Of a host that was looked at there is nothing to explain that somebody printed.
    if !seen.snapshot.pasted {
        return Ok(Vec::new());
    }
    let told: Vec<&Qdisc> = all.iter().filter(|each| !each.uncounted && each.packets > 0).collect();
    if told.is_empty() {
        return Ok(Vec::new());
    }
    let mut names: Vec<&str> = told.iter().map(|each| each.dev.as_str()).collect();
    names.dedup();
    let evidence = told.iter().take(words::WORST).map(|each| {
        let place = if each.parent == ROOT { "" } else { " (below the root)" };
        Evidence::new(format!("{} of {}{place}", each.kind, each.dev), said(each))
    });
    let kind = told.first().map_or("", |each| each.kind.as_str());
    let subject = match told.len() {
        1 => format!("{kind} before {} {}", devices::told(&names), does(kind)),
        more => format!("{more} queueing disciplines stand before {}", devices::told(&names)),
    };
    Ok(vec![Finding {
        severity: Severity::Info,
        confidence: Confidence::High,
        scope: devices::scope(&names),
        title: subject,
        why: "what leaves an interface passes its queueing discipline, which may hold it back or drop it.".to_owned(),
        not: "not a fault by itself".to_owned(),
        evidence: evidence.collect(),
        ..Finding::default()
    }])
}

/// `keeps flows apart; sent 98.3 GB in 64,900,341 packets, dropped 1,233 (0.0019 %), nothing waits`
fn said(qdisc: &Qdisc) -> String {
    let Qdisc { kind, packets, drops, overlimits, backlog, qlen, .. } = qdisc;
    let mut parts = vec![
        does(kind).to_owned(),
        format!("sent {} in {}", bytes(qdisc.bytes), words::count(*packets, "packet")),
    ];
    parts.push(if *drops > 0 {
        let all = packets.saturating_add(*drops);
        format!("dropped {} ({})", grouped(*drops), words::share(*drops, all))
    } else {
        "dropped none".to_owned()
    });
    if *overlimits > 0 {
        parts.push(format!("held back {} times", grouped(*overlimits)));
    }
    parts.push(if *qlen > 0 {
        format!("{} ({}) wait now", words::count(*qlen, "packet"), bytes(*backlog))
    } else {
        "nothing waits".to_owned()
    });
    parts.join(", ")
}

/// What a kind does.
fn does(kind: &str) -> &'static str {
    match kind {
        "pfifo_fast" => "sends in turn, in three bands of priority, and drops when it is full",
        "pfifo" | "bfifo" => "sends in turn and drops when it is full",
        "mq" | "mqprio" => "gives each send queue a discipline of its own",
        "fq_codel" => "keeps flows apart and drops early what waits longer than its target",
        "fq" => "keeps flows apart and sends each at the pace that TCP asks for",
        "cake" => "keeps flows and hosts apart, drops early, and may cap the rate",
        "codel" | "pie" | "fq_pie" => "drops early what waits too long",
        "sfq" => "takes turns among flows",
        "red" | "gred" | "choke" => "drops at random before it is full",
        "tbf" => "lets nothing pass faster than its rate: a shaper",
        "htb" | "hfsc" | "cbq" => "shares a rate among classes: a shaper",
        "netem" => "delays or drops on purpose, as for a test",
        "prio" => "sends the first band first",
        "noqueue" => "has no queue",
        "ingress" | "clsact" => "has filters for what comes in",
        "etf" | "taprio" => "sends at set times",
        _ => "is of a kind that is not explained here",
    }
}

#[cfg(test)]
mod tests {
    use super::super::parts::{each_look, root};
    use super::super::sample::{host, judged, missing, once, shown};
    use super::*;
    use crate::snapshot::{Snapshot, Source};

    fn with(qdisc: &Qdisc) -> Snapshot {
        let host = each_look(once(host(&[])), |_, look| look.qdiscs = Some(vec![qdisc.clone()]));
        Snapshot { pasted: true, ..host }
    }

    fn busy() -> Qdisc {
        Qdisc {
            bytes: 98_261_435_012,
            packets: 64_900_341,
            drops: 1_233,
            overlimits: 7,
            backlog: 4_542,
            qlen: 3,
            ..root("fq_codel")
        }
    }

    #[test]
    fn what_it_did_is_told_in_words() {
        insta::assert_snapshot!(shown(&CHECK, &with(&busy())));
    }

    #[test]
    fn of_one_through_which_nothing_passed_or_of_a_live_host_nothing_is_told() {
        let idle = Qdisc { packets: 0, ..busy() };
        assert_eq!(judged(&CHECK, &with(&idle)), Ok(Vec::new()));
        let live = Snapshot { pasted: false, ..with(&busy()) };
        assert_eq!(judged(&CHECK, &live), Ok(Vec::new()));
    }

    #[test]
    fn without_queueing_disciplines_nothing_is_said() {
        assert_eq!(missing(&CHECK, &host(&[])).source, Source::Qdiscs);
    }
}
