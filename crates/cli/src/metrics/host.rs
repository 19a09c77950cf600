//! Counters of the kernel and of network cards that tell more than sockets do: a choice of those that `tcpwhy check` judges.

use std::collections::BTreeMap;

use tcpwhy::host::snapshot::Link;

use super::groups::label;

/// Counters by group and name, as in [`tcpwhy::host::snapshot::Look::counters`].
type Counters = BTreeMap<String, BTreeMap<String, i64>>;

/// A counter of the kernel.
pub(super) struct Kernel {
    group: &'static str,
    name: &'static str,
    /// Without `tcpwhy_kernel_` and `_total`.
    pub(super) metric: &'static str,
    pub(super) help: &'static str,
}

const fn of(
    group: &'static str,
    name: &'static str,
    metric: &'static str,
    help: &'static str,
) -> Kernel {
    Kernel { group, name, metric, help }
}

/// Those of `/proc/net/snmp` and `/proc/net/netstat`.
pub(super) const KERNEL: [Kernel; 16] = [
    of("Tcp", "OutSegs", "sent_segments", "Segments sent, without retransmitted ones"),
    of("Tcp", "RetransSegs", "retransmitted_segments", "Segments retransmitted"),
    of("Tcp", "ActiveOpens", "active_opens", "Connections that this host opened"),
    of("Tcp", "PassiveOpens", "passive_opens", "Connections that this host accepted"),
    of("Tcp", "AttemptFails", "failed_opens", "Connections that failed while they were opened"),
    of("Tcp", "OutRsts", "sent_resets", "Resets sent"),
    of("TcpExt", "TCPTimeouts", "timeouts", "Times that a retransmission timer ran out"),
    of(
        "TcpExt",
        "TCPDSACKRecv",
        "needless_retransmissions",
        "Reports of a peer that it had a segment already",
    ),
    of(
        "TcpExt",
        "ListenOverflows",
        "listen_overflows",
        "Connections refused because an accept queue was full",
    ),
    of(
        "TcpExt",
        "ListenDrops",
        "listen_drops",
        "SYNs and connections that listening sockets dropped for any reason",
    ),
    of(
        "TcpExt",
        "TCPReqQFullDrop",
        "syn_queue_drops",
        "SYNs dropped because a queue of half-open connections was full",
    ),
    of(
        "TcpExt",
        "PruneCalled",
        "prunes",
        "Times that received data was squeezed together because a receive buffer was full",
    ),
    of(
        "TcpExt",
        "RcvPruned",
        "pruned_segments",
        "Segments dropped because a receive buffer was full",
    ),
    of(
        "TcpExt",
        "TCPZeroWindowDrop",
        "zero_window_drops",
        "Segments that came although this host's window was shut",
    ),
    of(
        "TcpExt",
        "TCPMemoryPressures",
        "memory_pressures",
        "Times that TCP came under memory pressure",
    ),
    of(
        "TcpExt",
        "TCPBacklogDrop",
        "backlog_drops",
        "Segments dropped because a socket's backlog was full",
    ),
];

/// Why the kernel sent segments again, and its counter. Together they are about `RetransSegs`.
pub(super) const CAUSES: [(&str, &str); 4] = [
    ("fast_recovery", "TCPFastRetrans"),
    ("after_timeout", "TCPSlowStartRetrans"),
    ("loss_probe", "TCPLossProbes"),
    ("syn", "TCPSynRetrans"),
];

/// What `counters` say of [`KERNEL`], in that order, and of [`CAUSES`].
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Kernels {
    pub(super) all: [Option<u64>; KERNEL.len()],
    pub(super) causes: [Option<u64>; CAUSES.len()],
}

impl Kernels {
    pub(super) fn of(counters: &Counters) -> Self {
        let get = |group: &str, name: &str| u64::try_from(*counters.get(group)?.get(name)?).ok();
        Self {
            all: KERNEL.each_ref().map(|each| get(each.group, each.name)),
            causes: CAUSES.map(|(_, name)| get("TcpExt", name)),
        }
    }
}

/// What drivers of cloud machines say that the cloud or their rings refused, by device and counter.
#[derive(Clone, Debug, Default)]
pub(super) struct Devices {
    /// Packets beyond what this size of machine may have: `ena` counts them.
    pub(super) allowance: BTreeMap<(String, String), u64>,
    /// Packets for which there was no room.
    pub(super) no_room: BTreeMap<(String, String), u64>,
}

/// AWS, Linux `ena_ethtool.c`.
const ALLOWANCE: &str = "_allowance_exceeded";

/// Google, Linux `gve_ethtool.c`: one for each queue, `rx_queue_drop_cnt[3]`. Azure, `netvsc_drv.c` and `mana_ethtool.c`.
const NO_ROOM: [&str; 9] = [
    "rx_queue_drop_cnt",
    "rx_no_buffers_posted",
    "tx_send_full",
    "tx_no_space",
    "rx_no_memory",
    "stop_queue",
    "hc_rx_discards_no_wqe",
    "hc_rx_pkt_drop_phy",
    "hc_tx_pkt_drop_phy",
];

/// Devices that are counted at most. Ours: a host of containers has thousands of virtual ones without such counters.
const MOST_DEVICES: usize = 64;

impl Devices {
    pub(super) fn of(links: &[Link]) -> Self {
        let mut all = Self::default();
        let telling = links.iter().filter_map(|link| Some((link, link.driver_counters.as_ref()?)));
        for (link, counters) in telling.take(MOST_DEVICES) {
            let device = label(&link.name);
            for (name, count) in counters {
                let kind = name.split('[').next().unwrap_or(name);
                if let Some(of) = kind.strip_suffix(ALLOWANCE) {
                    add(&mut all.allowance, &device, of, *count);
                } else if let Some(known) = NO_ROOM.iter().find(|known| **known == kind) {
                    add(&mut all.no_room, &device, known, *count);
                }
            }
        }
        all
    }
}

fn add(to: &mut BTreeMap<(String, String), u64>, device: &str, name: &str, count: u64) {
    let sum = to.entry((device.to_owned(), label(name))).or_default();
    *sum = sum.saturating_add(count);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counters_of_clouds_are_summed_over_queues() {
        let counters = [
            ("bw_in_allowance_exceeded", 7),
            ("rx_queue_drop_cnt[0]", 2),
            ("rx_queue_drop_cnt[1]", 3),
            ("rx_packets", 9),
        ];
        let counters = counters.map(|(name, count)| (name.to_owned(), count)).into();
        let link =
            Link { name: "eth0".to_owned(), driver_counters: Some(counters), ..Link::default() };
        let all = Devices::of(&[link, Link::default()]);
        let row = |name: &str, count| (("eth0".to_owned(), name.to_owned()), count);
        assert_eq!(all.allowance.into_iter().collect::<Vec<_>>(), [row("bw_in", 7)]);
        assert_eq!(all.no_room.into_iter().collect::<Vec<_>>(), [row("rx_queue_drop_cnt", 5)]);
    }

    #[test]
    fn a_counter_that_is_not_there_is_not_zero() {
        let tcp = BTreeMap::from([("RetransSegs".to_owned(), 5), ("OutSegs".to_owned(), -1)]);
        let kernels = Kernels::of(&BTreeMap::from([("Tcp".to_owned(), tcp)]));
        assert_eq!(kernels.all[..3], [None, Some(5), None]);
    }
}
