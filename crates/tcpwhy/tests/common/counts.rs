//! Counts and extremes inside one report that must agree.

use tcpwhy::report::{Connection, Direction, RepeatCause};

/// What disagrees in the account of a connection; nothing if all is well.
pub(crate) fn odd(connection: &Connection) -> Vec<String> {
    let present = connection.present();
    let both = |(at, direction)| {
        [odd_in(connection, at, direction), odd_of_sane(connection, at, direction)].concat()
    };
    present.flat_map(both).collect()
}

/// The same where the numbers may be out of thin air: these leave parts of a stream to nobody.
pub(crate) fn odd_in_any_stream(connection: &Connection) -> Vec<String> {
    let present = connection.present();
    present.flat_map(|(at, direction)| odd_in(connection, at, direction)).collect()
}

/// What holds for streams that are numbered as TCP numbers them.
fn odd_of_sane(connection: &Connection, at: usize, direction: &Direction) -> Vec<String> {
    let from = ["client", "server"][at];
    let transfers = connection.transfers.iter().filter(|each| each.from == from);
    let sum: u64 = transfers.map(|each| each.bytes).sum();
    let rules = [
        (
            "a first flight above the largest",
            direction
                .initial_window
                .is_none_or(|first| first.bytes <= direction.max_in_flight_bytes),
        ),
        ("transfers of other bytes", connection.truncated || sum == direction.bytes),
    ];
    broken(connection, from, rules)
}

fn broken(
    connection: &Connection,
    from: &str,
    rules: impl IntoIterator<Item = (&'static str, bool)>,
) -> Vec<String> {
    let broken = rules.into_iter().filter(|(_, holds)| !holds);
    broken.map(|(rule, _)| format!("{} {from}: {rule}", connection.id)).collect()
}

fn odd_in(connection: &Connection, at: usize, direction: &Direction) -> Vec<String> {
    let most = direction.max_in_flight_bytes;
    let by = &direction.retransmitted;
    let pattern = direction.loss_pattern.as_deref();
    let flights = direction.in_flight_at_loss.len() as u64;
    let listed = |cause: RepeatCause| {
        direction.retransmissions.iter().filter(|each| each.cause == cause).count() as u64
    };
    let from = ["client", "server"][at];
    let rules = [
        (
            "a loss at more than was ever in flight",
            direction.in_flight_at_loss.iter().all(|l| l.bytes <= most),
        ),
        (
            "a round with more than was ever in flight",
            direction.rounds.iter().all(|r| r.in_flight_bytes <= most),
        ),
        (
            "a burst above the largest flight",
            direction.burst_proven_bytes.is_none_or(|burst| burst <= most),
        ),
        ("less sent than there is", direction.bytes_sent >= direction.bytes),
        ("fewer segments than frames", direction.segments >= direction.frames),
        (
            "more episodes than losses",
            pattern.is_none_or(|p| p.episodes <= direction.events.lost + by.spurious),
        ),
        (
            "flights at losses without a loss",
            flights == 0 || direction.events.lost + by.spurious > 0,
        ),
        (
            "another number of flights at losses than of episodes",
            flights <= pattern.map_or(flights, |p| p.episodes),
        ),
        (
            "more repeats listed than counted",
            [RepeatCause::Fast, RepeatCause::Rto, RepeatCause::Tlp, RepeatCause::Unnecessary]
                .into_iter()
                .zip([by.fast, by.rto, by.tlp, by.unnecessary])
                .all(|(cause, count)| listed(cause) <= count),
        ),
        (
            "a median rate above the largest",
            direction.delivery_rate_bps.is_none_or(|rate| rate.median <= rate.max),
        ),
        (
            "a median round trip below the least",
            direction.rtt.min_ns <= direction.rtt.median_ns
                && direction.rtt.median_ns <= direction.rtt.p95_ns,
        ),
    ];
    broken(connection, from, rules)
}
