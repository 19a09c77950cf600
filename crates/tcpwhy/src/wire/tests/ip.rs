//! IPv4 and IPv6: lengths, fragments, options and extension headers.

use super::*;

#[test]
fn padding_of_short_frames_is_not_payload() {
    let mut bytes = ethernet(0x0800, &v4(6, &tcp(&[], 0)));
    bytes.resize(60, 0xee);
    let segment = on_ethernet(&bytes).expect("a segment");
    assert_eq!((segment.payload_len, segment.payload), (0, &[][..]));
    let mut bytes = ethernet(0x86dd, &v6(6, &data()));
    bytes.extend([0xee; 9]);
    assert_data_v6(&on_ethernet(&bytes));
}

#[test]
fn a_total_length_of_zero_means_up_to_the_frames_end() {
    let mut bytes = ethernet(0x0800, &v4(6, &tcp(&STAMPS, 100)));
    bytes[16..18].copy_from_slice(&[0, 0]);
    let offloaded = Frame { wire_len: 70_066, ..frame(1, &bytes) };
    let segment = parse(&offloaded).expect("a segment");
    assert_eq!((segment.payload_len, segment.payload.len()), (70_066 - 66, 100));
}

#[test]
fn an_ipv6_payload_length_of_zero_goes_by_the_jumbo_option_or_the_frame() {
    let mut bytes = ethernet(0x86dd, &v6(6, &tcp(&STAMPS, 100)));
    bytes[18..20].copy_from_slice(&[0, 0]);
    let offloaded = Frame { wire_len: 200_086, ..frame(1, &bytes) };
    assert_eq!(parse(&offloaded).expect("a segment").payload_len, 200_000);

    let jumbo = |length: u32, before: &[u8]| {
        let mut header = vec![6, u8::try_from(before.len() / 8).expect("short")];
        header.extend(before);
        header.extend([0xc2, 4]);
        header.extend(length.to_be_bytes());
        let mut bytes = ethernet(0x86dd, &v6(0, &join(&header, &tcp(&STAMPS, 100))));
        bytes[18..20].copy_from_slice(&[0, 0]);
        // The frame's end is 4 bytes later: a trailer that the jumbo length excludes.
        bytes.extend([0xee; 4]);
        parse(&Frame { wire_len: 200_102, ..frame(1, &bytes) }).expect("a segment").payload_len
    };
    assert_eq!(jumbo(200_040, &[]), 200_000);
    assert_eq!(jumbo(200_048, &[1, 4, 0, 0, 0, 0, 0, 0]), 200_000);
    // Less than 65,536 is no jumbogram: the frame's length it is.
    assert_eq!(jumbo(1000, &[]), 200_102 - 14 - 40 - 8 - 32);
}

#[test]
fn a_frame_that_calls_its_cut_length_its_own_is_believed_less_than_ip() {
    let bytes = ethernet(0x0800, &v4(6, &tcp(&STAMPS, 1000)));
    let segment = parse(&frame(1, &bytes[..100])).expect("a segment");
    assert_eq!((segment.payload_len, segment.payload.len()), (1000, 100 - 66));
    let short = walked(&frame(1, &bytes[..100]), 101).expect("a segment");
    assert_eq!(short.payload_len, 100 - 66, "one that was longer was not cut");
    let snapped = Frame { wire_len: 200, ..frame(1, &bytes[..100]) };
    let told = parse(&snapped).expect("a segment").payload_len;
    assert_eq!(told, 200 - 66, "the length on the wire was written down");
}

#[test]
fn what_ip_says_beyond_the_frame_of_a_syn_never_was() {
    for version in [4, 6] {
        let syn = |options: &[u8], cut: usize| {
            let mut tcp = tcp(options, 12);
            tcp[13] = 2;
            let bytes = if version == 4 {
                ethernet(0x0800, &v4(6, &tcp))
            } else {
                ethernet(0x86dd, &v6(6, &tcp))
            };
            parse(&frame(1, &bytes[..bytes.len() - cut])).expect("a segment").payload_len
        };
        let mss = [2, 4, 5, 180];
        assert_eq!([syn(&mss, 12), syn(&mss, 5), syn(&[], 12)], [0, 7, 0], "IPv{version}");
        assert_eq!(syn(&[34, 4, 1, 2], 12), 12, "data with Fast Open, in a frame that was cut");
    }
}

#[test]
fn options_that_were_cut_off_behind_lengths_that_were_left_are_unknown() {
    let mut syn = tcp(&[2, 4, 5, 180, 1, 3, 3, 7, 4, 2, 0, 0], 0);
    syn[13] = 2;
    let bytes = ethernet(0x0800, &v4(6, &syn));
    let cut = walked(&frame(1, &bytes[..bytes.len() - 8]), 1514).expect("a segment");
    assert_eq!((cut.payload_len, cut.options.mss, cut.options.incomplete), (0, Some(1460), true));
}

#[test]
fn contradicting_headers_are_malformed() {
    let good = ethernet(0x0800, &v4(6, &data()));
    for (what, at, byte) in [
        ("version 5", 14, 0x55),
        ("header length 16", 14, 0x44),
        ("total length 19", 17, 19),
        ("total length 39: half a TCP header", 17, 39),
        ("data offset 4", 46, 0x40),
        ("data offset beyond the segment", 46, 0xf0),
    ] {
        let mut bad = good.clone();
        bad[at] = byte;
        assert_eq!(on_ethernet(&bad).err(), Some(Skip::Malformed), "{what}");
    }
    assert_eq!(on_ethernet(&good[..10]).err(), Some(Skip::Malformed), "a frame of 10 bytes");
}

#[test]
fn ipv4_options_are_stepped_over() {
    let mut bytes = v4(6, &join(&[7, 3, 4, 0], &data()));
    bytes[0] = 0x46;
    assert_data_v4(&on_ethernet(&ethernet(0x0800, &bytes)));
}

#[test]
fn a_first_fragment_is_usable_with_its_own_length() {
    let bytes = ethernet(0x0800, &v4_fragment(6, 0x2000, &data()));
    assert_data_v4(&on_ethernet(&bytes));
    assert_eq!(checksum(&frame(1, &bytes)), None);
    let six = [&[6, 0, 0, 1, 0, 0, 0, 9][..], &data()].concat();
    assert_data_v6(&on_ethernet(&ethernet(0x86dd, &v6(44, &six))));
    // A fragment header on a packet that was not fragmented.
    let atomic = [&[6, 0, 0, 0, 0, 0, 0, 9][..], &data()].concat();
    assert_data_v6(&on_ethernet(&ethernet(0x86dd, &v6(44, &atomic))));
}

#[test]
fn later_fragments_have_no_tcp_header() {
    for offset in [1, 0x2001, 0x1fff] {
        let bytes = ethernet(0x0800, &v4_fragment(6, offset, &data()));
        assert_eq!(on_ethernet(&bytes).err(), Some(Skip::LaterFragment), "offset {offset:#x}");
    }
    let six = [&[6, 0, 0, 8, 0, 0, 0, 9][..], &data()].concat();
    let seen = on_ethernet(&ethernet(0x86dd, &v6(44, &six))).map(|_| ());
    assert_eq!(seen, Err(Skip::LaterFragment));
    // Of a GRE packet: may well be TCP. Of a UDP datagram or a ping: is not.
    for (protocol, skip) in [(47, Skip::LaterFragment), (17, Skip::NotTcp), (1, Skip::NotTcp)] {
        let bytes = ethernet(0x0800, &v4_fragment(protocol, 9, &data()));
        assert_eq!(on_ethernet(&bytes).err(), Some(skip), "protocol {protocol}");
    }
}

#[test]
fn a_tcp_header_split_by_fragments() {
    let split = |bytes| ethernet(0x0800, &v4_fragment(6, 0x2000, &data()[..bytes]));
    assert_eq!(on_ethernet(&split(8)).err(), Some(Skip::LaterFragment));
    let inside_options = split(24);
    let segment = on_ethernet(&inside_options).expect("the fixed part is there");
    assert!(segment.options.incomplete);
    assert_eq!((segment.options.len, segment.payload_len), (12, 0));
}

#[test]
fn extension_headers_are_stepped_over() {
    // Kind, and eight or more bytes whose first is filled in with what comes next.
    let headers: [(u8, &[u8]); 8] = [
        (0, &[0, 0, 1, 4, 0, 0, 0, 0]),
        (60, &[0, 1, 1, 12, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]),
        (43, &[0, 0, 0, 0, 0, 0, 0, 0]),
        (44, &[0, 0, 0, 0, 0, 0, 0, 1]),
        (51, &[0, 4, 0, 0, 0, 0, 0, 1, 0, 0, 0, 1, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12]),
        (135, &[0, 0, 0, 0, 0, 0, 0, 0]),
        (139, &[0, 0, 0, 0, 0, 0, 0, 0]),
        (140, &[0, 0, 0, 0, 0, 0, 0, 0]),
    ];
    let (mut next, mut bytes) = (6, data());
    for (kind, header) in headers.into_iter().rev() {
        let mut header = header.to_vec();
        header[0] = next;
        let alone = join(&[&[6][..], &header[1..]].concat(), &data());
        assert_data_v6(&on_ethernet(&ethernet(0x86dd, &v6(kind, &alone))));
        (next, bytes) = (kind, join(&header, &bytes));
    }
    assert_data_v6(&on_ethernet(&ethernet(0x86dd, &v6(next, &bytes))));
}

#[test]
fn authentication_header_in_ipv4() {
    let ah = [6, 4, 0, 0, 0, 0, 0, 1, 0, 0, 0, 1, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12];
    assert_data_v4(&on_ethernet(&ethernet(0x0800, &v4(51, &join(&ah, &data())))));
}

#[test]
fn a_source_route_names_the_final_destination() {
    let (stop, last) = ([0xfc; 16], V6_DESTINATION);
    let route = |kind, left, list: [[u8; 16]; 2]| {
        [&[6, 4, kind, left, 1, 0, 0, 0][..], list.as_flattened(), &data()].concat()
    };
    let via_stop = |payload: &[u8]| {
        let mut packet = v6(43, payload);
        packet[24..40].copy_from_slice(&stop);
        ethernet(0x86dd, &packet)
    };
    // Segment routing lists backwards, the old type 0 forwards.
    assert_data_v6(&on_ethernet(&via_stop(&route(4, 1, [last, stop]))));
    assert_data_v6(&on_ethernet(&via_stop(&route(0, 1, [stop, last]))));
    // The last stop is reached, so the IPv6 header is right: here it names the stop.
    let bytes = via_stop(&route(4, 0, [last, stop]));
    let stopped = on_ethernet(&bytes).expect("a segment");
    assert_eq!(stopped.destination.ip(), IpAddr::from(stop));
}

#[test]
fn other_protocols_are_not_tcp() {
    // ICMP, IGMP, ESP, no next header, OSPF, SCTP.
    for protocol in [1, 2, 50, 59, 89, 132] {
        for bytes in
            [ethernet(0x0800, &v4(protocol, &data())), ethernet(0x86dd, &v6(protocol, &data()))]
        {
            assert_eq!(on_ethernet(&bytes).err(), Some(Skip::NotTcp), "protocol {protocol}");
        }
    }
}
