//! Waits of a connection, each looked up in the system calls of its host.
//!
//! Looked up are the waits that a program can cause: the receiver's window full or shut (the program that
//! reads), a silent application (the program that writes or thinks), and round trips that stand out. The
//! longest come first; those shorter than what the clocks' alignment may be off are left out, for the
//! calls of another moment would be blamed.

use std::fmt::Write as _;

use crate::report::{Beside, Connection, State};
use tcpwhy_words::said;
use tcpwhy_words::units::Time;

use super::align::{self, Offset};
use super::explain::{self, gaps, median, stands_out};
use tcpwhy_words::printed::calls::{Calls, Clock, Socket};

/// Waits looked up for a connection. Ours: more are not read.
const LOOKED_UP: usize = 6;
/// Ours: nobody asks for the reason of less.
const SHORTEST_NS: i64 = 1_000_000;

/// What the trace says of `connection`, whose side `side` has its socket `socket`.
pub(super) fn apply(
    source: usize,
    trace: &Calls,
    socket: u32,
    connection: &Connection,
    side: usize,
) -> Vec<Beside> {
    let who = ["client", "server"][side];
    let entry = |quantity: &'static str, verdict: &'static str, text: String| Beside {
        source: source as u64,
        side: who.into(),
        quantity: quantity.into(),
        verdict: verdict.into(),
        text,
        ..Beside::default()
    };
    let offset = match align::align(trace, socket, connection, side) {
        Ok(offset) => offset,
        Err(why) => {
            let text = format!("the {who}'s system calls cannot be laid beside the packets: {why}");
            return vec![entry("clock", "unclear", text)];
        }
    };
    let text = format!(
        "system calls of the {who}, whose clock {}; tracing slows the program down",
        offset.told()
    );
    let verdict = match offset.apart_ns {
        _ if offset.calls == 0 => "unclear",
        Some(0) => "agrees",
        _ => "measured",
    };
    let clock = Beside {
        unit: "ns".into(),
        measured: offset.apart_ns.filter(|_| offset.calls > 0),
        estimated: None,
        ..entry("clock", verdict, text)
    };
    let mut told = vec![clock];
    if offset.error_ns.is_none() && offset.apart_ns != Some(0) {
        // Bounded on one side only: a wait and the calls of its time may lie anywhere beside each other.
        return told;
    }
    for wait in waits(connection, side, &offset) {
        let (from, to) = (wait.from.saturating_sub(offset.ns), wait.to.saturating_sub(offset.ns));
        let Some(found) = explain::explain(trace, socket, from, to) else { continue };
        let text = format!(
            "{} from {} to {}: {}",
            wait.what,
            said::time(wait.from),
            said::time(wait.to),
            found.text
        );
        told.push(Beside {
            unit: "ns".into(),
            measured: Some(wait.to - wait.from),
            from_ns: Some(wait.from),
            to_ns: Some(wait.to),
            calls: Some(Box::new(found.calls)),
            ..entry("calls", found.verdict, text)
        });
    }
    told
}

/// A wait worth a reason.
struct Wait {
    from: i64,
    to: i64,
    what: String,
}

/// The longest waits of `connection` that the program of side `side` may explain, in their order.
fn waits(connection: &Connection, side: usize, offset: &Offset) -> Vec<Wait> {
    let who = ["client", "server"][side];
    let mut all = Vec::new();
    for (at, direction) in connection.present() {
        for limit in &direction.limits {
            let what = match limit.state {
                State::ZeroWindow if at != side => format!("the {who}'s window was shut"),
                State::RwndReader | State::RwndCap | State::RwndAutotune if at != side => {
                    format!("the {who}'s window was full")
                }
                State::App | State::IdleAppThink if at == side => {
                    format!("the {who}'s application sent nothing")
                }
                _ => continue,
            };
            all.push(Wait { from: limit.start_ns, to: limit.end_ns, what });
        }
        let trips: Vec<i64> = direction.rounds.iter().filter_map(|round| round.rtt_ns).collect();
        let Some(usual) = median(&trips) else { continue };
        for round in &direction.rounds {
            let Some(rtt) = round.rtt_ns.filter(|rtt| stands_out(*rtt, usual)) else { continue };
            let what =
                format!("a round trip of {} (usually {})", said::time(rtt), said::time(usual));
            let to = round.start_ns.saturating_add(rtt).min(connection.duration_ns);
            all.push(Wait { from: round.start_ns, to, what });
        }
    }
    let least = offset.error_ns.unwrap_or(0).saturating_mul(2).max(SHORTEST_NS);
    all.retain(|wait| wait.to - wait.from >= least);
    all.sort_by_key(|wait| (core::cmp::Reverse(wait.to - wait.from), wait.from));
    let mut chosen: Vec<Wait> = Vec::new();
    for wait in all {
        // Both directions may tell the same wait.
        let again = chosen
            .iter()
            .any(|old| (wait.to.min(old.to) - wait.from.max(old.from)) * 2 > wait.to - wait.from);
        if !again && chosen.len() < LOOKED_UP {
            chosen.push(wait);
        }
    }
    chosen.sort_by_key(|wait| wait.from);
    chosen
}

/// Sockets told of where no capture chooses: those that moved most. Ours.
const SOCKETS: usize = 4;

/// What a trace says by itself of the waits on its sockets.
pub(super) fn alone(trace: &Calls) -> Vec<String> {
    let mut sockets: Vec<(usize, &Socket)> = trace.sockets.iter().enumerate().collect();
    sockets.sort_by_key(|(at, _)| {
        let (put, got) = trace.moved(*at as u32);
        core::cmp::Reverse(put.saturating_add(got))
    });
    sockets.truncate(SOCKETS);
    let of_one = |(at, socket): (usize, &Socket)| -> Vec<String> {
        gaps(trace, at as u32)
            .into_iter()
            .filter_map(|gap| {
                let found = explain::explain(trace, at as u32, gap.from, gap.to)?;
                let usual = said::time(gap.median);
                Some(format!(
                    "{}: {} without data from {} on (usually {usual}, median of {}): {}",
                    named(socket),
                    said::time(gap.to - gap.from),
                    shown(trace.clock, gap.from),
                    gap.of,
                    found.text
                ))
            })
            .collect()
    };
    sockets.into_iter().flat_map(of_one).collect()
}

fn named(socket: &Socket) -> String {
    let mut text = "socket".to_owned();
    if let Some(local) = socket.local {
        let _ = write!(text, " {local}");
    }
    if let Some(peer) = socket.peer {
        let _ = write!(text, " -> {peer}");
    }
    text
}

/// A time of the trace's clock as the trace prints it.
fn shown(clock: Clock, at: i64) -> String {
    let of_day = |at: i64| {
        let text = Time(at).rfc3339();
        let clock = text.split_once('T').map_or("", |(_, clock)| clock);
        clock.get(..15).unwrap_or(clock).to_owned()
    };
    match clock {
        Clock::Unix => Time(at).rfc3339(),
        Clock::OfDay => of_day(at),
        Clock::Since => said::time(at),
    }
}
