//! Reports made by hand for the tests of the views: realistic ones, one situation each.

mod lossy;

use core::net::SocketAddr;

use crate::report::{
    Capture, Connection, Cwnd, Direction, End, Exchange, FORMAT, FrameRange, IdleRestart,
    InitialWindow, Limit, LimitEvidence, LowHigh, Quality, Rate, Report, Retransmitted, Round,
    RoundRange, Rtt, SenderStack, State, TimeIn, Tls, TlsFlight, Totals, Transfer, Vantage,
    WindowScaling,
};
pub(super) use lossy::{lossy, saw};
use tcpwhy_words::units::Duration;

/// Nanoseconds of a number of microseconds.
const fn us(us: i64) -> i64 {
    us * 1_000
}

/// Nanoseconds of a number of milliseconds.
const fn ms(ms: i64) -> i64 {
    us(ms * 1_000)
}

fn address(text: &str) -> SocketAddr {
    text.parse().expect("an address of a test")
}

const fn frames(first: u64, last: u64) -> FrameRange {
    FrameRange { first, last }
}

/// A connection about which nothing is known but its ends and its span.
pub(crate) fn connection(id: u64, client: &str, server: &str, duration_ns: i64) -> Connection {
    Connection {
        id,
        stream: Some(id),
        client: address(client),
        server: address(server),
        network: 0,
        client_name: None,
        server_name: None,
        names: None,
        start: "2026-11-21T10:45:49.051409000Z".to_owned(),
        duration_ns,
        part: None,
        packets: 0,
        frames: FrameRange::default(),
        vantage: Vantage::Unknown,
        vantage_evidence: String::new(),
        tap_to_client_rtt_ns: None,
        tap_to_server_rtt_ns: None,
        egress_delay_ns: None,
        handshake_rtt_ns: None,
        mss: None,
        window_scaling: WindowScaling::HandshakeNotSeen,
        window_scaling_refused_by: None,
        window_scaling_note: None,
        sender_stack: [SenderStack::default(), SenderStack::default()],
        end: End::Open,
        reset: None,
        failure: None,
        icmp: Vec::new(),
        directions: [None, None],
        transfers: Vec::new(),
        exchanges: Vec::new(),
        syns: [None; 2],
        tls: None,
        clear_errors: Vec::new(),
        answer: String::new(),
        untaken: None,
        ending: None,
        findings: Vec::new(),
        beside: Vec::new(),
        duplicates: 0,
        truncated: false,
    }
}

pub(super) fn report(source: &str, packets: u64, connections: Vec<Connection>) -> Report {
    let capture =
        Capture { source: source.to_owned(), packets, tcp_segments: packets, ..Capture::default() };
    Report {
        format: FORMAT.to_owned(),
        provisional: false,
        captures: vec![capture],
        with: Vec::new(),
        command: None,
        lookups: Vec::new(),
        icmp: Vec::new(),
        findings: Vec::new(),
        attachments: std::collections::BTreeMap::new(),
        totals: Totals::of(&connections),
        connections,
    }
}

pub(crate) fn time_in(rows: &[(State, i64)]) -> TimeIn {
    let mut time_in = TimeIn::default();
    for (state, ns) in rows {
        time_in.add(*state, Duration(*ns));
    }
    time_in
}

/// Intervals one after the other: state, end, frames, evidence.
fn limits(rows: &[(State, i64, FrameRange, &str)]) -> Vec<Limit> {
    let mut start_ns = 0;
    let mut limits = Vec::new();
    for &(state, end_ns, frames, text) in rows {
        let filter = format!("frame.number in {{{}..{}}}", frames.first, frames.last);
        let evidence = LimitEvidence { text: text.to_owned(), frames, filter };
        let alternative = Vec::new();
        limits.push(Limit {
            start_ns,
            end_ns,
            state,
            confidence: crate::report::Sure::Shown,
            alternative,
            evidence,
        });
        start_ns = end_ns;
    }
    limits
}

/// The totals and the strip that belong to a list of intervals.
fn accounted(limits: Vec<Limit>) -> Direction {
    let lifetime = limits.last().map_or(0, |limit| limit.end_ns);
    let rows: Vec<(State, i64)> =
        limits.iter().map(|limit| (limit.state, limit.end_ns - limit.start_ns)).collect();
    let at = |cell: i64| lifetime * cell / 512 + lifetime / 1024;
    let strip = (0..512)
        .filter_map(|cell| limits.iter().find(|limit| at(cell) < limit.end_ns))
        .map(|limit| limit.state)
        .collect();
    Direction { time_in: time_in(&rows), strip, limits, ..Direction::default() }
}

/// 512 KiB over HTTP, seen on the server behind 3 ms of delay; two of six waits are the window.
#[expect(clippy::too_many_lines, reason = "a tape of data, read from top to bottom")]
pub(super) fn worked_example() -> Report {
    use State::{CwndSlowStart, RwndAutotune};
    let mut connection = connection(0, "192.168.247.130:44612", "192.168.247.129:80", us(63_063));
    connection.start = "10:45:49.051409000".to_owned();
    connection.stream = None;
    connection.packets = 60;
    connection.frames = frames(1, 60);
    connection.vantage = Vantage::Server;
    connection.vantage_evidence = "frames above the MSS are acknowledged a round trip later".into();
    connection.egress_delay_ns = Some(LowHigh { low: us(3_200), high: us(3_600) });
    connection.handshake_rtt_ns = Some(us(6_858));
    connection.mss = Some(1_448);
    connection.window_scaling = WindowScaling::Used;
    connection.end = End::Fin;
    for stack in &mut connection.sender_stack {
        stack.name = "linux".into();
        stack.timestamp_tick_ns = Some(ms(1));
    }
    let mut down = accounted(limits(&[
        (State::Handshake, us(6_858), frames(1, 3), ""),
        (State::IdlePeerThink, us(7_007), frames(3, 4), "the request is awaited"),
        (
            CwndSlowStart,
            us(14_081),
            frames(6, 11),
            "14,480 B = 10 segments in flight, room 49,776 B",
        ),
        (
            CwndSlowStart,
            us(21_328),
            frames(12, 16),
            "28,960 B = 20 segments in flight, room 26,848 B",
        ),
        (
            RwndAutotune,
            us(28_091),
            frames(17, 21),
            "46,080 B = 360 * 128: the window's edge, room 0",
        ),
        (
            CwndSlowStart,
            us(34_822),
            frames(23, 30),
            "104,256 B = 72 segments in flight, room 13,120 B",
        ),
        (
            RwndAutotune,
            us(41_985),
            frames(35, 38),
            "78,720 B = 615 * 128: the window's edge again, the last segment cut to fit",
        ),
        (
            CwndSlowStart,
            us(49_286),
            frames(40, 47),
            "232,600 B = 161 segments in flight, room 56,808 B",
        ),
        (State::LastFlight, us(56_171), frames(53, 55), "19,487 B, everything is sent"),
        (State::Closing, us(63_063), frames(56, 60), "FIN each way"),
    ]));
    down.bytes = 524_583;
    down.bytes_sent = 524_583;
    down.segments = 364;
    down.frames = 31;
    down.events.window_full = 2;
    down.max_in_flight_bytes = 232_600;
    down.delivery_rate_bps = Some(Rate { median: 50_900_000, max: 254_900_000 });
    down.initial_window =
        Some(InitialWindow { segments: 10, bytes: 14_480, full: true, cut_by_syns: false });
    down.rtt = Rtt {
        min_ns: Some(us(6_731)),
        median_ns: Some(us(7_163)),
        p95_ns: Some(us(7_301)),
        method: "data to its ACK, in the sender's own time".into(),
        samples: 7,
    };
    down.rounds = worked_rounds();
    connection.directions[1] = Some(Box::new(down));
    let mut up = accounted(limits(&[
        (State::Handshake, us(6_858), frames(1, 3), ""),
        (State::IdleAppThink, us(7_007), frames(3, 4), ""),
        (State::LastFlight, us(10_232), frames(4, 5), ""),
        (State::Receiving, us(56_171), frames(6, 55), ""),
        (State::Closing, us(63_063), frames(56, 60), ""),
    ]));
    (up.bytes, up.bytes_sent, up.segments, up.frames) = (147, 147, 1, 1);
    up.max_in_flight_bytes = 147;
    connection.directions[0] = Some(Box::new(up));
    connection.transfers = vec![
        transfer("client", us(7_007), us(10_232), 147, &[(State::LastFlight, us(3_225))]),
        transfer(
            "server",
            us(7_007),
            us(56_171),
            524_583,
            &[
                (CwndSlowStart, us(28_353)),
                (RwndAutotune, us(13_926)),
                (State::LastFlight, us(6_885)),
            ],
        ),
    ];
    connection.transfers[1].rounds = Some(RoundRange { first: 0, last: 6 });
    connection.exchanges = vec![Exchange {
        request: 0,
        response: Some(1),
        think_ns: Some(us(3_332)),
        server_think_ns: Some(us(107)),
        first_byte_ns: Some(us(3_332)),
        total_ns: Some(us(49_164)),
        early: None,
        http: None,
    }];
    let mut report = report("download-512k-rtt7ms.tcpdump.txt", 60, vec![connection]);
    report.captures[0].quality.push(Quality {
        kind: "super_segments".to_owned(),
        count: 31,
        note: "frames above the MSS: the capture saw them before the network card cut them".into(),
    });
    report
}

pub(crate) fn transfer(
    from: &str,
    start_ns: i64,
    end_ns: i64,
    bytes: u64,
    rows: &[(State, i64)],
) -> Transfer {
    let time_in = time_in(rows);
    Transfer { from: from.to_owned().into(), start_ns, end_ns, bytes, time_in, rounds: None }
}

fn worked_rounds() -> Vec<Round> {
    let rows = [
        (7_007, 14_480, 10, 7_074, 49_776, 10, State::CwndSlowStart, frames(6, 10)),
        (14_081, 28_960, 20, 7_247, 26_848, 20, State::CwndSlowStart, frames(12, 15)),
        (21_328, 46_080, 32, 6_763, 0, 40, State::RwndAutotune, frames(17, 20)),
        (28_091, 104_256, 72, 6_731, 13_120, 72, State::CwndSlowStart, frames(23, 29)),
        (34_822, 78_720, 55, 7_163, 0, 144, State::RwndAutotune, frames(35, 37)),
        (41_985, 232_600, 161, 7_301, 56_808, 161, State::CwndSlowStart, frames(40, 46)),
        (49_286, 19_487, 14, 6_885, 361_825, 161, State::LastFlight, frames(53, 54)),
    ];
    rows.map(|(start, bytes, segments, rtt, room, cwnd, limited_by, frames)| Round {
        start_ns: us(start),
        bytes,
        segments,
        rtt_ns: Some(us(rtt)),
        window_room_bytes: Some(room),
        // The last flight proves no more than that the window held all that was left.
        cwnd: match limited_by {
            State::LastFlight => Cwnd { low: Some(cwnd), high: None, best: None },
            _ => Cwnd { low: Some(cwnd), high: Some(cwnd), best: Some(cwnd) },
        },
        cwnd_measured_by: None,
        limited_by,
        in_flight_bytes: bytes,
        delivery_rate_bps: Some(bytes * 8 * 1_000_000 / rtt as u64),
        bdp_bytes: Some(bytes),
        frames,
    })
    .to_vec()
}

/// A keep-alive connection: eight short requests, a server that thinks, a client that sleeps.
#[expect(clippy::too_many_lines, reason = "a tape of data, read from top to bottom")]
pub(super) fn keep_alive() -> Report {
    let mut connection = connection(0, "10.1.0.5:50100", "10.1.0.9:8443", ms(60_400));
    connection.packets = 71;
    connection.frames = frames(1, 71);
    connection.handshake_rtt_ns = Some(us(400));
    connection.mss = Some(1_448);
    connection.window_scaling = WindowScaling::Used;
    connection.end = End::Rst;
    let mut down = accounted(limits(&[
        (State::Handshake, us(400), frames(1, 3), ""),
        (State::IdlePeerThink, ms(50_000), frames(4, 60), "the client asks nothing"),
        (State::IdleAppThink, ms(60_300), frames(60, 70), "the request is acknowledged, no answer"),
        (State::LastFlight, us(60_300_400), frames(70, 71), ""),
        (State::Closing, ms(60_400), frames(71, 71), ""),
    ]));
    (down.bytes, down.bytes_sent, down.segments, down.frames) = (9_600, 9_600, 8, 8);
    down.rtt.min_ns = Some(us(380));
    down.rtt.method = "data to its ACK".into();
    down.initial_window =
        Some(InitialWindow { segments: 1, bytes: 1_200, full: false, cut_by_syns: false });
    down.idle_restarts.push(IdleRestart {
        at_ns: ms(10_000),
        idle_ns: ms(9_600),
        verdict: "not_applicable".to_owned(),
        reason: "one segment is less than any window".to_owned(),
        segments: 1,
        bytes: 1_200,
        cwnd_before: Some(10),
    });
    connection.directions[1] = Some(Box::new(down));
    let up = accounted(limits(&[
        (State::Handshake, us(400), frames(1, 3), ""),
        (State::IdleAppThink, ms(50_000), frames(4, 60), ""),
        (State::IdlePeerThink, ms(60_300), frames(60, 70), ""),
        (State::Closing, ms(60_400), frames(71, 71), ""),
    ]));
    connection.directions[0] = Some(Box::new(Direction { bytes: 3_200, segments: 8, ..up }));
    for at in 0..8_i64 {
        let (start, think) = (ms(at * 6_000) + us(400), ms(1_287));
        let ack = us(400);
        connection.transfers.push(transfer(
            "client",
            start,
            start + ack,
            400,
            &[(State::LastFlight, ack)],
        ));
        let answered = start + think;
        let rows = [(State::LastFlight, ack)];
        connection.transfers.push(transfer("server", answered, answered + ack, 1_200, &rows));
        connection.exchanges.push(Exchange {
            request: at as u64 * 2,
            response: Some(at as u64 * 2 + 1),
            think_ns: Some(think),
            server_think_ns: Some(think - ack),
            first_byte_ns: Some(think),
            total_ns: Some(think + ack),
            early: None,
            http: None,
        });
    }
    let flight = |from: &str, at_us, bytes, records: &[&str]| TlsFlight {
        from: from.to_owned(),
        start_ns: us(at_us),
        bytes,
        records: records.iter().map(|&record| record.to_owned()).collect(),
    };
    connection.tls = Some(Tls {
        start_ns: us(410),
        end_ns: Some(us(2_900)),
        flights: vec![
            flight("client", 410, 517, &["handshake"]),
            flight(
                "server",
                1_800,
                3_870,
                &["handshake", "change_cipher_spec", "application_data"],
            ),
        ],
    });
    report("keepalive.pcap", 71, vec![connection])
}

/// Two seconds out of the middle of a transfer, one direction only: little can be said.
pub(super) fn midway() -> Report {
    let mut connection = connection(3, "172.16.4.2:33820", "172.16.9.1:5432", ms(2_000));
    connection.packets = 812;
    connection.frames = frames(1, 900);
    let mut down = accounted(limits(&[
        (State::Unknown, ms(1_500), frames(1, 700), "no ACK of this direction was captured"),
        (State::CaptureGap, ms(1_700), frames(700, 701), "the capture dropped about 90 segments"),
        (State::Unknown, ms(2_000), frames(701, 900), "no ACK of this direction was captured"),
    ]));
    (down.bytes, down.bytes_sent, down.segments, down.frames) = (1_150_000, 1_150_000, 812, 812);
    down.events.not_captured = 90;
    down.rtt.method = "no ACK, no timestamp".into();
    connection.directions[1] = Some(Box::new(down));
    connection.transfers = vec![transfer(
        "server",
        0,
        ms(2_000),
        1_150_000,
        &[(State::Unknown, ms(1_800)), (State::CaptureGap, ms(200))],
    )];
    connection.truncated = true;
    let mut report = report("-", 812, vec![connection]);
    report.provisional = true;
    report.captures[0].quality.push(Quality {
        kind: "capture_drops".to_owned(),
        count: 90,
        note: "segments were acknowledged or passed by but are missing here".to_owned(),
    });
    report
}

/// `number` connections: a few slow ones among short requests, some without data.
pub(super) fn many(number: u64) -> Report {
    let connections = (0..number).map(|id| {
        let client = format!("10.2.{}.{}:{}", id / 200 % 200, id % 200 + 1, 40_000 + id % 20_000);
        let slow = id % 17 == 3;
        let lasted = if slow { ms(400 + id as i64 % 900) } else { us(5_200 + id as i64 % 700) };
        let mut each = connection(id, &client, "10.0.0.80:443", lasted);
        if id % 11 == 5 {
            return each;
        }
        let state = if id % 34 == 3 { State::RtoWait } else { State::CwndSlowStart };
        let held = if slow { lasted - us(3_000) } else { us(1_000) };
        let rows = [
            (State::Handshake, us(1_000)),
            (state, held),
            (State::Closing, lasted - held - us(1_000)),
        ];
        let bytes = if slow { 180_000 } else { 2_048 };
        each.transfers =
            vec![transfer("server", us(1_000), us(1_000) + held, bytes, &[(state, held)])];
        each.directions[1] = Some(Box::new(Direction {
            bytes,
            time_in: time_in(&rows),
            retransmitted: Retransmitted { rto: u64::from(id % 34 == 3), ..Default::default() },
            ..Direction::default()
        }));
        each
    });
    let connections = connections.collect();
    report("shorts.pcap", number * 12, connections)
}
