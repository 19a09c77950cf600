//! The narrowest link that a sender's packets passed: its rate, when it was busy, and where packets were lost.
//!
//! # Method
//! Packets leave a link one after the other. Behind the tap, ACKs tell when they left ([`departures`]); before it, their
//! arrival does, and their time stamps when they were sent ([`arrivals`], [`stamps`]). Between departures whose packets
//! all waited the link worked, so these show its rate, if windows of several lengths agree ([`slopes`]). It is a link's
//! and not the sender's own pace if what was sent close together came out apart, or if the queue that such a link has
//! explains the delays. Without send times nothing proves that; [`even`] has what must hold then. Every gap is held
//! against the rate: it was busy, or the sender left it idle ([`busy`], [`full`]). Lost packets had a turn on it or had
//! none ([`places`]).
//!
//! ```text
//! sender ---- link before the tap ---- tap ---- link behind the tap ---- receiver
//! ```
//!
//! A sender that paces, waits for its program or for a window leaves no packet waiting, so it shows no rate; a path that
//! only jitters shows no dispersion.
//!
//! Left out: what a long transfer sends behind its first 32,768 packets; links of the sender's own host, seen there; what
//! carries several flows, of which this one's share is told as a rate that varies.

mod arrivals;
mod busy;
mod departures;
mod even;
mod full;
mod gap;
mod places;
mod slopes;
mod stamps;
mod watch;

pub(crate) use full::Span;
pub(crate) use places::Place;

use crate::flow::event::{ACK, Block, Event, SYN, TS};
use crate::flow::run::Run;
use arrivals::{Arrivals, Data};
use departures::Departures;
use even::Evenness;
use gap::Terms;
use stamps::Stamps;
use watch::Watch;

/// Packets that are followed: of a longer transfer the first. Ours: 47 MB of data; following all made a capture of
/// 8 million packets take 1.6 times as long.
const MOST: u32 = 1 << 15;

/// Segments of the least MSS (`TCP_MIN_MSS`, 48 bytes) in the largest frame that is known: 512 KiB of BIG TCP.
const MOST_PIECES: i64 = (512 << 10) / 48;

/// Ethernet's header, and those of TCP with and without timestamps (RFC 9293, RFC 7323).
const ETHERNET: u32 = 14;
const TCP: u32 = 20;
const TIMESTAMPS: u32 = 12;

/// Where the tap stands, seen from a sender.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub(crate) enum Tap {
    AtSender,
    #[default]
    Between,
    AtReceiver,
}

/// What is known of a direction while its packets are watched.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Seen {
    pub(crate) tap: Tap,
    /// The payload of a segment, and the length of the IP header.
    pub(crate) mss: i64,
    pub(crate) ip: u32,
    /// How long a tick of the sender's and of the receiver's time stamps is.
    pub(crate) ticks: [Option<i64>; 2],
    /// The least round trip between both hosts.
    pub(crate) trip: i64,
    /// By how much the receiver's windows are scaled.
    pub(crate) shift: u8,
}

/// What the gaps between departures say of the link.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Busy {
    /// It lies before the tap, and not behind it.
    pub(crate) is_before_tap: bool,
    /// That it is a link is proven, and not only likely.
    pub(crate) is_proven: bool,
    /// Rate in bits per second on the wire, with Ethernet's headers: best, and the quartiles of what shows it.
    pub(crate) rate_bps: [f64; 3],
    /// It varied by up to 30 %, or others had a part of it.
    pub(crate) varies: bool,
    /// For how long it was busy, and from the first departure to the last.
    pub(crate) worked_ns: i64,
    pub(crate) whole_ns: i64,
    /// How long it took for all that was delivered.
    pub(crate) floor_ns: i64,
    /// When it was busy, and when it was full for a round trip and more, on the tap's clock, as if link and sender stood at
    /// the tap.
    pub(crate) at_work: Vec<Span>,
    pub(crate) full: Vec<Span>,
    pub(crate) full_ns: i64,
    /// Lost packets that took no turn on it (its queue had no room, or they never came to it), that did, and that found
    /// its queue empty.
    pub(crate) lost: [f64; 3],
    /// The same of each: the offset of its data, and where.
    pub(crate) places: Vec<(i64, Place)>,
}

/// Watches one sender's packets and the ACKs for them.
#[derive(Clone, Debug, Default)]
pub(crate) struct Link {
    departures: Departures,
    behind: Watch,
    arrivals: Arrivals,
    before: Watch,
    evenness: Evenness,
    /// The receiver's ACKs as they come to the tap.
    acks: Stamps,
    last_ack: i64,
    packets: u32,
}

impl Link {
    /// The sender's data: an event and what follows it.
    #[inline]
    pub(crate) fn on_sends(&mut self, run: Run<'_>, seen: &Seen) {
        if self.packets < MOST && run.head.is_data() {
            self.follow(run, seen);
        }
    }

    #[inline(never)]
    fn follow(&mut self, run: Run<'_>, seen: &Seen) {
        let stamps = if run.head.has(TS) { TIMESTAMPS } else { 0 };
        let headers = ETHERNET + seen.ip + TCP + stamps;
        // No frame holds more segments; what says so is not cut.
        let length = i64::from(run.head.len);
        let mss = if length > seen.mss.saturating_mul(MOST_PIECES) { length } else { seen.mss };
        for event in run.events() {
            if self.packets >= MOST {
                return;
            }
            self.packets +=
                (event.len.div_ceil(u32::try_from(mss).unwrap_or(u32::MAX).max(1))).max(1);
            if seen.tap != Tap::AtReceiver {
                self.send(&event, mss, headers);
            }
            if seen.tap != Tap::AtSender {
                self.arrive(&event, mss, headers, seen);
            }
        }
    }

    /// Data passes the tap on its way to the link.
    fn send(&mut self, event: &Event, mss: i64, headers: u32) {
        let mut start = event.seq;
        while start < event.end() {
            let end = event.end().min(start + mss);
            let wire = headers + u32::try_from(end - start).unwrap_or(u32::MAX / 2);
            self.behind.is_sent(wire);
            self.departures.on_send((start, end), event.tap, wire);
            start = end;
        }
    }

    /// Data passes the tap on its way from the link.
    fn arrive(&mut self, event: &Event, mss: i64, headers: u32, seen: &Seen) {
        let stamp = match (event.has(TS), seen.ticks[0]) {
            (true, Some(tick)) => Some((event.tsval, tick)),
            // The length of a tick is not known yet.
            (true, None) => return,
            (false, _) => None,
        };
        let packets = event.len.div_ceil(u32::try_from(mss).unwrap_or(u32::MAX).max(1)).max(1);
        let largest =
            headers + u32::try_from(mss.min(i64::from(event.len))).unwrap_or(u32::MAX / 2);
        self.before.is_sent(largest);
        self.evenness.on_data(event, mss);
        let wire = event.len.saturating_add(headers.saturating_mul(packets));
        let (start, end, at, trip) = (event.seq, event.end(), event.tap, seen.trip);
        let data = Data { start, end, at, stamp, wire, packets, mss, headers, trip };
        let tick = stamp.map(|(_, tick)| tick);
        let terms = Terms { late: 0.0, trip: trip as f64, own: 0, tick };
        if let Some((gap, waited)) = self.arrivals.on_data(&data) {
            self.before.push(gap, waited, &mut self.arrivals.lost, terms);
        }
    }

    /// What came back.
    #[inline]
    pub(crate) fn on_answer(&mut self, event: &Event, blocks: &[Block], seen: &Seen) {
        if !event.has(ACK) || event.has(SYN) || self.packets == 0 {
            return;
        }
        if seen.tap != Tap::AtSender && self.packets < MOST && !event.has(TS) {
            self.evenness.on_ack(event, seen.shift);
        }
        if self.departures.are_due() {
            self.depart(event, blocks, seen);
        }
    }

    #[inline(never)]
    fn depart(&mut self, event: &Event, blocks: &[Block], seen: &Seen) {
        let at = self.left_receiver(event, seen).max(self.last_ack);
        self.last_ack = at;
        if let Some((gap, waited)) = self.departures.on_ack(at, event.ack, blocks) {
            let terms = self.departures.terms();
            self.behind.push(gap, waited, &mut self.departures.lost, terms);
        }
    }

    /// When an ACK would have come if no queue had held it up on its way: what held the data up is the link's, and not this.
    fn left_receiver(&mut self, event: &Event, seen: &Seen) -> i64 {
        let Some(tick) = seen.ticks[1].filter(|_| event.has(TS)) else { return event.tap };
        let unhindered = self.acks.unhindered(event.tap, event.tsval, tick);
        event.tap.min(unhindered.saturating_add(tick))
    }

    /// What is known of the link at the end; `None` where nothing shows one. Of two, the one that was full for longer.
    pub(crate) fn measured(&mut self) -> Option<Busy> {
        let behind = self.behind.measured(&mut self.departures.lost, &self.evenness);
        let before = self.before.measured(&mut self.arrivals.lost, &self.evenness);
        let before = before.map(|busy| Busy { is_before_tap: true, ..busy });
        match (before, behind) {
            (Some(before), Some(behind)) if before.full_ns >= behind.full_ns => Some(before),
            (before, behind) => behind.or(before),
        }
    }
}
