//! Does a capture hold every retransmission that the kernel counted?
//!
//! A guest whose user space loses bytes, or a recorder that loses packets, leaves records that
//! look well and are wrong. So each host's capture is counted here, and the count held against
//! that host's own `RetransSegs` (RFC 4022 tcpRetransSegs; v6.12 `net/ipv4/tcp_output.c`,
//! `tcp_retransmit_skb` and `tcp_rtx_synack`). The reader of captures is small and shares nothing
//! with the product's.
//!
//! Left out: hosts whose own queue drops before their tap; there the two differ by intent.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::Path;

/// Segments that a host retransmitted, as its capture has them.
pub(super) fn retransmitted(capture: &Path, host: &[u8]) -> io::Result<u64> {
    let bytes = fs::read(capture)?;
    let mut flows: BTreeMap<Key, Flow> = BTreeMap::new();
    let mut again = 0;
    for (protocol, packet) in Packets::of(&bytes) {
        let Some(segment) = segment(protocol, packet) else { continue };
        let options = (segment.flags & SYN != 0).then(|| options(segment.options));
        let flow = flows.entry(segment.key.clone()).or_default();
        if let Some((mss, stamps)) = options {
            flow.mss = mss;
            flow.stamps = stamps;
        }
        if segment.source != host {
            continue;
        }
        let size = segment_size(&flows, &segment.key);
        if let Some(flow) = flows.get_mut(&segment.key) {
            again += flow.count(&segment, size);
        }
    }
    Ok(again)
}

/// Addresses and ports, from sender to receiver.
type Key = (Vec<u8>, Vec<u8>);

/// One direction of a connection.
#[derive(Default)]
struct Flow {
    /// Its first sequence number and the highest after it.
    sent: Option<(u32, u64)>,
    mss: u32,
    stamps: bool,
}

/// A segment's part that matters here.
struct Segment<'a> {
    source: &'a [u8],
    key: Key,
    seq: u32,
    flags: u8,
    options: &'a [u8],
    payload: u32,
}

impl Flow {
    /// How many wire segments of this one were sent before.
    fn count(&mut self, segment: &Segment<'_>, size: u32) -> u64 {
        let ends = u32::from(segment.flags & SYN != 0) + u32::from(segment.flags & FIN != 0);
        let length = u64::from(segment.payload) + u64::from(ends);
        if length == 0 || segment.flags & RST != 0 {
            return 0;
        }
        let first_syn =
            segment.flags & SYN != 0 && self.sent.is_none_or(|(start, _)| start != segment.seq);
        let Some((start, highest)) = self.sent.filter(|_| !first_syn) else {
            self.sent = Some((segment.seq, length));
            return 0;
        };
        // Unwrapped around the highest number so far.
        let ahead = segment.seq.wrapping_sub(start.wrapping_add(highest as u32)).cast_signed();
        let from = highest.saturating_add_signed(i64::from(ahead));
        let old = highest.saturating_sub(from).min(length);
        self.sent = Some((start, highest.max(from + length)));
        old.div_ceil(u64::from(size.max(1)))
    }
}

/// Payload of a full segment: the smaller MSS less the stamps, if both agreed on them.
fn segment_size(flows: &BTreeMap<Key, Flow>, key: &Key) -> u32 {
    let back = (key.1.clone(), key.0.clone());
    let (own, peer) = (flows.get(key), flows.get(&back));
    let mss = own.into_iter().chain(peer).map(|f| f.mss).filter(|m| *m > 0).min();
    let stamps = own.is_some_and(|f| f.stamps) && peer.is_some_and(|f| f.stamps);
    mss.unwrap_or(DEFAULT_MSS) - if stamps { STAMPS } else { 0 }
}

/// MSS and whether stamps are offered, of a SYN.
fn options(mut bytes: &[u8]) -> (u32, bool) {
    let (mut mss, mut stamps) = (DEFAULT_MSS, false);
    while let [kind, rest @ ..] = bytes {
        match (kind, rest) {
            (0, _) | (_, []) => break,
            (1, _) => bytes = rest,
            (_, [length, ..]) => {
                if let (2, [4, high, low, ..]) = (kind, rest) {
                    mss = u32::from(u16::from_be_bytes([*high, *low]));
                }
                stamps |= *kind == 8;
                bytes = bytes.get(usize::from(*length).max(2)..).unwrap_or_default();
            }
        }
    }
    (mss, stamps)
}

fn u16_at(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_be_bytes(bytes.get(at..at + 2)?.try_into().ok()?))
}

/// TCP in IPv4 or IPv6, as far as it was kept.
fn segment(protocol: u16, ip: &[u8]) -> Option<Segment<'_>> {
    let (source, target, header, total) = match protocol {
        0x0800 if ip.get(9) == Some(&6) => {
            let header = usize::from(ip[0] & 15) * 4;
            (ip.get(12..16)?, ip.get(16..20)?, header, usize::from(u16_at(ip, 2)?))
        }
        0x86dd if ip.get(6) == Some(&6) => {
            (ip.get(8..24)?, ip.get(24..40)?, 40, 40 + usize::from(u16_at(ip, 4)?))
        }
        _ => return None,
    };
    let tcp = ip.get(header..)?;
    let data = usize::from(tcp.get(12)? >> 4) * 4;
    let end = |address: &[u8], port: &[u8]| [address, port].concat();
    Some(Segment {
        source,
        key: (end(source, tcp.get(..2)?), end(target, tcp.get(2..4)?)),
        seq: u32::from_be_bytes(tcp.get(4..8)?.try_into().ok()?),
        flags: *tcp.get(13)?,
        options: tcp.get(20..data).unwrap_or_default(),
        payload: total.checked_sub(header + data)? as u32,
    })
}

/// The packets of a pcapng file, each with its protocol: what its enhanced packet blocks kept, in the machine's order.
struct Packets<'a> {
    rest: &'a [u8],
    /// Captured of all interfaces: another header comes before each packet.
    is_cooked: bool,
}

impl<'a> Packets<'a> {
    const fn of(rest: &'a [u8]) -> Self {
        Self { rest, is_cooked: false }
    }
}

impl<'a> Iterator for Packets<'a> {
    type Item = (u16, &'a [u8]);

    fn next(&mut self) -> Option<(u16, &'a [u8])> {
        loop {
            let word =
                |at: usize| Some(u32::from_ne_bytes(self.rest.get(at..at + 4)?.try_into().ok()?));
            let (kind, length) = (word(0)?, word(4)? as usize);
            let (link, kept) = (word(8), word(20));
            let block = self.rest.get(..length).filter(|b| b.len() >= 12)?;
            self.rest = &self.rest[length..];
            if kind == INTERFACE {
                self.is_cooked = link? & 0xffff == LINUX_SLL2;
            } else if kind == ENHANCED_PACKET {
                let frame = block.get(28..28 + kept? as usize)?;
                let (protocol, header) = if self.is_cooked { (0, 20) } else { (12, 14) };
                return Some((u16_at(frame, protocol)?, frame.get(header..)?));
            }
        }
    }
}

const INTERFACE: u32 = 1;
const ENHANCED_PACKET: u32 = 6;
/// A link type: 20 bytes that begin with the protocol (tcpdump group's registry).
const LINUX_SLL2: u32 = 276;
const FIN: u8 = 1;
const SYN: u8 = 2;
const RST: u8 = 4;

/// RFC 9293 section 3.7.1, for IPv4.
const DEFAULT_MSS: u32 = 536;

/// RFC 7323 section 3.2: the option, padded.
const STAMPS: u32 = 12;

#[cfg(test)]
mod tests {
    use super::*;

    /// Frames of one flow, as (sequence number, payload, flags), counted as the sender's.
    fn count(tape: &[(u32, u16, u8)]) -> u64 {
        let ethernet = counted(tape, vec![], &[0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 8, 0]);
        let mut interface = vec![];
        for word in [INTERFACE, 20, LINUX_SLL2, 0, 20_u32] {
            interface.extend(word.to_ne_bytes());
        }
        let mut cooked = [0; 20];
        cooked[0] = 8;
        assert_eq!(counted(tape, interface, &cooked), ethernet, "on all interfaces");
        ethernet
    }

    fn counted(tape: &[(u32, u16, u8)], mut file: Vec<u8>, before: &[u8]) -> u64 {
        for (seq, payload, flags) in tape {
            let mut frame = before.to_vec();
            frame.extend([0x45, 0]);
            frame.extend((40 + payload).to_be_bytes());
            frame.extend([0, 0, 0, 0, 0, 6, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
            frame.extend([0, 80, 0, 9]);
            frame.extend(seq.to_be_bytes());
            frame.extend([0, 0, 0, 0, 0x50, *flags, 0, 0, 0, 0, 0, 0]);
            let length = (32 + frame.len().next_multiple_of(4)) as u32;
            for word in [ENHANCED_PACKET, length, 0, 0, 0, frame.len() as u32, 0] {
                file.extend(word.to_ne_bytes());
            }
            file.extend(&frame);
            file.resize(file.len().next_multiple_of(4), 0);
            file.extend(length.to_ne_bytes());
        }
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("x.pcapng");
        fs::write(&path, file).expect("written");
        retransmitted(&path, &[0, 0, 0, 0]).expect("read")
    }

    #[test]
    fn new_data_is_not_sent_again() {
        assert_eq!(count(&[(99, 0, SYN), (100, 500, 16), (600, 500, 16), (1100, 0, FIN)]), 0);
    }

    #[test]
    fn each_copy_counts_by_its_segments() {
        assert_eq!(count(&[(99, 0, SYN), (99, 0, SYN)]), 1);
        assert_eq!(count(&[(99, 0, SYN), (100, 1072, 16), (100, 536, 16)]), 1);
        assert_eq!(count(&[(99, 0, SYN), (100, 1072, 16), (100, 1072, 16)]), 2, "a super-segment");
        assert_eq!(count(&[(99, 0, SYN), (100, 10, 16), (110, 0, FIN), (110, 0, FIN)]), 1);
    }

    #[test]
    fn numbers_wrap() {
        let start = u32::MAX - 50;
        let tape = [(start, 0, SYN), (start + 1, 100, 16), (50, 100, 16), (start + 1, 100, 16)];
        assert_eq!(count(&tape), 1);
    }

    #[test]
    fn probes_below_the_window_are_no_retransmissions() {
        assert_eq!(count(&[(99, 0, SYN), (100, 500, 16), (599, 0, 16)]), 0);
    }

    #[test]
    fn a_file_cut_anywhere_is_read_as_far_as_it_goes() {
        assert!(Packets::of(&[6, 0, 0, 0, 200, 0, 0, 0]).next().is_none());
        assert!(Packets::of(&[6, 0, 0, 0, 4, 0, 0, 0, 1, 1, 1, 1]).next().is_none());
    }
}
