//! An application: plays the steps of one end of a connection, as the lab's agent does
//! (`docs/scenarios.md`).

use super::{Side, is_over};
use crate::scenario::plan::{Flow, Step};
use crate::segment::Segment;
use crate::socket::{Events, Socket, State};

/// An application under way.
#[derive(Clone, Debug)]
pub(super) struct App {
    steps: Vec<Flat>,
    /// Which is carried out.
    at: usize,
    doing: Doing,
    /// Where the heads that the peer writes end in its stream.
    heads: Vec<u64>,
    next_head: usize,
    /// Bytes read from the socket, and those of them that steps have taken.
    received: u64,
    consumed: u64,
    cork: bool,
    done: bool,
    waits: Waits,
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

/// Steps without repetition.
#[derive(Clone, Copy, Debug)]
enum Flat {
    Write { bytes: u64, chunk: u64, pause_ns: u64 },
    Read { bytes: u64, chunk: u64, pause_ns: u64 },
    ReadHead,
    Sleep(u64),
    Drain,
    EndWriting,
    Reset,
}

/// How a step stands.
enum Went {
    Done,
    Waits(Waits),
    Sleeps(u64),
}

impl App {
    pub(super) fn new(flow: &Flow, side: Side) -> Self {
        let (own, peers, socket) = match side {
            Side::Client => (&flow.client, &flow.server, &flow.client_socket),
            Side::Server => (&flow.server, &flow.client, &flow.server_socket),
        };
        let mut steps = Vec::new();
        flatten(own, &mut steps);
        let mut heads = Vec::new();
        head_ends(peers, &mut 0, &mut heads);
        Self {
            steps,
            at: 0,
            doing: Doing::default(),
            heads,
            next_head: 0,
            received: 0,
            consumed: 0,
            cork: socket.cork,
            done: false,
            waits: Waits::Connection,
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
        let writes_on = matches!(self.steps.get(self.at), Some(Flat::Write { .. }))
            && self.doing.begun
            && self.doing.left == 0;
        let from = self.at + usize::from(writes_on);
        let rest = self.steps.get(from..).unwrap_or_default();
        !rest.iter().any(|step| matches!(step, Flat::Write { .. }))
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
        while let Some(step) = self.steps.get(self.at).copied() {
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
        if self.cork {
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
            self.consumed += got;
            self.doing.left -= got;
            if pause_ns > 0 {
                return Went::Sleeps(now + pause_ns + SLACK_NS);
            }
        }
        Went::Done
    }

    fn read_head(&mut self, socket: &mut Socket, now: u64, out: &mut Vec<Segment>) -> Went {
        let Some(&end) = self.heads.get(self.next_head) else { return Went::Done };
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

fn flatten(steps: &[Step], flat: &mut Vec<Flat>) {
    for step in steps {
        match step {
            Step::Write { bytes, chunk, pause_ns } => {
                flat.push(Flat::Write { bytes: *bytes, chunk: *chunk, pause_ns: *pause_ns });
            }
            Step::WriteHead(bytes) => {
                flat.push(Flat::Write { bytes: *bytes, chunk: 0, pause_ns: 0 });
            }
            Step::Read { bytes, chunk, pause_ns } => {
                flat.push(Flat::Read { bytes: *bytes, chunk: *chunk, pause_ns: *pause_ns });
            }
            Step::ReadToEnd { chunk, pause_ns } => {
                flat.push(Flat::Read { bytes: u64::MAX, chunk: *chunk, pause_ns: *pause_ns });
            }
            Step::ReadHead => flat.push(Flat::ReadHead),
            Step::Sleep(ns) => flat.push(Flat::Sleep(*ns)),
            Step::Drain => flat.push(Flat::Drain),
            Step::EndWriting => flat.push(Flat::EndWriting),
            Step::Reset => flat.push(Flat::Reset),
            Step::Repeat { times, steps } => (0..*times).for_each(|_| flatten(steps, flat)),
        }
    }
}

fn head_ends(steps: &[Step], written: &mut u64, ends: &mut Vec<u64>) {
    for step in steps {
        match step {
            Step::Write { bytes, .. } => *written += bytes,
            Step::WriteHead(bytes) => {
                *written += bytes;
                ends.push(*written);
            }
            Step::Repeat { times, steps } => {
                (0..*times).for_each(|_| head_ends(steps, written, ends));
            }
            _ => {}
        }
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

/// How often the lab's agent looks whether all is acknowledged.
const DRAIN_LOOK_NS: u64 = 200_000;
