//! What `tcpwhy live` says of runs of a kernel in simulated time, by that kernel's `TCP_INFO`, beside what `explain` says of the
//! packets of the same run: the same states, and as long.
//!
//! A scenario of each kind of limit is run. Where no such kernel is built the test says so, as others do.

mod common;

use std::fs;
use std::path::Path;

use common::run;
use serde_json::{Deserializer, Value};
use tcpwhy_linux::lab::uml;

/// How far the times of both may part: a twentieth of the lifetime, and two looks.
const APART: f64 = 0.05;
const LOOK_NS: f64 = 10e6;

/// A kind of limit: what a scenario says of it, and the family of states that holds it most of the time.
#[derive(Default)]
struct Kind {
    path: &'static str,
    server: &'static str,
    client: &'static str,
    application: &'static str,
    held_by: &'static str,
}

fn scenario(name: &str, kind: &Kind) -> String {
    let Kind { path, server, client, application, .. } = kind;
    let has_rate = path.contains("rate =");
    let rate = if has_rate { "" } else { "rate = '200mbit'" };
    format!(
        "name = '{name}'\nabout = '{name}'\nrepeats = 1\n[path]\n{path}\n{rate}\n[server]\n{server}\n[client]\n{client}\n\
         [application]\n{application}\n"
    )
}

/// States that a socket and packets tell alike.
fn family(state: &str) -> &str {
    match state {
        "zero_window" => "window",
        "cwnd.post_loss" | "cwnd.avoidance" => "avoidance",
        "app" => "program",
        _ if state.starts_with("rwnd.") => "window",
        _ if state.starts_with("idle.") => "program",
        _ if state.starts_with("bandwidth.") => "link",
        _ => state,
    }
}

fn spent(time_in: &Value, wanted: &str) -> f64 {
    let all = time_in.as_object().expect("times by state").iter();
    all.filter(|(state, _)| family(state) == wanted).filter_map(|(_, ns)| ns.as_f64()).sum()
}

/// The sender's lines of `tcpwhy live --json` over what was recorded.
fn looks(folder: &Path) -> Vec<Value> {
    let file = folder.join("tcp_info.jsonl");
    let told = run(&["live", "--json", file.to_str().expect("UTF-8")]);
    assert_eq!(told.status, Some(0), "{}", told.stderr);
    let all = Deserializer::from_str(&told.stdout).into_iter().map(|line| line.expect("JSON"));
    all.filter(|line: &Value| line["local"].as_str().is_some_and(|end| end.ends_with(":8000")))
        .collect()
}

fn explained(folder: &Path) -> Value {
    let capture = folder.join("server.pcapng");
    let told = run(&["--json", "--no-predict", capture.to_str().expect("UTF-8")]);
    let report: Value = serde_json::from_str(&told.stdout).expect("a report");
    report["connections"][0].clone()
}

/// Of the looks in the longest interval of `wanted`, from the second on, how many name it.
fn named(looks: &[Value], connection: &Value, wanted: &str) -> f64 {
    let limits = connection["directions"][1]["limits"].as_array().expect("intervals");
    let span = |limit: &Value| {
        (limit["start_ns"].as_f64().unwrap_or(0.0), limit["end_ns"].as_f64().unwrap_or(0.0))
    };
    let of_kind =
        limits.iter().filter(|limit| limit["state"].as_str().is_some_and(|s| family(s) == wanted));
    let longest = of_kind.map(span).max_by(|a, b| (a.1 - a.0).total_cmp(&(b.1 - b.0)));
    let (from, to) = longest.expect("it held the sender");
    let first = looks[0]["t_ns"].as_f64().expect("a time");
    // The first look at the socket is its opening, as is the capture's first packet, within a look.
    let at = |look: &&Value| look["t_ns"].as_f64().unwrap_or(0.0) - first;
    let inside: Vec<&Value> = looks
        .iter()
        .filter(|look| at(look) > from + 3.0 * LOOK_NS && at(look) < to - 2.0 * LOOK_NS)
        .collect();
    assert!(!inside.is_empty(), "{wanted} held it too short to be looked at");
    let right =
        inside.iter().filter(|look| look["state"].as_str().is_some_and(|s| family(s) == wanted));
    right.count() as f64 / inside.len() as f64
}

/// Runs the scenario, and holds what its sockets say against what its packets say.
fn is_told_alike(name: &str, kind: &Kind) {
    if uml::cache().and_then(|cache| uml::choose(&cache, Some("6.1"))).is_none() {
        use std::io::Write as _;
        let why = "no kernel in simulated time is built (make uml)";
        let _ = writeln!(std::io::stderr().lock(), "\nskipped {name}: {why}");
        return;
    }
    let wanted = kind.held_by;
    let work = tempfile::tempdir().expect("a folder");
    let file = work.path().join("kind.toml");
    fs::write(&file, scenario(name, kind)).expect("room");
    let keep = work.path().join("kept");
    let [file, keep] = [&file, &keep].map(|path| path.to_str().expect("UTF-8"));
    let ran = run(&["lab", "run", file, "--backend", "uml:6.1", "--keep", keep]);
    assert_eq!(ran.status, Some(0), "{}", ran.stderr);
    let folder = Path::new(keep).join(format!("{name}--0"));
    let (looks, connection) = (looks(&folder), explained(&folder));
    let lifetime = connection["duration_ns"].as_f64().expect("a duration");
    let last = looks.last().expect("a look");
    let live = spent(&last["time_in"], wanted);
    let packets = spent(&connection["directions"][1]["time_in"], wanted);
    assert!(packets > lifetime / 3.0, "{wanted} holds it: {connection}");
    assert!(
        (live - packets).abs() <= APART * lifetime + 2.0 * LOOK_NS,
        "{wanted} for {live} ns by its sockets, {packets} ns by its packets, of {lifetime}; {}; {}",
        last["time_in"],
        connection["directions"][1]["time_in"]
    );
    // A program that has nothing to send is held by nothing.
    if wanted != "program" {
        let share = named(&looks, &connection, wanted);
        assert!(share >= 0.9, "{wanted} is named in {share} of the looks");
    }
}

#[test]
fn receiver() {
    is_told_alike(
        "receiver",
        &Kind {
            path: "rtt = '40ms'",
            client: "socket.rcvbuf = '32KiB'",
            application: "download = '2MiB'",
            held_by: "window",
            ..Kind::default()
        },
    );
}

#[test]
fn reader() {
    is_told_alike(
        "reader",
        &Kind {
            path: "rtt = '20ms'",
            application: "download = '3MiB'\nread = '32KiB'\nread_pause = '30ms'",
            held_by: "window",
            ..Kind::default()
        },
    );
}

#[test]
fn send_buffer() {
    is_told_alike(
        "send_buffer",
        &Kind {
            path: "rtt = '40ms'",
            server: "socket.sndbuf = '24KiB'\nsocket.nodelay = true",
            application: "download = '2MiB'\nwrite = '4096B'",
            held_by: "sndbuf",
            ..Kind::default()
        },
    );
}

#[test]
fn slow_start() {
    is_told_alike(
        "slow_start",
        &Kind {
            path: "rtt = '200ms'\nrate = '1000mbit'",
            application: "download = '2MiB'",
            held_by: "cwnd.slow_start",
            ..Kind::default()
        },
    );
}

#[test]
fn send_buffer_of_reno() {
    is_told_alike(
        "send_buffer_of_reno",
        &Kind {
            path: "rtt = '15ms'\nrate = '100mbit'",
            server: "socket.sndbuf = '16KiB'\nsocket.nodelay = true\nsocket.congestion = 'reno'",
            application: "download = '3MiB'\nwrite = '1000B'",
            held_by: "sndbuf",
            ..Kind::default()
        },
    );
}

// Its startup, 0.4 s, is slow start to its socket and the link's to its packets: short beside the rest.
#[test]
fn full_link_of_bbr() {
    is_told_alike(
        "full_link_of_bbr",
        &Kind {
            path: "rtt = '45ms'\nrate = '12mbit'\nqueue = '200KiB'",
            server: "socket.congestion = 'bbr'",
            application: "download = '10MiB'",
            held_by: "link",
            ..Kind::default()
        },
    );
}

#[test]
fn loss() {
    is_told_alike(
        "loss",
        &Kind {
            path: "rtt = '40ms'\ndown.loss = '2%'",
            application: "download = '2MiB'",
            held_by: "avoidance",
            ..Kind::default()
        },
    );
}

#[test]
fn idle() {
    is_told_alike(
        "idle",
        &Kind {
            path: "rtt = '20ms'",
            application: "download = '200KiB'\ntimes = 4\nidle = '700ms'",
            held_by: "program",
            ..Kind::default()
        },
    );
}

#[test]
fn full_link() {
    is_told_alike(
        "full_link",
        &Kind {
            path: "rtt = '20ms'\nrate = '8mbit'\nqueue = '256KiB'",
            application: "download = '2MiB'",
            held_by: "link",
            ..Kind::default()
        },
    );
}

// A token bucket on the way.
#[test]
fn shaper() {
    is_told_alike(
        "shaper",
        &Kind {
            path: "rtt = '20ms'\nbucket = { rate = '8mbit', burst = '32KiB', queue = '256KiB' }",
            application: "download = '2MiB'",
            held_by: "link",
            ..Kind::default()
        },
    );
}

// A token bucket of the sender's own host.
#[test]
fn shaper_of_its_own_host() {
    is_told_alike(
        "shaper_of_its_own_host",
        &Kind {
            path: "rtt = '20ms'",
            server: "egress = { rate = '8mbit', burst = '32KiB', queue = '256KiB' }",
            application: "download = '2MiB'",
            held_by: "local_qdisc",
            ..Kind::default()
        },
    );
}

#[test]
fn program() {
    is_told_alike(
        "program",
        &Kind {
            path: "rtt = '20ms'",
            application: "download = '1MiB'\nwrite = '16KiB'\npause = '30ms'",
            held_by: "program",
            ..Kind::default()
        },
    );
}
