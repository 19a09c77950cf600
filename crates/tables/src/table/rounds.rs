//! Round trips of data.

use tcpwhy::report::Round;

use crate::column::{Column, int, text, time};
use crate::whole::{OfConnection, Whole, count, keys};

/// A round of one direction.
pub(super) struct Row<'a> {
    whole: &'a Whole<'a>,
    sender: &'static str,
    number: usize,
    round: &'a Round,
}

impl OfConnection for Row<'_> {
    fn whole(&self) -> &Whole<'_> {
        self.whole
    }
}

pub(super) fn rows<'a>(all: &'a [Whole<'a>]) -> Vec<Row<'a>> {
    let of = |whole: &'a Whole<'a>| {
        whole.connection.present().flat_map(move |(side, direction)| {
            let sender = super::SENDERS[side];
            let numbered = direction.rounds.iter().enumerate();
            numbered.map(move |(number, round)| Row { whole, sender, number, round })
        })
    };
    all.iter().flat_map(of).collect()
}

pub(super) fn columns<'a>() -> Vec<Column<Row<'a>>> {
    let mut columns = keys();
    columns.extend([
        text("sender", "Whose data it is of: client or server.", |row: &Row<'_>| {
            Some(row.sender.into())
        }),
        int("round", "Its number in its direction, from 0.", |row| count(row.number as u64)),
        time("start_time", "Its first send; null where the input has no dates.", |row| {
            row.whole.at(row.round.start_ns)
        }),
        int("start_ns", "Its first send.", |row| Some(row.round.start_ns)),
        int("rtt_ns", "The round-trip time measured in it.", |row| row.round.rtt_ns),
        int("payload_bytes", "New payload first sent in it.", |row| count(row.round.bytes)),
        int("payload_segments", "The same in segments.", |row| count(row.round.segments)),
        text("limited_by", "What held the sender after its last send.", |row| {
            Some(row.round.limited_by.name().into())
        }),
        int("in_flight_bytes", "In flight after its last send.", |row| {
            count(row.round.in_flight_bytes)
        }),
        int("window_room_bytes", "What was left then of the receiver's window.", |row| {
            row.round.window_room_bytes
        }),
    ]);
    columns.extend(windows());
    columns
}

fn windows<'a>() -> [Column<Row<'a>>; 7] {
    [
        int("cwnd_low_segments", "The congestion window is not less.", |row: &Row<'_>| {
            row.round.cwnd.low.and_then(count)
        }),
        int("cwnd_segments", "The congestion window, best estimate.", |row| {
            row.round.cwnd.best.and_then(count)
        }),
        int("cwnd_high_segments", "The congestion window is not more.", |row| {
            row.round.cwnd.high.and_then(count)
        }),
        int("delivery_rate_bps", "Bytes acknowledged in it by its length.", |row| {
            row.round.delivery_rate_bps.and_then(count)
        }),
        int("bdp_bytes", "That rate times the connection's least round trip.", |row| {
            row.round.bdp_bytes.and_then(count)
        }),
        int("first_frame", "The frame of its first send.", |row| count(row.round.frames.first)),
        int("last_frame", "The frame of its last send.", |row| count(row.round.frames.last)),
    ]
}
