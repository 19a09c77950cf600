use super::super::tape::{Order, Tape, read};

const INTERFACE: u32 = 1;
const OBSOLETE: u32 = 2;
const SIMPLE: u32 = 3;
const STATISTICS: u32 = 5;
const ENHANCED: u32 = 6;

impl Tape {
    /// Describes an interface with options.
    fn interface(self, link_type: u16, snap_length: u32, options: &[(u16, &[u8])]) -> Self {
        self.block(INTERFACE, |body| {
            let body = body.u16(link_type).u16(0).u32(snap_length);
            options.iter().fold(body, |body, (code, value)| body.option(*code, value))
        })
    }

    /// A packet of `interface` at `ticks`, with options.
    fn packet(self, interface: u32, ticks: u64, data: &[u8], options: &[(u16, &[u8])]) -> Self {
        self.block(ENHANCED, |body| {
            let body = body.u32(interface).u32((ticks >> 32) as u32).u32(ticks as u32);
            let body = body.u32(data.len() as u32).u32(60).raw(data);
            options.iter().fold(body, |body, (code, value)| body.option(*code, value))
        })
    }

    /// Statistics of `interface`: dropped by it and by the kernel.
    fn statistics(self, interface: u32, if_drop: u64, os_drop: u64) -> Self {
        self.block(STATISTICS, |body| {
            let body = body.u32(interface).u32(0).u32(0);
            body.u16(5).u16(8).u64(if_drop).u16(7).u16(8).u64(os_drop).u32(0)
        })
    }
}

/// A little-endian section with one Ethernet interface counting microseconds.
fn section() -> Tape {
    Tape::new(Order::Little).section().interface(1, 0, &[])
}

#[test]
fn packets_come_out_with_their_interfaces_clock_and_link_type() {
    for order in [Order::Little, Order::Big] {
        let offset = Tape::new(order).u64(100).bytes;
        let file = Tape::new(order)
            .section()
            .interface(1, 0, &[])
            .interface(113, 0, &[(2, b"eth0"), (9, &[9]), (14, &offset)])
            .packet(0, 7_000_001, b"abcde", &[])
            .packet(1, 7_000_000_001, b"", &[]);
        let tape = read(&file);
        assert_eq!(
            tape.items,
            [
                "#1 7.000001000 link 1 if 0 wire 60 `abcde`",
                "#2 107.000000001 link 113 if 1 wire 60 ``",
            ]
        );
        assert_eq!(tape.end, Ok(()));
    }
}

#[test]
fn flags_tell_the_direction() {
    let file = section()
        .packet(0, 0, b"abc", &[(1, b"a comment"), (2, &[1, 0, 0, 0])])
        .packet(0, 0, b"abcd", &[(2, &[2, 0, 0, 0])])
        .packet(0, 0, b"", &[(2, &[0xfc, 1, 0, 0]), (0, b""), (2, &[2, 0, 0, 0])]);
    assert_eq!(
        read(&file).items,
        [
            "#1 0.000000000 link 1 if 0 in wire 60 `abc`",
            "#2 0.000000000 link 1 if 0 out wire 60 `abcd`",
            "#3 0.000000000 link 1 if 0 wire 60 ``",
        ]
    );
}

#[test]
fn simple_packets_get_the_time_before_and_are_cut_at_the_snap_length() {
    let simple = |file: Tape, data: &[u8]| file.block(SIMPLE, |body| body.u32(6).raw(data));
    let file = Tape::new(Order::Little).section().interface(1, 4, &[]).packet(0, 5, b"a", &[]);
    assert_eq!(
        read(&simple(file, b"abcd")).items,
        [
            "#1 0.000005000 link 1 if 0 wire 60 `a`",
            "#2 0.000005000 link 1 if 0 wire 6 `abcd`",
            "other 1: packets without a time (simple packet blocks) got the time of the packet \
             before",
        ]
    );
    assert_eq!(
        read(&simple(section(), b"abcdef")).items[0],
        "#1 0.000000000 link 1 if 0 wire 6 `abcdef`"
    );
}

#[test]
fn obsolete_packets_still_count() {
    let packet = |file: Tape, drops: u16| {
        file.block(OBSOLETE, |body| {
            let body = body.u16(0).u16(drops).u32(0).u32(7).u32(3).u32(60).raw(b"abc");
            body.option(2, &[2, 0, 0, 0])
        })
    };
    assert_eq!(
        read(&packet(packet(section(), 0xffff), 3)).items,
        [
            "#1 0.000007000 link 1 if 0 out wire 60 `abc`",
            "#2 0.000007000 link 1 if 0 out wire 60 `abc`",
            "kernel_drops 3: the kernel dropped packets before the capture could store them, as \
             the capture's statistics say",
        ]
    );
}

#[test]
fn the_last_statistics_of_each_interface_count_and_sections_add_up() {
    let lost_before: &[(u16, &[u8])] = &[(4, &[99, 0, 0, 0, 0, 0, 0, 0])];
    let file = section()
        .interface(1, 0, &[])
        .statistics(0, 1, 10)
        .packet(0, 0, b"", lost_before)
        .statistics(0, 2, 20)
        .statistics(1, 4, 40)
        .order(Order::Big)
        .section()
        .interface(1, 0, &[])
        .statistics(0, 8, 80);
    assert_eq!(
        read(&file).items[1..],
        [
            "interface_drops 14: the interface dropped packets, as the capture's statistics say",
            "kernel_drops 140: the kernel dropped packets before the capture could store them, as \
             the capture's statistics say",
        ]
    );
}

#[test]
fn what_dumpcap_tells_of_the_interface_is_the_kernels() {
    let file = Tape::new(Order::Big)
        .block(0x0a0d_0d0a, |body| {
            let body = body.u32(0x1a2b_3c4d).u16(1).u16(0).u64(u64::MAX);
            body.option(3, b"Linux").option(4, b"Dumpcap (Wireshark) 4.0.17")
        })
        .interface(1, 0, &[])
        .interface(1, 0, &[])
        .statistics(0, 1517, 0)
        .statistics(1, 1281, 0);
    let items = read(&file).items;
    assert_eq!(items.len(), 1);
    assert!(items[0].starts_with("kernel_drops 2798: "), "{items:?}");
}

#[test]
fn without_statistics_the_losses_that_packets_tell_count() {
    let file = section().packet(0, 0, b"", &[(4, &[3, 0, 0, 0, 0, 0, 0, 0])]).packet(
        0,
        0,
        b"",
        &[(4, &[4, 0, 0, 0, 0, 0, 0, 0])],
    );
    assert!(read(&file).items[2].starts_with("kernel_drops 7: "));
}

#[test]
fn sections_have_their_own_byte_order_and_interfaces() {
    let file = section()
        .packet(0, 1, b"a", &[])
        .order(Order::Big)
        .section()
        .interface(101, 0, &[])
        .packet(0, 2, b"b", &[])
        .order(Order::Little)
        .section()
        .interface(113, 0, &[])
        .packet(0, 3, b"c", &[]);
    assert_eq!(
        read(&file).items,
        [
            "#1 0.000001000 link 1 if 0 wire 60 `a`",
            "#2 0.000002000 link 101 if 1 wire 60 `b`",
            "#3 0.000003000 link 113 if 2 wire 60 `c`",
        ]
    );
}

#[test]
fn blocks_of_other_kinds_are_left_out_and_numbered_as_wireshark_does() {
    let file = section()
        .block(10, |secrets| secrets.raw(&b"s".repeat(70_000)))
        .block(9, |journal| journal.raw(b"MESSAGE=hi"))
        .block(0x7777, |unknown| unknown)
        .packet(0, 1, b"a", &[]);
    let tape = read(&file);
    assert_eq!(tape.items, ["OtherPacket", "#2 0.000001000 link 1 if 0 wire 60 `a`"]);
    assert_eq!(tape.end, Ok(()));
}

/// The problem that reading ends with after one good packet, up to the likely cause.
fn problem(damage: impl FnOnce(Tape) -> Tape) -> String {
    let tape = read(&damage(section().packet(0, 1, b"a", &[])));
    assert_eq!(tape.items, ["#1 0.000001000 link 1 if 0 wire 60 `a`"]);
    let error = tape.end.expect_err("damage");
    let (problem, advice) = error.split_once(": ").expect("a problem and its likely cause");
    assert_eq!(
        advice,
        "the file is probably damaged, or was transferred incompletely or as text; copy it again \
         in binary mode or capture again (the packet before it was read)"
    );
    problem.to_owned()
}

#[test]
fn damage_is_told_with_its_place() {
    assert_eq!(
        problem(|file| file.u32(ENHANCED).u32(28).raw(&[0; 20])),
        "the block at byte 84 claims a length of 28 bytes, not a multiple of 4 from 32 on"
    );
    assert_eq!(
        problem(|file| file.u32(0x7777).u32(13).raw(&[0; 20])),
        "the block at byte 84 claims a length of 13 bytes, not a multiple of 4 from 12 on"
    );
    assert_eq!(
        problem(|file| file.raw(&[0; 64])),
        "the block at byte 84 claims a length of 0 bytes, not a multiple of 4 from 12 on"
    );
    assert_eq!(
        problem(|file| file.u32(ENHANCED).u32(0x8000_0000).raw(&[0; 20])),
        "the block at byte 84 claims a length of 2147483648 bytes, more than 16777216"
    );
    assert_eq!(
        problem(|file| file.packet(0, 2, b"b", &[]).cut(4).u32(40)),
        "the block at byte 84 has a length of 36 bytes at its beginning, but 40 at its end"
    );
    assert_eq!(
        problem(|file| file.packet(1, 2, b"b", &[])),
        "the block at byte 84 names interface 1, but only 1 are described before it"
    );
    assert_eq!(
        problem(|file| file.statistics(7, 0, 0)),
        "the block at byte 84 names interface 7, but only 1 are described before it"
    );
    assert_eq!(
        problem(|file| file
            .block(ENHANCED, |body| { body.u32(0).u32(0).u32(0).u32(9).u32(60).raw(b"12345678") })),
        "the block at byte 84 claims 9 captured bytes, but has room for 8"
    );
    assert_eq!(
        problem(|file| file.u32(0x0a0d_0d0a).u32(28).u32(0x1234_5678).raw(&[0; 16])),
        "the block at byte 84 starts a section, but has 0x78563412 for the byte-order magic"
    );
}

#[test]
fn drops_known_before_the_damage_are_told() {
    let tape = read(&section().statistics(0, 0, 12).raw(&[0; 12]));
    assert!(tape.end.is_err());
    assert_eq!(tape.items.len(), 1);
    assert!(tape.items[0].starts_with("kernel_drops 12: "));
}

#[test]
fn interfaces_without_number_do_not_fill_memory() {
    let one = Tape::new(Order::Little).interface(1, 0, &[]).bytes;
    let file = Tape::new(Order::Little).section().raw(&one.repeat(65_537));
    let error = read(&file).end.expect_err("one too many");
    assert!(error.contains("describes interface number 65536 of its section"), "{error}");
}

#[test]
fn a_capture_may_end_anywhere() {
    let tape = read(&section().packet(0, 1, b"a", &[]).packet(0, 2, b"b", &[]).cut(4));
    assert_eq!(
        tape.items,
        [
            "#1 0.000001000 link 1 if 0 wire 60 `a`",
            "cut_short 1: the capture ends inside a block after packet 1, which begins at byte 84, at least 4 \
             bytes short: it was probably still being written, or copied incompletely; everything \
             before was read",
        ]
    );
    assert_eq!(tape.end, Ok(()));
    let skipped = read(&section().u32(0x7777).u32(1000).raw(&[0; 92]));
    assert!(
        skipped.items[0].contains(
            "a block before the first packet, which begins at byte 48, at least 900 bytes"
        )
    );
}

#[test]
fn a_cut_header_and_an_unknown_version_say_so() {
    let header = Tape::new(Order::Little).section();
    assert_eq!(
        read(&header.clone().cut(4)).end,
        Err("it ends inside the pcapng header, at least 4 bytes short: it was probably copied \
             while being written, or incompletely; copy or capture it again"
            .to_owned())
    );
    assert_eq!((read(&header).items.len(), read(&header).end), (0, Ok(())));
    let odd = Tape::new(Order::Big)
        .block(0x0a0d_0d0a, |body| body.u32(0x1a2b_3c4d).u16(3).u16(1).u64(u64::MAX));
    let error = read(&odd).end.expect_err("nobody writes version 3");
    assert!(error.starts_with("it claims pcapng version 3.1, but only 1.0 is known"), "{error}");
}

/// What `tcpwhy record` attaches, in one block.
fn attached(order: Order, name: &[u8], content: &[u8]) -> Tape {
    Tape::new(order).section().block(0x8054_4350, |body| {
        let lengths = body.raw(b"tcpwhy\0\x01").u16(name.len() as u16).u16(0);
        let named = lengths.u32(content.len() as u32).raw(name);
        let padding = vec![0; name.len().next_multiple_of(4) - name.len()];
        named.raw(&padding).raw(content)
    })
}

#[test]
fn attachments_come_out_by_name() {
    for order in [Order::Little, Order::Big] {
        let tape = read(&attached(order, b"a.json", b"{\"b\":1}"));
        let content = b"{\"b\":1}";
        assert_eq!(
            tape.items,
            [format!("Attachment {{ name: \"a.json\", content: {content:?} }}")]
        );
        assert_eq!(tape.end, Ok(()));
    }
}

#[test]
fn somebody_else_s_block_of_that_type_is_left_out_however_long() {
    let claims = u32::MAX - 3;
    let foreign = Tape::new(Order::Little).section().u32(0x8054_4350).u32(claims).raw(&[7; 100]);
    let tape = read(&foreign);
    assert_eq!(tape.items.len(), 1, "{tape:?}");
    assert!(tape.items[0].starts_with("cut_short"), "{tape:?}");
    let short = section().block(0x8054_4350, |body| body.raw(b"tcpw"));
    assert_eq!(read(&short).items, [""; 0]);
}

#[test]
fn an_attachment_that_contradicts_itself_is_left_out() {
    let mut tape = attached(Order::Little, b"a", b"content");
    let lengths = tape.bytes.len() - 4 - 12 - 4;
    tape.bytes[lengths] = 200;
    assert_eq!(read(&tape).items, [""; 0]);
}
