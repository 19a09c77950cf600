//! Bytes as text (RFC 4648 section 4), written as they come.

use std::io::{self, Write};

const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

/// Writes what is written to it as base64. [`Base64::finish`] writes the end.
pub(super) struct Base64<To> {
    to: To,
    /// Bytes that do not yet make three.
    rest: [u8; 3],
    held: usize,
}

impl<To: Write> Base64<To> {
    /// Nothing is written yet.
    pub(super) fn new(to: To) -> Self {
        Self { to, rest: [0; 3], held: 0 }
    }

    /// Writes what is left, and the padding.
    pub(super) fn finish(mut self) -> io::Result<To> {
        if self.held > 0 {
            self.rest[self.held..].fill(0);
            let mut digits = digits(self.rest);
            digits[self.held + 1..].fill(b'=');
            self.to.write_all(&digits)?;
        }
        Ok(self.to)
    }
}

impl<To: Write> Write for Base64<To> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let mut text = Vec::with_capacity(bytes.len() / 3 * 4 + 4);
        for byte in bytes {
            self.rest[self.held] = *byte;
            self.held += 1;
            if self.held == 3 {
                text.extend(digits(self.rest));
                self.held = 0;
            }
        }
        self.to.write_all(&text)?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.to.flush()
    }
}

fn digits([a, b, c]: [u8; 3]) -> [u8; 4] {
    let bits = u32::from_be_bytes([0, a, b, c]);
    [18, 12, 6, 0].map(|shift| DIGITS[(bits >> shift & 63) as usize])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_examples_of_the_standard_hold() {
        for (bytes, text) in [
            ("", ""),
            ("f", "Zg=="),
            ("fo", "Zm8="),
            ("foo", "Zm9v"),
            ("foob", "Zm9vYg=="),
            ("fooba", "Zm9vYmE="),
            ("foobar", "Zm9vYmFy"),
        ] {
            let mut to = Base64::new(Vec::new());
            // In pieces of one byte, too.
            for byte in bytes.bytes() {
                to.write_all(&[byte]).expect("memory");
            }
            assert_eq!(to.finish().expect("memory"), text.as_bytes());
        }
    }
}
