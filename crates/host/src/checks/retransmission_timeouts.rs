//! Senders on this host find losses by timeout instead of by acknowledgments.
//!
//! # What it says
//! A timeout is the slowest way to find a loss: at least 200 ms and a round trip of silence, then one segment.
//! It happens where nothing behind the lost packet arrives: at the end of a transfer, with a tiny window, or when
//! the path is dead.
//!
//! # How we know
//! `TCPTimeouts`, without those of SYNs (`TCPSynRetrans`), are more than 30 % of all repairs (with
//! `TCPFastRetrans` and `TCPSackRecovery`), and at least ten. A connection that never opened leaves one more timeout
//! than repeats of its SYN; but each timeout of data sends something again, so that there are no more of these than repeats of
//! data that no other counter explains (`TCPFastRetrans`, `TCPSlowStartRetrans`, `TCPLossProbes`). Connections
//! that wait for one now are named.
//!
//! # What it is not
//! Not that packets are lost one by one: a timeout may be a path that was gone for a moment.
//!
//! # What to do
//! Look at the peers named. Repeats that were needless (`SPURIOUS_RETRANSMITS`) point to delays that jump. See that
//! selective acknowledgments, RACK and tail loss probes are on (`LOSS_RECOVERY_OFF`).
//!
//! # Sources
//! RFC 6298; Linux `tcp_retransmit_timer`, `tcp_xmit_retransmit_queue`, `tcp_send_loss_probe`, `tcp_syn_ack_timeout`,
//! `TCP_RTO_MIN` (v6.12). On 6.18 two connects that failed made 9 timeouts and 7 repeats. 30 % of ten: ours, not measured.

use super::{Check, counters, flows, words};
use crate::finding::{Evidence, Finding, Group, Scope, Severity};
use crate::flow::Flow;
use crate::seen::{Asked, Growth, Seen};

pub(super) const CHECK: Check = Check {
    code: "RETRANSMISSION_TIMEOUTS",
    file: include_str!("retransmission_timeouts.rs"),
    group: Group::Losses,
    judge,
};

const LEAST: u64 = 10;

fn judge(seen: &Seen<'_>) -> Asked<Vec<Finding>> {
    let Some(all) = counters::grew(seen, counters::TCP_EXT, "TCPTimeouts")? else {
        return Ok(Vec::new());
    };
    // What was not seen is taken for 0: that makes the share larger than it is, never smaller.
    let mut unseen = None;
    let mut of = |name| {
        let by = counters::by(seen, counters::TCP_EXT, name);
        by.map_err(|missing| unseen.get_or_insert(missing).clone()).unwrap_or(0)
    };
    let syns = of("TCPSynRetrans");
    let otherwise = of("TCPFastRetrans") + of("TCPSlowStartRetrans") + of("TCPLossProbes");
    let repairs = of("TCPFastRetrans").saturating_add(of("TCPSackRecovery"));
    let again = counters::data_again(seen)?.map_or(0, |again| again.data.by);
    // Of the timeouts those of data, as far as that is sure.
    let of_data = all.by.saturating_sub(syns).min(again.saturating_sub(otherwise));
    let timeouts = Growth { by: of_data, ..all };
    let repairs = repairs.saturating_add(timeouts.by);
    if timeouts.by < LEAST || timeouts.by.saturating_mul(100) <= repairs.saturating_mul(30) {
        return Ok(Vec::new());
    }
    if let Some(missing) = unseen {
        return Err(missing);
    }
    let share = timeouts.by * 100 / repairs;
    let waiting = waiting(seen);
    let mut evidence = vec![
        words::counter(counters::TCP_EXT, "TCPTimeouts", all),
        Evidence::new("of these at least with data", words::grown(timeouts)),
    ];
    let names = ["TCPSynRetrans", "TCPFastRetrans", "TCPSackRecovery", "TCPLossProbes"];
    evidence.extend(counters::beside(seen, &names));
    evidence.extend(flows::evidence(seen, &waiting, says));
    Ok(vec![Finding {
        severity: counters::severity(timeouts, Severity::Warning),
        confidence: words::sure(timeouts),
        scope: Scope::Netns,
        title: format!("{share} % of the repairs begin with a timeout: {}", words::grown(timeouts)),
        why: "each is at least 200 ms of silence, and the window begins at one segment again; nothing behind \
              the lost packet arrived that could have told of it earlier."
            .to_owned(),
        not: "not that single packets are lost: a path that is gone for a moment looks the same".to_owned(),
        evidence,
        fixes: vec![words::advise(
            "look at the peers named; see that SACK, RACK and tail loss probes are on",
            "",
        )],
        ..Finding::default()
    }])
}

/// Connections whose timer has fired and not been answered.
pub(super) fn waiting<'s, 'a>(seen: &'s Seen<'a>) -> Vec<&'s Flow<'a>> {
    let fired = |flow: &Flow<'_>| {
        flow.now.timer.filter(|timer| timer.kind == 1).map_or(0, |timer| timer.retransmits)
    };
    let flows = seen.flows().unwrap_or_default().iter();
    flows::worst(flows.filter(|flow| fired(flow) > 0 && !flow.is_within_host()).collect(), fired)
}

pub(super) fn says(flow: &Flow<'_>) -> String {
    let fired = flow.now.timer.map_or(0, |timer| timer.retransmits);
    format!("{:?}, retransmitted {fired} times without an answer", flow.now.state)
}

#[cfg(test)]
mod tests {
    use super::super::sample::{counted, host, judged, missing, once, shown};
    use super::super::sample_flows::{connected, socket};
    use super::*;
    use crate::finding::Confidence;
    use crate::snapshot::{Info, Memory, Snapshot, Source, Timer};

    fn repairing(host: Snapshot, timeouts: i64, syns: i64, fast: i64) -> Snapshot {
        let host = counted(host, "Tcp", "RetransSegs", [9, 9 + timeouts + fast]);
        let host = counted(host, "TcpExt", "TCPTimeouts", [5, 5 + timeouts]);
        let host = counted(host, "TcpExt", "TCPSynRetrans", [5, 5 + syns]);
        counted(host, "TcpExt", "TCPFastRetrans", [5, 5 + fast])
    }

    #[test]
    fn timeouts_are_told_with_the_connections_that_wait() {
        let at = || {
            let mut socket = socket(0, &Info::default(), Memory::default());
            socket.timer = Some(Timer { kind: 1, retransmits: 4, expires_ms: 900 });
            vec![socket]
        };
        insta::assert_snapshot!(shown(&CHECK, &repairing(connected(&[], at(), at()), 25, 5, 20)));
    }

    #[test]
    fn thirty_in_a_hundred_and_ten_without_syns_are_the_border() {
        let number = |timeouts, syns, fast| {
            judged(&CHECK, &repairing(host(&[]), timeouts, syns, fast)).expect("seen").len()
        };
        assert_eq!([number(30, 0, 70), number(31, 0, 70)], [0, 1]);
        assert_eq!([number(19, 10, 0), number(20, 10, 0)], [0, 1]);
    }

    #[test]
    fn connects_that_failed_and_tail_loss_probes_are_no_timeouts_of_data() {
        let number = |again: i64, probes| {
            let host = repairing(host(&[]), 180, 140, 0);
            let host = counted(host, "Tcp", "RetransSegs", [9, 9 + 140 + again]);
            let host = counted(host, "TcpExt", "TCPLossProbes", [0, probes]);
            judged(&CHECK, &host).expect("seen").len()
        };
        assert_eq!([number(0, 0), number(9, 0), number(10, 0), number(40, 31)], [0, 0, 1, 0]);
    }

    #[test]
    fn one_look_is_less_sure_and_none_is_missing() {
        let found = judged(&CHECK, &once(repairing(host(&[]), 50, 0, 0))).expect("seen");
        assert_eq!(found[0].confidence, Confidence::Low);
        assert_eq!(missing(&CHECK, &host(&[])).source, Source::Counters);
    }
}
