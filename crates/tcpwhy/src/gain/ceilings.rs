//! What a transfer could not be faster than.

use super::ladder::{Climb, rate_bps};
use super::removed::{LINK, LOSS};
use super::seen::{Seen, Train};
use crate::report::CeilingKind as Kind;
use crate::report::{Ceiling, Connection, Direction, Round, State, Sure};

/// The ceilings of the largest transfer of direction `at` (0: client to server), the lowest first.
pub fn ceilings(connection: &Connection, at: usize) -> Vec<Ceiling> {
    let Some(direction) = connection.directions.get(at).and_then(|each| each.as_deref()) else {
        return Vec::new();
    };
    let train = largest(connection, at);
    let Some(seen) = train.as_ref().and_then(|each| Seen::of(connection, direction, each)) else {
        return Vec::new();
    };
    let all = [link, receive_window, congestion_window, send_buffer, loss, reader, writer, initial];
    let mut found: Vec<Ceiling> = all.into_iter().filter_map(|each| each(&seen)).collect();
    found.retain(|each| each.rate_bps > 0);
    found.sort_by_key(|each| (each.rate_bps, each.kind));
    found
}

fn largest(connection: &Connection, at: usize) -> Option<Train> {
    let trains = Train::all(connection, ["client", "server"][at]);
    trains.into_iter().max_by_key(|each| each.bytes)
}

/// The rates that CUBIC's and Reno's congestion control come to at the losses of direction `at`.
pub(crate) fn by_loss(connection: &Connection, at: usize) -> Option<[u64; 2]> {
    let direction = connection.directions.get(at)?.as_deref()?;
    let train = largest(connection, at)?;
    let seen = Seen::of(connection, direction, &train)?;
    let of = |thousandths: u64| {
        each_trip(&seen, Some(thousandths.saturating_mul(seen.mss) / 1000)).or(Some(0))
    };
    let [cubic, reno] = responses(direction, seen.rtt)?;
    Some([of(cubic)?, of(reno)?])
}

/// The states that meet a ceiling; of a program's, those of one that reads and of one that writes.
pub(crate) const fn met_by(kind: Kind) -> &'static [State] {
    match kind {
        Kind::Link => &LINK,
        Kind::ReceiveWindow => &WINDOW,
        Kind::CongestionWindow => &CONGESTION,
        Kind::SendBuffer => &[State::Sndbuf],
        Kind::Loss => &LOSS,
        Kind::Application => &[State::RwndReader, State::ZeroWindow, State::App],
        Kind::InitialWindow => &[State::CwndSlowStart],
    }
}

const WINDOW: [State; 4] =
    [State::RwndCap, State::RwndAutotune, State::RwndReader, State::ZeroWindow];

const CONGESTION: [State; 6] = [
    State::CwndSlowStart,
    State::CwndAvoidance,
    State::CwndAfterIdle,
    State::CwndPostLoss,
    State::CwndCachedSsthresh,
    State::CwndClamp,
];

/// One that these states met.
fn ceiling(seen: &Seen<'_>, kind: Kind, rate: Option<u64>, states: &[State]) -> Option<Ceiling> {
    let limits = seen.direction.limits.iter().filter(|limit| states.contains(&limit.state));
    let parts = limits.map(|limit| (limit.confidence, limit.end_ns.saturating_sub(limit.start_ns)));
    let met_ns = seen.time_in(states);
    let proven = met_ns > 0 && Sure::of_parts(&parts) == Sure::Shown;
    Some(Ceiling { kind, rate_bps: rate?, met_ns, proven })
}

/// This many bytes each round trip.
fn each_trip(seen: &Seen<'_>, bytes: Option<u64>) -> Option<u64> {
    rate_bps(bytes?, seen.least_rtt)
}

fn link(seen: &Seen<'_>) -> Option<Ceiling> {
    let shown = seen.direction.link.as_ref().is_some_and(|link| link.proven);
    let found = ceiling(seen, Kind::Link, seen.link, &LINK)?;
    Some(Ceiling { proven: shown || found.proven, ..found })
}

fn receive_window(seen: &Seen<'_>) -> Option<Ceiling> {
    ceiling(seen, Kind::ReceiveWindow, each_trip(seen, seen.windows.last().copied()), &WINDOW)
}

fn congestion_window(seen: &Seen<'_>) -> Option<Ceiling> {
    let most = seen.rounds.iter().filter_map(|round: &Round| round.cwnd.best).max();
    let most = most.map(|segments| segments.saturating_mul(seen.mss));
    ceiling(seen, Kind::CongestionWindow, each_trip(seen, most), &CONGESTION)
}

fn send_buffer(seen: &Seen<'_>) -> Option<Ceiling> {
    let flights = seen.ended_by(&[State::Sndbuf]).map(|round| round.in_flight_bytes);
    ceiling(seen, Kind::SendBuffer, each_trip(seen, flights.max()), &[State::Sndbuf])
}

fn loss(seen: &Seen<'_>) -> Option<Ceiling> {
    let segments = response(seen.direction, seen.rtt)?;
    let bytes = segments.saturating_mul(seen.mss);
    let found = ceiling(seen, Kind::Loss, each_trip(seen, Some(bytes)), &LOSS)?;
    Some(Ceiling { proven: false, ..found })
}

fn reader(seen: &Seen<'_>) -> Option<Ceiling> {
    const STATES: [State; 2] = [State::RwndReader, State::ZeroWindow];
    ceiling(seen, Kind::Application, seen.pace(&STATES), &STATES)
}

fn writer(seen: &Seen<'_>) -> Option<Ceiling> {
    ceiling(seen, Kind::Application, seen.pace(&[State::App]), &[State::App])
}

fn initial(seen: &Seen<'_>) -> Option<Ceiling> {
    let (bytes, first) = (seen.train.bytes, seen.first);
    let climb = Climb { bytes, rtt: seen.least_rtt, first, growth: 2000, ..Climb::default() };
    ceiling(seen, Kind::InitialWindow, rate_bps(bytes, climb.ns()), &[State::CwndSlowStart])
}

/// Losses are a rate from this many segments on. Ours.
const FEW_SEGMENTS: u64 = 100;

/// The congestion window, in segments, that losses at this rate leave on average: the larger of CUBIC's response
/// function, `1.054 * (RTT / p)^0.75` (RFC 9438 section 5.1), and Reno's, `sqrt(1.5 / p)` (Mathis and others, 1997).
/// `None` without losses, or where too few segments were sent for a rate.
pub(super) fn response(direction: &Direction, rtt_ns: i64) -> Option<u64> {
    responses(direction, rtt_ns).map(|[cubic, reno]| cubic.max(reno) / 1000)
}

/// CUBIC's window and Reno's, in thousandths of a segment.
fn responses(direction: &Direction, rtt_ns: i64) -> Option<[u64; 2]> {
    let (lost, sent) = (direction.events.lost, direction.segments);
    if lost == 0 || sent < FEW_SEGMENTS {
        return None;
    }
    // With whole numbers: the fourth root of (RTT / p)^3 is the square root of the square root.
    let per_loss = u128::from((sent / lost.max(1)).clamp(1, 1 << 32));
    let rtt_us = u128::try_from(rtt_ns / 1000).unwrap_or(0).clamp(1, 1 << 26);
    let base = rtt_us * per_loss;
    let cube = base.min(1 << 40).pow(3);
    // 10^6 microseconds a second, to the power of 0.75.
    let cubic = cube.isqrt().isqrt() * 1054 / 31_623;
    let reno = (per_loss * 1_500_000).isqrt();
    Some([u64::try_from(cubic).ok()?, u64::try_from(reno).ok()?])
}
