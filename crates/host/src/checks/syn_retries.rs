//! A connection that gets no answer is given up very early or very late.
//!
//! # What it says
//! `tcp_syn_retries` is how often a SYN is retransmitted, `tcp_synack_retries` how often its answer is. Each waits twice as long as the one
//! before: 6 make about two minutes. Since Linux 6.5 the first timeouts of a SYN, four of them, are a second each, and it is repeated as
//! many times more often; it is given up at the first timeout after the time that it would have had without them, or when all repeats
//! are spent. With 1 it is three seconds.
//!
//! # How we know
//! `tcp_syn_retries` is below 2 or above 6, or `tcp_synack_retries` below 2.
//!
//! # What it is not
//! Not what a program waits: most set a timeout of their own for `connect`.
//!
//! # What to do
//! The kernel's defaults are 6 and 5. While its queue is more than half full, a listener lowers the second by itself.
//!
//! # Sources
//! Linux `tcp_write_timeout`, `retransmits_timed_out`, `tcp_model_timeout`, `tcp_retransmit_timer`, `reqsk_timer_handler` (v6.12); tcp(7);
//! RFC 6298 (a first timeout of one second). On 6.18 `connect` failed after 3.1 s with 1 and two repeats, after 7.1 s with 2 and five.

use super::{Check, words};
use crate::finding::{Confidence, Finding, Group, Scope, Severity};
use crate::seen::{Asked, Seen};

pub(super) const CHECK: Check = Check {
    code: "SYN_RETRIES",
    file: include_str!("syn_retries.rs"),
    group: Group::Hygiene,
    judge,
};

const SYN: &str = "net.ipv4.tcp_syn_retries";
const SYN_ACK: &str = "net.ipv4.tcp_synack_retries";

fn judge(seen: &Seen<'_>) -> Asked<Vec<Finding>> {
    // With more than a few repeats it makes little of a difference.
    let linear = seen.number("net.ipv4.tcp_syn_linear_timeouts").ok().flatten().unwrap_or(0);
    let (syn, syn_ack) = (seen.number(SYN), seen.number(SYN_ACK));
    let odd = [
        (SYN, &syn, 2..=6, 6, linear),
        // Nobody but its peer waits for an answer that comes often.
        (SYN_ACK, &syn_ack, 2..=i64::MAX, 5, 0),
    ];
    let found: Vec<Finding> = odd
        .into_iter()
        .filter_map(|(key, retries, well, default, linear)| {
            let retries =
                retries.clone().ok().flatten().filter(|retries| !well.contains(retries))?;
            Some(finding(seen, key, retries, default, linear))
        })
        .collect();
    if found.is_empty() {
        syn.and(syn_ack)?;
    }
    Ok(found)
}

fn finding(seen: &Seen<'_>, key: &str, retries: i64, default: i64, linear: i64) -> Finding {
    let name = key.trim_start_matches("net.ipv4.");
    let until = seconds(retries, linear);
    Finding {
        severity: Severity::Info,
        confidence: Confidence::High,
        scope: Scope::Netns,
        title: format!("{name} is {retries}: an attempt ends after {until} s"),
        why: if retries < default {
            format!(
                "the default {default} allows {} s; a few packets lost in a row now end the attempt.",
                seconds(default, linear)
            )
        } else {
            format!(
                "the default {default} gives up after {} s; a program without a timeout of its own waits on.",
                seconds(default, linear)
            )
        },
        not: "not what a program waits: most set a timeout of their own".to_owned(),
        evidence: vec![words::setting(key, &retries)],
        fixes: vec![words::set(
            seen,
            key,
            &default,
            "set the kernel's default",
            "for new connections",
            "",
        )],
        ..Finding::default()
    }
}

/// When it is given up: at the first timeout after the time that `retries` would take if each timeout were twice the one before
/// (`tcp_model_timeout`), or that with all repeats sent. A timeout is a second at first, `linear` times more, and two minutes at most
/// (`TCP_RTO_MAX`).
fn seconds(retries: i64, linear: i64) -> i64 {
    let (retries, linear) = (retries.clamp(0, 127), linear.clamp(0, 127));
    let model: i64 = (0..=retries).map(|nth| if nth < 7 { 1 << nth } else { 120 }).sum();
    let (mut at, mut timeout) = (1, 1);
    for fired in 1..=retries + linear {
        if at >= model {
            break;
        }
        if fired > linear {
            timeout = (timeout * 2).min(120);
        }
        at += timeout;
    }
    at
}

#[cfg(test)]
mod tests {
    use super::super::sample::{host, judged, missing, shown};
    use super::*;
    use crate::snapshot::Source;

    #[test]
    fn few_and_many_repeats_are_told_with_their_time() {
        let settings = [(SYN, "1"), (SYN_ACK, "1"), ("net.ipv4.tcp_syn_linear_timeouts", "4")];
        insta::assert_snapshot!(shown(&CHECK, &host(&settings)));
    }

    #[test]
    fn defaults_end_after_127_and_131_seconds() {
        assert_eq!((seconds(6, 0), seconds(6, 4), seconds(5, 0)), (127, 131, 63));
    }

    #[test]
    fn linear_timeouts_do_not_outlast_the_time_that_was_meant() {
        assert_eq!([1, 2, 3, 7].map(|retries| seconds(retries, 4)), [3, 7, 19, 251]);
        assert_eq!([1, 2, 3, 7].map(|retries| seconds(retries, 0)), [3, 7, 15, 247]);
        assert_eq!([seconds(0, 0), seconds(0, 4), seconds(127, 0)], [1, 1, 127 + 121 * 120]);
    }

    #[test]
    fn two_to_six_are_well() {
        for well in ["2", "6"] {
            assert_eq!(judged(&CHECK, &host(&[(SYN, well), (SYN_ACK, "2")])), Ok(Vec::new()));
        }
        assert_eq!(judged(&CHECK, &host(&[(SYN, "7")])).expect("seen").len(), 1);
    }

    #[test]
    fn each_setting_is_judged_without_the_other() {
        let mut some = host(&[(SYN_ACK, "1")]);
        some.settings.as_mut().expect("settings").complete = false;
        assert_eq!(judged(&CHECK, &some).expect("seen").len(), 1);
        some.settings.as_mut().expect("settings").values.insert(SYN_ACK.to_owned(), "2".to_owned());
        assert_eq!(missing(&CHECK, &some).of.as_deref(), Some(SYN));
    }

    #[test]
    fn without_settings_nothing_is_said() {
        let mut blind = host(&[]);
        blind.settings = None;
        assert_eq!(missing(&CHECK, &blind).source, Source::Settings);
    }
}
