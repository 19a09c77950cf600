//! `netstat -s`: counters in sentences, and the names that the kernel gives them.
//!
//! Sentences changed with the versions of net-tools, and newer counters are printed by their names
//! (`TCPTimeouts: 6`). Each sentence here is of net-tools 1.60 or 2.10 (`statistics.c`, `Tcptab` and
//! `Tcpexttab`); where both differ both stand. A full stop at the end is left out. What is zero is mostly not
//! printed.

use super::Line;
use super::collected::Collected;
use super::collected::Form;

/// Heads of the groups, and whether their lines are wanted.
const GROUPS: [(&str, bool); 14] = [
    ("Ip:", true),
    ("Ip6:", false),
    ("Icmp:", false),
    ("Icmp6:", false),
    ("IcmpMsg:", false),
    ("Icmp6Msg:", false),
    ("Tcp:", true),
    ("Udp:", true),
    ("Udp6:", false),
    ("UdpLite:", false),
    ("UdpLite6:", false),
    ("TcpExt:", true),
    ("IpExt:", true),
    ("MPTcpExt:", true),
];

/// The group whose head this line is.
pub(super) fn group(line: Line<'_>) -> Option<&'static str> {
    GROUPS.iter().map(|(head, _)| *head).find(|head| *head == line.text)
}

/// A sentence of a group; without a group, one that only a group of TCP has.
pub(super) fn line(text: &str, group: Option<&str>, collected: &mut Collected) -> bool {
    if GROUPS.iter().any(|(head, wanted)| group == Some(*head) && !wanted) {
        return text.contains(|c: char| c.is_ascii_digit()) || text.ends_with("histogram:");
    }
    if let Some((name, value)) = named(text) {
        let group = match group {
            Some(head) => head.trim_end_matches(':'),
            None if IP_EXT.contains(&name) => "IpExt",
            None if name.starts_with("TCP")
                || name.starts_with("Tcp")
                || TCP_EXT.contains(&name) =>
            {
                "TcpExt"
            }
            None => return false,
        };
        collected.count(Form::Sentences, group, name, value);
        return true;
    }
    let text = text.trim_end_matches('.');
    let Some((table_group, name, value)) = sentence(text, group) else {
        return matches!(text, "Forwarding is enabled" | "Forwarding is disabled");
    };
    // `Forwarding: 2` aside, an empty name is a sentence that is known and not wanted.
    if !name.is_empty() {
        collected.count(Form::Sentences, table_group, name, value);
    }
    true
}

/// `TCPLossProbes: 13`.
fn named(text: &str) -> Option<(&str, i64)> {
    let (name, value) = text.split_once(": ")?;
    let plain = !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_alphanumeric());
    plain.then_some(())?;
    Some((name, value.trim().parse().ok()?))
}

fn sentence(text: &str, group: Option<&str>) -> Option<(&'static str, &'static str, i64)> {
    let is_of = |table_group: &str| match group {
        Some(head) => head.trim_end_matches(':') == table_group,
        None => matches!(table_group, "Tcp" | "TcpExt"),
    };
    SENTENCES.iter().filter(|(table_group, _)| is_of(table_group)).find_map(|(group, all)| {
        all.iter().find_map(|(name, pattern)| {
            let (before, after) = pattern.split_once('%')?;
            let number = text.strip_prefix(before)?.strip_suffix(after)?;
            Some((*group, *name, number.parse().ok()?))
        })
    })
}

/// Names without a sentence that do not begin with TCP: v6.12 `net/ipv4/proc.c`, `snmp4_net_list`.
const TCP_EXT: [&str; 13] = [
    "ArpFilter",
    "IPReversePathFilter",
    "PFMemallocDrop",
    "BusyPollRxPackets",
    "BeyondWindow",
    "TSEcrRejected",
    "PAWSOldAck",
    "PAWSTimewait",
    "TWKilled",
    "ListenOverflows",
    "ListenDrops",
    "OfoPruned",
    "RcvPruned",
];

/// v6.12 `net/ipv4/proc.c`, `snmp4_ipextstats_list`.
const IP_EXT: [&str; 18] = [
    "InNoRoutes",
    "InTruncatedPkts",
    "InMcastPkts",
    "OutMcastPkts",
    "InBcastPkts",
    "OutBcastPkts",
    "InOctets",
    "OutOctets",
    "InMcastOctets",
    "OutMcastOctets",
    "InBcastOctets",
    "OutBcastOctets",
    "InCsumErrors",
    "InNoECTPkts",
    "InECT1Pkts",
    "InECT0Pkts",
    "InCEPkts",
    "ReasmOverlaps",
];

type Sentences = &'static [(&'static str, &'static str)];

/// By group: the kernel's name, and the sentence with `%` for the number.
const SENTENCES: [(&str, Sentences); 4] =
    [("Ip", IP), ("Tcp", TCP), ("TcpExt", TCP_EXT_SENTENCES), ("Udp", UDP)];

const IP: Sentences = &[
    ("InReceives", "% total packets received"),
    ("InHdrErrors", "% with invalid headers"),
    ("InAddrErrors", "% with invalid addresses"),
    ("InUnknownProtos", "% with unknown protocol"),
    ("ForwDatagrams", "% forwarded"),
    ("InDiscards", "% incoming packets discarded"),
    ("InDelivers", "% incoming packets delivered"),
    ("OutRequests", "% requests sent out"),
    ("OutDiscards", "% outgoing packets dropped"),
    ("OutNoRoutes", "% dropped because of missing route"),
    ("ReasmTimeout", "% fragments dropped after timeout"),
    ("ReasmReqds", "% reassemblies required"),
    ("ReasmOKs", "% packets reassembled ok"),
    ("ReasmFails", "% packet reassembles failed"),
    ("ReasmFails", "% packet reassemblies failed"),
    ("FragCreates", "% fragments created"),
    // Of two versions one says `received` of what was sent; neither is wanted.
    ("", "% fragments received ok"),
    ("", "% outgoing packets fragmented ok"),
    ("", "% fragments failed"),
    ("", "% outgoing packets failed fragmentation"),
    ("DefaultTTL", "Default TTL is %"),
];

const TCP: Sentences = &[
    ("ActiveOpens", "% active connection openings"),
    ("ActiveOpens", "% active connections openings"),
    ("PassiveOpens", "% passive connection openings"),
    ("AttemptFails", "% failed connection attempts"),
    ("EstabResets", "% connection resets received"),
    ("CurrEstab", "% connections established"),
    ("InSegs", "% segments received"),
    ("OutSegs", "% segments sent out"),
    ("OutSegs", "% segments send out"),
    ("RetransSegs", "% segments retransmitted"),
    ("RetransSegs", "% segments retransmited"),
    ("InErrs", "% bad segments received"),
    ("OutRsts", "% resets sent"),
];

const UDP: Sentences = &[
    ("InDatagrams", "% packets received"),
    ("NoPorts", "% packets to unknown port received"),
    ("InErrors", "% packet receive errors"),
    ("OutDatagrams", "% packets sent"),
    ("RcvbufErrors", "% receive buffer errors"),
    ("SndbufErrors", "% send buffer errors"),
];

const TCP_EXT_SENTENCES: Sentences = &[
    ("SyncookiesSent", "% SYN cookies sent"),
    ("SyncookiesRecv", "% SYN cookies received"),
    ("SyncookiesFailed", "% invalid SYN cookies received"),
    ("EmbryonicRsts", "% resets received for embryonic SYN_RECV sockets"),
    ("PruneCalled", "% packets pruned from receive queue because of socket buffer overrun"),
    ("RcvPruned", "% packets pruned from receive queue"),
    ("OfoPruned", "% packets dropped from out-of-order queue because of socket buffer overrun"),
    ("OutOfWindowIcmps", "% ICMP packets dropped because they were out-of-window"),
    ("LockDroppedIcmps", "% ICMP packets dropped because socket was locked"),
    ("TW", "% TCP sockets finished time wait in fast timer"),
    ("TWRecycled", "% time wait sockets recycled by time stamp"),
    ("TWKilled", "% TCP sockets finished time wait in slow timer"),
    ("PAWSPassive", "% passive connections rejected because of time stamp"),
    ("PAWSActive", "% active connections rejected because of time stamp"),
    ("PAWSEstab", "% packets rejected in established connections because of timestamp"),
    ("PAWSEstab", "% packetes rejected in established connections because of timestamp"),
    ("PAWSEstab", "% packets rejects in established connections because of timestamp"),
    ("DelayedACKs", "% delayed acks sent"),
    ("DelayedACKLocked", "% delayed acks further delayed because of locked socket"),
    ("DelayedACKLost", "Quick ack mode was activated % times"),
    ("ListenOverflows", "% times the listen queue of a socket overflowed"),
    ("ListenDrops", "% SYNs to LISTEN sockets dropped"),
    ("ListenDrops", "% SYNs to LISTEN sockets ignored"),
    ("TCPPrequeued", "% packets directly queued to recvmsg prequeue"),
    ("TCPPrequeueDropped", "% packets dropped from prequeue"),
    ("TCPHPHits", "% packet headers predicted"),
    ("TCPHPHits", "% packets header predicted"),
    ("TCPHPHitsToUser", "% packet headers predicted and directly queued to user"),
    ("TCPHPHitsToUser", "% packets header predicted and directly queued to user"),
    ("SockMallocOOM", "Ran % times out of system memory during packet sending"),
    ("TCPPureAcks", "% acknowledgments not containing data payload received"),
    ("TCPPureAcks", "% acknowledgments not containing data received"),
    ("TCPHPAcks", "% predicted acknowledgments"),
    ("TCPRenoRecovery", "% times recovered from packet loss due to fast retransmit"),
    ("TCPSackRecovery", "% times recovered from packet loss due to SACK data"),
    ("TCPSackRecovery", "% times recovered from packet loss by selective acknowledgements"),
    ("TCPSACKReneging", "% bad SACKs received"),
    ("TCPSACKReneging", "% bad SACK blocks received"),
    ("TCPFACKReorder", "Detected reordering % times using FACK"),
    ("TCPSACKReorder", "Detected reordering % times using SACK"),
    ("TCPTSReorder", "Detected reordering % times using time stamp"),
    ("TCPRenoReorder", "Detected reordering % times using reno fast retransmit"),
    ("TCPFullUndo", "% congestion windows fully recovered"),
    ("TCPFullUndo", "% congestion windows fully recovered without slow start"),
    ("TCPPartialUndo", "% congestion windows partially recovered using Hoe heuristic"),
    ("TCPDSACKUndo", "% congestion window recovered using DSACK"),
    ("TCPDSACKUndo", "% congestion window recovered without slow start using DSACK"),
    ("TCPDSACKUndo", "% congestion windows recovered without slow start by DSACK"),
    ("TCPLossUndo", "% congestion windows recovered after partial ack"),
    ("TCPLossUndo", "% congestion windows recovered without slow start after partial ack"),
    ("TCPLoss", "% TCP data loss events"),
    ("TCPLostRetransmit", "% retransmits lost"),
    ("TCPRenoFailures", "% timeouts after reno fast retransmit"),
    ("TCPSackFailures", "% timeouts after SACK recovery"),
    ("TCPLossFailures", "% timeouts in loss state"),
    ("TCPFastRetrans", "% fast retransmits"),
    ("TCPForwardRetrans", "% forward retransmits"),
    ("TCPSlowStartRetrans", "% retransmits in slow start"),
    ("TCPTimeouts", "% other TCP timeouts"),
    ("TCPRenoRecoveryFail", "% reno fast retransmits failed"),
    ("TCPRenoRecoveryFail", "% classic Reno fast retransmits failed"),
    ("TCPSackRecoveryFail", "% sack retransmits failed"),
    ("TCPSackRecoveryFail", "% SACK retransmits failed"),
    ("TCPSchedulerFailed", "% times receiver scheduled too late for direct processing"),
    ("TCPRcvCollapsed", "% packets collapsed in receive queue due to low socket buffer"),
    ("TCPDSACKOldSent", "% DSACKs sent for old packets"),
    ("TCPDSACKOfoSent", "% DSACKs sent for out of order packets"),
    ("TCPDSACKRecv", "% DSACKs received"),
    ("TCPDSACKOfoRecv", "% DSACKs for out of order packets received"),
    ("TCPAbortOnSyn", "% connections reset due to unexpected SYN"),
    ("TCPAbortOnData", "% connections reset due to unexpected data"),
    ("TCPAbortOnClose", "% connections reset due to early user close"),
    ("TCPAbortOnMemory", "% connections aborted due to memory pressure"),
    ("TCPAbortOnTimeout", "% connections aborted due to timeout"),
    ("TCPAbortOnLinger", "% connections aborted after user close in linger timeout"),
    ("TCPAbortFailed", "% times unable to send RST due to no memory"),
    ("TCPMemoryPressures", "TCP ran low on memory % times"),
    // Of the prequeue, which left with Linux 4.14.
    ("", "% packets directly received from backlog"),
    ("", "% packets directly received from prequeue"),
    ("", "% bytes directly in process context from backlog"),
    ("", "% bytes directly received in process context from prequeue"),
    ("", "% of bytes directly received from backlog"),
    ("", "% of bytes directly received from prequeue"),
];
