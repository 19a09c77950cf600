//! A program changes settings of this host by itself.
//!
//! # What it says
//! `bpftune` follows the traffic and changes buffers and more; `tuned` sets its profile when it starts; `irqbalance` moves interrupts. What
//! you set by hand they may undo, and what you see may have been theirs.
//!
//! # How we know
//! Its process was there when the host was looked at.
//!
//! # What it is not
//! Not that it is wrong, or that it changed any value here.
//!
//! # What to do
//! Change what it sets in its own configuration, or stop it before you change settings by hand.
//!
//! # Sources
//! bpftune(8), tuned(8), irqbalance(1).

use super::{Check, words};
use crate::finding::{Confidence, Evidence, Finding, Group, Scope, Severity};
use crate::seen::{Asked, Missing, Seen};
use crate::snapshot::Source;

pub(super) const CHECK: Check = Check {
    code: "SETTING_AGENTS",
    file: include_str!("setting_agents.rs"),
    group: Group::Hygiene,
    judge,
};

fn judge(seen: &Seen<'_>) -> Asked<Vec<Finding>> {
    let agents = seen.snapshot.agents.as_ref().ok_or(Missing::part(Source::Machine, "programs"))?;
    if agents.is_empty() {
        return Ok(Vec::new());
    }
    Ok(vec![Finding {
        severity: Severity::Info,
        confidence: Confidence::High,
        scope: Scope::Host,
        title: format!("{} may change settings unasked", words::named(agents)),
        why: "what is set by hand may be undone, and a value seen here may be its choice."
            .to_owned(),
        not: "not that it changed anything here".to_owned(),
        evidence: vec![Evidence::new("ps -e", words::named(agents))],
        fixes: vec![words::advise("make lasting changes in its own configuration", "")],
        ..Finding::default()
    }])
}

#[cfg(test)]
mod tests {
    use super::super::sample::{host, judged, missing, shown};
    use super::*;
    use crate::snapshot::Snapshot;

    fn running(agents: &[&str]) -> Snapshot {
        let agents = agents.iter().map(|name| (*name).to_owned()).collect();
        Snapshot { agents: Some(agents), ..host(&[]) }
    }

    #[test]
    fn programs_that_change_settings_are_named() {
        insta::assert_snapshot!(shown(&CHECK, &running(&["bpftune", "irqbalance"])));
    }

    #[test]
    fn none_is_well_and_without_processes_nothing_is_said() {
        assert_eq!(judged(&CHECK, &running(&[])), Ok(Vec::new()));
        assert_eq!(missing(&CHECK, &host(&[])).source, Source::Machine);
    }
}
