//! The listings of published articles, from their text to the report.
//!
//! The complete capture was worked through by hand; the table here is that work, taken from the
//! packets and not from this tool. The others are abridged: what can still be said of them is
//! said, and what was left out is never taken for loss.

mod common;

use std::fs;

use common::read::{explain, names, testdata};
use common::sheet::Sheet;
use common::twin::conserved;
use tcpwhy::report::{Connection, Direction, Report, Retransmitted, State, Vantage, WindowScaling};

const DIRECTORY: &str = "listings/articles";
const ENDING: &str = ".tcpdump.txt";
const COMPLETE: &str = "download-512k-rtt7ms";
const ABRIDGED: &str = "-abridged";

fn article(name: &str) -> Report {
    explain(&testdata(&format!("{DIRECTORY}/{name}{ENDING}")))
}

fn only(report: &Report) -> &Connection {
    assert_eq!(report.connections.len(), 1, "each listing shows one connection");
    &report.connections[0]
}

/// What the server sent.
fn download(connection: &Connection) -> &Direction {
    connection.directions[1].as_deref().expect("the server sent data")
}

/// Lets the receiver's window stand for each of its three reasons, which one capture of a
/// growing window cannot always tell apart.
fn coarse(state: State) -> &'static str {
    match state {
        State::RwndCap | State::RwndAutotune | State::RwndReader => "rwnd",
        other => other.name(),
    }
}

fn millis(ns: i64) -> f64 {
    ns as f64 / 1e6
}

#[test]
fn the_complete_capture_is_explained_as_by_hand() {
    /// End of each interval in ms after the SYN on the server's clock, and its state.
    const BORDERS: [(f64, &str); 9] = [
        (6.858, "handshake"),
        (7.007, "idle.peer_think"),
        (21.328, "cwnd.slow_start"),
        (28.091, "rwnd"),
        (34.822, "cwnd.slow_start"),
        (41.985, "rwnd"),
        (49.286, "cwnd.slow_start"),
        (56.171, "last_flight"),
        (63.063, "closing"),
    ];
    let report = article(COMPLETE);
    let connection = only(&report);
    let server = download(connection);
    let mut sheet = Sheet::default();
    let intervals: Vec<(f64, &str)> =
        server.limits.iter().map(|l| (millis(l.end_ns), coarse(l.state))).collect();
    // Neighbours of the same state are one interval of the table.
    let merged: Vec<(f64, &str)> = intervals
        .iter()
        .enumerate()
        .filter(|(at, (_, state))| intervals.get(at + 1).is_none_or(|next| next.1 != *state))
        .map(|(_, interval)| *interval)
        .collect();
    sheet.equal(COMPLETE, "states", BORDERS.map(|b| b.1).to_vec(), states(&merged));
    for ((wanted, state), found) in BORDERS.iter().zip(&merged) {
        sheet.within(
            COMPLETE,
            &format!("end of {state} in ms"),
            &(wanted - 0.1..=wanted + 0.1),
            Some(found.0),
        );
    }
    let sum = |name: &str| {
        server.time_in.iter().filter(|(s, _)| coarse(*s) == name).map(|(_, t)| t.0).sum::<i64>()
    };
    sheet.within(COMPLETE, "slow start", &(28_253_000..=28_453_000), Some(sum("cwnd.slow_start")));
    sheet.within(COMPLETE, "receive window", &(13_826_000..=14_026_000), Some(sum("rwnd")));
    sheet.equal(COMPLETE, "unknown", 0, sum("unknown"));
    sheet.clean(COMPLETE, "conservation", conserved(connection));
    sheet.settle();
}

fn states<'a>(intervals: &[(f64, &'a str)]) -> Vec<&'a str> {
    intervals.iter().map(|interval| interval.1).collect()
}

#[test]
fn the_complete_capture_has_seven_rounds() {
    /// Start in ms, bytes, segments, room of the window, what held the sender after it.
    const ROUNDS: [(f64, u64, u64, Option<i64>, &str); 7] = [
        (7.007, 14_480, 10, Some(49_776), "cwnd.slow_start"),
        (14.081, 28_960, 20, Some(26_848), "cwnd.slow_start"),
        (21.328, 46_080, 32, Some(0), "rwnd"),
        (28.091, 104_256, 72, Some(13_120), "cwnd.slow_start"),
        (34.822, 78_720, 55, Some(0), "rwnd"),
        (41.985, 232_600, 161, Some(56_808), "cwnd.slow_start"),
        (49.286, 19_487, 14, None, "last_flight"),
    ];
    /// By replay of the growth gate with its old sample rule.
    const CWND: [u64; 6] = [10, 20, 40, 72, 144, 161];
    let report = article(COMPLETE);
    let server = download(only(&report));
    let mut sheet = Sheet::default();
    sheet.equal(COMPLETE, "rounds", ROUNDS.len(), server.rounds.len());
    for (number, (wanted, found)) in ROUNDS.iter().zip(&server.rounds).enumerate() {
        let (start, bytes, segments, room, state) = *wanted;
        let subject = format!("round {}", number + 1);
        let starts = start - 0.1..=start + 0.1;
        sheet.within(&subject, "start in ms", &starts, Some(millis(found.start_ns)));
        sheet.equal(&subject, "bytes", bytes, found.bytes);
        sheet.equal(&subject, "segments", segments, found.segments);
        if room.is_some() {
            sheet.equal(&subject, "room", room, found.window_room_bytes);
        }
        sheet.equal(&subject, "limited by", state, coarse(found.limited_by));
        if let Some(cwnd) = CWND.get(number) {
            let low = found.cwnd.low.unwrap_or(0);
            let high = found.cwnd.high.unwrap_or(u64::MAX);
            let best = found.cwnd.best.unwrap_or(*cwnd);
            sheet.equal(&subject, "cwnd", *cwnd, best);
            sheet.within(&subject, "cwnd's bounds", &(low..=high), Some(*cwnd));
        }
    }
    sheet.settle();
}

#[test]
fn the_complete_capture_was_taken_at_the_server_behind_a_delay() {
    let report = article(COMPLETE);
    let connection = only(&report);
    let server = download(connection);
    let mut sheet = Sheet::default();
    sheet.equal(COMPLETE, "vantage", Vantage::Server, connection.vantage);
    sheet.equal(COMPLETE, "duration", 63_063_000, connection.duration_ns);
    let delay = connection.egress_delay_ns;
    sheet.within(COMPLETE, "least egress delay", &(3_200_000..=3_600_000), delay.map(|d| d.low));
    sheet.within(COMPLETE, "most egress delay", &(3_200_000..=3_600_000), delay.map(|d| d.high));
    sheet.equal(COMPLETE, "handshake round trip", Some(6_858_000), connection.handshake_rtt_ns);
    sheet.equal(COMPLETE, "bytes", 524_583, server.bytes);
    sheet.equal(COMPLETE, "segments", 364, server.segments);
    sheet.equal(COMPLETE, "mss", Some(1448), connection.mss);
    let initial = server.initial_window.unwrap_or_default();
    sheet.equal(COMPLETE, "initial window", (10, 14_480), (initial.segments, initial.bytes));
    sheet.equal(COMPLETE, "window full", 2, server.events.window_full);
    sheet.settle();
}

#[test]
fn the_idle_pair_differs_in_its_restart() {
    let mut sheet = Sheet::default();
    for (verdict, bytes, segments) in [("on", 13_984, Some(10)), ("off", 486_032, None)] {
        let subject = format!("two-writes-10s-apart-idle-restart-{verdict}{ABRIDGED}");
        let report = article(&subject);
        let server = download(only(&report));
        let subject = format!("idle restart {verdict}");
        sheet.equal(&subject, "idle times", 1, server.idle_restarts.len());
        let restart = server.idle_restarts.first().cloned().unwrap_or_default();
        sheet.equal(&subject, "verdict", verdict, &restart.verdict);
        sheet.equal(&subject, "bytes at once", bytes, restart.bytes);
        if let Some(segments) = segments {
            sheet.equal(&subject, "segments at once", segments, restart.segments);
        }
        // The next write came ten seconds after the last; the exchange between took 20 ms.
        sheet.within(&subject, "idle in ns", &(9_980e6..=10_000e6), Some(restart.idle_ns as f64));
        let drops = report.captures[0].quality.iter().find(|q| q.kind == "kernel_drops");
        let dropped = if verdict == "off" { Some(12) } else { None };
        sheet.equal(&subject, "kernel drops", dropped, drops.map(|q| q.count));
    }
    sheet.settle();
}

#[test]
fn each_write_of_the_idle_pair_takes_its_time() {
    /// Milliseconds from first data to last ACK as the tap saw them. The tap is up to 3.6 ms behind
    /// the sender's stack, whose clock the report uses.
    const WRITES: [(&str, [f64; 2]); 2] = [("on", [18.76, 19.31]), ("off", [18.92, 5.01])];
    let mut sheet = Sheet::default();
    for (verdict, times) in WRITES {
        let report = article(&format!("two-writes-10s-apart-idle-restart-{verdict}{ABRIDGED}"));
        let transfers = &only(&report).transfers;
        let subject = format!("idle restart {verdict}");
        sheet.equal(&subject, "transfers", 2, transfers.len());
        for (transfer, at_tap) in transfers.iter().zip(times) {
            let took = millis(transfer.end_ns - transfer.start_ns);
            sheet.within(&subject, "ms a write", &(at_tap - 0.01..=at_tap + 3.6), Some(took));
            sheet.equal(&subject, "bytes a write", 524_288, transfer.bytes);
        }
    }
    sheet.settle();
}

#[test]
fn a_nearer_device_refused_window_scaling() {
    let subject = "get-no-window-scaling";
    let report = article(subject);
    let connection = only(&report);
    let mut sheet = Sheet::default();
    sheet.equal(subject, "scaling", WindowScaling::NotNegotiated, connection.window_scaling);
    let note = connection.window_scaling_note.clone().unwrap_or_default();
    sheet.holds(subject, "note", "a nearer device", &note, note.contains("nearer"));
    sheet.equal(subject, "vantage", Vantage::Client, connection.vantage);
    sheet.equal(subject, "bytes", 2_781, download(connection).bytes);
    sheet.clean(subject, "conservation", conserved(connection));
    sheet.settle();
}

/// Packets that a listing's footer counts beyond those it lists.
fn left_out(text: &str) -> Option<u64> {
    let captured = text.lines().find_map(|l| l.strip_suffix(" packets captured"))?;
    let listed = text.lines().filter(|l| l.contains(" IP ")).count() as u64;
    Some(captured.parse::<u64>().expect("a number of packets") - listed)
}

#[test]
fn what_an_abridged_listing_leaves_out_is_no_loss() {
    const REPAIRS: [State; 6] = [
        State::RecoveryLoss,
        State::RecoveryReorderSpurious,
        State::RtoWait,
        State::TlpWait,
        State::ZeroWindow,
        State::CwndPostLoss,
    ];
    let mut sheet = Sheet::default();
    for name in names(DIRECTORY, ENDING) {
        let report = article(&name);
        let text = fs::read_to_string(testdata(&format!("{DIRECTORY}/{name}{ENDING}")))
            .expect("the listing is text");
        let gap = report.captures[0].quality.iter().find(|q| q.kind == "listing_gap");
        let wanted = name.contains(ABRIDGED).then(|| left_out(&text).unwrap_or(0));
        sheet.equal(&name, "packets left out", wanted, gap.map(|q| q.count));
        let connection = only(&report);
        sheet.clean(&name, "conservation", conserved(connection));
        for (side, direction) in connection.directions.iter().enumerate() {
            let Some(direction) = direction else { continue };
            let what = |what: &str| format!("{what} of side {side}");
            let repeated = direction.retransmitted;
            sheet.equal(&name, &what("retransmitted"), Retransmitted::default(), repeated);
            sheet.equal(&name, &what("lost"), 0, direction.events.lost);
            let repairs = REPAIRS.map(|state| direction.time_in.get(state).0);
            sheet.equal(&name, &what("time of repairs"), [0; 6], repairs);
        }
    }
    sheet.settle();
}

#[test]
fn the_dots_of_a_listing_are_gaps_and_not_pauses() {
    let mut sheet = Sheet::default();
    for name in names(DIRECTORY, ENDING).into_iter().filter(|name| name.contains(ABRIDGED)) {
        let report = article(&name);
        let server = download(only(&report));
        // A listing that hides most packets hides what the sender did between the lines.
        let gap = server.time_in.get(State::CaptureGap).0;
        let app = server.time_in.get(State::App).0 + server.time_in.get(State::IdleAppThink).0;
        let pause = if name.starts_with("two-writes") { 9_992_000_000 } else { 1_000_000 };
        sheet.holds(
            &name,
            "time in gaps",
            "some, where lines are missing",
            &format!("{:.3} ms", millis(gap)),
            gap > 0,
        );
        sheet.within(&name, "time of a silent application", &(0..=pause), Some(app));
        let wanted = if name.starts_with("two-writes") { 1_048_576 } else { 524_583 };
        sheet.equal(&name, "bytes", wanted, server.bytes);
    }
    sheet.settle();
}
