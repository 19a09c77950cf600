//! Connections have to send much again.
//!
//! # What it says
//! Of what a socket sent, a large share was retransmitted. Each loss costs a round trip or more and makes the congestion
//! window smaller; from some percent on a connection crawls, and from a third on next to nothing gets through.
//!
//! # How we know
//! `ss -ti` of a socket, between the looks or, with one look, since it was opened: `bytes_retrans` is 2 % of `bytes_sent`
//! or more, of at least 20 retransmissions (`retrans`). Where `bytes_retrans` was not seen, `retrans` against the segments
//! that `bytes_acked` makes.
//!
//! # What it is not
//! Not where they are lost, nor that all were: `dsack_dups` counts those that had arrived.
//!
//! # What to do
//! Look at what the peers have in common; a capture at both ends tells whether the path drops, or the receiver does.
//!
//! # Sources
//! Linux `tcp_get_info`, `__tcp_retransmit_skb` (`bytes_retrans` since 4.19; `bytes_sent` counts repeats, too). 2 % of at
//! least 20: ours, not measured; the path that gives one percent is bad already, and a burst of a slow start's end is none.

use core::fmt::Write as _;

use super::flows;
use super::{Check, counters, words};
use crate::finding::{Confidence, Finding, Group, Scope, Severity};
use crate::flow::Flow;
use crate::seen::{Asked, Missing, Seen};
use crate::snapshot::{Info, Source};
use tcpwhy_words::said::{grouped, percent};

pub(super) const CHECK: Check = Check {
    code: "SOCKET_RETRANSMITS",
    file: include_str!("socket_retransmits.rs"),
    group: Group::Losses,
    judge,
};

const LEAST: u64 = 20;
const MUCH_PERCENT: u64 = 2;
/// Hardly anything gets through.
const MOST_PERCENT: u64 = 20;

/// What one connection retransmitted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Again {
    segments: u64,
    /// Bytes, or segments where bytes were not counted.
    part: u64,
    whole: u64,
}

fn judge(seen: &Seen<'_>) -> Asked<Vec<Finding>> {
    let known = flows::known(seen)?;
    if !known.is_empty() && known.iter().all(|(_, info)| info.total_retrans.is_none()) {
        return Err(Missing::part(Source::Sockets, "retrans: ss -i"));
    }
    let much = |flow: &Flow<'_>| again(flow, seen).filter(is_much);
    let score = |flow: &Flow<'_>| much(flow).map_or(0, |again| again.part * 10_000 / again.whole);
    let all = known.into_iter().map(|(flow, _)| flow).filter(|flow| much(flow).is_some());
    let all = flows::worst(all.collect(), score);
    let Some(worst) = all.first().and_then(|flow| much(flow)) else { return Ok(Vec::new()) };
    let is_most = counters::is_share(worst.part, worst.whole, MOST_PERCENT);
    let is_now = seen.before.is_some();
    Ok(vec![Finding {
        severity: if is_most || is_now { Severity::Error } else { Severity::Warning },
        confidence: if is_now { Confidence::High } else { Confidence::Medium },
        scope: Scope::Netns,
        title: format!(
            "{} send{} much again: {} of what was sent, {} times",
            flows::counted(seen, &all),
            flows::verb_s(all.len()),
            percent(worst.part.cast_signed(), worst.whole.cast_signed()),
            grouped(worst.segments)
        ),
        why: "each loss costs a round trip or more, and makes the congestion window smaller."
            .to_owned(),
        not: "not where they are lost: on the path, at the peer, or in this host's own queues"
            .to_owned(),
        evidence: flows::evidence(seen, &all, |flow| says(flow, seen)),
        fixes: vec![words::advise(
            "look at the same connection on the peer (ss -tinm there), and take a capture at both ends",
            "",
        )],
        unseen: if is_now {
            Vec::new()
        } else {
            vec![Missing::all(Source::SecondLook).to_string()]
        },
        ..Finding::default()
    }])
}

fn again(flow: &Flow<'_>, seen: &Seen<'_>) -> Option<Again> {
    let of = |of: &dyn Fn(&Info) -> Option<u64>| match seen.before {
        Some(_) => flow.grew(of),
        None => of(flow.info()?),
    };
    let segments = of(&|info| info.total_retrans.map(u64::from))?;
    if let Some(part) = of(&|info| info.bytes_retrans).filter(|part| *part > 0) {
        return Some(Again { segments, part, whole: of(&|info| info.bytes_sent)?.max(part) });
    }
    // SYNs aside, each of them had a segment's payload at most.
    let acked = of(&|info| info.bytes_acked)? / u64::from(flow.info()?.snd_mss?.max(1));
    Some(Again { segments, part: segments, whole: acked.saturating_add(segments) })
}

const fn is_much(again: &Again) -> bool {
    again.segments >= LEAST && counters::is_share(again.part, again.whole, MUCH_PERCENT)
}

/// In the kernel's words.
fn says(flow: &Flow<'_>, seen: &Seen<'_>) -> String {
    let Some((info, again)) = flow.info().zip(again(flow, seen)) else { return String::new() };
    let share = percent(again.part.cast_signed(), again.whole.cast_signed());
    let mut said = format!("{share} of what was sent, retrans {}", grouped(again.segments));
    if let (Some(part), Some(whole)) = (info.bytes_retrans, info.bytes_sent) {
        let _ = write!(said, ", bytes_retrans {} of {}", grouped(part), grouped(whole));
    }
    for (name, value) in [
        ("lost", info.lost),
        ("unacked", info.unacked),
        ("dsack_dups", info.dsack_dups),
        ("cwnd", info.snd_cwnd),
    ] {
        if let Some(value) = value.filter(|value| *value > 0) {
            let _ = write!(said, ", {name} {value}");
        }
    }
    said
}

#[cfg(test)]
mod tests {
    use super::super::sample::{host, judged, missing, once, shown};
    use super::super::sample_flows::{connected, socket};
    use super::*;
    use crate::snapshot::{Memory, Snapshot};

    fn resending(segments: u32, bytes: u64, of: u64) -> Snapshot {
        let info = Info {
            total_retrans: Some(segments),
            bytes_retrans: Some(bytes),
            bytes_sent: Some(of),
            snd_mss: Some(1000),
            bytes_acked: Some(of - bytes),
            ..Info::default()
        };
        once(connected(&[], Vec::new(), vec![socket(0, &info, Memory::default())]))
    }

    #[test]
    fn most_of_it() {
        insta::assert_snapshot!(shown(&CHECK, &resending(2834, 1_707_732, 1_852_143)));
    }

    #[test]
    fn two_percent_of_at_least_twenty_are_the_border() {
        let severity = |segments, bytes, of| {
            let found = judged(&CHECK, &resending(segments, bytes, of)).expect("seen");
            found.first().map(|found| found.severity)
        };
        assert_eq!(severity(20, 20_000, 1_000_000), Some(Severity::Warning));
        assert_eq!(severity(20, 19_999, 1_000_000), None);
        assert_eq!(severity(19, 500_000, 1_000_000), None);
        assert_eq!(severity(200, 200_000, 1_000_000), Some(Severity::Error));
    }

    #[test]
    fn old_kernels_count_segments_only() {
        let number = |segments| {
            let mut host = resending(segments, 0, 980_000);
            for socket in host.looks[0].sockets.iter_mut().flatten() {
                let info = socket.info.as_mut().expect("info");
                (info.bytes_retrans, info.bytes_sent) = (None, None);
            }
            judged(&CHECK, &host).expect("seen").len()
        };
        assert_eq!([number(20), number(19)], [1, 0]);
    }

    #[test]
    fn without_sockets_nothing_is_said() {
        assert_eq!(missing(&CHECK, &host(&[])).source, Source::Sockets);
    }
}
