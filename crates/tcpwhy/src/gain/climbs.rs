//! How long a transfer takes without one of its causes.

use super::ladder::{Climb, wire_ns};
use super::removed::{LINK, LOSS, Removed, family, follows, is_repair, is_wait};
use super::seen::Seen;
use crate::report::{Connection, State};

/// At least, most likely, and at most, in nanoseconds.
type Bounds = (i64, i64, i64);

/// A ceiling is one of a transfer where it held so many per cent of it. Ours: what is worth a finding.
const HELD_PERCENT: i64 = 10;

/// A receive window that grows without the sender as its limit: no further than so (`tcp_rmem`'s usual 6 MB, and
/// beyond). Ours.
const LARGEST_WINDOW: u64 = 16 << 20;

/// What is saved of one transfer.
pub(super) fn without(seen: &Seen<'_>, removed: Removed) -> Bounds {
    match removed {
        Removed::Nagle | Removed::Timers => waits(seen, removed),
        Removed::OwnQueue | Removed::Pacing | Removed::Marks => {
            let time = seen.time_in(family(removed));
            (0, time / 2, time)
        }
        _ => climbed(seen, removed),
    }
}

/// A wait that is gone; the round trip of what ends it then stays, perhaps.
fn waits(seen: &Seen<'_>, removed: Removed) -> Bounds {
    let time = seen.time_in(family(removed));
    let waits = seen.direction.limits.iter().filter(|limit| {
        family(removed).contains(&limit.state)
            && limit.start_ns >= seen.transfer.start_ns
            && limit.end_ns <= seen.transfer.end_ns
    });
    let waits = i64::try_from(waits.count().max(1)).unwrap_or(i64::MAX);
    let low = time.saturating_sub(seen.least_rtt.saturating_mul(waits));
    (low, time.saturating_sub(seen.least_rtt).max(low), time)
}

/// The climb twice: with what was seen, and with what nothing showed open.
fn climbed(seen: &Seen<'_>, removed: Removed) -> Bounds {
    let with = Without { seen, removed };
    let (least, most) = (with.lasts(Bound::Least), with.lasts(Bound::Most));
    let gains = [least, most].map(|time| seen.took.saturating_sub(time));
    let (low, high) = (gains[0].min(gains[1]), gains[0].max(gains[1]));
    // Rounds are whole.
    let mut low = low.saturating_sub(seen.least_rtt / 2);
    let mut high = high.saturating_add(seen.least_rtt);
    if matches!(removed, Removed::Link { .. }) {
        low = low.saturating_sub(low / 33);
    }
    // Nothing but a faster link beats what the link takes for these bytes.
    if !matches!(removed, Removed::Link { .. } | Removed::Others)
        && let Some(rate) = seen.link
    {
        let floor = wire_ns(seen.transfer.bytes, rate).saturating_add(seen.least_rtt);
        high = high.min(seen.took.saturating_sub(floor)).max(0);
    }
    low = low.clamp(0, high.max(0));
    (low, low / 2 + high / 2, high)
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Bound {
    /// The least gain: everything at what was seen.
    Least,
    /// The greatest: what nothing showed is open.
    Most,
}

/// A transfer without a cause.
struct Without<'a> {
    seen: &'a Seen<'a>,
    removed: Removed,
}

impl Without<'_> {
    fn lasts(&self, bound: Bound) -> i64 {
        let seen = self.seen;
        let windows = self.windows(bound);
        let climb = Climb {
            bytes: seen.transfer.bytes,
            rtt: if bound == Bound::Most { seen.least_rtt } else { seen.rtt },
            first: self.first(bound),
            rate: self.rate(bound),
            windows: &windows,
            most: self.most(),
            growth: if bound == Bound::Most { 2000 } else { seen.growth() },
        };
        self.waits(bound).saturating_add(climb.ns())
    }

    /// The waits that stay. In repairs over a full link the data flows.
    fn waits(&self, bound: Bound) -> i64 {
        let gone = |state: &State| {
            family(self.removed).contains(state) || follows(self.removed).contains(state)
        };
        let flows = bound == Bound::Most && self.seen.link.is_some();
        let times = self.seen.transfer.time_in.iter();
        let stay = times
            .filter(|(state, _)| is_wait(*state) && !gone(state) && !(flows && is_repair(*state)));
        stay.map(|(_, time)| time.0.max(0)).fold(0, i64::saturating_add)
    }

    fn first(&self, bound: Bound) -> u64 {
        let seen = self.seen;
        match self.removed {
            Removed::SlowStart { first_flight } => first_flight.unwrap_or(seen.transfer.bytes),
            Removed::Reuse if bound == Bound::Most => seen.transfer.bytes,
            Removed::Reuse => seen
                .direction
                .max_in_flight_bytes
                .max(seen.direction.burst_proven_bytes.unwrap_or(0)),
            // The window that the pause cut was as large as any before.
            Removed::IdleRestart if bound == Bound::Most => seen.direction.max_in_flight_bytes,
            _ => seen.first,
        }
        .max(seen.first)
    }

    /// The link's rate, and the pace of the programs; for the least gain the highest rate that passed, too.
    fn rate(&self, bound: Bound) -> Option<u64> {
        let seen = self.seen;
        let times = match self.removed {
            Removed::Link { times } => u64::from(times.max(1)),
            _ => 1,
        };
        let shared =
            seen.direction.shared_link_rate_bps.filter(|_| self.removed == Removed::Others);
        let link = shared.or(seen.link);
        let passed = seen.passed.filter(|_| bound == Bound::Least);
        let link = link.or(passed).map(|rate| rate.saturating_mul(times));
        let reader = [State::RwndReader, State::ZeroWindow];
        let reads = (self.removed != Removed::Reader && seen.holds(&reader, HELD_PERCENT))
            .then(|| seen.pace(&[State::RwndReader, State::ZeroWindow]));
        let writes = (self.removed != Removed::Writer
            && bound == Bound::Least
            && seen.holds(&[State::App], HELD_PERCENT))
        .then(|| seen.pace(&[State::App]));
        [link, reads.flatten(), writes.flatten()].into_iter().flatten().min()
    }

    /// The receive window of each round; none: it is open.
    fn windows(&self, bound: Bound) -> Vec<u64> {
        let seen = self.seen;
        let largest = seen.windows.last().copied();
        let is_capped = seen.holds(&[State::RwndCap], HELD_PERCENT);
        let as_seen = || seen.windows.clone();
        let at_most = || largest.into_iter().collect::<Vec<u64>>();
        let mut windows = match (self.removed, bound) {
            (Removed::Window, Bound::Least) => growing(seen, 2),
            (Removed::Reader | Removed::Window, Bound::Most) => Vec::new(),
            (Removed::Reuse, Bound::Most) if !is_capped => Vec::new(),
            (Removed::SlowStart { .. }, Bound::Most) if !is_capped => growing(seen, 4),
            (_, Bound::Most) if !is_capped => growing(seen, 2),
            (Removed::Reuse, Bound::Least) | (_, Bound::Most) => at_most(),
            (_, Bound::Least) => as_seen(),
        };
        if bound == Bound::Least
            && let Some(left) = self.left_by_losses()
        {
            if windows.is_empty() {
                windows.push(left);
            }
            for window in &mut windows {
                *window = (*window).min(left);
            }
        }
        windows
    }

    /// The window that losses leave, where they stay and the link was not what lost them: CUBIC's response function
    /// (RFC 9438 section 5.1) or Reno's.
    fn left_by_losses(&self) -> Option<u64> {
        let seen = self.seen;
        let goes = matches!(self.removed, Removed::Loss | Removed::Link { .. });
        if goes || !seen.holds(&LOSS, 20) || seen.holds(&LINK, 30) {
            return None;
        }
        let segments = super::ceilings::response(seen.direction, seen.rtt)?;
        Some(segments.max(4).saturating_mul(seen.mss))
    }

    /// The buffer that fills, and the window above TCP.
    fn most(&self) -> Option<u64> {
        let buffers =
            [(Removed::SendBuffer, State::Sndbuf), (Removed::AppWindow, State::AppWindow)];
        let held = buffers.into_iter().filter(|(removed, state)| {
            *removed != self.removed && self.seen.holds(&[*state], HELD_PERCENT)
        });
        let flight = |state: State| {
            let rounds = self.seen.rounds.iter().filter(|round| round.limited_by == state);
            rounds.map(|round| round.in_flight_bytes).max()
        };
        held.filter_map(|(_, state)| flight(state)).filter(|bytes| *bytes > 0).min()
    }
}

/// The receive window if it grew by `factor` each round from its first on, and was never smaller than it was.
fn growing(seen: &Seen<'_>, factor: u64) -> Vec<u64> {
    const ROUNDS: usize = 24;
    let mut next = seen.windows.first().copied().unwrap_or(65_535);
    let mut largest = 0;
    let grow = |at: usize| {
        let as_seen = seen.windows.get(at).copied().unwrap_or(0);
        largest = largest.max(as_seen).max(next.min(LARGEST_WINDOW));
        next = next.saturating_mul(factor);
        largest
    };
    (0..ROUNDS).map(grow).collect()
}

/// The repeated SYNs' waits.
pub(super) fn syn(connection: &Connection) -> Bounds {
    let waited = connection.directions.iter().flatten();
    let time = waited.map(|each| each.time_in.get(State::SynRetry).0.max(0)).max().unwrap_or(0);
    (time - time / 10, time, time)
}

/// The handshake, which a connection that is used again does not need.
pub(super) fn opening(connection: &Connection) -> Option<Bounds> {
    let took = connection.handshake_rtt_ns.filter(|rtt| *rtt > 0)?;
    Some((took, took, took))
}

/// The server's silence; a pause longer than a retransmission timeout cuts the window too.
pub(super) fn think(connection: &Connection) -> Bounds {
    const LONG_NS: i64 = 200_000_000;
    let rtt = connection.handshake_rtt_ns.unwrap_or(0).max(0);
    let thought = connection.exchanges.iter().map(|each| each.server_think_ns.unwrap_or(0).max(0));
    let sum = thought.clone().fold(0, i64::saturating_add);
    let long = thought.skip(1).filter(|time| *time > LONG_NS.saturating_add(rtt)).count();
    let restarts = connection.directions.iter().flatten();
    let restarts = restarts.map(|each| each.time_in.get(State::CwndAfterIdle).0.max(0));
    let more = restarts.fold(0, i64::saturating_add);
    let trips = rtt.saturating_mul(i64::try_from(long).unwrap_or(i64::MAX));
    (sum - sum / 50, sum, sum.saturating_add(more).saturating_add(trips))
}
