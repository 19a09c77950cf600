//! An emulator of bad paths is before an interface: it delays or drops what leaves, on purpose.
//!
//! # What it says
//! `netem` is for tests: it delays, drops, doubles and reorders packets as its settings say. One that was forgotten makes every
//! connection through the interface slow.
//!
//! # How we know
//! A queueing discipline of kind `netem` is there. If packets passed it between the looks, they met it.
//!
//! # What it is not
//! Not that it was forgotten: a test may be running.
//!
//! # What to do
//! Ask who set it; then remove it (`tc qdisc del dev DEV root`): the kernel puts the default in its place.
//!
//! # Sources
//! tc-netem(8); Linux `netem_enqueue` (v6.1, `net/sched/sch_netem.c`).

use super::devices::{self, ROOT, qdisc_growth, tc_words};
use super::{Check, qdisc_change, words};
use crate::finding::{Confidence, Evidence, Finding, Fix, Group, Severity};
use crate::seen::{Asked, Seen};
use crate::snapshot::Qdisc;

pub(super) const CHECK: Check =
    Check { code: "NETEM", file: include_str!("netem.rs"), group: Group::Queues, judge };

fn judge(seen: &Seen<'_>) -> Asked<Vec<Finding>> {
    let all = seen.qdiscs()?.iter().enumerate();
    let there: Vec<(usize, &Qdisc)> = all.filter(|(_, each)| each.kind == "netem").collect();
    if there.is_empty() {
        return Ok(Vec::new());
    }
    let passed = there.iter().any(|(place, each)| {
        qdisc_growth(seen, *place, each, |q| q.packets)
            .is_some_and(|grown| grown.by > 0 && !grown.since_start)
    });
    let mut names: Vec<&str> = there.iter().map(|(_, each)| each.dev.as_str()).collect();
    names.dedup();
    let evidence = there.iter().take(words::WORST).map(|(_, each)| {
        Evidence::new(
            format!("tc -s qdisc show dev {}", words::device(&each.dev)),
            if each.uncounted {
                tc_words(each)
            } else {
                format!(
                    "{}; {} packets and {} drops so far",
                    tc_words(each),
                    each.packets,
                    each.drops
                )
            },
        )
    });
    let fixes = there.iter().take(words::WORST).map(|(_, each)| Fix {
        what: format!(
            "ask who set it, then remove it: tc qdisc del dev {} root",
            words::device(&each.dev)
        ),
        risk: "a test that needs it ends; what waits in it is lost".to_owned(),
        set: (each.parent == ROOT).then(|| qdisc_change::remove(seen, each)).flatten(),
        applies: words::AT_ONCE.to_owned(),
    });
    Ok(vec![
        Finding {
            severity: if passed { Severity::Error } else { Severity::Warning },
            confidence: Confidence::High,
            scope: devices::scope(&names),
            title: format!("an emulator of bad paths (netem) is before {}", devices::told(&names)),
            why: "it delays or drops on purpose what leaves through it, for every connection."
                .to_owned(),
            not: "not that it was forgotten: a test may be running".to_owned(),
            evidence: evidence.collect(),
            fixes: fixes.collect(),
            ..Finding::default()
        }
        .all_together(),
    ])
}

#[cfg(test)]
mod tests {
    use super::super::parts::{each_look, link, root};
    use super::super::sample::{host, judged, missing, shown};
    use super::*;
    use crate::snapshot::{Snapshot, Source};

    fn emulated(kind: &str, packets: u64) -> Snapshot {
        each_look(host(&[]), |nth, look| {
            let options =
                [("limit".to_owned(), "1000".to_owned()), ("delay".to_owned(), "100ms".to_owned())];
            let handle = 0x8001_0000;
            let netem =
                Qdisc { handle, options: options.into(), packets: packets * nth, ..root(kind) };
            look.qdiscs = Some(vec![netem]);
            look.links = Some(vec![link("eth0")]);
        })
    }

    #[test]
    fn an_emulator_that_packets_pass_is_an_error() {
        insta::assert_snapshot!(shown(&CHECK, &emulated("netem", 50)));
    }

    #[test]
    fn one_that_nothing_passes_is_a_warning_and_is_deleted_and_put_back() {
        let found = judged(&CHECK, &emulated("netem", 0)).expect("seen").remove(0);
        assert_eq!(found.severity, Severity::Warning);
        let commands = found.fixes[0].set.as_ref().expect("a change").commands();
        assert_eq!(commands.apply, "tc qdisc del dev eth0 root");
        let back = "tc qdisc replace dev eth0 root handle 8001: netem delay 100ms limit 1000";
        assert_eq!(commands.undo.as_deref(), Some(back));
    }

    #[test]
    fn what_could_not_be_put_back_is_not_taken_away_by_a_script() {
        let with = |change: fn(&mut Qdisc)| {
            let mut host = emulated("netem", 0);
            for look in &mut host.looks {
                look.qdiscs.as_mut().expect("seen").iter_mut().for_each(change);
            }
            judged(&CHECK, &host).expect("seen").remove(0).fixes.remove(0).set.is_some()
        };
        assert!(with(|_| ()));
        assert!(!with(|it| it.partly_read = true));
        assert!(!with(|it| it.options = [("delay".to_owned(), "100ms 10ms".to_owned())].into()));
    }

    #[test]
    fn another_kind_is_well_and_without_queueing_disciplines_nothing_is_said() {
        assert_eq!(judged(&CHECK, &emulated("fq", 50)), Ok(Vec::new()));
        assert_eq!(missing(&CHECK, &host(&[])).source, Source::Qdiscs);
    }
}
