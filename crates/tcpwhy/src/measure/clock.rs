//! One side's clocks: how far behind its stack the tap is, and what its timestamps tell.
//!
//! Question: when did a packet leave the sender's *stack*, given when it passed the tap? The tap
//! may stand behind a queueing discipline, a delay of the sender's own, or half the path; only
//! what is constant about that distance is harmless (limits-method section 1).
//!
//! Method. Each packet has a **cause**: the newest packet of the peer that it acknowledges or
//! echoes. It cannot have left before its cause arrived. Two things follow:
//!
//! * The least `tap - cause` over packets that answer at once is the round trip between the tap
//!   and this side's stack (the **floor**): 20 us on the host itself, 3.4 ms behind a 3 ms netem,
//!   half the path's round trip in the middle.
//! * The timestamp clock reads `tsval` from `base + tick * tsval` until one tick later, and the
//!   packet left its stack within that tick (Linux stamps when it queues: `tcp_transmit_skb`).
//!   `base > cause - tick * (tsval + 1)` for every packet and `base <= tap - floor - tick * tsval`
//!   for every packet; where both bounds meet, the map from timestamp to time is known, and with
//!   it each packet's own **lag** above the floor: a queue between stack and tap.
//!
//! Bounds are kept in buckets of capture time, so a skew between the two clocks cannot
//! accumulate. Where the bounds do not meet, the map is not used and the lag is unknown.

use std::collections::VecDeque;

use super::arrivals::{self, Arrivals};
use super::sketch::Sketch;
use crate::clocks::{StackTime, TapTime};
use crate::flow::event::{ACK, Block, Event, FIN, RST, SYN, TS};
use crate::flow::run::Run;
use crate::offsets::Offset;

/// Length of a bucket. Ours: quartz clocks differ by up to 100 ppm, 0.4 ms in 4 s, less than a
/// tick of 1 ms.
const BUCKET_NS: i64 = 4_000_000_000;
/// Ticks that stacks use: 1 us (Linux >= 6.7 by route option), 1 ms (Linux, Windows, Apple),
/// 4 and 10 ms (older Linux with HZ 250 and 100, BSD), 100 and 500 ms (old BSD).
const TICKS_NS: [i64; 6] = [1_000, 1_000_000, 4_000_000, 10_000_000, 100_000_000, 500_000_000];
/// A stack no farther than this may be nearer than its answers tell: they take it some time, and without time stamps
/// what bare ACKs let out is no answer that is known. Ours: 10 to 28 us in
/// three runs of the live lab (TUN, Linux 6.18).
const NEAR_NS: i64 = 50_000;
/// After such a silence what follows an arrival within [`NEAR_NS`] was let out by it. Ours: what comes by itself is there
/// by chance once in twenty times at most.
const SILENCE_NS: i64 = 1_000_000;

/// What is known of one side's clocks.
#[derive(Clone, Debug, Default)]
pub(crate) struct SideClock {
    /// Arrival of the peer's timestamps at the tap, oldest first.
    echoes: VecDeque<Stamp>,
    /// Arrival of the peer's bytes at the tap.
    bytes: Arrivals,
    last_echoed: Option<u32>,
    /// The echo of what the capture lacks that came last.
    last_unseen: Option<u32>,
    last_acked: Offset,
    /// The highest offset that it told of by SACK.
    last_sacked: Offset,
    first_stamp: Option<(u32, TapTime)>,
    last_stamp: Option<(u32, TapTime)>,
    tick: Option<i64>,
    reflexes: Sketch,
    /// Without time stamps: the last packet of either side, and what broke a silence, while nothing has followed.
    last_tap: Option<TapTime>,
    awoken: Option<TapTime>,
    buckets: VecDeque<Bucket>,
}

/// A time stamp of the peer, and when it passed the tap.
#[derive(Clone, Copy, Debug)]
struct Stamp {
    value: u32,
    tap: TapTime,
    /// All that leaves after its arrival echoes it or a later one (RFC 7323 section 4.3): it comes in order.
    counts: bool,
}

/// Bounds of the map's base within one bucket of capture time.
#[derive(Clone, Copy, Debug)]
struct Bucket {
    number: i64,
    low: StackTime,
    high: StackTime,
}

/// The packet that last narrowed the map, and to where in time its bucket goes.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct LastBound {
    stamp: u32,
    cause: TapTime,
    from: TapTime,
    end: TapTime,
}

/// The map from timestamps to time that was last asked for.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct NearMap(Option<Map>);

impl NearMap {
    /// Up to when it holds.
    pub(crate) fn end(&self) -> TapTime {
        self.0.map_or(TapTime::MAX, |map| TapTime((map.number + 1) * BUCKET_NS))
    }
}

/// The map's base in a bucket of capture time and its neighbours.
#[derive(Clone, Copy, Debug)]
struct Map {
    number: i64,
    base: Option<StackTime>,
}

/// What a packet answers.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Cause {
    /// Arrival at the tap of the newest packet of the peer that this one acknowledges or echoes;
    /// [`TapTime::MIN`] when unknown.
    pub(crate) at: TapTime,
    /// It is the first to answer it.
    pub(crate) fresh: bool,
    /// Before what arrived then, which it does not echo, it was on its way; [`TapTime::MAX`] if nothing did.
    pub(crate) until: TapTime,
}

impl Cause {
    const UNKNOWN: Self = Self { at: TapTime::MIN, fresh: false, until: TapTime::MAX };
}

impl SideClock {
    /// Forgets all, and keeps the room.
    pub(crate) fn renew(&mut self) {
        let mut new = Self::default();
        core::mem::swap(&mut new.echoes, &mut self.echoes);
        core::mem::swap(&mut new.bytes, &mut self.bytes);
        core::mem::swap(&mut new.buckets, &mut self.buckets);
        new.echoes.clear();
        new.bytes.clear();
        new.buckets.clear();
        *self = new;
    }

    /// A packet of the peer passed the tap.
    #[inline]
    pub(crate) fn peer_passed(&mut self, event: &Event) {
        if event.has(TS) && self.echoes.back().is_none_or(|last| newer(event.tsval, last.value)) {
            if self.echoes.len() == arrivals::MOST {
                self.echoes.pop_front();
            }
            let counts = event.seq <= self.last_acked;
            self.echoes.push_back(Stamp { value: event.tsval, tap: event.tap, counts });
        }
        if !event.has(TS) {
            let last = self.last_tap.replace(event.tap);
            self.awoken = last.filter(|last| event.tap - *last >= SILENCE_NS).map(|_| event.tap);
        }
        let end = event.end() + i64::from(event.has(FIN));
        let takes_room = event.len > 0 || event.bits & (FIN | SYN) != 0;
        if takes_room {
            self.bytes.push(end, event.tap);
        }
    }

    /// As [`Self::peer_passed`] for each of the followers of what just passed.
    pub(crate) fn peer_went_on(&mut self, run: Run<'_>) {
        if !run.head.has(TS) {
            (self.last_tap, self.awoken) = (Some(run.last_tap()), None);
        }
        self.bytes.push_followers(run);
    }

    /// What the followers of `event` are an answer to, asked when nothing came since.
    pub(crate) fn cause_again(&self, event: &Event) -> Cause {
        let echoed = self.echoes.front().filter(|_| event.has(TS | ACK));
        match echoed.filter(|stamp| stamp.value == event.tsecr) {
            Some(stamp) => Cause { at: stamp.tap, until: self.until(), ..Cause::UNKNOWN },
            None => Cause::UNKNOWN,
        }
    }

    /// When the stamp after the first one arrived, if all must echo that.
    #[inline]
    fn until(&self) -> TapTime {
        self.echoes.get(1).filter(|next| next.counts).map_or(TapTime::MAX, |next| next.tap)
    }

    /// A packet of this side with these SACK blocks passed the tap: what is it an answer to?
    #[inline]
    pub(crate) fn cause_of(&mut self, event: &Event, blocks: &[Block]) -> Cause {
        let mut cause = Cause::UNKNOWN;
        if event.has(RST) {
            return cause;
        }
        if event.has(TS) && event.has(ACK) {
            while self.echoes.len() > 1 && !newer(self.echoes[1].value, event.tsecr) {
                self.echoes.pop_front();
            }
            if let Some(Stamp { value, tap, .. }) = self.echoes.front()
                && *value == event.tsecr
            {
                (cause.at, cause.until) = (*tap, self.until());
                cause.fresh = self.last_echoed.is_none_or(|e| newer(event.tsecr, e));
                self.last_echoed = Some(event.tsecr);
            }
        }
        if event.has(ACK) {
            if let Some(at) = self.bytes.take_upto(event.ack) {
                // What SACK told of was answered then: what fills the hole before it draws this.
                let is_new = event.ack > self.last_acked.max(self.last_sacked);
                cause.fresh |= is_new || event.has(SYN);
                cause.at = cause.at.max(at);
            }
            self.last_acked = self.last_acked.max(event.ack);
        }
        if !blocks.is_empty() {
            self.take_sacked(event, blocks, &mut cause);
        }
        cause
    }

    /// SACK blocks that reach further than any before answer the segment that they end with, at once (RFC 2018
    /// section 4; Linux takes round trips from them, too: `tcp_sacktag_one`). What tells of duplicates names
    /// older data (RFC 2883 section 4).
    #[cold]
    fn take_sacked(&mut self, event: &Event, blocks: &[Block], cause: &mut Cause) {
        let Some(end) = blocks.iter().map(|block| block.1).max() else { return };
        if end <= self.last_sacked.max(event.ack) {
            return;
        }
        self.last_sacked = end;
        if let Some(at) = self.bytes.at_end(end) {
            cause.fresh = true;
            cause.at = cause.at.max(at);
        }
    }

    /// Learns the distance to the stack from a packet of this side and its cause.
    pub(crate) fn learn(&mut self, event: &Event, cause: Cause) {
        if event.has(TS) {
            if self.first_stamp.is_none() {
                self.first_stamp = Some((event.tsval, event.tap));
            }
            self.last_stamp = Some((event.tsval, event.tap));
        } else {
            self.learn_nearer(event.tap);
        }
        if cause.fresh && cause.at > TapTime::MIN {
            self.reflexes.push(event.tap - cause.at);
        }
    }

    /// Learns from what this side sends without time stamps that its stack is nearer than its answers tell.
    fn learn_nearer(&mut self, tap: TapTime) {
        self.last_tap = Some(tap);
        let lag = self.awoken.take().map(|arrived| tap - arrived);
        let floor = self.floor().filter(|floor| *floor <= NEAR_NS);
        if let Some((lag, _)) = lag.zip(floor).filter(|(lag, floor)| (0..*floor).contains(lag)) {
            self.reflexes.push(lag);
        }
    }

    /// How many ticks of its peer after the last that was seen of that, and when, `event` of this side is the first to
    /// echo another, which the capture lacks. Asked before its cause is.
    #[inline]
    pub(crate) fn unseen_echo(&mut self, event: &Event) -> Option<(TapTime, u32)> {
        let Stamp { value, tap, .. } = *self.echoes.back()?;
        let is_unseen = event.has(TS | ACK) && newer(event.tsecr, value);
        if !is_unseen || self.last_unseen == Some(event.tsecr) {
            return None;
        }
        self.last_unseen = Some(event.tsecr);
        Some((tap, event.tsecr.wrapping_sub(value)))
    }

    /// Whether what arrived this many ticks, of `tick` each, after another passed the tap came just before `event` of
    /// this side left. Ours: later than two ticks the sender itself may have waited.
    pub(crate) fn came_just_before(
        &self,
        event: &Event,
        (tap, ticks): (TapTime, u32),
        tick: i64,
    ) -> bool {
        let left = event.tap.left(self.floor().unwrap_or(0));
        (left - tap.at_stack() - i64::from(ticks).saturating_mul(tick)).abs() <= 2 * tick
    }

    /// Fits the tick, once enough time has passed to tell.
    pub(crate) fn fit_tick(&mut self) {
        self.tick = self.fitted_tick();
    }

    /// What its time stamps' tick is by what is known so far.
    pub(crate) fn fitted_tick(&self) -> Option<i64> {
        if self.tick.is_some() {
            return self.tick;
        }
        let ((v0, t0), (v1, t1)) = self.first_stamp.zip(self.last_stamp)?;
        let ticks = i64::from(v1.wrapping_sub(v0).cast_signed());
        let span = t1 - t0;
        // One tick of error at either end, and up to a fifth for the path's delay changing.
        if ticks < 8 || span <= 0 {
            return None;
        }
        TICKS_NS.into_iter().find(|tick| {
            let expected = tick * ticks;
            (expected - span).abs() <= span / 5 + 2 * tick
        })
    }

    /// Narrows the map's base by a packet of this side. `last` keeps the packet before it as long
    /// as nothing else is learnt: one of the same tick, later and not drawn by anything later, says
    /// no more than that did.
    #[expect(
        clippy::inline_always,
        reason = "asked at each packet, and nearly always answered at once"
    )]
    #[inline(always)]
    pub(crate) fn bound(&mut self, event: &Event, cause: TapTime, last: &mut LastBound) {
        if !event.has(TS) || event.has(RST) {
            return;
        }
        let (tap, stamp) = (event.tap, event.tsval);
        if stamp == last.stamp && cause <= last.cause && (last.from..last.end).contains(&tap) {
            return;
        }
        let end = self.narrow(event, cause).unwrap_or(tap);
        *last = LastBound { stamp, cause, from: tap, end };
    }

    /// As [`Self::bound`] for each of the followers of what that was just asked about.
    pub(crate) fn bound_again(&mut self, run: Run<'_>, cause: TapTime, last: &mut LastBound) {
        if run.last_tap() < last.end || self.tick.is_none() || !run.head.has(TS) {
            return;
        }
        for (number, follower) in (1..).zip(run.rest()) {
            if follower.tap >= last.end {
                self.bound(&run.head.follower(number, *follower), cause, last);
            }
        }
    }

    /// Narrows the map's base in the bucket of `event`; where that ends.
    #[expect(clippy::inline_always, reason = "it is called for each packet")]
    #[inline(always)]
    fn narrow(&mut self, event: &Event, cause: TapTime) -> Option<TapTime> {
        let (tick, floor) = (self.tick?, self.floor()?);
        let stamp = self.stamp_time(event.tsval, tick);
        let bucket = self.bucket_of(event.tap)?;
        bucket.high = bucket.high.min(event.tap.left(floor) - stamp);
        if cause > TapTime::MIN {
            bucket.low = bucket.low.max(cause.at_stack() - stamp - tick);
        }
        Some(TapTime((bucket.number + 1) * BUCKET_NS))
    }

    /// The bucket of `tap`, a new one if it is later than all; `None` if it is long gone.
    fn bucket_of(&mut self, tap: TapTime) -> Option<&mut Bucket> {
        let near = self.buckets.len().checked_sub(1);
        let near = near.filter(|at| is_in(tap, self.buckets[*at].number));
        // Nearly all fall into the newest, which is found without a division.
        if let Some(newest) = near {
            return self.buckets.get_mut(newest);
        }
        let number = tap.0.div_euclid(BUCKET_NS);
        if self.buckets.back().is_none_or(|b| b.number < number) {
            if self.buckets.len() == 64 {
                self.buckets.pop_front();
            }
            self.buckets.push_back(Bucket { number, low: StackTime::MIN, high: StackTime::MAX });
        }
        self.buckets.iter_mut().rev().find(|b| b.number == number)
    }

    /// When the tick of `event`'s timestamp, which passed at `tap`, began and ended at the stack, in
    /// time of the tap less its distance; `None` where the map is not known. `near` keeps the map
    /// between calls with events of about one time, as long as nothing is learnt.
    #[inline]
    pub(crate) fn tick_of(
        &self,
        event: &Event,
        tap: TapTime,
        near: &mut NearMap,
    ) -> Option<(StackTime, StackTime)> {
        let tick = self.tick?;
        if !event.has(TS) {
            return None;
        }
        if near.0.is_none_or(|map| !is_in(tap, map.number)) {
            let number = tap.0.div_euclid(BUCKET_NS);
            near.0 = Some(Map { number, base: self.base(number, tick) });
        }
        let start = near.0?.base? + self.stamp_time(event.tsval, tick);
        Some((start, start + tick))
    }

    /// The map's base in bucket `number` and its neighbours, where the bounds meet.
    fn base(&self, number: i64, tick: i64) -> Option<StackTime> {
        let near = self.buckets.iter().rev().skip_while(|b| b.number > number + 1);
        let (mut low, mut high) = (StackTime::MIN, StackTime::MAX);
        for bucket in near.take(3).filter(|b| b.number >= number - 1) {
            low = low.max(bucket.low);
            high = high.min(bucket.high);
        }
        // The bounds must meet within two ticks, or 4 ms for the finest clock, to be a map.
        let known = low > StackTime::MIN
            && high < StackTime::MAX
            && high - low <= (2 * tick).max(4_000_000)
            && high >= low - tick;
        known.then(|| high.max(low))
    }

    fn stamp_time(&self, tsval: u32, tick: i64) -> i64 {
        let first = self.first_stamp.map_or(tsval, |(v, _)| v);
        // No more than 2^31 ticks of half a second.
        i64::from(tsval.wrapping_sub(first).cast_signed()) * tick
    }

    /// The constant part of the distance from stack to tap and back; `None` without an answer.
    pub(crate) fn floor(&self) -> Option<i64> {
        self.reflexes.min()
    }

    /// How far answers that leave at once spread above the floor, by the capture's noise and the
    /// jitter of a constant delay: three quarters of the answers, but at most a quarter of the floor and
    /// 100 us, because late answers are no reflexes (a delayed ACK, an application's pause).
    pub(crate) fn spread(&self) -> i64 {
        let (Some(floor), Some(middle)) = (self.reflexes.min(), self.reflexes.quantile(750)) else {
            return 0;
        };
        (middle - floor).min(floor / 4 + 100_000)
    }

    /// Length of one tick of its timestamps.
    pub(crate) fn tick(&self) -> Option<i64> {
        self.tick
    }
}

/// Whether `tap` falls into bucket `number`.
fn is_in(tap: TapTime, number: i64) -> bool {
    (0..BUCKET_NS).contains(&(tap.0 - number * BUCKET_NS))
}

/// Whether timestamp `a` is later than `b` (RFC 7323 §5.2, modulo 2^32).
fn newer(a: u32, b: u32) -> bool {
    a.wrapping_sub(b).cast_signed() > 0
}

#[cfg(test)]
mod tests;
