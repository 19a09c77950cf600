//! An interface's packets are handled by processors of another NUMA node.
//!
//! # What it says
//! The card writes packets into memory beside one node's processors; processors of another node fetch each of them across
//! the link between the nodes. On fast interfaces that costs processor time, and the link may become the limit.
//!
//! # How we know
//! The interface runs at 25 Gbit/s or more and belongs to a node; between the looks more than half of its interrupts, at least
//! 1,000 a second, came to processors outside of that node.
//!
//! # What it is not
//! Not that it is slow for it: see whether processors are busy or the ring overruns. Where the programs that read run was not
//! looked at: theirs should be the same node.
//!
//! # What to do
//! Move the interrupts to processors of the card's node, and pin the programs that use it there. `irqbalance` undoes what is set by
//! hand.
//!
//! # Sources
//! Documentation/networking/scaling.rst; Documentation/ABI/stable/sysfs-devices-node; `numa_node` of sysfs-bus-pci. 25 Gbit/s, a half,
//! 1,000 a second: ours, not measured.

use super::devices::{self, Device, devices};
use super::{Check, words};
use crate::finding::{Confidence, Evidence, Finding, Group, Severity};
use crate::seen::{Asked, Missing, Seen};
use crate::snapshot::{Interrupt, Source};

pub(super) const CHECK: Check =
    Check { code: "NUMA_FAR", file: include_str!("numa_far.rs"), group: Group::Host, judge };

const FAST: u64 = 25_000_000_000;
const PER_SECOND: u64 = 1_000;

fn judge(seen: &Seen<'_>) -> Asked<Vec<Finding>> {
    let nodes = seen.snapshot.nodes.as_ref().ok_or(Missing::part(Source::Machine, "NUMA nodes"))?;
    let devices = devices(seen)?;
    let now = seen.now.interrupts.as_deref().ok_or(Missing::all(Source::Interrupts))?;
    let earlier = seen.before.ok_or(Missing::all(Source::SecondLook))?;
    let earlier = earlier.interrupts.as_deref().ok_or(Missing::all(Source::Interrupts))?;
    let apart_ns =
        seen.apart_ns().filter(|apart| *apart > 0).ok_or(Missing::all(Source::SecondLook))?;
    let mut found = Vec::new();
    for device in devices.into_iter().filter(Device::is_running) {
        let own = device.now.numa_node.and_then(|node| Some((node, nodes.get(&node)?)));
        let (Some((node, list)), Some(FAST..)) = (own, device.now.speed) else { continue };
        let [mut far, mut all] = [0; 2];
        let mut lines = Vec::new();
        for irq in now.iter().filter(|irq| irq.dev == device.name()) {
            let [of_far, of_all] = grown(irq, earlier, list);
            far += of_far;
            all += of_all;
            if of_far > 0 {
                lines.push(irq.irq.to_string());
            }
        }
        let is_many =
            u128::from(all) * 1_000_000_000 >= u128::from(PER_SECOND) * u128::from(apart_ns);
        if nodes.len() > 1 && is_many && words::above_percent(far, 50, all) {
            found.push(finding(&device, node, list, [far, all], &lines));
        }
    }
    found.truncate(words::WORST);
    Ok(found)
}

/// How often an interrupt came to processors that are not in the list, and how often at all.
fn grown(irq: &Interrupt, earlier: &[Interrupt], list: &str) -> [u64; 2] {
    let then = earlier.iter().find(|then| then.irq == irq.irq).map(|then| &then.counts);
    let [mut far, mut all] = [0_u64; 2];
    for (cpu, count) in irq.counts.iter().enumerate() {
        let before = then.and_then(|then| then.get(cpu)).copied().unwrap_or(0);
        let by = count.saturating_sub(before);
        all += by;
        far += if is_in(list, cpu) { 0 } else { by };
    }
    [far, all]
}

/// Of a list as the kernel prints it: `0-15,32-47`.
fn is_in(list: &str, cpu: usize) -> bool {
    list.trim().split(',').any(|part| {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let bounds = first.parse::<usize>().ok().zip(last.parse::<usize>().ok());
        bounds.is_some_and(|(first, last)| (first..=last).contains(&cpu))
    })
}

fn finding(
    device: &Device<'_>,
    node: u32,
    list: &str,
    [far, all]: [u64; 2],
    lines: &[String],
) -> Finding {
    let name = device.name();
    let share = words::share(far, all);
    Finding {
        severity: Severity::Info,
        confidence: Confidence::High,
        scope: devices::scope(&[name]),
        title: format!("{share} of the interrupts of {name} go to another NUMA node than its own"),
        why: format!(
            "it belongs to node {node} (processors {list}); processors elsewhere fetch each packet across the link \
             between the nodes."
        ),
        not: "not that it is slow for it: see whether processors are busy or its ring overruns"
            .to_owned(),
        evidence: vec![
            Evidence::new(format!("/sys/class/net/{name}/device/numa_node"), node.to_string()),
            Evidence::new(format!("/sys/devices/system/node/node{node}/cpulist"), list),
            Evidence::new(
                format!("/proc/interrupts {}", words::named(lines)),
                format!("{far} of {all} between the looks on processors elsewhere"),
            ),
        ],
        fixes: vec![words::advise(
            format!(
                "write {list} into /proc/irq/N/smp_affinity_list of each of them, or let irqbalance know the node"
            ),
            "irqbalance undoes what is set by hand; keep the old values to go back",
        )],
        ..Finding::default()
    }
}

#[cfg(test)]
mod tests {
    use super::super::parts::{each_look, link};
    use super::super::sample::{host, judged, missing, once, shown};
    use super::*;
    use crate::snapshot::{Link, Snapshot};

    /// Two nodes of two processors; the card is of the second, and its interrupt came so often to each processor in ten seconds.
    fn card(speed: u64, counts: [u64; 4]) -> Snapshot {
        let mut host = each_look(host(&[]), |nth, look| {
            let eth0 = Link { numa_node: Some(1), speed: Some(speed), ..link("eth0") };
            look.links = Some(vec![eth0]);
            look.interrupts = Some(vec![Interrupt {
                irq: 77,
                dev: "eth0".to_owned(),
                counts: counts.map(|count| 500 + count * nth).to_vec(),
                ..Interrupt::default()
            }]);
        });
        host.nodes = Some([(0, "0-1".to_owned()), (1, "2-3".to_owned())].into());
        host
    }

    #[test]
    fn a_fast_card_served_from_afar_is_told() {
        insta::assert_snapshot!(shown(&CHECK, &card(100_000_000_000, [90_000, 0, 0, 10_000])));
    }

    #[test]
    fn half_of_a_thousand_a_second_at_25_gigabit_are_the_border() {
        let number = |speed, counts| judged(&CHECK, &card(speed, counts)).expect("seen").len();
        assert_eq!(number(FAST, [5_001, 0, 4_999, 0]), 1);
        assert_eq!(number(FAST, [5_000, 0, 5_000, 0]), 0, "half");
        assert_eq!(number(FAST, [9_999, 0, 0, 0]), 0, "few");
        assert_eq!(number(FAST - 1, [90_000, 0, 0, 0]), 0, "slow");
    }

    #[test]
    fn lists_are_read_as_the_kernel_prints_them() {
        let within: Vec<usize> = (0..12).filter(|cpu| is_in("0-1,4,8-9\n", *cpu)).collect();
        assert_eq!(within, [0, 1, 4, 8, 9]);
        assert!(!is_in("", 0));
    }

    #[test]
    fn one_node_is_well_and_without_nodes_or_a_second_look_nothing_is_said() {
        let mut one = card(FAST, [90_000, 0, 0, 0]);
        one.nodes = Some([(1, "2-3".to_owned())].into());
        assert_eq!(judged(&CHECK, &one), Ok(Vec::new()));
        assert_eq!(missing(&CHECK, &host(&[])).of.as_deref(), Some("NUMA nodes"));
        assert_eq!(
            missing(&CHECK, &once(card(FAST, [90_000, 0, 0, 0]))).source,
            Source::SecondLook
        );
    }
}
