//! The path of a connection: its round trip, its narrowest link with a queue, what was lost.

use serde::{Deserialize, Serialize};
use tcpwhy::report::{Connection, Direction, RepeatCause, Round, State};

use super::trace;
use crate::socket::Offered;
use crate::world::Side;

/// What a capture shows of the path.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
pub(super) struct Path {
    /// Round trip without queues.
    pub(super) rtt_ns: i64,
    /// Rate of the narrowest link on layer 2, in bits per second, if its packets show it.
    pub(super) rate: Option<u64>,
    /// The same the other way.
    pub(super) back: Option<u64>,
    /// What may wait for it, in bytes, if it overflowed.
    pub(super) queue: Option<u64>,
    /// A token bucket in place of the link.
    pub(super) bucket: Option<Bucket>,
    /// The bucket is at the sender's way out.
    pub(super) is_own: bool,
    /// Bytes on layer 2, and the payload that they carry.
    wire: (u64, u64),
}

/// A token bucket: its rate in bits per second, its credit and what may wait for it in bytes.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
pub struct Bucket {
    /// Refill.
    pub rate: u64,
    /// Credit.
    pub burst: u64,
    /// What may wait; 0 drops what finds no credit.
    pub queue: u64,
}

impl Bucket {
    /// As the language of scenarios has it.
    pub(super) fn text(&self) -> String {
        let Self { rate, burst, queue } = self;
        format!("{{ rate = \"{rate}bit\", burst = \"{burst}B\", queue = \"{queue}B\" }}")
    }
}

impl Path {
    pub(super) fn of(connection: &Connection, direction: &Direction, sender: Side) -> Self {
        let mss = u64::from(connection.mss.unwrap_or(DEFAULT_MSS)).max(1);
        let headers = if connection.client.is_ipv6() { 40 } else { 20 } + TCP_AND_ETHERNET;
        let wire = (mss + headers, mss);
        let spaced = |side: Side| {
            let sent = super::direction(connection, side)?;
            let rate = trace::spacing(sent, side, connection.vantage, mss)?;
            (rate < FASTEST).then(|| on_wire(rate, wire))
        };
        let spacing = spaced(sender);
        let rate = spacing.or(direction.bottleneck_rate_bps.map(|rate| on_wire(rate, wire)));
        let rtt_ns = round_trip(connection, direction, rate.is_some());
        Self {
            rtt_ns,
            rate,
            back: spaced(sender.peer()),
            queue: rate.and_then(|rate| queue(direction, rate, rtt_ns)),
            bucket: None,
            is_own: false,
            wire,
        }
        .without_slow_link(direction)
    }

    /// The same without a link that is slower than bursts show it to be: what seemed its pace was the window's.
    fn without_slow_link(self, direction: &Direction) -> Self {
        match self.rate {
            Some(rate) if rate < self.least_rate(direction) => {
                Self { rate: None, queue: None, ..self }
            }
            _ => self,
        }
    }

    /// The same as the rounds show it, without the spacing of packets.
    pub(super) fn of_rounds(&self, connection: &Connection, direction: &Direction) -> Self {
        let rate = direction.bottleneck_rate_bps.map(|rate| on_wire(rate, self.wire));
        let rtt_ns = round_trip(connection, direction, rate.is_some());
        let queue = rate.and_then(|rate| queue(direction, rate, rtt_ns));
        Self { rtt_ns, rate, back: None, queue, ..self.clone() }
    }

    /// The `[path]` of the scenario.
    pub(super) fn text(&self, sender: Side) -> String {
        let (way, back) = if sender == Side::Server { ("down", "up") } else { ("up", "down") };
        let rate =
            |rate: Option<u64>| rate.map_or("unlimited".to_owned(), |rate| format!("{rate}bit"));
        let queue = self.queue.map_or("endless".to_owned(), |queue| format!("{queue}B"));
        let link = match self.bucket.filter(|_| !self.is_own) {
            Some(bucket) => format!("{way}.bucket = {}\n", bucket.text()),
            None => format!("{way}.rate = \"{}\"\n{way}.queue = \"{queue}\"\n", rate(self.rate)),
        };
        let back = self.back.map(|found| format!("{back}.rate = \"{}\"\n", rate(Some(found))));
        format!(
            "\n[path]\nrtt = \"{}ns\"\nrate = \"unlimited\"\n{link}{}",
            self.rtt_ns,
            back.unwrap_or_default()
        )
    }

    /// The fastest that anything was delivered, and what the path held beyond that.
    pub(super) fn proven(&self, direction: &Direction) -> Option<(u64, u64)> {
        let rate = on_wire(direction.delivery_rate_bps?.max, self.wire);
        let held = direction.max_in_flight_bytes.saturating_sub(in_pipe(rate, self.rtt_ns));
        let burst = direction.burst_proven_bytes.unwrap_or(0);
        Some((rate.max(LEAST_RATE), on_wire(held.max(burst), self.wire).max(LEAST_QUEUE)))
    }

    /// The least rate by which the largest burst that passed without a queue (`burst_proven_bytes`) would not have stood in
    /// one: that is what lasts longer than a millisecond and a tenth of the round trip. Nothing is known of it where neither
    /// the receiver's window nor the sender's buffer held the sender for most of the time: a bucket's credit lets bursts pass
    /// as well.
    pub(super) fn least_rate(&self, direction: &Direction) -> u64 {
        let whole: i64 = State::all().map(|state| direction.time_in.get(state).0).sum();
        let buffers: i64 = [State::RwndCap, State::Sndbuf]
            .map(|state| direction.time_in.get(state).0)
            .iter()
            .sum();
        if buffers * 2 < whole {
            return 0;
        }
        let burst = on_wire(direction.burst_proven_bytes.unwrap_or(0), self.wire);
        let most_ns = u128::from((self.rtt_ns / 10).max(LEAST_QUEUE_NS).unsigned_abs());
        u64::try_from(u128::from(burst) * 8_000_000_000 / most_ns).unwrap_or(u64::MAX)
    }

    /// Buckets that would let the data through as it came, of each rate that shows: those whose credit is
    /// the most that came beyond the rate, with what may wait in them.
    pub(super) fn buckets(&self, direction: &Direction) -> Vec<Bucket> {
        let curve = trace::acked(direction);
        if curve.is_empty() {
            return Vec::new();
        }
        let sustained = trace::sustained(&curve).map(|rate| on_wire(rate, self.wire));
        let full = direction.bottleneck_rate_bps.map(|rate| on_wire(rate, self.wire));
        let mut rates: Vec<u64> = [full, sustained, self.rate].into_iter().flatten().collect();
        rates.sort_unstable();
        rates.dedup_by(|a, b| a.abs_diff(*b) * 200 < *b);
        let of = |rate: u64| {
            let burst = trace::excess(
                &curve,
                u128::from(rate) * u128::from(self.wire.1) / u128::from(self.wire.0),
            );
            let burst = on_wire(burst, self.wire) + LEAST_QUEUE;
            let waits = self.waits(direction, rate);
            BURSTS.into_iter().flat_map(move |eighths| {
                waits.clone().into_iter().map(move |queue| Bucket {
                    rate,
                    burst: burst * eighths / 8,
                    queue,
                })
            })
        };
        rates.into_iter().filter(|rate| *rate >= LEAST_RATE).flat_map(of).collect()
    }

    /// What may wait for a link of this rate: all, where nothing was lost; else what was in flight at losses
    /// beyond what the pipe holds, about; or nothing.
    pub(super) fn waits(&self, direction: &Direction, rate: u64) -> Vec<u64> {
        if lost(direction).is_empty() {
            return vec![ENDLESS];
        }
        let mut at_loss: Vec<u64> =
            direction.in_flight_at_loss.iter().map(|loss| loss.bytes).collect();
        at_loss.sort_unstable();
        let Some(middle) = at_loss.get(at_loss.len() / 2) else { return vec![0] };
        let flight = on_wire(*middle, self.wire);
        let held = flight.saturating_sub(in_pipe(rate, self.rtt_ns)).max(2 * LEAST_QUEUE);
        let mut waits = vec![0];
        waits.extend(WAITS.map(|sixteenths| held * sixteenths / 16));
        waits
    }
}

/// Bytes of payload, or a rate of them, with the headers that carry them.
fn on_wire(payload: u64, (wire, of): (u64, u64)) -> u64 {
    (u128::from(payload) * u128::from(wire)).div_ceil(u128::from(of)) as u64
}

/// Bytes under way when `rate` fills the round trip.
fn in_pipe(rate: u64, rtt_ns: i64) -> u64 {
    (u128::from(rate) * u128::from(rtt_ns.unsigned_abs()) / 8_000_000_000) as u64
}

/// The distance: the least round trip where a queue may stand, or what most rounds took.
fn round_trip(connection: &Connection, direction: &Direction, has_queue: bool) -> i64 {
    let clear = |round: &&Round| !is_full(round.limited_by);
    let mut of_rounds: Vec<i64> =
        direction.rounds.iter().filter(clear).filter_map(|round| round.rtt_ns).collect();
    of_rounds.sort_unstable();
    let median = of_rounds.get(of_rounds.len() / 2).copied().filter(|_| !has_queue);
    let least = [median, direction.rtt.min_ns, connection.handshake_rtt_ns];
    least.into_iter().flatten().find(|ns| *ns > 0).unwrap_or(0)
}

const fn is_full(state: State) -> bool {
    matches!(
        state,
        State::BandwidthSelfQueue
            | State::BandwidthExternal
            | State::BandwidthPolicer
            | State::BandwidthVariable
            | State::LocalQdisc
            | State::Pacing
    )
}

/// What waited at most when the link was full: where losses come of full queues, what was in flight
/// then beyond what the pipe holds.
fn queue(direction: &Direction, rate: u64, rtt_ns: i64) -> Option<u64> {
    let pattern = direction.loss_pattern.as_deref()?;
    if pattern.kind != "congestion" {
        return None;
    }
    let mut at_loss: Vec<u64> = direction.in_flight_at_loss.iter().map(|loss| loss.bytes).collect();
    at_loss.sort_unstable();
    let middle = *at_loss.get(at_loss.len() / 2)?;
    Some(middle.saturating_sub(in_pipe(rate, rtt_ns)).max(LEAST_QUEUE))
}

/// The windows that were offered to this direction: how far each round might have gone when its
/// last segment left, and what was acknowledged then.
pub(super) fn offered(direction: &Direction) -> Offered {
    let mut sent = 0_u64;
    let points = direction.rounds.iter().filter_map(|round| {
        sent += round.bytes;
        let room = u64::try_from(round.window_room_bytes?.max(0)).ok()?;
        Some((sent.saturating_sub(round.in_flight_bytes), sent + room))
    });
    Offered::new(points)
}

/// First bytes of what was lost: of each needed retransmission, which repeats what never came. What
/// was shown needless, or a keep-alive's doing, was not lost.
pub(super) fn lost(direction: &Direction) -> Vec<u64> {
    let needed = direction.retransmissions.iter();
    let needed = needed.filter(|each| !each.spurious && REPAIRS.contains(&each.cause));
    needed.filter_map(|each| u64::try_from(each.seq).ok()).collect()
}

/// Whether losses show a full queue or a policer, which drop what is too much: they follow the flight, or most
/// of them lie in long rows, which chance does not make.
pub(super) fn losses_follow_load(direction: &Direction) -> bool {
    let Some(pattern) = direction.loss_pattern.as_deref() else { return false };
    let [.., long, longer] = pattern.bursts;
    pattern.kind == "congestion"
        || direction.time_in.get(State::BandwidthPolicer).0 > 0
        || (long + longer) * 2 > direction.events.lost
}

/// Causes of retransmissions that repair losses.
const REPAIRS: [RepeatCause; 3] = [RepeatCause::Fast, RepeatCause::Rto, RepeatCause::Tlp];

/// Losses in a million segments.
pub(super) fn loss(direction: &Direction) -> u32 {
    let lost = lost(direction).len() as u64 * 1_000_000;
    lost.checked_div(direction.segments).map_or(0, |share| share.min(500_000) as u32)
}

/// TCP header with timestamps, Ethernet header.
const TCP_AND_ETHERNET: u64 = 32 + 14;

/// Where no MSS was seen: Ethernet's, with timestamps.
pub(super) const DEFAULT_MSS: u32 = 1448;

/// Slower links are none. Ours.
const LEAST_RATE: u64 = 1000;

/// What comes faster was not spaced by a link. Ours: packets of 1500 bytes within half a microsecond.
const FASTEST: u64 = 20_000_000_000;

/// Credits that are tried, in eighths of what came beyond the rate.
const BURSTS: [u64; 3] = [8, 7, 9];

/// Queues that are tried, in sixteenths of what waited at losses.
const WAITS: [u64; 5] = [16, 14, 18, 12, 22];

/// The largest that the language of scenarios takes.
const ENDLESS: u64 = 1 << 30;

/// A shorter wait is no queue (limits-method section 6).
const LEAST_QUEUE_NS: i64 = 1_000_000;

/// A queue holds a packet at least.
const LEAST_QUEUE: u64 = 1514;
