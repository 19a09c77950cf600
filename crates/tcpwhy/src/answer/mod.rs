//! The answer: which causes come first, in which words, and what would make the transfer faster.
//!
//! A connection has findings, and several may speak of the same time. One of them stands for a cause
//! (`explained_by` of the others), the causes are put in order (what did not work, then what would save most), each is said in a
//! sentence or two ([`sentence`]), and each is given the change that takes it away ([`change`]). The first screen
//! prints it, and the JSON has it as `answer`. Pure functions over the report.

pub(crate) mod change;
pub(crate) mod held_ack;
pub(crate) mod sentence;
pub(crate) mod words;

use core::cmp::Reverse;

use crate::find;
use crate::report::{Connection, Direction, Finding, Gain, Report, Severity, State};
use tcpwhy_words::units::Duration;

/// Causes that the answer names. Ours: what a reader takes in at one look.
const NAMED: usize = 2;

/// A second cause is named if it was seen for this share of the active time. Ours.
const SECOND_PERCENT: f64 = 12.0;

/// A connection that waited for no one for a larger share of its life is called idle first. Ours.
const IDLE_PERCENT: f64 = 50.0;

/// Below this share of the active time no cause explains the whole. Ours.
const SINGLE_PERCENT: f64 = 35.0;

/// The direction that the answer speaks of: the one with most bytes (of equals the server's).
pub(crate) fn main(connection: &Connection) -> Option<(usize, &Direction)> {
    connection.present().max_by_key(|(at, direction)| (direction.bytes, *at))
}

/// The findings that stand for causes, the first to be told first: failures, then by what would be saved.
pub(crate) fn causes(connection: &Connection) -> Vec<&Finding> {
    let mut standing: Vec<&Finding> =
        connection.findings.iter().filter(|each| each.explained_by.is_none()).collect();
    if find::failed(connection).next().is_some() {
        standing = find::failed(connection).collect();
    }
    standing.retain(|each| find::is_failure(each) || each.cost_ns > 0);
    // What would be saved, else the time in which it was seen; equal ones keep the order of their cost.
    let ranked_by = |finding: &Finding| change::gain(finding).map_or(finding.cost_ns, worth).max(0);
    standing.sort_by_key(|each| (!find::is_failure(each), Reverse(ranked_by(each))));
    standing
}

/// What a gain is ranked by: the middle of its range, or the best guess.
pub(crate) fn worth(gain: Gain) -> i64 {
    (gain.low_ns / 2).saturating_add(gain.high_ns / 2).max(gain.best_ns)
}

/// Says the answer of each connection.
pub fn fill(report: &mut Report) {
    for connection in &mut report.connections {
        connection.answer = said(connection).join(" ");
    }
}

/// The answer, one sentence (or what belongs together) after the other.
pub(crate) fn said(connection: &Connection) -> Vec<String> {
    let causes = causes(connection);
    let wrong =
        connection.findings.iter().filter(|each| is_wrong_fact(each)).map(sentence::of_fact);
    let Some(first) = causes.first() else {
        return core::iter::once(sentence::of_no_cause(connection)).chain(wrong).collect();
    };
    if find::is_failure(first) {
        return vec![sentence::of_failure(first)];
    }
    let active = Duration(find::active_ns(connection));
    let share = |finding: &Finding| Duration(finding.cost_ns).percent_of(active);
    let idle = idle(connection);
    let is_idle = idle.percent_of(Duration(connection.duration_ns)) > IDLE_PERCENT;
    if is_idle && share(first) < SECOND_PERCENT {
        return core::iter::once(sentence::of_idleness(connection, idle)).chain(wrong).collect();
    }
    // That the programs were silent says the same.
    let told = causes.iter().filter(|each| !(is_idle && each.code == "NOT_TCP"));
    let named = told.take(NAMED).enumerate();
    let named = named.filter(|(at, each)| *at == 0 || share(each) >= SECOND_PERCENT);
    let mut said: Vec<String> = Vec::new();
    if is_idle {
        said.push(sentence::of_idleness(connection, idle));
    }
    let named: Vec<_> = named.collect();
    if named.iter().all(|(_, each)| share(each) < SINGLE_PERCENT) {
        said.push("No single cause holds most of the time.".to_owned());
    }
    said.extend(named.into_iter().map(|(at, each)| sentence::of(connection, each, at == 0)));
    said.extend(wrong);
    said
}

/// What cut an answer off took no time, but is wrong: it comes behind what did.
fn is_wrong_fact(finding: &Finding) -> bool {
    finding.code == "RESET" && finding.cost_ns == 0 && finding.severity >= Severity::Wrong
}

/// Time in which no one waits: the client's silence between requests, and a connection that is kept open.
pub(crate) fn idle(connection: &Connection) -> Duration {
    let active = find::active_ns(connection);
    let closing = main(connection).map_or(0, |(_, main)| main.time_in.get(State::Closing).0);
    Duration(connection.duration_ns.saturating_sub(active).saturating_sub(closing).max(0))
}
