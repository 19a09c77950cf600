//! Packets as TUN devices carry them: IP without a link layer, some of them super-packets.
//!
//! Everything here comes from our own kernel, yet nothing is taken for granted: what is no whole
//! packet is passed on as it is, without a TCP part.
//!
//! Left out: IPv6 extension headers (Linux TCP sends none) and IPv4 fragments (nor these).

/// What is read off a packet for the log and the path.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub(super) struct View {
    /// Goes to many: noise of the stack that no plan asks for.
    pub(super) multicast: bool,
    /// IPv4's identification.
    pub(super) id: Option<u16>,
    /// Its TCP part.
    pub(super) tcp: Option<Tcp>,
}

/// The TCP part of a packet.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub(super) struct Tcp {
    /// Where its header begins.
    pub(super) at: usize,
    /// Where its payload begins.
    pub(super) payload_at: usize,
    /// Bytes of payload.
    pub(super) data: u32,
    /// Ports of sender and receiver.
    pub(super) ports: (u16, u16),
    /// Sequence number.
    pub(super) seq: u32,
    /// Acknowledgement number.
    pub(super) ack: u32,
    /// CWR to FIN.
    pub(super) flags: u8,
}

/// Looks at a packet.
pub(super) fn view(packet: &[u8]) -> View {
    match packet.first().map(|first| first >> 4) {
        Some(4) => {
            let multicast = packet.get(16).is_some_and(|first| *first >= 224);
            let is_tcp = packet.get(9) == Some(&PROTOCOL_TCP);
            let header = usize::from(packet[0] & 0xf) * 4;
            View { multicast, id: be16(packet, 4), tcp: tcp(packet, header).filter(|_| is_tcp) }
        }
        Some(6) => {
            let multicast = packet.get(24) == Some(&0xff);
            let is_tcp = packet.get(6) == Some(&PROTOCOL_TCP);
            View { multicast, id: None, tcp: tcp(packet, IPV6_HEADER).filter(|_| is_tcp) }
        }
        _ => View::default(),
    }
}

fn tcp(packet: &[u8], at: usize) -> Option<Tcp> {
    let payload_at = at + usize::from(packet.get(at + 12)? >> 4) * 4;
    if payload_at < at + 20 || payload_at > packet.len() {
        return None;
    }
    Some(Tcp {
        at,
        payload_at,
        data: (packet.len() - payload_at) as u32,
        ports: (be16(packet, at)?, be16(packet, at + 2)?),
        seq: be32(packet, at + 4)?,
        ack: be32(packet, at + 8)?,
        flags: *packet.get(at + 13)?,
    })
}

/// The header that leads each packet of a device with offloads (virtio 1.2 section 5.1.6; Linux
/// `include/uapi/linux/virtio_net.h`), in the machine's own byte order.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub(super) struct Offload {
    /// Payload per packet on the wire, of a TCP super-packet.
    pub(super) segment: Option<usize>,
    /// Where the checksum is to be taken from and put to.
    pub(super) checksum: Option<(usize, usize)>,
}

impl Offload {
    /// Bytes of it.
    pub(super) const LENGTH: usize = 10;

    /// Reads it from before a packet.
    pub(super) fn read(bytes: &[u8; Self::LENGTH]) -> Self {
        let word = |at| u16::from_ne_bytes([bytes[at], bytes[at + 1]]);
        let kind = bytes[1] & !GSO_ECN;
        let segment = (kind == GSO_TCPV4 || kind == GSO_TCPV6).then(|| usize::from(word(4)));
        let start = usize::from(word(6));
        let checksum =
            (bytes[0] & NEEDS_CHECKSUM != 0).then(|| (start, start + usize::from(word(8))));
        Self { segment: segment.filter(|segment| *segment > 0), checksum }
    }

    /// Cuts a packet into those that go over the wire, checksums and all, as a network card would.
    pub(super) fn wire_packets(self, mut packet: Vec<u8>) -> Vec<Vec<u8>> {
        let tcp = view(&packet).tcp;
        match (self.segment, tcp) {
            (Some(segment), Some(tcp)) if tcp.data as usize > segment => {
                cut(&packet, &tcp, segment)
            }
            (Some(_), Some(tcp)) => {
                finish(&mut packet, tcp.at);
                vec![packet]
            }
            _ => {
                if let Some((start, place)) = self.checksum
                    && place + 2 <= packet.len()
                {
                    // The place holds the sum over the pseudo header already.
                    let sum = !fold(add(0, packet.get(start..).unwrap_or(&[])));
                    packet[place..place + 2].copy_from_slice(&sum.to_be_bytes());
                }
                vec![packet]
            }
        }
    }
}

/// Segments a TCP super-packet (Linux `tcp_gso_segment`): identification and sequence number go
/// on, FIN and PSH are the last one's, CWR the first one's.
fn cut(packet: &[u8], tcp: &Tcp, segment: usize) -> Vec<Vec<u8>> {
    let (head, payload) = packet.split_at(tcp.payload_at);
    let last = payload.len().div_ceil(segment) - 1;
    let mut seq = tcp.seq;
    payload
        .chunks(segment)
        .enumerate()
        .map(|(index, part)| {
            let mut one = Vec::with_capacity(head.len() + part.len());
            one.extend_from_slice(head);
            one.extend_from_slice(part);
            if one[0] >> 4 == 4 {
                let id = be16(packet, 4).unwrap_or(0).wrapping_add(index as u16);
                one[4..6].copy_from_slice(&id.to_be_bytes());
            }
            one[tcp.at + 4..tcp.at + 8].copy_from_slice(&seq.to_be_bytes());
            let mut flags = tcp.flags;
            if index > 0 {
                flags &= !CWR;
            }
            if index < last {
                flags &= !(FIN | PSH);
            }
            one[tcp.at + 13] = flags;
            seq = seq.wrapping_add(part.len() as u32);
            finish(&mut one, tcp.at);
            one
        })
        .collect()
}

/// Writes the lengths and checksums of an IP packet whose TCP part begins at `tcp`.
fn finish(packet: &mut [u8], tcp: usize) {
    let length = packet.len() - tcp;
    let addresses = if packet[0] >> 4 == 4 {
        let total = packet.len() as u16;
        packet[2..4].copy_from_slice(&total.to_be_bytes());
        packet[10..12].fill(0);
        let sum = !fold(add(0, &packet[..tcp]));
        packet[10..12].copy_from_slice(&sum.to_be_bytes());
        12..20
    } else {
        packet[4..6].copy_from_slice(&(length as u16).to_be_bytes());
        8..40
    };
    packet[tcp + 16..tcp + 18].fill(0);
    let pseudo = add(u64::from(PROTOCOL_TCP) + length as u64, &packet[addresses]);
    let sum = !fold(add(pseudo, &packet[tcp..]));
    packet[tcp + 16..tcp + 18].copy_from_slice(&sum.to_be_bytes());
}

/// Flips a bit of the payload, counted from its first, and leaves the checksum as it was.
pub(super) fn flip(packet: &mut [u8], bit: u32) {
    let Some(tcp) = view(packet).tcp else { return };
    if let Some(byte) = packet.get_mut(tcp.payload_at + bit as usize / 8) {
        *byte ^= 1 << (bit % 8);
    }
}

/// Adds to an Internet checksum (RFC 1071), not yet folded.
fn add(sum: u64, bytes: &[u8]) -> u64 {
    let (pairs, odd) = bytes.as_chunks::<2>();
    let whole: u64 = pairs.iter().map(|pair| u64::from(u16::from_be_bytes(*pair))).sum();
    sum + whole + odd.first().map_or(0, |last| u64::from(*last) << 8)
}

fn fold(mut sum: u64) -> u16 {
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    sum as u16
}

fn be16(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_be_bytes(*bytes.get(at..)?.first_chunk()?))
}

fn be32(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_be_bytes(*bytes.get(at..)?.first_chunk()?))
}

const PROTOCOL_TCP: u8 = 6;
const IPV6_HEADER: usize = 40;
const CWR: u8 = 0x80;
const PSH: u8 = 0x08;
const FIN: u8 = 0x01;
/// `VIRTIO_NET_HDR_F_NEEDS_CSUM`.
const NEEDS_CHECKSUM: u8 = 1;
/// `VIRTIO_NET_HDR_GSO_TCPV4`.
const GSO_TCPV4: u8 = 1;
/// `VIRTIO_NET_HDR_GSO_TCPV6`.
const GSO_TCPV6: u8 = 4;
/// `VIRTIO_NET_HDR_GSO_ECN`.
const GSO_ECN: u8 = 0x80;

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// A packet with FIN, PSH and CWR set, 12 bytes of options and this much payload.
    fn a_packet(ipv6: bool, payload: usize) -> Vec<u8> {
        let mut packet = if ipv6 {
            let mut head = vec![0; IPV6_HEADER];
            (head[0], head[6]) = (0x60, PROTOCOL_TCP);
            head[8..40].copy_from_slice(&std::array::from_fn::<u8, 32, _>(|at| at as u8));
            head
        } else {
            let mut head = vec![0; 20];
            (head[0], head[9]) = (0x45, PROTOCOL_TCP);
            (head[4], head[5]) = (0xff, 0xff);
            head[12..20].copy_from_slice(&[10, 0, 0, 1, 10, 0, 0, 2]);
            head
        };
        packet.extend([0x1f, 0x90, 0, 80, 0xff, 0xff, 0xff, 0, 0, 0, 0, 9, 0x80, CWR | PSH | FIN]);
        packet.extend([1, 2, 0, 0, 0, 0]);
        packet.extend([1; 12]);
        packet.extend((0..payload).map(|at| at as u8));
        packet
    }

    fn checksums_are_right(packet: &[u8]) -> bool {
        let tcp = view(packet).tcp.expect("a TCP packet");
        let length = (packet.len() - tcp.at) as u64;
        let (addresses, head) = if packet[0] >> 4 == 4 {
            (12..20, fold(add(0, &packet[..tcp.at])) == 0xffff)
        } else {
            (8..40, true)
        };
        let pseudo = add(6 + length, &packet[addresses]);
        head && fold(add(pseudo, &packet[tcp.at..])) == 0xffff
    }

    proptest! {
        #[test]
        fn wire_packets_carry_what_the_super_packet_did(
            ipv6: bool, payload in 1_usize..9000, segment in 1_usize..1500,
        ) {
            let packet = a_packet(ipv6, payload);
            let offload = Offload { segment: Some(segment), checksum: None };
            let cut = offload.wire_packets(packet.clone());
            let whole = view(&packet).tcp.expect("a TCP packet");
            prop_assert_eq!(cut.len(), payload.div_ceil(segment));
            let mut joined = Vec::new();
            for (index, one) in cut.iter().enumerate() {
                let tcp = view(one).tcp.expect("a TCP packet");
                prop_assert!(checksums_are_right(one));
                prop_assert_eq!(tcp.seq, whole.seq.wrapping_add(joined.len() as u32));
                prop_assert_eq!(tcp.flags & CWR != 0, index == 0);
                prop_assert_eq!(tcp.flags & (FIN | PSH) != 0, index + 1 == cut.len());
                let id = view(&packet).id.map(|id| id.wrapping_add(index as u16));
                prop_assert_eq!(view(one).id, id);
                joined.extend_from_slice(&one[tcp.payload_at..]);
            }
            prop_assert_eq!(&joined, &packet[whole.payload_at..]);
        }

        #[test]
        fn any_bytes_have_a_view(bytes in proptest::collection::vec(any::<u8>(), 0..120)) {
            view(&bytes);
            let mut flipped = bytes.clone();
            flip(&mut flipped, 7);
            let header = std::array::from_fn(|at| bytes.get(at).copied().unwrap_or(255));
            Offload::read(&header).wire_packets(bytes);
        }
    }

    #[test]
    fn an_unfinished_checksum_is_finished() {
        let mut packet = a_packet(false, 100);
        finish(&mut packet, 20);
        let right = packet.clone();
        // As the kernel leaves it: the sum over the pseudo header alone.
        let pseudo = fold(add(6 + 132, &packet[12..20]));
        packet[36..38].copy_from_slice(&pseudo.to_be_bytes());
        let offload = Offload { segment: None, checksum: Some((20, 36)) };
        assert_eq!(offload.wire_packets(packet), [right]);
    }

    #[test]
    fn a_flipped_bit_breaks_the_checksum_and_nothing_else() {
        let mut packet = a_packet(true, 10);
        finish(&mut packet, IPV6_HEADER);
        let mut damaged = packet.clone();
        flip(&mut damaged, 79);
        assert!(checksums_are_right(&packet));
        assert!(!checksums_are_right(&damaged));
        assert_eq!(packet.len(), damaged.len());
        assert_eq!(packet.iter().zip(&damaged).filter(|(a, b)| a != b).count(), 1);
    }

    #[test]
    fn noise_of_the_stack_is_known() {
        let mut solicitation = a_packet(true, 0);
        solicitation[24] = 0xff;
        assert!(view(&solicitation).multicast);
        assert!(!view(&a_packet(false, 0)).multicast);
    }
}
