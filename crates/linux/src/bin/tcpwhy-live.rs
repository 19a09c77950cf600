//! Runs one plan on the running kernel, without the rest of tcpwhy:
//! `tcpwhy-live [--netem] PLAN FOLDER`.
//!
//! Tests drive the backend with it; people use `tcpwhy lab run`.

use std::ffi::OsString;
use std::path::Path;
use std::process::ExitCode;

use tcpwhy_linux::lab::backend::{Backend as _, LabError};
use tcpwhy_linux::lab::live::{Again, Live, inner};

fn main() -> ExitCode {
    let words: Vec<OsString> = std::env::args_os().skip(1).collect();
    let again = Again::same(&[INNER]);
    match &words[..] {
        [first, words @ ..] if first == INNER => inner(&again, words),
        [plan, folder] => report(run(&Live::tun(again), plan.as_ref(), folder.as_ref())),
        [option, plan, folder] if option == "--netem" => {
            report(run(&Live::netem(again), plan.as_ref(), folder.as_ref()))
        }
        _ => tell("usage: tcpwhy-live [--netem] PLAN FOLDER (made if it is not there)", 2),
    }
}

fn report(outcome: Result<bool, LabError>) -> ExitCode {
    match outcome {
        Ok(valid) => ExitCode::from(u8::from(!valid)),
        Err(error) => tell(&format!("cannot run the plan: {error}"), 2),
    }
}

/// Checks, runs and prints the manifest; whether the run is valid.
#[expect(clippy::print_stdout, reason = "what it is called for")]
fn run(backend: &Live, plan: &Path, folder: &Path) -> Result<bool, LabError> {
    let text = std::fs::read(plan).map_err(|error| LabError::reading(plan, error))?;
    let read = serde_json::from_slice(&text);
    let read = read.map_err(|error| LabError::reading(plan, error.into()))?;
    backend.check(&read)?;
    std::fs::create_dir_all(folder).map_err(|error| LabError::writing(folder, error))?;
    let manifest = backend.run(&read, folder)?;
    println!("{}", serde_json::to_string_pretty(&manifest).unwrap_or_default());
    Ok(manifest.valid)
}

#[expect(clippy::print_stderr, reason = "a program's way to tell")]
fn tell(sentence: &str, status: u8) -> ExitCode {
    eprintln!("tcpwhy-live: {sentence}");
    ExitCode::from(status)
}

/// Brings this executable to what it starts again of itself.
const INNER: &str = "lab-inner";
