//! The model's predictions for what findings advise.

use core::cmp::Reverse;

use tcpwhy::report::{Connection, PredictedBy, Prediction, Report};

use super::{Answer, Study};

/// Connections that are repeated: those whose findings cost most.
const MOST_CONNECTIONS: usize = 20;

/// Segments that are simulated in all. Ours: about a second.
const MOST_WORK: u64 = 3_000_000;

/// Segments that guesses about one connection may take of that. Ours: a tenth.
const MOST_GUESSES: u64 = MOST_WORK / 10;

/// Runs for one connection besides guesses: some thirty to repeat it, some five for each remedy.
const RUNS: u64 = 60;

/// Gives the remedies of the costliest connections what the model predicts of them, where it repeats the
/// connection and the work is not too much; others keep their arithmetic.
pub fn advise(report: &mut Report) {
    let mut costly: Vec<&mut Connection> =
        report.connections.iter_mut().filter(|each| wants_advice(each)).collect();
    costly.sort_by_key(|each| (Reverse(cost_ns(each)), each.id));
    let mut left = MOST_WORK;
    for connection in costly.into_iter().take(MOST_CONNECTIONS) {
        let segments = connection.directions.iter().flatten().map(|each| each.segments);
        let segments = segments.sum::<u64>();
        if let Some(rest) = left.checked_sub(segments.saturating_mul(RUNS)) {
            left = rest
                .saturating_sub(fill(connection, rest.min(MOST_GUESSES)).saturating_mul(segments));
        }
    }
}

fn wants_advice(connection: &Connection) -> bool {
    connection.findings.iter().flat_map(|finding| &finding.remedies).any(|each| each.set.is_some())
}

fn cost_ns(connection: &Connection) -> i64 {
    connection.findings.iter().map(|finding| finding.cost_ns).max().unwrap_or(0)
}

/// Predicts for one, with so much work for guesses at most; how many runs these took.
fn fill(connection: &mut Connection, work: u64) -> u64 {
    let Ok(study) = Study::within(connection, work) else { return 0 };
    if !study.repeats() {
        return study.guesses;
    }
    for remedy in connection.findings.iter_mut().flat_map(|finding| &mut finding.remedies) {
        let answer = match remedy.set.as_deref() {
            Some("again") => study.ask_again(),
            Some(change) => study.ask(&[change.to_owned()]),
            None => continue,
        };
        if let Ok(Answer { best, low_ns, high_ns, unfinished, .. }) = answer
            && unfinished.is_empty()
        {
            remedy.predicted_ns = Some(Prediction {
                low: low_ns,
                best: best.ns,
                high: high_ns,
                now: study.fit.seen.ns,
                by: PredictedBy::Model,
            });
        }
    }
    study.guesses
}
