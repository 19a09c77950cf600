//! A send queue of an interface stood still until the kernel reset it.
//!
//! # What it says
//! When a send queue has not moved for some seconds although packets wait in it, the kernel's watchdog has the driver
//! reset the device: everything in its rings is lost and connections wait for their timeouts.
//!
//! # How we know
//! `tx_timeout` of its send queues grew; or `tx_fifo_errors` or `tx_aborted_errors` did, which tell that single packets were not sent. Or
//! the kernel's log says `NETDEV WATCHDOG`.
//!
//! # What it is not
//! Not load: a queue that is full but moves is no timeout. At half duplex packets that are given up (`tx_aborted_errors`) are collisions:
//! `LINK_SPEED` tells of it.
//!
//! # What to do
//! Look for the driver's message in `dmesg`; update driver and firmware. Pause frames from a switch that never
//! end look the same (`PAUSE_FRAMES`).
//!
//! # Sources
//! Linux `dev_watchdog` (v6.1, `net/sched/sch_generic.c`), Documentation/ABI/testing/sysfs-class-net-queues (`tx_timeout`).

use core::cmp::Reverse;

use super::devices::{self, Device, devices, need_counters};
use super::{Check, kernel_log, words};
use crate::finding::{Evidence, Finding, Group, Scope};
use crate::seen::{Asked, Growth, Seen};
use crate::snapshot::{Event, Source};

pub(super) const CHECK: Check =
    Check { code: "TX_TIMEOUT", file: include_str!("tx_timeout.rs"), group: Group::Queues, judge };

const RESET: &str =
    "what was in its rings is lost, and connections go on only after their timeouts.";
const ERRORS: [&str; 2] = ["tx_fifo_errors", "tx_aborted_errors"];

fn judge(seen: &Seen<'_>) -> Asked<Vec<Finding>> {
    kernel_log::beside(seen, Event::QueueTimeout, counted(seen), |said| Finding {
        scope: Scope::Host,
        title: format!(
            "the kernel says that a send queue of {} stood still and was reset",
            kernel_log::whose(said)
        ),
        why: RESET.to_owned(),
        fixes: vec![words::advise(
            "look for the driver's other messages in dmesg; update driver and firmware, and look at pause frames",
            "",
        )],
        ..Finding::default()
    })
}

fn counted(seen: &Seen<'_>) -> Asked<Vec<Finding>> {
    let all = devices(seen)?;
    if all
        .iter()
        .all(|device| device.now.queues.as_ref().is_none_or(|queues| queues.tx_timeout.is_none()))
    {
        need_counters(&all, &ERRORS)?;
    }
    let mut hit: Vec<(Device<'_>, &str, Growth)> = all
        .into_iter()
        .filter_map(|device| {
            let timeouts = device.growth(|link| link.queues.as_ref()?.tx_timeout);
            let errors = device.counted(&ERRORS);
            let grown = |growth: &Growth| growth.by > 0;
            timeouts.filter(grown).map(|growth| (device, "tx_timeout", growth)).or_else(|| {
                Some((device, "tx_fifo_errors and tx_aborted_errors", errors.filter(grown)?))
            })
        })
        .collect();
    hit.sort_by_key(|(device, _, growth)| (Reverse(growth.by), device.name()));
    let Some((worst, what, growth)) = hit.first() else {
        return seen.unless_refused(Source::ByteQueues, Vec::new());
    };
    let names: Vec<&str> = hit.iter().map(|(device, ..)| device.name()).collect();
    let evidence = hit.iter().take(words::WORST).map(|(device, what, growth)| {
        let source = match *what {
            "tx_timeout" => format!("/sys/class/net/{}/queues/tx-*/tx_timeout", device.name()),
            _ => format!("ip -s -s link show {}", device.name()),
        };
        Evidence::new(source, words::grown(*growth))
    });
    Ok(vec![Finding {
        severity: words::of_drops(*growth),
        confidence: words::sure(*growth),
        scope: devices::scope(&names),
        title: if *what == "tx_timeout" {
            format!(
                "a send queue of {} stood still and was reset: {}",
                worst.name(),
                words::grown(*growth)
            )
        } else {
            format!("{} could not send packets: {}", devices::told(&names), words::grown(*growth))
        },
        why: why(what, worst).to_owned(),
        not: "not load: a queue that is full but moves counts nothing here".to_owned(),
        evidence: evidence.collect(),
        fixes: vec![words::advise(
            format!(
                "look for the driver of {} in dmesg; update driver and firmware, and look at pause frames",
                worst.name()
            ),
            "",
        )],
        ..Finding::default()
    }])
}

fn why(what: &str, device: &Device<'_>) -> &'static str {
    if what == "tx_timeout" {
        RESET
    } else if device.now.full_duplex == Some(false) {
        "it runs at half duplex: what collided too often was given up, and TCP takes it for lost."
    } else {
        "the device gave up single packets, and TCP takes them for lost; its queues went on."
    }
}

#[cfg(test)]
mod tests {
    use super::super::parts::{each_look, link};
    use super::super::sample::{host, judged, missing, once, shown};
    use super::*;
    use crate::finding::Severity;
    use crate::snapshot::{LinkCounters, Queues, Snapshot, Source};

    fn stuck(timeouts: [u64; 2], fifo: [u64; 2]) -> Snapshot {
        each_look(host(&[]), |nth, look| {
            let mut eth0 = link("eth0");
            eth0.queues =
                Some(Queues { tx_timeout: Some(timeouts[nth as usize]), ..Queues::default() });
            eth0.counters = Some(LinkCounters {
                tx_fifo_errors: fifo[nth as usize],
                ..LinkCounters::default()
            });
            look.links = Some(vec![eth0]);
        })
    }

    #[test]
    fn a_queue_that_was_reset_is_an_error() {
        insta::assert_snapshot!(shown(&CHECK, &stuck([1, 2], [0, 9])));
    }

    #[test]
    fn errors_of_sending_count_and_what_was_before_does_not() {
        assert_eq!(
            judged(&CHECK, &stuck([1, 1], [0, 9])).expect("seen")[0].severity,
            Severity::Error
        );
        assert_eq!(judged(&CHECK, &stuck([1, 1], [9, 9])), Ok(Vec::new()));
        assert_eq!(
            judged(&CHECK, &once(stuck([1, 1], [9, 9]))).expect("seen")[0].severity,
            Severity::Warning
        );
    }

    #[test]
    fn packets_that_were_given_up_are_no_reset_and_at_half_duplex_collisions() {
        let why = |full_duplex| {
            let host = each_look(stuck([1, 1], [0, 9]), |_, look| {
                look.links.iter_mut().flatten().for_each(|link| link.full_duplex = full_duplex);
            });
            judged(&CHECK, &host).expect("seen")[0].why.clone()
        };
        assert!(why(Some(true)).contains("single packets"));
        assert!(why(None).contains("single packets"));
        assert!(why(Some(false)).contains("collided"));
    }

    #[test]
    fn without_interfaces_nothing_is_said() {
        assert_eq!(missing(&CHECK, &host(&[])).source, Source::Links);
    }
}
