//! The model's account in the form of an observed kernel's records and the applications' log.
//!
//! A write that blocks is recorded when it does and when it no longer does, a read from when it waits
//! until it does not. What the model's applications do takes no time and is not recorded.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use serde_json::json;
use tcpwhy_model::segment::Flags;
use tcpwhy_model::socket::{Purpose, State, Wait};
use tcpwhy_model::world::{Note, Seen, Side, Trace, Upon};

/// Events as `kernel.jsonl` has them.
pub(super) fn kernel(trace: &Trace) -> String {
    let mut lines: Vec<(u64, String)> = Vec::new();
    let mut before: BTreeMap<(u32, Side), Note> = BTreeMap::new();
    for note in trace.notes.iter().filter(|note| is_told(note.info.state)) {
        let last = before.insert((note.connection, note.side), *note);
        let [own, peer] = ports(trace, note.connection, note.side);
        let mut tell = |place: &str, why: &str, amount: u32| {
            let info = &note.info;
            let line = json!({
                "t": note.at_ns, "event": "tcp_truth", "sport": own, "dport": peer,
                "where": place, "why": why, "amount": amount,
                "una": info.snd_una, "nxt": info.snd_nxt, "end": info.write_seq,
                "wnd": info.snd_wnd, "cwnd": info.cwnd, "ssthresh": info.ssthresh,
                "flight": info.in_flight, "mss": info.snd_mss, "srtt": info.srtt_us,
                "ca": info.ca_state as u8,
            });
            lines.push((note.at_ns, line.to_string()));
        };
        match note.upon {
            Upon::Turn => {
                let was_idle = last.is_none_or(|last| last.info.unacked == 0);
                let onto_nothing = was_idle && note.info.unacked > 0;
                tell("xmit", why(note.wait), if onto_nothing { note.info.in_flight } else { 0 });
                if note.blocked != last.is_some_and(|last| last.blocked) {
                    tell("write", if note.blocked { "blocked" } else { "woken" }, 0);
                }
            }
            Upon::Arrival => tell("ack", "nothing", 0),
            Upon::Timer(purpose) => tell("timer", timer(purpose), 0),
        }
    }
    lines.extend(trace.handed_down.iter().map(|seen| (seen.at_ns, segment(trace, seen))));
    lines.sort_by_key(|(at, _)| *at);
    joined(lines)
}

/// What each way's link did with packets, in order of time for each of them.
pub(super) fn links(trace: &Trace) -> String {
    let mut text = String::new();
    for (way, work) in ["up", "down"].into_iter().zip(&trace.links) {
        for (at, bytes) in &work.sent {
            let line = json!({ "t": at, "way": way, "fate": "sent", "bytes": bytes });
            let _ = writeln!(text, "{line}");
        }
        for at in &work.dropped {
            let _ = writeln!(text, "{}", json!({ "t": at, "way": way, "fate": "dropped" }));
        }
    }
    text
}

/// Steps as `applications.jsonl` has them.
pub(super) fn applications(trace: &Trace) -> String {
    let mut lines: Vec<(u64, String)> = Vec::new();
    let mut ends: BTreeMap<(u32, Side), Reading> = BTreeMap::new();
    for note in &trace.notes {
        let reading = ends.entry((note.connection, note.side)).or_default();
        let [own, peer] = ports(trace, note.connection, note.side);
        let mut tell = |step: &str, from: u64, more: serde_json::Value| {
            let mut line = json!({
                "who": note.side.name(), "flow": 0, "connection": note.connection + 1,
                "step": step, "from": from, "to": note.at_ns,
            });
            for (key, value) in more.as_object().into_iter().flatten() {
                line[key.as_str()] = value.clone();
            }
            lines.push((note.at_ns, line.to_string()));
        };
        if !std::mem::replace(&mut reading.named, true) {
            let step = if note.side == Side::Client { "connect" } else { "accept" };
            let address = |port: u16| format!("10.0.0.1:{port}");
            let socket = json!({ "local": address(own), "peer": address(peer) });
            tell(step, note.at_ns, json!({ "socket": socket }));
        }
        match (reading.since, note.reads) {
            (None, true) => reading.since = Some(note.at_ns),
            (Some(since), false) => {
                reading.since = None;
                tell("read", since, json!({ "bytes": 1 }));
            }
            _ => {}
        }
        if note.info.total_retrans != reading.retransmitted {
            reading.retransmitted = note.info.total_retrans;
            let info = json!({ "total_retrans": note.info.total_retrans });
            tell("tcp_info", note.at_ns, json!({ "tcp_info": info }));
        }
    }
    joined(lines)
}

/// What is known of one end's log.
#[derive(Default)]
struct Reading {
    named: bool,
    since: Option<u64>,
    retransmitted: u32,
}

/// What TCP handed down.
fn segment(trace: &Trace, seen: &Seen) -> String {
    let [own, peer] = ports(trace, seen.connection, seen.from);
    let segment = &seen.segment;
    let end = segment.end_seq();
    let line = json!({
        "t": seen.at_ns, "event": "tcp_segment", "sport": own, "dport": peer,
        "seq": segment.seq, "end_seq": end, "ack": segment.ack,
        "flags": segment.flags.0 & (Flags::FIN.0 | Flags::SYN.0 | Flags::RST.0 | Flags::PSH.0 | Flags::ACK.0),
        "segments": segment.piece_count(),
    });
    line.to_string()
}

fn joined(lines: Vec<(u64, String)>) -> String {
    lines.into_iter().fold(String::new(), |mut text, (_, line)| {
        let _ = writeln!(text, "{line}");
        text
    })
}

/// A side's own port and its peer's.
fn ports(trace: &Trace, connection: u32, side: Side) -> [u16; 2] {
    let [client, server] = trace.ports_of(connection);
    match side {
        Side::Client => [client, server],
        Side::Server => [server, client],
    }
}

/// The observed kernel records established sockets only.
const fn is_told(state: State) -> bool {
    !matches!(state, State::Closed | State::SynSent | State::SynReceived | State::TimeWait)
}

const fn why(wait: Wait) -> &'static str {
    match wait {
        Wait::Nothing => "nothing",
        Wait::Cwnd => "cwnd",
        Wait::ReceiveWindow => "rwnd",
        Wait::Nagle => "nagle",
        Wait::Defer => "defer",
        Wait::DeferCwnd => "defer_cwnd",
        Wait::DeferWindow => "defer_rwnd",
        Wait::SmallQueue => "tsq",
        Wait::Pacing => "pacing",
    }
}

const fn timer(purpose: Purpose) -> &'static str {
    match purpose {
        Purpose::Retransmit => "rto",
        Purpose::LossProbe => "tlp",
        Purpose::Reorder => "reo",
        Purpose::WindowProbe => "probe0",
    }
}
