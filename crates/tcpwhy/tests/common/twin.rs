//! The naive twin: conservation of time, checked from the published report alone.
//!
//! It shares no code with the engine: it walks the list of limits with plain integers and sums
//! them by the states' names.

use std::collections::BTreeMap;

use tcpwhy::report::{Connection, Direction, Sure, TimeIn, Transfer};

/// Whether every nanosecond of `connection` is booked once; else what is wrong.
pub(crate) fn conserved(connection: &Connection) -> Result<(), String> {
    let lifetime = connection.duration_ns;
    if lifetime < 0 {
        return Err(format!("the lifetime is {lifetime}"));
    }
    for (side, direction) in connection.directions.iter().enumerate() {
        if let Some(direction) = direction {
            let told = |fault| format!("connection {} side {side}: {fault}", connection.id);
            limits(direction, lifetime, connection.truncated).map_err(told)?;
            rounds(direction, lifetime).map_err(told)?;
        }
    }
    for (at, transfer) in connection.transfers.iter().enumerate() {
        let told = |fault| format!("connection {} transfer {at}: {fault}", connection.id);
        span(transfer, lifetime).map_err(told)?;
    }
    Ok(())
}

/// The limits begin at zero, follow one another, end with the lifetime and add up by state.
fn limits(direction: &Direction, lifetime: i64, truncated: bool) -> Result<(), String> {
    let booked = by_name(&direction.time_in);
    let total: i64 = booked.values().sum();
    if total != lifetime {
        return Err(format!("time_in adds up to {total} of {lifetime} ns"));
    }
    if let Some((name, ns)) = booked.iter().find(|(_, ns)| **ns < 0) {
        return Err(format!("{ns} ns in {name}"));
    }
    let (mut at, mut sums) = (0, BTreeMap::<&str, i64>::new());
    for (number, limit) in direction.limits.iter().enumerate() {
        let name = limit.state.name();
        if limit.start_ns != at {
            return Err(format!(
                "limit {number} ({name}) starts at {} after {at} ns",
                limit.start_ns
            ));
        }
        if limit.end_ns <= limit.start_ns {
            return Err(format!("limit {number} ({name}) ends at {} after {at} ns", limit.end_ns));
        }
        if limit.confidence == Sure::Shown && !limit.alternative.is_empty() {
            return Err(format!("limit {number} ({name}) is shown and may be something else"));
        }
        *sums.entry(name).or_default() += limit.end_ns - limit.start_ns;
        at = limit.end_ns;
    }
    if truncated {
        return if at <= lifetime { Ok(()) } else { Err(format!("limits end at {at} ns")) };
    }
    if at != lifetime {
        return Err(format!("limits end at {at} of {lifetime} ns"));
    }
    if sums != booked {
        return Err(format!("limits add up to {sums:?}, time_in says {booked:?}"));
    }
    Ok(())
}

fn rounds(direction: &Direction, lifetime: i64) -> Result<(), String> {
    let mut before = 0;
    for (number, round) in direction.rounds.iter().enumerate() {
        if round.start_ns < before || round.start_ns > lifetime {
            return Err(format!("round {number} starts at {} after {before}", round.start_ns));
        }
        let cwnd = round.cwnd;
        if let (Some(low), Some(high)) = (cwnd.low, cwnd.high)
            && low > high
        {
            return Err(format!("round {number} has a cwnd from {low} to {high}"));
        }
        before = round.start_ns;
    }
    Ok(())
}

fn span(transfer: &Transfer, lifetime: i64) -> Result<(), String> {
    let (start, end) = (transfer.start_ns, transfer.end_ns);
    if start < 0 || end < start || end > lifetime {
        return Err(format!("it lasts from {start} to {end} of {lifetime} ns"));
    }
    let booked = by_name(&transfer.time_in);
    let total: i64 = booked.values().sum();
    if total != end - start || booked.values().any(|ns| *ns < 0) {
        return Err(format!("time_in {booked:?} adds up to {total} of {} ns", end - start));
    }
    Ok(())
}

fn by_name(time_in: &TimeIn) -> BTreeMap<&'static str, i64> {
    time_in.iter().map(|(state, time)| (state.name(), time.0)).collect()
}
