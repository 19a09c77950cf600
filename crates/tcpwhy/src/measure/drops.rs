//! Does a policer drop what exceeds a rate, as far as its sender's own packets show?
//!
//! A token bucket without a queue lets packets pass until its credit is spent. It drops the next, and lets as much pass from
//! then on as its rate allows. So from one drop to the next just `rate * time` passes, however long that is. Less passes
//! only where the sender was slow meanwhile and the credit ran over; more never does. Losses by chance stop anywhere in a
//! flight, so what passes between them varies by a flight.
//!
//! A full queue drops at one rate, too. But what passed before the drop stood in it, and came through one by one.
//! A policed flight comes through as fast as it was sent. So only flights with a silence between them tell, whose round trips are
//! much shorter than that silence would let a queue make them.

use std::collections::VecDeque;

use crate::clocks::StackTime;
use crate::offsets::Offset;

const SECOND_NS: i128 = 1_000_000_000;

/// Distances between drops that are compared. Ours: not measured.
const DISTANCES: usize = 32;
/// Repairs that are remembered. Ours: those of two flights; of more, the oldest are taken to have come through.
const REPAIRS: usize = 128;
/// Drops within this share of a round trip are of one flight. Ours: flights are a round trip apart.
const ONE_FLIGHT: i64 = 4;
/// The chance that losses stop so by themselves is at most one in two to the power of this many halves: one in 16,384.
/// Ours: of 4,000 simulated connections with 300 losses by chance each, 26 came to 4 half bits, and none to 10.
const HALF_BITS: u32 = 28;
/// A distance tells at most this much: four bits. Ours: flights leave a little unevenly.
const MOST_HALF_BITS: u32 = 8;
/// The longest of these distances is at least this many per cent of the shortest, or the losses may just come evenly.
const VARIED_PERCENT: i64 = 150;
/// Of those that keep to a rate, one exceeds it for this many at most. Ours: a repair that was lost, too,
/// counts as passed until it is retransmitted.
const FEW: usize = 4;

/// What the newest rounds show of the path and of how flights leave.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Flights {
    /// The longest silence between sends.
    pub(crate) silence: i64,
    /// How much longer the mean round trip was than the least.
    pub(crate) waited: i64,
    /// The least round trip.
    pub(crate) least_rtt: i64,
    pub(crate) mss: i64,
}

/// From one drop to the next of another flight.
#[derive(Clone, Copy, Debug)]
struct Distance {
    time: i64,
    passed: i64,
    silence: i64,
}

/// The packets that were dropped, as far as they matter.
#[derive(Clone, Debug, Default)]
pub(crate) struct Drops {
    /// The newest drop: when it was sent, and how many bytes had passed before it.
    last: Option<(StackTime, i64)>,
    dropped: i64,
    /// Up to which offset repairs came.
    mended_to: Offset,
    /// When a repair was sent, what it began with, and its bytes.
    repairs: VecDeque<(StackTime, Offset, i64)>,
    /// Bytes of those that are no longer kept.
    mended: i64,
    distances: VecDeque<Distance>,
    rate: Option<i64>,
}

impl Drops {
    /// A repair of `[start, end)` is sent at `now`; `dropped_at` is when the original was sent, where
    /// the tap saw that.
    pub(crate) fn on_repair(
        &mut self,
        (start, end): (Offset, Offset),
        dropped_at: Option<StackTime>,
        now: StackTime,
        flights: Flights,
    ) {
        if start < self.mended_to {
            // The one before it did not come through.
            if let Some(lost) = self.repairs.iter_mut().rev().find(|repair| repair.1 == start) {
                lost.2 = 0;
            }
        } else {
            self.mended_to = end;
            if let Some(at) = dropped_at {
                self.on_drop(at, start, flights);
            }
            self.dropped += end - start;
        }
        if self.repairs.len() == REPAIRS {
            self.mended += self.repairs.pop_front().map_or(0, |oldest| oldest.2);
        }
        self.repairs.push_back((now, start, end - start));
    }

    fn on_drop(&mut self, at: StackTime, start: Offset, flights: Flights) {
        let mended = self.repairs.iter().take_while(|repair| repair.0 <= at);
        let mended = self.mended + mended.map(|repair| repair.2).sum::<i64>();
        let passed = start - Offset::FIRST - self.dropped + mended;
        let Some((then, before)) = self.last.replace((at, passed)) else { return };
        let time = at - then;
        if time <= flights.least_rtt / ONE_FLIGHT {
            return;
        }
        // What a queue held waited as long as the silence before it: half of that on average.
        let silence = if flights.waited < flights.silence / 4 { flights.silence } else { 0 };
        if self.distances.len() == DISTANCES {
            self.distances.pop_front();
        }
        self.distances.push_back(Distance { time, passed: passed - before, silence });
        self.rate = self.one_rate(flights.mss.max(1));
    }

    /// The rate of the policer's that dropped, in bytes of payload a second.
    pub(crate) fn rate(&self) -> Option<i64> {
        self.rate
    }

    /// The rate that many distances keep to, more than chance would have, and that hardly one exceeds.
    fn one_rate(&self, mss: i64) -> Option<i64> {
        let all = &self.distances;
        let rates = all
            .iter()
            .map(|each| i128::from(each.passed) * SECOND_NS / i128::from(each.time.max(1)));
        let fits = rates.filter(|rate| *rate > 0).map(|rate| Fit::of(all, rate, mss));
        let best = fits.max_by_key(|fit| fit.told)?;
        best.is_no_chance().then(|| i64::try_from(best.rate).unwrap_or(i64::MAX))
    }
}

/// How distances fit a rate.
#[derive(Clone, Copy, Debug)]
struct Fit {
    rate: i128,
    /// How many keep to it, and how many exceed it.
    kept: usize,
    exceeded: usize,
    /// The times of the shortest and longest that keep to it.
    times: (i64, i64),
    /// How little chance would have it so, in half bits.
    told: u32,
}

impl Fit {
    /// The credit is below a segment at each drop. So what passes between two is the rate times the time, to a segment.
    fn of(all: &VecDeque<Distance>, rate: i128, mss: i64) -> Self {
        let allows = |time: i64| rate.saturating_mul(i128::from(time)) / SECOND_NS;
        let (mut kept, mut exceeded, mut times) = (0, 0, (i64::MAX, 0));
        let (mut told, mut most) = (0_u32, 0);
        for each in all {
            let more = i128::from(each.passed) - allows(each.time);
            if more > i128::from(mss) {
                exceeded += 1;
            } else if more >= -i128::from(mss) {
                kept += 1;
                times = (each.time.min(times.0), each.time.max(times.1));
                // It may stop anywhere in what a silence gave credit for.
                let by_chance = allows(each.silence) / i128::from(2 * mss).max(1);
                let by_chance = by_chance.clamp(1, 1 << (MOST_HALF_BITS / 2));
                let tells = (by_chance * by_chance).ilog2();
                told += tells;
                most = tells.max(most);
            }
        }
        // One of them gave the rate, so it keeps to it anyway: perhaps the one that tells most. And as many rates and groups
        // were tried.
        let tried = half_bits(all.len() as u128) + half_bits(ways(all.len(), kept));
        Self { rate, kept, exceeded, times, told: told.saturating_sub(most + tried) }
    }

    fn is_no_chance(&self) -> bool {
        let (shortest, longest) = self.times;
        longest / VARIED_PERCENT >= shortest / 100
            && self.exceeded * FEW <= self.kept
            && self.told >= HALF_BITS
    }
}

/// In how many ways `some` of `all` can be chosen.
fn ways(all: usize, some: usize) -> u128 {
    (0..some.min(all - some)).fold(1, |ways, n| ways * (all - n) as u128 / (n + 1) as u128)
}

/// Twice the logarithm to base two of at least one, from below.
fn half_bits(of: u128) -> u32 {
    (of * of).max(1).ilog2()
}

#[cfg(test)]
mod tests {
    use super::*;

    const MSS: i64 = 1_000;
    const MS: i64 = 1_000_000;
    const FLIGHTS: Flights = Flights { silence: 20 * MS, waited: 0, least_rtt: 20 * MS, mss: MSS };

    /// Flights at these times in milliseconds that pass this many segments and lose the next. Each is repaired a round trip
    /// later.
    fn after(flights: &[(i64, i64)], path: Flights) -> Option<i64> {
        let mut drops = Drops::default();
        let mut start = Offset::FIRST;
        for (at, passed) in flights {
            // What repaired the one before has passed, too.
            start += (passed - i64::from(start > Offset::FIRST)) * MSS;
            let at = StackTime(at * MS);
            drops.on_repair((start, start + MSS), Some(at), at + path.least_rtt, path);
            start += MSS;
        }
        drops.rate()
    }

    /// At 20 segments a round trip, 1,000,000 B/s.
    const POLICED: [(i64, i64); 13] = [
        (0, 50),
        (20, 20),
        (60, 40),
        (120, 60),
        (140, 20),
        (240, 100),
        (260, 20),
        (300, 40),
        (320, 20),
        (400, 80),
        (440, 40),
        (460, 20),
        (520, 60),
    ];

    #[test]
    fn what_passes_from_drop_to_drop_as_time_does_tells_a_policer() {
        assert_eq!(after(&POLICED, FLIGHTS), Some(1_000_000));
        assert_eq!(after(&POLICED[..8], FLIGHTS), Some(1_000_000), "seven distances");
        assert_eq!(after(&POLICED[..7], FLIGHTS), None, "six distances may be chance");
    }

    #[test]
    fn a_segment_more_or_less_fits_and_two_do_not() {
        let by = |more: i64| {
            let flights = POLICED.iter().enumerate();
            let strayed = |(n, (at, passed)): (usize, &(i64, i64))| {
                (*at, passed + if n % 2 == 0 { more } else { 0 })
            };
            after(&flights.map(strayed).collect::<Vec<_>>(), FLIGHTS).is_some()
        };
        assert_eq!([by(1), by(-1), by(2), by(-2)], [true, true, false, false]);
    }

    /// Flights that grow by a segment a round trip and halve with each loss; one segment of 60 is lost by chance.
    fn with_losses_by_chance(mut seed: u64, losses: usize) -> bool {
        let mut random = move |below: i64| {
            seed ^= seed << 13;
            seed ^= seed >> 7;
            seed ^= seed << 17;
            i64::try_from(seed >> 33).expect("31 bits") % below
        };
        let (mut drops, mut window, mut at, mut start) = (Drops::default(), 20, 0, Offset::FIRST);
        let mut left = losses;
        let mut is_told = false;
        while left > 0 {
            let first_lost = (0..window).find(|_| random(60) == 0);
            let now = StackTime(at);
            if let Some(passed) = first_lost {
                let lost = start + passed * MSS;
                let path = Flights { silence: 20 * MS, ..FLIGHTS };
                drops.on_repair((lost, lost + MSS), Some(now), now + 20 * MS, path);
                is_told |= drops.rate().is_some();
                left -= 1;
            }
            start += window * MSS;
            window = if first_lost.is_some() { (window / 2).max(2) } else { window + 1 };
            at += 20 * MS;
        }
        is_told
    }

    #[test]
    fn losses_by_chance_are_not_taken_for_a_policers() {
        let told: Vec<u64> =
            (1..=400).filter(|seed| with_losses_by_chance(seed * 7_919, 300)).collect();
        assert_eq!(told, Vec::<u64>::new());
    }

    #[test]
    fn losses_that_stop_anywhere_in_a_flight_are_no_policers() {
        let by_chance =
            [(0, 50), (20, 11), (60, 52), (120, 49), (140, 33), (240, 88), (260, 14), (300, 51)];
        assert_eq!(after(&by_chance, FLIGHTS), None);
    }

    #[test]
    fn credit_that_ran_over_is_no_contradiction() {
        let mut flights = POLICED.to_vec();
        flights.push((900, 60));
        assert!(after(&flights, FLIGHTS).is_some());
    }

    #[test]
    fn a_queue_holds_what_passed_and_even_sends_pass_whenever_they_are_sent() {
        let queued = Flights { waited: 5 * MS, ..FLIGHTS };
        assert_eq!(after(&POLICED, queued), None, "a quarter of the silence");
        assert!(after(&POLICED, Flights { waited: 5 * MS - 1, ..FLIGHTS }).is_some());
        let even = Flights { silence: MS, ..FLIGHTS };
        assert_eq!(after(&POLICED, even), None, "any loss of an even stream keeps to its rate");
    }

    #[test]
    fn losses_at_even_distances_may_come_evenly() {
        let even: Vec<_> = (0..12).map(|n| (20 * n, 20)).collect();
        assert_eq!(after(&even, FLIGHTS), None);
    }

    #[test]
    fn what_no_path_does_overflows_nothing() {
        let path = Flights { silence: i64::MAX / 2, waited: 0, least_rtt: 1, mss: 1 };
        let mut drops = Drops::default();
        for n in 0..9_i64 {
            let start = Offset::at(n << 40);
            drops.on_repair((start, start + 1), Some(StackTime(n)), StackTime(n), path);
        }
        assert_eq!(drops.distances.len(), 8);
    }

    #[test]
    fn a_repair_that_is_sent_again_had_not_passed() {
        let mut drops = Drops::default();
        let repair = |drops: &mut Drops, start: i64, at: i64| {
            let start = Offset::at(start);
            drops.on_repair((start, start + MSS), Some(StackTime(0)), StackTime(at), FLIGHTS);
        };
        repair(&mut drops, 10_000, 20);
        repair(&mut drops, 10_000, 40);
        let told: Vec<i64> = drops.repairs.iter().map(|repair| repair.2).collect();
        assert_eq!((drops.dropped, told), (MSS, vec![0, MSS]));
    }
}
