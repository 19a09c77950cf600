//! A queue of this host dropped packets before they reached the wire.
//!
//! # What it says
//! What leaves passes a queueing discipline. When that is full it drops; TCP of this host learns it at once and
//! slows down, forwarded connections see a loss.
//!
//! # How we know
//! The `drops` of an interface's root grew. A root that shapes (`SHAPER`; `cake` only with a bandwidth), that impairs on purpose (`NETEM`) or that
//! drops what it cannot classify (`UNCLASSIFIED`) is left to these.
//!
//! # What it is not
//! Not a fault by itself: `fq_codel` and `fq` drop to keep the delay short, and CUBIC needs losses to find the rate.
//!
//! # What to do
//! Look at what is behind it: the interface is the bottleneck while the queue is full. Where a FIFO drops, one
//! that keeps flows apart (`fq_codel`, `fq`) hurts short transfers less. ECN marks instead of dropping.
//!
//! # Sources
//! Linux `qdisc_drop`, `__dev_xmit_skb` (v6.1), `tcp_transmit_skb` (`tcp_enter_cwr` after a local drop); tc(8).

use core::cmp::Reverse;

use super::devices::{self, counted_roots, qdisc_growth};
use super::{Check, qdisc_change, shaper, words};
use crate::finding::{Confidence, Evidence, Finding, Group, Severity};
use crate::seen::{Asked, Growth, Seen};
use crate::snapshot::Qdisc;

pub(super) const CHECK: Check = Check {
    code: "QDISC_DROPS",
    file: include_str!("qdisc_drops.rs"),
    group: Group::Queues,
    judge,
};

/// Kinds that hold back or drop by intent; other checks look at them.
const OTHERS: [&str; 7] = ["netem", "tbf", "htb", "hfsc", "drr", "cbq", "noqueue"];

fn is_of_others(root: &Qdisc) -> bool {
    OTHERS.contains(&root.kind.as_str()) || shaper::is_shaper(root)
}

fn judge(seen: &Seen<'_>) -> Asked<Vec<Finding>> {
    let mut hit: Vec<(&Qdisc, Growth, Option<Growth>)> = counted_roots(seen)?
        .into_iter()
        .filter(|(_, root)| !is_of_others(root))
        .filter_map(|(place, root)| {
            let drops =
                qdisc_growth(seen, place, root, |q| q.drops).filter(|drops| drops.by > 0)?;
            Some((root, drops, qdisc_growth(seen, place, root, |q| q.packets)))
        })
        .collect();
    hit.sort_by_key(|(root, drops, _)| (Reverse(drops.by), &root.dev));
    let Some((worst, drops, sent)) = hit.first() else { return Ok(Vec::new()) };
    let names: Vec<&str> = hit.iter().map(|(root, ..)| root.dev.as_str()).collect();
    let evidence = hit.iter().take(words::WORST).map(|(root, drops, _)| {
        Evidence::new(
            format!("tc -s qdisc show dev {}", words::device(&root.dev)),
            format!(
                "{}: dropped {}, {} packets wait now",
                root.kind,
                words::grown(*drops),
                root.qlen
            ),
        )
    });
    let is_fifo = qdisc_change::is_fifo(worst);
    Ok(vec![Finding {
        severity: Severity::Warning,
        confidence: match words::sure(*drops) {
            Confidence::High if !is_fifo => Confidence::Medium,
            sure => sure,
        },
        scope: devices::scope(&names),
        title: format!(
            "the send queue of {} drops packets: {}",
            devices::told(&names),
            words::grown(*drops)
        ),
        why: why(worst, *drops, *sent),
        not: if is_fifo {
            "not that the queue is too short: a longer one delays all before it drops"
        } else {
            "not a fault by itself: this kind drops to keep the delay short"
        }
        .to_owned(),
        evidence: evidence.collect(),
        fixes: qdisc_change::keep_flows_apart(seen, worst).into_iter().collect(),
        ..Finding::default()
    }])
}

fn why(worst: &Qdisc, drops: Growth, sent: Option<Growth>) -> String {
    let share = sent.map_or_else(String::new, |sent| {
        let all = drops.by.saturating_add(sent.by);
        format!(" {} of what was to leave was dropped.", words::share(drops.by, all))
    });
    let Qdisc { dev, kind, .. } = worst;
    let state =
        if qdisc_change::is_fifo(worst) { "is full" } else { "is long enough to drop from" };
    format!(
        "{dev} is the bottleneck while its queue ({kind}) {state}.{share} TCP of this host slows down at once; a \
         capture on the wire does not show what was dropped."
    )
}

#[cfg(test)]
mod tests {
    use super::super::parts::{each_look, root};
    use super::super::sample::{host, judged, missing, once, shown};
    use super::*;
    use crate::snapshot::{Snapshot, Source};

    fn dropped(kind: &str, drops: [u64; 2]) -> Snapshot {
        each_look(host(&[]), |nth, look| {
            let packets = 9_000 * nth;
            look.qdiscs = Some(vec![Qdisc { drops: drops[nth as usize], packets, ..root(kind) }]);
        })
    }

    #[test]
    fn a_fifo_that_drops_is_told_with_another_kind_in_its_place() {
        insta::assert_snapshot!(shown(&CHECK, &dropped("pfifo_fast", [2, 1002])));
    }

    #[test]
    fn one_that_drops_by_design_is_less_sure_and_gets_no_other() {
        let found = judged(&CHECK, &dropped("fq_codel", [2, 1002])).expect("seen");
        assert_eq!((found[0].confidence, found[0].fixes.len()), (Confidence::Medium, 0));
    }

    #[test]
    fn drops_of_before_and_those_of_a_shaper_are_nothing_here() {
        assert_eq!(judged(&CHECK, &dropped("pfifo_fast", [9, 9])), Ok(Vec::new()));
        assert_eq!(judged(&CHECK, &dropped("htb", [2, 1002])), Ok(Vec::new()));
        let found = judged(&CHECK, &once(dropped("pfifo_fast", [9, 9]))).expect("seen");
        assert_eq!(found[0].confidence, Confidence::Low);
    }

    #[test]
    fn cake_is_a_shaper_only_with_a_bandwidth() {
        let with = |rate| {
            let host = each_look(dropped("cake", [2, 1002]), |_, look| {
                look.qdiscs.iter_mut().flatten().for_each(|root| root.rate = rate);
            });
            judged(&CHECK, &host).expect("seen").len()
        };
        assert_eq!([with(None), with(Some(0)), with(Some(8_000_000))], [1, 1, 0]);
    }

    #[test]
    fn a_discipline_that_was_replaced_between_the_looks_began_anew() {
        let mut anew = dropped("pfifo_fast", [2, 5]);
        anew.looks[0].qdiscs.as_mut().expect("seen")[0].handle = 0x8001_0000;
        assert_eq!(judged(&CHECK, &anew), Ok(Vec::new()));
    }

    #[test]
    fn without_queueing_disciplines_nothing_is_said() {
        assert_eq!(missing(&CHECK, &host(&[])).source, Source::Qdiscs);
        let mut uncounted = once(dropped("pfifo_fast", [2, 1002]));
        uncounted.looks[0].qdiscs.as_mut().expect("seen")[0].uncounted = true;
        assert!(missing(&CHECK, &uncounted).of.is_some());
    }
}
