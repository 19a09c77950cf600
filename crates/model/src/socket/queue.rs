//! Everything written and not yet acknowledged, in sequence: first what was sent, then what waits.
//!
//! The kernel keeps a tree of what was sent, a list of what was not, and a list of what was sent in
//! order of time (`tcp_rtx_queue`, `sk_write_queue`, `tsorted_sent_queue`). Here one deque holds
//! places in a slab, with a mark between sent and unsent; the order of time is linked through it.

use std::collections::VecDeque;

use crate::segment::{Flags, after, before};

/// A piece of the stream that is sent as one: `struct sk_buff`.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Skb {
    pub(crate) seq: u32,
    pub(crate) end_seq: u32,
    /// Payload.
    pub(crate) len: u32,
    pub(crate) flags: Flags,
    /// Wire segments that it makes (`tcp_skb_pcount`).
    pub(crate) pcount: u32,
    /// Payload of one (`tcp_skb_mss`); 0 before it was cut for sending.
    pub(crate) mss: u32,
    pub(crate) marks: Marks,
    /// When it was last sent (`skb_mstamp_ns`).
    pub(crate) sent_ns: u64,
    /// Charge to the send buffer.
    pub(crate) truesize: u32,
    /// Nothing is appended to it (`MSG_EOR`).
    pub(crate) eor: bool,
    /// What had been delivered when it was sent (`tcp_rate_skb_sent`).
    pub(crate) rate: SentState,
    pub(crate) links: Links,
}

/// Neighbours in order of time.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Links {
    newer: Option<u32>,
    older: Option<u32>,
    /// Part of that order at all.
    timed: bool,
}

/// State of delivery when a segment was sent.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct SentState {
    pub(crate) delivered: u32,
    pub(crate) delivered_ns: u64,
    pub(crate) first_sent_ns: u64,
    pub(crate) app_limited: bool,
}

/// Marks of a segment (`TCP_SKB_CB(skb)->sacked`).
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
#[expect(clippy::struct_excessive_bools, reason = "the kernel's bits, independent of each other")]
pub(crate) struct Marks {
    /// Selectively acknowledged.
    pub(crate) sacked: bool,
    /// Believed lost.
    pub(crate) lost: bool,
    /// Retransmitted, and that copy is believed to be under way (`TCPCB_SACKED_RETRANS`).
    pub(crate) resent: bool,
    /// Ever retransmitted (`TCPCB_EVER_RETRANS`).
    pub(crate) ever_resent: bool,
}

/// See the head of this file.
#[derive(Clone, Debug, Default)]
pub(crate) struct Queue {
    slab: Vec<Skb>,
    free: Vec<u32>,
    order: VecDeque<u32>,
    sent: usize,
    oldest: Option<u32>,
    newest: Option<u32>,
}

impl Queue {
    /// How many were sent.
    pub(crate) const fn sent(&self) -> usize {
        self.sent
    }

    /// How many there are.
    pub(crate) fn len(&self) -> usize {
        self.order.len()
    }

    /// Whether something waits to be sent for the first time.
    pub(crate) fn has_unsent(&self) -> bool {
        self.order.len() > self.sent
    }

    /// The first that was never sent.
    pub(crate) fn send_head(&self) -> Option<&Skb> {
        (self.has_unsent()).then(|| self.at(self.sent))
    }

    /// The one at a place.
    pub(crate) fn at(&self, place: usize) -> &Skb {
        &self.slab[self.order[place] as usize]
    }

    /// The one at a place.
    pub(crate) fn at_mut(&mut self, place: usize) -> &mut Skb {
        &mut self.slab[self.order[place] as usize]
    }

    /// The first of all, if it was sent.
    pub(crate) fn head(&self) -> Option<&Skb> {
        (self.sent > 0).then(|| self.at(0))
    }

    /// The last of those that were never sent.
    pub(crate) fn unsent_tail(&mut self) -> Option<&mut Skb> {
        let last = self.order.len().checked_sub(1).filter(|last| *last >= self.sent)?;
        Some(self.at_mut(last))
    }

    /// Appends one that was never sent.
    pub(crate) fn push(&mut self, skb: Skb) {
        let id = self.keep(skb);
        self.order.push_back(id);
    }

    /// Puts one in front of the one at `place`, which was never sent.
    pub(crate) fn insert_unsent(&mut self, place: usize, skb: Skb) {
        let id = self.keep(skb);
        self.order.insert(place, id);
    }

    /// Removes the one at `place`, which was never sent.
    pub(crate) fn remove_unsent(&mut self, place: usize) {
        if let Some(id) = self.order.remove(place) {
            self.free.push(id);
        }
    }

    /// Puts one behind the one at `place`, sent if that is sent.
    pub(crate) fn insert_behind(&mut self, place: usize, skb: Skb) {
        let before_it = self.order[place];
        let id = self.keep(skb);
        self.order.insert(place + 1, id);
        if place < self.sent {
            self.sent += 1;
            if self.slab[before_it as usize].links.timed {
                self.link_behind(id, before_it);
            }
        }
    }

    /// The first unsent one counts as sent from now on.
    pub(crate) fn mark_sent(&mut self) {
        let id = self.order[self.sent];
        self.sent += 1;
        self.link_last(id);
    }

    /// The last one that was sent counts as unsent again.
    pub(crate) fn take_back(&mut self) -> Option<Skb> {
        self.sent = self.sent.checked_sub(1)?;
        let id = self.order[self.sent];
        self.unlink(id);
        Some(self.slab[id as usize])
    }

    /// The one at `place` was retransmitted: it is the newest.
    pub(crate) fn touch(&mut self, place: usize) {
        let id = self.order[place];
        self.unlink(id);
        self.link_last(id);
    }

    /// Takes the one at `place` out of the order of time.
    pub(crate) fn forget_time(&mut self, place: usize) {
        self.unlink(self.order[place]);
    }

    /// Removes the first one, which was sent.
    pub(crate) fn pop_head(&mut self) -> Option<Skb> {
        if self.sent == 0 {
            return None;
        }
        let id = self.order.pop_front()?;
        self.sent -= 1;
        self.unlink(id);
        self.free.push(id);
        Some(self.slab[id as usize])
    }

    /// Removes the one at `place`, which was sent.
    pub(crate) fn remove_sent(&mut self, place: usize) -> Option<Skb> {
        let id = self.order.remove(place)?;
        self.sent -= 1;
        self.unlink(id);
        self.free.push(id);
        Some(self.slab[id as usize])
    }

    /// Place of the sent one that holds `seq`, or of the first behind it.
    pub(crate) fn find(&self, seq: u32) -> usize {
        let (mut low, mut high) = (0, self.sent);
        while low < high {
            let middle = usize::midpoint(low, high);
            if after(self.at(middle).end_seq, seq) {
                high = middle;
            } else {
                low = middle + 1;
            }
        }
        low
    }

    /// The oldest in order of time, as a key for [`Self::next_in_time`].
    pub(crate) const fn oldest(&self) -> Option<u32> {
        self.oldest
    }

    /// What was sent next after this one.
    pub(crate) fn next_in_time(&self, key: u32) -> Option<u32> {
        self.slab[key as usize].links.newer
    }

    /// The one with this key.
    pub(crate) fn by_key(&self, key: u32) -> &Skb {
        &self.slab[key as usize]
    }

    /// Place of a sent one in sequence.
    pub(crate) fn place_of(&self, skb: &Skb) -> usize {
        self.find(skb.seq)
    }

    fn keep(&mut self, skb: Skb) -> u32 {
        let skb = Skb { links: Links::default(), ..skb };
        if let Some(id) = self.free.pop() {
            self.slab[id as usize] = skb;
            id
        } else {
            self.slab.push(skb);
            self.slab.len() as u32 - 1
        }
    }

    fn link_last(&mut self, id: u32) {
        let older = self.newest.replace(id);
        match older {
            Some(older) => self.slab[older as usize].links.newer = Some(id),
            None => self.oldest = Some(id),
        }
        self.slab[id as usize].links = Links { older, newer: None, timed: true };
    }

    fn link_behind(&mut self, id: u32, older: u32) {
        let newer = self.slab[older as usize].links.newer.replace(id);
        match newer {
            Some(newer) => self.slab[newer as usize].links.older = Some(id),
            None => self.newest = Some(id),
        }
        self.slab[id as usize].links = Links { older: Some(older), newer, timed: true };
    }

    fn unlink(&mut self, id: u32) {
        let Links { older, newer, timed } = self.slab[id as usize].links;
        if !timed {
            return;
        }
        match older {
            Some(older) => self.slab[older as usize].links.newer = newer,
            None => self.oldest = newer,
        }
        match newer {
            Some(newer) => self.slab[newer as usize].links.older = older,
            None => self.newest = older,
        }
        self.slab[id as usize].links = Links::default();
    }
}

impl Skb {
    /// When it was last sent, in microseconds.
    pub(crate) const fn sent_us(&self) -> u64 {
        self.sent_ns / 1000
    }

    /// Sets how many wire segments of `mss` it makes (`tcp_set_skb_tso_segs`).
    pub(crate) const fn cut_for(&mut self, mss: u32) {
        if self.len <= mss {
            self.pcount = 1;
            self.mss = 0;
        } else {
            self.pcount = self.len.div_ceil(mss);
            self.mss = mss;
        }
    }

    /// Whether it was sent after a segment that left at `sent_us` and ends at `end_seq`
    /// (`tcp_skb_sent_after`, with the two turned round).
    pub(crate) const fn sent_before(&self, sent_us: u64, end_seq: u32) -> bool {
        sent_us > self.sent_us() || (sent_us == self.sent_us() && after(end_seq, self.end_seq))
    }

    /// Whether it lies wholly before `seq`.
    pub(crate) const fn ends_by(&self, seq: u32) -> bool {
        !before(seq, self.end_seq)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn queue(sizes: &[u32]) -> Queue {
        let mut queue = Queue::default();
        let mut seq = 0;
        for len in sizes {
            let skb = Skb { seq, end_seq: seq + len, len: *len, pcount: 1, ..Skb::default() };
            queue.push(skb);
            seq += len;
        }
        queue
    }

    fn in_time(queue: &Queue) -> Vec<u32> {
        let keys = std::iter::successors(queue.oldest(), |key| queue.next_in_time(*key));
        keys.map(|key| queue.by_key(key).seq).collect()
    }

    #[test]
    fn what_is_sent_again_is_the_newest() {
        let mut queue = queue(&[100, 100, 100, 100]);
        (0..3).for_each(|_| queue.mark_sent());
        queue.touch(0);
        assert_eq!(in_time(&queue), [100, 200, 0]);
        queue.forget_time(2);
        assert_eq!(in_time(&queue), [100, 0]);
        assert_eq!(queue.send_head().map(|skb| skb.seq), Some(300));
    }

    #[test]
    fn a_part_that_is_split_off_was_sent_just_after() {
        let mut queue = queue(&[200, 100]);
        queue.mark_sent();
        queue.mark_sent();
        *queue.at_mut(0) = Skb { end_seq: 100, len: 100, ..*queue.at(0) };
        queue.insert_behind(0, Skb { seq: 100, end_seq: 200, len: 100, ..Skb::default() });
        assert_eq!(in_time(&queue), [0, 100, 200]);
        assert_eq!(queue.find(150), 1);
        assert_eq!(queue.find(200), 2);
        assert_eq!(queue.pop_head().map(|skb| skb.seq), Some(0));
        assert_eq!(in_time(&queue), [100, 200]);
    }
}
