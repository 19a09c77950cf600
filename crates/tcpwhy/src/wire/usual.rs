//! The frame that nearly all captures are made of, in one straight line.
//!
//! Ethernet II, IPv4 without options or fragments, TCP without options or with the timestamps as
//! RFC 7323 appendix A lays them out: two lengths are looked at, and all fields stand in known
//! places. Whatever is not so is left to the walk, which gives the same segment of these frames
//! too, header by header and in three times as many instructions.

use core::net::{Ipv4Addr, SocketAddr, SocketAddrV4};

use super::layer::{be16, be32, be64};
use super::{Flags, IpInfo, LinkInfo, Options, Segment, link, tcp};
use crate::frame::Frame;
use tcpwhy_words::units::{Seq, Time};

/// Where IPv4, its addresses and TCP begin, and where the TCP options do.
pub(super) const IP: usize = 14;
const ENDS: usize = IP + 12;
pub(super) const TCP: usize = IP + 20;
pub(super) const OPTIONS: usize = TCP + 20;
/// Bytes of the timestamps with their padding.
pub(super) const STAMPS: usize = 12;

/// What a segment says that has no options but timestamps.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Head {
    pub(crate) time: Time,
    pub(crate) frame: u64,
    pub(crate) seq: Seq,
    pub(crate) ack: Seq,
    pub(crate) flags: Flags,
    pub(crate) window: u16,
    pub(crate) payload_len: u32,
    pub(crate) timestamps: Option<(u32, u32)>,
    pub(crate) ip: IpInfo,
    pub(crate) link: LinkInfo,
}

impl Head {
    /// The head of `segment`, whose other options are not looked at.
    pub(crate) fn of(segment: &Segment<'_>) -> Self {
        Self {
            time: segment.time,
            frame: segment.frame,
            seq: segment.seq,
            ack: segment.ack,
            flags: segment.flags,
            window: segment.window,
            payload_len: segment.payload_len,
            timestamps: segment.options.timestamps,
            ip: segment.ip,
            link: segment.link,
        }
    }
}

/// Source and destination of an IPv4 segment as they stand on the wire: both addresses, both
/// ports.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct Ends {
    // Numbers, for bytes of such a length are compared by a call.
    addresses: u64,
    ports: u32,
}

impl Ends {
    /// As they stand in a segment from `source` to `destination`; `None` of IPv6.
    pub(crate) fn of(source: &SocketAddr, destination: &SocketAddr) -> Option<Self> {
        let (SocketAddr::V4(from), SocketAddr::V4(to)) = (source, destination) else { return None };
        let addresses = [from, to].map(|end| u64::from(end.ip().to_bits()));
        let ports = [from, to].map(|end| u32::from(end.port()));
        let (addresses, ports) = (addresses[0] << 32 | addresses[1], ports[0] << 16 | ports[1]);
        Some(Self { addresses, ports })
    }

    /// A number that is the same for both directions, and mostly begins otherwise for other ends.
    #[inline]
    pub(crate) fn mixed(self) -> u32 {
        let hosts = (self.addresses >> 32) as u32 ^ self.addresses as u32;
        mix(hosts, (self.ports >> 16 ^ self.ports) as u16)
    }

    fn source(self) -> SocketAddr {
        let address = Ipv4Addr::from_bits((self.addresses >> 32) as u32);
        SocketAddr::V4(SocketAddrV4::new(address, (self.ports >> 16) as u16))
    }

    fn destination(self) -> SocketAddr {
        let address = Ipv4Addr::from_bits(self.addresses as u32);
        SocketAddr::V4(SocketAddrV4::new(address, self.ports as u16))
    }
}

/// The number that [`Ends::mixed`] tells, from what both hosts' addresses and both ports come to, each pair combined
/// without regard to its order. The last bits of ports and addresses differ most; 2^64 over the golden
/// ratio spreads them.
#[inline]
pub(crate) fn mix(hosts: u32, ports: u16) -> u32 {
    let both = u64::from(hosts) << 16 | u64::from(ports);
    (both.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32) as u32
}

/// A usual frame.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Usual<'a> {
    pub(crate) head: Head,
    pub(crate) ends: Ends,
    /// The part of the payload that was captured.
    pub(crate) payload: &'a [u8],
}

impl<'a> Usual<'a> {
    /// Reads a usual frame; `None` of any other.
    #[expect(clippy::inline_always, reason = "its fields are then never written to memory")]
    #[inline(always)]
    pub(crate) fn read(frame: &Frame<'a>) -> Option<Self> {
        let head: &[u8; OPTIONS] = frame.data.first_chunk()?;
        // IPv4 of five words; TCP, neither an offset nor more fragments.
        let is_usual = link::is_ethernet(frame.link_type)
            && be32(head, 12) & 0xffff_ff00 == 0x0800_4500
            && be32(head, IP + 6) & 0x3fff_00ff == 6;
        let total = usize::from(be16(head, IP + 2));
        let lengths_and_flags = be16(head, TCP + 12);
        let header_len = usize::from(lengths_and_flags >> 12) * 4;
        if !is_usual || total < 20 + header_len || IP + total > frame.wire_len as usize {
            return None;
        }
        let timestamps = if header_len == 20 + STAMPS {
            let head: &[u8; OPTIONS + STAMPS] = frame.data.first_chunk()?;
            Some(tcp::timestamps(head.last_chunk()?)?)
        } else if header_len == 20 {
            None
        } else {
            return None;
        };
        let data = frame.data.get(..IP + total).unwrap_or(frame.data);
        let (direction, interface) = (frame.direction, frame.interface);
        Some(Self {
            head: Head {
                time: frame.time,
                frame: frame.frame,
                seq: Seq(be32(head, TCP + 4)),
                ack: Seq(be32(head, TCP + 8)),
                flags: Flags(lengths_and_flags & 0x01ff),
                window: be16(head, TCP + 14),
                payload_len: (total - 20 - header_len) as u32,
                timestamps,
                ip: IpInfo {
                    id: Some(be16(head, IP + 4)),
                    ttl: Some(head[IP + 8]),
                    ecn: Some(head[IP + 1] & 0b11),
                },
                link: LinkInfo { direction, interface, checksum: None, seq_unshown: false },
            },
            ends: Ends { addresses: be64(head, ENDS), ports: be32(head, TCP) },
            payload: data.get(TCP + header_len..)?,
        })
    }

    /// The segment in it.
    pub(crate) fn segment(&self) -> Segment<'a> {
        let Self { head, ends, payload } = *self;
        let (order, len) = match head.timestamps {
            Some(_) => (tcp::STAMPS_ORDER, STAMPS as u8),
            None => ([0; 8], 0),
        };
        Segment {
            time: head.time,
            frame: head.frame,
            network: 0,
            source: ends.source(),
            destination: ends.destination(),
            seq: head.seq,
            ack: head.ack,
            flags: head.flags,
            window: head.window,
            payload_len: head.payload_len,
            payload,
            options: Options { timestamps: head.timestamps, order, len, ..Options::default() },
            ip: head.ip,
            link: head.link,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;
    use tcpwhy_words::units::Time;

    /// A usual frame with timestamps.
    fn usual() -> Vec<u8> {
        let mut data = vec![2; 12];
        data.extend([8, 0, 0x45, 0, 0, 62, 0, 7, 0x40, 0, 64, 6, 0, 0]);
        data.extend([192, 0, 2, 1, 198, 51, 100, 2, 0x9c, 0x40, 0, 80]);
        data.extend([1, 2, 3, 4, 5, 6, 7, 8, 0x80, 0x10, 1, 2, 0, 0, 0, 0]);
        data.extend([1, 1, 8, 10, 0, 0, 0, 17, 0, 0, 0, 34]);
        data.extend(*b"0123456789 and a trailer");
        data
    }

    fn frame(data: &[u8], wire_len: u32) -> Frame<'_> {
        let (time, direction) = (Time(1), None);
        Frame { time, frame: 7, link_type: 1, interface: 3, direction, wire_len, data }
    }

    #[test]
    fn a_usual_frame_takes_the_short_way() {
        let data = usual();
        let usual = Usual::read(&frame(&data, 90)).expect("it is usual");
        assert_eq!((usual.payload, usual.head.payload_len), (&b"0123456789"[..], 10));
        assert_eq!(usual.head.timestamps, Some((17, 34)));
        let segment = usual.segment();
        assert_eq!(Ends::of(&segment.source, &segment.destination), Some(usual.ends));
    }

    #[test]
    fn ends_are_mixed_alike_for_both_directions_and_otherwise_for_others() {
        let ends = |from: u64, to: u64, ports: [u32; 2]| Ends {
            addresses: from << 32 | to,
            ports: ports[0] << 16 | ports[1],
        };
        let client = ends(0xc000_0201, 0xc633_6402, [40_000, 443]).mixed();
        assert_eq!(client, ends(0xc633_6402, 0xc000_0201, [443, 40_000]).mixed());
        let ports = 40_000..40_064;
        let places: BTreeSet<u32> =
            ports.map(|port| ends(1, 2, [port, 443]).mixed() >> 26).collect();
        assert!(places.len() > 32, "{places:?}");
    }

    proptest! {
        #[test]
        fn the_short_way_gives_what_the_walk_does(
            damage in prop::collection::vec((12..70_usize, any::<u8>()), 0..3),
            bare in any::<bool>(),
            length in 0..90_usize,
            wire_len in 0..200_u32,
        ) {
            let mut data = usual();
            if bare {
                data[46] = 0x50;
            }
            for (at, byte) in damage {
                data[at] = byte;
            }
            data.truncate(length.max(20));
            let frame = frame(&data, wire_len);
            if let Some(usual) = Usual::read(&frame) {
                let walked = super::super::walked(&frame, 0).expect("a segment");
                prop_assert_eq!(format!("{:?}", usual.segment()), format!("{walked:?}"));
            }
        }
    }
}
