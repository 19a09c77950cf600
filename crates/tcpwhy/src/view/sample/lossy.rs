//! Uploads that lost data, made by hand: one of two causes, and a window like a saw.

use super::{accounted, connection, frames, limits, ms, report, transfer};
use crate::report::{
    Cwnd, Direction, Events, FrameRange, InFlightAtLoss, LossPattern, LossToldBy, Rate, Report,
    Retransmission, Retransmitted, Round, Rtt, Skipped, SlowStartExit, State, Strip, Vantage,
    WindowScaling,
};

/// 40 MiB uploaded over IPv6 with losses; the shares of two causes cannot be told apart.
#[expect(clippy::too_many_lines, reason = "a tape of data, read from top to bottom")]
pub(in super::super) fn lossy() -> Report {
    let lifetime = ms(21_400);
    let mut connection =
        connection(7, "[2001:470:1f0b::15]:52144", "[2a00:1450:4001:80b::201b]:443", lifetime);
    connection.packets = 31_022;
    connection.frames = frames(12, 40_210);
    connection.vantage = Vantage::Client;
    connection.handshake_rtt_ns = Some(ms(38));
    connection.tap_to_server_rtt_ns = Some(ms(38));
    connection.mss = Some(1_428);
    connection.window_scaling = WindowScaling::Used;
    connection.sender_stack[0].name = "linux".into();
    let mut up = accounted(limits(&[
        (State::SynRetry, ms(1_020), frames(12, 13), "the SYN was repeated after 1.02 s"),
        (State::Handshake, ms(1_058), frames(13, 15), ""),
        (
            State::CwndSlowStart,
            ms(1_400),
            frames(16, 900),
            "F = cwnd, the round trip is at its least",
        ),
        (State::RecoveryLoss, ms(1_500), frames(901, 1_204), "14 segments repeated after SACK"),
        (
            State::CwndPostLoss,
            ms(12_000),
            frames(1_205, 20_100),
            "F = cwnd = 41 segments, half of 82",
        ),
        (State::RtoWait, ms(12_700), frames(20_101, 20_102), "nothing for 0.7 s, then una again"),
        (State::CwndPostLoss, ms(20_000), frames(20_103, 38_000), "F = cwnd = 24 segments"),
        (State::Sndbuf, ms(21_350), frames(38_001, 40_209), "F stays at 65,536 B for 30 rounds"),
        (State::Unknown, ms(21_400), frames(40_209, 40_210), "the capture ends in the round"),
    ]));
    up.limits[7].confidence = crate::report::Sure::Possible;
    up.limits[7].alternative = vec![State::AppWindow, State::CwndClamp];
    (up.bytes, up.bytes_sent, up.segments, up.frames) = (41_943_040, 42_201_508, 29_553, 29_553);
    up.max_in_flight_bytes = 180_000;
    up.retransmitted =
        Retransmitted { fast: 160, rto: 17, tlp: 4, spurious: 2, unnecessary: 0, syn: 1 };
    up.events = Events { lost: 179, duplicate_ack: 2_044, partial_ack: 31, ..Events::default() };
    up.rtt = Rtt {
        min_ns: Some(ms(38)),
        median_ns: Some(ms(39)),
        p95_ns: Some(ms(44)),
        method: "data to its ACK".into(),
        samples: 510,
    };
    up.slow_start_exit = Some(Box::new(SlowStartExit {
        at_ns: ms(1_400),
        cause: "loss".to_owned(),
        ssthresh: Some(41),
        measured_by: None,
    }));
    up.bottleneck_rate_bps = Some(96_400_000);
    up.bdp_bytes = Some(457_900);
    up.delivery_rate_bps = Some(Rate { median: 15_900_000, max: 37_200_000 });
    up.loss_pattern = Some(Box::new(LossPattern {
        kind: "congestion".to_owned(),
        told_by: LossToldBy::Flights,
        p_value: Some(0.003),
        episodes: 21,
        bursts: [9, 4, 3, 4, 1],
        period_ns: None,
        period_segments: None,
    }));
    let flights = [58_000, 61_000, 92_000, 117_000, 120_000];
    up.in_flight_at_loss =
        flights.map(|bytes| InFlightAtLoss { at_ns: ms(1_390), bytes, frame: None }).to_vec();
    for (at_ms, frame, originals) in [
        (1_430, 930, vec![871]),
        (1_431, 931, vec![]),
        (12_700, 20_102, vec![19_950, 19_951]),
        (15_950, 29_004, vec![28_877]),
    ] {
        let retransmission =
            Retransmission { at_ns: ms(at_ms), frame, originals, ..Retransmission::default() };
        up.retransmissions.push(retransmission);
    }
    connection.transfers = vec![transfer(
        "client",
        ms(1_058),
        ms(21_400),
        41_943_040,
        &[
            (State::CwndSlowStart, ms(342)),
            (State::RecoveryLoss, ms(100)),
            (State::CwndPostLoss, ms(17_800)),
            (State::RtoWait, ms(700)),
            (State::Sndbuf, ms(1_350)),
            (State::Unknown, ms(50)),
        ],
    )];
    connection.directions[0] = Some(Box::new(up));
    connection.duplicates = 3;
    let mut report = report("/home/ann/upload.pcapng", 40_210, vec![connection]);
    report.captures[0].tcp_segments = 31_022;
    report.captures[0].error = Some(
        "record 40211 at byte 3,801,004 claims 2,150,000,000 bytes: the file is damaged there"
            .into(),
    );
    let skipped = Skipped { reason: "not TCP".to_owned(), count: 9_188 };
    report.captures[0].skipped.push(skipped);
    report
}

/// A long upload in 400 rounds of 50 ms: the window grows by a segment and halves at a loss.
pub(in super::super) fn saw() -> Report {
    let mut connection = connection(0, "10.0.0.1:50000", "10.0.0.2:5001", ms(20_000));
    let (mut up, mut total, mut cwnd) = (Direction::default(), 0_u64, 20_u64);
    for at in 0..400_i64 {
        let lost = cwnd == 60;
        cwnd = if lost { 30 } else { cwnd + 1 };
        let (start_ns, bytes) = (ms(at * 50), cwnd * 1_448);
        if lost {
            let seq = total as i64;
            up.retransmissions.push(Retransmission { at_ns: start_ns, seq, ..Default::default() });
        }
        total += bytes;
        up.rounds.push(Round {
            start_ns,
            bytes,
            segments: cwnd,
            rtt_ns: Some(ms(50)),
            window_room_bytes: Some(600_000),
            cwnd: Cwnd { low: None, high: None, best: Some(cwnd) },
            cwnd_measured_by: None,
            limited_by: State::CwndAvoidance,
            in_flight_bytes: bytes,
            delivery_rate_bps: None,
            bdp_bytes: None,
            frames: FrameRange::default(),
        });
    }
    (up.bytes, up.strip) = (total, Strip::of_runs([(State::CwndAvoidance, 512)]));
    connection.directions[0] = Some(Box::new(up));
    report("saw.pcap", 1, vec![connection])
}
