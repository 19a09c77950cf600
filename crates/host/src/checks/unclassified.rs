//! Packets match no class of a shaper: they pass it unshaped, or are dropped.
//!
//! # What it says
//! A discipline with classes asks its filters where a packet belongs. What no filter claims goes to its default class. `htb`
//! without one (`default 0`, or the number of a class that is not there) sends it at once and unshaped, before all others; `hfsc`
//! and `drr` drop it.
//!
//! # How we know
//! `htb`: its `direct_packets_stat` grew. `hfsc` and `drr`: the root dropped more than the disciplines below it did.
//!
//! # What it is not
//! Not which packets they are. Some use the direct way of `htb` on purpose, for the local network.
//!
//! # What to do
//! Give the root a default class that exists, or a filter that claims the rest.
//!
//! # Sources
//! Linux `htb_classify`, `htb_enqueue`, `hfsc_enqueue`, `drr_enqueue` (v6.1, `net/sched`); tc-htb(8), tc-hfsc(8), tc-drr(8).

use super::devices::{self, counted_roots, qdisc_growth};
use super::{Check, words};
use crate::finding::{Evidence, Finding, Group, Severity};
use crate::seen::{Asked, Growth, Seen};
use crate::snapshot::Qdisc;

pub(super) const CHECK: Check = Check {
    code: "UNCLASSIFIED",
    file: include_str!("unclassified.rs"),
    group: Group::Queues,
    judge,
};

const DIRECT: &str = "direct_packets_stat";

fn judge(seen: &Seen<'_>) -> Asked<Vec<Finding>> {
    let found =
        counted_roots(seen)?.into_iter().filter_map(|(place, root)| match root.kind.as_str() {
            "htb" => passed(seen, place, root),
            "hfsc" | "drr" => dropped(seen, place, root),
            _ => None,
        });
    Ok(found.take(words::WORST).collect())
}

fn passed(seen: &Seen<'_>, place: usize, root: &Qdisc) -> Option<Finding> {
    let direct = |qdisc: &Qdisc| qdisc.own.get(DIRECT).copied().unwrap_or(0);
    let grown = qdisc_growth(seen, place, root, direct).filter(|grown| grown.by > 0)?;
    let all = qdisc_growth(seen, place, root, |qdisc| qdisc.packets).map_or(0, |grown| grown.by);
    let default = root.options.get("default");
    Some(Finding {
        severity: Severity::Warning,
        title: format!("packets pass the shaper of {} unshaped: {}", root.dev, words::grown(grown)),
        why: format!(
            "{} of what left belongs to no class: htb sends it at once, before all classes, and the rate that they share \
             is exceeded.{}",
            words::share(grown.by, all.max(grown.by)),
            default.map_or_else(String::new, |default| format!(
                " Its default is {default}: unless filters send them past the classes, there is no such leaf."
            ))
        ),
        not: "not which packets they are: some send local traffic this way on purpose".to_owned(),
        ..finding(root, grown, format!("{DIRECT} {}", words::grown(grown)))
    })
}

fn dropped(seen: &Seen<'_>, place: usize, root: &Qdisc) -> Option<Finding> {
    const MAJOR: u32 = 0xffff_0000;
    let own = qdisc_growth(seen, place, root, |qdisc| qdisc.drops)?;
    let below = seen.counted_qdiscs().ok()?.iter().enumerate().filter(|(_, each)| {
        each.dev == root.dev
            && each.handle != root.handle
            && each.parent & MAJOR == root.handle & MAJOR
    });
    let below: u64 = below
        .filter_map(|(place, each)| qdisc_growth(seen, place, each, |qdisc| qdisc.drops))
        .map(|grown| grown.by)
        .sum();
    let grown = Growth { by: own.by.checked_sub(below).filter(|by| *by > 0)?, ..own };
    Some(Finding {
        severity: words::of_drops(grown),
        title: format!(
            "{} of {} drops packets that belong to no class: {}",
            root.kind,
            root.dev,
            words::grown(grown)
        ),
        why: format!(
            "{} has no class for them, and so drops them: connections through it hang.",
            root.kind
        ),
        not: "not which packets they are".to_owned(),
        ..finding(root, grown, format!("dropped {} more than all below it", words::grown(grown)))
    })
}

fn finding(root: &Qdisc, grown: Growth, said: String) -> Finding {
    Finding {
        confidence: words::sure(grown),
        scope: devices::scope(&[&root.dev]),
        evidence: vec![Evidence::new(
            format!("tc -s qdisc show dev {}", words::device(&root.dev)),
            said,
        )],
        fixes: vec![words::advise(
            format!(
                "give {} of {} a default class that exists, or a last filter that claims the rest",
                root.kind, root.dev
            ),
            "what was unshaped shares the class's rate from then on",
        )],
        ..Finding::default()
    }
}

#[cfg(test)]
mod tests {
    use super::super::parts::{each_look, root};
    use super::super::sample::{host, judged, missing, shown};
    use super::*;
    use crate::finding::Confidence;
    use crate::snapshot::{Snapshot, Source};

    fn htb(direct: [u64; 2]) -> Snapshot {
        each_look(host(&[]), |nth, look| {
            look.qdiscs = Some(vec![Qdisc {
                handle: 0x1_0000,
                packets: 1000 * nth,
                options: [("default".to_owned(), "0x30".to_owned())].into(),
                own: [(DIRECT.to_owned(), direct[nth as usize])].into(),
                ..root("htb")
            }]);
        })
    }

    fn hfsc(own: u64, below: u64) -> Snapshot {
        each_look(host(&[]), |nth, look| {
            let drops = own * nth;
            let leaf = Qdisc {
                handle: 0x8005_0000,
                parent: 0x1_0010,
                drops: below * nth,
                ..root("pfifo")
            };
            look.qdiscs = Some(vec![Qdisc { handle: 0x1_0000, drops, ..root("hfsc") }, leaf]);
        })
    }

    #[test]
    fn packets_that_pass_unshaped_are_told_with_the_default() {
        insta::assert_snapshot!(shown(&CHECK, &htb([5, 305])));
    }

    #[test]
    fn packets_that_are_dropped_for_want_of_a_class_are_an_error() {
        insta::assert_snapshot!(shown(&CHECK, &hfsc(40, 30)));
    }

    #[test]
    fn drops_of_the_classes_and_direct_packets_of_before_are_nothing() {
        assert_eq!(judged(&CHECK, &hfsc(30, 30)), Ok(Vec::new()));
        assert_eq!(judged(&CHECK, &htb([5, 5])), Ok(Vec::new()));
    }

    #[test]
    fn one_look_is_unsure_and_without_queueing_disciplines_nothing_is_said() {
        let mut one = htb([5, 305]);
        one.looks.remove(0);
        assert_eq!(judged(&CHECK, &one).expect("seen")[0].confidence, Confidence::Low);
        assert_eq!(missing(&CHECK, &host(&[])).source, Source::Qdiscs);
    }
}
