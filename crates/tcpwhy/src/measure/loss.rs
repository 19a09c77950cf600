//! Do losses depend on what is in flight, and how do they cluster?
//!
//! A queue overflows when much is in flight; a bad cable does not care. The rank-sum test of
//! Wilcoxon (Mann-Whitney) compares the flights at which losses began with those of all sends
//! outside of repairs. What is lost between the first loss and its repair is no loss of its own: one
//! overflow takes many segments, so an episode counts once. Both samples are bounded; ties take
//! their mean rank; the normal approximation is used from 4 episodes on (limits-method section 8).
//!
//! Many losses make any dependence significant, also that of a timer which finds those of the least flights. So size
//! counts, too: a queue takes again what it took before, so its losses begin at the largest flights. And no queue
//! overflows with two segments in flight.
//!
//! Where the narrowest link shows, it tells better, and from the first episode on: whether lost packets found its queue
//! full ([`crate::measure::link`]).

use crate::clocks::StackTime;
use crate::report::{Link, LossPattern, LossToldBy};

/// Fewer episodes than this say nothing about a pattern.
const MIN_EPISODES: usize = 4;
/// Fewer flights to compare with tell nothing. Ours: not measured.
const MIN_FLIGHTS: usize = 20;
/// Nine flights of ten within this many per cent of each other cannot show what losses depend on.
/// Ours: as for the queue that follows a flight (`limits::near`).
const STEADY_PERCENT: i64 = 5;

/// An overflow begins at flights as large as nine tenths of all, but for what makes flights equal; losses that begin
/// with three quarters of that lie where a third more had passed. Ours: 22 simulated transfers, in which half of the
/// episodes of queues and policers began at 1.00 of that flight and more, and of losses that chance makes one by one at 0.24 to
/// 0.83; in bursts (five episodes) those of chance began at 1.00, too.
const LARGE_PERCENT: i64 = 100 - STEADY_PERCENT;
const SMALL_PERCENT: i64 = 75;
/// This many segments in flight overflow no queue.
const NO_QUEUE: i64 = 2;
/// Losses that the link has to tell of: a single gap may be late by itself. Ours.
const FEWEST_PLACED: u64 = 2;
/// What drops all above a rate takes many segments at once, chance takes them one by one. Ours: random losses were up
/// to 1.6 for each episode, a policer's 10 and more.
const MOST_BY_CHANCE: u64 = 2;

/// A segment, or several of one frame, that was lost.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Lost {
    /// When it was sent.
    pub(crate) at: StackTime,
    /// Segments sent up to its end.
    pub(crate) position: u64,
    /// Bytes in flight after it.
    pub(crate) flight: i64,
    /// Which repair it belongs to.
    pub(crate) episode: u32,
}

/// The pattern of `lost`, in the order of their repairs, against `flights` sampled over all sends
/// outside of repairs, of segments of this many bytes; `None` without a loss.
pub(crate) fn pattern(
    lost: &[Lost],
    flights: &[i64],
    episodes: u64,
    mss: i64,
) -> Option<LossPattern> {
    if lost.is_empty() || episodes == 0 {
        return None;
    }
    let mut bursts = [0; 5];
    let mut run = 1u64;
    for pair in lost.windows(2) {
        if pair[1].position == pair[0].position + 1 {
            run += 1;
        } else {
            bursts[burst_class(run)] += run;
            run = 1;
        }
    }
    bursts[burst_class(run)] += run;
    let mut sorted = flights.to_vec();
    sorted.sort_unstable();
    let begun: Vec<Lost> = lost.chunk_by(|a, b| a.episode == b.episode).map(|all| all[0]).collect();
    let p_value = (begun.len() >= MIN_EPISODES && sorted.len() >= MIN_FLIGHTS && vary(&sorted))
        .then(|| rank_sum(begun.iter().map(|first| first.flight), &sorted));
    let kind = match p_value {
        Some(p) if p > LossPattern::SIGNIFICANT => "random",
        Some(_) => at_large_flights(&begun, &sorted, mss),
        None => "unknown",
    };
    Some(LossPattern {
        kind: kind.to_owned(),
        told_by: LossToldBy::Flights,
        p_value,
        episodes,
        bursts,
        period_ns: beat(lost, &begun, |l| l.at.0),
        period_segments: beat(lost, &begun, |l| l.position as i64).map(|p| p as u64),
    })
}

/// What losses are that begin at larger flights than others.
fn at_large_flights(begun: &[Lost], sorted: &[i64], mss: i64) -> &'static str {
    let mut at_loss: Vec<i64> = begun.iter().map(|first| first.flight).collect();
    at_loss.sort_unstable();
    let median = at_loss[at_loss.len() / 2];
    let large = sorted[sorted.len() * 9 / 10];
    if median <= NO_QUEUE * mss || median * 100 < large * SMALL_PERCENT {
        "random"
    } else if median * 100 >= large * LARGE_PERCENT {
        "congestion"
    } else {
        "unknown"
    }
}

/// Where the narrowest link tells where `lost` segments were lost, that decides: what found its queue full is
/// congestion. What took its turn, or found the queue empty, met no overflow of it, unless a device behind it drops
/// what exceeds a rate.
pub(crate) fn ask_link(pattern: &mut LossPattern, link: &Link, lost: u64) {
    let not_its = link.lost_behind + link.lost_elsewhere;
    let placed = link.lost_before + not_its;
    // What was repeated for nothing has a place as well.
    let tells = placed.min(lost) >= FEWEST_PLACED && placed * 2 >= lost;
    if link.varies || !tells {
        return;
    }
    let kind = if link.lost_full * 4 >= placed * 3 {
        "congestion"
    } else if not_its * 4 < placed * 3 {
        return;
    } else if pattern.kind == "congestion" || lost > pattern.episodes * MOST_BY_CHANCE {
        "unknown"
    } else {
        "random"
    };
    (pattern.kind, pattern.told_by) = (kind.to_owned(), LossToldBy::Link);
}

/// Whether flights, sorted, differ enough for losses to depend on them.
fn vary(sorted: &[i64]) -> bool {
    let tenth = sorted.len() / 10;
    let (low, high) = (sorted[tenth], sorted[sorted.len() - 1 - tenth]);
    (high - low) * 100 > high * STEADY_PERCENT
}

/// The period of the episodes, or of the bursts of losses if several fall into one episode. Those of
/// one overflow may come evenly, too: a beat goes on through episodes.
fn beat(lost: &[Lost], begun: &[Lost], of: impl Fn(&Lost) -> i64) -> Option<i64> {
    let gaps = |starts: &mut dyn Iterator<Item = i64>| -> Vec<i64> {
        let starts: Vec<i64> = starts.collect();
        starts.windows(2).map(|pair| pair[1] - pair[0]).collect()
    };
    let episodes = gaps(&mut begun.iter().map(&of));
    let is_first = |at: &usize| *at == 0 || lost[*at].position != lost[at - 1].position + 1;
    let bursts = gaps(&mut (0..lost.len()).filter(is_first).map(|at| of(&lost[at])));
    let through = begun.len() >= MIN_EPISODES;
    period(&episodes).or_else(|| period(&bursts).filter(|_| through))
}

/// The mean gap, if gaps are alike: a coefficient of variation under 0.2 over at least 6 of them.
/// Ours: independent losses have 1, and 6 of their gaps fall under 0.2 once in 1,000 times.
fn period(gaps: &[i64]) -> Option<i64> {
    if gaps.len() < 6 || gaps.iter().any(|g| *g <= 0) {
        return None;
    }
    let n = gaps.len() as f64;
    let mean = gaps.iter().map(|g| *g as f64).sum::<f64>() / n;
    let variance = gaps.iter().map(|g| (*g as f64 - mean) * (*g as f64 - mean)).sum::<f64>() / n;
    (variance < 0.04 * mean * mean).then_some(mean as i64)
}

fn burst_class(len: u64) -> usize {
    match len {
        0..=1 => 0,
        2 => 1,
        3..=5 => 2,
        6..=10 => 3,
        _ => 4,
    }
}

/// One-sided probability that flights at losses are this much larger than all, sorted, by chance.
fn rank_sum(at_loss: impl ExactSizeIterator<Item = i64>, sorted: &[i64]) -> f64 {
    let (m, n) = (at_loss.len() as f64, sorted.len() as f64);
    let greater: f64 = at_loss
        .map(|x| {
            let below = sorted.partition_point(|y| *y < x) as f64;
            let upto = sorted.partition_point(|y| *y <= x) as f64;
            below.midpoint(upto)
        })
        .sum();
    let mean = m * n / 2.0;
    let deviation = (m * n * (m + n + 1.0) / 12.0).sqrt();
    let z = (greater - mean) / deviation.max(f64::MIN_POSITIVE);
    1.0 - normal_cdf(z)
}

/// Abramowitz and Stegun 26.2.17, error below 7.5e-8; the exponential by `libm` so that every
/// target agrees.
fn normal_cdf(z: f64) -> f64 {
    let t = 1.0 / (1.0 + 0.231_641_9 * z.abs());
    let poly = t
        * (0.319_381_530
            + t * (-0.356_563_782
                + t * (1.781_477_937 + t * (-1.821_255_978 + t * 1.330_274_429))));
    let tail = 0.398_942_280_4 * libm::exp(-z * z / 2.0) * poly;
    if z >= 0.0 { 1.0 - tail } else { tail }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Flights of a window that grows from nothing to 99 segments, again and again.
    fn sawtooth() -> Vec<i64> {
        (0..1000).map(|i| (i % 100) * 1448).collect()
    }

    /// `many` episodes of one loss each, 50 segments apart.
    fn single(many: u64, flight: impl Fn(i64) -> i64) -> Vec<Lost> {
        let one = |n: u64| Lost {
            at: StackTime(n as i64),
            position: n * 50,
            flight: flight(n as i64) * 1448,
            episode: n as u32 + 1,
        };
        (0..many).map(one).collect()
    }

    fn kind(lost: &[Lost], flights: &[i64]) -> String {
        pattern(lost, flights, lost.len() as u64, 1_448).expect("there are losses").kind
    }

    #[test]
    fn losses_at_the_largest_flights_are_congestion() {
        let found = pattern(&single(20, |_| 99), &sawtooth(), 20, 1_448).expect("there are losses");
        assert_eq!(found.kind, "congestion");
        assert_eq!(found.bursts, [20, 0, 0, 0, 0]);
    }

    #[test]
    fn losses_at_any_flight_are_random() {
        assert_eq!(kind(&single(20, |n| n * 37 % 100), &sawtooth()), "random");
    }

    #[test]
    fn a_queue_takes_again_what_it_took_before() {
        // Nine tenths of the flights are below 90: at 60 more passed again and again.
        assert_eq!(kind(&single(20, |_| 95), &sawtooth()), "congestion");
        assert_eq!(kind(&single(20, |_| 86), &sawtooth()), "congestion", "the boundary");
        assert_eq!(kind(&single(20, |_| 80), &sawtooth()), "unknown");
        assert_eq!(kind(&single(200, |n| 60 + n % 7), &sawtooth()), "random");
    }

    #[test]
    fn two_segments_in_flight_overflow_no_queue() {
        let flights: Vec<i64> = (0..1_000).map(|n| (1 + (n % 10) / 8) * 1_448).collect();
        assert_eq!(kind(&single(20, |_| 2), &flights), "random");
        let larger: Vec<i64> = flights.iter().map(|flight| flight * 3 / 2).collect();
        assert_eq!(kind(&single(20, |_| 3), &larger), "congestion");
    }

    #[test]
    fn the_narrowest_link_tells_where_they_were_lost() {
        let asked = |kind: &str, lost_full, lost_behind, lost| {
            let kind = kind.to_owned();
            let mut pattern = LossPattern { kind, episodes: 1, ..LossPattern::default() };
            let lost_before = lost_full;
            let link = Link { lost_before, lost_full, lost_behind, ..Link::default() };
            ask_link(&mut pattern, &link, lost);
            pattern.kind
        };
        assert_eq!(asked("unknown", 16, 0, 16), "congestion", "one episode of slow start");
        assert_eq!(asked("random", 16, 0, 16), "congestion");
        assert_eq!(asked("unknown", 0, 2, 2), "random");
        assert_eq!(asked("unknown", 0, 1, 1), "unknown", "one gap may be late by itself");
        assert_eq!(asked("unknown", 0, 14, 1), "unknown", "the others were not lost");
        assert_eq!(asked("unknown", 2, 2, 4), "unknown", "some of both");
        assert_eq!(asked("random", 0, 2, 5), "random", "most are not placed");
        assert_eq!(asked("congestion", 0, 2, 2), "unknown", "a device behind the link");
        assert_eq!(asked("random", 0, 20, 20), "unknown", "too many at once");
    }

    #[test]
    fn what_one_episode_lost_counts_once() {
        // Each of five episodes takes 20 segments: as many as there are flights from its own up.
        let five = |flight: fn(i64) -> i64| -> Vec<Lost> {
            let burst = |first: Lost| {
                (0..20).map(move |n| {
                    let (position, flight) =
                        (first.position + 2 * n, first.flight + n as i64 * 1448);
                    Lost { position, flight, ..first }
                })
            };
            single(5, flight).into_iter().flat_map(burst).collect()
        };
        assert_eq!(kind(&five(|n| n * 37 % 100), &sawtooth()), "random", "of 100 it would be none");
        assert_eq!(kind(&five(|_| 95), &sawtooth()), "congestion");
        assert_eq!(kind(&five(|_| 95)[..79], &sawtooth()), "congestion", "four and a little");
        assert_eq!(kind(&five(|_| 95)[..60], &sawtooth()), "unknown", "three");
    }

    #[test]
    fn flights_that_stand_still_cannot_show_what_losses_depend_on() {
        let within = |percent: i64| -> Vec<i64> {
            (0..100).map(|n| 10_000 - n % 2 * percent * 100).collect()
        };
        assert_eq!(kind(&single(20, |_| 6), &within(5)), "unknown");
        assert_eq!(kind(&single(20, |_| 6), &within(6)), "random");
    }

    #[test]
    fn every_hundredth_segment_is_a_period() {
        let every = |episode: fn(u32) -> u32| -> Vec<Lost> {
            let one = |n: u32| Lost {
                at: StackTime(i64::from(n * n * 5)),
                position: u64::from(n * 100 + n % 2),
                flight: 9,
                episode: episode(n),
            };
            (0..8).map(one).collect()
        };
        let period = |lost: &[Lost]| {
            let found = pattern(lost, &[9; 100], 8, 1).expect("there are losses");
            (found.period_ns, found.period_segments)
        };
        assert_eq!(period(&every(|n| n)), (None, Some(100)));
        assert_eq!(period(&every(|n| n / 2)), (None, Some(100)), "two in each flight");
        assert_eq!(
            period(&every(|n| n / 3)),
            (None, None),
            "one flight may lose evenly, and three"
        );
    }

    #[test]
    fn three_losses_prove_nothing() {
        let lost = [5, 6, 7].map(|position| Lost { position, ..Lost::default() });
        let found = pattern(&lost, &sawtooth(), 1, 1_448).expect("there are losses");
        assert_eq!((found.kind.as_str(), found.bursts[2]), ("unknown", 3));
    }
}
