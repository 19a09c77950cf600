//! `tcpwhy lab accuracy`: how right is `explain`, by the kernels that sent?
//!
//! A seeded set of random experiments is run; each capture (at the sender's host, at the receiver's,
//! in the middle) is explained, and every report held against the truth of the same run. Figures
//! are printed strictly (narrow words alone) and leniently (words that may stand for the kernel's,
//! and named alternatives): `docs/accuracy.md` has the table of words and what is known to be wrong.

use core::fmt::Write;
use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use anyhow::{Context, bail};
use serde::Serialize;
use tcpwhy_linux::lab::backend::Backend;
use tcpwhy_linux::lab::folder;
use tcpwhy_model::scenario::Scenario;
use tcpwhy_model::scenario::plan::Plan;
use tcpwhy_model::scenario::random::{Kinds, kind, scenario};
use truth::classes::{Fit, fit};
use truth::compare::{Agreement, compare, quantile, share};
use truth::stock::{Held, hold};
use truth::{Source, State, TruthError, link};

use super::links;
use super::outcome::{capture_at, direction, explained};
use super::runs::{Done, Lab};
use super::words;
use crate::cmd::columns::percent;

/// Which runs to make.
#[derive(Clone, Copy, Debug)]
pub(super) struct Set {
    /// Which kinds of runs.
    pub(super) kinds: Kinds,
    /// Of the whole set.
    pub(super) seed: u64,
    /// How many runs.
    pub(super) runs: u32,
    /// Just this one.
    pub(super) only: Option<u32>,
    /// No run begins later than this after the first.
    pub(super) within: Option<Duration>,
}

/// What the set came to.
#[derive(Debug, Default, Serialize)]
pub(super) struct Accuracy {
    /// The backend's name.
    pub(super) backend: String,
    /// The set's seed.
    pub(super) seed: u64,
    /// Runs compared, in the order they were made.
    pub(super) runs: Vec<Run>,
    /// Runs that this backend cannot do, cannot be trusted or failed: number and why.
    pub(super) left_out: Vec<(u32, String)>,
    /// Runs that the backend did not trust, most of them made again.
    pub(super) discarded: usize,
    /// Sums over runs, by where the capture was taken.
    pub(super) by_vantage: Vec<(&'static str, Agreement)>,
    /// The same of what is said of the narrowest link, held against the log of its queue.
    pub(super) links: Vec<(&'static str, link::Held)>,
    /// Of runs of an observed kernel: what a stock kernel's records of them say, held against it.
    pub(super) stock: Option<Held>,
}

/// One run of the set.
#[derive(Debug, Serialize)]
pub(super) struct Run {
    /// Its number in the set.
    pub(super) number: u32,
    /// The sender's congestion control.
    pub(super) controller: String,
    /// What it is about, where the set has kinds.
    pub(super) kind: Option<&'static str>,
    /// Strict and lenient error at the sender's host, in thousandths of the time compared.
    pub(super) errors: Option<(u64, u64)>,
    /// Most time that went wrong: the kernel's state, the report's, nanoseconds.
    pub(super) worst: Option<(State, String, u64)>,
}

/// Runs that may fail in a row.
const MOST_FAILURES: u32 = 4;

/// Where captures are taken.
const VANTAGES: [&str; 3] = ["sender", "receiver", "middle"];

/// Runs the set.
///
/// # Errors
/// The user stopped it, or nothing can be written.
pub(super) fn measure(lab: &Lab<'_>, backend: &dyn Backend, set: Set) -> anyhow::Result<Accuracy> {
    let mut accuracy = Accuracy {
        backend: backend.name(),
        seed: set.seed,
        by_vantage: VANTAGES.map(|vantage| (vantage, Agreement::default())).to_vec(),
        links: VANTAGES.map(|vantage| (vantage, link::Held::default())).to_vec(),
        ..Accuracy::default()
    };
    let began = Instant::now();
    let mut failed = 0;
    let numbers = set.only.map_or(0..set.runs, |only| only..only + 1);
    for number in numbers {
        if set.within.is_some_and(|within| began.elapsed() > within) {
            break;
        }
        let text = scenario(set.kinds, set.seed, number);
        let read = Scenario::read("accuracy", &text, &[]);
        let plan = read.ok().and_then(|scenario| scenario.plans(1).next());
        let plan = plan.context("every run of the set is a scenario")?;
        lab.tell(&format!("run {number} of the set with seed {}", set.seed));
        if let Err(refusal) = backend.check(&plan) {
            accuracy.left_out.push((number, refusal.to_string()));
            continue;
        }
        let tried = match lab.trusted(&plan) {
            // One experiment that cannot be played costs no other; when all fail, the lab is broken.
            Err(error) if !lab.is_stopped() && failed < MOST_FAILURES => {
                failed += 1;
                accuracy.left_out.push((number, format!("{error:#}")));
                continue;
            }
            tried => tried?,
        };
        failed = 0;
        accuracy.discarded += tried.discarded.len();
        let Some(done) = tried.done else {
            let (count, why) = (tried.discarded.len(), tried.discarded.last());
            let why = why.map_or("", String::as_str);
            accuracy
                .left_out
                .push((number, format!("none of {count} runs counts, at last: {why}")));
            continue;
        };
        let kept = done.folder.join("scenario.toml");
        std::fs::write(&kept, &text).with_context(|| format!("cannot write {}", kept.display()))?;
        match judged(lab, &done, &plan, &mut accuracy.links) {
            Ok((agreements, stock)) => {
                let about = (controller(&plan), kind(set.kinds, number));
                accuracy.add(number, about, &agreements);
                if let Some(held) = stock {
                    accuracy.stock.get_or_insert_default().add(&held);
                }
            }
            Err(error) => accuracy.left_out.push((number, format!("{error:#}"))),
        }
        lab.sweep(&done.folder);
    }
    lab.tell("");
    Ok(accuracy)
}

/// The congestion control of the end whose data matters, as its route has it.
fn controller(plan: &Plan) -> String {
    let sender = [&plan.client, &plan.server][direction(plan)];
    sender.route.get("congctl").cloned().unwrap_or_default()
}

/// Holds the captures of one run against its truth, and that against what a stock kernel would tell.
fn judged(
    lab: &Lab<'_>,
    done: &Done,
    plan: &Plan,
    links: &mut [(&'static str, link::Held)],
) -> anyhow::Result<(Vec<Agreement>, Option<Held>)> {
    let side = direction(plan);
    if let Some(gap) = done.manifest.gap_of_kernel() {
        bail!("{gap}");
    }
    let run = &done.folder;
    let mut truth = truth::of_folder(run)?;
    let is_observed = |c: &truth::Connection| {
        c.directions[side].as_ref().is_some_and(|d| d.source == Source::Observed)
    };
    let stock = if truth.connections.iter().any(is_observed) {
        match truth::of_stock_records(run) {
            // The model has no tracepoints but those of an observed kernel.
            Err(TruthError::NothingRecorded { .. }) => None,
            stock => Some(hold(&truth, &stock?, &[side])),
        }
    } else {
        None
    };
    let path_log = links::log(plan, run, false)?;
    if let Some(log) = &path_log {
        truth.note_link(side, log);
    }
    let [.., middle] = folder::CAPTURES;
    let captures = [capture_at(side), capture_at(1 - side), middle];
    let agreements: anyhow::Result<Vec<_>> = captures
        .iter()
        .zip(links)
        .map(|(capture, (_, held))| {
            let path = run.join(capture);
            if !path.exists() {
                return Ok(Agreement::default());
            }
            let report = explained(&path, lab.stop())?;
            links::hold(held, &report, (plan, run), capture)?;
            let json = serde_json::to_string(&report).context("a report is plain data")?;
            Ok(compare(&truth, &json, &[side])?)
        })
        .collect();
    Ok((agreements?, stock))
}

impl Accuracy {
    fn add(
        &mut self,
        number: u32,
        (controller, kind): (String, Option<&'static str>),
        agreements: &[Agreement],
    ) {
        for ((_, sum), agreement) in self.by_vantage.iter_mut().zip(agreements) {
            sum.add(agreement);
        }
        let Some(own) = agreements.first() else { return };
        let errors = own.strict_error().zip(own.lenient_error());
        let worst = own.worst().map(|(state, verdict, ns)| (state, verdict.to_owned(), ns));
        self.runs.push(Run { number, controller, kind, errors, worst });
    }

    /// The lenient error at the sender's host, in thousandths.
    pub(super) fn lenient(&self) -> Option<u64> {
        self.by_vantage.first().and_then(|(_, sum)| sum.lenient_error())
    }

    /// Whether a stock kernel's records contradict those of the observed one: then nothing measured on
    /// the running kernel is worth anything.
    pub(super) fn stock_lies(&self) -> bool {
        self.stock.as_ref().is_some_and(|held| held.against_ns * STOCK_MAY > held.told_ns)
    }

    /// As text.
    pub(super) fn render(&self) -> String {
        let mut text = format!(
            "{} runs by {}, seed {}; {} left out, {} thrown away\n\n",
            self.runs.len(),
            self.backend,
            self.seed,
            self.left_out.len(),
            self.discarded
        );
        self.figures(&mut text);
        words::render(&self.by_vantage, &mut text);
        links::render(&self.links, &mut text);
        self.by_controller(&mut text);
        self.stock_records(&mut text);
        self.matrix(&mut text);
        self.worst_runs(&mut text);
        if !self.left_out.is_empty() {
            text.push_str("\nleft out\n");
            for (number, why) in &self.left_out {
                let _ = writeln!(text, "  run {number}: {why}");
            }
        }
        text
    }

    fn figures(&self, text: &mut String) {
        type Figure = fn(&Agreement) -> String;
        let rows: [(&str, Figure); 14] = [
            ("time compared", |a| format!("{:.1} s", a.compared_ns as f64 / 1e9)),
            ("  the same word", |a| percent(share(a.narrow_ns, a.compared_ns))),
            ("  a word that may stand for it", |a| percent(share(a.wide_ns, a.compared_ns))),
            ("  a named alternative", |a| percent(share(a.alternative_ns, a.compared_ns))),
            ("  not decided", |a| percent(share(a.undecided_ns, a.compared_ns))),
            ("  something else", |a| percent(share(a.wrong_ns, a.compared_ns))),
            ("time error, strict", |a| percent(a.strict_error())),
            ("  by the stack's words alone", |a| percent(a.strict_error_by_stack())),
            ("  while the link was full", |a| {
                let [full, said] = a.link_full_ns;
                percent(share(full - said, full))
            }),
            ("time error, lenient", |a| percent(a.lenient_error())),
            ("without a record", |a| percent(share(a.unjudged_ns, a.unjudged_ns + a.compared_ns))),
            ("cwnd error, half and 9 in 10", |a| halves(&a.cwnd_errors)),
            ("RTT error, half and 9 in 10", |a| halves(&a.rtt_errors)),
            ("resent: equal, of runs", |a| {
                let equal = a.retransmitted.iter().filter(|(kernel, report)| kernel == report);
                format!("{} of {}", equal.count(), a.retransmitted.len())
            }),
        ];
        let _ = write!(text, "{:<32}", "capture at");
        for (vantage, _) in &self.by_vantage {
            let _ = write!(text, "{vantage:>18}");
        }
        text.push('\n');
        for (title, figure) in rows {
            let _ = write!(text, "{title:<32}");
            for (_, sum) in &self.by_vantage {
                let _ = write!(text, "{:>18}", figure(sum));
            }
            text.push('\n');
        }
        let each = |pick: fn((u64, u64)) -> u64| -> Vec<i64> {
            self.runs.iter().filter_map(|run| run.errors.map(|e| pick(e) as i64)).collect()
        };
        let (strict, lenient) = (each(|e| e.0), each(|e| e.1));
        let _ = writeln!(
            text,
            "time error of a run at the sender, half and 9 in 10: strict {}, lenient {}",
            halves(&strict),
            halves(&lenient)
        );
    }

    /// Errors of runs by the sender's congestion control, and by what they are about: they differ most in that.
    fn by_controller(&self, text: &mut String) {
        let mut errors: BTreeMap<&str, [Vec<i64>; 2]> = BTreeMap::new();
        for run in &self.runs {
            let Some((strict, lenient)) = run.errors else { continue };
            for name in core::iter::once(&*run.controller).chain(run.kind) {
                let row = errors.entry(name).or_default();
                row[0].push(strict as i64);
                row[1].push(lenient as i64);
            }
        }
        for (name, [strict, lenient]) in errors {
            let _ = writeln!(
                text,
                "  {name:<17} {:>4} runs: strict {}, lenient {}",
                strict.len(),
                halves(&strict),
                halves(&lenient)
            );
        }
    }

    /// How far the truth of a stock kernel, as it is used on the running one, may be believed.
    fn stock_records(&self, text: &mut String) {
        let Some(held) = &self.stock else { return };
        let seconds = |ns: u64| ns as f64 / 1e9;
        let told = percent(share(held.told_ns, held.whole_ns));
        let _ = writeln!(
            text,
            "\nwhat a stock kernel records of these runs tells {told} of {:.1} s, \
             {:.3} s of it against the observed kernel",
            seconds(held.whole_ns),
            seconds(held.against_ns)
        );
        let pairs = held.pairs.iter().flat_map(|(exact, row)| {
            row.iter().map(move |(stock, ns)| (*ns, exact.name(), stock.name()))
        });
        let mut pairs: Vec<_> = pairs.filter(|pair| pair.0 >= LEAST_SHOWN_NS).collect();
        pairs.sort_by_key(|pair| (core::cmp::Reverse(pair.0), pair.1, pair.2));
        for (ns, exact, stock) in pairs.into_iter().take(PAIRS_SHOWN) {
            let _ = writeln!(text, "  {:>9.3} s  {stock} for {exact}", seconds(ns));
        }
        let row = |(exact, (whole, told)): (&State, &(u64, u64))| {
            let left = 1000 - share(*told, *whole)?;
            (left >= 10).then(|| format!("{} {}", exact.name(), percent(Some(left))))
        };
        let rows: Vec<_> = held.coverage.iter().filter_map(row).collect();
        let _ = writeln!(text, "  not told: {}", rows.join(", "));
    }

    /// What the report said while the kernel was in each state, at the sender's host.
    fn matrix(&self, text: &mut String) {
        let Some((_, sum)) = self.by_vantage.first() else { return };
        text.push_str(
            "\nby the kernel's state, at the sender: what the report said \
             (* may stand for it, ! something else or an alternative)\n",
        );
        for (state, row) in &sum.matrix {
            let total: u64 = row.values().sum();
            let mut cells: Vec<_> = row.iter().collect();
            cells.sort_by(|a, b| b.1.cmp(a.1).then_with(|| a.0.cmp(b.0)));
            let cell = |(verdict, ns): &(&String, &u64)| {
                let mark = match fit(*state, verdict, &[]) {
                    Some(Fit::Narrow) => "",
                    Some(Fit::Wide) => "*",
                    _ => "!",
                };
                let part = share(**ns, total).filter(|part| *part > 0)?;
                Some(format!("{verdict}{mark} {}", percent(Some(part))))
            };
            let cells: Vec<_> = cells.iter().filter_map(cell).collect();
            let seconds = total as f64 / 1e9;
            let _ = writeln!(text, "  {:<16}{seconds:>9.2} s  {}", state.name(), cells.join(", "));
        }
    }

    fn worst_runs(&self, text: &mut String) {
        let mut runs: Vec<_> = self.runs.iter().filter(|run| run.errors.is_some()).collect();
        runs.sort_by_key(|run| {
            core::cmp::Reverse(run.errors.map(|(strict, lenient)| (lenient, strict)))
        });
        text.push_str(
            "\nworst runs at the sender: strict, lenient, most of it, and how to repeat it\n",
        );
        for Run { number, kind, errors, worst, .. } in runs.into_iter().take(WORST_SHOWN) {
            let (strict, lenient) = errors.unwrap_or_default();
            let most = worst.as_ref().map_or_else(String::new, |(state, verdict, ns)| {
                format!("{} for {}, {:.0} ms", verdict, state.name(), *ns as f64 / 1e6)
            });
            let _ = writeln!(
                text,
                "  {:>7} {:>7}  {most:<52}  tcpwhy lab accuracy --backend {} --seed {}{} --only {number}",
                percent(Some(strict)),
                percent(Some(lenient)),
                self.backend,
                self.seed,
                if kind.is_some() { " --networks" } else { "" }
            );
        }
    }
}

/// The median and the 90th percentile of the errors' sizes.
fn halves(errors: &[i64]) -> String {
    let sizes: Vec<_> = errors.iter().map(|error| error.abs()).collect();
    let at = |percents| percent(quantile(&sizes, percents).map(i64::unsigned_abs));
    format!("{}, {}", at(50), at(90))
}

/// Ours: as many as somebody will look at.
const WORST_SHOWN: usize = 15;
const PAIRS_SHOWN: usize = 8;

/// Ours: what is below is rounding.
const LEAST_SHOWN_NS: u64 = 1_000_000;

/// Ours: one part in a thousand. Of 299 runs of three seeds (300 s to 430 s each) it was 0.01 %, most of it
/// in instants at which two windows were full at once.
const STOCK_MAY: u64 = 1000;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_tells_strict_from_lenient_and_names_the_worst() {
        let row = |verdict: &str, ns| BTreeMap::from([(verdict.to_owned(), ns)]);
        let own = Agreement {
            compared_ns: 1_000_000_000,
            narrow_ns: 700_000_000,
            wide_ns: 200_000_000,
            wrong_ns: 100_000_000,
            matrix: BTreeMap::from([
                (State::CwndAvoidance, row("bandwidth.self_queue", 200_000_000)),
                (State::Rwnd, row("sndbuf", 100_000_000)),
                (State::Closing, row("closing", 700_000_000)),
            ]),
            wrong: BTreeMap::from([(State::Rwnd, row("sndbuf", 100_000_000))]),
            cwnd_errors: vec![-100, 0, 50],
            retransmitted: vec![(2, 2), (3, 1)],
            ..Agreement::default()
        };
        let mut accuracy = Accuracy {
            backend: "uml:6.1".to_owned(),
            seed: 7,
            by_vantage: VANTAGES.map(|vantage| (vantage, Agreement::default())).to_vec(),
            ..Accuracy::default()
        };
        accuracy.add(
            12,
            ("cubic".to_owned(), Some("jitter")),
            &[own, Agreement::default(), Agreement::default()],
        );
        assert_eq!(accuracy.lenient(), Some(100));
        assert!(
            !accuracy.stock_lies(),
            "without an observed kernel there is nothing to hold it against"
        );
        let held = |against_ns| Held {
            whole_ns: 4_000_000_000,
            told_ns: 2_000_000_000,
            against_ns,
            pairs: BTreeMap::from([(
                State::Tsq,
                BTreeMap::from([(State::Sndbuf, against_ns), (State::Rwnd, 999_999)]),
            )]),
            coverage: BTreeMap::from([
                (State::Tsq, (4_000_000_000, 1_000_000_000)),
                (State::Rwnd, (1_000, 999)),
            ]),
        };
        accuracy.stock = Some(held(2_000_000));
        assert!(!accuracy.stock_lies());
        accuracy.stock = Some(held(2_000_001));
        assert!(accuracy.stock_lies());
        let text = accuracy.render();
        for line in [
            "time error, strict                          30.0 %                 -                 -",
            "time error, lenient                         10.0 %                 -                 -",
            "cwnd error, half and 9 in 10         5.0 %, 10.0 %",
            "resent: equal, of runs                      1 of 2",
            "  cubic                1 runs: strict 30.0 %, 30.0 %, lenient 10.0 %, 10.0 %",
            "  cwnd.avoidance       0.20 s  bandwidth.self_queue* 100.0 %",
            "  rwnd                 0.10 s  sndbuf! 100.0 %",
            "   30.0 %  10.0 %  sndbuf for rwnd, 100 ms",
            "tcpwhy lab accuracy --backend uml:6.1 --seed 7 --networks --only 12",
            "tells 50.0 % of 4.0 s, 0.002 s of it against the observed kernel\n",
            "\n      0.002 s  sndbuf for tsq\n  not told: tsq 75.0 %\n",
        ] {
            assert!(text.contains(line), "{line}\nis not in\n{text}");
        }
    }
}
