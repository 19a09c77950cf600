//! Whole runs on this machine's kernel: what is planned is what happens on the wire.

mod live_common;

use std::fs;
use std::os::unix::fs::symlink;
use std::os::unix::process::CommandExt as _;
use std::process::Command;

use live_common::*;
use serde_json::Value;
use tcpwhy_linux::lab::backend::{Backend as _, LabError, Manifest};
use tcpwhy_linux::lab::folder;
use tcpwhy_linux::lab::live::Live;
use tcpwhy_model::scenario::plan::{
    Change, Egress, HostChange, Loss, Queue, Step, TokenBucket, Way,
};

/// Bytes of the server's data between pauses of 2 ms, as they came to its tap.
fn bursts(packets: &[Value]) -> Vec<u64> {
    let mut bursts = Vec::new();
    let mut last = None;
    for packet in packets.iter().filter(|packet| packet["way"] == "down") {
        let (at, data) = (packet["t"].as_u64().expect("t"), packet["data"].as_u64().expect("data"));
        if data == 0 {
            continue;
        }
        if last.is_none_or(|last| at - last > 2 * MS) {
            bursts.push(0);
        }
        *bursts.last_mut().expect("one at least") += data;
        last = Some(at);
    }
    bursts
}

fn fates(packets: &[Value], fate: &str) -> usize {
    packets.iter().filter(|packet| packet["fate"] == fate).count()
}

#[test]
fn a_download_doubles_its_window_each_round_trip() {
    let _turn = my_turn();
    if !possible() {
        return;
    }
    // 10 segments with 200 bytes of head in them, then twice as much each time (lab-facts). A host
    // whose processor is taken away acknowledges late, which tears bursts apart.
    let mut seen = Vec::new();
    let (folder, manifest, packets, bursts) = loop {
        let Some((folder, manifest)) = run(&download()) else { return };
        let packets = packets(folder.path());
        let bursts = bursts(&packets);
        let first = (13_000..=14_480).contains(&bursts[0]);
        if first && bursts.get(1..4) == Some(&[28_960, 57_920, 115_840]) {
            break (folder, manifest, packets, bursts);
        }
        seen.push(bursts);
        assert!(seen.len() < 12, "{seen:?}");
    };
    assert_eq!(bursts.iter().sum::<u64>(), (512 << 10) + 200);
    assert_eq!(fates(&packets, "delivered"), packets.len());
    assert_eq!(manifest.backend, "tun");
    assert!(manifest.knobs.contains_key("server.net.ipv4.tcp_rmem"), "{manifest:?}");
    assert_eq!(Manifest::read(folder.path()).expect("a manifest"), manifest);

    // Each tap saw each packet once.
    for name in ["client.pcapng", "server.pcapng"] {
        assert_eq!(capture(folder.path(), name).len(), packets.len(), "{name}");
    }
}

#[test]
fn super_packets_are_cut_before_they_meet_the_path() {
    let _turn = my_turn();
    if !possible() {
        return;
    }
    let mut plan = download();
    plan.server.offload = true;
    plan.path.down.loss = Loss::Exact(vec![20]);
    let Some((folder, _)) = run(&plan) else { return };
    let packets = packets(folder.path());
    assert!(packets.iter().all(|packet| packet["data"].as_u64() <= Some(1448)));
    let tap = capture(folder.path(), "server.pcapng");
    assert!(tap.iter().any(|one| one.data > 1448), "the sender's tap sees super-packets");
    assert_eq!(fates(&packets, "lost"), 1, "one packet of the wire is lost, not all it came with");
}

#[test]
fn the_emulator_adds_what_was_planned_and_little_more() {
    let _turn = my_turn();
    if !possible() {
        return;
    }
    // Round trips of instants at which the host stood still are the host's, and left out.
    let mut seen = Vec::new();
    loop {
        let Some((folder, _, host)) = watched(&echo(400, 3 * MS)) else { return };
        let [client, server] =
            ["client.pcapng", "server.pcapng"].map(|tap| capture(folder.path(), tap));
        let quiet = added_ns(&client, &server).filter(|(at, took)| host.was_quiet(*at, at + took));
        let mut added: Vec<u64> = quiet.map(|(_, took)| took).collect();
        added.sort_unstable();
        let at = |percent| added.get(added.len() * percent / 100).copied().unwrap_or_default();
        let (p50, p99) = (at(50), at(99));
        let is_enough = added.len() >= ENOUGH;
        if is_enough && p50.abs_diff(6 * MS) <= MS / 10 && p99.abs_diff(6 * MS) <= MS / 5 {
            return;
        }
        // Both ways wake the emulator twice, no sooner than the host wakes anybody.
        let hosts_own = 4 * host.lateness.p50_ns;
        let is_hosts = !is_enough || p50.abs_diff(6 * MS) <= MS / 10 + hosts_own;
        seen.push((added.len(), p50, p99, host.lateness));
        if !patient() {
            assert!(is_hosts, "round trips of 6 ms (count, median, 99 in 100, host): {seen:?}");
            return skip(&format!(
                "no run met a quiet host (round trips, median, 99 in 100): {seen:?}"
            ));
        }
    }
}

/// Ours: one in a hundred is then two.
const ENOUGH: usize = 200;

/// For each request: when it passed the client's tap, and its round trip there, less the time behind the
/// server's.
fn added_ns(client: &[Captured], server: &[Captured]) -> impl Iterator<Item = (u64, u64)> {
    let answers = |tap: &[Captured]| -> Vec<(u64, u64)> {
        let data: Vec<&Captured> = tap.iter().filter(|one| one.data == 100).collect();
        data.windows(2)
            .filter(|pair| pair[0].from != 8080 && pair[1].from == 8080)
            .map(|pair| (pair[0].at, pair[1].at - pair[0].at))
            .collect()
    };
    let pairs = answers(client).into_iter().zip(answers(server));
    pairs.map(|((at, there), (_, here))| (at, there.saturating_sub(here)))
}

#[test]
fn exact_losses_are_repaired_and_nothing_else_is_lost() {
    let _turn = my_turn();
    if !possible() {
        return;
    }
    let mut plan = download();
    plan.path.down.loss = Loss::Exact(vec![15, 40]);
    let Some((folder, _)) = run(&plan) else { return };
    let packets = packets(folder.path());
    let lost: Vec<&Value> = packets.iter().filter(|packet| packet["fate"] == "lost").collect();
    assert_eq!(lost.len(), 2);
    for one in lost {
        let again = packets.iter().any(|packet| {
            packet["seq"] == one["seq"] && packet["data"] == one["data"] && packet["n"] != one["n"]
        });
        assert!(again, "{one} was never retransmitted");
    }
}

#[test]
fn a_short_queue_drops_and_a_damaged_packet_is_thrown_away_by_tcp() {
    let _turn = my_turn();
    if !possible() {
        return;
    }
    let mut plan = download();
    plan.path.down =
        Way { rate: 20_000_000, queue: Queue::Packets(20), corrupt: 5_000, ..plan.path.down };
    let Some((folder, _)) = run(&plan) else { return };
    let packets = packets(folder.path());
    assert!(fates(&packets, "queue_full") > 0);
    assert!(packets.iter().all(|packet| packet["queue_packets"].as_u64() <= Some(20)));
    // The application has every byte all the same.
    assert_eq!(received(folder.path()), (512 << 10) + 200);
}

#[test]
fn the_path_changes_when_it_was_planned() {
    let _turn = my_turn();
    if !possible() {
        return;
    }
    let mut plan = echo(40, 5 * MS);
    let longer = Way { delay_ns: 23 * MS, ..plan.path.up.clone() };
    plan.path.changes = vec![Change { at_ns: 150 * MS, down: None, up: Some(longer) }];
    let Some((folder, _)) = run(&plan) else { return };
    let first = lines(folder.path(), folder::APPLICATIONS)
        .iter()
        .filter(|line| line["step"] == "connect")
        .find_map(|line| line["from"].as_u64())
        .expect("a connection");
    for packet in packets(folder.path()).iter().filter(|packet| packet["way"] == "up") {
        let stamp = |name: &str| packet[name].as_u64().expect(name);
        let since = stamp("t").saturating_sub(first);
        let took = stamp("due") - stamp("left");
        // The client is a little late at its own start.
        if since < 140 * MS {
            assert_eq!(took, 3 * MS, "{packet}");
        } else if since > 151 * MS {
            assert_eq!(took, 23 * MS, "{packet}");
        }
    }
}

#[test]
fn taps_in_the_middle_and_at_a_distance_see_what_the_hosts_do() {
    let _turn = my_turn();
    if !possible() {
        return;
    }
    let mut plan = download();
    plan.records.middle = true;
    plan.server.stack_to_tap_ns = 2 * MS;
    let Some((folder, _)) = run(&plan) else { return };
    let packets = packets(folder.path());
    for name in folder::CAPTURES {
        let tap = capture(folder.path(), name);
        assert_eq!(tap.len(), packets.len(), "{name}");
        // The kernel stamps what goes out and what comes in on two processors at once.
        let is_ours = name != "client.pcapng";
        assert!(!is_ours || tap.is_sorted_by_key(|one| one.at), "{name}");
    }
    // From the server's tap there and back are 6 ms to the client and 4 ms to its own stack.
    let tap = capture(folder.path(), "server.pcapng");
    let syn = tap.iter().find(|one| one.flags == 2).expect("a SYN");
    let answer = tap.iter().find(|one| one.flags == 0x12).expect("a SYN-ACK");
    let shaken = tap.iter().find(|one| one.flags == 0x10).expect("an ACK");
    assert!((4 * MS..5 * MS).contains(&(answer.at - syn.at)), "{}", answer.at - syn.at);
    assert!((6 * MS..7 * MS).contains(&(shaken.at - answer.at)), "{}", shaken.at - answer.at);
}

#[test]
fn a_bucket_on_the_way_out_shapes_before_the_tap() {
    let _turn = my_turn();
    if !possible() {
        return;
    }
    let mut plan = download();
    let bucket = TokenBucket { rate: 40_000_000, burst: 15_000, queue: 200_000 };
    plan.server.egress = Some(Egress::TokenBucket(bucket));
    if let Err(refusal) = live().check(&plan) {
        assert_is_a_sentence(&refusal);
        return skip(&refusal.to_string());
    }
    let Some((folder, _)) = run(&plan) else { return };
    let tap = capture(folder.path(), "server.pcapng");
    let data: Vec<&Captured> = tap.iter().filter(|one| one.data > 0).collect();
    let took = data.last().expect("data").at - data[0].at;
    assert!(took > 95 * MS, "512 KiB at 40 Mbit/s take 105 ms, not {took} ns");
}

#[test]
fn the_kernels_own_parts_do_the_same_where_it_has_them() {
    let _turn = my_turn();
    let netem = Live::netem(again());
    let mut plan = download();
    plan.path.down.loss = Loss::Random(10_000);
    plan.path.down.queue = Queue::Bytes(200_000);
    if !possible() {
        return;
    }
    if let Err(refusal) = netem.check(&plan) {
        assert_is_a_sentence(&refusal);
        assert!(refusal.what.starts_with("`path.down."), "{refusal}");
        assert!(refusal.instead.contains("--backend tun"), "{refusal}");
        // A link alone takes no netem.
        plan.path.down = Way { rate: 20_000_000, queue: Queue::Bytes(30_000), ..Way::default() };
        plan.path.up = plan.path.down.clone();
    }
    plan.records.middle = true;
    if let Err(refusal) = netem.check(&plan) {
        assert_is_a_sentence(&refusal);
        return;
    }
    let folder = tempfile::tempdir().expect("a temporary folder");
    let manifest = netem.run(&plan, folder.path()).expect("a run");
    assert_eq!((manifest.backend.as_str(), manifest.lateness), ("netem", None));
    for name in folder::CAPTURES {
        assert!(folder.path().join(name).exists(), "{name}");
    }
    assert_eq!(received(folder.path()), (512 << 10) + 200);
}

#[test]
fn the_kernels_own_account_is_of_this_run_alone() {
    let _turn = my_turn();
    if !possible() {
        return;
    }
    let mut plan = download();
    plan.records.tcp_info_every_ns = 5 * MS;
    let Some((folder, manifest)) = run(&plan) else { return };
    let samples = lines(folder.path(), folder::TCP_INFO);
    for who in ["client", "server"] {
        assert!(samples.iter().any(|sample| sample["who"] == who), "{who}");
    }
    assert!(samples.is_sorted_by_key(|sample| sample["t"].as_u64()));
    let counters = fs::read(folder.path().join(folder::COUNTERS)).expect("counters");
    let counters: Value = serde_json::from_slice(&counters).expect("JSON");
    let sent = |when: &str| counters["server"][when]["counters"]["Tcp"]["OutSegs"].as_i64();
    assert!(sent("after").expect("after") > sent("before").expect("before"));
    if let Some(why) = manifest.problems.iter().find(|problem| problem.contains(folder::KERNEL)) {
        return skip(why);
    }
    let events = lines(folder.path(), folder::KERNEL);
    let probes: Vec<&Value> = events.iter().filter(|event| event["event"] == "tcp_probe").collect();
    assert!(probes.len() > 100, "{}", probes.len());
    assert!(probes.iter().all(|probe| probe["sport"] == 8080 || probe["dport"] == 8080));
}

#[test]
fn what_cannot_be_done_is_said_before_anything_starts() {
    let _turn = my_turn();
    if !possible() {
        return;
    }
    let ask = |change: &dyn Fn(&mut tcpwhy_model::scenario::plan::Plan)| {
        let mut plan = download();
        change(&mut plan);
        let refusal = live().check(&plan).expect_err("a refusal");
        assert_is_a_sentence(&refusal);
        refusal
    };
    let refusal = ask(&|plan| {
        plan.server.sysctl.insert("kernel.panic".to_owned(), "1".to_owned());
    });
    assert_eq!(refusal.what, "`server.sysctl` kernel.panic");
    let refusal = ask(&|plan| {
        plan.client.sysctl.insert("net.ipv4.tcp_magic".to_owned(), "1".to_owned());
    });
    assert!(refusal.why.contains("no such setting"), "{refusal}");
    let changed = |name: &str, value: &str| HostChange {
        sysctl: [(name.to_owned(), value.to_owned())].into(),
        ..HostChange::default()
    };
    let refusal = ask(&|plan| {
        plan.client.changes = vec![changed("net.ipv4.tcp_sack", "0")];
        plan.server.changes = vec![changed("net.ipv4.tcp_fastopen_key", "secret")];
    });
    assert_eq!(refusal.what, "`server.changes`: net.ipv4.tcp_fastopen_key = \"secret\"");
    assert!(refusal.why.contains("does not take \"secret\""), "{refusal}");
    let refusal = ask(&|plan| plan.client.changes = vec![changed("net.ipv4.tcp_magic", "1")]);
    assert!(refusal.why.contains("no such setting"), "{refusal}");
    let refusal = ask(&|plan| plan.client.changes = vec![changed("kernel.panic", "1")]);
    assert_eq!(refusal.what, "`client.changes` kernel.panic");
    let refusal = ask(&|plan| {
        plan.client.route.insert("initcwnd".to_owned(), "many".to_owned());
    });
    assert_eq!(refusal.what, "`client.route` initcwnd = \"many\"");
    let refusal = ask(&|plan| {
        let again = plan.flows[0].clone();
        plan.flows.push(again);
    });
    assert_eq!(refusal.what, "two flows on port 8080");
}

#[test]
fn a_full_disk_ends_the_run_and_is_named() {
    let _turn = my_turn();
    if !possible() {
        return;
    }
    for name in [folder::PACKETS, "client.pcapng", folder::APPLICATIONS] {
        let folder = tempfile::tempdir().expect("a temporary folder");
        symlink("/dev/full", folder.path().join(name)).expect("a link");
        let error = live().run(&download(), folder.path()).expect_err("no room");
        let text = error.to_string();
        assert!(text.contains("No space left"), "{name}: {text}");
        assert!(text.contains(name), "{name}: {text}");
        assert!(processes(folder.path()).is_empty(), "{name}");
    }
}

#[test]
fn an_application_that_fails_ends_the_run_with_what_was_recorded() {
    let _turn = my_turn();
    if !possible() {
        return;
    }
    let mut plan = download();
    plan.flows[0].server = vec![Step::ReadHead];
    plan.flows[0].client =
        vec![Step::WriteHead(80), Step::Read { bytes: 100, chunk: 0, pause_ns: 0 }];
    let folder = tempfile::tempdir().expect("a temporary folder");
    let error = live().run(&plan, folder.path()).expect_err("no answer");
    let text = error.to_string();
    assert!(matches!(error, LabError::Ended { .. }), "{text}");
    assert!(text.contains("the client of flow 0 failed"), "{text}");
    assert!(text.contains("recorded until then: client.pcapng"), "{text}");
    assert!(!capture(folder.path(), "client.pcapng").is_empty());
}

#[test]
fn a_folder_is_used_once() {
    let _turn = my_turn();
    let folder = tempfile::tempdir().expect("a temporary folder");
    fs::write(folder.path().join(folder::PLAN), "").expect("written");
    let error = live().run(&download(), folder.path()).expect_err("a refusal");
    assert!(error.to_string().contains("File exists"), "{error}");
}

#[test]
fn without_rights_over_the_machine_a_user_namespace_does() {
    let _turn = my_turn();
    if !possible() {
        return;
    }
    let place = tempfile::tempdir().expect("a temporary folder");
    let plan = place.path().join("plan.json");
    fs::write(&plan, serde_json::to_vec(&download()).expect("JSON")).expect("written");
    let gone = "-sys_admin,-net_admin,-sys_nice,-net_raw,-sys_ptrace";
    let done = Command::new("setpriv")
        .args(["--bounding-set", gone, "--", env!("CARGO_BIN_EXE_tcpwhy-live")])
        .arg(plan)
        .arg(place.path().join("run"))
        .output()
        .expect("setpriv of util-linux");
    let said = String::from_utf8_lossy(&done.stderr);
    if said.contains("user namespaces") || said.contains("setpriv") {
        return;
    }
    let manifest = Manifest::read(&place.path().join("run")).expect(&said);
    // Late or not: all of it was carried out, and what it could not have is said once.
    let told = manifest.problems.iter().filter(|told| told.contains("SCHED_FIFO is refused"));
    assert_eq!(told.count(), 1, "{:?}", manifest.problems);
    assert!(manifest.problems.iter().any(|told| told.contains(folder::KERNEL)));
    assert_eq!(received(&place.path().join("run")), (512 << 10) + 200);
    assert!(processes(place.path()).is_empty());
}

#[test]
fn an_ordinary_user_runs_it_or_hears_what_is_missing() {
    let _turn = my_turn();
    // Who is root becomes somebody else; who is not is an ordinary user already.
    let place = tempfile::tempdir_in("/tmp").expect("a temporary folder");
    let plan = place.path().join("plan.json");
    fs::write(&plan, serde_json::to_vec(&download()).expect("JSON")).expect("written");
    let program = place.path().join("tcpwhy-live");
    fs::copy(env!("CARGO_BIN_EXE_tcpwhy-live"), &program).expect("copied");
    let is_root = fs::read("/proc/self/status")
        .is_ok_and(|status| String::from_utf8_lossy(&status).contains("\nUid:\t0\t0\t"));
    let mut command = Command::new(&program);
    command.arg(&plan).arg(place.path().join("run"));
    if is_root {
        for (path, mode) in [(place.path().to_owned(), 0o777), (plan, 0o644), (program, 0o755)] {
            let mode = std::os::unix::fs::PermissionsExt::from_mode(mode);
            fs::set_permissions(path, mode).expect("permissions");
        }
        command.uid(65_534).gid(65_534);
    }
    let done = command.output().expect("started");
    let said = String::from_utf8_lossy(&done.stderr);
    if done.status.code() == Some(2) {
        assert_eq!(said.lines().count(), 1, "{said}");
        let named = ["/dev/net/tun", "user namespaces", "modprobe tun"];
        assert!(named.iter().any(|part| said.contains(part)), "{said}");
    } else {
        assert!(place.path().join("run").join(folder::MANIFEST).exists(), "{said}");
    }
}

#[test]
fn a_machine_without_tun_says_so_before_anything_starts() {
    let _turn = my_turn();
    if !possible() {
        return;
    }
    let place = tempfile::tempdir().expect("a temporary folder");
    let plan = place.path().join("plan.json");
    fs::write(&plan, serde_json::to_vec(&download()).expect("JSON")).expect("written");
    // The device is there no more, in a mount namespace that ends with the run.
    let done = Command::new("unshare")
        .args(["--mount", "sh", "-c", "mount -t tmpfs none /dev/net && exec \"$@\"", "sh"])
        .arg(env!("CARGO_BIN_EXE_tcpwhy-live"))
        .arg(plan)
        .arg(place.path().join("run"))
        .output()
        .expect("unshare of util-linux");
    let said = String::from_utf8_lossy(&done.stderr);
    if said.starts_with("unshare: ") {
        return;
    }
    assert_eq!(done.status.code(), Some(2), "{said}");
    assert_eq!(said.lines().count(), 1, "{said}");
    assert!(said.contains("open a TUN device") && said.contains("modprobe tun"), "{said}");
    assert!(!place.path().join("run").exists(), "nothing was started");
}
