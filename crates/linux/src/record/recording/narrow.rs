//! From all packets that were captured to those of the recorded connections.
//!
//! The spool is a file of our own [`Writer`](crate::record::pcapng::Writer): its blocks are copied as
//! they are, packets only if their connection is wanted. Statistics go to the end, behind what is
//! attached. Packets passed the filter of a recording, so they are TCP, UDP or ICMP errors without IPv6
//! extension headers and tunnels. An error goes with the connection that it quotes.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, Read, Write};
use std::net::{IpAddr, SocketAddr};

use crate::record::pcapng::{ENHANCED_PACKET, INTERFACE_DESCRIPTION, INTERFACE_STATISTICS};

/// What was copied, and what was not.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub(super) struct Narrowed {
    /// Packets in the file.
    pub(super) packets: u64,
    /// TCP connections among them.
    pub(super) connections: Connections,
    /// Packets and connections of others, which were left out.
    pub(super) left_out: u64,
    pub(super) others: Connections,
    /// UDP packets on port 443: probably QUIC.
    pub(super) quic: u64,
    /// The blocks to put at the end.
    pub(super) statistics: Vec<u8>,
}

/// Connections that were met.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub(super) struct Connections {
    /// Their ends, smaller one first: several connections may have the same.
    pub(super) ends: BTreeSet<[SocketAddr; 2]>,
    /// Number of each SYN, by who sent it to whom.
    openings: BTreeMap<[SocketAddr; 2], BTreeSet<u32>>,
}

impl Connections {
    fn take(&mut self, packet: &Packet) {
        self.ends.insert(packet.key());
        if let Some(number) = packet.opens {
            self.openings.entry(packet.ends).or_default().insert(number);
        }
    }

    /// How many there were. A SYN of another number opens another one (RFC 9293 section 3.4.1); of both
    /// sides' SYNs each may open the same.
    pub(super) fn count(&self) -> u64 {
        let opened = |ends: [SocketAddr; 2]| self.openings.get(&ends).map_or(0, BTreeSet::len);
        let of = |&[a, b]: &[SocketAddr; 2]| opened([a, b]).max(opened([b, a])).max(1) as u64;
        self.ends.iter().map(of).sum()
    }
}

/// What a packet is about.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum About {
    /// This connection.
    Connection([SocketAddr; 2]),
    /// Something else than TCP, which an ICMP error quotes.
    Other,
}

/// Copies what `want` accepts. A spool that ends early is copied up to there.
pub(super) fn narrow(
    mut spool: impl Read,
    out: &mut impl Write,
    want: impl Fn(About) -> bool,
) -> io::Result<Narrowed> {
    let mut narrowed = Narrowed::default();
    let mut link_types = Vec::new();
    let mut wanted: BTreeMap<[SocketAddr; 2], bool> = BTreeMap::new();
    let mut block = Vec::new();
    while next_block(&mut spool, &mut block)? {
        match word(&block, 0) {
            Some(INTERFACE_STATISTICS) => {
                narrowed.statistics.extend(&block);
                continue;
            }
            Some(INTERFACE_DESCRIPTION) => link_types.push(half(&block, 8).unwrap_or(0)),
            Some(ENHANCED_PACKET) => {
                let Some(header) = header_in(&block, &link_types) else { continue };
                if header.is_icmp() {
                    if !header.errs_about().into_iter().any(&want) {
                        continue;
                    }
                    narrowed.packets += 1;
                    out.write_all(&block)?;
                    continue;
                }
                let Some(packet) = Packet::of(&header) else { continue };
                if packet.protocol == UDP && packet.has_port(QUIC) {
                    narrowed.quic += 1;
                    continue;
                }
                let keep = packet.protocol == UDP
                    || *wanted
                        .entry(packet.key())
                        .or_insert_with(|| want(About::Connection(packet.ends)));
                if !keep {
                    narrowed.left_out += 1;
                    narrowed.others.take(&packet);
                    continue;
                }
                if packet.protocol == TCP {
                    narrowed.connections.take(&packet);
                }
                narrowed.packets += 1;
            }
            _ => {}
        }
        out.write_all(&block)?;
    }
    Ok(narrowed)
}

/// Reads the next whole block; `false` at the end.
fn next_block(spool: &mut impl Read, block: &mut Vec<u8>) -> io::Result<bool> {
    block.clear();
    spool.by_ref().take(8).read_to_end(block)?;
    let Some(length) = word(block, 4).map(|length| length as usize) else { return Ok(false) };
    if length < 12 {
        return Ok(false);
    }
    spool.by_ref().take(length as u64 - 8).read_to_end(block)?;
    Ok(block.len() == length)
}

/// The IP header of a packet in a block.
fn header_in<'a>(block: &'a [u8], link_types: &[u16]) -> Option<Header<'a>> {
    let link_type = *link_types.get(word(block, 8)? as usize)?;
    let captured = word(block, 20)? as usize;
    let frame = block.get(28..28 + captured)?;
    let before = match link_type {
        LINKTYPE_ETHERNET if VLAN.contains(&frame.get(12..14)?) => 18,
        LINKTYPE_ETHERNET => 14,
        LINKTYPE_LINUX_SLL2 => 20,
        _ => 0,
    };
    Header::of(frame.get(before..)?)
}

/// What an IP header says, and what is behind it.
struct Header<'a> {
    protocol: u8,
    hosts: [IpAddr; 2],
    behind: &'a [u8],
}

impl<'a> Header<'a> {
    fn of(ip: &'a [u8]) -> Option<Self> {
        let (protocol, hosts, length) = if ip.first()? >> 4 == 4 {
            let host = |at: usize| <[u8; 4]>::try_from(ip.get(at..at + 4)?).map(IpAddr::from).ok();
            (*ip.get(9)?, [host(12)?, host(16)?], usize::from(ip[0] & 15) * 4)
        } else {
            let host =
                |at: usize| <[u8; 16]>::try_from(ip.get(at..at + 16)?).map(IpAddr::from).ok();
            (*ip.get(6)?, [host(8)?, host(24)?], 40)
        };
        Some(Self { protocol, hosts, behind: ip.get(length..)? })
    }

    const fn is_icmp(&self) -> bool {
        matches!(self.protocol, ICMP | ICMPV6)
    }

    fn ends(&self) -> Option<[SocketAddr; 2]> {
        let ports = self.behind.get(..4)?;
        let port = |at: usize| u16::from_be_bytes([ports[at], ports[at + 1]]);
        Some([SocketAddr::new(self.hosts[0], port(0)), SocketAddr::new(self.hosts[1], port(2))])
    }

    /// What an ICMP error quotes. Where a device between rewrites addresses and leaves the quotation alone, the
    /// connection is that of the host which the error went to.
    fn errs_about(&self) -> [About; 2] {
        let quoted = self.behind.get(8..).and_then(Header::of);
        let quoted = quoted.filter(|quoted| quoted.protocol == TCP);
        let Some([from, to]) = quoted.and_then(|quoted| quoted.ends()) else {
            return [About::Other; 2];
        };
        let told = SocketAddr::new(self.hosts[1], from.port());
        [[from, to], [told, to]].map(About::Connection)
    }
}

/// What is asked of a packet.
struct Packet {
    protocol: u8,
    ends: [SocketAddr; 2],
    /// The number of its SYN, if it is one that nobody asked for.
    opens: Option<u32>,
}

impl Packet {
    fn of(header: &Header<'_>) -> Option<Self> {
        let Header { protocol, behind, .. } = *header;
        let opens = || {
            let header = behind.get(..14).filter(|_| protocol == TCP)?;
            let number = u32::from_be_bytes(header[4..8].try_into().ok()?);
            (header[13] & (SYN | ACK) == SYN).then_some(number)
        };
        Some(Self { protocol, ends: header.ends()?, opens: opens() })
    }

    fn has_port(&self, port: u16) -> bool {
        self.ends.iter().any(|end| end.port() == port)
    }

    /// The same for both directions.
    fn key(&self) -> [SocketAddr; 2] {
        let mut key = self.ends;
        key.sort_unstable();
        key
    }
}

fn word(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_le_bytes(bytes.get(at..at + 4)?.try_into().ok()?))
}

fn half(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_le_bytes(bytes.get(at..at + 2)?.try_into().ok()?))
}

// LINKTYPE registry of the tcpdump group.
const LINKTYPE_ETHERNET: u16 = 1;
const LINKTYPE_LINUX_SLL2: u16 = 276;
/// Ethertypes of tags: 802.1Q, 802.1ad, and what came before that.
const VLAN: [&[u8]; 3] = [&[0x81, 0x00], &[0x88, 0xa8], &[0x91, 0x00]];
const ICMP: u8 = 1;
const TCP: u8 = 6;
const UDP: u8 = 17;
const ICMPV6: u8 = 58;
// RFC 9293 section 3.1.
const SYN: u8 = 0x02;
const ACK: u8 = 0x10;
const QUIC: u16 = 443;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::pcapng::{self, Direction, Interface, Statistics, Writer};

    /// An IPv4 packet of this protocol between two ports; the lower one is the second host's.
    fn ip(protocol: u8, from: u16, to: u16) -> Vec<u8> {
        let mut bytes = vec![0; 40];
        bytes[0] = 0x45;
        bytes[9] = protocol;
        for (at, is_lower) in [(12, from < to), (16, to <= from)] {
            bytes[at..at + 4].copy_from_slice(&[192, 0, 2, 1 + u8::from(is_lower)]);
        }
        bytes[20..22].copy_from_slice(&from.to_be_bytes());
        bytes[22..24].copy_from_slice(&to.to_be_bytes());
        bytes
    }

    fn spool(link_type: u16, before: &[u8], packets: &[Vec<u8>]) -> Vec<u8> {
        let head = Interface { name: "any".into(), link_type, snap_length: 100 };
        let mut file = Vec::new();
        let mut writer = Writer::begin(&mut file, &head, "test").expect("memory");
        for packet in packets {
            writer
                .packet(&pcapng::Packet {
                    interface: 0,
                    time: 1,
                    bytes: [before, packet],
                    length: 60,
                    direction: Direction::Unknown,
                })
                .expect("memory");
        }
        writer.end(&Statistics::default()).expect("memory");
        file
    }

    fn has(about: About, port: u16) -> bool {
        matches!(about, About::Connection(ends) if port_of(ends).contains(&port))
    }

    fn port_of(ends: [SocketAddr; 2]) -> [u16; 2] {
        ends.map(|end| end.port())
    }

    #[test]
    fn packets_of_others_and_quic_are_left_out_and_names_stay() {
        let packets =
            [ip(6, 1000, 80), ip(6, 80, 1000), ip(6, 2000, 80), ip(17, 3, 53), ip(17, 443, 9)];
        let mut tagged = [0; 18];
        tagged[12] = 0x81;
        let mut service = [0; 18];
        service[12..14].copy_from_slice(&[0x88, 0xa8]);
        let mut plain = [0; 14];
        plain[12] = 8;
        let ethernet = [&plain[..], &tagged, &service].map(|before| (1, before));
        for (link_type, before) in ethernet.into_iter().chain([(276, &[0; 20][..]), (101, &[])]) {
            let spool = spool(link_type, before, &packets);
            let mut out = Vec::new();
            let narrowed = narrow(&spool[..], &mut out, |about| has(about, 1000)).expect("memory");
            assert_eq!((narrowed.packets, narrowed.left_out, narrowed.quic), (3, 1, 1));
            assert_eq!(narrowed.connections.count(), 1, "both directions are one");
            let others: Vec<_> = narrowed.others.ends.iter().map(|ends| port_of(*ends)).collect();
            assert_eq!(others, [[2000, 80]]);
            let packet = pcapng::packet_length(before.len() as u32 + 40, Direction::Unknown);
            let whole = out.len() + narrowed.statistics.len();
            assert_eq!(whole + 2 * packet as usize, spool.len());
        }
    }

    /// An ICMP error that quotes this packet, cut to as much.
    fn error(quoted: &[u8]) -> Vec<u8> {
        let mut bytes = ip(ICMP, 0, 0);
        bytes.truncate(20);
        // To the first host, by whom the quoted packet was sent.
        bytes[16..20].copy_from_slice(&[192, 0, 2, 1]);
        bytes.extend([3, 4, 0, 0, 0, 0, 5, 0]);
        bytes.extend(quoted);
        bytes
    }

    #[test]
    fn an_error_goes_with_the_connection_that_it_quotes() {
        let kept = |packet: &[u8], want: &dyn Fn(About) -> bool| {
            let spool = spool(101, &[], &[packet.to_vec()]);
            let narrowed = narrow(&spool[..], &mut Vec::new(), want).expect("memory");
            assert_eq!((narrowed.left_out, narrowed.connections.count()), (0, 0));
            narrowed.packets
        };
        let of_1000 = |about| has(about, 1000);
        let sent = ip(6, 1000, 80);
        assert_eq!(kept(&error(&sent[..28]), &of_1000), 1);
        assert_eq!(kept(&error(&sent[..24]), &of_1000), 1, "both ports");
        assert_eq!(kept(&error(&sent[..23]), &of_1000), 0, "less says nothing");
        assert_eq!(kept(&error(&ip(6, 2000, 80)), &of_1000), 0);
        assert_eq!(kept(&error(&ip(17, 1000, 80)), &of_1000), 0, "of UDP");
        assert_eq!(kept(&error(&ip(17, 1000, 80)), &|_| true), 1);
        // What a device between rewrote in the packet it left in the quotation.
        let here = "192.0.2.1:1000".parse().expect("an end");
        let ours = |about| matches!(about, About::Connection(ends) if ends.contains(&here));
        let mut rewritten = sent;
        rewritten[12..16].copy_from_slice(&[203, 0, 113, 9]);
        assert_eq!(kept(&error(&rewritten), &ours), 1);
    }

    /// The same with these flags and this number.
    fn segment(from: u16, to: u16, flags: u8, number: u32) -> Vec<u8> {
        let mut bytes = ip(6, from, to);
        bytes[24..28].copy_from_slice(&number.to_be_bytes());
        bytes[33] = flags;
        bytes
    }

    #[test]
    fn the_same_ends_may_have_several_connections() {
        let count = |packets: &[Vec<u8>]| {
            let spool = spool(101, &[], packets);
            narrow(&spool[..], &mut Vec::new(), |_| true).expect("memory").connections.count()
        };
        let (syn, answer) = (segment(9, 80, SYN, 7), segment(80, 9, SYN | ACK, 100));
        let data = segment(9, 80, ACK, 8);
        let first = [syn.clone(), syn, answer.clone(), data.clone()];
        assert_eq!(count(&first), 1, "a SYN retransmitted");
        let second = [segment(9, 80, SYN, 900), answer];
        assert_eq!(count(&[&first[..], &second].concat()), 2);
        assert_eq!(count(&[data]), 1, "begun before the recording");
        let crossing = [segment(9, 80, SYN, 7), segment(80, 9, SYN, 70)];
        assert_eq!(count(&crossing), 1, "both opened the same");
    }

    #[test]
    fn what_is_cut_short_is_copied_up_to_there() {
        let spool = spool(101, &[], &[ip(6, 1, 2), ip(6, 1, 2)]);
        let all = |_| true;
        for length in 0..spool.len() {
            let mut out = Vec::new();
            let narrowed = narrow(&spool[..length], &mut out, all).expect("memory");
            assert!(spool.starts_with(&out) && narrowed.packets <= 2);
        }
    }
}
