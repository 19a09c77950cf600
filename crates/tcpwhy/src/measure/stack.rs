//! Which TCP sent these packets? A guess from the SYN (limits-method section 2).
//!
//! Linux, Windows, Apple and the BSDs order the options of their SYN differently, start from
//! different hop limits and windows; the features below are those that p0f and Nmap publish as
//! stable. One feature alone names nothing.

use crate::flow::connection::SideInfo;
use crate::report::SenderStack;

/// Names the stack of one side.
pub(crate) fn name(info: &SideInfo, tick: Option<i64>) -> SenderStack {
    let unknown = |evidence: &str| SenderStack {
        name: "unknown".to_owned(),
        evidence: evidence.to_owned(),
        timestamp_tick_ns: tick,
    };
    let Some(syn) = info.syn else { return unknown("its SYN was not captured") };
    if syn.incomplete {
        return unknown("the options of its SYN were cut");
    }
    let order: Vec<u8> = syn.order.iter().copied().take_while(|kind| *kind != 0).collect();
    let named = match order.as_slice() {
        // Linux `tcp_syn_options`, `tcp_synack_options`: MSS, SACK permitted, timestamps, NOP,
        // scale; without timestamps NOP NOP SACK permitted.
        [2, 4, 8, 1, 3, ..] | [2, 4, 8] => Some("linux"),
        [2, 1, 3, 1, 1, 8, 4, ..] => Some("apple"),
        [2, 1, 3, 4, 8, ..] => Some("bsd"),
        [2, 1, 3, 1, 1, 4] | [2, 1, 3, 4 | 1, ..] => Some("windows"),
        [2, 1, 1, 4, 1, 3] if info.ttl.is_some_and(|ttl| ttl <= 64) => Some("linux"),
        _ => None,
    };
    let listed: Vec<&str> = order.iter().map(|kind| kind_name(*kind)).collect();
    match named {
        Some(name) => SenderStack {
            name: name.to_owned(),
            evidence: format!("order of the SYN's options: {}", listed.join(", ")),
            timestamp_tick_ns: tick,
        },
        None if order.is_empty() => unknown("its SYN carries no options"),
        None => unknown(&format!("order of the SYN's options: {}", listed.join(", "))),
    }
}

fn kind_name(kind: u8) -> &'static str {
    match kind {
        1 => "nop",
        2 => "mss",
        3 => "scale",
        4 => "sack",
        8 => "timestamps",
        34 => "fast open",
        _ => "other",
    }
}
