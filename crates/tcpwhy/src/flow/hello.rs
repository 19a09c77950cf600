//! What the two hellos of TLS say in clear: the server's name, the version, the protocol inside.
//!
//! The `ClientHello` carries the name of the server (RFC 6066 section 3) and the protocols that it offers (RFC 7301),
//! whatever is encrypted later. The `ServerHello` says which version was taken (RFC 8446 section 4.2.1) and, before TLS 1.3,
//! which protocol; later versions hide it. A hello with a post-quantum key takes two segments: they are put together up to
//! [`MOST`] bytes.
//!
//! Left out: hellos behind STARTTLS or a proxy's CONNECT; hellos cut into several records; names under ECH, which are
//! those of the front.

use super::event::{Event, Side};
use super::said::safe;
use crate::offsets::Offset;

/// Bytes of a hello that are looked at. Ours: with a key of ML-KEM-768 one has about 2 kB.
const MOST: usize = 8 << 10;
/// Characters of a host's name (RFC 1035 section 2.3.4), and of a protocol's.
const NAME: usize = 253;
const PROTOCOL: usize = 32;
/// Protocols kept of an offer. Ours.
const OFFERED: usize = 8;

/// What was said.
#[derive(Clone, Debug, Default)]
pub(crate) struct Told {
    pub(crate) server_name: Option<Box<str>>,
    pub(crate) offered: Vec<String>,
    pub(crate) version: Option<u16>,
    pub(crate) chosen: Option<String>,
}

/// Listens to both.
#[derive(Clone, Debug, Default)]
pub(crate) struct Hellos {
    /// The beginning of a hello that came in several segments.
    bytes: Vec<u8>,
    is_client_over: bool,
    is_server_over: bool,
    told: Option<Box<Told>>,
}

impl Hellos {
    /// Takes a segment while the handshake is watched.
    pub(super) fn push(&mut self, side: Side, event: &Event, payload: &[u8]) {
        match side {
            0 => self.on_client(event, payload),
            _ => self.on_server(event, payload),
        }
    }

    /// Offset behind what was put together of the client's.
    fn upto(&self) -> Offset {
        Offset::at(self.bytes.len() as i64)
    }

    fn on_client(&mut self, event: &Event, payload: &[u8]) {
        if self.is_client_over || event.seq < self.upto() {
            return;
        }
        if event.seq > self.upto() {
            return self.end_client();
        }
        let is_cut = payload.len() < event.len as usize;
        if self.bytes.is_empty() && (is_cut || payload.len() >= whole(payload)) {
            self.is_client_over = true;
            return self.read_client(payload);
        }
        let room = MOST.saturating_sub(self.bytes.len()).min(payload.len());
        self.bytes.extend_from_slice(&payload[..room]);
        if is_cut || self.bytes.len() >= whole(&self.bytes).min(MOST) {
            self.end_client();
        }
    }

    fn on_server(&mut self, event: &Event, payload: &[u8]) {
        self.end_client();
        if core::mem::replace(&mut self.is_server_over, true) || event.seq != Offset::FIRST {
            return;
        }
        let Some((version, extensions)) = hello(payload, 2) else { return };
        let told = self.told.get_or_insert_default();
        told.version = Some(version);
        for (kind, data) in extensions {
            match (kind, data) {
                (SUPPORTED_VERSIONS, &[high, low]) => {
                    told.version = Some(u16::from_be_bytes([high, low]));
                }
                (ALPN, data) => told.chosen = protocols(data).next(),
                _ => {}
            }
        }
    }

    /// No more of the client's hello is to come.
    fn end_client(&mut self) {
        if !core::mem::replace(&mut self.is_client_over, true) {
            let bytes = core::mem::take(&mut self.bytes);
            self.read_client(&bytes);
        }
    }

    fn read_client(&mut self, bytes: &[u8]) {
        let Some((_, extensions)) = hello(bytes, 1) else { return };
        let told = self.told.get_or_insert_default();
        for (kind, data) in extensions {
            match kind {
                SERVER_NAME => told.server_name = server_name(data).or(told.server_name.take()),
                ALPN => told.offered = protocols(data).take(OFFERED).collect(),
                _ => {}
            }
        }
    }

    /// What was said, with what there is of a hello that never ended.
    pub(crate) fn told(&self) -> Option<Box<Told>> {
        let mut all = self.clone();
        all.end_client();
        all.told
    }
}

const SERVER_NAME: u16 = 0;
const ALPN: u16 = 16;
const SUPPORTED_VERSIONS: u16 = 43;

/// How long the record is that `bytes` begin with, its header included.
fn whole(bytes: &[u8]) -> usize {
    match bytes {
        [_, _, _, high, low, ..] => 5 + usize::from(u16::from_be_bytes([*high, *low])),
        _ => usize::MAX,
    }
}

/// The version and the extensions of a hello of this type in the record that `record` begins with, as far as they go
/// (RFC 8446 section 4.1, RFC 5246 section 7.4.1).
fn hello(record: &[u8], kind: u8) -> Option<(u16, Extensions<'_>)> {
    let [22, 3, _, _, _, message @ ..] = record else { return None };
    let [first, _, _, _, high, low, rest @ ..] = message else { return None };
    if *first != kind {
        return None;
    }
    let rest = rest.get(32..)?;
    let rest = skip(rest, 1)?;
    let rest = if kind == 1 { skip(skip(rest, 2)?, 1)? } else { rest.get(3..)? };
    let version = u16::from_be_bytes([*high, *low]);
    let end = 2 + usize::from(be16(rest).unwrap_or(0));
    let extensions = rest.get(2..end.min(rest.len())).unwrap_or_default();
    Some((version, Extensions(extensions)))
}

/// What follows a vector whose length takes `digits` bytes.
fn skip(bytes: &[u8], digits: usize) -> Option<&[u8]> {
    let length = bytes.get(..digits)?.iter().fold(0, |sum, byte| sum << 8 | usize::from(*byte));
    bytes.get(digits + length..)
}

fn be16(bytes: &[u8]) -> Option<u16> {
    bytes.first_chunk().map(|digits| u16::from_be_bytes(*digits))
}

/// Extensions by type, as far as they are whole.
struct Extensions<'a>(&'a [u8]);

impl<'a> Iterator for Extensions<'a> {
    type Item = (u16, &'a [u8]);

    fn next(&mut self) -> Option<Self::Item> {
        let kind = be16(self.0)?;
        let length = usize::from(be16(self.0.get(2..)?)?);
        let data = self.0.get(4..4 + length)?;
        self.0 = &self.0[4 + length..];
        Some((kind, data))
    }
}

/// The first name of a list that is one of a host (RFC 6066 section 3).
fn server_name(list: &[u8]) -> Option<Box<str>> {
    let [_, _, 0, high, low, name @ ..] = list else { return None };
    let length = usize::from(u16::from_be_bytes([*high, *low]));
    let name = name.get(..length).filter(|name| !name.is_empty())?;
    Some(safe(name, NAME).into_boxed_str())
}

/// The protocols of a list (RFC 7301 section 3.1); those drawn at random to keep servers tolerant (RFC 8701) are left out.
fn protocols(list: &[u8]) -> impl Iterator<Item = String> {
    let mut rest = list.get(2..).unwrap_or_default();
    core::iter::from_fn(move || {
        loop {
            let (length, after) = rest.split_first()?;
            let (name, after) = after.split_at_checked(usize::from(*length))?;
            rest = after;
            let is_grease = matches!(name, [a, b] if a == b && a & 0xf == 0xa);
            if !is_grease && !name.is_empty() {
                return Some(safe(name, PROTOCOL));
            }
        }
    })
}

/// What people call a version.
pub(crate) const fn version_name(version: u16) -> Option<&'static str> {
    Some(match version {
        0x0300 => "SSL 3.0",
        0x0301 => "TLS 1.0",
        0x0302 => "TLS 1.1",
        0x0303 => "TLS 1.2",
        0x0304 => "TLS 1.3",
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn vector(digits: usize, content: &[u8]) -> Vec<u8> {
        let length = (content.len() as u32).to_be_bytes();
        [&length[4 - digits..], content].concat()
    }

    fn extension(kind: u16, data: &[u8]) -> Vec<u8> {
        [&kind.to_be_bytes()[..], &vector(2, data)].concat()
    }

    fn record(kind: u8, body: &[u8]) -> Vec<u8> {
        let message = [&[kind][..], &vector(3, body)].concat();
        [&[22, 3, 1][..], &vector(2, &message)].concat()
    }

    /// A `ClientHello` with these extensions.
    fn client(extensions: &[Vec<u8>]) -> Vec<u8> {
        let head = [&[3, 3][..], &[7; 32], &vector(1, &[1; 32]), &vector(2, &[0x13, 1]), &[1, 0]];
        record(1, &[head.concat(), vector(2, &extensions.concat())].concat())
    }

    fn server(version: u16, extensions: &[Vec<u8>]) -> Vec<u8> {
        let head = [&version.to_be_bytes()[..], &[7; 32], &vector(1, &[1; 32]), &[0x13, 1, 0]];
        record(2, &[head.concat(), vector(2, &extensions.concat())].concat())
    }

    fn named(name: &[u8]) -> Vec<u8> {
        extension(SERVER_NAME, &vector(2, &[&[0][..], &vector(2, name)].concat()))
    }

    fn offering(protocols: &[&[u8]]) -> Vec<u8> {
        let list: Vec<u8> = protocols.iter().flat_map(|each| vector(1, each)).collect();
        extension(ALPN, &vector(2, &list))
    }

    /// What these segments tell, each with its side and offset.
    fn told(segments: &[(Side, i64, &[u8])]) -> Option<Box<Told>> {
        let mut hellos = Hellos::default();
        for (side, seq, payload) in segments {
            let event =
                Event { seq: Offset::at(*seq), len: payload.len() as u32, ..Event::default() };
            hellos.push(*side, &event, payload);
        }
        hellos.told()
    }

    #[test]
    fn both_hellos_are_read() {
        let grease = [0x2a, 0x2a];
        let asks = client(&[
            extension(0x1a1a, &[]),
            named(b"files.example"),
            offering(&[&grease, b"h2", b"http/1.1"]),
        ]);
        let answers = server(0x0303, &[extension(SUPPORTED_VERSIONS, &[3, 4])]);
        let told = told(&[(0, 0, &asks), (1, 0, &answers)]).expect("TLS");
        assert_eq!(told.server_name.as_deref(), Some("files.example"));
        assert_eq!((told.offered.join(" "), told.version), ("h2 http/1.1".to_owned(), Some(0x304)));
        assert_eq!(told.chosen, None);
    }

    #[test]
    fn before_tls_13_the_choice_is_in_clear() {
        let told = told(&[
            (0, 0, &client(&[offering(&[b"h2"])])),
            (1, 0, &server(0x0303, &[offering(&[b"http/1.1"])])),
        ]);
        let told = told.expect("TLS");
        assert_eq!((told.chosen.as_deref(), told.version), (Some("http/1.1"), Some(0x303)));
    }

    #[test]
    fn a_hello_in_two_segments_is_put_together() {
        let asks = client(&[extension(51, &[9; 1800]), named(b"files.example")]);
        let (first, second) = asks.split_at(1448);
        let name = |segments: &[(Side, i64, &[u8])]| told(segments)?.server_name;
        assert_eq!(name(&[(0, 0, first), (0, 1448, second)]).as_deref(), Some("files.example"));
        assert_eq!(
            name(&[(0, 0, first), (0, 0, first), (0, 1448, second)]).as_deref(),
            Some("files.example"),
            "its first half came twice"
        );
        assert_eq!(name(&[(0, 0, first), (0, 1500, second)]), None, "a part is missing");
        assert_eq!(name(&[(0, 0, first)]), None);
    }

    #[test]
    fn hostile_names_are_escaped_and_cut() {
        let name =
            |name: &[u8]| told(&[(0, 0, &client(&[named(name)]))]).and_then(|t| t.server_name);
        assert_eq!(name(b"a\x1b[2J\xe2\x80\xaeb").as_deref(), Some("a%1B[2J%E2%80%AEb"));
        let long = name(&[b'a'; 10_000]);
        assert!(long.is_none_or(|name| name.len() <= NAME + 3), "it is longer than what is kept");
        assert_eq!(name(&[b'a'; 3_000]).map(|name| name.len()), Some(NAME + 3));
        assert_eq!(name(b""), None);
    }

    #[test]
    fn any_bytes_at_all_are_survived() {
        let asks = client(&[named(b"files.example"), offering(&[b"h2"])]);
        for end in 0..asks.len() {
            let _ = told(&[(0, 0, &asks[..end])]);
            let mut damaged = asks.clone();
            damaged[end] ^= 0xff;
            let _ = told(&[(0, 0, &damaged), (1, 0, &damaged)]);
        }
    }
}
