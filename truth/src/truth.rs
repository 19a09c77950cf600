//! The truth of a run: what each sender waited for at each instant, with its windows, round trips
//! and repetitions, by the kernel's records alone.

use std::path::Path;

use serde::{Deserialize, Serialize};

use crate::error::TruthError;
use crate::link::Log;
use crate::records::{End, Records, Talk};
use crate::spans::{Span, cut};
use crate::states::State;
use crate::{observed, probed};

/// The format of the JSON.
pub const FORMAT: &str = "tcpwhy-truth/1";

/// The truth of a run.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
pub struct Truth {
    /// [`FORMAT`].
    pub format: String,
    /// Connections, in the order of their first event.
    pub connections: Vec<Connection>,
    /// Lines of the records that could not be read.
    pub damaged_lines: u64,
}

/// One connection.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
pub struct Connection {
    /// Its client's port.
    pub client_port: u16,
    /// Its server's port.
    pub server_port: u16,
    /// Which of the plan's flows.
    pub flow: u64,
    /// Which of that flow's connections; `null` if the applications' log does not tell.
    pub connection: Option<u64>,
    /// First event of either end, in nanoseconds since 1970.
    pub start_ns: u64,
    /// Last event of either end.
    pub end_ns: u64,
    /// Client to server, server to client; `null` where no data was sent.
    pub directions: [Option<Direction>; 2],
}

/// One direction, as its sender saw it.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
pub struct Direction {
    /// From what it is known.
    pub source: Source,
    /// Gap-free, from the connection's start to its end.
    pub intervals: Vec<Interval>,
    /// Time without a record that says.
    pub unrecorded_ns: u64,
    /// Retransmitted segments by the kernel's count.
    pub retransmitted: Option<u64>,
    /// The congestion window whenever it changed.
    pub windows: Vec<Window>,
    /// The smoothed round trip whenever it changed: time, nanoseconds.
    pub srtt: Vec<(u64, u64)>,
    /// When the narrowest link was full, by its own log ([`Truth::note_link`]).
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub link: Vec<(u64, u64, Fullness)>,
}

/// How sure it is that no more could have come through the narrowest link.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Fullness {
    /// It was not busy for long, or nobody looked.
    NotKnown,
    /// It was busy for 0.7 round trips or more: either word is right.
    Either,
    /// It was busy for two round trips or more.
    Full,
}

/// From what the truth is known.
#[derive(Clone, Copy, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Source {
    /// An observed kernel's own reasons: exact.
    #[default]
    Observed,
    /// Stock tracepoints and the applications' log: what has no record is left out.
    Tracepoints,
}

/// What held a sender for a while.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
pub struct Interval {
    /// Nanoseconds since 1970.
    pub start_ns: u64,
    /// The next one starts here.
    pub end_ns: u64,
    /// What held it.
    pub state: State,
    /// Congestion window at the start, in segments; `null` before it is known.
    pub cwnd: Option<u32>,
    /// Slow-start threshold at the start; `null` before it is known, or while it is infinite.
    pub ssthresh: Option<u32>,
}

/// The congestion window from an instant on.
#[derive(Clone, Copy, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
pub struct Window {
    /// Nanoseconds since 1970.
    pub t: u64,
    /// In segments.
    pub cwnd: u32,
    /// In segments; `null` while infinite.
    pub ssthresh: Option<u32>,
}

/// The truth of the run whose records are in `folder`.
///
/// # Errors
/// The records cannot be read, or hold no event of any connection.
pub fn of_folder(folder: &Path) -> Result<Truth, TruthError> {
    of_records(folder, false)
}

/// The same by what a stock kernel would have recorded of that run: to hold the one against the other.
///
/// # Errors
/// As [`of_folder`].
pub fn of_stock_records(folder: &Path) -> Result<Truth, TruthError> {
    of_records(folder, true)
}

fn of_records(folder: &Path, stock: bool) -> Result<Truth, TruthError> {
    let records = Records::read(folder, stock)?;
    let damaged_lines = records.damaged;
    if records.talks.is_empty() {
        let folder = folder.to_owned();
        return Err(TruthError::NothingRecorded { folder, damaged: damaged_lines });
    }
    let connections = records.talks.iter().map(connection).collect();
    Ok(Truth { format: FORMAT.to_owned(), connections, damaged_lines })
}

impl Truth {
    /// Forgets what lies outside the time, in nanoseconds since 1970, that `span` gives for a
    /// connection: a capture elsewhere begins and ends at other instants.
    pub fn trim(&mut self, span: impl Fn(&Connection) -> Option<(u64, u64)>) {
        for connection in &mut self.connections {
            let Some((from, to)) = span(connection) else { continue };
            for direction in connection.directions.iter_mut().flatten() {
                for interval in &mut direction.intervals {
                    interval.start_ns = interval.start_ns.clamp(from, to);
                    interval.end_ns = interval.end_ns.clamp(from, to);
                }
                direction.intervals.retain(|interval| interval.start_ns < interval.end_ns);
            }
        }
    }

    /// Takes in when the link that the data of `side` passed was busy.
    pub fn note_link(&mut self, side: usize, log: &Log) {
        let full = log.runs(20);
        let of = |run: (u64, u64)| {
            let is_full = full.contains(&run);
            (run.0, run.1, if is_full { Fullness::Full } else { Fullness::Either })
        };
        let runs: Vec<_> = log.runs(7).into_iter().map(of).collect();
        for connection in &mut self.connections {
            if let Some(direction) = connection.directions.get_mut(side).and_then(Option::as_mut) {
                direction.link.clone_from(&runs);
            }
        }
    }

    /// Time in each state over all connections of one direction (0 is client to server).
    pub fn time_in(&self, direction: usize) -> Vec<(State, u64)> {
        let directions =
            self.connections.iter().filter_map(|c| c.directions.get(direction)?.as_ref());
        let intervals: Vec<_> = directions.flat_map(|d| &d.intervals).collect();
        let time = |state| {
            let spans =
                intervals.iter().filter(|i| i.state == state).map(|i| i.end_ns - i.start_ns);
            spans.fold(0_u64, u64::saturating_add)
        };
        let mut rows: Vec<_> = State::ALL.iter().map(|state| (*state, time(*state))).collect();
        rows.retain(|row| row.1 > 0);
        rows.sort_by_key(|row| (core::cmp::Reverse(row.1), row.0));
        rows
    }
}

fn connection(talk: &Talk) -> Connection {
    let (start_ns, end_ns) = talk.span.unwrap_or_default();
    Connection {
        client_port: talk.client_port,
        server_port: talk.server_port,
        flow: talk.flow,
        connection: talk.number,
        start_ns,
        end_ns,
        directions: [0, 1].map(|side| direction(talk, &talk.ends[side], start_ns, end_ns)),
    }
}

fn direction(talk: &Talk, end: &End, first: u64, last: u64) -> Option<Direction> {
    if !sent_data(end) {
        return None;
    }
    let source = if end.observed.is_empty() { Source::Tracepoints } else { Source::Observed };
    let spans = match source {
        Source::Observed => observed::spans(end, first, last),
        Source::Tracepoints => probed::spans(end, first, last),
    };
    let retries: Vec<_> = talk.syns.windows(2).map(|pair| (pair[0], pair[1], ())).collect();
    let spans = cut(&spans, &retries, |_, ()| State::SynRetry);
    let windows = windows(end);
    let unrecorded_ns = spans.iter().filter(|s| s.2 == State::Unrecorded).map(|s| s.1 - s.0).sum();
    Some(Direction {
        source,
        intervals: spans.iter().map(|span| interval(*span, &windows)).collect(),
        unrecorded_ns,
        retransmitted: retransmitted(end),
        windows,
        srtt: srtt(end),
        link: Vec::new(),
    })
}

fn sent_data(end: &End) -> bool {
    match (end.observed.first(), end.observed.last()) {
        // A FIN alone takes one number.
        (Some(first), Some(last)) => last.end.wrapping_sub(first.una) > 1,
        _ => !end.probes.is_empty() && end.writes.iter().any(|write| write.bytes > 0),
    }
}

fn interval((start_ns, end_ns, state): Span<State>, windows: &[Window]) -> Interval {
    let at = windows.partition_point(|window| window.t <= start_ns);
    let window = at.checked_sub(1).map(|at| windows[at]);
    Interval {
        start_ns,
        end_ns,
        state,
        cwnd: window.map(|window| window.cwnd),
        ssthresh: window.and_then(|window| window.ssthresh),
    }
}

fn windows(end: &End) -> Vec<Window> {
    let finite = |ssthresh: u32| (ssthresh < INFINITE).then_some(ssthresh);
    let observed = end.observed.iter().map(|r| (r.t, r.cwnd, finite(r.ssthresh)));
    let probed = end.probes.iter().map(|r| (r.t, r.cwnd, finite(r.ssthresh)));
    let mut windows: Vec<Window> = if end.observed.is_empty() {
        probed.map(|(t, cwnd, ssthresh)| Window { t, cwnd, ssthresh }).collect()
    } else {
        observed.map(|(t, cwnd, ssthresh)| Window { t, cwnd, ssthresh }).collect()
    };
    windows.dedup_by_key(|window| (window.cwnd, window.ssthresh));
    windows
}

fn srtt(end: &End) -> Vec<(u64, u64)> {
    let mut samples: Vec<_> = if end.observed.is_empty() {
        end.probes.iter().map(|r| (r.t, u64::from(r.srtt_us) * 1000)).collect()
    } else {
        end.observed.iter().map(|r| (r.t, u64::from(r.srtt_us) * 1000)).collect()
    };
    samples.retain(|sample| sample.1 > 0);
    samples.dedup_by_key(|sample| sample.1);
    samples
}

/// The socket's own count where it is known, else the events.
fn retransmitted(end: &End) -> Option<u64> {
    end.total_retrans.or(Some(end.retransmits.len() as u64))
}

/// `TCP_INFINITE_SSTHRESH` (Linux v6.12 `include/net/tcp.h`).
const INFINITE: u32 = 0x7fff_ffff;
