//! A network of one's own for a test, and the programs that are asked beside us.

#![expect(unsafe_code, reason = "namespaces have no other way in")]

use std::io;
use std::process::{Command, Output};
use std::thread;

use serde_json::Value;
use tcpwhy::host::snapshot::Snapshot;
use tcpwhy_linux::collect::{Options, take};

/// Runs a test in a network namespace of its own, its loopback up and two interfaces `w0` and `w1` that are
/// one cable; where that is not allowed, says so and runs nothing, unless `TCPWHY_REQUIRE_ALL` is set.
pub(crate) fn inside(test: impl FnOnce() + Send + 'static) {
    let done = thread::spawn(move || {
        // SAFETY: only this thread changes its namespace.
        if unsafe { libc::unshare(libc::CLONE_NEWNET) } != 0 {
            let why = format!("no network namespace: {}; run as root", io::Error::last_os_error());
            assert!(std::env::var_os("TCPWHY_REQUIRE_ALL").is_none(), "{why}");
            return skipped(&why);
        }
        run("ip link set lo up");
        run("ip link add name w0 type veth peer name w1");
        run("ip link set w0 up");
        run("ip link set w1 up");
        run("ip addr add 192.0.2.1/24 dev w0");
        run("ip addr add 2001:db8::1/64 dev w0 nodad");
        test();
    });
    if let Err(panic) = done.join() {
        std::panic::resume_unwind(panic);
    }
}

#[expect(clippy::print_stdout, reason = "a test that is skipped says so")]
pub(crate) fn skipped(why: &str) {
    println!("skipped: {why}");
}

/// One look at the namespace of this thread.
pub(crate) fn look() -> Snapshot {
    take(&Options { processes: true, ..Options::default() }).expect("our own namespace")
}

/// Whether a program that takes these words, separated by blanks, is content with them.
pub(crate) fn try_to(words: &str) -> Result<String, String> {
    let mut words = words.split_whitespace();
    let program = words.next().expect("a program");
    let Output { status, stdout, stderr } =
        Command::new(program).args(words).output().expect("iproute2 is there");
    let text = |bytes| String::from_utf8_lossy(bytes).into_owned();
    if status.success() { Ok(text(&stdout)) } else { Err(text(&stderr)) }
}

/// Runs a program that has to be content; what it prints.
pub(crate) fn run(words: &str) -> String {
    try_to(words).unwrap_or_else(|complaint| panic!("{words}: {complaint}"))
}

/// What a program prints as JSON: a list.
pub(crate) fn json(words: &str) -> Vec<Value> {
    let text = run(words);
    // ip(8) prints nothing where there is nothing.
    if text.trim().is_empty() { Vec::new() } else { serde_json::from_str(&text).expect("JSON") }
}
