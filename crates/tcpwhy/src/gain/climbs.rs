//! How long a transfer takes without one of its causes.

use super::ladder::{Climb, wire_ns};
use super::removed::{LINK, LOSS, Removed, family, follows, is_repair, is_wait};
use super::seen::Seen;
use crate::report::{Connection, State};

/// At least, most likely, and at most, in nanoseconds.
type Bounds = (i64, i64, i64);

/// A ceiling is one of a transfer where it held this share of it in per cent. Ours: what is worth a finding.
const HELD_PERCENT: i64 = 10;

/// The least delay of an ACK that a receiver holds back (Linux `TCP_DELACK_MIN`).
const DELAYED_ACK_NS: i64 = 40_000_000;

/// A receive window that grows without the sender as its limit: no further than so (`tcp_rmem`'s usual 6 MB, and
/// beyond). Ours.
const LARGEST_WINDOW: u64 = 16 << 20;

/// A round that ends so was as large as what the program had written.
const WRITES: [State; 2] = [State::App, State::NagleDelack];

/// What is saved of one train.
pub(super) fn without(seen: &Seen<'_>, removed: Removed) -> Bounds {
    match removed {
        Removed::Nagle => nagle(seen),
        Removed::Timers => {
            let time = seen.time_in(family(removed));
            let trips = seen.least_rtt.saturating_mul(waits(seen, removed).len().max(1) as i64);
            (time.saturating_sub(trips), time.saturating_sub(seen.least_rtt), time)
        }
        Removed::OwnQueue | Removed::Pacing | Removed::Marks => {
            let time = seen.time_in(family(removed));
            (0, time / 2, time)
        }
        _ => climbed(seen, removed),
    }
}

/// A program that goes on writing while Nagle's algorithm holds its last segment loses only the last of the waits; one
/// that waits for an answer loses all.
fn nagle(seen: &Seen<'_>) -> Bounds {
    let time = seen.time_in(&[State::NagleDelack]);
    let waits = waits(seen, Removed::Nagle);
    let last = waits.last().copied().unwrap_or(0);
    let last = last.saturating_sub(seen.least_rtt).max(0);
    if waits.len() > 2 {
        (0, last, time)
    } else {
        (last, time.saturating_sub(seen.least_rtt), time)
    }
}

/// How long each of a cause's waits took.
fn waits(seen: &Seen<'_>, removed: Removed) -> Vec<i64> {
    let inside = seen
        .direction
        .limits
        .iter()
        .filter(|limit| limit.start_ns >= seen.train.start && limit.end_ns <= seen.train.end);
    let own = inside.filter(|limit| family(removed).contains(&limit.state));
    own.map(|limit| limit.end_ns.saturating_sub(limit.start_ns)).collect()
}

/// The climb twice: with what was seen, and with what nothing showed open.
fn climbed(seen: &Seen<'_>, removed: Removed) -> Bounds {
    let with = Without { seen, removed };
    let (least, most) = (with.lasts(Bound::Least), with.lasts(Bound::Most));
    let gains = [least, most].map(|time| seen.took.saturating_sub(time));
    let (low, high) = (gains[0].min(gains[1]), gains[0].max(gains[1]));
    // Rounds are whole, and a link seldom gives all it has.
    let low = low.saturating_sub(seen.least_rtt / 2).saturating_sub(seen.took / 100);
    let slack = seen.least_rtt.saturating_add(seen.took / 100);
    let high = high.saturating_add(slack).min(most_that_ends(seen, removed)).max(0);
    let low = with.sure_part(low.clamp(0, high));
    let middle = if with.is_paused() { low } else { low / 2 + high / 2 };
    (low, middle, high)
}

/// Nothing but a faster link beats what the link takes for these bytes, and no more ends with a cause than what was waited
/// for it, for what followed, and for what is not known.
fn most_that_ends(seen: &Seen<'_>, removed: Removed) -> i64 {
    // What is n times as fast takes the n-th part at least.
    if let Removed::Link { times } = removed {
        let times = i64::from(times.max(1));
        let rest = seen.took / times * (times - 1);
        return rest.saturating_add(seen.least_rtt).saturating_add(seen.took / 100);
    }
    let floor = |rate| wire_ns(seen.train.bytes, rate).saturating_add(seen.least_rtt);
    let floor = seen.link.filter(|_| removed != Removed::Others).map_or(seen.least_rtt, floor);
    let by_link = seen.took.saturating_sub(floor);
    // What a program does, and where a transfer begins, changes all the rest.
    let changes_all = [Removed::Reuse, Removed::Reader, Removed::Writer].contains(&removed);
    if changes_all || matches!(removed, Removed::SlowStart { .. }) {
        return by_link;
    }
    let states = [family(removed), follows(removed), &[State::Unknown]];
    let ends = states.map(|states| seen.time_in(states)).into_iter().fold(0, i64::saturating_add);
    let round = if ends > 0 { seen.least_rtt.saturating_add(seen.took / 100) } else { 0 };
    let lost = if ends > 0 && losses_may_go(seen, removed) { seen.time_in(&LOSS) } else { 0 };
    by_link.min(ends.saturating_add(round).saturating_add(lost))
}

/// Other flights may lose nothing where the losses were a queue's.
fn losses_may_go(seen: &Seen<'_>, removed: Removed) -> bool {
    let pattern = seen.direction.loss_pattern.as_ref();
    let is_chance = pattern.is_some_and(|pattern| &*pattern.kind == "random");
    let is_flight = matches!(
        removed,
        Removed::SendBuffer | Removed::Window | Removed::SlowStart { .. } | Removed::Reuse
    );
    is_flight && !is_chance
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
    /// The writer pauses, and its pauses stay.
    fn is_paused(&self) -> bool {
        !matches!(self.removed, Removed::Writer | Removed::Reader) && self.seen.train.transfers > 1
    }

    /// What is surely saved of what the arithmetic saves at least.
    fn sure_part(&self, low: i64) -> i64 {
        let seen = self.seen;
        match self.removed {
            // A program that pauses by its own clock begins its next write no sooner.
            _ if self.is_paused() => 0,
            // A window that is warm from the start overflows a queue that was full before.
            Removed::Reuse if seen.holds(&LOSS, 30) => 0,
            Removed::Reuse if seen.holds(&LINK, 30) => low / 2 - DELAYED_ACK_NS.min(low / 2),
            // Its last short segment may wait for a delayed ACK, as none is on a new connection.
            Removed::Reuse => low - DELAYED_ACK_NS.min(low),
            Removed::Link { .. } => low - low / 33,
            // What was one climb after the pause meets delayed ACKs and queues in one burst.
            Removed::IdleRestart => low - low / 8,
            _ => low,
        }
    }

    fn lasts(&self, bound: Bound) -> i64 {
        let seen = self.seen;
        let windows = self.windows(bound);
        let climb = Climb {
            bytes: seen.train.bytes,
            rtt: if bound == Bound::Most { seen.least_rtt } else { seen.rtt },
            first: self.first(bound),
            rate: self.rate(bound),
            windows: &windows,
            most: self.most(bound),
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
        let heals = bound == Bound::Most && losses_may_go(self.seen, self.removed);
        let times = self.seen.train.time_in.iter();
        let in_vain = |state: &State| {
            (flows && is_repair(*state)) || (heals && LOSS.contains(state)) || gone(state)
        };
        let stay = times.filter(|(state, _)| is_wait(*state) && !in_vain(state));
        stay.map(|(_, time)| time.0.max(0)).fold(0, i64::saturating_add)
    }

    fn first(&self, bound: Bound) -> u64 {
        let seen = self.seen;
        match self.removed {
            Removed::SlowStart { first_flight } => first_flight.unwrap_or(seen.train.bytes),
            Removed::Reuse if bound == Bound::Most => seen.train.bytes,
            Removed::Reuse => seen
                .direction
                .max_in_flight_bytes
                .max(seen.direction.burst_proven_bytes.unwrap_or(0)),
            Removed::IdleRestart => self.before_pause(bound),
            _ => seen.first,
        }
        .max(seen.first)
    }

    /// The congestion window that pauses cut.
    fn before_pause(&self, bound: Bound) -> u64 {
        let seen = self.seen;
        let cut = seen.direction.idle_restarts.iter().filter_map(|each| each.cwnd_before);
        let segments = if bound == Bound::Most { cut.max() } else { cut.min() };
        let bytes = segments.map(|each| each.saturating_mul(seen.mss));
        match bound {
            Bound::Most => bytes.unwrap_or(0).max(seen.direction.max_in_flight_bytes),
            // A burst larger than any that passed may be lost in part.
            Bound::Least => bytes.min(seen.direction.burst_proven_bytes).unwrap_or(seen.first),
        }
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
            .then(|| seen.pace(&reader));
        let writes = (self.removed != Removed::Writer && bound == Bound::Least)
            .then(|| self.writers_pace())
            .flatten();
        [link, reads.flatten(), writes].into_iter().flatten().min()
    }

    /// The pace of a program that did not always have data ready. Where no rounds show it, it is no more than what
    /// passed.
    fn writers_pace(&self) -> Option<u64> {
        let seen = self.seen;
        let few = seen.ended_by(&WRITES).count() < 2;
        match seen.time_in(&[State::App]) {
            0 if few => None,
            _ if few => seen.passed,
            _ => seen.pace(&WRITES),
        }
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
    fn most(&self, bound: Bound) -> Option<u64> {
        let buffers =
            [(Removed::SendBuffer, State::Sndbuf), (Removed::AppWindow, State::AppWindow)];
        let held = buffers.into_iter().filter(|(removed, state)| {
            let follows = bound == Bound::Most && follows(self.removed).contains(state);
            *removed != self.removed && !follows && self.seen.holds(&[*state], HELD_PERCENT)
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
    let most = sum.saturating_add(sum / 100).saturating_add(more).saturating_add(trips);
    (sum - sum / 20, sum, most)
}
