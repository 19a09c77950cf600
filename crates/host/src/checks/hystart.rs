//! CUBIC's slow start ends early, far below the windows that connections reach later.
//!
//! # What it says
//! `HyStart` ends slow start when round trips grow or acknowledgments come in a long train, before anything is lost.
//! Jitter, or a receiver that acknowledges in batches, can set it off long before the path is full: the window then
//! grows slowly from there.
//!
//! # How we know
//! Between the looks `HyStart` ended at least ten slow starts, at a window that is on average less than a quarter
//! of the median window of connections over more than 10 ms that have left slow start. It counts those that trains ended
//! apart from those that delay ended: where a text has one of the two, it is judged alone.
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
use crate::finding::{Change, Confidence, Evidence, Finding, Fix, Group, Scope, Severity};
use crate::seen::{Asked, Missing, Seen};
use crate::snapshot::Source;

pub(super) const CHECK: Check =
    Check { code: "HYSTART", file: include_str!("hystart.rs"), group: Group::Losses, judge };

const LEAST: u64 = 10;
const LONG_NS: u64 = 10_000_000;
const NOT_EACH: &str = "not that each was ended too early: short paths need less";
const PARAMETER: &str = "/sys/module/tcp_cubic/parameters/hystart_detect";

/// Slow starts that `HyStart` ended.
struct Ends {
    number: u64,
    /// Their windows together.
    windows: u64,
    by_train: Option<u64>,
    /// What a text lacks of them: there may be more.
    lacking: Option<Missing>,
}

impl Ends {
    fn of(seen: &Seen<'_>) -> Self {
        let mut all = Self { number: 0, windows: 0, by_train: None, lacking: None };
        let by = |name: &str| counters::by(seen, counters::TCP_EXT, name);
        let kind = |detect, cwnd| Ok((by(detect)?, by(cwnd)?));
        let train = kind("TCPHystartTrainDetect", "TCPHystartTrainCwnd");
        let delay = kind("TCPHystartDelayDetect", "TCPHystartDelayCwnd");
        all.by_train = train.as_ref().ok().map(|(ends, _)| *ends);
        for each in [train, delay] {
            match each {
                Ok((ends, windows)) => {
                    all.number = all.number.saturating_add(ends);
                    all.windows = all.windows.saturating_add(windows);
                }
                Err(missing) => all.lacking = all.lacking.or(Some(missing)),
            }
        }
        all
    }
}

fn judge(seen: &Seen<'_>) -> Asked<Vec<Finding>> {
    let Ends { number: ends, windows, by_train, lacking } = Ends::of(seen);
    let or_unseen = |lacking: Option<Missing>| lacking.map_or(Ok(Vec::new()), Err);
    if ends == 0 && lacking.is_some() {
        return or_unseen(lacking);
    }
    if seen.before.is_none() {
        return Err(Missing::all(Source::SecondLook));
    }
    let Some(mean) = windows.checked_div(ends).filter(|_| ends >= LEAST) else {
        return or_unseen(lacking);
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
        return or_unseen(lacking);
    }
    let at_least = if lacking.is_some() { "at least " } else { "" };
    let mut evidence: Vec<Evidence> = by_train
        .map(|by| Evidence::new("/proc/net/netstat TcpExt.TCPHystartTrainDetect", format!("+{by}")))
        .into_iter()
        .collect();
    evidence.extend([
        Evidence::new("/proc/net/netstat TcpExt.TCPHystart*Cwnd", format!("+{windows} for {ends}")),
        Evidence::new("ss -ti, cwnd of cubic", format!("median {median} of {}", later.len())),
    ]);
    Ok(vec![Finding {
        severity: Severity::Info,
        confidence: Confidence::Low,
        scope: Scope::Host,
        title: format!("HyStart ended {at_least}{ends} slow starts, at {mean} segments on average"),
        why: format!(
            "connections over more than 10 ms that have left slow start have {median} segments in the median: \
             from where HyStart stopped them that takes many round trips."
        ),
        not: match lacking.and_then(|missing| missing.of) {
            Some(name) => {
                format!("{NOT_EACH}; of others nothing is known, for {name} is not in the text")
            }
            None => NOT_EACH.to_owned(),
        },
        evidence,
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
    use super::super::sample::{counted, cut, host, judged, missing, once, shown};
    use super::super::sample_flows::{connected, socket};
    use super::*;
    use crate::snapshot::{Info, Memory, Snapshot};

    /// This many ends at 40 segments each, beside ten connections with such a window.
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

    #[test]
    fn a_text_that_has_one_kind_of_ends_is_judged_by_it() {
        let found = judged(&CHECK, &cut(ended(10, 400))).expect("judged");
        assert!(found[0].title.contains("at least 10 slow starts"), "{}", found[0].title);
        assert!(found[0].not.contains("TCPHystartDelayDetect is not in the text"));
        let few = missing(&CHECK, &cut(ended(9, 400)));
        assert_eq!(few.of.as_deref(), Some("TCPHystartDelayDetect"), "there may be more");
    }
}
