//! `tcpwhy record` as users run it, over a path of 20 ms between namespaces of the test's own.

mod common;
#[path = "common/web.rs"]
mod web;

use std::collections::BTreeSet;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream, UdpSocket};
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Command, Stdio};
use std::thread;
use std::time::Duration;

use common::path::{SERVER, put_file, with_path};
use common::{Run, finish, run_with_stdin, tcpwhy};
use serde_json::Value;
use web::respond;

const ROUND_TRIP: Duration = Duration::from_millis(20);
const BODY: usize = 500_000;

/// Runs a test behind the path; where this machine has none to give, says so.
#[expect(clippy::print_stderr, reason = "why a test was skipped")]
fn behind_a_path(test: impl FnOnce(&Path) + Send + 'static) {
    let done = with_path(ROUND_TRIP, serve, || {
        let folder = tempfile::tempdir().expect("a folder");
        test(folder.path());
    });
    if let Err(error) = done {
        let required = std::env::var_os("TCPWHY_REQUIRE_ALL").is_some_and(|v| v == "1");
        assert!(!required, "no namespaces or TUN: {error}");
        eprintln!("skipped: no namespaces or TUN: {error}; run as root");
    }
}

/// A web server that answers at once when the whole request is there, and a name server.
fn serve() {
    let names = UdpSocket::bind((SERVER, 53)).expect("a port");
    thread::spawn(move || {
        let mut message = [0; 512];
        while let Ok((length, from)) = names.recv_from(&mut message) {
            let answer = answer(&message[..length]);
            let _ = names.send_to(&answer, from);
        }
    });
    // Whatever else this machine does meanwhile: a body has room before it is read.
    std::fs::write("/proc/sys/net/ipv4/tcp_rmem", "4096 4194304 6291456").expect("its own network");
    let web = TcpListener::bind((SERVER, 80)).expect("a port");
    while let Ok((stream, _)) = web.accept() {
        thread::spawn(move || respond(&stream, "ok\n"));
    }
}

/// The only address there is; none of IPv6.
fn answer(question: &[u8]) -> Vec<u8> {
    let mut answer = question.to_vec();
    // No record beside the question (an OPT, say) is repeated.
    let name = question[12..].iter().position(|&byte| byte == 0).expect("a name");
    answer.truncate(12 + name + 5);
    answer[2..4].copy_from_slice(&[0x81, 0x80]);
    answer[6..12].fill(0);
    if question[12 + name + 2] == 1 {
        answer[7] = 1;
        answer.extend([0xc0, 0x0c, 0, 1, 0, 1, 0, 0, 0, 60, 0, 4, 10, 9, 0, 2]);
    }
    answer
}

fn record(folder: &Path, words: &[&str]) -> Run {
    finish(tcpwhy().current_dir(folder).arg("record").args(words).output().expect("starts"))
}

/// The report of the recording that `words` made, and what was said meanwhile.
fn recorded(folder: &Path, words: &[&str]) -> (Value, Run) {
    let file = folder.join("x.pcapng");
    let run = record(folder, &[&["-o", "x.pcapng"], words].concat());
    let told = finish(tcpwhy().arg("--json").arg(&file).output().expect("starts"));
    assert_eq!(told.status, Some(0), "{} {}", run.stderr, told.stderr);
    (serde_json::from_str(&told.stdout).expect("JSON"), run)
}

fn codes(report: &Value) -> Vec<&str> {
    let findings = report["connections"][0]["findings"].as_array().expect("a list");
    findings.iter().map(|finding| finding["code"].as_str().expect("a code")).collect()
}

#[test]
fn a_slow_upload_is_not_the_handler_s_fault() {
    behind_a_path(|folder| {
        put_file("/etc/resolv.conf", &format!("nameserver {SERVER}\n")).expect("a file");
        std::fs::write(folder.join("body"), vec![b'x'; BODY]).expect("a file");
        let url = "http://upload.example/";
        let (report, run) = recorded(
            folder,
            &["--", "curl", "-sS", "-H", "Expect:", "--data-binary", "@body", url],
        );
        assert_eq!((run.status, run.stdout.as_str()), (Some(0), "ok\n"), "{}", run.stderr);

        // Not the handler, but slow start, and what would help.
        let codes = codes(&report);
        assert!(codes.contains(&"BODY_ON_ITS_WAY") && codes.contains(&"SLOW_START"), "{codes:?}");
        assert!(!codes.contains(&"THINK_SERVER"), "{codes:?}");
        let words = run.stderr.split_whitespace().collect::<Vec<_>>().join(" ");
        for said in ["Slow start took most of it.", "reuse the connection", "[SLOW_START]"] {
            assert!(words.contains(said), "{said}: {}", run.stderr);
        }

        // Where the command's time went adds up, and each part took what it must.
        let command = &report["command"];
        assert_eq!((&command["program"], &command["status"]), (&"curl".into(), &0.into()));
        let spent = command["spent"].as_object().expect("an object");
        let ns = |part: &str| spent[part].as_i64().expect("a number");
        let sum: i64 = spent.values().map(|part| part.as_i64().expect("a number")).sum();
        assert_eq!(Some(sum), command["duration_ns"].as_i64());
        let round_trip = ROUND_TRIP.as_nanos() as i64;
        assert!(ns("dns_ns") >= round_trip && ns("connect_ns") >= round_trip, "{spent:?}");
        assert!(ns("request_ns") >= 4 * round_trip && ns("tls_ns") == 0, "{spent:?}");
        assert!(ns("server_ns") < round_trip, "{spent:?}");
        let names: Vec<&str> = report["lookups"]
            .as_array()
            .expect("a list")
            .iter()
            .filter_map(|lookup| lookup["name"].as_str())
            .collect();
        assert!(names.contains(&"upload.example"), "{names:?}");

        // What the kernel's samples tell is laid beside the packets.
        let beside = report["with"].as_array().expect("a list");
        let sources: Vec<&str> = beside.iter().filter_map(|one| one["source"].as_str()).collect();
        assert!(sources.contains(&"tcp_info.jsonl"), "{sources:?}");

        // What was attached is there, and other programs read the file as if it were not.
        let bytes = std::fs::read(folder.join("x.pcapng")).expect("was written");
        for name in ["tcp_info.jsonl", "counters.json", "host.json", "command.json"] {
            assert!(bytes.windows(name.len()).any(|some| some == name.as_bytes()), "{name}");
        }
        assert!(!bytes.windows(5).any(|some| some == b"@body"), "arguments are not recorded");
        let tshark = Command::new("tshark")
            .args(["-r", "x.pcapng", "-T", "fields", "-e", "frame.number"])
            .current_dir(folder)
            .output()
            .expect("tshark");
        assert!(tshark.status.success());
        let frames = String::from_utf8(tshark.stdout).expect("text").lines().count() as u64;
        assert_eq!(Some(frames), report["captures"][0]["packets"].as_u64());
        let said = String::from_utf8(tshark.stderr).expect("text");
        assert!(said.lines().all(|line| line.starts_with("Running as user")), "{said}");
    });
}

#[test]
fn connections_of_others_are_left_out() {
    behind_a_path(|folder| {
        let url = format!("http://{SERVER}/");
        let before = TcpStream::connect((SERVER, 80)).expect("a server");
        let stranger = thread::spawn(move || {
            // Both are held by this process, one since before the command, while it runs.
            let during = {
                thread::sleep(Duration::from_millis(100));
                TcpStream::connect((SERVER, 80)).expect("a server")
            };
            for mut stream in [&before, &during] {
                stream.write_all(b"GET / HTTP/1.1\r\n").expect("an open connection");
            }
            thread::sleep(Duration::from_secs(2));
        });
        let script = format!("sleep 0.5; curl -sS {url}");
        let (report, run) = recorded(folder, &["--", "sh", "-c", &script]);
        let connections = report["connections"].as_array().expect("a list");
        assert_eq!(connections.len(), 1, "{}", run.stderr);
        assert!(
            run.stderr.contains("2 connections of other processes were left out"),
            "{}",
            run.stderr
        );
        assert_eq!(report["connections"][0]["exchanges"].as_array().map(Vec::len), Some(1));
        stranger.join().expect("ends");
    });
}

#[test]
fn ports_and_addresses_choose_in_the_kernel() {
    behind_a_path(|folder| {
        let twice =
            ["127.0.0.1:8080", "[::1]:8080"].map(|at| TcpListener::bind(at).expect("a port"));
        for (words, wanted) in [
            (&["--port", "80"][..], &["10.9.0.2:80"][..]),
            (&["--host", SERVER], &["10.9.0.2:80", "10.9.0.2:81"]),
            (&["--host", SERVER, "--port", "80"], &["10.9.0.2:80"]),
            (&["--host", "::1", "--host", "2001:db8::1"], &["[::1]:8080"]),
            (&["--host", "2001:db8::1", "--host", "127.0.0.1"], &["127.0.0.1:8080"]),
        ] {
            let words: Vec<String> = words.iter().map(|&word| word.to_owned()).collect();
            let folder = folder.to_owned();
            let recording = thread::spawn(move || {
                let words: Vec<&str> = words.iter().map(String::as_str).collect();
                recorded(&folder, &[&words[..], &["--force", "--for", "1s"]].concat())
            });
            while !recording.is_finished() {
                // Nobody listens at port 81, which is an answer, too.
                let _ = (TcpStream::connect((SERVER, 80)), TcpStream::connect((SERVER, 81)));
                for listener in &twice {
                    let address = listener.local_addr().expect("bound");
                    let _ = (TcpStream::connect(address), listener.accept());
                }
            }
            let (report, run) = recording.join().expect("no panic");
            let connections = report["connections"].as_array().expect("a list");
            let servers = connections.iter().filter_map(|one| one["server"].as_str());
            let found: BTreeSet<&str> = servers.collect();
            assert_eq!(found, wanted.iter().copied().collect(), "{}", run.stderr);
        }
    });
}

#[test]
fn the_command_s_status_is_ours_and_its_output_its_own() {
    behind_a_path(|folder| {
        let run =
            record(folder, &["-o", "a.pcapng", "--", "sh", "-c", "echo out; echo err >&2; exit 7"]);
        assert_eq!((run.status, run.stdout.as_str()), (Some(7), "out\n"));
        assert!(run.stderr.starts_with("err\n"), "{}", run.stderr);
        assert!(run.stderr.contains("the command opened no TCP connection"), "{}", run.stderr);
        assert!(!run.stderr.contains("explains them again"), "{}", run.stderr);

        let run = record(folder, &["-o", "b.pcapng", "--", "sh", "-c", "kill -9 $$"]);
        assert_eq!(run.status, Some(137));

        let run = record(folder, &["-o", "c.pcapng", "--", "no-such-program"]);
        assert_eq!(run.status, Some(127));
        assert!(run.stderr.contains("cannot run no-such-program: there is no such program"));
        assert!(!folder.join("c.pcapng").exists(), "nothing is left of it");

        let run = record(folder, &["-o", "a.pcapng", "--", "true"]);
        assert_eq!(run.status, Some(3));
        assert!(run.stderr.contains("--force writes over it"), "{}", run.stderr);
        let left = std::fs::read_dir(folder).expect("a folder").count();
        assert_eq!(left, 2, "a.pcapng and b.pcapng");
    });
}

#[test]
fn a_hangup_ends_a_recording_and_leaves_no_spool() {
    behind_a_path(|folder| {
        for (signal, nohup) in [("HUP", false), ("QUIT", false), ("TERM", true)] {
            let mut recorder = tcpwhy();
            recorder.args(["record", "--port", "80", "-o", "x.pcapng", "--force"]);
            // Whoever runs the tests may ignore a hangup.
            let mut command = Command::new("env");
            command.arg("--default-signal=HUP,QUIT").args(nohup.then_some("nohup"));
            command.arg(recorder.get_program()).args(recorder.get_args()).current_dir(folder);
            command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
            let mut child = command.spawn().expect("a recorder");
            let mut said = BufReader::new(child.stderr.take().expect("a pipe"));
            let mut line = String::new();
            while !line.contains("Ctrl-C ends it") {
                line.clear();
                assert!(said.read_line(&mut line).expect("text") > 0, "it ended early");
            }
            let process = child.id().to_string();
            let send = |signal: &str| {
                let words = ["-s", signal, &process];
                assert!(Command::new("kill").args(words).status().expect("kill").success());
            };
            if nohup {
                send("HUP");
                thread::sleep(Duration::from_millis(300));
                assert!(child.try_wait().expect("ours").is_none(), "nohup was asked for");
            }
            send(signal);
            let mut rest = String::new();
            said.read_to_string(&mut rest).expect("text");
            assert_eq!(child.wait().expect("ours").code(), Some(0), "{signal}: {rest}");
            let left = std::fs::read_dir(folder).expect("a folder").count();
            assert_eq!(left, 1, "x.pcapng");
        }
    });
}

#[test]
fn what_a_killed_recording_left_goes_with_the_next() {
    behind_a_path(|folder| {
        let mut recorder = tcpwhy();
        recorder.args(["record", "--port", "80", "-o", "x.pcapng"]).current_dir(folder);
        let mut child = recorder.stderr(Stdio::piped()).spawn().expect("a recorder");
        let mut said = BufReader::new(child.stderr.take().expect("a pipe"));
        let mut line = String::new();
        while !line.contains("Ctrl-C ends it") {
            line.clear();
            assert!(said.read_line(&mut line).expect("text") > 0, "it ended early");
        }
        child.kill().and_then(|()| child.wait()).expect("ours");
        let left = || std::fs::read_dir(folder).expect("a folder").flatten().next();
        let spool = left().expect("a spool").path();
        let hour_ago = std::time::SystemTime::now() - Duration::from_hours(1);
        let folder_of_it = std::fs::File::open(&spool).expect("ours");
        folder_of_it.set_modified(hour_ago).expect("ours");
        let run = record(folder, &["-o", "a.pcapng", "--", "true"]);
        assert!(run.stderr.contains("1 recording, killed before the end, left"), "{}", run.stderr);
        assert!(run.stderr.contains("record --recover") && spool.exists(), "{}", run.stderr);
        let recovered = || {
            let mut command = tcpwhy();
            command.current_dir(folder).args(["record", "--recover", "."]).output().expect("starts")
        };
        let told = recovered();
        let said = String::from_utf8_lossy(&told.stderr);
        assert!(told.status.success() && said.contains("-recovered.pcapng"), "{said}");
        assert!(said.contains("other programs' too"), "{said}");
        assert!(!spool.exists(), "what it held is safe");
        let told = recovered();
        assert_eq!(told.status.code(), Some(3), "there is no other");
    });
}

#[test]
fn a_recording_goes_to_standard_output_whole_and_alone() {
    behind_a_path(|folder| {
        let url = format!("http://{SERVER}/");
        let mut command = tcpwhy();
        command.current_dir(folder).args(["record", "-o", "-", "--", "curl", "-sS", &url]);
        let output = command.output().expect("starts");
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(said.contains("ok\n"), "what the command prints is not lost: {said}");
        assert!(said.contains("of 1 connection\n") && !said.contains("explains them"), "{said}");
        let report = run_with_stdin(&["--json", "-"], &output.stdout);
        let report: Value = serde_json::from_str(&report.stdout).expect("JSON");
        assert_eq!(report["command"]["program"], "curl");
        assert_eq!(std::fs::read_dir(folder).expect("a folder").count(), 0, "no file");
    });
}

#[test]
fn without_privilege_it_does_what_it_may_and_says_what_is_missing() {
    behind_a_path(|folder| {
        let open = std::os::unix::fs::PermissionsExt::from_mode(0o777);
        std::fs::set_permissions(folder, open).expect("ours");
        let url = format!("http://{SERVER}/");
        let mut command = tcpwhy();
        command.current_dir(folder).uid(NOBODY).gid(NOBODY);
        let run = command.args(["record", "-o", "x.pcapng", "--", "curl", "-sS", &url]).output();
        let Ok(run) = run.map(finish) else {
            // The binary may lie where nobody else may look.
            return;
        };
        assert_eq!((run.status, run.stdout.as_str()), (Some(0), "ok\n"), "{}", run.stderr);
        assert!(run.stderr.contains("CAP_NET_RAW"), "{}", run.stderr);
        assert!(run.stderr.contains("setcap cap_net_raw"), "{}", run.stderr);
        let bytes = std::fs::read(folder.join("x.pcapng")).expect("was written");
        assert!(
            bytes.windows(11).any(|some| some == br#""snd_cwnd":"#),
            "TCP_INFO takes no right: {}",
            run.stderr
        );
    });
}

const NOBODY: u32 = 65_534;
