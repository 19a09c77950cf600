//! Senders wait for their own programs, not for the network.
//!
//! # What it says
//! These connections carried data between the looks and had nothing in flight for most of that time: their
//! programs had nothing to send. Neither the network nor a setting of TCP makes them faster.
//!
//! # How we know
//! At least 100 kB were acknowledged between the looks, less than half of that time had something in flight
//! (`busy`), and the kernel marked its last measure of the rate as the application's (`app_limited`).
//!
//! # What it is not
//! Not a fault: a program that answers requests is idle between them.
//!
//! # What to do
//! If one of these is the slow one, look at the program and at what it waits for: a disk, a database, its own peer.
//!
//! # Sources
//! Linux `tcp_rate_check_app_limited`, `tcp_chrono_start` (since 4.9 and 4.10). Half and 100 kB: ours, not measured.

use super::flows::{self, time};
use super::sent::amount;
use super::{Check, words};
use crate::finding::{Confidence, Finding, Group, Scope, Severity};
use crate::flow::Flow;
use crate::seen::{Asked, Missing, Seen};
use crate::snapshot::{Info, Source};
use tcpwhy_words::said::bytes;

pub(super) const CHECK: Check = Check {
    code: "APPLICATION_LIMITED",
    file: include_str!("application_limited.rs"),
    group: Group::Sending,
    judge,
};

const LEAST: u64 = 100_000;

fn judge(seen: &Seen<'_>) -> Asked<Vec<Finding>> {
    let known = flows::known(seen)?;
    let apart = seen.apart_ns().ok_or(Missing::all(Source::SecondLook))?;
    let sending: Vec<_> = known
        .into_iter()
        .filter(|(flow, _)| flow.grew(|info| info.bytes_acked).is_some_and(|acked| acked >= LEAST))
        .collect();
    let waiting = |flow: &Flow<'_>, info: &Info| {
        let busy = flow.grew(|info| info.busy_ns)?;
        Some(info.delivery_rate_app_limited? && busy < apart / 2)
    };
    let held = sending.iter().filter(|(flow, info)| waiting(flow, info).unwrap_or(false));
    let held = flows::worst(held.map(|(flow, _)| *flow).collect(), amount);
    if held.is_empty() {
        return Ok(Vec::new());
    }
    let evidence = flows::evidence(seen, &held, |flow| {
        let busy = flow.grew(|info| info.busy_ns).unwrap_or(0);
        format!(
            "{} acknowledged, busy {} of {}, app_limited",
            bytes(amount(flow)),
            time(busy),
            time(apart)
        )
    });
    Ok(vec![Finding {
        severity: Severity::Info,
        confidence: Confidence::High,
        scope: Scope::Netns,
        title: format!(
            "{} wait{} for the program most of the time",
            flows::counted(seen, &held),
            flows::verb_s(held.len())
        ),
        why: format!(
            "of {} that sent between the looks; they had nothing in flight for more than half of the time, \
             so that no setting of TCP makes them faster.",
            sending.len()
        ),
        not: "not a fault: a program that answers requests is idle between them".to_owned(),
        evidence,
        fixes: vec![words::advise("if one of them is slow, see what its program waits for", "")],
        ..Finding::default()
    }])
}

#[cfg(test)]
mod tests {
    use super::super::sample::{host, judged, missing, once, shown};
    use super::super::sample_flows::{connected, socket};
    use super::*;
    use crate::snapshot::{Memory, Snapshot};

    fn sending(acked: u64, busy_ms: u64) -> Snapshot {
        let info = |acked, busy_ms: u64| Info {
            bytes_acked: Some(acked),
            busy_ns: Some(busy_ms * 1_000_000),
            delivery_rate_app_limited: Some(true),
            ..Info::default()
        };
        let at = |acked, busy| vec![socket(0, &info(acked, busy), Memory::default())];
        connected(&[], at(5, 500), at(5 + acked, 500 + busy_ms))
    }

    #[test]
    fn a_program_that_has_nothing_to_send() {
        insta::assert_snapshot!(shown(&CHECK, &sending(2_000_000, 400)));
    }

    #[test]
    fn half_of_the_time_and_a_hundred_kilobytes_are_the_border() {
        let number = |acked, busy| judged(&CHECK, &sending(acked, busy)).expect("seen").len();
        assert_eq!([number(LEAST, 4999), number(LEAST, 5000), number(LEAST - 1, 100)], [1, 0, 0]);
    }

    #[test]
    fn without_a_second_look_nothing_is_said() {
        assert_eq!(missing(&CHECK, &once(sending(LEAST, 1))).source, Source::SecondLook);
        assert_eq!(missing(&CHECK, &host(&[])).source, Source::Sockets);
    }
}
