//! When the link was busy: every gap between departures held against the link's rate.
//!
//! A link that works whenever a packet waits (Lindley 1952) was busy throughout a gap whose first packet had been sent
//! before the last one left, if the gap is no longer than what was sent in it takes. Losses count as sent: an empty
//! queue does not overflow.

use super::departures::Gap;
use super::slopes::Agreed;

/// A gap may be longer than its work by so many packets: an ACK answers every second segment (RFC 5681 section
/// 4.2), and a token bucket's credit is about as much.
const SLACK_PACKETS: f64 = 2.0;
/// The share of what is told of delays, or came out dispersed, that proves a link: more than not.
const PROOF: f64 = 0.5;
/// A link is full where it worked for so much of the time: no change gains more than a tenth.
const FULL_SHARE: f64 = 0.9;

/// What the gaps between departures say of the link.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Busy {
    /// Rate in bits per second on the wire, with Ethernet's headers: best, and the quartiles of what shows it.
    pub(crate) rate_bps: [f64; 3],
    /// It varied by up to 30 %, or others had a part of it.
    pub(crate) varies: bool,
    /// For how long it was busy, and from the first departure to the last.
    pub(crate) worked_ns: i64,
    pub(crate) whole_ns: i64,
    /// How long it took for all that was delivered.
    pub(crate) floor_ns: i64,
    /// When it was full for a round trip and more, on the tap's clock.
    pub(crate) full: Vec<(i64, i64)>,
    /// Lost packets that took no turn on it (its queue had no room, or they never came to it), and that did.
    pub(crate) lost: [f64; 2],
}

/// A gap on the departures' own clock.
#[derive(Clone, Copy, Debug)]
struct Stretch {
    from: f64,
    to: f64,
    first: f64,
    last: f64,
    gap: Gap,
}

impl Stretch {
    fn time(&self) -> f64 {
        self.to - self.from
    }

    /// Whether its first packet stood in the queue when the one before it left.
    fn is_causal(&self) -> bool {
        self.first <= self.from
    }
}

/// What `gaps` say, if they prove that what they agree on is a link's rate; `least` is the least round trip, with the
/// bytes of the packet that made it, and `largest` the largest packet on the wire.
pub(super) fn measure(
    gaps: &[Gap],
    agreed: &Agreed,
    (least, bytes): (i64, u32),
    largest: u32,
    lost: &[u64],
) -> Option<Busy> {
    let per = 1.0 / agreed.rate;
    let packet = f64::from(largest) * per;
    // A packet leaves when its own turn is over.
    let base = (least as f64 - f64::from(bytes) * per).max(0.0);
    let stretches = stretches(gaps, base, per);
    let queued = explained(&stretches, base, per, packet);
    if agreed.dispersed.is_none_or(|share| share < PROOF) && queued < PROOF {
        return None;
    }
    let slack = SLACK_PACKETS * packet;
    let spans: Vec<(f64, f64)> =
        stretches.iter().map(|stretch| span(stretch, per, slack)).collect();
    let whole: f64 = stretches.iter().map(Stretch::time).sum();
    let work: f64 = gaps.iter().map(|gap| f64::from(gap.work)).sum();
    let busy: f64 = joined(&spans, 0.0).iter().map(|run| run.1 - run.0).sum();
    // Short trains of a few packets show what they left their host with.
    if busy < base {
        return None;
    }
    let bits = |rate: f64| rate * 8e9;
    Some(Busy {
        rate_bps: [agreed.low.min(agreed.rate), agreed.rate, agreed.high.max(agreed.rate)]
            .map(bits),
        varies: agreed.varies,
        worked_ns: busy as i64,
        whole_ns: whole as i64,
        floor_ns: (work * per) as i64,
        full: full(&spans, base, slack, packet),
        lost: places(&stretches, per, lost),
    })
}

/// The gaps on the departures' clock. An ACK can be late and never early, so what left later bounds what left before:
/// that undoes ACKs that came together.
fn stretches(gaps: &[Gap], base: f64, per: f64) -> Vec<Stretch> {
    let stretch = |gap: &Gap| Stretch {
        from: gap.from as f64 - base,
        to: gap.to as f64 - base,
        first: gap.first as f64,
        last: gap.last as f64,
        gap: *gap,
    };
    let mut all: Vec<Stretch> = gaps.iter().map(stretch).collect();
    for at in (1..all.len()).rev() {
        let most = (all[at].to - f64::from(all[at].gap.work) * per).max(all[at - 1].last);
        if all[at - 1].to > most {
            (all[at - 1].to, all[at].from) = (most, most);
        }
    }
    if let Some(first) = all.first_mut() {
        first.from = first.from.min(first.to - f64::from(first.gap.work) * per);
    }
    all
}

/// How much of the packets' delays the queue of this flow alone explains at this rate: 1 all, 0 or less nothing. The
/// model starts anew from what was measured once a round trip.
fn explained(stretches: &[Stretch], base: f64, per: f64, packet: f64) -> f64 {
    let (mut rest, mut all) = (0.0, 0.0);
    let mut anchor: Option<f64> = None;
    let mut left = 0.0_f64;
    for stretch in stretches {
        if anchor.is_none_or(|anchor| stretch.from - anchor >= base) {
            (left, anchor) = (stretch.from, Some(stretch.from));
        }
        let Gap { work, sent, packets, .. } = stretch.gap;
        let last = f64::from(work) / f64::from(packets.max(1)) * per;
        // Lost packets took no turn that is known of.
        let turns = if sent == work { f64::from(work) * per } else { last };
        let first = if sent == work { stretch.first } else { stretch.last };
        left = (left.max(first) + turns).max(stretch.last + last);
        let (delay, model) = ((stretch.to - stretch.last).max(0.0), left - stretch.last);
        all += (delay - packet).abs();
        rest += (delay - model).abs();
    }
    if all > 0.0 { 1.0 - rest / all } else { 0.0 }
}

/// When the link worked in a gap.
fn span(stretch: &Stretch, per: f64, slack: f64) -> (f64, f64) {
    let [work, sent] = [stretch.gap.work, stretch.gap.sent].map(|bytes| f64::from(bytes) * per);
    if stretch.is_causal() && stretch.time() <= sent + slack {
        return (stretch.from, stretch.to);
    }
    // It was idle until the first came, if that came late; else it stood still at the end of its work.
    let from = stretch.first.max(stretch.from);
    let to = if stretch.gap.sent == stretch.gap.work { from + work } else { stretch.to };
    (from.max(to - sent), to.min(stretch.to).max(from))
}

/// Spans joined where they are no further apart than `gap`.
fn joined(spans: &[(f64, f64)], gap: f64) -> Vec<(f64, f64)> {
    let mut runs: Vec<(f64, f64)> = Vec::new();
    for span in spans {
        match runs.last_mut() {
            Some(last) if span.0 <= last.1 + gap => last.1 = last.1.max(span.1),
            _ => runs.push(*span),
        }
    }
    runs
}

/// Runs of a round trip or more, less the pieces of them in which the link idled for more than a tenth. A piece is a
/// round trip, and so long that two packets are no tenth of it.
fn full(spans: &[(f64, f64)], base: f64, slack: f64, packet: f64) -> Vec<(i64, i64)> {
    let worked = joined(spans, 0.0);
    let piece = base.max(packet * SLACK_PACKETS / (1.0 - FULL_SHARE));
    let mut found: Vec<(i64, i64)> = Vec::new();
    let mut first = 0;
    for (from, to) in joined(spans, slack).into_iter().filter(|run| run.1 - run.0 >= base) {
        let pieces = ((to - from) / piece).max(1.0).floor();
        let length = (to - from) / pieces;
        for number in 0..pieces as usize {
            let begin = from + length * number as f64;
            let end = begin + length;
            while worked.get(first).is_some_and(|span| span.1 <= begin) {
                first += 1;
            }
            let within = worked[first..].iter().take_while(|span| span.0 < end);
            let busy: f64 = within.map(|span| span.1.min(end) - span.0.max(begin)).sum();
            if busy < FULL_SHARE * length || length <= 0.0 {
                continue;
            }
            match found.last_mut() {
                Some(last) if begin as i64 - last.1 <= 1 => last.1 = end as i64,
                _ => found.push((begin as i64, end as i64)),
            }
        }
    }
    found
}

/// How many of the lost packets never took their turn on the link, and how many did and were lost behind it: those
/// before the first departure and after the last are not told.
fn places(stretches: &[Stretch], per: f64, lost: &[u64]) -> [f64; 2] {
    let mut places = [0.0; 2];
    for number in lost {
        let behind = stretches.partition_point(|stretch| stretch.gap.number <= *number);
        let Some(stretch) = behind.checked_sub(1).and_then(|at| stretches.get(at)) else {
            continue;
        };
        let Gap { work, sent, number: first, chain, .. } = stretch.gap;
        if number - first >= u64::from(chain) || sent <= work {
            continue;
        }
        let room = stretch.time() - f64::from(work) * per;
        // An empty queue does not overflow.
        let took = if stretch.is_causal() { room / (f64::from(sent - work) * per) } else { 1.0 };
        let took = took.clamp(0.0, 1.0);
        places[0] += 1.0 - took;
        places[1] += took;
    }
    places
}

#[cfg(test)]
mod tests {
    use super::*;

    /// One byte takes so many nanoseconds.
    const PER: f64 = 100.0;
    const PACKET: u32 = 1_000;
    const TURN: i64 = 100_000;
    const BASE: i64 = 1_000_000;
    const LEAST: (i64, u32) = (BASE + TURN, PACKET);

    fn agreed(dispersed: Option<f64>) -> Agreed {
        Agreed { rate: 1.0 / PER, low: 1.0 / PER, high: 1.0 / PER, varies: false, dispersed }
    }

    /// A gap of one packet from one departure to the next, which was sent at `first`.
    fn gap(from: i64, to: i64, first: i64) -> Gap {
        let (from, to) = (from + BASE, to + BASE);
        let (work, sent, packets, chain) = (PACKET, PACKET, 1, 1);
        let number = ((from - BASE) / TURN) as u64;
        Gap { from, to, first, last: first, work, sent, packets, chain, number }
    }

    fn measured(gaps: &[Gap]) -> Busy {
        measure(gaps, &agreed(Some(1.0)), LEAST, PACKET, &[41]).expect("a link")
    }

    #[test]
    fn a_link_with_packets_waiting_is_busy_and_full() {
        let gaps: Vec<Gap> = (0..40).map(|n| gap(n * TURN, (n + 1) * TURN, 0)).collect();
        let busy = measured(&gaps);
        assert_eq!(
            (busy.worked_ns, busy.whole_ns, busy.floor_ns),
            (40 * TURN, 40 * TURN, 40 * TURN)
        );
        assert_eq!(busy.full, [(0, 40 * TURN)]);
    }

    #[test]
    fn a_link_that_waits_for_packets_is_busy_for_their_turns_only() {
        // Each is sent four turns after the one before it left.
        let sent = |n: i64| n * 5 * TURN + 4 * TURN;
        let gaps: Vec<Gap> =
            (0..40).map(|n| gap(n * 5 * TURN, (n + 1) * 5 * TURN, sent(n))).collect();
        let busy = measured(&gaps);
        assert_eq!(busy.worked_ns, 40 * TURN);
        assert!(busy.full.is_empty());
    }

    #[test]
    fn a_link_is_full_while_no_more_than_a_tenth_of_it_idles() {
        // Each packet is sent so much later than the one before it left.
        let late = |wait: i64| {
            let each = TURN + wait;
            let gaps: Vec<Gap> =
                (0..80).map(|n| gap(n * each, (n + 1) * each, n * each + wait)).collect();
            measured(&gaps).full.len()
        };
        assert_eq!(late(TURN / 10), 1);
        assert_eq!(late(TURN / 8), 0);
    }

    #[test]
    fn less_work_than_a_round_trip_shows_no_link() {
        let told = |turns: i64| {
            let gaps: Vec<Gap> = (0..turns).map(|n| gap(n * TURN, (n + 1) * TURN, 0)).collect();
            measure(&gaps, &agreed(Some(1.0)), LEAST, PACKET, &[]).is_some()
        };
        assert!(told(BASE / TURN) && !told(BASE / TURN - 1));
    }

    #[test]
    fn acks_that_come_together_hide_no_work() {
        // All ACKs of ten packets come when the last is due.
        let late = |n: i64| gap(n / 10 * 10 * TURN, (n / 10 + 1) * 10 * TURN, 0);
        let mut gaps: Vec<Gap> = (0..40).map(late).collect();
        let behind = gaps.iter_mut().enumerate().filter(|(at, _)| at % 10 != 0);
        behind.for_each(|(_, gap)| gap.from = gap.to);
        assert_eq!(measured(&gaps).full, [(0, 40 * TURN)]);
    }

    #[test]
    fn neither_dispersed_nor_explained_is_no_link() {
        // A paced sender: each packet leaves as it comes.
        let paced: Vec<Gap> = (0..40).map(|n| gap(n * TURN, (n + 1) * TURN, n * TURN)).collect();
        assert_eq!(measure(&paced, &agreed(None), LEAST, PACKET, &[]), None);
        let queued: Vec<Gap> = (0..40).map(|n| gap(n * TURN, (n + 1) * TURN, 0)).collect();
        assert!(
            measure(&queued, &agreed(None), LEAST, PACKET, &[]).is_some(),
            "delays that grow so"
        );
    }

    #[test]
    fn a_lost_packet_took_its_turn_or_found_no_room() {
        let with_loss = |time: i64| {
            let mut gaps: Vec<Gap> = (0..40).map(|n| gap(n * TURN, (n + 1) * TURN, 0)).collect();
            let last = gaps[39];
            gaps.push(Gap {
                from: last.to,
                to: last.to + time,
                sent: 2 * PACKET,
                chain: 2,
                number: 40,
                ..last
            });
            measured(&gaps).lost.map(|packets| packets.round() as u64)
        };
        assert_eq!(with_loss(2 * TURN), [0, 1], "the link was taken by it");
        assert_eq!(with_loss(TURN), [1, 0], "the next left at once");
    }
}
