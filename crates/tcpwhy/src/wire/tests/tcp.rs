//! The TCP header: flags, options in every shape, snap lengths, checksums.

use super::*;

/// The options of a segment that carries these bytes as options.
fn options(bytes: &[u8]) -> Options {
    let bytes = ethernet(0x0800, &v4(6, &tcp(bytes, 0)));
    on_ethernet(&bytes).expect("a segment").options
}

#[test]
fn all_nine_flags() {
    let mut bytes = ethernet(0x0800, &v4(6, &data()));
    // Data offset 8, three reserved bits whose last is AE, then the other eight.
    for (first, second, flags) in [
        (0x80, 0x02, Flags::SYN),
        (0x80, 0x12, Flags::SYN.with(Flags::ACK)),
        (0x81, 0xc2, Flags::SYN.with(Flags::AE).with(Flags::CWR).with(Flags::ECE)),
        (0x8e, 0x29, Flags::URG.with(Flags::PSH).with(Flags::FIN)),
        (0x80, 0x04, Flags::RST),
    ] {
        (bytes[46], bytes[47]) = (first, second);
        assert_eq!(on_ethernet(&bytes).expect("a segment").flags, flags);
    }
}

#[test]
fn options_of_a_linux_syn() {
    let seen = options(&[2, 4, 5, 0xb4, 4, 2, 8, 10, 0, 0, 0, 7, 0, 0, 0, 0, 1, 3, 3, 7]);
    let expected = Options {
        mss: Some(1460),
        window_scale: Some(7),
        sack_permitted: true,
        timestamps: Some((7, 0)),
        order: [2, 4, 8, 1, 3, 0, 0, 0],
        len: 20,
        ..Options::default()
    };
    assert_eq!(seen, expected);
}

#[test]
fn no_options_are_known_to_be_none() {
    assert_eq!(options(&[]), Options::default());
}

#[test]
fn sack_blocks_one_to_four() {
    for count in 1..=4_u8 {
        let mut bytes = vec![1, 1, 5, 2 + 8 * count];
        for block in 0..count {
            bytes.extend([0, 0, block, 0, 0, 0, block, 9]);
        }
        let seen = options(&bytes);
        let expected: Vec<_> =
            (0..u32::from(count)).map(|block| (Seq(block << 8), Seq(block << 8 | 9))).collect();
        assert_eq!(seen.sack_blocks(), expected);
        assert!(!seen.incomplete);
    }
}

#[test]
fn timestamps_with_sack() {
    let bytes = join(&STAMPS, &[1, 1, 5, 10, 0, 0, 0, 1, 0, 0, 0, 2]);
    let seen = options(&bytes);
    assert_eq!(seen.timestamps, Some((0x11, 0x22)));
    assert_eq!(seen.sack_blocks(), [(Seq(1), Seq(2))]);
    assert_eq!(seen.order, [1, 1, 8, 1, 1, 5, 0, 0]);
}

#[test]
fn fast_open_by_kind_and_by_experiment() {
    for (bytes, cookie) in [
        (&[34, 2, 1, 1][..], Some(0)),
        (&[34, 10, 1, 2, 3, 4, 5, 6, 7, 8, 1, 1], Some(8)),
        (&[254, 4, 0xf9, 0x89], Some(0)),
        (&[254, 8, 0xf9, 0x89, 1, 2, 3, 4], Some(4)),
        // Another experiment; an experiment too short for a magic number.
        (&[254, 4, 0xf9, 0x88], None),
        (&[254, 2, 1, 1], None),
    ] {
        assert_eq!(options(bytes).fast_open, cookie, "{bytes:x?}");
        assert!(!options(bytes).incomplete);
    }
}

#[test]
fn options_end_where_they_say() {
    let seen = options(&[2, 4, 5, 0xb4, 0, 3, 3, 7]);
    assert_eq!((seen.mss, seen.window_scale, seen.incomplete), (Some(1460), None, false));
    assert_eq!((seen.order, seen.len), ([2, 0, 0, 0, 0, 0, 0, 0], 8));
}

#[test]
fn options_that_make_no_sense_are_incomplete() {
    // Length 0, 1, beyond the end, or missing: nothing after it can be read.
    for bad in [[1, 1, 19, 0], [1, 1, 19, 1], [1, 19, 4, 0], [1, 1, 1, 19]] {
        let seen = options(&join(&[2, 4, 5, 0xb4], &bad));
        assert_eq!((seen.mss, seen.incomplete), (Some(1460), true), "{bad:?}");
    }
    // A known kind of another length is stepped over, and what it said is unknown.
    for bad in [[2, 3, 0, 1], [3, 4, 0, 0], [4, 3, 0, 1], [8, 4, 0, 0], [5, 4, 0, 0]] {
        let seen = options(&join(&bad, &STAMPS));
        assert!(seen.incomplete, "{bad:?}");
        assert_eq!(seen.timestamps, Some((0x11, 0x22)));
        assert_eq!((seen.mss, seen.window_scale, seen.sack_permitted), (None, None, false));
        assert_eq!(seen.sack_count, 0);
    }
}

#[test]
fn only_eight_kinds_are_kept_in_order() {
    assert_eq!(options(&[1; 12]).order, [1; 8]);
}

#[test]
fn every_snap_length_tells_what_it_kept() {
    let syn = [2, 4, 5, 0xb4, 4, 2, 8, 10, 0, 0, 0, 7, 0, 0, 0, 0, 1, 3, 3, 7];
    let bytes = ethernet(0x0800, &v4(6, &tcp(&syn, 5)));
    for snap in 0..=bytes.len() {
        let seen = parse(&cut(frame(1, &bytes), snap));
        let Some(after_fixed) = snap.checked_sub(54) else {
            assert_eq!(seen.err(), Some(Skip::HeaderCut), "snap length {snap}");
            continue;
        };
        let segment = seen.expect("the fixed part is there");
        let options = segment.options;
        assert_eq!(options.mss.is_some(), after_fixed >= 4, "snap length {snap}");
        assert_eq!(options.sack_permitted, after_fixed >= 6, "snap length {snap}");
        assert_eq!(options.timestamps.is_some(), after_fixed >= 16, "snap length {snap}");
        assert_eq!(options.window_scale.is_some(), after_fixed >= 20, "snap length {snap}");
        assert_eq!(options.incomplete, after_fixed < 20, "snap length {snap}");
        assert_eq!((options.len, segment.payload_len), (20, 5));
        assert_eq!(segment.payload, &b"PQRST"[..after_fixed.saturating_sub(20)]);
    }
}

/// A whole frame whose checksum field was set by `fill`, given the right value.
fn with_checksum(six: bool, fill: impl Fn(u16) -> u16) -> Vec<u8> {
    let mut segment = data();
    let (at, sum) = if six {
        let header = etherparse::TcpHeaderSlice::from_slice(&segment).expect("a header");
        (54, header.calc_checksum_ipv6_raw(V6_SOURCE, V6_DESTINATION, &segment[32..]))
    } else {
        let header = etherparse::TcpHeaderSlice::from_slice(&segment).expect("a header");
        (34, header.calc_checksum_ipv4_raw([10, 0, 0, 1], [10, 0, 0, 2], &segment[32..]))
    };
    let sum = fill(sum.expect("a short segment"));
    segment[16..18].copy_from_slice(&sum.to_be_bytes());
    let bytes =
        if six { ethernet(0x86dd, &v6(6, &segment)) } else { ethernet(0x0800, &v4(6, &segment)) };
    assert_eq!(bytes[at + 16..at + 18], sum.to_be_bytes());
    bytes
}

#[test]
fn checksums_good_and_bad() {
    for six in [false, true] {
        let good = with_checksum(six, |sum| sum);
        assert_eq!(checksum(&frame(1, &good)), Some(Checksum::Good));
        let bad = with_checksum(six, |sum| sum ^ 0x0100);
        assert_eq!(checksum(&frame(1, &bad)), Some(Checksum::Bad));
        assert_eq!(checksum(&cut(frame(1, &good), good.len() - 1)), None);
        assert_eq!(parse(&frame(1, &bad)).expect("a segment").link.checksum, None);
    }
}

#[test]
fn a_checksum_left_to_the_network_card() {
    // 10.0.0.1, 10.0.0.2, protocol 6, length 37; then as Windows asks for, without the length.
    let pseudo = 0x0a00 + 0x0001 + 0x0a00 + 0x0002 + 6 + 37;
    for field in [pseudo, pseudo - 37] {
        let left = with_checksum(false, |_| field);
        assert_eq!(checksum(&frame(1, &left)), Some(Checksum::Offloaded));
    }
    let near_miss = with_checksum(false, |_| pseudo + 1);
    assert_eq!(checksum(&frame(1, &near_miss)), Some(Checksum::Bad));
    let six = 0xfd00 + 1 + 6 + 37;
    // Both addresses begin with fd00: the carry comes back in at the low end.
    let left = with_checksum(true, |_| (six + 0xfd00 + 2 - 0xffff_u32) as u16);
    assert_eq!(checksum(&frame(1, &left)), Some(Checksum::Offloaded));
}
