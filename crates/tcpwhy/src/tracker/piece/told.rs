//! Which bytes of a payload can tell anything?
//!
//! Application bytes are most of a capture, and only a few are ever read: the head of an HTTP/1 message
//! (`flow::{requests, promise, failures}`), the headers of TLS records and alerts (`flow::tls`), and the hellos at the start of a
//! stream (`flow::hello`). Those go on; every other byte goes on as [`FILLED`], and none of these readers makes
//! anything.
//!
//! Left out: extensions of a hello that claim to go on behind their record.

use crate::flow::failures;
use tcpwhy_words::units::Seq;

/// What goes on for a byte that is left out. It begins no record, no method and no status line, and as a record's second
/// byte of length it makes the record too long.
pub(super) const FILLED: u8 = 0xff;

/// A record's header, and with it an alert's two bytes.
const HEADER: usize = 5;
const ALERT: usize = 7;
/// RFC 5246 section 6.2.3: the longest record.
const LONGEST: usize = (1 << 14) + 2048;
/// Bytes of a stream in which a hello lies, as `flow::hello` puts them together.
const HELLO: i32 = 8 << 10;
/// Bytes of a request in which its host is looked for, and the longest method.
const HEAD: usize = 1024 + 16;
/// A shorter payload goes on whole.
const SHORT: usize = 16;
/// A stream that is so far on does not come back to its start. Half of what the numbers can tell.
const FAR: i32 = 1 << 30;

/// Where a sender's stream starts, as far as this file tells.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Start {
    at: Option<Seq>,
    /// Bytes of it that go on whole.
    whole: i32,
}

impl Start {
    /// A SYN of this number: the stream starts behind it.
    pub(super) fn opens(&mut self, syn: Seq) {
        *self = Self { at: Some(Seq(syn.0.wrapping_add(1))), whole: HELLO };
    }

    /// How many bytes of the `payload` at `seq` are near enough to the start to be a hello's.
    fn near(&mut self, seq: Seq, payload: &[u8]) -> usize {
        let Some(start) = self.at else {
            // A hello may have begun in the file before.
            *self = Self { at: Some(seq), whole: HELLO };
            return self.whole as usize;
        };
        let behind = seq.since(start);
        if behind >= FAR {
            self.whole = 0;
        }
        if behind == 0 && self.whole > 0 {
            self.whole = match payload {
                [22, _, _, high, low, ..] => {
                    (5 + i32::from(u16::from_be_bytes([*high, *low]))).min(HELLO)
                }
                [22, ..] | [] => HELLO,
                _ => 0,
            };
        }
        usize::try_from(self.whole.saturating_sub(behind))
            .map_or(0, |near| if self.whole > 0 { near } else { 0 })
    }
}

/// Calls `each` with the parts of `payload`, whose first byte is `seq`, that go on: from where, and which bytes.
pub(super) fn told<'a>(
    payload: &'a [u8],
    seq: Seq,
    start: &mut Start,
    mut each: impl FnMut(usize, &'a [u8]),
) {
    let near = start.near(seq, payload);
    if payload.len() <= SHORT {
        return each(0, payload);
    }
    let mut upto = near.min(payload.len());
    if failures::begins_message(payload) {
        let head = payload.windows(4).position(|end| end == b"\r\n\r\n");
        let head = head.map_or(payload.len(), |head| (head + 4).max(HEAD.min(payload.len())));
        upto = upto.max(head);
    }
    if upto > 0 {
        each(0, &payload[..upto]);
    }
    // A header that lies across the border goes on by itself.
    let mut from = upto.saturating_sub(HEADER - 1);
    while let Some(found) = next_header(&payload[from..]) {
        let at = from + found;
        let end = (at + ALERT).min(payload.len());
        if end > upto {
            each(at.max(upto), &payload[at.max(upto)..end]);
            upto = end;
        }
        from = at + 1;
    }
}

/// Where the first header of a TLS record begins.
fn next_header(payload: &[u8]) -> Option<usize> {
    payload.windows(HEADER).position(|header| {
        let &[kind, major, minor, high, low] = header else { return false };
        matches!(kind, 20..=23)
            && major == 3
            && minor <= 4
            && usize::from(high) << 8 | usize::from(low) <= LONGEST
    })
}
