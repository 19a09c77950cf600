//! Where packets wait for a link: in order, or by `fq_codel`.

use std::collections::VecDeque;

use super::OnWire;
use super::fq_codel::FqCodel;
use crate::scenario::plan::Queue;

/// A queue and what waits in it.
#[derive(Clone, Debug)]
pub(super) struct Waiting<P> {
    kind: Kind<P>,
    settings: Queue,
    /// Bytes in a first-in-first-out queue.
    bytes: u64,
    /// What a shaper has taken out of `fq_codel` to look at (`qdisc_peek_dequeued`).
    peeked: Option<P>,
    seed: u64,
    /// What the host's clock shows at time zero.
    clock_ns: u64,
}

#[derive(Clone, Debug)]
enum Kind<P> {
    Fifo(VecDeque<P>),
    FqCodel(Box<FqCodel<P>>),
}

impl<P: OnWire> Waiting<P> {
    pub(super) fn new(settings: Queue, seed: u64, clock_ns: u64) -> Self {
        let kind = match settings {
            Queue::FqCodel => Kind::FqCodel(Box::new(FqCodel::new(seed))),
            Queue::Endless | Queue::Bytes(_) | Queue::Packets(_) => Kind::Fifo(VecDeque::new()),
        };
        Self { kind, settings, bytes: 0, peeked: None, seed, clock_ns }
    }

    /// Takes a packet in, or hands back what finds no room; what `fq_codel` drops for it goes to
    /// `drop`.
    pub(super) fn enqueue(&mut self, now: u64, packet: P, drop: impl FnMut(P)) -> Result<(), P> {
        let bytes = u64::from(packet.wire_bytes());
        match &mut self.kind {
            Kind::Fifo(waiting) => {
                let has_room = match self.settings {
                    Queue::Bytes(most) => self.bytes + bytes <= most,
                    Queue::Packets(most) => (waiting.len() as u64) < most,
                    Queue::Endless | Queue::FqCodel => true,
                };
                if !has_room {
                    return Err(packet);
                }
                self.bytes += bytes;
                waiting.push_back(packet);
            }
            Kind::FqCodel(queue) => queue.enqueue(self.clock_ns + now, packet, drop),
        }
        Ok(())
    }

    /// The packet that leaves next.
    pub(super) fn dequeue(&mut self, now: u64, drop: impl FnMut(P)) -> Option<P> {
        if let Some(packet) = self.peeked.take() {
            return Some(packet);
        }
        match &mut self.kind {
            Kind::Fifo(waiting) => {
                let packet = waiting.pop_front()?;
                self.bytes -= u64::from(packet.wire_bytes());
                Some(packet)
            }
            Kind::FqCodel(queue) => queue.dequeue(self.clock_ns + now, drop),
        }
    }

    /// Looks at the packet that leaves next: as a shaper does, which takes it out for that.
    pub(super) fn peek(&mut self, now: u64, drop: impl FnMut(P)) -> Option<&P> {
        match &mut self.kind {
            Kind::Fifo(waiting) => waiting.front(),
            Kind::FqCodel(queue) => {
                if self.peeked.is_none() {
                    self.peeked = queue.dequeue(self.clock_ns + now, drop);
                }
                self.peeked.as_ref()
            }
        }
    }

    /// Bytes that wait.
    pub(super) fn bytes(&self) -> u64 {
        match &self.kind {
            Kind::Fifo(_) => self.bytes,
            Kind::FqCodel(queue) => {
                queue.bytes() + self.peeked.as_ref().map_or(0, |packet| packet.wire_bytes().into())
            }
        }
    }

    /// Packets that wait.
    pub(super) fn packets(&self) -> usize {
        match &self.kind {
            Kind::Fifo(waiting) => waiting.len(),
            Kind::FqCodel(queue) => queue.packets() + usize::from(self.peeked.is_some()),
        }
    }

    /// Another queue from now on; what waits stays, room or not.
    pub(super) fn change(&mut self, settings: Queue, now: u64, mut drop: impl FnMut(P)) {
        if (settings == Queue::FqCodel) == matches!(self.kind, Kind::FqCodel(_)) {
            self.settings = settings;
            return;
        }
        // Made without a limit, which would drop what waits.
        let kind = if settings == Queue::FqCodel { settings } else { Queue::Endless };
        let mut next = Self::new(kind, self.seed, self.clock_ns);
        while let Some(packet) = self.dequeue(now, &mut drop) {
            if let Err(packet) = next.enqueue(now, packet, &mut drop) {
                drop(packet);
            }
        }
        next.settings = settings;
        *self = next;
    }
}
