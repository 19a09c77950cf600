//! `tcpwhy record`: what perf(1) is for programs, for their connections. Records, makes one file of it,
//! and explains that file as `tcpwhy FILE` does later.
//!
//! The command's input, output and errors are its own; what tcpwhy has to say goes to standard error
//! then, as time(1) and perf-stat(1) do it, and the exit status is the command's. Ctrl-C reaches the
//! command from the terminal; the recording ends with the command, or on the second one.

mod flags;
mod recover;

use std::fs;
use std::io::ErrorKind;
use std::os::unix::process::ExitStatusExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, ExitStatus};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::{Duration, Instant};
use std::{io, process};

use anyhow::Context as _;
use signal_hook::consts::{SIGHUP, SIGINT, SIGQUIT, SIGTERM};
use tcpwhy_linux::record::recording::{self, Command, Recorded, Recording};
use tcpwhy_linux::record::{Clock, ask_to_end};

use crate::exit::Exit;
use crate::flags::ExplainFlags;
use crate::options::{Options, Surroundings};
use crate::recording::{Output, SPOOL, is_stdout, usual_stem};
use crate::{complain, in_words, run_folder};

pub use flags::{AFTER, RecordFlags};

/// Records, explains, and says where the recording is.
pub fn run(flags: &RecordFlags, around: &Surroundings) -> Exit {
    if let Some(folder) = &flags.recover {
        return recover::run(folder, flags, around);
    }
    let recorded = record(flags);
    let (exit, path, recorded) = match recorded {
        Ok(Done { exit, path, recorded }) => (exit, path, recorded),
        Err(Failed { exit, why }) => {
            complain(&in_words(&why));
            return exit;
        }
    };
    for remark in recorded.remarks.iter().filter(|_| !recorded.has_packets) {
        complain(remark);
    }
    let packets = format!(
        "recorded {} of {}",
        counted(recorded.packets, "packet"),
        counted(recorded.connections, "connection")
    );
    if is_stdout(&path) {
        recorded.remarks.iter().filter(|_| recorded.has_packets).for_each(|r| complain(r));
        complain(&packets);
        return exit;
    }
    // Names that were asked for may be the whole story.
    let again = recorded.connections > 0 || recorded.packets > 0;
    // As text, and as a page where one was asked for.
    let forms = core::iter::once(None).chain(flags.html.iter().map(Some));
    for page in forms.filter(|_| again) {
        if let Err(error) = explain(&path, page, flags, around) {
            complain(&in_words(&error));
        }
    }
    if !again || recorded.connections == 0 && recorded.quic > 0 {
        complain(&nothing(flags, &recorded));
    }
    let file = path.display();
    complain(&format!(
        "{packets} in {file}{}",
        if again { format!("; `tcpwhy {file}` explains them again") } else { String::new() },
    ));
    exit
}

/// A recording that was made.
struct Done {
    exit: Exit,
    path: PathBuf,
    recorded: Recorded,
}

/// A recording that was not.
struct Failed {
    exit: Exit,
    why: anyhow::Error,
}

impl From<anyhow::Error> for Failed {
    fn from(why: anyhow::Error) -> Self {
        Self { exit: Exit::Unreadable, why }
    }
}

fn record(flags: &RecordFlags) -> Result<Done, Failed> {
    let signals = Signals::listen().context("cannot listen for Ctrl-C")?;
    if let Some(process) =
        flags.pid.filter(|process| !Path::new(&format!("/proc/{process}")).exists())
    {
        let why = anyhow::anyhow!("there is no process {process}");
        return Err(Failed { exit: Exit::Usage, why });
    }
    let path = flags.output.clone().unwrap_or_else(usual_name);
    let output = Output::create(&path, flags.force)?;
    if let Some(folder) = output.spool().path().parent() {
        tell_of_left(folder);
    }
    let options = flags.options(&output.spool().inside());
    let mut recording = Recording::begin(options).context("cannot record")?;
    let (exit, command) = if let Some((program, arguments)) = flags.command.split_first() {
        let (exit, command) = follow(program, arguments, flags, &signals, &mut recording)?;
        (exit, Some(command))
    } else {
        complain(&flags.in_words(&path));
        signals.wait(flags.duration);
        (Exit::Analysed, None)
    };
    let written = output.file().and_then(|file| {
        let recorded = recording
            .finish(command.as_ref(), file)
            .with_context(|| format!("cannot write {}", path.display()))?;
        output.keep()?;
        Ok(recorded)
    });
    match written {
        Ok(recorded) => Ok(Done { exit, path, recorded }),
        // A command that has ended keeps its status.
        Err(why) if matches!(exit, Exit::OfCommand(_)) => Err(Failed { exit, why }),
        Err(why) => Err(why.into()),
    }
}

/// Names what killed recordings left in `folder`.
fn tell_of_left(folder: &Path) {
    let left = run_folder::left(folder, SPOOL);
    if let Some(first) = left.first() {
        complain(&format!(
            "{}, killed before the end, left packets here, as in {}; `tcpwhy record --recover {}` makes captures of them",
            counted(left.len() as u64, "recording"),
            first.path().display(),
            folder.display()
        ));
    }
}

/// Runs the command to its end, or to that of the recording.
fn follow(
    program: &str,
    arguments: &[String],
    flags: &RecordFlags,
    signals: &Signals,
    recording: &mut Recording,
) -> Result<(Exit, Command), Failed> {
    let name = Path::new(program).file_name().unwrap_or(program.as_ref());
    let mut command = Command {
        program: name.to_string_lossy().into_owned(),
        start: Clock::Real.now(),
        end: 0,
        status: None,
        signal: None,
    };
    let mut started = process::Command::new(program);
    if flags.output.as_deref().is_some_and(is_stdout) {
        started.stdout(io::stderr());
    }
    let child = started.args(arguments).spawn();
    let child = child.map_err(|error| not_started(program, &error))?;
    recording.watch();
    let (end, status) = signals.until_ended(child, flags.duration);
    command.end = end;
    let exit = match status {
        Some(status) => {
            (command.status, command.signal) = (status.code(), status.signal());
            settle(recording);
            Exit::OfCommand(code_of(status))
        }
        None => Exit::Analysed,
    };
    Ok((exit, command))
}

/// What a shell gives for a status: 128 and the signal, if one ended it.
fn code_of(status: ExitStatus) -> u8 {
    let code = status.code().or_else(|| status.signal().map(|signal| 128 + signal));
    code.and_then(|code| u8::try_from(code & 0xff).ok()).unwrap_or(u8::MAX)
}

/// The exit statuses of a shell for a program that is not there, or is none.
fn not_started(program: &str, error: &io::Error) -> Failed {
    let (code, why) = match error.kind() {
        ErrorKind::NotFound => (127, "there is no such program".to_owned()),
        _ => (126, error.to_string()),
    };
    Failed {
        exit: Exit::OfCommand(code),
        why: anyhow::anyhow!("cannot run {program}: {why}; nothing was recorded"),
    }
}

/// Waits until the sockets of a command that has ended are closed.
fn settle(recording: &Recording) {
    let ended = Instant::now();
    let most = Duration::from_nanos(recording::TAIL_NS);
    while ended.elapsed() < SHORTEST_TAIL || (recording.live() > 0 && ended.elapsed() < most) {
        thread::sleep(TICK);
    }
}

/// What the user and the system ask of us.
struct Signals {
    interrupt: Arc<AtomicBool>,
    terminate: Arc<AtomicBool>,
}

impl Signals {
    fn listen() -> io::Result<Self> {
        let signals = Self {
            interrupt: Arc::new(AtomicBool::new(false)),
            terminate: Arc::new(AtomicBool::new(false)),
        };
        signal_hook::flag::register(SIGINT, Arc::clone(&signals.interrupt))?;
        signal_hook::flag::register(SIGTERM, Arc::clone(&signals.terminate))?;
        // Their default would leave the spool, packets of others among it.
        let ignored = ignored_signals();
        for signal in [SIGHUP, SIGQUIT].into_iter().filter(|one| !has_signal(ignored, *one)) {
            signal_hook::flag::register(signal, Arc::clone(&signals.terminate))?;
        }
        Ok(signals)
    }

    /// Waits for one, at most for `limit`.
    fn wait(&self, limit: Option<Duration>) {
        let began = Instant::now();
        let asked =
            || [&self.interrupt, &self.terminate].iter().any(|one| one.load(Ordering::Relaxed));
        while !asked() && limit.is_none_or(|limit| began.elapsed() < limit) {
            let left = limit.map_or(LOOK, |limit| limit.saturating_sub(began.elapsed()));
            thread::sleep(left.min(LOOK));
        }
    }

    /// When `child` had ended, and how; without an end, now.
    fn until_ended(&self, mut child: Child, limit: Option<Duration>) -> (u64, Option<ExitStatus>) {
        let began = Instant::now();
        let process = child.id();
        let (tell, told) = mpsc::channel();
        thread::spawn(move || {
            let status = child.wait();
            // After the limit nobody listens any more.
            let _ = tell.send((Clock::Real.now(), status.ok()));
        });
        let mut interrupts = 0;
        loop {
            match told.recv_timeout(LOOK) {
                Ok(ended) => return ended,
                Err(RecvTimeoutError::Disconnected) => break,
                Err(RecvTimeoutError::Timeout) => {}
            }
            // The terminal has sent the first one to the command, too.
            interrupts += u32::from(self.interrupt.swap(false, Ordering::Relaxed));
            if self.terminate.swap(false, Ordering::Relaxed) {
                ask_to_end(process);
            }
            if interrupts > 1 || limit.is_some_and(|limit| began.elapsed() >= limit) {
                break;
            }
        }
        (Clock::Real.now(), None)
    }
}

/// The set of signals that we were started to ignore, by nohup(1), say (proc(5), `SigIgn`).
fn ignored_signals() -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let set = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    set.and_then(|set| u64::from_str_radix(set.trim(), 16).ok()).unwrap_or(0)
}

fn has_signal(set: u64, signal: i32) -> bool {
    set >> (signal - 1) & 1 == 1
}

/// `tcpwhy-20261122-101500.pcapng`, in UTC.
fn usual_name() -> PathBuf {
    format!("{}.pcapng", usual_stem(Clock::Real.now())).into()
}

/// As `tcpwhy FILE`; beside the output of a command, on standard error.
fn explain(
    path: &Path,
    html: Option<&PathBuf>,
    flags: &RecordFlags,
    around: &Surroundings,
) -> anyhow::Result<()> {
    let on_stderr = !flags.command.is_empty();
    let around = Surroundings {
        stdout_is_terminal: if on_stderr {
            around.stderr_is_terminal
        } else {
            around.stdout_is_terminal
        },
        ..*around
    };
    let explain = ExplainFlags {
        files: vec![path.to_owned()],
        html: html.cloned(),
        ..ExplainFlags::default()
    };
    let mut options = Options::check(&explain, &around)?;
    options.on_stderr = on_stderr;
    super::explain::run(options, &around).map(drop)
}

/// Why there is nothing to explain.
fn nothing(flags: &RecordFlags, recorded: &Recorded) -> String {
    let mut text = match (recorded.has_packets, flags.command.is_empty()) {
        (false, _) => "no packets were recorded, so there is nothing to explain".to_owned(),
        (true, false) => "the command opened no TCP connection that passed here".to_owned(),
        (true, true) => "no such TCP connection was seen".to_owned(),
    };
    if recorded.quic > 0 {
        text.push_str("; ");
        text.push_str(&counted(recorded.quic, "packet"));
        text.push_str(
            " of UDP port 443 passed: QUIC (HTTP/3), which cannot be explained here; try it over TCP \
             (curl --http2)",
        );
    } else if recorded.has_packets {
        text.push_str(
            "; one inside this machine may use a Unix socket, one of a container another network \
             namespace",
        );
    }
    text
}

fn counted(number: u64, noun: &str) -> String {
    if number == 1 { format!("1 {noun}") } else { format!("{number} {noun}s") }
}

/// How often signals and ends are looked for, which nobody notices.
const LOOK: Duration = Duration::from_millis(50);
const TICK: Duration = Duration::from_millis(10);
/// Ours: a connection so short that no look found its socket is closed by then.
const SHORTEST_TAIL: Duration = Duration::from_millis(100);
