//! `ethtool -k`: offloads, by the kernel's names or by ethtool's own.
//!
//! ethtool prints some groups of features under one name of its own and the features below; before 3.x it
//! printed only its own names. A group is taken for the feature that it is mostly about until the feature
//! itself follows.

use crate::snapshot::{Features, Link};

/// Names of ethtool and the kernel's feature (ethtool 6.1 `common.c`, `off_flag_def`; kernel v6.12
/// `net/ethtool/common.c`, `netdev_features_strings`). `tx-checksumming` may be any of three.
const NAMES: [(&str, &str); 11] = [
    ("rx-checksumming", "rx-checksum"),
    ("scatter-gather", "tx-scatter-gather"),
    ("tcp-segmentation-offload", "tx-tcp-segmentation"),
    ("udp-fragmentation-offload", "tx-udp-fragmentation"),
    ("generic-segmentation-offload", "tx-generic-segmentation"),
    ("generic-receive-offload", "rx-gro"),
    ("large-receive-offload", "rx-lro"),
    ("rx-vlan-offload", "rx-vlan-hw-parse"),
    ("tx-vlan-offload", "tx-vlan-hw-insert"),
    ("ntuple-filters", "rx-ntuple-filter"),
    ("receive-hashing", "rx-hashing"),
];

/// The most features of a device; v6.12 has 61 (`include/linux/netdev_features.h`).
const MOST: usize = 256;

/// `tx-tcp-segmentation: off [fixed]`; false if it is no such line.
pub(super) fn line(link: &mut Link, name: &str, state: &str, rest: &str) -> bool {
    let on = match state {
        "on" => true,
        "off" => false,
        _ => return false,
    };
    let features = link.features.get_or_insert_with(Features::default);
    if name == "tx-checksumming" {
        return true;
    }
    let count = features.on.len() + features.off.len() + features.fixed_off.len();
    if count >= MOST {
        return true;
    }
    let name = NAMES.iter().find(|(ours, _)| *ours == name).map_or(name, |(_, kernel)| kernel);
    let lists = [&mut features.on, &mut features.off, &mut features.fixed_off];
    for list in lists {
        list.retain(|other| other != name);
    }
    let list = match (on, rest.contains("[fixed]")) {
        (true, _) => &mut features.on,
        (false, true) => &mut features.fixed_off,
        (false, false) => &mut features.off,
    };
    list.push(name.to_owned());
    true
}
