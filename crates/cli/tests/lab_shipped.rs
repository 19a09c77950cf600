//! Every scenario that comes with tcpwhy, carried out once and held against what it expects: on the kernel that runs, a
//! chosen few in simulated time, and in the model what no kernel here can do.
//!
//! A test of the running kernel shares the machine with others: what does not come as expected is run once more, three
//! times over, before it counts.

mod common;

use std::fs;
use std::sync::Mutex;
use std::thread;

use common::expected::{NOT_YET, broken};
use common::{Run, in_repository, run};

/// What the running kernel cannot do, what can, and what its refusal says.
const ELSEWHERE: [(&str, &str, &str); 5] = [
    ("byte-queue-limits", "model", "use `tcpwhy predict`"),
    ("fair-queueing", "uml:6.1", "use --backend uml"),
    ("pmtu-blackhole", "model", "use `tcpwhy predict`"),
    ("textbook", "model", "use `tcpwhy predict`"),
    ("vegas", "uml:6.1", "congctl"),
];

/// What also runs in simulated time here; `lab.rs` has more.
const SIMULATED: [&str; 7] = [
    "tail-loss",
    "nagle-delayed-ack",
    "no-window-scaling",
    "buffer-sweep-rpc",
    "close-wait",
    "orphans",
    "two-nics",
];

/// Runs at once. Most of a run is waiting.
const AT_ONCE: usize = 2;

fn shipped() -> Vec<String> {
    let entries = fs::read_dir(in_repository("scenarios")).expect("there are scenarios");
    let mut names: Vec<String> = entries
        .map(|entry| entry.expect("an entry").path())
        .map(|path| path.file_stem().expect("a name").to_string_lossy().into_owned())
        .collect();
    names.sort();
    names
}

fn carried_out(name: &str, backend: &str, repeats: &str) -> Run {
    let words =
        ["lab", "run", name, "--backend", backend, "--repeat", repeats, "--unmeasured", "--json"];
    run(&words)
}

/// What is wrong with a run of a scenario; `None` where the backend does not work here.
#[expect(clippy::print_stderr, reason = "why a test was skipped")]
fn wrong(name: &str, backend: &str) -> Option<Vec<String>> {
    let mut last = Vec::new();
    for repeats in ["1", "3"] {
        let Run { status, stdout, stderr } = carried_out(name, backend, repeats);
        match status {
            Some(0 | 1) => last = broken(&serde_json::from_str(&stdout).expect("JSON")),
            _ if std::env::var_os("TCPWHY_REQUIRE_ALL").is_some_and(|v| v == "1") => {
                return Some(vec![format!("{name}: {stderr}")]);
            }
            _ => {
                eprintln!("skipped {name}: {stderr}");
                return None;
            }
        }
        if last.is_empty() {
            break;
        }
    }
    Some(last)
}

/// Carries all out, a few at once, and tells all that is wrong together.
fn assert_as_expected(names: Vec<(String, String)>) {
    let queue = Mutex::new(names);
    let found = Mutex::new(Vec::new());
    thread::scope(|scope| {
        for _ in 0..AT_ONCE {
            scope.spawn(|| {
                loop {
                    let next = queue.lock().expect("nobody panics with it").pop();
                    let Some((name, backend)) = next else { break };
                    let wrong = wrong(&name, &backend).unwrap_or_default();
                    found.lock().expect("nobody panics with it").extend(wrong);
                }
            });
        }
    });
    let found = found.into_inner().expect("all are done");
    assert!(found.is_empty(), "not as expected:\n  {}", found.join("\n  "));
}

#[test]
fn every_scenario_comes_as_expected_on_the_running_kernel() {
    let here = |name: &String| ELSEWHERE.iter().all(|(other, ..)| other != name);
    let names = shipped().into_iter().filter(here).rev();
    assert_as_expected(names.map(|name| (name, "tun".to_owned())).collect());
}

#[test]
fn what_the_running_kernel_cannot_do_is_refused_with_what_can_and_comes_as_expected_there() {
    for (name, _, said) in ELSEWHERE {
        let Run { status, stderr, .. } = carried_out(name, "tun", "1");
        assert_eq!(status, Some(2), "{name}: {stderr}");
        assert!(stderr.contains(said), "{name}: {stderr}");
    }
    let names = ELSEWHERE.iter().filter(|(name, ..)| *name != "textbook");
    assert_as_expected(names.map(|(name, on, _)| ((*name).to_owned(), (*on).to_owned())).collect());
}

#[test]
fn a_few_come_as_expected_in_simulated_time() {
    let on_uml = |name: &str| (name.to_owned(), "uml:6.1".to_owned());
    assert_as_expected(SIMULATED.into_iter().map(on_uml).collect());
}

#[test]
fn what_is_expected_in_vain_is_told_and_ends_with_a_status() {
    let words = ["lab", "run", "nagle-delayed-ack", "--backend", "model", "--repeat", "1"];
    let vain = ["--set", "expect.named=[\"SMALL_MSS\"]", "--set", "expect.absent=[]"];
    let Run { status, stdout, stderr } = run(&[&words[..], &vain].concat());
    assert_eq!(status, Some(1), "{stdout}{stderr}");
    assert!(stdout.contains("NOT as expected\n  Nagle: SMALL_MSS is not named"), "{stdout}");
    let other = ["--set", "path.rtt=8ms"];
    let Run { status, stdout, stderr } = run(&[&words[..], &other].concat());
    assert_eq!(status, Some(0), "{stdout}{stderr}");
    assert!(!stdout.contains("as expected"), "another experiment: {stdout}");
}

/// Each that is listed as not yet as expected is one that is shipped.
#[test]
fn what_is_known_is_of_scenarios_that_there_are() {
    let names = shipped();
    for (name, ..) in NOT_YET {
        assert!(names.iter().any(|shipped| shipped == name), "{name}");
    }
}
