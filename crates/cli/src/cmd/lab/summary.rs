//! The answer of `lab run`: each variant over its repeats, as text and as JSON
//! (`docs/lab.schema.json`).

use std::collections::BTreeMap;

use serde::Serialize;

use tcpwhy_model::scenario::{self, Told};

use super::calls::Talks;
use super::counters::Moved;
use super::expected::{self, Seen, Verdict};
use super::modelled::Modelled;
use super::outcome::{Outcome, Round};
use super::path::Measured;
use super::sockets::Sockets;
use super::spread::{Spread, Times};

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
    /// Controllers of the sender's sockets, where they were asked.
    pub(super) controllers: Vec<String>,
    /// What the programs saw, an entry for each application whose calls are known.
    pub(super) applications: Vec<Application>,
    /// Codes of what `explain` found in the median run.
    pub(super) findings: Vec<String>,
    /// How counters moved in the median run, by host; those that did not are left out. `null` where nobody counted.
    pub(super) counters: Option<BTreeMap<&'static str, Moved>>,
    /// Connections that failed at the client in the median run.
    pub(super) failed: Vec<Failed>,
    /// What looks at the sockets saw in the median run; `null` where nobody looked.
    pub(super) sockets: Option<Sockets>,
    /// The variant in the model; `null` where the model is what ran.
    pub(super) model: Option<Modelled>,
    /// What was published of it.
    pub(super) article: Option<Article>,
    /// Whether it came as the scenario expects; `null` if that expects nothing.
    pub(super) expected: Option<Verdict>,
    /// What the reader should know, each once.
    pub(super) problems: Vec<String>,
}

/// How long an application's connections and calls took, as its programs saw it, over all runs.
#[derive(Clone, Debug, Default, Serialize)]
pub(super) struct Application {
    /// Its name in the scenario.
    pub(super) name: String,
    /// From opening to the end of the last call.
    pub(super) connections: Times,
    /// The first call of the first connection: the median of the runs.
    pub(super) first_ns: i64,
    /// Every call.
    pub(super) calls: Times,
    /// Those that are not the first of their connection; `null` if there are none.
    pub(super) warm: Option<Times>,
}

/// Connections that failed for one reason.
#[derive(Clone, Debug, Default, Serialize)]
pub(super) struct Failed {
    /// The application's name in the scenario.
    pub(super) application: String,
    /// How many.
    pub(super) count: u64,
    /// Why.
    pub(super) why: String,
}

/// An article and its figure.
#[derive(Clone, Debug, Default, Serialize)]
pub(super) struct Article {
    /// Its number.
    pub(super) number: String,
    /// What it measured.
    pub(super) figure: String,
    /// Why it is another figure here.
    pub(super) differs: String,
}

/// The runs of a variant.
#[derive(Debug, Default)]
pub(super) struct Runs {
    /// Those that count.
    pub(super) outcomes: Vec<Outcome>,
    /// Repeats without one.
    pub(super) invalid: usize,
    /// Why runs were thrown away.
    pub(super) discarded: Vec<String>,
    /// The same in the model.
    pub(super) model: Option<Modelled>,
    /// Time was real and not simulated.
    pub(super) is_live: bool,
}

impl Variant {
    /// Sums up the runs of a variant; `side` is whose data it is about.
    pub(super) fn of(name: &str, told: &Told, runs: Runs, side: usize) -> Self {
        let Runs { outcomes, invalid, discarded, model, is_live } = runs;
        let time_ns = Spread::of(outcomes.iter().map(|outcome| outcome.time_ns));
        let median = outcomes.iter().find(|outcome| outcome.time_ns == time_ns.median);
        let kernel: Option<Vec<_>> =
            outcomes.iter().map(|outcome| outcome.kernel.as_ref()).collect();
        let seen = median.map(|median| Seen { median, time_ns, model: model.as_ref(), is_live });
        let expected = told.expect.as_ref();
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
            controllers: median
                .map(|median| median.log.controllers[side].clone())
                .unwrap_or_default(),
            applications: applications(&told.applications, &outcomes),
            findings: median.into_iter().flat_map(|median| median.findings.clone()).collect(),
            counters: median.and_then(|median| median.counters.as_ref()).map(moved),
            failed: median.map_or_else(Vec::new, |median| failed(&told.applications, median)),
            sockets: median.and_then(|median| median.sockets.clone()),
            article: told.article.as_ref().map(Article::of),
            expected: expected.map(|expect| expected::verdict(expect, seen.as_ref())),
            problems: problems(&outcomes, &discarded),
            model,
        }
    }

    /// Whether nothing came otherwise than the scenario expects.
    pub(super) fn is_as_expected(&self) -> bool {
        self.expected.as_ref().is_none_or(|verdict| verdict.as_expected)
    }
}

impl Article {
    fn of(article: &scenario::expect::Article) -> Self {
        let scenario::expect::Article { number, figure, differs } = article.clone();
        Self { number, figure, differs }
    }
}

/// What the programs of each application saw in all runs.
fn applications(names: &[String], outcomes: &[Outcome]) -> Vec<Application> {
    let of = |(at, name): (usize, &String)| {
        let runs: Vec<&Talks> =
            outcomes.iter().filter_map(|outcome| outcome.log.talks.get(at)).collect();
        let all =
            |part: fn(&Talks) -> &Vec<i64>| runs.iter().flat_map(move |talks| part(talks)).copied();
        let calls = all(|talks| &talks.cold).chain(all(|talks| &talks.warm));
        Some(Application {
            name: name.clone(),
            connections: Times::of(all(|talks| &talks.connections))?,
            first_ns: Spread::of(runs.iter().filter_map(|talks| talks.cold.first().copied()))
                .median,
            calls: Times::of(calls)?,
            warm: Times::of(all(|talks| &talks.warm)),
        })
    };
    names.iter().enumerate().filter_map(of).collect()
}

/// Why connections of each application failed.
fn failed(names: &[String], outcome: &Outcome) -> Vec<Failed> {
    let of = |(name, reasons): (&String, &BTreeMap<String, u64>)| {
        let each = |(why, count): (&String, &u64)| Failed {
            application: name.clone(),
            count: *count,
            why: why.clone(),
        };
        reasons.iter().map(each).collect::<Vec<_>>()
    };
    names.iter().zip(&outcome.log.failed).flat_map(of).collect()
}

fn moved(hosts: &[Moved; 2]) -> BTreeMap<&'static str, Moved> {
    let of = |moved: &Moved| {
        moved.iter().filter(|(_, by)| **by > 0).map(|(n, by)| (n.clone(), *by)).collect()
    };
    let [client, server] = hosts;
    BTreeMap::from([("client", of(client)), ("server", of(server))])
}

/// What the reader should know, each once.
fn problems(outcomes: &[Outcome], discarded: &[String]) -> Vec<String> {
    let mut problems: Vec<String> = Vec::new();
    let all = thrown_away(discarded).into_iter();
    for problem in all.chain(outcomes.iter().flat_map(|outcome| outcome.problems.clone())) {
        if !problems.contains(&problem) {
            problems.push(problem);
        }
    }
    problems
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
    use super::super::sockets::{Checked, Group, Holder, Look};
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
        let outcomes = vec![outcome(30, 3), outcome(10, 1), outcome(20, 2)];
        let runs = Runs { outcomes, invalid: 1, discarded: discarded.to_vec(), ..Runs::default() };
        let variant = Variant::of("a", &Told::default(), runs, 1);
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
        let runs = Runs { invalid: 2, discarded: vec!["why".to_owned()], ..Runs::default() };
        let variant = Variant::of("a", &Told::default(), runs, 1);
        assert_eq!(
            (variant.runs, variant.kernel_ns, variant.time_ns),
            (0, None, Spread::default())
        );
    }

    #[test]
    fn calls_of_all_runs_are_told_apart_by_application() {
        let talks =
            |first| Talks { connections: vec![first + 5], cold: vec![first], warm: vec![2, 3] };
        let outcome = |first| {
            let log = super::super::calls::Log {
                talks: vec![Talks::default(), talks(first)],
                ..super::super::calls::Log::default()
            };
            Outcome { log, ..Outcome::default() }
        };
        let names = ["silent".to_owned(), "small".to_owned()];
        let told = applications(&names, &[outcome(9), outcome(7), outcome(8)]);
        let [small] = &told[..] else { panic!("{told:?}") };
        assert_eq!((small.name.as_str(), small.first_ns, small.calls.count), ("small", 8, 9));
        assert_eq!(small.warm.map(|warm| (warm.count, warm.median_ns)), Some((6, 2)));
        assert_eq!(small.connections.p95_ns, 14);
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
            controllers: vec!["cubic".to_owned()],
            applications: vec![
                Application { warm: Some(Times::default()), ..Application::default() },
                Application::default(),
            ],
            findings: vec!["SLOW_START".to_owned()],
            counters: Some(BTreeMap::from([(
                "client",
                Moved::from([("TcpInSegs".to_owned(), 1)]),
            )])),
            model: Some(Modelled {
                time_ns: Some(Spread::default()),
                states_ns: BTreeMap::from([("app".to_owned(), 1)]),
                refused: Some("why".to_owned()),
                ..Modelled::default()
            }),
            failed: vec![Failed::default()],
            sockets: Some(Sockets {
                looks: vec![Look {
                    server: vec![Group {
                        state: "close-wait",
                        holder: Holder::AcceptQueue,
                        count: 2,
                        recv_q: [1, 79],
                        send_q: [0, 0],
                    }],
                    ..Look::default()
                }],
                checked: vec![Checked { host: "server", ..Checked::default() }],
            }),
            article: Some(Article::default()),
            expected: Some(Verdict {
                held: vec!["one".to_owned()],
                broken: vec!["other".to_owned()],
                ..Verdict::default()
            }),
            problems: vec!["one".to_owned()],
            ..Variant::default()
        };
        let bare = Variant { model: Some(Modelled::default()), ..Variant::default() };
        let mut answer = Answer {
            format: FORMAT.to_owned(),
            sender: "server",
            paths: vec![Measured { rtt_ns: Some(1), rate_bps: Some(1), ..Measured::default() }],
            variants: vec![full, bare, Variant::default()],
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
