//! Connections.

use tcpwhy::report::{Direction, End, FailureKind, Names, Vantage, WindowScaling};

use crate::column::{Column, flag, int, text, time};
use crate::whole::{Whole, count, keys};

type Of<'a> = Column<Whole<'a>>;

pub(super) fn columns<'a>() -> Vec<Of<'a>> {
    let mut columns = keys();
    columns.extend(ends());
    columns.extend(names());
    columns.extend(times());
    columns.extend(terms());
    columns.extend(account());
    columns.extend(of_server());
    columns.extend(of_client());
    columns
}

fn ends<'a>() -> [Of<'a>; 6] {
    [
        int(
            "stream",
            "Wireshark's tcp.stream of the same file; null where that is not defined.",
            |row: &Whole<'_>| row.connection.stream.and_then(count),
        ),
        text("client_ip", "Address of who opened it.", |row| {
            Some(row.connection.client.ip().to_string().into())
        }),
        int("client_port", "Its port.", |row| Some(row.connection.client.port().into())),
        text("server_ip", "Address of the other end.", |row| {
            Some(row.connection.server.ip().to_string().into())
        }),
        int("server_port", "Its port.", |row| Some(row.connection.server.port().into())),
        text("vantage", "Where it was captured: client, server, middle or unknown.", |row| {
            Some(
                match row.connection.vantage {
                    Vantage::Client => "client",
                    Vantage::Server => "server",
                    Vantage::Middle => "middle",
                    Vantage::Unknown => "unknown",
                }
                .into(),
            )
        }),
    ]
}

/// What the capture tells of its names.
fn named<'a>(row: &'a Whole<'_>) -> Option<&'a Names> {
    row.connection.names.as_deref()
}

fn names<'a>() -> [Of<'a>; 5] {
    [
        text("client_name", "The client as a packet listing names it.", |row: &Whole<'_>| {
            row.connection.client_name.as_deref().map(Into::into)
        }),
        text("server_name", "The server's name: a listing's, SNI, DNS or HTTP's host.", |row| {
            let listed = row.connection.server_name.as_deref();
            listed.or_else(|| named(row)?.server.as_deref()).map(Into::into)
        }),
        text("service", "What the server's port is known for. It proves nothing.", |row| {
            named(row)?.service.as_deref().map(Into::into)
        }),
        text("tls_version", "The version of TLS that the server took.", |row| {
            named(row)?.tls_version.as_deref().map(Into::into)
        }),
        text("alpn", "The protocol that the server chose, where it is in clear.", |row| {
            named(row)?.alpn.as_deref().map(Into::into)
        }),
    ]
}

fn times<'a>() -> [Of<'a>; 6] {
    [
        time(
            "start_time",
            "Its first packet; null where the input has no dates.",
            |row: &Whole<'_>| row.start,
        ),
        text("start", "The same as the report has it; of listings a time of day.", |row| {
            Some((&*row.connection.start).into())
        }),
        int("duration_ns", "First to last captured packet.", |row| {
            Some(row.connection.duration_ns)
        }),
        int("active_ns", "In which somebody waited: without silence between requests.", |row| {
            Some(row.connection.active_ns())
        }),
        int("first_frame", "Its first packet in the input.", |row| {
            count(row.connection.frames.first)
        }),
        int("last_frame", "Its last packet in the input.", |row| count(row.connection.frames.last)),
    ]
}

fn terms<'a>() -> [Of<'a>; 6] {
    [
        int("handshake_rtt_ns", "Last SYN to the ACK of the SYN-ACK.", |row: &Whole<'_>| {
            row.connection.handshake_rtt_ns
        }),
        int("tap_to_client_rtt_ns", "Round trip between the tap and the client.", |row| {
            row.connection.tap_to_client_rtt_ns
        }),
        int("tap_to_server_rtt_ns", "Round trip between the tap and the server.", |row| {
            row.connection.tap_to_server_rtt_ns
        }),
        int("mss_bytes", "Payload of a full segment.", |row| row.connection.mss.map(i64::from)),
        flag("window_scaling", "Windows are scaled; null without the handshake.", |row| match row
            .connection
            .window_scaling
        {
            WindowScaling::Used => Some(true),
            WindowScaling::NotNegotiated => Some(false),
            WindowScaling::HandshakeNotSeen => None,
        }),
        text("ended_by", "fin, rst, or open where the capture ended first.", |row| {
            Some(
                match row.connection.end {
                    End::Fin => "fin",
                    End::Rst => "rst",
                    End::Open => "open",
                }
                .into(),
            )
        }),
    ]
}

/// A failure that no finding tells of.
const fn kind(kind: FailureKind) -> &'static str {
    match kind {
        FailureKind::NoAnswer => "no_answer",
        FailureKind::Refused => "refused",
        FailureKind::RequestUnanswered => "request_unanswered",
        FailureKind::Found => "found",
    }
}

fn account<'a>() -> [Of<'a>; 7] {
    [
        text(
            "answer",
            "What took the time, or what did not work, in a few sentences.",
            |row: &Whole<'_>| {
                Some((&*row.connection.answer).into())
                    .filter(|answer: &std::borrow::Cow<'_, str>| !answer.is_empty())
            },
        ),
        flag("failed", "It did not do what it was made for.", |row| {
            Some(row.connection.failure.is_some())
        }),
        text(
            "failure",
            "The finding that says what did not work, or the kind of failure; null where it did its work.",
            |row| {
                let failure = row.connection.failure.as_ref()?;
                Some(failure.code.as_deref().unwrap_or(kind(failure.kind)).into())
            },
        ),
        int("packets", "Packets captured of it, duplicates not counted.", |row| {
            count(row.connection.packets)
        }),
        int("retransmitted_segments", "Of both directions, opening included.", |row| {
            count(row.connection.retransmitted())
        }),
        flag("truncated", "Some of its lists were cut short to bound memory.", |row| {
            Some(row.connection.truncated)
        }),
        int("requests", "Requests of it.", |row| count(row.connection.exchanges.len() as u64)),
    ]
}

/// What one direction carried, from the client (0) or from the server (1).
fn side<'a>(row: &'a Whole<'_>, side: usize) -> Option<&'a Direction> {
    row.connection.directions[side].as_deref()
}

/// The same columns for each direction: the first argument is its place, the others the names.
macro_rules! of_side {
    ($side:literal, $bytes:literal, $segments:literal, $again:literal, $rtt:literal, $state:literal, $held:literal, $link:literal) => {
        [
            int(
                $bytes,
                "Payload of this side, each byte counted once; null without data.",
                |row: &Whole<'_>| count(side(row, $side)?.bytes),
            ),
            int($segments, "Segments on the wire.", |row| count(side(row, $side)?.segments)),
            int($again, "Retransmitted segments.", |row| {
                count(side(row, $side)?.retransmitted.total())
            }),
            int($rtt, "Median round trip as this sender saw it.", |row| {
                side(row, $side)?.rtt.median_ns
            }),
            text($state, "What held this sender longest, silence left out.", |row| {
                busiest(side(row, $side)?).map(|most| most.0.into())
            }),
            int($held, "For how long that did.", |row| {
                busiest(side(row, $side)?).map(|most| most.1)
            }),
            int(
                $link,
                "Rate of the narrowest link, headers included; null where no packets show it.",
                |row| count(side(row, $side)?.link.as_ref()?.rate_bps.best),
            ),
        ]
    };
}

fn busiest(direction: &Direction) -> Option<(&'static str, i64)> {
    let ranked = direction.time_in.ranked();
    let most = ranked.iter().find(|(state, _)| !state.is_silence())?;
    Some((most.0.name(), most.1.0))
}

fn of_client<'a>() -> [Of<'a>; 7] {
    of_side!(
        0,
        "client_bytes",
        "client_segments",
        "client_retransmitted_segments",
        "client_rtt_median_ns",
        "client_state",
        "client_state_ns",
        "client_link_rate_bps"
    )
}

fn of_server<'a>() -> [Of<'a>; 7] {
    of_side!(
        1,
        "server_bytes",
        "server_segments",
        "server_retransmitted_segments",
        "server_rtt_median_ns",
        "server_state",
        "server_state_ns",
        "server_link_rate_bps"
    )
}
