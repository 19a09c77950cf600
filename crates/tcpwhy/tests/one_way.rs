//! One direction of each capture of a real kernel: what the other would tell is not named.

#[expect(dead_code, reason = "other tests use the rest of it")]
mod common;

use std::fs::OpenOptions;
use std::io::Read as _;

use common::read::{names, testdata};
use flate2::read::GzDecoder;
use tcpwhy::report::{Report, State};
use tcpwhy::session::Session;
use tcpwhy::tracker::Config;

const DIRECTORY: &str = "kernel";
/// The server's data comes from here.
const SERVER_PORT: u16 = 8000;
/// What a sender's own packets tell without an answer.
const TOLD_ALONE: [State; 4] =
    [State::Unknown, State::Handshake, State::SynRetry, State::CaptureGap];

/// A capture in pcap's format (draft-ietf-opsawg-pcap), little-endian, of Ethernet.
fn unpacked(name: &str) -> Vec<u8> {
    let path = testdata(DIRECTORY).join(format!("{name}.pcap.gz"));
    let file = OpenOptions::new().read(true).open(path).expect("a capture");
    let mut bytes = Vec::new();
    GzDecoder::new(file).read_to_end(&mut bytes).expect("gzip");
    bytes
}

/// The packets of the server alone, or of the client.
fn one_direction(file: &[u8], of_server: bool) -> Vec<u8> {
    let (mut kept, mut rest) = (file[..FILE_HEAD].to_vec(), &file[FILE_HEAD..]);
    while let Some(length) = rest.get(8..12) {
        let length = u32::from_le_bytes(length.try_into().expect("four bytes")) as usize;
        let (record, behind) = rest.split_at(RECORD_HEAD + length);
        rest = behind;
        if (source_port(&record[RECORD_HEAD..]) == SERVER_PORT) == of_server {
            kept.extend(record);
        }
    }
    kept
}

const FILE_HEAD: usize = 24;
const RECORD_HEAD: usize = 16;
const ETHERNET_HEAD: usize = 14;
const IPV6: [u8; 2] = [0x86, 0xdd];

fn source_port(frame: &[u8]) -> u16 {
    let ip = &frame[ETHERNET_HEAD..];
    let is_v6 = frame[ETHERNET_HEAD - 2..ETHERNET_HEAD] == IPV6;
    let tcp = if is_v6 { 40 } else { usize::from(ip[0] & 15) * 4 };
    u16::from_be_bytes([ip[tcp], ip[tcp + 1]])
}

fn explained(capture: &[u8]) -> Report {
    let mut session = Session::new(Config { detail: true, ..Config::default() });
    session.begin("memory");
    session.push(capture).expect("the capture is sound");
    session.end().expect("the capture ends at the end of a record");
    session.finish()
}

#[test]
fn of_one_direction_no_wait_is_named_and_no_finding_made() {
    let mut directions = 0;
    for name in names(DIRECTORY, ".pcap.gz") {
        let name = name.as_str();
        let whole = unpacked(name);
        for of_server in [false, true] {
            let report = explained(&one_direction(&whole, of_server));
            for connection in &report.connections {
                assert!(connection.directions[usize::from(!of_server)].is_none(), "{name}");
                let codes = connection.findings.iter().map(|finding| finding.code.as_str());
                let codes: Vec<_> = codes.collect();
                assert!(codes.iter().all(|code| *code == "SYN_RETRY"), "{name}: {codes:?}");
            }
            let sent = report.connections.iter().flat_map(|each| each.directions.iter().flatten());
            for direction in sent {
                directions += 1;
                let named = direction.time_in.iter().find(|row| !TOLD_ALONE.contains(&row.0));
                assert_eq!(named, None, "{name}");
                assert_eq!(direction.rtt.samples, 0, "{name}");
                assert!(direction.rounds.is_empty(), "{name}");
            }
        }
    }
    assert!(directions > 100, "{directions}");
}
