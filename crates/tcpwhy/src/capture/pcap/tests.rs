use super::super::tape::{Order, Tape, read, read_chunks};

/// Little-endian, microseconds, snap length 64, Ethernet.
fn header() -> Tape {
    Tape::new(Order::Little).pcap(0xa1b2_c3d4, 64, 1)
}

#[test]
fn frames_come_out_with_number_time_and_both_lengths() {
    let file =
        header().record(1_700_000_000, 250, b"abcdef", 1514).record(1_700_000_001, 0, b"", 60);
    let tape = read(&file);
    assert_eq!(
        tape.items,
        [
            "#1 1700000000.000250000 link 1 if 0 wire 1514 `abcdef`",
            "#2 1700000001.000000000 link 1 if 0 wire 60 ``",
        ]
    );
    assert_eq!(tape.end, Ok(()));
}

#[test]
fn files_joined_one_behind_the_other_are_one() {
    let big = Tape::new(Order::Big).pcap(0xa1b2_3c4d, 64, 101).record(8, 5, b"y", 1);
    let file = header().record(7, 3, b"x", 1).raw(&big.bytes);
    for tape in [read(&file), read_chunks(file.bytes.chunks(1))] {
        assert_eq!(
            tape.items[..2],
            ["#1 7.000003000 link 1 if 0 wire 1 `x`", "#2 8.000000005 link 101 if 0 wire 1 `y`"]
        );
        assert!(tape.items[2].contains("joined"), "{:?}", tape.items);
        assert_eq!(tape.end, Ok(()));
    }
}

#[test]
fn every_magic_has_its_byte_order_and_unit() {
    for order in [Order::Little, Order::Big] {
        for (magic, expected) in [(0xa1b2_c3d4, "7.000123000"), (0xa1b2_3c4d, "7.000000123")] {
            let file = Tape::new(order).pcap(magic, 65_535, 101).record(7, 123, b"x", 1);
            let expected = format!("#1 {expected} link 101 if 0 wire 1 `x`");
            assert_eq!(read(&file).items, [expected]);
        }
    }
}

#[test]
fn the_patched_record_header_tells_the_direction() {
    let record = |file: Tape, kind: u8, data: &[u8]| {
        file.u32(7).u32(0).u32(1).u32(1).u32(2).u16(8).raw(&[kind, 0]).raw(data)
    };
    for order in [Order::Little, Order::Big] {
        let mut file = Tape::new(order).pcap(0xa1b2_cd34, 64, 1);
        for (kind, data) in [(0, b"h"), (1, b"b"), (4, b"o"), (3, b"x")] {
            file = record(file, kind, data);
        }
        assert_eq!(
            read(&file).items,
            [
                "#1 7.000000000 link 1 if 0 in wire 1 `h`",
                "#2 7.000000000 link 1 if 0 in wire 1 `b`",
                "#3 7.000000000 link 1 if 0 out wire 1 `o`",
                "#4 7.000000000 link 1 if 0 wire 1 `x`",
            ]
        );
    }
}

#[test]
fn bits_above_the_link_type_are_no_part_of_it() {
    let file = Tape::new(Order::Little).pcap(0xa1b2_c3d4, 64, 0x4400_0001).record(7, 0, b"x", 5);
    assert_eq!(read(&file).items, ["#1 7.000000000 link 1 if 0 wire 5 `x`"]);
}

#[test]
fn odd_numbers_are_borne() {
    // A fraction of more than a second adds up, a frame is as long as what was kept of it,
    // the last second of 32 bits is far away.
    let file = header().record(7, 1_500_000, b"abc", 2).record(u32::MAX, u32::MAX, b"", 0);
    assert_eq!(
        read(&file).items,
        [
            "#1 8.500000000 link 1 if 0 wire 3 `abc`",
            "#2 4294971589.967295000 link 1 if 0 wire 0 ``",
        ]
    );
}

#[test]
fn old_versions_have_the_lengths_the_other_way_round() {
    let file = |minor| {
        Tape::new(Order::Big).u32(0xa1b2_c3d4).u16(2).u16(minor).u32(0).u32(0).u32(64).u32(1)
    };
    let old = file(2).u32(7).u32(0).u32(60).u32(1).raw(b"x");
    assert_eq!(read(&old).items, ["#1 7.000000000 link 1 if 0 wire 60 `x`"]);
    let either = file(3).u32(7).u32(0).u32(60).u32(1).raw(b"x").record(8, 0, b"y", 61);
    assert_eq!(
        read(&either).items,
        ["#1 7.000000000 link 1 if 0 wire 60 `x`", "#2 8.000000000 link 1 if 0 wire 61 `y`",]
    );
}

#[test]
fn the_snap_length_may_lie_up_to_what_can_be() {
    let long = vec![b'.'; 262_144];
    for snap_length in [0, 64, u32::MAX] {
        let file = Tape::new(Order::Little).pcap(0xa1b2_c3d4, snap_length, 1);
        let tape = read(&file.record(7, 0, &long, 262_144));
        assert_eq!((tape.items.len(), tape.end), (1, Ok(())), "snap length {snap_length}");
    }
}

#[test]
fn an_absurd_length_is_damage_and_what_stood_before_it_stays() {
    let file = header().record(7, 0, b"abc", 3).u32(8).u32(0).u32(262_145).u32(262_145);
    let tape = read(&file.raw(&[b'.'; 1000]));
    assert_eq!(tape.items, ["#1 7.000000000 link 1 if 0 wire 3 `abc`"]);
    assert_eq!(
        tape.end,
        Err("packet 2, at byte 43, claims 262145 captured bytes where at most 262144 are \
             possible: the file is probably damaged, or was transferred incompletely or as \
             text; copy it again in binary mode or capture again (the packet before it was \
             read)"
            .to_owned())
    );
}

#[test]
fn a_snap_length_beyond_all_memory_does_not_help_an_absurd_length() {
    let file = Tape::new(Order::Little).pcap(0xa1b2_c3d4, u32::MAX, 1);
    let tape = read(&file.u32(7).u32(0).u32(u32::MAX).u32(1514));
    let error = tape.end.expect_err("no record is this long");
    assert!(error.starts_with("packet 1, at byte 24, claims 4294967295 captured"), "{error}");
    assert!(error.contains("at most 16777216 are possible"), "{error}");
}

#[test]
fn zeros_are_no_packets() {
    let tape = read(&header().record(7, 0, b"abc", 3).raw(&[0; 4096]));
    assert_eq!(tape.items, ["#1 7.000000000 link 1 if 0 wire 3 `abc`"]);
    assert_eq!(
        tape.end,
        Err("there are only zeros at byte 43, where packet 2 should begin: the disk was \
             probably full or the machine crashed while capturing; capture again (the packet \
             before it was read)"
            .to_owned())
    );
}

#[test]
fn a_capture_may_end_anywhere() {
    assert_eq!(read(&header()).items, [""; 0]);
    let file = header().record(7, 0, b"abc", 3).record(8, 0, b"def", 3).cut(1);
    let tape = read(&file);
    assert_eq!(
        tape.items,
        [
            "#1 7.000000000 link 1 if 0 wire 3 `abc`",
            "cut_short 1: the capture ends inside packet 2, which begins at byte 43, at least \
             1 byte short: it was probably still being written, or copied incompletely; \
             everything before was read",
        ]
    );
    assert_eq!(tape.end, Ok(()));
    let tape = read(&header().record(7, 0, b"abc", 3).cut(4));
    assert_eq!(tape.items.len(), 1);
    assert!(tape.items[0].contains("inside packet 1, which begins at byte 24, at least 1 byte"));
}

#[test]
fn a_cut_header_and_an_unknown_version_say_so() {
    assert_eq!(
        read(&header().cut(4)).end,
        Err("it ends inside the pcap header, at least 4 bytes short: it was probably copied \
             while being written, or incompletely; copy or capture it again"
            .to_owned())
    );
    let odd = Tape::new(Order::Little).u32(0xa1b2_c3d4).u16(9).u16(4).raw(&[0; 16]);
    assert_eq!(
        read(&odd).end,
        Err("it claims pcap version 9.4, but only 2.4 is known: its header is probably \
             damaged; copy or capture it again"
            .to_owned())
    );
}
