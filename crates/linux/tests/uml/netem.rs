//! The backend `netem` where there is netem: in a simulated kernel.
//!
//! Its stage runs there as it is, with this machine's own `ip` and `tc`: the guest's root is this
//! machine's, read only, and the run's folder alone can be written. What is left out is the keeper,
//! which the backend `tun` shares, and tracepoints by perf, which the guest lacks.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::{Command, Stdio};

use serde_json::Value;
use tcpwhy_linux::lab::uml::{cache, choose};
use tcpwhy_model::scenario::plan::Plan;

use crate::path::{Credit, LOOKS, assert_rate, assert_share, burst_tenths, delays, overtaken};
use crate::run::{MS, Run, scenario, uml};

/// Plays a plan; none, with the reason said, where there is no kernel or no iproute2.
fn play(lines: &str, application: &str) -> Option<Run> {
    uml(None)?;
    if let Some(missing) = ["ip", "tc", "mount", "timeout"].into_iter().find(|p| !is_here(p)) {
        let required = std::env::var_os("TCPWHY_REQUIRE_ALL").is_some_and(|v| v == "1");
        assert!(!required, "there is no {missing}");
        eprintln!("skipped: there is no {missing}");
        return None;
    }
    let folder = tempfile::tempdir().unwrap();
    boot(folder.path(), &scenario(lines, application));
    let said = fs::read_to_string(folder.path().join("said.json")).unwrap_or_default();
    let done: Value = serde_json::from_str(said.trim()).unwrap_or_else(|e| panic!("{e}: {said}"));
    let manifest =
        serde_json::from_value(done["Done"].clone()).unwrap_or_else(|_| panic!("{said}"));
    let run = Run { folder, manifest };
    assert!(run.manifest.valid, "{:?}", run.manifest.problems);
    Some(run)
}

fn is_here(program: &str) -> bool {
    PATH.split(':').any(|folder| Path::new(folder).join(program).exists())
}

fn boot(folder: &Path, plan: &Plan) {
    let place = folder.display();
    let stage = env!("CARGO_BIN_EXE_tcpwhy-live");
    let init = format!(
        "#!/bin/sh\n\
         export PATH={PATH}\n\
         mount -t proc proc /proc && mount -t sysfs sysfs /sys\n\
         mount -t hostfs none {place} -o {place}\n\
         {stage} lab-inner stage netem run {place} < {place}/plan.json > {place}/said.json\n"
    );
    let script = folder.join("init");
    fs::write(&script, init).unwrap();
    fs::set_permissions(&script, fs::Permissions::from_mode(0o755)).unwrap();
    fs::write(folder.join("plan.json"), serde_json::to_string(plan).unwrap() + "\n").unwrap();
    let kernel = choose(&cache().unwrap(), None).unwrap();
    // When the script is done the kernel, without a first process, panics: nothing is left of it.
    Command::new("timeout")
        .args(["--kill-after=1", "120"])
        .arg(kernel.stock)
        .args(["mem=768M", "root=/dev/root", "rootfstype=hostfs", "rootflags=/", "ro"])
        .args(["time-travel=inf-cpu", "time-travel-start=1760000000000000000"])
        .args(["con=null", "con0=null,fd:1", "umid=guest", NARROW])
        .arg(format!("uml_dir={place}/uml/"))
        .arg(format!("init={}", script.display()))
        .current_dir(folder)
        .env_clear()
        .stdin(Stdio::null())
        .stdout(fs::File::create(folder.join("console.txt")).unwrap())
        .stderr(Stdio::null())
        .status()
        .unwrap();
}

/// Keeps the C library off registers that are too wide for the guest (`scripts/kernel/edits.py`), from
/// its first process on.
const NARROW: &str = "GLIBC_TUNABLES=glibc.cpu.hwcaps=-AVX,-AVX2,-AVX512F,-AVX512VL,-AVX512BW,\
                      -XSAVE,-XSAVEC,-ERMS,-FSRM,-AVX_Fast_Unaligned_Load";

const PATH: &str = "/usr/sbin:/usr/bin:/sbin:/bin";

#[test]
fn a_download_meets_the_link_and_the_distance() {
    for (ipv6, mss) in [(false, 1448), (true, 1428)] {
        let lines =
            format!("ipv6 = {ipv6}\n[path]\nrtt = '20ms'\nrate = '50mbit'\nqueue = '90 packets'");
        let Some(run) = play(&lines, "download = '2MB'") else { return };
        assert_eq!(run.bursts()[..2], [200 + 9 * mss, 20 * mss], "IPv6: {ipv6}");
        assert!(delays(&run).iter().all(|d| (10 * MS..10 * MS + LOOKS).contains(&d[0])));
        let begin = run.packets("client")[0].at;
        assert_rate(&run.data("middle"), begin, 100 * MS..u64::MAX, 50_000_000);
        let lost = run.met(run.data("server"), "middle").iter().filter(|m| m.1.is_empty()).count();
        assert!(lost > 0 && run.counted("server", "Tcp", "RetransSegs") > 0, "the queue overflows");
    }
}

#[test]
fn chances_and_jitter_are_as_asked() {
    let lines = "[path]\nrtt = '20ms'\nrate = '50mbit'\n\
        down.loss = '1%'\ndown.duplicate = '3%'\ndown.jitter = '2ms'\nup.delay = '5ms'";
    let Some(run) = play(lines, "download = '4MB'") else { return };
    let delays = delays(&run);
    let count = |copies: usize| delays.iter().filter(|d| d.len() == copies).count();
    assert_share(count(0), delays.len(), 10, 7);
    assert_share(count(2), delays.len(), 30, 12);
    let all: Vec<u64> = delays.iter().flatten().copied().collect();
    assert!(all.iter().all(|d| (8 * MS..12 * MS + LOOKS).contains(d)));
    assert_share(all.iter().filter(|d| **d < 10 * MS).count(), all.len(), 500, 50);
    assert!(overtaken(&run.data("client")) > overtaken(&run.data("middle")));
    assert!(run.manifest.problems.iter().any(|p| p.contains("follow no seed")));
}

#[test]
fn losses_come_in_bursts() {
    let lines = "[path]\nrtt = '2ms'\nrate = '100mbit'\ndown.loss = 'burst 1% 50%'";
    let Some(run) = play(lines, "download = '8MB'") else { return };
    let delays = delays(&run);
    assert_share(delays.iter().filter(|d| d.is_empty()).count(), delays.len(), 20, 9);
    let tenths = burst_tenths(&delays);
    // About 57 bursts of a geometric length: four standard errors of their mean.
    assert!(tenths.abs_diff(20) <= 8, "bursts of {tenths} tenths of a packet");
}

#[test]
fn a_queue_in_bytes_and_a_change_of_the_rate() {
    let lines = "[path]\nrtt = '20ms'\nrate = '20mbit'\nqueue = '100kB'\n\
        [[path.changes]]\nat = '400ms'\nrate = '5mbit'\nloss = '1%'";
    let Some(run) = play(lines, "download = '2MB'") else { return };
    let begin = run.packets("client")[0].at;
    for (from, to, rate) in [(0, 400, 20_000_000), (400, 100_000, 5_000_000)] {
        let mut data = run.data("middle");
        data.retain(|p| (from * MS..to * MS).contains(&(p.at - begin)));
        // Two frames of credit are its smallest bucket.
        let mut credit = Credit::full(rate, 2 * 1514, data[0].at);
        for packet in &data {
            credit.until(packet.at);
            credit.spend(packet.payload + 66);
            assert!(credit.owed() <= 2 * 1514, "{} bytes owed at {rate}", credit.owed());
        }
    }
    let late: Vec<_> = run.met(run.sent("middle"), "client");
    let (before, after): (Vec<_>, Vec<_>) = late.iter().partition(|(p, _)| p.at < begin + 400 * MS);
    assert!(before.iter().all(|(_, came)| came.len() == 1), "no loss before it is asked for");
    assert!(after.iter().any(|(_, came)| came.is_empty()));
}

#[test]
fn buckets_and_queues_of_a_host_and_of_the_path() {
    for (lines, shaped) in [
        ("[path.down]\nbucket = { rate = '20mbit', burst = '20kB', queue = '200kB' }", true),
        ("[server]\negress = { rate = '20mbit', burst = '20kB', queue = '200kB' }", true),
        ("[server]\negress = { rate = '20mbit', burst = '40kB' }", true),
        ("[server]\negress = 'fq'", false),
        ("[server]\negress = 'fq_codel'", false),
    ] {
        let Some(run) = play(&format!("[path]\nrtt = '6ms'\n{lines}"), "download = '1MB'") else {
            return;
        };
        let rate = 8_000_000_000 / run.lasted_ns();
        assert_eq!(rate < 25, shaped, "{lines}: {rate} Mbit/s");
    }
}

#[test]
fn settings_routes_and_controls_reach_its_hosts() {
    let lines = "[path]\nrtt = '20ms'\n[client]\nsysctl.net.ipv4.tcp_rmem = '4096 6291456 6291456'\n\
        [server]\nroute = { initcwnd = 30 }\nsocket.congestion = 'bbr'";
    let Some(run) = play(lines, "download = '1MB'") else { return };
    assert_eq!(run.bursts()[0], 200 + 29 * 1448);
    assert_eq!(run.manifest.knobs["client.net.ipv4.tcp_rmem"], "4096 6291456 6291456");
    assert!(String::from_utf8(run.bytes("applications.jsonl")).unwrap().contains("\"bbr\""));
    assert!(run.bytes("tcp_info.jsonl").len() > 1000);
}
