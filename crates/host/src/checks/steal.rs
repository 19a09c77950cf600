//! Other guests of the machine take processor time from this one.
//!
//! # What it says
//! On a virtual machine the hypervisor runs others meanwhile: packets and timers of this one wait, and round trips
//! and retransmission times look longer than the path is.
//!
//! # How we know
//! More than 5 % of the processors' time between the looks was `steal`.
//!
//! # What it is not
//! Not always a neighbour: a guest that has used up its credit is held back so, too.
//!
//! # What to do
//! Another size or another machine; for bursting instances, look at the credit.
//!
//! # Sources
//! proc(5) `/proc/stat`; Linux `account_steal_time` (v6.1). 5 %: ours, not measured.

use super::host_stalls::{STOLEN_PERCENT, stolen};
use super::{Check, words};
use crate::finding::{Confidence, Evidence, Finding, Group, Scope, Severity};
use crate::seen::{Asked, Missing, Seen};
use crate::snapshot::Source;

pub(super) const CHECK: Check =
    Check { code: "STEAL", file: include_str!("steal.rs"), group: Group::Host, judge };

fn judge(seen: &Seen<'_>) -> Asked<Vec<Finding>> {
    if seen.now.processors.is_none() || seen.before.is_some_and(|look| look.processors.is_none()) {
        return Err(Missing::all(Source::Processors));
    }
    let Some((taken, all)) = stolen(seen) else { return Ok(Vec::new()) };
    if !words::above_percent(taken, STOLEN_PERCENT, all) {
        return Ok(Vec::new());
    }
    let share = words::share(taken, all);
    let when = if seen.before.is_some() { "between the looks" } else { "since the host started" };
    Ok(vec![Finding {
        severity: Severity::Warning,
        confidence: if seen.before.is_some() { Confidence::High } else { Confidence::Low },
        scope: Scope::Host,
        title: format!("other guests took {share} of the processors' time {when}"),
        why: "packets and timers wait while the hypervisor runs others: round trips look longer than the path is, and \
              figures of this host are less sure."
            .to_owned(),
        not: "not always a neighbour: a guest without credit is held back so, too".to_owned(),
        evidence: vec![Evidence::new("/proc/stat steal", format!("{share} {when}"))],
        fixes: vec![words::advise("move to another machine or a size with processors of its own", "")],
        ..Finding::default()
    }])
}

#[cfg(test)]
mod tests {
    use super::super::parts::processors;
    use super::super::sample::{host, judged, missing, once, shown};
    use super::*;
    use crate::snapshot::Snapshot;

    fn robbed(steal: u64) -> Snapshot {
        let mut host = processors(host(&[]), &[(0, 0), (0, 0)]);
        let rows = host.looks[1].processors.as_mut().expect("seen");
        (rows[0].steal, rows[0].idle) = (steal, rows[0].idle - steal);
        host
    }

    #[test]
    fn stolen_time_is_told_with_its_share() {
        insta::assert_snapshot!(shown(&CHECK, &robbed(400)));
    }

    #[test]
    fn a_twentieth_is_not_enough_and_one_look_is_unsure() {
        assert_eq!(judged(&CHECK, &robbed(100)), Ok(Vec::new()));
        assert_eq!(judged(&CHECK, &robbed(101)).expect("seen")[0].confidence, Confidence::High);
        assert_eq!(
            judged(&CHECK, &once(robbed(400))).expect("seen")[0].confidence,
            Confidence::Low
        );
    }

    #[test]
    fn without_processor_times_nothing_is_said() {
        assert_eq!(missing(&CHECK, &host(&[])).source, Source::Processors);
    }
}
