//! Each finding provoked by a run of a real kernel in simulated time, and seen named right from both
//! hosts: the experiments of `findings.toml`, as users would run and explain them.

mod common;

use std::path::Path;

use common::{in_repository, run};
use serde_json::Value;

/// What a variant must give and must not, in captures of the hosts named.
type Row =
    (&'static str, &'static [&'static str], &'static [&'static str], &'static [&'static str]);

const BOTH: &[&str] = &["server", "client"];
const SERVER: &[&str] = &["server"];
const CLIENT: &[&str] = &["client"];
const LOSSES: &[&str] =
    &["LOSS", "LOSS_CONGESTION", "LOSS_RANDOM", "LOSS_PERIODIC", "POLICER", "TIMEOUT"];
const WINDOWS: &[&str] =
    &["WINDOW_CAP", "WINDOW_GROWTH", "WINDOW_SCALE", "SLOW_READER", "ZERO_WINDOW", "SEND_BUFFER"];

const VARIANTS: [Row; 36] = [
    ("slow-start", BOTH, &["SLOW_START"], WINDOWS),
    ("slow-start", BOTH, &[], LOSSES),
    ("initial-window", BOTH, &["INITIAL_WINDOW", "SLOW_START"], WINDOWS),
    ("one-flight", BOTH, &[], &["SLOW_START", "INITIAL_WINDOW", "THINK_SERVER"]),
    ("large", BOTH, &["BOTTLENECK"], &["SLOW_START", "WINDOW_CAP", "SEND_BUFFER"]),
    ("window-cap", BOTH, &["WINDOW_CAP"], &["SLOW_READER", "WINDOW_GROWTH", "SEND_BUFFER"]),
    ("window-scale", BOTH, &["WINDOW_SCALE"], &["WINDOW_CAP", "SLOW_READER", "SEND_BUFFER"]),
    ("send-buffer", BOTH, &["SEND_BUFFER"], &["WINDOW_CAP", "SLOW_WRITER", "NOT_TCP"]),
    ("zero-window", BOTH, &["ZERO_WINDOW"], &["TIMEOUT", "SLOW_WRITER", "NOT_TCP"]),
    ("slow-reader", BOTH, &["SLOW_READER"], &["WINDOW_CAP", "SEND_BUFFER", "NOT_TCP"]),
    ("think-server", BOTH, &["THINK_SERVER", "NOT_TCP"], &["THINK_CLIENT", "SLOW_WRITER"]),
    ("think-client", BOTH, &["THINK_CLIENT", "NOT_TCP"], &["THINK_SERVER", "SLOW_WRITER"]),
    (
        "requests-in-turn",
        BOTH,
        &["REQUESTS_IN_TURN"],
        &["THINK_SERVER", "THINK_CLIENT", "SLOW_START", "NOT_TCP"],
    ),
    ("slow-writer", BOTH, &["SLOW_WRITER"], &["THINK_SERVER", "SLOW_START", "PACING"]),
    ("body", BOTH, &["BODY_ON_ITS_WAY", "SLOW_START"], &["THINK_SERVER", "NOT_TCP"]),
    ("idle-restart", BOTH, &["IDLE_RESTART", "THINK_CLIENT"], LOSSES),
    ("warm", BOTH, &["THINK_CLIENT"], &["IDLE_RESTART", "TIMEOUT", "LOSS"]),
    ("tail-loss", BOTH, &["TIMEOUT"], &["LOSS_CONGESTION", "SLOW_WRITER", "NOT_TCP"]),
    ("random-loss", BOTH, &["LOSS_RANDOM"], &["LOSS_CONGESTION", "POLICER", "BOTTLENECK"]),
    ("policer", BOTH, &["POLICER"], &["LOSS_RANDOM", "LOSS_CONGESTION", "BOTTLENECK"]),
    // The tap of the sender's host is behind that host's queue; the receiver's sees a full path.
    ("local-shaper", SERVER, &["LOCAL_QDISC"], &["BOTTLENECK", "SEND_BUFFER"]),
    ("local-shaper", CLIENT, &["BOTTLENECK"], &["SEND_BUFFER", "WINDOW_CAP"]),
    // The SYN is lost before the server sees it.
    ("syn-retry", CLIENT, &["SYN_RETRY"], &["THINK_SERVER", "NOT_TCP", "THINK_CLIENT"]),
    ("nagle", BOTH, &["NAGLE_DELAYED_ACK"], &["TIMEOUT", "THINK_SERVER", "WINDOW_CAP"]),
    ("fast-open", BOTH, &["FAST_OPEN"], LOSSES),
    ("options-refused", BOTH, &["OPTIONS_REFUSED"], &["OPTIONS_STRIPPED", "WINDOW_SCALE"]),
    (
        "app-window",
        BOTH,
        &["APP_WINDOW"],
        &["WINDOW_CAP", "SLOW_READER", "THINK_SERVER", "NOT_TCP"],
    ),
    (
        "periodic-loss",
        BOTH,
        &["LOSS_PERIODIC"],
        &["LOSS_CONGESTION", "LOSS_RANDOM", "POLICER", "LOSS"],
    ),
    // Behind the path, overtaken and retransmitted segments look alike.
    (
        "reordering",
        SERVER,
        &["SPURIOUS_REPAIR"],
        &["LOSS", "LOSS_CONGESTION", "LOSS_RANDOM", "STOOD_STILL"],
    ),
    // The other host sees a full path, and does not tell its rounds' rates apart.
    ("variable-rate", SERVER, &["VARIABLE_RATE"], &["WINDOW_CAP", "TOKEN_BUCKET", "POLICER"]),
    ("variable-rate", CLIENT, &["BOTTLENECK"], &["WINDOW_CAP", "TOKEN_BUCKET", "POLICER"]),
    // The first rate is that of the sender's own shaper, which the other host cannot see.
    (
        "token-bucket",
        SERVER,
        &["TOKEN_BUCKET", "BOTTLENECK"],
        &["POLICER", "VARIABLE_RATE", "LOSS"],
    ),
    ("token-bucket", CLIENT, &["BOTTLENECK"], &["POLICER", "VARIABLE_RATE", "LOSS"]),
    (
        "sawtooth",
        BOTH,
        &["BOTTLENECK"],
        &["LOSS_PERIODIC", "LOSS_RANDOM", "TOKEN_BUCKET", "SLOW_START"],
    ),
    ("paced", BOTH, &["PACING"], &["BOTTLENECK", "SEND_BUFFER", "SLOW_WRITER"]),
    (
        "congestion-loss",
        BOTH,
        &["LOSS_CONGESTION", "BOTTLENECK"],
        &["LOSS_PERIODIC", "LOSS_RANDOM", "POLICER", "PACING"],
    ),
];

/// Codes of the findings of each connection in a capture.
fn found(capture: &Path) -> Vec<Vec<String>> {
    let told = run(&["--json", "--no-predict", capture.to_str().expect("UTF-8")]);
    assert_eq!(told.status, Some(0), "{}", told.stderr);
    let report: Value = serde_json::from_str(&told.stdout).expect("JSON");
    let codes = |connection: &Value| {
        let findings = connection["findings"].as_array().expect("a list").iter();
        findings.map(|finding| finding["code"].as_str().expect("a code").to_owned()).collect()
    };
    report["connections"].as_array().expect("a list").iter().map(codes).collect()
}

#[test]
#[expect(clippy::print_stderr, reason = "why a test was skipped")]
fn each_cause_is_found_and_what_it_excludes_is_not() {
    let scenario = in_repository("crates/cli/tests/findings.toml");
    let kept = std::env::temp_dir().join(format!("tcpwhy-findings-{}", std::process::id()));
    let (scenario, folder) = (scenario.to_str().expect("UTF-8"), kept.to_str().expect("UTF-8"));
    let ran = run(&["lab", "run", scenario, "--backend", "uml:6.1", "--json", "--keep", folder]);
    let required = std::env::var_os("TCPWHY_REQUIRE_ALL").is_some_and(|v| v == "1");
    if ran.status != Some(0) && !required {
        eprintln!("skipped: {}", ran.stderr);
        return;
    }
    assert_eq!(ran.status, Some(0), "{}", ran.stderr);
    let mut wrong = Vec::new();
    for (variant, hosts, wanted, excluded) in VARIANTS {
        for host in hosts {
            let all = found(&kept.join(format!("findings-{variant}-0/{host}.pcapng")));
            let first = all.first().expect("a connection");
            let missing = wanted.iter().filter(|code| !first.iter().any(|each| each == **code));
            let surplus = excluded.iter().filter(|code| first.iter().any(|each| each == **code));
            wrong.extend(missing.map(|code| format!("{variant}, {host}: no {code} in {first:?}")));
            wrong.extend(surplus.map(|code| format!("{variant}, {host}: {code}")));
        }
    }
    for host in BOTH {
        let all = found(&kept.join(format!("findings-slow-start-ended-early-0/{host}.pcapng")));
        let early: Vec<bool> = all
            .iter()
            .map(|codes| codes.iter().any(|code| code == "SLOW_START_ENDED_EARLY"))
            .collect();
        if early != [false, true] {
            wrong.push(format!("slow-start-ended-early, {host}: {all:?}"));
        }
        // Its SYN carries the request, and the SYN-ACK acknowledges both: one connection.
        let all = found(&kept.join(format!("findings-fast-open-0/{host}.pcapng")));
        let said: Vec<bool> =
            all.iter().map(|codes| codes.iter().any(|c| c == "FAST_OPEN")).collect();
        if said != [true, true] {
            wrong.push(format!("fast-open, {host}: {all:?}"));
        }
        let cold = |codes: &Vec<String>| codes.iter().any(|code| code == "COLD_CONNECTION");
        let all = found(&kept.join(format!("findings-cold-0/{host}.pcapng")));
        let said: Vec<bool> = all.iter().map(cold).collect();
        if said != [false, true, true] {
            wrong.push(format!("cold, {host}: {all:?}"));
        }
    }
    assert!(wrong.is_empty(), "{}\nkept in {folder}", wrong.join("\n"));
    // What went right need not stay on the machine; a folder that does is no failure.
    let _ = std::fs::remove_dir_all(&kept);
}
