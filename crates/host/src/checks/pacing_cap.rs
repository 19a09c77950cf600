//! A program set a pace for its connections, and they run at it.
//!
//! # What it says
//! `SO_MAX_PACING_RATE` bounds how fast a socket sends, whatever the network admits. These connections send at
//! that bound.
//!
//! # How we know
//! The socket has a `max_pacing_rate`, its pace is at it, and what was delivered is within 5 % of it.
//!
//! # What it is not
//! Not a fault: servers of video and of updates pace on purpose.
//!
//! # What to do
//! If it is too slow, look for the rate in the program's configuration.
//!
//! # Sources
//! socket(7); Linux `tcp_update_pacing_rate`, `sk_max_pacing_rate` (v6.12). 5 %: ours, not measured.

use super::flows::{self, bits};
use super::{Check, words};
use crate::finding::{Confidence, Finding, Group, Scope, Severity};
use crate::flow::Flow;
use crate::seen::{Asked, Seen};
use crate::snapshot::Info;

pub(super) const CHECK: Check =
    Check { code: "PACING_CAP", file: include_str!("pacing_cap.rs"), group: Group::Sending, judge };

fn judge(seen: &Seen<'_>) -> Asked<Vec<Finding>> {
    let capped =
        flows::known(seen)?.into_iter().filter(|(_, info)| is_capped(info).unwrap_or(false));
    let cap = |flow: &Flow<'_>| flow.info().and_then(|info| info.max_pacing_rate);
    let capped =
        flows::worst(capped.map(|(flow, _)| flow).collect(), |flow| core::cmp::Reverse(cap(flow)));
    let Some(slowest) = capped.first() else { return Ok(Vec::new()) };
    let says = |flow: &Flow<'_>| {
        let delivered = flow.info().and_then(|info| info.delivery_rate).unwrap_or(0);
        format!(
            "max_pacing_rate {}, delivery_rate {}",
            bits(cap(flow).unwrap_or(0)),
            bits(delivered)
        )
    };
    Ok(vec![Finding {
        severity: Severity::Warning,
        confidence: Confidence::High,
        scope: Scope::Netns,
        title: format!(
            "{} run{} at the pace that the program set",
            flows::counted(seen, &capped),
            flows::verb_s(capped.len())
        ),
        why: format!(
            "SO_MAX_PACING_RATE bounds the slowest at {}, whatever the network admits.",
            bits(cap(slowest).unwrap_or(0))
        ),
        not: "not a fault: some servers pace on purpose".to_owned(),
        evidence: flows::evidence(seen, &capped, says),
        fixes: vec![words::advise(
            "if it is too slow, look for the rate in the program's configuration",
            "",
        )],
        ..Finding::default()
    }])
}

fn is_capped(info: &Info) -> Option<bool> {
    let cap = info.max_pacing_rate?;
    let is_near = |rate: u64| rate.saturating_mul(20) >= cap.saturating_mul(19);
    Some(is_near(info.pacing_rate?) && is_near(info.delivery_rate?))
}

#[cfg(test)]
mod tests {
    use super::super::sample::{host, judged, missing, shown};
    use super::super::sample_flows::{connected, socket};
    use super::*;
    use crate::snapshot::{Memory, Snapshot, Source};

    fn paced(cap: Option<u64>, delivered: u64) -> Snapshot {
        let info = Info {
            max_pacing_rate: cap,
            pacing_rate: Some(1_000_000),
            delivery_rate: Some(delivered),
            ..Info::default()
        };
        let at = || vec![socket(0, &info, Memory::default())];
        connected(&[], at(), at())
    }

    #[test]
    fn a_connection_that_runs_at_its_cap() {
        insta::assert_snapshot!(shown(&CHECK, &paced(Some(1_000_000), 980_000)));
    }

    #[test]
    fn five_percent_below_is_the_border_and_no_cap_is_none() {
        let number = |cap, rate| judged(&CHECK, &paced(cap, rate)).expect("seen").len();
        assert_eq!([number(Some(1_000_000), 950_000), number(Some(1_000_000), 949_999)], [1, 0]);
        assert_eq!(number(None, 980_000), 0);
        assert_eq!(missing(&CHECK, &host(&[])).source, Source::Sockets);
    }
}
