//! `--with` and `--rate` from the command line: what is read, what is said, and how it exits.

mod common;

use common::{in_repository, run, run_with_stdin};
use serde_json::Value;

fn evidence(name: &str) -> String {
    in_repository("testdata/evidence").join(name).to_str().expect("UTF-8").to_owned()
}

#[test]
fn evidence_stands_in_the_account_of_its_connection() {
    let (capture, ss, trace) =
        (evidence("ss.server.pcap.gz"), evidence("ss.txt"), evidence("trace_pipe.txt"));
    let run = run(&[&*capture, "--full", "--with", &ss, &trace, "--rate", "50mbit"]);
    assert_eq!(run.status, Some(0), "{}", run.stderr);
    for words in [
        format!("With {ss}: "),
        format!("With {trace}: "),
        "With --rate 50mbit: ".to_owned(),
        "Beside the capture\n".to_owned(),
    ] {
        assert!(run.stdout.contains(&words), "{words}\n{}", run.stdout);
    }
}

#[test]
fn a_trace_alone_is_explained_by_itself_and_nothing_is_read_from_standard_input() {
    let strace = evidence("articles/strace-excerpt.txt");
    let run = run_with_stdin(&["--with", &strace], b"no capture");
    assert_eq!((run.status, &*run.stderr), (Some(0), ""));
    let said = run.stdout.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(
        said.contains("no call explains it: the longest of 29 calls, write to /root/rcv.dat"),
        "{said}"
    );
    assert!(!said.contains("The capture"), "{said}");
}

#[test]
fn what_is_no_evidence_is_named_and_the_rest_goes_on() {
    let capture = evidence("ss.server.pcap.gz");
    let (none, ss) = (evidence("README.md"), evidence("ss.txt"));
    let run = run(&["--json", &capture, "--with", &none, &capture, &ss]);
    assert_eq!(run.status, Some(3), "a file could not be read");
    assert!(
        run.stderr.contains("README.md: it is none of the kinds of evidence"),
        "{}",
        run.stderr
    );
    assert!(run.stderr.contains("captures are named without --with"), "{}", run.stderr);
    let report: Value = serde_json::from_str(&run.stdout).expect("JSON");
    assert_eq!(report["with"][2]["connections"], 1);
    assert!(!report["connections"][0]["beside"].as_array().expect("a list").is_empty());
}

#[test]
fn evidence_without_with_is_told_by_its_content() {
    for (name, says) in [
        ("ss.txt", "1 socket"),
        ("nstat-after.txt", "counters"),
        ("strace-ttt.txt", "[PROGRAM_CALLS]"),
        ("perf-trace.txt", "[PROGRAM_CALLS]"),
        ("trace_pipe.txt", "trace_pipe.txt"),
        ("uml-slow-start.tcp_info.jsonl", "slow start"),
        ("iperf3.json", "iperf3.json"),
    ] {
        let run = run(&[&evidence(name)]);
        assert_eq!(run.status, Some(0), "{name}: {}", run.stderr);
        assert!(run.stdout.contains(says), "{name}: {}", run.stdout);
    }
    let none = run(&[&evidence("README.md")]);
    assert!(!none.stderr.contains("--with"), "{}", none.stderr);
}

#[test]
fn addresses_and_folders_of_evidence_are_hidden_too() {
    let (capture, other) = (evidence("ss.server.pcap.gz"), evidence("articles/ss-case1.txt"));
    let run = run(&["--json", "--anonymize", &capture, "--with", &other, &evidence("ss.txt")]);
    let report: Value = serde_json::from_str(&run.stdout).expect("JSON");
    assert_eq!(report["with"][0]["source"], "with-1.txt");
    assert!(!run.stdout.contains("172.16.58."), "{}", report["with"]);
}

#[test]
fn a_rate_that_is_none_is_refused() {
    let run = run(&["x.pcap", "--rate", "fast"]);
    assert_eq!(run.status, Some(2));
    assert!(run.stderr.contains("`fast` is not a rate"), "{}", run.stderr);
}

#[test]
fn a_part_of_the_time_keeps_the_waits_of_that_part() {
    let (capture, calls) = (evidence("strace-ttt.client.pcap.gz"), evidence("strace-ttt.txt"));
    let waits = |more: &[&str]| -> Vec<Value> {
        let run = run(&[&["--json", &*capture, "--with", &calls], more].concat());
        let report: Value = serde_json::from_str(&run.stdout).expect("JSON");
        let beside = report["connections"][0]["beside"].as_array().expect("a list").clone();
        beside.into_iter().filter(|each| each["quantity"] == "calls").collect()
    };
    let all = waits(&[]);
    let late = waits(&["--from", "+100ms"]);
    assert!(!late.is_empty() && late.len() < all.len(), "{late:#?}");
    let before = |waits: &[Value]| waits.last().and_then(|wait| wait["from_ns"].as_i64());
    assert_eq!(before(&late), before(&all).map(|from| from - 100_000_000));
}
