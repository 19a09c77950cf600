//! What hosts' tools printed, given by any door: several files, pipes, beside packets, after `--with`, with `--json`.

mod common;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use common::{Run, in_repository, run, run_with_stdin};
use serde_json::{Deserializer, Value};

const SETTINGS: &str = "net.ipv4.tcp_sack = 0\n";

fn case(name: &str) -> String {
    path(&in_repository("testdata/cases").join(name))
}

fn path(path: &Path) -> String {
    path.to_str().expect("UTF-8").to_owned()
}

fn capture() -> String {
    path(&in_repository("testdata/articles/download-512k-rtt7ms.tcpdump.txt"))
}

/// A file with this text, in a folder that has to live as long.
fn file(text: &str) -> (tempfile::TempDir, String) {
    let folder = tempfile::tempdir().expect("a folder");
    let file: PathBuf = folder.path().join("text.txt");
    fs::write(&file, text).expect("room");
    let name = path(&file);
    (folder, name)
}

fn bash(script: &str, words: &[&str]) -> Run {
    let mut command = Command::new("bash");
    command.args(["-c", script, env!("CARGO_BIN_EXE_tcpwhy")]).args(words);
    common::finish(command.output().expect("bash starts"))
}

#[test]
fn pipes_are_read_as_files_are() {
    let [ss, sysctl] =
        ["ss.txt", "sysctl.txt"].map(|name| case("several-pastes-of-one-host") + "/" + name);
    let told = bash(r#""$0" <(cat "$1") <(cat "$2")"#, &[&ss, &sysctl]);
    assert_eq!(told.status, Some(0), "{}", told.stderr);
    assert!(told.stdout.contains("[SEND_BUFFER_CEILING]"), "{}", told.stdout);
    let named = r#"d=$(mktemp -d) && mkfifo "$d/pipe" && (cat "$1" > "$d/pipe" &) && "$0" "$d/pipe" "$2"; rm -r "$d""#;
    let told = bash(named, &[&sysctl, &ss]);
    assert!(told.stdout.contains("[SEND_BUFFER_CEILING]"), "{}{}", told.stdout, told.stderr);
    let packed = bash(r#""$0" <(gzip -c "$1") "$2""#, &[&ss, &sysctl]);
    assert!(packed.stdout.contains("[SEND_BUFFER_CEILING]"), "{}", packed.stderr);
    let checked = bash(r#""$0" check <(cat "$1")"#, &[&sysctl]);
    assert_eq!((checked.status, &*checked.stderr), (Some(0), ""));
    let packets = bash(r#""$0" --no-predict <(cat "$1") <(cat "$2")"#, &[&capture(), &ss]);
    assert_eq!(packets.status, Some(0), "{}", packets.stderr);
    assert!(packets.stdout.contains("512 KiB in 5"), "{}", packets.stdout);
    assert!(packets.stdout.contains("SEND_BUFFER_LOCKED"), "both are answered");
}

#[test]
fn packets_of_two_named_pipes_that_are_written_in_turn_do_not_wait_for_one_another() {
    let folder = tempfile::tempdir().expect("a folder");
    let script = r#"cd "$3" && mkfifo a b && ( (cat "$1" > a; cat "$2" > b) & ) && timeout 60 "$0" --no-predict a b"#;
    let told = bash(script, &[&capture(), &capture(), &path(folder.path())]);
    assert_eq!(told.status, Some(0), "{}", told.stderr);
}

#[test]
fn several_hosts_are_answered_one_by_one_in_json_too() {
    let paste = case("two-hosts-in-one-paste") + "/paste.txt";
    for arguments in [vec!["--json", &paste], vec!["check", "--json", &paste]] {
        let told = run(&arguments);
        assert_eq!(told.status, Some(0), "{}", told.stderr);
        let documents: Vec<Value> = Deserializer::from_str(&told.stdout)
            .into_iter()
            .map(|document| document.expect("JSON"))
            .collect();
        let names: Vec<_> = documents.iter().map(|told| told["host"].as_str()).collect();
        assert_eq!(names, [Some("db-1"), Some("web-2")]);
        documents.iter().for_each(common::schema::assert_is_as_promised);
    }
    let one = run(&["check", &paste, "--path", "10.0.0.7", "--rate", "1gbit", "--rtt", "1ms"]);
    assert_eq!(one.status, Some(3));
    assert!(one.stderr.contains("several hosts (db-1, web-2)"), "{}", one.stderr);
    assert_eq!(run(&["check", &paste, "--fail-on", "warning"]).status, Some(1));
}

#[test]
fn what_holds_open_connections_is_told_by_each_door() {
    let pasted = |name: &str| path(&in_repository("testdata/host/pasted").join(name));
    for (name, state, words) in [
        ("reader-and-sender.txt", "rwnd.reader", "Held by the receiver's program"),
        ("small-send-buffer.txt", "sndbuf", "Probably held by the send buffer"),
        ("small-receive-buffer.txt", "rwnd.cap", "Probably held by the receive window"),
        ("loop-to-ssthresh.txt", "cwnd.cached_ssthresh", "Perhaps held by a remembered threshold"),
    ] {
        let file = pasted(name);
        for door in [vec![&*file], vec!["check", &file], vec!["--with", &file]] {
            let told = run(&door);
            assert_eq!(told.status, Some(0), "{}", told.stderr);
            assert!(told.stdout.contains(words), "{door:?}: {}", told.stdout);
        }
        let told: Value = serde_json::from_str(&run(&["--json", &file]).stdout).expect("JSON");
        common::schema::assert_is_as_promised(&told);
        let states: Vec<_> = told["connections"].as_array().expect("connections").iter().collect();
        assert_eq!(states[0]["state"], state, "{name}");
        assert!(states[0]["t_ns"].is_null(), "the text has no date");
    }
    let loops = run(&[&pasted("loop-to-ssthresh.txt")]);
    assert!(!loops.stdout.contains("240.0.0."), "an end that is not told has no address");
}

#[test]
fn a_text_of_which_nothing_is_known_keeps_no_other_back() {
    let [ss, sysctl] =
        ["ss.txt", "sysctl.txt"].map(|name| case("several-pastes-of-one-host") + "/" + name);
    let (_folder, letter) = file("Dear all,\nit is slow.\n");
    let told = run(&[&ss, &letter, &sysctl, "no/such/file"]);
    assert_eq!(told.status, Some(3));
    assert!(told.stdout.contains("[SEND_BUFFER_CEILING]"), "{}", told.stdout);
    assert!(told.stderr.contains("holds nothing that is known"), "{}", told.stderr);
    assert!(told.stderr.contains("cannot read no/such/file"), "{}", told.stderr);
}

#[test]
fn a_document_about_packets_says_what_it_leaves_out() {
    let (_folder, settings) = file(SETTINGS);
    let told = run(&["--json", &capture(), &settings]);
    assert_eq!(told.status, Some(0), "{}", told.stderr);
    serde_json::from_str::<Value>(&told.stdout).expect("one document");
    assert!(told.stderr.contains("is left out; `tcpwhy "), "{}", told.stderr);
    let csv = run(&["--csv", &capture(), &settings]);
    assert!(csv.status == Some(0) && csv.stderr.contains("the CSV is about the packets"));
    let text = run(&["--csv", &settings]);
    assert!(text.status == Some(0) && text.stdout.contains("[LOSS_RECOVERY_OFF]"));
    assert!(text.stderr.contains("answered as text"), "{}", text.stderr);
}

#[test]
fn no_address_leaves_an_answer_whose_addresses_were_to_go() {
    let text = case("host-text-beside-a-capture-by-address") + "/srv.txt";
    let told = run(&["--anonymize", "--no-predict", &capture(), &text]);
    assert_eq!(told.status, Some(0), "{}", told.stderr);
    assert!(!format!("{}{}", told.stdout, told.stderr).contains("192.168.247."));
    assert_eq!(run(&["--anonymize", &text]).status, Some(2));
}

#[test]
fn a_host_s_text_after_with_is_taken_for_what_it_is() {
    let (_folder, settings) = file(SETTINGS);
    let alone = run_with_stdin(&["--with", &settings], b"");
    assert!(alone.status == Some(0) && alone.stdout.contains("[LOSS_RECOVERY_OFF]"));
    let beside = run(&["--no-predict", &capture(), "--with", &settings]);
    assert_eq!(beside.status, Some(0), "{}", beside.stderr);
    assert!(beside.stdout.contains("[LOSS_RECOVERY_OFF]"), "{}", beside.stdout);
    assert!(beside.stderr.contains("--host-snapshot server="), "{}", beside.stderr);
    let ss = case("several-pastes-of-one-host") + "/ss.txt";
    assert!(run(&["--with", &ss]).stdout.contains("[SEND_BUFFER_LOCKED]"));
    let (_folder, strace) = file(
        "10:00:00.000100 write(3, \"x\"..., 1) = 1\n10:00:00.300100 write(3, \"x\"..., 1) = 1\n\
         10:00:00.600100 write(3, \"x\"..., 1) = 1\n",
    );
    let told = run(&["--no-predict", &capture(), "--with", &strace]);
    assert_eq!(told.status, Some(0), "{}{}", told.stdout, told.stderr);
    let (_folder, iperf) = file(
        "[  5]   0.00-10.00  sec  1.10 GBytes   944 Mbits/sec    0             sender\n\
         [  5]   0.00-10.04  sec  1.09 GBytes   936 Mbits/sec                  receiver\n",
    );
    let told = run(&["--no-predict", &capture(), "--with", &iperf]);
    assert_eq!(told.status, Some(0), "{}{}", told.stdout, told.stderr);
    let (_folder, letter) = file("Dear all,\nit is slow.\n");
    let told = run(&["--with", &letter]);
    assert_eq!(told.status, Some(3));
    assert!(told.stderr.contains("that --with takes"), "{}", told.stderr);
}
