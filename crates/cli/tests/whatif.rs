//! `tcpwhy whatif`: captures of real kernels are run otherwise, and other captures of the same
//! kernels say what comes of it.

mod common;

use common::{in_repository, run};
use serde_json::Value;

fn testdata(name: &str) -> String {
    in_repository("testdata").join(name).to_str().expect("a name").to_owned()
}

fn asked(capture: &str, set: &[&str]) -> Value {
    let file = testdata(&format!("kernel/{capture}.server.pcap.gz"));
    let mut words = vec!["whatif", &file, "--json"];
    words.extend(set.iter().flat_map(|set| ["--set", set]));
    let ran = run(&words);
    assert_eq!(ran.status, Some(0), "{}", ran.stderr);
    serde_json::from_str(&ran.stdout).expect("JSON")
}

fn time(account: &Value) -> f64 {
    account["time_ns"].as_f64().expect("a time")
}

#[test]
fn another_capture_of_the_kernel_says_the_same_of_the_change() {
    for (capture, set, truth) in [
        ("slowstart-rtt6", "initcwnd=100", "initcwnd100"),
        ("slowstart-rtt20", "rtt=6ms", "slowstart-rtt6"),
        ("slowstart-rtt6", "congctl=reno", "slowstart-rtt6-reno"),
        ("rwnd-cap-64k-rtt100", "rtt=20ms", "rwnd-cap-64k-rtt20"),
    ] {
        let told = asked(capture, &[set]);
        assert_eq!(told["repeats"], true, "{capture}: {told}");
        let (answer, real) =
            (time(&told["changes"][0]["account"]), time(&asked(truth, &[])["seen"]));
        assert!((answer / real - 1.0).abs() < 0.01, "{capture} with {set}: {answer} for {real}");
    }
}

#[test]
fn a_kept_window_is_worth_what_it_is_to_the_kernel_but_for_one_round_trip() {
    let keep = "server.sysctl.net.ipv4.tcp_slow_start_after_idle=0";
    let told = asked("idle-restart-on", &[keep]);
    let (answer, seen) = (time(&told["changes"][0]["account"]), time(&told["seen"]));
    let real = time(&asked("idle-restart-off", &[])["seen"]);
    // Nearly all of it is silence, which nothing shortens: what counts is the difference.
    assert!((answer - real).abs() < 6.1e6 && seen - real > 20e6, "{answer} for {real}, {seen}");
}

#[test]
fn captures_of_many_causes_are_repeated() {
    for capture in [
        "initcwnd100",
        "ipv6-512k",
        "keepalive-think500",
        "lag-rwnd-cap",
        "local-tbf-8mbit",
        "loss-one-early",
        "loss-one-mid",
        "loss-retransmission",
        "loss-single-packet-rto",
        "loss-tail-rto",
        "loss-tail-tlp",
        "mss-536",
        "nagle-delack",
        "nosack-4m",
        "notimestamps-4m",
        "nowscale-4m",
        "reqresp-think50",
        "sndbuf-wmem4096",
        "syn-loss",
    ] {
        let told = asked(capture, &["rtt=1ms"]);
        assert_eq!(told["repeats"], true, "{capture}: {}", told["replay"]);
        let change = &told["changes"][0];
        assert!(change["low_ns"].as_i64() <= change["account"]["time_ns"].as_i64());
        assert!(change["account"]["time_ns"].as_i64() <= change["high_ns"].as_i64());
    }
}

#[test]
fn the_manual_shows_what_is_printed() {
    let kept = std::fs::read_to_string(in_repository("docs/whatif.md")).expect("is there");
    let told = run(&["whatif", &testdata("listings/articles/download-512k-rtt7ms.tcpdump.txt")]);
    let shown = |line: &str| format!("    {line}").trim_end().to_owned();
    let lines: Vec<_> = told.stdout.lines().map(shown).collect();
    assert!(kept.contains(&lines.join("\n")), "stale:\n{}", told.stdout);
}

#[test]
fn what_is_not_repeated_is_not_answered() {
    let told = asked("rwnd-cap-rmem4096", &["rtt=1ms"]);
    assert_eq!((&told["repeats"], &told["changes"]), (&Value::Bool(false), &Value::Array(vec![])));
    let file = testdata("kernel/rwnd-cap-rmem4096.server.pcap.gz");
    let mistyped = run(&["whatif", &file, "--set", "colour=red"]);
    assert_eq!(mistyped.status, Some(2), "{}", mistyped.stdout);
    assert!(mistyped.stderr.contains("colour"), "{}", mistyped.stderr);
    let words = run(&["whatif", &file]).stdout;
    assert!(
        words.contains("the model does not repeat it") && words.contains("rwnd.cap"),
        "{words}"
    );
}

#[test]
fn the_fitted_scenario_can_be_predicted() {
    let file = testdata("kernel/slowstart-rtt6.server.pcap.gz");
    let scenario = run(&["whatif", &file, "--scenario"]).stdout;
    let folder = tempfile::tempdir().expect("room");
    let path = folder.path().join("fitted.toml");
    std::fs::write(&path, scenario).expect("room");
    let told =
        run(&["predict", path.to_str().expect("a name"), "--kernel", "6.1", "--json"]).stdout;
    let told: Value = serde_json::from_str(&told).expect("JSON");
    assert_eq!(told["runs"][0]["rounds"], 6, "{told}");
}

#[test]
fn a_change_without_an_answer_leaves_the_others_theirs() {
    let file = testdata("kernel/slowstart-rtt6.server.pcap.gz");
    let ran = run(&["whatif", &file, "--set", "loss=100%,1%", "--json"]);
    assert_eq!(ran.status, Some(0), "{}", ran.stderr);
    let told: Value = serde_json::from_str(&ran.stdout).expect("JSON");
    assert_eq!(told["changes"][0]["what"], "loss 1%", "{told}");
    assert_eq!(told["refused"][0]["what"], "loss 100%", "{told}");
    let words = run(&["whatif", &file, "--set", "loss=100%"]).stdout;
    assert!(words.contains("no answer to loss 100%: "), "{words}");
}

#[test]
fn a_link_so_slow_that_no_word_of_the_kernel_holds_its_round_trips_is_no_mistake() {
    let file = testdata("kernel/slowstart-rtt6.server.pcap.gz");
    let ran = run(&["whatif", &file, "--set", "rate=100bit"]);
    assert_eq!(ran.status, Some(0), "{}", ran.stderr);
    assert!(ran.stdout.contains("rate 100bit"), "{}", ran.stdout);
}

#[test]
fn what_makes_no_sense_is_refused_with_what_to_write() {
    let file = testdata("kernel/slowstart-rtt6.server.pcap.gz");
    let cases: [(&[&str], i32, &str); 6] = [
        (&["--set", "initcwnd"], 2, "initcwnd=20"),
        (&["--set", "initcwnd=many"], 2, "many"),
        (&["--set", "colour=red"], 2, "colour"),
        (&["--set", "rate=-5mbit"], 2, "-5mbit"),
        (&["--connection", "7"], 2, "7"),
        (&["--set", "rtt=1..200", "--set", "initcwnd=1..100"], 2, "10000"),
    ];
    for (words, code, said) in cases {
        let ran = run(&[&["whatif", &file], words].concat());
        assert_eq!(ran.status, Some(code), "{words:?}: {}", ran.stderr);
        assert!(ran.stderr.contains(said), "{words:?}: {}", ran.stderr);
    }
    let no_capture = run(&["whatif", &testdata("links/README.md")]);
    assert_eq!(no_capture.status, Some(3), "{}", no_capture.stderr);
}

#[test]
fn what_takes_no_time_or_too_much_has_no_answer_and_says_why() {
    let file = testdata("kernel/slowstart-rtt6.server.pcap.gz");
    let asked = |set: &[&str]| {
        let words = set.iter().flat_map(|set| ["--set", set]);
        run(&["whatif", &file].into_iter().chain(words).collect::<Vec<_>>())
    };
    let nothing = asked(&["rtt=0", "rate=unlimited"]);
    assert_eq!(nothing.status, Some(2), "{}", nothing.stdout);
    assert!(nothing.stderr.contains("path.rtt: 0 on a path without a rate"), "{}", nothing.stderr);
    let larger = ["rmem=1GiB", "wmem=1GiB", "rate=unlimited"];
    let endless = asked(&[&["application.download=64GiB"], &larger[..]].concat());
    assert_eq!(endless.status, Some(0), "{}", endless.stderr);
    assert!(endless.stdout.contains(" events of the model, many times what"), "{}", endless.stdout);
    assert!(endless.stdout.contains("with `tcpwhy predict`"), "{}", endless.stdout);
    let unknown = asked(&["rmem=16TiB"]);
    assert_eq!(unknown.status, Some(2), "{}", unknown.stdout);
    assert!(unknown.stderr.contains("rmem: `TiB` is no unit of a size"), "{}", unknown.stderr);
}
