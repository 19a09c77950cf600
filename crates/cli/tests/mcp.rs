//! `tcpwhy mcp` as an assistant starts it: a process, lines in, lines out.

#![cfg(feature = "mcp")]

mod common;

use std::io::{BufRead as _, BufReader, Write as _};
use std::process::{Child, Stdio};

use common::{in_repository, run, run_with_stdin, tcpwhy};
use serde_json::{Value, json};

const CAPTURE: &str = "download-512k-rtt7ms.tcpdump.txt";

fn folder() -> String {
    in_repository("testdata/articles").display().to_string()
}

fn line(id: u64, method: &str, params: &Value) -> String {
    format!("{}\n", json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params }))
}

fn begin() -> String {
    let client = json!({ "name": "raw", "version": "0" });
    let params =
        json!({ "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": client });
    line(1, "initialize", &params)
        + "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/initialized\"}\n"
}

fn call(id: u64, tool: &str, arguments: &Value) -> String {
    line(id, "tools/call", &json!({ "name": tool, "arguments": arguments }))
}

#[test]
fn what_is_piped_in_is_answered_before_it_ends() {
    let asked = begin() + &call(2, "explain", &json!({ "file": CAPTURE }));
    let run = run_with_stdin(&["mcp", &folder()], asked.as_bytes());
    assert_eq!((run.status, &*run.stderr), (Some(0), ""), "{run:?}");
    let lines: Vec<Value> =
        run.stdout.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
    assert_eq!(lines.len(), 2, "{run:?}");
    assert_eq!(lines[0]["result"]["serverInfo"]["name"], "tcpwhy");
    let text = lines[1]["result"]["content"][0]["text"].as_str().expect("text");
    assert!(text.contains("Slow start took most of it"), "{text}");
}

#[test]
fn the_screen_is_the_one_that_the_command_prints() {
    let asked = begin() + &call(2, "explain", &json!({ "file": CAPTURE }));
    let told = run_with_stdin(&["mcp", &folder()], asked.as_bytes());
    let answer: Value =
        serde_json::from_str(told.stdout.lines().nth(1).expect("two")).expect("JSON");
    let capture = format!("{}/{CAPTURE}", folder());
    let screen = run(&[&*capture, "--width", "100"]).stdout;
    assert_eq!(answer["result"]["content"][0]["text"], screen.as_str());
}

#[test]
fn a_client_that_says_nothing_or_nonsense_ends_it_in_peace() {
    for nonsense in
        [&b""[..], b"\n\n", b"hello\n", b"\xff\xfe\x00\n", b"{\"jsonrpc\":\"2.0\",\"id\":1"]
    {
        let run = run_with_stdin(&["mcp", &folder()], nonsense);
        assert_eq!((run.status, &*run.stderr), (Some(0), ""), "{nonsense:?}: {run:?}");
    }
    let early = "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/initialized\"}\n";
    let run = run_with_stdin(&["mcp", &folder()], early.as_bytes());
    assert_eq!(run.status, Some(3), "{run:?}");
    assert!(run.stderr.contains("did not begin as the Model Context Protocol asks"), "{run:?}");
}

#[test]
fn folders_are_needed_and_have_to_be_there() {
    let none = run(&["mcp"]);
    assert_eq!(none.status, Some(2), "{none:?}");
    for path in ["no/such/folder", "/etc/passwd"] {
        let run = run(&["mcp", path]);
        assert_eq!(run.status, Some(2), "{run:?}");
        assert!(run.stderr.contains(&format!("cannot read below {path}")), "{run:?}");
    }
}

/// A server that is spoken to line by line.
struct Served(Child);

impl Drop for Served {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn a_client_that_closes_its_end_in_mid_answer_ends_it() {
    let mut command = tcpwhy();
    command.args(["mcp", &folder()]).stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut served = Served(command.spawn().expect("it starts"));
    let mut stdin = served.0.stdin.take().expect("a pipe");
    let mut stdout = BufReader::new(served.0.stdout.take().expect("a pipe"));
    stdin.write_all(begin().as_bytes()).expect("taken");
    let mut first = String::new();
    stdout.read_line(&mut first).expect("a line");
    // It asks, does not listen, and asks again.
    drop(stdout);
    for id in 2..100 {
        if stdin.write_all(call(id, "doc", &json!({ "word": "BDP" })).as_bytes()).is_err() {
            break;
        }
    }
    drop(stdin);
    let status = served.0.wait().expect("it ends");
    assert_eq!(status.code(), Some(0));
}
