//! What a scenario expects of a variant, held against what came of it.
//!
//! Rounds, findings and counters are those of the median run. The model's time has to lie within the times seen, widened
//! at both ends by the share that the scenario tells; where chance decides, both are ranges and have to meet. On a kernel
//! that runs in real time there is [`LATE_NS`] more for each wait.

use serde::Serialize;
use tcpwhy::units::Duration;
use tcpwhy_model::scenario::expect::{
    Amount, Asked, Counter, Expect, Rounds, SocketState, is_code, is_within,
};
use tcpwhy_model::scenario::plan::Ppm;

use super::modelled::Modelled;
use super::outcome::{Outcome, Round};
use super::sockets::{Group, Holder, Look};
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
    said.extend(expect.failed.map(|amount| seen.failed(amount)));
    said.extend(expect.sockets.iter().flat_map(|state| seen.sockets(state)));
    said.extend(expect.checked.iter().map(|(host, code)| seen.checked(host, code)));
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

    fn failed(&self, expected: Amount) -> Said {
        let reasons = self.median.log.failed.iter().flat_map(|reasons| reasons.values());
        let count: u64 = reasons.sum();
        if expected.has(count) {
            Ok(format!("{count} connections failed"))
        } else {
            Err(format!("{count} connections failed, and not {expected}"))
        }
    }

    /// Sockets in a state, at the last look or at each.
    fn sockets(&self, expected: &SocketState) -> Vec<Said> {
        let SocketState { host, state, asked } = expected;
        let looks = self.median.sockets.as_ref().map(|sockets| &sockets.looks[..]);
        let looks = looks.unwrap_or_default();
        let mut said = Vec::new();
        for (asked, amounts) in asked {
            if looks.len() < amounts.len() {
                said.push(Err(format!("nobody looked for {state} at the {host}")));
                continue;
            }
            let last = &looks[looks.len() - amounts.len()..];
            let figures = last.iter().map(|look| figures(look.of(host), state, *asked));
            let seen: Vec<_> = last.iter().zip(figures).zip(amounts).collect();
            let is_met = |figures: &[u64], amount: &Amount| {
                !figures.is_empty() && figures.iter().all(|figure| amount.has(*figure))
            };
            let sentence = |times: String, found: String| {
                let what = match asked {
                    Asked::Count => format!("{found} in {state}"),
                    Asked::RecvQ => format!("Recv-Q {found} in {state}"),
                    Asked::SendQ => format!("Send-Q {found} in {state}"),
                    Asked::NoProgram => format!("{found} in {state} without a program"),
                };
                format!("{host} at {times}: {what}")
            };
            let at = |look: &Look| Duration(look.at_ns as i64).to_string();
            let odd = seen.iter().filter(|((_, figures), amount)| !is_met(figures, amount));
            let odd: Vec<_> = odd
                .map(|((look, figures), amount)| {
                    Err(format!("{}, and not {amount}", sentence(at(look), listed(figures))))
                })
                .collect();
            if odd.is_empty() {
                let times: Vec<_> = last.iter().map(at).collect();
                let found: Vec<_> = seen.iter().map(|((_, figures), _)| listed(figures)).collect();
                said.push(Ok(sentence(times.join(", "), found.join(", "))));
            }
            said.extend(odd);
        }
        said
    }

    fn checked(&self, host: &str, code: &str) -> Said {
        let is_found =
            self.median.sockets.as_ref().is_some_and(|sockets| sockets.finds(host, code));
        if is_found {
            Ok(format!("check finds {code} at the {host}"))
        } else {
            Err(format!("check does not find {code} at the {host}"))
        }
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

/// What is asked of the sockets in a state: one figure, or the least and the most of all.
fn figures(groups: &[Group], state: &str, asked: Asked) -> Vec<u64> {
    let groups: Vec<&Group> = groups.iter().filter(|group| group.state == state).collect();
    let ends = |of: fn(&Group) -> [u64; 2]| {
        let all = || groups.iter().flat_map(|group| of(group));
        let ends = [all().min(), all().max()];
        ends.into_iter().flatten().collect()
    };
    match asked {
        Asked::Count => vec![groups.iter().map(|group| group.count).sum()],
        Asked::RecvQ => ends(|group| group.recv_q),
        Asked::SendQ => ends(|group| group.send_q),
        Asked::NoProgram => {
            let without = groups.iter().filter(|group| group.holder != Holder::Program);
            vec![without.map(|group| group.count).sum()]
        }
    }
}

/// `3`, `3 to 5`, or `nothing`.
fn listed(figures: &[u64]) -> String {
    match figures {
        [] => "nothing".to_owned(),
        [least, .., most] if least != most => format!("{least} to {most}"),
        [one, ..] => one.to_string(),
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

    use super::super::sockets::{Checked, Sockets};
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
    fn sockets_are_held_against_the_last_look_or_each() {
        let told = |text: &str| {
            let text = format!("records.sockets = [\"1s\", \"2s\"]\n{text}");
            let group = |count| Group {
                state: "close-wait",
                holder: Holder::AcceptQueue,
                count,
                recv_q: [1, 79],
                send_q: [0, 0],
            };
            let look = |at_ns, count| Look { at_ns, server: vec![group(count)], ..Look::default() };
            let looks = vec![look(1_000_000_000, 4), look(2_000_000_000, 6)];
            let checked = vec![Checked {
                host: "server",
                code: "CLOSE_WAIT".to_owned(),
                title: String::new(),
            }];
            let mut median = Outcome { sockets: Some(Sockets { looks, checked }), ..outcome() };
            median.log.failed = vec![BTreeMap::from([("why".to_owned(), 2)])];
            let time_ns = Spread::default();
            let seen = Seen { median: &median, time_ns, model: None, is_live: true };
            verdict(&expect(&text), Some(&seen))
        };
        let close_wait = |text: &str| told(&format!("expect.sockets.server.close-wait = {text}"));
        assert_eq!(close_wait("6").held, ["server at 2.00 s: 6 in close-wait"]);
        assert_eq!(close_wait("[4, 6]").held, ["server at 1.00 s, 2.00 s: 4, 6 in close-wait"]);
        assert_eq!(close_wait("4").broken, ["server at 2.00 s: 6 in close-wait, and not 4"]);
        assert_eq!(
            close_wait("{ recv_q = 79, no_program = 6 }").broken,
            ["server at 2.00 s: Recv-Q 1 to 79 in close-wait, and not 79"]
        );
        assert_eq!(
            told("expect.sockets.client.last-ack = { recv_q = 0 }").broken,
            ["client at 2.00 s: Recv-Q nothing in last-ack, and not 0"]
        );
        assert!(told("expect.checked.server = [\"CLOSE_WAIT\"]").as_expected);
        assert_eq!(
            told("expect.checked.client = [\"CLOSE_WAIT\"]").broken,
            ["check does not find CLOSE_WAIT at the client"]
        );
        assert!(told("expect.failed = 2").as_expected);
        assert_eq!(told("expect.failed = 1").broken, ["2 connections failed, and not 1"]);
        let unseen = held("records.sockets = [\"1s\"]\nexpect.sockets.server.close-wait = 0");
        assert_eq!(unseen.broken, ["nobody looked for close-wait at the server"]);
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
