//! A capture for an analysis elsewhere: its segments in pieces, and what it holds beside them.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64};
use std::time::Instant;

use tcpwhy::capture::CaptureError;
use tcpwhy::session::{Cut, Intake};
use tcpwhy::tracker::Cutter;

use super::input::Input;
use super::{Source, Taker, Watch, evidence, feed, feed_plain};

/// Who takes the pieces of a capture: the shard and the bytes of each.
pub type Takes<'a> = dyn FnMut(usize, Vec<u8>) + 'a;

/// Reads `input`, and hands on its pieces; what it holds beside them. Once `stop` is true reading ends.
pub fn read_apart(input: &Input, stop: &AtomicBool, take: &mut Takes<'_>) -> Cut {
    let mut apart = Apart { intake: Intake::apart(), cutter: Cutter::default(), take };
    apart.intake.begin(&input.name());
    let taken = Arc::new(AtomicU64::new(0));
    let mut watch = Watch { stop, stop_at: None, last_tick: Instant::now() };
    let failure = match input.open_plain() {
        Some(file) => feed_plain(&mut apart, file, &taken, &mut watch, &mut |_| {}),
        None => feed(&mut apart, Source::start(input.clone(), &taken), &mut watch, &mut |_| {}),
    };
    let mut cut = apart.end();
    let capture = &mut cut.capture;
    capture.error = failure.or(capture.error.take());
    if capture.packets == 0 && capture.error.is_some() {
        capture.error = evidence::named_as_a_capture(input).or(capture.error.take());
    }
    cut
}

/// Reads and hands on pieces.
struct Apart<'a, 'b> {
    intake: Intake,
    cutter: Cutter,
    take: &'a mut Takes<'b>,
}

impl Apart<'_, '_> {
    fn end(mut self) -> Cut {
        // Any damage is in the capture.
        let _ = self.intake.end_apart(&mut self.cutter);
        for (shard, piece) in self.cutter.rest() {
            (self.take)(shard, piece);
        }
        self.intake.cut()
    }
}

impl Taker for Apart<'_, '_> {
    fn push(&mut self, bytes: &[u8]) -> Result<(), CaptureError> {
        let read = self.intake.push_apart(bytes, &mut self.cutter);
        for (shard, piece) in self.cutter.ready() {
            (self.take)(shard, piece);
        }
        read
    }
}
