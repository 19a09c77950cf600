//! The frame that nearly all captures are made of, in one straight line.
//!
//! Ethernet II, IPv4 without options or fragments, TCP without options or with the timestamps as
//! RFC 7323 appendix A lays them out: two lengths are looked at, and all fields stand in known
//! places. Whatever is not so is left to the walk, which gives the same segment of these frames
//! too, header by header and in three times as many instructions.

use core::net::{Ipv4Addr, SocketAddr, SocketAddrV4};

use super::walk::{be16, be32};
use super::{Flags, IpInfo, LinkInfo, Options, Segment, link, tcp};
use crate::capture::Frame;
use crate::units::Seq;

/// Where IPv4 and TCP begin, and where the TCP options do.
const IP: usize = 14;
const TCP: usize = IP + 20;
const OPTIONS: usize = TCP + 20;
/// Bytes of the timestamps with their padding.
const STAMPS: usize = 12;

/// Hands on the segment of a usual frame; `None` for any other.
#[inline]
pub(super) fn segment<'a>(frame: &Frame<'a>, take: impl FnOnce(&mut Segment<'a>)) -> Option<()> {
    let head: &[u8; OPTIONS] = frame.data.first_chunk()?;
    let total = usize::from(be16(head, IP + 2));
    // Version 4 and five words, TCP, neither an offset nor more fragments.
    let is_usual = link::is_ethernet(frame.link_type)
        && be16(head, 12) == 0x0800
        && head[IP] == 0x45
        && head[IP + 9] == 6
        && be16(head, IP + 6) << 2 == 0;
    let header_len = match head[TCP + 12] >> 4 {
        8 => 20 + STAMPS,
        5 => 20,
        _ => return None,
    };
    if !is_usual || total < 20 + header_len {
        return None;
    }
    let (timestamps, order) = if header_len > 20 {
        let head: &[u8; OPTIONS + STAMPS] = frame.data.first_chunk()?;
        (Some(tcp::timestamps(head.last_chunk()?)?), tcp::STAMPS_ORDER)
    } else {
        (None, [0; 8])
    };
    let end = IP + total;
    let data = frame.data.get(..end).unwrap_or(frame.data);
    let address = |at: usize, port: usize| {
        SocketAddr::V4(SocketAddrV4::new(Ipv4Addr::from_bits(be32(head, at)), be16(head, port)))
    };
    // A variable that is handed on, not a value: the bytes of an `Option` of it would be copied.
    let mut segment = Segment {
        time: frame.time,
        frame: frame.frame,
        network: 0,
        source: address(IP + 12, TCP),
        destination: address(IP + 16, TCP + 2),
        seq: Seq(be32(head, TCP + 4)),
        ack: Seq(be32(head, TCP + 8)),
        flags: Flags(be16(head, TCP + 12) & 0x01ff),
        window: be16(head, TCP + 14),
        payload_len: (total - 20 - header_len) as u32,
        payload: data.get(TCP + header_len..)?,
        // Field by field: what the default has would be written aside and copied, for each packet.
        options: Options {
            mss: None,
            window_scale: None,
            sack_permitted: false,
            timestamps,
            sack: [(Seq(0), Seq(0)); 4],
            sack_count: 0,
            fast_open: None,
            order,
            len: (header_len - 20) as u8,
            incomplete: false,
        },
        ip: IpInfo {
            id: Some(be16(head, IP + 4)),
            ttl: Some(head[IP + 8]),
            ecn: Some(head[IP + 1] & 0b11),
        },
        link: LinkInfo { direction: frame.direction, interface: frame.interface, checksum: None },
    };
    take(&mut segment);
    Some(())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::units::Time;

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
        let taken = segment(&frame(&data, 90), |segment| {
            assert_eq!((segment.payload, segment.payload_len), (&b"0123456789"[..], 10));
            assert_eq!(segment.options.timestamps, Some((17, 34)));
        });
        assert_eq!(taken, Some(()), "it is usual");
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
            let mut short = String::new();
            if segment(&frame, |segment| short = format!("{segment:?}")).is_some() {
                let walked = super::super::walked(&frame).expect("a segment");
                prop_assert_eq!(short, format!("{walked:?}"));
            }
        }
    }
}
