//! `tcp_fin_timeout` was lowered, mostly in the belief that it shortens `TIME_WAIT`.
//!
//! # What it says
//! It ends connections in `FIN_WAIT2` that no program holds any more. `TIME_WAIT` always lasts 60 s; that both defaults are 60 is chance.
//! A peer that sends more than this many seconds after our FIN is answered by a reset.
//!
//! # How we know
//! The value is below 60.
//!
//! # What it is not
//! Not harmful on most hosts: only slow last answers are cut.
//!
//! # What to do
//! Leave the line out. Against too many connections in `TIME_WAIT` see `EPHEMERAL_PORTS`.
//!
//! # Sources
//! Linux `TCP_TIMEWAIT_LEN` (`include/net/tcp.h`), `tcp_fin_time`, `tcp_rcv_state_process` (v6.12).

use super::{Check, words};
use crate::finding::{Confidence, Finding, Group, Scope, Severity};
use crate::seen::{Asked, Seen};

pub(super) const CHECK: Check = Check {
    code: "FIN_TIMEOUT",
    file: include_str!("fin_timeout.rs"),
    group: Group::Hygiene,
    judge,
};

const KEY: &str = "net.ipv4.tcp_fin_timeout";
/// The kernel's default (`TCP_FIN_TIMEOUT`).
const DEFAULT: i64 = 60;

fn judge(seen: &Seen<'_>) -> Asked<Vec<Finding>> {
    let Some(seconds) = seen.number(KEY)?.filter(|seconds| *seconds < DEFAULT) else {
        return Ok(Vec::new());
    };
    Ok(vec![Finding {
        severity: Severity::Info,
        confidence: Confidence::High,
        scope: Scope::Netns,
        title: format!("tcp_fin_timeout is {seconds}: that does not shorten TIME_WAIT"),
        why: format!(
            "it ends FIN_WAIT2 of connections that no program holds: a peer that sends its last data after {seconds} s gets a reset."
        ),
        not: "not that a peer here is so slow".to_owned(),
        evidence: vec![words::setting(KEY, &seconds)],
        fixes: vec![words::set(
            seen,
            KEY,
            &DEFAULT,
            "set the kernel's default",
            words::AT_ONCE,
            "",
        )],
        ..Finding::default()
    }])
}

#[cfg(test)]
mod tests {
    use super::super::sample::{host, judged, missing, shown};
    use super::*;
    use crate::snapshot::Source;

    #[test]
    fn a_lowered_value_is_told_with_what_it_does() {
        insta::assert_snapshot!(shown(&CHECK, &host(&[(KEY, "15")])));
    }

    #[test]
    fn the_default_and_more_are_well() {
        assert_eq!(judged(&CHECK, &host(&[(KEY, "60")])), Ok(Vec::new()));
        assert_eq!(judged(&CHECK, &host(&[(KEY, "59")])).expect("seen").len(), 1);
    }

    #[test]
    fn without_settings_nothing_is_said() {
        let mut blind = host(&[]);
        blind.settings = None;
        assert_eq!(missing(&CHECK, &blind).source, Source::Settings);
    }
}
