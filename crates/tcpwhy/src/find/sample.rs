//! Connections for the tests of the rules: a small sender and receiver whose packets go through the
//! real tracker and analysis. The tap is on the host that sends the bulk of the data.

use core::cmp::Reverse;
use core::fmt::Write as _;
use core::net::{Ipv4Addr, SocketAddr};
use std::collections::BinaryHeap;

use super::case::working_ns;
use crate::report::{Connection, Finding, InFlightAtLoss, LossPattern, State};
use crate::tracker::{Config, Tracker};
use crate::wire::{Direction, Flags, IpInfo, LinkInfo, Options, Segment};
use tcpwhy_words::units::{Seq, Time};

pub(super) const MSS: u64 = 1448;
const MS: i64 = 1_000_000;
/// How long a host takes to answer what it got, and between two segments.
const HOST: i64 = 20_000;
const SPACING: i64 = 1_000;

/// An answer (or a request) of some size over a path without rate or loss.
#[derive(Clone, Debug)]
pub(super) struct Sim {
    pub(super) bytes: u64,
    pub(super) rtt: i64,
    /// Segments of the first flight.
    pub(super) initial: u64,
    /// The receiver's window at first and at most; it grows by twice what was received.
    pub(super) first_window: u64,
    pub(super) window: u64,
    pub(super) scaled: bool,
    /// Bytes in flight at most, whatever the windows allow.
    pub(super) buffer: u64,
    /// The reader takes nothing between these two times.
    pub(super) asleep: Option<(i64, i64)>,
    /// The client sends the bulk; the server answers with little.
    pub(super) upload: bool,
    /// Silence of the server's application before it answers.
    pub(super) think: i64,
    /// The sending application writes this many bytes at a time, in such intervals.
    pub(super) writes: Option<(u64, i64)>,
    /// How often it all happens on one connection, and the pause before each next request.
    pub(super) times: usize,
    pub(super) pause: i64,
}

impl Default for Sim {
    fn default() -> Self {
        Self {
            bytes: 300_000,
            rtt: 20 * MS,
            initial: 10,
            first_window: 65_160,
            window: 4_000_000,
            scaled: true,
            buffer: u64::MAX,
            asleep: None,
            upload: false,
            think: 100_000,
            writes: None,
            times: 1,
            pause: 0,
        }
    }
}

/// The download most tests use.
pub(crate) fn download() -> Connection {
    Sim::default().run()
}

/// The download with all waits of slow start in `state` instead. They are stretched until they hold
/// this share of the time TCP works, in ten-thousandths.
pub(crate) fn held_by(state: State, share: i64) -> Connection {
    let mut connection = download();
    let direction = connection.directions[1].as_mut().expect("data");
    let mut held = 0;
    for limit in direction.limits.iter_mut().filter(|l| l.state == State::CwndSlowStart) {
        limit.state = state;
        held += limit.end_ns - limit.start_ns;
    }
    let rounds = direction.rounds.iter_mut().filter(|r| r.limited_by == State::CwndSlowStart);
    rounds.for_each(|round| round.limited_by = state);
    let more = held * 10_000 / share - working_ns(&connection);
    stretch_opening(&mut connection, more);
    connection
}

/// Losses of a kind, each an episode of its own.
pub(crate) fn pattern(kind: &str, episodes: u64) -> LossPattern {
    LossPattern { kind: kind.to_owned(), episodes, ..LossPattern::default() }
}

/// The download with repairs instead of slow start's waits, and with these losses.
pub(crate) fn lossy(pattern: LossPattern, share: i64) -> Connection {
    let mut connection = held_by(State::RecoveryLoss, share);
    let direction = connection.directions[1].as_mut().expect("data");
    direction.events.lost = pattern.episodes;
    direction.retransmitted.fast = pattern.episodes;
    direction.in_flight_at_loss = [40_000, 60_000, 80_000]
        .map(|bytes| InFlightAtLoss { at_ns: 0, bytes, frame: None })
        .to_vec();
    direction.loss_pattern = Some(Box::new(pattern));
    connection
}

/// The same where a policer is seen at last.
pub(super) fn policed(mut connection: Connection) -> Connection {
    let direction = connection.directions[1].as_mut().expect("data");
    let last = direction.limits.iter_mut().rfind(|limit| limit.state == State::RecoveryLoss);
    last.expect("repairs").state = State::BandwidthPolicer;
    connection
}

/// The longest transfer's duration.
pub(super) fn transfer_ns(connection: &Connection) -> i64 {
    connection.transfers.iter().map(|each| each.end_ns - each.start_ns).max().expect("one")
}

/// Lengthens the connection's opening by `more`, and shifts nothing else: for shares.
pub(super) fn stretch_opening(connection: &mut Connection, more: i64) {
    let shift = |at: &mut i64| *at += more;
    connection.duration_ns += more;
    for transfer in &mut connection.transfers {
        shift(&mut transfer.start_ns);
        shift(&mut transfer.end_ns);
    }
    for direction in connection.directions.iter_mut().flatten() {
        for (at, limit) in direction.limits.iter_mut().enumerate() {
            if at > 0 {
                shift(&mut limit.start_ns);
            }
            shift(&mut limit.end_ns);
        }
    }
}

/// Findings in words, as a snapshot holds them.
pub(super) fn shown(findings: &[Finding]) -> String {
    let mut out = String::new();
    for each in findings {
        let ms = each.cost_ns / 1_000_000;
        let _ = writeln!(out, "{}: {} [{}, {ms} ms]", each.severity.name(), each.title, each.code);
        let _ = writeln!(out, "  why: {}\n  not: {}", each.why, each.not);
        for remedy in &each.remedies {
            let on = remedy.on.as_ref().map_or_else(String::new, |on| format!(" on the {on}"));
            let _ = writeln!(out, "  {}{on}: {}", remedy.who, remedy.what);
            for (label, text) in [("do", &remedy.command), ("undo", &remedy.rollback)] {
                if let Some(text) = text {
                    let _ = writeln!(out, "    {label}: {text}");
                }
            }
            if let Some(p) = remedy.predicted_ns {
                let [low, best, high] = [p.low, p.best, p.high].map(|ns| ns / 100_000);
                let _ = writeln!(out, "    predicted, 0.1 ms: {best} ({low} to {high})");
            }
        }
    }
    out
}

impl Sim {
    /// The connection, explained.
    pub(super) fn run(&self) -> Connection {
        let mut tracker = Tracker::new(Config { detail: true, ..Config::default() });
        let mut tape = Tape::new(self);
        tape.open();
        for time in 0..self.times {
            if time > 0 {
                tape.now += self.pause;
            }
            tape.exchange();
        }
        tape.close();
        tape.segments.sort_by_key(|segment| segment.time.0);
        tape.stamp();
        for (at, segment) in tape.segments.iter_mut().enumerate() {
            segment.frame = at as u64 + 1;
            tracker.push(segment);
        }
        tracker.finish().0.pop().expect("one connection")
    }
}

/// What the sender of the bulk waits for.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
enum Wakes {
    /// The application writes more.
    Write,
    /// The reader wakes up and announces a window.
    Reader,
    /// An ACK arrives, with a right edge.
    Ack(u64, u64),
}

struct Tape<'a> {
    sim: &'a Sim,
    bulk: usize,
    now: i64,
    next: [u64; 2],
    cwnd: u64,
    received: u64,
    right: u64,
    segments: Vec<Segment<'static>>,
}

impl<'a> Tape<'a> {
    fn new(sim: &'a Sim) -> Self {
        let bulk = usize::from(!sim.upload);
        let cwnd = sim.initial * MSS;
        Self { sim, bulk, now: 0, next: [0; 2], cwnd, received: 0, right: 0, segments: vec![] }
    }

    fn push(
        &mut self,
        at: i64,
        side: usize,
        flags: Flags,
        (seq, ack): (u64, u64),
        len: u64,
        window: u64,
    ) {
        let ends = [1, 2].map(|host| {
            SocketAddr::from((Ipv4Addr::new(10, 0, 0, host), 4000 + 1000 * u16::from(host)))
        });
        let syn = flags.has(Flags::SYN);
        let options = Options {
            mss: syn.then_some(1460),
            window_scale: (syn && self.sim.scaled).then_some(7),
            sack_permitted: syn,
            order: if syn { [2, 4, 8, 1, 3, 0, 0, 0] } else { [1, 1, 8, 0, 0, 0, 0, 0] },
            len: if syn { 20 } else { 12 },
            ..Options::default()
        };
        let shift = if self.sim.scaled && !syn { 7 } else { 0 };
        let direction = if side == self.bulk { Direction::Outgoing } else { Direction::Incoming };
        self.segments.push(Segment {
            time: Time(at),
            frame: 0,
            network: 0,
            source: ends[side],
            destination: ends[1 - side],
            seq: Seq(1000 + seq as u32),
            ack: Seq(1000 + ack as u32),
            flags,
            window: (window >> shift).min(65_535) as u16,
            payload_len: len as u32,
            payload: &[],
            options,
            ip: IpInfo { id: None, ttl: Some(64), ecn: None },
            link: LinkInfo { direction: Some(direction), ..LinkInfo::default() },
        });
    }

    /// Gives the segments, which are in the order of time, their timestamps: the other side's stack
    /// is half a round trip away.
    fn stamp(&mut self) {
        let rtt = self.sim.rtt;
        let ticks = |at: i64| (at.div_euclid(MS) + 1_000) as u32;
        let outgoing = |segment: &Segment<'_>| segment.link.direction == Some(Direction::Outgoing);
        let sent: Vec<(i64, bool)> =
            self.segments.iter().map(|s| (s.time.0, outgoing(s))).collect();
        for (number, segment) in self.segments.iter_mut().enumerate() {
            let (at, out) = sent[number];
            let before = sent[..number].iter().rev();
            let (own, heard) = if out {
                (at, before.clone().find(|each| !each.1).map(|each| each.0 - rtt / 2))
            } else {
                let there = before.clone().find(|each| each.1 && each.0 <= at - rtt);
                (at - rtt / 2, there.map(|each| each.0))
            };
            segment.options.timestamps = Some((ticks(own), heard.map_or(0, ticks)));
        }
    }

    fn open(&mut self) {
        let window = self.sim.first_window;
        // The tap is at the bulk's sender: what it sends goes out at once, what it gets took half a
        // round trip.
        let answer = if self.bulk == 1 { HOST } else { self.sim.rtt };
        let ack = if self.bulk == 1 { self.sim.rtt } else { HOST };
        self.push(0, 0, Flags::SYN, (0, 0), 0, window);
        self.push(answer, 1, Flags::SYN.with(Flags::ACK), (0, 1), 0, window);
        self.now = answer + ack;
        self.next = [1; 2];
        self.push(self.now, 0, Flags::ACK, (1, 1), 0, window);
        self.now += HOST;
    }

    fn exchange(&mut self) {
        if self.bulk == 1 {
            self.say(0, 147);
            self.now += self.sim.think;
            self.stream();
        } else {
            self.stream();
            self.now += self.sim.think;
            self.say(1, 200);
        }
    }

    /// The side with little to say does, and is acknowledged.
    fn say(&mut self, side: usize, len: u64) {
        let (seq, ack) = (self.next[side], self.next[1 - side]);
        self.push(
            self.now,
            side,
            Flags::ACK.with(Flags::PSH),
            (seq, ack),
            len,
            self.sim.first_window,
        );
        self.next[side] += len;
        self.now += HOST;
        self.push(self.now, 1 - side, Flags::ACK, (ack, self.next[side]), 0, 64_000);
        self.now += HOST;
    }

    /// The right edge that the receiver announces at `at`, when all up to `upto` has come.
    fn edge(&mut self, at: i64, upto: u64) -> u64 {
        let sim = self.sim;
        let asleep = sim.asleep.is_some_and(|(from, to)| (from..to).contains(&at));
        if !asleep {
            let window = sim.window.min(sim.first_window + 2 * self.received);
            self.right = self.right.max(upto + window);
        }
        self.right
    }

    /// The bulk's sender sends it all, as windows and buffer allow, and gets its ACKs.
    fn stream(&mut self) {
        let side = self.bulk;
        let begin = self.next[side];
        let end = begin + self.sim.bytes;
        let (mut una, mut nxt) = (begin, begin);
        let mut written = self.sim.writes.map_or(end, |(bytes, _)| begin + bytes);
        let mut edge = self.edge(self.now, begin);
        let mut wakes = BinaryHeap::new();
        if let Some((_, every)) = self.sim.writes {
            wakes.push(Reverse((self.now + every, Wakes::Write)));
        }
        if let Some((_, to)) = self.sim.asleep {
            wakes.push(Reverse((to + self.sim.rtt / 2, Wakes::Reader)));
        }
        let (mut at, mut odd) = (self.now, false);
        while una < end {
            let ready = end.min(written);
            while nxt < ready {
                let len = MSS.min(ready - nxt);
                let flight = nxt + len - una;
                if flight > self.cwnd || flight > self.sim.buffer || nxt + len > edge {
                    break;
                }
                nxt += len;
                let last = nxt == ready;
                let flags = if last { Flags::ACK.with(Flags::PSH) } else { Flags::ACK };
                self.push(at, side, flags, (nxt - len, self.next[1 - side]), len, 64_000);
                self.received += len;
                odd = !odd;
                let edge = self.edge(at + self.sim.rtt / 2, nxt);
                // Every second segment is acknowledged, and what ends a write.
                if !odd || last || nxt + MSS > edge {
                    odd = false;
                    wakes.push(Reverse((at + self.sim.rtt, Wakes::Ack(nxt, edge))));
                }
                at += SPACING;
            }
            let Some(Reverse((when, what))) = wakes.pop() else { break };
            match what {
                Wakes::Write => {
                    let (bytes, every) = self.sim.writes.expect("it writes in parts");
                    written += bytes;
                    wakes.push(Reverse((when + every, Wakes::Write)));
                    at = at.max(when);
                }
                Wakes::Reader => {
                    edge = self.edge(when, nxt);
                    self.announce(when, una, edge);
                    at = at.max(when + HOST);
                }
                Wakes::Ack(ack, right) => {
                    self.announce(when, ack, right);
                    self.cwnd += ack - una;
                    (una, edge) = (ack, right.max(edge));
                    at = at.max(when + HOST);
                }
            }
        }
        self.next[side] = end;
        self.now = at + HOST;
    }

    fn announce(&mut self, at: i64, ack: u64, right: u64) {
        let side = 1 - self.bulk;
        self.push(at, side, Flags::ACK, (self.next[side], ack), 0, right - ack);
    }

    fn close(&mut self) {
        let fin = Flags::FIN.with(Flags::ACK);
        let (own, peer) = (self.bulk, 1 - self.bulk);
        let (mine, theirs) = (self.next[own], self.next[peer]);
        let back = self.now + self.sim.rtt;
        self.push(self.now, own, fin, (mine, theirs), 0, 64_000);
        self.push(back, peer, fin, (theirs, mine + 1), 0, 64_000);
        self.push(back + HOST, own, Flags::ACK, (mine + 1, theirs + 1), 0, 64_000);
    }
}

/// An ICMP error about the server's packets, whose fields tests set.
pub(super) fn icmp_errors() -> crate::report::IcmpErrors {
    let [source, destination] = [[10, 0, 0, 2], [10, 0, 0, 1]].map(core::net::IpAddr::from);
    crate::report::IcmpErrors {
        kind: "too_big".into(),
        from: core::net::IpAddr::from([10, 0, 0, 254]),
        to: source,
        source,
        source_port: Some(80),
        destination: Some(destination),
        destination_port: Some(4_000),
        about: Some("server".into()),
        mtu: None,
        count: 1,
        start: String::new(),
        first_ns: Some(0),
        last_ns: Some(0),
        frames: crate::report::FrameRange::default(),
        quoted: Vec::new(),
    }
}
