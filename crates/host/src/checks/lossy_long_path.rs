//! Connections over long paths are slow because their algorithm takes each loss for congestion.
//!
//! # What it says
//! CUBIC and Reno give up 30 % or half of their window at each loss, and win it back over many round trips. Over a
//! long path even one loss in a thousand, by a radio link or a policer, keeps the window far below what the path
//! carries.
//!
//! # How we know
//! Between the looks connections with `cubic` or `reno` over more than 50 ms sent at least 1 MB, and retransmitted 0.1 to 5 % of it.
//!
//! # What it is not
//! Whether the losses are congestion cannot be seen here. If a queue on the path is full, backing off is right. CUBIC
//! keeps 717/1024 of its window, not half of it as is often said.
//!
//! # What to do
//! Try BBR for these peers: a route's `congctl bbr`, or `TCP_CONGESTION` in the program; compare, and keep what is
//! better. Others on the same path may suffer from it.
//!
//! # Sources
//! RFC 9438 section 4.6; Mathis and others, 1997 (rate ~ segment / (round trip x root of loss)). 50 ms, 0.1 % and 5 %: ours,
//! not measured.

use super::flows::{self, bits, rate, time};
use super::sent::amount;
use super::{Check, words};
use crate::finding::{Confidence, Finding, Group, Scope, Severity};
use crate::flow::Flow;
use crate::seen::{Asked, Missing, Seen};
use crate::snapshot::Source;

pub(super) const CHECK: Check = Check {
    code: "LOSSY_LONG_PATH",
    file: include_str!("lossy_long_path.rs"),
    group: Group::Losses,
    judge,
};

const LONG_NS: u64 = 50_000_000;
const LEAST: u64 = 1_000_000;

fn judge(seen: &Seen<'_>) -> Asked<Vec<Finding>> {
    let known = flows::known(seen)?;
    let apart = seen.apart_ns().ok_or(Missing::all(Source::SecondLook))?;
    let slowed = known.into_iter().filter(|(flow, info)| {
        let by_loss =
            flow.now.congestion.as_deref().is_some_and(|name| matches!(name, "cubic" | "reno"));
        by_loss && info.min_rtt_ns.is_some_and(|rtt| rtt > LONG_NS) && share(flow).is_some()
    });
    let slowed = flows::worst(slowed.map(|(flow, _)| flow).collect(), amount);
    if slowed.is_empty() {
        return Ok(Vec::new());
    }
    let says = |flow: &Flow<'_>| {
        format!(
            "{}, min_rtt {}, {:.2} % retransmitted, {}",
            flow.now.congestion.as_deref().unwrap_or_default(),
            time(flow.info().and_then(|info| info.min_rtt_ns).unwrap_or(0)),
            share(flow).unwrap_or(0) as f64 / 1000.0,
            bits(rate(amount(flow), apart).unwrap_or(0))
        )
    };
    Ok(vec![Finding {
        severity: Severity::Info,
        confidence: Confidence::Medium,
        scope: Scope::Netns,
        title: format!(
            "{} over long paths lose{} packets, and their windows with them",
            flows::counted(seen, &slowed),
            flows::verb_s(slowed.len())
        ),
        why: "each loss costs a third of the window or more, which takes many of these round trips to win back."
            .to_owned(),
        not: "not whether the losses are congestion: if a queue on the path is full, backing off is right".to_owned(),
        evidence: flows::evidence(seen, &slowed, says),
        fixes: vec![words::advise(
            "try BBR for these peers (`ip route change ... congctl bbr`), and compare",
            "it yields less to others on the same path",
        )],
        ..Finding::default()
    }])
}

/// What it retransmitted between the looks, in thousandths of a percent, where that is in range.
fn share(flow: &Flow<'_>) -> Option<u64> {
    let again = flow.grew(|info| info.bytes_retrans)?;
    let sent = flow.grew(|info| info.bytes_sent).filter(|sent| *sent >= LEAST)?;
    let share = again.saturating_mul(100_000) / sent;
    (100..=5000).contains(&share).then_some(share)
}

#[cfg(test)]
mod tests {
    use super::super::sample::{host, judged, missing, once, shown};
    use super::super::sample_flows::{connected, socket};
    use super::*;
    use crate::snapshot::{Info, Memory, Snapshot};

    fn losing(controller: &str, min_rtt_ms: u64, again: u64) -> Snapshot {
        let info = |again, sent| Info {
            min_rtt_ns: Some(min_rtt_ms * 1_000_000),
            bytes_retrans: Some(again),
            bytes_sent: Some(sent),
            bytes_acked: Some(sent),
            ..Info::default()
        };
        let at = |again, sent| {
            let mut socket = socket(0, &info(again, sent), Memory::default());
            socket.congestion = Some(controller.to_owned());
            vec![socket]
        };
        connected(&[], at(0, 0), at(again, 5_000_000))
    }

    #[test]
    fn a_loss_in_a_hundred_over_a_long_path() {
        insta::assert_snapshot!(shown(&CHECK, &losing("cubic", 120, 50_000)));
    }

    #[test]
    fn a_thousandth_and_a_twentieth_and_fifty_milliseconds_are_the_borders() {
        let number = |controller, rtt, again| {
            judged(&CHECK, &losing(controller, rtt, again)).expect("seen").len()
        };
        assert_eq!([number("cubic", 51, 5000), number("cubic", 51, 4999)], [1, 0]);
        assert_eq!([number("cubic", 51, 250_000), number("cubic", 51, 250_100)], [1, 0]);
        assert_eq!([number("cubic", 50, 50_000), number("bbr", 120, 50_000)], [0, 0]);
    }

    #[test]
    fn without_a_second_look_nothing_is_said() {
        assert_eq!(missing(&CHECK, &once(losing("cubic", 51, 5000))).source, Source::SecondLook);
        assert_eq!(missing(&CHECK, &host(&[])).source, Source::Sockets);
    }
}
