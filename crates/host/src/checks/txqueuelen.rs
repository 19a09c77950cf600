//! An interface whose queue is a FIFO may hold very many packets.
//!
//! # What it says
//! `txqueuelen` is the length of each band of `pfifo_fast`. `pfifo` and `bfifo` have a `limit`, and took `txqueuelen` at most
//! when they were made. At 10,000 full packets and 1 Gbit/s the last one waits 120 ms. `fq_codel`, `fq` and `cake` have limits
//! of their own and keep flows apart.
//!
//! # How we know
//! That length is above 10,000 packets, or above 10,000 times 1500 bytes, on an interface with such a queue.
//!
//! # What it is not
//! Not that packets wait: `STANDING_QUEUE` tells that.
//!
//! # What to do
//! Set `txqueuelen` to 1000, the kernel's default, or use `fq_codel`.
//!
//! # Sources
//! Linux `pfifo_fast_init`, `pfifo_fast_change_tx_queue_len`, `fifo_init`, `DEFAULT_TX_QUEUE_LEN` (v6.1). 10,000: ours, not
//! measured.

use super::devices::{self, Device, ROOT, devices, tc_words};
use super::{Check, qdisc_change, words};
use crate::finding::{Change, Confidence, Evidence, Finding, Fix, Group, Severity};
use crate::paste::qdiscs::size;
use crate::seen::{Asked, Seen};
use crate::snapshot::Qdisc;

pub(super) const CHECK: Check =
    Check { code: "TXQUEUELEN", file: include_str!("txqueuelen.rs"), group: Group::Hygiene, judge };

const LONG: u64 = 10_000;
const FULL_BYTES: u64 = 1500;
/// `DEFAULT_TX_QUEUE_LEN`.
const DEFAULT: u32 = 1000;

/// A root that is a FIFO, and how many full packets it may hold.
struct Fifo<'a> {
    device: Device<'a>,
    root: &'a Qdisc,
    packets: u64,
}

fn judge(seen: &Seen<'_>) -> Asked<Vec<Finding>> {
    let qdiscs = seen.qdiscs()?;
    let fifo = devices(seen)?.into_iter().filter_map(|device| {
        let is_root = |each: &&Qdisc| each.parent == ROOT && each.dev == device.name();
        let root = qdiscs.iter().find(is_root)?;
        let packets = length(device.now.txqlen, root).filter(|packets| *packets > LONG)?;
        Some(Fifo { device, root, packets })
    });
    let hit: Vec<Fifo<'_>> = fifo.collect();
    let Some(first) = hit.first() else { return Ok(Vec::new()) };
    let names: Vec<&str> = hit.iter().map(|fifo| fifo.device.name()).collect();
    let worst = hit.iter().take(words::WORST);
    let wait = first.device.now.speed.filter(|speed| *speed > 0).map(|speed| {
        let bits = first.packets.saturating_mul(FULL_BYTES * 8);
        format!(
            " At the speed of {} the last of them waits {} ms.",
            names[0],
            bits.saturating_mul(1000) / speed
        )
    });
    Ok(vec![
        Finding {
            severity: Severity::Info,
            confidence: Confidence::Medium,
            scope: devices::scope(&names),
            title: format!(
                "the FIFO of {} may hold {} full packets",
                devices::told(&names),
                first.packets
            ),
            why: format!("all connections stand in one line.{}", wait.unwrap_or_default()),
            not: "not that packets wait now".to_owned(),
            evidence: worst.clone().map(Fifo::evidence).collect(),
            fixes: worst.filter_map(|fifo| fifo.fix(seen)).collect(),
            ..Finding::default()
        }
        .all_together(),
    ])
}

/// Only `pfifo_fast` follows the interface's `txqueuelen` when that changes.
fn length(txqlen: Option<u32>, root: &Qdisc) -> Option<u64> {
    let limit = || root.options.get("limit").map(String::as_str);
    match root.kind.as_str() {
        "pfifo_fast" => txqlen.map(u64::from),
        "pfifo" | "pfifo_head_drop" => limit()?.trim_end_matches('p').parse().ok(),
        "bfifo" => size(limit()?).map(|bytes| bytes / FULL_BYTES),
        _ => None,
    }
}

impl Fifo<'_> {
    fn is_of_the_interface(&self) -> bool {
        self.root.kind == "pfifo_fast"
    }

    fn evidence(&self) -> Evidence {
        let name = self.device.name();
        if self.is_of_the_interface() {
            return Evidence::new(format!("ip link show {name}"), format!("qlen {}", self.packets));
        }
        Evidence::new(format!("tc qdisc show dev {name}"), tc_words(self.root))
    }

    fn fix(&self, seen: &Seen<'_>) -> Option<Fix> {
        if !self.is_of_the_interface() {
            return qdisc_change::keep_flows_apart(seen, self.root);
        }
        let dev = self.device.name();
        let from = format!("txqueuelen {}", self.packets);
        let to = format!("txqueuelen {DEFAULT}");
        Some(Fix {
            what: format!("set the default on {dev}"),
            risk: "a burst that found room is dropped".to_owned(),
            set: Some(Change::Link { dev: dev.to_owned(), from, to }),
            applies: words::AT_ONCE.to_owned(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::super::parts::{each_look, link, root};
    use super::super::sample::{host, judged, missing, shown};
    use super::*;
    use crate::snapshot::{Link, Snapshot, Source};

    fn long(length: u32, kind: &str) -> Snapshot {
        each_look(host(&[]), |_, look| {
            look.links = Some(vec![Link { txqlen: Some(length), ..link("eth0") }]);
            look.qdiscs = Some(vec![root(kind)]);
        })
    }

    #[test]
    fn a_long_fifo_is_told_with_the_wait_in_it() {
        insta::assert_snapshot!(shown(&CHECK, &long(20_000, "pfifo_fast")));
    }

    #[test]
    fn ten_thousand_or_a_kind_that_does_not_look_at_it_are_well() {
        assert_eq!(judged(&CHECK, &long(10_000, "pfifo_fast")), Ok(Vec::new()));
        assert_eq!(judged(&CHECK, &long(10_001, "pfifo_fast")).expect("seen").len(), 1);
        assert_eq!(judged(&CHECK, &long(20_000, "fq_codel")), Ok(Vec::new()));
    }

    #[test]
    fn a_fifo_that_was_asked_for_is_judged_by_its_own_limit() {
        let limited = |kind: &str, limit: &str| {
            let options = [("limit".to_owned(), limit.to_owned())];
            each_look(long(20_000, kind), |_, look| {
                let asked =
                    Qdisc { handle: 0x10000, options: options.clone().into(), ..root(kind) };
                look.qdiscs = Some(vec![asked]);
            })
        };
        let found = |kind, limit| judged(&CHECK, &limited(kind, limit)).expect("seen");
        for (kind, well, long) in
            [("pfifo", "10000p", "10001p"), ("bfifo", "15001000b", "15001500b")]
        {
            assert_eq!(found(kind, well), Vec::new(), "{kind}");
            let set = found(kind, long)[0].fixes[0].set.clone().expect("a change").commands();
            assert_eq!(set.apply, "tc qdisc replace dev eth0 root fq_codel");
        }
    }

    #[test]
    fn without_queueing_disciplines_nothing_is_said() {
        assert_eq!(missing(&CHECK, &host(&[])).source, Source::Qdiscs);
    }
}
