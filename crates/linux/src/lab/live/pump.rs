//! The emulator's loop: moves packets between two TUN devices when [`super::emulate`] says so.
//!
//! One thread does all of it, because only then is the order of events that of one clock:
//!
//! ```text
//!   read both devices -> cut super-packets -> offer to the way -> decisions -> heap of what is due
//!         ^                                                                         |
//!         +----- rest: ppoll until 100 us before the next instant, then spin <--- write it
//! ```
//!
//! Nothing here waits for a file, another thread or the terminal: records go through a channel of
//! fixed size that [`super::journal`] empties, and one that finds it full is counted as lost.
//!
//! A thread under `SCHED_FIFO` that never rests is stopped by the kernel for 50 ms in every second
//! (`sched_rt_runtime_us`, sched(7)), so spinning is given up before that.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};
use std::fs::File;
use std::io::{self, IoSlice, Read as _, Write as _};
use std::os::fd::AsFd as _;
use std::sync::mpsc::{Receiver, SyncSender, TryRecvError};
use std::thread::available_parallelism;

use tcpwhy_model::scenario::plan::{Plan, Way};

use super::emulate::{Decision, Direction, Fate, Packet};
use super::journal::{Frame, Line, Record, Tap, WayName};
use super::lateness::{BEAT_NS, Delays};
use super::packet::{self, Offload, View};
use super::sys;
use super::thrift::{Thrift, Waking};

/// One end of the path: the devices through which a host's packets come and go.
#[derive(Debug)]
pub(super) struct End {
    /// The TUN device by which they arrive.
    pub(super) device: File,
    /// The one by which they leave: the same, unless the host has two.
    pub(super) way_out: File,
    /// Packets are led by an [`Offload`] header.
    pub(super) offload: bool,
}

/// Orders to the pump while it runs.
#[derive(Clone, Copy, Debug)]
pub(super) enum Order {
    /// The first application starts at this instant (`CLOCK_MONOTONIC`): changes count from it.
    Begin(u64),
    /// It is over.
    Stop,
}

/// What the pump says when it is over.
#[derive(Clone, Debug, Default)]
pub(super) struct Outcome {
    /// Packets against their due time, and those that may have been taken in late.
    pub(super) packets: Delays,
    /// The regular alarm.
    pub(super) beats: Delays,
    /// Records that found the channel full.
    pub(super) records_lost: u64,
    /// Packets that the receiving device refused.
    pub(super) refused: u64,
    /// Largest share of a second that the thread was busy, in percent.
    pub(super) busiest_percent: u64,
}

/// Why the pump gave up.
#[derive(Debug, thiserror::Error)]
pub(super) enum PumpError {
    /// A device is gone.
    #[error("cannot {doing} the {host}'s TUN device: {source}")]
    Device { doing: &'static str, host: &'static str, source: io::Error },
    /// The path holds more than it may.
    #[error(
        "more than {} MiB of packets wait on the path; give it a shorter queue or less delay",
        MOST_HELD_BYTES >> 20
    )]
    TooMuch,
}

/// The loop's state.
pub(super) struct Pump {
    /// Client and server.
    ends: [End; 2],
    /// Down and up.
    lanes: [Lane; 2],
    due: BinaryHeap<Reverse<Due>>,
    /// Breaks ties: first in, first out.
    serial: u64,
    held_bytes: usize,
    buffer: Vec<u8>,
    changes: Vec<(u64, [Option<Way>; 2])>,
    taps: Taps,
    records: SyncSender<Record>,
    orders: Receiver<Order>,
    beat_at: u64,
    /// By how much the last beat was late, while what it found is taken in.
    overdue_ns: u64,
    /// The applications are about to start; before that nothing depends on us.
    begun: bool,
    thrift: Thrift,
    waking: Waking,
    /// When the sleep began from which a packet has woken us; never, if none has.
    woken_after: u64,
    /// Until when an answer is waited for on the processor, and how long after each packet.
    stay_until: u64,
    stay_ns: u64,
    outcome: Outcome,
}

/// One way with the bytes of what is on it.
struct Lane {
    name: WayName,
    direction: Direction,
    /// What is undecided, from number `first` on.
    held: VecDeque<Option<(Vec<u8>, View)>>,
    first: u64,
}

/// Which captures the emulator itself takes, and bytes kept of each packet.
#[derive(Clone, Copy, Debug, Default)]
struct Taps {
    middle: bool,
    /// Client's and server's, where the tap is not at the stack.
    hosts: [bool; 2],
    snap_length: usize,
}

struct Due {
    at: u64,
    serial: u64,
    lane: usize,
    bytes: Vec<u8>,
    line: Line,
}

impl Pump {
    /// A pump for this plan between the client's and the server's device.
    pub(super) fn new(
        plan: &Plan,
        ends: [End; 2],
        records: SyncSender<Record>,
        orders: Receiver<Order>,
    ) -> Self {
        let (client_ns, server_ns) = (plan.client.stack_to_tap_ns, plan.server.stack_to_tap_ns);
        let lane = |name, way, purpose: u64, near_ns, far_ns| Lane {
            name,
            direction: Direction::new(way, plan.seed.wrapping_add(purpose), near_ns, far_ns),
            held: VecDeque::new(),
            first: 0,
        };
        let changes = plan.path.changes.iter();
        Self {
            ends,
            lanes: [
                lane(WayName::Down, &plan.path.down, 0, server_ns, client_ns),
                lane(WayName::Up, &plan.path.up, 1 << 32, client_ns, server_ns),
            ],
            due: BinaryHeap::new(),
            serial: 0,
            held_bytes: 0,
            buffer: vec![0; LARGEST_PACKET],
            changes: changes
                .map(|change| (change.at_ns, [change.down.clone(), change.up.clone()]))
                .collect(),
            taps: Taps {
                middle: plan.records.middle,
                hosts: [client_ns > 0, server_ns > 0],
                snap_length: snap_length(plan),
            },
            records,
            orders,
            beat_at: sys::monotonic_ns() + BEAT_NS,
            overdue_ns: 0,
            begun: false,
            thrift: Thrift::default(),
            waking: Waking::default(),
            woken_after: u64::MAX,
            stay_until: 0,
            // On a lone processor the host could not answer meanwhile.
            stay_ns: if available_parallelism().is_ok_and(|n| n.get() > 1) { STAY_NS } else { 0 },
            outcome: Outcome::default(),
        }
    }

    /// Runs until told to stop.
    pub(super) fn run(mut self) -> Result<Outcome, PumpError> {
        loop {
            let now = sys::monotonic_ns();
            self.overdue_ns = now.saturating_sub(self.beat_at);
            if now >= self.beat_at && self.beat(now) {
                return Ok(self.outcome);
            }
            let took = self.take_in(0)? | self.take_in(1)?;
            self.woken_after = u64::MAX;
            self.decide()?;
            if !(self.deliver()? | took) {
                self.rest()?;
            }
        }
    }

    /// Reads what an end has sent; whether there was anything.
    fn take_in(&mut self, end: usize) -> Result<bool, PumpError> {
        // What the server sends goes down, what the client sends goes up.
        let lane = 1 - end;
        for taken in 0..BATCH {
            let length = match (&self.ends[end].way_out).read(&mut self.buffer) {
                Ok(length) => length,
                Err(error) if would_block(&error) => return Ok(taken > 0),
                Err(source) => {
                    return Err(PumpError::Device { doing: "read", host: HOSTS[end], source });
                }
            };
            let now = sys::monotonic_ns();
            // What woke us came before we were awake, but not before we slept.
            let came = now.min(now.saturating_sub(self.waking.usual_ns).max(self.woken_after));
            if self.overdue_ns > 0 && self.begun {
                // It may have waited since we should have been awake.
                self.outcome.packets.add(self.overdue_ns);
            }
            let read = &self.buffer[..length];
            if !self.ends[end].offload {
                let one = read.to_vec();
                self.offer(lane, came, one)?;
            } else if let Some((header, packet)) = read.split_first_chunk() {
                for one in Offload::read(header).wire_packets(packet.to_vec()) {
                    self.offer(lane, came, one)?;
                }
            }
        }
        Ok(true)
    }

    fn offer(&mut self, lane: usize, now: u64, bytes: Vec<u8>) -> Result<(), PumpError> {
        let view = packet::view(&bytes);
        if view.multicast {
            return Ok(());
        }
        self.held_bytes += bytes.len();
        if self.held_bytes > MOST_HELD_BYTES {
            return Err(PumpError::TooMuch);
        }
        let lane = &mut self.lanes[lane];
        let packet = Packet {
            number: lane.first + lane.held.len() as u64,
            bytes: (bytes.len() + ETHERNET_HEADER) as u32,
            data: view.tcp.map_or(0, |tcp| tcp.data),
        };
        lane.held.push_back(Some((bytes, view)));
        lane.direction.offer(now, packet);
        Ok(())
    }

    /// Lets the ways decide what they can by now.
    fn decide(&mut self) -> Result<(), PumpError> {
        for lane in 0..2 {
            self.lanes[lane].direction.advance(sys::monotonic_ns());
            while let Some(decision) = self.lanes[lane].direction.poll() {
                if let Some((bytes, view)) = self.lanes[lane].release(decision.packet.number) {
                    self.carry_out(lane, decision, bytes, view)?;
                }
            }
        }
        Ok(())
    }

    fn carry_out(
        &mut self,
        lane: usize,
        decision: Decision,
        bytes: Vec<u8>,
        view: View,
    ) -> Result<(), PumpError> {
        let line = Line { way: self.lanes[lane].name, decision, view, sent_ns: None, copy: false };
        self.show_to_taps(lane, &decision, &bytes);
        let Fate::Delivered { stack_ns, twice, flipped, .. } = decision.fate else {
            self.held_bytes -= bytes.len();
            self.record(Record::Packet(line));
            return Ok(());
        };
        let mut bytes = bytes;
        if let Some(bit) = flipped {
            packet::flip(&mut bytes, bit);
        }
        if twice {
            self.held_bytes += bytes.len();
            if self.held_bytes > MOST_HELD_BYTES {
                return Err(PumpError::TooMuch);
            }
            self.push(stack_ns, lane, bytes.clone(), line);
            self.push(stack_ns, lane, bytes, Line { copy: true, ..line });
        } else {
            self.push(stack_ns, lane, bytes, line);
        }
        Ok(())
    }

    fn push(&mut self, at: u64, lane: usize, bytes: Vec<u8>, line: Line) {
        self.serial += 1;
        self.due.push(Reverse(Due { at, serial: self.serial, lane, bytes, line }));
    }

    /// Writes what is due; whether there was anything.
    fn deliver(&mut self) -> Result<bool, PumpError> {
        for sent in 0..BATCH {
            let now = sys::monotonic_ns();
            if self.due.peek().is_none_or(|Reverse(due)| due.at > now) {
                return Ok(sent > 0);
            }
            let Some(Reverse(due)) = self.due.pop() else { return Ok(sent > 0) };
            self.held_bytes -= due.bytes.len();
            self.outcome.packets.add(now - due.at);
            self.stay_until = now + self.stay_ns;
            // What goes down comes to the client, what goes up to the server.
            if self.ends[due.lane].write(&due.bytes, due.lane)? {
                self.record(Record::Packet(Line { sent_ns: Some(now), ..due.line }));
            } else {
                self.outcome.refused += 1;
                self.record(Record::Packet(due.line));
            }
        }
        Ok(true)
    }

    /// Waits for the next packet or instant, the last bit of it on the processor.
    ///
    /// A host that was just given a packet answers soon, and to be woken takes longer than that.
    fn rest(&mut self) -> Result<(), PumpError> {
        let due = self.due.peek().map(|Reverse(due)| due.at);
        let needed = self.lanes.iter().filter_map(|lane| lane.direction.needed_by());
        let instant = needed.chain(due).min().unwrap_or(u64::MAX);
        let now = sys::monotonic_ns();
        let (spin_ns, stay_until) =
            if self.thrift.on { (0, 0) } else { (SPIN_NS, self.stay_until) };
        // Nobody is hurt by a late beat: it measures how late threads are woken.
        let wake_at = instant.saturating_sub(spin_ns).min(self.beat_at);
        if now < stay_until || now >= wake_at {
            std::hint::spin_loop();
            return Ok(());
        }
        let ends = self.ends.each_ref().map(|end| end.way_out.as_fd());
        let woken = sys::wait_readable(ends, wake_at - now)
            .map_err(|source| PumpError::Device { doing: "wait for", host: HOSTS[0], source })?;
        if woken {
            self.woken_after = now;
        } else {
            self.waking.learn(sys::monotonic_ns().saturating_sub(wake_at));
        }
        Ok(())
    }

    /// The regular alarm: measures its own delay, looks for orders; whether it is all over.
    fn beat(&mut self, now: u64) -> bool {
        let late_ns = now - self.beat_at;
        if self.begun {
            self.outcome.beats.add_beat(late_ns);
        }
        self.beat_at = now + BEAT_NS - late_ns % BEAT_NS;
        self.thrift.look(now);
        self.outcome.busiest_percent = self.outcome.busiest_percent.max(self.thrift.percent);
        match self.orders.try_recv() {
            Ok(Order::Begin(origin)) => {
                self.begun = true;
                for (at_ns, ways) in std::mem::take(&mut self.changes) {
                    for (lane, way) in self.lanes.iter_mut().zip(ways) {
                        let at = origin.saturating_add(at_ns);
                        lane.direction.schedule(way.map(|way| (at, way)));
                    }
                }
                false
            }
            Ok(Order::Stop) | Err(TryRecvError::Disconnected) => true,
            Err(TryRecvError::Empty) => false,
        }
    }

    /// Copies a packet for the captures that the emulator takes.
    fn show_to_taps(&mut self, lane: usize, decision: &Decision, bytes: &[u8]) {
        let (near, far) = (1 - lane, lane);
        let tap = |end| [Tap::Client, Tap::Server][end];
        if self.taps.hosts[near] {
            self.frame(tap(near), decision.arrived_ns, bytes);
        }
        if let (true, Some(left_ns)) = (self.taps.middle, decision.fate.left_ns()) {
            self.frame(Tap::Middle, left_ns, bytes);
        }
        if let (true, Fate::Delivered { due_ns, twice, flipped, .. }) =
            (self.taps.hosts[far], decision.fate)
        {
            let mut bytes = bytes.to_vec();
            if let Some(bit) = flipped {
                packet::flip(&mut bytes, bit);
            }
            for _ in 0..=usize::from(twice) {
                self.frame(tap(far), due_ns, &bytes);
            }
        }
    }

    fn frame(&mut self, tap: Tap, at_ns: u64, bytes: &[u8]) {
        let kept = bytes[..bytes.len().min(self.taps.snap_length)].into();
        self.record(Record::Frame(Frame { tap, at_ns, bytes: kept, length: bytes.len() as u32 }));
    }

    fn record(&mut self, record: Record) {
        if self.records.try_send(record).is_err() {
            self.outcome.records_lost += 1;
        }
    }
}

impl Lane {
    /// Hands out the bytes of a packet that is decided.
    fn release(&mut self, number: u64) -> Option<(Vec<u8>, View)> {
        let place = usize::try_from(number.checked_sub(self.first)?).ok()?;
        let released = self.held.get_mut(place)?.take();
        while let Some(None) = self.held.front() {
            self.held.pop_front();
            self.first += 1;
        }
        released
    }
}

impl End {
    /// Gives a packet to the host's stack; whether it took it.
    fn write(&self, packet: &[u8], host: usize) -> Result<bool, PumpError> {
        let plain = [0; Offload::LENGTH];
        let written = if self.offload {
            (&self.device).write_vectored(&[IoSlice::new(&plain), IoSlice::new(packet)])
        } else {
            (&self.device).write(packet)
        };
        match written {
            Ok(_) => Ok(true),
            Err(error) if would_block(&error) || error.raw_os_error() == Some(libc::ENOBUFS) => {
                Ok(false)
            }
            Err(source) => Err(PumpError::Device { doing: "write to", host: HOSTS[host], source }),
        }
    }
}

/// Bytes kept of each packet; a plan that says nothing keeps all.
fn snap_length(plan: &Plan) -> usize {
    match plan.records.snap_length {
        0 => usize::MAX,
        length => length as usize,
    }
}

impl Ord for Due {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        (self.at, self.serial).cmp(&(other.at, other.serial))
    }
}

impl PartialOrd for Due {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Due {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for Due {}

fn would_block(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted)
}

const HOSTS: [&str; 2] = ["client", "server"];

/// What a link's rate and queue count beside the IP packet, as they do on Ethernet.
const ETHERNET_HEADER: usize = 14;

/// A super-packet of 64 KiB with its header.
const LARGEST_PACKET: usize = (1 << 16) + Offload::LENGTH;

/// Ours: packets handled on one side before the other side is looked at; about 30 us of work.
const BATCH: usize = 16;

/// Ours: on a busy virtual machine a timer wakes a FIFO thread within this, 99 times in a hundred.
const SPIN_NS: u64 = 100_000;

/// Ours: most answers of a plain server come within this.
const STAY_NS: u64 = 250_000;

/// Ours: a long fat path of 10 Gbit/s and 0.5 s holds 600 MB.
const MOST_HELD_BYTES: usize = 1 << 30;
