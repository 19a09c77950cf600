//! Pause frames stop an interface, or this host stops its switch.
//!
//! # What it says
//! With Ethernet flow control the receiver of frames may ask for silence. A host that is too slow so stops its switch port, and
//! what the switch cannot pass on is in the way of others; a switch that asks stops all that this host sends.
//!
//! # How we know
//! The driver's counters of pause frames grew between the looks.
//!
//! # What it is not
//! Not a loss: flow control trades drops for waiting. On storage networks (RoCE) it is meant so.
//!
//! # What to do
//! Sent by this host: see why it does not keep up (`ONE_CPU`, `RING_OVERRUN`). Received: look at the switch. Without a lossless
//! network, flow control may be switched off (`ethtool -A`), and drops tell TCP to slow down.
//!
//! # Sources
//! IEEE 802.3 annex 31B; ethtool(8) `-a`, `-S`.

use super::devices::{self, Device, devices, unless_cut};
use super::{Check, words};
use crate::finding::{Change, Confidence, Evidence, Finding, Fix, Group, Severity};
use crate::seen::{Asked, Growth, Missing, Seen};
use crate::snapshot::Source;

pub(super) const CHECK: Check = Check {
    code: "PAUSE_FRAMES",
    file: include_str!("pause_frames.rs"),
    group: Group::Queues,
    judge,
};

fn judge(seen: &Seen<'_>) -> Asked<Vec<Finding>> {
    let all = devices(seen)?;
    if !all.is_empty() && all.iter().all(|device| device.now.driver_counters.is_none()) {
        return Err(Missing::part(Source::Ethtool, "driver counters"));
    }
    seen.before.ok_or(Missing::all(Source::SecondLook))?;
    let mut found = Vec::new();
    let heard = grown(&all, "rx");
    if !heard.is_empty() {
        found.push(Finding {
            title: format!("pause frames stop what leaves through {}", told(&heard)),
            why: "the switch asks for silence: all connections through it wait, whatever their windows allow.".to_owned(),
            not: "not a loss, and not whose congestion it is: the switch passes on what others ask of it".to_owned(),
            ..finding(&heard)
        });
    }
    let sent = grown(&all, "tx");
    if !sent.is_empty() {
        found.push(Finding {
            title: format!("this host asks its switch for silence through {}", told(&sent)),
            why: "it does not take packets as fast as they come; what the switch holds back blocks others.".to_owned(),
            not: "not why it is too slow: look at its processors and rings".to_owned(),
            ..finding(&sent)
        });
    }
    unless_cut(seen, found)
}

type Hit<'a> = (Device<'a>, &'a str, Growth);

fn grown<'a>(all: &[Device<'a>], way: &str) -> Vec<Hit<'a>> {
    let counts = |name: &str| {
        name.starts_with(way) && (name.contains("pause") || name.contains("flow_control"))
        // How long it lasted is no count of frames; what the driver can is none either.
        && !name.contains("duration") && !name.contains("transition") && !name.contains("storm")
    };
    all.iter()
        .filter_map(|device| device.driver(counts).map(|(name, growth)| (*device, name, growth)))
        .collect()
}

fn told(hit: &[Hit<'_>]) -> String {
    devices::told(&hit.iter().map(|(device, ..)| device.name()).collect::<Vec<_>>())
}

fn finding(hit: &[Hit<'_>]) -> Finding {
    let names: Vec<&str> = hit.iter().map(|(device, ..)| device.name()).collect();
    let evidence = hit.iter().take(words::WORST).map(|(device, name, growth)| {
        Evidence::new(
            format!("ethtool -S {} {name}", words::device(device.name())),
            words::grown(*growth),
        )
    });
    let fixes = hit.iter().take(words::WORST).filter_map(|(device, ..)| {
        let [sends, honours] = device.now.pause?;
        let word = |on: bool| if on { "on" } else { "off" };
        (sends || honours).then(|| Fix {
            what: format!("switch flow control of {} off, unless the network is meant to lose nothing", device.name()),
            risk: "packets are dropped where they waited: bad for RoCE and other storage; the link goes down for a moment".to_owned(),
            set: Some(Change::Ethtool {
                dev: device.name().to_owned(),
                option: "-A".to_owned(),
                from: format!("rx {} tx {}", word(honours), word(sends)),
                to: "rx off tx off".to_owned(),
            }),
            applies: words::AT_ONCE.to_owned(),
        })
    });
    Finding {
        severity: Severity::Warning,
        confidence: Confidence::Medium,
        scope: devices::scope(&names),
        evidence: evidence.collect(),
        fixes: fixes.collect(),
        ..Finding::default()
    }
    .all_together()
}

#[cfg(test)]
mod tests {
    use super::super::parts::{each_look, link};
    use super::super::sample::{host, judged, missing, once, shown};
    use super::*;
    use crate::snapshot::Snapshot;

    fn paused(name: &str, from_to: [u64; 2]) -> Snapshot {
        each_look(host(&[]), |nth, look| {
            let mut eth0 = link("eth0");
            eth0.pause = Some([false, true]);
            eth0.driver_counters = Some([(name.to_owned(), from_to[nth as usize])].into());
            look.links = Some(vec![eth0]);
        })
    }

    #[test]
    fn pause_frames_that_are_received_stop_this_host() {
        insta::assert_snapshot!(shown(&CHECK, &paused("rx_pause_ctrl_phy", [5, 900])));
    }

    #[test]
    fn those_that_are_sent_stop_the_switch() {
        let found = judged(&CHECK, &paused("tx_flow_control_xoff", [5, 6])).expect("seen");
        assert!(found[0].title.starts_with("this host asks"), "{}", found[0].title);
    }

    #[test]
    fn counters_that_stand_still_and_durations_are_nothing() {
        assert_eq!(judged(&CHECK, &paused("rx_pause_ctrl_phy", [5, 5])), Ok(Vec::new()));
        assert_eq!(judged(&CHECK, &paused("rx_global_pause_duration", [5, 9])), Ok(Vec::new()));
    }

    #[test]
    fn without_interfaces_their_drivers_or_a_second_look_nothing_is_said() {
        assert_eq!(missing(&CHECK, &host(&[])).source, Source::Links);
        let unseen = each_look(host(&[]), |_, look| look.links = Some(vec![link("eth0")]));
        assert_eq!(missing(&CHECK, &unseen).source, Source::Ethtool);
        assert_eq!(missing(&CHECK, &once(paused("rx_pause", [5, 9]))).source, Source::SecondLook);
    }
}
