//! Whole runs in a simulated kernel: the path does what the plan says, and does it again.
//!
//! Skipped, with the reason, where no kernel is built; `make uml` builds one.

#![expect(clippy::unwrap_used, clippy::print_stderr, reason = "tests")]

mod common;

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use common::{Packet, packets};
use tcpwhy_linux::lab::backend::{Backend, LabError, Manifest};
use tcpwhy_linux::lab::uml::{Uml, cache, kernels};
use tcpwhy_model::scenario::plan::{
    Change, Egress, Flow, Loss, Path as Route, Plan, Queue, Records, Step, TokenBucket, Way,
};

const MS: u64 = 1_000_000;

/// 512 KiB after a request, at a round trip of 6 ms and 1 Gbit/s.
fn download() -> Plan {
    let way = Way { rate: 1_000_000_000, delay_ns: 3 * MS, ..Way::default() };
    Plan {
        scenario: "slow-start".to_owned(),
        seed: 1,
        path: Route { down: way.clone(), up: way, changes: vec![] },
        flows: vec![Flow {
            port: 80,
            connections: 1,
            client: vec![Step::WriteHead(78), Step::ReadToEnd { chunk: 65_536, pause_ns: 0 }],
            server: vec![Step::ReadHead, Step::Write { bytes: SIZE, chunk: SIZE, pause_ns: 0 }],
            ..Flow::default()
        }],
        records: Records { snap_length: 128, middle: true, tcp_info_every_ns: 0 },
        limit_ns: 120_000 * MS,
        tail_ns: 1000 * MS,
        ..Plan::default()
    }
}

const SIZE: u64 = 512 << 10;

fn down(change: impl FnOnce(&mut Way)) -> Plan {
    let mut plan = download();
    change(&mut plan.path.down);
    plan
}

/// The backend, or why the test is skipped.
fn uml(version: Option<&str>) -> Option<Uml> {
    let uml = Uml::new(version);
    match uml.check(&download()) {
        Ok(()) => Some(uml),
        Err(why) => {
            let required = std::env::var_os("TCPWHY_REQUIRE_ALL").is_some_and(|v| v == "1");
            assert!(!required, "{why}");
            eprintln!("skipped: {why}");
            None
        }
    }
}

struct Run {
    folder: tempfile::TempDir,
    manifest: Manifest,
}

impl Run {
    fn of(uml: &Uml, plan: &Plan) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let manifest = uml.run(plan, folder.path()).unwrap_or_else(|e| panic!("{e}"));
        assert!(manifest.valid, "{:?}", manifest.problems);
        Self { folder, manifest }
    }

    fn bytes(&self, name: &str) -> Vec<u8> {
        fs::read(self.folder.path().join(name)).unwrap()
    }

    fn packets(&self, tap: &str) -> Vec<Packet> {
        packets(&self.bytes(&format!("{tap}.pcapng")))
    }

    /// Data from the server at a tap.
    fn data(&self, tap: &str) -> Vec<Packet> {
        self.packets(tap).into_iter().filter(|p| p.source_port == 80 && p.payload > 0).collect()
    }

    /// Bytes of data that came together, apart from the next by more than a millisecond.
    fn bursts(&self) -> Vec<u64> {
        let mut bursts: Vec<(u64, u64)> = vec![];
        for packet in self.data("server") {
            match bursts.last_mut() {
                Some((last, bytes)) if packet.at - *last < MS => {
                    *last = packet.at;
                    *bytes += packet.payload;
                }
                _ => bursts.push((packet.at, packet.payload)),
            }
        }
        bursts.into_iter().map(|(_, bytes)| bytes).collect()
    }

    /// From the first packet to the last data at the client.
    fn lasted_ns(&self) -> u64 {
        let all = self.packets("client");
        self.data("client").last().unwrap().at - all.first().unwrap().at
    }
}

#[test]
fn the_same_run_is_the_same_to_the_byte_on_every_boot() {
    let Some(uml) = uml(None) else { return };
    let mut plan = down(|w| w.loss = Loss::Random(10_000));
    // Even where a burst arrives at one instant.
    (plan.path.down.rate, plan.path.up.rate) = (0, 0);
    let (first, again) = (Run::of(&uml, &plan), Run::of(&uml, &plan));
    for file in ["client.pcapng", "server.pcapng", "middle.pcapng", "kernel.jsonl"] {
        assert!(first.bytes(file) == again.bytes(file), "{file} differs");
    }
}

const PSH: u8 = 8;

/// Both runs have the same packets at the same times, counted from the first of each. PSH marks
/// where the application's writes met the segments, which a microsecond can shift.
fn assert_same_packets(a: &[Packet], b: &[Packet], within_ns: u64) {
    let relative = |p: &Packet, all: &[Packet]| {
        let first = all.iter().find(|f| f.source_port == p.source_port).unwrap();
        (p.source_port == 80, p.seq.wrapping_sub(first.seq), p.payload, p.flags & !PSH)
    };
    assert_eq!(a.len(), b.len());
    for (x, y) in a.iter().zip(b) {
        assert_eq!(relative(x, a), relative(y, b));
        let apart = (x.at - a[0].at).abs_diff(y.at - b[0].at);
        assert!(apart < within_ns, "{apart} ns apart at {}: {x:?} {y:?}", x.at - a[0].at);
    }
}

#[test]
fn observing_changes_no_packet() {
    let Some(uml) = uml(None) else { return };
    for plan in [download(), down(|w| w.loss = Loss::Exact(vec![7, 8, 50, 51, 90]))] {
        let (observed, stock) = (Run::of(&uml, &plan), Run::of(&uml.clone().stock(), &plan));
        for tap in ["client", "server", "middle"] {
            // Each look of the observing kernel reads the clock, which moves simulated time by 256 ns:
            // by 69 us at most in these runs of 6.1, 4 us of 6.12. So each way is compared by
            // itself: which of two packets that cross comes first may change.
            for port_is_80 in [true, false] {
                let one_way = |run: &Run| -> Vec<Packet> {
                    let all = run.packets(tap).into_iter();
                    all.filter(|p| (p.source_port == 80) == port_is_80).collect()
                };
                assert_same_packets(&one_way(&observed), &one_way(&stock), 100_000);
            }
        }
        let seen =
            |run: &Run| String::from_utf8(run.bytes("kernel.jsonl")).unwrap().contains("tcp_truth");
        assert!(seen(&observed) && !seen(&stock));
    }
}

#[test]
fn records_of_kernel_sockets_and_counters_come_home() {
    let Some(uml) = uml(None) else { return };
    let mut plan = down(|w| w.loss = Loss::Exact(vec![30]));
    plan.records.tcp_info_every_ns = 10 * MS;
    let run = Run::of(&uml, &plan);
    let text = |name| String::from_utf8(run.bytes(name)).unwrap();
    let kernel = text("kernel.jsonl");
    for event in ["tcp_probe", "tcp_retransmit_skb", "tcp_truth", "tcp_segment", "qdisc_backlog"] {
        assert!(kernel.contains(&format!("\"event\":\"{event}\"")), "{event}");
    }
    assert!(kernel.contains("\"where\":\"xmit\",\"why\":\"cwnd\""), "slow start waits for cwnd");
    let info = text("tcp_info.jsonl");
    assert!(
        info.contains("\"local\":\"10.0.1.1:80\"") && info.contains("\"peer\":\"10.0.1.1:80\"")
    );
    let stamps: Vec<_> = info.lines().map(|l| &l[..24]).collect();
    assert!(stamps.is_sorted());
    let counters: serde_json::Value = serde_json::from_slice(&run.bytes("counters.json")).unwrap();
    assert_eq!(counters["server"]["after"]["counters"]["Tcp"]["RetransSegs"], 1);
    assert_eq!(counters["server"]["before"]["counters"]["Tcp"]["RetransSegs"], 0);
}

#[test]
fn slow_start_is_the_same_packet_for_packet_whatever_the_seed() {
    let Some(uml) = uml(None) else { return };
    let first = Run::of(&uml, &download());
    assert_eq!(first.bursts(), [14_480, 28_960, 57_920, 115_840, 231_680, 75_408]);
    for seed in [2, 3] {
        let again = Run::of(&uml, &Plan { seed, ..download() });
        let (a, b) = (first.packets("server"), again.packets("server"));
        assert_ne!(a[0].seq, b[0].seq, "the seed chooses the initial sequence numbers");
        assert_same_packets(&a, &b, 50_000);
    }
}

#[test]
fn a_link_takes_its_time_for_each_packet_and_its_queue_overflows() {
    let Some(uml) = uml(None) else { return };
    let run = Run::of(
        &uml,
        &down(|w| {
            w.rate = 10_000_000;
            w.queue = Queue::Packets(20);
        }),
    );
    let seen = run.data("middle");
    // 1514 bytes at 10 Mbit/s are 1211.2 us; the kernel's clocks tick every 256 ns.
    for pair in seen.windows(2).filter(|p| p[0].payload == 1448 && p[1].payload == 1448) {
        assert!(pair[1].at - pair[0].at >= 1_210_700, "{} ns apart", pair[1].at - pair[0].at);
    }
    assert!(run.data("server").len() > seen.len(), "something was dropped");
    assert!(run.lasted_ns() > SIZE * 8 * 100, "not faster than the link");
}

#[test]
fn just_the_listed_packets_are_lost() {
    let Some(uml) = uml(None) else { return };
    for ipv6 in [false, true] {
        let plan = Plan { ipv6, ..down(|w| w.loss = Loss::Exact(vec![3, 20])) };
        let run = Run::of(&uml, &plan);
        let arrived: BTreeSet<_> = run.data("client").iter().map(|p| (p.seq, p.stamp)).collect();
        let lost: Vec<_> = run
            .data("middle")
            .iter()
            .enumerate()
            .filter(|(_, p)| !arrived.contains(&(p.seq, p.stamp)))
            .map(|(k, _)| k + 1)
            .collect();
        assert_eq!(lost, [3, 20], "IPv6: {ipv6}");
    }
}

#[test]
fn random_losses_follow_the_seed() {
    let Some(uml) = uml(None) else { return };
    let plan = |seed| Plan { seed, ..down(|w| w.loss = Loss::Random(20_000)) };
    let (first, again, other) =
        (Run::of(&uml, &plan(5)), Run::of(&uml, &plan(5)), Run::of(&uml, &plan(6)));
    assert!(first.bytes("server.pcapng") == again.bytes("server.pcapng"));
    let lost = |run: &Run| run.data("middle").len() - run.data("client").len();
    assert!((1..30).contains(&lost(&first)), "{} of 362", lost(&first));
    assert_ne!(first.lasted_ns(), other.lasted_ns());
}

#[test]
fn a_flipped_bit_is_noticed_by_the_receiver() {
    let Some(uml) = uml(None) else { return };
    let run = Run::of(&uml, &down(|w| w.corrupt = 20_000));
    // All arrive at the client's tap, and some are sent again.
    assert_eq!(run.data("middle").len(), run.data("client").len());
    assert!(run.data("server").len() > 363, "{}", run.data("server").len());
}

#[test]
fn some_packets_come_twice_and_some_are_overtaken() {
    let Some(uml) = uml(None) else { return };
    let twice = Run::of(&uml, &down(|w| w.duplicate = 50_000));
    assert!(twice.data("client").len() > twice.data("middle").len());
    let mixed = Run::of(
        &uml,
        &down(|w| {
            w.rate = 100_000_000;
            w.reorder = 50_000;
            w.reorder_ns = MS;
        }),
    );
    let overtaken = |tap| {
        let data = mixed.data(tap);
        data.windows(2).filter(|p| p[1].seq.wrapping_sub(p[0].seq).cast_signed() < 0).count()
    };
    assert!(overtaken("client") > overtaken("middle"));
}

#[test]
fn a_change_of_the_rate_is_seen_from_its_instant_on() {
    let Some(uml) = uml(None) else { return };
    let mut plan = down(|w| w.rate = 20_000_000);
    let slower = Way { rate: 2_000_000, ..plan.path.down.clone() };
    plan.path.changes = vec![Change { at_ns: 100 * MS, down: Some(slower), up: None }];
    let run = Run::of(&uml, &plan);
    let begin = run.packets("client")[0].at;
    for pair in run.data("middle").windows(2).filter(|p| p[0].payload + p[1].payload == 2896) {
        let (at, apart) = (pair[0].at - begin, pair[1].at - pair[0].at);
        if at > 110 * MS {
            assert!(apart > 6 * MS, "{apart} ns apart at {at}");
        }
    }
    assert!(run.lasted_ns() > 1000 * MS);
}

#[test]
fn hosts_with_cards_queues_and_distances() {
    let Some(uml) = uml(None) else { return };
    let mut offload = download();
    offload.server.offload = true;
    let run = Run::of(&uml, &offload);
    assert!(run.data("server").iter().any(|p| p.payload > 1448), "super-segments at the tap");
    assert!(run.data("middle").iter().all(|p| p.payload <= 1448), "and none behind the card");

    let mut far = download();
    far.server.stack_to_tap_ns = 2 * MS;
    let run = Run::of(&uml, &far);
    let seen = run.packets("server");
    let request = seen.iter().find(|p| p.source_port != 80 && p.payload > 0).unwrap();
    let first = run.data("server").first().cloned().unwrap();
    assert!((first.at - request.at).abs_diff(4 * MS) < 50_000, "twice the distance");

    for egress in [
        Egress::Fq,
        Egress::FqCodel,
        Egress::TokenBucket(TokenBucket { rate: 20_000_000, burst: 20_000, queue: 200_000 }),
        Egress::TokenBucket(TokenBucket { rate: 20_000_000, burst: 100_000, queue: 0 }),
    ] {
        let shaped = matches!(egress, Egress::TokenBucket(_));
        let mut plan = download();
        plan.server.egress = Some(egress);
        let run = Run::of(&uml, &plan);
        assert_eq!(run.lasted_ns() > 150 * MS, shaped, "{} ns", run.lasted_ns());
    }
}

#[test]
fn settings_routes_and_controls_reach_the_hosts() {
    let Some(uml) = uml(None) else { return };
    let mut plan = download();
    plan.server.route.insert("initcwnd".to_owned(), "30".to_owned());
    plan.client.sysctl.insert("net.ipv4.tcp_rmem".to_owned(), "4096 6291456 6291456".to_owned());
    plan.flows[0].server_socket.congestion = Some("bbr".to_owned());
    let run = Run::of(&uml, &plan);
    assert_eq!(run.bursts()[0], 30 * 1448);
    assert_eq!(run.manifest.knobs["client.net.ipv4.tcp_rmem"], "4096 6291456 6291456");
}

#[test]
fn what_fails_inside_is_told_outside_and_leaves_nothing_running() {
    let Some(uml) = uml(None) else { return };
    let mut plan = download();
    plan.client.sysctl.insert("net.ipv4.tcp_no_such_thing".to_owned(), "1".to_owned());
    let folder = tempfile::tempdir().unwrap();
    let error = uml.run(&plan, folder.path()).expect_err("no such setting").to_string();
    assert!(error.contains("no setting `net.ipv4.tcp_no_such_thing`"), "{error}");

    let folder = tempfile::tempdir().unwrap();
    let late = uml.within(Duration::ZERO).run(&download(), folder.path());
    assert!(matches!(late, Err(LabError::Ended { .. })), "{late:?}");
    assert!(soon(|| !somebody_works_in(folder.path())), "the guest is gone");
}

/// Whether a process has its working directory there.
fn somebody_works_in(folder: &Path) -> bool {
    let processes = fs::read_dir("/proc").unwrap().flatten();
    processes
        .filter_map(|p| fs::read_link(p.path().join("cwd")).ok())
        .any(|cwd| cwd.starts_with(folder))
}

/// Kills the process that runs a simulation, as one kills it by `kill -9`: this test, in a process
/// of its own, which the variable tells apart.
#[test]
fn killed_it_leaves_no_process() {
    const FOLDER: &str = "TCPWHY_TEST_FOLDER";
    let Some(uml) = uml(None) else { return };
    if let Some(folder) = std::env::var_os(FOLDER) {
        let mut plan = download();
        plan.flows[0].server.push(Step::Sleep(1 << 50));
        plan.records.tcp_info_every_ns = MS;
        plan.limit_ns = 1 << 51;
        let ended = uml.run(&plan, Path::new(&folder));
        panic!("it ended: {ended:?}");
    }
    let folder = tempfile::tempdir().unwrap();
    let mut run = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "killed_it_leaves_no_process"])
        .env(FOLDER, folder.path())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    assert!(soon(|| somebody_works_in(folder.path())), "it runs");
    run.kill().unwrap();
    run.wait().unwrap();
    assert!(soon(|| !somebody_works_in(folder.path())), "nothing of it runs any more");
}

/// Whether something comes true within half a minute.
fn soon(what: impl Fn() -> bool) -> bool {
    (0..3000).any(|_| {
        std::thread::sleep(Duration::from_millis(10));
        what()
    })
}

#[test]
fn every_kernel_there_is_shows_the_same_slow_start() {
    if uml(None).is_none() {
        return;
    }
    for kernel in kernels(&cache().unwrap()) {
        let run = Run::of(&Uml::new(Some(&kernel.name)), &download());
        assert_eq!(run.bursts()[..4], [14_480, 28_960, 57_920, 115_840], "{}", kernel.full);
    }
}

#[test]
fn what_no_simulated_kernel_can_do_is_refused_before_anything_starts() {
    let refused = |plan: Plan| Uml::new(None).check(&plan).expect_err("refused").to_string();
    let mut plan = download();
    plan.flows[0].server_socket.congestion = Some("prague".to_owned());
    let text = refused(plan);
    assert!(
        text.contains("`server.socket.congestion` = \"prague\"") && text.contains("cubic"),
        "{text}"
    );
    let mut plan = download();
    plan.server.sysctl.insert("kernel.panic".to_owned(), "1".to_owned());
    assert!(refused(plan).contains("kernel.panic"));
    let mut plan = download();
    plan.server.route.insert("initcwmd".to_owned(), "1".to_owned());
    assert!(refused(plan).contains("initcwnd"));
    assert!(refused(Plan { limit_ns: 0, ..download() }).contains("limit"));
    let missing = Uml::new(Some("1.0")).check(&download()).expect_err("refused").to_string();
    assert!(missing.contains("make uml VERSIONS=1.0"), "{missing}");
}
