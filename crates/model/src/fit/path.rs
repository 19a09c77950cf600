//! The path of a connection: its round trip, its narrowest link with a queue, what was lost.

use tcpwhy::report::{Connection, Direction, Round, State};

use crate::socket::Offered;
use crate::world::Side;

/// What a capture shows of the path.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(super) struct Path {
    /// Round trip without queues.
    pub(super) rtt_ns: i64,
    /// Rate of the narrowest link on layer 2, in bits per second, if it was full.
    pub(super) rate: Option<u64>,
    /// What may wait for it, in bytes, if it overflowed.
    queue: Option<u64>,
    /// Bytes on layer 2 for so many of payload.
    wire: (u64, u64),
}

impl Path {
    pub(super) fn of(connection: &Connection, direction: &Direction) -> Self {
        let mss = u64::from(connection.mss.unwrap_or(DEFAULT_MSS)).max(1);
        let headers = if connection.client.is_ipv6() { 40 } else { 20 } + TCP_AND_ETHERNET;
        let wire = (mss + headers, mss);
        let rate = direction.bottleneck_rate_bps.map(|rate| on_wire(rate, wire));
        let rtt_ns = round_trip(connection, direction, rate.is_some());
        Self { rtt_ns, rate, queue: rate.and_then(|rate| queue(direction, rate, rtt_ns)), wire }
    }

    /// The `[path]` of the scenario.
    pub(super) fn text(&self, sender: Side) -> String {
        let way = if sender == Side::Server { "down" } else { "up" };
        let rate = self.rate.map_or("unlimited".to_owned(), |rate| format!("{rate}bit"));
        let queue = self.queue.map_or("endless".to_owned(), |queue| format!("{queue}B"));
        format!(
            "\n[path]\nrtt = \"{}ns\"\nrate = \"unlimited\"\n{way}.rate = \"{rate}\"\n{way}.queue = \"{queue}\"\n",
            self.rtt_ns
        )
    }

    /// The fastest that anything was delivered, and what the path held beyond that.
    pub(super) fn proven(&self, direction: &Direction) -> Option<(u64, u64)> {
        let rate = on_wire(direction.delivery_rate_bps?.max, self.wire);
        let held = direction.max_in_flight_bytes.saturating_sub(in_pipe(rate, self.rtt_ns));
        let burst = direction.burst_proven_bytes.unwrap_or(0);
        Some((rate.max(LEAST_RATE), on_wire(held.max(burst), self.wire).max(LEAST_QUEUE)))
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
    let needed = needed.filter(|each| !each.spurious && REPAIRS.contains(&&*each.cause));
    needed.filter_map(|each| u64::try_from(each.seq).ok()).collect()
}

/// Causes of retransmissions that repair losses.
const REPAIRS: [&str; 3] = ["fast", "rto", "tlp"];

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

/// A queue holds a packet at least.
const LEAST_QUEUE: u64 = 1514;
