//! A report in which every field holds something.
//!
//! Written out without `..Default::default()`. So a new field of the report does not compile until
//! it is here. Then it does not validate until it is in the schema.

use std::collections::BTreeMap;

use tcpwhy::report::{
    Answers, Beside, CallsIn, Capture, Ceiling, CeilingKind, ClearError, Command,
    CongestionControl, Connection, Cwnd, Damage, Direction, Early, EarlyKind, End, Ending,
    EndingKind, Events, Evidence, Exchange, FORMAT, FailedPeer, Failure, FailureKind, Finding,
    FrameRange, Gain, Http, IcmpErrors, IdleRestart, InFlightAtLoss, InitialWindow, Limit,
    LimitEvidence, Link, LinkRate, LongestCall, Lookup, LossPattern, LossToldBy, LostAt, LowHigh,
    Names, Part, Passed, PredictedBy, Prediction, Quality, QuotedPacket, Rate, Remedy, RepeatCause,
    Report, Reset, Retransmission, Retransmitted, Round, RoundRange, Rtt, RttJump,
    ScalingRefusedBy, SenderStack, Severity, ShutWithHole, Skipped, SlowStartExit, Spent, State,
    StuckSegment, Sure, Syn, TakenBack, TimeIn, Tls, TlsFlight, Totals, Transfer, Untaken, Vantage,
    WindowScaling, With,
};
use tcpwhy::units::Duration;

/// Every field filled, every list with an element, every state in `time_in` and the strip.
pub(crate) fn full() -> Report {
    Report {
        format: FORMAT.to_owned(),
        provisional: false,
        captures: vec![Capture {
            source: "download.pcap".to_owned(),
            packets: 120,
            tcp_segments: 118,
            icmp_errors: 1,
            skipped: vec![Skipped { reason: "not TCP over IP".to_owned(), count: 2 }],
            quality: vec![Quality {
                kind: "kernel_drops".to_owned(),
                count: 12,
                note: "12 packets dropped by the kernel".to_owned(),
            }],
            error: Some("the last record ends early".to_owned()),
            damage: Some(Damage { packet: 121, offset: 9000 }),
        }],
        with: vec![With {
            source: "sockets.txt".to_owned(),
            kind: "ss".into(),
            items: 12,
            connections: 1,
            notes: vec!["line 7 was passed over".to_owned()],
            error: Some("it is empty".to_owned()),
        }],
        command: Some(command()),
        lookups: vec![lookup()],
        icmp: vec![icmp()],
        findings: vec![finding()],
        attachments: BTreeMap::new(),
        totals: Totals {
            connections: 3,
            silent: 1,
            failed: 1,
            failures: vec![FailedPeer {
                server: "[2001:db8::129]:80".parse().expect("an address"),
                kind: FailureKind::RequestUnanswered,
                code: Some("TLS_ALERT".into()),
                connections: 1,
                longest_ns: 6_000_000_000,
                tries: 2,
            }],
            transfers: 4,
            bytes: 524_288,
            retransmitted: 2,
            time_in: every_state(),
            waited: every_state(),
        },
        connections: vec![connection()],
    }
}

fn command() -> Command {
    Command {
        program: "curl".to_owned(),
        start: "2026-11-21T10:45:49.031409000Z".to_owned(),
        duration_ns: 96_063_000,
        status: Some(0),
        signal: Some(15),
        spent: Spent {
            start_ns: 10_000_000,
            dns_ns: 10_000_000,
            connect_ns: 6_858_000,
            tls_ns: 7_000_000,
            request_ns: 7_000_000,
            server_ns: 149_000,
            transfer_ns: 45_000_000,
            rest_ns: 10_056_000,
        },
    }
}

fn icmp() -> IcmpErrors {
    let address = |text: &str| text.parse().expect("an address");
    IcmpErrors {
        kind: "too_big".into(),
        from: address("192.168.247.254"),
        to: address("192.168.247.130"),
        source: address("192.168.247.130"),
        source_port: Some(44_612),
        destination: Some(address("192.168.247.129")),
        destination_port: Some(80),
        about: Some("client".into()),
        mtu: Some(1_320),
        count: 1,
        start: "2026-11-21T10:45:49.061409000Z".to_owned(),
        first_ns: Some(10_000_000),
        last_ns: Some(10_000_000),
        frames: FrameRange { first: 12, last: 12 },
        quoted: vec![QuotedPacket {
            frame: 12,
            at_ns: Some(10_000_000),
            seq: Some(7),
            bytes: Some(1_500),
        }],
    }
}

fn lookup() -> Lookup {
    Lookup {
        name: "www.example.com".to_owned(),
        kind: "A".into(),
        client: "192.168.247.130:50000".parse().expect("an address"),
        resolver: "192.168.247.1:53".parse().expect("an address"),
        start: "2026-11-21T10:45:49.041409000Z".to_owned(),
        id: 4660,
        asked: 2,
        last_asked_ns: 5_000_000,
        duration_ns: Some(10_000_000),
        answer: Some("NOERROR".into()),
        addresses: vec!["2001:db8::129".parse().expect("an address")],
        frame: 1,
    }
}

fn failure() -> Failure {
    Failure {
        kind: FailureKind::RequestUnanswered,
        code: Some("TLS_ALERT".into()),
        waited_ns: 6_000_000_000,
        tries: 2,
        open: true,
    }
}

fn ending() -> Ending {
    Ending {
        kind: EndingKind::CutShort,
        from: "server".into(),
        since_ns: 57_000_000,
        until_ns: 60_000_000,
        bytes: 5_042,
        announced_bytes: Some(20_041),
        sent: 7,
        last_sent_ns: Some(59_000_000),
        heard_ns: Some(58_000_000),
        arrived_bytes: 1_448,
        later_came: true,
        nothing_missing: true,
        unheard_fins: 2,
        repeated: 3,
        open: true,
        frames: FrameRange { first: 80, last: 90 },
    }
}

#[expect(clippy::too_many_lines, reason = "a value for each field")]
fn connection() -> Connection {
    Connection {
        id: 0,
        stream: Some(0),
        client: "192.168.247.130:44612".parse().expect("an address"),
        server: "[2001:db8::129]:80".parse().expect("an address"),
        network: 0,
        client_name: Some("reader.example.com:44612".into()),
        server_name: Some("www.example.com:http".into()),
        names: Some(Box::new(Names {
            server: Some("www.example.com".to_owned()),
            server_by: Some("sni".into()),
            service: Some("http".into()),
            tls_version: Some("TLS 1.2".into()),
            alpn: Some("h2".to_owned()),
            alpn_offered: vec!["h2".to_owned()],
            programs: [Some("curl".to_owned()), None],
        })),
        start: "2026-11-21T10:45:49.051409000Z".to_owned(),
        duration_ns: 63_063_000,
        part: Some(Part {
            from_ns: 1_000_000,
            to_ns: 64_063_000,
            of_ns: 100_000_000,
            bytes: [Some(147), None],
        }),
        packets: 90,
        frames: FrameRange { first: 1, last: 90 },
        vantage: Vantage::Server,
        vantage_evidence: "replies of 192.168.247.130 come late".to_owned(),
        tap_to_client_rtt_ns: Some(3_272_000),
        tap_to_server_rtt_ns: Some(3_586_000),
        egress_delay_ns: Some(LowHigh { low: 3_200_000, high: 3_600_000 }),
        handshake_rtt_ns: Some(6_858_000),
        mss: Some(1_448),
        window_scaling: WindowScaling::Used,
        window_scaling_refused_by: Some(ScalingRefusedBy::Device),
        window_scaling_note: Some("refused by a nearer device".to_owned()),
        syns: [Some(syn()), Some(syn())],
        sender_stack: [stack(), stack()],
        end: End::Fin,
        reset: Some(Reset {
            by: "server".into(),
            at_ns: 60_000_000,
            frame: 88,
            after_fin: [true, false],
            unacked_bytes: [0, 14_480],
            refused_syn: Some(3_211_642_075),
        }),
        failure: Some(Box::new(failure())),
        ending: Some(Box::new(ending())),
        icmp: vec![icmp()],
        directions: [Some(Box::new(direction())), Some(Box::new(direction()))],
        transfers: vec![Transfer {
            from: "server".into(),
            start_ns: 10_339_000,
            end_ns: 56_171_000,
            bytes: 524_583,
            time_in: every_state(),
            rounds: Some(RoundRange { first: 0, last: 6 }),
        }],
        exchanges: vec![Exchange {
            request: 0,
            response: Some(1),
            think_ns: Some(3_332_000),
            server_think_ns: Some(107_000),
            first_byte_ns: Some(3_332_000),
            total_ns: Some(49_164_000),
            early: Some(Early {
                kind: EarlyKind::Undecided,
                start_ns: 11_000_000,
                records: 2,
                bytes: 510,
                first_byte_ns: 3_400_000,
                server_think_ns: 175_000,
                or_server_think_ns: Some(107_000),
            }),
            http: Some(Box::new(Http {
                method: "GET".into(),
                target: "/report".to_owned(),
                status: Some(200),
            })),
        }],
        tls: Some(Tls {
            start_ns: 7_000_000,
            end_ns: Some(20_000_000),
            flights: vec![TlsFlight {
                from: "client".to_owned(),
                start_ns: 7_000_000,
                bytes: 517,
                records: vec!["handshake".to_owned()],
            }],
        }),
        answer: "Slow start took most of it.".to_owned(),
        clear_errors: vec![ClearError {
            kind: "tls_alert".into(),
            by: "server".into(),
            at_ns: 8_000_000,
            frame: 6,
            code: 70,
            name: "protocol_version".into(),
            level: "fatal".into(),
            times: 1,
        }],
        untaken: Some(Untaken {
            from_ns: 6_900_000,
            data_ns: Some(7_000_000),
            to_ns: Some(9_000_000),
            repeats: 2,
            syn_acks: 1,
            last_syn_ack_ns: Some(8_500_000),
        }),
        findings: vec![finding()],
        beside: vec![beside()],
        duplicates: 3,
        truncated: false,
    }
}

fn syn() -> Syn {
    Syn {
        sent: 2,
        seq: 3_211_642_075,
        mss: Some(1_460),
        window_scale: Some(7),
        window: 64_240,
        sack: true,
        timestamps: true,
        ecn: true,
        fast_open: Some(8),
        payload: 147,
        acked: Some(147),
        fillers: 4,
    }
}

fn stack() -> SenderStack {
    SenderStack {
        name: "linux".into(),
        evidence: "order of options".into(),
        timestamp_tick_ns: Some(1_000_000),
    }
}

fn every_state() -> TimeIn {
    let mut time_in = TimeIn::default();
    for state in State::all() {
        time_in.add(state, Duration(1_000));
    }
    time_in
}

#[expect(clippy::too_many_lines, reason = "a value for each field")]
fn direction() -> Direction {
    Direction {
        bytes: 524_583,
        bytes_sent: 526_031,
        segments: 364,
        frames: 60,
        retransmitted: Retransmitted {
            fast: 1,
            rto: 2,
            tlp: 3,
            spurious: 4,
            unnecessary: 5,
            syn: 6,
        },
        events: Events {
            zero_window: 1,
            zero_window_probe: 2,
            window_full: 3,
            window_update: 4,
            keep_alive: 5,
            duplicate_ack: 6,
            partial_ack: 7,
            out_of_order: 8,
            ecn_echo: 9,
            lost: 10,
            damaged: 12,
            doubled: 13,
            not_captured: 11,
        },
        rtt: Rtt {
            min_ns: Some(6_858_000),
            median_ns: Some(7_000_000),
            p95_ns: Some(7_300_000),
            method: "timestamps, as the sender saw it".into(),
            samples: 7,
        },
        max_in_flight_bytes: 232_600,
        delivery_rate_bps: Some(Rate { median: 33_000_000, max: 254_000_000 }),
        bottleneck_rate_bps: Some(941_000_000),
        shared_link_rate_bps: Some(9),
        bdp_bytes: Some(806_000),
        rounds: vec![round()],
        limits: vec![limit()],
        time_in: every_state(),
        strip: State::all().collect(),
        initial_window: Some(InitialWindow {
            segments: 10,
            bytes: 14_480,
            full: true,
            cut_by_syns: true,
        }),
        congestion_control: Some(CongestionControl { name: "cubic".into(), rounds: 12 }),
        slow_start_exit: Some(Box::new(SlowStartExit {
            at_ns: 40_000_000,
            cause: "hystart_delay".to_owned(),
            ssthresh: Some(161),
            measured_by: Some(0),
        })),
        idle_restarts: vec![IdleRestart {
            at_ns: 10_000_000_000,
            idle_ns: 9_980_000_000,
            verdict: "on".to_owned(),
            reason: "the first burst is one initial window".to_owned(),
            segments: 10,
            bytes: 13_984,
            cwnd_before: Some(77),
        }],
        in_flight_at_loss: vec![InFlightAtLoss { at_ns: 5, bytes: 65_160, frame: Some(17) }],
        loss_pattern: Some(Box::new(LossPattern {
            kind: "random".to_owned(),
            told_by: LossToldBy::Link,
            p_value: Some(0.25),
            episodes: 3,
            bursts: [3, 0, 0, 0, 0],
            period_ns: Some(200_000_000),
            period_segments: Some(100),
        })),
        retransmissions: vec![Retransmission {
            at_ns: 6,
            frame: 40,
            seq: 4_294_968_000,
            bytes: 1_448,
            cause: RepeatCause::Fast,
            spurious: false,
            originals: vec![17],
            lost: Some(LostAt::BehindLink),
        }],
        burst_proven_bytes: Some(104_256),
        link: Some(Box::new(Link {
            rate_bps: LinkRate { low: 19_900_000, best: 20_000_000, high: 20_100_000 },
            varies: true,
            busy_ns: 9,
            whole_ns: 10,
            floor_ns: 8,
            full_ns: 7,
            lost_before: 2,
            lost_full: 1,
            lost_behind: 3,
            lost_elsewhere: 1,
            before_tap: true,
            proven: true,
            // Not part of the contract.
            busy: Vec::new(),
            full: Vec::new(),
        })),
        // Not part of the contract.
        passed: Passed::default(),
        answers: Answers::default(),
        trail: None,
        stuck_segment: Some(Box::new(StuckSegment {
            bytes: 1_448,
            sent: 4,
            from_ns: 7,
            to_ns: 8,
            arrived_bytes: 200,
            passed_bytes: Some(1_024),
            peer_heard: true,
            frames: FrameRange { first: 6, last: 18 },
        })),
        window_taken_back: Some(TakenBack { bytes: 50_601, window_bytes: 79, over_bytes: 11_000 }),
        shut_with_hole: Some(ShutWithHole {
            acks: 3,
            with_hole: 2,
            missing_bytes: 602,
            held_bytes: 41_586,
        }),
        ceilings: vec![Ceiling {
            kind: CeilingKind::ReceiveWindow,
            rate_bps: 75_000_000,
            met_ns: 13_926_000,
            proven: true,
        }],
        rtt_jumps: vec![RttJump {
            at_ns: 9,
            rtt_ns: 120_000_000,
            before_ns: 20_000_000,
            data_late_ns: 0,
            ack_late_ns: Some(100_000_000),
            frame: 40,
        }],
    }
}

fn round() -> Round {
    Round {
        start_ns: 7_007_000,
        bytes: 14_480,
        segments: 10,
        rtt_ns: Some(7_074_000),
        window_room_bytes: Some(-1),
        cwnd: Cwnd { low: Some(10), high: Some(10), best: Some(10) },
        cwnd_measured_by: Some(0),
        limited_by: State::CwndSlowStart,
        in_flight_bytes: 14_480,
        delivery_rate_bps: Some(16_000_000),
        bdp_bytes: Some(14_000),
        frames: FrameRange { first: 6, last: 10 },
    }
}

fn limit() -> Limit {
    Limit {
        start_ns: 0,
        end_ns: 63_063_000,
        state: State::RwndCap,
        confidence: Sure::Likely,
        alternative: vec![State::RwndAutotune, State::Unknown],
        evidence: LimitEvidence {
            text: "46,080 B = 360 * 128: the window's edge".to_owned(),
            frames: FrameRange { first: 17, last: 20 },
            filter: "frame.number>=17 && frame.number<=20".to_owned(),
        },
    }
}

fn beside() -> Beside {
    Beside {
        source: 0,
        side: "client".into(),
        quantity: "calls".into(),
        verdict: "no_call".into(),
        unit: "ns".into(),
        measured: Some(10_300_000),
        estimated: Some(10_000_000),
        from_ns: Some(1_000_000),
        to_ns: Some(11_300_000),
        text: "no call explains it".to_owned(),
        calls: Some(Box::new(CallsIn {
            count: 29,
            waiting_ns: 100_000,
            working_ns: 1_200_000,
            outside_ns: 1_600_000,
            left_out_ns: 7_400_000,
            longest: Some(LongestCall {
                name: "write".to_owned(),
                target: Some("/srv/rcv.dat".to_owned()),
                took_ns: 140_000,
                whole_ns: 150_000,
            }),
        })),
    }
}

fn finding() -> Finding {
    Finding {
        code: "slow-start".to_owned(),
        severity: Severity::Wrong,
        title: "Slow start took 45 % of the transfer".to_owned(),
        why: "four round trips waited for ACKs".to_owned(),
        not: "not loss: nothing was repeated".to_owned(),
        evidence: vec![Evidence {
            from_ns: 7_007_000,
            to_ns: 21_328_000,
            frames: FrameRange { first: 6, last: 16 },
            filter: "frame.number>=6 && frame.number<=16".to_owned(),
            text: "10, 20 segments".to_owned(),
        }],
        cost_ns: 28_353_000,
        of_ns: 63_063_000,
        gain: Some(Gain {
            low_ns: 33_000_000,
            best_ns: 43_000_000,
            high_ns: 45_000_000,
            now_ns: 63_000_000,
            by: PredictedBy::Model,
        }),
        seen_in_ns: 28_353_000,
        remedies: vec![Remedy {
            who: "application".to_owned(),
            on: Some("client".to_owned()),
            what: "keep the connection open".to_owned(),
            command: Some("curl --keepalive-time 60".to_owned()),
            rollback: Some("none needed".to_owned()),
            knob: Some("net.ipv4.tcp_slow_start_after_idle".to_owned()),
            set: Some("server.sysctl.net.ipv4.tcp_slow_start_after_idle=0".to_owned()),
            predicted_ns: Some(Prediction {
                by: PredictedBy::Model,
                low: 18_000_000,
                best: 20_000_000,
                high: 30_000_000,
                now: 63_000_000,
            }),
        }],
        from: Some("server".into()),
        sure: Some(Sure::Likely),
        alternative: vec![State::Sndbuf],
        explained_by: Some("BOTTLENECK".into()),
    }
}
