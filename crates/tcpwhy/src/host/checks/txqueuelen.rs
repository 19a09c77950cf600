//! An interface whose queue is a FIFO may hold very many packets.
//!
//! # What it says
//! `txqueuelen` is the length of the plain queues (`pfifo_fast`, `pfifo`, `bfifo`). At 10,000 full packets and 1 Gbit/s the last one
//! waits 120 ms. `fq_codel`, `fq` and `cake` have limits of their own and do not look at it.
//!
//! # How we know
//! It is above 10,000 on an interface with such a queue.
//!
//! # What it is not
//! Not that packets wait: `STANDING_QUEUE` tells that.
//!
//! # What to do
//! Set it to 1000, the kernel's default, or use `fq_codel`.
//!
//! # Sources
//! Linux `pfifo_fast_init`, `fifo_init`, `DEFAULT_TX_QUEUE_LEN` (v6.1). 10,000: ours, not measured.

use super::devices::{self, Device, ROOT, devices};
use super::{Check, qdisc_change, words};
use crate::host::finding::{Change, Confidence, Evidence, Finding, Fix, Group, Severity};
use crate::host::seen::{Asked, Seen};

pub(super) const CHECK: Check =
    Check { code: "TXQUEUELEN", file: include_str!("txqueuelen.rs"), group: Group::Hygiene, judge };

const LONG: u32 = 10_000;
/// `DEFAULT_TX_QUEUE_LEN`.
const DEFAULT: u32 = 1000;

fn judge(seen: &Seen<'_>) -> Asked<Vec<Finding>> {
    let qdiscs = seen.qdiscs()?;
    let is_fifo = |device: &Device<'_>| {
        qdiscs.iter().any(|each| {
            each.parent == ROOT && each.dev == device.name() && qdisc_change::is_fifo(each)
        })
    };
    let hit: Vec<(Device<'_>, u32)> = devices(seen)?
        .into_iter()
        .filter_map(|device| Some((device, device.now.txqlen.filter(|length| *length > LONG)?)))
        .filter(|(device, _)| is_fifo(device))
        .collect();
    if hit.is_empty() {
        return Ok(Vec::new());
    }
    let names: Vec<&str> = hit.iter().map(|(device, _)| device.name()).collect();
    let worst = hit.iter().take(words::WORST);
    let evidence = worst.clone().map(|(device, length)| {
        Evidence::new(format!("ip link show {}", device.name()), format!("qlen {length}"))
    });
    let fixes = worst.map(|(device, length)| Fix {
        what: format!("set the default on {}", device.name()),
        risk: "a burst that found room is dropped".to_owned(),
        set: Some(Change::Link {
            dev: device.name().to_owned(),
            from: format!("txqueuelen {length}"),
            to: format!("txqueuelen {DEFAULT}"),
        }),
        applies: words::AT_ONCE.to_owned(),
    });
    let (longest, speed) = (hit[0].1, hit[0].0.now.speed);
    let wait = speed.filter(|speed| *speed > 0).map(|speed| {
        let bits = u64::from(longest) * 1500 * 8;
        format!(
            " At the speed of {} the last of them waits {} ms.",
            names[0],
            bits.saturating_mul(1000) / speed
        )
    });
    Ok(vec![Finding {
        severity: Severity::Info,
        confidence: Confidence::Medium,
        scope: devices::scope(&names),
        title: format!("the FIFO of {} may hold {longest} packets", devices::told(&names)),
        why: format!("all connections stand in one line.{}", wait.unwrap_or_default()),
        not: "not that packets wait now".to_owned(),
        evidence: evidence.collect(),
        fixes: fixes.collect(),
        ..Finding::default()
    }])
}

#[cfg(test)]
mod tests {
    use super::super::parts::{each_look, link, root};
    use super::super::sample::{host, judged, missing, shown};
    use super::*;
    use crate::host::snapshot::{Link, Snapshot, Source};

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
    fn without_queueing_disciplines_nothing_is_said() {
        assert_eq!(missing(&CHECK, &host(&[])).source, Source::Qdiscs);
    }
}
