//! Recorders: captures beside tcpdump's as tshark reads both, tracepoints beside `TCP_INFO`.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::Value;
use tcpwhy_model::scenario::plan::{Flow, Step};

use crate::space::{Agent, download, inside, instances_of, lines, lossy, plan, play, port, tun};

/// What tshark reads of a file: time, length, kept length, ports and sequence numbers.
fn tshark(file: &Path) -> Vec<Vec<String>> {
    let fields = ["frame.time_epoch", "frame.len", "frame.cap_len", "tcp.srcport", "tcp.seq_raw"];
    let output = Command::new("tshark")
        .args(["-n", "-T", "fields"])
        .args(fields.iter().flat_map(|field| ["-e", field]))
        .arg("-r")
        .arg(file)
        .output()
        .expect("tshark is installed (scripts/setup test)");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}");
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    text.lines().map(|line| line.split('\t').map(str::to_owned).collect()).collect()
}

/// Nanoseconds of tshark's time, which is in seconds with nine decimals.
fn nanoseconds(time: &str) -> i128 {
    let (seconds, rest) = time.split_once('.').expect("a fraction");
    assert_eq!(rest.len(), 9, "nanoseconds in {time}");
    seconds.parse::<i128>().expect("s") * 1_000_000_000 + rest.parse::<i128>().expect("ns")
}

fn path(folder: &Path, name: &str) -> String {
    folder.join(name).display().to_string()
}

#[test]
fn a_capture_holds_what_tcpdump_sees_and_the_tail() {
    inside(|folder| {
        let (ours, theirs) = (folder.join("ours.pcapng"), folder.join("theirs.pcap"));
        let mut tcpdump = Command::new("tcpdump")
            .args(["-Z", "root", "-i", "lo", "-s", "100", "-n", "--nano", "--immediate-mode", "-w"])
            .arg(&theirs)
            .stderr(Stdio::piped())
            .spawn()
            .expect("tcpdump is installed (scripts/setup test)");
        // Its first words say that it listens.
        let mut said = [0; 20];
        tcpdump.stderr.as_mut().expect("a pipe").read_exact(&mut said).expect("it starts");
        let capture = Agent::ready(&[
            "capture",
            "--interface",
            "lo",
            "--snap-length",
            "100",
            "--output",
            &path(folder, "ours.pcapng"),
        ]);
        play(folder, download(8080, 3_000_000), "127.0.0.1");
        // Soon: what came last is still in the kernel.
        thread::sleep(GOODBYE);
        assert_eq!(capture.stop().1, "");
        thread::sleep(Duration::from_millis(300));
        stop(&mut tcpdump);

        // Each reads the processors' packets in its own order.
        let sorted = |mut packets: Vec<Vec<String>>| {
            packets.sort_by(|one, two| (&one[1..], &one[0]).cmp(&(&two[1..], &two[0])));
            packets
        };
        let (ours, theirs) = (sorted(tshark(&ours)), sorted(tshark(&theirs)));
        assert!(ours.len() > 20, "{}", ours.len());
        assert_eq!(ours.len(), theirs.len());
        for (our, their) in ours.iter().zip(&theirs) {
            assert_eq!(our[1..], their[1..]);
            let apart = nanoseconds(&our[0]) - nanoseconds(&their[0]);
            // Both are stamped at the same place, one after the other.
            assert!(apart.unsigned_abs() < u128::from(APART_NS), "{apart} ns apart");
        }
        // Super-packets have their own length, and just 100 bytes of them are kept.
        assert!(ours.iter().any(|our| our[1].parse::<u32>().is_ok_and(|length| length > 30_000)));
        assert!(ours.iter().all(|our| our[2].parse::<u32>().is_ok_and(|kept| kept <= 100)));
    });
}

/// The kernel may exchange the last segments after both processes have ended.
const GOODBYE: Duration = Duration::from_millis(30);

/// Two stamps of one event are this close, even if the processor is taken away between them.
const APART_NS: u64 = 200_000_000;

/// Asks a child to end, and waits for it.
fn stop(child: &mut std::process::Child) {
    let done = Command::new("kill").arg(child.id().to_string()).status();
    assert!(done.is_ok_and(|status| status.success()));
    child.wait().expect("a child of ours");
}

#[test]
fn a_filter_passes_chosen_ports_of_both_families_on_any_interface() {
    inside(|folder| {
        for address in ["127.0.0.1", "::1"] {
            let captures = [("lo", "lo.pcapng"), ("any", "any.pcapng")].map(|(interface, file)| {
                Agent::ready(&[
                    "capture",
                    "--interface",
                    interface,
                    "--port",
                    "8081",
                    "--port",
                    "9",
                    "--output",
                    &path(folder, file),
                ])
            });
            play(folder, download(8080, 10_000), address);
            let log = play(folder, download(8081, 10_000), address);
            for capture in captures {
                capture.stop();
            }
            let client = log.iter().rfind(|line| line["step"] == "connect").expect("a client");
            let local = client["socket"]["local"].as_str().expect("an address");
            let local = local.rsplit(':').next().expect("a port");
            for file in ["lo.pcapng", "any.pcapng"] {
                let seen = tshark(&folder.join(file));
                // Handshake, head, data and end, at least.
                assert!(seen.len() >= 9, "{file}: {} packets", seen.len());
                let ports = seen.iter().map(|line| line[3].as_str());
                assert!(ports.clone().all(|port| port == "8081" || port == local), "{file}");
                assert!(
                    ports.clone().any(|port| port == "8081") && ports.clone().any(|p| p == local)
                );
            }
        }
    });
}

#[test]
fn a_bounded_file_ends_the_capture_and_is_whole() {
    inside(|folder| {
        let file = folder.join("small.pcapng");
        let capture = Agent::ready(&[
            "capture",
            "--interface",
            "lo",
            "--snap-length",
            "200",
            "--max-bytes",
            "2500",
            "--output",
            &path(folder, "small.pcapng"),
        ]);
        play(folder, download(8080, 3_000_000), "127.0.0.1");
        assert_eq!(capture.end_by_itself(), (true, String::new()));
        let size = std::fs::metadata(&file).expect("a file").len();
        assert!((2000..=2500).contains(&size), "{size}");
        assert!(tshark(&file).len() > 5);
    });
}

#[test]
fn packets_of_a_tun_device_are_read_without_a_frame() {
    inside(|folder| {
        let mut device = tun("tun0");
        let capture = Agent::ready(&[
            "capture",
            "--interface",
            "tun0",
            "--port",
            "443",
            "--output",
            &path(folder, "tun.pcapng"),
        ]);
        // IPv4 with an option, so that its header is longer; then TCP from port 443.
        let mut packet = [0_u8; 64];
        packet[..4].copy_from_slice(&[0x46, 0, 0, 64]);
        packet[8..10].copy_from_slice(&[64, 6]);
        packet[12..20].copy_from_slice(&[10, 0, 0, 1, 10, 0, 0, 2]);
        packet[20..24].fill(1);
        packet[24..32].copy_from_slice(&[1, 187, 156, 64, 0, 0, 48, 57]);
        packet[36] = 0x50;
        device.write_all(&packet).expect("the device is up");
        // Another port, and a later fragment, whose first bytes are no ports.
        let mut other = packet;
        other[25] = 188;
        device.write_all(&other).expect("the device is up");
        let mut fragment = packet;
        fragment[7] = 1;
        device.write_all(&fragment).expect("the device is up");
        assert_eq!(capture.stop().1, "");
        let seen = tshark(&folder.join("tun.pcapng"));
        assert_eq!(seen.len(), 1, "{seen:?}");
        assert_eq!(seen[0][1..], ["64", "64", "443", "12345"]);
    });
}

#[test]
fn an_interface_that_is_not_there_is_named() {
    inside(|folder| {
        let words = ["capture", "--interface", "eth7", "--output", &path(folder, "x")];
        let (well, said) = Agent::start(&words).end_by_itself();
        assert!(!well);
        assert!(said.contains("there is no interface eth7 in this network namespace"), "{said}");
    });
}

/// A transfer that loses packets: the server's log, the records of both methods, and how many
/// perf counts as lost.
fn lossy_transfer(folder: &Path, port: u16) -> ([Vec<Value>; 3], usize) {
    let flow = Flow {
        client: Vec::new(),
        server: vec![
            Step::Write { bytes: 12_000_000, chunk: 0, pause_ns: 0 },
            Step::EndWriting,
            Step::Drain,
        ],
        ..download(port, 0)
    };
    let plan = plan(folder, flow);
    let word = port.to_string();
    let traces = ["perf", "instance"].map(|method| {
        Agent::ready(&[
            "trace",
            "--port",
            &word,
            "--method",
            method,
            "--output",
            &path(folder, method),
        ])
    });
    let log = path(folder, "log");
    let words =
        ["app", "--plan", &plan, "--side", "server", "--address", "127.0.0.1", "--log", &log];
    let server = Agent::ready(&words);
    let mut client = TcpStream::connect(("127.0.0.1", port)).expect("the server is ready");
    lossy(&client, 8);
    let mut got = Vec::new();
    client.read_to_end(&mut got).expect("the whole stream");
    assert_eq!(got.len(), 12_000_000);
    assert_eq!(server.end_by_itself(), (true, String::new()));
    let [lost, none] = traces.map(|trace| {
        let (counts, complaints) = trace.stop();
        let counts: Value = serde_json::from_str(&counts).expect("JSON");
        let lost = counts["lost"].as_u64().expect("a number");
        assert_eq!(complaints.is_empty(), lost == 0, "{complaints}");
        assert_eq!(counts["odd"], 0);
        lost
    });
    assert_eq!(none, 0);
    (["log", "perf", "instance"].map(|name| lines(&folder.join(name))), lost as usize)
}

#[test]
fn tracepoints_count_the_retransmissions_that_tcp_info_counts() {
    inside(|folder| {
        let ([log, perf, instance], lost) = lossy_transfer(folder, port(1));
        let info = log.iter().find(|line| line["step"] == "tcp_info").expect("one connection");
        let total = info["tcp_info"]["total_retrans"].as_u64().expect("a number");
        assert!(total > 3, "{total} retransmissions");
        let of = |trace: &[Value], event: &str| {
            trace.iter().filter(|line| line["event"] == event).count() as u64
        };
        // The tracepoint fires for each buffer, of up to 64 KiB; TCP_INFO counts its segments.
        let mss = info["tcp_info"]["snd_mss"].as_u64().expect("a number");
        let buffers = of(&instance, "tcp_retransmit_skb");
        let most = buffers * 65_536_u64.div_ceil(mss);
        assert!((buffers..=most).contains(&total), "{buffers} buffers, {total} segments of {mss}");
        assert!(of(&perf, "tcp_probe") > 20);
        assert!(of(&perf, "tcp_cong_state_set") > 2);
        assert!(perf.is_sorted_by_key(|line| line["t"].as_u64()));
        // Both methods tell the same, apart from the stamp, which each takes for itself, and from
        // what Linux 6.18 counts and does not write by perf, however much room there is.
        let missing = without(&instance, &perf);
        assert!((lost..instance.len() / 3).contains(&missing), "{missing} missing, {lost} lost");
    });
}

/// How many of `all` are not in `some`. Each of `some` must be in `all`.
fn without(all: &[Value], some: &[Value]) -> usize {
    let mut left: Vec<(u64, Value)> = all.iter().cloned().map(stamped).collect();
    for (at, record) in some.iter().cloned().map(stamped) {
        let same =
            left.iter().position(|(then, one)| *one == record && at.abs_diff(*then) < APART_NS);
        left.remove(same.unwrap_or_else(|| panic!("only one method has {record}")));
    }
    left.len()
}

/// The stamp of a record, and the rest of it.
fn stamped(mut record: Value) -> (u64, Value) {
    (record["t"].take().as_u64().expect("ns"), record)
}

#[test]
fn what_found_no_room_is_counted() {
    inside(|folder| {
        let port = port(3);
        let word = port.to_string();
        let traces =
            [("instance", "4096"), ("perf", "4"), ("instance", "4")].map(|(method, room)| {
                let output = path(folder, &format!("{method}-{room}"));
                let words =
                    ["--port", &word, "--method", method, "--room", room, "--output", &output];
                Agent::ready(&[&["trace"], words.as_slice()].concat())
            });
        let exchange = vec![
            Step::Write { bytes: 1000, chunk: 0, pause_ns: 0 },
            Step::Read { bytes: 1000, chunk: 0, pause_ns: 0 },
        ];
        let mirrored = exchange.iter().rev().cloned().collect();
        let flow = Flow {
            client: vec![Step::Repeat { times: 1000, steps: exchange }],
            server: vec![Step::Repeat { times: 1000, steps: mirrored }],
            ..download(port, 0)
        };
        play(folder, flow, "127.0.0.1");
        thread::sleep(GOODBYE);
        let [all, by_perf, by_instance] = traces.map(|trace| {
            let counts: Value = serde_json::from_str(&trace.stop().0).expect("JSON");
            ["records", "lost"].map(|name| counts[name].as_u64().expect("a number"))
        });
        assert!(all[0] > 4000 && all[1] == 0, "{all:?}");
        assert!(by_perf[1] > 0 && by_instance[1] > 0, "{by_perf:?} {by_instance:?} of {all:?}");
        // To the last one it cannot be: an event that fires while another is recorded is passed
        // over, and what is overwritten while it is read may count twice.
        for some in [by_perf, by_instance] {
            let apart = (some[0] + some[1]).abs_diff(all[0]);
            assert!(apart <= all[0] / 100, "{some:?} of {all:?}");
        }
    });
}

#[test]
fn a_killed_trace_leaves_no_instance() {
    inside(|folder| {
        let word = port(2).to_string();
        let trace = Agent::ready(&[
            "trace",
            "--port",
            &word,
            "--method",
            "instance",
            "--output",
            &path(folder, "x"),
        ]);
        let id = trace.id();
        // A thread of its own, because it enters a mount namespace.
        let there = move || thread::spawn(move || instances_of(id)).join().expect("tracefs");
        assert_eq!(there(), [format!("tcpwhy-{id}-0")]);
        trace.signal(libc::SIGKILL);
        assert!(!trace.end_by_itself().0);
        let late = Instant::now() + Duration::from_secs(10);
        while !there().is_empty() {
            assert!(Instant::now() < late, "the instance stays");
            thread::sleep(Duration::from_millis(20));
        }
    });
}

#[test]
fn an_unknown_event_is_named_before_anything_starts() {
    inside(|folder| {
        let words = ["trace", "--event", "tcp_nosuch", "--output", &path(folder, "x")];
        let (well, said) = Agent::start(&words).end_by_itself();
        assert!(!well);
        assert!(said.contains("this kernel has no event tcp/tcp_nosuch"), "{said}");
    });
}

#[test]
fn sockets_are_looked_at_again_and_again_and_counters_differ() {
    inside(|folder| {
        let output = Agent::start(&["counters"]).output();
        std::fs::write(folder.join("before"), output).expect("a folder");
        let infos = Agent::ready(&[
            "tcp-info",
            "--every",
            "5000000",
            "--port",
            "8080",
            "--output",
            &path(folder, "infos"),
        ]);
        let mut flow = download(8080, 1_000_000);
        flow.server.insert(2, Step::Sleep(300_000_000));
        let log = play(folder, flow, "127.0.0.1");
        infos.stop();
        let infos = lines(&folder.join("infos"));
        let established: Vec<_> = infos.iter().filter(|line| line["state"] == "ESTAB").collect();
        // Both ends, during 300 ms, every 5 ms, are 120; a tenth of it, because machines are busy.
        assert!(established.len() >= 12, "{}", established.len());
        let client = log.iter().find(|line| line["step"] == "connect").expect("a client");
        let of_client = established.iter().find(|line| line["local"] == client["socket"]["local"]);
        let info = of_client.expect("the client's socket");
        assert_eq!(info["congestion"], client["socket"]["congestion"]);
        assert_eq!(info["mem"]["rcvbuf"], client["socket"]["rcvbuf"]);
        assert_eq!(info["info"]["state"], 1);

        let grown = Agent::start(&["counters", "--since", &path(folder, "before")]).output();
        let grown: Value = serde_json::from_str(&grown).expect("JSON");
        assert_eq!(grown["counters"]["Tcp"]["ActiveOpens"], 1);
        assert_eq!(grown["counters"]["Tcp"]["PassiveOpens"], 1);
    });
}
