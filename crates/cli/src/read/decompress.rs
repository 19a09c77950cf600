//! What is inside a compressed input?
//!
//! The first bytes tell gzip, zstd and lz4 apart; anything else is handed on as it is. All three
//! are read as streams, so a small file that unpacks to terabytes costs time but no memory, and
//! files made of several members (`cat a.gz b.gz`, `pzstd`, rotated logs) are read to their end.
//! Data that ends early gives an error after the last byte that could be unpacked.
//!
//! Left out: xz, bzip2 and zip. Their magic numbers are known only to name the command that helps.

use std::io::{self, BufRead, BufReader, Chain, Cursor, ErrorKind, Read};

use flate2::bufread::MultiGzDecoder;
use lz4_flex::frame::FrameDecoder as Lz4Decoder;
use ruzstd::decoding::BlockDecodingStrategy::UptoBlocks;
use ruzstd::decoding::FrameDecoder as ZstdDecoder;
use ruzstd::decoding::errors::{FrameDecoderError, ReadFrameHeaderError};

/// Bytes taken from the system at a time.
///
/// Ours: large enough that system calls do not show in a profile, small enough that the chunks
/// under way stay in the second-level cache (1 MiB takes a sixth longer for 900 MB).
pub(super) const CHUNK: usize = 1 << 18;

/// A source after a look at its first bytes.
type Peeked<R> = Chain<Cursor<Vec<u8>>, R>;

/// Unpacks `source` if it is compressed.
///
/// # Errors
/// The source cannot be read, or is packed in a way this version does not read.
pub(super) fn unpack<'a>(
    mut source: impl Read + Send + 'a,
) -> io::Result<Box<dyn Read + Send + 'a>> {
    let head = head(&mut source)?;
    let packing = Packing::of(&head);
    let source = Cursor::new(head).chain(source);
    Ok(match packing {
        None => Box::new(source),
        Some(Packing::Gzip) => {
            Box::new(Named("gzip", MultiGzDecoder::new(BufReader::with_capacity(CHUNK, source))))
        }
        Some(Packing::Zstd) => Box::new(Named("zstd", ZstdFrames::new(source))),
        Some(Packing::Lz4) => Box::new(Named("lz4", Lz4Frames::new(source))),
        Some(Packing::Foreign { name, command }) => {
            return Err(io::Error::new(
                ErrorKind::Unsupported,
                format!(
                    "it is packed with {name}, which tcpwhy does not read; \
                     try `{command} FILE | tcpwhy -`"
                ),
            ));
        }
    })
}

/// Whether `source` is compressed, which its first bytes tell; they are taken from it.
///
/// # Errors
/// The source cannot be read.
pub(super) fn is_packed(source: &mut impl Read) -> io::Result<bool> {
    Ok(Packing::of(&head(source)?).is_some())
}

/// Takes the bytes that tell the packing.
fn head(source: &mut impl Read) -> io::Result<Vec<u8>> {
    let mut head = Vec::with_capacity(MAGIC_LEN);
    source.by_ref().take(MAGIC_LEN as u64).read_to_end(&mut head)?;
    Ok(head)
}

/// How an input is packed.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Packing {
    Gzip,
    Zstd,
    Lz4,
    Foreign { name: &'static str, command: &'static str },
}

/// Bytes needed to tell every packing (xz has the longest magic number).
const MAGIC_LEN: usize = 6;

impl Packing {
    fn of(head: &[u8]) -> Option<Self> {
        Some(match head {
            // RFC 1952 §2.3.1; method 8 (deflate) is the only one there is.
            [0x1f, 0x8b, 8, ..] => Self::Gzip,
            // RFC 8878 §3.1.1, and §3.1.2 for a skippable frame in front.
            [0x28, 0xb5, 0x2f, 0xfd, ..] | [0x50..=0x5f, 0x2a, 0x4d, 0x18, ..] => Self::Zstd,
            // LZ4 frame format 1.6.4 "Magic Number", and "Legacy frame".
            [0x04, 0x22, 0x4d, 0x18, ..] | [0x02, 0x21, 0x4c, 0x18, ..] => Self::Lz4,
            // The .xz file format 1.2.1 §2.1.1.1.
            [0xfd, b'7', b'z', b'X', b'Z', 0] => Self::Foreign { name: "xz", command: "xz -dc" },
            // bzip2: "BZh", a level, then the block's magic number (pi).
            [b'B', b'Z', b'h', b'1'..=b'9', 0x31, 0x41] => {
                Self::Foreign { name: "bzip2", command: "bzip2 -dc" }
            }
            // APPNOTE.TXT §4.3.7, local file header.
            [b'P', b'K', 3, 4, ..] => Self::Foreign { name: "zip", command: "unzip -p" },
            _ => return None,
        })
    }
}

/// Says which packing an error comes from, and what it means for the reader.
struct Named<R>(&'static str, R);

impl<R: Read> Read for Named<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.1.read(buffer).map_err(|error| {
            let Self(name, _) = self;
            if error.kind() == ErrorKind::Interrupted {
                error
            } else if is_cut(&error) {
                io::Error::new(
                    ErrorKind::UnexpectedEof,
                    format!(
                        "the {name} data ends early: the file was cut short, or is still written"
                    ),
                )
            } else {
                io::Error::new(
                    ErrorKind::InvalidData,
                    format!("the {name} data is damaged: {error}"),
                )
            }
        })
    }
}

/// Whether an error, or one it was made from, is the end of the data.
fn is_cut(error: &io::Error) -> bool {
    if error.kind() == ErrorKind::UnexpectedEof {
        return true;
    }
    let mut cause: Option<&(dyn std::error::Error + 'static)> =
        error.get_ref().map(|inner| inner as &(dyn std::error::Error + 'static));
    while let Some(inner) = cause {
        if inner.downcast_ref::<io::Error>().is_some_and(is_cut) {
            return true;
        }
        cause = inner.source();
    }
    false
}

/// Zstandard frames one after the other, skippable ones skipped (RFC 8878 §3.1).
///
/// The decoder refuses windows beyond 128 MiB, which bounds the memory a hostile file can take.
struct ZstdFrames<R: Read> {
    source: BufReader<Peeked<R>>,
    decoder: Box<ZstdDecoder>,
    in_frame: bool,
    cut: bool,
}

impl<R: Read> ZstdFrames<R> {
    fn new(source: Peeked<R>) -> Self {
        Self {
            source: BufReader::with_capacity(CHUNK, source),
            decoder: Box::default(),
            in_frame: false,
            cut: false,
        }
    }

    /// Goes to the start of the next data frame; `false` at the end of the source.
    fn next_frame(&mut self) -> io::Result<bool> {
        loop {
            if self.source.fill_buf()?.is_empty() {
                return Ok(false);
            }
            match self.decoder.init(&mut self.source) {
                Ok(()) => return Ok(true),
                Err(FrameDecoderError::ReadFrameHeaderError(ReadFrameHeaderError::SkipFrame {
                    length,
                    ..
                })) => {
                    let length = u64::from(length);
                    let skipped =
                        io::copy(&mut self.source.by_ref().take(length), &mut io::sink())?;
                    if skipped < length {
                        return Err(ErrorKind::UnexpectedEof.into());
                    }
                }
                Err(error) => return Err(io::Error::other(error)),
            }
        }
    }
}

impl<R: Read> ZstdFrames<R> {
    /// Unpacks one more block of the frame.
    ///
    /// The decoder holds back as many bytes as later blocks may refer to, until the frame ends.
    /// When the source ends first, an empty last block of our own makes it hand them out.
    fn next_block(&mut self) -> io::Result<()> {
        // RFC 8878 §3.1.1.2: last block, raw, of size 0; then room for a checksum.
        const EMPTY_LAST_BLOCK: [u8; 7] = [1, 0, 0, 0, 0, 0, 0];
        let decoded = self.decoder.decode_blocks(&mut self.source, UptoBlocks(1));
        let Err(error) = decoded.map_err(io::Error::other) else { return Ok(()) };
        if !is_cut(&error) {
            return Err(error);
        }
        self.cut = true;
        self.decoder
            .decode_blocks(&EMPTY_LAST_BLOCK[..], UptoBlocks(1))
            .map_err(io::Error::other)?;
        Ok(())
    }
}

impl<R: Read> Read for ZstdFrames<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        loop {
            if !self.in_frame {
                if !self.next_frame()? {
                    return Ok(0);
                }
                self.in_frame = true;
            }
            while self.decoder.can_collect() == 0 && !self.decoder.is_finished() {
                self.next_block()?;
            }
            let got = self.decoder.read(buffer)?;
            if got > 0 || buffer.is_empty() {
                return Ok(got);
            }
            if self.cut {
                return Err(ErrorKind::UnexpectedEof.into());
            }
            self.in_frame = false;
        }
    }
}

/// LZ4 frames, with a check that the last one really ended.
///
/// The decoder takes the end of the source between two blocks for the end of the data. A frame
/// ends with a block size of zero and, if its header says so, a checksum of four bytes; the last
/// eight bytes of the source show whether it did. Legacy frames have no end mark.
struct Lz4Frames<R: Read> {
    decoder: Lz4Decoder<Tail<BufReader<Peeked<R>>>>,
}

impl<R: Read> Lz4Frames<R> {
    fn new(source: Peeked<R>) -> Self {
        let source = BufReader::with_capacity(CHUNK, source);
        Self { decoder: Lz4Decoder::new(Tail { source, head: Vec::new(), last: [0xff; 8] }) }
    }
}

impl<R: Read> Read for Lz4Frames<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        loop {
            let got = self.decoder.read(buffer)?;
            if got > 0 || buffer.is_empty() {
                return Ok(got);
            }
            let tail = self.decoder.get_mut();
            if tail.source.fill_buf()?.is_empty() {
                return if tail.ended() { Ok(0) } else { Err(ErrorKind::UnexpectedEof.into()) };
            }
            // The decoder stops at the end of each frame; here another one follows.
        }
    }
}

/// Remembers the first five and the last eight bytes that passed.
struct Tail<R> {
    source: R,
    head: Vec<u8>,
    last: [u8; 8],
}

impl<R> Tail<R> {
    /// Whether what passed ends as an LZ4 frame ends.
    fn ended(&self) -> bool {
        // Frame descriptor, FLG byte, bit 2: content checksum.
        const CONTENT_CHECKSUM: u8 = 1 << 2;
        match self.head[..] {
            [0x04, .., flags] if flags & CONTENT_CHECKSUM != 0 => self.last[..4] == [0; 4],
            [0x04, ..] => self.last[4..] == [0; 4],
            _ => true,
        }
    }
}

impl<R: Read> Read for Tail<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let got = self.source.read(buffer)?;
        let new = &buffer[..got];
        let missing = 5_usize.saturating_sub(self.head.len()).min(got);
        self.head.extend_from_slice(&new[..missing]);
        let kept = &new[got.saturating_sub(8)..];
        self.last.rotate_left(kept.len());
        self.last[8 - kept.len()..].copy_from_slice(kept);
        Ok(got)
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    /// Text that packs, longer than one lz4 block of the default size and one zstd block.
    fn text() -> Vec<u8> {
        let mut text = Vec::new();
        for line in 0..12_000_u32 {
            writeln!(text, "{} packet {line}", line.wrapping_mul(2_654_435_761)).expect("memory");
        }
        text
    }

    fn gzip(data: &[u8]) -> Vec<u8> {
        let mut packed = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        packed.write_all(data).expect("memory");
        packed.finish().expect("memory")
    }

    fn zstd(data: &[u8]) -> Vec<u8> {
        use ruzstd::encoding::{CompressionLevel, compress_to_vec};
        compress_to_vec(data, CompressionLevel::Fastest)
    }

    fn lz4(data: &[u8], checksum: bool) -> Vec<u8> {
        let info = lz4_flex::frame::FrameInfo::new()
            .block_size(lz4_flex::frame::BlockSize::Max64KB)
            .content_checksum(checksum);
        let mut packed = lz4_flex::frame::FrameEncoder::with_frame_info(info, Vec::new());
        packed.write_all(data).expect("memory");
        packed.finish().expect("memory")
    }

    fn packings() -> Vec<(&'static str, Vec<u8>)> {
        vec![
            ("gzip", gzip(&text())),
            ("zstd", zstd(&text())),
            ("lz4", lz4(&text(), false)),
            ("lz4 with checksum", lz4(&text(), true)),
        ]
    }

    /// What comes out, and the error that ended it.
    fn unpacked(packed: &[u8]) -> (Vec<u8>, Option<io::Error>) {
        let mut out = Vec::new();
        let error = unpack(packed).and_then(|mut source| source.read_to_end(&mut out)).err();
        (out, error)
    }

    #[test]
    fn plain_bytes_pass_unchanged_even_when_there_are_few() {
        for plain in [&b""[..], b"\x1f", b"10:45", b"\xd4\xc3\xb2\xa1 a capture"] {
            let (out, error) = unpacked(plain);
            assert!(error.is_none());
            assert_eq!(out, plain);
        }
    }

    #[test]
    fn each_packing_is_told_by_its_content() {
        for (name, packed) in packings() {
            let (out, error) = unpacked(&packed);
            assert!(error.is_none(), "{name}: {error:?}");
            assert!(out == text(), "{name}");
        }
    }

    #[test]
    fn members_one_after_the_other_are_one_stream() {
        for (name, packed) in packings() {
            let (out, error) = unpacked(&[&packed[..], &packed[..]].concat());
            assert!(error.is_none(), "{name}: {error:?}");
            assert_eq!(out.len(), 2 * text().len(), "{name}");
        }
    }

    #[test]
    fn a_skippable_zstd_frame_in_front_is_skipped() {
        let mut packed = vec![0x53, 0x2a, 0x4d, 0x18, 3, 0, 0, 0, 1, 2, 3];
        packed.extend(zstd(b"inside"));
        let (out, error) = unpacked(&packed);
        assert!(error.is_none(), "{error:?}");
        assert_eq!(out, b"inside");
    }

    #[test]
    fn a_cut_gives_what_came_before_it_and_says_so() {
        for (name, packed) in packings() {
            for cut in [packed.len() / 2, packed.len() - 5, packed.len() - 1] {
                let (out, error) = unpacked(&packed[..cut]);
                assert!(text().starts_with(&out), "{name} cut at {cut}");
                assert!(!out.is_empty(), "{name} cut at {cut}");
                let error = error.expect("a cut is told").to_string();
                assert!(error.contains("ends early"), "{name} cut at {cut}: {error}");
            }
        }
    }

    #[test]
    fn an_lz4_file_cut_between_two_blocks_is_cut_too() {
        let packed = lz4(&text(), false);
        let without_end_mark = &packed[..packed.len() - 4];
        let (out, error) = unpacked(without_end_mark);
        assert!(out == text());
        assert!(error.expect("no end mark").to_string().contains("ends early"));
    }

    #[test]
    fn damage_is_named() {
        let mut packed = gzip(&text());
        let middle = packed.len() / 2;
        for byte in &mut packed[middle..middle + 64] {
            *byte ^= 0xff;
        }
        let error = unpacked(&packed).1.expect("damage is told").to_string();
        assert!(error.starts_with("the gzip data is damaged"), "{error}");
    }

    #[test]
    fn packings_we_cannot_read_name_the_command_that_can() {
        let error = unpacked(b"\xfd7zXZ\0...").1.expect("unsupported").to_string();
        assert!(error.contains("`xz -dc FILE | tcpwhy -`"), "{error}");
    }
}
