//! The checks: one file each, with rule, words, sources and tests.
//!
//! [`CHECKS`] lists them; to add one is to add its file and its line there. A check is a pure function; it
//! ends with `?` where something was not seen, and `Ok` with no finding where all is well.

mod accept_queue;
mod autotuning_off;
mod cached_ssthresh;
mod congestion_control;
mod counters;
mod flows;
mod initial_windows_of_routes;
mod locked_route_metrics;
mod loss_recovery_off;
mod receive_buffer_ceiling;
mod receive_buffer_locked;
mod receive_queue_drops;
mod receive_queue_full;
mod receive_queue_pruned;
mod received;
mod receiver_limited;
mod retransmission_timeouts;
mod retransmits;
mod routes;
mod send_buffer_ceiling;
mod send_buffer_locked;
mod sent;
mod slow_start_after_idle;
mod socket_backlog_drops;
mod syn_retransmits;
mod tcp_memory;
mod window_scaling_off;
mod words;

#[cfg(test)]
mod sample;
#[cfg(test)]
mod sample_flows;

use core::cmp::Reverse;

use super::finding::{Finding, Group};
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
    window_scaling_off::CHECK,
    receive_queue_full::CHECK,
    receive_queue_drops::CHECK,
    receive_queue_pruned::CHECK,
    socket_backlog_drops::CHECK,
    tcp_memory::CHECK,
    send_buffer_ceiling::CHECK,
    send_buffer_locked::CHECK,
    receiver_limited::CHECK,
    initial_windows_of_routes::CHECK,
    slow_start_after_idle::CHECK,
    cached_ssthresh::CHECK,
    locked_route_metrics::CHECK,
    congestion_control::CHECK,
    loss_recovery_off::CHECK,
    retransmits::CHECK,
    retransmission_timeouts::CHECK,
    syn_retransmits::CHECK,
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
            Ok(found) => judged.findings.extend(found.into_iter().map(|found| Finding {
                code: check.code.to_owned(),
                group: check.group,
                ..found
            })),
        }
    }
    judged.findings.sort_by_key(|found| (Reverse(found.severity), found.group));
    judged
}
