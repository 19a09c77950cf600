//! `lab shell`: programs of the user's own on a scenario's hosts, with its path between them.

mod common;

use common::{Run, run};

/// What a command in the client's host does; `None` where this machine cannot build hosts.
fn shell(more: &[&str], command: &[&str]) -> Option<Run> {
    let ran = run(&[&["lab", "shell", "slow-start"], more, &["--"], command].concat());
    let required = std::env::var_os("TCPWHY_REQUIRE_ALL").is_some_and(|v| v == "1");
    (required || ran.status != Some(2)).then_some(ran)
}

const TALK: &str = "
import os, socket, subprocess, time
listen = 'import socket; s = socket.create_server((\"192.0.2.2\", 9000)); print(flush=True); s.accept()[0].close()'
server = subprocess.Popen(os.environ['ON_SERVER'].split() + ['python3', '-c', listen], stdout=subprocess.PIPE)
server.stdout.readline()
start = time.monotonic()
socket.create_connection((os.environ['SERVER'], 9000))
print(time.monotonic() - start)
server.wait()
";

#[test]
fn a_program_meets_the_scenarios_path_and_the_other_host() {
    let Some(ran) = shell(&["--set", "path.rtt=40ms"], &["python3", "-c", TALK]) else { return };
    assert_eq!(ran.status, Some(0), "{}", ran.stderr);
    let took: f64 = ran.stdout.trim().parse().expect("seconds");
    assert!(took >= 0.040, "a handshake takes the round trip: {took} s");
}

#[test]
fn it_ends_as_the_program_does_and_leaves_nothing() {
    let Some(ran) = shell(&[], &["sh", "-c", "echo $ON_SERVER; exit 7"]) else { return };
    assert_eq!(ran.status, Some(7), "{}", ran.stderr);
    let door = ran.stdout.trim().rsplit('=').next().expect("a way in");
    assert!(!std::path::Path::new(door).exists(), "{door} is gone");
}

#[test]
fn what_cannot_be_started_is_named() {
    let Some(ran) = shell(&[], &["no-such-program"]) else { return };
    assert_eq!(ran.status, Some(3));
    assert!(ran.stderr.contains("cannot start no-such-program: "), "{}", ran.stderr);
    let ran = run(&["lab", "shell", "slow-start", "--variant", "none such"]);
    assert_eq!(ran.status, Some(2));
    assert!(ran.stderr.contains("has no variant `none such`"), "{}", ran.stderr);
}
