//! A connection that gets no answer is given up very early or very late.
//!
//! # What it says
//! `tcp_syn_retries` is how often a SYN is sent again, `tcp_synack_retries` how often its answer is. Each waits twice as long as the one
//! before (since Linux 6.5 the first four SYNs wait a second each): 6 make about two minutes. With 1 two lost packets end a connection.
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
//! Linux `tcp_write_timeout`, `reqsk_timer_handler` (v6.12); tcp(7); RFC 6298 (a first timeout of one second).

use super::{Check, words};
use crate::host::finding::{Confidence, Finding, Group, Scope, Severity};
use crate::host::seen::{Asked, Seen};

pub(super) const CHECK: Check = Check {
    code: "SYN_RETRIES",
    file: include_str!("syn_retries.rs"),
    group: Group::Hygiene,
    judge,
};

const SYN: &str = "net.ipv4.tcp_syn_retries";
const SYN_ACK: &str = "net.ipv4.tcp_synack_retries";

fn judge(seen: &Seen<'_>) -> Asked<Vec<Finding>> {
    let linear = seen.number("net.ipv4.tcp_syn_linear_timeouts")?.unwrap_or(0);
    let syn = seen.number(SYN)?.filter(|retries| !(2..=6).contains(retries));
    let syn_ack = seen.number(SYN_ACK)?.filter(|retries| *retries < 2);
    let odd = [(SYN, syn, 6, linear), (SYN_ACK, syn_ack, 5, 0)];
    Ok(odd
        .into_iter()
        .filter_map(|(key, retries, default, linear)| {
            retries.map(|retries| finding(seen, key, retries, default, linear))
        })
        .collect())
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

/// One second, `linear` times, then twice as long each time; none longer than two minutes (`TCP_RTO_MAX`).
fn seconds(retries: i64, linear: i64) -> i64 {
    let doubled = (0..=retries.clamp(0, 127)).map(|nth| if nth < 7 { 1 << nth } else { 120 });
    linear.clamp(0, 127) + doubled.sum::<i64>()
}

#[cfg(test)]
mod tests {
    use super::super::sample::{host, judged, missing, shown};
    use super::*;
    use crate::host::snapshot::Source;

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
    fn two_to_six_are_well() {
        for well in ["2", "6"] {
            assert_eq!(judged(&CHECK, &host(&[(SYN, well), (SYN_ACK, "2")])), Ok(Vec::new()));
        }
        assert_eq!(judged(&CHECK, &host(&[(SYN, "7")])).expect("seen").len(), 1);
    }

    #[test]
    fn without_settings_nothing_is_said() {
        let mut blind = host(&[]);
        blind.settings = None;
        assert_eq!(missing(&CHECK, &blind).source, Source::Settings);
    }
}
