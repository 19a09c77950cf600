//! What a scenario expects of a variant, held against what came of it.
//!
//! Rounds, findings and counters are those of the median run. The model's time has to lie within the times seen, widened
//! at both ends by the share that the scenario tells; where chance decides, both are ranges and have to meet. On a kernel
//! that runs in real time there is [`LATE_NS`] more for each wait.

use serde::Serialize;
use tcpwhy::units::Duration;
use tcpwhy_model::scenario::expect::{Counter, Expect, Rounds, is_code, is_within};
use tcpwhy_model::scenario::plan::Ppm;

use super::modelled::Modelled;
use super::outcome::{Outcome, Round};
use super::spread::Spread;
use crate::cmd::columns::percent;

/// Whether it came as expected.
#[derive(Clone, Debug, Default, Serialize)]
pub(super) struct Verdict {
    /// All of it.
    pub(super) as_expected: bool,
    /// What was, with figures.
    pub(super) held: Vec<String>,
    /// What was not, with figures.
    pub(super) broken: Vec<String>,
}

/// What came of a variant.
pub(super) struct Seen<'r> {
    /// The median run.
    pub(super) median: &'r Outcome,
    /// Of all runs.
    pub(super) time_ns: Spread,
    /// What the model says.
    pub(super) model: Option<&'r Modelled>,
    /// Time was real and not simulated.
    pub(super) is_live: bool,
}

/// A sentence of what holds, or of what does not.
type Said = Result<String, String>;

/// Holds `expect` against what was seen; without a run that counts nothing is as expected.
pub(super) fn verdict(expect: &Expect, seen: Option<&Seen<'_>>) -> Verdict {
    let Some(seen) = seen else {
        let broken = vec!["no run counts, so that nothing is known of it".to_owned()];
        return Verdict { as_expected: false, held: Vec::new(), broken };
    };
    let mut said: Vec<Said> = Vec::new();
    said.extend(expect.most.as_deref().map(|state| seen.most(state)));
    said.extend(expect.named.iter().map(|word| seen.named(word, true)));
    said.extend(expect.absent.iter().map(|word| seen.named(word, false)));
    said.extend(expect.rounds.as_ref().map(|expected| seen.rounds(expected)));
    said.extend(expect.counters.iter().filter_map(|counter| seen.counter(counter)));
    said.extend(expect.model.and_then(|share| seen.model(share)));
    let (mut held, mut broken) = (Vec::new(), Vec::new());
    for said in said {
        match said {
            Ok(sentence) => held.push(sentence),
            Err(sentence) => broken.push(sentence),
        }
    }
    Verdict { as_expected: broken.is_empty(), held, broken }
}

impl Seen<'_> {
    /// Time in a state, or in all that its first word names, in thousandths.
    fn share(&self, word: &str) -> u64 {
        let times = self.median.explain.iter();
        let within = times.filter(|(state, _)| is_within(state, word)).map(|(_, ns)| ns).sum();
        truth::compare::share(within, self.median.explain.values().sum()).unwrap_or(0)
    }

    fn most(&self, expected: &str) -> Said {
        let held = self.share(expected);
        let times =
            self.median.explain.iter().filter(|(state, _)| {
                !is_within(state, expected) && !APART.contains(&state.as_str())
            });
        let other = times.max_by_key(|(_, ns)| **ns).map(|(state, _)| (state, self.share(state)));
        match other {
            Some((state, share)) if share >= held => Err(format!(
                "{expected} was to hold the sender longest: it held it for {}, {state} for {}",
                percent(Some(held)),
                percent(Some(share))
            )),
            _ if held == 0 => Err(format!("{expected} was to hold the sender: it never did")),
            _ => Ok(format!("{expected} held the sender longest ({})", percent(Some(held)))),
        }
    }

    fn named(&self, word: &str, is_due: bool) -> Said {
        let is_named =
            if is_code(word) { self.median.findings.contains(word) } else { self.share(word) > 0 };
        match (is_named, is_due) {
            (true, true) => Ok(format!("{word} is named")),
            (false, false) => Ok(format!("{word} is not named")),
            (true, false) => Err(format!("{word} is named, and must not be")),
            (false, true) => Err(format!("{word} is not named")),
        }
    }

    fn rounds(&self, expected: &Rounds) -> Said {
        let none = Vec::new();
        let seen: &Vec<Round> = self.median.rounds.first().unwrap_or(&none);
        let (is_met, expected, found) = match expected {
            Rounds::Count(amount) => {
                let count = seen.len() as u64;
                (amount.has(count), amount.to_string(), count.to_string())
            }
            Rounds::Segments(amounts) => {
                let seen: Vec<_> =
                    seen.iter().map(|round| round.segments).take(amounts.len()).collect();
                let is_met = seen.len() == amounts.len()
                    && amounts.iter().zip(&seen).all(|(amount, segments)| amount.has(*segments));
                let written = |list: Vec<String>| list.join(", ");
                let expected = written(amounts.iter().map(ToString::to_string).collect());
                let found = written(seen.iter().map(ToString::to_string).collect());
                (is_met, format!("of {expected} segments"), format!("of {found} segments"))
            }
        };
        if is_met {
            Ok(match expected.strip_prefix("of ") {
                Some(_) => format!("rounds {found}"),
                None => format!("{found} rounds"),
            })
        } else {
            Err(format!("rounds: {expected} expected, {found} seen"))
        }
    }

    /// Nothing where nobody counted.
    fn counter(&self, Counter { host, name, moved }: &Counter) -> Option<Said> {
        let [client, server] = self.median.counters.as_ref()?;
        let counters = if *host == "client" { client } else { server };
        Some(match counters.get(name) {
            None => Err(format!("the {host}'s kernel has no counter {name}")),
            Some(by) if moved.has(*by) => Ok(format!("{name} of the {host} moved by {by}")),
            Some(by) => Err(format!("{name} of the {host} moved by {by}, and not by {moved}")),
        })
    }

    /// Nothing where the model is what ran.
    fn model(&self, share: Ppm) -> Option<Said> {
        let model = self.model?;
        let Some(times) = model.time_ns else {
            let why = model.refused.as_deref().unwrap_or("nothing says why");
            return Some(Err(format!("the model cannot run it: {why}")));
        };
        let late = if self.is_live { self.median.waits as i64 * LATE_NS } else { 0 };
        let room = |ns: i64| (i128::from(ns) * i128::from(share) / 1_000_000) as i64 + late;
        let Spread { min, max, .. } = self.time_ns;
        let range = |times: Spread| match times {
            Spread { min, max, .. } if min == max => Duration(min).to_string(),
            Spread { min, max, .. } => format!("{} to {}", Duration(min), Duration(max)),
        };
        let (model, kernel) = (range(times), range(self.time_ns));
        let meets = times.max >= min - room(min) && times.min <= max + room(max);
        Some(if meets {
            Ok(format!("the model says {model}, the kernel took {kernel}"))
        } else {
            Err(format!("the model says {model}, and the kernel took {kernel}"))
        })
    }
}

/// States that are of the connection and not of the transfer.
const APART: [&str; 2] = ["handshake", "closing"];

/// Ours: how late one packet in a hundred may be before the lab throws a run away (docs/lab-live.md).
const LATE_NS: i64 = 300_000;

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use tcpwhy_model::scenario::Scenario;

    use super::*;

    fn expect(text: &str) -> Expect {
        let text = format!("application.send = 9\nexpect.model = \"none\"\n{text}");
        let text = if text.contains("expect.model = \"1") {
            text.replacen("expect.model = \"none\"\n", "", 1)
        } else {
            text
        };
        let read = Scenario::read("x", &text, &[]).expect("a scenario");
        read.told[0].expect.clone().expect("something")
    }

    fn outcome() -> Outcome {
        let times =
            [("handshake", 700), ("cwnd.slow_start", 120), ("cwnd.avoidance", 40), ("app", 140)];
        let round = |segments| Round { bytes: 1, segments, limited_by: "app".to_owned() };
        let moved = BTreeMap::from([("TcpRetransSegs".to_owned(), 3)]);
        Outcome {
            explain: times.map(|(state, ns)| (state.to_owned(), ns)).into(),
            findings: ["SLOW_START".to_owned()].into(),
            rounds: vec![vec![round(10), round(20), round(33)]],
            counters: Some([BTreeMap::new(), moved]),
            waits: 4,
            ..Outcome::default()
        }
    }

    fn held(text: &str) -> Verdict {
        let median = outcome();
        let time_ns = Spread { min: 100_000_000, median: 110_000_000, max: 120_000_000 };
        verdict(&expect(text), Some(&Seen { median: &median, time_ns, model: None, is_live: true }))
    }

    #[test]
    fn what_holds_the_sender_longest_is_one_state_or_a_family() {
        assert_eq!(held("expect.most = \"cwnd\"").held, ["cwnd held the sender longest (16.0 %)"]);
        assert_eq!(
            held("expect.most = \"cwnd.slow_start\"").broken,
            [
                "cwnd.slow_start was to hold the sender longest: it held it for 12.0 %, app for 14.0 %"
            ]
        );
        assert_eq!(
            held("expect.most = \"sndbuf\"").broken,
            ["sndbuf was to hold the sender longest: it held it for 0.0 %, app for 14.0 %"]
        );
    }

    #[test]
    fn names_are_held_against_states_and_findings() {
        assert!(held("expect.named = [\"SLOW_START\", \"cwnd.avoidance\"]").as_expected);
        assert_eq!(held("expect.named = [\"LOSS\"]").broken, ["LOSS is not named"]);
        assert_eq!(held("expect.absent = [\"app\"]").broken, ["app is named, and must not be"]);
        assert!(held("expect.absent = [\"LOSS\", \"sndbuf\"]").as_expected);
    }

    #[test]
    fn rounds_are_counted_or_compared_one_by_one() {
        assert_eq!(held("expect.rounds = 3").held, ["3 rounds"]);
        assert_eq!(
            held("expect.rounds = \">= 4\"").broken,
            ["rounds: at least 4 expected, 3 seen"]
        );
        assert_eq!(held("expect.rounds = [10, \"19 to 21\"]").held, ["rounds of 10, 20 segments"]);
        assert_eq!(
            held("expect.rounds = [10, 20, 40]").broken,
            ["rounds: of 10, 20, 40 segments expected, of 10, 20, 33 segments seen"]
        );
        assert!(!held("expect.rounds = [10, 20, 33, 1]").as_expected, "there is no fourth");
    }

    #[test]
    fn a_counter_moved_as_told_and_one_that_is_not_there_did_not() {
        let counter = |text: &str| held(&format!("expect.counters.{text}"));
        assert!(counter("server.TcpRetransSegs = \">= 1\"").as_expected);
        assert_eq!(
            counter("server.TcpRetransSegs = 0").broken,
            ["TcpRetransSegs of the server moved by 3, and not by 0"]
        );
        assert_eq!(
            counter("client.TcpRetransSegs = 0").broken,
            ["the client's kernel has no counter TcpRetransSegs"]
        );
    }

    #[test]
    fn the_models_time_lies_within_those_seen_or_near_them() {
        let told = |min, max, is_live| {
            let median = outcome();
            let time_ns = Spread { min: 100_000_000, median: 110_000_000, max: 120_000_000 };
            let times = Spread { min, median: min, max };
            let model = Modelled { time_ns: Some(times), ..Modelled::default() };
            let seen = Seen { median: &median, time_ns, model: Some(&model), is_live };
            verdict(&expect("expect.model = \"10%\""), Some(&seen)).as_expected
        };
        assert!(told(90_000_000, 90_000_000, false) && !told(89_999_999, 89_999_999, false));
        assert!(told(132_000_000, 132_000_000, false) && !told(132_000_001, 132_000_001, false));
        assert!(told(133_200_000, 133_200_000, true) && !told(133_200_001, 133_200_001, true));
        assert!(told(10_000_000, 95_000_000, false), "of many throws some are as long");
    }

    #[test]
    fn what_was_not_seen_or_cannot_be_modelled_is_not_as_expected() {
        assert!(!verdict(&expect("expect.rounds = 3"), None).as_expected);
        let median = outcome();
        let refused = Some("a controller".to_owned());
        let model = Modelled { refused, ..Modelled::default() };
        let seen = Seen {
            median: &median,
            time_ns: Spread::default(),
            model: Some(&model),
            is_live: true,
        };
        let verdict = verdict(&expect("expect.model = \"10%\""), Some(&seen));
        assert_eq!(verdict.broken, ["the model cannot run it: a controller"]);
    }
}
