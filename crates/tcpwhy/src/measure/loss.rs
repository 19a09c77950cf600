//! Do losses depend on what is in flight, and how do they cluster?
//!
//! A queue overflows when much is in flight; a bad cable does not care. The rank-sum test of
//! Wilcoxon (Mann-Whitney) compares the flights at which lost segments were sent with those of
//! all sends. Both samples are bounded; ties take their mean rank; the normal approximation is
//! used from 4 losses on (limits-method section 8).

use crate::report::LossPattern;

/// Fewer losses than this say nothing about a pattern.
const MIN_LOSSES: usize = 4;
/// limits-method section 8.
const SIGNIFICANT: f64 = 0.05;

/// The pattern of losses given as (time, position in segments, flight then), against flights
/// sampled over all sends; `None` without a loss.
pub(crate) fn pattern(
    lost: &[(i64, u64, i64)],
    flights: &[i64],
    episodes: u64,
) -> Option<LossPattern> {
    if lost.is_empty() || episodes == 0 {
        return None;
    }
    let mut bursts = [0; 5];
    let mut run = 1u64;
    for pair in lost.windows(2) {
        if pair[1].1 == pair[0].1 + 1 {
            run += 1;
        } else {
            bursts[burst_class(run)] += run;
            run = 1;
        }
    }
    bursts[burst_class(run)] += run;
    let at_loss: Vec<i64> = lost.iter().map(|l| l.2).collect();
    let p_value =
        (at_loss.len() >= MIN_LOSSES && flights.len() >= 20).then(|| rank_sum(&at_loss, flights));
    let kind = match p_value {
        Some(p) if p > SIGNIFICANT => "random",
        Some(_) => "congestion",
        None => "unknown",
    };
    Some(LossPattern {
        kind: kind.to_owned(),
        p_value,
        episodes,
        bursts,
        period_ns: period(&episode_gaps(lost, |l| l.0)),
        period_segments: period(&episode_gaps(lost, |l| l.1 as i64)).map(|p| p as u64),
    })
}

/// Distances between the first losses of successive bursts.
fn episode_gaps(lost: &[(i64, u64, i64)], of: impl Fn(&(i64, u64, i64)) -> i64) -> Vec<i64> {
    let starts: Vec<i64> = lost
        .iter()
        .enumerate()
        .filter(|(at, l)| *at == 0 || l.1 != lost[at - 1].1 + 1)
        .map(|(_, l)| of(l))
        .collect();
    starts.windows(2).map(|pair| pair[1] - pair[0]).collect()
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

/// One-sided probability that flights at losses are this much larger by chance.
fn rank_sum(at_loss: &[i64], all: &[i64]) -> f64 {
    let (m, n) = (at_loss.len() as f64, all.len() as f64);
    let mut sorted = all.to_vec();
    sorted.sort_unstable();
    let greater: f64 = at_loss
        .iter()
        .map(|x| {
            let below = sorted.partition_point(|y| y < x) as f64;
            let upto = sorted.partition_point(|y| y <= x) as f64;
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

    #[test]
    fn losses_at_the_largest_flights_are_congestion() {
        let flights: Vec<i64> = (0..1000).map(|i| (i % 100) * 1448).collect();
        let lost: Vec<_> = (0..20).map(|i| (i, i as u64 * 50, 99 * 1448)).collect();
        let found = pattern(&lost, &flights, 20).expect("there are losses");
        assert_eq!(found.kind, "congestion");
        assert_eq!(found.bursts, [20, 0, 0, 0, 0]);
    }

    #[test]
    fn losses_at_any_flight_are_random() {
        let flights: Vec<i64> = (0..1000).map(|i| (i % 100) * 1448).collect();
        let lost: Vec<_> = (0..20).map(|i| (i, i as u64 * 50, (i * 37 % 100) * 1448)).collect();
        assert_eq!(pattern(&lost, &flights, 20).expect("there are losses").kind, "random");
    }

    #[test]
    fn every_hundredth_segment_is_a_period() {
        let lost: Vec<_> = (0..8).map(|i| (i * i * 5, i as u64 * 100 + i as u64 % 2, 9)).collect();
        let found = pattern(&lost, &[9; 100], 8).expect("there are losses");
        assert_eq!((found.period_ns, found.period_segments), (None, Some(100)));
    }

    #[test]
    fn three_losses_prove_nothing() {
        let lost = [(0, 5, 9), (0, 6, 9), (0, 7, 9)];
        let found = pattern(&lost, &[9; 100], 1).expect("there are losses");
        assert_eq!((found.kind.as_str(), found.bursts[2]), ("unknown", 3));
    }
}
