//! Segments, as a second reading of the captures gives them.

use std::borrow::Cow;

use tcpwhy::session::Captured;
use tcpwhy::wire::Flags;

use crate::column::{Column, flag, int, text, texts, time};
use crate::whole::{OfConnection, Whole, count, keys};

/// A segment of a connection.
pub(crate) struct Row<'a> {
    pub(crate) whole: &'a Whole<'a>,
    pub(crate) captured: &'a Captured,
}

impl OfConnection for Row<'_> {
    fn whole(&self) -> &Whole<'_> {
        self.whole
    }
}

pub(crate) fn columns<'a>() -> Vec<Column<Row<'a>>> {
    let mut columns = keys();
    columns.extend([
        int("frame", "Its packet in the input.", |row: &Row<'_>| count(row.captured.frame)),
        text("sender", "Who sent it: client or server.", |row| {
            super::SENDERS.get(row.captured.side).map(|name| (*name).into())
        }),
        time("captured_time", "When it was captured; null where the input has no dates.", |row| {
            row.whole.at(row.captured.at_ns)
        }),
        int("at_ns", "The same since the connection's first packet.", |row| {
            Some(row.captured.at_ns)
        }),
        int(
            "seq",
            "Its sequence number, relative as in Wireshark: 0 of the SYN, 1 of the first byte, or of the first captured one without a SYN. It does not wrap.",
            |row| Some(row.captured.seq),
        ),
        int("ack", "What it acknowledges, in the same numbers of the peer; null without ACK.", |row| {
            row.captured.ack
        }),
        int("payload_bytes", "Payload on the wire.", |row| {
            Some(i64::from(row.captured.payload_len))
        }),
        text("flags", "Flags of its header: SYN ACK.", |row| Some(flags(row.captured.flags))),
        flag(
            "repeats",
            "Some of its payload is below what had passed: a retransmission, or it came late.",
            |row| (row.captured.payload_len > 0).then_some(row.captured.is_repeat),
        ),
    ]);
    columns.extend(windows());
    columns
}

fn windows<'a>() -> [Column<Row<'a>>; 6] {
    [
        int(
            "window_bytes",
            "The window that it announces, scaled where both SYNs were captured; null without them.",
            |row: &Row<'_>| row.captured.window.and_then(count),
        ),
        int("window_field", "The same as its header has it.", |row| {
            Some(i64::from(row.captured.window_field))
        }),
        int(
            "in_flight_bytes",
            "What its sender sent and had not been acknowledged behind it, as seen at the tap.",
            |row| count(row.captured.in_flight),
        ),
        int("peer_in_flight_bytes", "The same of its receiver's data.", |row| {
            count(row.captured.peer_in_flight)
        }),
        int(
            "rtt_ns",
            "From the tap to its sender and back, where it acknowledges data that passed once; else null.",
            |row| row.captured.rtt_ns,
        ),
        texts(
            "sacked",
            "Its SACK blocks, from the first number to the one behind the last: 1001-2001.",
            |row| {
                let blocks = row.captured.sacked.iter();
                blocks.map(|(from, to)| format!("{from}-{to}").into()).collect()
            },
        ),
    ]
}

/// Names of the flags that are set.
fn flags(flags: Flags) -> Cow<'static, str> {
    // Nearly all segments.
    match flags.0 {
        0x010 => "ACK".into(),
        0x018 => "PSH ACK".into(),
        _ => flags.names().collect::<Vec<_>>().join(" ").into(),
    }
}
