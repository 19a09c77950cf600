//! An application: plays the steps of one end of a connection, as the lab's agent does
//! (`docs/scenarios.md`).

use std::sync::Arc;

use super::is_over;
use super::program::{Flat, Program};
use crate::segment::Segment;
use crate::socket::{Events, Socket, State};

/// An application under way.
#[derive(Clone, Debug)]
pub(super) struct App {
    program: Arc<Program>,
    /// Which step is carried out.
    at: usize,
    doing: Doing,
    next_head: usize,
    /// Bytes read from the socket, and those of them that steps have taken.
    received: u64,
    consumed: u64,
    done: bool,
    waits: Waits,
    /// Calls that it made since that was last asked.
    calls: u64,
}

/// What a step has left to do.
#[derive(Clone, Copy, Debug, Default)]
struct Doing {
    begun: bool,
    left: u64,
    /// Of the call under way.
    chunk_left: u64,
}

/// What an application waits for.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Waits {
    Connection,
    Data,
    Room,
    Time,
    Nothing,
}

/// When an application goes on.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Pause {
    /// When something happens to its socket.
    Event,
    /// At this instant.
    Until(u64),
}

/// How a step went.
enum Went {
    Done,
    Waits(Waits),
    Sleeps(u64),
}

impl App {
    pub(super) fn new(program: Arc<Program>) -> Self {
        Self {
            program,
            at: 0,
            doing: Doing::default(),
            next_head: 0,
            received: 0,
            consumed: 0,
            done: false,
            waits: Waits::Connection,
            calls: 0,
        }
    }

    pub(super) const fn is_done(&self) -> bool {
        self.done
    }

    /// Number of the step, from 1.
    pub(super) const fn place(&self) -> usize {
        self.at + 1
    }

    /// Blocked in a write.
    pub(super) const fn waits_for_room(&self) -> bool {
        matches!(self.waits, Waits::Room)
    }

    /// Blocked in a read.
    pub(super) const fn waits_for_data(&self) -> bool {
        matches!(self.waits, Waits::Data)
    }

    /// No step writes any more.
    pub(super) fn writes_no_more(&self) -> bool {
        let has_written = self.doing.begun && self.doing.left == 0;
        let last = self.program.last_write;
        last.is_none_or(|last| last < self.at || (last == self.at && has_written))
    }

    /// Calls that it made since this was last asked.
    pub(super) const fn take_calls(&mut self) -> u64 {
        std::mem::replace(&mut self.calls, 0)
    }

    pub(super) const fn is_woken_by(&self, events: Events) -> bool {
        if self.done {
            return false;
        }
        if events.failed || events.closed {
            return true;
        }
        match self.waits {
            Waits::Connection => events.connected,
            Waits::Data => events.readable,
            Waits::Room => events.writable,
            Waits::Time | Waits::Nothing => false,
        }
    }

    /// Goes on as far as it can.
    pub(super) fn run(&mut self, socket: &mut Socket, now: u64, out: &mut Vec<Segment>) -> Pause {
        if self.done {
            return Pause::Event;
        }
        let program = Arc::clone(&self.program);
        while let Some(step) = program.steps.get(self.at).copied() {
            self.calls += 1;
            if self.calls >= CALLS_AT_ONCE {
                self.waits = Waits::Time;
                return Pause::Until(now);
            }
            if is_over(socket.state()) && !matches!(step, Flat::Read { .. } | Flat::ReadHead) {
                break;
            }
            match self.carry_out(step, socket, now, out) {
                Went::Done => {
                    self.at += 1;
                    self.doing = Doing::default();
                }
                Went::Waits(waits) => {
                    self.waits = waits;
                    return Pause::Event;
                }
                Went::Sleeps(until) => {
                    self.waits = Waits::Time;
                    return Pause::Until(until);
                }
            }
        }
        self.done = true;
        self.waits = Waits::Nothing;
        if program.cork {
            socket.set_cork(now, false, out);
        }
        if socket.state() != State::Closed {
            socket.close(now, out);
        }
        Pause::Event
    }

    fn carry_out(
        &mut self,
        step: Flat,
        socket: &mut Socket,
        now: u64,
        out: &mut Vec<Segment>,
    ) -> Went {
        match step {
            Flat::Write { bytes, chunk, pause_ns } => {
                self.write(bytes, chunk, pause_ns, socket, now, out)
            }
            Flat::Read { bytes, chunk, pause_ns } => {
                self.read(bytes, chunk, pause_ns, socket, now, out)
            }
            Flat::ReadHead => self.read_head(socket, now, out),
            Flat::Sleep(ns) => self.sleep_once(now + ns + SLACK_NS),
            Flat::Drain => {
                if socket.unacked() == 0 {
                    Went::Done
                } else {
                    Went::Sleeps(now + DRAIN_LOOK_NS + SLACK_NS)
                }
            }
            Flat::EndWriting => {
                socket.shutdown(now, out);
                Went::Done
            }
            Flat::Reset => {
                socket.reset(now, out);
                Went::Done
            }
        }
    }

    const fn sleep_once(&mut self, until: u64) -> Went {
        if self.doing.begun {
            return Went::Done;
        }
        self.doing.begun = true;
        Went::Sleeps(until)
    }

    fn write(
        &mut self,
        bytes: u64,
        chunk: u64,
        pause_ns: u64,
        socket: &mut Socket,
        now: u64,
        out: &mut Vec<Segment>,
    ) -> Went {
        let chunk = if chunk == 0 { bytes } else { chunk };
        if !self.doing.begun {
            self.doing = Doing { begun: true, left: bytes, chunk_left: 0 };
        }
        while self.doing.left > 0 {
            let taken = if self.doing.chunk_left == 0 {
                self.doing.chunk_left = chunk.min(self.doing.left);
                socket.write(now, self.doing.chunk_left, out)
            } else {
                socket.resume_write(now, self.doing.chunk_left, out)
            };
            self.calls += 1;
            self.doing.chunk_left -= taken;
            self.doing.left -= taken;
            if self.doing.chunk_left > 0 {
                // Room that the call itself made lets it go on at once.
                if socket.take_events().writable {
                    continue;
                }
                return Went::Waits(Waits::Room);
            }
            if pause_ns > 0 {
                return Went::Sleeps(now + pause_ns + SLACK_NS);
            }
            if self.calls >= CALLS_AT_ONCE && self.doing.left > 0 {
                return Went::Sleeps(now);
            }
        }
        Went::Done
    }

    fn read(
        &mut self,
        bytes: u64,
        chunk: u64,
        pause_ns: u64,
        socket: &mut Socket,
        now: u64,
        out: &mut Vec<Segment>,
    ) -> Went {
        let chunk = if chunk == 0 { READ_CHUNK } else { chunk };
        if !self.doing.begun {
            self.doing = Doing { begun: true, left: bytes, chunk_left: 0 };
        }
        while self.doing.left > 0 {
            let size = chunk.min(self.doing.left);
            let carried = self.received - self.consumed;
            let got = if carried > 0 {
                size.min(carried)
            } else {
                let got = socket.read(now, size, out);
                self.received += got;
                if got == 0 {
                    if socket.at_end() {
                        return Went::Done;
                    }
                    return Went::Waits(Waits::Data);
                }
                got
            };
            self.calls += 1;
            self.consumed += got;
            self.doing.left -= got;
            if pause_ns > 0 {
                return Went::Sleeps(now + pause_ns + SLACK_NS);
            }
            if self.calls >= CALLS_AT_ONCE && self.doing.left > 0 {
                return Went::Sleeps(now);
            }
        }
        Went::Done
    }

    fn read_head(&mut self, socket: &mut Socket, now: u64, out: &mut Vec<Segment>) -> Went {
        let Some(&end) = self.program.heads.get(self.next_head) else { return Went::Done };
        while self.received < end {
            let got = socket.read(now, HEAD_CHUNK, out);
            self.received += got;
            if got == 0 {
                if socket.at_end() {
                    return Went::Done;
                }
                return Went::Waits(Waits::Data);
            }
        }
        self.consumed = self.consumed.max(end);
        self.next_head += 1;
        Went::Done
    }
}

/// Read at a time unless the plan says otherwise; what the lab's agent reads.
const READ_CHUNK: u64 = 64 << 10;

/// Read at a time while a head is looked for; likewise.
const HEAD_CHUNK: u64 = 4096;

/// How much later a sleep ends than asked: the finest that `PR_SET_TIMERSLACK` takes, as the lab's agent sets
/// it. A timer with slack fires at the end of it unless the processor is interrupted before
/// (`hrtimer_set_expires_range_ns`).
const SLACK_NS: u64 = 1;

/// Calls after which others of the same instant have their turn, so that a run can be broken off among them.
/// Ours: more than a buffer of 32 MiB takes by 512 bytes.
const CALLS_AT_ONCE: u64 = 1 << 16;

/// How often the lab's agent looks whether all is acknowledged.
const DRAIN_LOOK_NS: u64 = 200_000;
