//! Link types, VLAN, LLC, PPP: the same segment must come out of each.

use super::*;

#[test]
fn ethernet_and_both_ip_versions() {
    let four = ethernet(0x0800, &v4(6, &data()));
    let seen = on_ethernet(&four);
    assert_data_v4(&seen);
    let segment = seen.expect("asserted above");
    assert_eq!((segment.time, segment.frame, segment.network), (Time(1), 7, 0));
    assert_eq!(segment.ip, IpInfo { id: Some(0xabcd), ttl: Some(64), ecn: Some(2) });
    assert_eq!(segment.link, LinkInfo::default());

    let six = ethernet(0x86dd, &v6(6, &data()));
    let seen = on_ethernet(&six);
    assert_data_v6(&seen);
    let ip = seen.expect("asserted above").ip;
    assert_eq!(ip, IpInfo { id: None, ttl: Some(63), ecn: Some(1) });
}

#[test]
fn other_ethertypes_are_not_tcp() {
    // ARP, PPPoE discovery, MACsec, LLDP.
    for other in [0x0806, 0x8863, 0x88e5, 0x88cc] {
        let bytes = ethernet(other, &v4(6, &data()));
        assert_eq!(on_ethernet(&bytes).err(), Some(Skip::NotTcp), "{other:#x}");
    }
}

#[test]
fn vlan_tags_stack_and_name_the_network() {
    let inner = v4(6, &data());
    let tagged = join(&[0x60, 5, 0x08, 0x00], &inner);
    let one = ethernet(0x8100, &tagged);
    assert_data_v4(&on_ethernet(&one));
    assert_eq!(on_ethernet(&one).expect("a segment").network, 5);
    let mut networks = vec![5];
    for outer in [0x88a8, 0x9100, 0x8100] {
        let two = ethernet(outer, &join(&[0, 7, 0x81, 0x00], &tagged));
        assert_data_v4(&on_ethernet(&two));
        networks.push(on_ethernet(&two).expect("a segment").network);
    }
    assert_eq!(networks[1..], [networks[1]; 3], "the tag's Ethertype is not part of the network");
    let swapped = ethernet(0x88a8, &join(&[0, 5, 0x81, 0x00], &join(&[0, 7, 0x08, 0x00], &inner)));
    networks.push(on_ethernet(&swapped).expect("a segment").network);
    networks.dedup();
    assert_eq!(networks.len(), 3, "5, 5 in 7, and 7 in 5 are three networks");
}

#[test]
fn a_priority_tag_is_no_network() {
    let bytes = ethernet(0x8100, &join(&[0xe0, 0, 0x08, 0x00], &v4(6, &data())));
    assert_data_v4(&on_ethernet(&bytes));
    assert_eq!(on_ethernet(&bytes).expect("a segment").network, 0);
}

#[test]
fn tags_without_end_are_malformed() {
    let mut bytes = ethernet(0x8100, &[]);
    for _ in 0..100 {
        bytes.extend([0, 5, 0x81, 0x00]);
    }
    assert_eq!(on_ethernet(&bytes).err(), Some(Skip::Malformed));
}

#[test]
fn length_instead_of_ethertype_is_llc() {
    let inner = v4(6, &data());
    // SNAP with an Ethertype, plain and after a VLAN tag.
    let snap = join(&[0xaa, 0xaa, 3, 0, 0, 0, 0x08, 0x00], &inner);
    assert_data_v4(&on_ethernet(&ethernet(snap.len() as u16, &snap)));
    let tagged = join(&[0, 5, 0, snap.len() as u8], &snap);
    assert_data_v4(&on_ethernet(&ethernet(0x8100, &tagged)));
    // Spanning tree; SNAP of Cisco's discovery protocol; Novell without LLC.
    for other in [&[0x42, 0x42, 3, 0, 0, 0][..], &[0xaa, 0xaa, 3, 0, 0, 0x0c, 0x20, 0], &[0xff; 8]]
    {
        let bytes = ethernet(38, &join(other, &inner));
        assert_eq!(on_ethernet(&bytes).err(), Some(Skip::NotTcp), "{other:?}");
    }
    // A SNAP protocol below 1536 would be LLC in LLC.
    let loop_in_itself = ethernet(38, &[0xaa, 0xaa, 3, 0, 0, 0, 0, 38, 0xaa, 0xaa, 3]);
    assert_eq!(on_ethernet(&loop_in_itself).err(), Some(Skip::NotTcp));
}

/// Linux "cooked" headers of this packet type.
fn sll(packet_type: u8, protocol: u16, inner: &[u8]) -> Vec<u8> {
    let mut bytes = vec![0, packet_type, 0, 1, 0, 6, 2, 0, 0, 0, 0, 1, 0, 0];
    bytes.extend(protocol.to_be_bytes());
    join(&bytes, inner)
}

fn sll2(packet_type: u8, protocol: u16, inner: &[u8]) -> Vec<u8> {
    let mut bytes = protocol.to_be_bytes().to_vec();
    bytes.extend([0, 0, 0, 0, 0, 3, 0, 1, packet_type, 6, 2, 0, 0, 0, 0, 1, 0, 0]);
    join(&bytes, inner)
}

#[test]
fn linux_cooked_tells_the_direction() {
    let inner = v4(6, &data());
    for (packet_type, direction) in [
        (0, Some(Direction::Incoming)),
        (1, Some(Direction::Incoming)),
        (2, Some(Direction::Incoming)),
        (3, None),
        (4, Some(Direction::Outgoing)),
        (5, None),
    ] {
        let one = sll(packet_type, 0x0800, &inner);
        let seen = parse(&frame(113, &one));
        assert_data_v4(&seen);
        let link = seen.expect("asserted above").link;
        assert_eq!((link.direction, link.interface), (direction, 0), "SLL, type {packet_type}");

        let two = sll2(packet_type, 0x0800, &inner);
        let seen = parse(&frame(276, &two));
        assert_data_v4(&seen);
        let link = seen.expect("asserted above").link;
        assert_eq!((link.direction, link.interface), (direction, 3), "SLL2, type {packet_type}");
    }
}

#[test]
fn the_packets_own_metadata_goes_before_the_cooked_header() {
    let bytes = sll(0, 0x0800, &v4(6, &data()));
    let outgoing =
        Frame { direction: Some(Direction::Outgoing), interface: 9, ..frame(113, &bytes) };
    let link = parse(&outgoing).expect("a segment").link;
    assert_eq!((link.direction, link.interface), (Some(Direction::Outgoing), 9));
}

#[test]
fn linux_cooked_carries_vlan_and_llc_too() {
    let tagged = join(&[0, 5, 0x86, 0xdd], &v6(6, &data()));
    assert_data_v6(&parse(&frame(276, &sll2(0, 0x8100, &tagged))));
    // Protocol 4 says 802.2 LLC follows: here a spanning tree packet.
    let bpdu = sll(0, 4, &[0x42, 0x42, 3, 0, 0, 0]);
    assert_eq!(parse(&frame(113, &bpdu)).err(), Some(Skip::NotTcp));
}

#[test]
fn raw_ip_goes_by_the_version() {
    let (four, six) = (v4(6, &data()), v6(6, &data()));
    for link_type in [12, 14, 101] {
        assert_data_v4(&parse(&frame(link_type, &four)));
        assert_data_v6(&parse(&frame(link_type, &six)));
        assert_eq!(parse(&frame(link_type, &[0x55; 60])).err(), Some(Skip::NotTcp));
    }
    assert_data_v4(&parse(&frame(228, &four)));
    assert_data_v6(&parse(&frame(229, &six)));
    assert_eq!(parse(&frame(228, &six)).err(), Some(Skip::Malformed));
    assert_eq!(parse(&frame(229, &four)).err(), Some(Skip::Malformed));
}

#[test]
fn bsd_loopback_in_either_byte_order() {
    let (four, six) = (v4(6, &data()), v6(6, &data()));
    for link_type in [0, 108] {
        for family in [[2, 0, 0, 0], [0, 0, 0, 2]] {
            assert_data_v4(&parse(&frame(link_type, &join(&family, &four))));
        }
        for system in [10_u32, 24, 28, 30] {
            assert_data_v6(&parse(&frame(link_type, &join(&system.to_le_bytes(), &six))));
            assert_data_v6(&parse(&frame(link_type, &join(&system.to_be_bytes(), &six))));
        }
        let apple_talk = join(&[16, 0, 0, 0], &four);
        assert_eq!(parse(&frame(link_type, &apple_talk)).err(), Some(Skip::NotTcp));
    }
}

#[test]
fn ppp_in_all_framings() {
    let (four, six) = (v4(6, &data()), v6(6, &data()));
    for link_type in [9, 50] {
        assert_data_v4(&parse(&frame(link_type, &join(&[0x00, 0x21], &four))));
        assert_data_v4(&parse(&frame(link_type, &join(&[0x21], &four))));
        assert_data_v4(&parse(&frame(link_type, &join(&[0xff, 0x03, 0x00, 0x21], &four))));
        assert_data_v6(&parse(&frame(link_type, &join(&[0xff, 0x03, 0x57], &six))));
        let link_control = join(&[0xff, 0x03, 0xc0, 0x21], &four);
        assert_eq!(parse(&frame(link_type, &link_control)).err(), Some(Skip::NotTcp));
        let compressed_header = join(&[0x00, 0x2d], &four);
        assert_eq!(parse(&frame(link_type, &compressed_header)).err(), Some(Skip::NotTcp));
    }
    for cisco in [[0x0f, 0, 0x08, 0x00], [0x8f, 0, 0x08, 0x00]] {
        assert_data_v4(&parse(&frame(50, &join(&cisco, &four))));
        assert_data_v4(&parse(&frame(104, &join(&cisco, &four))));
    }
}

#[test]
fn ppp_with_direction() {
    let four = v4(6, &data());
    for (byte, direction) in [(0, Direction::Incoming), (1, Direction::Outgoing)] {
        for (link_type, header) in [
            (204, vec![byte, 0xff, 0x03, 0x00, 0x21]),
            (204, vec![byte, 0x21]),
            (166, vec![byte, 0x03, 0x00, 0x21]),
        ] {
            let bytes = join(&header, &four);
            let seen = parse(&frame(link_type, &bytes));
            assert_data_v4(&seen);
            assert_eq!(seen.expect("asserted above").link.direction, Some(direction));
        }
    }
}

#[test]
fn pppoe_sessions_but_not_their_control() {
    let session = |code, inner: &[u8]| join(&[0x11, code, 0x12, 0x34, 0, 99], inner);
    let four = session(0, &join(&[0x00, 0x21], &v4(6, &data())));
    assert_data_v4(&on_ethernet(&ethernet(0x8864, &four)));
    assert_data_v4(&parse(&frame(51, &four)));
    let six = session(0, &join(&[0x00, 0x57], &v6(6, &data())));
    assert_data_v6(&on_ethernet(&ethernet(0x8100, &join(&[0, 5, 0x88, 0x64], &six))));
    let terminate = session(0xa7, &join(&[0x00, 0x21], &v4(6, &data())));
    assert_eq!(on_ethernet(&ethernet(0x8864, &terminate)).err(), Some(Skip::NotTcp));
}

#[test]
fn an_unknown_link_type_says_so() {
    for link_type in [105, 127, 147, u32::MAX] {
        let seen = parse(&frame(link_type, &v4(6, &data()))).map(|_| ());
        assert_eq!(seen, Err(Skip::UnknownLinkType), "{link_type}");
    }
}
