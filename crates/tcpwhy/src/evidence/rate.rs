//! The path's rate beside what was sent over it.

use crate::report::{Beside, Connection, Direction};
use crate::units::{BitRate, Bytes, Duration};
use crate::words;

use super::iperf::PathRate;

/// A test of payload errs by its own slow start and other traffic. Ours, not measured: a transfer that is
/// faster by less than this is no contradiction.
const TEST_ERROR_PERCENT: u64 = 10;

/// Ours: what fits into an initial window (RFC 6928) has a duration, but no rate worth the name.
const WORTH_A_RATE: u64 = 14_600;

/// Findings that are about the path's rate.
const ABOUT_RATE: [&str; 6] =
    ["BOTTLENECK", "BOTTLENECK_SHARED", "POLICER", "TOKEN_BUCKET", "VARIABLE_RATE", "LOCAL_QDISC"];

/// What the rate says of `connection`; findings about its path say their share of it.
pub(super) fn apply(
    source: usize,
    name: &str,
    path: PathRate,
    connection: &mut Connection,
) -> Vec<Beside> {
    let all = format!("the path's {} ({name})", BitRate(path.bps));
    let told: Vec<Beside> = connection
        .present()
        .filter_map(|(at, direction)| {
            let rate = transfer_rate(connection, at)?;
            Some(beside(source, &all, path, (at, direction), rate))
        })
        .collect();
    for finding in &mut connection.findings {
        let rate = told.iter().filter_map(|each| each.estimated).max();
        if ABOUT_RATE.contains(&&*finding.code)
            && let Some(rate) = rate
        {
            let share = words::percent(rate, i64::try_from(path.bps).unwrap_or(i64::MAX));
            let more = format!(" The transfer's rate is {share} of {all}.");
            finding.why.push_str(&more);
        }
    }
    told
}

/// Payload rate of the largest transfer of a direction, up to its last ACK: all of it crossed the path
/// in that time.
fn transfer_rate(connection: &Connection, at: usize) -> Option<u64> {
    let from = ["client", "server"][at];
    let all = connection.transfers.iter().filter(|each| each.from == from);
    let largest = all.max_by_key(|each| each.bytes).filter(|each| each.bytes >= WORTH_A_RATE)?;
    let span = Duration(largest.end_ns - largest.start_ns);
    BitRate::of(Bytes(largest.bytes), span).map(|rate| rate.0)
}

fn beside(
    source: usize,
    all: &str,
    path: PathRate,
    (at, direction): (usize, &Direction),
    rate: u64,
) -> Beside {
    let sender = ["client", "server"][at];
    let slack = if path.is_tested { TEST_ERROR_PERCENT } else { 0 };
    let faster = u128::from(rate) * 100 > u128::from(path.bps) * u128::from(100 + slack);
    let number = |value: u64| i64::try_from(value).unwrap_or(i64::MAX);
    let share = words::percent(number(rate), number(path.bps));
    let ran = format!("the {sender}'s largest transfer ran at {}", BitRate(rate));
    let text = if faster {
        format!("{ran}, faster than {all}: that rate is not this path's")
    } else {
        let full = direction.rtt.min_ns.filter(|rtt| *rtt > 0).map(|rtt| {
            let room = BitRate(path.bps).bytes_in(Duration(rtt)).0;
            format!(
                "; to fill it over a round trip of {} takes {} in flight, and at most {} were",
                words::time(rtt),
                words::bytes(room),
                words::bytes(direction.max_in_flight_bytes)
            )
        });
        format!("{ran}, {share} of {all}{}", full.unwrap_or_default())
    };
    Beside {
        source: source as u64,
        side: "path".into(),
        quantity: "path_rate".into(),
        verdict: if faster { "contradicts" } else { "agrees" }.into(),
        unit: "bps".into(),
        measured: Some(number(path.bps)),
        estimated: Some(number(rate)),
        text,
        ..Beside::default()
    }
}
