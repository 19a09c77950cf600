//! The report as CSV: one row for each connection and direction that carried data.
//!
//! A connection without data has one row with an empty `direction`, so that none is lost. Format:
//! RFC 4180 (comma, CRLF, fields quoted when they need it), a header line first. Spans are
//! nanoseconds, rates bits per second, sizes bytes; **what is unknown is an empty field, never 0**.
//!
//! | columns | meaning |
//! |---|---|
//! | `provisional` | `true` while the input was still being read |
//! | `id`, `stream` | number in this report; Wireshark's `tcp.stream` where defined |
//! | `client`, `server` | addresses with ports, IPv6 in brackets; names where a listing prints names |
//! | `start`, `duration_ns` | capture time of the first packet; first to last captured packet |
//! | `part_from_ns`, `part_to_ns` | the part asked for by time, from the first packet; empty: all |
//! | `packets`, `first_frame`, `last_frame` | packets captured and where they stand in the input |
//! | `vantage`, `window_scaling`, `end`, `mss`, `handshake_rtt_ns` | as in the JSON |
//! | `failure`, `failure_waited_ns` | what did not work, as in the JSON; empty where it did |
//! | `direction` | `client_to_server` or `server_to_client` |
//! | `part_bytes` | new payload of the rounds that began in the part |
//! | `bytes`, `bytes_sent`, `segments`, `frames` | unique payload, payload with repeats, wire segments, data frames |
//! | `retransmitted_*` | retransmitted segments by cause; `spurious` are counted in a cause too |
//! | `lost`, `not_captured`, `zero_window`, `window_full`, `duplicate_ack`, `out_of_order` | events |
//! | `rtt_min_ns`, `rtt_median_ns`, `rtt_p95_ns` | round trip as the sender saw it |
//! | `max_in_flight_bytes`, `delivery_rate_median_bps`, `delivery_rate_max_bps`, `bottleneck_rate_bps`, `bdp_bytes` | flight and rates |
//! | `initial_window_segments`, `slow_start_exit_ns`, `slow_start_exit_cause`, `loss_pattern` | as in the JSON |
//! | `longest_state` | the state that held the most time |
//! | `time_in_*_ns` | time in each state, a column for each state there is; they add up to `duration_ns` |

use core::fmt::{self, Write as _};

use super::choose;
use crate::report::{
    Connection, Direction, End, FailureKind, Part, Report, State, Vantage, WindowScaling,
};

/// Columns of the connection.
const CONNECTION: [&str; 19] = [
    "provisional",
    "id",
    "stream",
    "client",
    "server",
    "start",
    "duration_ns",
    "part_from_ns",
    "part_to_ns",
    "packets",
    "first_frame",
    "last_frame",
    "vantage",
    "window_scaling",
    "end",
    "mss",
    "handshake_rtt_ns",
    "failure",
    "failure_waited_ns",
];

/// Columns of the direction; those of the states follow.
const DIRECTION: [&str; 31] = [
    "direction",
    "part_bytes",
    "bytes",
    "bytes_sent",
    "segments",
    "frames",
    "retransmitted_fast",
    "retransmitted_rto",
    "retransmitted_tlp",
    "retransmitted_spurious",
    "retransmitted_unnecessary",
    "retransmitted_syn",
    "lost",
    "not_captured",
    "zero_window",
    "window_full",
    "duplicate_ack",
    "out_of_order",
    "rtt_min_ns",
    "rtt_median_ns",
    "rtt_p95_ns",
    "max_in_flight_bytes",
    "delivery_rate_median_bps",
    "delivery_rate_max_bps",
    "bottleneck_rate_bps",
    "bdp_bytes",
    "initial_window_segments",
    "slow_start_exit_ns",
    "slow_start_exit_cause",
    "loss_pattern",
    "longest_state",
];

/// The names of all columns, in order.
pub fn columns() -> Vec<String> {
    let fixed = CONNECTION.into_iter().chain(DIRECTION).map(str::to_owned);
    let states = State::all().map(|state| format!("time_in_{}_ns", state.name().replace('.', "_")));
    fixed.chain(states).collect()
}

/// The whole report.
pub fn render(report: &Report) -> String {
    let mut out = Csv::default();
    for name in columns() {
        out.field(name);
    }
    out.end_row();
    for connection in &report.connections {
        let mut some = false;
        for (at, direction) in connection.present() {
            some = true;
            connection_fields(&mut out, report.provisional, connection);
            direction_fields(&mut out, connection.part, at, direction);
            out.end_row();
        }
        if !some {
            connection_fields(&mut out, report.provisional, connection);
            for _ in 0..DIRECTION.len() + State::COUNT {
                out.field("");
            }
            out.end_row();
        }
    }
    out.text
}

fn connection_fields(out: &mut Csv, provisional: bool, connection: &Connection) {
    out.field(provisional);
    out.field(connection.id);
    out.known(connection.stream);
    out.field(connection.client_shown());
    out.field(connection.server_shown());
    out.field(&connection.start);
    out.field(connection.duration_ns);
    out.known(connection.part.map(|part| part.from_ns));
    out.known(connection.part.map(|part| part.to_ns));
    out.field(connection.packets);
    out.field(connection.frames.first);
    out.field(connection.frames.last);
    out.field(match connection.vantage {
        Vantage::Client => "client",
        Vantage::Server => "server",
        Vantage::Middle => "middle",
        Vantage::Unknown => "unknown",
    });
    out.field(match connection.window_scaling {
        WindowScaling::Used => "used",
        WindowScaling::NotNegotiated => "not_negotiated",
        WindowScaling::HandshakeNotSeen => "handshake_not_seen",
    });
    out.field(match connection.end {
        End::Fin => "fin",
        End::Rst => "rst",
        End::Open => "open",
    });
    out.known(connection.mss);
    out.known(connection.handshake_rtt_ns);
    out.known(connection.failure.as_ref().map(|failure| match failure.kind {
        FailureKind::NoAnswer => "no_answer",
        FailureKind::Refused => "refused",
        FailureKind::RequestUnanswered => "request_unanswered",
        FailureKind::Found => "found",
    }));
    out.known(connection.failure.as_ref().map(|failure| failure.waited_ns));
}

fn direction_fields(out: &mut Csv, part: Option<Part>, at: usize, direction: &Direction) {
    let retransmitted = direction.retransmitted;
    let events = direction.events;
    out.field(if at == 0 { "client_to_server" } else { "server_to_client" });
    out.known(part.and_then(|part| part.bytes[at]));
    for number in [
        direction.bytes,
        direction.bytes_sent,
        direction.segments,
        direction.frames,
        retransmitted.fast,
        retransmitted.rto,
        retransmitted.tlp,
        retransmitted.spurious,
        retransmitted.unnecessary,
        retransmitted.syn,
        events.lost,
        events.not_captured,
        events.zero_window,
        events.window_full,
        events.duplicate_ack,
        events.out_of_order,
    ] {
        out.field(number);
    }
    out.known(direction.rtt.min_ns);
    out.known(direction.rtt.median_ns);
    out.known(direction.rtt.p95_ns);
    out.field(direction.max_in_flight_bytes);
    out.known(direction.delivery_rate_bps.map(|rate| rate.median));
    out.known(direction.delivery_rate_bps.map(|rate| rate.max));
    out.known(direction.bottleneck_rate_bps);
    out.known(direction.bdp_bytes);
    out.known(direction.initial_window.map(|window| window.segments));
    out.known(direction.slow_start_exit.as_ref().map(|exit| exit.at_ns));
    out.known(direction.slow_start_exit.as_ref().map(|exit| &exit.cause));
    out.known(direction.loss_pattern.as_ref().map(|pattern| &pattern.kind));
    out.known(choose::dominant(&direction.time_in).map(|row| row.0));
    for state in State::all() {
        out.field(direction.time_in.get(state).0);
    }
}

/// Rows under construction.
#[derive(Default)]
struct Csv {
    text: String,
    in_row: bool,
}

impl Csv {
    /// A field, quoted if it holds a comma, a quote or a line break (RFC 4180 §2).
    fn field(&mut self, value: impl fmt::Display) {
        if core::mem::replace(&mut self.in_row, true) {
            self.text.push(',');
        }
        let start = self.text.len();
        let _ = write!(self.text, "{value}");
        if self.text[start..].contains([',', '"', '\r', '\n']) {
            let quoted = format!("\"{}\"", self.text[start..].replace('"', "\"\""));
            self.text.truncate(start);
            self.text.push_str(&quoted);
        }
    }

    /// A field that is empty where the value is unknown.
    fn known<T: fmt::Display>(&mut self, value: Option<T>) {
        match value {
            Some(value) => self.field(value),
            None => self.field(""),
        }
    }

    fn end_row(&mut self) {
        self.text.push_str("\r\n");
        self.in_row = false;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_quoted_when_they_must_be() {
        let mut out = Csv::default();
        out.field("plain");
        out.field("a,b");
        out.field("say \"hi\"\n");
        out.known(None::<u64>);
        out.field("");
        out.end_row();
        assert_eq!(out.text, "plain,\"a,b\",\"say \"\"hi\"\"\n\",,\r\n");
    }

    #[test]
    fn every_column_has_its_own_name() {
        let mut names = columns();
        let number = names.len();
        names.sort();
        names.dedup();
        assert_eq!(names.len(), number);
    }
}
