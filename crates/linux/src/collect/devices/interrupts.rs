//! Interrupts of network devices: how often they came on which processor, and where they may go.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use tcpwhy::host::snapshot::{Interrupt, Link, Source};

use super::sysfs::Sysfs;
use crate::collect::blind::{Blind, read};

/// Those whose device `/sys` tells, and those that are named for an interface.
pub(super) fn interrupts(
    links: &[Link],
    sysfs: &Sysfs,
    blind: &mut Blind,
) -> Option<Vec<Interrupt>> {
    let text = blind.file(Source::Interrupts, "/proc/interrupts")?;
    let mut whose = BTreeMap::new();
    for link in links {
        for irq in sysfs.device(&link.name).as_ref().map(of_device).unwrap_or_default() {
            // Two ports of one card share its interrupts: then names decide.
            whose.entry(irq).or_insert_with(Vec::new).push(link.name.as_str());
        }
    }
    let names: Vec<&str> = links.iter().map(|link| link.name.as_str()).collect();
    let mut found = rows(&text);
    found.retain_mut(|interrupt| {
        let known = whose.get(&interrupt.irq).map(Vec::as_slice).unwrap_or_default();
        let named = |name: &&&str| is_named_for(&interrupt.name, name);
        let dev = known.iter().find(named).or(known.first()).or_else(|| names.iter().find(named));
        interrupt.dev = dev.map_or_else(String::new, |dev| (*dev).to_owned());
        !interrupt.dev.is_empty()
    });
    for interrupt in found.iter_mut().take(MOST) {
        let folder = format!("/proc/irq/{}", interrupt.irq);
        let line = |name: &str| {
            let text = read(&Path::new(&folder).join(name)).ok()?;
            Some(text.trim().to_owned())
        };
        interrupt.affinity = line("smp_affinity_list");
        interrupt.effective = line("effective_affinity_list");
    }
    Some(found)
}

/// Numbers of a device's interrupts: those by message, else its one.
fn of_device(places: &[std::path::PathBuf; 2]) -> Vec<u32> {
    for place in places {
        if let Ok(entries) = fs::read_dir(place.join("msi_irqs")) {
            let numbers =
                entries.flatten().filter_map(|entry| entry.file_name().to_str()?.parse().ok());
            return numbers.collect();
        }
    }
    let only = |place: &std::path::PathBuf| read(&place.join("irq")).ok()?.trim().parse().ok();
    places.iter().find_map(only).into_iter().filter(|&irq| irq != 0).collect()
}

/// `eth0`, `eth0-TxRx-3`, `mlx5_comp0@pci`, `i40e-eth0-TxRx-0`: no letter or digit touches the name.
fn is_named_for(interrupt: &str, name: &str) -> bool {
    let parts = |letter: char| !(letter.is_alphanumeric() || letter == '_');
    !name.is_empty() && interrupt.split(parts).any(|part| part == name)
}

/// Rows of `/proc/interrupts` that have a number: counts, one a processor, then chip, place and names.
fn rows(text: &str) -> Vec<Interrupt> {
    let mut lines = text.lines();
    let processors = lines.next().map_or(0, |head| head.split_ascii_whitespace().count());
    lines.filter_map(|line| row(line, processors)).collect()
}

fn row(line: &str, processors: usize) -> Option<Interrupt> {
    let (irq, rest) = line.split_once(':')?;
    let irq = irq.trim().parse().ok()?;
    let words: Vec<&str> = rest.split_ascii_whitespace().collect();
    let counts: Vec<u64> =
        words.iter().take(processors).map_while(|word| word.parse().ok()).collect();
    let about = words.get(counts.len()..).unwrap_or_default();
    // Names stand behind how it is triggered; a chip without that has them last.
    let is_kind = |word: &&str| {
        ["-edge", "-level", "-fasteoi", "Edge", "Level"].iter().any(|end| word.ends_with(end))
    };
    let names = match about.iter().rposition(is_kind) {
        Some(place) => about[place + 1..].join(" "),
        None => about.last().map_or_else(String::new, |name| (*name).to_owned()),
    };
    Some(Interrupt { irq, name: names, counts, ..Interrupt::default() })
}

/// Ours: two files each.
const MOST: usize = 4096;

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn rows_have_a_count_for_each_processor() {
        let text = "           CPU0       CPU1       \n\
                    38:          5      33839 PCI-MSIX-0000:00:03.0   1-edge      virtio2-input.0\n\
                    9:          1          2   IO-APIC   9-fasteoi   acpi, eth1\n\
                    27:          1          2   GICv3  27 Level     arch_timer\n\
                    30:          7\n\
                    NMI:          0          0   Non-maskable interrupts\n";
        let found = rows(text);
        let told: Vec<_> =
            found.iter().map(|row| (row.irq, row.name.as_str(), row.counts.len())).collect();
        assert_eq!(
            told,
            [(38, "virtio2-input.0", 2), (9, "acpi, eth1", 2), (27, "arch_timer", 2), (30, "", 1)]
        );
        assert_eq!(found[0].counts, [5, 33839]);
    }

    #[test]
    fn a_name_stands_by_itself() {
        assert!(is_named_for("i40e-eth0-TxRx-3", "eth0") && is_named_for("acpi, eth1", "eth1"));
        assert!(!is_named_for("eth10-TxRx-3", "eth1") && !is_named_for("x", ""));
    }

    proptest! {
        #[test]
        fn no_text_is_too_odd(text in "[ -~\\n]{0,300}") {
            rows(&text);
        }
    }
}
