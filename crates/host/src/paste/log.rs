//! The kernel's log: `dmesg`, `journalctl -k`, `/var/log/messages`.
//!
//! ```text
//! [12345.678901] TCP: request_sock_TCP: Possible SYN flooding on port 80. Sending cookies.
//! Nov 23 08:42:01 web-1 kernel: nf_conntrack: nf_conntrack: table full, dropping packet
//! ```
//!
//! A line counts only where the kernel's words begin behind its stamp, or begin the line: that somebody writes
//! of them says nothing of this host. What else the log says is passed over.
//!
//! The words are those of Linux v4.18 to v6.18: `tcp_syn_flood_action` (`net/ipv4/tcp_input.c`), `__nf_conntrack_alloc`
//! (`net/netfilter/nf_conntrack_core.c`), `tcp_check_oom` (`net/ipv4/tcp.c`), `dev_watchdog` (`net/sched/sch_generic.c`),
//! `neigh_alloc` (`net/core/neighbour.c`; `arp_bind_neighbour` and `ndisc` before 3.17).

use super::collected::Collected;
use super::command::is_device;
use crate::snapshot::{Event, Said};

/// Takes down a line of the log that a check knows; false for others.
pub(super) fn line(text: &str, collected: &mut Collected) -> bool {
    let Some((event, of)) = event(message(text).unwrap_or(text)) else { return false };
    let last = text.chars().take(LONGEST).collect();
    let same = |said: &&mut Said| said.event == event && said.of == of;
    if let Some(said) = collected.said.iter_mut().find(same) {
        (said.lines, said.last) = (said.lines + 1, last);
    } else if collected.said.len() < MOST {
        collected.said.push(Said { event, of, lines: 1, last });
    }
    true
}

/// Whether a line is one of the log, whatever it says.
pub(super) fn is_of_log(text: &str) -> bool {
    message(text).is_some()
}

/// What is behind the stamp of a line: `[    1.234567] `, `[Mon Nov 23 08:42:01 2026] `, or a date, a host
/// and `kernel: `.
fn message(text: &str) -> Option<&str> {
    let behind = text.split_once(" kernel: ").filter(|(before, _)| is_stamp(before));
    let text = behind.map_or(text, |(_, behind)| behind);
    let in_brackets = || {
        let end = text.strip_prefix('[')?.find("] ")?;
        let stamp = text.get(1..=end)?.trim();
        let is_since_start = stamp.contains('.') && stamp.starts_with(|c: char| c.is_ascii_digit());
        (is_since_start || stamp.contains(':')).then(|| text.get(end + 3..))?
    };
    in_brackets().map(str::trim_start).or_else(|| behind.map(|_| text))
}

/// A date and a host, or the facility and level that `dmesg -x` prints.
fn is_stamp(text: &str) -> bool {
    let words = text.split_whitespace().count();
    (2..=5).contains(&words) && text.contains(|c: char| c.is_ascii_digit()) && text.contains(':')
}

fn event(message: &str) -> Option<(Event, Option<String>)> {
    if let Some((proto, rest)) = message.split_once("Possible SYN flooding on port ") {
        // `80. `, `0.0.0.0:80. ` or `[::]:80. `.
        let (end, _) = rest.split_once(". ")?;
        let port = end.rsplit(':').next().unwrap_or(end);
        let port: u16 = port.parse().ok()?;
        return is_of_tcp(proto).then(|| (Event::SynQueueFull, Some(format!("port {port}"))));
    }
    if let Some((before, rest)) = message.split_once("table full") {
        let is_conntrack = matches!(
            before.trim_end(),
            "nf_conntrack:" | "nf_conntrack: nf_conntrack:" | "ip_conntrack:"
        );
        let netns = rest.strip_prefix(" in netns ").and_then(|rest| rest.split(',').next());
        let of = netns.filter(|netns| netns.bytes().all(|byte| byte.is_ascii_digit()));
        return (is_conntrack && rest.contains("dropping packet"))
            .then(|| (Event::ConntrackFull, of.map(|netns| format!("netns {netns}"))));
    }
    match message {
        "TCP: out of memory -- consider tuning tcp_mem" => {
            return Some((Event::TcpOutOfMemory, None));
        }
        "TCP: too many orphaned sockets" => return Some((Event::TooManyOrphans, None)),
        "Neighbour table overflow." | "ipv4: Neighbour table overflow." => {
            return Some((Event::NeighboursFull, Some("arp_cache".to_owned())));
        }
        "ipv6: Neighbour table overflow." => {
            return Some((Event::NeighboursFull, Some("ndisc_cache".to_owned())));
        }
        _ => {}
    }
    if let Some(table) = message
        .strip_prefix("neighbour: ")
        .and_then(|rest| rest.strip_suffix(": neighbor table overflow!"))
    {
        return is_device(table).then(|| (Event::NeighboursFull, Some(table.to_owned())));
    }
    queue_timeout(message)
}

/// What is before the words about SYNs: `TCP: request_sock_TCP: `, `TCP: request_sock_TCPv6: `, `TCP: `.
fn is_of_tcp(before: &str) -> bool {
    matches!(
        before.trim_end(),
        "TCP:"
            | "TCP: TCP:"
            | "TCP: request_sock_TCP:"
            | "TCP: request_sock_TCPv6:"
            | "request_sock_TCP:"
            | ""
    )
}

/// `NETDEV WATCHDOG: eth0 (igb): transmit queue 3 timed out`, and since 6.5 `igb 0000:01:00.0 eth0: NETDEV WATCHDOG:
/// CPU: 3: transmit queue 3 timed out 5000 ms`.
fn queue_timeout(message: &str) -> Option<(Event, Option<String>)> {
    let (before, rest) = message.split_once("NETDEV WATCHDOG: ")?;
    if !rest.contains(" timed out") {
        return None;
    }
    let dev = if before.is_empty() {
        rest.split([' ', ':']).next()?
    } else {
        before.trim_end().strip_suffix(':')?.rsplit(' ').next()?
    };
    is_device(dev).then(|| (Event::QueueTimeout, Some(dev.to_owned())))
}

/// The most that is kept of a line, and of things that the log told of. Ours: for people to read.
const LONGEST: usize = 160;
const MOST: usize = 100;

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Option<(Event, Option<String>)> {
        event(message(text).unwrap_or(text))
    }

    #[test]
    fn the_kernel_s_words_are_known_behind_every_stamp() {
        let full = Some((Event::ConntrackFull, None));
        for stamp in [
            "",
            "[    5.123456] ",
            "[12345.678901] ",
            "[Mon Nov 23 08:42:01 2026] ",
            "Nov 23 08:42:01 web-1 kernel: ",
            "Nov 23 08:42:01 web-1 kernel: [12345.678901] ",
            "2026-11-23T08:42:01.123456+00:00 web-1 kernel: ",
        ] {
            let line = format!("{stamp}nf_conntrack: nf_conntrack: table full, dropping packet");
            assert_eq!(read(&line), full, "{line}");
        }
    }

    #[test]
    fn each_event_is_told_with_whose_it_is() {
        use Event as E;
        for (line, event, of) in [
            (
                "TCP: request_sock_TCP: Possible SYN flooding on port 80. Sending cookies.  Check SNMP counters.",
                E::SynQueueFull,
                Some("port 80"),
            ),
            (
                "TCP: request_sock_TCP: Possible SYN flooding on port [::]:443. Sending cookies.",
                E::SynQueueFull,
                Some("port 443"),
            ),
            (
                "TCP: request_sock_TCP: Possible SYN flooding on port 0.0.0.0:8080. Dropping request.",
                E::SynQueueFull,
                Some("port 8080"),
            ),
            ("nf_conntrack: table full, dropping packet", E::ConntrackFull, None),
            (
                "nf_conntrack: table full in netns 4026532180, dropping packet",
                E::ConntrackFull,
                Some("netns 4026532180"),
            ),
            ("TCP: out of memory -- consider tuning tcp_mem", E::TcpOutOfMemory, None),
            ("TCP: too many orphaned sockets", E::TooManyOrphans, None),
            (
                "NETDEV WATCHDOG: eth0 (e1000e): transmit queue 0 timed out",
                E::QueueTimeout,
                Some("eth0"),
            ),
            (
                "igb 0000:01:00.0 eth1: NETDEV WATCHDOG: CPU: 3: transmit queue 3 timed out 5000 ms",
                E::QueueTimeout,
                Some("eth1"),
            ),
            (
                "neighbour: arp_cache: neighbor table overflow!",
                E::NeighboursFull,
                Some("arp_cache"),
            ),
            ("Neighbour table overflow.", E::NeighboursFull, Some("arp_cache")),
        ] {
            assert_eq!(read(line), Some((event, of.map(str::to_owned))), "{line}");
        }
    }

    #[test]
    fn what_people_write_of_it_and_other_lines_are_not_the_kernel_s() {
        for line in [
            "We never saw nf_conntrack: table full, dropping packet in dmesg",
            "there is no 'TCP: out of memory -- consider tuning tcp_mem' here",
            "I looked for Possible SYN flooding on port 80. Nothing.",
            "[12345.678901] igb 0000:01:00.0 eth1: NIC Link is Up 1000 Mbps",
            "[12345.678901] NETDEV WATCHDOG: unavailable",
            "route table full, dropping packet",
        ] {
            assert_eq!(read(line), None, "{line}");
        }
        assert!(is_of_log("[12345.678901] igb 0000:01:00.0 eth1: NIC Link is Up"));
        assert!(!is_of_log("[root@web-1 ~]# dmesg") && !is_of_log("tcp: the kernel: it is slow"));
    }
}
