//! Parts of TCP that repair losses quickly are switched off.
//!
//! # What it says
//! Selective acknowledgments tell which packets are missing; timestamps measure round trips and protect against
//! old packets; RACK finds losses by time, tail loss probes find the last of them, F-RTO and DSACK undo what was
//! repaired in vain. All are on by default. Without them repairs take longer or are done for nothing.
//!
//! # How we know
//! `tcp_sack`, `tcp_timestamps`, `tcp_dsack`, `tcp_frto` or `tcp_early_retrans` is 0, or on a kernel before 6.17 `tcp_recovery`
//! lacks its first bit; from then on RACK is always on, and `INERT_SETTINGS` tells of it.
//!
//! # What it is not
//! Guides for 10 Gbit/s of many years ago ask for `tcp_sack=0` and `tcp_timestamps=0` to save processor time: that
//! was about machines of then. Timestamps are offset by a secret for each pair of hosts since 4.10: they tell no
//! uptime.
//!
//! # What to do
//! Set the defaults. Selective acknowledgments and timestamps are agreed on when a connection opens: those that are open stay
//! without. The others work at once.
//!
//! # Sources
//! RFC 2018, 7323, 8985, 5682, 2883; Linux `tcp_sk_init` has the defaults, `tcp_dsack_set`, `tcp_enter_loss`
//! and `tcp_schedule_loss_probe` read theirs each time (v6.12); commit 1c120191dcec (6.17: no recovery without RACK).

use super::{Check, counters, words};
use crate::finding::{Confidence, Finding, Group, Scope, Severity};
use crate::seen::{Asked, Missing, Seen};
use crate::snapshot::Source;
use tcpwhy_words::said::listed;

pub(super) const CHECK: Check = Check {
    code: "LOSS_RECOVERY_OFF",
    file: include_str!("loss_recovery_off.rs"),
    group: Group::Losses,
    judge,
};

/// A switch, its default, what is lost without it, and how bad that is.
type Switch = (&'static str, i64, &'static str, Severity);

const RECOVERY: &str = "net.ipv4.tcp_recovery";

const SWITCHES: [Switch; 6] = [
    (
        "net.ipv4.tcp_sack",
        1,
        "without selective acknowledgments one loss a round trip is repaired",
        Severity::Warning,
    ),
    (
        "net.ipv4.tcp_timestamps",
        1,
        "without timestamps fewer needless repairs are undone, and SYN cookies lose window scale and SACK",
        Severity::Warning,
    ),
    (RECOVERY, 1, "without RACK a lost repair waits for a timeout", Severity::Warning),
    (
        "net.ipv4.tcp_early_retrans",
        3,
        "without probes a loss at the end of a transfer waits for a timeout",
        Severity::Warning,
    ),
    ("net.ipv4.tcp_dsack", 1, "peers are not told of needless repairs", Severity::Info),
    ("net.ipv4.tcp_frto", 2, "a needless timeout is not undone", Severity::Info),
];

fn judge(seen: &Seen<'_>) -> Asked<Vec<Finding>> {
    let (off, unseen) = off(seen);
    if off.is_empty() {
        return unseen.into_iter().next().map_or(Ok(Vec::new()), Err);
    }
    let names: Vec<String> =
        off.iter().map(|((key, ..), _)| key.trim_start_matches("net.ipv4.").to_owned()).collect();
    let why: Vec<&str> = off.iter().map(|((_, _, why, _), _)| *why).collect();
    let lost = counters::grew(seen, "Tcp", "RetransSegs").ok().flatten();
    let mut severity = off.iter().map(|((.., bad), _)| *bad).max().unwrap_or_default();
    // What is lost here now is repaired without them.
    if lost.is_some_and(|lost| !lost.since_start && lost.per_second() > 1.0)
        && severity > Severity::Info
    {
        severity = Severity::Error;
    }
    let mut evidence: Vec<_> =
        off.iter().map(|((key, ..), value)| words::setting(key, value)).collect();
    evidence.extend(lost.map(|lost| words::counter("Tcp", "RetransSegs", lost)));
    let each = off.iter().map(|((key, default, ..), _)| {
        let is_agreed = key.ends_with("sack") && !key.ends_with("dsack") || key.ends_with("stamps");
        let applies = if is_agreed { "for new connections" } else { words::AT_ONCE };
        words::set(seen, key, default, "set the kernel's default", applies, "")
    });
    let found = Finding {
        severity,
        confidence: Confidence::High,
        scope: Scope::Netns,
        title: format!(
            "{} {} switched off",
            listed(&names),
            if off.len() == 1 { "is" } else { "are" }
        ),
        why: format!("{}.", why.join("; ")),
        not: "not that packets are lost here: it tells how long it takes to repair it".to_owned(),
        evidence,
        fixes: each.collect(),
        unseen: unseen.iter().map(ToString::to_string).collect(),
        ..Finding::default()
    };
    Ok(vec![found.all_together()])
}

/// Those that are off with their values, and those that were not seen.
fn off(seen: &Seen<'_>) -> (Vec<(Switch, i64)>, Vec<Missing>) {
    let (mut off, mut unseen) = (Vec::new(), Vec::new());
    for switch in SWITCHES {
        let key = switch.0;
        // `TCP_RACK_LOSS_DETECTION` is bit 0; the others only tune it.
        let is_rack = key == RECOVERY;
        match seen.number(key) {
            Ok(Some(value)) if is_rack && value & 1 == 0 => match seen.is_kernel_from(6, 17) {
                Some(true) => {}
                Some(false) => off.push((switch, value)),
                None => unseen.push(Missing::part(Source::Machine, "kernel version")),
            },
            Ok(Some(0)) => off.push((switch, 0)),
            Ok(_) => {}
            Err(missing) => unseen.push(missing),
        }
    }
    (off, unseen)
}

#[cfg(test)]
mod tests {
    use super::super::sample::{counted, host, judged, missing, shown};
    use super::*;
    use crate::snapshot::Snapshot;

    fn of_kernel(kernel: &str, key: &str, value: &str) -> Snapshot {
        Snapshot { kernel: Some(kernel.to_owned()), ..host(&[(key, value)]) }
    }

    #[test]
    fn what_old_guides_ask_for() {
        let off = host(&[("net.ipv4.tcp_sack", "0"), ("net.ipv4.tcp_timestamps", "0")]);
        insta::assert_snapshot!(shown(&CHECK, &counted(off, "Tcp", "RetransSegs", [0, 11])));
    }

    #[test]
    fn defaults_and_what_only_tunes_rack_are_well() {
        let on: Vec<_> =
            SWITCHES.iter().map(|(key, default, ..)| (*key, default.to_string())).collect();
        let on: Vec<_> = on.iter().map(|(key, value)| (*key, value.as_str())).collect();
        assert_eq!(judged(&CHECK, &host(&on)), Ok(Vec::new()));
        let number = |value| {
            judged(&CHECK, &of_kernel("6.16.9-200.fc42", RECOVERY, value)).expect("seen").len()
        };
        assert_eq!([number("3"), number("2"), number("0")], [0, 1, 1]);
    }

    #[test]
    fn from_6_17_on_rack_is_never_off_and_of_an_unknown_kernel_nothing_is_said() {
        assert_eq!(judged(&CHECK, &of_kernel("6.17.0", RECOVERY, "0")), Ok(Vec::new()));
        assert_eq!(missing(&CHECK, &host(&[(RECOVERY, "0")])).source, Source::Machine);
    }

    #[test]
    fn what_is_agreed_on_at_the_start_counts_for_new_connections_alone() {
        let applies = |key| {
            let found = judged(&CHECK, &host(&[(key, "0")])).expect("seen");
            found[0].fixes[0].applies.clone()
        };
        assert_eq!(applies("net.ipv4.tcp_timestamps"), "for new connections");
        assert_eq!(applies("net.ipv4.tcp_sack"), "for new connections");
        assert_eq!(applies("net.ipv4.tcp_dsack"), words::AT_ONCE);
        assert_eq!(applies("net.ipv4.tcp_frto"), words::AT_ONCE);
    }

    #[test]
    fn without_losses_here_or_with_lesser_parts_it_is_no_error() {
        let severity = |key| judged(&CHECK, &host(&[(key, "0")])).expect("seen")[0].severity;
        assert_eq!(severity("net.ipv4.tcp_sack"), Severity::Warning);
        assert_eq!(severity("net.ipv4.tcp_frto"), Severity::Info);
    }

    #[test]
    fn settings_that_were_not_pasted_are_named() {
        let mut some = host(&[("net.ipv4.tcp_sack", "0")]);
        some.settings.as_mut().expect("settings").complete = false;
        assert_eq!(judged(&CHECK, &some).expect("seen")[0].unseen.len(), 5);
        assert_eq!(missing(&CHECK, &Snapshot { settings: None, ..some }).source, Source::Settings);
    }
}
