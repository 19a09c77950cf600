use proptest::prelude::*;

use super::pack::Packer;
use super::told::{FILLED, told};
use super::unpack::{Entry, Unpacker};
use super::*;
use crate::wire::{Checksum, Direction};
use tcpwhy_words::units::Time;

/// What came out of a piece, as it went in.
fn there_and_back(segments: &[(Segment<'_>, bool)]) -> Vec<(String, bool)> {
    let mut packer = Packer::default();
    for (segment, is_usual) in segments {
        packer.push(segment, *is_usual);
    }
    let piece = packer.piece();
    let mut unpacker = Unpacker::new(&piece);
    let mut back = Vec::new();
    while let Some(entry) = unpacker.next().expect("it is whole") {
        let Entry::Segment { segment, is_usual } = entry else { panic!("no error went in") };
        back.push((format!("{segment:?}"), is_usual));
    }
    back
}

fn options() -> impl Strategy<Value = Options> {
    let said =
        (any::<Option<u16>>(), any::<Option<u8>>(), any::<bool>(), any::<Option<(u32, u32)>>());
    let rest = (
        any::<[(u32, u32); 4]>(),
        0..=4_u8,
        any::<Option<u8>>(),
        any::<[u8; 8]>(),
        any::<(u8, bool)>(),
    );
    (said, rest).prop_map(|((mss, window_scale, sack_permitted, timestamps), rest)| {
        let (blocks, sack_count, fast_open, order, (len, incomplete)) = rest;
        let mut sack = blocks.map(|(left, right)| (Seq(left), Seq(right)));
        sack[usize::from(sack_count)..].fill((Seq(0), Seq(0)));
        Options {
            mss,
            window_scale,
            sack_permitted,
            timestamps,
            sack,
            sack_count,
            fast_open,
            order,
            len,
            incomplete,
        }
    })
}

fn segment() -> impl Strategy<Value = Segment<'static>> {
    let ends = prop::sample::select(vec![
        ["10.0.0.1:4000", "10.0.0.2:80"],
        ["10.0.0.2:80", "10.0.0.1:4000"],
        ["[2001:db8::1]:4000", "[2001:db8::2]:443"],
    ]);
    let when = (any::<i64>(), any::<u64>(), prop::sample::select(vec![0_u32, 7]), ends);
    let head = (any::<(u32, u32)>(), 0..0x200_u16, any::<u16>(), any::<u32>(), options());
    let ip = (any::<Option<u16>>(), any::<Option<u8>>(), any::<Option<u8>>());
    let link = (0..3_usize, any::<u32>(), 0..4_usize, any::<bool>());
    (when, head, ip, link).prop_map(|((time, frame, network, ends), head, (id, ttl, ecn), link)| {
        let ((seq, ack), flags, window, payload_len, options) = head;
        let [source, destination] = ends.map(|end| end.parse().expect("an end"));
        let direction = [None, Some(Direction::Incoming), Some(Direction::Outgoing)][link.0];
        let checksum =
            [None, Some(Checksum::Good), Some(Checksum::Offloaded), Some(Checksum::Bad)][link.2];
        let (interface, seq_unshown) = (link.1, link.3);
        Segment {
            time: Time(time),
            frame,
            network,
            source,
            destination,
            seq: Seq(seq),
            ack: Seq(ack),
            flags: Flags(flags),
            window,
            payload_len,
            payload: &[],
            options,
            ip: IpInfo { id, ttl, ecn },
            link: LinkInfo { direction, interface, checksum, seq_unshown },
        }
    })
}

/// `payload` at offset `at` of a stream whose SYN was seen, as it goes on.
fn goes_on(payload: &[u8], at: u32) -> Vec<u8> {
    let mut start = Start::default();
    start.opens(Seq(99));
    let mut filled = vec![FILLED; payload.len()];
    told(payload, Seq(100 + at), &mut start, |from, bytes| {
        filled[from..from + bytes.len()].copy_from_slice(bytes);
    });
    filled
}

proptest! {
    #[test]
    fn segments_come_back(segments in prop::collection::vec((segment(), any::<bool>()), 0..12)) {
        let went: Vec<_> = segments.iter().map(|(segment, is_usual)| (format!("{segment:?}"), *is_usual)).collect();
        prop_assert_eq!(there_and_back(&segments), went);
    }

    #[test]
    fn any_bytes_are_borne(bytes: Vec<u8>) {
        let mut unpacker = Unpacker::new(&bytes);
        while let Ok(Some(_)) = unpacker.next() {}
    }

    #[test]
    fn no_header_appears_or_is_lost(noise in prop::collection::vec(prop::sample::select(vec![2, 3, 4, 20, 21, 72, 73, 255_u8]), 17..80)) {
        let is_header = |bytes: &[u8]| {
            matches!(bytes, [20..=23, 3, 0..=4, high, low] if usize::from(*high) << 8 | usize::from(*low) <= 18_432)
        };
        let headers = |bytes: &[u8]| bytes.windows(5).enumerate().filter(|(_, each)| is_header(each)).map(|(at, each)| (at, each.to_vec())).collect::<Vec<_>>();
        prop_assert_eq!(headers(&goes_on(&noise, 100_000)), headers(&noise));
    }
}

#[test]
fn application_bytes_stay_behind() {
    let body = [7; 1448];
    assert_eq!(goes_on(&body, 0), [FILLED; 1448]);
    assert_eq!(goes_on(&body[..16], 0), body[..16], "short ones go on whole");
}

#[test]
fn the_head_of_a_message_goes_on() {
    let head = b"HTTP/1.1 200 OK\r\nContent-Length: 99999\r\n\r\n".to_vec();
    let whole = [&head[..], &[7; 4000]].concat();
    let back = goes_on(&whole, 70_000);
    assert_eq!(back[..head.len()], head);
    assert_eq!(back[2000..], [FILLED; 2042]);
}

#[test]
fn a_hello_goes_on_and_what_follows_it_does_not() {
    let mut first = vec![22, 3, 1, 0x07, 0x00];
    first.resize(1448, 1);
    let mut start = Start::default();
    start.opens(Seq(99));
    let mut kept = |seq, payload: &[u8]| {
        let mut kept = 0;
        told(payload, Seq(seq), &mut start, |_, bytes| kept += bytes.len());
        kept
    };
    assert_eq!(kept(100, &first), 1448);
    assert_eq!(kept(100 + 1448, &[1; 1448]), 5 + 0x700 - 1448);
    assert_eq!(kept(100 + 2896, &[1; 1448]), 0);
    assert_eq!(kept(100 + (1 << 30), &[1; 1448]), 0);
    assert_eq!(kept(100_u32.wrapping_add(3 << 30), &[1; 1448]), 0, "the numbers went round");
}
