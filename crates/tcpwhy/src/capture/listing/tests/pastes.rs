//! Pastes as they come: things between the packets, wrapped lines, several listings, old dialects.

use super::*;
use crate::wire::Checksum;

const SYN: &str =
    "10:00:00.000000 IP 10.0.0.1.5000 > 10.0.0.2.80: Flags [S], seq 1000, win 64240, length 0";
const SYN_ACK: &str = "10:00:00.010000 IP 10.0.0.2.80 > 10.0.0.1.5000: Flags [S.], seq 3000000000, ack 1001, win 65160, length 0";
const ACK: &str =
    "10:00:00.020000 IP 10.0.0.1.5000 > 10.0.0.2.80: Flags [.], ack 1, win 502, length 0";
const GET: &str = "10:00:00.030000 IP 10.0.0.1.5000 > 10.0.0.2.80: Flags [P.], seq 1:148, ack 1, win 502, length 147: HTTP: GET / HTTP/1.1";

/// Sender's port, sequence number, acknowledgement.
fn numbers(read: &Read) -> Vec<(u16, u32, u32)> {
    read.segments.iter().map(|s| (s.source.port(), s.seq.0, s.ack.0)).collect()
}

const HANDSHAKE_AND_GET: [(u16, u32, u32); 4] = [
    (5000, 1000, 0),
    (80, 3_000_000_000, 1001),
    (5000, 1001, 3_000_000_001),
    (5000, 1001, 3_000_000_001),
];

#[test]
fn what_stands_between_packets_is_passed_over() {
    let text = format!(
        "\u{feff}这是客户端抓的包:\r\n```\r\n[root@host ~]# tcpdump -i eth0 -n\r\n\
         tcpdump: verbose output suppressed, use -v or -vv for full protocol decode\r\n\
         listening on eth0, link-type EN10MB (Ethernet), capture size 262144 bytes\r\n\
         > {SYN}\r\n>> | {SYN_ACK}\r\n\r\n  12: {ACK}\r\n# then 10.0.0.1 > 10.0.0.2: asks\r\n\t13\t{GET}\r\n\
         ^C4 packets captured\r\n4 packets received by filter\r\n0 packets dropped by kernel\r\n```\r\n"
    );
    let read = read(&text);
    assert_eq!(numbers(&read), HANDSHAKE_AND_GET);
    assert_eq!((read.gaps, read.others, read.quality), (0, 0, vec![]));
}

#[test]
fn signs_of_omission_are_gaps() {
    for sign in [
        "...",
        "......",
        "…",
        "……",
        "[...]",
        "(snip)",
        "--- 20 lines omitted ---",
        "> ......",
        "省略若干行",
        "# ... 30 more ...",
        "......(中间省略)",
    ] {
        let read = read(&format!("{SYN}\n{SYN_ACK}\n{sign}\n{ACK}\n"));
        assert_eq!((read.segments.len(), read.gaps), (3, 1), "{sign}");
        assert_eq!(read.count(QualityKind::ListingGap), Some(0), "{sign}");
    }
    for prose in [
        "..",
        "---",
        "----------",
        "",
        "$ cd ..",
        "I see no packets being omitted by the kernel here at all",
    ] {
        assert_eq!(read(&format!("{SYN}\n{prose}\n{ACK}\n")).gaps, 0, "{prose}");
    }
}

#[test]
fn dots_in_shown_payload_are_no_gap() {
    for payload in [
        "E..<q.@.@......\n......\n",
        "`....(.@.......\n......\n",
        "\tHTTP/1.1 200 OK\n\t......\n",
        "\t0x0000:  4500  E..<\n",
    ] {
        let read = read(&format!("{GET}\n{payload}{GET}\n......\n{GET}\n"));
        assert_eq!((read.segments.len(), read.gaps), (3, 1), "{payload}");
    }
    for prose in ["E.g. here", "Explained:", "```"] {
        assert_eq!(read(&format!("{GET}\n{prose}\n......\n{GET}\n")).gaps, 1, "{prose}");
    }
}

#[test]
fn figures_at_the_end_tell_what_is_missing() {
    let text = format!(
        "{SYN}\n{SYN_ACK}\n......\n{GET}\n120 packets captured\n131 packets received by filter\n\
         11 packets dropped by kernel\n2 packets dropped by interface\n"
    );
    let read = read(&text);
    let kinds: Vec<(QualityKind, u64)> =
        read.quality.iter().map(|&(kind, count, _)| (kind, count)).collect();
    assert_eq!(
        kinds,
        [
            (QualityKind::ListingGap, 117),
            (QualityKind::KernelDrops, 11),
            (QualityKind::InterfaceDrops, 2)
        ]
    );
    assert_eq!(read.quality[0].2, "117 of 120 packets are not in this listing");
}

#[test]
fn several_listings_in_one_file_have_their_own_figures_and_numbers() {
    let one = |ack: &str| {
        format!(
            "listening on eth0, link-type EN10MB\n{SYN}\n{SYN_ACK}\n{ack}\n^C\n3 packets captured\n"
        )
    };
    let absolute = ACK.replace("ack 1,", "ack 3000000001,");
    let read = read(&(one(ACK) + &one(&absolute) + &one(ACK)));
    let expected = &HANDSHAKE_AND_GET[..3];
    assert_eq!(numbers(&read), [expected, expected, expected].concat());
    assert_eq!(read.quality, []);
    assert_eq!(read.segments[8].frame, 9);
}

#[test]
fn a_reused_port_starts_with_new_numbers() {
    let again = SYN.replace("seq 1000,", "seq 2500000000,");
    let answer = SYN_ACK.replace("3000000000", "77").replace("1001", "2500000001");
    let read = read(&format!("{SYN}\n{SYN_ACK}\n{ACK}\n{again}\n{answer}\n{GET}\n"));
    assert_eq!(
        numbers(&read)[3..],
        [(5000, 2_500_000_000, 0), (80, 77, 2_500_000_001), (5000, 2_500_000_001, 78)]
    );
}

#[test]
fn a_paste_that_starts_midway_with_relative_numbers_counts_from_zero() {
    let text = "\
10:00:00.1 IP 10.0.0.2.80 > 10.0.0.1.5000: Flags [.], seq 511145:519833, ack 148, win 235, length 8688
10:00:00.2 IP 10.0.0.1.5000 > 10.0.0.2.80: Flags [.], ack 519833, win 4032, options [nop,nop,sack 1 {521281:522729}], length 0
10:00:00.3 IP 10.0.0.2.80 > 10.0.0.1.5000: Flags [P.], seq 519833:524584, ack 148, win 235, length 4751
10:00:00.4 IP 10.0.0.1.5000 > 10.0.0.2.80: Flags [R], seq 2185246682, win 0, length 0
";
    let read = read(text);
    assert_eq!(
        numbers(&read),
        [(80, 511_145, 148), (5000, 148, 519_833), (80, 519_833, 148), (5000, 148, 0)]
    );
    assert_eq!(read.segments[1].options.sack_blocks(), [(Seq(521_281), Seq(522_729))]);
}

#[test]
fn a_listing_without_the_syn_ack_counts_from_the_syn() {
    let read = read(&format!("{SYN}\n......\n{ACK}\n{GET}\n"));
    assert_eq!(numbers(&read), [(5000, 1000, 0), (5000, 1001, 1), (5000, 1001, 1)]);
}

#[test]
fn one_direction_alone_is_relative_to_its_first_acknowledgement() {
    let first = ACK.replace("ack 1,", "ack 3000000001,");
    let data = GET.replace("seq 1:148", "seq 0:147");
    let read = read(&format!("{SYN}\n{first}\n{data}\n"));
    assert_eq!(
        numbers(&read),
        [(5000, 1000, 0), (5000, 1001, 3_000_000_001), (5000, 1001, 3_000_000_001)]
    );
}

#[test]
fn wrapped_lines_are_put_together() {
    for width in 58..120 {
        let mut text = String::new();
        for line in [SYN, SYN_ACK, ACK, GET] {
            let bytes: Vec<char> = line.chars().collect();
            for piece in bytes.chunks(width) {
                text.extend(piece);
                text.push('\n');
            }
        }
        let read = read(&text);
        assert_eq!(numbers(&read), HANDSHAKE_AND_GET, "{width}:\n{text}");
    }
}

#[test]
fn the_dialect_of_tcpdump_3() {
    let text = "\
10:00:00.000000 10.0.0.1.5000 > 10.0.0.2.80: S 1000:1000(0) win 5840 <mss 1460,sackOK,timestamp 7 0,nop,wscale 2> (DF)
10:00:00.010000 10.0.0.2.80 > 10.0.0.1.5000: S 3000000000:3000000000(0) ack 1001 win 5792 <mss 1460> (DF) [tos 0x2]
10:00:00.020000 IP 10.0.0.1.5000 > 10.0.0.2.80: . ack 1 win 1460 <nop,nop,timestamp 8 9> (DF) (ttl 64, id 4711, len 52)
10:00:00.030000 IP 10.0.0.1.5000 > 10.0.0.2.80: P 1:148(147) ack 1 win 1460
";
    let read = read(text);
    assert_eq!(numbers(&read), HANDSHAKE_AND_GET);
    let flags: Vec<u16> = read.segments.iter().map(|s| s.flags.0).collect();
    assert_eq!(flags, [0x02, 0x12, 0x10, 0x18]);
    assert_eq!((read.segments[2].ip.ttl, read.segments[2].ip.id), (Some(64), Some(4711)));
    assert_eq!(read.segments[3].payload_len, 147);
}

#[test]
fn other_protocols_count_as_packets() {
    let text = format!(
        "{SYN}\n\
         10:00:00.1 ARP, Request who-has 10.0.0.2 tell 10.0.0.1, length 28\n\
         10:00:00.1 IP 10.0.0.1.53 > 10.0.0.2.1234: 4711 1/0/0 A 1.2.3.4 (44)\n\
         10:00:00.1 IP 10.0.0.2 > 10.0.0.1: ICMP 10.0.0.2 tcp port 81 unreachable, length 68\n\
         10:00:00.1 IP6 fe80::1 > ff02::1: ICMP6, router advertisement, length 32\n\
         10:00:00.1 00:11:22:33:44:55 > 01:80:c2:00:00:00, 802.3, length 39: LLC, dsap STP\n\
         10:00:00.1 eth0  B   ARP, Request who-has 10.0.0.2 tell 10.0.0.1, length 28\n"
    );
    let read = read(&text);
    assert_eq!((read.segments.len(), read.others, read.quality), (1, 5, vec![]));
    assert_eq!(read.errors.len(), 1, "the one about TCP");
}

#[test]
fn a_packet_quoted_by_an_icmp_error_tells_whose_it_is_and_is_no_segment() {
    for time in ["10:00:00.1 ", ""] {
        let text = format!(
            "{time}IP (tos 0x0, ttl 64, id 1, offset 0, flags [DF], proto TCP (6), length 60)\n    \
             10.0.0.1.5000 > 10.0.0.2.80: Flags [S], cksum 0x1234 (correct), seq 1000, win 64240, length 0\n\
             {time}IP (tos 0xc0, ttl 64, id 9, offset 0, flags [none], proto ICMP (1), length 88)\n    \
             10.0.0.3 > 10.0.0.1: ICMP host 10.0.0.2 unreachable, length 68\n\
             \tIP (tos 0x0, ttl 63, id 1, offset 0, flags [DF], proto TCP (6), length 60)\n    \
             10.0.0.1.5000 > 10.0.0.2.80: Flags [S], seq 1000, win 64240, length 0\n"
        );
        let read = read(&text);
        assert_eq!((read.segments.len(), read.others, read.errors.len()), (1, 0, 1), "{text}");
        let quoted = read.errors[0].quoted;
        let ends = quoted.ends().map(|ends| ends.map(|end| end.to_string()));
        assert_eq!(ends, Some(["10.0.0.1:5000", "10.0.0.2:80"].map(str::to_owned)));
        assert_eq!(quoted.bytes, Some(60));
        assert_eq!(read.count(QualityKind::UnreadableLine), None);
        let first = &read.segments[0];
        assert_eq!((first.ip.ttl, first.link.checksum), (Some(64), Some(Checksum::Good)));
    }
}

#[test]
fn tunnels_show_the_inner_connection() {
    let inner = "10.0.0.1.5000 > 10.0.0.2.80: Flags [S], seq 1000, win 64240, length 0";
    for outer in [
        format!("IP 1.1.1.1 > 2.2.2.2: GREv0, length 64: IP {inner}"),
        format!("IP 1.1.1.1 > 2.2.2.2: IP {inner}"),
        format!("IP 1.1.1.1.4000 > 2.2.2.2.4789: VXLAN, flags [I] (0x08), vni 42\nIP {inner}"),
        format!(
            "00:11:22:33:44:55 > 00:11:22:33:44:66, ethertype 802.1Q (0x8100), length 78: vlan 100, p 0, ethertype IPv4 (0x0800), {inner}"
        ),
    ] {
        let read = read(&format!("10:00:00.1 {outer}\n"));
        assert_eq!((numbers(&read), read.others), (vec![(5000, 1000, 0)], 0), "{outer}");
        assert_eq!(read.segments[0].network, if outer.contains("vlan 100") { 100 } else { 0 });
    }
}

#[test]
fn lines_that_begin_like_packets_are_counted_when_they_cannot_be_read() {
    let broken = "10:00:00.5 IP 10.0.0.1.5000 > 10.0.0.2.80: Flags [S\u{7}, seq what";
    let read = read(&format!("{SYN}\nhello\n{broken}\n{broken}\n"));
    let (kind, count, note) = &read.quality[0];
    assert_eq!((*kind, *count), (QualityKind::UnreadableLine, 2));
    assert!(note.contains("line 3: \"10:00:00.5 IP 10.0.0.1.5000 > 10.0.0.2.80: Flags"), "{note}");
    assert!(!note.contains('\u{7}'));
}

#[test]
fn text_without_packets_is_an_error_that_says_so() {
    let prose = read("dear all,\nthe download is slow at 10:45.\n");
    let error = prose.error.expect("no packets").to_string();
    assert!(
        error.contains("2 lines") && error.contains("dear all") && error.contains("tcpdump -w"),
        "{error}"
    );
    assert_eq!(read("").error, Some(CaptureError::Empty));
}

/// `lines` read for where the time went.
fn read_for_times(lines: &[&str]) -> Read {
    read_by(ListingReader::of_timed(), [lines.join("\n").as_bytes()])
}

/// A packet line as `tcpdump -t` prints it.
fn untimed(line: &str) -> &str {
    line.split_once(' ').expect("time").1
}

#[test]
fn packets_without_times_tell_nothing_of_time() {
    let listing = read_for_times(&[untimed(SYN), untimed(SYN_ACK)]);
    assert_eq!(listing.error, Some(CaptureError::NoTimes { packets: 2 }));
    assert!(listing.segments.is_empty());
    let told = CaptureError::NoTimes { packets: 2 }.to_string();
    assert!(told.contains("2 packets") && told.contains("without -t"), "{told}");
}

#[test]
fn one_packet_with_a_time_is_read_and_those_without_are_left_out() {
    let listing = read_for_times(&[untimed(SYN), SYN_ACK]);
    assert_eq!((listing.error, listing.segments.len()), (None, 1));
    assert_eq!(listing.quality.len(), 1);
    assert!(listing.quality[0].2.contains("left out"), "{:?}", listing.quality);
}

#[test]
fn packets_that_all_have_times_are_all_read() {
    let listing = read_for_times(&[SYN, SYN_ACK]);
    assert_eq!((listing.error, listing.segments.len(), listing.quality.len()), (None, 2, 0));
}

#[test]
fn a_line_without_end_is_skipped_in_bounded_memory() {
    let mut reader = ListingReader::new();
    let mut segments = 0;
    let mut notes = Vec::new();
    let mut each = |item: Item<'_>| match item {
        Item::Segment(_) => segments += 1,
        Item::Quality(quality) => notes.push(quality),
        _ => {}
    };
    reader.push(format!("{SYN}\n").as_bytes(), &mut each).expect("reads");
    for _ in 0..1_000 {
        reader.push(&vec![b'x'; 100_000], &mut each).expect("reads");
        assert!(reader.partial.capacity() <= 2 * LONGEST_LINE);
    }
    reader.push(format!("\n{SYN_ACK}\n").as_bytes(), &mut each).expect("reads");
    reader.finish(&mut each).expect("packets were read");
    assert_eq!((segments, notes.len()), (2, 1));
    assert_eq!((notes[0].kind, notes[0].count), (QualityKind::UnreadableLine, 1));
}

#[test]
fn remembered_connections_are_bounded() {
    let mut text = String::new();
    for n in 0..70_000_u32 {
        let (host, port) = (n / 60_000, n % 60_000 + 1);
        let _ = writeln!(
            text,
            "10:00:00.1 IP 10.0.0.{host}.{port} > 10.0.1.1.80: Flags [S], seq 1, win 1, length 0"
        );
    }
    let mut reader = ListingReader::new();
    reader.push(text.as_bytes(), &mut |_: Item<'_>| {}).expect("reads");
    assert!(reader.connections.len() <= 65_536);
}

#[test]
fn spans_with_gaps_are_called_too_early() {
    let lines =
        [" 00:00:00.000000", " 00:00:00.000013", " 00:00:00.000012", "......", " 00:00:00.000039"];
    let rest = SYN.split_once(' ').expect("time").1;
    let text: String =
        lines
            .iter()
            .map(|time| {
                if time.starts_with('.') { format!("{time}\n") } else { format!("{time} {rest}\n") }
            })
            .collect();
    let read = read(&text);
    let times: Vec<i64> = read.segments.iter().map(|s| s.time.0).collect();
    assert_eq!((times, read.clock), (vec![0, 13_000, 25_000, 64_000], Clock::SincePrevious));
    assert!(read.quality.iter().any(|(.., note)| note.contains("too early")));
    assert!(read.tape[3].starts_with("Gap"));
}

#[test]
fn times_past_midnight_go_on() {
    let text = format!(
        "{}\n{}\n",
        SYN.replace("10:00:00.0", "23:59:59.9"),
        SYN_ACK.replace("10:00", "00:00")
    );
    let read = read(&text);
    assert_eq!(
        read.segments[1].time - read.segments[0].time,
        tcpwhy_words::units::Duration::from_millis(110)
    );
}
