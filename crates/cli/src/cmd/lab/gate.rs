//! `lab run --at-most`: what an experiment may take, for gates in CI. In simulated time the answer is the same on every
//! machine, so that a limit needs no slack.

use std::fmt;

use super::summary::{Answer, Variant};
use crate::number;

/// The most that each run of each variant may take.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Limit {
    what: What,
    most: u64,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum What {
    /// Nanoseconds from the first packet to the last ACK of data.
    Time,
    /// Round trips of sending in a transfer.
    Rounds,
    /// Segments.
    Retransmitted,
}

/// `time=120ms`, `rounds=3`, `retransmitted=0`.
///
/// # Errors
/// It is none of these; the words say what they look like.
pub(super) fn limit(text: &str) -> Result<Limit, String> {
    let (what, most) = text.split_once('=').ok_or(FORMS)?;
    let count = || most.parse().map_err(|_| format!("`{most}` is no number: {FORMS}"));
    Ok(match what {
        "time" => {
            let most = number::duration(most)?.as_nanos();
            Limit { what: What::Time, most: u64::try_from(most).map_err(|_| "that is for ever")? }
        }
        "rounds" => Limit { what: What::Rounds, most: count()? },
        "retransmitted" => Limit { what: What::Retransmitted, most: count()? },
        _ => return Err(FORMS.to_owned()),
    })
}

const FORMS: &str = "it is time=120ms, rounds=3 or retransmitted=0";

/// A sentence for each limit that a variant broke; one without a run that counts has kept none.
pub(super) fn broken(limits: &[Limit], answer: &Answer) -> Vec<String> {
    let mut told = Vec::new();
    for variant in &answer.variants {
        let name = if variant.name.is_empty() { &answer.scenario } else { &variant.name };
        if variant.runs == 0 && !limits.is_empty() {
            told.push(format!("{name}: no run counts, so nothing is known of it"));
            continue;
        }
        let over = limits.iter().filter_map(|limit| limit.over(variant));
        told.extend(over.map(|over| format!("{name}: {over}")));
    }
    told
}

impl Limit {
    fn over(&self, variant: &Variant) -> Option<String> {
        let took = match self.what {
            What::Time => variant.time_ns.max.unsigned_abs(),
            What::Rounds => variant.rounds.iter().map(Vec::len).max().unwrap_or(0) as u64,
            What::Retransmitted => variant.resent.max.unsigned_abs(),
        };
        let shown = |amount| Shown { what: self.what, amount };
        (took > self.most)
            .then(|| format!("{}, and at most {} is asked for", shown(took), shown(self.most)))
    }
}

/// An amount with its unit.
struct Shown {
    what: What,
    amount: u64,
}

impl fmt::Display for Shown {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { what, amount } = self;
        match what {
            What::Time => write!(f, "{}.{:03} ms", amount / 1_000_000, amount / 1_000 % 1_000),
            What::Rounds => write!(f, "{amount} round trips"),
            What::Retransmitted => write!(f, "{amount} retransmitted segments"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::outcome::Round;
    use super::super::spread::Spread;
    use super::*;

    fn answer(time_us: i64, rounds: usize, runs: usize) -> Answer {
        let round = || Round { bytes: 1, segments: 1, limited_by: "slow_start".to_owned() };
        let spread = |value| Spread { min: value, median: value, max: value };
        let variant = Variant {
            runs,
            time_ns: spread(time_us * 1_000),
            rounds: vec![(0..rounds).map(|_| round()).collect()],
            ..Variant::default()
        };
        Answer { scenario: "upload".to_owned(), variants: vec![variant], ..Answer::default() }
    }

    #[test]
    fn what_takes_more_is_named_and_what_takes_as_much_is_not() {
        let limits = [limit("time=120ms"), limit("rounds=3"), limit("retransmitted=0")];
        let limits = limits.map(|limit| limit.expect("a limit"));
        assert!(broken(&limits, &answer(120_000, 3, 1)).is_empty());
        assert_eq!(
            broken(&limits, &answer(120_001, 4, 1)),
            [
                "upload: 120.001 ms, and at most 120.000 ms is asked for",
                "upload: 4 round trips, and at most 3 round trips is asked for"
            ]
        );
    }

    #[test]
    fn without_a_run_that_counts_no_limit_is_kept() {
        let rounds = [limit("rounds=3").expect("a limit")];
        assert_eq!(broken(&rounds, &answer(0, 0, 0)).len(), 1);
        assert!(broken(&[], &answer(0, 0, 0)).is_empty(), "none is asked for");
    }

    #[test]
    fn what_is_no_limit_is_refused_with_an_example() {
        for text in ["", "time", "time=", "time=fast", "rounds=-1", "rounds=3.5", "bytes=7"] {
            assert!(limit(text).is_err(), "{text}");
        }
    }
}
