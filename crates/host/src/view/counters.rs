//! What the kernel's TCP counted, where no check has anything to say of it either.

use crate::Seen;
use tcpwhy_words::page::{Ink, Page, plain};

/// Counters of `/proc/net/snmp` and `netstat` that tell what kind of traffic a host has, and what they count.
const COUNTERS: [(&str, &str, &str); 31] = [
    ("Tcp", "ActiveOpens", "connections opened"),
    ("Tcp", "PassiveOpens", "connections accepted"),
    ("Tcp", "AttemptFails", "handshakes that failed"),
    ("Tcp", "EstabResets", "open connections reset"),
    ("Tcp", "OutRsts", "resets sent"),
    ("Tcp", "InSegs", "segments received"),
    ("Tcp", "OutSegs", "segments sent, repeats apart"),
    ("Tcp", "RetransSegs", "segments retransmitted"),
    ("TcpExt", "TCPOrigDataSent", "segments with new data sent"),
    ("TcpExt", "TCPDelivered", "segments known to have arrived"),
    ("TcpExt", "TCPDeliveredCE", "of these, marked as congested"),
    ("TcpExt", "TCPTimeouts", "retransmission timeouts"),
    ("TcpExt", "TCPLossProbes", "tail loss probes"),
    ("TcpExt", "TCPLossProbeRecovery", "losses that these repaired"),
    ("TcpExt", "TCPFastRetrans", "fast retransmits"),
    ("TcpExt", "TCPSlowStartRetrans", "repeats in slow start after a timeout"),
    ("TcpExt", "TCPSackRecovery", "recoveries by SACK"),
    ("TcpExt", "TCPSackRecoveryFail", "of these, ended by a timeout"),
    ("TcpExt", "TCPLostRetransmit", "repeats that were lost, too"),
    ("TcpExt", "TCPSpuriousRTOs", "timeouts that nothing was lost for"),
    ("TcpExt", "TCPDSACKRecv", "D-SACKs received: something came twice"),
    ("TcpExt", "TCPSACKReorder", "reorderings found by SACK"),
    ("TcpExt", "TCPOFOQueue", "segments received out of order"),
    ("TcpExt", "TCPRcvCoalesce", "segments merged in receive queues"),
    ("TcpExt", "TCPAckCompressed", "acknowledgments left out for later ones"),
    ("TcpExt", "DelayedACKs", "delayed acknowledgments"),
    ("TcpExt", "DelayedACKLost", "of these, perhaps lost"),
    ("TcpExt", "TCPWinProbe", "zero window probes"),
    ("TcpExt", "TCPKeepAlive", "keepalive probes"),
    ("TcpExt", "TCPMemoryPressures", "times that TCP's memory was short"),
    ("TcpExt", "TcpTimeoutRehash", "other ways tried after timeouts"),
];

/// Those that grew, between the looks or since the host started.
pub(super) fn counters(page: &mut Page, seen: &Seen<'_>) {
    let mut rows = Vec::new();
    for (group, name, meaning) in COUNTERS {
        let Ok(Some(growth)) = seen.growth(group, name) else { continue };
        if growth.by > 0 {
            rows.push((name, growth, meaning));
        }
    }
    let Some((_, first, _)) = rows.first() else { return };
    page.heading(if first.or_since_nstat {
        "What TCP counted since the host started, or since nstat was last run"
    } else if first.since_start {
        "What TCP counted since the host started"
    } else {
        "What TCP counted between the looks"
    });
    for (name, growth, meaning) in &rows {
        let rate = if growth.since_start || growth.over_ns == 0 {
            String::new()
        } else {
            format!(" ({:.1}/s)", growth.per_second())
        };
        let words = format!("  {name:<21}{:>12}{rate:<14} ", growth.by);
        page.row(&[plain(words), (Ink::Faint, (*meaning).to_owned())]);
    }
    let of = |name: &str| rows.iter().find(|row| row.0 == name).map(|row| row.1.by);
    if let (Some(again), Some(new)) = (of("RetransSegs"), of("TCPOrigDataSent")) {
        let share = again as f64 * 100.0 / again.saturating_add(new) as f64;
        page.wrapped(2, 4, &[plain(format!("{share:.2} % of the data segments were repeats"))]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::snapshot::{Look, Snapshot};

    fn look(t_ns: u64, counted: [i64; 3]) -> Look {
        let [sent, again, opened] = counted;
        let tcp = [("RetransSegs", again), ("ActiveOpens", opened)];
        let more = [("TCPOrigDataSent", sent)];
        let named = |all: &[(&str, i64)]| {
            all.iter().map(|(name, value)| ((*name).to_owned(), *value)).collect()
        };
        Look {
            t_ns: Some(t_ns),
            counters: Some(
                [("Tcp".to_owned(), named(&tcp)), ("TcpExt".to_owned(), named(&more))].into(),
            ),
            ..Look::default()
        }
    }

    fn shown(looks: Vec<Look>) -> String {
        let snapshot = Snapshot { looks, ..Snapshot::default() };
        let mut page = Page::new(100, false);
        counters(&mut page, &Seen::new(&snapshot).expect("a look"));
        page.into_text()
    }

    #[test]
    fn what_grew_is_told_and_what_stood_is_not() {
        let looks = [look(0, [100, 10, 7]), look(10_000_000_000, [1090, 20, 7])];
        insta::assert_snapshot!(shown(looks.to_vec()));
        assert!(shown(vec![look(0, [5, 1, 7])]).contains("since the host started"));
        assert_eq!(shown(vec![look(0, [0, 0, 0]), look(1, [0, 0, 0])]), "");
    }
}
