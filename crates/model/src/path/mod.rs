//! One way of a path: a link with its queue, losses, a distance.
//!
//! ```text
//!   offer -> queue -> link (rate) -> losses -> distance (delay, jitter, overtaking) -> deliver
//! ```
//!
//! A way is told what arrives and asked when something happens next; it holds whatever is under
//! way. Packets are whole segments, already cut for the wire.

mod bucket;
mod chance;
mod loss;

pub use chance::Chance;

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

use crate::scenario::plan::{Queue, Way as Settings};
use bucket::Bucket;
use loss::Losses;

/// Something that takes so many bytes on a wire.
pub trait OnWire {
    /// Bytes on layer 2.
    fn wire_bytes(&self) -> u32;
    /// It carries payload.
    fn has_data(&self) -> bool;
}

/// One way, and what is on it.
#[derive(Clone, Debug)]
pub struct Way<P> {
    settings: Settings,
    chance: Chance,
    losses: Losses,
    waiting: VecDeque<P>,
    waiting_bytes: u64,
    /// What the link is sending, and until when.
    sending: Option<(P, u64)>,
    bucket: Option<Bucket>,
    /// When the bucket has credit for the first that waits.
    credit_at: Option<u64>,
    /// On its way in order of arrival.
    flying: VecDeque<(u64, P)>,
    /// The same where packets may overtake.
    loose: BinaryHeap<Reverse<Loose<P>>>,
    order: u64,
    /// What became of packets.
    pub counts: Counts,
}

/// What became of packets.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Counts {
    /// Offered.
    pub offered: u64,
    /// Found no room in the queue.
    pub overflowed: u64,
    /// Lost behind the link.
    pub lost: u64,
    /// Delivered twice.
    pub duplicated: u64,
    /// Most bytes that waited at one time.
    pub most_waiting: u64,
}

#[derive(Clone, Debug)]
struct Loose<P> {
    at: u64,
    order: u64,
    packet: P,
}

impl<P> PartialEq for Loose<P> {
    fn eq(&self, other: &Self) -> bool {
        (self.at, self.order) == (other.at, other.order)
    }
}

impl<P> Eq for Loose<P> {}

impl<P> PartialOrd for Loose<P> {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl<P> Ord for Loose<P> {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        (self.at, self.order).cmp(&(other.at, other.order))
    }
}

impl<P: Clone + OnWire> Way<P> {
    /// An empty way.
    pub fn new(settings: Settings, seed: u64) -> Self {
        Self {
            losses: Losses::of(&settings.loss),
            bucket: settings.bucket.map(|bucket| Bucket::full(bucket, 0)),
            credit_at: None,
            settings,
            chance: Chance::new(seed),
            waiting: VecDeque::new(),
            waiting_bytes: 0,
            sending: None,
            flying: VecDeque::new(),
            loose: BinaryHeap::new(),
            order: 0,
            counts: Counts::default(),
        }
    }

    /// A packet arrives at the link.
    pub fn offer(&mut self, now: u64, packet: P) {
        self.counts.offered += 1;
        if let Some(bucket) = self.settings.bucket {
            self.offer_to_bucket(now, packet, bucket.queue);
        } else if self.settings.rate == 0 {
            self.fly(now, &packet);
        } else if self.sending.is_none() {
            self.send(now, packet);
        } else {
            self.enqueue(packet);
        }
    }

    fn enqueue(&mut self, packet: P) {
        if !self.has_room(&packet) {
            self.counts.overflowed += 1;
            return;
        }
        self.waiting_bytes += u64::from(packet.wire_bytes());
        self.counts.most_waiting = self.counts.most_waiting.max(self.waiting_bytes);
        self.waiting.push_back(packet);
    }

    /// With a queue what finds no credit waits; without, it is dropped.
    fn offer_to_bucket(&mut self, now: u64, packet: P, queue: u64) {
        if queue > 0 {
            self.enqueue(packet);
            self.drain_bucket(now);
            return;
        }
        let has_credit =
            self.bucket.as_mut().is_none_or(|b| b.take(packet.wire_bytes(), now).is_ok());
        if has_credit {
            self.fly(now, &packet);
        } else {
            self.counts.overflowed += 1;
        }
    }

    /// What waits leaves as far as there is credit.
    fn drain_bucket(&mut self, now: u64) {
        self.credit_at = None;
        while let (Some(bucket), Some(next)) = (&mut self.bucket, self.waiting.front()) {
            if let Err(at) = bucket.take(next.wire_bytes(), now) {
                self.credit_at = Some(at);
                return;
            }
            if let Some(packet) = self.waiting.pop_front() {
                self.waiting_bytes -= u64::from(packet.wire_bytes());
                self.fly(now, &packet);
            }
        }
    }

    /// When [`Self::advance`] has something to do.
    pub fn next(&self) -> Option<u64> {
        let link = self.sending.as_ref().map(|(_, until)| *until);
        let flying = self.flying.front().map(|(at, _)| *at);
        let loose = self.loose.peek().map(|Reverse(loose)| loose.at);
        earliest(link, earliest(self.credit_at, earliest(flying, loose)))
    }

    /// Moves what is due; a packet that arrives at the far end, if one does.
    pub fn advance(&mut self, now: u64) -> Option<P> {
        if self.sending.as_ref().is_some_and(|(_, until)| *until <= now)
            && let Some((packet, until)) = self.sending.take()
        {
            self.fly(until, &packet);
            if let Some(next) = self.waiting.pop_front() {
                self.waiting_bytes -= u64::from(next.wire_bytes());
                self.send(until, next);
            }
        }
        if self.credit_at.is_some_and(|at| at <= now) {
            self.drain_bucket(now);
        }
        if self.flying.front().is_some_and(|(at, _)| *at <= now) {
            return self.flying.pop_front().map(|(_, packet)| packet);
        }
        if self.loose.peek().is_some_and(|Reverse(loose)| loose.at <= now) {
            return self.loose.pop().map(|Reverse(loose)| loose.packet);
        }
        None
    }

    /// The way is another from now on; what waits keeps waiting.
    pub fn change(&mut self, settings: Settings, now: u64) {
        self.losses.change(&settings.loss);
        match (&mut self.bucket, settings.bucket) {
            (Some(bucket), Some(new)) => bucket.change(new, now),
            (bucket, new) => *bucket = new.map(|new| Bucket::full(new, now)),
        }
        let was_bucket = self.settings.bucket.is_some();
        self.settings = settings;
        if self.settings.bucket.is_some() {
            self.drain_bucket(now);
        } else if was_bucket && self.sending.is_none() {
            // What waited for credit waits for the link now.
            self.credit_at = None;
            if let Some(next) = self.waiting.pop_front() {
                self.waiting_bytes -= u64::from(next.wire_bytes());
                self.send(now, next);
            }
        }
    }

    fn has_room(&self, packet: &P) -> bool {
        let queue = self.settings.bucket.map_or(self.settings.queue, |b| Queue::Bytes(b.queue));
        match queue {
            Queue::Endless => true,
            Queue::Bytes(most) => self.waiting_bytes + u64::from(packet.wire_bytes()) <= most,
            Queue::Packets(most) => (self.waiting.len() as u64) < most,
        }
    }

    fn send(&mut self, now: u64, packet: P) {
        if self.settings.rate == 0 {
            // The link became as fast as it goes while packets waited.
            self.sending = Some((packet, now));
            return;
        }
        let takes = transmission_ns(packet.wire_bytes(), self.settings.rate);
        self.sending = Some((packet, now + takes));
    }

    fn fly(&mut self, now: u64, packet: &P) {
        if self.losses.takes(packet.has_data(), &mut self.chance) {
            self.counts.lost += 1;
            return;
        }
        let copies = if self.chance.hits(self.settings.duplicate) { 2 } else { 1 };
        self.counts.duplicated += copies - 1;
        for _ in 0..copies {
            self.depart(now, packet.clone());
        }
    }

    fn depart(&mut self, now: u64, packet: P) {
        let Settings { delay_ns, jitter_ns, reorder, reorder_ns, .. } = self.settings;
        if jitter_ns == 0 && reorder == 0 && self.loose.is_empty() {
            self.flying.push_back((now + delay_ns, packet));
            return;
        }
        let mut delay = delay_ns;
        if jitter_ns > 0 {
            delay = (delay + self.chance.below(2 * jitter_ns + 1)).saturating_sub(jitter_ns);
        }
        if self.chance.hits(reorder) {
            delay += reorder_ns;
        }
        self.order += 1;
        self.loose.push(Reverse(Loose { at: now + delay, order: self.order, packet }));
    }
}

/// How long a link of a rate sends so many bytes.
const fn transmission_ns(bytes: u32, rate: u64) -> u64 {
    // No packet is so long that this overflows.
    (bytes as u64).saturating_mul(8_000_000_000) / rate
}

/// The earlier of two instants, if there is one.
pub(crate) fn earliest(a: Option<u64>, b: Option<u64>) -> Option<u64> {
    let at = a.unwrap_or(u64::MAX).min(b.unwrap_or(u64::MAX));
    (at < u64::MAX).then_some(at)
}
