//! One connection in capture order: raw segments in, unwrapped events out.
//!
//! Sequence numbers become 64-bit offsets from the first data byte (or from the first number
//! seen, where the capture starts midway), so no later stage thinks about wrap. Copies are
//! dropped, small disorder of the capture's clock is mended, the handshake and the options that
//! fix units (scale, MSS, timestamps) are remembered. Everything about *time at the sender*
//! happens later, in `measure`, which takes the events in chunks.

use crate::clocks::TapTime;
use crate::offsets::Offset;
use core::net::SocketAddr;

use super::copies::{Copies, RECENT, Spot, met_again_after};
use super::event::{self, Block, Event, Side};
use super::facts::Facts;
use super::gathered::Gathered;
use super::next::Next;
use super::side::Handshake;
use crate::report::{End, Reset};
use crate::wire::{Flags, Head, Segment};
use tcpwhy_words::units::{Seq, Time};

/// Capture clocks that step back by no more than this are mended by sorting (limits-method section
/// 2). Ours: not measured.
const REORDER_NS: i64 = 1_000_000;
/// No connection is followed longer than 104 days: a hundred times this still fits the numbers.
pub(super) const LONGEST_NS: i64 = 1 << 53;

/// SACK blocks that fit into a header (RFC 2018 §3).
const MOST_BLOCKS: usize = 4;

/// One connection.
#[cfg_attr(test, expect(clippy::struct_excessive_bools, reason = "independent facts"))]
#[derive(Debug)]
pub(crate) struct Flow {
    /// What its packets say of it as a whole.
    pub(crate) facts: Facts,
    /// Events that the analysis has not been given yet.
    pub(crate) gathered: Gathered,
    /// The last that it was given: the next may be copies of them.
    earlier: Gathered,
    pub(super) copies: Copies,
    pub(super) gap_pending: bool,
    /// Where each side's next segment goes on.
    pub(super) next: [Next; 2],
    /// Whether the shard has put it in its queue of closed connections.
    pub(crate) lingering: bool,
    /// Whether the analysis was given some of its events.
    pub(crate) handed_on: bool,
    /// Never take the short way, for the test that holds both against each other.
    #[cfg(test)]
    pub(crate) long_way: bool,
}

impl Flow {
    /// The connection that `segment` opens or that the capture meets midway.
    pub(crate) fn new(segment: &Segment<'_>) -> Self {
        Self {
            facts: Facts::new(segment),
            gathered: Gathered::default(),
            earlier: Gathered::default(),
            copies: Copies::default(),
            gap_pending: false,
            next: Default::default(),
            lingering: false,
            handed_on: false,
            #[cfg(test)]
            long_way: false,
        }
    }

    /// Starts anew as [`Flow::new`] does, and keeps the room for events.
    pub(crate) fn renew(&mut self, segment: &Segment<'_>) {
        let mut gathered = core::mem::take(&mut self.gathered);
        gathered.clear();
        *self = Self { gathered, ..Self::new(segment) };
    }

    /// Whether `segment` cannot belong to this connection any more: its tuple is used anew.
    pub(crate) fn is_reused_by(&self, segment: &Segment<'_>) -> bool {
        if !segment.flags.has(Flags::SYN) {
            return false;
        }
        let side = self.side_of(segment);
        let other = &self.facts.sides[1 - side];
        match self.facts.sides[side].isn {
            Some(isn) => isn != segment.seq,
            // Met midway, then a SYN; or a SYN from the side that had only answered so far.
            None if segment.flags.has(Flags::ACK) => {
                // With Fast Open it acknowledges what the SYN carried too, or just the SYN (RFC 7413).
                let upto = i32::try_from(other.syn_payload).unwrap_or(i32::MAX).saturating_add(1);
                let answers = |isn| (1..=upto).contains(&segment.ack.since(isn));
                !other.isn.is_some_and(answers) && self.facts.packets > 0
            }
            None => self.facts.sides[side].reference.is_some() || other.isn.is_none(),
        }
    }

    /// Whether nothing but the beginning of a handshake was ever seen.
    pub(crate) fn is_half_open(&self) -> bool {
        !self.handed_on
            && self.facts.packets < 12
            && self.gathered.events.iter().all(|e| e.bits & (event::SYN | event::RST) != 0)
    }

    /// Which side sent `segment`.
    pub(crate) fn side_of(&self, segment: &Segment<'_>) -> Side {
        Side::from(!segment.is_from(&self.facts.endpoints[0]))
    }

    /// Packets are missing here that the capture saw.
    pub(crate) fn gap(&mut self) {
        self.close_next();
        self.gap_pending = true;
    }

    /// A device said of a segment of `from` that it is too large for the next hop.
    pub(crate) fn too_big(&mut self, from: SocketAddr, time: Time) {
        let side = Side::from(from != self.facts.endpoints[0]);
        let tap = self.tap_of(time);
        self.copies.expect_repeats(side, tap);
    }

    /// Takes the next segment in capture order, which `side` sent.
    pub(crate) fn push(&mut self, side: Side, segment: &Segment<'_>) {
        if segment.options.sack_count > 0 || !self.goes_on(side, &Head::of(segment)) {
            self.close_next();
            self.push_any(side, segment);
            self.open_next();
        }
    }

    fn push_any(&mut self, side: Side, segment: &Segment<'_>) {
        let mut event = self.unwrap(side, segment);
        let spot = Spot::of(segment.ip, segment.link);
        let blocks = segment.options.sack_blocks();
        let is_old = self.copies.may_be_copy(&event);
        let met = is_old && (self.copies.is_remembered(&event) || self.has_met(&event, blocks));
        if self.copies.is_copy(&event, spot, met) {
            self.facts.duplicates += 1;
            self.facts.sides[side].copies += 1;
            self.facts.sides[side].data_copies += u64::from(event.len > 0);
            return;
        }
        self.copies.remember(&event);
        if core::mem::take(&mut self.gap_pending) {
            event.bits |= event::AFTER_GAP;
        }
        self.facts.packets += 1;
        self.facts.last_frame = segment.frame;
        self.note_side(side, segment, &event);
        if self.facts.sides[side].is_damaged(segment) {
            event.bits |= event::CORRUPT;
        }
        if self.facts.handshake.ack.is_some() {
            let last = self.facts.peers.last(1);
            let spoke =
                last.is_some_and(|last| last.next_seq > Offset::FIRST || last.ack > Offset::FIRST);
            let sent = self.facts.peers.last(0).map_or(Offset::FIRST, |last| last.next_seq);
            self.facts.untaken.push(side, &event, (sent, spoke));
        }
        if self.facts.peers.push(&event, self.scaled_window(side, &event)) {
            event.bits |= event::PROBE;
        }
        if event.len > 0 {
            self.read_payload(side, &event, (segment.payload, is_old));
        }
        self.store(event, blocks);
    }

    /// Reads what is in clear of the captured payload of `event`; `is_old` if it brings nothing new.
    fn read_payload(&mut self, side: Side, event: &Event, (payload, is_old): (&[u8], bool)) {
        let Facts { tls, failures, .. } = &mut self.facts;
        if tls.is_open() {
            tls.push(side, event, payload);
            if let Some(alert) = tls.take_alert() {
                failures.note(side, event, alert);
            }
        }
        if !is_old && event.is_data() {
            failures.push(side, event, payload);
        }
    }

    /// Whether one of the last packets was just like `event` with its SACK blocks.
    fn has_met(&mut self, event: &Event, blocks: &[(Seq, Seq)]) -> bool {
        let Some(age) = self.age_of_copy(event, blocks) else { return false };
        if self.copies.is_expected_repeat(event, age) {
            return false;
        }
        if self.copies.are_from_far(age) {
            let before = self.gathered.backwards().chain(self.earlier.backwards());
            self.copies.begin_remembering(before.map(|(event, _)| event).take(RECENT));
        }
        true
    }

    /// How long `event` came behind one of the last packets that was just like it.
    fn age_of_copy(&self, event: &Event, blocks: &[(Seq, Seq)]) -> Option<i64> {
        let unwrapped = self.unwrapped(event.side(), blocks);
        let mut back = 0;
        for gathered in [&self.gathered, &self.earlier] {
            let age_behind = |old: Event| {
                let theirs = gathered.blocks(&old).iter().copied();
                met_again_after(&old, event).filter(|_| theirs.eq(unwrapped.clone()))
            };
            for run in gathered.runs().rev() {
                // A run of the other side, which most are, is passed over at once.
                let is_own = run.head.side() == event.side();
                if is_own
                    && let Some(age) = run.events().rev().take(RECENT - back).find_map(age_behind)
                {
                    return Some(age);
                }
                back += run.len();
                if back >= RECENT {
                    return None;
                }
            }
        }
        None
    }

    /// SACK blocks of a segment of `side` as offsets of the other side's data.
    fn unwrapped(&self, side: Side, blocks: &[(Seq, Seq)]) -> impl Iterator<Item = Block> + Clone {
        let reference = self.facts.sides[1 - side].reference;
        blocks.iter().filter_map(move |(left, right)| {
            let (at, len) = (place(reference, *left), right.since(*left));
            (len > 0).then(|| (at, at + i64::from(len)))
        })
    }

    fn unwrap(&mut self, side: Side, segment: &Segment<'_>) -> Event {
        let flags = segment.flags;
        let mut bits = flags.0 & event::FLAGS;
        if side == 1 {
            bits |= event::FROM_SERVER;
        }
        let syn = i64::from(flags.has(Flags::SYN));
        if syn == 1 && self.facts.sides[side].isn.is_none() {
            self.facts.sides[side].isn = Some(segment.seq);
            self.facts.sides[side].reference = Some((segment.seq, Offset::FIRST - 1));
        }
        // A payload on a SYN (Fast Open) starts one after the SYN's own number.
        let seq = if flags.has(Flags::RST) && !flags.has(Flags::ACK) {
            place(self.facts.sides[side].reference, segment.seq)
        } else {
            advance(&mut self.facts.sides[side].reference, segment.seq, segment.payload_len)
        } + syn;
        let ack = if flags.has(Flags::ACK) {
            advance(&mut self.facts.sides[1 - side].reference, segment.ack, 0)
        } else {
            Offset::FIRST
        };
        let (tsval, tsecr) = segment.options.timestamps.unwrap_or_default();
        if segment.options.timestamps.is_some() {
            bits |= event::TS;
        }
        if segment.ip.id.is_some() {
            bits |= event::ID;
        }
        Event {
            tap: self.tap_of(segment.time),
            frame: segment.frame,
            seq,
            ack,
            tsval,
            tsecr,
            len: segment.payload_len,
            interface: Spot::of(segment.ip, segment.link).interface(),
            window: segment.window,
            id: segment.ip.id.unwrap_or_default(),
            bits,
            ..Event::default()
        }
    }

    /// Capture time `at`, relative. Clocks centuries apart are damage; what is left of them must not
    /// overflow later sums.
    fn tap_of(&self, at: Time) -> TapTime {
        TapTime(at.since(self.facts.start).0.clamp(-LONGEST_NS, LONGEST_NS))
    }

    fn note_side(&mut self, side: Side, segment: &Segment<'_>, event: &Event) {
        let info = &mut self.facts.sides[side];
        if segment.ip.ttl.is_some() && info.ttl != segment.ip.ttl {
            info.ttl_varies |= info.ttl.is_some();
            info.ttl = segment.ip.ttl;
        }
        info.note_direction(segment.link.direction, 1);
        info.timestamps |= event.has(event::TS);
        info.note_data(event.len, 1, u32::from(!event.has(event::PSH)));
        if event.len == 0 && event.bits & (event::SYN | event::FIN | event::RST) == 0 {
            info.bare_to = info.bare_to.max(event.seq);
            if !segment.link.seq_unshown {
                info.bare_tap = Some(event.tap);
            }
        }
        if event.bits & (event::SYN | event::FIN | event::RST) != 0 {
            self.note_begin_or_end(side, segment, event);
        }
        let is_ack = side == 0 && event.has(event::ACK) && !event.has(event::SYN);
        if is_ack && self.facts.handshake.awaits_ack() {
            self.facts.handshake.ack = Some(event.tap);
        }
    }

    /// Takes down what a segment with SYN, FIN or RST tells.
    #[inline(never)]
    fn note_begin_or_end(&mut self, side: Side, segment: &Segment<'_>, event: &Event) {
        // What both agreed on holds for good.
        let is_agreed = self.facts.handshake.ack.is_some();
        let knows_syn = self.facts.sides[1 - side].isn.is_some();
        let info = &mut self.facts.sides[side];
        if event.has(event::SYN) {
            if !is_agreed {
                info.syn = Some(segment.options);
                info.syn_window = segment.window;
            }
            info.syns += 1;
            info.syn_payload = info.syn_payload.max(segment.payload_len);
            info.syn_ece = segment.flags.has(Flags::ECE);
            if event.has(event::ACK) && knows_syn {
                // The SYN's own number is before offset 0 (RFC 7413 section 4.2.2).
                info.syn_acked = Some((event.ack - Offset::FIRST).clamp(0, 1 << 16) as u32);
            }
            let handshake = &mut self.facts.handshake;
            let seen = if event.has(event::ACK) {
                handshake.on_syn_ack(event);
                &mut handshake.syn_ack
            } else {
                handshake.on_syn(event);
                &mut handshake.syn
            };
            if !is_agreed {
                *seen = Some(event.tap);
            }
        }
        if event.has(event::FIN) {
            let (times, packets) = info.fins;
            let goes_on = times > 0 && packets + 1 == self.facts.packets;
            info.fins = (if goes_on { times + 1 } else { 1 }, self.facts.packets);
        }
        if event.has(event::FIN) && info.fin_at.is_none() {
            info.fin_at = Some(event.end());
            info.fin_tap = Some(event.tap);
            self.facts.end = if self.facts.end == End::Rst { End::Rst } else { End::Fin };
        }
        if event.has(event::RST) {
            self.facts.end = End::Rst;
            if self.facts.reset.is_none() {
                self.facts.reset = Some(Box::new(self.reset_of(side, event)));
            }
        }
        if event.has(event::SYN) && !is_agreed {
            self.facts.shifts = self.agreed_shifts();
        }
    }

    /// A reset of `side`, before it counts among what the sides sent.
    fn reset_of(&self, side: Side, event: &Event) -> Reset {
        let unacked = |at: Side| {
            let [sent, got] = [self.facts.peers.last(at)?, self.facts.peers.last(1 - at)?];
            let own = if side != at && event.has(event::ACK) { event.ack } else { got.ack };
            Some((sent.next_seq - got.ack.max(own)).max(0) as u64)
        };
        Reset {
            by: ["client", "server"][side].into(),
            at_ns: event.tap.0,
            frame: event.frame,
            after_fin: [0, 1].map(|at| self.facts.sides[at].fin_at.is_some()),
            unacked_bytes: [0, 1].map(|at| unacked(at).unwrap_or(0)),
            refused_syn: self.refused_syn(side),
        }
    }

    /// The number of the SYN that the server acknowledged and the client of a connection that was never opened
    /// resets: Linux answers so what no socket of its asked for (RFC 9293 section 3.5.2).
    fn refused_syn(&self, side: Side) -> Option<u32> {
        let Handshake { syn_ack, ack, .. } = self.facts.handshake;
        let (acked, offset) = self.facts.sides[0].reference?;
        let is_unopened = ack.is_none() && !self.facts.carries_data();
        // The first byte behind the SYN is at 0.
        (side == 0 && syn_ack.is_some() && is_unopened)
            .then(|| acked.0.wrapping_sub((offset - Offset::FIRST) as u32).wrapping_sub(1))
    }

    fn store(&mut self, mut event: Event, blocks: &[(Seq, Seq)]) {
        if !blocks.is_empty() {
            let mut unwrapped = [Block::default(); MOST_BLOCKS];
            let mut count = 0;
            for (place, block) in unwrapped.iter_mut().zip(self.unwrapped(event.side(), blocks)) {
                *place = block;
                count += 1;
            }
            self.gathered.keep_blocks(&mut event, &unwrapped[..count]);
        }
        let Self { facts, gathered, earlier, .. } = self;
        if event.tap >= facts.last_tap {
            facts.last_tap = event.tap;
            gathered.push(event);
        } else if facts.last_tap - event.tap <= REORDER_NS {
            event.tap = event.tap.max(earlier.last_tap().unwrap_or_default());
            gathered.insert(event);
        } else {
            // The capture's clock stepped back: the time does not move until the clock has caught up.
            event.tap = facts.last_tap;
            gathered.push(event);
        }
    }

    /// Hands on what was gathered; `room` is for what comes next.
    pub(crate) fn hand_on(&mut self, room: Gathered) -> Gathered {
        self.handed_on = true;
        let gathered = core::mem::replace(&mut self.gathered, room);
        self.gathered.go_on_from(&gathered);
        self.earlier.keep_last(RECENT, &gathered);
        gathered
    }

    /// The shifts that both SYNs agree on.
    fn agreed_shifts(&self) -> Option<[u8; 2]> {
        let [client, server] = self.facts.sides.each_ref().map(|side| side.syn);
        let syns = [client?, server?];
        // RFC 7323 §2.3: both must offer it, and a shift above 14 counts as 14.
        if syns.iter().any(|syn| syn.window_scale.is_none() && !syn.incomplete) {
            return Some([0; 2]);
        }
        let [client, server] = syns.map(|syn| syn.window_scale);
        Some([client?.min(14), server?.min(14)])
    }

    fn scaled_window(&self, side: Side, event: &Event) -> Option<i64> {
        let shift = if event.has(event::SYN) { Some(0) } else { self.facts.window_shift(side) };
        shift.map(|s| i64::from(event.window) << s)
    }
}

/// Offset of `seq`, which moves the reference forward when it is new.
fn advance(reference: &mut Option<(Seq, Offset)>, seq: Seq, len: u32) -> Offset {
    let (at, offset) = reference.unwrap_or((seq, Offset::FIRST));
    let here = offset + i64::from(seq.since(at));
    let end = here + i64::from(len.min(1 << 20));
    // A number far ahead of all others is damage or an attack, not progress; windows end at 2^30
    // (RFC 7323 §2.3).
    if reference.is_none() || (end > offset && end - offset <= 1 << 30) {
        *reference = Some((Seq(at.0.wrapping_add((end - offset) as u32)), end));
    }
    here
}

/// Offset of `seq` without moving the reference.
fn place(reference: Option<(Seq, Offset)>, seq: Seq) -> Offset {
    reference.map_or(Offset::FIRST, |(at, offset)| offset + i64::from(seq.since(at)))
}
