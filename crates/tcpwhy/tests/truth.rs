//! Captures whose truth the sending kernel counted: `testdata/truth`.
//!
//! What the capture does (copies, drops, another link type, a late start, a wrap of the numbers)
//! must not change what is said of the transfer. Every file is compared with the JSON beside it.
//!
//! Which field is which: repeats are `fast + rto + tlp + unnecessary` (`spurious` says again of
//! some of them that they were needless) and equal `retransmitted_segments`, the repeats that the
//! file holds. `bytes` is the stream between the first and the last byte seen or acknowledged.
//! Where the capture lost data that the receiver acknowledged, it equals `unique_bytes_on_wire`.
//! The report has the difference as `not_captured`.

mod common;

use std::fs;
use std::ops::RangeInclusive;

use common::read::{explain, names, testdata};
use common::sheet::Sheet;
use common::twin::conserved;
use serde_json::Value;
use tcpwhy::report::{Connection, Direction, Report, State, Vantage, WindowScaling};

const DIRECTORY: &str = "truth";

/// One capture: its truth and what the tool says of it.
struct Case {
    name: String,
    truth: Value,
    report: Report,
}

fn cases(wanted: impl Fn(&str, &Value) -> bool) -> Vec<Case> {
    let read = |name: String| {
        let json = fs::read_to_string(testdata(&format!("{DIRECTORY}/{name}.truth.json")))
            .expect("the truth lies beside the capture");
        let truth: Value = serde_json::from_str(&json).expect("the truth is JSON");
        wanted(&name, &truth).then(|| {
            let capture = truth["capture"].as_str().expect("the truth names its capture");
            let report = explain(&testdata(&format!("{DIRECTORY}/{capture}")));
            Case { name, truth, report }
        })
    };
    names(DIRECTORY, ".truth.json").into_iter().filter_map(read).collect()
}

impl Case {
    /// A count of the truth; 0 where it says nothing.
    fn count(&self, field: &str) -> u64 {
        self.truth[field].as_u64().unwrap_or(0)
    }

    /// A count of the sender's kernel.
    fn kernel(&self, pointer: &str) -> Option<u64> {
        self.truth["kernel"].pointer(pointer)?.as_u64()
    }

    /// A counter of the server's namespace; those that stayed 0 are not listed.
    fn counter(&self, name: &str) -> u64 {
        self.kernel(&format!("/server_counters/{name}")).unwrap_or(0)
    }

    fn connection(&self) -> &Connection {
        &self.report.connections[0]
    }

    /// What the server sent; nothing where the capture holds no data of it.
    fn download(&self) -> Direction {
        self.connection().directions[1].as_deref().cloned().unwrap_or_default()
    }

    /// Taken by the sender's own host, of the whole transfer.
    fn at_sender(&self) -> bool {
        self.truth["vantage"] == "server"
    }
}

fn repeats(direction: &Direction) -> u64 {
    let repeated = direction.retransmitted;
    repeated.fast + repeated.rto + repeated.tlp + repeated.unnecessary
}

#[test]
fn connections_bytes_and_repeats_are_the_true_ones() {
    let mut sheet = Sheet::default();
    for case in cases(|_, _| true) {
        let name = case.name.as_str();
        let capture = &case.report.captures[0];
        sheet.equal(name, "frames", case.count("frames"), capture.packets);
        sheet.equal(name, "tcp segments", case.count("frames"), capture.tcp_segments);
        let connections = case.report.connections.len() as u64;
        sheet.equal(name, "connections", case.count("connections"), connections);
        let server = case.download();
        sheet.equal(name, "unique bytes", provable_bytes(&case), server.bytes);
        // At the receiver one repeat looks like new data: its original, the last of a flight, was
        // lost before the tap, and a repair that came between used up the jump of the ledger.
        let hidden = u64::from(name == "lossy-receiver");
        let seen = case.count("retransmitted_segments") - hidden;
        sheet.equal(name, "repeats", seen, repeats(&server));
        sheet.equal(name, "lost", seen, server.events.lost);
        sheet.equal(name, "repeated SYNs", 0, server.retransmitted.syn);
        sheet.equal(name, "spurious repeats", 0, server.retransmitted.spurious);
        sheet.equal(name, "needless repeats", 0, server.retransmitted.unnecessary);
        sheet.equal(name, "duplicates", case.count("duplicates"), case.connection().duplicates);
        let copies = case.count("frames") - case.count("duplicates");
        sheet.equal(name, "packets", copies, case.connection().packets);
        for connection in &case.report.connections {
            sheet.clean(name, "conservation", conserved(connection));
        }
    }
    sheet.settle();
}

/// Bytes of the stream that the file proves: those lost by the capture alone are acknowledged.
fn provable_bytes(case: &Case) -> u64 {
    if case.count("capture_drops") > 0 {
        case.count("unique_bytes_on_wire")
    } else {
        case.count("unique_bytes")
    }
}

#[test]
fn what_the_capture_lost_is_told_as_such() {
    let mut sheet = Sheet::default();
    for case in cases(|_, _| true) {
        let name = case.name.as_str();
        let drops = case.count("capture_drops");
        // Provable are the segments that were acknowledged and never seen; of the rest, bare ACKs
        // and repeats, the file may show some by the IP identifications.
        let missing = provable_bytes(&case) - case.count("unique_bytes");
        let mss = u64::from(case.connection().mss.expect("a segment size"));
        let provable: RangeInclusive<u64> = missing.div_ceil(mss)..=drops;
        let server = case.download();
        sheet.within(name, "not captured", &provable, Some(server.events.not_captured));
        let said: u64 = case.report.captures[0]
            .quality
            .iter()
            .filter(|q| q.kind == "interface_drops" || q.kind == "kernel_drops")
            .map(|q| q.count)
            .sum();
        sheet.equal(name, "drops said", case.count("capture_drops_said"), said);
    }
    sheet.settle();
}

#[test]
fn at_the_sender_the_kernels_own_counts_come_out() {
    let mut sheet = Sheet::default();
    for case in cases(|_, truth| truth["vantage"] == "server") {
        let name = case.name.as_str();
        let server = case.download();
        let info = |field: &str| case.kernel(&format!("/tcp_info/0/{field}")).expect("a count");
        sheet.equal(name, "bytes sent", info("bytes_sent"), server.bytes_sent);
        sheet.equal(name, "bytes acked", info("bytes_acked"), server.bytes);
        sheet.equal(name, "segments", info("data_segs_out"), server.segments);
        let mss = case.connection().mss.map(u64::from);
        sheet.equal(name, "mss", Some(info("snd_mss")), mss);
        let repeated = server.retransmitted;
        let (fast, rto) = (case.counter("TCPFastRetrans"), case.counter("TCPTimeouts"));
        sheet.equal(name, "fast", fast, repeated.fast);
        sheet.equal(name, "rto", rto, repeated.rto);
        // Probes may carry new data; those that repeat are what is left of the repeats.
        sheet.equal(name, "tlp", info("total_retrans") - fast - rto, repeated.tlp);
        let least = info("min_rtt") as f64 / 1e3;
        let found = server.rtt.min_ns.map(|ns| ns as f64 / 1e6);
        sheet.within(name, "least round trip in ms", &(least - 1.0..=least + 1.0), found);
        // The body lies ready before the first byte goes out.
        let waited = server.time_in.get(State::App).0 + server.time_in.get(State::Pacing).0;
        let percent = waited as f64 * 100.0 / case.connection().duration_ns as f64;
        sheet.within(name, "app and pacing in %", &(0.0..=0.5), Some(percent));
    }
    sheet.settle();
}

#[test]
fn wire_segments_are_counted_at_either_end() {
    let mut sheet = Sheet::default();
    for case in cases(|name, _| name == "tso-receiver") {
        let wanted = case.count("wire_segments_at_receiver");
        sheet.equal(&case.name, "segments", wanted, case.download().segments);
    }
    for case in cases(|name, _| name == "tso-sender") {
        let server = case.download();
        let arrived = server.segments - case.count("retransmitted_segments");
        let wanted = case.count("wire_segments_at_receiver");
        sheet.equal(&case.name, "segments that arrived", wanted, arrived);
        let frames = server.frames;
        sheet.holds(
            &case.name,
            "frames",
            "fewer than segments",
            &frames.to_string(),
            frames < server.segments,
        );
    }
    sheet.settle();
}

#[test]
fn the_place_of_the_tap_and_the_scale_are_told_where_they_show() {
    let mut sheet = Sheet::default();
    for case in cases(|_, _| true) {
        let name = case.name.as_str();
        let connection = case.connection();
        let wanted: &[Vantage] = match (case.truth["vantage"].as_str(), name) {
            (Some("server"), _) | (None, "sll2") => &[Vantage::Server],
            (Some("client"), _) => &[Vantage::Client],
            (Some("middle"), _) => &[Vantage::Middle],
            // One host is both ends: either name is right, and so is none.
            (Some("both ends"), _) => &[Vantage::Client, Vantage::Server, Vantage::Unknown],
            // Of the derived ones each name but a wrong one will do.
            _ => &[Vantage::Server, Vantage::Unknown],
        };
        let found = connection.vantage;
        sheet.holds(
            name,
            "vantage",
            &format!("{wanted:?}"),
            &format!("{found:?}: {}", connection.vantage_evidence),
            wanted.contains(&found),
        );
        let one_way = case.truth["direction"].is_string();
        let scaling = if one_way || case.truth["window_scaling"] == "handshake_not_seen" {
            WindowScaling::HandshakeNotSeen
        } else {
            WindowScaling::Used
        };
        sheet.equal(name, "window scaling", scaling, connection.window_scaling);
    }
    sheet.settle();
}

/// The longest difference between the times in each state of two reports, in percent.
fn largest_difference(a: &Case, b: &Case) -> (f64, State) {
    let lifetime = a.connection().duration_ns as f64;
    let (a, b) = (a.download(), b.download());
    State::all()
        .map(|state| {
            let apart = a.time_in.get(state).0 - b.time_in.get(state).0;
            (apart.abs() as f64 * 100.0 / lifetime, state)
        })
        .max_by(|a, b| a.0.total_cmp(&b.0))
        .expect("there are states")
}

#[test]
fn what_the_capture_does_changes_no_verdict() {
    /// Capture, and by how many percent of the lifetime its states may differ from the original's:
    /// lost frames hide the time they stood in, and 180 of 4,639 are 3.9 %.
    const DERIVED: [(&str, &str, f64); 12] = [
        ("wrap", "lossy-sender", 0.01),
        ("sll2", "lossy-sender", 0.01),
        ("twice", "lossy-sender", 0.01),
        ("twice-routed", "lossy-sender", 0.01),
        ("no-handshake", "lossy-sender", 1.0),
        ("dropped", "lossy-sender", 3.0),
        ("dropped-bursts", "lossy-sender", 4.0),
        ("format-ns", "tail-loss", 0.0),
        ("format-us", "tail-loss", 0.01),
        ("format-swapped", "tail-loss", 0.01),
        ("format-swapped-ns", "tail-loss", 0.0),
        ("format-ng", "tail-loss", 0.01),
    ];
    let all = cases(|_, _| true);
    let find = |name: &str| all.iter().find(|case| case.name == name).expect("a capture");
    let mut sheet = Sheet::default();
    for (name, original, percent) in DERIVED {
        let (apart, state) = largest_difference(find(original), find(name));
        let found = format!("{apart:.3} % in {state}");
        let wanted = format!("<= {percent} % apart");
        sheet.holds(name, "states as in the original", &wanted, &found, apart <= percent);
    }
    sheet.settle();
}

#[test]
fn the_timer_is_named_where_only_the_timer_repairs() {
    let mut sheet = Sheet::default();
    for case in cases(|name, _| name == "timeout") {
        // Four timeouts, each twice as long as the one before, from a round trip of 20 ms; all
        // else takes seven round trips.
        let server = case.download();
        let lifetime = case.connection().duration_ns;
        let others = lifetime - server.time_in.get(State::RtoWait).0;
        sheet.within(&case.name, "not the timer, in ns", &(0..=180_000_000), Some(others));
    }
    for case in cases(|name, _| name == "tail-loss") {
        let probe = case.download().time_in.get(State::TlpWait).0;
        sheet.within(&case.name, "probe's wait, in ns", &(20_000_000..=120_000_000), Some(probe));
        assert!(case.at_sender(), "the tail was lost behind the tap");
    }
    sheet.settle();
}
