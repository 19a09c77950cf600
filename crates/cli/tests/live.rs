//! `tcpwhy live`, on connections of this process over the loopback interface, and on files that hold looks.

mod common;

use std::io::Write as _;
use std::net::{TcpListener, TcpStream};
use std::path::Path;

use common::{Run, finish, run, tcpwhy};
use serde_json::Value;

/// A sender whose peer never reads: its window shuts.
struct Stuck {
    port: u16,
    _ends: (TcpListener, TcpStream, TcpStream),
}

fn stuck() -> Stuck {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = listener.local_addr().expect("bound").port();
    let mut sender = TcpStream::connect(("127.0.0.1", port)).expect("it listens");
    let receiver = listener.accept().expect("one waits").0;
    sender.set_nonblocking(true).expect("a socket of ours");
    while sender.write(&[0; 1 << 13]).is_ok() {}
    // Until its window is shut: a probe's timer runs then.
    std::thread::sleep(std::time::Duration::from_millis(300));
    Stuck { port, _ends: (listener, sender, receiver) }
}

fn live(port: u16, words: &[&str]) -> Run {
    let filter = format!("port {port}");
    run(&[&["live", "--interval", "100ms", "--filter", &filter], words].concat())
}

fn lines(run: &Run) -> Vec<Value> {
    run.stdout.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect()
}

#[test]
fn a_shut_window_is_named_in_the_second_look_with_who_is_to_blame() {
    let stuck = stuck();
    let once = live(stuck.port, &["--once"]);
    assert_eq!(once.status, Some(0), "{}", once.stderr);
    assert!(once.stdout.contains("zero_window"), "{}", once.stdout);
    let words = once.stdout.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(words.contains("at the receiver its program reads too slowly"), "{words}");
    assert!(once.stdout.contains("1 listener with an empty queue"), "{}", once.stdout);
    let json = lines(&live(stuck.port, &["--json", "--for", "300ms"]));
    let senders: Vec<&Value> = json
        .iter()
        .filter(|line| {
            line["remote"].as_str().is_some_and(|end| end.ends_with(&format!(":{}", stuck.port)))
        })
        .collect();
    assert!(senders.len() >= 2, "a line each look: {json:?}");
    let later = &senders[1..];
    assert!(later.iter().all(|line| line["state"] == "zero_window"), "{senders:?}");
    assert!(later.iter().all(|line| line["cookie"] == senders[0]["cookie"]));
    assert_eq!(senders[0]["pid"], std::process::id());
}

#[test]
fn a_filter_of_states_leaves_out_others_and_what_is_wrong_with_one_is_said() {
    let stuck = stuck();
    let filter = format!("port {} and state=zero_window", stuck.port);
    let json = lines(&run(&[
        "live",
        "--json",
        "--for",
        "100ms",
        "--interval",
        "100ms",
        "--filter",
        &filter,
    ]));
    assert!(!json.is_empty() && json.iter().all(|line| line["state"] == "zero_window"));
    let odd = run(&["live", "--once", "--filter", "state=lost"]);
    assert_eq!(odd.status, Some(2));
    assert!(odd.stderr.contains("expected a state's name"), "{}", odd.stderr);
}

#[test]
fn what_was_saved_is_replayed_also_without_its_end() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("looks.jsonl");
    let name = file.to_str().expect("plain");
    let stuck = stuck();
    let seen = live(stuck.port, &["--for", "400ms", "--save", name]);
    assert!(seen.stdout.contains("ms the receiver's zero window ("), "{}", seen.stdout);
    let again = run(&["live", name]);
    assert_eq!(again.stdout, seen.stdout, "{}", again.stderr);
    let twice = live(stuck.port, &["--for", "100ms", "--save", name]);
    assert_eq!(twice.status, Some(3), "it is there already: {}", twice.stderr);
    let whole = std::fs::read(&file).expect("saved");
    std::fs::write(&file, &whole[..whole.len() - 20]).expect("room");
    let cut = run(&["live", name]);
    assert_eq!(cut.status, Some(0));
    assert!(cut.stderr.contains("was cut short"), "{}", cut.stderr);
    assert!(cut.stdout.contains("ms the receiver's zero window ("), "{}", cut.stdout);
}

fn replayed(looks: &str) -> Run {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("looks.jsonl");
    std::fs::write(&file, format!("{{\"format\":\"tcpwhy-live/1\",\"made_by\":\"0\"}}\n{looks}"))
        .expect("room");
    run(&[Path::new("live"), &file])
}

#[test]
fn counters_and_times_that_go_back_and_names_that_would_be_obeyed_break_nothing() {
    let look = |t: u64, acked: u64| {
        format!(
            r#"{{"t_ns":{t},"sockets":[{{"state":"ESTABLISHED","local":"192.0.2.1:80","remote":"192.0.2.2:4000","receive_queue":0,
            "send_queue":900,"owner":{{"pid":7}},"info":{{"bytes_acked":{acked},"busy_ns":{acked},"snd_mss":1000}}}}],
            "processes":{{"7":"\u001b[2Jevil\u202e"}},"said":["\u001b]0;x\u0007"]}}"#
        )
        .replace('\n', "")
            + "\n"
    };
    let told = replayed(&format!(
        "{}{}{}",
        look(5_000_000_000, 900),
        look(1_000_000_000, 100),
        look(9_000_000_000, 200)
    ));
    assert_eq!(told.status, Some(0), "{}", told.stderr);
    assert!(told.stdout.contains("2 connections, 1 of them ended"), "{}", told.stdout);
    for text in [&told.stdout, &told.stderr] {
        assert!(!text.contains('\u{1b}') && !text.contains('\u{202e}'), "{text:?}");
    }
}

#[test]
fn lines_of_sockets_without_their_end_are_said_to_be_cut() {
    let line = |t: u64| {
        format!(
            r#"{{"t":{t},"state":"ESTAB","local":"192.0.2.1:80","peer":"192.0.2.2:4000","rqueue":0,"wqueue":900}}"#
        ) + "\n"
    };
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("tcp_info.jsonl");
    let both = line(1_000_000_000) + &line(2_000_000_000);
    for (end, is_cut) in [(both.len(), false), (both.len() - 1, false), (both.len() - 9, true)] {
        std::fs::write(&file, &both[..end]).expect("room");
        let told = run(&[Path::new("live"), &file]);
        assert_eq!(told.status, Some(0), "{}", told.stderr);
        assert_eq!(told.stderr.contains("was cut short"), is_cut, "{}", told.stderr);
        assert!(told.stdout.contains("1 connection"), "{}", told.stdout);
    }
}

#[test]
fn a_file_without_looks_is_no_answer() {
    let text = run(&["live", "Cargo.toml"]);
    assert_eq!(text.status, Some(3));
    assert!(text.stderr.contains("holds no looks"), "{}", text.stderr);
    let damaged = replayed("not JSON\n");
    assert_eq!(damaged.status, Some(3));
    assert!(damaged.stderr.contains("line 2"), "{}", damaged.stderr);
    let empty = replayed("");
    assert_eq!(empty.status, Some(0), "no look was taken: {}", empty.stderr);
}

#[test]
fn records_as_m_lab_publishes_them_are_looks() {
    let file = common::in_repository("testdata/host/looks/mlab.jsonl");
    let told = run(&[Path::new("live"), &file]);
    assert_eq!((told.status, &*told.stderr), (Some(0), ""), "its first line has no socket");
    assert!(told.stdout.contains("3 looks in 2.00 s: 1 connection."), "{}", told.stdout);
    assert!(told.stdout.contains("192.0.2.1:443 -> 198.51.100.7:40000"), "{}", told.stdout);
    let alone = run(&[&file]);
    assert!(alone.stdout.contains("2.00 s the receiver's program"), "{}", alone.stdout);
}

#[test]
fn a_signal_ends_it_with_its_summary() {
    let stuck = stuck();
    let mut command = tcpwhy();
    command.args([
        "live",
        "--for",
        "1h",
        "--interval",
        "50ms",
        "--filter",
        &format!("port {}", stuck.port),
    ]);
    let child = command
        .stdout(std::process::Stdio::piped())
        .stderr(std::process::Stdio::piped())
        .spawn()
        .expect("it starts");
    std::thread::sleep(std::time::Duration::from_millis(500));
    tcpwhy_linux::record::ask_to_end(child.id());
    let ended = finish(child.wait_with_output().expect("it ends"));
    assert_eq!(ended.status, Some(0), "{}", ended.stderr);
    assert!(ended.stdout.contains("the receiver's zero window"), "{}", ended.stdout);
}

/// On a terminal that `script` (util-linux) makes.
#[test]
fn who_leaves_the_screen_is_told_where_the_time_went() {
    use std::process::{Command, Stdio};
    let file = common::in_repository("testdata/host/looks/mlab.jsonl");
    let program = env!("CARGO_BIN_EXE_tcpwhy");
    let line = format!("{program} live {}", file.display());
    let mut command = Command::new("script");
    command.args(["-qec", &line, "/dev/null"]).env("TERM", "xterm").env("NO_COLOR", "1");
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().expect("util-linux has it");
    let mut keys = child.stdin.take().expect("a pipe");
    std::thread::sleep(std::time::Duration::from_secs(1));
    keys.write_all(b"q").expect("it listens");
    let ended = finish(child.wait_with_output().expect("it ends"));
    drop(keys);
    assert_eq!(ended.status, Some(0), "{}", ended.stderr);
    let (screen, left) = ended.stdout.split_once("\u{1b}[?1049l").expect("a screen that is left");
    assert!(screen.contains("\u{1b}[?1049h"), "{screen:?}");
    // However many looks a busy machine gets to.
    assert!(left.contains(" look") && left.contains("connection"), "{left:?}");
}
