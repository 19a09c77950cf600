//! `tcpwhy check` as users run it, in network namespaces of the tests' own where something is wrong on purpose:
//! each fault is found on the real kernel, `fix.sh` cures it and `rollback.sh` brings back what was.

mod common;

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::Write as _;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::Path;
use std::process::Command;
use std::thread;
use std::time::Duration;

use common::path::apart;
use common::schema::assert_is_as_promised;
use common::{finish, run, run_with_stdin, tcpwhy};
use serde_json::Value;

/// What a check says, by code.
fn checked(words: &[&str]) -> BTreeMap<String, Vec<Value>> {
    let mut command = tcpwhy();
    let run = finish(command.arg("check").arg("--json").args(words).output().expect("it starts"));
    assert_eq!(run.status, Some(0), "{}", run.stderr);
    let told: Value = serde_json::from_str(&run.stdout).expect("JSON");
    assert_is_as_promised(&told);
    let mut by_code: BTreeMap<String, Vec<Value>> = BTreeMap::new();
    for finding in told["findings"].as_array().expect("findings") {
        by_code
            .entry(finding["code"].as_str().expect("a code").to_owned())
            .or_default()
            .push(finding.clone());
    }
    by_code
}

const ONCE: [&str; 2] = ["--for", "0"];
const A_SECOND: [&str; 2] = ["--for", "1s"];

fn setting(key: &str) -> String {
    let path = format!("/proc/sys/{}", key.replace('.', "/"));
    fs::read_to_string(path).expect("a setting").split_whitespace().collect::<Vec<_>>().join(" ")
}

fn set(key: &str, value: &str) {
    fs::write(format!("/proc/sys/{}", key.replace('.', "/")), value).expect("it takes it");
}

fn shell(program: &str, words: &[&str]) -> String {
    let done = Command::new(program).args(words).output().expect("it starts");
    assert!(
        done.status.success(),
        "{program} {words:?}: {}",
        String::from_utf8_lossy(&done.stderr)
    );
    String::from_utf8(done.stdout).expect("UTF-8")
}

/// Writes the scripts and runs one; what it keeps goes into a file beside it.
fn script(folder: &Path, name: &str) -> String {
    let path = folder.join(name);
    let mut command = Command::new("sh");
    command.arg(&path).env("KEPT_IN", folder.join("kept.conf"));
    let done = command.output().expect("it starts");
    let told = String::from_utf8_lossy(&done.stdout).into_owned();
    assert!(done.status.success(), "{name}: {told}{}", String::from_utf8_lossy(&done.stderr));
    told
}

fn write_scripts(folder: &Path, words: &[&str]) {
    let mut all = vec!["check", "--script", folder.to_str().expect("UTF-8")];
    all.extend(words);
    assert_eq!(run(&all).status, Some(0));
}

#[test]
fn settings_that_slow_everything_are_found_cured_and_brought_back() {
    const WRONG: [(&str, &str, &str); 4] = [
        ("net.ipv4.tcp_moderate_rcvbuf", "0", "AUTOTUNING_OFF"),
        ("net.ipv4.tcp_window_scaling", "0", "WINDOW_SCALING_OFF"),
        ("net.ipv4.tcp_sack", "0", "LOSS_RECOVERY_OFF"),
        ("net.ipv4.tcp_abort_on_overflow", "1", "ABORT_ON_OVERFLOW"),
    ];
    apart(|folder| {
        let before = checked(&ONCE);
        for (key, value, code) in WRONG {
            assert!(!before.contains_key(code), "{code} before anything was changed");
            set(key, value);
        }
        let found = checked(&ONCE);
        for (_, _, code) in WRONG {
            assert!(found.contains_key(code), "{code} is not in {:?}", found.keys());
        }
        write_scripts(folder, &ONCE);
        script(folder, "fix.sh");
        let cured = checked(&ONCE);
        let is = |code: &&str| cured.contains_key(*code);
        assert_eq!(WRONG.map(|(_, _, code)| code).iter().find(|code| is(code)), None);
        let kept = fs::read_to_string(folder.join("kept.conf")).expect("what is kept");
        assert!(kept.contains("net.ipv4.tcp_moderate_rcvbuf = 1\n"), "{kept}");
        assert!(script(folder, "fix.sh").contains("is so already"));
        script(folder, "rollback.sh");
        for (key, value, _) in WRONG {
            assert_eq!(setting(key), value, "{key} is as it was");
        }
        assert!(!folder.join("kept.conf").exists(), "nothing is kept any more");
    });
}

#[test]
fn a_setting_that_somebody_else_changed_is_left_alone() {
    apart(|folder| {
        set("net.ipv4.tcp_abort_on_overflow", "1");
        write_scripts(folder, &ONCE);
        set("net.ipv4.tcp_abort_on_overflow", "2");
        let done =
            Command::new("sh").arg(folder.join("fix.sh")).env("KEPT_IN", "/dev/null").output();
        let done = done.expect("it starts");
        assert!(!done.status.success());
        assert!(String::from_utf8_lossy(&done.stderr).contains("left alone"));
        assert_eq!(setting("net.ipv4.tcp_abort_on_overflow"), "2");
    });
}

#[test]
fn an_accept_queue_that_overflows_is_its_listeners() {
    apart(|folder| {
        set("net.core.somaxconn", "2");
        let busy = TcpListener::bind("127.0.0.1:0").expect("a port");
        let idle = TcpListener::bind("127.0.0.1:0").expect("a port");
        let to = busy.local_addr().expect("an address");
        let clients: Vec<_> = (0..12)
            .map(|_| {
                thread::Builder::new()
                    .spawn(move || TcpStream::connect_timeout(&to, Duration::from_secs(3)))
                    .expect("a thread")
            })
            .collect();
        let found = checked(&["--for", "2s"]);
        let full = &found["ACCEPT_QUEUE"];
        assert_eq!(full.len(), 1, "{full:#?}");
        assert_eq!(full[0]["severity"], "error");
        assert_eq!(full[0]["scope"]["name"], to.to_string());
        assert_ne!(full[0]["scope"]["name"], idle.local_addr().expect("an address").to_string());
        drop(clients.into_iter().map(thread::JoinHandle::join).collect::<Vec<_>>());
        write_scripts(folder, &A_SECOND);
        script(folder, "fix.sh");
        assert_eq!(setting("net.core.somaxconn"), "4096");
        script(folder, "rollback.sh");
        assert_eq!(setting("net.core.somaxconn"), "2");
    });
}

#[test]
fn connections_that_a_program_forgets_to_close_are_told_with_its_name() {
    apart(|_| {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let to = listener.local_addr().expect("an address");
        let held: Vec<TcpStream> = (0..120)
            .map(|_| {
                drop(TcpStream::connect(to).expect("a connection"));
                listener.accept().expect("a connection").0
            })
            .collect();
        let found = checked(&A_SECOND);
        let told = found["CLOSE_WAIT"][0]["title"].as_str().expect("a title");
        let pid = std::process::id().to_string();
        assert!(told.contains("120") && told.contains(&pid), "{told}");
        drop(held);
        assert!(!checked(&A_SECOND).contains_key("CLOSE_WAIT"));
    });
}

#[test]
fn a_program_that_does_not_read_is_told_and_one_that_does_is_not() {
    apart(|_| {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let to = listener.local_addr().expect("an address");
        let mut writer = TcpStream::connect(to).expect("a connection");
        let (reader, _) = listener.accept().expect("a connection");
        assert!(!checked(&A_SECOND).contains_key("RECEIVE_QUEUE_FULL"));
        writer.set_nonblocking(true).expect("it takes it");
        let piece = vec![0; 1 << 16];
        // Until both buffers are full, and stay so while the window is probed.
        for _ in 0..50 {
            while writer.write(&piece).is_ok() {}
            thread::sleep(Duration::from_millis(10));
        }
        let found = checked(&A_SECOND);
        assert!(found.contains_key("RECEIVE_QUEUE_FULL"), "{:?}", found.keys());
        drop(reader);
    });
}

#[test]
fn ports_that_run_out_towards_one_peer_are_told() {
    apart(|_| {
        set("net.ipv4.ip_local_port_range", "40000 40019");
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let to = listener.local_addr().expect("an address");
        let one = |to: SocketAddr| {
            let client = TcpStream::connect(to).expect("a connection");
            let server = listener.accept().expect("a connection").0;
            (client, server)
        };
        let few: Vec<_> = (0..10).map(|_| one(to)).collect();
        assert!(!checked(&ONCE).contains_key("EPHEMERAL_PORTS"), "half of them are free");
        let many: Vec<_> = (0..9).map(|_| one(to)).collect();
        assert!(checked(&ONCE).contains_key("EPHEMERAL_PORTS"));
        drop((few, many));
    });
}

#[test]
fn a_route_with_a_small_initial_window_is_told_cured_and_brought_back() {
    apart(|folder| {
        shell("ip", &["route", "add", "203.0.113.0/24", "dev", "lo", "initcwnd", "2"]);
        let routes = || shell("ip", &["route", "show", "203.0.113.0/24"]);
        let was = routes();
        let found = checked(&ONCE);
        assert!(found.contains_key("INITIAL_WINDOWS_OF_ROUTES"), "{:?}", found.keys());
        write_scripts(folder, &ONCE);
        script(folder, "fix.sh");
        assert!(!routes().contains("initcwnd 2"), "{}", routes());
        assert!(!checked(&ONCE).contains_key("INITIAL_WINDOWS_OF_ROUTES"));
        script(folder, "rollback.sh");
        assert_eq!(routes(), was);
    });
}

#[test]
fn a_shaper_that_drops_is_told_with_its_rate() {
    apart(|_| {
        let shaped = [
            "qdisc", "add", "dev", "lo", "root", "tbf", "rate", "1mbit", "burst", "10kb", "limit",
            "20kb",
        ];
        shell("tc", &shaped);
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let to = listener.local_addr().expect("an address");
        let mut writer = TcpStream::connect(to).expect("a connection");
        let (mut reader, _) = listener.accept().expect("a connection");
        thread::spawn(move || std::io::copy(&mut reader, &mut std::io::sink()));
        thread::spawn(move || while writer.write_all(&[0; 1 << 14]).is_ok() {});
        let found = checked(&["--for", "3s"]);
        let of_it: BTreeSet<&str> = ["SHAPER", "QDISC_DROPS"].into();
        assert!(found.keys().any(|code| of_it.contains(code.as_str())), "{:?}", found.keys());
    });
}

#[test]
fn a_saved_snapshot_is_judged_as_the_host_was() {
    apart(|folder| {
        set("net.ipv4.tcp_sack", "0");
        let saved = folder.join("snap.json");
        let saved = saved.to_str().expect("UTF-8");
        let now = run(&["check", "--for", "0", "--save", saved, "--all"]);
        let later = run(&["check", saved, "--all"]);
        assert_eq!((now.status, &now.stdout), (Some(0), &later.stdout));
        assert_eq!(run(&["check", saved, "--fail-on", "warning"]).status, Some(1));
        let cut = &fs::read_to_string(saved).expect("a snapshot")[..500];
        let told = run_with_stdin(&["check", "-"], cut.as_bytes());
        assert_eq!((told.status, told.stdout.as_str()), (Some(3), ""));
        assert!(told.stderr.contains("standard input"), "{}", told.stderr);
    });
}

#[test]
fn pasted_output_is_judged_as_far_as_it_goes() {
    let pasted =
        b"$ sysctl net.ipv4.tcp_sack net.ipv4.tcp_moderate_rcvbuf\nnet.ipv4.tcp_sack = 1\n\
        net.ipv4.tcp_moderate_rcvbuf = 0\n";
    let told = run_with_stdin(&["check", "-"], pasted);
    assert_eq!(told.status, Some(0), "{}", told.stderr);
    assert!(told.stdout.contains("[AUTOTUNING_OFF]"), "{}", told.stdout);
    assert!(told.stdout.contains("could not be made"), "{}", told.stdout);
    let empty = run_with_stdin(&["check", "-"], br#"{"format":"tcpwhy-host/1","looks":[]}"#);
    assert_eq!((empty.status, &*empty.stdout), (Some(3), ""), "nothing was seen, nothing is said");
    assert_eq!(run(&["check", "--rate", "1gbit"]).status, Some(2), "the rate of nothing");
    let nothing = run_with_stdin(&["check", "-"], b"Dear all,\nit is slow again.\n");
    assert_eq!(nothing.status, Some(3));
}

#[test]
fn the_path_inside_the_host_is_shown_with_the_delay_of_a_full_queue() {
    apart(|_| {
        let fifo = ["qdisc", "add", "dev", "lo", "root", "pfifo", "limit", "127"];
        shell("tc", &fifo);
        shell("ip", &["link", "set", "lo", "mtu", "1500"]);
        let told = run(&["check", "--queues", "lo", "--rate", "5mbit", "--for", "0"]);
        assert_eq!(told.status, Some(0), "{}", told.stderr);
        // The last of 127 packets waits for 126 of 1500 bytes at 5 Mbit/s.
        assert!(told.stdout.contains("pfifo") && told.stdout.contains("302 ms"), "{}", told.stdout);
        let told = run(&["check", "--queues", "lo", "--rate", "5mbit", "--for", "0", "--json"]);
        assert_is_as_promised(&serde_json::from_str(&told.stdout).expect("JSON"));
    });
    let told = run(&["check", "--queues", "no-such-dev", "--for", "0"]);
    assert!(told.status == Some(3) && told.stderr.contains("no-such-dev"), "{}", told.stderr);
}

#[test]
fn a_capture_s_remedies_name_what_a_snapshot_of_the_host_shows() {
    let folder = tempfile::tempdir().expect("a folder");
    let pasted = folder.path().join("routes.txt");
    fs::write(&pasted, "$ ip route\ndefault via 192.168.247.2 dev ens33\n").expect("a file");
    let capture = common::in_repository("testdata/articles/download-512k-rtt7ms.tcpdump.txt");
    let capture = capture.to_str().expect("UTF-8");
    let beside = |host: &str| {
        let snapshot = format!("{host}={}", pasted.display());
        run(&[capture, "--no-predict", "--host-snapshot", &snapshot])
    };
    let told = beside("server");
    assert_eq!(told.status, Some(0), "{}", told.stderr);
    let command = "do: ip route replace default via 192.168.247.2 dev ens33 initcwnd 44";
    assert!(told.stdout.contains(command), "{}", told.stdout);
    assert!(
        beside("client").stderr.contains("no remedy for the client"),
        "nothing there is about it"
    );
    assert_eq!(run(&[capture, "--host-snapshot", "middle=x"]).status, Some(2));
}

#[test]
fn all_checks_are_listed_and_documented() {
    let list = run(&["check", "--list"]).stdout;
    for page in tcpwhy::host::doc::pages() {
        assert!(list.contains(page.code), "{}", page.code);
        assert_eq!(run(&["doc", page.code]).status, Some(0));
    }
    let manual = run(&["doc", "--checks"]).stdout;
    let kept = fs::read_to_string(common::in_repository("docs/checks.md")).expect("is there");
    assert!(manual == kept, "stale: run `tcpwhy doc --checks > docs/checks.md`");
}
