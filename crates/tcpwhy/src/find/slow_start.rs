//! The transfer waited for slow start to open the congestion window.
//!
//! # What it says
//! A new connection may send only an initial window (10 segments in Linux) and then as much more each
//! round trip as was acknowledged, so the flight doubles. Until it is as large as the path or the
//! receiver's window allows, the sender spends most of each round trip waiting for ACKs. The finding
//! names that time. It matters for answers of some 15 KB up to a few MB: smaller ones fit the first
//! flight, and in larger ones the few round trips are a small share.
//!
//! # How we know
//! Intervals in the state `cwnd.slow_start`: the flight filled the congestion window that Linux's
//! arithmetic gives, the receiver's window had room, and an ACK released the next send; waits for an ACK
//! that was suddenly late are left out (`STOOD_STILL`). They hold at least a tenth of the working time. An answer that fits the first flight never counts: it waits for
//! no window.
//!
//! # What it is not
//! Not a slow path: no queue stood while it lasted. Not the receiver's window, which had room. A large
//! transfer that is slow for other reasons has slow start too, but as a small share.
//!
//! # What to do
//! Use a connection again: its window is open already (unless it paused for longer than its
//! retransmission timeout). Send less: half the
//! bytes save one round trip only. Raise the initial window on the sender's
//! route (`initcwnd`) if the receiver's first window has room for it and the path has shown that it
//! takes such bursts; the cost is a burst that may overflow a small buffer, on a path with loss more
//! than it gains. The gain is bounded by the round trips that fall away.
//!
//! # Sources
//! RFC 5681 section 3.1 (slow start), RFC 6928 (initial window of 10); Linux `tcp_slow_start`,
//! `tcp_is_cwnd_limited` and `tcp_init_cwnd` (v6.1, `net/ipv4/tcp_cong.c`, `tcp_input.c`).

use super::case::{Case, Told, in_each, window_at};
use super::{Rule, remedies};
use crate::report::{Connection, Finding, Prediction, Round, Severity, State, Transfer};
use tcpwhy_words::said;
use tcpwhy_words::units::{BitRate, Duration};

pub(super) const RULE: Rule = Rule {
    code: "SLOW_START",
    severity: Severity::Limit,
    file: include_str!("slow_start.rs"),
    find,
};

/// Rounds whose windows are printed. Ours: a line's worth.
const WINDOWS_TOLD: usize = 8;

fn find(connection: &Connection) -> Vec<Finding> {
    in_each(connection, |case| {
        let mut held = case.held(|state| state == State::CwndSlowStart);
        held.limits.retain(|limit| !super::stood_still::explains(case, limit));
        if !held.is_worth_naming() || fits_first_flight(case) {
            return None;
        }
        let told =
            Told { title: title(case), why: why(case), not: not(case), remedies: help(case) };
        Some(held.finding(RULE.code, told))
    })
}

fn fits_first_flight(case: &Case<'_>) -> bool {
    let first = case.direction.initial_window;
    first.is_some_and(|first| !first.full && case.direction.bytes <= first.bytes)
}

fn slow_rounds<'a>(case: &Case<'a>) -> impl Iterator<Item = &'a Round> {
    case.direction.rounds.iter().filter(|round| round.limited_by == State::CwndSlowStart)
}

fn title(case: &Case<'_>) -> String {
    match slow_rounds(case).count() as u64 {
        0 => "slow start".to_owned(),
        rounds => format!("slow start: {} waited for ACKs", said::count(rounds, "flight")),
    }
}

fn why(case: &Case<'_>) -> String {
    let flights: Vec<String> =
        slow_rounds(case).take(WINDOWS_TOLD).map(|round| round.segments.to_string()).collect();
    let more = if slow_rounds(case).count() > WINDOWS_TOLD { " and more" } else { "" };
    let flights = if flights.is_empty() {
        String::new()
    } else {
        format!(" flights of {}{more} segments filled the congestion window", flights.join(", "))
    };
    let rate = case.direction.bottleneck_rate_bps.filter(|rate| *rate > 0).map(|rate| {
        let alone = wire_time(case.direction.bytes, rate);
        let rate = BitRate(rate);
        format!("; at the {rate} that the path showed, the bytes alone take {}", said::time(alone))
    });
    format!(
        "the {}'s{flights} and the next had to wait for an ACK{}.",
        case.sender(),
        rate.unwrap_or_default()
    )
}

fn not(case: &Case<'_>) -> String {
    let loss = if case.lost_something() { "" } else { "not loss (no segment was repeated); " };
    format!("{loss}not a full path, not the {}'s window: both had room then", case.receiver())
}

/// The least that `bytes` may take: a round trip, and their time at the path's rate where that is known.
pub(super) fn least_time(case: &Case<'_>, bytes: u64) -> Option<i64> {
    let alone = case.direction.bottleneck_rate_bps.map_or(0, |rate| wire_time(bytes, rate));
    Some(case.rtt()?.saturating_add(alone))
}

fn wire_time(bytes: u64, rate_bps: u64) -> i64 {
    i64::try_from(u128::from(bytes) * 8_000_000_000 / u128::from(rate_bps.max(1)))
        .unwrap_or(i64::MAX)
}

fn help(case: &Case<'_>) -> Vec<crate::report::Remedy> {
    let slow = |each: &&Transfer| each.time_in.get(State::CwndSlowStart);
    let Some(transfer) = case.transfers().max_by_key(slow).filter(|t| slow(t) > Duration::ZERO)
    else {
        return Vec::new();
    };
    let took = transfer.end_ns - transfer.start_ns;
    let mut help = Vec::new();
    // One that is used again later is kept open already.
    let mut transfers = case.transfers();
    let first = transfers.next().is_some_and(|first| first.start_ns == transfer.start_ns);
    if first && transfers.next().is_none() {
        let mut reuse = remedies::program(
            remedies::CLIENT,
            format!(
                "keep the connection open and use it again, without long pauses: its window is open then (for \
                 this transfer of {})",
                said::bytes(transfer.bytes)
            ),
        );
        reuse.set = Some("again".to_owned());
        reuse.predicted_ns = warm(case, transfer).filter(|predicted| predicted.best < took);
        help.push(reuse);
    }
    help.extend(larger_start(case, transfer));
    help
}

/// How long the transfer takes on a connection that has sent its like before: in flights as large
/// as the largest seen, which passed without loss; at best in one, or at the path's rate. What it
/// waited for besides windows that had yet to grow, it waits for then, too.
fn warm(case: &Case<'_>, transfer: &Transfer) -> Option<Prediction> {
    let rtt = case.direction.rtt.median_ns.or(case.rtt())?;
    let flight = case.direction.max_in_flight_bytes;
    if case.lost_something() || flight == 0 || case.direction.events.not_captured > 0 {
        return None;
    }
    let took = transfer.end_ns - transfer.start_ns;
    let alone = case.direction.bottleneck_rate_bps.map_or(0, |r| wire_time(transfer.bytes, r));
    let flights = i64::try_from(transfer.bytes.div_ceil(flight)).ok()?;
    let grew =
        [State::CwndSlowStart, State::RwndAutotune].map(|state| transfer.time_in.get(state).0);
    let stays = took - grew.iter().sum::<i64>();
    let low = case.rtt()?.max(alone).max(stays).min(took);
    let best = rtt.checked_mul(flights)?.max(alone).clamp(low, took);
    Some(Prediction { low, best, high: took, now: took, ..Prediction::default() })
}

/// A larger initial window: as much as the receiver's first window takes and the path has passed
/// in one burst. None without a gain.
fn larger_start(case: &Case<'_>, transfer: &Transfer) -> Option<crate::report::Remedy> {
    let (mss, initial) = (case.mss()?, case.direction.initial_window.filter(|i| i.full)?);
    let rounds = rounds_of(case, transfer)?;
    let opening = rounds.first()?;
    let of_connection = case.transfers().next()?.start_ns == transfer.start_ns;
    // Repeated SYNs cut what the route gives.
    let is_cut = was_cut_by_syns(case);
    if case.lost_something() || !case.sender_is_linux() || !of_connection || is_cut {
        return None;
    }
    let room = window_at(opening)?.min(transfer.bytes).min(case.direction.burst_proven_bytes?);
    let segments = room / mss;
    if segments <= initial.segments {
        return None;
    }
    let predicted = with_start(case, transfer, rounds, segments * mss)?;
    let what = format!(
        "start with {segments} segments instead of {} on a route of its own to this {peer}, whose first window has room \
         for them (a burst of {} passed here; all new connections to it send such bursts)",
        initial.segments,
        said::bytes(case.direction.burst_proven_bytes?),
        peer = case.receiver(),
    );
    remedies::if_it_gains(remedies::route(case, "initcwnd", segments, what), Some(predicted))
}

fn rounds_of<'a>(case: &Case<'a>, transfer: &Transfer) -> Option<&'a [Round]> {
    let range = transfer.rounds?;
    let (first, last) = (usize::try_from(range.first).ok()?, usize::try_from(range.last).ok()?);
    case.direction.rounds.get(first..=last)
}

/// The transfer's duration if its first flight had been `start` bytes: the rounds that fall away,
/// times the round trip. Bounds: every window open, and no gain at all, because the receiver's
/// window may grow no faster than it did. None if the same arithmetic does not give the rounds
/// that the transfer did take.
fn with_start(
    case: &Case<'_>,
    transfer: &Transfer,
    rounds: &[Round],
    start: u64,
) -> Option<Prediction> {
    let took = transfer.end_ns - transfer.start_ns;
    let rtt = case.rtt()?;
    let mut sent = 0;
    let mut windows = Vec::with_capacity(rounds.len());
    for round in rounds {
        windows.push((sent, window_at(round)?));
        sent += round.bytes;
    }
    let as_seen = |sent: u64| windows.iter().rev().find(|w| w.0 <= sent).map_or(u64::MAX, |w| w.1);
    let first = rounds.first()?.bytes;
    let told = count_rounds(first, transfer.bytes, as_seen);
    if told.abs_diff(rounds.len() as u64) > 1 {
        return None;
    }
    let least = least_time(case, transfer.bytes)?;
    let after = |saved: u64| {
        Some((took - rtt.checked_mul(i64::try_from(saved).ok()?)?).max(least).min(took))
    };
    let best = after(told.saturating_sub(count_rounds(start, transfer.bytes, as_seen)))?;
    let open = count_rounds(start, transfer.bytes, |_| u64::MAX);
    let low = after((rounds.len() as u64).saturating_sub(open))?.min(best);
    Some(Prediction { low, best, high: took, now: took, ..Prediction::default() })
}

/// Rounds that `bytes` take when the first flight is `first`, each ACK lets as much more go as it
/// covers (while the window is used at least by half: `tcp_is_cwnd_limited`), and the receiver's
/// window is `window` of what was sent before.
pub(super) fn count_rounds(first: u64, bytes: u64, window: impl Fn(u64) -> u64) -> u64 {
    /// Ours: a transfer of more rounds than any that is predicted.
    const MOST: u64 = 10_000;
    let (mut cwnd, mut sent, mut rounds) = (first.max(1), 0_u64, 0);
    while sent < bytes && rounds < MOST {
        let flight = cwnd.min(window(sent)).max(1);
        sent = sent.saturating_add(flight);
        if cwnd < flight.saturating_mul(2) {
            cwnd = cwnd.saturating_add(flight);
        }
        rounds += 1;
    }
    rounds
}

/// Whether SYNs or SYN-ACKs, repeated more than once, cut the window that it began with.
pub(super) fn was_cut_by_syns(case: &Case<'_>) -> bool {
    case.direction.initial_window.is_some_and(|first| first.cut_by_syns)
}

#[cfg(test)]
mod tests {
    use super::super::sample::{self, Sim};
    use super::*;

    fn found(connection: &Connection) -> Vec<Finding> {
        find(connection)
    }

    #[test]
    fn doubling_flights_are_counted() {
        let open = |_| u64::MAX;
        let of = |first, bytes| count_rounds(first, bytes, open);
        assert_eq!([of(10, 10), of(10, 11), of(10, 70), of(10, 71)], [1, 2, 3, 4]);
        assert_eq!(count_rounds(10, 50, |_| 10), 5, "a window of one flight");
    }

    #[test]
    fn a_new_connection_that_doubles_is_told_with_what_a_warm_one_brings() {
        let connection = Sim { bytes: 300_000, ..Sim::default() }.run();
        let found = found(&connection);
        assert_eq!(found.len(), 1);
        insta::assert_snapshot!(sample::shown(&found));
        let reuse = found[0].remedies[0].predicted_ns.expect("arithmetic");
        let took = sample::transfer_ns(&connection);
        assert!(reuse.low <= reuse.best && reuse.best < took && reuse.high == took, "{reuse:?}");
    }

    #[test]
    fn a_warm_connection_is_not_said_to_hurry_a_slow_application() {
        let mut connection = Sim { bytes: 300_000, ..Sim::default() }.run();
        let silence = Duration(30_000_000);
        let transfer = connection.transfers.last_mut().expect("a transfer");
        transfer.end_ns += silence.0;
        transfer.time_in.add(State::App, silence);
        let reuse = found(&connection)[0].remedies[0].predicted_ns.expect("arithmetic");
        assert!(reuse.low > silence.0, "{reuse:?}");
    }

    #[test]
    fn an_answer_of_one_flight_never_waited_for_slow_start() {
        let connection = Sim { bytes: 10 * 1448, ..Sim::default() }.run();
        assert!(found(&connection).is_empty());
    }

    #[test]
    fn a_large_transfer_hardly_notices() {
        let connection = Sim { bytes: 12_000_000, window: 120_000, ..Sim::default() }.run();
        assert!(found(&connection).is_empty());
    }

    #[test]
    fn a_tenth_of_the_time_is_enough_and_less_is_not() {
        let connection = Sim { bytes: 300_000, ..Sim::default() }.run();
        let held = Case::of(&connection, 1).expect("data").held(|s| s == State::CwndSlowStart);
        let slow = held.time_ns();
        let active = super::super::case::working_ns(&connection);
        // The opening is stretched until slow start is just a tenth of all.
        for (more, number) in [(10 * slow - active, 1), (10 * slow - active + 10, 0)] {
            let mut stretched = connection.clone();
            sample::stretch_opening(&mut stretched, more);
            assert_eq!(found(&stretched).len(), number, "{more}");
        }
    }

    #[test]
    fn no_initial_window_is_advised_where_segments_were_lost() {
        let mut connection = Sim { bytes: 300_000, ..Sim::default() }.run();
        let knobs = |found: &[Finding]| {
            found
                .iter()
                .flat_map(|f| &f.remedies)
                .filter_map(|r| r.knob.clone())
                .collect::<Vec<_>>()
        };
        assert_eq!(knobs(&found(&connection)), ["initcwnd"]);
        connection.directions[1].as_mut().expect("data").retransmitted.fast = 1;
        assert!(knobs(&found(&connection)).is_empty());
    }

    #[test]
    fn no_initial_window_is_advised_where_the_receivers_first_window_is_as_small() {
        let connection = Sim { bytes: 300_000, first_window: 14_600, ..Sim::default() }.run();
        let remedies: Vec<_> = found(&connection).into_iter().flat_map(|f| f.remedies).collect();
        assert!(remedies.iter().all(|r| r.knob.is_none()), "{remedies:?}");
    }
}
