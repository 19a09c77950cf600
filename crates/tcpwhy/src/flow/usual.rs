//! Segments that just go on, which nearly all are: new data or a new acknowledgement, in order, where
//! this side was always met, with nothing to tell of the connection that is not known.
//!
//! What [`Flow::push`] does for any segment comes down to moving a few numbers for these. They are
//! kept apart ([`Next`]) while nothing else comes: whatever is no such segment puts them back to
//! where they belong before it is looked at, and takes them out again behind it.

use super::connection::{Flow, LONGEST_NS};
use super::copies::{Spot, is_counted};
use super::event::{ACK, Event, FROM_SERVER, ID, PSH, Side, TS};
use super::next::Next;
use super::run::Follower;
use crate::capture::Frame;
use crate::clocks::TapTime;
use crate::wire::{Alike, Checksum, Direction, Flags, Head, Mould};
use tcpwhy_words::units::{Seq, Time};

/// Data that one side sends on and on, each frame like the one before: its segments are gathered here and
/// taken all at once ([`Flow::go_on`]) before anything else is looked at.
#[derive(Debug)]
pub(crate) struct Streaming {
    side: Side,
    /// The number of the next byte, and the payload of each frame.
    seq: Seq,
    len: u32,
    /// When the connection began, the last frame came, and from when on none may.
    start: Time,
    last: Time,
    until: Time,
    /// The first frame of the run, and from which on none may be gathered.
    first_frame: u64,
    end_frame: u64,
    followers: Vec<Follower>,
}

/// Frames that went on: how many, and when the last came.
#[derive(Clone, Copy, Debug)]
pub(crate) struct WentOn {
    pub(crate) frames: u64,
    pub(crate) last: Time,
}

impl Streaming {
    /// Takes the segments in the first of `frames`, numbered behind so many `before`, that are like `mould`
    /// and just go on.
    #[expect(clippy::inline_always, reason = "the frames are then never written to memory")]
    #[inline(always)]
    pub(crate) fn gather<'a>(
        &mut self,
        mould: &Mould,
        frames: &mut (impl Iterator<Item = Frame<'a>> + Clone),
        before: u64,
    ) -> WentOn {
        // Kept apart, so that little of it is written to memory at each frame.
        let (mould, room) = (*mould, core::mem::take(&mut self.followers));
        let gathered = room.len();
        let mut now = Self { followers: room, ..*self };
        let mut ahead = frames.clone();
        // As the first of them was met, all were.
        let are_met_alike = ahead.clone().next().is_some_and(|frame| mould.is_met_alike(&frame));
        while are_met_alike
            && let Some(alike) = ahead.next().and_then(|frame| mould.take(&frame))
            && now.take(&Alike { frame: before + alike.frame, ..alike })
        {
            *frames = ahead.clone();
        }
        *self = now;
        WentOn { frames: (self.followers.len() - gathered) as u64, last: self.last }
    }

    /// Takes the segment in a frame like the last one if it just goes on; whether it did.
    #[expect(clippy::inline_always, reason = "what the frame says is then never written to memory")]
    #[inline(always)]
    pub(crate) fn take(&mut self, alike: &Alike) -> bool {
        let goes_on = alike.seq == self.seq
            && alike.time >= self.last
            && alike.time < self.until
            && alike.frame < self.end_frame;
        if goes_on {
            self.seq = Seq(alike.seq.0.wrapping_add(self.len));
            self.last = alike.time;
            self.followers.push(Follower {
                tap: TapTime(alike.time.0 - self.start.0),
                frame: alike.frame as u32,
                id: alike.id,
                is_pushed: alike.is_pushed,
            });
        }
        goes_on
    }

    /// The room for others.
    pub(crate) fn into_room(self) -> Vec<Follower> {
        self.followers
    }
}

impl Flow {
    /// Takes the segment with `head` and no SACK blocks if it just goes on; whether it did.
    // The head is then never written to memory.
    #[inline(always)]
    pub(crate) fn goes_on(&mut self, side: Side, head: &Head) -> bool {
        const PUSHED: u16 = Flags::ACK.0 | Flags::PSH.0;
        let (next, other) = (&self.next[side], &self.next[1 - side]);
        let end = next.at + i64::from(head.payload_len);
        let newly_acked = head.ack.since(next.ack);
        let is_plain = head.flags.0 | Flags::PSH.0 == PUSHED
            && head.window != 0
            && head.link.checksum != Some(Checksum::Bad);
        let is_next = next.is_open
            && head.seq == next.seq
            && newly_acked >= 0
            && head.ack.since(other.seq) <= 0
            && head.payload_len <= 1 << 20
            && (head.payload_len > 0 && end > next.met || newly_acked > 0);
        // `tap_of` without its bounds, which such times keep.
        let tap = TapTime(head.time.0.wrapping_sub(self.facts.start.0));
        let is_in_order = head.time >= self.facts.start
            && (self.facts.last_tap..TapTime(LONGEST_NS)).contains(&tap);
        let spot = Spot::of(head.ip, head.link);
        let is_to_be_read = self.facts.failures.are_to_be_read(side, head.payload_len);
        if !is_plain || !is_next || !is_in_order || spot != next.spot || is_to_be_read {
            return false;
        }
        let fills_window =
            head.payload_len > 0 && other.room > 0 && end == other.acked + other.room;
        let room = self.facts.window_shift(side).map_or(0, |shift| i64::from(head.window) << shift);
        let mut bits = head.flags.0 & (ACK | PSH);
        bits |= if side == 1 { FROM_SERVER } else { 0 };
        bits |= if head.timestamps.is_some() { TS } else { 0 };
        bits |= if head.ip.id.is_some() { ID } else { 0 };
        let (tsval, tsecr) = head.timestamps.unwrap_or_default();
        let event = Event {
            tap,
            frame: head.frame,
            seq: next.at,
            ack: next.acked + i64::from(newly_acked),
            tsval,
            tsecr,
            len: head.payload_len,
            interface: spot.interface(),
            window: head.window,
            id: head.ip.id.unwrap_or_default(),
            bits,
            ..Event::default()
        };
        self.facts.failures.pass(side, head.payload_len);
        let next = &mut self.next[side];
        next.seq = Seq(head.seq.0.wrapping_add(head.payload_len));
        next.at = end;
        next.met = next.met.max(end);
        (next.ack, next.acked, next.window) = (head.ack, event.ack, head.window);
        next.room = room;
        self.facts.peers.counts[side].window_full += u64::from(fills_window);
        self.copies.count_new(u32::from(event.len > 0 || is_counted(&event)));
        self.note_usual(side, head.link.direction, head.link.checksum, &event);
        match self.gathered.events.last().and_then(|before| before.followed_by(&event)) {
            Some(follower) => self.gathered.go_on(&[follower]),
            None => self.gathered.push(event),
        }
        true
    }

    /// What may go on from the segment that `side` just sent, if that went on from another itself: none
    /// from time `until`, and `room` at most. They are put where the empty `followers` are.
    pub(crate) fn streaming(
        &self,
        side: Side,
        (until, room): (Time, usize),
        followers: &mut Vec<Follower>,
    ) -> Option<Streaming> {
        let head = self.gathered.events.last().filter(|head| head.run > 0)?;
        let start = self.facts.start;
        // A follower keeps the last 32 bits of its frame's number.
        let room = (room as u64).saturating_add(1);
        let end_frame =
            self.facts.last_frame.saturating_add(room).min(head.frame + u64::from(u32::MAX));
        Some(Streaming {
            side,
            seq: self.next[side].seq,
            len: head.len,
            start,
            last: Time(start.0 + self.facts.last_tap.0),
            until: until.min(Time(start.0.saturating_add(LONGEST_NS))),
            first_frame: head.frame,
            end_frame,
            followers: core::mem::take(followers),
        })
    }

    /// Takes what was gathered in `streaming`: what each segment of it would move is moved for all.
    pub(crate) fn go_on(&mut self, streaming: &mut Streaming, direction: Option<Direction>) {
        let Streaming { side, first_frame, ref followers, .. } = *streaming;
        let (count, len) = (followers.len() as u32, i64::from(streaming.len));
        let Some(last) = followers.last() else { return };
        let (next, other) = (&self.next[side], &self.next[1 - side]);
        // One of them may end where the window does.
        let to_edge = other.acked + other.room - next.at;
        let fills_window = other.room > 0
            && to_edge % len == 0
            && (1..=i64::from(count)).contains(&(to_edge / len));
        let next = &mut self.next[side];
        next.seq = streaming.seq;
        next.at += i64::from(count) * len;
        next.met = next.met.max(next.at);
        self.facts.peers.counts[side].window_full += u64::from(fills_window);
        self.copies.count_new(count);
        self.facts.packets += u64::from(count);
        self.facts.last_frame =
            first_frame + u64::from(last.frame.wrapping_sub(first_frame as u32));
        self.facts.last_tap = last.tap;
        let info = &mut self.facts.sides[side];
        info.note_direction(direction, count);
        let plain = followers.iter().filter(|follower| !follower.is_pushed).count();
        info.note_data(streaming.len, count, plain as u32);
        self.gathered.go_on(followers);
        streaming.followers.clear();
    }

    #[inline]
    fn note_usual(
        &mut self,
        side: Side,
        direction: Option<Direction>,
        checksum: Option<Checksum>,
        event: &Event,
    ) {
        self.facts.packets += 1;
        self.facts.last_frame = event.frame;
        self.facts.last_tap = event.tap;
        let info = &mut self.facts.sides[side];
        info.note_direction(direction, 1);
        match checksum {
            Some(Checksum::Good) => info.good_sums += 1,
            Some(Checksum::Offloaded) => info.open_sums += 1,
            Some(Checksum::Bad) | None => {}
        }
        info.timestamps |= event.has(TS);
        if event.len == 0 {
            info.bare_tap = Some(event.tap);
        }
        info.note_data(event.len, 1, u32::from(!event.has(PSH)));
    }

    /// Takes out what the next segments may go on from, at a time when everything is known that a
    /// segment could tell.
    pub(super) fn open_next(&mut self) {
        let tells = self.gap_pending || self.facts.tls.is_open();
        #[cfg(test)]
        let tells = tells || self.long_way;
        if tells {
            // Neither was open before.
            return;
        }
        for side in [0, 1] {
            let next = self.next_of(side);
            self.next[side] = Next { is_open: next.is_some(), ..next.unwrap_or_default() };
        }
        // A side that may not go on itself still says how far the other may.
        for side in [0, 1] {
            if let Some((seq, at)) = self.facts.sides[side].reference {
                (self.next[side].seq, self.next[side].at) = (seq, at);
            }
            if let Some(last) = self.facts.peers.last(side) {
                let next = &mut self.next[side];
                (next.acked, next.window, next.room) = (last.ack, last.window, last.scaled_window);
            }
        }
    }

    /// What `side` goes on from, if all accounts of it agree.
    fn next_of(&self, side: Side) -> Option<Next> {
        let ((seq, at), (newest, offset)) =
            (self.facts.sides[side].reference?, self.facts.sides[1 - side].reference?);
        let (spot, met, acked) = self.copies.front(side)?;
        let last = self.facts.peers.last(side)?;
        let is_shut = self.facts.peers.last(1 - side).is_some_and(|last| last.window == 0);
        let agree = last.next_seq == at && met >= at && acked == last.ack && acked <= offset;
        let is_awaited =
            self.facts.handshake.awaits_ack() && side == 0 || self.facts.untaken.awaits(side);
        let is_met_alike = spot.hops_left() == Spot::hops(self.facts.sides[side].ttl);
        let ack = Seq(newest.0.wrapping_sub((offset - acked) as u32));
        (agree && is_met_alike && !is_shut && !is_awaited).then_some(Next {
            is_open: true,
            window: last.window,
            room: last.scaled_window,
            seq,
            at,
            ack,
            acked,
            met,
            spot,
        })
    }

    /// Puts back what segments that went on have moved, and lets no more of them.
    pub(super) fn close_next(&mut self) {
        for side in [0, 1] {
            let next = self.next[side];
            if !core::mem::take(&mut self.next[side].is_open) {
                continue;
            }
            self.facts.sides[side].reference = Some((next.seq, next.at));
            self.copies.move_front(side, next.met, next.acked);
            self.facts.peers.move_on(side, next.at, next.acked, (next.window, next.room));
        }
    }
}
