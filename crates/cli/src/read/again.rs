//! Captures once more, for the segments of the connections in their report.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{SyncSender, sync_channel};
use std::thread;
use std::time::Instant;

use tcpwhy::capture::CaptureError;
use tcpwhy::report::Report;
use tcpwhy::session::{Captured, Segments};

use super::input::Input;
use super::{Source, Taker, Watch, confined, feed, feed_plain};

/// Segments that go on together. Ours: some megabytes.
const TOGETHER: usize = 1 << 14;

/// Groups that wait between the threads.
const AHEAD: usize = 2;

/// Why not all segments of a report could be read.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
#[error("cannot read {file} a second time: {why}")]
pub struct ReadAgainError {
    file: String,
    why: String,
}

/// Reads the `inputs` of `report`, and hands on the segments of its connections, in the order of their packets. Once
/// `stop` becomes true reading ends.
///
/// # Errors
/// A capture gives fewer packets than for the report, or `take` fails.
pub fn read_segments<E: From<ReadAgainError>>(
    inputs: &[Input],
    report: &Report,
    stop: &AtomicBool,
    mut take: impl FnMut(&[Captured]) -> Result<(), E>,
) -> Result<(), E> {
    // After an interruption what was read up to then is read again, to its end.
    let go_on = AtomicBool::new(false);
    let stop = if stop.load(Ordering::Relaxed) { &go_on } else { stop };
    let (send, receive) = sync_channel(AHEAD);
    thread::scope(|scope| {
        let reader = scope.spawn(move || confined(inputs, || read(inputs, report, stop, &send)));
        for segments in receive {
            take(&segments)?;
        }
        reader.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)).map_err(E::from)
    })
}

fn read(
    inputs: &[Input],
    report: &Report,
    stop: &AtomicBool,
    send: &SyncSender<Vec<Captured>>,
) -> Result<(), ReadAgainError> {
    let mut again = Again { segments: Segments::of(report), waiting: Vec::new(), send };
    let taken = Arc::new(AtomicU64::new(0));
    for (input, capture) in inputs.iter().zip(&report.captures) {
        let mut watch = Watch { stop, stop_at: None, last_tick: Instant::now() };
        again.segments.begin(&input.name());
        let failure = match input.open_plain() {
            _ if capture.packets == 0 => None,
            Some(file) => feed_plain(&mut again, file, &taken, &mut watch, &mut |_| {}),
            None => feed(&mut again, Source::start(input.clone(), &taken), &mut watch, &mut |_| {}),
        };
        // Damage is where it was.
        let _ = again.segments.end();
        again.hand_on(0);
        if !again.segments.is_whole() {
            let why = failure.unwrap_or_else(|| "it has changed meanwhile".to_owned());
            return Err(ReadAgainError { file: input.name(), why });
        }
    }
    Ok(())
}

/// Reads and hands on segments.
struct Again<'a> {
    segments: Segments,
    waiting: Vec<Captured>,
    send: &'a SyncSender<Vec<Captured>>,
}

impl Again<'_> {
    /// Hands on what waits, if that is more than `least`.
    fn hand_on(&mut self, least: usize) {
        self.waiting.append(&mut self.segments.ready());
        if self.waiting.len() > least {
            // Nobody listens any more after an error.
            let _ = self.send.send(core::mem::take(&mut self.waiting));
        }
    }
}

impl Taker for Again<'_> {
    fn push(&mut self, bytes: &[u8]) -> Result<(), CaptureError> {
        let read = self.segments.push(bytes);
        self.hand_on(TOGETHER);
        read
    }
}
