//! What one run came to: its folder, judged by `explain` and by the kernel's records.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::atomic::AtomicBool;

use anyhow::{Context, bail};
use serde::Serialize;
use tcpwhy::report::{Connection, Direction, Report};
use tcpwhy::tracker::Config;
use tcpwhy::units::Time;
use tcpwhy_linux::lab::folder;
use tcpwhy_linux::lab::queue::most_waiting;
use tcpwhy_model::scenario::plan::{Flow, Plan, Step};
use truth::Truth;

use super::calls::{self, Log};
use super::counters::{self, Moved};
use super::sockets::{self, Sockets};
use crate::read::{Input, read_all};

/// One run.
#[derive(Clone, Debug, Default)]
pub(super) struct Outcome {
    /// First packet to the last ACK of data, over all connections.
    pub(super) time_ns: i64,
    /// Unique payload of the direction that matters.
    pub(super) bytes: u64,
    /// Retransmitted segments by the capture at the sender.
    pub(super) resent: u64,
    /// The same by the kernel.
    pub(super) resent_by_kernel: Option<u64>,
    /// Bytes of each round, transfer by transfer, of the first connection.
    pub(super) rounds: Vec<Vec<Round>>,
    /// Time in each state by `explain` at the sender.
    pub(super) explain: BTreeMap<String, u64>,
    /// Time in each state by the kernel; none without its records.
    pub(super) kernel: Option<BTreeMap<String, u64>>,
    /// How often an end waited for the other: rounds both ways, and two ways of each handshake.
    pub(super) waits: u64,
    /// Codes of what `explain` found.
    pub(super) findings: BTreeSet<String>,
    /// What the programs saw.
    pub(super) log: Log,
    /// How the counters of client and server moved; none where nobody counted.
    pub(super) counters: Option<[Moved; 2]>,
    /// What looks at the sockets saw; none where nobody looked.
    pub(super) sockets: Option<Sockets>,
    /// Most bytes that waited for the link on the way of the data, where somebody looked.
    pub(super) queue: Option<u64>,
    /// What the reader should know.
    pub(super) problems: Vec<String>,
}

/// One round trip's worth of sending.
#[derive(Clone, Debug, Eq, PartialEq, Serialize)]
pub(super) struct Round {
    /// New payload.
    pub(super) bytes: u64,
    /// The same in segments.
    pub(super) segments: u64,
    /// What the sender waited for after it, by `explain`.
    pub(super) limited_by: String,
}

/// Whose data an experiment is about: 0 for the client's, 1 for the server's.
pub(super) fn direction(plan: &Plan) -> usize {
    let sum = |side: fn(&Flow) -> &[Step]| -> u64 {
        plan.flows.iter().fold(0, |sum, flow| written(side(flow)).saturating_add(sum))
    };
    usize::from(sum(|flow| &flow.server) >= sum(|flow| &flow.client))
}

/// Bytes that steps write.
pub(super) fn written(steps: &[Step]) -> u64 {
    let of = |step: &Step| match step {
        Step::Write { bytes, .. } | Step::WriteHead(bytes) => *bytes,
        Step::Repeat { times, steps } => written(steps).saturating_mul(u64::from(*times)),
        _ => 0,
    };
    steps.iter().fold(0, |sum, step| of(step).saturating_add(sum))
}

/// The name of the capture at the host of that end.
pub(super) fn capture_at(side: usize) -> &'static str {
    let [client, server, _] = folder::CAPTURES;
    if side == 0 { client } else { server }
}

/// Reads a capture and explains it in full.
///
/// # Errors
/// It cannot be read.
pub(super) fn explained(path: &Path, stop: &AtomicBool) -> anyhow::Result<Report> {
    let input = Input::named(path);
    input.check()?;
    let config = Config { detail: true, ..Config::default() };
    let report = read_all(&[input], config, 1, stop, &mut |_, _| {});
    match report.captures.first().and_then(|capture| capture.error.as_ref()) {
        Some(error) if report.connections.is_empty() => {
            bail!("cannot read {}: {error}", path.display())
        }
        _ => Ok(report),
    }
}

/// Judges the run of `plan` whose records are in `folder`; writes the truth there.
///
/// # Errors
/// Its captures cannot be read.
pub(super) fn judge(plan: &Plan, folder: &Path, stop: &AtomicBool) -> anyhow::Result<Outcome> {
    let side = direction(plan);
    let report = explained(&folder.join(capture_at(side)), stop)?;
    let mut outcome = of_report(plan, &report, side);
    outcome.log = calls::read(folder, plan.flows.len());
    outcome.counters = counters::read(folder);
    outcome.sockets = sockets::read(folder, &plan.records.sockets_at_ns);
    outcome.queue = most_waiting(plan, folder, side == 1)
        .with_context(|| format!("cannot read the records of queues in {}", folder.display()))?;
    match truth::of_folder(folder) {
        Ok(mut truth) => {
            let path = folder.join(folder::TRUTH);
            let text = serde_json::to_vec(&truth).context("the truth is plain data")?;
            std::fs::write(&path, text)
                .with_context(|| format!("cannot write {}", path.display()))?;
            truth.trim(|of| captured(&report, of));
            with_truth(&mut outcome, &truth, side);
        }
        Err(truth::TruthError::NothingRecorded { .. }) => outcome.problems.push(
            "its kernel's tracepoints left no events: where the time went by the kernel is not known"
                .to_owned(),
        ),
        Err(error) => outcome.problems.push(format!("no truth by the kernel: {error}")),
    }
    Ok(outcome)
}

/// First and last packet of a connection in a capture, in nanoseconds since 1970.
fn captured(report: &Report, of: &truth::Connection) -> Option<(u64, u64)> {
    let ports = (of.client_port, of.server_port);
    let same = |c: &&Connection| (c.client.port(), c.server.port()) == ports;
    let connection = report.connections.iter().find(same)?;
    let start = u64::try_from(Time::from_rfc3339(&connection.start)?.0).ok()?;
    Some((start, start + connection.duration_ns.unsigned_abs()))
}

fn of_report(plan: &Plan, report: &Report, side: usize) -> Outcome {
    let mut outcome = Outcome::default();
    let ports: Vec<_> = plan.flows.iter().map(|flow| flow.port).collect();
    let ours = |connection: &&Connection| ports.contains(&connection.server.port());
    for connection in report.connections.iter().filter(ours) {
        let last = connection.transfers.iter().map(|transfer| transfer.end_ns).max();
        outcome.time_ns += last.unwrap_or(connection.duration_ns);
        outcome.findings.extend(connection.findings.iter().map(|finding| finding.code.clone()));
        let ways = connection.directions.iter().flatten();
        outcome.waits += 2 + ways.map(|way| way.rounds.len() as u64).sum::<u64>();
        let Some(direction) = connection.directions[side].as_deref() else { continue };
        outcome.bytes += direction.bytes;
        let r = direction.retransmitted;
        outcome.resent += r.fast + r.rto + r.tlp + r.unnecessary + r.syn;
        for (state, span) in direction.time_in.iter() {
            *outcome.explain.entry(state.name().to_owned()).or_default() += span.0.unsigned_abs();
        }
        if outcome.rounds.is_empty() {
            outcome.rounds = rounds(connection, direction, side);
        }
    }
    if outcome.bytes == 0 {
        outcome.problems.push("the capture at the sender holds no data of it".to_owned());
    }
    outcome
}

/// Rounds of each transfer of one direction.
fn rounds(connection: &Connection, direction: &Direction, side: usize) -> Vec<Vec<Round>> {
    let from = ["client", "server"][side];
    let transfers = connection.transfers.iter().filter(|transfer| transfer.from == from);
    let ranges = transfers.filter_map(|transfer| transfer.rounds);
    let of = |range: tcpwhy::report::RoundRange| {
        let rounds = direction.rounds.get(range.first as usize..=range.last as usize)?;
        let round = |round: &tcpwhy::report::Round| Round {
            bytes: round.bytes,
            segments: round.segments,
            limited_by: round.limited_by.name().to_owned(),
        };
        Some(rounds.iter().map(round).collect())
    };
    ranges.filter_map(of).collect()
}

fn with_truth(outcome: &mut Outcome, truth: &Truth, side: usize) {
    let rows = truth.time_in(side);
    let rows = rows.into_iter().map(|(state, ns)| (state.name().to_owned(), ns));
    outcome.kernel = Some(rows.collect());
    let sides = || truth.connections.iter().filter_map(|c| c.directions[side].as_ref());
    outcome.resent_by_kernel = sides().map(|direction| direction.retransmitted).sum();
    if truth.damaged_lines > 0 {
        let count = truth.damaged_lines;
        outcome.problems.push(format!("{count} lines of the kernel's records cannot be read"));
    }
    if let Some(kernel) = outcome.resent_by_kernel.filter(|kernel| *kernel != outcome.resent) {
        outcome.problems.push(format!(
            "the capture at the sender shows {} retransmitted segments, its kernel counts {kernel}",
            outcome.resent
        ));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_direction_is_that_of_most_data() {
        let steps = |bytes| vec![Step::Repeat { times: 3, steps: vec![Step::WriteHead(bytes)] }];
        let flow = |client, server| Flow {
            client: steps(client),
            server: steps(server),
            ..Flow::default()
        };
        let plan = |flow| Plan { flows: vec![flow], ..Plan::default() };
        assert_eq!(direction(&plan(flow(10, 5))), 0);
        assert_eq!(direction(&plan(flow(5, 10))), 1);
        assert_eq!(written(&steps(7)), 21);
    }
}
