//! The link of one way and the queue before it: when does a packet leave, and which finds no room?
//!
//! Two kinds. A plain link sends one packet after the other at its rate; the one being sent waits
//! no longer. A token bucket sends at once what finds credit. Time is only ever moved by the
//! caller, packets leave at exact instants (rounded up to the nanosecond, so the rate is never
//! exceeded), however late the caller asks.
//!
//! A change of rate keeps what was already sent of a packet. Left out: other disciplines than
//! first in, first out.

use std::collections::VecDeque;

use tcpwhy_model::scenario::plan::{Overhead, Queue, TokenBucket, Way};

use super::Packet;

/// Work and credit are counted in billionths of a bit, so that nanoseconds times bits per second
/// need no rounding.
type NanoBits = u128;

const NANO: NanoBits = 1_000_000_000;

fn work(bytes: u64) -> NanoBits {
    NanoBits::from(bytes) * 8 * NANO
}

/// What waits before a link.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Backlog {
    /// Bytes on layer 2.
    pub bytes: u64,
    /// Packets.
    pub packets: u64,
}

/// Why a packet was not let in.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Shut {
    Full,
    Policed,
    TooLong,
}

#[derive(Clone, Copy, Debug)]
enum Kind {
    Plain { rate: u64, queue: Queue },
    Bucket(TokenBucket),
}

impl Kind {
    fn of(way: &Way) -> Self {
        match way.bucket {
            Some(bucket) => Self::Bucket(bucket),
            None => Self::Plain { rate: way.rate, queue: way.queue },
        }
    }
}

/// A link with its queue.
#[derive(Clone, Debug)]
pub(super) struct Link<T> {
    kind: Kind,
    overhead: Overhead,
    waiting: VecDeque<(Packet, T)>,
    waiting_bytes: u64,
    /// On a plain link: the packet being sent and what is left to send of it.
    sending: Option<(Packet, T, NanoBits)>,
    /// In a bucket.
    credit: NanoBits,
    /// Up to when work and credit are booked.
    now: u64,
}

impl<T> Link<T> {
    pub(super) fn new(way: &Way) -> Self {
        let kind = Kind::of(way);
        Self {
            kind,
            overhead: way.overhead,
            waiting: VecDeque::new(),
            waiting_bytes: 0,
            sending: None,
            credit: full(kind),
            now: 0,
        }
    }

    pub(super) fn backlog(&self) -> Backlog {
        Backlog { bytes: self.waiting_bytes, packets: self.waiting.len() as u64 }
    }

    /// From now on the link is as `way` says; what waits stays, room or not.
    ///
    /// A packet that a plain link was sending when it becomes a bucket leaves at once; a new
    /// bucket is full, a changed one keeps its credit as far as it still holds it.
    pub(super) fn change(&mut self, now: u64, way: &Way) {
        self.book(now);
        let before = std::mem::replace(&mut self.kind, Kind::of(way));
        self.overhead = way.overhead;
        match (before, self.kind) {
            (Kind::Bucket(_), Kind::Bucket(_)) => self.credit = self.credit.min(full(self.kind)),
            (_, Kind::Bucket(_)) => {
                self.credit = full(self.kind);
                if let Some((_, _, left)) = &mut self.sending {
                    *left = 0;
                }
            }
            _ => {}
        }
        self.start();
    }

    /// Takes a packet in at `now`, before which every packet that was to leave has left.
    pub(super) fn enter(&mut self, now: u64, packet: Packet, with: T) -> Result<(), (Shut, T)> {
        self.book(now);
        if let Some(shut) = self.shut(packet) {
            return Err((shut, with));
        }
        self.waiting.push_back((packet, with));
        self.waiting_bytes += u64::from(packet.bytes);
        self.start();
        Ok(())
    }

    /// When the next packet leaves, if any is there.
    pub(super) fn next_at(&self) -> Option<u64> {
        match (&self.sending, self.kind) {
            (Some((_, _, 0)), _) | (Some(_), Kind::Bucket(_)) => Some(self.now),
            (Some((_, _, left)), Kind::Plain { rate, .. }) => Some(after(self.now, *left, rate)),
            (None, Kind::Bucket(bucket)) => {
                let (packet, _) = self.waiting.front()?;
                let lacking = self.work(*packet).saturating_sub(self.credit);
                Some(after(self.now, lacking, bucket.rate))
            }
            (None, Kind::Plain { .. }) => None,
        }
    }

    /// The packet that leaves at `now`, which is [`Link::next_at`].
    pub(super) fn leave(&mut self, now: u64) -> Option<(Packet, T)> {
        self.book(now);
        if let Some((packet, with, _)) = self.sending.take() {
            self.start();
            return Some((packet, with));
        }
        let (packet, with) = self.waiting.pop_front()?;
        self.waiting_bytes -= u64::from(packet.bytes);
        self.credit = self.credit.saturating_sub(self.work(packet));
        Some((packet, with))
    }

    /// What a packet takes on the line.
    fn work(&self, packet: Packet) -> NanoBits {
        work(self.overhead.on_line(packet.bytes).into())
    }

    fn shut(&self, packet: Packet) -> Option<Shut> {
        let bytes = u64::from(packet.bytes);
        match self.kind {
            Kind::Plain { queue, .. } => {
                let at_once = self.sending.is_none() && self.waiting.is_empty();
                let room = match queue {
                    // The other is refused before.
                    Queue::Endless | Queue::FqCodel => true,
                    Queue::Bytes(limit) => self.waiting_bytes + bytes <= limit,
                    Queue::Packets(limit) => (self.waiting.len() as u64) < limit,
                };
                (!at_once && !room).then_some(Shut::Full)
            }
            // As tc-tbf(8) does it: what could never find credit is refused.
            Kind::Bucket(bucket) if self.work(packet) > work(bucket.burst) => Some(Shut::TooLong),
            Kind::Bucket(bucket) => {
                let at_once = self.waiting.is_empty() && self.work(packet) <= self.credit;
                let room = self.waiting_bytes + bytes <= bucket.queue;
                let shut = if bucket.queue == 0 { Shut::Policed } else { Shut::Full };
                (!at_once && !room).then_some(shut)
            }
        }
    }

    /// Books what was sent, or gained as credit, up to `now`.
    fn book(&mut self, now: u64) {
        let passed = NanoBits::from(now.saturating_sub(self.now));
        self.now = self.now.max(now);
        match self.kind {
            Kind::Plain { rate, .. } => {
                if let Some((_, _, left)) = &mut self.sending {
                    *left = left.saturating_sub(passed * NanoBits::from(rate));
                }
            }
            Kind::Bucket(bucket) => {
                let gained = passed * NanoBits::from(bucket.rate);
                self.credit = full(self.kind).min(self.credit.saturating_add(gained));
            }
        }
    }

    /// Lets an idle plain link take up the next packet, and one without a rate be done with it.
    fn start(&mut self) {
        let Kind::Plain { rate, .. } = self.kind else { return };
        if self.sending.is_none()
            && let Some((packet, with)) = self.waiting.pop_front()
        {
            self.waiting_bytes -= u64::from(packet.bytes);
            self.sending = Some((packet, with, self.work(packet)));
        }
        if let (0, Some((_, _, left))) = (rate, &mut self.sending) {
            *left = 0;
        }
    }
}

/// A full bucket's credit.
fn full(kind: Kind) -> NanoBits {
    match kind {
        Kind::Bucket(bucket) => work(bucket.burst),
        Kind::Plain { .. } => 0,
    }
}

/// When the work that is `left` is done, rounded up; never, if nothing ever gets done.
fn after(now: u64, left: NanoBits, rate: u64) -> u64 {
    match (left, rate) {
        (0, _) => now,
        (_, 0) => u64::MAX,
        _ => {
            let nanoseconds = left.div_ceil(NanoBits::from(rate));
            now.saturating_add(u64::try_from(nanoseconds).unwrap_or(u64::MAX))
        }
    }
}
