//! A source of bytes that can be looked at before they are taken.
//!
//! Decoders want to know what follows a member before they begin the next one, and what an error
//! means depends on whether the source has ended: this buffer tells both.

use std::io::{self, BufRead, Read};

/// Bytes taken from the system at a time.
///
/// Ours: large enough that system calls do not show in a profile, small enough that the chunks
/// under way stay in the second-level cache (1 MiB takes a sixth longer for 900 MB).
pub(super) const CHUNK: usize = 1 << 18;

/// Bytes from `inner`, with a look ahead.
pub(super) struct Source<R> {
    inner: R,
    buffer: Vec<u8>,
    /// What was not taken yet.
    start: usize,
    end: usize,
    passed: u64,
    met_end: bool,
}

impl<R: Read> Source<R> {
    pub(super) fn new(inner: R) -> Self {
        Self { inner, buffer: Vec::new(), start: 0, end: 0, passed: 0, met_end: false }
    }

    /// Bytes taken from it so far.
    pub(super) const fn passed(&self) -> u64 {
        self.passed
    }

    /// Whether somebody wanted more than there was.
    pub(super) const fn met_end(&self) -> bool {
        self.met_end
    }

    /// The next `number` bytes, fewer at the end; they are not taken.
    pub(super) fn look(&mut self, number: usize) -> io::Result<&[u8]> {
        while self.end - self.start < number && self.fill()? {}
        Ok(&self.buffer[self.start..self.end.min(self.start + number)])
    }

    /// Takes zeros, and tells whether there was nothing else up to the end.
    pub(super) fn only_zeros_follow(&mut self) -> io::Result<bool> {
        loop {
            let bytes = self.look(1)?.len();
            let held = &self.buffer[self.start..self.end];
            match held.iter().position(|&byte| byte != 0) {
                Some(_) => return Ok(false),
                None if bytes == 0 => return Ok(true),
                None => self.consume(self.end - self.start),
            }
        }
    }

    /// Reads once, behind what is held; `false` at the end.
    fn fill(&mut self) -> io::Result<bool> {
        self.buffer.resize(CHUNK, 0);
        if self.start > 0 {
            self.buffer.copy_within(self.start..self.end, 0);
            (self.start, self.end) = (0, self.end - self.start);
        }
        loop {
            match self.inner.read(&mut self.buffer[self.end..]) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
                Ok(got) => {
                    self.end += got;
                    return Ok(got > 0);
                }
            }
        }
    }
}

impl<R: Read> BufRead for Source<R> {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        if self.start == self.end && !self.fill()? {
            self.met_end = true;
        }
        Ok(&self.buffer[self.start..self.end])
    }

    fn consume(&mut self, number: usize) {
        self.start = self.end.min(self.start + number);
        self.passed += number as u64;
    }
}

impl<R: Read> Read for Source<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if buffer.is_empty() {
            return Ok(0);
        }
        if self.start == self.end && buffer.len() >= CHUNK {
            let got = self.inner.read(buffer)?;
            self.met_end |= got == 0;
            self.passed += got as u64;
            return Ok(got);
        }
        let held = self.fill_buf()?;
        let number = held.len().min(buffer.len());
        buffer[..number].copy_from_slice(&held[..number]);
        self.consume(number);
        Ok(number)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Gives a byte at a time, as a slow pipe does.
    struct Drops<'a>(&'a [u8]);

    impl Read for Drops<'_> {
        fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
            let number = buffer.len().min(1);
            self.0.read(&mut buffer[..number])
        }
    }

    #[test]
    fn looking_takes_nothing() {
        let mut source = Source::new(Drops(b"abcdef"));
        assert_eq!(source.look(3).expect("memory"), b"abc");
        assert_eq!(source.look(9).expect("memory"), b"abcdef");
        assert_eq!((source.passed(), source.met_end()), (0, false));
        let mut read = Vec::new();
        source.read_to_end(&mut read).expect("memory");
        assert_eq!(read, b"abcdef");
        assert_eq!((source.passed(), source.met_end()), (6, true));
    }

    #[test]
    fn zeros_up_to_the_end_are_told_from_zeros_before_something() {
        assert!(Source::new(Drops(&[0; 10])).only_zeros_follow().expect("memory"));
        assert!(Source::new(Drops(b"")).only_zeros_follow().expect("memory"));
        assert!(!Source::new(Drops(b"\0\0x")).only_zeros_follow().expect("memory"));
    }
}
