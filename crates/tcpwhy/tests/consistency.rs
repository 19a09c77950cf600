//! No report contradicts itself or the packets it was made of.
//!
//! Every capture and listing below `testdata` is explained. Two kinds of things are then asked of each
//! report: whether its own facts agree (a rate that a finding calls the most there can be, against the rate
//! that was measured; what one finding rules out, against another finding of the same time), and whether
//! what it calls a retransmission or a loss is in the packets (a repeat at the sender's own tap repeats
//! something; what a receiver's tap saw arrive was not lost on the way there).

#[path = "common/read.rs"]
#[expect(dead_code, reason = "each test file uses its own part")]
mod read;
#[path = "common/unpacked.rs"]
mod unpacked;

use std::collections::BTreeMap;
use std::fs;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use read::{explain, testdata};
use tcpwhy::capture::{Item, Reader};
use tcpwhy::report::{Connection, Direction, Finding, RepeatCause, Report, Vantage};
use tcpwhy::wire;
use unpacked::unpacked;

#[test]
fn no_report_contradicts_itself_or_its_packets() {
    let files = inputs(&testdata(""));
    assert!(files.len() > 200, "only {} inputs were found", files.len());
    let mut told = Vec::new();
    for path in files {
        let name = path.strip_prefix(testdata("")).expect("below testdata").display().to_string();
        let Some(report) = explained(&path) else { continue };
        let packets = Packets::of(&path);
        for connection in &report.connections {
            let odd = contradictions(connection, &packets);
            told.extend(
                odd.into_iter().map(|odd| format!("{name}, connection {}: {odd}", connection.id)),
            );
        }
    }
    assert!(told.is_empty(), "{} contradictions:\n{}", told.len(), told.join("\n"));
}

/// The report over a file, if it is a capture that can be read to its end.
fn explained(path: &Path) -> Option<Report> {
    std::panic::catch_unwind(|| explain(path)).ok().filter(|report| !report.connections.is_empty())
}

/// Captures and listings in a folder and those below.
fn inputs(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).expect("testdata can be read") {
        let path = entry.expect("an entry can be read").path();
        let name = path.to_string_lossy().into_owned();
        let is_capture =
            [".pcap", ".pcapng", ".pcap.gz", ".pcapng.gz", "listing.txt", ".tcpdump.txt"];
        if path.is_dir() && !waits(&path) {
            found.extend(inputs(&path));
        } else if is_capture.iter().any(|ending| name.ends_with(ending)) {
            found.push(path);
        }
    }
    found.sort();
    found
}

/// Whether it is the folder of a case whose report is known to say something false still.
fn waits(folder: &Path) -> bool {
    fs::read_to_string(folder.join("case.json")).is_ok_and(|case| case.contains("\"waits\":"))
}

fn contradictions(connection: &Connection, packets: &Packets) -> Vec<String> {
    let mut odd = ruled_out_and_found(&connection.findings);
    for (at, direction) in connection.present() {
        odd.extend(rates(connection, at, direction));
        odd.extend(rooms(at, direction));
        odd.extend(repeats_of_nothing(connection, at, direction, packets));
        odd.extend(lost_though_it_arrived(connection, at, direction, packets));
    }
    odd
}

const HOSTS: [&str; 2] = ["client", "server"];

/// What a finding rules out, and the codes of findings that would say the opposite of the same time.
const RULED_OUT: [(&str, &[&str]); 6] = [
    (
        "not the network",
        &[
            "BOTTLENECK",
            "BOTTLENECK_SHARED",
            "LOSS",
            "LOSS_RANDOM",
            "LOSS_CONGESTION",
            "LOSS_PERIODIC",
            "BLACK_HOLE",
            "TOKEN_BUCKET",
            "POLICER",
            "VARIABLE_RATE",
        ],
    ),
    (
        "not loss",
        &["LOSS", "LOSS_RANDOM", "LOSS_CONGESTION", "LOSS_PERIODIC", "LOSS_LOCAL", "BLACK_HOLE"],
    ),
    (
        "not a window",
        &[
            "WINDOW_CAP",
            "WINDOW_SCALE",
            "SLOW_READER",
            "APP_WINDOW",
            "WINDOW_GROWTH",
            "ZERO_WINDOW",
        ],
    ),
    ("not a buffer", &["SEND_BUFFER"]),
    ("not TCP:", &["LOSS", "TIMEOUT", "NAGLE_DELAYED_ACK", "IDLE_RESTART", "SLOW_START"]),
    ("not a full path", &["BOTTLENECK", "BOTTLENECK_SHARED"]),
];

fn ruled_out_and_found(findings: &[Finding]) -> Vec<String> {
    let mut odd = Vec::new();
    for finding in findings {
        for (clause, codes) in RULED_OUT {
            let is_said = finding.not.split("; ").any(|each| each.starts_with(clause));
            let others = findings.iter().filter(|other| {
                is_said && other.code != finding.code && codes.contains(&other.code.as_str())
            });
            let at_once = others.filter(|other| overlap(finding, other));
            odd.extend(at_once.map(|other| {
                format!(
                    "{} says \"{clause}\" of a time whose words are {}",
                    finding.code, other.code
                )
            }));
        }
    }
    odd
}

/// Whether both name the same time for a tenth of the shorter one's evidence.
fn overlap(one: &Finding, other: &Finding) -> bool {
    let span =
        |finding: &Finding| finding.evidence.iter().map(|e| e.to_ns - e.from_ns).sum::<i64>();
    let shared: i64 = one
        .evidence
        .iter()
        .flat_map(|a| other.evidence.iter().map(move |b| (a, b)))
        .map(|(a, b)| (a.to_ns.min(b.to_ns) - a.from_ns.max(b.from_ns)).max(0))
        .sum();
    shared * 10 > span(one).min(span(other)).max(1)
}

/// Rates that are said to be the most there can be, and what was measured.
fn rates(connection: &Connection, at: usize, direction: &Direction) -> Vec<String> {
    let Some(measured) = direction.delivery_rate_bps.map(|rate| rate.median) else {
        return Vec::new();
    };
    let ceilings = [
        ("bottleneck_rate_bps", direction.bottleneck_rate_bps),
        ("shared_link_rate_bps", direction.shared_link_rate_bps),
    ];
    let named = ceilings.into_iter().filter_map(|(name, rate)| Some((name.to_owned(), rate?)));
    let data = &connection.findings;
    let said = data
        .iter()
        .filter(|f| ["WINDOW_CAP", "WINDOW_SCALE", "SEND_BUFFER"].contains(&f.code.as_str()));
    let from = HOSTS[at];
    let said = said
        .filter(|finding| finding.title.contains(HOSTS[1 - at]) == (finding.code != "SEND_BUFFER"))
        .filter_map(|finding| Some((finding.code.clone(), most(&finding.why)?)));
    named
        .chain(said)
        .filter(|(_, most)| measured > most + most / 10)
        .map(|(name, most)| {
            format!("{from}: {name} is {most} b/s, and {measured} b/s were measured")
        })
        .collect()
}

/// The rate behind "at most", in bits per second.
fn most(text: &str) -> Option<u64> {
    let mut words = text.split("that is at most ").nth(1)?.split_whitespace();
    let number: f64 = words.next()?.replace(',', "").parse().ok()?;
    let unit = match words.next()?.trim_end_matches(['.', ';', ',']) {
        "bit/s" => 1.0,
        "kbit/s" => 1e3,
        "Mbit/s" => 1e6,
        "Gbit/s" => 1e9,
        _ => return None,
    };
    Some((number * unit) as u64)
}

/// Nothing is sent beyond a window, but for probes. Two windows are left out: one that was taken back, and one
/// that is shut over a hole. What is missing is retransmitted into that hole.
fn rooms(at: usize, direction: &Direction) -> Vec<String> {
    if direction.window_taken_back.is_some() || direction.shut_with_hole.is_some() {
        return Vec::new();
    }
    let rooms = direction.rounds.iter().filter_map(|round| round.window_room_bytes);
    let beyond = rooms
        .filter(|room| *room < -1)
        .map(|room| format!("{}: a room of {room} bytes", HOSTS[at]));
    beyond.collect()
}

/// Whose host the capture was taken on: of its own packets, nothing is lost before its tap but in its own queues.
fn is_tap_of(connection: &Connection, at: usize) -> bool {
    connection.vantage == [Vantage::Client, Vantage::Server][at]
}

/// Retransmissions at the sender's own tap that nothing there explains. The tap holds no first copy of them. No
/// acknowledgment stood still, no selective one came beyond, and no silence was as long as a timer's.
fn repeats_of_nothing(
    connection: &Connection,
    at: usize,
    direction: &Direction,
    packets: &Packets,
) -> Vec<String> {
    if !is_tap_of(connection, at) {
        return Vec::new();
    }
    let own = packets.of_connection(connection);
    let mut odd = Vec::new();
    for repeat in direction.retransmissions.iter().filter(|repeat| repeat.cause != RepeatCause::Syn)
    {
        let Some(sent) = own.iter().find(|p| p.frame == repeat.frame && p.at == at) else {
            continue;
        };
        let earlier = own.iter().take_while(|p| p.frame < sent.frame);
        let overlaps = |p: &&Packet| {
            p.at == at
                && distance(p.seq, sent.seq) < i64::from(p.len)
                && distance(sent.seq, p.seq) < i64::from(sent.len)
        };
        let stands = |p: &&Packet| p.at != at && p.len == 0 && (p.ack == sent.seq || p.has_sack);
        let quiet = earlier
            .clone()
            .filter(|p| p.at == at)
            .last()
            .is_none_or(|p| sent.at_ns - p.at_ns > 180_000_000);
        if !earlier.clone().any(|p| overlaps(&p)) && !earlier.clone().any(|p| stands(&p)) && !quiet
        {
            odd.push(format!(
                "{}: frame {} repeats nothing ({})",
                HOSTS[at],
                repeat.frame,
                repeat.cause.name()
            ));
        }
    }
    odd
}

/// More losses at the receiver's own tap than repeats whose bytes had not come there before.
fn lost_though_it_arrived(
    connection: &Connection,
    at: usize,
    direction: &Direction,
    packets: &Packets,
) -> Vec<String> {
    let is_whole = direction.retransmissions.len() as u64
        == direction.retransmitted.total() - direction.retransmitted.syn;
    if !is_tap_of(connection, 1 - at) || !is_whole {
        return Vec::new();
    }
    let own = packets.of_connection(connection);
    let had_come = |frame: u64| {
        let Some(sent) = own.iter().find(|p| p.frame == frame && p.at == at) else { return false };
        let end = distance(sent.seq, sent.seq.wrapping_add(sent.len));
        let earlier =
            own.iter().take_while(|p| p.frame < frame).filter(|p| p.at == at && p.is_intact);
        earlier.clone().any(|p| {
            distance(sent.seq, p.seq) <= 0 && distance(sent.seq, p.seq.wrapping_add(p.len)) >= end
        })
    };
    let needed = direction.retransmissions.iter().filter(|r| !had_come(r.frame)).count() as u64;
    let lost = direction.events.lost;
    if lost > needed + direction.events.not_captured {
        return vec![format!(
            "{}: {lost} segments are called lost, but only {needed} repeats brought anything new",
            HOSTS[at]
        )];
    }
    Vec::new()
}

/// How far `b` is behind `a` on the circle of sequence numbers.
fn distance(a: u32, b: u32) -> i64 {
    i64::from(b.wrapping_sub(a).cast_signed())
}

/// A TCP segment as the wire has it.
#[derive(Clone, Copy)]
struct Packet {
    frame: u64,
    at_ns: i64,
    at: usize,
    seq: u32,
    ack: u32,
    len: u32,
    has_sack: bool,
    is_intact: bool,
}

/// The segments of a file, by the ends that they run between.
struct Packets(BTreeMap<(SocketAddr, SocketAddr), Vec<Packet>>);

impl Packets {
    fn of(path: &Path) -> Self {
        let bytes = unpacked(path);
        let mut all = Self(BTreeMap::new());
        let mut reader = Reader::new();
        let mut sink = |item: Item<'_>| match item {
            Item::Frame(frame) => {
                if let Ok(segment) = wire::parse(&frame) {
                    let damaged = wire::checksum(&frame) == Some(wire::Checksum::Bad);
                    all.add(&segment, !damaged);
                }
            }
            Item::Segment(segment) => all.add(&segment, true),
            _ => {}
        };
        // What ends early is explained as far as it goes, and so are these.
        let _ = reader.push(&bytes, &mut sink).and_then(|()| reader.finish(&mut sink));
        all
    }

    fn add(&mut self, segment: &wire::Segment<'_>, is_intact: bool) {
        let ends = (segment.source, segment.destination);
        let at = usize::from(ends.0 > ends.1);
        let packet = Packet {
            frame: segment.frame,
            at_ns: segment.time.0,
            at,
            seq: segment.seq.0,
            ack: segment.ack.0,
            len: segment.payload_len,
            has_sack: segment.options.sack_count > 0,
            is_intact,
        };
        self.0.entry((ends.0.min(ends.1), ends.0.max(ends.1))).or_default().push(packet);
    }

    /// The segments of a connection; `at` is 0 for the client's.
    fn of_connection(&self, connection: &Connection) -> Vec<Packet> {
        let ends = (connection.client, connection.server);
        let found = self.0.get(&(ends.0.min(ends.1), ends.0.max(ends.1)));
        let is_turned = ends.0 > ends.1;
        let frames = &connection.frames;
        let own = found.into_iter().flatten();
        let own = own.filter(|p| (frames.first..=frames.last).contains(&p.frame));
        own.map(|p| Packet { at: if is_turned { 1 - p.at } else { p.at }, ..*p }).collect()
    }
}
