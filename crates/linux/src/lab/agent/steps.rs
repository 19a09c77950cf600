//! Carries out the steps of one connection.
//!
//! Calls block, as those of a plain program do: what the kernel does while a writer waits
//! (Linux `sk_stream_wait_memory`) is part of what is observed. Nothing but the plan's own pauses
//! takes time on purpose.

use std::io::{self, Read as _, Write as _};
use std::net::Shutdown;
use std::os::fd::AsFd as _;

use socket2::Socket;
use tcpwhy_model::scenario::plan::Step;

use super::log::{Entry, Log};
use crate::sys::{self, Clock, Queue};

/// One connection under way.
pub(super) struct Conversation<'a> {
    pub(super) socket: &'a Socket,
    pub(super) connection: u32,
    pub(super) log: &'a Log,
    /// First line of a head that this side writes.
    pub(super) head: &'static str,
    /// The peer's steps end in a reset: then that is how the stream may end.
    pub(super) reset_expected: bool,
    /// Read past the end of a head.
    carried: Vec<u8>,
    buffer: Vec<u8>,
}

/// A step that failed: which one, counted as in the plan, and why.
#[derive(Debug)]
pub(super) struct Failure {
    pub(super) step: String,
    pub(super) source: io::Error,
}

/// How the steps ended.
#[derive(Debug, Eq, PartialEq)]
pub(super) enum End {
    /// All done.
    Done,
    /// By a reset, ours or one that was expected.
    Reset,
    /// All done, and the connection is to stay open.
    Kept,
}

impl<'a> Conversation<'a> {
    pub(super) fn new(
        socket: &'a Socket,
        connection: u32,
        log: &'a Log,
        head: &'static str,
        reset_expected: bool,
        steps: &[Step],
    ) -> Self {
        let buffer = vec![b'd'; largest_chunk(steps).max(HEAD_CHUNK)];
        Self { socket, connection, log, head, reset_expected, carried: Vec::new(), buffer }
    }

    /// Carries out `steps`; `place` is where they stand in the plan, as `2.` for those of a repeat.
    pub(super) fn play(&mut self, steps: &[Step], place: &str) -> Result<End, Failure> {
        for (index, step) in steps.iter().enumerate() {
            let here = format!("{place}{}", index + 1);
            if let Step::Repeat { times, steps } = step {
                for _ in 0..*times {
                    if self.play(steps, &format!("{here}."))? == End::Reset {
                        return Ok(End::Reset);
                    }
                }
                continue;
            }
            if *step == Step::KeepOpen {
                return Ok(End::Kept);
            }
            match self.carry_out(step) {
                Ok(()) if matches!(step, Step::Reset) => return Ok(End::Reset),
                Ok(()) => {}
                Err(error) if self.reset_expected && is_reset(&error) => {
                    self.instant("was_reset").map_err(|source| Failure { step: here, source })?;
                    return Ok(End::Reset);
                }
                Err(source) => {
                    return Err(Failure { step: format!("{here} ({})", name(step)), source });
                }
            }
        }
        Ok(End::Done)
    }

    fn carry_out(&mut self, step: &Step) -> io::Result<()> {
        match *step {
            Step::Write { bytes, chunk, pause_ns } => self.write(bytes, chunk, pause_ns),
            Step::Read { bytes, chunk, pause_ns } => {
                let left = self.read(bytes, chunk, pause_ns)?;
                if left == 0 {
                    return Ok(());
                }
                let got = bytes - left;
                Err(io::Error::new(
                    io::ErrorKind::UnexpectedEof,
                    format!("the peer ended its stream after {got} of {bytes} bytes"),
                ))
            }
            Step::ReadToEnd { chunk, pause_ns } => self.read(u64::MAX, chunk, pause_ns).map(drop),
            Step::WriteHead(bytes) => self.write_head(bytes as usize),
            Step::ReadHead => self.read_head(),
            Step::Sleep(ns) => self.sleep(ns),
            Step::Drain => self.drain(),
            Step::EndWriting => {
                self.timed("end_writing", |socket| socket.shutdown(Shutdown::Write))
            }
            Step::Reset => self.timed("reset", |socket| {
                // With a linger of nothing, close sends a reset (tcp_close).
                socket.set_linger(Some(std::time::Duration::ZERO))
            }),
            Step::Repeat { .. } | Step::KeepOpen => unreachable!("`play` sees to it"),
        }
    }

    fn write(&mut self, bytes: u64, chunk: u64, pause_ns: u64) -> io::Result<()> {
        let chunk = chunk_size(chunk, bytes);
        let mut left = bytes;
        while left > 0 {
            let size = chunk.min(usize::try_from(left).unwrap_or(usize::MAX));
            self.send(0..size)?;
            left -= size as u64;
            self.pause(pause_ns)?;
        }
        Ok(())
    }

    /// Writes this part of the buffer, as one line of the log.
    fn send(&mut self, part: std::ops::Range<usize>) -> io::Result<()> {
        let bytes = part.len() as u64;
        let (sleeps, from) = (sys::sleeps(), Clock::Real.now());
        let sent = (&mut &*self.socket).write_all(&self.buffer[part]);
        let (to, sleeps) = (Clock::Real.now(), sys::sleeps() - sleeps);
        sent?;
        self.log.add(&Entry {
            bytes: Some(bytes),
            sleeps: Some(sleeps),
            unacked: sys::queue(self.socket.as_fd(), Queue::Unacked).ok(),
            unsent: sys::queue(self.socket.as_fd(), Queue::Unsent).ok(),
            ..self.entry("write", from, to)
        })
    }

    /// Reads up to `bytes`; how many are left when the stream ends.
    fn read(&mut self, bytes: u64, chunk: u64, pause_ns: u64) -> io::Result<u64> {
        let chunk = chunk_size(chunk, READ_CHUNK as u64);
        let mut left = bytes;
        while left > 0 {
            let size = chunk.min(usize::try_from(left).unwrap_or(usize::MAX));
            let got = if self.carried.is_empty() {
                self.receive(0..size)?
            } else {
                let size = size.min(self.carried.len());
                self.carried.drain(..size);
                size
            };
            if got == 0 {
                break;
            }
            left -= got as u64;
            self.pause(pause_ns)?;
        }
        Ok(left)
    }

    /// Reads into this part of the buffer; 0 at the end of the stream.
    fn receive(&mut self, part: std::ops::Range<usize>) -> io::Result<usize> {
        let (sleeps, from) = (sys::sleeps(), Clock::Real.now());
        let got = (&mut &*self.socket).read(&mut self.buffer[part]);
        let (to, sleeps) = (Clock::Real.now(), sys::sleeps() - sleeps);
        let got = got?;
        self.log.add(&Entry {
            bytes: Some(got as u64),
            sleeps: Some(sleeps),
            unread: sys::queue(self.socket.as_fd(), Queue::Unread).ok(),
            ..self.entry("read", from, to)
        })?;
        Ok(got)
    }

    fn write_head(&mut self, bytes: usize) -> io::Result<()> {
        let text = self.head.as_bytes();
        self.buffer[..bytes].fill(b'x');
        let shown = text.len().min(bytes - EMPTY_LINE.len());
        self.buffer[..shown].copy_from_slice(&text[..shown]);
        self.buffer[bytes - EMPTY_LINE.len()..bytes].copy_from_slice(EMPTY_LINE);
        self.send(0..bytes)?;
        self.buffer[..bytes].fill(b'd');
        Ok(())
    }

    fn read_head(&mut self) -> io::Result<()> {
        loop {
            let end = self.carried.windows(EMPTY_LINE.len()).position(|at| at == EMPTY_LINE);
            if let Some(end) = end {
                self.carried.drain(..end + EMPTY_LINE.len());
                return Ok(());
            }
            if self.carried.len() > LONGEST_HEAD {
                return Err(io::Error::new(
                    io::ErrorKind::InvalidData,
                    format!("no empty line in the first {} bytes", self.carried.len()),
                ));
            }
            let got = self.receive(0..HEAD_CHUNK)?;
            if got == 0 {
                return Err(io::Error::new(
                    io::ErrorKind::UnexpectedEof,
                    "the peer ended its stream before an empty line",
                ));
            }
            self.carried.extend_from_slice(&self.buffer[..got]);
        }
    }

    fn pause(&mut self, ns: u64) -> io::Result<()> {
        if ns == 0 { Ok(()) } else { self.sleep(ns) }
    }

    fn sleep(&mut self, ns: u64) -> io::Result<()> {
        let from = Clock::Real.now();
        Clock::Monotonic.sleep_until(Clock::Monotonic.now().saturating_add(ns));
        let to = Clock::Real.now();
        self.log.add(&Entry { asked_ns: Some(ns), ..self.entry("sleep", from, to) })
    }

    /// The kernel wakes nobody when the last byte is acknowledged, so it is asked again and again.
    fn drain(&mut self) -> io::Result<()> {
        let from = Clock::Real.now();
        while sys::queue(self.socket.as_fd(), Queue::Unacked)? > 0 {
            // A reset empties no queue: without this look the loop would not end.
            if let Some(error) = self.socket.take_error()? {
                return Err(error);
            }
            Clock::Monotonic.sleep_until(Clock::Monotonic.now() + DRAIN_LOOK_NS);
        }
        self.log.add(&self.entry("drain", from, Clock::Real.now()))
    }

    fn timed(
        &mut self,
        step: &'static str,
        call: impl FnOnce(&Socket) -> io::Result<()>,
    ) -> io::Result<()> {
        let from = Clock::Real.now();
        call(self.socket)?;
        self.log.add(&self.entry(step, from, Clock::Real.now()))
    }

    fn instant(&mut self, step: &'static str) -> io::Result<()> {
        self.timed(step, |_| Ok(()))
    }

    fn entry(&self, step: &'static str, from: u64, to: u64) -> Entry {
        Entry { connection: self.connection, step, from, to, ..Entry::default() }
    }
}

/// Whether these steps can be carried out; else why not, with the step's place.
pub(super) fn check(steps: &[Step], place: &str) -> Result<(), String> {
    for (index, step) in steps.iter().enumerate() {
        let here = format!("{place}{}", index + 1);
        match step {
            Step::Write { bytes, chunk, .. } if chunk_size(*chunk, *bytes) > LARGEST_CHUNK => {
                return Err(format!(
                    "step {here}: writes of {} bytes at a time; at most {LARGEST_CHUNK}, name a \
                     smaller `chunk`",
                    chunk_size(*chunk, *bytes)
                ));
            }
            Step::Read { chunk, .. } | Step::ReadToEnd { chunk, .. }
                if *chunk > LARGEST_CHUNK as u64 =>
            {
                return Err(format!(
                    "step {here}: reads of {chunk} bytes at a time; at most {LARGEST_CHUNK}"
                ));
            }
            Step::WriteHead(bytes) if !(4..=LONGEST_HEAD as u64).contains(bytes) => {
                return Err(format!(
                    "step {here}: a head of {bytes} bytes; from 4 (an empty line) to {LONGEST_HEAD}"
                ));
            }
            Step::Reset if !place.is_empty() || index + 1 < steps.len() => {
                return Err(format!("step {here}: nothing can follow a reset"));
            }
            Step::KeepOpen if !place.is_empty() || index + 1 < steps.len() => {
                return Err(format!("step {here}: nothing can follow what stays open"));
            }
            Step::Repeat { steps, .. } => check(steps, &format!("{here}."))?,
            _ => {}
        }
    }
    Ok(())
}

fn largest_chunk(steps: &[Step]) -> usize {
    let of = |step: &Step| match step {
        Step::Write { bytes, chunk, .. } => chunk_size(*chunk, *bytes),
        Step::Read { chunk, .. } | Step::ReadToEnd { chunk, .. } => {
            chunk_size(*chunk, READ_CHUNK as u64)
        }
        Step::WriteHead(bytes) => *bytes as usize,
        Step::Repeat { steps, .. } => largest_chunk(steps),
        _ => 0,
    };
    steps.iter().map(of).max().unwrap_or(0)
}

/// What is moved at a time: `chunk`, or `otherwise` if the plan names none.
fn chunk_size(chunk: u64, otherwise: u64) -> usize {
    let size = if chunk == 0 { otherwise } else { chunk };
    usize::try_from(size).unwrap_or(usize::MAX)
}

fn is_reset(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::ConnectionReset | io::ErrorKind::BrokenPipe)
}

fn name(step: &Step) -> String {
    match step {
        Step::Write { bytes, .. } => format!("write {bytes} bytes"),
        Step::Read { bytes, .. } => format!("read {bytes} bytes"),
        Step::ReadToEnd { .. } => "read to the end".to_owned(),
        Step::WriteHead(bytes) => format!("write a head of {bytes} bytes"),
        Step::ReadHead => "read a head".to_owned(),
        Step::Sleep(ns) => format!("sleep {ns} ns"),
        Step::Drain => "wait until all is acknowledged".to_owned(),
        Step::EndWriting => "end writing".to_owned(),
        Step::Reset => "reset".to_owned(),
        Step::KeepOpen => "keep open".to_owned(),
        Step::Repeat { times, .. } => format!("repeat {times} times"),
    }
}

const EMPTY_LINE: &[u8] = b"\r\n\r\n";

/// Read at a time unless the plan says otherwise; what many programs use.
const READ_CHUNK: usize = 64 << 10;

/// Read at a time while a head is looked for.
const HEAD_CHUNK: usize = 4096;

/// Ours: longer heads are refused by common servers, too.
const LONGEST_HEAD: usize = 64 << 10;

/// Ours: what one connection may keep in memory to write from.
const LARGEST_CHUNK: usize = 256 << 20;

/// Ours: how late the end of a drain may be seen.
const DRAIN_LOOK_NS: u64 = 200_000;
