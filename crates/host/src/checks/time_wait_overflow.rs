//! Connections leave `TIME_WAIT` at once because too many are in it.
//!
//! # What it says
//! The side that closes first keeps the pair of ports for a minute, so that segments still on their way meet
//! nobody else. When `tcp_max_tw_buckets` are kept already, the next one is not kept at all.
//!
//! # How we know
//! `TCPTimeWaitOverflow` grew.
//!
//! # What it is not
//! Not a shortage of ports or memory: an entry is some hundred bytes, and a server that closes first has the same
//! port in all of them. Many of them alone are no fault.
//!
//! # What to do
//! Set `tcp_max_tw_buckets` back to the kernel's default, half the size of its connection table: a low value is
//! often a line copied from elsewhere.
//!
//! # Sources
//! Linux `inet_twsk_alloc`, `tcp_time_wait` (v6.12), `tcp_set_hashinfo` (the default); RFC 9293 section 3.6.1.

use super::{Check, words};
use crate::finding::{Evidence, Finding, Group, Scope, Severity};
use crate::seen::{Asked, Seen};

pub(super) const CHECK: Check = Check {
    code: "TIME_WAIT_OVERFLOW",
    file: include_str!("time_wait_overflow.rs"),
    group: Group::Closing,
    judge,
};

const KEY: &str = "net.ipv4.tcp_max_tw_buckets";

fn judge(seen: &Seen<'_>) -> Asked<Vec<Finding>> {
    const NAME: &str = "TCPTimeWaitOverflow";
    let Some(grown) = seen.growth("TcpExt", NAME)?.filter(|growth| growth.by > 0) else {
        return Ok(Vec::new());
    };
    let most = seen.number(KEY).ok().flatten();
    let now = seen.now.sockstat.as_ref().and_then(|all| all.get("TCP")?.get("tw").copied());
    let mut evidence = vec![words::counter("TcpExt", NAME, grown)];
    evidence.extend(now.map(|now| Evidence::new("/proc/net/sockstat TCP tw", now.to_string())));
    evidence.extend(most.map(|most| words::setting(KEY, &most)));
    Ok(vec![Finding {
        severity: Severity::Warning,
        confidence: words::sure(grown),
        scope: Scope::Netns,
        title: format!("TIME_WAIT is cut short for want of room: {}", words::grown(grown)),
        why: format!(
            "no more than {} are kept; a late segment of a connection that was not may reach the next one \
             on the same ports, or be answered by a reset.",
            most.map_or_else(|| "tcp_max_tw_buckets".to_owned(), |most| most.to_string())
        ),
        not: "not a shortage of ports, and many connections in TIME_WAIT alone are no fault"
            .to_owned(),
        evidence,
        fixes: larger(seen, most)
            .map(|to| {
                words::set(
                    seen,
                    KEY,
                    &to,
                    "keep more",
                    words::AT_ONCE,
                    "some hundred bytes of kernel memory for each",
                )
            })
            .into_iter()
            .collect(),
        ..Finding::default()
    }])
}

/// The kernel's default where the size of its table is seen, else four times as many (ours, not measured).
fn larger(seen: &Seen<'_>, most: Option<i64>) -> Option<i64> {
    let most = most?;
    let table = seen.number("net.ipv4.tcp_ehash_entries").ok().flatten();
    let default = table.map(|entries| entries.saturating_abs() / 2).filter(|half| *half > most);
    Some(default.unwrap_or(most.saturating_mul(4)))
}

#[cfg(test)]
mod tests {
    use super::super::sample::{counted, host, judged, missing, shown};
    use super::*;
    use crate::snapshot::Source;

    const NAME: &str = "TCPTimeWaitOverflow";

    #[test]
    fn entries_that_found_no_room_are_told_with_the_limit() {
        let settings = [(KEY, "4096"), ("net.ipv4.tcp_ehash_entries", "262144")];
        insta::assert_snapshot!(shown(&CHECK, &counted(host(&settings), "TcpExt", NAME, [1, 900])));
    }

    #[test]
    fn a_counter_that_stands_still_is_nothing() {
        let host = counted(host(&[(KEY, "4096")]), "TcpExt", NAME, [900, 900]);
        assert_eq!(judged(&CHECK, &host), Ok(Vec::new()));
    }

    #[test]
    fn a_table_no_larger_than_the_limit_makes_it_four_times_as_large() {
        let settings = [(KEY, "131072"), ("net.ipv4.tcp_ehash_entries", "262144")];
        let host = counted(host(&settings), "TcpExt", NAME, [0, 1]);
        let found = judged(&CHECK, &host).expect("seen");
        assert!(format!("{:?}", found[0].fixes).contains("524288"), "{found:?}");
    }

    #[test]
    fn without_counters_nothing_is_said() {
        assert_eq!(missing(&CHECK, &host(&[])).source, Source::Counters);
    }
}
