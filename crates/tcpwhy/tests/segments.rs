//! The segments of a report's connections, read once more, are those that the report was made of.

mod common {
    pub(crate) mod unpacked;
}

use std::fs;
use std::path::{Path, PathBuf};

use common::unpacked::unpacked;
use tcpwhy::report::{Connection, Report};
use tcpwhy::session::{Captured, Segments, Session};
use tcpwhy::tracker::Config;
use tcpwhy::wire::Flags;

/// Bytes a push: no multiple of any record's length.
const CHUNK: usize = 65_521;

fn explained(files: &[&[u8]]) -> Report {
    let config = Config { detail: true, trails: true, ..Config::default() };
    let mut session = Session::new(config);
    for file in files {
        session.begin("");
        file.chunks(CHUNK).try_for_each(|chunk| session.push(chunk)).unwrap_or_default();
        session.end().unwrap_or_default();
    }
    session.finish()
}

fn once_more(report: &Report, files: &[&[u8]]) -> Vec<Captured> {
    let (mut segments, mut all) = (Segments::of(report), Vec::new());
    for file in files {
        segments.begin("");
        for chunk in file.chunks(CHUNK) {
            let read = segments.push(chunk);
            all.extend(segments.ready());
            if read.is_err() {
                break;
            }
        }
        segments.end().unwrap_or_default();
        all.extend(segments.ready());
    }
    all
}

fn captures(folder: &str) -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata").join(folder);
    let entries = fs::read_dir(&folder).expect("testdata is there").flatten();
    let mut found: Vec<_> = entries.map(|entry| entry.path()).collect();
    found.retain(|path| path.to_string_lossy().contains(".pcap"));
    found.sort();
    found
}

/// What is compared of data that passed for the first time: the frame, where it ends, and the flight behind it.
type Send = (u64, i64, u64);

/// The rows of one side against the trail that the analysis keeps for pictures.
fn is_as_in_pictures(connection: &Connection, rows: &[&Captured], side: usize, name: &Path) {
    let Some(direction) = &connection.directions[side] else { return };
    let trail = direction.trail.as_ref().expect("it was asked for");
    let mut high = 0;
    let mut sends: Vec<Send> = Vec::new();
    for row in rows.iter().filter(|row| row.side == side && row.payload_len > 0) {
        let syn = i64::from(row.flags.has(Flags::SYN));
        let end = row.seq + syn + i64::from(row.payload_len);
        if end > high {
            high = end;
            // Behind the SYN's number.
            sends.push((row.frame, end - 1, row.in_flight));
        }
    }
    let marks: Vec<Send> =
        trail.sends.list.iter().map(|mark| (mark.frame, mark.to, mark.flight as u64)).collect();
    assert_eq!(trail.sends.each, 1);
    assert_eq!(sends, marks, "{} side {side}", name.display());
    let trips: Vec<_> =
        rows.iter().filter(|row| row.side != side).filter_map(|row| row.rtt_ns).collect();
    let kept: Vec<_> = trail.trips.list.iter().map(|trip| trip.least_ns).collect();
    assert_eq!(trips, kept, "{} side {side}", name.display());
}

#[test]
fn each_packet_of_a_connection_is_a_row_and_flights_and_round_trips_are_those_of_the_pictures() {
    let (mut rows, mut round_trips) = (0, 0);
    for path in captures("kernel") {
        let bytes = unpacked(&path);
        let report = explained(&[&bytes]);
        let all = once_more(&report, &[&bytes]);
        for (place, connection) in report.connections.iter().enumerate() {
            let own: Vec<_> = all.iter().filter(|row| row.connection == place).collect();
            let packets = connection.packets + connection.duplicates;
            assert_eq!(own.len() as u64, packets, "{}", path.display());
            is_as_in_pictures(connection, &own, 0, &path);
            is_as_in_pictures(connection, &own, 1, &path);
            round_trips += own.iter().filter(|row| row.rtt_ns.is_some()).count();
        }
        rows += all.len();
    }
    assert!(rows > 10_000 && round_trips > 3_000, "{rows} rows, {round_trips} round trips");
}

#[test]
fn rotated_files_number_on_and_what_was_written_meanwhile_belongs_to_nothing() {
    let path = captures("kernel").remove(0);
    let bytes = unpacked(&path);
    let report = explained(&[&bytes, &bytes]);
    let all = once_more(&report, &[&bytes, &bytes]);
    let frames: u64 = report.captures.iter().map(|capture| capture.packets).sum();
    assert_eq!(all.last().map(|row| row.frame), Some(frames));
    assert!(all.is_sorted_by_key(|row| row.frame));
    // The first file had ended inside a record when it was read for the report.
    let cut = &bytes[..bytes.len() / 2];
    let earlier = explained(&[cut, &bytes]);
    let before = once_more(&earlier, &[cut, &bytes]);
    assert_eq!(once_more(&earlier, &[&bytes, &bytes]), before);
    assert!(!before.is_empty() && before.len() < all.len());
}

#[test]
fn what_is_not_asked_about_has_no_rows() {
    let path = captures("kernel").remove(0);
    let bytes = unpacked(&path);
    let mut report = explained(&[&bytes]);
    report.connections.clear();
    assert_eq!(once_more(&report, &[&bytes]), []);
}

/// A segment of a classic capture over raw IPv4 (link type 101): no options, or a window scale.
fn packet(
    from_client: bool,
    seq: u32,
    ack: Option<u32>,
    flags: u8,
    scale: Option<u8>,
    payload: u16,
) -> Vec<u8> {
    let options: &[u8] = &scale.map_or(vec![], |shift| vec![3, 3, shift, 1]);
    let ends =
        if from_client { [[10, 0, 0, 1], [10, 0, 0, 2]] } else { [[10, 0, 0, 2], [10, 0, 0, 1]] };
    let ports: [u16; 2] = if from_client { [40_000, 80] } else { [80, 40_000] };
    let length = 20 + 20 + options.len() as u16 + payload;
    let mut ip = vec![0x45, 0];
    ip.extend(length.to_be_bytes());
    ip.extend([0, 0, 0x40, 0, 64, 6, 0, 0]);
    ip.extend(ends.concat());
    ip.extend(ports.iter().flat_map(|port| port.to_be_bytes()));
    ip.extend(seq.to_be_bytes());
    ip.extend(ack.unwrap_or(0).to_be_bytes());
    ip.extend([(5 + options.len() as u8 / 4) << 4, flags | if ack.is_some() { 0x10 } else { 0 }]);
    ip.extend(1000_u16.to_be_bytes());
    ip.extend([0; 4]);
    ip.extend(options);
    ip.extend(vec![b'x'; usize::from(payload)]);
    ip
}

fn capture(packets: &[(u32, Vec<u8>)]) -> Vec<u8> {
    let mut file =
        vec![0xd4, 0xc3, 0xb2, 0xa1, 2, 0, 4, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 4, 0, 101, 0, 0, 0];
    for (ms, packet) in packets {
        let length = packet.len() as u32;
        for word in [1_700_000_000, ms * 1000, length, length] {
            file.extend(word.to_le_bytes());
        }
        file.extend(packet);
    }
    file
}

#[test]
fn numbers_are_relative_and_do_not_wrap_and_windows_are_scaled() {
    let near_end = u32::MAX - 50;
    let bytes = capture(&[
        (0, packet(true, 7, None, 2, Some(3), 0)),
        (10, packet(false, near_end, Some(8), 2, Some(2), 0)),
        (10, packet(true, 8, Some(near_end.wrapping_add(1)), 0, None, 20)),
        (20, packet(false, near_end.wrapping_add(1), Some(28), 0, None, 100)),
        (20, packet(false, near_end.wrapping_add(101), Some(28), 0, None, 100)),
        (20, packet(false, near_end.wrapping_add(1), Some(28), 0, None, 100)),
        (31, packet(true, 28, Some(near_end.wrapping_add(201)), 0, None, 0)),
    ]);
    let report = explained(&[&bytes]);
    let rows = once_more(&report, &[&bytes]);
    let numbers: Vec<_> = rows.iter().map(|row| (row.seq, row.ack)).collect();
    let server = [(1, Some(21)), (101, Some(21)), (1, Some(21))];
    assert_eq!(numbers[..3], [(0, None), (0, Some(1)), (1, Some(1))]);
    assert_eq!(numbers[3..6], server);
    assert_eq!(numbers[6], (21, Some(201)));
    let windows: Vec<_> = rows.iter().map(|row| row.window).collect();
    // Those of SYNs are never shifted.
    assert_eq!(windows[..4], [Some(1000), Some(1000), Some(8000), Some(4000)]);
    let repeats: Vec<_> = rows.iter().map(|row| row.is_repeat).collect();
    assert_eq!(repeats, [false, false, false, false, false, true, false]);
    let flights: Vec<_> = rows.iter().map(|row| row.in_flight).collect();
    assert_eq!(flights, [0, 0, 20, 100, 200, 200, 0]);
    assert_eq!(rows[3].rtt_ns, Some(10_000_000));
    assert_eq!(rows[6].rtt_ns, None, "some of it passed twice");
    assert_eq!(rows[6].peer_in_flight, 0);
}
