//! Settings of the receive window differ from the kernel's, some of them without any effect.
//!
//! # What it says
//! `tcp_adv_win_scale` chose which part of a buffer is window until Linux 6.5; since 6.6 each socket measures that for
//! itself, and the setting does nothing. `tcp_shrink_window`, `tcp_app_win` and `tcp_workaround_signed_windows` still
//! do something, and hardly anybody needs it.
//!
//! # How we know
//! One of them differs from its default: 1, 0, 31, 0. A socket whose `rcv_ssthresh` is a larger part of its buffer than
//! `tcp_adv_win_scale` would allow shows that this kernel ignores it.
//!
//! # What it is not
//! From the version alone it cannot be told: RHEL 9 has the change of 6.6 in its 5.14. On kernels that do heed it, a
//! value of n > 0 keeps 1/2^n of the buffer for overhead, and one of n <= 0 makes 2^n of it the window.
//!
//! # What to do
//! Leave the lines out of sysctl.d.
//!
//! # Sources
//! Linux `tcp_win_from_space` (v6.1 and v6.12), commit dfa2f0483360 (6.6); ip-sysctl.rst.

use super::{Check, flows, words};
use crate::finding::{Confidence, Evidence, Finding, Group, Scope, Severity};
use crate::seen::{Asked, Seen};

pub(super) const CHECK: Check = Check {
    code: "WINDOW_SETTINGS",
    file: include_str!("window_settings.rs"),
    group: Group::Hygiene,
    judge,
};

const SHARE: &str = "net.ipv4.tcp_adv_win_scale";
const OTHERS: [(&str, i64, &str); 3] = [
    ("net.ipv4.tcp_shrink_window", 0, "windows that were announced may be taken back"),
    ("net.ipv4.tcp_app_win", 31, "a part of the window is kept back for the program"),
    (
        "net.ipv4.tcp_workaround_signed_windows",
        0,
        "windows stay below 32 KiB until a peer proves better",
    ),
];

fn judge(seen: &Seen<'_>) -> Asked<Vec<Finding>> {
    let mut found = Vec::new();
    if let Some(share) = seen.number(SHARE)?.filter(|share| *share != 1) {
        found.push(of_share(seen, share));
    }
    for (key, default, does) in OTHERS {
        let value = seen.number(key)?.filter(|value| *value != default);
        found.extend(value.map(|value| Finding {
            severity: Severity::Info,
            confidence: Confidence::High,
            scope: Scope::Netns,
            title: format!("{key} is {value}, by default {default}"),
            why: format!("{does}."),
            not: "not that it harms here".to_owned(),
            evidence: vec![words::setting(key, &value)],
            fixes: vec![default_of(seen, key, default)],
            ..Finding::default()
        }));
    }
    Ok(found)
}

fn of_share(seen: &Seen<'_>, share: i64) -> Finding {
    let proof = disproof(seen, share);
    let (why, confidence) = if proof.is_some() {
        (
            "this kernel measures that for each socket and ignores the setting".to_owned(),
            Confidence::High,
        )
    } else {
        let part = match share {
            1.. => format!("all but 1/{} of", 1_u64 << share.min(31)),
            _ => format!("1/{} of", 1_u64 << share.unsigned_abs().min(31)),
        };
        (
            format!(
                "since Linux 6.6, and in RHEL 9, it does nothing; a kernel that heeds it makes {part} a buffer \
                 the window"
            ),
            Confidence::Medium,
        )
    };
    Finding {
        severity: Severity::Info,
        confidence,
        scope: Scope::Netns,
        title: format!("{SHARE} is {share}, by default 1"),
        why: format!("{why}."),
        not: if proof.is_some() {
            "not that it does any harm".to_owned()
        } else {
            "not which of the two this kernel does: no socket shows it".to_owned()
        },
        evidence: core::iter::once(words::setting(SHARE, &share)).chain(proof).collect(),
        fixes: vec![default_of(seen, SHARE, 1)],
        ..Finding::default()
    }
}

fn default_of(seen: &Seen<'_>, key: &str, default: i64) -> crate::Fix {
    words::set(seen, key, &default, "set the kernel's default", words::AT_ONCE, "")
}

/// A socket whose window is a larger part of its buffer than the setting would allow.
fn disproof(seen: &Seen<'_>, share: i64) -> Option<Evidence> {
    let allowed = |space: u64| match share {
        1.. => space - (space >> share.min(63)),
        _ => space >> share.unsigned_abs().min(63),
    };
    let flows = flows::measured(seen).ok()?;
    let beyond = flows.iter().find(|(flow, info, memory)| {
        // A buffer that a program made smaller keeps the window that it had.
        flow.now.locks.and_then(|locks| locks.rcvbuf) == Some(false)
            && info
                .rcv_ssthresh
                .is_some_and(|window| u64::from(window) > allowed(u64::from(memory.rcvbuf)))
    });
    let (flow, info, memory) = beyond?;
    let says = format!("rcv_ssthresh {} of rb{}", info.rcv_ssthresh.unwrap_or(0), memory.rcvbuf);
    flows::evidence(seen, &[flow], |_| says.clone()).pop()
}

#[cfg(test)]
mod tests {
    use super::super::sample::{host, judged, missing, shown};
    use super::super::sample_flows::{connected, socket};
    use super::*;
    use crate::snapshot::{Info, Locks, Memory, Snapshot, Source};

    /// A socket with half of its buffer as window, on a host that asks for a quarter.
    fn sharing(value: &str, window: u32) -> Snapshot {
        let info = Info { rcv_ssthresh: Some(window), ..Info::default() };
        let at = || {
            let memory = Memory { rcvbuf: 400_000, ..Memory::default() };
            let mut socket = socket(0, &info, memory);
            socket.locks = Some(Locks { rcvbuf: Some(false), ..Locks::default() });
            vec![socket]
        };
        connected(&[(SHARE, value)], at(), at())
    }

    #[test]
    fn a_socket_shows_that_the_setting_is_ignored() {
        insta::assert_snapshot!(shown(&CHECK, &sharing("-2", 200_000)));
    }

    #[test]
    fn a_share_that_fits_the_setting_proves_nothing() {
        let sure =
            |value, window| judged(&CHECK, &sharing(value, window)).expect("seen")[0].confidence;
        assert_eq!(
            [sure("-2", 100_000), sure("-2", 100_001)],
            [Confidence::Medium, Confidence::High]
        );
        assert_eq!(
            [sure("2", 300_000), sure("2", 300_001)],
            [Confidence::Medium, Confidence::High]
        );
    }

    #[test]
    fn defaults_are_well_and_the_others_are_told() {
        assert_eq!(judged(&CHECK, &host(&[(SHARE, "1")])), Ok(Vec::new()));
        let shrinking = host(&[("net.ipv4.tcp_shrink_window", "1")]);
        assert_eq!(judged(&CHECK, &shrinking).expect("seen").len(), 1);
        let none = Snapshot { settings: None, ..host(&[]) };
        assert_eq!(missing(&CHECK, &none).source, Source::Settings);
    }
}
