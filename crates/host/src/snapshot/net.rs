//! Interfaces, queues and routes.

use core::net::IpAddr;
use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::is_false;

/// An interface.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
#[expect(clippy::struct_excessive_bools, reason = "they are the kernel's flags")]
pub struct Link {
    /// Its name.
    pub name: String,
    /// Its number.
    pub index: u32,
    /// `IFLA_INFO_KIND` (`veth`, `bond`, `vxlan`); `None` for hardware.
    pub kind: Option<String>,
    /// Driver (`/sys/class/net/NAME/device/driver`).
    pub driver: Option<String>,
    /// The bond or bridge that it belongs to.
    pub master: Option<String>,
    /// Administratively up.
    pub up: bool,
    /// It has a carrier (`IFF_LOWER_UP`).
    pub carrier: bool,
    /// `IFF_LOOPBACK`.
    pub loopback: bool,
    /// Its flags were not seen (pasted text of ethtool alone): `up` and `carrier` are only supposed.
    #[serde(skip_serializing_if = "is_false")]
    pub flags_unseen: bool,
    /// Its root is `noqueue`, as of bridges and other virtual interfaces whose kind was not told.
    #[serde(skip_serializing_if = "is_false")]
    pub queueless: bool,
    /// Addresses with the length of their prefixes.
    pub addresses: Vec<(IpAddr, u8)>,
    /// MTU.
    pub mtu: Option<u32>,
    /// `txqueuelen`.
    pub txqlen: Option<u32>,
    /// `IFLA_GSO_MAX_SIZE`.
    pub gso_max_size: Option<u32>,
    /// `IFLA_GSO_MAX_SEGS`.
    pub gso_max_segs: Option<u32>,
    /// `IFLA_XDP_ATTACHED`: 0 none, 1 driver, 2 generic, 3 hardware.
    pub xdp: Option<u8>,
    /// Bits per second.
    pub speed: Option<u64>,
    /// The fastest that both ends of the cable advertise, bits per second.
    pub speed_max: Option<u64>,
    /// Full duplex.
    pub full_duplex: Option<bool>,
    /// NUMA node of the device.
    pub numa_node: Option<u32>,
    /// Speed and width of its `PCIe` link: now and at most (`8.0 GT/s PCIe x4`).
    pub pcie: Option<[String; 2]>,
    /// How often the carrier came or went.
    pub carrier_changes: Option<u64>,
    /// `rtnl_link_stats64`.
    pub counters: Option<LinkCounters>,
    /// Counters that were seen where not all of them were, by the names of [`LinkCounters`]; a name with `+`
    /// is of their sum (ifconfig's `dropped` is `rx_dropped+rx_missed_errors`).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub some_counters: Option<BTreeMap<String, u64>>,
    /// The driver's own counters (`ethtool -S`).
    pub driver_counters: Option<BTreeMap<String, u64>>,
    /// Only some of these were pasted: one that is not there may well be counted.
    #[serde(skip_serializing_if = "super::is_false")]
    pub driver_counters_cut: bool,
    /// Rings (`ethtool -g`).
    pub ring: Option<Ring>,
    /// Queues of each kind (`ethtool -l`, `/sys/class/net/NAME/queues`).
    pub queues: Option<Queues>,
    /// Offloads (`ethtool -k`).
    pub features: Option<Features>,
    /// `rx-usecs`.
    pub coalesce_rx_usecs: Option<u32>,
    /// `adaptive-rx`.
    pub coalesce_adaptive: Option<bool>,
    /// Pause frames: sent, honoured (`ethtool -a`).
    pub pause: Option<[bool; 2]>,
    /// Byte queue limits of its send queues, in their order; empty where it has none.
    pub byte_queues: Option<Vec<ByteQueue>>,
}

/// What passed through an interface (`rtnl_link_stats64`, names as there).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
#[expect(missing_docs, reason = "each is the kernel's word: include/uapi/linux/if_link.h")]
pub struct LinkCounters {
    pub rx_packets: u64,
    pub tx_packets: u64,
    pub rx_bytes: u64,
    pub tx_bytes: u64,
    pub rx_errors: u64,
    pub tx_errors: u64,
    pub rx_dropped: u64,
    pub tx_dropped: u64,
    pub rx_length_errors: u64,
    pub rx_over_errors: u64,
    pub rx_crc_errors: u64,
    pub rx_frame_errors: u64,
    pub rx_fifo_errors: u64,
    pub rx_missed_errors: u64,
    pub tx_aborted_errors: u64,
    pub tx_carrier_errors: u64,
    pub tx_fifo_errors: u64,
    /// Since Linux 4.6.
    pub rx_nohandler: Option<u64>,
    /// Since Linux 5.19.
    pub rx_otherhost_dropped: Option<u64>,
}

/// Descriptors of a ring: now and at most.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Ring {
    /// For receiving.
    pub rx: Option<u32>,
    /// The most.
    pub rx_max: Option<u32>,
    /// For sending.
    pub tx: Option<u32>,
    /// The most.
    pub tx_max: Option<u32>,
}

/// Queues of a device.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Queues {
    /// Receive queues.
    pub rx: Option<u32>,
    /// Send queues.
    pub tx: Option<u32>,
    /// Combined channels: now and at most.
    pub combined: Option<[u32; 2]>,
    /// `rps_cpus` of each receive queue, as written there.
    pub rps_cpus: Vec<String>,
    /// `rps_flow_cnt` of each receive queue.
    pub rps_flow_cnt: Vec<u32>,
    /// `xps_cpus` of each send queue.
    pub xps_cpus: Vec<String>,
    /// `tx_timeout` of all send queues together.
    pub tx_timeout: Option<u64>,
}

/// Offloads, by the kernel's names (`tx-tcp-segmentation`, `rx-gro`).
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Features {
    /// Those that are on.
    pub on: Vec<String>,
    /// Those that are off and could be switched on.
    pub off: Vec<String>,
    /// Those that are off for good (`[fixed]`).
    pub fixed_off: Vec<String>,
}

/// Byte queue limits of a send queue, in bytes (`queues/tx-N/byte_queue_limits`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ByteQueue {
    /// `limit`.
    pub limit: u64,
    /// `limit_min`.
    pub limit_min: u64,
    /// `limit_max`.
    pub limit_max: u64,
    /// `inflight`.
    pub inflight: u64,
}

/// A queueing discipline with its statistics.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Qdisc {
    /// The interface's name.
    pub dev: String,
    /// `fq_codel`, `htb`, `noqueue`.
    pub kind: String,
    /// Its handle: `8001:` is `0x8001_0000`; 0 for one that nobody asked for.
    pub handle: u32,
    /// Its parent; `u32::MAX` for the root, `0xffff_fff1` for ingress.
    pub parent: u32,
    /// Parameters by the names of tc(8) (`limit`, `flows`, `rate`, `burst`, `default`), as it prints them.
    pub options: BTreeMap<String, String>,
    /// It is set to more than `options` say: they do not put it back.
    #[serde(skip_serializing_if = "is_false")]
    pub partly_read: bool,
    /// Rate in bits per second, where it has one.
    pub rate: Option<u64>,
    /// Its statistics were not seen (`tc qdisc` without `-s`): what follows is 0 for that alone.
    #[serde(skip_serializing_if = "is_false")]
    pub uncounted: bool,
    /// Bytes sent.
    pub bytes: u64,
    /// Packets sent.
    pub packets: u64,
    /// Packets dropped.
    pub drops: u64,
    /// Times that it had to hold back.
    pub overlimits: u64,
    /// Packets that the device refused.
    pub requeues: u64,
    /// Bytes waiting.
    pub backlog: u64,
    /// Packets waiting.
    pub qlen: u64,
    /// What only this kind counts (`ecn_mark`, `throttled`, `direct_packets_stat`).
    pub own: BTreeMap<String, u64>,
}

/// A route.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Route {
    /// What `ip route replace` takes to set it as it is, without those words; empty where that is not known.
    pub line: String,
    /// Where to; `None` for the default.
    pub to: Option<(IpAddr, u8)>,
    /// Of IPv6.
    pub ipv6: bool,
    /// Through which interface.
    pub dev: Option<String>,
    /// By which gateway.
    pub via: Option<IpAddr>,
    /// From which address.
    pub src: Option<IpAddr>,
    /// `unicast`, `blackhole`, `unreachable`, `prohibit`.
    pub kind: String,
    /// Number of its table: 254 is `main`.
    pub table: u32,
    /// Preference: less is better.
    pub metric: u32,
    /// Metrics by the names of ip-route(8): `initcwnd`, `ssthresh`, `mtu`, `rto_min` (nanoseconds), `quickack`.
    pub metrics: BTreeMap<String, u64>,
    /// Metrics that are locked.
    pub locked: Vec<String>,
    /// Congestion control.
    pub congestion: Option<String>,
}

impl Route {
    /// Whether it is a way to `peer`: a longer one may be taken instead.
    pub fn leads_to(&self, peer: IpAddr) -> bool {
        let Some((network, length)) = self.to else { return self.ipv6 == peer.is_ipv6() };
        match (network, peer) {
            (IpAddr::V4(network), IpAddr::V4(peer)) => {
                let shift = 32_u32.saturating_sub(u32::from(length));
                (network.to_bits() ^ peer.to_bits()).checked_shr(shift).unwrap_or(0) == 0
            }
            (IpAddr::V6(network), IpAddr::V6(peer)) => {
                let shift = 128_u32.saturating_sub(u32::from(length));
                (network.to_bits() ^ peer.to_bits()).checked_shr(shift).unwrap_or(0) == 0
            }
            _ => false,
        }
    }

    /// Its line without some metrics: `mtu lock 1400` is three words, `initcwnd 4` two. `None` where the value of one
    /// is missing.
    pub fn line_without(&self, metrics: &[&str]) -> Option<String> {
        let mut kept = Vec::new();
        let mut words = self.line.split_whitespace().peekable();
        while let Some(word) = words.next() {
            if metrics.contains(&word) {
                words.next_if_eq(&"lock");
                words.next()?;
            } else {
                kept.push(word);
            }
        }
        Some(kept.join(" "))
    }
}

/// A rule that chooses a table, as ip-rule(8) prints it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Rule {
    /// Order: less comes first.
    pub preference: u32,
    /// The table.
    pub table: u32,
    /// It has conditions: it does not choose for everything.
    pub selects: bool,
    /// Of IPv6.
    pub ipv6: bool,
}

/// What the kernel remembers about a peer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PeerMetrics {
    /// The peer.
    pub to: IpAddr,
    /// From which address of this host.
    #[serde(default)]
    pub from: Option<IpAddr>,
    /// Segments.
    #[serde(default)]
    pub ssthresh: Option<u32>,
    /// Segments.
    #[serde(default)]
    pub cwnd: Option<u32>,
    /// Round trip.
    #[serde(default)]
    pub rtt_ns: Option<u64>,
    /// Its variation.
    #[serde(default)]
    pub rttvar_ns: Option<u64>,
    /// Segments.
    #[serde(default)]
    pub reordering: Option<u32>,
    /// It has a Fast Open cookie.
    #[serde(default)]
    pub cookie: bool,
}

/// A bond (`/proc/net/bonding/NAME`).
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Bond {
    /// Its name.
    pub name: String,
    /// `balance-rr`, `active-backup`, `802.3ad`.
    pub mode: String,
    /// `layer2`, `layer3+4`.
    pub xmit_hash_policy: Option<String>,
    /// The partner's address is not zero; `None` where the mode has no partner.
    pub partner: Option<bool>,
    /// Name, up, link failures, aggregator.
    pub slaves: Vec<(String, bool, u64, Option<u32>)>,
}

/// Connection tracking.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Conntrack {
    /// Entries.
    pub count: u64,
    /// The most.
    pub max: u64,
    /// Sums over the processors of `/proc/net/stat/nf_conntrack`: `drop`, `early_drop`, `insert_failed`.
    pub stat: BTreeMap<String, u64>,
}

/// A neighbour table.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Neighbours {
    /// Entries.
    pub entries: u64,
    /// How often it was full.
    pub table_fulls: u64,
}
