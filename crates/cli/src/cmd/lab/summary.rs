//! The answer of `lab run`: each variant over its repeats, as text and as JSON
//! (`docs/lab.schema.json`).

use std::collections::BTreeMap;

use serde::Serialize;

use super::outcome::{Outcome, Round};
use super::path::Measured;

/// The format of the JSON.
pub(super) const FORMAT: &str = "tcpwhy-lab/1";

/// What an experiment came to. All `_ns` are nanoseconds, rates bits per second on layer 2.
#[derive(Clone, Debug, Default, Serialize)]
pub(super) struct Answer {
    /// [`FORMAT`].
    pub(super) format: String,
    /// The scenario's name.
    pub(super) scenario: String,
    /// What it shows.
    pub(super) about: String,
    /// The backend's name.
    pub(super) backend: String,
    /// The kernel that spoke TCP.
    pub(super) kernel: String,
    /// Whose data it is about: `client` or `server`.
    pub(super) sender: &'static str,
    /// The paths, measured first.
    pub(super) paths: Vec<Measured>,
    /// In the order of the scenario.
    pub(super) variants: Vec<Variant>,
}

/// One variant over its repeats.
#[derive(Clone, Debug, Default, Serialize)]
pub(super) struct Variant {
    /// Its name; empty if there is only one.
    pub(super) name: String,
    /// Runs that count.
    pub(super) runs: usize,
    /// Repeats without a run that can be trusted.
    pub(super) invalid: usize,
    /// Runs that were thrown away because they cannot be trusted; most were made again.
    pub(super) discarded: usize,
    /// First packet to the last ACK of data; connections one after the other are added up.
    pub(super) time_ns: Spread,
    /// Payload of the sender.
    pub(super) bytes: u64,
    /// Retransmitted segments, by the capture at the sender.
    pub(super) resent: Spread,
    /// Most bytes on layer 2 that waited for the link on the way of the data, in any run; `null` where
    /// there is no queue or nobody looked.
    pub(super) queue_bytes: Option<u64>,
    /// Of the median run: bytes of each round, transfer by transfer.
    pub(super) rounds: Vec<Vec<Round>>,
    /// Mean time in each state by `explain`, at the sender.
    pub(super) explain_ns: BTreeMap<String, u64>,
    /// The same by the sending kernel; `null` without its records.
    pub(super) kernel_ns: Option<BTreeMap<String, u64>>,
    /// What the reader should know, each once.
    pub(super) problems: Vec<String>,
}

/// A figure over repeats.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq, Serialize)]
pub(super) struct Spread {
    /// Least.
    pub(super) min: i64,
    /// The middle one; the lower of two.
    pub(super) median: i64,
    /// Greatest.
    pub(super) max: i64,
}

impl Spread {
    /// Over `values`; all zero if there are none.
    pub(super) fn of(values: impl IntoIterator<Item = i64>) -> Self {
        let mut sorted: Vec<_> = values.into_iter().collect();
        sorted.sort_unstable();
        match (sorted.first(), sorted.last()) {
            (Some(&min), Some(&max)) => Self { min, median: sorted[(sorted.len() - 1) / 2], max },
            _ => Self::default(),
        }
    }
}

impl Variant {
    /// Sums up the runs of a variant.
    pub(super) fn of(
        name: &str,
        outcomes: &[Outcome],
        invalid: usize,
        discarded: &[String],
    ) -> Self {
        let time_ns = Spread::of(outcomes.iter().map(|outcome| outcome.time_ns));
        let median = outcomes.iter().find(|outcome| outcome.time_ns == time_ns.median);
        let mut all = thrown_away(discarded);
        all.extend(outcomes.iter().flat_map(|outcome| outcome.problems.clone()));
        let mut problems: Vec<String> = Vec::new();
        for problem in all {
            if !problems.contains(&problem) {
                problems.push(problem);
            }
        }
        let kernel: Option<Vec<_>> =
            outcomes.iter().map(|outcome| outcome.kernel.as_ref()).collect();
        Self {
            name: name.to_owned(),
            runs: outcomes.len(),
            invalid,
            discarded: discarded.len(),
            time_ns,
            bytes: median.map_or(0, |outcome| outcome.bytes),
            resent: Spread::of(outcomes.iter().map(|outcome| outcome.resent as i64)),
            queue_bytes: outcomes.iter().filter_map(|outcome| outcome.queue).max(),
            rounds: median.map(|outcome| outcome.rounds.clone()).unwrap_or_default(),
            explain_ns: mean(outcomes.iter().map(|outcome| &outcome.explain)),
            kernel_ns: kernel.filter(|rows| !rows.is_empty()).map(|rows| mean(rows.into_iter())),
            problems,
        }
    }
}

/// Why runs were thrown away: each reason once, with its figures of the first time.
fn thrown_away(discarded: &[String]) -> Vec<String> {
    let mut reasons: Vec<(String, &str, usize)> = Vec::new();
    for why in discarded.iter().flat_map(|why| why.split("; ")) {
        // That was done.
        let why = why.strip_suffix(": repeat the run on a quieter machine").unwrap_or(why);
        let words: String = why.chars().filter(|c| !c.is_ascii_digit()).collect();
        match reasons.iter_mut().find(|reason| reason.0 == words) {
            Some(reason) => reason.2 += 1,
            None => reasons.push((words, why, 1)),
        }
    }
    let all = match discarded.len() {
        1 => "a run was thrown away".to_owned(),
        count => format!("{count} runs were thrown away"),
    };
    let told = |(_, why, count): &(String, &str, usize)| match count {
        1 => format!("{all}: {why}"),
        count => format!("{all}, {count} because, as the first: {why}"),
    };
    reasons.iter().map(told).collect()
}

fn mean<'a>(
    rows: impl ExactSizeIterator<Item = &'a BTreeMap<String, u64>>,
) -> BTreeMap<String, u64> {
    let count = rows.len().max(1) as u64;
    let mut sums: BTreeMap<String, u64> = BTreeMap::new();
    for (state, ns) in rows.flatten() {
        *sums.entry(state.clone()).or_default() += ns;
    }
    for ns in sums.values_mut() {
        *ns /= count;
    }
    sums
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_middle_run_tells_the_rounds_and_all_tell_the_spread() {
        let outcome = |time_ns, bytes| Outcome {
            time_ns,
            rounds: vec![vec![Round { bytes, segments: 1, limited_by: "app".to_owned() }]],
            explain: BTreeMap::from([("app".to_owned(), bytes)]),
            problems: vec!["same".to_owned()],
            ..Outcome::default()
        };
        let late =
            |ms: &str| format!("one packet was {ms} ms late: repeat the run on a quieter machine");
        let discarded = [late("0.4"), format!("a record was lost; {}", late("1.7")), late("2.1")];
        let variant =
            Variant::of("a", &[outcome(30, 3), outcome(10, 1), outcome(20, 2)], 1, &discarded);
        assert_eq!(variant.time_ns, Spread { min: 10, median: 20, max: 30 });
        assert_eq!(variant.rounds[0][0].bytes, 2);
        assert_eq!(variant.explain_ns["app"], 2);
        assert_eq!(variant.kernel_ns, None);
        assert_eq!((variant.runs, variant.invalid, variant.discarded), (3, 1, 3));
        assert_eq!(
            variant.problems,
            [
                "3 runs were thrown away, 3 because, as the first: one packet was 0.4 ms late",
                "3 runs were thrown away: a record was lost",
                "same"
            ]
        );
    }

    #[test]
    fn a_variant_without_a_run_is_no_division_by_zero() {
        let variant = Variant::of("a", &[], 2, &["why".to_owned()]);
        assert_eq!(
            (variant.runs, variant.kernel_ns, variant.time_ns),
            (0, None, Spread::default())
        );
    }

    #[test]
    fn the_answer_keeps_its_schema() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/lab.schema.json");
        let schema: serde_json::Value =
            serde_json::from_slice(&std::fs::read(path).expect("is there")).expect("is JSON");
        let mut compiler = boon::Compiler::new();
        compiler.add_resource("lab", schema).expect("a resource");
        let mut schemas = boon::Schemas::new();
        let index = compiler.compile("lab", &mut schemas).expect("a valid schema");
        let full = Variant {
            rounds: vec![vec![Round { bytes: 1, segments: 1, limited_by: "app".to_owned() }]],
            explain_ns: BTreeMap::from([("app".to_owned(), 1)]),
            kernel_ns: Some(BTreeMap::new()),
            queue_bytes: Some(1),
            problems: vec!["one".to_owned()],
            ..Variant::default()
        };
        let mut answer = Answer {
            format: FORMAT.to_owned(),
            sender: "server",
            paths: vec![Measured { rtt_ns: Some(1), rate_bps: Some(1), ..Measured::default() }],
            variants: vec![full, Variant::default()],
            ..Answer::default()
        };
        answer.paths.push(Measured::default());
        let json = serde_json::to_value(&answer).expect("plain data");
        schemas.validate(&json, index).unwrap_or_else(|error| panic!("{error:#}"));
        let mut extra = json;
        extra["variants"][0]["more"] = 1.into();
        assert!(schemas.validate(&extra, index).is_err(), "nothing is unnamed");
    }
}
