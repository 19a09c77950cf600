//! What the two binary formats share: byte order, and records that straddle chunks.
//!
//! A format is a function from the bytes at some place of the stream to a [`Step`]. It sees the
//! chunk itself wherever a record is in it whole; only a record that straddles two chunks is
//! put together in a buffer first. The formats keep that buffer small by never asking for more
//! than they are ready to hold, and by leaving out what they do not need without seeing it.

use super::CaptureError;

/// Byte order of a file or section: that of the machine which wrote it.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub(super) enum Endian {
    /// Least significant byte first.
    #[default]
    Little,
    /// Most significant byte first.
    Big,
}

impl Endian {
    /// The 16-bit number `at` bytes into `bytes`; `None` beyond their end.
    #[inline]
    pub(super) fn u16_at(self, bytes: &[u8], at: usize) -> Option<u16> {
        let field = *bytes.get(at..)?.first_chunk()?;
        Some(match self {
            Self::Little => u16::from_le_bytes(field),
            Self::Big => u16::from_be_bytes(field),
        })
    }

    /// The 32-bit number `at` bytes into `bytes`; `None` beyond their end.
    #[inline]
    pub(super) fn u32_at(self, bytes: &[u8], at: usize) -> Option<u32> {
        let field = *bytes.get(at..)?.first_chunk()?;
        Some(match self {
            Self::Little => u32::from_le_bytes(field),
            Self::Big => u32::from_be_bytes(field),
        })
    }

    /// The four 32-bit numbers of `bytes`.
    #[inline]
    pub(super) fn u32s(self, bytes: &[u8; 16]) -> [u32; 4] {
        let (fields, _) = bytes.as_chunks::<4>();
        let field = |at: usize| fields.get(at).copied().unwrap_or_default();
        let fields = [field(0), field(1), field(2), field(3)];
        match self {
            Self::Little => fields.map(u32::from_le_bytes),
            Self::Big => fields.map(u32::from_be_bytes),
        }
    }

    /// The 64-bit number `at` bytes into `bytes`; `None` beyond their end.
    #[inline]
    pub(super) fn u64_at(self, bytes: &[u8], at: usize) -> Option<u64> {
        let field = *bytes.get(at..)?.first_chunk()?;
        Some(match self {
            Self::Little => u64::from_le_bytes(field),
            Self::Big => u64::from_be_bytes(field),
        })
    }
}

/// What a format makes of the bytes at its place in the stream.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Step {
    /// A record of this many bytes is done; those that are not here yet are left out.
    Took(usize),
    /// The record can be read on with this many of its bytes: more than are here, and never more
    /// than the record is long.
    Needs(usize),
}

/// Where a record that did not end began, and how much of it there was.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) struct Unfinished {
    /// Byte in the stream, from 0.
    pub(super) offset: u64,
    /// Bytes that are missing at least.
    pub(super) missing: u64,
}

/// Walks records in a stream that comes in chunks of any size.
#[derive(Debug, Default)]
pub(super) struct Straddle {
    /// Where the record at hand begins in the stream.
    offset: u64,
    /// Its bytes so far, if it began in an earlier chunk.
    carry: Vec<u8>,
    /// As many of its bytes as the format asked for: more than `carry` holds.
    needed: usize,
    /// Bytes of it still to be left out.
    skip: usize,
    /// Its whole length, while it is being left out.
    skipped: usize,
}

impl Straddle {
    /// Takes the next chunk and calls `read(bytes, offset)` for each record that can be read on.
    #[inline]
    pub(super) fn feed(
        &mut self,
        chunk: &[u8],
        mut read: impl FnMut(&[u8], u64) -> Result<Step, CaptureError>,
    ) -> Result<(), CaptureError> {
        let mut rest = self.leave_out(chunk);
        while !self.carry.is_empty() {
            let (missing, later) = rest.split_at(rest.len().min(self.needed - self.carry.len()));
            self.carry.extend_from_slice(missing);
            rest = later;
            if self.carry.len() < self.needed {
                return Ok(());
            }
            match read(&self.carry, self.offset)? {
                Step::Needs(needed) => self.needed = needed,
                Step::Took(length) => {
                    self.skip = length - self.carry.len();
                    self.skipped = length;
                    self.carry.clear();
                    self.offset += length as u64;
                    rest = self.leave_out(rest);
                }
            }
        }
        while !rest.is_empty() {
            match read(rest, self.offset)? {
                Step::Took(length) => {
                    self.offset += length as u64;
                    if let Some(later) = rest.get(length..) {
                        rest = later;
                    } else {
                        self.skip = length - rest.len();
                        self.skipped = length;
                        return Ok(());
                    }
                }
                Step::Needs(needed) => {
                    self.carry.extend_from_slice(rest);
                    self.needed = needed;
                    return Ok(());
                }
            }
        }
        Ok(())
    }

    /// The record that the stream broke off in, if it did.
    pub(super) fn unfinished(&self) -> Option<Unfinished> {
        if self.skip > 0 {
            let offset = self.offset - self.skipped as u64;
            return Some(Unfinished { offset, missing: self.skip as u64 });
        }
        (!self.carry.is_empty()).then(|| Unfinished {
            offset: self.offset,
            missing: (self.needed - self.carry.len()) as u64,
        })
    }

    fn leave_out<'a>(&mut self, bytes: &'a [u8]) -> &'a [u8] {
        let (left_out, rest) = bytes.split_at(bytes.len().min(self.skip));
        self.skip -= left_out.len();
        rest
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Records of a length byte and that many bytes; those beginning with `x` are left out.
    fn records(chunks: &[&[u8]]) -> (Vec<(u64, String)>, Option<Unfinished>) {
        let mut straddle = Straddle::default();
        let mut seen = Vec::new();
        for chunk in chunks {
            let walked = straddle.feed(chunk, |bytes, offset| {
                let [length, first, ..] = *bytes else { return Ok(Step::Needs(2)) };
                let length = 1 + usize::from(length);
                if first == b'x' {
                    return Ok(Step::Took(length));
                }
                let Some(text) = bytes.get(1..length) else { return Ok(Step::Needs(length)) };
                seen.push((offset, String::from_utf8_lossy(text).into_owned()));
                Ok(Step::Took(length))
            });
            assert_eq!(walked, Ok(()));
        }
        (seen, straddle.unfinished())
    }

    #[test]
    fn records_come_out_whole_however_the_stream_is_cut() {
        let whole = (vec![(0, "abc".to_owned()), (7, "de".to_owned())], None);
        assert_eq!(records(&[b"\x03abc\x02xx\x02de"]), whole);
        assert_eq!(records(&[b"\x03a", b"b", b"", b"c\x02", b"x", b"x\x02d", b"e"]), whole);
        assert_eq!(records(&[b"\x03abc\x02x", b"x\x02de"]), whole);
    }

    #[test]
    fn a_stream_that_breaks_off_tells_where() {
        let cut = |offset, missing| Some(Unfinished { offset, missing });
        assert_eq!(records(&[b"\x01a\x05b", b"c"]).1, cut(2, 3));
        assert_eq!(records(&[b"\x01a\x05x", b"x"]).1, cut(2, 3));
        assert_eq!(records(&[b"\x01a\x05"]).1, cut(2, 1));
        assert_eq!(records(&[b"\x01a"]).1, None);
    }
}
