//! Whole listings: the forms of one capture against each other and against another program's
//! reading of it, articles as they were published, pastes with everything between, and garbage.

use core::net::IpAddr;
use std::fmt::Write as _;

use proptest::prelude::*;

use super::*;
use crate::capture::QualityKind;
use crate::wire::{Direction, Flags, IcmpError, Options, Segment};
use tcpwhy_words::units::{Seq, Time};

mod pastes;
mod truth;

/// All that a listing gave.
#[derive(Debug, Default)]
struct Read {
    segments: Vec<Segment<'static>>,
    others: usize,
    gaps: usize,
    quality: Vec<(QualityKind, u64, String)>,
    /// The items in their order, for comparison.
    errors: Vec<IcmpError>,
    tape: Vec<String>,
    clock: Clock,
    names: Names,
    error: Option<CaptureError>,
}

impl Read {
    fn count(&self, kind: QualityKind) -> Option<u64> {
        self.quality.iter().find(|(k, ..)| *k == kind).map(|&(_, count, _)| count)
    }
}

fn read_chunks<'a>(chunks: impl IntoIterator<Item = &'a [u8]>) -> Read {
    read_by(ListingReader::new(), chunks)
}

fn read_by<'a>(mut reader: ListingReader, chunks: impl IntoIterator<Item = &'a [u8]>) -> Read {
    let mut read = Read::default();
    let mut each = |item: Item<'_>| {
        read.tape.push(format!("{item:?}"));
        match item {
            Item::Segment(segment) => read.segments.push(Segment { payload: &[], ..segment }),
            Item::OtherPacket | Item::WithoutNumbers => read.others += 1,
            Item::Icmp(error) => read.errors.push(error),
            Item::Gap => read.gaps += 1,
            Item::Quality(quality) => {
                read.quality.push((quality.kind, quality.count, quality.note));
            }
            Item::Frame(_) | Item::Attachment { .. } => panic!("a listing has neither"),
        }
    };
    for chunk in chunks {
        reader.push(chunk, &mut each).expect("reading goes on");
    }
    let error = reader.finish(&mut each).err();
    read.clock = reader.clock();
    read.names = reader.names().clone();
    read.error = error;
    read
}

fn read(text: &str) -> Read {
    read_chunks([text.as_bytes()])
}

/// A file under `testdata/listings`.
macro_rules! listing {
    ($name:literal) => {
        include_str!(concat!(
            env!("CARGO_MANIFEST_DIR"),
            "/../../testdata/listings/",
            $name,
            ".txt"
        ))
    };
}
use listing;

#[test]
fn the_complete_article_listing_has_its_58_segments() {
    let read = read(listing!("articles/download-512k-rtt7ms.tcpdump"));
    assert_eq!((read.segments.len(), read.others, read.gaps), (58, 0, 0));
    assert_eq!(read.quality, []);
    assert_eq!(read.clock, Clock::OfDay);
    assert!(!read.clock.has_date());
    let (first, last) = (&read.segments[0], &read.segments[57]);
    assert_eq!(last.time - first.time, tcpwhy_words::units::Duration::from_micros(63_063));
    assert_eq!(first.time, Time(38_749_051_409_000));
    assert_eq!(first.source, "192.168.247.130:44612".parse().expect("address"));
    let isn = Seq(1_670_507_718);
    let sent: u32 =
        read.segments.iter().filter(|s| s.source.port() == 80).map(|s| s.payload_len).sum();
    assert_eq!((last.ack.since(isn), sent), (524_585, 524_583));
    assert_eq!((last.seq.since(first.seq), last.frame), (149, 58));
}

#[test]
fn abridged_article_listings_tell_their_gaps() {
    for (text, segments, gaps, missing, dropped) in [
        (listing!("articles/download-512k-initcwnd100-abridged.tcpdump"), 18, 1, Some(34), None),
        (listing!("articles/download-512k-rtt3ms-abridged.tcpdump"), 11, 1, Some(73), None),
        (
            listing!("articles/download-512k-rtt5ms-initcwnd10-abridged.tcpdump"),
            13,
            1,
            Some(0),
            None,
        ),
        (
            listing!("articles/two-writes-10s-apart-idle-restart-on-abridged.tcpdump"),
            29,
            2,
            Some(57),
            None,
        ),
        (
            listing!("articles/two-writes-10s-apart-idle-restart-off-abridged.tcpdump"),
            36,
            2,
            Some(83),
            Some(12),
        ),
        (listing!("articles/get-no-window-scaling.tcpdump"), 13, 0, None, None),
    ] {
        let read = read(text);
        assert_eq!((read.segments.len(), read.gaps), (segments, gaps), "{text}");
        assert_eq!(read.count(QualityKind::ListingGap), missing, "{text}");
        assert_eq!(read.count(QualityKind::KernelDrops), dropped, "{text}");
        assert_eq!(read.count(QualityKind::UnreadableLine), None, "{text}");
        let port = read.segments[0].source.port();
        let isn = read.segments[0].seq;
        let mut own = read.segments.iter().filter(|s| s.source.port() == port);
        assert!(own.all(|s| (0..=200).contains(&s.seq.since(isn))), "{text}");
    }
}

#[test]
fn names_in_an_article_listing_get_addresses() {
    let read = read(listing!("articles/get-no-window-scaling.tcpdump"));
    let (client, server) = (read.segments[0].source, read.segments[0].destination);
    assert_eq!(server, "220.181.38.149:80".parse().expect("address"));
    assert_eq!(read.names.show(client), "test:33928");
    assert!(matches!(client.ip(), IpAddr::V4(ip) if ip.octets()[0] >= 240));
    assert!(read.segments.iter().all(|s| [s.source, s.destination].contains(&client)));
    assert_eq!(read.segments[12].ack, Seq(1_600_001 + 2_783));
}

proptest! {
    #[test]
    fn chunks_make_no_difference(cuts in proptest::collection::vec(0_usize..9_000, 0..12), file in 0_usize..4) {
        let text = [
            listing!("v4.vv-e"), listing!("v6.A"), listing!("v4.nano-number"),
            listing!("articles/two-writes-10s-apart-idle-restart-off-abridged.tcpdump"),
        ][file].as_bytes();
        let mut cuts: Vec<usize> = cuts.into_iter().map(|cut| cut.min(text.len())).collect();
        cuts.sort_unstable();
        let ends = cuts.iter().copied().chain([text.len()]);
        let mut from = 0;
        let chunks: Vec<&[u8]> =
            ends.map(|end| &text[core::mem::replace(&mut from, end)..end]).collect();
        let (whole, cut) = (read_chunks([text]), read_chunks(chunks));
        prop_assert_eq!(whole.tape, cut.tape);
        prop_assert_eq!(whole.error, cut.error);
    }

    #[test]
    fn damage_is_survived(spots in proptest::collection::vec((0_usize..9_000, any::<u8>()), 0..200)) {
        let mut bytes = listing!("v4.vv-e").as_bytes().to_vec();
        for (at, byte) in spots {
            let at = at % bytes.len();
            bytes[at] = byte;
        }
        read_chunks([&bytes[..]]);
    }

    #[test]
    fn any_bytes_are_survived(bytes in proptest::collection::vec(any::<u8>(), 0..4_000)) {
        let read = read_chunks([&bytes[..]]);
        prop_assert!(!read.segments.is_empty() || read.others > 0 || read.error.is_some());
    }

    #[test]
    fn a_line_of_fragments_is_survived(words in proptest::collection::vec(fragment(), 0..30)) {
        read(&words.concat());
    }
}

/// Pieces that a packet line is made of, in any order.
fn fragment() -> impl Strategy<Value = String> {
    prop_oneof![
        proptest::sample::select(vec![
            "10:45:49.051409 ",
            "IP ",
            "IP6 ",
            "10.0.0.1.80",
            " > ",
            "10.0.0.2.81: ",
            "Flags [",
            "S",
            ".",
            "]",
            ", seq ",
            ", ack ",
            ", win ",
            ", options [",
            "sack 1 {",
            "}",
            ":",
            ", length ",
            "\n",
            "(tos 0x",
            ")",
            "vlan ",
            "......",
            "0x0000:",
            "\t",
            "E",
            "00:00:00.000000 ",
            "a.b: ",
            "<",
            "mss 1",
            "::1.80",
            "é",
            "…",
        ])
        .prop_map(str::to_owned),
        any::<u32>().prop_map(|number| number.to_string()),
    ]
}

/// What `tcpdump` does with sequence numbers, written down naively, as a twin of [`numbers`].
#[derive(Default)]
struct Printer {
    bases: std::collections::BTreeMap<(u16, u16), [u32; 2]>,
    absolute: bool,
}

#[derive(Clone, Debug)]
struct Sent {
    client: u16,
    from_client: bool,
    flags: &'static str,
    seq: u32,
    ack: u32,
    len: u32,
}

impl Printer {
    fn print(&mut self, sent: &Sent, out: &mut String) {
        let side = usize::from(!sent.from_client);
        let (mut seq, mut ack) = (sent.seq, sent.ack);
        if !self.absolute && sent.flags.contains('.') {
            let key = (sent.client, 80);
            match self.bases.get(&key) {
                Some(bases) if !sent.flags.contains('S') => {
                    seq = seq.wrapping_sub(bases[side]);
                    ack = ack.wrapping_sub(bases[1 - side]);
                }
                _ => {
                    let mut bases = [seq, ack.wrapping_sub(1)];
                    bases.rotate_left(side);
                    self.bases.insert(key, bases);
                }
            }
        }
        let (client, flags, len) = (sent.client, sent.flags, sent.len);
        let ends = if sent.from_client {
            format!("10.0.0.1.{client} > 10.0.0.2.80")
        } else {
            format!("10.0.0.2.80 > 10.0.0.1.{client}")
        };
        let _ = write!(out, "10:00:00.000000 IP {ends}: Flags [{flags}]");
        if len > 0 {
            let _ = write!(out, ", seq {seq}:{}", seq.wrapping_add(len));
        } else if flags.contains(['S', 'F', 'R']) {
            let _ = write!(out, ", seq {seq}");
        }
        if flags.contains('.') {
            let _ = write!(out, ", ack {ack}");
        }
        let _ = writeln!(out, ", win 500, length {len}");
    }
}

/// A conversation: client, both initial numbers, handshake seen, and data by side and length.
fn conversation() -> impl Strategy<Value = Vec<Sent>> {
    let data = proptest::collection::vec((any::<bool>(), 0_u32..60_000), 0..30);
    (1_u16..4, any::<u32>(), any::<u32>(), any::<bool>(), any::<bool>(), data).prop_map(
        |(client, isn_c, isn_s, handshake, reset, data)| {
            let mut next = [isn_c.wrapping_add(1), isn_s.wrapping_add(1)];
            let at = |from_client, flags, seq, ack, len| Sent {
                client,
                from_client,
                flags,
                seq,
                ack,
                len,
            };
            let mut sent = Vec::new();
            if handshake {
                sent.push(at(true, "S", isn_c, 0, 0));
                sent.push(at(false, "S.", isn_s, next[0], 0));
            } else {
                // Midway the first packet must show both numbers: a pure ACK hides its own.
                sent.push(at(true, "P.", next[0], next[1], 10));
                next[0] = next[0].wrapping_add(10);
            }
            for (from_client, len) in data {
                let (own, peer) = if from_client { (0, 1) } else { (1, 0) };
                sent.push(at(from_client, ".", next[own], next[peer], len));
                next[own] = next[own].wrapping_add(len);
            }
            if reset {
                sent.push(at(true, "R", next[0], 0, 0));
            }
            sent
        },
    )
}

/// Initial numbers near zero look like relative ones. That is what midway starts, `-S` and left-out
/// lines cannot be told from; the property that needs neither has all numbers.
fn is_near_zero(sent: &Sent) -> bool {
    let near = |n: u32| n.wrapping_add(1 << 29) < 1 << 30;
    near(sent.seq) || sent.flags.contains('.') && near(sent.ack)
}

fn is_midway(conversation: &[Sent]) -> bool {
    conversation[0].flags != "S"
}

proptest! {
    #[test]
    fn what_tcpdump_makes_relative_is_put_back(
        conversations in proptest::collection::vec(conversation(), 1..5),
        absolute in any::<bool>(),
    ) {
        let mut used = std::collections::BTreeSet::new();
        for conversation in &conversations {
            prop_assume!(!conversation.iter().any(is_near_zero) || !absolute && !is_midway(conversation));
            // A port that is used again without a handshake looks like a jump.
            prop_assume!(used.insert(conversation[0].client) || !is_midway(conversation));
        }
        let sent: Vec<Sent> = conversations.concat();
        let mut printer = Printer { absolute, ..Printer::default() };
        let mut text = String::new();
        for sent in &sent {
            printer.print(sent, &mut text);
        }
        let read = read(&text);
        prop_assert_eq!(read.segments.len(), sent.len());
        for (segment, sent) in read.segments.iter().zip(&sent) {
            prop_assert_eq!((segment.seq, segment.ack), (Seq(sent.seq), Seq(sent.ack)), "{}\n{}", segment.frame, text);
        }
    }

    #[test]
    fn lines_left_out_do_not_change_the_numbers_of_the_others(
        conversation in conversation(),
        absolute in any::<bool>(),
        kept in proptest::collection::vec(any::<bool>(), 40),
    ) {
        prop_assume!(!conversation.iter().any(is_near_zero));
        let mut printer = Printer { absolute, ..Printer::default() };
        let mut text = String::new();
        let mut expected = Vec::new();
        for (at, sent) in conversation.iter().enumerate() {
            let mut line = String::new();
            printer.print(sent, &mut line);
            // The packets with the bases stay.
            if at < 2 || kept[at] {
                text += &line;
                expected.push(sent);
            } else {
                text += "......\n";
            }
        }
        let read = read(&text);
        prop_assert_eq!(read.segments.len(), expected.len());
        for (segment, sent) in read.segments.iter().zip(expected) {
            prop_assert_eq!(segment.ack, Seq(sent.ack), "{}", text);
            if sent.len > 0 {
                prop_assert_eq!(segment.seq, Seq(sent.seq), "{}", text);
            }
        }
    }
}

#[test]
fn lines_end_as_on_any_system_wherever_the_chunks_end() {
    let unix = "12:00:00.000000 IP 10.0.0.1.80 > 10.0.0.2.4000: Flags [.], seq 1:101, ack 1, win 500, length 100\n\
                12:00:00.000100 IP 10.0.0.2.4000 > 10.0.0.1.80: Flags [.], ack 101, win 500, length 0\n";
    let tape = read_chunks([unix.as_bytes()]).tape;
    assert_eq!(tape.len(), 2);
    for text in [unix.replace('\n', "\r\n"), unix.replace('\n', "\r")] {
        for size in [1, 7, text.len()] {
            assert_eq!(read_chunks(text.as_bytes().chunks(size)).tape, tape, "{text:?} by {size}");
        }
    }
}
