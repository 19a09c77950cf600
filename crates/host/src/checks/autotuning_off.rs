//! Receive buffers do not grow: autotuning is switched off.
//!
//! # What it says
//! With `net.ipv4.tcp_moderate_rcvbuf=0` every connection keeps the receive buffer that it began with (the
//! second number of `tcp_rmem`), and so a window of about half of it: no more arrives in a round trip.
//!
//! # How we know
//! `net.ipv4.tcp_moderate_rcvbuf` is 0.
//!
//! # What it is not
//! Not that a connection is slow for it: on a short path the first buffer is enough. Sockets whose
//! program set `SO_RCVBUF` do not grow with the setting on either.
//!
//! # What to do
//! Set it to 1, the kernel's default; connections that are open begin to grow, too.
//!
//! # Sources
//! Linux `tcp_rcv_space_adjust` (v6.1, `net/ipv4/tcp_input.c`); tcp(7).

use super::{Check, words};
use crate::finding::{Confidence, Finding, Group, Scope, Severity};
use crate::seen::{Asked, Seen};

pub(super) const CHECK: Check = Check {
    code: "AUTOTUNING_OFF",
    file: include_str!("autotuning_off.rs"),
    group: Group::Receiving,
    judge,
};

const KEY: &str = "net.ipv4.tcp_moderate_rcvbuf";

fn judge(seen: &Seen<'_>) -> Asked<Vec<Finding>> {
    if seen.number(KEY)? != Some(0) {
        return Ok(Vec::new());
    }
    let first = seen.numbers::<3>("net.ipv4.tcp_rmem").ok().flatten().map(|[_, first, _]| first);
    let size = first.map_or_else(String::new, |first| format!(", {first} bytes,"));
    Ok(vec![Finding {
        severity: Severity::Error,
        confidence: Confidence::High,
        scope: Scope::Netns,
        title: "receive buffers never grow: autotuning is off".to_owned(),
        why: format!(
            "every connection keeps the buffer that it began with{size} and announces about half of it \
             as its window: no more than that arrives in a round trip."
        ),
        not: "not that a connection here waits for it: on a short path the first buffer is enough"
            .to_owned(),
        evidence: vec![words::setting(KEY, &0)],
        fixes: vec![words::set(
            seen,
            KEY,
            &1,
            "switch it on again",
            words::AT_ONCE,
            "more memory for fast connections",
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
    fn a_switch_that_is_off_is_told_with_the_size_that_stays() {
        let off = host(&[(KEY, "0"), ("net.ipv4.tcp_rmem", "4096 131072 6291456")]);
        insta::assert_snapshot!(shown(&CHECK, &off));
    }

    #[test]
    fn a_switch_that_is_on_or_that_this_kernel_does_not_have_is_no_finding() {
        assert_eq!(judged(&CHECK, &host(&[(KEY, "1")])), Ok(Vec::new()));
        assert_eq!(judged(&CHECK, &host(&[])), Ok(Vec::new()));
    }

    #[test]
    fn settings_that_were_pasted_without_it_prove_nothing() {
        let mut some = host(&[("net.ipv4.tcp_sack", "1")]);
        some.settings.as_mut().expect("settings").complete = false;
        assert_eq!(missing(&CHECK, &some).of.as_deref(), Some(KEY));
        some.settings = None;
        assert_eq!(missing(&CHECK, &some).source, Source::Settings);
    }
}
