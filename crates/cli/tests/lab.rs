//! The shipped experiments in simulated time, as users run them: what comes out of `lab run --json`
//! is the same on every machine.

mod common;

use std::fs;
use std::process::Command;

use common::expected::broken;
use common::{Run, finish, run};
use serde_json::Value;
use tcpwhy_linux::lab::uml;

/// What `lab run` makes of a shipped scenario, once; `None` where no simulated kernel is built.
#[expect(clippy::print_stderr, reason = "why a test was skipped")]
fn experiment(name: &str) -> Option<Value> {
    let Run { status, stdout, stderr } =
        run(&["lab", "run", name, "--backend", "uml:6.1", "--repeat", "1", "--json"]);
    if matches!(status, Some(0 | 1)) {
        let told = serde_json::from_str(&stdout).expect("JSON");
        assert_eq!(broken(&told), Vec::<String>::new(), "not as expected");
        return Some(told);
    }
    let required = std::env::var_os("TCPWHY_REQUIRE_ALL").is_some_and(|v| v == "1");
    assert!(!required, "{stderr}");
    eprintln!("skipped: {stderr}");
    None
}

fn variant<'a>(told: &'a Value, name: &str) -> &'a Value {
    let variants = told["variants"].as_array().expect("a list");
    variants.iter().find(|v| v["name"] == name).unwrap_or_else(|| panic!("a variant {name}"))
}

/// Bytes of the rounds of each download of a variant.
fn rounds(told: &Value, name: &str) -> Vec<Vec<u64>> {
    let bytes = |round: &Value| round["bytes"].as_u64().expect("a number");
    let connections = variant(told, name)["rounds"].as_array().expect("a list");
    connections
        .iter()
        .map(|rounds| rounds.as_array().expect("a list").iter().map(bytes).collect())
        .collect()
}

/// Share of a variant's time that `who` spends in states of this prefix, in per cent.
fn share(told: &Value, name: &str, who: &str, prefix: &str) -> u64 {
    let times = variant(told, name)[who].as_object().expect("an object");
    let sum = |of: &str| -> u64 {
        let states = times.iter().filter(|(state, _)| state.starts_with(of));
        states.map(|(_, span)| span.as_u64().expect("ns")).sum()
    };
    sum(prefix) * 100 / sum("")
}

/// Every capture showed as many retransmissions as the kernel counts.
fn assert_counts_agree(told: &Value) {
    for variant in told["variants"].as_array().expect("a list") {
        assert_eq!(variant["problems"], Value::Array(Vec::new()), "{}", variant["name"]);
        assert_eq!(variant["invalid"], 0, "{}", variant["name"]);
    }
}

const DOUBLED: [u64; 6] = [13_075, 28_960, 57_920, 115_840, 231_680, 76_856];

#[test]
fn slow_start_doubles_and_both_accounts_say_so() {
    let Some(told) = experiment("slow-start") else { return };
    assert_counts_agree(&told);
    for name in ["RTT 6 ms", "RTT 2 ms"] {
        assert_eq!(rounds(&told, name), [DOUBLED]);
        let list = variant(&told, name)["rounds"][0].as_array().expect("a list");
        let doubled = [10, 20, 40, 80, 160];
        for (round, segments) in list.iter().zip(doubled) {
            assert_eq!(round["segments"], segments);
            assert_eq!(round["limited_by"], "cwnd.slow_start");
        }
        let [ours, kernels] =
            ["explain_ns", "kernel_ns"].map(|who| share(&told, name, who, "cwnd.slow_start"));
        assert!(ours > 60 && ours.abs_diff(kernels) <= 1, "{ours} % and {kernels} %");
    }
}

#[test]
fn a_larger_initial_window_is_worth_what_the_receiver_lets_in() {
    let Some(told) = experiment("initcwnd") else { return };
    assert_counts_agree(&told);
    assert_eq!(rounds(&told, "initcwnd 10"), [DOUBLED]);
    // Its window begins at 64 KiB, less the response's head.
    assert_eq!(rounds(&told, "initcwnd 100")[0][0], 63_755);
    let first = rounds(&told, "initcwnd 100, rmem 6 MB")[0][0];
    assert_eq!(first, 65_203, "this kernel announces no more in its SYN");
}

#[test]
fn a_pause_costs_the_window_unless_it_is_told_not_to() {
    let Some(told) = experiment("idle-restart") else { return };
    assert_counts_agree(&told);
    assert_eq!(rounds(&told, "2 s"), [DOUBLED, DOUBLED]);
    assert_eq!(rounds(&told, "0.5 s")[1], [133_259, 269_328, 121_744]);
    for name in ["0.1 s", "2 s, restart off"] {
        assert!(rounds(&told, name)[1][0] > 450_000, "{name}: the window is there still");
    }
}

#[test]
fn a_send_buffer_holds_so_many_writes() {
    let Some(told) = experiment("sndbuf") else { return };
    assert_counts_agree(&told);
    for (name, each) in
        [("writes of 1400 B", 16_800), ("writes of 4096 B", 24_576), ("writes of 16384 B", 32_768)]
    {
        let rounds = &rounds(&told, name)[0];
        assert!(rounds[3..12].iter().all(|bytes| *bytes == each), "{name}: {rounds:?}");
        // The rest is slow start and the ends: 2 MB are soon sent.
        let [ours, kernels] =
            ["explain_ns", "kernel_ns"].map(|who| share(&told, name, who, "sndbuf"));
        assert!(ours > 90 && ours.abs_diff(kernels) <= 1, "{name}: {ours} % and {kernels} %");
    }
}

#[test]
fn a_reader_that_sleeps_closes_the_window() {
    let Some(told) = experiment("zero-window") else { return };
    assert_counts_agree(&told);
    for name in ["SO_RCVBUF 8192", "buffer as Linux has it"] {
        let [ours, kernels] =
            ["explain_ns", "kernel_ns"].map(|who| share(&told, name, who, "zero_window"));
        assert!(ours > 90 && ours == kernels, "{name}: {ours} % and {kernels} %");
    }
}

#[test]
fn what_is_lost_is_sent_again_and_counted() {
    let Some(told) = experiment("random-loss") else { return };
    assert_counts_agree(&told);
    assert!(variant(&told, "1 %")["resent"]["median"].as_u64() > Some(5));
    let [ours, kernels] =
        ["explain_ns", "kernel_ns"].map(|who| share(&told, "1 %", who, "recovery"));
    assert!(ours > 5 && ours.abs_diff(kernels) <= 3, "{ours} % and {kernels} %");
}

#[test]
fn a_full_disk_is_named_though_it_is_the_guest_that_meets_it() {
    let Some(_) = experiment("slow-start") else { return };
    let agent = uml::cache().expect("a cache").join("tcpwhy-agent");
    // What a guest needs, and no more than a part of its records.
    let room = fs::metadata(agent).expect("an agent").len() + 600_000;
    let place = tempfile::tempdir().expect("a temporary folder");
    let inside = format!("mount -t tmpfs -o size={room} none \"$0\" && exec \"$@\" --keep \"$0\"");
    let tried = Command::new("unshare")
        .args(["--mount", "sh", "-c", &inside])
        .arg(place.path())
        .arg(env!("CARGO_BIN_EXE_tcpwhy"))
        .args(["lab", "run", "slow-start", "--backend", "uml:6.1"])
        .output();
    let Ok(done) = tried else { return };
    let Run { status, stderr, .. } = finish(done);
    if stderr.starts_with("unshare: ") {
        return;
    }
    assert_eq!(status, Some(3), "{stderr}");
    assert!(stderr.contains("the disk is full: free some space"), "{stderr}");
    assert!(stderr.contains("what was recorded is in"), "{stderr}");
}

#[test]
fn a_slip_on_the_command_line_is_wrong_usage_and_says_what_there_is() {
    for (words, told) in [
        (&["slow-stat"][..], "did you mean `slow-start`?"),
        (&["slow-start", "--backend", "ulm"], "uml:VERSION"),
    ] {
        let Run { status, stderr, .. } = run(&[&["lab", "run"], words].concat());
        assert_eq!(status, Some(2), "{stderr}");
        assert!(stderr.contains(told), "{stderr}");
    }
}
