//! The guardian: whatever happens to the lab, nothing of a run stays behind.
//!
//! ```text
//!   lab  --pipe-->  keeper  --first process of a process namespace-->  stage  -->  programs
//! ```
//!
//! The keeper holds the reading end of a pipe from the lab. If the lab is gone, however it went,
//! the pipe ends and the keeper kills the stage. The stage is the first process of a process
//! namespace, so with it the kernel kills everything that was started in it, and with the last of
//! them go the network namespaces and devices, which nobody else holds. If the keeper is killed,
//! the kernel kills the stage for it (`PR_SET_PDEATHSIG`).
//!
//! Without root it first makes a user namespace, in which it has the rights for the others.

use std::fs;
use std::io::{self, Read as _, Write as _};
use std::os::fd::AsFd as _;
use std::process::{Command, ExitCode, Stdio};

use super::programs::Again;
use super::report::Report;
use super::stage::{Trouble, namespace_advice};
use super::sys::{self, Own};

/// Runs the stage with these words, the plan on its standard input, and outlives it.
pub(super) fn main(again: &Again, words: &[std::ffi::OsString]) -> ExitCode {
    match guard(again, words) {
        Ok(status) => status,
        Err(trouble) => {
            Report::Trouble(trouble).tell();
            ExitCode::FAILURE
        }
    }
}

fn guard(again: &Again, words: &[std::ffi::OsString]) -> Result<ExitCode, Trouble> {
    let missing = |doing: &str, error: &io::Error| Trouble::Missing {
        doing: doing.to_owned(),
        why: error.to_string(),
        advice: namespace_advice(error),
    };
    let plan = read_line().map_err(|error| missing("read the plan", &error))?;
    let ordinary = own_processes().map_err(|error| missing("make namespaces", &error))?;

    let mut command: Command = again.command();
    command.arg("stage").args(words).stdin(Stdio::piped());
    if ordinary {
        command.env(super::ORDINARY_USER, "1");
    }
    sys::start_guarded(&mut command);
    let mut stage = command.spawn().map_err(|error| missing("start the stage", &error))?;
    if let Some(mut input) = stage.stdin.take() {
        // If it is gone already, the code below reports its end.
        let _ = input.write_all(&plan);
    }
    // No thread may be started once children belong to another process namespace, so the stage is
    // asked now and then whether it has ended.
    let lab = io::stdin();
    while stage.try_wait().map_err(|error| missing("wait for the stage", &error))?.is_none() {
        let waited = sys::wait_readable([lab.as_fd(), lab.as_fd()], LOOK_NS);
        // The lab says nothing more: if there is something to read it is the end.
        if waited.map_err(|error| missing("watch the lab", &error))? {
            sys::kill(stage.id());
            break;
        }
    }
    let status = stage.wait().map_err(|error| missing("wait for the stage", &error))?;
    Ok(if status.success() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Has children live in a process namespace of their own; whether that took a user namespace.
fn own_processes() -> io::Result<bool> {
    match sys::unshare(Own::Processes) {
        Ok(()) => Ok(false),
        Err(error) if error.raw_os_error() == Some(libc::EPERM) => {
            let (user, group) = sys::user_and_group();
            sys::unshare(Own::Users)?;
            // Linux asks for it before an ordinary user may map groups (user_namespaces(7)).
            fs::write("/proc/self/setgroups", "deny")?;
            fs::write("/proc/self/uid_map", format!("0 {user} 1"))?;
            fs::write("/proc/self/gid_map", format!("0 {group} 1"))?;
            sys::unshare(Own::Processes)?;
            Ok(true)
        }
        Err(error) => Err(error),
    }
}

/// The first line of standard input, and nothing behind it.
fn read_line() -> io::Result<Vec<u8>> {
    let mut line = Vec::new();
    let mut input = fs::File::from(io::stdin().as_fd().try_clone_to_owned()?);
    let mut some = [0; 4096];
    while line.last() != Some(&b'\n') {
        match input.read(&mut some)? {
            0 => return Err(io::ErrorKind::UnexpectedEof.into()),
            // The lab sends one line and no more.
            length => line.extend_from_slice(&some[..length]),
        }
    }
    Ok(line)
}

/// Ours: what a run may end later than it has to.
const LOOK_NS: u64 = 5_000_000;
