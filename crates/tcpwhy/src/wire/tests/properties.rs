//! What holds for any bytes, and agreement with etherparse where both see TCP.

use etherparse::{
    LaxNetSlice, LaxSlicedPacket, TcpHeader, TcpOptionElement as Element, TransportSlice,
};
use proptest::prelude::*;

use super::*;

const LINK_TYPES: [u32; 17] =
    [0, 1, 9, 12, 14, 50, 51, 101, 104, 108, 113, 166, 204, 228, 229, 276, 105];

/// Frames of headers in any order, sensible or not, with some bytes spoiled.
fn any_frame() -> impl Strategy<Value = Vec<u8>> {
    let layer = 0..12_u8;
    let spoiled = prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..3);
    let options = prop_oneof![Just(STAMPS), any::<[u8; 12]>()];
    (prop::collection::vec(layer, 0..8), 0..60_usize, options, spoiled).prop_map(
        |(layers, payload, options, spoiled)| {
            let mut bytes = tcp(&options, payload);
            let (mut protocol, mut ether_type) = (6, 0x0800);
            for layer in layers {
                (protocol, ether_type, bytes) = wrap(layer, protocol, ether_type, &bytes);
            }
            let mut bytes = ethernet(ether_type, &bytes);
            for (at, byte) in spoiled {
                let at = at.index(bytes.len());
                bytes[at] = byte;
            }
            bytes
        },
    )
}

/// One more header around the bytes; the protocol number and Ethertype that announce it.
fn wrap(layer: u8, protocol: u8, ether_type: u16, inner: &[u8]) -> (u8, u16, Vec<u8>) {
    let [high, low] = ether_type.to_be_bytes();
    match layer {
        0 | 1 => (4, 0x0800, v4(protocol, inner)),
        2 | 3 => (41, 0x86dd, v6(protocol, inner)),
        4 => (protocol, 0x8100, join(&[0, 5, high, low], inner)),
        5 => (47, 0x88a8, join(&[0x20, 0, high, low, 0, 0, 0, 1], inner)),
        6 => {
            (17, 0x0800, udp(4789, &join(&[8, 0, 0, 0, 0, 0, 9, 0], &ethernet(ether_type, inner))))
        }
        7 => (17, 0x0800, udp(6081, &join(&[1, 0, high, low, 0, 0, 9, 0, 1, 2, 3, 4], inner))),
        8 => (137, 0x8847, join(&[0, 1, 1, 64], inner)),
        9 => (0, 0x86dd, join(&[protocol, 0, 1, 4, 0, 0, 0, 0], inner)),
        10 => (44, 0x86dd, join(&[protocol, 0, 0, 1, 0, 0, 0, 0], inner)),
        _ => (protocol, 0x8864, join(&[0x11, 0, 0, 1, 0, 9, 0, 0x21], inner)),
    }
}

/// What may be said of every segment, whatever the bytes.
fn check(frame: &Frame<'_>) -> Result<(), TestCaseError> {
    let _ = checksum(frame);
    let Ok(segment) = parse(frame) else { return Ok(()) };
    prop_assert!(segment.payload.len() as u64 <= u64::from(segment.payload_len));
    prop_assert!(segment.options.len <= 40 && segment.options.len % 4 == 0);
    prop_assert!(segment.options.sack_count <= 4);
    prop_assert!(segment.flags.0 < 0x200);
    prop_assert_eq!((segment.time, segment.frame), (frame.time, frame.frame));
    if !segment.payload.is_empty() {
        prop_assert!(frame.data.as_ptr_range().contains(&segment.payload.as_ptr()));
    }
    Ok(())
}

proptest! {
    #[test]
    fn any_bytes_of_any_link_type(
        data in prop::collection::vec(any::<u8>(), 0..200),
        wire_len in any::<u32>(),
    ) {
        for link_type in LINK_TYPES {
            check(&frame(link_type, &data))?;
            check(&Frame { wire_len, ..frame(link_type, &data) })?;
        }
    }

    #[test]
    fn any_row_of_headers(data in any_frame(), wire_len in any::<u32>()) {
        check(&frame(1, &data))?;
        check(&Frame { wire_len, ..frame(1, &data) })?;
    }

    /// The more was captured, the more is known; nothing that was known changes.
    #[test]
    fn a_longer_snap_length_only_adds(data in any_frame()) {
        // All cuts are recorded ones, the last of one byte: what IP says beyond a frame counts alike.
        let whole = Frame { wire_len: data.len() as u32 + 1, ..frame(1, &data) };
        let mut known: Option<Segment<'_>> = None;
        for snap in 0..=data.len() {
            let seen = parse(&cut(whole, snap));
            match (&known, seen) {
                (None, Ok(segment)) => known = Some(segment),
                (None, Err(_)) => {}
                (Some(_), Err(skip)) => prop_assert!(false, "{skip:?} with {snap} bytes"),
                (Some(before), Ok(after)) => {
                    prop_assert_eq!(
                        (before.source, before.destination, before.seq, before.ack),
                        (after.source, after.destination, after.seq, after.ack)
                    );
                    prop_assert_eq!(before.network, after.network);
                    prop_assert_eq!(before.payload_len, after.payload_len);
                    prop_assert!(after.payload.starts_with(before.payload));
                    prop_assert!(before.options.incomplete || before.options == after.options);
                    known = Some(after);
                }
            }
        }
    }

    #[test]
    fn etherparse_sees_the_same(data in any_frame()) {
        let Ok(packet) = LaxSlicedPacket::from_ethernet(&data) else { return Ok(()) };
        let Some(TransportSlice::Tcp(theirs)) = &packet.transport else { return Ok(()) };
        let ours = match parse(&frame(1, &data)) {
            Ok(ours) => ours,
            // It also forgives an IP length shorter than the headers.
            Err(Skip::Malformed) => return Ok(()),
            Err(skip) => return Err(TestCaseError::fail(skip.reason())),
        };
        prop_assert_eq!(ours.source.port(), theirs.source_port());
        prop_assert_eq!(ours.destination.port(), theirs.destination_port());
        prop_assert_eq!(ours.seq.0, theirs.sequence_number());
        prop_assert_eq!(ours.ack.0, theirs.acknowledgment_number());
        prop_assert_eq!(ours.window, theirs.window_size());
        prop_assert_eq!(ours.flags.has(Flags::SYN), theirs.syn());
        prop_assert_eq!(ours.flags.has(Flags::AE), theirs.ns());
        prop_assert_eq!(usize::from(ours.options.len), theirs.options().len());
        prop_assert_eq!(ours.payload, theirs.payload());
        let (from, ttl) = match &packet.net {
            Some(LaxNetSlice::Ipv4(four)) => {
                (IpAddr::V4(four.header().source_addr()), four.header().ttl())
            }
            Some(LaxNetSlice::Ipv6(six)) => {
                (IpAddr::V6(six.header().source_addr()), six.header().hop_limit())
            }
            _ => return Err(TestCaseError::fail("TCP without IP")),
        };
        prop_assert_eq!((ours.source.ip(), ours.ip.ttl), (from, Some(ttl)));
    }

    /// Written by etherparse, read by us.
    #[test]
    fn options_written_are_options_read(elements in prop::collection::vec(any_option(), 0..5)) {
        let mut header = TcpHeader::new(PORTS.0, PORTS.1, SEQ, 0x01f6);
        if header.set_options(&elements).is_err() {
            return Ok(()); // More than 40 bytes.
        }
        let bytes = ethernet(0x0800, &v4(6, &header.to_bytes()));
        let seen = on_ethernet(&bytes).expect("a segment").options;
        let mut expected = Options { len: seen.len, order: seen.order, ..Options::default() };
        for element in &elements {
            match *element {
                Element::Noop => {}
                Element::MaximumSegmentSize(mss) => expected.mss = Some(mss),
                Element::WindowScale(shift) => expected.window_scale = Some(shift),
                Element::SelectiveAcknowledgementPermitted => expected.sack_permitted = true,
                Element::Timestamp(value, echo) => expected.timestamps = Some((value, echo)),
                Element::SelectiveAcknowledgement(first, others) => {
                    let blocks = [Some(first), others[0], others[1], others[2]];
                    expected.sack_count = 0;
                    for ((left, right), place) in blocks.iter().flatten().zip(&mut expected.sack) {
                        *place = (Seq(*left), Seq(*right));
                        expected.sack_count += 1;
                    }
                }
            }
        }
        prop_assert_eq!(seen.sack_blocks(), expected.sack_blocks());
        expected.sack = seen.sack;
        prop_assert_eq!(seen, expected);
    }
}

fn any_option() -> impl Strategy<Value = Element> {
    let block = any::<(u32, u32)>();
    let others = (0..4_usize, any::<[(u32, u32); 3]>())
        .prop_map(|(count, blocks)| core::array::from_fn(|at| (at < count).then_some(blocks[at])));
    prop_oneof![
        Just(Element::Noop),
        any::<u16>().prop_map(Element::MaximumSegmentSize),
        any::<u8>().prop_map(Element::WindowScale),
        Just(Element::SelectiveAcknowledgementPermitted),
        any::<(u32, u32)>().prop_map(|(value, echo)| Element::Timestamp(value, echo)),
        (block, others)
            .prop_map(|(first, others)| Element::SelectiveAcknowledgement(first, others)),
    ]
}
