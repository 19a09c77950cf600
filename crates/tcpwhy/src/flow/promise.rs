//! How long an answer is going to be, by its own word.
//!
//! The head of an HTTP/1 response in clear mostly says how many bytes follow it (`Content-Length`, RFC 9112 section
//! 6.2). Where fewer came, the answer is not whole (section 8), which nothing else in the packets tells.
//!
//! Left out: heads that do not end in the first segment's captured bytes; chunked bodies; answers that have no body
//! whatever their head says (to HEAD; 1xx, 204 and 304: RFC 9112 section 6.3).

use crate::clocks::TapTime;
use crate::offsets::Offset;

/// An answer that said how long it is going to be.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct Promise {
    /// Offsets of its first byte and behind its last.
    pub(crate) from: Offset,
    pub(crate) to: Offset,
    /// When its head passed the tap.
    pub(crate) tap: TapTime,
}

/// A body of more than this is damage, not an answer. Ours: 2^50 bytes, a petabyte.
const MOST: u64 = 1 << 50;

/// How long the answer with this status is that `payload` begins with, head and body.
pub(crate) fn length(status: u16, payload: &[u8]) -> Option<i64> {
    if matches!(status, 100..=199 | 204 | 304) {
        return None;
    }
    let head = payload.windows(4).position(|end| end == b"\r\n\r\n")? + 4;
    let mut announced = None;
    for line in payload[..head].split(|byte| *byte == b'\n').skip(1) {
        let Some(colon) = line.iter().position(|byte| *byte == b':') else { continue };
        let (name, value) = (&line[..colon], line[colon + 1..].trim_ascii());
        if name.eq_ignore_ascii_case(b"transfer-encoding") {
            return None;
        }
        if name.eq_ignore_ascii_case(b"content-length") {
            let value = core::str::from_utf8(value).ok()?.parse::<u64>().ok()?;
            // Two that differ are an error (RFC 9112 section 6.3).
            if announced.is_some_and(|before| before != value) || value > MOST {
                return None;
            }
            announced = Some(value);
        }
    }
    Some(head as i64 + announced? as i64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_is_as_long_as_its_head_and_what_that_announces() {
        let plain = b"HTTP/1.1 200 OK\r\nContent-Length: 2000\r\n\r\nxxxx";
        assert_eq!(length(200, plain), Some(41 + 2000));
        assert_eq!(length(200, b"HTTP/1.1 200 OK\r\nX: 1\r\ncontent-LENGTH:0\r\n\r\n"), Some(43));
    }

    #[test]
    fn where_nothing_sure_is_announced_nothing_is_promised() {
        let cut = b"HTTP/1.1 200 OK\r\nContent-Length: 2000\r\n";
        assert_eq!(length(200, cut), None, "the head goes on");
        let chunked = b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\nTransfer-Encoding: chunked\r\n\r\n";
        assert_eq!(length(200, chunked), None);
        let two = b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\nContent-Length: 10\r\n\r\n";
        assert_eq!(length(200, two), None);
        let odd = b"HTTP/1.1 200 OK\r\nContent-Length: 99999999999999999999\r\n\r\n";
        assert_eq!(length(200, odd), None);
        let unchanged = b"HTTP/1.1 304 Not Modified\r\nContent-Length: 9\r\n\r\n";
        assert_eq!(length(304, unchanged), None, "it has no body");
    }
}
