//! Applications: what their log says adds up, and errors say where they happened.

use std::net::TcpListener;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use serde_json::Value;
use tcpwhy_model::scenario::plan::{Accept, Flow, Host, HostChange, Plan, Socket, Step};

use crate::space::{Agent, download, inside, lines, plan, play, port};

/// Sum of a field over the lines of one side, connection and step.
fn sum(log: &[Value], who: &str, connection: u64, step: &str, field: &str) -> u64 {
    let lines = log.iter().filter(|line| {
        line["who"] == who && line["connection"] == connection && line["step"] == step
    });
    lines.map(|line| line[field].as_u64().expect("a number")).sum()
}

fn first<'a>(log: &'a [Value], who: &str, step: &str) -> &'a Value {
    log.iter().find(|line| line["who"] == who && line["step"] == step).expect("such a step")
}

#[test]
fn what_one_side_wrote_the_other_has_read() {
    inside(|folder| {
        let flow = Flow {
            connections: 3,
            gap_ns: 1_000_000,
            client: vec![
                Step::WriteHead(78),
                Step::ReadHead,
                Step::Repeat {
                    times: 4,
                    steps: vec![
                        Step::Write { bytes: 5000, chunk: 1400, pause_ns: 100_000 },
                        Step::Read { bytes: 30_000, chunk: 8192, pause_ns: 0 },
                    ],
                },
                Step::EndWriting,
                Step::ReadToEnd { chunk: 0, pause_ns: 0 },
            ],
            server: vec![
                Step::ReadHead,
                Step::WriteHead(100),
                Step::Repeat {
                    times: 4,
                    steps: vec![
                        Step::Read { bytes: 5000, chunk: 0, pause_ns: 0 },
                        Step::Sleep(2_000_000),
                        Step::Write { bytes: 30_000, chunk: 0, pause_ns: 0 },
                    ],
                },
                Step::ReadToEnd { chunk: 0, pause_ns: 0 },
                Step::Write { bytes: 777, chunk: 0, pause_ns: 0 },
            ],
            ..download(8080, 0)
        };
        let log = play(folder, flow, "127.0.0.1");
        for connection in 1..=3 {
            let bytes = |who, step| sum(&log, who, connection, step, "bytes");
            assert_eq!(bytes("client", "write"), 78 + 4 * 5000);
            assert_eq!(bytes("server", "read"), 78 + 4 * 5000);
            assert_eq!(bytes("server", "write"), 100 + 4 * 30_000 + 777);
            assert_eq!(bytes("client", "read"), 100 + 4 * 30_000 + 777);
            assert_eq!(sum(&log, "server", connection, "sleep", "asked_ns"), 8_000_000);
        }
        for line in &log {
            assert!(line["from"].as_u64() <= line["to"].as_u64(), "{line}");
        }
        let sleep = first(&log, "server", "sleep");
        let slept = sleep["to"].as_u64().expect("ns") - sleep["from"].as_u64().expect("ns");
        assert!(slept >= 2_000_000, "{slept}");
    });
}

#[test]
fn options_are_set_before_the_handshake_and_told_as_granted() {
    inside(|folder| {
        let small = Socket {
            sndbuf: Some(16_384),
            rcvbuf: Some(8192),
            congestion: Some("reno".to_owned()),
            nodelay: true,
            cork: true,
            notsent_lowat: Some(4096),
            max_pacing: Some(50_000_000),
            window_clamp: Some(30_000),
            ..Socket::default()
        };
        let flow =
            Flow { server_socket: small.clone(), client_socket: small, ..download(8080, 200_000) };
        let log = play(folder, flow, "::1");
        for (who, step) in [("server", "accept"), ("client", "connect")] {
            let socket = &first(&log, who, step)["socket"];
            assert_eq!(
                (&socket["asked_sndbuf"], &socket["sndbuf"]),
                (&16_384.into(), &32_768.into())
            );
            assert_eq!(
                (&socket["asked_rcvbuf"], &socket["rcvbuf"]),
                (&8192.into(), &16_384.into())
            );
            assert_eq!(socket["congestion"], "reno");
        }
        // The window of the SYN follows from the buffer, so the scale is small.
        assert_eq!(first(&log, "client", "tcp_info")["tcp_info"]["rcv_wscale"], 0);
        // 200,000 bytes do not fit into the buffer at once: the writer was put to sleep.
        let blocked = log.iter().any(|line| line["bytes"] == 200_000 && line["sleeps"] != 0);
        assert!(blocked, "{log:?}");
        assert_eq!(sum(&log, "client", 1, "read", "bytes"), 200_100);
    });
}

#[test]
fn with_fast_open_the_second_connection_carries_data_in_its_syn() {
    inside(|folder| {
        // Of this network alone.
        std::fs::write("/proc/sys/net/ipv4/tcp_fastopen", "3").expect("a network of our own");
        let open = Socket { fast_open: true, ..Socket::default() };
        let flow = Flow {
            connections: 2,
            server_socket: open.clone(),
            client_socket: open,
            ..download(8080, 1000)
        };
        let log = play(folder, flow, "127.0.0.1");
        let options = log
            .iter()
            .filter(|line| line["who"] == "client" && line["step"] == "tcp_info")
            .map(|line| line["tcp_info"]["options"].as_u64().expect("bits") & SYN_DATA);
        assert_eq!(options.collect::<Vec<_>>(), [0, SYN_DATA]);
    });
}

#[test]
fn a_host_changes_and_forgets_its_peers_at_its_time() {
    inside(|folder| {
        play(folder, download(8080, 200_000), "127.0.0.1");
        let remembered = || {
            let told = Command::new("ip").args(["tcp_metrics", "show"]).output();
            let told = told.expect("iproute2 is installed").stdout;
            String::from_utf8_lossy(&told).contains("127.0.0.1")
        };
        assert!(remembered());
        let sysctl = |value: &str| [("net.ipv4.tcp_sack".to_owned(), value.to_owned())].into();
        let changes = vec![
            HostChange { sysctl: sysctl("0"), flush_metrics: true, ..HostChange::default() },
            // Long after the agent is told to end.
            HostChange { at_ns: 3_600_000_000_000, sysctl: sysctl("1"), flush_metrics: false },
        ];
        let server = Host { changes, ..Host::default() };
        let plan = Plan { server, ..Plan::default() };
        let path = folder.join("changes.json");
        std::fs::write(&path, serde_json::to_vec(&plan).expect("JSON")).expect("a folder");
        let path = path.display().to_string();
        let sack = || std::fs::read_to_string("/proc/sys/net/ipv4/tcp_sack").expect("a setting");
        // The client's host does not change.
        Agent::ready(&["changes", "--plan", &path, "--side", "client"]).output();
        assert!(remembered() && sack().trim() == "1");
        let agent = Agent::ready(&["changes", "--plan", &path, "--side", "server"]);
        let late = Instant::now() + Duration::from_secs(10);
        while (remembered() || sack().trim() != "0") && Instant::now() < late {
            std::thread::sleep(Duration::from_millis(5));
        }
        agent.stop();
        assert!(!remembered(), "it was told to forget");
        assert_eq!(sack().trim(), "0");
    });
}

/// `TCPI_OPT_SYN_DATA` (Linux `include/uapi/linux/tcp.h`).
const SYN_DATA: u64 = 32;

#[test]
fn a_reset_is_an_end_if_the_peers_steps_say_so() {
    inside(|folder| {
        let flow = Flow {
            server: vec![Step::ReadHead, Step::WriteHead(50), Step::Sleep(20_000_000), Step::Reset],
            ..download(8080, 0)
        };
        let log = play(folder, flow, "127.0.0.1");
        assert!(log.iter().any(|line| line["who"] == "server" && line["step"] == "reset"));
        assert!(log.iter().any(|line| line["who"] == "client" && line["step"] == "was_reset"));
    });
}

/// The words by which one side plays its part of a plan.
fn side<'a>(plan: &'a str, side: &'a str, log: &'a str) -> [&'a str; 9] {
    ["app", "--plan", plan, "--side", side, "--address", "127.0.0.1", "--log", log]
}

/// How the server of this flow complains, while the client plays its part.
fn complaint(folder: &Path, flow: Flow) -> String {
    let plan = plan(folder, flow);
    let log = folder.join("log").display().to_string();
    let server = Agent::start(&side(&plan, "server", &log));
    // Whatever the client says: here the server's error is looked at.
    std::thread::sleep(Duration::from_millis(100));
    let client = Agent::start(&side(&plan, "client", &log));
    let (well, complaint) = server.end_by_itself();
    assert!(!well);
    drop(client);
    complaint
}

#[test]
fn an_error_names_flow_side_connection_and_step() {
    inside(|folder| {
        let read = Step::Read { bytes: 100, chunk: 0, pause_ns: 0 };
        let short = Flow {
            client: vec![Step::WriteHead(78), Step::EndWriting],
            server: vec![Step::ReadHead, Step::Repeat { times: 2, steps: vec![read] }],
            ..download(8080, 0)
        };
        assert_eq!(
            complaint(folder, short),
            "tcpwhy-agent: flow 0, server, connection 1, step 2.1 (read 100 bytes): the peer ended \
             its stream after 0 of 100 bytes\n"
        );
        let refused = Flow {
            server_socket: Socket { congestion: Some("nosuch".to_owned()), ..Socket::default() },
            ..download(8080, 0)
        };
        let said = complaint(folder, refused);
        assert!(
            said.contains("flow 0, server, connection 0: cannot listen on 127.0.0.1:8080"),
            "{said}"
        );
        assert!(said.contains("congestion control nosuch"), "{said}");
        let silent = Flow {
            server_socket: Socket { backlog: Some(1), ..Socket::default() },
            server: vec![Step::Write { bytes: 1 << 40, chunk: 0, pause_ns: 0 }],
            ..download(8080, 0)
        };
        let said = complaint(folder, silent);
        assert!(
            said.contains("step 1: writes of 1099511627776 bytes at a time; at most"),
            "{said}"
        );
        let last = Flow { server: vec![Step::Reset, Step::Drain], ..download(8080, 0) };
        let said = complaint(folder, last);
        assert!(said.contains("flow 0, server: step 1: nothing can follow a reset"), "{said}");
        let last = Flow { server: vec![Step::KeepOpen, Step::Drain], ..download(8080, 0) };
        let said = complaint(folder, last);
        assert!(said.contains("step 1: nothing can follow what stays open"), "{said}");
    });
}

#[test]
fn a_taken_port_and_a_missing_peer_end_the_run() {
    inside(|folder| {
        let plan = plan(folder, download(8080, 1));
        let log = folder.join("log").display().to_string();
        let run = |who| Agent::start(&side(&plan, who, &log)).end_by_itself();
        let (_, said) = run("client");
        assert!(
            said.contains("connection 1: cannot connect to 127.0.0.1:8080: Connection refused"),
            "{said}"
        );
        let _taken = TcpListener::bind("127.0.0.1:8080").expect("a fresh network");
        let (_, said) = run("server");
        assert!(said.contains("cannot listen on 127.0.0.1:8080: Address already in use"), "{said}");
    });
}

#[test]
fn who_is_told_to_end_saves_its_log() {
    inside(|folder| {
        let plan = plan(folder, download(8080, 1));
        let log = folder.join("log");
        let path = log.display().to_string();
        let server = Agent::ready(&side(&plan, "server", &path));
        server.signal(libc::SIGTERM);
        let (well, said) = server.end_by_itself();
        assert!(!well);
        assert!(
            said.contains("told to end by a signal; 1 of 1 connections were not done"),
            "{said}"
        );
        assert_eq!(lines(&log)[0]["step"], "listen");
    });
}

fn ns(line: &Value, key: &str) -> u64 {
    line[key].as_u64().expect("ns")
}

#[test]
fn connections_may_come_together_and_wait_to_be_accepted() {
    inside(|folder| {
        let flow = Flow {
            connections: 4,
            together: true,
            accept: Accept::After(1_500_000_000),
            client: vec![Step::Write { bytes: 10, chunk: 0, pause_ns: 0 }, Step::ReadHead],
            server: vec![Step::Read { bytes: 10, chunk: 0, pause_ns: 0 }, Step::WriteHead(40)],
            ..download(8080, 0)
        };
        let log = play(folder, flow, "127.0.0.1");
        let of = |step: &str| log.iter().filter(|line| line["step"] == step).collect::<Vec<_>>();
        let listened = ns(of("listen")[0], "to");
        let (connected, accepted) = (of("connect"), of("accept"));
        assert_eq!((connected.len(), accepted.len()), (4, 4));
        let before = |line: &&Value| ns(line, "to") < listened + 1_500_000_000;
        assert!(connected.iter().all(before), "no connection waits for another");
        assert!(!accepted.iter().any(before), "{accepted:?}");
    });
}

#[test]
fn a_connection_that_may_fail_ends_nothing() {
    inside(|folder| {
        let flow = Flow { connections: 2, may_fail: true, ..download(8080, 1) };
        let plan = plan(folder, flow);
        let log = folder.join("log");
        let path = log.display().to_string();
        let client = Agent::start(&side(&plan, "client", &path));
        assert_eq!(client.end_by_itself(), (true, String::new()));
        let failed = lines(&log)
            .iter()
            .filter(|line| {
                line["failed"].as_str().is_some_and(|why| why.contains("Connection refused"))
            })
            .count();
        assert_eq!(failed, 2);
        let server = Agent::ready(&side(&plan, "server", &path));
        server.signal(libc::SIGTERM);
        assert_eq!(server.end_by_itself(), (true, String::new()), "it stays until the end");
    });
}

#[test]
fn what_is_kept_open_is_seen_by_a_look_until_the_application_ends() {
    inside(|folder| {
        let flow = Flow {
            connections: 3,
            client: vec![Step::Write { bytes: 78, chunk: 0, pause_ns: 0 }],
            server: vec![Step::Read { bytes: 8, chunk: 0, pause_ns: 0 }, Step::KeepOpen],
            ..download(8080, 1)
        };
        let plan = plan(folder, flow);
        let log = folder.join("log").display().to_string();
        let server = Agent::ready(&side(&plan, "server", &log));
        let client = Agent::start(&side(&plan, "client", &log));
        assert_eq!(client.end_by_itself(), (true, String::new()));
        let seen = folder.join("sockets").display().to_string();
        let look = Agent::start(&["sockets", "--at", "300000000", "--output", &seen]);
        assert_eq!(look.end_by_itself(), (true, String::new()));
        let text = std::fs::read_to_string(&seen).expect("a snapshot");
        let snapshot: Value = serde_json::from_str(&text).expect("JSON");
        let sockets = snapshot["looks"][0]["sockets"].as_array().expect("a list");
        let kept = sockets.iter().filter(|one| one["state"] == "CLOSE_WAIT");
        // 70 bytes are unread, and the FIN.
        let unread: Vec<_> = kept.map(|one| one["receive_queue"].as_u64()).collect();
        assert_eq!(unread, [Some(71); 3], "{sockets:?}");
        server.signal(libc::SIGTERM);
        assert_eq!(server.end_by_itself(), (true, String::new()), "all its connections were done");
    });
}

#[test]
fn ports_of_tests_do_not_meet() {
    assert_ne!(port(0), port(1));
}
