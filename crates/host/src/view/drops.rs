//! Packets that the kernel dropped, by its own reasons.

use crate::snapshot::Drops;
use tcpwhy_words::page::{Ink, Page, plain};
use tcpwhy_words::tied;

/// What reasons mean (`enum skb_drop_reason`, Linux v6.18 `include/net/dropreason-core.h`), and which check or counter has more.
/// Those of other protocols than TCP are shown by their names alone.
const MEANINGS: [(&str, &str); 46] = [
    ("NOT_SPECIFIED", "no reason given: the function tells"),
    ("NO_SOCKET", "nobody listens there, or the connection is gone"),
    ("SOCKET_CLOSE", "the socket was closed"),
    ("SOCKET_FILTER", "a filter of the socket"),
    ("SOCKET_RCVBUFF", "the socket's receive buffer was full"),
    ("SOCKET_BACKLOG", "a program held its socket for too long: SOCKET_BACKLOG_DROPS"),
    ("PROTO_MEM", "memory for TCP was short: TCP_MEMORY"),
    ("PKT_TOO_SMALL", "cut short"),
    ("PKT_TOO_BIG", "larger than the way on: PATH_MTU_BLACK_HOLE"),
    ("TCP_CSUM", "wrong checksum: PACKETS_REFUSED"),
    ("IP_CSUM", "wrong checksum of the IP header"),
    ("IP_RPFILTER", "reverse path filter: REVERSE_PATH_FILTER"),
    ("IP_INADDRERRORS", "not an address of this host, and it does not forward"),
    ("IP_INNOROUTES", "no route: NO_ROUTE"),
    ("IP_OUTNOROUTES", "no route: NO_ROUTE"),
    ("NETFILTER_DROP", "a rule of the firewall, or connection tracking: CONNTRACK_FULL"),
    ("SECURITY_HOOK", "a security module"),
    ("BPF_CGROUP_EGRESS", "a BPF program of a control group"),
    ("XDP", "an XDP program"),
    ("TC_INGRESS", "a filter at the interface (tc ingress, policer)"),
    ("TC_EGRESS", "a filter at the interface (tc egress)"),
    ("TCP_FLAGS", "flags that fit no state"),
    ("TCP_ABORT_ON_DATA", "data for a socket that nobody reads any more: ABORTED_CONNECTIONS"),
    ("TCP_ZEROWINDOW", "beyond a closed window: RECEIVE_QUEUE_FULL"),
    ("TCP_OLD_DATA", "data that had come before: harmless"),
    ("TCP_OVERWINDOW", "beyond the window: PACKETS_REFUSED"),
    ("TCP_OFOMERGE", "out of order and there already: harmless"),
    ("TCP_RFC7323_PAWS", "old timestamp: PACKETS_REFUSED"),
    ("TCP_RFC7323_PAWS_ACK", "old timestamp of an ACK: mostly harmless"),
    ("TCP_RFC7323_TSECR", "echo of a timestamp that was never sent"),
    ("TCP_LISTEN_OVERFLOW", "the accept queue was full: ACCEPT_QUEUE"),
    ("TCP_OLD_SEQUENCE", "sequence number long past"),
    ("TCP_INVALID_SEQUENCE", "sequence number beyond the window"),
    ("TCP_RESET", "a reset that ended its connection"),
    ("TCP_INVALID_SYN", "a SYN inside a connection"),
    ("TCP_CLOSE", "the connection was closed"),
    ("TCP_OLD_ACK", "an ACK of the past: harmless"),
    ("TCP_OFO_QUEUE_PRUNE", "no room out of order: RECEIVE_QUEUE_PRUNED"),
    ("TCP_OFO_DROP", "no memory out of order: RECEIVE_QUEUE_DROPS"),
    ("NEIGH_FAILED", "the next hop does not answer"),
    ("NEIGH_QUEUEFULL", "too many wait for the next hop's address: NEIGHBOUR_TABLE"),
    ("QDISC_DROP", "a queueing discipline was full: QDISC_DROPS"),
    ("QDISC_OVERLIMIT", "a queueing discipline was full: QDISC_DROPS"),
    ("CPU_BACKLOG", "a processor's backlog was full: BACKLOG_DROPS"),
    ("FULL_RING", "the ring of a virtual device was full: its reader is slow"),
    ("PFMEMALLOC", "memory of the host was short: RECLAIM"),
];

/// Reasons shown one by one.
const MOST: usize = 20;

/// Nothing if they were not looked for.
pub(super) fn drops(page: &mut Page, drops: &Drops) {
    let time = tied::time(i64::try_from(drops.over_ns).unwrap_or(i64::MAX));
    page.heading(&format!(
        "Packets that the kernel dropped in {time}, of all namespaces and protocols"
    ));
    if drops.by.is_empty() {
        page.wrapped(2, 4, &[plain("none")]);
    }
    for each in drops.by.iter().take(MOST) {
        let function =
            each.function.as_ref().map_or_else(String::new, |name| format!(" in {name}"));
        let meaning = MEANINGS.iter().find(|(reason, _)| *reason == each.reason);
        let meaning = meaning.map_or_else(String::new, |(_, meaning)| format!(": {meaning}"));
        page.wrapped(
            2,
            14,
            &[plain(count(each.packets) + &each.reason + &function), (Ink::Faint, meaning)],
        );
    }
    let rest = drops.by.iter().skip(MOST).map(|each| each.packets).fold(0, u64::saturating_add);
    if rest > 0 {
        page.wrapped(2, 14, &[plain(count(rest) + "for other reasons")]);
    }
    if drops.missed > 0 {
        page.wrapped(2, 4, &[plain(format!("{} more were not told apart", drops.missed))]);
    }
    if drops.cut {
        page.wrapped(2, 4, &[plain("There were so many that the count was ended early.")]);
    }
}

/// In a column of its own, which no line break divides.
fn count(packets: u64) -> String {
    format!("{packets:>8}  ").replace(' ', "\u{a0}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::snapshot::Dropped;

    #[test]
    fn they_are_told_with_their_meaning_and_where() {
        let dropped = |reason: &str, function: Option<&str>, packets| Dropped {
            reason: reason.to_owned(),
            function: function.map(str::to_owned),
            packets,
        };
        let many = (0..MOST as u64).map(|nth| dropped(&format!("OTHER_{nth}"), None, 5));
        let first = [
            dropped("TCP_LISTEN_OVERFLOW", Some("tcp_v4_syn_recv_sock"), 40_000),
            dropped("NOT_SPECIFIED", Some("tpacket_rcv"), 7),
        ];
        let by = first.into_iter().chain(many).collect();
        let mut page = Page::new(100, false);
        drops(&mut page, &Drops { over_ns: 10_000_000_000, by, missed: 3, cut: true });
        drops(&mut page, &Drops { over_ns: 1_000_000_000, ..Drops::default() });
        insta::assert_snapshot!(page.into_text());
    }
}
