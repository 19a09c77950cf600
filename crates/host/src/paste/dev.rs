//! `/proc/net/dev`: what passed through each interface.
//!
//! The kernel adds some counters up (v6.12 `net/core/net-procfs.c`, `dev_seq_printf_stats`): `drop` is what was dropped
//! and what the ring missed, `frame` four kinds of broken frames.

use super::Taken;
use super::collected::{Collected, Counted};
use super::command::is_device;

/// `Inter-|   Receive   |  Transmit`, and the names of the columns below.
pub(super) fn head(text: &str) -> bool {
    let mut parts = text.split('|').map(str::trim);
    match parts.next() {
        Some("Inter-") => parts.next() == Some("Receive"),
        Some("face") => parts.next().is_some_and(|columns| columns.starts_with("bytes")),
        _ => false,
    }
}

/// `eth0: 8123441231 5612312 0 12 0 0 0 1211 1231231231 1212121 0 0 0 0 0 0`, in old texts without the first blank.
pub(super) fn row(text: &str, collected: &mut Collected) -> Option<Taken> {
    let (name, rest) = text.split_once(':')?;
    let numbers: Option<Vec<u64>> = rest.split_whitespace().map(|word| word.parse().ok()).collect();
    let numbers = numbers.filter(|numbers| numbers.len() == COLUMNS.len() && is_device(name))?;
    collected.link(name);
    let counted: Counted = COLUMNS
        .iter()
        .zip(numbers)
        .filter(|(counter, _)| !counter.is_empty())
        .map(|(counter, number)| ((*counter).to_owned(), number))
        .collect();
    let now = collected.now;
    collected.link_counts.entry(name.to_owned()).or_default().push(now, counted);
    Some(Taken::Read)
}

/// The kernel's counters; compressed packets are nothing of today.
const COLUMNS: [&str; 16] = [
    "rx_bytes",
    "rx_packets",
    "rx_errors",
    "rx_dropped+rx_missed_errors",
    "rx_fifo_errors",
    "rx_length_errors+rx_over_errors+rx_crc_errors+rx_frame_errors",
    "",
    "",
    "tx_bytes",
    "tx_packets",
    "tx_errors",
    "tx_dropped",
    "tx_fifo_errors",
    "",
    "tx_carrier_errors+tx_aborted_errors+tx_window_errors+tx_heartbeat_errors",
    "",
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_below_the_head_are_interfaces() {
        let mut collected = Collected::default();
        assert!(head("Inter-|   Receive                    |  Transmit"));
        assert!(head("face |bytes    packets errs drop fifo frame compressed multicast|bytes"));
        let text = "eth0: 8123441231 5612312 3 12 0 3 0 1211 1231231231 1212121 0 7 0 0 0 0";
        assert_eq!(row(text, &mut collected), Some(Taken::Read));
        let counts =
            collected.link_counts.get_mut("eth0").expect("it").last().expect("a reading").clone();
        assert_eq!(
            (counts["rx_errors"], counts["tx_dropped"], counts["tx_packets"]),
            (3, 7, 1_212_121)
        );
        for other in ["eth0: 1 2 3", "a b: 1", "Tcp: 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15"] {
            assert_eq!(row(other, &mut collected), None, "{other}");
        }
    }
}
