//! The checks: one file each, with rule, words, sources and tests.
//!
//! [`CHECKS`] lists them; to add one is to add its file and its line there. A check is a pure function; it
//! ends with `?` where something was not seen, and `Ok` with no finding where all is well.

mod abort_on_overflow;
mod aborted_connections;
mod accept_queue;
mod application_limited;
mod autotuning_off;
mod backed_off_timer;
mod backlog_drops;
mod backlog_small;
mod bbr_without_fq;
mod bond_slaves;
mod bond_spread;
mod buffer_lock;
mod buffer_sizes;
mod buffers;
mod byte_queue_limits;
mod cached_ssthresh;
mod clock_source;
mod close_wait;
mod cloud_allowance;
mod coalescing;
mod congestion_control;
mod conntrack_full;
mod counters;
mod descriptors;
mod devices;
mod ecn_marks;
mod ephemeral_ports;
mod fast_open;
mod fin_timeout;
mod flow_limit;
mod flows;
mod gro_ineffective;
mod group_socket_memory;
mod half_closed;
mod host_stalls;
mod hystart;
mod inert_settings;
mod initial_windows_of_routes;
mod interrupt_spread;
mod keepalive_missing;
mod kernel_log;
mod link_errors;
mod link_speed;
mod listener_imbalance;
mod load;
mod local_retransmits;
mod locked_route_metrics;
mod loss_recovery_off;
mod lossy_long_path;
mod lost_retransmits;
mod lro_forwarding;
mod nagle;
mod neighbour_table;
mod netem;
mod netns_settings;
mod no_route;
mod numa_far;
mod offloads_off;
mod old_settings;
mod one_cpu;
mod orphans;
mod out_of_order_full;
mod oversized_frames;
mod pacing_cap;
mod packet_steering;
mod packets_refused;
mod path_mtu_black_hole;
mod path_mtu_small;
mod pause_frames;
mod pcie_width;
mod peer_window_shut;
mod pressure;
mod program_calls;
mod qdisc_change;
mod qdisc_drops;
mod qdisc_words;
mod receive_buffer_ceiling;
mod receive_buffer_locked;
mod receive_queue_drops;
mod receive_queue_full;
mod receive_queue_pruned;
mod received;
mod receiver_limited;
mod reclaim;
mod retransmission_timeouts;
mod retransmit_queue_refused;
mod retransmits;
mod reverse_path_filter;
mod ring_overrun;
mod routes;
mod rx_dropped;
mod sack_reneging;
mod same_subnet;
mod segment_sizing;
mod send_buffer_ceiling;
mod send_buffer_locked;
mod sent;
mod setting_agents;
mod shadowed_settings;
mod shaper;
mod slow_start_after_idle;
mod socket_backlog_drops;
mod socket_retransmits;
mod softirq;
mod speed_test;
mod spurious_retransmits;
mod standing_queue;
mod state_counts;
mod steal;
mod syn_cookies;
mod syn_cookies_setting;
mod syn_queue;
mod syn_retransmits;
mod syn_retries;
mod tcp_memory;
mod tcp_memory_limits;
mod time_squeeze;
mod time_wait_overflow;
mod timer_settings;
mod tx_timeout;
mod txqueuelen;
mod unacked_close;
mod unclassified;
mod unsent_backlog;
mod window_scaling_off;
mod window_settings;
mod words;
mod xdp_generic;

#[cfg(test)]
pub(super) mod parts;
#[cfg(test)]
mod sample;
#[cfg(test)]
mod sample_flows;

use core::cmp::Reverse;

use super::finding::{Finding, Group, Scope};
use super::seen::{Asked, Missing, Seen};
use super::snapshot::Snapshot;

/// One check: its code, the file that holds it, and its rule.
pub(super) struct Check {
    pub(super) code: &'static str,
    pub(super) file: &'static str,
    pub(super) group: Group,
    judge: fn(&Seen<'_>) -> Asked<Vec<Finding>>,
}

/// All checks, in the order of the manual.
pub(super) const CHECKS: &[Check] = &[
    accept_queue::CHECK,
    receive_buffer_ceiling::CHECK,
    receive_buffer_locked::CHECK,
    autotuning_off::CHECK,
    buffer_sizes::CHECK,
    window_scaling_off::CHECK,
    receive_queue_full::CHECK,
    out_of_order_full::CHECK,
    receive_queue_drops::CHECK,
    receive_queue_pruned::CHECK,
    socket_backlog_drops::CHECK,
    tcp_memory::CHECK,
    tcp_memory_limits::CHECK,
    group_socket_memory::CHECK,
    window_settings::CHECK,
    send_buffer_ceiling::CHECK,
    send_buffer_locked::CHECK,
    unsent_backlog::CHECK,
    peer_window_shut::CHECK,
    receiver_limited::CHECK,
    application_limited::CHECK,
    program_calls::CHECK,
    speed_test::CHECK,
    segment_sizing::CHECK,
    nagle::CHECK,
    initial_windows_of_routes::CHECK,
    slow_start_after_idle::CHECK,
    cached_ssthresh::CHECK,
    locked_route_metrics::CHECK,
    pacing_cap::CHECK,
    retransmit_queue_refused::CHECK,
    congestion_control::CHECK,
    bbr_without_fq::CHECK,
    lossy_long_path::CHECK,
    hystart::CHECK,
    loss_recovery_off::CHECK,
    retransmits::CHECK,
    socket_retransmits::CHECK,
    backed_off_timer::CHECK,
    retransmission_timeouts::CHECK,
    lost_retransmits::CHECK,
    spurious_retransmits::CHECK,
    local_retransmits::CHECK,
    syn_retransmits::CHECK,
    sack_reneging::CHECK,
    timer_settings::CHECK,
    aborted_connections::CHECK,
    packets_refused::CHECK,
    ecn_marks::CHECK,
    path_mtu_black_hole::CHECK,
    path_mtu_small::CHECK,
    oversized_frames::CHECK,
    backlog_small::CHECK,
    syn_queue::CHECK,
    syn_cookies::CHECK,
    syn_cookies_setting::CHECK,
    abort_on_overflow::CHECK,
    ephemeral_ports::CHECK,
    descriptors::CHECK,
    listener_imbalance::CHECK,
    conntrack_full::CHECK,
    neighbour_table::CHECK,
    fast_open::CHECK,
    keepalive_missing::CHECK,
    ring_overrun::CHECK,
    rx_dropped::CHECK,
    link_errors::CHECK,
    link_speed::CHECK,
    tx_timeout::CHECK,
    qdisc_drops::CHECK,
    qdisc_words::CHECK,
    standing_queue::CHECK,
    netem::CHECK,
    shaper::CHECK,
    unclassified::CHECK,
    offloads_off::CHECK,
    pause_frames::CHECK,
    bond_slaves::CHECK,
    bond_spread::CHECK,
    cloud_allowance::CHECK,
    byte_queue_limits::CHECK,
    coalescing::CHECK,
    lro_forwarding::CHECK,
    gro_ineffective::CHECK,
    xdp_generic::CHECK,
    pcie_width::CHECK,
    backlog_drops::CHECK,
    one_cpu::CHECK,
    interrupt_spread::CHECK,
    numa_far::CHECK,
    softirq::CHECK,
    time_squeeze::CHECK,
    flow_limit::CHECK,
    packet_steering::CHECK,
    pressure::CHECK,
    steal::CHECK,
    reclaim::CHECK,
    clock_source::CHECK,
    close_wait::CHECK,
    state_counts::CHECK,
    orphans::CHECK,
    time_wait_overflow::CHECK,
    unacked_close::CHECK,
    half_closed::CHECK,
    reverse_path_filter::CHECK,
    same_subnet::CHECK,
    no_route::CHECK,
    syn_retries::CHECK,
    fin_timeout::CHECK,
    txqueuelen::CHECK,
    netns_settings::CHECK,
    inert_settings::CHECK,
    shadowed_settings::CHECK,
    old_settings::CHECK,
    setting_agents::CHECK,
];

/// What was found, and what could not be looked at.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Judgement {
    /// The worst first; within a severity in the order of their groups.
    pub findings: Vec<Finding>,
    /// Checks that could not be made: code, and what was not seen.
    pub unseen: Vec<(&'static str, Missing)>,
    /// Checks that were made and found nothing.
    pub well: Vec<&'static str>,
}

/// Judges a snapshot by all checks; nothing where it holds no look.
pub fn judge(snapshot: &Snapshot) -> Judgement {
    let mut judged = Judgement::default();
    let Some(seen) = Seen::new(snapshot) else { return judged };
    for check in CHECKS {
        match (check.judge)(&seen) {
            Err(missing) => judged.unseen.push((check.code, missing)),
            Ok(found) if found.is_empty() => judged.well.push(check.code),
            Ok(found) => {
                judged.findings.extend(no_more_than_are_read(found).map(|found| Finding {
                    code: check.code.to_owned(),
                    group: check.group,
                    ..found
                }));
            }
        }
    }
    for found in &mut judged.findings {
        leave_unsaid(found, snapshot.netns.as_deref());
        put_names_back(found, snapshot);
    }
    judged.findings.sort_by_key(|found| (Reverse(found.severity), found.group));
    judged
}

/// Of one check the worst [`MOST_OF_A_CHECK`]; the last of them says how many more there are. A host may have a full
/// table of routes.
fn no_more_than_are_read(mut found: Vec<Finding>) -> impl Iterator<Item = Finding> {
    let more = found.len().saturating_sub(MOST_OF_A_CHECK);
    if more > 0 {
        found.sort_by_key(|found| Reverse(found.severity));
        found.truncate(MOST_OF_A_CHECK);
        if let Some(last) = found.last_mut() {
            last.title = format!("{}; and {more} more like it, which are not listed", last.title);
        }
    }
    found.into_iter()
}

/// Ours: more of one kind nobody reads, and one script mends.
const MOST_OF_A_CHECK: usize = 20;

/// Ends of sockets that were pasted by name are shown by it.
fn put_names_back(found: &mut Finding, snapshot: &Snapshot) {
    // The longest first: one address may be the beginning of another.
    for (ip, name) in snapshot.named.iter().rev() {
        let put = |text: &mut String| {
            if text.contains('2') {
                *text = text.replace(&format!("{ip}:0"), name).replace(&ip.to_string(), name);
            }
        };
        let Finding { scope, title, why, not, evidence, fixes, .. } = &mut *found;
        if let Scope::Peer(of) | Scope::Listener(of) = scope {
            put(of);
        }
        for text in [title, why, not] {
            put(text);
        }
        for each in evidence {
            put(&mut each.source);
            put(&mut each.value);
        }
        for fix in fixes {
            put(&mut fix.what);
        }
    }
}

/// Without commands where one of them would hold a name that must not stand in it.
fn leave_unsaid(found: &mut Finding, netns: Option<&str>) {
    let sets = || found.fixes.iter().filter_map(|fix| fix.set.as_ref());
    if sets().all(|set| set.is_sayable(netns)) {
        return;
    }
    found.with_first = 0;
    for fix in &mut found.fixes {
        if fix.set.take().is_some() {
            fix.what.push_str("; no command is shown, for a name in it is none that the kernel has, or does not print");
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::script::scripts;
    use crate::snapshot::{Link, LinkCounters, Look, Ring};
    use tcpwhy_words::doc::SECTIONS;

    #[test]
    fn of_a_host_of_which_nothing_was_seen_no_check_says_anything() {
        let blind =
            Snapshot { looks: vec![Look::default(), Look::default()], ..Snapshot::default() };
        let judged = judge(&blind);
        assert_eq!((judged.findings, judged.well), (Vec::new(), Vec::new()));
        assert_eq!(judged.unseen.len(), CHECKS.len());
    }

    #[test]
    fn a_hostile_name_is_told_and_comes_into_no_command() {
        let judged = |name: &str| {
            let ring = Ring { rx: Some(256), rx_max: Some(4096), ..Ring::default() };
            let missed = |count| Link {
                name: name.to_owned(),
                up: true,
                carrier: true,
                ring: Some(ring),
                counters: Some(LinkCounters {
                    rx_packets: 1_000_000 * (1 + count),
                    rx_missed_errors: count,
                    ..LinkCounters::default()
                }),
                ..Link::default()
            };
            let look = |count: u64| Look {
                t_ns: Some((1 + count) * 1_000_000_000),
                links: Some(vec![missed(count)]),
                ..Look::default()
            };
            let host = Snapshot { looks: vec![look(0), look(9)], ..Snapshot::default() };
            let found =
                judge(&host).findings.into_iter().find(|found| found.code == "RING_OVERRUN");
            let found = found.expect("missed packets");
            let scripts = scripts(&host, core::slice::from_ref(&found)).is_some();
            (found.fixes.iter().any(|fix| fix.set.is_some()), scripts)
        };
        assert_eq!(judged("eth0"), (true, true));
        assert_eq!(judged("eth0; reboot"), (false, false));
        assert_eq!(judged("eth0\n\u{1b}[2J"), (false, false));
    }

    #[test]
    fn each_check_has_a_code_of_its_own_and_a_page_with_every_section() {
        let codes: BTreeSet<_> = CHECKS.iter().map(|check| check.code).collect();
        assert_eq!(codes.len(), CHECKS.len());
        for check in CHECKS {
            for section in SECTIONS {
                let head = format!("//! # {section}\n");
                assert!(check.file.contains(&head), "{}: {section}", check.code);
            }
        }
    }
}
