//! The text of a file that somebody named: unpacked, decoded, and told from what is no text.

use std::io::{self, ErrorKind, Read};
use std::sync::Arc;

use anyhow::bail;
use tcpwhy::capture::bare_utf16;

use crate::read::Input;

/// All of it.
///
/// # Errors
/// It cannot be read, is no text, or is too long.
pub(super) fn text(input: &Input) -> anyhow::Result<String> {
    let source = input.open(&Arc::default()).map_err(|error| anyhow::anyhow!(error.why))?;
    decoded(source, MOST)
}

fn decoded(mut source: impl Read, most: u64) -> anyhow::Result<String> {
    let mut bytes = Vec::new();
    source.by_ref().take(HEAD).read_to_end(&mut bytes).map_err(in_words)?;
    let encoding = Encoding::of(&bytes)?;
    source
        .take(most.saturating_add(1).saturating_sub(HEAD))
        .read_to_end(&mut bytes)
        .map_err(in_words)?;
    if bytes.len() as u64 > most {
        bail!(
            "it is longer than {} MiB, more than any host has to say: is it the right file?",
            most >> 20
        );
    }
    Ok(with_lines(encoding.text(&bytes)))
}

/// Where nothing but carriage returns ends lines, they are read as line feeds.
fn with_lines(text: String) -> String {
    if text.contains('\n') { text } else { text.replace('\r', "\n") }
}

fn in_words(error: io::Error) -> anyhow::Error {
    match error.kind() {
        ErrorKind::IsADirectory => anyhow::anyhow!("it is a directory; name a file in it"),
        _ => error.into(),
    }
}

/// How letters are written (Unicode 16 section 23.8: the mark at the start).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Encoding {
    Utf8,
    Utf16([u8; 2]),
}

const BIG_ENDIAN: [u8; 2] = [0xfe, 0xff];
const LITTLE_ENDIAN: [u8; 2] = [0xff, 0xfe];

impl Encoding {
    /// By the first bytes; an error for what is no text.
    fn of(head: &[u8]) -> anyhow::Result<Self> {
        if let Some(mark) =
            head.first_chunk().filter(|&&mark| mark == BIG_ENDIAN || mark == LITTLE_ENDIAN)
        {
            return Ok(Self::Utf16(*mark));
        }
        if CAPTURES.iter().any(|magic| head.starts_with(magic)) {
            bail!(
                "it is a capture of packets, no text: `tcpwhy FILE` explains it, and `--capture FILE` uses it"
            );
        }
        if let Some(name) = bare_utf16(head) {
            bail!(
                "it is text in UTF-16 without a mark at its start: convert it with `iconv -f {name} -t UTF-8 FILE | \
                 tcpwhy check -`"
            );
        }
        // As grep(1) tells them apart (GNU grep 3.11 manual, \"File and Directory Selection\").
        if let Some(at) = head.iter().position(|&byte| byte == 0) {
            bail!(
                "it is no text: byte {at} is zero; give what --save wrote or what commands printed (of a text with \
                 zeros in it, `tr -d '\\0'` takes them out)"
            );
        }
        Ok(Self::Utf8)
    }

    fn text(self, bytes: &[u8]) -> String {
        let Self::Utf16(mark) = self else {
            return String::from_utf8_lossy(bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes))
                .into_owned();
        };
        let unit = |two: &[u8; 2]| match mark {
            BIG_ENDIAN => u16::from_be_bytes(*two),
            _ => u16::from_le_bytes(*two),
        };
        let (pairs, _cut) = bytes.as_chunks();
        let units = pairs.iter().skip(1).map(unit);
        char::decode_utf16(units)
            .map(|letter| letter.unwrap_or(char::REPLACEMENT_CHARACTER))
            .collect()
    }
}

/// pcap of both orders with microseconds and nanoseconds (pcap-savefile(5)), and the block that pcapng begins with
/// (draft-ietf-opsawg-pcapng section 4.1).
const CAPTURES: [[u8; 4]; 5] = [
    [0xa1, 0xb2, 0xc3, 0xd4],
    [0xd4, 0xc3, 0xb2, 0xa1],
    [0xa1, 0xb2, 0x3c, 0x4d],
    [0x4d, 0x3c, 0xb2, 0xa1],
    [0x0a, 0x0d, 0x0d, 0x0a],
];

/// Bytes that tell whether it is text: those that grep(1) looks at first.
const HEAD: u64 = 32 << 10;
/// A million sockets take some 600 MB as JSON. Ours: not measured.
const MOST: u64 = 1 << 30;

#[cfg(test)]
mod tests {
    use super::*;

    fn read(bytes: &[u8]) -> Result<String, String> {
        decoded(bytes, MOST).map_err(|error| error.to_string())
    }

    #[test]
    fn marks_of_encodings_are_taken_off() {
        let text = "tcp ü 😀\n";
        assert_eq!(read(text.as_bytes()).as_deref(), Ok(text));
        assert_eq!(read(format!("\u{feff}{text}").as_bytes()).as_deref(), Ok(text));
        let units = || std::iter::once(0xfeff).chain(text.encode_utf16());
        let little: Vec<u8> = units().flat_map(u16::to_le_bytes).collect();
        let big: Vec<u8> = units().flat_map(u16::to_be_bytes).collect();
        for bytes in [&little, &big] {
            assert_eq!(read(bytes).as_deref(), Ok(text));
        }
        assert_eq!(
            read(&little[..little.len() - 1]).as_deref(),
            Ok(text.trim_end()),
            "cut in a letter"
        );
        assert_eq!(read(b"caf\xe9\n").as_deref(), Ok("caf\u{fffd}\n"));
        assert_eq!(read(b"a\rb\r").as_deref(), Ok("a\nb\n"));
    }

    #[test]
    fn what_is_no_text_is_refused_at_its_start() {
        for (bytes, says) in [
            (&b"\0\0"[..], "byte 0 is zero"),
            (b"\x7fELF\x02\x01\0", "byte 6 is zero"),
            (b"t\0c\0p\0", "byte 1 is zero"),
            (b"t\0c\0p\0 \0", "iconv -f UTF-16LE"),
            (b"\0t\0c\0p\0 ", "iconv -f UTF-16BE"),
            (&[0xd4, 0xc3, 0xb2, 0xa1, 2, 0, 4, 0], "a capture of packets"),
            (&[0x0a, 0x0d, 0x0d, 0x0a, 0x1c, 0, 0, 0], "a capture of packets"),
        ] {
            let error = read(bytes).expect_err("no text");
            assert!(error.contains(says), "{error}");
        }
        let endless = decoded(io::repeat(0), MOST).expect_err("no text");
        assert!(endless.to_string().contains("byte 0 is zero"));
    }

    #[test]
    fn no_more_is_read_than_a_host_has_to_say() {
        let most = 1 << 20;
        let text = |length: u64| decoded(io::repeat(b'y').take(length), most);
        assert_eq!(text(most).expect("just fits").len() as u64, most);
        let error = text(u64::MAX).expect_err("endless").to_string();
        assert!(error.starts_with("it is longer than 1 MiB"), "{error}");
        assert_eq!(text(HEAD - 1).expect("short").len() as u64, HEAD - 1);
    }
}
