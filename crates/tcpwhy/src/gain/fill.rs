//! Gains for findings, and ceilings for directions.

use core::cmp::Reverse;

use super::{Removed, bounded, family, gain, now_ns};
use crate::report::{Connection, Finding, Gain, PredictedBy, Prediction, State};

/// What a finding's gain is.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Way {
    /// What comes of thinking a cause away.
    Without(Removed),
    /// At most what its intervals took.
    Seen,
    /// What its intervals took, if that may fall away at all.
    Most,
    /// Nothing: it took no time.
    Nothing,
}

/// What each finding's cause is. What failed has none: there is nothing to make faster.
fn way(code: &str) -> Option<Way> {
    use Removed as R;
    let removed = match code {
        "SLOW_START" => R::Reuse,
        "INITIAL_WINDOW" => R::SlowStart { first_flight: None },
        "IDLE_RESTART" => R::IdleRestart,
        "SLOW_START_ENDED_EARLY" => R::EarlyExit,
        "WINDOW_CAP" | "WINDOW_SCALE" | "SCALE_LOST" | "WINDOW_GROWTH" => R::Window,
        "SLOW_READER" | "ZERO_WINDOW" => R::Reader,
        "SEND_BUFFER" => R::SendBuffer,
        "APP_WINDOW" => R::AppWindow,
        "NAGLE_DELAYED_ACK" => R::Nagle,
        "LOSS_CONGESTION" | "LOSS_RANDOM" | "LOSS_PERIODIC" | "LOSS" | "LOSS_LOCAL" | "DAMAGED" => {
            R::Loss
        }
        "TIMEOUT" => R::Timers,
        "REORDERING" => R::Reordering,
        "ECN" => R::Marks,
        "LOCAL_QDISC" => R::OwnQueue,
        "PACING" => R::Pacing,
        "BOTTLENECK" | "VARIABLE_RATE" | "TOKEN_BUCKET" | "POLICER" => R::Link { times: 2 },
        "BOTTLENECK_SHARED" => R::Others,
        "THINK_SERVER" => R::Think,
        "SLOW_WRITER" => R::Writer,
        "SYN_RETRY" => R::Syn,
        "COLD_CONNECTION" => R::Opening,
        // Their time lies in states that other causes have, too.
        "ACCEPT_QUEUE" | "ACK_PATH" | "OTHERS_QUEUE" | "STOOD_STILL" | "PATH_MTU"
        | "BLACK_HOLE" | "TLS_ROUND_TRIPS" | "SLOW_HANDSHAKE" => {
            return Some(Way::Seen);
        }
        "REQUESTS_IN_TURN" => return Some(Way::Most),
        "FAST_OPEN" | "THINNED_ACKS" | "THINK_CLIENT" | "OPTIONS_REFUSED" => {
            return Some(Way::Nothing);
        }
        _ => return None,
    };
    Some(Way::Without(removed))
}

/// Fills the gains of a connection's findings and the ceilings of its directions.
pub(crate) fn fill(connection: &mut Connection) {
    let mut findings = core::mem::take(&mut connection.findings);
    for finding in &mut findings {
        finding.seen_in_ns = finding.cost_ns;
        finding.gain = of(connection, finding);
    }
    connection.findings = findings;
    for at in 0..connection.directions.len() {
        let found = super::ceilings(connection, at);
        if let Some(direction) = &mut connection.directions[at] {
            direction.ceilings = found;
        }
    }
}

fn of(connection: &Connection, finding: &Finding) -> Option<Gain> {
    match way(&finding.code)? {
        Way::Without(removed) => {
            let removed = match removed {
                Removed::SlowStart { .. } => {
                    Removed::SlowStart { first_flight: usual_start(connection) }
                }
                other => other,
            };
            let at = direction_of(connection, finding, family(removed));
            let told = gain(connection, at, removed);
            // A reader may pace its sender, or stop to the end: then the climb is not where its time went.
            let reads = removed == Removed::Reader
                && told.is_some_and(|told| told.high_ns < finding.cost_ns / 2);
            if reads { Some(seen(connection, finding)) } else { told }
        }
        Way::Seen => Some(seen(connection, finding)),
        Way::Most => {
            let seen = seen(connection, finding);
            Some(Gain { best_ns: seen.high_ns, ..seen })
        }
        Way::Nothing => Some(bounded((0, 0, 0), now_ns(connection))),
    }
}

/// At most what its intervals took.
fn seen(connection: &Connection, finding: &Finding) -> Gain {
    let (seen, now) = (finding.cost_ns, now_ns(connection).max(finding.cost_ns));
    bounded((0, seen / 2, seen), now)
}

/// Ten segments (RFC 6928).
fn usual_start(connection: &Connection) -> Option<u64> {
    connection.mss.map(|mss| u64::from(mss).saturating_mul(10))
}

/// The direction that a finding speaks of; of one that does not say, the one that such states held the longest.
fn direction_of(connection: &Connection, finding: &Finding, states: &[State]) -> usize {
    let held = |at: &usize| {
        let direction = connection.directions[*at].as_deref();
        let time = |state: &State| direction.map_or(0, |each| each.time_in.get(*state).0);
        states.iter().map(time).fold(0, i64::saturating_add)
    };
    match finding.from.as_deref() {
        Some("client") => 0,
        Some("server") => 1,
        _ => (0..2).max_by_key(held).unwrap_or(0),
    }
}

/// Where the model predicted what a remedy of the finding brings, its gain is that of the best of them.
pub fn from_predictions(finding: &mut Finding) {
    let predicted = finding.remedies.iter().filter_map(|remedy| remedy.predicted_ns);
    let by_model = predicted.filter(|each| each.by == PredictedBy::Model);
    if let Some(best) = by_model.min_by_key(|each| (each.best, Reverse(each.high))) {
        finding.gain = Some(of_prediction(best));
    }
}

pub(crate) fn of_prediction(told: Prediction) -> Gain {
    let saved = |then: i64| told.now.saturating_sub(then);
    let gain = bounded((saved(told.high), saved(told.best), saved(told.low)), told.now);
    Gain { by: told.by, ..gain }
}
