//! A host's counters beside what was found: which of several causes they prove, and which they rule out.
//!
//! Counters are of the whole host and all its connections, so one that grew proves only that it happened
//! there in that time; one that did not grow proves that it did not.

use core::net::IpAddr;
use std::collections::BTreeMap;

use crate::report::{Beside, Connection, Finding};
use tcpwhy_words::said;

use tcpwhy_words::printed::counters::{Growth, Kind};

/// What a counter means for findings.
struct Meaning {
    counter: &'static str,
    findings: &'static [&'static str],
    /// In words, to follow "so".
    grew: &'static str,
    /// The same if neither it nor any of `beside` did; empty where that says nothing.
    stood: &'static str,
    /// What else would have to grow if `stood` were wrong.
    beside: &'static [&'static str],
}

/// The other ways in which data that arrived is dropped for lack of memory: `tcp_data_queue_ofo`,
/// `tcp_prune_queue`, `tcp_prune_ofo_queue`, `tcp_data_queue` with a shut window, `tcp_add_backlog`.
const DROPPED_FOR_MEMORY: &[&str] = &[
    "TcpExtTCPOFODrop",
    "TcpExtRcvPruned",
    "TcpExtOfoPruned",
    "TcpExtTCPZeroWindowDrop",
    "TcpExtTCPBacklogDrop",
];

impl Meaning {
    fn is_of(&self, finding: &Finding) -> bool {
        self.findings.contains(&&*finding.code)
    }
}

/// Linux v6.12 `include/uapi/linux/snmp.h`, and where each is counted.
const MEANINGS: &[Meaning] = &[
    // `tcp_v4_syn_recv_sock`, `tcp_conn_request`: sk_acceptq_is_full.
    Meaning {
        counter: "TcpExtListenOverflows",
        findings: &["SYN_UNANSWERED", "SYN_RETRY"],
        grew: "an accept queue was full: that program accepts too slowly, or its backlog is small",
        stood: "no accept queue was full",
        beside: &[],
    },
    // `tcp_conn_request`: inet_csk_reqsk_queue_is_full without cookies.
    Meaning {
        counter: "TcpExtTCPReqQFullDrop",
        findings: &["SYN_UNANSWERED", "SYN_RETRY"],
        grew: "a queue of half-open connections was full and SYNs were dropped",
        // Full queues that send cookies, or drop at three quarters, are counted elsewhere or nowhere.
        stood: "",
        beside: &[],
    },
    // `ip_rcv_finish_core`: fib_validate_source gives -EXDEV.
    Meaning {
        counter: "TcpExtIPReversePathFilter",
        findings: &["SYN_UNANSWERED", "SYN_RETRY"],
        grew: "the reverse path filter dropped packets",
        stood: "the reverse path filter dropped nothing",
        beside: &[],
    },
    // `tcp_retransmit_timer`.
    Meaning {
        counter: "TcpExtTCPTimeouts",
        findings: &["TIMEOUT"],
        grew: "retransmission timers did expire there",
        stood: "no retransmission timer expired there: it is not the sender's host, or the counters are \
                of another time",
        beside: &[],
    },
    // `tcp_process_loss`, tcp_try_undo_loss: the timeout was not needed.
    Meaning {
        counter: "TcpExtTCPSpuriousRTOs",
        findings: &["TIMEOUT", "SPURIOUS_REPAIR"],
        grew: "its kernel found timeouts that were not needed (F-RTO)",
        stood: "",
        beside: &[],
    },
    // `tcp_check_dsack`.
    Meaning {
        counter: "TcpExtTCPDSACKRecv",
        findings: &["SPURIOUS_REPAIR"],
        grew: "its peers reported data that came twice",
        stood: "",
        beside: &[],
    },
    // `tcp_prune_queue`.
    Meaning {
        counter: "TcpExtPruneCalled",
        findings: &["SLOW_READER", "ZERO_WINDOW", "WINDOW_CAP", "WINDOW_GROWTH"],
        grew: "sockets ran out of receive memory: data waits there for a program to read",
        stood: "",
        beside: &[],
    },
    // `tcp_data_queue`: no room in the receive queue.
    Meaning {
        counter: "TcpExtTCPRcvQDrop",
        findings: &["SLOW_READER", "ZERO_WINDOW", "LOSS_RANDOM", "LOSS_CONGESTION", "LOSS"],
        grew: "data was dropped for lack of receive memory on the host that these counters are of",
        stood: "nor did any other such counter: no data was dropped for lack of receive memory on the host that \
                these counters are of",
        beside: DROPPED_FOR_MEMORY,
    },
    // `tcp_add_backlog`.
    Meaning {
        counter: "TcpExtTCPBacklogDrop",
        findings: &["LOSS_RANDOM", "LOSS_CONGESTION", "LOSS"],
        grew: "data was dropped while a program held its socket, on the host that these counters are of",
        stood: "",
        beside: &[],
    },
    // `tcp_select_window`: the window would be zero; counted when it is wanted, and when it is said.
    Meaning {
        counter: "TcpExtTCPWantZeroWindowAdv",
        findings: &["ZERO_WINDOW", "SLOW_READER"],
        grew: "its kernel wanted to shut a window",
        stood: "",
        beside: &[],
    },
    Meaning {
        counter: "TcpExtTCPToZeroWindowAdv",
        findings: &["ZERO_WINDOW", "SLOW_READER"],
        grew: "its kernel shut windows: programs there did not read",
        stood: "no window was shut by that host",
        beside: &[],
    },
    // `tcp_v4_rcv`, `tcp_rcv_established`: bad checksums.
    Meaning {
        counter: "TcpInCsumErrors",
        findings: &["LOSS_RANDOM", "LOSS"],
        grew: "segments with wrong TCP checksums arrived at the host that these counters are of: \
               something on the way damages them",
        stood: "no TCP checksum failed on the host that these counters are of",
        beside: &[],
    },
    // `tcp_fastopen_active_disable`.
    Meaning {
        counter: "TcpExtTCPFastOpenBlackhole",
        findings: &["FAST_OPEN"],
        grew: "its kernel has stopped using Fast Open because something on the way swallows it",
        stood: "",
        beside: &[],
    },
];

/// What `growth` says of `connection`, also as part of the findings it bears on.
pub(super) fn apply(
    source: usize,
    names: &str,
    growth: &Growth,
    connection: &mut Connection,
) -> Vec<Beside> {
    let mut told = Vec::new();
    for meaning in MEANINGS {
        let Some(by) = growth.by.get(meaning.counter) else { continue };
        let stood = || meaning.beside.iter().all(|other| growth.by.get(*other) == Some(&0));
        let said = match *by {
            0 if stood() => meaning.stood,
            0 => "",
            _ => meaning.grew,
        };
        let bears = connection.findings.iter().any(|each| meaning.is_of(each));
        if said.is_empty() || !bears {
            continue;
        }
        let text = match *by {
            0 => format!("{} did not grow: {said}", meaning.counter),
            by => {
                format!("{} grew by {}: {said}", meaning.counter, said::grouped(by.unsigned_abs()))
            }
        };
        told.push((meaning, *by, text));
    }
    for finding in &mut connection.findings {
        let own = told.iter().filter(|(meaning, ..)| meaning.is_of(finding));
        let texts: Vec<&str> = own.map(|(_, _, text)| text.as_str()).collect();
        if !texts.is_empty() {
            let end = if finding.why.ends_with('.') { "" } else { "." };
            let more = format!("{end} By the counters of {names}: {}.", texts.join("; "));
            finding.why.push_str(&more);
        }
    }
    let entry = |(_, by, text)| Beside {
        source: source as u64,
        side: "host".into(),
        quantity: "counters".into(),
        verdict: "measured".into(),
        measured: Some(by),
        text,
        ..Beside::default()
    };
    told.into_iter().map(entry).collect()
}

/// Whose host it was: the counters do not say, but a host that sent more than they grew by is not it.
pub(super) fn whose(growth: &Growth, connections: &[Connection]) -> String {
    let mut sent: BTreeMap<IpAddr, u64> = BTreeMap::new();
    for connection in connections {
        for (at, direction) in connection.present() {
            let ip = [connection.client, connection.server][at].ip().to_canonical();
            let all = sent.entry(ip).or_default();
            *all = all.saturating_add(direction.segments);
        }
    }
    let unknown = "whose host's counters these are is not in the file";
    // Repeats are counted apart (`__tcp_transmit_skb`, `__tcp_retransmit_skb` in `tcp_output.c`).
    let by = |name| growth.by.get(name).and_then(|by| u64::try_from(*by).ok());
    let grew = by("TcpOutSegs").and_then(|new| Some(new.saturating_add(by("TcpRetransSegs")?)));
    let Some(grew) = grew.filter(|_| growth.kind == Kind::Counts) else {
        return unknown.to_owned();
    };
    let others: Vec<String> = sent
        .iter()
        .filter(|(_, sent)| **sent > grew)
        .take(NAMED)
        .map(|(ip, sent)| format!("{ip} (sent {})", said::count(*sent, "segment")))
        .collect();
    if others.is_empty() {
        return format!("{unknown}, and by the count of segments they may be either side's");
    }
    format!(
        "{unknown}; not those of {}, for they grew by {} sent, or they are of a part of the time only",
        said::listed(&others),
        said::count(grew, "segment")
    )
}

/// Hosts named. Ours: more are not read.
const NAMED: usize = 3;

/// What grew that bears on TCP at all, for the account of the files.
pub(super) fn grown(growth: &Growth) -> Option<String> {
    let named: Vec<String> = MEANINGS
        .iter()
        .map(|meaning| meaning.counter)
        .chain(["TcpRetransSegs"])
        .filter_map(|name| {
            let by = growth.by.get(name).filter(|by| **by > 0)?;
            Some(format!("{name} by {}", said::grouped(by.unsigned_abs())))
        })
        .collect();
    (!named.is_empty())
        .then(|| format!("what grew: {} (all connections of that host)", said::listed(&named)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::evidence::Reading;
    use crate::find::doc;
    use crate::report::Direction;
    use crate::view::sample;

    #[test]
    fn every_finding_that_is_named_exists() {
        for code in MEANINGS.iter().flat_map(|meaning| meaning.findings) {
            assert!(doc::find(code).is_some(), "{code}");
        }
    }

    /// What is said of a SYN without an answer when its host's counters grew so.
    fn said(grew: &[(&str, i64)]) -> (String, Vec<Beside>) {
        let mut connection = sample::connection(0, "10.0.0.1:1", "10.0.0.2:2", 1_000);
        let why = "it was sent 3 times".to_owned();
        let code = "SYN_UNANSWERED".to_owned();
        connection.findings.push(Finding { code, why, ..Finding::default() });
        let by: Reading = grew.iter().map(|(name, by)| ((*name).to_owned(), *by)).collect();
        let told = apply(0, "n.txt", &Growth { by, ..Growth::default() }, &mut connection);
        (connection.findings[0].why.clone(), told)
    }

    #[test]
    fn a_counter_proves_one_cause_and_rules_out_another() {
        let (why, told) = said(&[("TcpExtListenOverflows", 12), ("TcpExtIPReversePathFilter", 0)]);
        assert_eq!(
            why,
            "it was sent 3 times. By the counters of n.txt: TcpExtListenOverflows grew by 12: an accept \
             queue was full: that program accepts too slowly, or its backlog is small; \
             TcpExtIPReversePathFilter did not grow: the reverse path filter dropped nothing."
        );
        assert_eq!(told.len(), 2);
    }

    /// The same of a random loss.
    fn said_of_loss(grew: &[(&str, i64)]) -> usize {
        let mut connection = sample::connection(0, "10.0.0.1:1", "10.0.0.2:2", 1_000);
        let code = "LOSS_RANDOM".to_owned();
        connection.findings.push(Finding { code, ..Finding::default() });
        let by: Reading = grew.iter().map(|(name, by)| ((*name).to_owned(), *by)).collect();
        apply(0, "n.txt", &Growth { by, ..Growth::default() }, &mut connection).len()
    }

    #[test]
    fn a_host_that_sent_more_than_was_counted_is_not_theirs() {
        let mut connection = sample::connection(0, "10.0.0.1:1", "10.0.0.2:2", 1_000);
        let sent = |segments| Some(Box::new(Direction { segments, ..Direction::default() }));
        connection.directions = [sent(40), sent(4_000)];
        let whose = |grew: i64| {
            let rows = [("TcpOutSegs", grew - 6), ("TcpRetransSegs", 6)];
            let by: Reading = rows.map(|(name, by)| (name.to_owned(), by)).into();
            whose(&Growth { by, ..Growth::default() }, &[connection.clone()])
        };
        assert!(whose(4_000).ends_with("they may be either side's"), "{}", whose(4_000));
        let text = whose(50);
        assert!(
            text.contains(
                "not those of 10.0.0.2 (sent 4,000 segments), for they grew by 50 segments"
            ),
            "{text}"
        );
    }

    #[test]
    fn one_counter_of_several_clears_nothing() {
        let drops: Vec<(&str, i64)> = DROPPED_FOR_MEMORY
            .iter()
            .chain(&["TcpExtTCPRcvQDrop"])
            .map(|name| (*name, 0))
            .collect();
        assert_eq!(said_of_loss(&drops), 1);
        assert_eq!(said_of_loss(&drops[1..]), 0, "out-of-order data may have been dropped");
        assert_eq!(said(&[("TcpExtTCPReqQFullDrop", 0)]).1, []);
    }

    #[test]
    fn a_counter_of_something_else_says_nothing() {
        assert_eq!(said(&[("TcpExtTCPTimeouts", 3), ("TcpInSegs", 9)]).1, []);
    }
}
