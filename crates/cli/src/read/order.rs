//! In which order were rotated files written?
//!
//! `tcpdump -C` and `-W` number their files in ways a shell does not sort (`x.pcap`, `x.pcap1`,
//! `x.pcap10`, ...) and start again at the first, so names say nothing. Each file's first packet
//! says when it was begun; the core's own reader finds it, so every format works.
//!
//! Left out: files that overlap in time (several interfaces captured at once). They are read one
//! after the other; `mergecap` merges them by packet.

use std::io::Read;
use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use tcpwhy::capture::{Item, Reader};
use tcpwhy::units::Time;

use super::open::Input;

/// The inputs in the order of their first packets.
///
/// What has no packet, or cannot be read twice, keeps its place behind the others: a pipe goes on
/// where the files end.
pub fn by_first_packet(mut inputs: Vec<Input>) -> Vec<Input> {
    if inputs.len() > 1 {
        inputs.sort_by_cached_key(|input| {
            let first = input.can_be_reread().then(|| first_time(input)).flatten();
            (first.is_none(), first)
        });
    }
    inputs
}

/// Time of the first packet, if the first [`SEARCHED`] bytes of the input hold one.
fn first_time(input: &Input) -> Option<Time> {
    let source = input.open(&Arc::new(AtomicU64::new(0))).ok()?;
    let mut source = source.take(SEARCHED);
    let mut reader = Reader::new();
    let mut first = None;
    let mut each = |item: Item<'_>| {
        let time = match item {
            Item::Frame(frame) => Some(frame.time),
            Item::Segment(segment) => Some(segment.time),
            Item::OtherPacket | Item::Gap | Item::Quality(_) => None,
        };
        first = first.or(time);
    };
    let mut buffer = vec![0; PIECE];
    let mut step = || match source.read(&mut buffer) {
        Ok(got) if got > 0 && reader.push(&buffer[..got], &mut each).is_ok() => {
            ControlFlow::Continue(())
        }
        _ => ControlFlow::Break(()),
    };
    while step().is_continue() {}
    // A short listing may be held back until its end is known.
    let _ = reader.finish(&mut each);
    first
}

/// Bytes in which the first packet is looked for. Ours: more than any header or preamble.
const SEARCHED: u64 = 1 << 20;

/// Bytes looked at in one step. Ours: holds the first packet of nearly every capture.
const PIECE: usize = 64 << 10;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn inputs_without_a_first_packet_keep_their_order() {
        let named = ["missing-b", "-", "missing-a"].map(|name| Input::named(name.as_ref()));
        assert_eq!(by_first_packet(named.to_vec()), named);
    }
}
