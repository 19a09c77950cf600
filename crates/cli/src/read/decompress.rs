//! What is inside a compressed input?
//!
//! The first bytes tell gzip, zstd and lz4 apart; anything else is handed on as it is. All three
//! are read as streams, so a small file that unpacks to terabytes costs time but no memory, and
//! files made of several members (`cat a.gz b.gz`, `pzstd`, rotated logs) are read to their end.
//! Data that ends early gives an error after the last byte that could be unpacked; so do a wrong
//! checksum, and anything that follows the packed data (zeros, which tapes and block devices add,
//! are passed over).
//!
//! Left out: xz, bzip2 and zip. Their magic numbers are known only to name the command that helps.

use std::io::{self, ErrorKind, Read};

use flate2::bufread::GzDecoder;
use lz4_flex::frame::FrameDecoder as Lz4Decoder;
use ruzstd::decoding::BlockDecodingStrategy::UptoBlocks;
use ruzstd::decoding::FrameDecoder as ZstdDecoder;

use super::source::Source;

/// Unpacks `source` if it is compressed.
///
/// # Errors
/// The source cannot be read, or is packed in a way this version does not read.
pub(crate) fn unpack<'a>(source: impl Read + Send + 'a) -> io::Result<Box<dyn Read + Send + 'a>> {
    let mut source = Source::new(source);
    skip_skippable(&mut source)?;
    Ok(match Packing::of(source.look(MAGIC_LEN)?) {
        None => Box::new(source),
        Some(Packing::Gzip) => Box::new(Named("gzip", GzipMembers::Between(source))),
        Some(Packing::Zstd) => Box::new(Named("zstd", ZstdFrames::new(source))),
        Some(Packing::Lz4) => Box::new(Named("lz4", Lz4Frames::new(source))),
        Some(Packing::Foreign { name, command }) => {
            return Err(io::Error::new(
                ErrorKind::Unsupported,
                format!(
                    "it is packed with {name}, which tcpwhy does not read; \
                     unpack it with `{command} FILE`, and let tcpwhy read that as `-`"
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
    let mut head = Vec::with_capacity(MAGIC_LEN);
    source.by_ref().take(MAGIC_LEN as u64).read_to_end(&mut head)?;
    Ok(is_skippable(&head) || Packing::of(&head).is_some())
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
            // RFC 8878 §3.1.1.
            [0x28, 0xb5, 0x2f, 0xfd, ..] => Self::Zstd,
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

/// A frame that both zstd and lz4 skip: RFC 8878 §3.1.2, LZ4 frame format 1.6.4 "Skippable Frames".
const fn is_skippable(head: &[u8]) -> bool {
    matches!(head, [0x50..=0x5f, 0x2a, 0x4d, 0x18, ..])
}

fn is_legacy_lz4(head: &[u8]) -> bool {
    matches!(head, [0x02, 0x21, 0x4c, 0x18, ..])
}

/// Goes past skippable frames.
fn skip_skippable<R: Read>(source: &mut Source<R>) -> io::Result<()> {
    while is_skippable(source.look(4)?) {
        let &[_, _, _, _, a, b, c, d] = source.look(8)? else {
            return Err(ErrorKind::UnexpectedEof.into());
        };
        let length = 8 + u64::from(u32::from_le_bytes([a, b, c, d]));
        if io::copy(&mut source.by_ref().take(length), &mut io::sink())? < length {
            return Err(ErrorKind::UnexpectedEof.into());
        }
    }
    Ok(())
}

/// Whether another member of `packing` begins here; otherwise this must be the end.
fn goes_on<R: Read>(source: &mut Source<R>, packing: Packing) -> io::Result<bool> {
    if packing != Packing::Gzip {
        skip_skippable(source)?;
    }
    if Packing::of(source.look(MAGIC_LEN)?) == Some(packing) {
        return Ok(true);
    }
    let at = source.passed();
    if source.only_zeros_follow()? { Ok(false) } else { Err(io::Error::other(Follows { at })) }
}

/// Something that is not packed follows the packed data.
#[derive(Debug, thiserror::Error)]
#[error("something else follows at byte {at}")]
struct Follows {
    at: u64,
}

/// Says which packing an error comes from, and what it means for the reader.
struct Named<R>(&'static str, R);

impl<R: Read> Read for Named<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let Self(name, inner) = self;
        inner.read(buffer).map_err(|error| {
            if error.kind() == ErrorKind::Interrupted {
                return error;
            }
            if let Some(Follows { at }) = error.get_ref().and_then(|cause| cause.downcast_ref()) {
                let text = format!(
                    "the {name} data ends at byte {at} of the file and something else follows, \
                     which was not read: unpack it yourself if it matters"
                );
                return io::Error::new(ErrorKind::InvalidData, text);
            }
            if is_cut(&error) {
                let text = format!(
                    "the {name} data ends early: the file was cut short, or is still written"
                );
                return io::Error::new(ErrorKind::UnexpectedEof, text);
            }
            let text = format!("the {name} data is damaged: {error}; copy the file again");
            io::Error::new(ErrorKind::InvalidData, text)
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

/// Gzip members one after the other (RFC 1952 §2.2).
#[expect(clippy::large_enum_variant, reason = "there is one of these for each input")]
enum GzipMembers<R: Read> {
    /// Before the first member, or behind one.
    Between(Source<R>),
    Inside(GzDecoder<Source<R>>),
    Ended,
}

impl<R: Read> Read for GzipMembers<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        loop {
            *self = match core::mem::replace(self, Self::Ended) {
                Self::Ended => return Ok(0),
                Self::Between(mut source) => {
                    if !goes_on(&mut source, Packing::Gzip)? {
                        return Ok(0);
                    }
                    Self::Inside(GzDecoder::new(source))
                }
                Self::Inside(mut decoder) => {
                    let got = decoder.read(buffer)?;
                    if got > 0 || buffer.is_empty() {
                        *self = Self::Inside(decoder);
                        return Ok(got);
                    }
                    Self::Between(decoder.into_inner())
                }
            };
        }
    }
}

/// Zstandard frames one after the other (RFC 8878 §3.1).
///
/// The decoder refuses windows beyond 128 MiB, which bounds the memory a hostile file can take.
struct ZstdFrames<R: Read> {
    source: Source<R>,
    decoder: Box<ZstdDecoder>,
    in_frame: bool,
    cut: bool,
}

impl<R: Read> ZstdFrames<R> {
    fn new(source: Source<R>) -> Self {
        Self { source, decoder: Box::default(), in_frame: false, cut: false }
    }

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

    /// Ends a frame whose bytes were all handed out.
    fn end_frame(&mut self) -> io::Result<()> {
        self.in_frame = false;
        if self.cut {
            return Err(ErrorKind::UnexpectedEof.into());
        }
        let stored = self.decoder.get_checksum_from_data();
        if stored.is_some() && stored != self.decoder.get_calculated_checksum() {
            return Err(io::Error::other(
                "the checksum of its content is wrong, so some of what came out of it is too",
            ));
        }
        Ok(())
    }
}

impl<R: Read> Read for ZstdFrames<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        loop {
            if !self.in_frame {
                if !goes_on(&mut self.source, Packing::Zstd)? {
                    return Ok(0);
                }
                self.decoder.init(&mut self.source).map_err(io::Error::other)?;
                self.in_frame = true;
            }
            while self.decoder.can_collect() == 0 && !self.decoder.is_finished() {
                self.next_block()?;
            }
            let got = self.decoder.read(buffer)?;
            if got > 0 || buffer.is_empty() {
                return Ok(got);
            }
            self.end_frame()?;
        }
    }
}

/// LZ4 frames one after the other, with a check that each really ended.
///
/// The decoder takes the end of the source between two blocks for the end of the data. A frame
/// ends with a mark, though, behind which the decoder reads no further: having met the end of the
/// source inside a frame means that it was cut. Legacy frames have no end mark.
struct Lz4Frames<R: Read> {
    decoder: Lz4Decoder<Source<R>>,
    in_frame: bool,
    is_legacy: bool,
}

impl<R: Read> Lz4Frames<R> {
    fn new(source: Source<R>) -> Self {
        Self { decoder: Lz4Decoder::new(source), in_frame: false, is_legacy: false }
    }
}

impl<R: Read> Read for Lz4Frames<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        loop {
            if !self.in_frame {
                let source = self.decoder.get_mut();
                if !goes_on(source, Packing::Lz4)? {
                    return Ok(0);
                }
                self.is_legacy = is_legacy_lz4(source.look(4)?);
                self.in_frame = true;
            }
            let got = self.decoder.read(buffer)?;
            if got > 0 || buffer.is_empty() {
                return Ok(got);
            }
            if self.decoder.get_ref().met_end() && !self.is_legacy {
                return Err(ErrorKind::UnexpectedEof.into());
            }
            self.in_frame = false;
        }
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
    fn members_of_different_makers_are_one_stream() {
        let packed = [lz4(b"one ", true), lz4(b"two ", false), lz4(b"three", true)].concat();
        let (out, error) = unpacked(&packed);
        assert!(error.is_none(), "{error:?}");
        assert_eq!(out, b"one two three");
    }

    #[test]
    fn skippable_frames_are_skipped_wherever_they_stand() {
        let skippable = [0x53, 0x2a, 0x4d, 0x18, 3, 0, 0, 0, 1, 2, 3];
        for (name, packed) in [("zstd", zstd(b"inside")), ("lz4", lz4(b"inside", true))] {
            let all = [&skippable, &packed[..], &skippable, &packed[..], &skippable].concat();
            let (out, error) = unpacked(&all);
            assert!(error.is_none(), "{name}: {error:?}");
            assert_eq!(out, b"insideinside", "{name}");
        }
        let cut = unpacked(&skippable[..9]).1.expect("it is cut");
        assert_eq!(cut.kind(), ErrorKind::UnexpectedEof);
    }

    #[test]
    fn what_follows_packed_data_is_told_and_padding_is_not() {
        for (name, packed) in packings() {
            let followed = unpacked(&[&packed[..], b"something else"].concat());
            assert!(followed.0 == text(), "{name}");
            let error = followed.1.expect("something follows").to_string();
            assert!(
                error.contains(&format!("ends at byte {} of", packed.len())),
                "{name}: {error}"
            );
            let padded = unpacked(&[&packed[..], &[0; 700]].concat());
            assert!(padded.1.is_none(), "{name}: {:?}", padded.1);
            assert!(padded.0 == text(), "{name}");
        }
    }

    #[test]
    fn a_wrong_checksum_is_damage() {
        for (name, mut packed) in packings() {
            let length = packed.len();
            match name {
                "lz4" => continue,
                // Its size follows the checksum.
                "gzip" => packed[length - 5] ^= 1,
                _ => packed[length - 1] ^= 1,
            }
            let (out, error) = unpacked(&packed);
            assert!(text().starts_with(&out), "{name}");
            let error = error.expect("the checksum is wrong").to_string();
            assert!(error.contains("damaged"), "{name}: {error}");
        }
    }

    #[test]
    fn a_cut_gives_what_came_before_it_and_says_so() {
        for (name, packed) in packings() {
            for cut in [packed.len() / 2, packed.len() - 5, packed.len() - 1] {
                let (out, error) = unpacked(&packed[..cut]);
                assert!(text().starts_with(&out), "{name} cut at {cut}");
                assert!(!out.is_empty(), "{name} cut at {cut}");
                let error = error.expect("a cut is an error").to_string();
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
        let error = unpacked(&packed).1.expect("damage is an error").to_string();
        assert!(error.starts_with("the gzip data is damaged"), "{error}");
    }

    #[test]
    fn packings_we_cannot_read_name_the_command_that_can() {
        let error = unpacked(b"\xfd7zXZ\0...").1.expect("unsupported").to_string();
        assert!(error.contains("`xz -dc FILE`, and let tcpwhy read that as `-`"), "{error}");
    }
}
