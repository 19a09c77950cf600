//! A host's way out: a queueing discipline, and below it the driver's ring.
//!
//! ```text
//!   TCP -> policer -> discipline -> (capture) ring -> wire
//!                     fifo, fq,     byte queue
//!                     fq_codel,     limits
//!                     token bucket
//! ```
//!
//! Follows `__dev_queue_xmit`, `qdisc_run`, `sch_direct_xmit`, `validate_xmit_skb`,
//! `netdev_tx_sent_queue`, `netdev_tx_completed_queue`, `tbf_enqueue`, `tbf_dequeue`,
//! `tcf_police_act`. A super-segment is one packet to the discipline, with the bytes of all its
//! headers (`qdisc_pkt_len_init`). With offloads it is one packet to the ring, too; without, it is
//! cut where it leaves the discipline, and what finds no room in the ring is kept before it.
//!
//! Ours: a packet takes one descriptor, however many pieces of memory it has; the device interrupts
//! for each packet that it has sent, and the driver frees it at once. Where there is no ring (a
//! virtual device) packets are gone as they leave the discipline.

use std::collections::VecDeque;

use super::OnWire;
use super::bucket::Bucket;
use super::dql::Dql;
use super::fq::{Fq, TIMER_SLACK_NS};
use super::queue::Waiting;
use crate::scenario::plan::{self, Egress, Queue};

/// What TCP hands down: one packet of the wire, or a super-segment.
pub trait HandedDown: OnWire + Clone {
    /// When it may leave.
    fn departs_ns(&self) -> u64;
    /// The wire's packets that it makes.
    fn pieces(&self) -> VecDeque<Self>;
}

/// A host's way out and what is on it.
#[derive(Clone, Debug)]
pub struct Device<P> {
    clock_ns: u64,
    offload: bool,
    policer: Option<Bucket>,
    discipline: Discipline<P>,
    /// When the discipline lets its next packet go, if it has one and that is what it waits for.
    due: Option<u64>,
    /// Cut, and not yet in the ring.
    cut: VecDeque<P>,
    ring: Option<Ring<P>>,
    left: VecDeque<Left<P>>,
    /// What became of packets.
    pub counts: DeviceCounts,
}

/// What became of packets, each super-segment being one.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct DeviceCounts {
    /// Refused for want of room or credit; TCP knows.
    pub refused: u64,
    /// Dropped by the discipline's rule; TCP does not know.
    pub dropped: u64,
    /// Most bytes in the ring at one time.
    pub most_in_ring: u64,
    /// The limit of its bytes, as it is now.
    pub limit: u32,
}

/// What happens to a packet on its way out, in this order.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Left<P> {
    /// It is handed to the driver: here a capture sees it.
    Seen(P),
    /// A packet of the wire has left the device.
    Sent(P),
    /// It is done with, or dropped, and its memory is free.
    Freed(P),
}

#[derive(Clone, Debug)]
enum Discipline<P> {
    Queue(Waiting<P>),
    Fq(Fq<P>),
    Bucket { bucket: Bucket, burst: u64, waiting: Waiting<P> },
}

/// The kernel that drives the device.
#[derive(Clone, Copy, Debug)]
pub struct Driver {
    /// Ticks a second.
    pub hz: u32,
    /// What its clock shows at time zero.
    pub clock_ns: u64,
    /// Timers of `fq` may come late.
    pub timer_slack: bool,
    /// Super-segments reach the device whole.
    pub offload: bool,
    /// Seeds the buckets of flows.
    pub seed: u64,
}

impl<P: HandedDown> Device<P> {
    /// The way out that a plan asks for; `None` where packets are gone at once.
    pub fn of(host: &plan::Host, driver: Driver) -> Option<Self> {
        if host.egress.is_none() && host.device.is_none() {
            return None;
        }
        let Driver { hz, clock_ns, timer_slack, offload, seed } = driver;
        let waiting = |queue| Waiting::new(queue, seed, clock_ns);
        let discipline = match host.egress {
            Some(Egress::Fq) => {
                Discipline::Fq(Fq::new(hz, u64::from(timer_slack) * TIMER_SLACK_NS))
            }
            Some(Egress::FqCodel) => Discipline::Queue(waiting(Queue::FqCodel)),
            Some(Egress::Fifo(queue)) => Discipline::Queue(waiting(queue)),
            Some(Egress::TokenBucket(settings)) if settings.queue > 0 => Discipline::Bucket {
                bucket: Bucket::full(settings, 0),
                burst: settings.burst.max(LEAST_BURST),
                waiting: waiting(Queue::Bytes(settings.queue)),
            },
            // What a device has by itself.
            None | Some(Egress::TokenBucket(_)) => Discipline::Queue(waiting(PFIFO_FAST)),
        };
        let policer = match host.egress {
            Some(Egress::TokenBucket(settings)) if settings.queue == 0 => {
                Some(Bucket::exact(settings))
            }
            _ => None,
        };
        Some(Self {
            clock_ns,
            offload,
            policer,
            discipline,
            due: None,
            cut: VecDeque::new(),
            ring: host.device.map(|device| Ring::new(device, hz, clock_ns)),
            left: VecDeque::new(),
            counts: DeviceCounts::default(),
        })
    }

    /// TCP hands a packet down; whether it was taken. One that was not is gone.
    pub fn offer(&mut self, now: u64, packet: P) -> bool {
        if let Some(policer) = &mut self.policer
            && policer.take(packet.wire_bytes(), now).is_err()
        {
            self.counts.refused += 1;
            return false;
        }
        let taken = self.enqueue(now, packet);
        self.counts.refused += u64::from(!taken);
        self.pump(now);
        taken
    }

    fn enqueue(&mut self, now: u64, packet: P) -> bool {
        let (left, dropped) = (&mut self.left, &mut self.counts.dropped);
        let drop = |packet: P| {
            *dropped += 1;
            left.push_back(Left::Freed(packet));
        };
        match &mut self.discipline {
            Discipline::Queue(waiting) => waiting.enqueue(now, packet, drop).is_ok(),
            Discipline::Fq(fq) => fq.enqueue(self.clock_ns + now, packet).is_ok(),
            Discipline::Bucket { waiting, burst, .. } => {
                if u64::from(packet.wire_bytes()) <= *burst {
                    return waiting.enqueue(now, packet, drop).is_ok();
                }
                // Cut, as none of it would ever find credit; any piece that is taken is a success.
                let mut refused = Vec::new();
                let mut taken = false;
                for piece in packet.pieces() {
                    let fits = u64::from(piece.wire_bytes()) <= *burst;
                    match if fits { waiting.enqueue(now, piece, |_| ()) } else { Err(piece) } {
                        Ok(()) => taken = true,
                        Err(piece) => refused.push(piece),
                    }
                }
                if taken {
                    refused.into_iter().for_each(drop);
                }
                taken
            }
        }
    }

    /// Lets pass what may pass.
    fn pump(&mut self, now: u64) {
        self.due = None;
        while self.ring.as_ref().is_none_or(Ring::is_open) {
            let packet = match self.cut.pop_front() {
                Some(piece) => piece,
                None => match self.dequeue(now) {
                    Some(packet) if self.offload => packet,
                    Some(packet) => {
                        self.cut = packet.pieces();
                        continue;
                    }
                    None => return,
                },
            };
            self.left.push_back(Left::Seen(packet.clone()));
            if let Some(ring) = &mut self.ring {
                ring.push(now, packet);
                self.counts.most_in_ring = self.counts.most_in_ring.max(ring.bytes);
            } else {
                self.left.extend(packet.pieces().into_iter().map(Left::Sent));
                self.left.push_back(Left::Freed(packet));
            }
        }
    }

    fn dequeue(&mut self, now: u64) -> Option<P> {
        let (left, dropped) = (&mut self.left, &mut self.counts.dropped);
        let mut drop = |packet: P| {
            *dropped += 1;
            left.push_back(Left::Freed(packet));
        };
        match &mut self.discipline {
            Discipline::Queue(waiting) => waiting.dequeue(now, drop),
            Discipline::Fq(fq) => {
                let packet = fq.dequeue(now, self.clock_ns + now);
                self.due = fq.due().filter(|_| packet.is_none());
                packet
            }
            Discipline::Bucket { bucket, waiting, .. } => {
                let bytes = waiting.peek(now, &mut drop)?.wire_bytes();
                match bucket.take(bytes, now) {
                    Ok(()) => waiting.dequeue(now, drop),
                    Err(at) => {
                        self.due = Some(at);
                        None
                    }
                }
            }
        }
    }

    /// When [`Self::advance`] has something to do.
    pub fn next(&self) -> Option<u64> {
        let sent = self.ring.as_ref().and_then(|ring| ring.sending.as_ref().map(|(_, at)| *at));
        [sent, self.due].into_iter().flatten().min()
    }

    /// Moves what is due.
    pub fn advance(&mut self, now: u64) {
        if let Some(ring) = &mut self.ring {
            let jiffies = (self.clock_ns + now) / ring.tick_ns;
            ring.advance(now, jiffies, &mut self.left);
            self.counts.limit = ring.dql.map_or(0, |dql| dql.limit());
        }
        self.pump(now);
    }

    /// What happened and was not yet told.
    pub fn poll(&mut self) -> Option<Left<P>> {
        self.left.pop_front()
    }

    /// Bytes that would be gone at once if they came now.
    pub fn passes(&self, now: u64) -> u64 {
        if self.ring.is_some() || self.packets() > 0 {
            return 0;
        }
        match &self.discipline {
            Discipline::Queue(_) | Discipline::Fq(_) => u64::MAX,
            Discipline::Bucket { bucket, .. } => bucket.credit(now),
        }
    }

    /// Bytes that wait above the ring, and in it.
    pub fn waiting(&self) -> (u64, u64) {
        let above = match &self.discipline {
            Discipline::Queue(waiting) | Discipline::Bucket { waiting, .. } => waiting.bytes(),
            Discipline::Fq(_) => 0,
        };
        let cut: u64 = self.cut.iter().map(|piece| u64::from(piece.wire_bytes())).sum();
        (above + cut, self.ring.as_ref().map_or(0, |ring| ring.bytes))
    }

    /// Packets that wait above the ring.
    pub fn packets(&self) -> usize {
        let above = match &self.discipline {
            Discipline::Queue(waiting) | Discipline::Bucket { waiting, .. } => waiting.packets(),
            Discipline::Fq(fq) => fq.packets(),
        };
        above + self.cut.len()
    }
}

/// The driver's ring, and the device that sends from it.
#[derive(Clone, Debug)]
struct Ring<P> {
    rate: u64,
    slots: usize,
    dql: Option<Dql>,
    tick_ns: u64,
    waiting: VecDeque<P>,
    bytes: u64,
    /// What is left of the first of them, and until when the first piece of that is sent.
    sending: Option<(VecDeque<P>, u64)>,
}

impl<P: HandedDown> Ring<P> {
    fn new(device: plan::Device, hz: u32, clock_ns: u64) -> Self {
        let tick_ns = 1_000_000_000 / u64::from(hz);
        Self {
            rate: device.rate,
            slots: device.ring as usize,
            dql: device.bql.then(|| Dql::new(&device, hz, clock_ns / tick_ns)),
            tick_ns,
            waiting: VecDeque::new(),
            bytes: 0,
            sending: None,
        }
    }

    /// Whether the driver takes another packet.
    fn is_open(&self) -> bool {
        self.waiting.len() < self.slots && self.dql.is_none_or(|dql| dql.is_open())
    }

    fn push(&mut self, now: u64, packet: P) {
        if let Some(dql) = &mut self.dql {
            dql.queued(packet.wire_bytes());
        }
        self.bytes += u64::from(packet.wire_bytes());
        self.waiting.push_back(packet);
        if self.sending.is_none() {
            self.begin(now);
        }
    }

    /// The device takes up the first packet.
    fn begin(&mut self, now: u64) {
        let Some(packet) = self.waiting.front() else { return };
        let pieces = packet.pieces();
        let until = now + pieces.front().map_or(0, |piece| self.span(piece));
        self.sending = Some((pieces, until));
    }

    fn advance(&mut self, now: u64, jiffies: u64, left: &mut VecDeque<Left<P>>) {
        while let Some((mut pieces, until)) = self.sending.take_if(|(_, until)| *until <= now) {
            left.extend(pieces.pop_front().map(Left::Sent));
            if let Some(piece) = pieces.front() {
                let until = until + self.span(piece);
                self.sending = Some((pieces, until));
                continue;
            }
            if let Some(packet) = self.waiting.pop_front() {
                self.bytes -= u64::from(packet.wire_bytes());
                if let Some(dql) = &mut self.dql {
                    dql.completed(packet.wire_bytes(), jiffies);
                }
                left.push_back(Left::Freed(packet));
            }
            self.begin(until);
        }
    }

    /// Time that a packet takes on the wire.
    fn span(&self, packet: &P) -> u64 {
        let bits = u128::from(packet.wire_bytes()) * 8;
        (bits * 1_000_000_000 / u128::from(self.rate.max(1))) as u64
    }
}

/// A device's own discipline: `DEFAULT_TX_QUEUE_LEN` packets, one priority.
const PFIFO_FAST: Queue = Queue::Packets(1000);

/// As the lab sets its buckets, see [`super::bucket`].
const LEAST_BURST: u64 = super::bucket::LEAST_BURST;
