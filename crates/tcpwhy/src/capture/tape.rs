//! Builders of capture files and a reader of items, for tests that read like a tape.

use super::{Item, Reader};
use crate::frame::Direction;

/// Byte order of the machine that would have written the file.
#[derive(Clone, Copy, Debug)]
pub(super) enum Order {
    Little,
    Big,
}

/// A capture file under construction.
#[derive(Clone, Debug)]
pub(super) struct Tape {
    order: Order,
    pub(super) bytes: Vec<u8>,
}

impl Tape {
    pub(super) fn new(order: Order) -> Self {
        Self { order, bytes: Vec::new() }
    }

    pub(super) fn raw(mut self, bytes: &[u8]) -> Self {
        self.bytes.extend_from_slice(bytes);
        self
    }

    pub(super) fn u16(self, number: u16) -> Self {
        let bytes = match self.order {
            Order::Little => number.to_le_bytes(),
            Order::Big => number.to_be_bytes(),
        };
        self.raw(&bytes)
    }

    pub(super) fn u32(self, number: u32) -> Self {
        let bytes = match self.order {
            Order::Little => number.to_le_bytes(),
            Order::Big => number.to_be_bytes(),
        };
        self.raw(&bytes)
    }

    pub(super) fn u64(self, number: u64) -> Self {
        let bytes = match self.order {
            Order::Little => number.to_le_bytes(),
            Order::Big => number.to_be_bytes(),
        };
        self.raw(&bytes)
    }

    /// Without the last `count` bytes.
    pub(super) fn cut(mut self, count: usize) -> Self {
        self.bytes.truncate(self.bytes.len() - count);
        self
    }

    /// Header of a classic capture.
    pub(super) fn pcap(self, magic: u32, snap_length: u32, link_type: u32) -> Self {
        self.u32(magic).u16(2).u16(4).u32(0).u32(0).u32(snap_length).u32(link_type)
    }

    /// Packet of a classic capture.
    pub(super) fn record(self, seconds: u32, fraction: u32, data: &[u8], wire_len: u32) -> Self {
        self.u32(seconds).u32(fraction).u32(data.len() as u32).u32(wire_len).raw(data)
    }

    /// Block of a pcapng capture, around what `body` writes.
    pub(super) fn block(self, kind: u32, body: impl FnOnce(Self) -> Self) -> Self {
        let written = body(Self::new(self.order)).padded().bytes;
        let length = written.len() as u32 + 12;
        self.u32(kind).u32(length).raw(&written).u32(length)
    }

    /// Option of a pcapng block.
    pub(super) fn option(self, code: u16, value: &[u8]) -> Self {
        self.padded().u16(code).u16(value.len() as u16).raw(value).padded()
    }

    /// Header of a pcapng section of unknown length.
    pub(super) fn section(self) -> Self {
        self.block(0x0a0d_0d0a, |body| body.u32(0x1a2b_3c4d).u16(1).u16(0).u64(u64::MAX))
    }

    /// The same file, going on in another byte order.
    pub(super) fn order(mut self, order: Order) -> Self {
        self.order = order;
        self
    }

    fn padded(mut self) -> Self {
        self.bytes.resize(self.bytes.len().next_multiple_of(4), 0);
        self
    }
}

/// What a reader handed on, in short, and how it ended.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(super) struct Read {
    pub(super) items: Vec<String>,
    pub(super) end: Result<(), String>,
}

/// Reads a capture in one chunk.
pub(super) fn read(tape: &Tape) -> Read {
    read_chunks([&tape.bytes[..]])
}

/// Reads a capture in the chunks given.
pub(super) fn read_chunks<'a>(chunks: impl IntoIterator<Item = &'a [u8]>) -> Read {
    let mut reader = Reader::new();
    let mut items = Vec::new();
    let mut each = |item: Item<'_>| items.push(in_short(&item));
    let mut end = Ok(());
    for chunk in chunks {
        end = end.and_then(|()| reader.push(chunk, &mut each));
    }
    let finished = reader.finish(&mut each);
    if end.is_err() {
        assert_eq!(finished, end, "a failure stays");
    }
    Read { items, end: finished.map_err(|error| error.to_string()) }
}

fn in_short(item: &Item<'_>) -> String {
    match item {
        Item::Frame(frame) => {
            let direction = match frame.direction {
                None => "",
                Some(Direction::Incoming) => "in ",
                Some(Direction::Outgoing) => "out ",
            };
            format!(
                "#{} {}.{:09} link {} if {} {direction}wire {} `{}`",
                frame.frame,
                frame.time.0.div_euclid(1_000_000_000),
                frame.time.0.rem_euclid(1_000_000_000),
                frame.link_type,
                frame.interface,
                frame.wire_len,
                frame.data.escape_ascii(),
            )
        }
        Item::Quality(remark) => {
            format!("{} {}: {}", remark.kind.name(), remark.count, remark.note)
        }
        other => format!("{other:?}"),
    }
}
