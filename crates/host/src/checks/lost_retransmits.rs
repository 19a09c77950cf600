//! Repeats are lost, too.
//!
//! # What it says
//! What is retransmitted has to come through: where many repeats are lost as well, losses are not single accidents.
//! Something drops whatever comes at that moment, most likely a policer that is out of tokens or a queue that stays
//! full.
//!
//! # How we know
//! `TCPLostRetransmit` is more than 10 % of `RetransSegs`, of at least a hundred, both without as many as SYNs were
//! repeated (`TCPSynRetrans`): a SYN that is repeated twice lost its first repeat.
//!
//! # What it is not
//! Not which device drops. Radio links with long fades look the same, and so do peers that are gone: each of their timeouts
//! counts the repeat before it as lost. Connections that wait for a peer now are named.
//!
//! # What to do
//! Compare the rate of the peers concerned with what was ordered or configured on the way; `tcpwhy explain` of a
//! capture finds the rate of a policer. A sender that paces (BBR, `fq`) runs into it less often.
//!
//! # Sources
//! RFC 8985 section 3.1; Linux `tcp_mark_skb_lost` (v6.12). 10 % of a hundred: ours, not measured.

use super::retransmission_timeouts::{says, waiting};
use super::{Check, counters, flows, words};
use crate::finding::{Confidence, Evidence, Finding, Group, Scope, Severity};
use crate::seen::{Asked, Growth, Seen};

pub(super) const CHECK: Check = Check {
    code: "LOST_RETRANSMITS",
    file: include_str!("lost_retransmits.rs"),
    group: Group::Losses,
    judge,
};

const NAME: &str = "TCPLostRetransmit";

fn judge(seen: &Seen<'_>) -> Asked<Vec<Finding>> {
    let again = counters::data_again(seen)?;
    let lost = counters::grew(seen, counters::TCP_EXT, NAME)?;
    let Some((again, lost)) = again.zip(lost) else { return Ok(Vec::new()) };
    let syns = counters::by(seen, counters::TCP_EXT, "TCPSynRetrans").unwrap_or(0);
    let lost = Growth { by: lost.by.saturating_sub(syns), ..lost };
    let (told, again) = (again, again.data);
    if again.by < 100 || lost.by.saturating_mul(10) <= again.by {
        return Ok(Vec::new());
    }
    // SYNs that are lost again only raise the share: without them it may be a small one.
    told.exact()?;
    let waiting = waiting(seen);
    let mut evidence = vec![
        told.evidence(),
        Evidence::new(format!("/proc/net/netstat TcpExt.{NAME} without SYNs"), words::grown(lost)),
    ];
    evidence.extend(flows::evidence(seen, &waiting, says));
    let share = (lost.by.saturating_mul(100) / again.by).min(100);
    Ok(vec![Finding {
        severity: counters::severity(lost, Severity::Warning),
        confidence: words::sure(lost).min(Confidence::Medium),
        scope: Scope::Netns,
        title: format!("{share} % of what was retransmitted was lost again: {}", words::grown(lost)),
        why: format!(
            "losses come in spells in which all is dropped: a policer that is out of tokens, or a queue that \
             stays full{}.",
            if waiting.is_empty() { "" } else { "; or the peers named are gone, and nothing reaches them" }
        ),
        not: "not which device drops; a radio link that fades, or a peer that is gone, looks the same"
            .to_owned(),
        evidence,
        fixes: vec![words::advise(
            "compare the rates of the peers concerned with what was ordered; a paced sender (BBR, fq) runs \
             into a policer less often",
            "",
        )],
        ..Finding::default()
    }])
}

#[cfg(test)]
mod tests {
    use super::super::sample::{counted, host, judged, missing, shown};
    use super::super::sample_flows::{connected, socket};
    use super::*;
    use crate::snapshot::{Info, Memory, Snapshot, Source, Timer};

    fn repeating(again: i64, lost: i64) -> Snapshot {
        of(host(&[]), again, lost)
    }

    fn of(host: Snapshot, again: i64, lost: i64) -> Snapshot {
        let host = counted(host, "Tcp", "RetransSegs", [100, 100 + again]);
        counted(host, "TcpExt", NAME, [1, 1 + lost])
    }

    #[test]
    fn repeats_that_are_lost_in_turn() {
        insta::assert_snapshot!(shown(&CHECK, &repeating(300, 90)));
    }

    #[test]
    fn a_tenth_of_a_hundred_is_the_border() {
        let number = |again, lost| judged(&CHECK, &repeating(again, lost)).expect("seen").len();
        assert_eq!([number(100, 10), number(100, 11), number(99, 50)], [0, 1, 0]);
    }

    #[test]
    fn peers_that_are_gone_look_the_same_and_are_named() {
        let at = || {
            let mut socket = socket(0, &Info::default(), Memory::default());
            socket.timer = Some(Timer { kind: 1, retransmits: 9, expires_ms: 900 });
            vec![socket]
        };
        let found = judged(&CHECK, &of(connected(&[], at(), at()), 100, 90)).expect("seen");
        assert!(found[0].why.contains("are gone"), "{}", found[0].why);
        assert_eq!((found[0].confidence, found[0].evidence.len()), (Confidence::Medium, 3));
    }

    #[test]
    fn syns_that_are_repeated_in_vain_are_no_losses_of_data() {
        let number = |syns: i64| {
            let host = counted(repeating(900, 300), "TcpExt", "TCPSynRetrans", [2, 2 + syns]);
            judged(&CHECK, &host).expect("seen").len()
        };
        assert_eq!([number(200), number(300), number(801)], [1, 0, 0]);
    }

    #[test]
    fn without_counters_nothing_is_said() {
        assert_eq!(missing(&CHECK, &host(&[])).source, Source::Counters);
    }
}
