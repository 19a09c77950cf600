//! What is worth showing: the main direction, the worst transfers, the order of connections.
//!
//! The unit is not the connection: one that is kept alive and silent for most of its life is not slow. So the
//! "worst" is the longest that a user waited at a time: for a request, the server's application and its answer,
//! the first time for the opening, too ([`crate::report::Waited`]). Of a single connection the worst transfers
//! are those that took longest, without the time in which an application had nothing to say.

use core::cmp::Reverse;

use super::Sort;

use crate::report::{Connection, Direction, Report, State, TimeIn, Transfer};
use tcpwhy_words::units::{BitRate, Bytes, Duration};

/// The directions worth showing in full, the one with most bytes first (a tie goes to the
/// server's). The other one follows if it repeated data, or carried at least a quarter as much
/// in more segments than one initial window of ten (RFC 6928 §2).
pub(super) fn directions(connection: &Connection) -> Vec<(usize, &Direction)> {
    let mut all: Vec<(usize, &Direction)> = connection.present().collect();
    all.sort_by_key(|(at, direction)| (Reverse(direction.bytes), Reverse(*at)));
    let most = all.first().map_or(0, |(_, direction)| direction.bytes);
    let mut first = true;
    all.retain(|(_, direction)| {
        let worth = direction.retransmitted.total() > direction.retransmitted.syn
            || (direction.bytes >= most / 4 && direction.segments > 10);
        core::mem::replace(&mut first, false) || worth
    });
    all
}

/// The direction of a transfer as an index; `None` for a name that is neither end's.
pub(super) fn direction_of(transfer: &Transfer) -> Option<usize> {
    match &*transfer.from {
        "client" => Some(0),
        "server" => Some(1),
        _ => None,
    }
}

/// Connections with data that are shown one by one rather than as a table.
pub(super) const FEW: usize = 3;

/// Time in which an application, not TCP, held the sender.
pub(super) fn silence(time_in: &TimeIn) -> Duration {
    time_in
        .iter()
        .filter(|(state, _)| state.is_silence())
        .fold(Duration::ZERO, |sum, (_, span)| sum + span)
}

/// At most `number` transfers, the worst first, as indices.
pub(super) fn worst_transfers(connection: &Connection, number: usize) -> Vec<usize> {
    let order = |at: &usize| (Reverse(connection.transfers[*at].worked()), *at);
    first_by_key((0..connection.transfers.len()).collect(), number, order)
}

/// What a connection's users waited for, in sum; its main direction's account where it lists no transfers.
pub(super) fn time_waited(connection: &Connection) -> TimeIn {
    let mut sum = TimeIn::default();
    connection.add_time_waited(&mut sum);
    sum
}

/// Fewer bytes than an initial window of ten segments of 1,460 B (RFC 6928 §2) are sent at once:
/// dividing them by time gives the distance, not a rate.
pub(super) const WORTH_A_RATE: u64 = 14_600;

/// Bytes over the time that the transfers worked; `None` where they are too few to have a rate.
pub(super) fn rate(connection: &Connection) -> Option<BitRate> {
    if connection.bytes() < WORTH_A_RATE {
        return None;
    }
    let worked = if connection.transfers.is_empty() {
        Duration(connection.duration_ns)
    } else {
        connection.transfers.iter().fold(Duration::ZERO, |sum, each| sum + each.worked())
    };
    BitRate::of(Bytes(connection.bytes()), worked)
}

/// The state that was waited for longest.
pub(super) fn dominant(time_in: &TimeIn) -> Option<(State, Duration)> {
    time_in.ranked().into_iter().next().filter(|(_, span)| span.0 > 0)
}

/// At most `number` connections in the order asked for; linear in their number.
pub(super) fn connections(report: &Report, sort: Sort, number: usize) -> Vec<usize> {
    let keys: Vec<i64> = report.connections.iter().map(|each| key(each, sort)).collect();
    first_by_key((0..keys.len()).collect(), number, |at| (Reverse(keys[*at]), *at))
}

/// More than anybody waits: 146 years.
const FAILED: i64 = i64::MAX / 2;

/// What a connection is sorted by, largest first.
pub(crate) fn key(connection: &Connection, sort: Sort) -> i64 {
    match sort {
        Sort::Worst => match &connection.failure {
            // Whatever failed comes before all that only took its time.
            Some(failure) => FAILED + failure.waited_ns.clamp(0, i64::MAX - FAILED),
            None => worst(connection).map_or(i64::MIN, |longest| longest.0.min(FAILED - 1)),
        },
        Sort::Duration => connection.duration_ns,
        Sort::Bytes => i64::try_from(connection.bytes()).unwrap_or(i64::MAX),
        Sort::Rate => match rate(connection).filter(|rate| rate.0 > 0) {
            Some(rate) => i64::try_from(rate.0).unwrap_or(i64::MAX).saturating_neg(),
            None => i64::MIN,
        },
        Sort::Retransmissions => i64::try_from(connection.retransmitted()).unwrap_or(i64::MAX),
        Sort::Start => 0,
    }
}

/// The longest wait of a connection's users; without a list of transfers the lifetime, silence not counted; `None`
/// where no data flowed.
pub(super) fn worst(connection: &Connection) -> Option<Duration> {
    if !connection.carried_data() {
        return None;
    }
    if connection.transfers.is_empty() {
        return Some(Duration(connection.duration_ns) - silence(&time_waited(connection)));
    }
    Some(connection.waited().longest)
}

/// The first `number` of `items` by `key`, in order, without sorting the others.
fn first_by_key<K: Ord>(
    mut items: Vec<usize>,
    number: usize,
    key: impl Fn(&usize) -> K,
) -> Vec<usize> {
    if number == 0 {
        return Vec::new();
    }
    if number < items.len() {
        items.select_nth_unstable_by_key(number - 1, &key);
        items.truncate(number);
    }
    items.sort_by_key(&key);
    items
}

#[cfg(test)]
mod tests {
    use super::super::sample;
    use super::*;

    #[test]
    fn what_is_sent_at_once_has_no_rate() {
        let mut connection = sample::worked_example().connections.remove(0);
        assert!(rate(&connection).is_some());
        for direction in connection.directions.iter_mut().flatten() {
            direction.bytes = WORTH_A_RATE / 2 - 1;
        }
        assert_eq!(rate(&connection), None);
    }

    #[test]
    fn a_connection_silent_for_a_minute_is_not_worse_than_a_slow_transfer() {
        let slow = sample::worked_example().connections.remove(0);
        let mut silent = sample::keep_alive().connections.remove(0);
        // Its server answers at once.
        for at in (0..silent.transfers.len()).step_by(2) {
            let took = silent.transfers[at + 1].end_ns - silent.transfers[at + 1].start_ns;
            silent.transfers[at + 1].start_ns = silent.transfers[at].end_ns;
            silent.transfers[at + 1].end_ns = silent.transfers[at].end_ns + took;
        }
        let report = sample::report("x", 0, vec![silent, slow]);
        assert_eq!(connections(&report, Sort::Worst, 2), [1, 0]);
        assert_eq!(connections(&report, Sort::Duration, 2), [0, 1]);
    }

    #[test]
    fn a_request_of_one_segment_is_not_shown_in_full() {
        let shown = |report: &Report| -> Vec<usize> {
            directions(&report.connections[0]).iter().map(|(at, _)| *at).collect()
        };
        let mut report = sample::worked_example();
        assert_eq!(shown(&report), [1]);
        if let Some(up) = &mut report.connections[0].directions[0] {
            up.retransmitted.rto = 1;
        }
        assert_eq!(shown(&report), [1, 0], "what was repeated is of interest");
    }

    #[test]
    fn the_first_by_key_come_in_order() {
        let order = |at: &usize| Reverse(*at % 7);
        assert_eq!(first_by_key((0..21).collect(), 3, |at| (order(at), *at)), [6, 13, 20]);
        assert_eq!(first_by_key((0..3).collect(), 9, |at| (order(at), *at)), [2, 1, 0]);
        assert!(first_by_key(Vec::new(), 3, order).is_empty());
    }
}
