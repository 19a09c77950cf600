//! Is the answer the same, to the byte, on any number of threads?

mod common;

use std::collections::HashMap;
use std::fs;
use std::path::Path;
use std::sync::atomic::AtomicBool;

use common::{Pcap, all_captures, ipv4};
use tcpwhy::session::{Intake, Session};
use tcpwhy::tracker::{Analyst, Batches, Bench, Config, Tracker};
use tcpwhy::view::{self, Sort};
use tcpwhy_cli::read::{Input, Run, read_all};
use tempfile::TempDir;

/// The whole report as JSON.
fn explained(path: &Path, config: Config, threads: usize) -> String {
    let never = AtomicBool::new(false);
    let report = read_all(&[Input::named(path)], config, threads, &never, &mut |_, _| {});
    serde_json::to_string(&report).expect("a report is plain data")
}

#[track_caller]
fn assert_same_on_any_number(path: &Path, config: &Config) {
    let alone = explained(path, config.clone(), 1);
    for threads in [2, 5] {
        assert!(
            explained(path, config.clone(), threads) == alone,
            "{} on {threads}",
            path.display()
        );
    }
}

#[test]
fn every_capture_gives_the_same_on_any_number_of_threads() {
    for path in all_captures() {
        assert_same_on_any_number(&path, &Config { detail: true, ..Config::default() });
    }
}

#[test]
fn what_is_followed_in_lanes_is_what_were_followed_at_once() {
    let config = Config { detail: true, ..Config::default() };
    for path in all_captures() {
        let bytes = fs::read(&path).expect("it is there");
        let (mut session, mut intake) = (Session::new(config.clone()), Intake::new());
        let mut tracker = Tracker::handing_on(config.clone());
        let (mut lanes, mut batches) = (tracker.part(|_| None), Batches::default());
        let mut benches = [(); 2].map(|()| Bench::of(Analyst::new(config.keep)));
        session.begin("capture");
        intake.begin("capture");
        for (turn, chunk) in bytes.chunks(4_001).enumerate() {
            let pushed = session.push(chunk).map_err(|error| error.to_string());
            let ahead = intake.push_ahead(chunk, &mut batches).map_err(|error| error.to_string());
            assert_eq!(ahead, pushed, "{}", path.display());
            for (lane, batch) in lanes.iter_mut().zip(batches.iter_mut()) {
                // Each lane changes hands all the time.
                lane.follow(batch, &mut benches[(turn + lane.number()) % 2]);
                assert!(batch.is_empty());
            }
        }
        let mut begun: HashMap<_, _> = tracker.rejoin(lanes).into_iter().collect();
        let ended = session.end().map_err(|error| error.to_string());
        assert_eq!(intake.end(&mut tracker).map_err(|error| error.to_string()), ended);
        while tracker.close_some() {}
        while let Some(mut part) = tracker.next_part() {
            let earlier = begun.remove(&part.connection());
            assert!(benches[0].take(&mut part, earlier).is_none(), "it was the last part");
        }
        let followed = tracker.finish_with(benches.into_iter().filter_map(Bench::into_analyst));
        assert!(intake.finish(followed) == session.finish(), "{}", path.display());
    }
}

/// Packets with their times, in any order.
#[derive(Default)]
struct Wire(Vec<(u64, Vec<u8>)>);

impl Wire {
    /// A packet with `len` bytes of payload. The capture keeps none of them.
    fn push(&mut self, at_us: u64, ends: [(u8, u16); 2], flags: u8, numbers: [u32; 2], len: u16) {
        let mut tcp = Vec::new();
        tcp.extend(ends[0].1.to_be_bytes());
        tcp.extend(ends[1].1.to_be_bytes());
        tcp.extend(numbers[0].to_be_bytes());
        tcp.extend(numbers[1].to_be_bytes());
        tcp.extend([0x50, flags, 0xff, 0xff, 0, 0, 0, 0]);
        let mut packet = ipv4(6, [ends[0].0, ends[1].0], &tcp);
        packet[2..4].copy_from_slice(&(40 + len).to_be_bytes());
        self.0.push((at_us, packet));
    }

    /// A connection of this many flights of ten segments over 4 ms. A few segments are sent twice.
    fn connection(&mut self, at_us: u64, client: (u8, u16), flights: u32) {
        const MSS: u16 = 1400;
        let (to, back) = ([client, (2, 80)], [(2, 80), client]);
        self.push(at_us, to, 0x02, [0, 0], 0);
        self.push(at_us + 4_000, back, 0x12, [0, 1], 0);
        self.push(at_us + 4_010, to, 0x18, [1, 1], 100);
        let (mut now, mut next) = (at_us + 8_000, 1);
        for flight in 0..flights {
            for number in 0..10_u32 {
                now += 12;
                self.push(now, back, 0x10, [next, 101], MSS);
                if (flight + number) % 97 == 13 {
                    self.push(now + 2_000, back, 0x10, [next, 101], MSS);
                }
                next += u32::from(MSS);
                if number % 2 == 1 {
                    self.push(now + 5, to, 0x10, [101, next], 0);
                }
            }
            now += 4_000;
        }
        self.push(now, back, 0x11, [next, 101], 0);
        self.push(now + 10, to, 0x11, [101, next + 1], 0);
        self.push(now + 4_000, back, 0x10, [next + 1, 102], 0);
    }

    fn capture(mut self) -> Vec<u8> {
        self.0.sort_by_key(|(at_us, _)| *at_us);
        self.0.iter().fold(Pcap::new(), |pcap, (at_us, packet)| pcap.record(*at_us, packet)).0
    }
}

/// Three connections that are analysed in several parts each, one in two, and many in one.
fn side_by_side() -> Vec<u8> {
    let mut wire = Wire::default();
    for (number, flights) in [1_200, 900, 1_500, 600].into_iter().enumerate() {
        wire.connection(number as u64 * 700, (10 + number as u8, 40_000), flights);
    }
    for number in 0..900_u16 {
        wire.connection(u64::from(number) * 5_000, (3, 10_000 + number), u32::from(number % 5));
    }
    wire.capture()
}

#[test]
fn long_and_short_connections_side_by_side_give_the_same_on_any_number_of_threads() {
    let folder = TempDir::new().expect("a folder");
    let path = folder.path().join("many.pcap");
    fs::write(&path, side_by_side()).expect("written");
    assert_same_on_any_number(&path, &Config { detail: true, ..Config::default() });
    // What is not shown is not kept: which accounts those are must not depend on who wrote them.
    let keep = Some(view::keep(Sort::Worst, 10));
    assert_same_on_any_number(&path, &Config { keep, ..Config::default() });
}

/// Short connections before and behind a long one. Many of them are under way at once.
fn by_turns() -> Vec<u8> {
    let mut wire = Wire::default();
    for turn in 0..2_u64 {
        let begins = turn * 60_000_000;
        for number in 0..4_000_u16 {
            let at = begins + u64::from(number) * 5_000;
            wire.connection(at, (3 + turn as u8, 10_000 + number), 0);
        }
        wire.connection(begins + 30_000_000, (10 + turn as u8, 40_000), 900);
    }
    wire.capture()
}

#[test]
fn short_and_long_connections_by_turns_give_the_same_on_any_number_of_threads() {
    let folder = TempDir::new().expect("a folder");
    let path = folder.path().join("turns.pcap");
    fs::write(&path, by_turns()).expect("written");
    assert_same_on_any_number(&path, &Config { detail: true, ..Config::default() });
}

#[test]
fn what_is_told_of_a_connection_that_goes_on_is_what_were_told_if_it_ended_there() {
    let capture = side_by_side();
    let config = Config { detail: true, ..Config::default() };
    for (threads, part) in [(1, 3), (3, 3), (3, 8)] {
        let mut run = Run::new(config.clone(), threads);
        run.begin("half of it");
        for chunk in capture[..capture.len() / part].chunks(65_521) {
            run.push(chunk).expect("the capture is sound");
        }
        let standing = run.provisional();
        assert!(standing.provisional);
        let mut ended = run.finish().connections;
        // They may rest on connections that are not told of yet.
        for connection in &mut ended {
            connection.findings.clear();
        }
        for mut connection in standing.connections.clone() {
            connection.findings.clear();
            assert!(ended.contains(&connection), "{} on {threads}", connection.id);
        }
        let busiest = ended.iter().filter(|connection| connection.packets > 1000);
        let told = |id| standing.connections.iter().any(|connection| connection.id == id);
        assert_eq!(busiest.filter(|connection| told(connection.id)).count(), 4);
    }
}
