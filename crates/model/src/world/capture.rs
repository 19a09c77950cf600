//! A run as a capture file: what `tcpdump` would have written at a host of the model.

use super::{Seen, Side, Tap, Trace};
use crate::segment::{Cookie, Ecn, Segment};

impl Trace {
    /// The segments at one host's tap as a pcapng file of headers: raw IP (`LINKTYPE_RAW`) in
    /// nanoseconds, from 10.0.0.1 or `fd00::1` to the server's port at the address behind it. TCP
    /// checksums are left open, as offloading leaves them.
    pub fn pcapng(&self, tap: Tap, ipv6: bool) -> Vec<u8> {
        let mut file = Vec::new();
        block(&mut file, SECTION_HEADER, &[&[BYTE_ORDER, 1, u32::MAX, u32::MAX]], &[]);
        let resolution = [9 | 1 << 16, 9, 0];
        block(&mut file, INTERFACE_DESCRIPTION, &[&[LINKTYPE_RAW, SNAP], &resolution], &[]);
        for seen in self.segments.iter().filter(|seen| seen.tap == tap) {
            let ports = self.ports_of(seen.connection);
            let tcp = tcp_header(seen, ports);
            let packet = [ip_header(seen, tcp.len(), ipv6), tcp].concat();
            let kept = packet.len() as u32;
            let at = [(seen.at_ns >> 32) as u32, seen.at_ns as u32];
            let lengths = [kept, kept + seen.segment.len];
            block(&mut file, ENHANCED_PACKET, &[&[0], &at, &lengths], &packet);
        }
        file
    }
}

impl Trace {
    /// Ports of a connection's client and server in [`Self::pcapng`].
    pub fn ports_of(&self, connection: u32) -> [u16; 2] {
        let server = self.ports.get(connection as usize).copied().unwrap_or_default();
        [CLIENT_PORT.wrapping_add(connection as u16), server]
    }
}

/// A block of words and bytes (draft-ietf-opsawg-pcapng section 3.1), little-endian.
fn block(file: &mut Vec<u8>, kind: u32, words: &[&[u32]], bytes: &[u8]) {
    let words = words.concat();
    let total = (12 + 4 * words.len() + bytes.len().next_multiple_of(4)) as u32;
    for word in [kind, total].iter().chain(&words) {
        file.extend(word.to_le_bytes());
    }
    file.extend(bytes);
    file.resize(file.len().next_multiple_of(4), 0);
    file.extend(total.to_le_bytes());
}

fn ip_header(seen: &Seen, tcp: usize, ipv6: bool) -> Vec<u8> {
    let Segment { len, ecn, .. } = seen.segment;
    let hosts: [u8; 2] = if seen.from == Side::Client { [1, 2] } else { [2, 1] };
    let mark = match ecn {
        Ecn::NotEct => 0,
        Ecn::Ect0 => 2,
        Ecn::Ce => 3,
    };
    let payload = tcp as u32 + len;
    if ipv6 {
        let first = (6 << 28) | u32::from(mark) << 20;
        let mut header = first.to_be_bytes().to_vec();
        header.extend((payload as u16).to_be_bytes());
        header.extend([TCP, HOPS]);
        for host in hosts {
            header.extend([0xfd, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, host]);
        }
        return header;
    }
    let total = (payload + 20) as u16;
    let mut header = vec![0x45, mark];
    header.extend(total.to_be_bytes());
    header.extend(seen.segment.id.to_be_bytes());
    header.extend([DO_NOT_FRAGMENT, 0, HOPS, TCP, 0, 0]);
    for host in hosts {
        header.extend([10, 0, 0, host]);
    }
    let words = header.chunks(2).map(|word| u32::from(word[0]) << 8 | u32::from(word[1]));
    let sum: u32 = words.sum();
    let folded = (sum & 0xffff) + (sum >> 16);
    let checksum = !(((folded & 0xffff) + (folded >> 16)) as u16);
    header[10..12].copy_from_slice(&checksum.to_be_bytes());
    header
}

fn tcp_header(seen: &Seen, [client, server]: [u16; 2]) -> Vec<u8> {
    let segment = &seen.segment;
    let ports = if seen.from == Side::Client { [client, server] } else { [server, client] };
    let mut header: Vec<u8> = ports.iter().flat_map(|port| port.to_be_bytes()).collect();
    header.extend(segment.seq.to_be_bytes());
    header.extend(segment.ack.to_be_bytes());
    header.extend([((segment.header_bytes() / 4) << 4) as u8, segment.flags.0]);
    header.extend(segment.window.to_be_bytes());
    header.extend([0; 4]);
    options(segment, &mut header);
    header
}

/// Options in the order in which Linux writes them (`tcp_options_write`).
fn options(segment: &Segment, header: &mut Vec<u8>) {
    let options = &segment.options;
    if let Some(mss) = options.mss {
        header.extend([2, 4]);
        header.extend(mss.to_be_bytes());
    }
    if let Some(stamps) = options.stamps {
        header.extend(if options.sack_permitted { [4, 2] } else { [NOP; 2] });
        header.extend([8, 10]);
        header.extend(stamps.value.to_be_bytes());
        header.extend(stamps.echo.to_be_bytes());
    } else if options.sack_permitted {
        header.extend([NOP, NOP, 4, 2]);
    }
    if let Some(scale) = options.window_scale {
        header.extend([NOP, 3, 3, scale]);
    }
    let blocks = options.sack.as_slice();
    if !blocks.is_empty() {
        header.extend([NOP, NOP, 5, 2 + 8 * blocks.len() as u8]);
        for (from, to) in blocks {
            header.extend(from.to_be_bytes());
            header.extend(to.to_be_bytes());
        }
    }
    if let Some(cookie) = options.cookie {
        fast_open(cookie, header);
    }
    header.resize(segment.header_bytes() as usize, NOP);
}

/// Fast Open's option, or the shared one that was used before it (RFC 6994). Of a cookie's bytes the
/// model knows only which they are, so that equal ones are equal here.
fn fast_open(cookie: Cookie, header: &mut Vec<u8>) {
    if cookie.experimental {
        header.extend([254, 4 + cookie.length, 0xf9, 0x89]);
    } else {
        header.extend([34, 2 + cookie.length]);
    }
    header.extend(cookie.name.to_be_bytes().iter().cycle().take(usize::from(cookie.length)));
}

/// Block types and the byte-order magic (draft-ietf-opsawg-pcapng section 4).
const SECTION_HEADER: u32 = 0x0a0d_0d0a;
const INTERFACE_DESCRIPTION: u32 = 1;
const ENHANCED_PACKET: u32 = 6;
const BYTE_ORDER: u32 = 0x1a2b_3c4d;

/// Bytes kept of each packet at most: the headers.
const SNAP: u32 = 128;

/// `LINKTYPE_RAW`: the packet begins with its IP header.
const LINKTYPE_RAW: u32 = 101;

const TCP: u8 = 6;
const HOPS: u8 = 64;
const DO_NOT_FRAGMENT: u8 = 0x40;
const NOP: u8 = 1;
const CLIENT_PORT: u16 = 40_000;
