//! What a run is: the same on every boot, complete in its records, gone when it ends or is killed.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use tcpwhy_linux::lab::backend::{Backend as _, LabError};
use tcpwhy_linux::lab::uml::{Uml, cache, kernels};
use tcpwhy_model::scenario::plan::{HostChange, Loss, Plan, Step};

use crate::packets::Packet;
use crate::run::{MS, Run, down, download, uml};

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
fn observing_changes_no_packet_in_any_kernel_there_is() {
    if uml(None).is_none() {
        return;
    }
    let plans = [download(), down(|w| w.loss = Loss::Exact(vec![7, 8, 50, 51, 90]))];
    for (kernel, plan) in
        kernels(&cache().unwrap()).iter().flat_map(|k| plans.iter().map(move |p| (k, p)))
    {
        let uml = Uml::new(Some(&kernel.name));
        let (observed, stock) = (Run::of(&uml, plan), Run::of(&uml.clone().stock(), plan));
        for tap in ["client", "server", "middle"] {
            // To the nanosecond, for a look at the clock takes no simulated time.
            assert_same_packets(&observed.packets(tap), &stock.packets(tap), 1);
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

    let mut plan = download();
    let sysctl = [("net.ipv4.tcp_no_such_thing".to_owned(), "1".to_owned())].into();
    plan.server.changes = vec![HostChange { sysctl, ..HostChange::default() }];
    let folder = tempfile::tempdir().unwrap();
    let error = uml.run(&plan, folder.path()).expect_err("no such setting").to_string();
    assert!(
        error.contains("what changes the server failed: this kernel has no setting"),
        "{error}"
    );

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

/// Whether a simulated kernel somewhere in `folder` has written down its number (`umid`, `create_pid_file`).
fn has_begun(folder: &Path) -> bool {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    entries.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir())).any(|entry| {
        let path = entry.path();
        path.join("pid").is_file() || has_begun(&path)
    })
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
        .args(["--exact", "backend::killed_it_leaves_no_process"])
        .env(FOLDER, folder.path())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    // Before that it tries, with stopped children of its own, what its host can do (`check_ptrace`): one may stay.
    assert!(soon(|| has_begun(folder.path())), "it runs");
    assert!(somebody_works_in(folder.path()));
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
    assert!(missing.contains("lab setup --build 1.0"), "{missing}");
}
