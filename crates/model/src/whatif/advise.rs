//! The model's predictions for what findings advise.

use core::cmp::Reverse;

use tcpwhy::report::{Connection, PredictedBy, Prediction, Report};

use super::{Answer, Study};

/// Connections that are repeated: those whose findings cost most.
const MOST_CONNECTIONS: usize = 20;

/// Segments that are simulated in all. Ours: about a second.
const MOST_WORK: u64 = 3_000_000;

/// Runs for one connection: some thirty to repeat it, some five for each remedy.
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
        let work = segments.sum::<u64>().saturating_mul(RUNS);
        if let Some(rest) = left.checked_sub(work) {
            left = rest;
            fill(connection);
        }
    }
}

fn wants_advice(connection: &Connection) -> bool {
    connection.findings.iter().flat_map(|finding| &finding.remedies).any(|each| each.set.is_some())
}

fn cost_ns(connection: &Connection) -> i64 {
    connection.findings.iter().map(|finding| finding.cost_ns).max().unwrap_or(0)
}

fn fill(connection: &mut Connection) {
    let Ok(study) = Study::of(connection) else { return };
    if !study.repeats() {
        return;
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
}
