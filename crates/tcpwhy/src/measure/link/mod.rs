//! The narrowest link that a sender's packets passed: its rate, when it was busy, and where packets were lost.
//!
//! # Method
//! Packets leave a link one after the other. Behind the tap, ACKs tell when they left ([`departures`]); before it, their
//! arrival does, and their time stamps when they were sent ([`arrivals`], [`Stamps`]). Between departures whose packets
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
//! Stretches of a long transfer are followed in this way. Between them, what came through is held against the rate that
//! they showed. If that takes nearly all of a round trip, the link was busy for all of it.
//!
//! Left out: links of the sender's own host, seen there; what carries several flows. This flow's share shows there as a
//! rate that varies.

mod arrivals;
mod busy;
mod departures;
mod even;
mod full;
mod gap;
mod places;
mod slopes;
mod stretch;
mod watch;

pub(crate) use full::Span;
pub(crate) use places::Place;

use crate::flow::event::{ACK, Block, Event, SYN, TS};
use crate::flow::run::Run;
use crate::measure::stamps::Stamps;
use crate::offsets::Offset;
use arrivals::{Arrivals, Data};
use departures::Departures;
use even::Evenness;
use gap::Terms;

use watch::Watch;

/// Packets that are followed one by one, first and then in each cycle; between them what came through is only counted and held
/// against the rate that they showed. Seldom is enough: a link that became slower is called full nowhere for that, and one that
/// became faster is followed at once. Ours: following all made a capture of 8 million packets take 1.6 times as long.
const FIRST: u32 = 1 << 15;
const AGAIN: u32 = 1 << 14;
const CYCLE: u32 = 1 << 21;
/// Packets that are counted at the least before others are followed. Ours: so a rate that comes and goes costs little.
const LEAST_COUNTED: u32 = CYCLE / 32;

/// Segments of the least MSS (`TCP_MIN_MSS`, 48 bytes) in the largest frame that is known: 512 KiB of BIG TCP.
const MOST_PIECES: i64 = (512 << 10) / 48;

/// Ethernet's header, and those of TCP with and without timestamps (RFC 9293, RFC 7323).
const ETHERNET: u32 = 14;
const TCP: u32 = 20;
const TIMESTAMPS: u32 = 12;

/// Where the tap is, seen from a sender.
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
    /// Rate in bits per second on the wire, with Ethernet's headers: the lower quartile of what shows it, best, the upper one.
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
    /// Of the first, those that found its queue at least half as long as it ever was.
    pub(crate) lost_full: f64,
    /// The same of each: the offset of its data, and where.
    pub(crate) places: Vec<(Offset, Place)>,
}

impl Busy {
    /// Of two, the one that was full for longer; of two proven ones with one rate the one before the tap, for what passes the
    /// tap at a link's rate waits for no second one, and its ACKs repeat that rate.
    fn narrowest(before: Option<Self>, behind: Option<Self>) -> Option<Self> {
        match (before, behind) {
            (Some(before), Some(behind))
                if before.full_ns >= behind.full_ns || before.is_one_with(&behind) =>
            {
                Some(before)
            }
            (before, behind) => behind.or(before),
        }
    }

    /// Whether both are proven, and the rates of what shows them overlap.
    fn is_one_with(&self, other: &Self) -> bool {
        let ([low, _, high], [other_low, _, other_high]) = (self.rate_bps, other.rate_bps);
        self.is_proven && other.is_proven && low <= other_high && other_low <= high
    }
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
    /// Packets are only counted now.
    counts: bool,
    /// What was acknowledged last while they are, and bytes on the wire for one of payload.
    acked: Offset,
    on_wire: f64,
}

impl Link {
    /// The sender's data: an event and what follows it.
    #[inline]
    pub(crate) fn on_sends(&mut self, run: Run<'_>, seen: &Seen) {
        if !run.head.is_data() {
            return;
        }
        let behind = self.packets.wrapping_sub(FIRST) % CYCLE;
        let counts = self.packets >= FIRST && behind < CYCLE - AGAIN;
        if counts != self.counts {
            self.turn(counts);
        }
        if !counts {
            self.follow(run, seen);
            return;
        }
        let packets = run.len() as u32;
        // The first packets are not followed twice.
        self.packets = self.packets.checked_add(packets).unwrap_or(FIRST);
        if seen.tap != Tap::AtSender {
            let bytes = f64::from(packets) * f64::from(run.head.len) * self.on_wire;
            if self.before.count(run.last_tap().0, bytes, true) {
                self.follow_again();
            }
        }
    }

    /// Begins to count packets, or to follow them.
    #[cold]
    fn turn(&mut self, counts: bool) {
        self.counts = counts;
        if counts {
            self.behind.settle(&mut self.departures.lost);
            self.before.settle(&mut self.arrivals.lost);
            self.departures.forget();
            self.arrivals.forget();
        } else {
            self.behind.restart();
            self.before.restart();
        }
    }

    /// Leaves out the rest of what would be counted.
    #[cold]
    fn follow_again(&mut self) {
        if self.packets.wrapping_sub(FIRST) % CYCLE >= LEAST_COUNTED {
            self.packets = FIRST + CYCLE - AGAIN;
        }
    }

    #[inline(never)]
    fn follow(&mut self, run: Run<'_>, seen: &Seen) {
        let stamps = if run.head.has(TS) { TIMESTAMPS } else { 0 };
        let headers = ETHERNET + seen.ip + TCP + stamps;
        // No frame holds more segments; what says so is not cut.
        let length = i64::from(run.head.len);
        let mss = if length > seen.mss.saturating_mul(MOST_PIECES) { length } else { seen.mss };
        let pieces = |length: u32| length.div_ceil(u32::try_from(mss).unwrap_or(u32::MAX).max(1));
        self.on_wire = 1.0 + f64::from(headers) / mss.max(1) as f64;
        for event in run.events() {
            self.packets = self.packets.saturating_add(pieces(event.len).max(1));
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
            self.departures.on_send((start, end), event.tap.0, wire);
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
        let (start, end, at, trip) = (event.seq, event.end(), event.tap.0, seen.trip);
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
        if self.counts {
            self.count_acked(event, blocks, seen);
            return;
        }
        if seen.tap != Tap::AtSender && !event.has(TS) {
            self.evenness.on_ack(event, seen.shift);
        }
        if self.departures.are_due() {
            self.depart(event, blocks, seen);
        }
    }

    /// What was acknowledged came through; behind a hole more did than that.
    #[inline]
    fn count_acked(&mut self, event: &Event, blocks: &[Block], seen: &Seen) {
        if seen.tap != Tap::AtReceiver && event.ack > self.acked {
            let bytes = (event.ack - self.acked) as f64 * self.on_wire;
            self.acked = event.ack;
            if self.behind.count(event.tap.0, bytes, blocks.is_empty()) {
                self.follow_again();
            }
        }
    }

    #[inline(never)]
    fn depart(&mut self, event: &Event, blocks: &[Block], seen: &Seen) {
        let (at, coarse) = self.left_receiver(event, seen);
        let at = at.max(self.last_ack);
        self.last_ack = at;
        if let Some((gap, waited)) = self.departures.on_ack((at, coarse), event.ack, blocks) {
            let terms = self.departures.terms();
            self.behind.push(gap, waited, &mut self.departures.lost, terms);
        }
    }

    /// When an ACK would have come if no queue had held it up on its way, and by how much that may be too late: what held
    /// the data up is the link's, and not this.
    fn left_receiver(&mut self, event: &Event, seen: &Seen) -> (i64, i64) {
        let Some(tick) = seen.ticks[1].filter(|_| event.has(TS)) else { return (event.tap.0, 0) };
        let unhindered = self.acks.unhindered(event.tap, event.tsval, tick).plus(tick);
        if unhindered < event.tap { (unhindered.0, tick) } else { (event.tap.0, 0) }
    }

    /// What is known of the link at the end; `None` where nothing shows one.
    pub(crate) fn measured(&mut self) -> Option<Busy> {
        let behind = self.behind.measured(&mut self.departures.lost, &self.evenness);
        let before = self.before.measured(&mut self.arrivals.lost, &self.evenness);
        Busy::narrowest(before.map(|busy| Busy { is_before_tap: true, ..busy }), behind)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clocks::TapTime;

    const MSS: i64 = 1_448;
    /// A packet of 1,514 bytes takes so long at 100 Mbit/s; a round trip is 20 ms.
    const TURN: i64 = 121_120;
    const TRIP: i64 = 20_000_000;

    fn seen(tap: Tap) -> Seen {
        let ticks = [Some(1_000_000); 2];
        Seen { tap, mss: MSS, ip: 20, ticks, trip: TRIP, shift: 0 }
    }

    fn data(number: i64, tap: i64, stamp: i64) -> Event {
        let tsval = (stamp / 1_000_000) as u32;
        Event {
            tap: TapTime(tap),
            seq: Offset::at(number * MSS),
            len: MSS as u32,
            tsval,
            bits: ACK | TS,
            ..Event::default()
        }
    }

    fn ack(upto: i64, tap: i64) -> Event {
        Event {
            tap: TapTime(tap),
            ack: Offset::at(upto * MSS),
            tsval: (tap / 1_000_000) as u32,
            bits: ACK | TS,
            ..Event::default()
        }
    }

    /// A window of 400 packets through the link (a round trip holds 165), at its sender's tap; `turn` tells how long a
    /// packet takes.
    fn at_sender(packets: i64, turn: impl Fn(i64) -> i64) -> Link {
        let (mut link, seen) = (Link::default(), seen(Tap::AtSender));
        let mut left = 0;
        for number in 0..packets {
            // Each packet leaves when the one 400 before it was acknowledged.
            let acked = number - 400;
            if acked < 0 {
                link.on_sends(Run::new(&data(number, 0, 0), &[]), &seen);
                continue;
            }
            left += turn(acked);
            let now = left + TRIP;
            link.on_answer(&ack(acked + 1, now), &[], &seen);
            link.on_sends(Run::new(&data(number, now, now), &[]), &seen);
        }
        link
    }

    fn rate(busy: &Busy) -> i64 {
        (busy.rate_bps[1] / 1e5).round() as i64
    }

    #[test]
    fn a_long_transfer_through_a_full_link_is_known_to_its_end() {
        let packets = i64::from(FIRST + CYCLE + CYCLE / 4);
        let mut link = at_sender(packets, |_| TURN);
        assert!(link.behind.waiting() <= 1 << 14, "what is not judged yet");
        let busy = link.measured().expect("a link");
        let whole = (packets - 400) * TURN;
        assert_eq!((rate(&busy), busy.varies, busy.is_before_tap), (1_000, false, false));
        let full: i64 = busy.full.iter().map(|span| span.1 - span.0).sum();
        assert_eq!(full, busy.full_ns);
        assert!(full * 100 >= whole * 99, "{full} of {whole}");
    }

    #[test]
    fn a_link_that_becomes_faster_is_measured_anew() {
        let change = i64::from(FIRST) + 20_000;
        let turn = |number| if number < change { TURN } else { TURN / 2 };
        let busy = at_sender(change + 100_000 + i64::from(LEAST_COUNTED), turn)
            .measured()
            .expect("a link");
        assert_eq!((rate(&busy), busy.varies), (2_000, true));
    }

    #[test]
    fn a_sender_that_leaves_the_link_idle_fills_it_nowhere() {
        // Bursts of 20 packets each 20 ms.
        let (mut link, seen) = (Link::default(), seen(Tap::AtSender));
        for number in 0..i64::from(FIRST) * 3 {
            let (burst, place) = (number / 20, number % 20);
            let sent = burst * TRIP;
            if place == 0 && burst > 0 {
                for at in 0..20 {
                    let acked = (burst - 1) * 20 + at + 1;
                    link.on_answer(&ack(acked, sent - TRIP / 2 + at * TURN), &[], &seen);
                }
            }
            link.on_sends(Run::new(&data(number, sent, sent), &[]), &seen);
        }
        let busy = link.measured().expect("its bursts show it");
        assert_eq!((rate(&busy), busy.full_ns), (1_000, 0));
    }

    #[test]
    fn arrivals_show_the_link_before_the_tap() {
        let (mut link, seen) = (Link::default(), seen(Tap::AtReceiver));
        let packets = i64::from(FIRST) * 2;
        for number in 0..packets {
            let left = number * TURN;
            let sent = (left - 200 * TURN).max(0);
            link.on_sends(Run::new(&data(number, left, sent), &[]), &seen);
        }
        let busy = link.measured().expect("a link");
        assert_eq!((rate(&busy), busy.is_before_tap, busy.is_proven), (1_000, true, true));
        assert!(busy.full_ns * 100 >= (packets - 1) * TURN * 99);
    }

    #[test]
    fn acks_that_queue_on_their_own_way_show_no_link_of_the_data() {
        // A window of 100 packets; the way back lets one ACK through in a millisecond.
        let with = |are_stamped: bool| {
            let (mut link, seen) = (Link::default(), seen(Tap::AtSender));
            let mut sent: Vec<i64> = vec![0; 100];
            let (mut left, mut came) = (0, 0);
            for number in 0..4_000 {
                if number < 100 {
                    link.on_sends(Run::new(&data(number, 0, 0), &[]), &seen);
                    continue;
                }
                let acked = number - 100;
                left = sent[acked as usize].max(left) + TURN;
                came = (left + TRIP).max(came + 1_000_000);
                let mut answer = ack(acked + 1, came);
                answer.tsval = ((left + TRIP / 2) / 1_000_000) as u32;
                answer.bits = if are_stamped { ACK | TS } else { ACK };
                link.on_answer(&answer, &[], &seen);
                link.on_sends(Run::new(&data(number, came, came), &[]), &seen);
                sent.push(came);
            }
            link.measured().map_or(0, |busy| busy.full_ns)
        };
        assert_eq!(with(true), 0);
        assert!(with(false) > 0, "nothing tells them from late data");
    }

    #[test]
    fn of_two_proven_links_with_one_rate_the_one_before_the_tap_is_the_link() {
        // Those behind the tap were full for longer: 10 s, and 9 s before it.
        let told = |proven: [bool; 2], behind: [f64; 3]| {
            let [before, behind] = [(9, proven[0], [98e6, 100e6, 101e6]), (10, proven[1], behind)]
                .map(|(full_ns, is_proven, rate_bps)| Busy {
                    is_proven,
                    rate_bps,
                    full_ns,
                    ..Busy::default()
                });
            let before = Busy { is_before_tap: true, ..before };
            Busy::narrowest(Some(before), Some(behind)).expect("two").is_before_tap
        };
        assert!(told([true; 2], [99e6, 100e6, 102e6]));
        assert!(told([true; 2], [101e6, 102e6, 103e6]), "their quartiles meet");
        assert!(!told([true; 2], [101.1e6, 102e6, 103e6]), "two links");
        assert!(!told([true; 2], [95e6, 96e6, 97.9e6]), "a slower one behind it");
        assert!(!told([false, true], [99e6, 100e6, 102e6]), "nothing proves the one before");
        assert!(!told([true, false], [99e6, 100e6, 102e6]), "or the one behind");
    }
}
