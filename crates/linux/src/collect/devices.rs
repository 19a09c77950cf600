//! What is known of interfaces besides rtnetlink: by ethtool, and in `/sys/class/net`.
//!
//! What stays, or is dear to ask, is asked once and kept for the second look: rings, offloads, link modes.
//! Counters of drivers and queues are read in both.

use std::collections::BTreeMap;

use tcpwhy::host::snapshot::{Interrupt, Link, Source};

use super::blind::Blind;

mod bonds;
mod ethtool;
mod interrupts;
mod ioctl;
mod sysfs;
mod told;

pub(super) use bonds::bonds;
pub(super) use ioctl::counters as driver_counters;
pub(super) use sysfs::Sysfs;

/// What was seen of interfaces, by their numbers.
#[derive(Debug, Default)]
pub(super) struct Devices {
    known: BTreeMap<u32, Link>,
}

impl Devices {
    /// Fills in what rtnetlink does not tell.
    pub(super) fn describe(
        &mut self,
        links: &mut [Link],
        sysfs: Option<&Sysfs>,
        blind: &mut Blind,
    ) {
        let is_new =
            |link: &Link| self.known.get(&link.index).is_none_or(|known| known.name != link.name);
        if links.iter().any(is_new) {
            let mut fresh: BTreeMap<u32, Link> = links
                .iter()
                .map(|link| (link.index, Link { name: link.name.clone(), ..Link::default() }))
                .collect();
            ethtool::describe(&mut fresh, blind);
            if let Some(sysfs) = sysfs {
                fresh.values_mut().take(MOST).for_each(|link| sysfs.describe(link));
            }
            self.known = fresh;
        }
        if links.len() > MOST {
            let why =
                format!("there are more than {MOST}: queues and drivers' counters of the others");
            blind.say(Source::Ethtool, None, why);
        }
        for (place, link) in links.iter_mut().enumerate() {
            if let Some(known) = self.known.get(&link.index) {
                take_over(link, known);
            }
            if place < MOST {
                link.driver_counters = ioctl::counters(&link.name);
                if let Some(sysfs) = sysfs {
                    sysfs.look(link);
                }
            }
        }
    }

    /// Interrupts that belong to them, where `/sys` tells whose they are.
    pub(super) fn interrupts(
        links: &[Link],
        sysfs: &Sysfs,
        blind: &mut Blind,
    ) -> Option<Vec<Interrupt>> {
        interrupts::interrupts(links, sysfs, blind)
    }
}

fn take_over(link: &mut Link, known: &Link) {
    let known = known.clone();
    link.driver = known.driver;
    link.numa_node = known.numa_node;
    link.pcie = known.pcie;
    (link.speed, link.speed_max, link.full_duplex) =
        (known.speed, known.speed_max, known.full_duplex);
    (link.ring, link.queues, link.features) = (known.ring, known.queues, known.features);
    link.coalesce_rx_usecs = known.coalesce_rx_usecs;
    link.coalesce_adaptive = known.coalesce_adaptive;
    link.pause = known.pause;
}

/// Ours: hosts of containers have a thousand, but what has queues and a driver is among the first.
const MOST: usize = 256;
