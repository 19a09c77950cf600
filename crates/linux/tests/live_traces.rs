//! A lab leaves nothing behind, touches nothing outside, and meets no other lab.

mod live_common;

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use live_common::*;
use tcpwhy_linux::lab::backend::Backend as _;
use tcpwhy_model::scenario::plan::{Egress, Plan, Step, TokenBucket};

/// A plan that would go on for long.
fn endless() -> Plan {
    let mut plan = download();
    plan.flows[0].client.push(Step::Sleep(15_000 * MS));
    plan.records.middle = true;
    plan.server.sysctl.insert("net.ipv4.tcp_sack".to_owned(), "0".to_owned());
    plan
}

fn start(plan: &Plan, place: &Path) -> Child {
    let file = place.join("plan.json");
    fs::write(&file, serde_json::to_vec(plan).expect("JSON")).expect("written");
    Command::new(env!("CARGO_BIN_EXE_tcpwhy-live"))
        .arg(file)
        .arg(place.join("run"))
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .expect("started")
}

/// Waits until something holds; whether it did.
fn soon(holds: impl Fn() -> bool) -> bool {
    let end = Instant::now() + Duration::from_secs(10);
    while Instant::now() < end {
        if holds() {
            return true;
        }
        thread::sleep(Duration::from_millis(5));
    }
    holds()
}

/// Every process of the machine that is in one of these namespaces.
fn inhabitants(namespaces: &[PathBuf]) -> Vec<String> {
    let listed = fs::read_dir("/proc").expect("/proc").flatten();
    listed
        .filter_map(|entry| entry.file_name().into_string().ok())
        .filter(|name| {
            let inside = fs::read_link(format!("/proc/{name}/ns/net"));
            inside.is_ok_and(|namespace| namespaces.contains(&namespace))
        })
        .collect()
}

/// What a lab could leave behind, of the whole machine.
fn machine() -> BTreeMap<&'static str, String> {
    let text = |program, words: &[&str]| {
        String::from_utf8_lossy(&output(program, words).stdout).into_owned()
    };
    let listed = |path: &str| {
        let entries = fs::read_dir(path).into_iter().flatten().flatten();
        let mut names: Vec<String> =
            entries.filter_map(|entry| entry.file_name().into_string().ok()).collect();
        names.retain(|name| name.contains("tcpwhy"));
        names.sort();
        names.join(" ")
    };
    BTreeMap::from([
        ("links", text("ip", &["-o", "link"])),
        ("addresses", text("ip", &["-o", "address"])),
        ("routes", text("ip", &["route", "show", "table", "all"])),
        ("routes6", text("ip", &["-6", "route", "show", "table", "all"])),
        ("disciplines", text("tc", &["qdisc", "show"])),
        ("mounts", fs::read_to_string("/proc/self/mounts").expect("mounts")),
        ("named namespaces", listed("/run/netns")),
        ("trace instances", listed("/sys/kernel/tracing/instances")),
        ("settings", settings(Path::new("/proc/sys/net"))),
    ])
}

/// All settings below a directory, but for those that count.
fn settings(place: &Path) -> String {
    let mut found: Vec<PathBuf> = fs::read_dir(place)
        .into_iter()
        .flatten()
        .flatten()
        .map(|entry| entry.path())
        .filter(|path| !path.ends_with("nf_conntrack_count"))
        .collect();
    found.sort();
    let one = |path: &PathBuf| {
        if path.is_dir() {
            return settings(path);
        }
        let value = fs::read_to_string(path).unwrap_or_default();
        format!("{} {value}\n", path.display())
    };
    found.iter().map(one).collect()
}

#[test]
fn killed_at_any_moment_it_leaves_nothing() {
    let _turn = my_turn();
    if !possible() {
        return;
    }
    let before = machine();
    // From before the keeper is there to the middle of the transfer; the last ones are long after
    // all have started, so that there is something to leave behind.
    let mut inhabited = 0;
    for moment in 0..20_u64 {
        let place = tempfile::tempdir().expect("a temporary folder");
        let mut lab = start(&endless(), place.path());
        thread::sleep(Duration::from_millis(moment * moment * 4 % 1201));
        let found = namespaces(&processes(place.path()));
        inhabited += usize::from(!found.is_empty());
        lab.kill().expect("killed");
        lab.wait().expect("waited for");
        let gone = soon(|| processes(place.path()).is_empty() && inhabitants(&found).is_empty());
        let left = (processes(place.path()), inhabitants(&found));
        assert!(gone, "left at moment {moment}: {left:?}");
    }
    assert!(inhabited > 5, "too few of the moments met a lab at work: {inhabited}");
    assert_eq!(machine(), before);
}

#[test]
fn without_its_keeper_it_ends_as_well() {
    let _turn = my_turn();
    if !possible() {
        return;
    }
    let place = tempfile::tempdir().expect("a temporary folder");
    let mut lab = start(&endless(), place.path());
    let find = || {
        processes(place.path()).into_iter().find(|process| {
            let words = fs::read(format!("/proc/{process}/cmdline")).unwrap_or_default();
            words.split(|byte| *byte == 0).any(|word| word == b"keeper")
        })
    };
    assert!(soon(|| !namespaces(&processes(place.path())).is_empty()), "it never started");
    let keeper = find().expect("a keeper");
    assert!(output("kill", &["-KILL", &keeper.to_string()]).status.success());
    let status = lab.wait().expect("waited for");
    assert_eq!(status.code(), Some(2), "it says that it did not end well");
    assert!(soon(|| processes(place.path()).is_empty()), "{:?}", processes(place.path()));
}

#[test]
fn nothing_outside_its_namespaces_is_touched() {
    let _turn = my_turn();
    if !possible() {
        return;
    }
    let before = machine();
    let mut plan = download();
    for (name, value) in [
        ("net.ipv4.tcp_rmem", "4096 65536 6291456"),
        ("net.ipv4.tcp_slow_start_after_idle", "0"),
        ("net.ipv4.conf.all.rp_filter", "1"),
    ] {
        plan.server.sysctl.insert(name.to_owned(), value.to_owned());
        plan.client.sysctl.insert(name.to_owned(), value.to_owned());
    }
    plan.server.route.insert("initcwnd".to_owned(), "40".to_owned());
    let bucket = TokenBucket { rate: 400_000_000, burst: 60_000, queue: 200_000 };
    plan.server.egress = Some(Egress::TokenBucket(bucket));
    if live().check(&plan).is_err() {
        plan.server.egress = None;
    }
    let folder = tempfile::tempdir().expect("a temporary folder");
    let manifest = live().run(&plan, folder.path()).expect("a run");
    assert_eq!(manifest.knobs["server.net.ipv4.tcp_rmem"], "4096 65536 6291456");
    assert_eq!(manifest.knobs["client.net.ipv4.tcp_slow_start_after_idle"], "0");
    assert_eq!(machine(), before);
    assert!(processes(folder.path()).is_empty());
}

#[test]
fn two_labs_at_once_do_not_meet() {
    let _turn = my_turn();
    if !possible() {
        return;
    }
    // The same ports and addresses; one of them loses a packet that the other must not miss.
    let mut lossy = download();
    lossy.path.down.loss = tcpwhy_model::scenario::plan::Loss::Exact(vec![30]);
    let plans = [download(), lossy];
    let folders = plans.each_ref().map(|_| tempfile::tempdir().expect("a temporary folder"));
    thread::scope(|scope| {
        for (plan, folder) in plans.iter().zip(&folders) {
            scope.spawn(|| live().run(plan, folder.path()).expect("a run"));
        }
    });
    let lost = folders.each_ref().map(|folder| {
        let packets = packets(folder.path());
        let syns = packets.iter().filter(|packet| packet["flags"] == 2).count();
        assert_eq!(syns, 1, "one connection each");
        assert_eq!(received(folder.path()), (512 << 10) + 200);
        packets.iter().filter(|packet| packet["fate"] == "lost").count()
    });
    assert_eq!(lost, [0, 1]);
}
