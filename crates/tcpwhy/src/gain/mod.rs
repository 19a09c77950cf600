//! What would be saved if a cause were gone, by arithmetic, and what a transfer could not be faster than.
//!
//! A transfer without one of its causes takes the waits that stay, and the climb without that cause's ceiling
//! ([`ladder`]). What is left of its time now is the gain. It is counted twice: with every ceiling at the highest
//! that was seen, for what is gained at least, and with those that nothing showed open, for the most.
//!
//! All other ceilings stay: the link's rate, and the pace of the programs that read and write, bound every climb. So a
//! window that fills a queue gains nothing, and neither does a larger buffer before a slow reader.
//!
//! Integers only, saturating: what a report says may be anything.

mod ceilings;
mod climbs;
mod fill;
mod ladder;
mod removed;
mod seen;

pub use ceilings::ceilings;
pub(crate) use ceilings::{by_loss, met_by};
pub(crate) use fill::fill;
pub use fill::from_predictions;
pub(crate) use fill::of_prediction;
pub use removed::{Removed, family};

use crate::report::{Connection, Direction, Gain, PredictedBy};
use seen::{Seen, Train};

/// Trains that are counted one by one, the largest. Ours: bounds the work.
const MOST_TRAINS: usize = 64;

/// What would be saved in direction `at` (0: client to server) if a cause were gone; `None` where the report does not
/// tell.
pub fn gain(connection: &Connection, at: usize, removed: Removed) -> Option<Gain> {
    let now = now_ns(connection);
    let (low, best, high) = match removed {
        Removed::Syn => climbs::syn(connection),
        Removed::Opening => climbs::opening(connection)?,
        Removed::Think => climbs::think(connection),
        _ => of_transfers(connection, connection.directions.get(at)?.as_deref()?, at, removed)?,
    };
    let whole = matches!(removed, Removed::Syn | Removed::Opening);
    Some(bounded((low, best, high), if whole { connection.active_ns() } else { now }))
}

/// The time that gains are of: the active time behind the handshake.
fn now_ns(connection: &Connection) -> i64 {
    use crate::report::State;
    let opened = |direction: &Direction| {
        let time = |state| direction.time_in.get(state).0.max(0);
        time(State::Handshake).saturating_add(time(State::SynRetry))
    };
    let opening = connection.directions.iter().flatten().map(|each| opened(each)).max();
    connection.active_ns().saturating_sub(opening.unwrap_or(0)).max(0)
}

fn bounded((low, best, high): (i64, i64, i64), now: i64) -> Gain {
    let high = high.clamp(0, now.max(0));
    let low = low.clamp(0, high);
    let by = PredictedBy::Arithmetic;
    Gain { low_ns: low, best_ns: best.clamp(low, high), high_ns: high, now_ns: now.max(0), by }
}

/// The sum over the direction's trains: of many small ones only the largest, and the rest by what was seen.
fn of_transfers(
    connection: &Connection,
    direction: &Direction,
    at: usize,
    removed: Removed,
) -> Option<(i64, i64, i64)> {
    let mut all = Train::all(connection, ["client", "server"][at]);
    all.sort_by_key(|each| core::cmp::Reverse(each.bytes));
    let rest = all.split_off(all.len().min(MOST_TRAINS));
    let mut seen = all.iter().filter_map(|each| Seen::of(connection, direction, each)).peekable();
    seen.peek()?;
    let mut sum = (0_i64, 0_i64, 0_i64);
    for each in seen {
        let (low, best, high) = climbs::without(&each, removed);
        sum = (sum.0.saturating_add(low), sum.1.saturating_add(best), sum.2.saturating_add(high));
    }
    for each in rest {
        let time = family(removed).iter().map(|state| each.time_in.get(*state).0.max(0));
        sum.2 = sum.2.saturating_add(time.fold(0, i64::saturating_add));
    }
    Some(sum)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::find::sample;
    use crate::report::{CeilingKind, Link, LinkRate, State};
    use tcpwhy_words::units::Duration;

    /// The finding sample's download with all of slow start's waits in another state.
    fn held_by(state: State) -> Connection {
        let mut connection = sample::held_by(state, 6000);
        for transfer in &mut connection.transfers {
            let slow = transfer.time_in.get(State::CwndSlowStart);
            transfer.time_in.add(State::CwndSlowStart, Duration(-slow.0));
            transfer.time_in.add(state, slow);
        }
        connection
    }

    /// A link whose floor is this share in per cent of the largest transfer.
    fn linked(mut connection: Connection, percent: i64) -> Connection {
        let took = connection.transfers.iter().map(|t| t.end_ns - t.start_ns).max().expect("one");
        let direction = connection.directions[1].as_mut().expect("data");
        let floor_ns = took * percent / 100;
        let best = ladder::rate_bps(direction.bytes, floor_ns).expect("a rate");
        let rate_bps = LinkRate { low: best, best, high: best };
        direction.link =
            Some(Box::new(Link { proven: true, rate_bps, floor_ns, ..Link::default() }));
        connection
    }

    #[test]
    fn a_warm_connection_saves_slow_start() {
        let found = gain(&sample::download(), 1, Removed::Reuse).expect("a gain");
        assert!(found.best_ns * 3 > found.now_ns, "{found:?}");
        assert!(found.now_ns - found.high_ns >= 20_000_000, "a round trip stays: {found:?}");
    }

    #[test]
    fn a_full_link_leaves_a_window_nothing() {
        let found = gain(&linked(held_by(State::RwndCap), 100), 1, Removed::Window).expect("one");
        assert_eq!((found.low_ns, found.best_ns, found.high_ns), (0, 0, 0));
        let open = gain(&held_by(State::RwndCap), 1, Removed::Window).expect("one");
        assert!(open.high_ns > 0, "{open:?}");
    }

    #[test]
    fn a_slow_reader_leaves_a_buffer_nothing() {
        let reader = held_by(State::RwndReader);
        let buffer = gain(&reader, 1, Removed::SendBuffer).expect("one");
        let reads = gain(&reader, 1, Removed::Reader).expect("one");
        assert!(buffer.best_ns < reads.best_ns, "{buffer:?} {reads:?}");
    }

    #[test]
    fn ceilings_come_the_lowest_first() {
        let found = ceilings(&linked(sample::download(), 10), 1);
        assert!(found.is_sorted_by_key(|each| each.rate_bps));
        let kinds: Vec<CeilingKind> = found.iter().map(|each| each.kind).collect();
        assert!(kinds.contains(&CeilingKind::Link) && kinds.contains(&CeilingKind::InitialWindow));
    }

    /// The download with any numbers in it.
    fn any_numbers(a: [i64; 6], b: [u64; 6], state: State) -> Connection {
        let mut connection = linked(held_by(state), 50);
        connection.handshake_rtt_ns = Some(a[0]);
        connection.duration_ns = a[1];
        connection.mss = Some(b[0] as u32);
        let direction = connection.directions[1].as_mut().expect("data");
        direction.rtt.min_ns = Some(a[2]);
        (direction.bytes, direction.max_in_flight_bytes) = (b[1], b[2]);
        (direction.events.lost, direction.segments) = (b[3], b[4]);
        direction.link.as_mut().expect("a link").floor_ns = a[3];
        for round in &mut direction.rounds {
            (round.bytes, round.in_flight_bytes) = (b[5], b[2]);
            (round.start_ns, round.window_room_bytes) = (a[4], Some(a[5]));
        }
        for transfer in &mut connection.transfers {
            (transfer.start_ns, transfer.end_ns, transfer.bytes) = (a[4], a[5], b[1]);
        }
        for exchange in &mut connection.exchanges {
            exchange.server_think_ns = Some(a[1]);
        }
        connection
    }

    const ALL: [Removed; 22] = [
        Removed::SlowStart { first_flight: None },
        Removed::SlowStart { first_flight: Some(u64::MAX) },
        Removed::Reuse,
        Removed::Window,
        Removed::Reader,
        Removed::SendBuffer,
        Removed::AppWindow,
        Removed::Link { times: u32::MAX },
        Removed::Others,
        Removed::Loss,
        Removed::Timers,
        Removed::Syn,
        Removed::Opening,
        Removed::Think,
        Removed::Writer,
        Removed::Nagle,
        Removed::IdleRestart,
        Removed::EarlyExit,
        Removed::OwnQueue,
        Removed::Pacing,
        Removed::Reordering,
        Removed::Marks,
    ];

    proptest::proptest! {
        #[test]
        fn whatever_a_report_says_gains_are_ranges_in_the_time(
            a: [i64; 6],
            b: [u64; 6],
            small in 0..3_usize,
            state in 0..State::COUNT,
        ) {
            let a = a.map(|each| if small == 0 { each } else { each >> (20 * small) });
            let state = State::all().nth(state).expect("a state");
            let mut connection = any_numbers(a, b, state);
            for removed in ALL {
                for at in 0..2 {
                    if let Some(g) = gain(&connection, at, removed) {
                        proptest::prop_assert!(0 <= g.low_ns && g.low_ns <= g.best_ns, "{g:?}");
                        proptest::prop_assert!(g.best_ns <= g.high_ns && g.high_ns <= g.now_ns, "{g:?}");
                    }
                }
            }
            fill(&mut connection);
        }
    }
}
