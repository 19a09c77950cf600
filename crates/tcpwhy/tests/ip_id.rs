//! The IPv4 identification orders nothing unless it is shown to be this connection's own counter.
//!
//! The field means nothing in a datagram that may not be fragmented (RFC 6864 section 4.1). Hosts count it for each
//! connection, for all, for each peer, or draw it by lot. Every capture below `testdata` is explained as it is and with
//! each identification zero. What is found, retransmitted and lost has to be the same. Only the captures in
//! [`TELLS_MORE`] differ: there the field is the sender's own counter for this connection.

#[path = "common/read.rs"]
#[expect(dead_code, reason = "each test file uses its own part")]
mod read;
#[path = "common/unpacked.rs"]
mod unpacked;

use std::fs;
use std::path::{Path, PathBuf};

use read::testdata;
use tcpwhy::capture::{Frame, Item, Reader};
use tcpwhy::report::{Connection, Report};
use tcpwhy::session::Session;
use tcpwhy::tracker::Config;
use unpacked::unpacked;

/// Captures whose identifications tell what is lost with them, and why.
const TELLS_MORE: &[(&str, &str)] = &[
    ("cases/acks-that-the-path-doubles/capture.pcapng.gz", REPEAT),
    ("cases/errors-about-another-connection/capture.pcap", REPEAT),
    ("cases/errors-about-udp/capture.pcap", REPEAT),
    ("cases/lossy-and-near/capture.pcap.gz", LOST_REPEAT),
    ("kernel/loss-tail-rto.client.pcap.gz", LOST_TAIL),
    ("kernel/loss-tail-tlp.client.pcap.gz", LOST_TAIL),
    ("links/tunnels-cut.pcap", REPEAT),
    ("links/tunnels.pcap", REPEAT),
    ("truth/lossy-receiver.pcap.gz", LOST_REPEAT),
    ("truth/twice-routed.pcap.gz", REPEAT),
    ("truth/twice.pcap.gz", REPEAT),
];
/// A retransmission has another number than the first packet. A packet that was captured twice has the same.
const REPEAT: &str = "a repeat that comes at once is no copy";
/// Linux counts for each connection (`ip_select_ident_segs`), so a number that is missing was a packet.
const LOST_REPEAT: &str = "a repeat that was lost before the tap is counted";
const LOST_TAIL: &str = "the lost end of a transfer is no data that was written late";

/// Larger captures are left out: bulk says nothing of the field that small ones do not.
const LARGEST: u64 = 150_000;

/// `LINKTYPE_` values of Ethernet, of raw IP, and of Linux's cooked captures.
const ETHERNET: u32 = 1;
const RAW: u32 = 101;
const SLL: u32 = 113;
const SLL2: u32 = 276;

#[test]
fn with_each_identification_zero_a_report_says_the_same() {
    let mut odd = Vec::new();
    let mut compared = 0;
    for path in captures(&testdata("")) {
        let name = path.strip_prefix(testdata("")).expect("below testdata").display().to_string();
        let Some(differences) = differences(&path) else { continue };
        compared += 1;
        let is_listed = TELLS_MORE.iter().any(|(listed, _)| *listed == name);
        if differences.is_empty() == is_listed {
            odd.push(format!("{name}: {}", differences.join("; ")));
        }
    }
    assert!(compared > 100, "only {compared} captures have identifications");
    assert!(odd.is_empty(), "{} of {compared} captures:\n{}", odd.len(), odd.join("\n"));
}

/// Captures in a folder and those below.
fn captures(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).expect("testdata can be read") {
        let entry = entry.expect("an entry can be read");
        let (path, name) = (entry.path(), entry.file_name().to_string_lossy().into_owned());
        let endings = [".pcap", ".pcapng", ".pcap.gz", ".pcapng.gz"];
        if path.is_dir() {
            found.extend(captures(&path));
        } else if endings.iter().any(|ending| name.ends_with(ending))
            && entry.metadata().is_ok_and(|file| file.len() <= LARGEST)
        {
            found.push(path);
        }
    }
    found.sort();
    found
}

/// What is said otherwise without the identifications; `None` where there are none, or the capture is not read.
fn differences(path: &Path) -> Option<Vec<String>> {
    let [plain, zeroed] = copies(path)?;
    let (with, without) = (explained(&plain), explained(&zeroed));
    let pairs = with.connections.iter().zip(&without.connections);
    let said = pairs.map(|(a, b)| (said(a), said(b))).filter(|(a, b)| a != b);
    let mut odd: Vec<String> = said.map(|(a, b)| format!("{a} with, {b} without")).collect();
    if with.connections.len() != without.connections.len() {
        odd.push("another number of connections".to_owned());
    }
    Some(odd)
}

/// What was found of a connection, retransmitted and lost.
fn said(connection: &Connection) -> String {
    let mut codes: Vec<&str> = connection.findings.iter().map(|found| &*found.code).collect();
    codes.sort_unstable();
    let of = |(at, direction): (usize, &tcpwhy::report::Direction)| {
        let again = &direction.retransmitted;
        let most = direction.time_in.iter().max_by_key(|(_, time)| time.0);
        let state = most.map_or("nothing", |(state, _)| state.name());
        format!("side {at}: {} again, {} lost, {state}", again.total(), direction.events.lost)
    };
    let sides: Vec<String> = connection.present().map(of).collect();
    format!("{} copies, {}, {}", connection.duplicates, codes.join(" "), sides.join(", "))
}

fn explained(capture: &[u8]) -> Report {
    let mut session = Session::new(Config { detail: true, ..Config::default() });
    session.begin("capture");
    session.push(capture).expect("a sound capture");
    session.end().expect("it ends with a record");
    session.finish()
}

/// The frames of a capture of one kind of link as a capture of their own, and the same with each IPv4 identification
/// zero; `None` if none had one.
fn copies(path: &Path) -> Option<[Vec<u8>; 2]> {
    let bytes = unpacked(path);
    let mut out = [Vec::new(), Vec::new()];
    let (mut link, mut had_one) = (None, false);
    let mut sink = |item: Item<'_>| {
        let Item::Frame(frame) = item else { return };
        if *link.get_or_insert(frame.link_type) != frame.link_type {
            return;
        }
        write(&mut out[0], &frame, frame.data);
        let mut data = frame.data.to_vec();
        if let Some(id) = identification(&frame).and_then(|at| data.get_mut(at..at + 2)) {
            had_one |= id != [0, 0];
            id.fill(0);
        }
        write(&mut out[1], &frame, &data);
    };
    let mut reader = Reader::new();
    reader.push(&bytes, &mut sink).and_then(|()| reader.finish(&mut sink)).ok()?;
    let link = link.filter(|_| had_one)?;
    Some(out.map(|records| [&head(link)[..], &records].concat()))
}

/// The header of a classic capture with nanoseconds (draft-ietf-opsawg-pcap).
fn head(link: u32) -> [u8; 24] {
    let mut head = [0; 24];
    head[..4].copy_from_slice(&0xa1b2_3c4d_u32.to_le_bytes());
    head[4..8].copy_from_slice(&[2, 0, 4, 0]);
    head[16..20].copy_from_slice(&262_144_u32.to_le_bytes());
    head[20..].copy_from_slice(&link.to_le_bytes());
    head
}

fn write(out: &mut Vec<u8>, frame: &Frame<'_>, data: &[u8]) {
    let time = frame.time.0;
    let fields = [
        time.div_euclid(1_000_000_000) as u32,
        time.rem_euclid(1_000_000_000) as u32,
        data.len() as u32,
        frame.wire_len,
    ];
    out.extend(fields.iter().flat_map(|field| field.to_le_bytes()));
    out.extend(data);
}

/// Where the identification of an IPv4 packet is, behind at most one VLAN tag.
fn identification(frame: &Frame<'_>) -> Option<usize> {
    let (kind_at, begin) = match frame.link_type {
        ETHERNET => (Some(12), 14),
        SLL => (Some(14), 16),
        SLL2 => (Some(0), 20),
        RAW => (None, 0),
        _ => return None,
    };
    let kind = |at: usize| frame.data.get(at..at + 2);
    let begin = match kind_at.map(|at| (at, kind(at))) {
        Some((at, Some([0x81, 0x00]))) if kind(at + 4) == Some(&[8, 0]) => begin + 4,
        Some((_, Some([8, 0]))) => begin,
        None if frame.data.first().is_some_and(|byte| byte >> 4 == 4) => begin,
        _ => return None,
    };
    Some(begin + 4)
}
