//! What the report shows of one transfer, as the arithmetic needs it.

use super::ladder::rate_bps;
use super::removed::LINK;
use crate::report::{Connection, Direction, Round, RoundRange, State, TimeIn, Transfer};
use tcpwhy_words::units::Duration;

/// Transfers of one side without data of the other between them: what one answer is, however its program pauses.
#[derive(Clone, Debug, Default)]
pub(super) struct Train {
    pub(super) start: i64,
    pub(super) end: i64,
    pub(super) bytes: u64,
    /// Time in each state, the pauses between with it.
    pub(super) time_in: TimeIn,
    /// How many transfers it is.
    pub(super) transfers: i64,
    rounds: Option<RoundRange>,
}

impl Train {
    /// The trains of a side, in their order.
    pub(super) fn all(connection: &Connection, sender: &str) -> Vec<Self> {
        let mut trains: Vec<Self> = Vec::new();
        let mut goes_on = false;
        for transfer in &connection.transfers {
            if transfer.from != sender {
                goes_on = false;
                continue;
            }
            match trains.last_mut().filter(|_| goes_on) {
                Some(train) => train.take(transfer),
                None => trains.push(Self::of(transfer)),
            }
            goes_on = true;
        }
        trains
    }

    fn of(transfer: &Transfer) -> Self {
        Self {
            start: transfer.start_ns,
            end: transfer.end_ns,
            bytes: transfer.bytes,
            time_in: transfer.time_in.clone(),
            transfers: 1,
            rounds: transfer.rounds,
        }
    }

    fn take(&mut self, next: &Transfer) {
        let pause = next.start_ns.saturating_sub(self.end).max(0);
        self.time_in.add(State::IdleAppThink, Duration(pause));
        self.time_in.add_all(next.time_in.iter());
        self.end = self.end.max(next.end_ns);
        self.bytes = self.bytes.saturating_add(next.bytes);
        self.transfers = self.transfers.saturating_add(1);
        self.rounds = self.rounds.zip(next.rounds).map(|(own, next)| RoundRange {
            first: own.first.min(next.first),
            last: own.last.max(next.last),
        });
    }
}

/// One train and its direction.
#[derive(Clone, Debug)]
pub(super) struct Seen<'a> {
    pub(super) direction: &'a Direction,
    pub(super) train: &'a Train,
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
        train: &'a Train,
    ) -> Option<Self> {
        let took = train.end.saturating_sub(train.start);
        if took <= 0 || train.bytes == 0 {
            return None;
        }
        let mss = connection.mss.map_or(USUAL_MSS, u64::from).max(1);
        let trips = [direction.rtt.min_ns, connection.handshake_rtt_ns];
        let least_rtt = trips.into_iter().flatten().filter(|trip| *trip > 0).min()?;
        let rtt = direction.rtt.min_ns.filter(|trip| *trip > 0).unwrap_or(least_rtt);
        let rounds = rounds(direction, train);
        Some(Self {
            direction,
            train,
            took,
            mss,
            least_rtt,
            rtt,
            first: first_flight(direction, rounds, train, mss),
            rounds,
            windows: windows(rounds),
            link: link(direction),
            passed: passed(direction, rounds, mss),
        })
    }

    /// Its time in these states.
    pub(super) fn time_in(&self, states: &[State]) -> i64 {
        let times = states.iter().map(|state| self.train.time_in.get(*state).0.max(0));
        times.fold(0, i64::saturating_add)
    }

    /// Whether these states held this share of it in per cent, or more.
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

    /// The rate of the rounds that these states ended: a program's pace, where the states are a program's.
    pub(super) fn pace(&self, states: &[State]) -> Option<u64> {
        let (mut bytes, mut time) = (0_u64, 0_i64);
        for (at, round) in self.rounds.iter().enumerate() {
            if states.contains(&round.limited_by) {
                let end = self.rounds.get(at + 1).map_or(self.train.end, |next| next.start_ns);
                bytes = bytes.saturating_add(round.bytes);
                time = time.saturating_add(end.saturating_sub(round.start_ns).max(0));
            }
        }
        rate_bps(bytes, time)
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

fn rounds<'a>(direction: &'a Direction, train: &Train) -> &'a [Round] {
    let range = || {
        let range = train.rounds?;
        let (first, last) = (usize::try_from(range.first).ok()?, usize::try_from(range.last).ok()?);
        direction.rounds.get(first..=last)
    };
    range().unwrap_or_default()
}

fn first_flight(direction: &Direction, rounds: &[Round], train: &Train, mss: u64) -> u64 {
    let initial = direction.initial_window.filter(|first| first.bytes > 0).map(|first| first.bytes);
    let first = rounds.first().map(|round| round.bytes).filter(|bytes| *bytes > 0);
    first.or(initial).unwrap_or(mss.saturating_mul(10)).min(train.bytes)
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

/// The payload rate of a policer, or of the narrowest link: by its spacing, else as the queue shows it. An estimate below what passed
/// for a whole round contradicts itself.
fn link(direction: &Direction) -> Option<u64> {
    if direction.time_in.get(State::BandwidthPolicer).0 > 0 {
        return direction.bottleneck_rate_bps;
    }
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
