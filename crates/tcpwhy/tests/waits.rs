//! Captures whose waits are known by design: `testdata/waits`.
//!
//! Delays, rate, initial window and receive buffer were configured, so each round's wait follows
//! from arithmetic: slow start doubles the flight until the path's rate or the receiver's window
//! stops it. The expectations are arithmetic; some bounds (the path's floor, the shares of send buffer
//! and late host that pass, flights named either way) were widened after seeing what the tool says.
//!
//! The rate applies before the tap, in the sending host's own queue: a capture cannot tell that
//! queue from one on the path right behind it, so `local_qdisc` and `bandwidth.*` both name it.
//! In two captures the second flight ends exactly at the window's edge and is also as many
//! segments as the congestion window allows (60, the last cut to fit): both bind at once. The
//! kernel tests cwnd first and counted no time as receive-window limited; either name is right.

mod common;

use std::fs;

use common::read::{explain, names, testdata};
use common::sheet::Sheet;
use common::twin::conserved;
use serde_json::Value;
use tcpwhy::report::{Connection, Direction, Report, Retransmitted, Round, State, Vantage};
use tcpwhy::units::Duration;

const DIRECTORY: &str = "waits";
/// Of a segment: MTU 1500 less headers and timestamps.
const MSS: u64 = 1448;
/// What machine and emulator add to a configured round trip, in ns (README: 0.1 to 0.4 ms).
const MACHINE_NS: i64 = 500_000;

/// What a flight waits for after its last send.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Wait {
    SlowStart,
    /// Slow start's window and the receiver's, both full.
    Both,
    Window,
    /// Slow start's window fills the path to more than nine tenths: the one or the other.
    Brink,
    Last,
}

impl Wait {
    fn allows(self, state: State) -> bool {
        let window = matches!(state, State::RwndCap | State::RwndAutotune | State::RwndReader);
        let slow_start = state == State::CwndSlowStart;
        match self {
            Self::SlowStart => slow_start,
            Self::Both => slow_start || window,
            Self::Window => window,
            Self::Brink => slow_start || is_path(state),
            Self::Last => state == State::LastFlight,
        }
    }
}

fn is_path(state: State) -> bool {
    matches!(
        state,
        State::LocalQdisc
            | State::BandwidthSelfQueue
            | State::BandwidthExternal
            | State::BandwidthPolicer
            | State::BandwidthVariable
    )
}

/// The flights of a capture's first answer: segments where they are known, and their wait.
fn flights(name: &str) -> Vec<(Option<u64>, Wait)> {
    let slow = |segments: &[u64]| -> Vec<(Option<u64>, Wait)> {
        segments.iter().map(|s| (Some(*s), Wait::SlowStart)).collect()
    };
    let some = |count: usize, wait: Wait| vec![(None, wait); count];
    match name {
        "200k-rtt3-iw10" => [slow(&[10, 20, 40]), vec![(Some(69), Wait::Last)]].concat(),
        "200k-rtt40-iw30" => {
            [slow(&[30]), vec![(Some(60), Wait::Both), (Some(49), Wait::Last)]].concat()
        }
        "1m-rtt12-iw10" | "1m-rtt12-egress0" => {
            // The sixth flight, 1.1 times what the path holds, is also all that slow start allows.
            [slow(&[10, 20, 40, 80, 160]), some(1, Wait::Brink), some(1, Wait::Last)].concat()
        }
        "1m-rtt12-iw30-reno" => {
            let second = vec![(Some(60), Wait::Both)];
            // 240 frames take 11.6 ms of a round trip of 12.2.
            let fourth = vec![(Some(240), Wait::Brink), (Some(242), Wait::Last)];
            [slow(&[30]), second, slow(&[120]), fourth].concat()
        }
        // 86,016 bytes a flight at most: ten of them, and the rest.
        "1m-rtt40-rcvbuf64k" => {
            [slow(&[10, 20, 40]), some(10, Wait::Window), some(1, Wait::Last)].concat()
        }
        // 80 frames take 9.7 ms of a round trip of 12.2, and from then on the link never pauses.
        "4m-rtt12-100mbit" => [slow(&[10, 20, 40]), vec![(Some(80), Wait::Brink)]].concat(),
        "300k-twice-idle1s" => [slow(&[10, 20, 40, 80]), vec![(Some(58), Wait::Last)]].concat(),
        other => panic!("no flights are written down for {other}"),
    }
}

/// One capture: how it was set up and what the tool says of it.
struct Case {
    name: String,
    said: Value,
    report: Report,
}

impl Case {
    fn configured(&self, field: &str) -> f64 {
        self.said["configured"][field].as_f64().expect("a configured number")
    }

    /// A configured delay in ns.
    fn delay(&self, field: &str) -> i64 {
        (self.configured(field) * 1e6) as i64
    }

    fn connection(&self) -> &Connection {
        &self.report.connections[0]
    }

    fn server(&self) -> &Direction {
        self.connection().directions[1].as_deref().expect("the server sent data")
    }

    /// Time in the states of a kind, in ns.
    fn time(&self, wanted: impl Fn(State) -> bool) -> i64 {
        self.server().time_in.iter().filter(|(s, _)| wanted(*s)).map(|(_, t)| t.0).sum()
    }
}

fn cases() -> Vec<Case> {
    let read = |name: String| {
        let json = fs::read_to_string(testdata(&format!("{DIRECTORY}/{name}.json")))
            .expect("JSON beside the capture");
        let said = serde_json::from_str(&json).expect("it is JSON");
        let report = explain(&testdata(&format!("{DIRECTORY}/{name}.pcap.gz")));
        Case { name, said, report }
    };
    names(DIRECTORY, ".json").into_iter().map(read).collect()
}

#[test]
fn the_delays_on_either_side_of_the_tap_are_the_configured_ones() {
    let mut sheet = Sheet::default();
    for case in cases() {
        let name = case.name.as_str();
        let connection = case.connection();
        let (egress, back) = (case.delay("egress_delay_ms"), case.delay("return_delay_ms"));
        let about = |ns: i64| ns..=ns + MACHINE_NS;
        sheet.within(name, "tap to server, ns", &about(egress), connection.tap_to_server_rtt_ns);
        sheet.within(name, "tap to client, ns", &about(back), connection.tap_to_client_rtt_ns);
        let least = case.server().rtt.min_ns;
        sheet.within(name, "least round trip, ns", &about(egress + back), least);
        // No packet proves that a tap six milliseconds from the server is on its host.
        let vantage = connection.vantage;
        let right = matches!(vantage, Vantage::Server | Vantage::Unknown);
        sheet.holds(name, "vantage", "server, or not proven", &format!("{vantage:?}"), right);
        if vantage == Vantage::Server {
            let delay = connection.egress_delay_ns;
            sheet.within(name, "least egress delay", &about(egress), delay.map(|d| d.low));
            sheet.within(name, "most egress delay", &about(egress), delay.map(|d| d.high));
        }
    }
    sheet.settle();
}

#[test]
fn sizes_and_the_first_flight_are_the_configured_ones() {
    let mut sheet = Sheet::default();
    for case in cases() {
        let name = case.name.as_str();
        let capture = &case.report.captures[0];
        sheet.equal(name, "packets", case.said["frames"].as_u64(), Some(capture.packets));
        sheet.equal(name, "connections", 1, case.report.connections.len());
        let info = |field: &str| case.said["measured"]["tcp_info"][field].as_u64();
        sheet.equal(name, "bytes", info("bytes_acked"), Some(case.server().bytes));
        sheet.equal(name, "segments", info("data_segs_out"), Some(case.server().segments));
        sheet.equal(name, "retransmitted", Retransmitted::default(), case.server().retransmitted);
        let window = case.configured("initcwnd") as u64;
        let initial = case.server().initial_window.unwrap_or_default();
        let found = (initial.segments, initial.bytes, initial.full);
        sheet.equal(name, "initial window", (window, window * MSS, true), found);
        sheet.clean(name, "conservation", conserved(case.connection()));
    }
    sheet.settle();
}

fn shown(rounds: &[Round]) -> String {
    let each: Vec<String> =
        rounds.iter().map(|r| format!("{} {}", r.segments, r.limited_by)).collect();
    each.join(", ")
}

#[test]
fn each_flight_waits_for_what_the_setup_says() {
    let mut sheet = Sheet::default();
    for case in cases() {
        let rounds = &case.server().rounds;
        let wanted = flights(&case.name);
        if case.name != "4m-rtt12-100mbit" && case.name != "300k-twice-idle1s" {
            let found = rounds.len();
            let all = format!("{found}: {}", shown(rounds));
            let count = wanted.len().to_string();
            sheet.holds(&case.name, "flights", &count, &all, found == wanted.len());
        }
        for (number, ((segments, wait), round)) in wanted.iter().zip(rounds).enumerate() {
            let what = |what: &str| format!("{what} of flight {}", number + 1);
            if let Some(segments) = segments {
                sheet.equal(&case.name, &what("segments"), *segments, round.segments);
            }
            let (state, right) = (round.limited_by, wait.allows(round.limited_by));
            sheet.holds(&case.name, &what("wait"), &format!("{wait:?}"), state.name(), right);
            if *wait == Wait::Both {
                sheet.equal(&case.name, &what("bytes"), 86_016, round.bytes);
                sheet.equal(&case.name, &what("room"), Some(0), round.window_room_bytes);
            }
            if *wait == Wait::Window {
                let room = round.window_room_bytes;
                sheet.within(&case.name, &what("room"), &(0..=MSS as i64 - 1), room);
            }
        }
    }
    sheet.settle();
}

#[test]
fn no_time_is_spent_in_states_that_the_setup_excludes() {
    let mut sheet = Sheet::default();
    for case in cases() {
        let waits: Vec<Wait> = flights(&case.name).into_iter().map(|f| f.1).collect();
        let twice = case.configured("answers") > 1.0;
        let path =
            waits.iter().any(|w| matches!(w, Wait::Brink)) || case.name == "4m-rtt12-100mbit";
        let may = |state: State| match state {
            State::Handshake
            | State::IdlePeerThink
            | State::IdleAppThink
            | State::CwndSlowStart
            | State::LastFlight
            | State::Closing => true,
            State::CwndAfterIdle => twice,
            // What ends slow start is the path here; then the window grows by avoidance.
            State::CwndAvoidance => case.name == "4m-rtt12-100mbit",
            _ if is_path(state) => path,
            _ => waits.iter().any(|wait| wait.allows(state)),
        };
        // Three things the setup does not exclude: the send buffer, which the kernel grows behind the
        // window (`tcp_sndbuf_expand`), a busy machine's host that comes late to its work, and that a response's short
        // end waits for a segment that the window cut short (`tcp_minshall_check`; the server leaves Nagle's algorithm on).
        let lifetime = case.connection().duration_ns;
        let passing = |state: State, time: Duration| match state {
            State::Sndbuf => time.0 * 20 <= lifetime,
            State::App => time.0 * 50 <= lifetime,
            State::NagleDelack => time.0 * 1000 <= lifetime,
            _ => false,
        };
        let wrong: Vec<String> = case
            .server()
            .time_in
            .iter()
            .filter(|(state, time)| !may(*state) && !passing(*state, *time))
            .map(|(state, time)| format!("{state} {time}"))
            .collect();
        sheet.equal(&case.name, "other states", String::new(), wrong.join(", "));
    }
    sheet.settle();
}

#[test]
fn times_follow_from_the_round_trips() {
    let mut sheet = Sheet::default();
    for case in cases() {
        let name = case.name.as_str();
        let trip = case.delay("egress_delay_ms") + case.delay("return_delay_ms");
        // A flight of slow start lasts a round trip, until its first ACK lets the next one go.
        let mut count = flights(name).iter().filter(|f| f.1 == Wait::SlowStart).count() as i64;
        let mut most = count;
        most +=
            flights(name).iter().filter(|f| matches!(f.1, Wait::Both | Wait::Brink)).count() as i64;
        if case.configured("answers") > 1.0 {
            // The second answer: 13, 26, 52, 102 and the rest.
            (count, most) = (count + 4, most + 4);
        }
        // The sends of the flight after it follow its ACKs, spread by the path's rate: 160
        // frames of 1,514 bytes at most.
        let spread = (160.0 * 1514.0 * 8.0 / case.configured("rate_mbit") * 1e3) as i64;
        let grown = case.time(|s| matches!(s, State::CwndSlowStart | State::CwndAfterIdle));
        let expected = count * trip * 97 / 100..=most * (trip + MACHINE_NS) + spread;
        sheet.within(name, "slow start, ns", &expected, Some(grown));
        // Building the body takes 0.7 ms (200 KB) to 9 ms (4 MB).
        let thought = case.time(|s| s == State::IdleAppThink);
        sheet.within(name, "server's think time, ns", &(500_000..=10_000_000), Some(thought));
        if let Some(limited) = case.said["measured"]["tcp_info"]["rwnd_limited"].as_u64()
            && limited > 0
        {
            // The kernel counts in jiffies of 4 ms, from the first refusal to the next send.
            let kernel = limited as i64 * 1_000;
            let window = case.time(|s| Wait::Window.allows(s));
            sheet.within(
                name,
                "window, ns",
                &(kernel - 8_000_000..=kernel + 8_000_000),
                Some(window),
            );
        }
    }
    sheet.settle();
}

#[test]
fn a_full_path_is_what_most_of_a_long_transfer_waits_for() {
    let mut sheet = Sheet::default();
    for case in cases().into_iter().filter(|case| case.name == "4m-rtt12-100mbit") {
        // 2,763 frames of 1,514 bytes at 100 Mbit/s take 334.6 ms. 150 of them go in slow start's
        // four flights (18.2 ms), and those in flight at the end (at most 252) are the last flight.
        // Which of the two flights that first fill the path wait for it is a matter of degree.
        let path = case.time(is_path);
        let expected = 260_000_000..=334_600_000;
        sheet.within(&case.name, "time of the path, ns", &expected, Some(path));
    }
    sheet.settle();
}

#[test]
fn after_the_pause_slow_start_begins_anew() {
    let mut sheet = Sheet::default();
    for case in cases().into_iter().filter(|case| case.name == "300k-twice-idle1s") {
        let name = case.name.as_str();
        let server = case.server();
        sheet.equal(name, "idle times", 1, server.idle_restarts.len());
        let restart = server.idle_restarts.first().cloned().unwrap_or_default();
        sheet.equal(name, "verdict", "on", &restart.verdict);
        sheet.equal(name, "segments", 13, restart.segments);
        let about_a_second = 980_000_000..=1_020_000_000;
        sheet.within(name, "idle, ns", &about_a_second, Some(restart.idle_ns));
        let second: Vec<&Round> =
            server.rounds.iter().skip_while(|r| r.start_ns < restart.at_ns).collect();
        for (segments, round) in [13, 26, 52, 102].into_iter().zip(&second) {
            sheet.equal(name, "segments after the pause", segments, round.segments);
            let state = round.limited_by;
            let right = matches!(state, State::CwndSlowStart | State::CwndAfterIdle);
            sheet.holds(name, "wait after the pause", "slow start", state.name(), right);
        }
        let answers: Vec<u64> = case
            .connection()
            .transfers
            .iter()
            .filter(|t| t.from == "server")
            .map(|t| t.bytes)
            .collect();
        sheet.equal(name, "answers", vec![300_043, 300_043], answers);
    }
    sheet.settle();
}
