//! Does every kind of bad input end in a sentence, a report of what was read before it, and the
//! right exit status - and never in a panic, a hang or without memory?

#![cfg(unix)]

mod common;

use std::fs::{self, Permissions};
use std::io::{Read, Write};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use common::{PACKETS, Pcap, Run, finish, ipv4, run, run_with_stdin, tcpwhy};
use serde_json::Value;
use tempfile::TempDir;

/// Runs on a file of this content.
fn run_on(content: &[u8]) -> Run {
    let folder = TempDir::new().expect("a folder");
    let path = folder.path().join("capture.pcap");
    fs::write(&path, content).expect("written");
    run(&["--json".as_ref(), path.as_os_str()])
}

/// The first capture of the report that was printed.
fn capture(run: &Run) -> Value {
    let report: Value = serde_json::from_str(&run.stdout).unwrap_or_else(|_| panic!("{run:?}"));
    report["captures"][0].clone()
}

/// The file could not be read at all, and the sentence says `why`.
#[track_caller]
fn assert_unreadable(run: &Run, why: &str) {
    assert_eq!(run.status, Some(3), "{run:?}");
    assert!(run.stderr.starts_with("tcpwhy: cannot read "), "{run:?}");
    assert!(run.stderr.contains(why), "{run:?}");
    assert_eq!(run.stderr.lines().count(), 1, "{run:?}");
    assert_eq!(run.stdout, "", "{run:?}");
}

/// The file was read in part: `packets` of it, and the sentence and the report say so.
#[track_caller]
fn assert_partial(run: &Run, packets: u64) {
    assert_eq!(run.status, Some(0), "{run:?}");
    assert!(run.stderr.contains("was read only in part"), "{run:?}");
    assert_eq!(capture(run)["packets"], packets, "{run:?}");
    let capture = capture(run);
    let told = capture["error"].is_string() || capture["quality"][0]["kind"] == "cut_short";
    assert!(told, "{run:?}");
}

/// The content, in a gzip file.
fn gzip(content: &[u8]) -> Vec<u8> {
    let mut packed = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
    packed.write_all(content).expect("memory");
    packed.finish().expect("memory")
}

fn one_connection() -> Pcap {
    Pcap::new().connection(1_000_000, (1, 40_000), 80)
}

#[test]
fn a_missing_file() {
    assert_unreadable(&run(&["no/such/file.pcap"]), "no/such/file.pcap: there is no such file");
}

#[test]
fn a_directory() {
    assert_unreadable(&run(&["src"]), "`tcpwhy src/*`");
}

#[test]
fn a_file_without_permission() {
    // Root may read everything, so root runs the binary, from a place open to all, as nobody.
    const NOBODY: u32 = 65_534;
    let folder = TempDir::new().expect("a folder");
    fs::set_permissions(folder.path(), Permissions::from_mode(0o755)).expect("opened");
    let binary = folder.path().join("tcpwhy");
    fs::copy(env!("CARGO_BIN_EXE_tcpwhy"), &binary).expect("copied");
    let file = folder.path().join("secret.pcap");
    fs::write(&file, &one_connection().0).expect("written");
    fs::set_permissions(&file, Permissions::from_mode(0o000)).expect("closed");

    let mut command = Command::new(&binary);
    command.arg(&file).stdin(Stdio::null());
    if fs::read(&file).is_ok() {
        command.uid(NOBODY).gid(NOBODY);
    }
    let run = finish(command.output().expect("starts"));
    assert_unreadable(&run, "permission denied");
}

#[test]
fn several_bad_files_are_all_named() {
    let run = run(&["no-a.pcap", "src", "no-b.pcap"]);
    assert_eq!(run.status, Some(3));
    assert_eq!(run.stderr.lines().count(), 3, "{run:?}");
}

#[test]
fn one_bad_file_of_several_costs_only_itself() {
    let folder = TempDir::new().expect("a folder");
    let path = folder.path().join("good.pcap");
    fs::write(&path, &one_connection().0).expect("written");
    let good = path.to_str().expect("UTF-8");
    let run = run(&["--json", "no-a.pcap", good]);
    assert_eq!(run.status, Some(3), "{run:?}");
    assert_eq!(run.stderr, "tcpwhy: cannot read no-a.pcap: there is no such file\n");
    let report: Value = serde_json::from_str(&run.stdout).expect("JSON");
    assert_eq!(report["connections"][0]["packets"], PACKETS);
    let text = common::run(&["no-a.pcap", good]).stdout;
    assert!(text.starts_with("INCOMPLETE: cannot read no-a.pcap: there is no such file"), "{text}");
}

#[test]
fn a_directory_on_standard_input() {
    let directory = fs::File::open("src").expect("is there");
    let run = finish(tcpwhy().arg("-").stdin(directory).output().expect("starts"));
    assert_unreadable(&run, "standard input: it is a directory; name the files in it");
    assert!(!run.stderr.contains("-/*"), "{run:?}");
}

#[test]
fn packed_in_a_way_that_is_not_read() {
    assert_unreadable(
        &run_on(b"\xfd7zXZ\0 and so on"),
        "`xz -dc FILE`, and let tcpwhy read that as `-`",
    );
}

#[test]
fn wrong_usage() {
    for args in [
        &["--no-such-flag"][..],
        &["--filter", "host and", "Cargo.toml"],
        &["--from", "yesterday", "Cargo.toml"],
        &["--from", "+2s", "--to", "+1s", "Cargo.toml"],
        &["--json", "--csv", "Cargo.toml"],
        &["--top", "0", "Cargo.toml"],
        &["-", "-"],
    ] {
        let run = run(args);
        assert_eq!(run.status, Some(2), "{run:?}");
        assert!(!run.stderr.is_empty(), "{run:?}");
        assert_eq!(run.stdout, "", "{run:?}");
    }
}

#[test]
fn help_and_version_are_no_errors() {
    for args in [["--help"], ["--version"], ["-h"]] {
        let run = run(&args);
        assert_eq!(run.status, Some(0), "{run:?}");
        assert_eq!(run.stderr, "", "{run:?}");
    }
}

#[test]
fn a_reader_who_has_seen_enough() {
    let mut command = tcpwhy();
    command
        .args(["--json", "-"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let mut child = command.spawn().expect("starts");
    // Nobody reads any more before the first byte can be printed.
    drop(child.stdout.take());
    child.stdin.take().expect("piped").write_all(&one_connection().0).expect("written");
    let run = finish(child.wait_with_output().expect("ends"));
    assert_eq!(run.status, Some(0), "{run:?}");
    assert!(!run.stderr.contains("roken pipe"), "{run:?}");
}

/// Sends what a terminal sends on Ctrl-C, while standard input stays open.
fn interrupted(content: &[u8]) -> Run {
    let mut command = tcpwhy();
    command
        .args(["--json", "-"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let mut child = command.spawn().expect("starts");
    let mut stdin = child.stdin.take().expect("piped");
    stdin.write_all(content).expect("written");
    // The signal is to come when it is waited for: then a second thread reads.
    let tasks = format!("/proc/{}/task", child.id());
    let began = Instant::now();
    while began.elapsed() < Duration::from_secs(10) {
        if fs::read_dir(&tasks).is_ok_and(|tasks| tasks.count() > 1) {
            break;
        }
        std::thread::yield_now();
    }
    // The shell's own `kill`: a bare machine has no program of that name.
    let kill = Command::new("sh").args(["-c", &format!("kill -INT {}", child.id())]).status();
    assert!(kill.expect("a shell is there").success());
    let run = finish(child.wait_with_output().expect("ends"));
    drop(stdin);
    run
}

#[test]
#[cfg(target_os = "linux")]
fn ctrl_c_before_the_first_packet() {
    assert_unreadable(&interrupted(b""), "interrupted");
}

#[test]
#[cfg(target_os = "linux")]
fn ctrl_c_on_a_pipe_explains_what_came() {
    let run = interrupted(&one_connection().0);
    assert_partial(&run, PACKETS);
    assert!(run.stderr.contains("interrupted"), "{run:?}");
}

#[test]
fn an_empty_file() {
    assert_unreadable(&run_on(b""), "empty");
    assert_unreadable(&run_with_stdin(&["-"], b""), "empty");
}

#[test]
fn a_file_of_another_kind() {
    let png = [&b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR"[..], &[0; 500]].concat();
    let run = run_on(&png);
    assert_eq!(run.status, Some(3), "{run:?}");
    assert!(run.stderr.starts_with("tcpwhy: cannot read "), "{run:?}");
}

#[test]
fn a_capture_without_packets() {
    let run = run_on(&Pcap::new().0);
    assert_eq!(run.status, Some(0), "{run:?}");
    assert!(run.stderr.contains("holds no packets"), "{run:?}");
}

#[test]
fn no_tcp_inside() {
    let udp = [0, 53, 0, 53, 0, 8, 0, 0];
    let run = run_on(&Pcap::new().record(0, &ipv4(17, [1, 2], &udp)).0);
    assert_eq!(run.status, Some(0), "{run:?}");
    assert!(run.stderr.contains("holds 1 packet but no TCP"), "{run:?}");
    assert!(run.stderr.contains("not TCP over IP"), "{run:?}");
}

#[test]
fn a_file_header_cut_short() {
    let run = run_on(&Pcap::new().0[..17]);
    assert_eq!(run.status, Some(3), "{run:?}");
}

#[test]
fn a_record_cut_short() {
    let whole = one_connection().0;
    // In the last record's data, then in its header.
    for cut in [7, 20 + 20 + 9] {
        assert_partial(&run_on(&whole[..whole.len() - cut]), PACKETS - 1);
    }
}

#[test]
fn a_record_of_absurd_length() {
    let mut absurd = one_connection().0;
    absurd.extend([0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff]);
    absurd.extend([0; 100]);
    assert_partial(&run_on(&absurd), PACKETS);
}

#[test]
fn a_link_type_nobody_knows() {
    let run = run_on(&Pcap::with_link_type(147).record(0, &ipv4(6, [1, 2], &[0; 20])).0);
    assert_eq!(run.status, Some(0), "{run:?}");
    assert!(run.stderr.contains("link type"), "{run:?}");
}

#[test]
fn time_that_goes_back_and_centuries_off() {
    let odd = one_connection().connection(500, (1, 40_001), 80).connection(
        4_000_000_000_000_000,
        (1, 40_002),
        80,
    );
    let run = run_on(&odd.0);
    assert_eq!(run.status, Some(0), "{run:?}");
    assert_eq!(capture(&run)["packets"], 3 * PACKETS, "{run:?}");
    let told = &capture(&run)["quality"][0];
    assert_eq!((&told["kind"], &told["count"]), (&"time_goes_back".into(), &1.into()), "{told}");
    let note = told["note"].as_str().expect("words");
    assert!(note.contains(&format!("first at frame {}:", PACKETS + 1)), "{note}");
}

#[test]
fn a_packed_file_cut_short() {
    let many = (0..50).fold(Pcap::new(), |pcap, n| {
        pcap.connection(1_000_000 * u64::from(n), (1, 40_000 + n), 80)
    });
    let packed = gzip(&many.0);
    let run = run_on(&packed[..packed.len() - 9]);
    assert_eq!(run.status, Some(0), "{run:?}");
    assert!(run.stderr.contains("gzip data ends early"), "{run:?}");
    assert!(capture(&run)["packets"].as_u64() > Some(40 * PACKETS), "{run:?}");
}

#[test]
fn a_bomb_takes_no_memory() {
    // Half a gibibyte of nothing behind a good connection, in a file of half a mebibyte.
    let folder = TempDir::new().expect("a folder");
    let path = folder.path().join("bomb.pcap.gz");
    let file = fs::File::create(&path).expect("created");
    let mut packed = flate2::write::GzEncoder::new(file, flate2::Compression::default());
    packed.write_all(&one_connection().0).expect("written");
    for _ in 0..512 {
        packed.write_all(&vec![0; 1 << 20]).expect("written");
    }
    packed.finish().expect("written");
    let run = limited(&["--json", path.to_str().expect("UTF-8")], &[]);
    assert!(matches!(run.status, Some(0 | 3)), "{run:?}");
}

#[test]
fn a_line_without_end() {
    let run = limited(&["-"], &vec![b'a'; 400 << 20]);
    assert_eq!(run.status, Some(3), "{run:?}");
    assert!(run.stderr.starts_with("tcpwhy: cannot read "), "{run:?}");
}

/// Runs with 300 MB of address space.
fn limited(args: &[&str], stdin: &[u8]) -> Run {
    let mut command = Command::new("sh");
    command
        .args(["-c", "ulimit -v 300000; exec \"$@\"", "sh", env!("CARGO_BIN_EXE_tcpwhy")])
        .args(args)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let mut child = command.spawn().expect("starts");
    let mut pipe = child.stdin.take().expect("piped");
    let (mut stdout, mut stderr) = (Vec::new(), Vec::new());
    let (mut out, mut err) =
        (child.stdout.take().expect("piped"), child.stderr.take().expect("piped"));
    std::thread::scope(|scope| {
        scope.spawn(|| out.read_to_end(&mut stdout));
        scope.spawn(|| err.read_to_end(&mut stderr));
        // It may stop reading early; that is its right.
        let _ = pipe.write_all(stdin);
        drop(pipe);
    });
    let status = child.wait().expect("ends");
    finish(std::process::Output { status, stdout, stderr })
}

#[test]
fn an_answer_that_finds_no_room_is_told_and_one_that_nobody_reads_is_not() {
    let capture = common::in_repository("testdata/kernel/slowstart-rtt6.server.pcap.gz");
    let capture = capture.to_str().expect("a name");
    for words in [&["--help"][..], &["--version"], &["predict", "--help"], &["doc"], &[capture]] {
        let full = fs::OpenOptions::new().write(true).open("/dev/full").expect("Linux has it");
        let run = finish(tcpwhy().args(words).stdout(full).output().expect("it starts"));
        assert_eq!(run.status, Some(3), "{words:?}: {run:?}");
        assert!(run.stderr.starts_with("tcpwhy: cannot write the "), "{words:?}: {run:?}");
        let (reader, writer) = std::io::pipe().expect("a pipe");
        drop(reader);
        let run = finish(tcpwhy().args(words).stdout(writer).output().expect("it starts"));
        assert_eq!((run.status, run.stderr.as_str()), (Some(0), ""), "{words:?}");
    }
}

#[test]
fn nothing_that_was_typed_or_read_reaches_the_terminal_as_a_command() {
    let folder = TempDir::new().expect("a folder");
    let hostile = folder.path().join("red\u{1b}[31m\u{7}.toml");
    fs::write(&hostile, "[path]\nrtt = \"\\u001b]0;own\\u0007\"\n[application]\nsend = 1\n")
        .expect("written");
    let hostile = hostile.to_str().expect("a name");
    let runs: [&[&str]; 6] = [
        &[&format!("{hostile}.pcap")],
        &["predict", hostile],
        &["predict", "--size", "1\u{1b}[31mMB", "--rtt", "1ms"],
        &["predict", "--size", "1MB", "--rtt", "1ms", "--set", "\u{9b}31m"],
        &["lab", "run", "\u{1b}[31m"],
        &["--bogus\u{1b}]0;own\u{7}", "x"],
    ];
    for words in runs {
        let run = run(words);
        assert!(matches!(run.status, Some(2 | 3)), "{words:?}: {run:?}");
        let obeyed = run.stderr.chars().find(|letter| letter.is_control() && *letter != '\n');
        assert_eq!(obeyed, None, "{words:?}: {run:?}");
    }
}
