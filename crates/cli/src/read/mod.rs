//! From what the user named to a report.
//!
//! ```text
//! Input --open, unpack--> chunks of up to 256 KiB --channel--> Run --> Report
//!        (a thread each)                          (caller's thread, analysts)
//! plain file ------------- mapped, chunks of 64 KiB ---------> Run --> Report
//! ```
//!
//! A plain file is mapped, or read, on the caller's thread: its bytes are there. Of anything else the reading thread may
//! block for hours on a quiet pipe; the caller's thread never does, so progress is drawn and Ctrl-C is heard meanwhile.
//! Buffers go round between the two threads: memory stays at [`AHEAD`] chunks whatever the input unpacks to.

mod again;
mod apart;
mod attached;
mod board;
mod confined;
mod crew;
mod decompress;
mod evidence;
mod glance;
mod held;
mod input;
mod kind;
mod lanes;
mod open;
mod order;
mod plain;
mod run;
mod source;

use std::fs::File;
use std::io::Read;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender, SyncSender};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use tcpwhy::capture::CaptureError;
use tcpwhy::evidence::Evidence;
use tcpwhy::report::Report;
use tcpwhy::tracker::Config;

pub use again::{ReadAgainError, read_segments};
pub use apart::{Takes, read_apart};
pub use confined::confined;
pub use evidence::read_evidence;
pub use input::Input;
pub use kind::{Kind, kind, kinds};
pub use open::OpenError;
pub use order::{SamePackets, by_first_packet};
use plain::{Plain, read_some};
pub use run::Run;
use source::CHUNK;

/// How far reading has come.
#[derive(Clone, Copy, Debug)]
pub struct Progress {
    /// Bytes taken from the inputs, as stored.
    pub bytes: u64,
    /// Bytes there are in all, where every input's size is known.
    pub of: Option<u64>,
    /// Packets read.
    pub packets: u64,
    /// Time since reading began.
    pub elapsed: Duration,
}

/// As [`read_all`], with what is attached to the packets as evidence. Where that or what lies `beside` tells how windows are
/// scaled, which packets alone do not, the packets are read once more.
pub fn read_attached(
    inputs: &[Input],
    config: &Config,
    threads: usize,
    beside: &[Evidence],
    stop: &AtomicBool,
    tick: &mut dyn FnMut(&mut Run, Progress),
) -> (Report, Vec<Evidence>) {
    let report = read_all(inputs, config.clone(), threads, stop, tick);
    let evidence = tcpwhy::evidence::attached(&report);
    let scales = tcpwhy::evidence::scales(&report, evidence.iter().chain(beside));
    let is_told = !scales.is_empty() && !stop.load(Ordering::Relaxed);
    if !is_told || !inputs.iter().all(Input::is_there_again) {
        return (report, evidence);
    }
    let config = Config { scales: Some(Arc::new(scales)), ..config.clone() };
    let report = read_all(inputs, config, threads, stop, tick);
    let evidence = tcpwhy::evidence::attached(&report);
    (report, evidence)
}

/// Reads all `inputs`, analyses them on so many `threads` and gives the report.
///
/// `tick` is called about twenty times a second with what is known. When `stop` becomes true,
/// reading ends within [`GRACE`] and the report covers what was read up to then.
///
/// Damage does not end the run: it is in the report, as the `error` of its capture.
pub fn read_all(
    inputs: &[Input],
    config: Config,
    threads: usize,
    stop: &AtomicBool,
    tick: &mut dyn FnMut(&mut Run, Progress),
) -> Report {
    let began = Instant::now();
    let mut run = Run::new(config, threads);
    let taken = Arc::new(AtomicU64::new(0));
    let of = inputs.iter().map(Input::size).sum();
    let mut failures = Vec::new();
    let mut watch = Watch { stop, stop_at: None, last_tick: began };
    for input in inputs {
        run.begin(&input.name());
        let mut tick = |run: &mut Run| {
            let bytes = taken.load(Ordering::Relaxed);
            let packets = run.packets();
            tick(run, Progress { bytes, of, packets, elapsed: began.elapsed() });
        };
        let failure = if let Some(file) = input.open_plain() {
            feed_plain(&mut run, file, &taken, &mut watch, &mut tick)
        } else {
            feed(&mut run, Source::start(input.clone(), &taken), &mut watch, &mut tick)
        };
        run.end();
        let has_more = failures.len() + 1 < inputs.len();
        let stopped = stop.load(Ordering::Relaxed);
        // This input may have come to its end meanwhile, but the others are missing.
        failures.push(failure.or_else(|| (stopped && has_more).then(|| INTERRUPTED.to_owned())));
        if stopped {
            break;
        }
    }
    let mut report = run.finish();
    attached::take_in(&mut report);
    for ((capture, failure), input) in report.captures.iter_mut().zip(failures).zip(inputs) {
        // Why the bytes ended tells more than that the last record is incomplete.
        capture.error = failure.or(capture.error.take());
        if capture.packets == 0 && capture.error.is_some() {
            capture.error = evidence::named_as_a_capture(input).or(capture.error.take());
        }
    }
    report
}

/// Who takes a capture's bytes.
trait Taker {
    /// Takes the next.
    fn push(&mut self, bytes: &[u8]) -> Result<(), CaptureError>;
}

impl Taker for Run {
    fn push(&mut self, bytes: &[u8]) -> Result<(), CaptureError> {
        Self::push(self, bytes)
    }
}

/// Moves one source's chunks into the run, to its end, its first damage, or the stop.
///
/// Gives what went wrong outside the capture's own format.
fn feed<T: Taker>(
    run: &mut T,
    source: Source,
    watch: &mut Watch<'_>,
    tick: &mut dyn FnMut(&mut T),
) -> Option<String> {
    loop {
        match source.chunks.recv_timeout(TICK) {
            Ok(Ok(chunk)) => {
                if run.push(&chunk.buffer[..chunk.filled]).is_err() {
                    return None;
                }
                // The reading thread may have ended already; then nobody needs the buffer.
                let _ = source.used.send(chunk.buffer);
            }
            Ok(Err(failure)) => return Some(failure),
            Err(RecvTimeoutError::Timeout) => {}
            // The thread has ended: at the end of the input, or by a panic.
            Err(RecvTimeoutError::Disconnected) => {
                return source.thread.join().is_err().then(|| INTERNAL_ERROR.to_owned());
            }
        }
        if watch.is_due() {
            tick(run);
        }
        if watch.stopped() {
            return Some(INTERRUPTED.to_owned());
        }
    }
}

/// Moves a plain file into the run, as [`feed`] does; `taken` counts its bytes.
fn feed_plain<T: Taker>(
    run: &mut T,
    file: File,
    taken: &AtomicU64,
    watch: &mut Watch<'_>,
    tick: &mut dyn FnMut(&mut T),
) -> Option<String> {
    let mut plain = Plain::new(file);
    loop {
        match plain.next() {
            Ok([]) => return None,
            Ok(chunk) => {
                taken.fetch_add(chunk.len() as u64, Ordering::Relaxed);
                if run.push(chunk).is_err() {
                    return None;
                }
            }
            Err(error) => return Some(error.to_string()),
        }
        if watch.is_due() {
            tick(run);
        }
        if watch.stopped() {
            return Some(INTERRUPTED.to_owned());
        }
    }
}

/// What a capture's error says when the reading thread came to a sudden end. Its place was printed
/// by then, see [`crate::run`].
pub const INTERNAL_ERROR: &str =
    "a mistake in tcpwhy ended reading; this is what was read up to then";

/// What a capture's error says after a stop.
const INTERRUPTED: &str = "interrupted";

/// When to tick, and when to stop.
struct Watch<'a> {
    stop: &'a AtomicBool,
    stop_at: Option<Instant>,
    last_tick: Instant,
}

impl Watch<'_> {
    fn is_due(&mut self) -> bool {
        let due = self.last_tick.elapsed() >= TICK;
        if due {
            self.last_tick = Instant::now();
        }
        due
    }

    /// Whether the user wants an end and the writer had its time to flush.
    fn stopped(&mut self) -> bool {
        if !self.stop.load(Ordering::Relaxed) {
            return false;
        }
        let at = *self.stop_at.get_or_insert_with(|| Instant::now() + GRACE);
        Instant::now() >= at
    }
}

/// Some bytes of an input. The buffer keeps its length, so that a pipe's short reads do not cost
/// clearing it each time.
struct Chunk {
    buffer: Vec<u8>,
    filled: usize,
}

/// A thread that reads one input.
struct Source {
    chunks: Receiver<Result<Chunk, String>>,
    used: Sender<Vec<u8>>,
    thread: JoinHandle<()>,
}

impl Source {
    fn start(input: Input, taken: &Arc<AtomicU64>) -> Self {
        let taken = Arc::clone(taken);
        Self::reading(move || input.open(&taken).map_err(|error| error.why))
    }

    /// A thread that reads what `open` gives.
    fn reading<R: Read>(open: impl FnOnce() -> Result<R, String> + Send + 'static) -> Self {
        let (to_session, chunks) = mpsc::sync_channel(AHEAD);
        let (used, from_session) = mpsc::channel();
        let thread = thread::spawn(move || {
            let read = open().and_then(|source| read_chunks(source, &to_session, &from_session));
            if let Err(failure) = read {
                // Nobody listens any more after a stop.
                let _ = to_session.send(Err(failure));
            }
        });
        Self { chunks, used, thread }
    }
}

/// Reads to the end of the input or until nobody listens.
fn read_chunks(
    mut source: impl Read,
    to_session: &SyncSender<Result<Chunk, String>>,
    from_session: &Receiver<Vec<u8>>,
) -> Result<(), String> {
    loop {
        let mut buffer = from_session.try_recv().unwrap_or_else(|_| vec![0; CHUNK]);
        let filled = read_some(&mut source, &mut buffer).map_err(|error| error.to_string())?;
        if filled == 0 || to_session.send(Ok(Chunk { buffer, filled })).is_err() {
            return Ok(());
        }
    }
}

/// Chunks that may wait between the threads, beside the one that is read and the one that is
/// taken in. Ours: more of them leave the cache before they are looked at.
const AHEAD: usize = 1;

/// Time between two ticks.
const TICK: Duration = Duration::from_millis(50);

/// Time for the writer of a pipe to flush after Ctrl-C: a terminal sends the signal to all of
/// `tcpdump -w - | tcpwhy -`, and tcpdump writes its last buffer then.
const GRACE: Duration = Duration::from_millis(500);

#[cfg(test)]
mod tests {
    use std::io;

    use super::*;

    fn read(inputs: &[Input], stop: &AtomicBool) -> Report {
        read_all(inputs, Config::default(), 1, stop, &mut |_, _| {})
    }

    #[test]
    fn each_input_becomes_a_capture_in_order() {
        let inputs = ["Cargo.toml", "src/lib.rs"].map(|name| Input::named(name.as_ref()));
        let report = read(&inputs, &AtomicBool::new(false));
        let sources: Vec<_> = report.captures.iter().map(|capture| &capture.source).collect();
        assert_eq!(sources, ["Cargo.toml", "src/lib.rs"]);
    }

    #[test]
    fn what_cannot_be_opened_is_the_capture_s_error_and_the_next_is_still_read() {
        let inputs = ["no/such/file", "Cargo.toml"].map(|name| Input::named(name.as_ref()));
        let report = read(&inputs, &AtomicBool::new(false));
        assert_eq!(report.captures.len(), 2);
        assert_eq!(report.captures[0].error.as_deref(), Some("there is no such file"));
    }

    #[test]
    fn a_reader_s_mistake_is_no_damage_of_the_file() {
        /// A capture without packets, and a mistake behind it.
        struct Mistaken(bool);
        impl Read for Mistaken {
            fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
                assert!(!std::mem::replace(&mut self.0, true), "a mistake made for a test");
                buffer[..4].copy_from_slice(&0xa1b2_c3d4_u32.to_le_bytes());
                Ok(4)
            }
        }
        let mut run = Run::new(Config::default(), 1);
        run.begin("mistaken");
        let (stop, now) = (AtomicBool::new(false), Instant::now());
        let mut watch = Watch { stop: &stop, stop_at: None, last_tick: now };
        let source = Source::reading(|| Ok(Mistaken(false)));
        let failure = feed(&mut run, source, &mut watch, &mut |_| {});
        assert_eq!(failure.as_deref(), Some(INTERNAL_ERROR));
    }

    #[test]
    fn a_stop_ends_reading_an_endless_input() {
        let zeros = Input::named("/dev/zero".as_ref());
        let began = Instant::now();
        let report = read(&[zeros.clone(), zeros], &AtomicBool::new(true));
        assert!(began.elapsed() < Duration::from_secs(10));
        assert_eq!(report.captures.len(), 1, "the second input was not begun");
        assert!(report.captures[0].error.is_some());
    }
}
