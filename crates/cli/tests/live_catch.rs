//! `tcpwhy live --capture-when`, on connections over the loopback interface of a namespace of the test's own.

mod common;

use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use common::path::Place;
use common::{Run, finish, run, tcpwhy};
use serde_json::Value;

/// A namespace with senders whose reader stands still, but that reads a little each 300 ms.
struct Stalled {
    place: Place,
    ports: Vec<u16>,
}

/// `None` where this machine has no namespaces to give.
#[expect(clippy::print_stderr, reason = "why a test was skipped")]
fn stalled(senders: usize) -> Option<Stalled> {
    let place = match Place::new() {
        Ok(place) => place,
        Err(error) => {
            let required = std::env::var_os("TCPWHY_REQUIRE_ALL").is_some_and(|v| v == "1");
            assert!(!required, "no namespaces: {error}");
            eprintln!("skipped: no namespaces: {error}; run as root");
            return None;
        }
    };
    let ports = place.does(move || {
        // Of two ports without a listener the lower one is the service's: those that clients get begin at 32768.
        let listener = TcpListener::bind("127.0.0.1:8000").expect("the namespace has nothing else");
        let to = listener.local_addr().expect("bound");
        let mut ports = Vec::new();
        for _ in 0..senders {
            let mut sender = TcpStream::connect(to).expect("it listens");
            ports.push(sender.local_addr().expect("bound").port());
            let mut reader = listener.accept().expect("one waits").0;
            std::thread::spawn(move || while sender.write_all(&[7; 1 << 13]).is_ok() {});
            std::thread::spawn(move || {
                loop {
                    std::thread::sleep(Duration::from_millis(300));
                    if reader.read(&mut [0; 1 << 10]).is_err() {
                        break;
                    }
                }
            });
        }
        ports
    });
    // Until their windows are shut.
    std::thread::sleep(Duration::from_millis(500));
    Some(Stalled { place, ports })
}

/// Looks into the namespace, with captures of a second into `folder`.
fn caught(stalled: &Stalled, folder: &Path, words: &[&str]) -> Run {
    let mut command = tcpwhy();
    command.args(["live", "--netns", &stalled.place.file, "--interval", "100ms"]);
    command.args(["--capture-for", "1s", "--capture-to"]).arg(folder).args(words);
    finish(command.output().expect("it starts"))
}

fn files(folder: &Path) -> Vec<std::path::PathBuf> {
    let mut all: Vec<_> =
        folder.read_dir().expect("a folder").map(|entry| entry.expect("one").path()).collect();
    all.sort();
    all
}

#[test]
fn a_sender_whose_window_is_shut_is_captured_alone_and_explained() {
    let Some(stalled) = stalled(2) else { return };
    let folder = tempfile::tempdir().expect("a folder");
    let port = stalled.ports[0];
    let when = format!("port {port} and state=zero_window for 300ms");
    let run = caught(&stalled, folder.path(), &["--for", "2500ms", "--capture-when", &when]);
    assert_eq!(run.status, Some(0), "{}", run.stderr);
    assert!(
        run.stderr.contains(&format!("{when}: capturing 127.0.0.1:{port} -> ")),
        "{}",
        run.stderr
    );
    let files = files(folder.path());
    assert_eq!(files.len(), 1, "one connection, once, and no spool: {files:?}; {}", run.stderr);
    let file = files[0].to_str().expect("UTF-8");
    assert!(file.contains(&format!("-{port}.pcapng")), "{file}");
    assert!(run.stdout.contains(&format!("is in {file}: ")), "{}", run.stdout);
    let words = run.stdout.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(words.contains("zero window") || words.contains("reads too slowly"), "{words}");
    let report = finish(tcpwhy().args(["--json", file]).output().expect("it starts"));
    let report: Value = serde_json::from_str(&report.stdout).expect("a report");
    let connections = report["connections"].as_array().expect("a list");
    assert_eq!(connections.len(), 1, "of two senders: {connections:#?}");
    let client = connections[0]["client"].as_str().expect("an end");
    assert!(client.ends_with(&format!(":{port}")), "{client}");
    assert!(
        report["with"].to_string().contains("tcp_info"),
        "its socket beside it: {}",
        report["with"]
    );
}

#[test]
fn programs_get_a_line_with_file_and_verdict_and_no_more_run_at_once_than_asked() {
    let Some(stalled) = stalled(3) else { return };
    let folder = tempfile::tempdir().expect("a folder");
    let words =
        ["--json", "--for", "700ms", "--captures", "2", "--capture-when", "state=zero_window"];
    let run = caught(&stalled, folder.path(), &words);
    assert_eq!(run.status, Some(0), "{}", run.stderr);
    let lines: Vec<Value> =
        run.stdout.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
    let captures: Vec<&Value> = lines.iter().filter(|line| line.get("capture").is_some()).collect();
    // They were asked for a second each; the end of the looks ends them, too.
    assert_eq!(captures.len(), 2, "{captures:?}");
    for line in captures {
        let file = Path::new(line["capture"]["file"].as_str().expect("a file"));
        assert!(
            file.is_file() && line["capture"]["verdict"].as_str().is_some_and(|v| !v.is_empty())
        );
        assert!(line["cookie"].as_u64().is_some_and(|cookie| cookie > 0), "{line}");
    }
    assert!(lines.iter().any(|line| line["state"] == "zero_window"));
}

#[test]
fn a_condition_that_does_not_hold_for_so_long_captures_nothing() {
    let Some(stalled) = stalled(1) else { return };
    let folder = tempfile::tempdir().expect("a folder");
    let words = ["--for", "1s", "--capture-when", "state=zero_window for 1h"];
    let run = caught(&stalled, folder.path(), &words);
    assert_eq!(run.status, Some(0), "{}", run.stderr);
    assert_eq!(files(folder.path()).len(), 0, "{}", run.stderr);
}

#[test]
fn what_cannot_be_done_is_said_at_once() {
    let odd = run(&["live", "--capture-when", "state=stuck for 2s"]);
    assert_eq!(odd.status, Some(2), "{}", odd.stderr);
    assert!(odd.stderr.contains("known: state=NAME"), "{}", odd.stderr);
    let nowhere = run(&["live", "--capture-when", "slow", "--capture-to", "/nowhere/at/all"]);
    assert_eq!(nowhere.status, Some(3), "{}", nowhere.stderr);
    assert!(
        nowhere.stderr.contains("there is no such folder")
            || nowhere.stderr.contains("CAP_NET_RAW")
    );
    let alone = run(&["live", "--capture-for", "2s"]);
    assert_eq!(alone.status, Some(2), "{}", alone.stderr);
    let done = Command::new("setpriv")
        .args([
            "--bounding-set",
            "-net_raw",
            "--inh-caps",
            "-net_raw",
            "--",
            env!("CARGO_BIN_EXE_tcpwhy"),
        ])
        .args(["live", "--for", "1h", "--capture-when", "slow"])
        .output();
    let Ok(refused) = done.map(finish) else { return };
    if refused.stderr.contains("setpriv") {
        // Who is not root may not lower its bounds, and has no such right anyway.
        return;
    }
    assert_eq!(refused.status, Some(3), "{}", refused.stderr);
    assert!(refused.stderr.contains("CAP_NET_RAW"), "{}", refused.stderr);
}
