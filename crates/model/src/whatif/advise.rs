//! The model's predictions for what findings advise.

use core::cmp::Reverse;

use tcpwhy::gain;
use tcpwhy::report::{Connection, PredictedBy, Prediction, Report};

use super::work::Work;
use super::{Answer, Study};

/// Connections that are repeated: those whose findings cost most.
const MOST_CONNECTIONS: usize = 20;

/// Events of the model that are run in all. Ours: two to four seconds (`make whatif EACH=2 SEED=39`: 1.5 to 3
/// million a second).
const MOST_WORK: u64 = 6_000_000;

/// Most of that for guesses about one connection. Ours: 13 of the 22 captures of that set take no more in
/// all.
const MOST_GUESSES: u64 = MOST_WORK / 3;

/// Events that one connection takes besides guesses, for each of its segments: some thirty runs to repeat it,
/// some five for each remedy.
const EVENTS: u64 = 60 * 3;

/// Gives the remedies of the costliest connections what the model predicts of them, where it repeats the
/// connection and the work is not too much; others keep their arithmetic.
pub fn advise(report: &mut Report) {
    let mut costly: Vec<&mut Connection> =
        report.connections.iter_mut().filter(|each| wants_advice(each)).collect();
    costly.sort_by_key(|each| (Reverse(cost_ns(each)), each.id));
    let mut left = MOST_WORK;
    for connection in costly.into_iter().take(MOST_CONNECTIONS) {
        let segments = connection.directions.iter().flatten().map(|each| each.segments);
        let usual = segments.sum::<u64>().saturating_mul(EVENTS);
        if usual <= left {
            let work = Work::of(left.min(usual + MOST_GUESSES));
            fill(connection, &work);
            left -= work.spent();
        }
    }
}

fn wants_advice(connection: &Connection) -> bool {
    connection.findings.iter().flat_map(|finding| &finding.remedies).any(|each| each.set.is_some())
}

fn cost_ns(connection: &Connection) -> i64 {
    connection.findings.iter().map(|finding| finding.cost_ns).max().unwrap_or(0)
}

/// Predicts for one, within the limits of `work`.
fn fill(connection: &mut Connection, work: &Work) {
    // A third is kept for the remedies.
    let Ok(study) = work.but(work.left() / 3, |work| Study::by(connection, work)) else { return };
    // With more work `whatif` may find another fit: then no figure is better than a second one.
    if !study.repeats() || study.was_cut_short {
        return;
    }
    for remedy in connection.findings.iter_mut().flat_map(|finding| &mut finding.remedies) {
        let answer = match remedy.set.as_deref() {
            Some("again") => study.ask_again_within(work),
            Some(change) => study.ask_within(&[change.to_owned()], work),
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
    connection.findings.iter_mut().for_each(gain::from_predictions);
}
