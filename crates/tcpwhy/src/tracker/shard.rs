//! The connections of one shard, and which of them go when there are too many.
//!
//! ```text
//! begin -> young -> grown         oldest births first; the half-open ones among those that leave
//!            |        |           `young` are forgotten, the others grow
//!            v        v
//!         lingering   settled     closed ones wait for late packets; of those that never close the
//!            |                    longest silent are settled as they stand
//!            v
//!         settled -> an account, unless it is slight and there are enough of those
//! ```
//!
//! All of it depends on this shard's packets and their times only, so a flood fills no memory and
//! the result is the same on any number of threads.

use core::net::SocketAddr;
use std::collections::VecDeque;

use hashbrown::HashTable;

use super::Common;
use super::key::Key;
use super::starts::Starts;
use crate::analysis::{AT_ONCE, CHUNK};
use crate::flow::connection::Flow;
use crate::flow::event::Side;
use crate::flow::run::Follower;
use crate::flow::usual::Streaming;
use crate::wire::{Direction, Ends, IcmpError, Segment, Usual};
use tcpwhy_words::units::Time;

/// Connections of a shard that errors without ports are looked up in. Ours: more than a listing has.
const MOST_ASKED: usize = 256;

/// Connections that a shard has room for where several threads follow them. Ours: on two cores, 100,000 short
/// ones took 0.110 s instead of 0.116 s. A shard held 70 of them at once.
const ROOM: usize = 128;
/// A closed connection takes packets this long, and then only while not too many linger: [`AT_ONCE`] of
/// them leave then. Ours: 64 in each of 64 shards last for 0.4 s at 10,000 connections a second, twice the least
/// retransmission timeout. (128 took 3 % more time, 512 took 5 % more than that, for cache misses.)
const LINGER_NS: i64 = 15_000_000_000;
const MAX_LINGERING: usize = 64;
/// Young connections kept before half-open ones are forgotten. Ours: 65,536 in all shards.
const MAX_YOUNG: usize = 1024;
/// Live connections kept. Ours: 131,072 in all shards are about 300 MB.
const MAX_LIVE: usize = 2048;
/// Grown connections looked at to find one that was silent since it was last looked at.
const LOOKED_AT: usize = 8;
/// Accounts of slight connections kept ([`Flow::is_slight`]). Ours: 65,536 in all shards, more than
/// a reader goes through, are about 100 MB.
const MAX_SLIGHT: u64 = 1024;

/// A connection that is followed.
#[derive(Debug)]
pub(super) struct Tracked {
    key: Key,
    hash: u64,
    /// The frame that it began with.
    began: u64,
    /// Of the client's frames and of the server's, if these may be usual ones.
    ends: Option<[Ends; 2]>,
    /// Apart from the above, by which it is found: most connections wait, and have left the caches.
    flow: Box<Flow>,
}

impl Tracked {
    /// Hands on what the connection has gathered if that is enough; the first time twice as much,
    /// for most connections end before.
    #[inline(never)]
    fn hand_on_if_due(&mut self, common: &mut Common) {
        if self.flow.gathered.frames() >= self.enough() {
            common.hand_on(&mut self.flow);
        }
    }

    fn enough(&self) -> usize {
        if self.flow.handed_on { CHUNK } else { 2 * CHUNK }
    }
}

/// A connection that was in a slot; it is still if the one there began with the same frame.
#[derive(Clone, Copy, Debug)]
struct Seat {
    slot: u32,
    began: u64,
}

/// How many connections were counted and forgotten.
#[derive(Clone, Copy, Debug, Default)]
pub struct Forgotten {
    /// Nothing but the beginning of a handshake was seen of them.
    pub half_open: u64,
    /// A few packets without a dialogue were seen of them.
    pub slight: u64,
}

/// The connections of one shard.
#[derive(Debug, Default)]
pub(super) struct Shard {
    /// Slots of live connections by the hash of their key.
    live: HashTable<u32>,
    slots: Vec<Option<Tracked>>,
    free: Vec<u32>,
    /// Closed connections by the time they may go.
    lingering: VecDeque<(i64, Seat)>,
    /// Young connections in order of birth.
    young: VecDeque<Seat>,
    /// Older ones, with the time of their last packet when they were last looked at.
    grown: VecDeque<(i64, Seat)>,
    /// From when on there is something to retire.
    due: i64,
    /// Where that segment went whose connection was looked for last: the next one often follows it.
    last: u32,
    pub(super) starts: Starts,
    slight: u64,
    pub(super) forgotten: Forgotten,
}

impl Shard {
    /// Takes the segment in a usual frame if it just goes on in the connection of the last one that was looked
    /// for; which side sent it if it did, whether it went on from another itself, and where that is.
    #[expect(clippy::inline_always, reason = "it is called for each packet")]
    #[inline(always)]
    pub(super) fn goes_on(
        &mut self,
        usual: &Usual<'_>,
        common: &mut Common,
    ) -> Option<(Side, bool, u32)> {
        let slot = self.last;
        let tracked = self.slots.get(slot as usize)?.as_ref()?;
        let side = match tracked.ends {
            Some([ends, _]) if ends == usual.ends => 0,
            Some([_, ends]) if ends == usual.ends => 1,
            _ => return None,
        };
        // What retires connections of this shard comes first, as for any other segment of it.
        if self.retire(usual.head.time.0, common) {
            return None;
        }
        let tracked = self.slots.get_mut(slot as usize)?.as_mut()?;
        let takes = tracked.flow.goes_on(side, &usual.head);
        common.choose(&mut tracked.flow.facts);
        if takes && tracked.flow.gathered.frames() >= CHUNK {
            tracked.hand_on_if_due(common);
        }
        let is_follower = tracked.flow.gathered.events.last().is_some_and(|head| head.run > 0);
        takes.then_some((side, is_follower, slot))
    }

    /// What may go on from the segment that `side` of the connection in `slot` just sent.
    pub(super) fn streaming(
        &self,
        slot: u32,
        side: Side,
        followers: &mut Vec<Follower>,
    ) -> Option<Streaming> {
        let tracked = self.slots.get(slot as usize)?.as_ref()?;
        let room = tracked.enough() - tracked.flow.gathered.frames();
        tracked.flow.streaming(side, (Time(self.due), room), followers)
    }

    /// Lets the connection in `slot` take what was gathered in `streaming`, in frames met like that.
    pub(super) fn go_on(
        &mut self,
        slot: u32,
        streaming: &mut Streaming,
        direction: Option<Direction>,
        common: &mut Common,
    ) {
        if let Some(Some(tracked)) = self.slots.get_mut(slot as usize) {
            tracked.flow.go_on(streaming, direction);
            tracked.hand_on_if_due(common);
        }
    }

    /// Takes a segment of the connection of `key`, which may begin with it.
    pub(super) fn take(&mut self, key: &Key, segment: &Segment<'_>, common: &mut Common) {
        let slot = self.find(key, segment, common);
        self.last = slot;
        let Some(tracked) = &mut self.slots[slot as usize] else { return };
        tracked.flow.push(tracked.flow.side_of(segment), segment);
        common.choose(&mut tracked.flow.facts);
        tracked.hand_on_if_due(common);
        if !tracked.flow.lingering && tracked.flow.facts.is_closed() {
            tracked.flow.lingering = true;
            let deadline = segment.time.0.saturating_add(LINGER_NS);
            self.lingering.push_back((deadline, Seat { slot, began: tracked.began }));
        }
        self.due = self.next_due();
    }

    /// The slot of the connection of `key`, which may begin with `segment`.
    fn find(&mut self, key: &Key, segment: &Segment<'_>, common: &mut Common) -> u32 {
        self.retire(segment.time.0, common);
        let Self { live, slots, .. } = self;
        let hash = key.hash();
        let is_key = |slot: &u32| slots[*slot as usize].as_ref().is_some_and(|t| t.key == *key);
        match live.find(hash, is_key).copied() {
            Some(slot) => {
                self.renew_if_reused(slot, segment, common);
                slot
            }
            None => self.begin(*key, hash, segment, common),
        }
    }

    /// Ends the connection in `slot` if `segment` opens the next one between the same ends.
    fn renew_if_reused(&mut self, slot: u32, segment: &Segment<'_>, common: &mut Common) {
        let Some(tracked) = &mut self.slots[slot as usize] else { return };
        if !tracked.flow.is_reused_by(segment) {
            return;
        }
        let new = common.open(segment);
        self.starts.push(segment.frame);
        tracked.began = new.facts.first_frame;
        self.young.push_back(Seat { slot, began: tracked.began });
        tracked.ends = ends_of(&new).filter(|_| segment.network == 0);
        let old = core::mem::replace(&mut tracked.flow, new);
        self.settle(old, common);
    }

    /// Settles closed connections whose time has come, and those that are too many; whether there
    /// may have been any.
    #[inline]
    fn retire(&mut self, now: i64, common: &mut Common) -> bool {
        let is_due = now >= self.due;
        if is_due {
            self.retire_due(now, common);
        }
        is_due
    }

    /// When the first closed connection may go: at once if there are too many of any kind.
    fn next_due(&self) -> i64 {
        let too_many = self.lingering.len() > MAX_LINGERING
            || self.young.len() > MAX_YOUNG
            || self.live.len() > MAX_LIVE;
        let first = self.lingering.front().map_or(i64::MAX, |(deadline, _)| *deadline);
        if too_many { i64::MIN } else { first }
    }

    /// Makes room for as many connections as shards often have at once: to whom follows it, the allocator would give that
    /// bit by bit, and have who reads wait meanwhile.
    pub(super) fn make_room(&mut self) {
        let Self { live, slots, free, lingering, young, grown, .. } = self;
        let hash = |slot: &u32| slots[*slot as usize].as_ref().map_or(0, |tracked| tracked.hash);
        live.reserve(ROOM, hash);
        slots.reserve(ROOM);
        free.reserve(ROOM);
        lingering.reserve(ROOM);
        young.reserve(ROOM);
        grown.reserve(ROOM);
    }

    /// The connections that have not left.
    pub(super) fn live(&self) -> impl Iterator<Item = &Flow> {
        self.slots.iter().flatten().map(|tracked| &*tracked.flow)
    }

    /// Settles all that are still there.
    pub(super) fn finish(&mut self, common: &mut Common) {
        for tracked in core::mem::take(&mut self.slots).into_iter().flatten() {
            self.settle(tracked.flow, common);
        }
    }

    /// Packets are missing here that the capture saw.
    pub(super) fn gap(&mut self) {
        for tracked in self.slots.iter_mut().flatten() {
            tracked.flow.gap();
        }
    }

    /// A device said of a segment of `from` that it is too large; of no connection that is not followed.
    pub(super) fn too_big(&mut self, key: &Key, from: SocketAddr, time: Time) {
        let Self { live, slots, .. } = self;
        let is_key = |slot: &u32| slots[*slot as usize].as_ref().is_some_and(|t| t.key == *key);
        let slot = live.find(key.hash(), is_key).copied();
        if let Some(Some(tracked)) = slot.and_then(|slot| slots.get_mut(slot as usize)) {
            tracked.flow.too_big(from, time);
        }
    }

    /// The same, where the quotation says hosts at most.
    pub(super) fn too_big_of_hosts(&mut self, error: &IcmpError) {
        let IcmpError { quoted, time, .. } = *error;
        // Each error looks at each connection. Among many it cannot tell one from another anyway.
        if self.slots.len() > MOST_ASKED {
            return;
        }
        for tracked in self.slots.iter_mut().flatten() {
            let [a, b] = tracked.flow.facts.endpoints;
            for (from, to) in [(a, b), (b, a)] {
                let is_to = quoted.destination.is_none_or(|host| host == to.ip());
                if from.ip() == quoted.source && is_to {
                    tracked.flow.too_big(from, time);
                }
            }
        }
    }

    /// A new connection.
    fn begin(&mut self, key: Key, hash: u64, segment: &Segment<'_>, common: &mut Common) -> u32 {
        let flow = common.open(segment);
        self.starts.push(segment.frame);
        let slot = self.free.pop().unwrap_or(self.slots.len() as u32);
        let began = flow.facts.first_frame;
        self.young.push_back(Seat { slot, began });
        let ends = ends_of(&flow).filter(|_| segment.network == 0);
        let tracked = Some(Tracked { key, hash, began, ends, flow });
        match self.slots.get_mut(slot as usize) {
            Some(place) => *place = tracked,
            None => self.slots.push(tracked),
        }
        let slots = &self.slots;
        let hash_of = |slot: &u32| slots[*slot as usize].as_ref().map_or(0, |t| t.hash);
        self.live.insert_unique(hash, slot, hash_of);
        slot
    }

    #[cold]
    fn retire_due(&mut self, now: i64, common: &mut Common) {
        let over = self.lingering.len().saturating_sub(MAX_LINGERING);
        let too_many = if over > 0 { over + AT_ONCE - 1 } else { 0 };
        let due = self.lingering.iter().take_while(|(deadline, _)| *deadline <= now).count();
        self.leave_first(too_many.max(due), common);
        while self.young.len() > MAX_YOUNG {
            let Some(seat) = self.young.pop_front() else { break };
            if self.remove_if(seat, Flow::is_half_open).is_some() {
                self.forgotten.half_open += 1;
            } else if let Some(flow) = self.flow_of(seat) {
                self.grown.push_back((flow.facts.last_seen(), seat));
            }
        }
        // Closed ones have left the slots, but not this queue.
        if self.grown.len() > 2 * MAX_LIVE {
            let mut grown = core::mem::take(&mut self.grown);
            grown.retain(|(_, seat)| self.flow_of(*seat).is_some());
            self.grown = grown;
        }
        while self.live.len() > MAX_LIVE {
            let Some(seat) = self.most_silent() else { break };
            self.leave(seat, common);
        }
        self.due = self.next_due();
    }

    /// A grown connection that had no packet since it was last looked at, else of a few the one
    /// whose last packet is the oldest: the queue's order is nearly that of last packets, and no
    /// packet has to move its connection in it.
    fn most_silent(&mut self) -> Option<Seat> {
        let mut most_silent: Option<(i64, Seat)> = None;
        for _ in 0..LOOKED_AT {
            let Some((seen, seat)) = self.grown.pop_front() else { break };
            let Some(now_seen) = self.flow_of(seat).map(|flow| flow.facts.last_seen()) else {
                continue;
            };
            if now_seen == seen {
                return Some(seat);
            }
            self.grown.push_back((now_seen, seat));
            if most_silent.is_none_or(|(oldest, _)| now_seen < oldest) {
                most_silent = Some((now_seen, seat));
            }
        }
        most_silent.map(|(_, seat)| seat)
    }

    /// The connection that took `seat`, if it is still there.
    fn flow_of(&self, seat: Seat) -> Option<&Flow> {
        let tracked = self.slots.get(seat.slot as usize)?.as_ref()?;
        (tracked.began == seat.began).then_some(&*tracked.flow)
    }

    /// The first `count` of the lingering connections leave.
    fn leave_first(&mut self, count: usize, common: &mut Common) {
        for left in (0..count).step_by(AT_ONCE) {
            let group = AT_ONCE.min(count - left);
            let seats = self.lingering.iter().take(group);
            common.bench.bring(seats.filter_map(|(_, seat)| self.flow_of(*seat)));
            for _ in 0..group {
                let Some((_, seat)) = self.lingering.pop_front() else { break };
                self.leave(seat, common);
            }
        }
    }

    /// The connection in `seat` leaves with an account, if it is still there.
    fn leave(&mut self, seat: Seat, common: &mut Common) {
        if let Some(tracked) = self.remove_if(seat, |_| true) {
            self.settle(tracked.flow, common);
        }
    }

    /// Takes out the connection in `seat`, if it is still there and as asked for.
    fn remove_if(&mut self, seat: Seat, wanted: impl Fn(&Flow) -> bool) -> Option<Tracked> {
        let place = self.slots.get_mut(seat.slot as usize)?;
        let tracked =
            place.take_if(|tracked| tracked.began == seat.began && wanted(&tracked.flow))?;
        if let Ok(entry) = self.live.find_entry(tracked.hash, |slot| *slot == seat.slot) {
            entry.remove();
        }
        self.free.push(seat.slot);
        Some(tracked)
    }

    /// Ends a connection; if it is slight and there are enough of those, without an account.
    fn settle(&mut self, flow: Box<Flow>, common: &mut Common) {
        if flow.facts.is_slight() {
            self.slight += 1;
            if self.slight > MAX_SLIGHT {
                self.forgotten.slight += 1;
                return common.bench.put_away(flow);
            }
        }
        common.settle(flow);
    }
}

/// How the addresses stand in usual frames of the client and of the server.
fn ends_of(flow: &Flow) -> Option<[Ends; 2]> {
    let [client, server] = &flow.facts.endpoints;
    Some([Ends::of(client, server)?, Ends::of(server, client)?])
}

#[cfg(test)]
mod tests;
