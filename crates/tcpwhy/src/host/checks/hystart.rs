//! CUBIC's slow start ends early, far below the windows that connections reach later.
//!
//! # What it says
//! `HyStart` ends slow start when round trips grow or acknowledgments come in a long train, before anything is lost.
//! Jitter, or a receiver that acknowledges in batches, can set it off long before the path is full: the window then
//! grows slowly from there.
//!
//! # How we know
//! Between the looks `HyStart` ended at least ten slow starts, at a window that is on average less than a quarter
//! of the median window of connections over more than 10 ms that have left slow start.
//!
//! # What it is not
//! Short connections end below long ones anyway: the comparison is rough, and this is a hint.
//!
//! # What to do
//! Compare a long transfer with `hystart_detect` 2 (delay only), or with BBR.
//!
//! # Sources
//! Linux `hystart_update` (v6.12, counters `TCPHystart*`). Ten, a quarter and 10 ms: ours, not measured.

use super::{Check, counters, flows, words};
use crate::host::finding::{Change, Confidence, Evidence, Finding, Fix, Group, Scope, Severity};
use crate::host::seen::{Asked, Missing, Seen};
use crate::host::snapshot::Source;

pub(super) const CHECK: Check =
    Check { code: "HYSTART", file: include_str!("hystart.rs"), group: Group::Losses, judge };

const LEAST: u64 = 10;
const LONG_NS: u64 = 10_000_000;
const PARAMETER: &str = "/sys/module/tcp_cubic/parameters/hystart_detect";

fn judge(seen: &Seen<'_>) -> Asked<Vec<Finding>> {
    let of = |name| counters::by(seen, counters::TCP_EXT, name);
    let trains = of("TCPHystartTrainDetect")?;
    let ends = trains.saturating_add(of("TCPHystartDelayDetect")?);
    let windows = of("TCPHystartTrainCwnd")?.saturating_add(of("TCPHystartDelayCwnd")?);
    if seen.before.is_none() {
        return Err(Missing::all(Source::SecondLook));
    }
    let Some(mean) = windows.checked_div(ends).filter(|_| ends >= LEAST) else {
        return Ok(Vec::new());
    };
    let mut later: Vec<u64> = flows::known(seen)?
        .into_iter()
        .filter(|(flow, info)| {
            flow.now.congestion.as_deref() == Some("cubic")
                && info.min_rtt_ns.is_some_and(|rtt| rtt > LONG_NS)
                && info
                    .snd_ssthresh
                    .zip(info.snd_cwnd)
                    .is_some_and(|(ssthresh, cwnd)| cwnd >= ssthresh)
        })
        .filter_map(|(_, info)| info.snd_cwnd.map(u64::from))
        .collect();
    later.sort_unstable();
    let Some(median) = later.get(later.len() / 2).copied().filter(|_| later.len() as u64 >= LEAST)
    else {
        return Ok(Vec::new());
    };
    if mean.saturating_mul(4) >= median {
        return Ok(Vec::new());
    }
    Ok(vec![Finding {
        severity: Severity::Info,
        confidence: Confidence::Low,
        scope: Scope::Host,
        title: format!("HyStart ended {ends} slow starts, at {mean} segments on average"),
        why: format!(
            "connections over more than 10 ms that have left slow start have {median} segments in the median: \
             from where HyStart stopped them that takes many round trips."
        ),
        not: "not that each was ended too early: short paths need less".to_owned(),
        evidence: vec![
            Evidence::new("/proc/net/netstat TcpExt.TCPHystartTrainDetect", format!("+{trains}")),
            Evidence::new(
                "/proc/net/netstat TcpExt.TCPHystart*Cwnd",
                format!("+{windows} for {ends}"),
            ),
            Evidence::new("ss -ti, cwnd of cubic", format!("median {median} of {}", later.len())),
        ],
        fixes: vec![fix(seen)],
        ..Finding::default()
    }])
}

fn fix(seen: &Seen<'_>) -> Fix {
    let parameters = seen.snapshot.module_parameters.as_ref();
    let from = parameters.and_then(|all| all.get("tcp_cubic.hystart_detect"));
    let set = from.filter(|from| *from != "2").map(|from| Change::File {
        path: PARAMETER.to_owned(),
        from: from.clone(),
        to: "2".to_owned(),
    });
    Fix {
        set,
        applies: "for slow starts that follow, on the whole host".to_owned(),
        ..words::advise(
            "end slow start by delay only, and compare long transfers",
            "slow starts that go on until a loss",
        )
    }
}

#[cfg(test)]
mod tests {
    use super::super::sample::{counted, host, judged, missing, once, shown};
    use super::super::sample_flows::{connected, socket};
    use super::*;
    use crate::host::snapshot::{Info, Memory, Snapshot};

    /// So many ends at 40 segments each, beside ten connections with such a window.
    fn ended(ends: i64, cwnd: u32) -> Snapshot {
        let info = Info {
            min_rtt_ns: Some(30_000_000),
            snd_cwnd: Some(cwnd),
            snd_ssthresh: Some(cwnd / 2),
            ..Info::default()
        };
        let at = || {
            let each = (0..10).map(|number| {
                let mut socket = socket(number, &info, Memory::default());
                socket.congestion = Some("cubic".to_owned());
                socket
            });
            each.collect()
        };
        let mut host = connected(&[], at(), at());
        let parameter = ("tcp_cubic.hystart_detect".to_owned(), "3".to_owned());
        host.module_parameters = Some([parameter].into());
        let host = counted(host, "TcpExt", "TCPHystartTrainDetect", [5, 5 + ends]);
        counted(host, "TcpExt", "TCPHystartTrainCwnd", [200, 200 + ends * 40])
    }

    #[test]
    fn slow_starts_that_end_at_a_tenth_of_the_later_window() {
        insta::assert_snapshot!(shown(&CHECK, &ended(10, 400)));
    }

    #[test]
    fn a_quarter_and_ten_ends_are_the_border() {
        let number = |ends, cwnd| judged(&CHECK, &ended(ends, cwnd)).expect("seen").len();
        assert_eq!([number(10, 160), number(10, 161), number(9, 400)], [0, 1, 0]);
    }

    #[test]
    fn one_look_or_no_counters_are_missing() {
        assert_eq!(missing(&CHECK, &once(ended(10, 400))).source, Source::SecondLook);
        assert_eq!(missing(&CHECK, &host(&[])).source, Source::Counters);
    }
}
