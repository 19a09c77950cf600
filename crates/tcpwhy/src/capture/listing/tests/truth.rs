//! Every form that `tcpdump` prints of one capture, against tshark's reading of the same capture.

use super::*;
use tcpwhy_words::units::Duration;

/// How the times of a form relate to those of the capture.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Times {
    Absolute,
    OfDay,
    FromFirst,
    None,
}

#[test]
fn every_form_gives_the_segments_of_the_capture() {
    use Times::{Absolute, FromFirst, None, OfDay};
    let (v4, v6, any) = (listing!("v4.truth"), listing!("v6.truth"), listing!("any.truth"));
    let mid = listing!("mid.truth");
    for (truth, form, text, clock, times) in [
        (v4, "default", listing!("v4.default"), Clock::OfDay, OfDay),
        (v4, "t", listing!("v4.t"), Clock::None, None),
        (v4, "tt", listing!("v4.tt"), Clock::Epoch, Absolute),
        (v4, "ttt", listing!("v4.ttt"), Clock::SincePrevious, FromFirst),
        (v4, "tttt", listing!("v4.tttt"), Clock::Date, Absolute),
        (v4, "ttttt", listing!("v4.ttttt"), Clock::SinceFirst, FromFirst),
        (v4, "S", listing!("v4.S"), Clock::OfDay, OfDay),
        (v4, "v", listing!("v4.v"), Clock::OfDay, OfDay),
        (v4, "v-t", listing!("v4.v-t"), Clock::None, None),
        (v4, "vv-e", listing!("v4.vv-e"), Clock::OfDay, OfDay),
        (v4, "e-S-tt", listing!("v4.e-S-tt"), Clock::Epoch, Absolute),
        (v4, "x", listing!("v4.x"), Clock::OfDay, OfDay),
        (v4, "X", listing!("v4.X"), Clock::OfDay, OfDay),
        (v4, "A", listing!("v4.A"), Clock::OfDay, OfDay),
        (v4, "names", listing!("v4.names"), Clock::OfDay, OfDay),
        (v4, "nano-number", listing!("v4.nano-number"), Clock::SincePrevious, FromFirst),
        (v6, "default", listing!("v6.default"), Clock::OfDay, OfDay),
        (v6, "t", listing!("v6.t"), Clock::None, None),
        (v6, "tt", listing!("v6.tt"), Clock::Epoch, Absolute),
        (v6, "ttt", listing!("v6.ttt"), Clock::SincePrevious, FromFirst),
        (v6, "tttt", listing!("v6.tttt"), Clock::Date, Absolute),
        (v6, "ttttt", listing!("v6.ttttt"), Clock::SinceFirst, FromFirst),
        (v6, "S", listing!("v6.S"), Clock::OfDay, OfDay),
        (v6, "v-t", listing!("v6.v-t"), Clock::None, None),
        (v6, "vv-e", listing!("v6.vv-e"), Clock::OfDay, OfDay),
        (v6, "X", listing!("v6.X"), Clock::OfDay, OfDay),
        (v6, "A", listing!("v6.A"), Clock::OfDay, OfDay),
        (v6, "names", listing!("v6.names"), Clock::OfDay, OfDay),
        (v6, "nano-number", listing!("v6.nano-number"), Clock::SincePrevious, FromFirst),
        (any, "default", listing!("any.default"), Clock::OfDay, OfDay),
        (any, "v-e-S", listing!("any.v-e-S"), Clock::OfDay, OfDay),
        (mid, "default", listing!("mid.default"), Clock::OfDay, OfDay),
        (mid, "v-S-tt", listing!("mid.v-S-tt"), Clock::Epoch, Absolute),
    ] {
        let read = read(text);
        assert_eq!(read.error, Option::None, "{form}");
        assert_eq!(read.clock, clock, "{form}");
        assert_eq!(
            (read.gaps, read.count(QualityKind::UnreadableLine)),
            (0, Option::None),
            "{form}"
        );
        assert_eq!(read.others, if truth == v4 { 2 } else { 0 }, "{form}");
        let verbose = form.starts_with('v');
        compare(&read, truth, form, times, verbose);
    }
}

fn compare(read: &Read, truth: &str, form: &str, times: Times, verbose: bool) {
    let rows: Vec<Vec<&str>> = truth.lines().map(|line| line.split('|').collect()).collect();
    assert_eq!(read.segments.len(), rows.len(), "{form}");
    let first_time = nanoseconds(rows[0][1]);
    for (segment, row) in read.segments.iter().zip(&rows) {
        let place = format!("form {form}, frame {}", row[0]);
        let time = nanoseconds(row[1]);
        let expected = match times {
            Times::Absolute => time,
            Times::OfDay => time % 86_400_000_000_000,
            Times::FromFirst => time - first_time,
            Times::None => 0,
        };
        assert_eq!(segment.time - Time(expected), Duration::ZERO, "{place}");
        assert_eq!(segment.frame.to_string(), row[0], "{place}");
        let ends = [segment.source, segment.destination];
        for (end, fields) in ends.into_iter().zip([&row[2..5], &row[5..8]]) {
            let address = if fields[0].is_empty() { fields[1] } else { fields[0] };
            let name = if read.names.host(end.ip()).is_some() {
                "127.0.0.1"
            } else {
                &end.ip().to_string()
            };
            assert_eq!((name, end.port().to_string().as_str()), (address, fields[2]), "{place}");
        }
        let bits = u16::from_str_radix(&row[10][2..], 16).expect("flags");
        let printed =
            [segment.seq.0, segment.ack.0, u32::from(segment.window), segment.payload_len];
        let numbers = [8, 9, 11, 12].map(|field| row[field].parse::<u32>().expect("number"));
        assert_eq!((printed, segment.flags), (numbers, Flags(bits)), "{place}");
        assert_eq!(segment.options, options(row[13]), "{place}");
        if verbose {
            let id = u16::from_str_radix(row[14].trim_start_matches("0x"), 16).ok();
            let ttl = row[15].parse().or(row[16].parse()).ok();
            let ecn = row[17].parse().or(row[18].parse()).ok();
            assert_eq!((segment.ip.id, segment.ip.ttl, segment.ip.ecn), (id, ttl, ecn), "{place}");
        }
    }
}

fn nanoseconds(text: &str) -> i64 {
    text.replace('.', "").parse().expect("nine decimals")
}

/// The options in the hexadecimal digits of tshark.
fn options(hex: &str) -> Options {
    let bytes: Vec<u8> = (0..hex.len() / 2)
        .map(|i| u8::from_str_radix(&hex[2 * i..2 * i + 2], 16).expect("hex"))
        .collect();
    let word = |at: usize| u32::from_be_bytes(bytes[at..at + 4].try_into().expect("four bytes"));
    let mut options = Options { len: bytes.len() as u8, ..Options::default() };
    let (mut at, mut count) = (0, 0);
    while at < bytes.len() {
        options.order[count.min(7)] = if count < 8 { bytes[at] } else { options.order[7] };
        count += 1;
        match bytes[at] {
            1 => {
                at += 1;
                continue;
            }
            2 => options.mss = Some(u16::from_be_bytes([bytes[at + 2], bytes[at + 3]])),
            3 => options.window_scale = Some(bytes[at + 2]),
            4 => options.sack_permitted = true,
            5 => {
                options.sack_count = (bytes[at + 1] - 2) / 8;
                for block in 0..usize::from(options.sack_count) {
                    let edge = at + 2 + 8 * block;
                    options.sack[block] = (Seq(word(edge)), Seq(word(edge + 4)));
                }
            }
            8 => options.timestamps = Some((word(at + 2), word(at + 6))),
            other => panic!("option {other}"),
        }
        at += usize::from(bytes[at + 1]);
    }
    options
}

#[test]
fn a_quiet_listing_has_packets_without_numbers() {
    let read = read(listing!("v4.q"));
    assert_eq!((read.segments.len(), read.others), (0, 28));
    assert_eq!(read.count(QualityKind::Other), Some(26));
}

#[test]
fn listings_of_any_interface_tell_interface_and_direction() {
    for text in [listing!("any.default"), listing!("any.v-e-S")] {
        let read = read(text);
        let link = read.segments[0].link;
        assert_eq!((link.interface, link.direction), (1, Some(Direction::Incoming)));
    }
}
