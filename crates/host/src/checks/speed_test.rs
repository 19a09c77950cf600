//! What a test with `iperf3` showed of the path.
//!
//! # What it says
//! A test of speed tells more than its rate: segments that its sender retransmitted were lost or late, intervals without a
//! byte are stalls, and a congestion window that stays the same without a loss is not what limits.
//!
//! # How we know
//! The lines that `iperf3` prints: `Retr` and `Cwnd` are read from the sender's `TCP_INFO` at each interval.
//!
//! # What it is not
//! The sum of `Retr` holds needless retransmissions, too. What limited a test is not told by its rate alone.
//!
//! # What to do
//! Run it in both directions (`-R`) and with several streams (`-P`): several streams that are faster together than one
//! tell a window or a loss, not a link.
//!
//! # Sources
//! iperf3(1); Linux `tcp_is_cwnd_limited` and `tcp_cwnd_validate` (v6.1): a window that is not used does not grow. A
//! thousandth of the segments is ours: the window that such a loss rate p allows is sqrt(3/2) / sqrt(p) segments (Mathis and
//! others, 1997), which is 39, and 10 ms at 1 Gbit/s hold 833.

use super::{Check, words};
use crate::finding::{Confidence, Evidence, Finding, Group, Scope, Severity};
use crate::seen::{Asked, Missing, Seen};
use crate::snapshot::{Source, SpeedTest};
use tcpwhy_words::said::{bytes, count, grouped};

pub(super) const CHECK: Check =
    Check { code: "SPEED_TEST", file: include_str!("speed_test.rs"), group: Group::Sending, judge };

/// The payload of a full segment on Ethernet. With larger frames fewer segments were sent, and the share is more.
const MSS: u64 = 1448;

fn judge(seen: &Seen<'_>) -> Asked<Vec<Finding>> {
    let tests = &seen.snapshot.speed_tests;
    if tests.is_empty() {
        return Err(Missing::all(Source::SpeedTests));
    }
    Ok(tests
        .iter()
        .filter(|test| test.rate().is_some() || test.intervals > 0)
        .take(words::WORST)
        .map(finding)
        .collect())
}

impl SpeedTest {
    fn rate(&self) -> Option<u64> {
        self.received.or(self.sent)
    }

    /// Segments that were retransmitted, of so many.
    fn lost(&self) -> Option<(u64, u64)> {
        let segments = self.bytes?.div_ceil(MSS);
        self.retransmits.filter(|again| *again > 0).map(|again| (again, segments))
    }
}

fn finding(test: &SpeedTest) -> Finding {
    let mbit = |rate: u64| format!("{} Mbit/s", Rounded(rate as f64 / 1e6));
    let rate = test
        .rate()
        .map_or_else(|| "a test".to_owned(), |rate| format!("a test moved {}", mbit(rate)));
    let lossy =
        test.lost().filter(|(again, all)| words::above_percent(again.saturating_mul(10), 1, *all));
    let mut evidence = Vec::new();
    evidence.extend(test.sent.map(|rate| Evidence::new("iperf3, sender", mbit(rate))));
    evidence.extend(test.received.map(|rate| Evidence::new("iperf3, receiver", mbit(rate))));
    evidence.extend(test.retransmits.map(|again| Evidence::new("iperf3, Retr", grouped(again))));
    evidence.extend(test.cwnd.map(|[least, most]| {
        Evidence::new("iperf3, Cwnd", format!("{} to {}", bytes(least), bytes(most)))
    }));
    let alone = Finding {
        confidence: Confidence::Medium,
        scope: Scope::Host,
        not: "not what limited it: the rate alone does not tell".to_owned(),
        evidence,
        ..Finding::default()
    };
    if test.silent > 0 {
        let of = test.intervals;
        return Finding {
            severity: Severity::Warning,
            title: format!("{rate}, and in {} of {of} intervals nothing moved", test.silent),
            why: "the transfer stood still: a timeout, a shut window, or a path that was gone."
                .to_owned(),
            ..alone
        };
    }
    if let Some((again, all)) = lossy {
        return Finding {
            severity: Severity::Warning,
            title: format!("{rate}, and its sender sent {} again, {} of all", count(again, "segment"), words::share(again, all)),
            why: "each loss makes the sender slow down; CUBIC and Reno stay below the link for it on a long path.".to_owned(),
            not: "not that all of them were lost: the sum holds needless ones, too".to_owned(),
            ..alone
        };
    }
    let steady =
        test.steady && test.streams <= 1 && test.retransmits == Some(0) && test.intervals >= 3;
    if steady {
        return Finding {
            severity: Severity::Info,
            title: format!("{rate} without a retransmission, and its congestion window did not grow"),
            why: "Linux lets a window grow only while it is what limits: something else does here (the receive window, the send \
                  buffer, or the program)."
                .to_owned(),
            ..alone
        };
    }
    Finding {
        severity: Severity::Info,
        title: test.retransmits.map_or_else(
            || rate.clone(),
            |again| format!("{rate} with {}", count(again, "retransmission")),
        ),
        why: "that is what the path and both hosts carried then, at least.".to_owned(),
        ..alone
    }
}

/// A number with about three digits.
struct Rounded(f64);

impl core::fmt::Display for Rounded {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        let digits = match self.0 {
            large if large >= 100.0 => 0,
            middle if middle >= 10.0 => 1,
            _ => 2,
        };
        write!(f, "{:.digits$}", self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::super::sample::{host, judged, missing, shown};
    use super::*;
    use crate::snapshot::Snapshot;

    fn with(test: SpeedTest) -> Snapshot {
        Snapshot { speed_tests: vec![test], ..host(&[]) }
    }

    fn test(retransmits: u64) -> SpeedTest {
        SpeedTest {
            over_ns: 10_000_000_000,
            sent: Some(116_000_000),
            received: Some(115_840_000),
            bytes: Some(144_800_000),
            retransmits: Some(retransmits),
            streams: 1,
            intervals: 10,
            cwnd: Some([60_000, 90_000]),
            ..SpeedTest::default()
        }
    }

    #[test]
    fn losses_of_a_test_are_told_with_their_share() {
        insta::assert_snapshot!(shown(&CHECK, &with(test(1_200))));
    }

    #[test]
    fn a_thousandth_is_the_boundary() {
        let severity = |again| judged(&CHECK, &with(test(again))).expect("seen")[0].severity;
        assert_eq!((severity(101), severity(100)), (Severity::Warning, Severity::Info));
    }

    #[test]
    fn stalls_and_a_window_that_stays_are_told() {
        let title = |test| judged(&CHECK, &with(test)).expect("seen")[0].title.clone();
        let stalled = SpeedTest { silent: 2, ..test(3) };
        assert!(title(stalled).contains("in 2 of 10 intervals nothing moved"));
        let steady = SpeedTest { steady: true, ..test(0) };
        assert!(title(steady.clone()).contains("did not grow"));
        assert!(!title(SpeedTest { steady: true, ..test(1) }).contains("did not grow"));
        assert!(!title(SpeedTest { streams: 4, ..steady }).contains("did not grow"));
    }

    #[test]
    fn without_a_test_nothing_is_said() {
        assert_eq!(missing(&CHECK, &host(&[])).source, Source::SpeedTests);
    }
}
