//! Which TCP sent these packets? A guess from the SYN (limits-method section 2).
//!
//! Linux, Windows, Apple and the BSDs order the options of their SYN differently, start from
//! different hop limits and windows; the features below are those that p0f and Nmap publish as
//! stable. One feature alone names nothing.

use super::ipid::Counter;
use crate::flow::side::SideInfo;
use crate::report::{SenderStack, Text};
use crate::wire::Options;

/// Names the stack of one side.
pub(crate) fn name(info: &SideInfo, tick: Option<i64>) -> SenderStack {
    let unknown =
        |evidence: Text| SenderStack { name: "unknown".into(), evidence, timestamp_tick_ns: tick };
    let Some(syn) = info.syn else { return unknown("its SYN was not captured".into()) };
    if syn.incomplete {
        return unknown("the options of its SYN were cut".into());
    }
    let order = kinds(&syn);
    match named(order, info.ttl) {
        Some(name) => {
            SenderStack { name: name.into(), evidence: listed(order), timestamp_tick_ns: tick }
        }
        None if order.is_empty() => unknown("its SYN carries no options".into()),
        None => unknown(listed(order)),
    }
}

/// Whose counter the IP identifications of this side are: Linux counts each socket's packets, the others do not.
pub(crate) fn counter(info: &SideInfo) -> Counter {
    let syn = info.syn.filter(|syn| !syn.incomplete);
    match syn.and_then(|syn| named(kinds(&syn), info.ttl)) {
        None => Counter::Unknown,
        Some("linux") => Counter::Own,
        Some(_) => Counter::Others,
    }
}

/// The kinds of a SYN's options, in order.
fn kinds(syn: &Options) -> &[u8] {
    let len = syn.order.iter().position(|kind| *kind == 0).unwrap_or(syn.order.len());
    &syn.order[..len]
}

/// Which stack writes the options of its SYN in this order.
fn named(order: &[u8], ttl: Option<u8>) -> Option<&'static str> {
    match order {
        // Linux `tcp_syn_options`, `tcp_synack_options`: MSS, SACK permitted, timestamps, NOP,
        // scale; without timestamps NOP NOP SACK permitted.
        [2, 4, 8, 1, 3, ..] | [2, 4, 8] => Some("linux"),
        [2, 1, 3, 1, 1, 8, 4, ..] => Some("apple"),
        [2, 1, 3, 4, 8, ..] => Some("bsd"),
        [2, 1, 3, 1, 1, 4] | [2, 1, 3, 4 | 1, ..] => Some("windows"),
        [2, 1, 1, 4, 1, 3] if ttl.is_some_and(|ttl| ttl <= 64) => Some("linux"),
        _ => None,
    }
}

fn listed(order: &[u8]) -> Text {
    // Linux's own, with which most captures are filled.
    if order == [2, 4, 8, 1, 3] {
        return "order of the SYN's options: mss, sack, timestamps, nop, scale".into();
    }
    let mut text = String::with_capacity(80);
    for (at, kind) in order.iter().enumerate() {
        text.push_str(if at == 0 { "order of the SYN's options: " } else { ", " });
        text.push_str(kind_name(*kind));
    }
    text.into()
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_options_are_listed_as_they_came() {
        assert_eq!(listed(&[2]), "order of the SYN's options: mss");
        let linux = listed(&[2, 4, 8, 1, 3]);
        assert_eq!(listed(&[2, 4, 8, 1, 3, 34]), format!("{linux}, fast open"));
    }
}
