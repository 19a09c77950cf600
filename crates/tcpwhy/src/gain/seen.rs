//! What the report shows of one transfer, as the arithmetic needs it.

use super::ladder::rate_bps;
use super::removed::LINK;
use crate::report::{Connection, Direction, Round, State, Transfer};

/// One transfer and its direction.
#[derive(Clone, Debug)]
pub(super) struct Seen<'a> {
    pub(super) direction: &'a Direction,
    pub(super) transfer: &'a Transfer,
    /// From its first byte to its last ACK.
    pub(super) took: i64,
    pub(super) mss: u64,
    /// The least round trip.
    pub(super) least_rtt: i64,
    /// The usual one.
    pub(super) rtt: i64,
    pub(super) first: u64,
    pub(super) rounds: &'a [Round],
    /// The largest receive window so far, each round.
    pub(super) windows: Vec<u64>,
    /// Payload rate of the narrowest link.
    pub(super) link: Option<u64>,
    /// The highest payload rate that passed for a round.
    pub(super) passed: Option<u64>,
}

/// What is assumed of the payload of a segment where the SYNs are not there (Ethernet, with timestamps).
const USUAL_MSS: u64 = 1448;

impl<'a> Seen<'a> {
    pub(super) fn of(
        connection: &'a Connection,
        direction: &'a Direction,
        transfer: &'a Transfer,
    ) -> Option<Self> {
        let took = transfer.end_ns.saturating_sub(transfer.start_ns);
        if took <= 0 || transfer.bytes == 0 {
            return None;
        }
        let mss = connection.mss.map_or(USUAL_MSS, u64::from).max(1);
        let trips = [direction.rtt.min_ns, connection.handshake_rtt_ns];
        let least_rtt = trips.into_iter().flatten().filter(|trip| *trip > 0).min()?;
        let rtt = direction.rtt.min_ns.filter(|trip| *trip > 0).unwrap_or(least_rtt);
        let rounds = rounds(direction, transfer);
        let first = first_flight(direction, rounds, transfer, mss);
        Some(Self {
            direction,
            transfer,
            took,
            mss,
            least_rtt,
            rtt,
            first,
            rounds,
            windows: windows(rounds),
            link: link(direction),
            passed: passed(direction, rounds, mss),
        })
    }

    /// Its time in these states.
    pub(super) fn time_in(&self, states: &[State]) -> i64 {
        let times = states.iter().map(|state| self.transfer.time_in.get(*state).0.max(0));
        times.fold(0, i64::saturating_add)
    }

    /// Whether these states held so many per cent of it or more.
    pub(super) fn holds(&self, states: &[State], percent: i64) -> bool {
        let time = self.time_in(states);
        time > 0 && i128::from(time) * 100 >= i128::from(self.took) * i128::from(percent)
    }

    /// Its rounds that ended in one of these states.
    pub(super) fn ended_by(
        &self,
        states: &'a [State],
    ) -> impl Iterator<Item = &'a Round> + use<'a> {
        self.rounds.iter().filter(move |round| states.contains(&round.limited_by))
    }

    /// The rate at which it went while these states held it, from the first of its rounds that they ended to the
    /// last: a program's pace, where the state is a program's.
    pub(super) fn pace(&self, states: &'a [State]) -> Option<u64> {
        let at: Vec<usize> = (0..self.rounds.len())
            .filter(|at| states.contains(&self.rounds[*at].limited_by))
            .collect();
        let (first, last) = (*at.first()?, *at.last()?);
        let end = self.rounds.get(last + 1).map_or(self.transfer.end_ns, |next| next.start_ns);
        let bytes = self.rounds[first..=last].iter().map(|round| round.bytes);
        let bytes = bytes.fold(0, u64::saturating_add);
        rate_bps(bytes, end.saturating_sub(self.rounds[first].start_ns))
    }

    /// By how many thousandths its flights grew in slow start: doubled at most (RFC 5681), by half where ACKs are
    /// delayed and counted.
    pub(super) fn growth(&self) -> u64 {
        let slow = |round: &Round| round.limited_by == State::CwndSlowStart && round.bytes > 0;
        let pairs = self.rounds.windows(2).filter(|two| slow(&two[0]) && slow(&two[1]));
        let mut grown: Vec<u64> =
            pairs.map(|two| two[1].bytes.saturating_mul(1000) / two[0].bytes).collect();
        grown.sort_unstable();
        grown.get(grown.len() / 2).map_or(2000, |each| (*each).clamp(1200, 2000))
    }
}

fn rounds<'a>(direction: &'a Direction, transfer: &Transfer) -> &'a [Round] {
    let range = || {
        let range = transfer.rounds?;
        let (first, last) = (usize::try_from(range.first).ok()?, usize::try_from(range.last).ok()?);
        direction.rounds.get(first..=last)
    };
    range().unwrap_or_default()
}

fn first_flight(direction: &Direction, rounds: &[Round], transfer: &Transfer, mss: u64) -> u64 {
    let initial = direction.initial_window.filter(|first| first.bytes > 0).map(|first| first.bytes);
    let first = rounds.first().map(|round| round.bytes).filter(|bytes| *bytes > 0);
    first.or(initial).unwrap_or(mss.saturating_mul(10)).min(transfer.bytes)
}

/// The receiver's window as it stood after each round's last send; what was once open counts on.
fn windows(rounds: &[Round]) -> Vec<u64> {
    let mut largest = 0;
    let window = |round: &Round| {
        let room = u64::try_from(round.window_room_bytes?.max(0)).ok()?;
        largest = largest.max(room.saturating_add(round.in_flight_bytes));
        Some(largest)
    };
    rounds.iter().filter_map(window).collect()
}

/// The payload rate of the narrowest link: by its spacing, else as the queue shows it. An estimate below what passed
/// for a whole round contradicts itself.
fn link(direction: &Direction) -> Option<u64> {
    let by_spacing = direction.link.as_ref().filter(|link| link.proven && link.rate_bps.best > 0);
    if let Some(link) = by_spacing {
        return rate_bps(direction.bytes, link.floor_ns);
    }
    let full = LINK.iter().any(|state| direction.time_in.get(*state).0 > 0);
    let passed = direction.delivery_rate_bps.map_or(0, |rate| rate.max);
    let rate = direction.bottleneck_rate_bps.filter(|rate| *rate > 0)?;
    (full || rate >= passed).then_some(rate)
}

fn passed(direction: &Direction, rounds: &[Round], mss: u64) -> Option<u64> {
    let full = rounds.iter().filter(|round| round.bytes >= mss.saturating_mul(2));
    let most = full.filter_map(|round| round.delivery_rate_bps).max();
    most.or(direction.delivery_rate_bps.map(|rate| rate.max)).filter(|rate| *rate > 0)
}
