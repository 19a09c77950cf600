//! Boots a simulated kernel on a folder and waits until it has switched itself off.
//!
//! The guest sees that folder alone, by a name that is the same in every run: nothing on the command line or in the environment differs
//! between runs, for the kernel stirs both into its randomness. Its processes form a group of
//! their own, which ends with it, and with us.

#![expect(unsafe_code, reason = "signals to the guest's processes, and one to them if we die")]

use std::fs::{self, File};
use std::io;
use std::os::unix::process::{CommandExt as _, ExitStatusExt as _};
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use crate::lab::init::BOOT_NS;

/// How a guest ended.
#[derive(Debug)]
pub(super) enum End {
    /// It switched itself off.
    Off,
    /// It ran longer than it may, and was killed.
    Late,
    /// It stopped otherwise: its status.
    Broken(ExitStatus),
}

/// Boots `kernel` on `root`; what it says goes to `console`.
pub(super) fn boot(kernel: &Path, root: &Path, console: &Path, limit: Duration) -> io::Result<End> {
    let said = File::create(console)?;
    let mut command = Command::new(kernel);
    command
        .args(["mem=768M", "root=/dev/root", "rootfstype=hostfs", "rootflags=/proc/self/cwd", "rw"])
        .args(["time-travel=inf-cpu", "con=null", "con0=null,fd:1", "uml_dir=uml/", "umid=guest"])
        .arg(format!("time-travel-start={BOOT_NS}"))
        .args(["init=/agent", "--", "init"])
        .current_dir(root)
        .env_clear()
        .stdin(Stdio::null())
        .stdout(said.try_clone()?)
        .stderr(said)
        .process_group(0);
    // SAFETY: prctl and setrlimit may be called between fork and exec; neither allocates.
    unsafe {
        command.pre_exec(|| {
            let none = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
            libc::setrlimit(libc::RLIMIT_CORE, &raw const none);
            libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL as libc::c_ulong);
            Ok(())
        });
    }
    let mut guest = command.spawn()?;
    let end = wait(&mut guest, limit);
    kill_group(&guest);
    end
}

fn wait(guest: &mut Child, limit: Duration) -> io::Result<End> {
    let begin = Instant::now();
    loop {
        if let Some(status) = guest.try_wait()? {
            let off = status.success() && status.signal().is_none();
            return Ok(if off { End::Off } else { End::Broken(status) });
        }
        if begin.elapsed() > limit {
            kill_group(guest);
            guest.wait()?;
            return Ok(End::Late);
        }
        thread::sleep(GLANCE);
    }
}

/// Ends what is left of the guest's own process group.
fn kill_group(guest: &Child) {
    // SAFETY: takes numbers; the group is the guest's, for it was made with it and its leader is
    // not reaped, or its number not yet used again.
    unsafe { libc::kill(-(guest.id() as libc::pid_t), libc::SIGKILL) };
}

/// The last lines of a console that say something.
pub(super) fn last_words(console: &Path) -> String {
    let text = fs::read(console).unwrap_or_default();
    let text = String::from_utf8_lossy(&text);
    let lines: Vec<_> = text.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
    lines[lines.len().saturating_sub(LAST_WORDS)..].join(" | ")
}

/// Ours: short beside a run's second.
const GLANCE: Duration = Duration::from_millis(5);

const LAST_WORDS: usize = 6;
