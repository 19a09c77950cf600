//! Fair queueing with `CoDel` (RFC 8290): a queue for each flow, new flows before old ones, and each
//! queue kept short.
//!
//! Follows `fq_codel_enqueue`, `fq_codel_dequeue` and `fq_codel_drop` of `net/sched/sch_fq_codel.c`
//! (v4.18 to v6.18) with its defaults. Flows fall into buckets by a seeded number in place of the
//! kernel's hash, so that two of them may share one as they may there.

use std::collections::{BTreeMap, VecDeque};

use super::codel::{Codel, Taken, codel_time};
use super::{Chance, OnWire};

/// The discipline and what waits in it.
#[derive(Clone, Debug)]
pub(super) struct FqCodel<P> {
    seed: u64,
    flows: BTreeMap<u32, Flow<P>>,
    new: VecDeque<u32>,
    old: VecDeque<u32>,
    bytes: u64,
    packets: usize,
}

#[derive(Clone, Debug)]
struct Flow<P> {
    waiting: VecDeque<(u32, P)>,
    bytes: u64,
    deficit: i64,
    codel: Codel,
    /// It is in one of the lists.
    listed: bool,
}

impl<P> Default for Flow<P> {
    fn default() -> Self {
        Self {
            waiting: VecDeque::new(),
            bytes: 0,
            deficit: 0,
            codel: Codel::default(),
            listed: false,
        }
    }
}

impl<P: OnWire> FqCodel<P> {
    pub(super) const fn new(seed: u64) -> Self {
        Self {
            seed,
            flows: BTreeMap::new(),
            new: VecDeque::new(),
            old: VecDeque::new(),
            bytes: 0,
            packets: 0,
        }
    }

    pub(super) const fn bytes(&self) -> u64 {
        self.bytes
    }

    pub(super) const fn packets(&self) -> usize {
        self.packets
    }

    /// Takes a packet in; if there are too many now, the largest flow loses its oldest.
    pub(super) fn enqueue(&mut self, clock_ns: u64, packet: P, mut drop: impl FnMut(P)) {
        let bucket = Chance::new(self.seed ^ u64::from(packet.flow())).below(BUCKETS) as u32;
        let bytes = u64::from(packet.wire_bytes());
        let flow = self.flows.entry(bucket).or_default();
        flow.waiting.push_back((codel_time(clock_ns), packet));
        flow.bytes += bytes;
        if !flow.listed {
            flow.listed = true;
            flow.deficit = QUANTUM;
            self.new.push_back(bucket);
        }
        self.bytes += bytes;
        self.packets += 1;
        if self.packets > LIMIT || self.bytes > MEMORY {
            self.drop_from_largest(&mut drop);
        }
    }

    /// Half of what the largest flow has, in a batch.
    fn drop_from_largest(&mut self, drop: &mut impl FnMut(P)) {
        // The first of equals, as the kernel's scan finds it.
        let largest = self.flows.iter().rev().max_by_key(|(_, flow)| flow.bytes);
        let Some((&bucket, flow)) = largest else { return };
        let enough = flow.bytes / 2;
        let (mut dropped, mut count) = (0, 0);
        while count < BATCH
            && let Some(taken) = self.pop(bucket)
        {
            dropped += u64::from(taken.packet.wire_bytes());
            count += 1;
            drop(taken.packet);
            if dropped >= enough {
                break;
            }
        }
        if let Some(flow) = self.flows.get_mut(&bucket) {
            flow.codel.hurry(count);
        }
    }

    /// The packet that leaves next.
    pub(super) fn dequeue(&mut self, clock_ns: u64, mut drop: impl FnMut(P)) -> Option<P> {
        let now = codel_time(clock_ns);
        loop {
            let is_new = !self.new.is_empty();
            let list = if is_new { &mut self.new } else { &mut self.old };
            let bucket = *list.front()?;
            let flow = self.flows.get_mut(&bucket)?;
            if flow.deficit <= 0 {
                flow.deficit += QUANTUM;
                list.pop_front();
                self.old.push_back(bucket);
                continue;
            }
            let mut codel = flow.codel;
            let packet = codel.dequeue(now, || self.pop(bucket), &mut drop);
            let flow = self.flows.get_mut(&bucket)?;
            flow.codel = codel;
            if let Some(packet) = packet {
                flow.deficit -= i64::from(packet.wire_bytes());
                return Some(packet);
            }
            // It passes through the old flows once, so that those do not starve.
            let stays = is_new && !self.old.is_empty();
            flow.listed = stays;
            let list = if is_new { &mut self.new } else { &mut self.old };
            list.pop_front();
            if stays {
                self.old.push_back(bucket);
            }
        }
    }

    fn pop(&mut self, bucket: u32) -> Option<Taken<P>> {
        let flow = self.flows.get_mut(&bucket)?;
        let (came, packet) = flow.waiting.pop_front()?;
        let bytes = u64::from(packet.wire_bytes());
        flow.bytes -= bytes;
        self.bytes -= bytes;
        self.packets -= 1;
        Some(Taken { packet, came, backlog: self.bytes })
    }
}

// Defaults of `fq_codel_init`: an Ethernet frame, 1024 flows, 10 packets for each, 32 MB.
const QUANTUM: i64 = 1514;
const BUCKETS: u64 = 1024;
const LIMIT: usize = 10 * 1024;
const MEMORY: u64 = 32 << 20;
const BATCH: u32 = 64;

#[cfg(test)]
mod tests {
    use super::super::tests::Frame;
    use super::*;

    fn flows(queue: &mut FqCodel<Frame>, at_ns: u64, count: usize) -> Vec<u32> {
        (0..count).filter_map(|_| queue.dequeue(at_ns, |_| ())).map(|f| f.flow).collect()
    }

    #[test]
    fn a_new_flow_goes_before_those_that_queue_and_then_they_take_turns() {
        let mut queue = FqCodel::new(1);
        for _ in 0..6 {
            queue.enqueue(0, Frame::of(1, 1514), |_| ());
        }
        assert_eq!(flows(&mut queue, 0, 2), [1, 1]);
        queue.enqueue(0, Frame::of(2, 100), |_| ());
        queue.enqueue(0, Frame::of(2, 100), |_| ());
        assert_eq!(flows(&mut queue, 0, 3), [2, 2, 1]);
        for _ in 0..4 {
            queue.enqueue(0, Frame::of(2, 1514), |_| ());
        }
        let rest = flows(&mut queue, 0, 9);
        assert_eq!(rest.len(), 7);
        assert!(rest.windows(3).all(|w| w[0] != w[1] || w[1] != w[2]), "{rest:?}");
    }

    #[test]
    fn what_waits_too_long_is_dropped_faster_and_faster() {
        // A link of a frame a millisecond, offered two.
        let (mut queue, mut drops) = (FqCodel::new(1), Vec::new());
        for ms in 0..1000_u64 {
            for _ in 0..2 {
                queue.enqueue(ms * 1_000_000, Frame::of(1, 1514), |_| panic!("there is room"));
            }
            queue.dequeue(ms * 1_000_000, |_| drops.push(ms));
        }
        // The delay passes 5 ms after about ten, and an interval later the first is dropped.
        assert!((105..120).contains(&drops[0]), "{drops:?}");
        let gaps: Vec<_> = drops.windows(2).map(|w| w[1] - w[0]).collect();
        assert!((95..=105).contains(&gaps[0]), "{gaps:?}");
        assert!(gaps.iter().rev().take(5).all(|gap| *gap < 50), "{gaps:?}");
    }

    #[test]
    fn what_understands_marks_is_marked() {
        let (mut queue, mut marked) = (FqCodel::new(1), 0);
        for ms in 0..400_u64 {
            for _ in 0..2 {
                let frame = Frame { capable: true, ..Frame::of(1, 1514) };
                queue.enqueue(ms * 1_000_000, frame, |_| panic!("there is room"));
            }
            let left = queue.dequeue(ms * 1_000_000, |_| panic!("marks are enough"));
            marked += u32::from(left.expect("there is one").marked);
        }
        assert!((3..20).contains(&marked), "{marked}");
    }

    #[test]
    fn the_largest_flow_pays_when_all_is_full() {
        let (mut queue, mut dropped) = (FqCodel::new(1), Vec::new());
        queue.enqueue(0, Frame::of(2, 1514), |_| ());
        for _ in 0..LIMIT {
            queue.enqueue(0, Frame::of(1, 1514), |frame| dropped.push(frame.flow));
        }
        assert_eq!(dropped, vec![1; 64]);
        assert_eq!(queue.packets(), LIMIT + 1 - 64);
    }
}
