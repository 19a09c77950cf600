//! One way of a path: a link with its queue, losses, a distance.
//!
//! ```text
//!   offer -> queue -> link (rate) -> losses -> distance (delay, jitter, overtaking) -> deliver
//! ```
//!
//! A caller tells a way what arrives and asks it when something happens next. A way holds whatever
//! is under way. Packets are whole segments, already cut for the wire.

mod bucket;
mod chance;
mod codel;
mod device;
mod dql;
mod fq;
mod fq_codel;
mod loss;
mod queue;
#[cfg(test)]
mod tapes;
#[cfg(test)]
mod tests;

pub use chance::Chance;
pub use device::{Device, DeviceCounts, Driver, HandedDown, Left};

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

use crate::scenario::plan::{Cross, Queue, TokenBucket, Way as Settings};
use bucket::Bucket;
use loss::Losses;
use queue::Waiting;

/// Something that takes this many bytes on a wire.
pub trait OnWire {
    /// Bytes on layer 2.
    fn wire_bytes(&self) -> u32;
    /// It carries payload.
    fn has_data(&self) -> bool;
    /// Which flow it belongs to.
    fn flow(&self) -> u32;
    /// Marks that it met congestion, if its transport understands that (RFC 3168); whether it does.
    fn mark_congestion(&mut self) -> bool;
    /// A bit of its payload flips.
    fn damage(&mut self);
    /// It leaves the path behind the link: it belongs to somebody else.
    fn is_cross_traffic(&self) -> bool {
        false
    }
}

/// One way, and what is on it.
#[derive(Clone, Debug)]
pub struct Way<P> {
    settings: Settings,
    chance: Chance,
    losses: Losses,
    waiting: Waiting<P>,
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
    /// What the link did, if that is kept.
    pub work: Option<Work>,
}

/// What a link did with packets, in order of time.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Work {
    /// When it had sent one, and its bytes on the line.
    pub sent: Vec<(u64, u32)>,
    /// When its queue dropped one.
    pub dropped: Vec<u64>,
}

/// What became of packets.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Counts {
    /// Offered.
    pub offered: u64,
    /// Found no room in the queue, or were dropped by its rule.
    pub overflowed: u64,
    /// Were longer than the link takes.
    pub too_long: u64,
    /// Left the path behind the link.
    pub crossed: u64,
    /// Lost behind the link.
    pub lost: u64,
    /// Delivered twice.
    pub duplicated: u64,
    /// Delivered with a flipped bit.
    pub damaged: u64,
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
    /// An empty way; `clock_ns` is what its machines' clocks show at time zero.
    pub fn new(settings: Settings, seed: u64, clock_ns: u64) -> Self {
        Self {
            waiting: Waiting::new(queue_of(&settings), seed, clock_ns),
            losses: Losses::of(&settings.loss),
            bucket: bucket_of(&settings).map(|bucket| Bucket::full(bucket, 0)),
            credit_at: None,
            settings,
            chance: Chance::new(seed),
            sending: None,
            flying: VecDeque::new(),
            loose: BinaryHeap::new(),
            order: 0,
            counts: Counts::default(),
            work: None,
        }
    }

    /// A packet arrives at the link. If it is longer than the link takes and its sender hears of
    /// that, the largest that fits.
    pub fn offer(&mut self, now: u64, packet: P) -> Option<u32> {
        self.counts.offered += 1;
        if let Some(mtu) = self.settings.mtu
            && packet.wire_bytes() > mtu + ETHERNET
        {
            self.counts.too_long += 1;
            return Some(mtu).filter(|_| !self.settings.black_hole);
        }
        if let Some(bucket) = self.settings.bucket {
            self.offer_to_bucket(now, packet, bucket.queue);
        } else if self.settings.rate == 0 {
            self.fly(now, packet);
        } else if self.sending.is_none() {
            self.send(now, packet);
        } else {
            self.enqueue(now, packet);
            self.look_ahead(now);
        }
        None
    }

    fn enqueue(&mut self, now: u64, packet: P) {
        let mut overflowed = 0;
        if self.waiting.enqueue(now, packet, |_| overflowed += 1).is_err() {
            overflowed += 1;
        }
        self.drop(now, overflowed);
        self.counts.most_waiting = self.counts.most_waiting.max(self.waiting.bytes());
    }

    fn dequeue(&mut self, now: u64) -> Option<P> {
        let mut overflowed = 0;
        let next = self.waiting.dequeue(now, |_| overflowed += 1);
        self.drop(now, overflowed);
        next
    }

    /// This many packets were dropped by the queue.
    fn drop(&mut self, now: u64, packets: usize) {
        self.counts.overflowed += packets as u64;
        if let Some(work) = &mut self.work {
            work.dropped.extend(core::iter::repeat_n(now, packets));
        }
    }

    /// The shaper that acts as a link looks at what comes next as soon as it can (`tbf_dequeue`),
    /// and a queue that drops by age counts the age up to then.
    fn look_ahead(&mut self, now: u64) {
        let mut overflowed = 0;
        self.waiting.peek(now, |_| overflowed += 1);
        self.drop(now, overflowed);
    }

    /// With a queue what finds no credit waits; without, it is dropped.
    fn offer_to_bucket(&mut self, now: u64, packet: P, queue: u64) {
        if queue > 0 {
            self.enqueue(now, packet);
            self.drain_bucket(now);
            return;
        }
        let bytes = self.settings.overhead.on_line(packet.wire_bytes());
        if self.bucket.as_mut().is_none_or(|b| b.take(bytes, now).is_ok()) {
            self.fly(now, packet);
        } else {
            self.counts.overflowed += 1;
        }
    }

    /// What waits leaves as far as there is credit.
    fn drain_bucket(&mut self, now: u64) {
        self.credit_at = None;
        while let (Some(bucket), Some(next)) = (&mut self.bucket, self.waiting.peek(now, |_| ())) {
            let bytes = self.settings.overhead.on_line(next.wire_bytes());
            if let Err(at) = bucket.take(bytes, now) {
                self.credit_at = Some(at);
                return;
            }
            let Some(packet) = self.dequeue(now) else { return };
            self.fly(now, packet);
        }
    }

    /// The other traffic that shares the link.
    pub const fn cross(&self) -> Option<Cross> {
        self.settings.cross
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
            self.fly(until, packet);
            if let Some(next) = self.dequeue(until) {
                self.send(until, next);
                self.look_ahead(until);
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
        match (&mut self.bucket, bucket_of(&settings)) {
            (Some(bucket), Some(new)) => bucket.change(new, now),
            (bucket, new) => *bucket = new.map(|new| Bucket::full(new, now)),
        }
        let was_bucket = self.settings.bucket.is_some();
        let overflowed = &mut self.counts.overflowed;
        self.waiting.change(queue_of(&settings), now, |_| *overflowed += 1);
        self.settings = settings;
        if self.settings.bucket.is_some() {
            self.drain_bucket(now);
        } else if was_bucket && self.sending.is_none() {
            // What waited for credit waits for the link now.
            self.credit_at = None;
            if let Some(next) = self.dequeue(now) {
                self.send(now, next);
            }
        }
    }

    fn send(&mut self, now: u64, packet: P) {
        if self.settings.rate == 0 {
            // The link became as fast as it goes while packets waited.
            self.sending = Some((packet, now));
            return;
        }
        let bytes = self.settings.overhead.on_line(packet.wire_bytes());
        let until = now + transmission_ns(bytes, self.settings.rate);
        self.sending = Some((packet, until));
        if let Some(work) = &mut self.work {
            work.sent.push((until, bytes));
        }
    }

    fn fly(&mut self, now: u64, mut packet: P) {
        if packet.is_cross_traffic() {
            self.counts.crossed += 1;
            return;
        }
        if self.losses.takes(packet.has_data(), &mut self.chance) {
            self.counts.lost += 1;
            return;
        }
        if self.chance.hits(self.settings.duplicate) {
            self.counts.duplicated += 1;
            self.depart(now, packet.clone());
        }
        if packet.has_data() && self.chance.hits(self.settings.corrupt) {
            self.counts.damaged += 1;
            packet.damage();
        }
        self.depart(now, packet);
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

/// How long a link of a rate sends this many bytes.
const fn transmission_ns(bytes: u32, rate: u64) -> u64 {
    // No packet is so long that this overflows.
    (bytes as u64).saturating_mul(8_000_000_000) / rate
}

/// The earlier of two instants, if there is one.
pub(crate) fn earliest(a: Option<u64>, b: Option<u64>) -> Option<u64> {
    let at = a.unwrap_or(u64::MAX).min(b.unwrap_or(u64::MAX));
    (at < u64::MAX).then_some(at)
}

/// Where packets wait on a way.
fn queue_of(settings: &Settings) -> Queue {
    settings.bucket.map_or(settings.queue, |bucket| Queue::Bytes(bucket.queue))
}

/// A way's bucket; its credit counts what is added as well (`tbf_change`, `psched_l2t_ns`).
fn bucket_of(settings: &Settings) -> Option<TokenBucket> {
    let bucket = settings.bucket?;
    let burst = u32::try_from(bucket.burst).unwrap_or(u32::MAX);
    Some(TokenBucket { burst: settings.overhead.on_line(burst).into(), ..bucket })
}

/// Bytes of an Ethernet header, which layer 2 counts.
pub const ETHERNET: u32 = 14;
