//! Repeats are lost, too.
//!
//! # What it says
//! What is sent again has to come through: where many repeats are lost as well, losses are not single accidents.
//! Something drops whatever comes at that moment, most likely a policer that is out of tokens or a queue that stays
//! full.
//!
//! # How we know
//! `TCPLostRetransmit` is more than 10 % of `RetransSegs`, of at least a hundred.
//!
//! # What it is not
//! Not which device drops. Radio links with long fades look the same.
//!
//! # What to do
//! Compare the rate of the peers concerned with what was ordered or configured on the way; `tcpwhy explain` of a
//! capture finds the rate of a policer. A sender that paces (BBR, `fq`) runs into it less often.
//!
//! # Sources
//! RFC 8985 section 3.1; Linux `tcp_mark_skb_lost` (v6.12). 10 % of a hundred: ours, not measured.

use super::{Check, counters, words};
use crate::host::finding::{Finding, Group, Scope, Severity};
use crate::host::seen::{Asked, Seen};

pub(super) const CHECK: Check = Check {
    code: "LOST_RETRANSMITS",
    file: include_str!("lost_retransmits.rs"),
    group: Group::Losses,
    judge,
};

const NAME: &str = "TCPLostRetransmit";

fn judge(seen: &Seen<'_>) -> Asked<Vec<Finding>> {
    let again = counters::grew(seen, "Tcp", "RetransSegs")?;
    let lost = counters::grew(seen, counters::TCP_EXT, NAME)?;
    let Some((again, lost)) = again.zip(lost) else { return Ok(Vec::new()) };
    if again.by < 100 || lost.by.saturating_mul(10) <= again.by {
        return Ok(Vec::new());
    }
    let share = (lost.by.saturating_mul(100) / again.by).min(100);
    Ok(vec![Finding {
        severity: counters::severity(lost, Severity::Warning),
        confidence: words::sure(lost),
        scope: Scope::Netns,
        title: format!("{share} % of what was sent again was lost again: {}", words::grown(lost)),
        why: "losses come in spells in which all is dropped: a policer that is out of tokens, or a queue that \
              stays full."
            .to_owned(),
        not: "not which device drops; a radio link that fades looks the same".to_owned(),
        evidence: vec![
            words::counter("Tcp", "RetransSegs", again),
            words::counter(counters::TCP_EXT, NAME, lost),
        ],
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
    use super::*;
    use crate::host::snapshot::{Snapshot, Source};

    fn repeating(again: i64, lost: i64) -> Snapshot {
        let host = counted(host(&[]), "Tcp", "RetransSegs", [100, 100 + again]);
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
    fn without_counters_nothing_is_said() {
        assert_eq!(missing(&CHECK, &host(&[])).source, Source::Counters);
    }
}
