//! An interface receives damaged frames, or its carrier goes away.
//!
//! # What it says
//! Frames whose checksum is wrong are thrown away by the interface; TCP sees losses that have nothing to do
//! with load. The cause is a cable, a plug, an optic or the port at the other end.
//!
//! # How we know
//! `rx_crc_errors`, `rx_frame_errors`, the driver's count of bad symbols, `tx_carrier_errors` or `carrier_changes` grew. `ifconfig` and `/proc/net/dev`
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
use crate::host::finding::{Evidence, Finding, Group};
use crate::host::seen::{Asked, Growth, Seen};
use crate::host::snapshot::Link;

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

/// Bad symbols, as mlx5 and bnxt and others call them.
const DRIVERS: [&str; 4] =
    ["rx_symbol_err_phy", "rx_pcs_symbol_err_phy", "rx_symbol_errors", "rx_crc_errors_phy"];

fn judge(seen: &Seen<'_>) -> Asked<Vec<Finding>> {
    let all = devices(seen)?;
    let is_blind = |device: &Device<'_>| {
        let link = device.now;
        link.driver_counters.is_none() && link.carrier_changes.is_none() && !adds_up(link)
    };
    if all.iter().all(is_blind) {
        need_counters(&all, &COUNTERS)?;
    }
    let mut hit: Vec<(Device<'_>, String, Growth)> = all
        .into_iter()
        .filter_map(|device| errors(device).map(|(name, growth)| (device, name, growth)))
        .collect();
    hit.sort_by_key(|(device, _, growth)| (growth.since_start, Reverse(growth.by), device.name()));
    let Some((worst, name, growth)) = hit.first() else { return unless_cut(seen, Vec::new()) };
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
        not: match name.as_str() {
            ADDED_UP => format!(
                "{NOT_WHICH}; nor whether some were too long, or found no room: the tool adds these up"
            ),
            _ => NOT_WHICH.to_owned(),
        },
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

const NOT_WHICH: &str = "not which part is bad: cable, optic, port, or the other end";

/// What bad frames cost, with their share where that is known.
fn lost(device: &Device<'_>, name: &str, growth: Growth) -> String {
    let dev = device.name();
    if name.starts_with("tx_") {
        return format!("{dev} could not send these: each is a loss to TCP.");
    }
    let received = device.counted(&["rx_packets"]).map(|packets| packets.by);
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
    let driver = device.driver(|name| DRIVERS.contains(&name));
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
    use crate::host::finding::{Confidence, Severity};
    use crate::host::snapshot::{LinkCounters, Snapshot, Source};

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
