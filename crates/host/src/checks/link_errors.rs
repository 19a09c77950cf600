//! An interface receives damaged frames, or its carrier goes away.
//!
//! # What it says
//! Frames whose checksum is wrong are thrown away by the interface; TCP sees losses that have nothing to do
//! with load. The cause is a cable, a plug, an optic or the port at the other end.
//!
//! # How we know
//! `rx_crc_errors`, `rx_frame_errors`, the driver's count of bad symbols, `tx_carrier_errors` or `carrier_changes` grew. `ip -s link` shows
//! one sum of all errors, `rx_errors`: told from one frame in 10,000 on. `ifconfig` and `/proc/net/dev`
//! add four kinds up as `frame`: then that counts, though some of it may be frames that were too long or found no room.
//!
//! # What it is not
//! Not congestion, and nothing that a setting heals. With one look a change of carrier tells nothing: each start
//! makes some.
//!
//! # What to do
//! Clean or change the cable and the optics; look at the same counters of the switch's port.
//!
//! # Sources
//! Linux `include/uapi/linux/if_link.h` (`rtnl_link_stats64`), Documentation/ABI/testing/sysfs-class-net (`carrier_changes`).

use core::cmp::Reverse;

use super::devices::{self, Device, devices, need_counters, unless_cut};
use super::{Check, words};
use crate::finding::{Evidence, Finding, Group};
use crate::seen::{Asked, Growth, Missing, Seen};
use crate::snapshot::{Link, Source};

pub(super) const CHECK: Check = Check {
    code: "LINK_ERRORS",
    file: include_str!("link_errors.rs"),
    group: Group::Queues,
    judge,
};

const COUNTERS: [&str; 3] = ["rx_crc_errors", "rx_frame_errors", "tx_carrier_errors"];

/// What `ifconfig` and `/proc/net/dev` add up as `frame` (`dev_seq_printf_stats`, Linux v6.12).
const FRAME: [&str; 4] = ["rx_length_errors", "rx_over_errors", "rx_crc_errors", "rx_frame_errors"];
const ADDED_UP: &str = "frame";

/// All frames with an error, whatever it was (`if_link.h`): what `ip -s link` shows without a second `-s`.
const TOTAL: &str = "rx_errors";
/// Of one look that total is named from one frame in this many on. Ours: fewer are a plug that was moved.
const ONE_IN: u64 = 10_000;

/// Bad symbols, checksums and ends, as drivers call them (e1000e, igb, tg3, r8169, mlx5, bnxt and others).
const DRIVERS: [&str; 10] = [
    "rx_symbol_err_phy",
    "rx_pcs_symbol_err_phy",
    "rx_symbol_errors",
    "rx_crc_errors_phy",
    "rx_crc_errors",
    "rx_fcs_errors",
    "rx_align_errors",
    "rx_frame_errors",
    "align_errors",
    "tx_carrier_errors",
];

/// i40e puts `port.` before a name of the port's, ice `.nic` behind it.
fn is_of_driver(name: &str) -> bool {
    let name = name.strip_prefix("port.").unwrap_or(name);
    DRIVERS.contains(&name.strip_suffix(".nic").unwrap_or(name))
}

fn judge(seen: &Seen<'_>) -> Asked<Vec<Finding>> {
    let all = devices(seen)?;
    let is_blind = |device: &Device<'_>| {
        let link = device.now;
        let driver = link.driver_counters.as_ref();
        !link.driver_counters_cut
            && driver.is_none_or(|all| !all.keys().any(|name| is_of_driver(name)))
            && link.carrier_changes.is_none()
            && !adds_up(link)
    };
    let is_unclear = all.iter().any(|device| total(device).is_some_and(|growth| growth.by > 0));
    if all.iter().all(is_blind) {
        need_counters(&all, &COUNTERS)?;
    }
    let mut hit: Vec<(Device<'_>, String, Growth)> = all
        .into_iter()
        .filter_map(|device| errors(device).map(|(name, growth)| (device, name, growth)))
        .collect();
    hit.sort_by_key(|(device, _, growth)| (growth.since_start, Reverse(growth.by), device.name()));
    let Some((worst, name, growth)) = hit.first() else {
        if is_unclear {
            return Err(Missing::part(Source::Links, "what rx_errors counts: ip -s -s link"));
        }
        return unless_cut(seen, Vec::new());
    };
    let names: Vec<&str> = hit.iter().map(|(device, ..)| device.name()).collect();
    let evidence = hit.iter().take(words::WORST).map(|(device, name, growth)| {
        Evidence::new(format!("{name} of {}", device.name()), words::grown(*growth))
    });
    let flaps = name == "carrier_changes";
    Ok(vec![Finding {
        severity: words::of_drops(*growth),
        confidence: words::sure(*growth),
        scope: devices::scope(&names),
        title: if flaps {
            format!("the carrier of {} comes and goes: {}", worst.name(), words::grown(*growth))
        } else {
            format!("{} has bad frames: {} {}", devices::told(&names), name, words::grown(*growth))
        },
        why: if flaps {
            "while the carrier is gone nothing passes, and what was queued is lost.".to_owned()
        } else {
            lost(worst, name, *growth)
        },
        not: not_told(name),
        evidence: evidence.collect(),
        fixes: vec![words::advise(
            format!(
                "change the cable or optic of {}, and look at the counters of the switch's port",
                worst.name()
            ),
            "the link is down meanwhile",
        )],
        ..Finding::default()
    }])
}

/// What the counter of this name leaves open.
fn not_told(name: &str) -> String {
    match name {
        ADDED_UP => format!(
            "{NOT_WHICH}; nor whether some were too long, or found no room: the tool adds these up"
        ),
        TOTAL => format!(
            "{NOT_WHICH}; nor which errors they are: `ip -s -s link` tells, and some may be too long or have found no room"
        ),
        _ => NOT_WHICH.to_owned(),
    }
}

const NOT_WHICH: &str = "not which part is bad: cable, optic, port, or the other end";

const PACKETS: &str = "rx_packets";

/// Frames with an error, where nothing tells which.
fn total(device: &Device<'_>) -> Option<Growth> {
    let is_split = device.counted(&["rx_crc_errors"]).is_some() || adds_up(device.now);
    if is_split { None } else { device.counted(&[TOTAL]) }
}

/// What bad frames cost, with their share where that is known.
fn lost(device: &Device<'_>, name: &str, growth: Growth) -> String {
    let dev = device.name();
    if name.starts_with("tx_") {
        return format!("{dev} could not send these: each is a loss to TCP.");
    }
    let by_driver = || device.growth(|link| link.driver_counters.as_ref()?.get(PACKETS).copied());
    let received = device.counted(&[PACKETS]).or_else(by_driver).map(|packets| packets.by);
    let share = received.map_or_else(
        || format!("each that came to {dev} so"),
        |received| {
            let share = words::share(growth.by, received.saturating_add(growth.by));
            format!("{share} of what came to {dev}")
        },
    );
    format!("a damaged frame is thrown away: {share} was lost on the last hop.")
}

fn adds_up(link: &Link) -> bool {
    link.some_counters.as_ref().is_some_and(|all| all.contains_key(&FRAME.join("+")))
}

/// What went wrong most.
fn errors(device: Device<'_>) -> Option<(String, Growth)> {
    let counted = COUNTERS.iter().filter_map(|name| Some((*name, device.counted(&[name])?)));
    let added_up = adds_up(device.now).then(|| device.counted(&FRAME)).flatten();
    let counted = counted.chain(added_up.map(|growth| (ADDED_UP, growth)));
    let driver = device.driver(is_of_driver);
    let many = total(&device).filter(|growth| {
        let received = device.counted(&[PACKETS]).map_or(0, |packets| packets.by);
        !growth.since_start || growth.by.saturating_mul(ONE_IN) >= received
    });
    let counted = counted.chain(many.map(|growth| (TOTAL, growth)));
    let carrier = device.growth(|link| link.carrier_changes);
    let carrier =
        carrier.filter(|growth| !growth.since_start).map(|growth| ("carrier_changes", growth));
    let all = counted.chain(driver).chain(carrier).filter(|(_, growth)| growth.by > 0);
    all.max_by_key(|(_, growth)| growth.by).map(|(name, growth)| (name.to_owned(), growth))
}

#[cfg(test)]
mod tests {
    use super::super::parts::{each_look, link};
    use super::super::sample::{host, judged, missing, once, shown};
    use super::*;
    use crate::finding::{Confidence, Severity};
    use crate::snapshot::{LinkCounters, Snapshot};

    fn bad(crc: [u64; 2], changes: [u64; 2]) -> Snapshot {
        each_look(host(&[]), |nth, look| {
            let mut eth0 = link("eth0");
            eth0.carrier_changes = Some(changes[nth as usize]);
            eth0.counters = Some(LinkCounters {
                rx_crc_errors: crc[nth as usize],
                rx_packets: 10_000 * nth,
                ..LinkCounters::default()
            });
            look.links = Some(vec![eth0]);
        })
    }

    #[test]
    fn what_ifconfig_adds_up_is_told_as_its_sum() {
        let told = |frame: u64| {
            let mut host = once(bad([0, 0], [0, 0]));
            let mut eth0 = link("eth0");
            (eth0.carrier_changes, eth0.counters) = (None, None);
            eth0.some_counters =
                Some([(FRAME.join("+"), frame), ("rx_packets".to_owned(), 9)].into());
            host.looks[0].links = Some(vec![eth0]);
            judged(&CHECK, &host).expect("seen")
        };
        let found = told(48_211);
        assert!(found[0].title.contains("eth0 has bad frames: frame 48211"), "{}", found[0].title);
        assert!(found[0].not.contains("adds these up"), "{}", found[0].not);
        assert_eq!(told(0), Vec::new());
    }

    #[test]
    fn a_sum_of_errors_is_told_by_its_share_and_never_acquits() {
        let told = |errors: u64| {
            let mut host = once(bad([0, 0], [0, 0]));
            let mut eth0 = link("eth0");
            (eth0.carrier_changes, eth0.counters) = (None, None);
            let counted = [(TOTAL.to_owned(), errors), (PACKETS.to_owned(), 1_000_000)];
            eth0.some_counters =
                Some(counted.into_iter().chain([("tx_carrier_errors".to_owned(), 0)]).collect());
            host.looks[0].links = Some(vec![eth0]);
            judged(&CHECK, &host)
        };
        let found = told(100).expect("seen");
        assert!(found[0].title.contains("rx_errors 100"), "{}", found[0].title);
        assert!(told(99).is_err());
        assert_eq!(told(0), Ok(Vec::new()));
    }

    #[test]
    fn what_drivers_call_bad_frames_is_told_and_other_counters_judge_nothing() {
        let told = |name: &str, count: u64| {
            let mut host = once(bad([0, 0], [0, 0]));
            let mut eth0 = link("eth0");
            (eth0.carrier_changes, eth0.counters) = (None, None);
            eth0.driver_counters =
                Some([(name.to_owned(), count), (PACKETS.to_owned(), 900)].into());
            host.looks[0].links = Some(vec![eth0]);
            judged(&CHECK, &host)
        };
        for name in ["rx_crc_errors", "port.rx_crc_errors", "rx_crc_errors.nic", "align_errors"] {
            assert_eq!(told(name, 7).map(|found| found.len()), Ok(1), "{name}");
            assert_eq!(told(name, 0), Ok(Vec::new()), "{name}");
        }
        assert!(told("tx_queue_0_packets", 7).is_err());
    }

    #[test]
    fn bad_checksums_are_told_with_their_share() {
        insta::assert_snapshot!(shown(&CHECK, &bad([4, 40], [3, 3])));
    }

    #[test]
    fn a_carrier_that_goes_is_an_error_between_looks_and_nothing_in_one() {
        insta::assert_snapshot!(shown(&CHECK, &bad([4, 4], [3, 5])));
        assert_eq!(judged(&CHECK, &once(bad([0, 0], [3, 5]))), Ok(Vec::new()));
    }

    #[test]
    fn errors_of_before_are_nothing_and_one_look_is_unsure() {
        assert_eq!(judged(&CHECK, &bad([4, 4], [3, 3])), Ok(Vec::new()));
        let found = judged(&CHECK, &once(bad([4, 4], [3, 3]))).expect("seen");
        assert_eq!((found[0].severity, found[0].confidence), (Severity::Warning, Confidence::Low));
    }

    #[test]
    fn without_interfaces_nothing_is_said() {
        assert_eq!(missing(&CHECK, &host(&[])).source, Source::Links);
    }
}
