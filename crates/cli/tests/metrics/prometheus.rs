//! Prometheus' tool.

use std::io::Write as _;
use std::process::{Command, Output, Stdio};

use crate::common::path::skipped;

/// Whether `tool` is there; a test that needs it says that it is skipped.
pub(crate) fn has(tool: &str) -> bool {
    let is_there = Command::new(tool).arg("--version").output().is_ok();
    if !is_there {
        skipped(&format!("there is no {tool} (Debian package prometheus)"));
    }
    is_there
}

/// Runs promtool with these words and this input.
pub(crate) fn promtool(words: &[&str], input: &str) -> Output {
    let mut child = Command::new("promtool")
        .args(words)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("promtool starts");
    let mut pipe = child.stdin.take().expect("it is piped");
    pipe.write_all(input.as_bytes()).expect("it reads");
    drop(pipe);
    child.wait_with_output().expect("promtool ends")
}
