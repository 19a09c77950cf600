//! Which format is it? Told from the first bytes alone, never from a name.
//!
//! Magic numbers first: those of the formats read here, then those of files that people pass by
//! mistake, each with what to do instead. What is left and looks like text is a packet listing.
//!
//! Left out: formats without a magic number (ERF, for one) cannot be told from garbage.

use super::CaptureError;

/// A format that is read here.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Format {
    Pcap,
    PcapNg,
    Listing,
}

/// As many first bytes are looked at, or all there are if there are fewer.
///
/// Ours: covers the longest magic below and most of a listing's first line.
pub(super) const SNIFFED: usize = 64;

/// Tells the format of a stream that begins with `first`.
pub(super) fn format(first: &[u8]) -> Result<Format, CaptureError> {
    if first.is_empty() {
        return Err(CaptureError::Empty);
    }
    if let Some(magic) = first.first_chunk() {
        if super::pcap::Magic::of(*magic).is_some() {
            return Ok(Format::Pcap);
        }
        if *magic == super::pcapng::SECTION_HEADER {
            return Ok(Format::PcapNg);
        }
    }
    if let Some((_, with, unpack)) = COMPRESSIONS.iter().find(|(magic, ..)| has(first, magic)) {
        return Err(CaptureError::Compressed { with, unpack });
    }
    if let Some((_, what, advice)) = OTHERS.iter().find(|(magic, ..)| has(first, magic)) {
        return Err(CaptureError::Other { what, advice });
    }
    if is_html(first) {
        return Err(CaptureError::Other {
            what: "an HTML page",
            advice: "the download gave a web page, perhaps an error or a login; get the file \
                     itself",
        });
    }
    if is_text(first) {
        return Ok(Format::Listing);
    }
    if let Some(name) = bare_utf16(first) {
        let big = name == UTF_16_BE;
        return Err(CaptureError::Other {
            what: if big { "text in UTF-16, big-endian" } else { "text in UTF-16, little-endian" },
            advice: if big {
                "convert it with `iconv -f UTF-16BE -t UTF-8 FILE | tcpwhy -`"
            } else {
                "convert it with `iconv -f UTF-16LE -t UTF-8 FILE | tcpwhy -`"
            },
        });
    }
    if is_text_of_bytes(first) {
        return Err(CaptureError::Other {
            what: "text, but not in UTF-8",
            advice: "convert it, if it is Western European with `iconv -f WINDOWS-1252 -t UTF-8 FILE | tcpwhy -`",
        });
    }
    let digits: Vec<String> = first.iter().take(8).map(|byte| format!("{byte:02x}")).collect();
    Err(CaptureError::Unknown { first: digits.join(" ") })
}

/// Bytes that must stand at places of the file.
type Magic = &'static [(usize, &'static [u8])];

fn has(first: &[u8], magic: Magic) -> bool {
    magic.iter().all(|(at, bytes)| first.get(*at..).is_some_and(|rest| rest.starts_with(bytes)))
}

/// A download that went wrong; whatever the case of its letters and the blanks before them.
fn is_html(first: &[u8]) -> bool {
    let text = first.strip_prefix(UTF8_BOM).unwrap_or(first).trim_ascii_start();
    [&b"<!doctype html"[..], b"<html", b"<head"].iter().any(|tag| {
        text.get(..tag.len()).is_some_and(|beginning| beginning.eq_ignore_ascii_case(tag))
    })
}

/// UTF-8 without control characters other than those of terminals and printers. The last
/// character may be cut: more bytes follow.
fn is_text(first: &[u8]) -> bool {
    let text = first.strip_prefix(UTF8_BOM).unwrap_or(first);
    let encoded = match core::str::from_utf8(text) {
        Ok(_) => true,
        Err(error) => error.error_len().is_none(),
    };
    encoded && text.iter().all(|byte| is_of_text(*byte))
}

fn is_of_text(byte: u8) -> bool {
    !byte.is_ascii_control() || matches!(byte, 0x07..=0x0d | 0x1b /* ESC */)
}

/// Text of another encoding, a byte a letter: most of it is ASCII, as all is that tcpdump prints itself.
fn is_text_of_bytes(first: &[u8]) -> bool {
    let ascii = first.iter().filter(|byte| byte.is_ascii()).count();
    first.iter().all(|byte| is_of_text(*byte)) && ascii * 4 >= first.len() * 3
}

/// The name, for iconv(1), of the UTF-16 in which ASCII text begins so, without the mark that would tell: one
/// byte of each pair is zero, and always the same.
pub fn bare_utf16(first: &[u8]) -> Option<&'static str> {
    let (pairs, _) = first.as_chunks::<2>();
    let is_letter = |byte: u8| byte.is_ascii() && byte != 0 && is_of_text(byte);
    let all = |zero: usize| pairs.iter().all(|pair| pair[zero] == 0 && is_letter(pair[1 - zero]));
    match () {
        () if pairs.len() < LEAST_PAIRS => None,
        () if all(0) => Some(UTF_16_BE),
        () if all(1) => Some(UTF_16_LE),
        () => None,
    }
}

const UTF_16_BE: &str = "UTF-16BE";
const UTF_16_LE: &str = "UTF-16LE";

/// Fewer letters may be numbers. Ours: not measured.
const LEAST_PAIRS: usize = 4;

const UTF8_BOM: &[u8] = b"\xef\xbb\xbf";

/// Magic numbers of compressions: RFC 1952 §2.3.1, RFC 8878 §3.1.1, LZ4 frame format 1.6, and
/// the formats' own documents.
const COMPRESSIONS: &[(Magic, &str, &str)] = &[
    (&[(0, b"\x1f\x8b")], "gzip", "gzip -dc FILE"),
    (&[(0, b"\x28\xb5\x2f\xfd")], "zstd", "zstd -dc FILE"),
    (&[(0, b"\x04\x22\x4d\x18")], "lz4", "lz4 -dc FILE"),
    (&[(0, b"\xfd7zXZ\0")], "xz", "xz -dc FILE"),
    (&[(0, b"BZh"), (4, b"1AY&SY")], "bzip2", "bzip2 -dc FILE"),
    (&[(0, b"\x1f\x9d")], "compress", "gzip -dc FILE"),
    (&[(0, b"PK\x03\x04")], "zip", "unzip -p FILE"),
    (&[(0, b"7z\xbc\xaf\x27\x1c")], "7-Zip", "7z x -so FILE"),
];

const CONVERT: &str = "convert it first with Wireshark's `editcap -F pcap IN OUT`";
const TEXT_MODE: &str = "copy it again in binary mode (scp, or FTP with `binary`)";
const UTF_16: &str = "convert it with `iconv -f UTF-16 -t UTF-8 FILE | tcpwhy -`, or let cmd.exe \
                      rather than PowerShell redirect the output";
const NO_CAPTURE: &str = "pass a capture (pcap, pcapng) or a listing as tcpdump prints it";

/// Files that are passed by mistake, and what to do instead. Magic numbers as in `file`'s
/// `magic/Magdir/sniffer` and in the formats' own documents.
const OTHERS: &[(Magic, &str, &str)] = &[
    (&[(0, b"\x0d\x0a\x0d\x0d\x0d\x0a")], "a pcapng file that was transferred as text", TEXT_MODE),
    (&[(0, b"\x0a\x0d\x0a"), (5, b"\0")], "a pcapng file that was transferred as text", TEXT_MODE),
    (&[(0, b"\xff\xfe")], "text in UTF-16, as PowerShell writes it", UTF_16),
    (&[(0, b"\xfe\xff")], "text in UTF-16", UTF_16),
    (&[(0, b"snoop\0\0\0")], "a snoop capture", CONVERT),
    (&[(0, b"RTSS")], "a Microsoft Network Monitor 1 capture", CONVERT),
    (&[(0, b"GMBU")], "a Microsoft Network Monitor capture", CONVERT),
    (&[(0, b"TRSNIFF data    \x1a")], "a Sniffer capture", CONVERT),
    (&[(0, b"XCP\0")], "a NetXRay or Windows Sniffer capture", CONVERT),
    (&[(0, b"iptrace ")], "an AIX iptrace capture", CONVERT),
    (&[(0, b"ObserverPktBuffe")], "an Observer capture", CONVERT),
    (&[(0, b"\xac\x01\0\x1c")], "an Ixia capture", CONVERT),
    (&[(0, b"\xab\x01\0\x1c")], "an Ixia capture", CONVERT),
    (&[(0, b"btsnoop\0")], "a Bluetooth capture", "it holds no TCP"),
    (&[(0, b"\x7fELF")], "a program (ELF)", NO_CAPTURE),
    (&[(0, b"MZ"), (3, b"\0")], "a program (Windows)", NO_CAPTURE),
    (&[(0, b"\x89PNG\r\n\x1a\n")], "a picture (PNG)", NO_CAPTURE),
    (&[(0, b"\xff\xd8\xff")], "a picture (JPEG)", NO_CAPTURE),
    (&[(0, b"%PDF-")], "a PDF document", NO_CAPTURE),
    (&[(0, b"SQLite format 3\0")], "a database (SQLite)", NO_CAPTURE),
    (&[(0, b"PERFILE2")], "a profile (perf.data)", NO_CAPTURE),
];

#[cfg(test)]
mod tests {
    use super::*;

    fn said(first: &[u8]) -> String {
        match format(first) {
            Ok(format) => format!("{format:?}"),
            Err(error) => error.to_string(),
        }
    }

    #[test]
    fn captures_are_told_by_their_magic_in_either_byte_order() {
        for magic in [
            b"\xd4\xc3\xb2\xa1",
            b"\xa1\xb2\xc3\xd4",
            b"\x4d\x3c\xb2\xa1",
            b"\xa1\xb2\x3c\x4d",
            b"\x34\xcd\xb2\xa1",
            b"\xa1\xb2\xcd\x34",
        ] {
            assert_eq!(said(magic), "Pcap");
        }
        assert_eq!(said(b"\x0a\x0d\x0d\x0a"), "PcapNg");
    }

    #[test]
    fn text_is_a_listing() {
        assert_eq!(
            said(b"12:00:00.000001 IP 10.0.0.1.80 > 10.0.0.2.44612: Flags [S], seq"),
            "Listing"
        );
        assert_eq!(said(b"\xef\xbb\xbf\r\n\x1b[1m$ tcpdump -r x"), "Listing");
        assert_eq!(said("# Größe".as_bytes()), "Listing");
        let cut_in_a_letter = "# Grö".as_bytes().split_last().expect("not empty").1;
        assert_eq!(said(cut_in_a_letter), "Listing");
        assert_eq!(said(b"\n"), "Listing");
    }

    #[test]
    fn other_files_are_named_with_what_to_try() {
        let cases: &[(&[u8], &str)] = &[
            (b"", "the capture is empty"),
            (
                b"\x1f\x8b\x08\0",
                "it is compressed with gzip: unpack it first, for instance `gzip -dc FILE | tcpwhy -`",
            ),
            (
                b"BZh91AY&SY",
                "it is compressed with bzip2: unpack it first, for instance `bzip2 -dc FILE | tcpwhy -`",
            ),
            (
                b"snoop\0\0\0\0\0\0\x02",
                "it is a snoop capture: convert it first with Wireshark's `editcap -F pcap IN OUT`",
            ),
            (
                b"\n <HTML><body>",
                "it is an HTML page: the download gave a web page, perhaps an error or a login; get \
                 the file itself",
            ),
            (
                b"\x7fELF\x02\x01\x01\0",
                "it is a program (ELF): pass a capture (pcap, pcapng) or a listing as tcpdump prints it",
            ),
            (
                b"\x0d\x0a\x0d\x0d\x0d\x0a\x6c\0\0\0",
                "it is a pcapng file that was transferred as text: copy it again in binary mode (scp, \
                 or FTP with `binary`)",
            ),
            (
                b"\0\x01\xfe",
                "it begins with 00 01 fe, which is neither pcap, pcapng nor a listing as tcpdump prints \
                 it: if Wireshark opens it, convert it with `editcap -F pcap IN OUT`",
            ),
        ];
        for (first, sentence) in cases {
            assert_eq!(said(first), *sentence);
        }
    }

    #[test]
    fn text_in_other_letters_is_told_with_how_to_convert_it() {
        let units = || "21:59:32.78 IP 127.0.0.1".encode_utf16();
        let big: Vec<u8> = units().flat_map(u16::to_be_bytes).collect();
        let little: Vec<u8> = units().flat_map(u16::to_le_bytes).collect();
        for (first, words) in [
            (&big[..], ["it is text in UTF-16, big-endian", "iconv -f UTF-16BE"]),
            (&little, ["it is text in UTF-16, little-endian", "iconv -f UTF-16LE"]),
            (b"# Gr\xf6\xdfe der Datei", ["it is text, but not in UTF-8", "iconv -f WINDOWS-1252"]),
        ] {
            let told = said(first);
            assert!(words.iter().all(|word| told.contains(word)), "{told}");
        }
        for first in [&b"\0\x01\0\x02\0\x03\0\x04"[..], b"\0a\0b", b"\x80\x81\x82ab"] {
            assert!(said(first).starts_with("it begins with"), "{}", said(first));
        }
    }

    #[test]
    fn pcapng_damaged_by_text_transfer_is_known_whichever_way_it_went() {
        for length in [b"\xbc\0\0\0", b"\0\0\0\xbc"] {
            for magic in [&b"\n\r\n"[..], b"\r\n\r\r\r\n"] {
                let told = said(&[magic, length].concat());
                assert!(
                    told.starts_with("it is a pcapng file that was transferred as text"),
                    "{told}"
                );
            }
        }
    }

    #[test]
    fn every_magic_fits_into_the_bytes_looked_at_and_is_told() {
        for (magic, ..) in COMPRESSIONS.iter().chain(OTHERS) {
            let mut first = [1; SNIFFED];
            for (at, bytes) in *magic {
                first[*at..at + bytes.len()].copy_from_slice(bytes);
            }
            let told = format(&first);
            assert!(
                matches!(told, Err(CaptureError::Compressed { .. } | CaptureError::Other { .. })),
                "{magic:x?}: {told:?}"
            );
        }
    }
}
