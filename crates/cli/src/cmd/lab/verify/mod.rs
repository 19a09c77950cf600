//! `tcpwhy lab verify`: a captured connection carried out on a kernel, as it was and with what would make it faster.
//!
//! ```text
//! capture -> Study (fit, model) -> plans -> backend -> captures -> explain -> accounts
//!                 \--- claims: a time and its range ------------------------/ held against each other
//! ```

mod claim;
mod table;

use std::path::{Path, PathBuf};

use anyhow::Context;
use clap::Args;
use tcpwhy::report::Connection;
use tcpwhy_model::fit::{Account, Fit};
use tcpwhy_model::scenario::plan::Plan;
use tcpwhy_model::whatif::{Refusal, Study, Tried};
use tcpwhy_model::world::Tap;

use super::outcome::{capture_at, explained};
use super::runs::{Lab, Tried as Ran};
use super::{backends, print};
use crate::cmd::signals::stop_on_signals;
use crate::cmd::whatif::{self, WhatifFlags};
use crate::complain;
use crate::exit::Exit;
use crate::number;
use crate::options::Surroundings;
use crate::read::Input;
use claim::{Claim, Kernel, Verdict};

pub(super) const AFTER: &str = "\
What was fitted to the connection is carried out on a kernel as it was, and once more with each change. The kernel's time
is held against the range that `whatif` and `explain` give for it. Without --set each remedy that whatif finds is tried.

  tcpwhy lab verify slow.pcap
  tcpwhy lab verify slow.pcap --set initcwnd=40 --backend uml:6.12

Exit status: 0 the kernel has what was said, 1 it has not, 2 wrong usage or what this backend or machine cannot do,
3 something could not be verified.";

/// Flags of `tcpwhy lab verify`.
#[derive(Args, Debug)]
pub struct VerifyFlags {
    /// A capture that holds the connection from its SYN on
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// Which connection, by its number in the report [default: the only one, or the one with most data]
    #[arg(long, value_name = "N", value_parser = number::connection)]
    connection: Option<u64>,
    /// What to change, as `tcpwhy whatif` takes it
    #[arg(long, value_name = "KEY=VALUE,...", allow_hyphen_values = true)]
    set: Vec<String>,
    /// As in `lab run`
    #[arg(long, value_name = "NAME", value_parser = backends::known)]
    backend: Option<String>,
    /// Runs of each; the one in the middle counts [default: 1 in simulated time, else 3]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=100))]
    repeat: Option<u32>,
    /// Keep captures and records in this folder
    #[arg(long, value_name = "DIR")]
    keep: Option<PathBuf>,
    /// Print the answer as JSON, in the form of docs/verify.schema.json
    #[arg(long)]
    json: bool,
}

/// What was verified.
pub(super) struct Verified {
    connection: Connection,
    study: Study,
    /// What carried it out, and the kernel's version.
    backend: String,
    kernel: String,
    as_it_was: Kernel,
    claims: Vec<Claim>,
}

/// Fits, carries out, holds against each other, prints.
///
/// # Errors
/// The lab cannot be opened, or a run ended early.
pub(super) fn run(flags: &VerifyFlags, around: &Surroundings) -> anyhow::Result<Exit> {
    let asked = WhatifFlags {
        file: flags.file.clone(),
        connection: flags.connection,
        set: flags.set.clone(),
        scenario: false,
        json: flags.json,
        html: None,
    };
    let stop = stop_on_signals().context("cannot listen for Ctrl-C")?;
    let input = Input::named(&flags.file);
    let (connection, study) = match whatif::studied(&asked, &input, &stop, &mut complain) {
        Ok(both) => both,
        Err(refused) => return Ok(refused.told()),
    };
    if !study.repeats() {
        print(&whatif::told(&connection, &study))?;
        complain(
            "nothing was carried out: what the model does not repeat a kernel would not repeat either",
        );
        return Ok(Exit::Unreadable);
    }
    let tried = match whatif::rows(&asked, &study) {
        Ok(rows) => rows.into_tried(&mut complain),
        Err(error) => {
            complain(&format!("{error:#}"));
            return Ok(Exit::Usage);
        }
    };
    let verified = carry_out(flags, around, (connection, study), tried)?;
    print(&if flags.json { table::json(&verified)? } else { table::text(&verified) })?;
    Ok(verified.exit())
}

impl Verified {
    fn exit(&self) -> Exit {
        let all = |is: fn(Verdict) -> bool| self.claims.iter().all(|claim| is(claim.verdict));
        let repeats = self.as_it_was.repeats(&self.study.fit.seen);
        if all(Verdict::is_held) && (repeats || !self.claims.is_empty()) {
            Exit::Analysed
        } else if all(|verdict| verdict.is_held() || verdict == Verdict::Unknown) {
            Exit::Unreadable
        } else {
            Exit::Found
        }
    }
}

fn carry_out(
    flags: &VerifyFlags,
    around: &Surroundings,
    (connection, study): (Connection, Study),
    tried: Vec<Tried>,
) -> anyhow::Result<Verified> {
    let backend = backends::open(flags.backend.as_deref());
    let lab = Lab::open(backend.as_ref(), flags.keep.as_deref(), around)?;
    let is_live = ["tun", "netem"].contains(&backend.name().as_str());
    let repeats = flags.repeat.unwrap_or(if is_live { 3 } else { 1 });
    // Refusals come before anything starts.
    let plans = tried.iter().map(|each| plan(&study, each)).collect::<Result<Vec<_>, Refusal>>()?;
    let unchanged = study.experiment(1, &[])?;
    lab.check(&[std::slice::from_ref(&unchanged), &plans].concat())?;
    let mut bench = Bench { lab: &lab, fit: &study.fit, repeats, kernel: String::new() };
    let as_it_was = bench.run(&unchanged, "as it was")?;
    let mut claims = Vec::new();
    for (each, plan) in tried.into_iter().zip(plans) {
        let mut ran = bench.run(&plan, &each.what)?;
        if is_again(&each) {
            ran = ran.behind(&as_it_was);
        }
        claims.push(Claim::of(each, ran, &as_it_was, &study.fit.seen));
    }
    lab.tell("");
    let kernel = bench.kernel;
    Ok(Verified { connection, study, backend: backend.name(), kernel, as_it_was, claims })
}

/// Whether it is the same conversation once more, on the connection that it left open.
fn is_again(tried: &Tried) -> bool {
    tried.changes.is_empty()
}

fn plan(study: &Study, tried: &Tried) -> Result<Plan, Refusal> {
    study.experiment(if is_again(tried) { 2 } else { 1 }, &tried.changes)
}

/// Carries out plans of one fit.
struct Bench<'a, 'b> {
    lab: &'a Lab<'b>,
    fit: &'a Fit,
    repeats: u32,
    /// The kernel's version, once one has run.
    kernel: String,
}

impl Bench<'_, '_> {
    fn run(&mut self, plan: &Plan, what: &str) -> anyhow::Result<Kernel> {
        let mut kernel = Kernel::default();
        for repeat in 0..self.repeats {
            self.lab.tell(&format!("{what}, run {} of {}", repeat + 1, self.repeats));
            let plan = Plan { variant: what.to_owned(), repeat, ..plan.clone() };
            let Ran { done, discarded, .. } = self.lab.trusted(&plan)?;
            kernel.discarded.extend(discarded);
            let Some(done) = done else { continue };
            self.kernel.clone_from(&done.manifest.kernel);
            kernel.push(self.account(&done.folder)?);
            self.lab.sweep(&done.folder);
        }
        Ok(kernel)
    }

    /// What `explain` says of the run, from where the capture was taken.
    fn account(&self, folder: &Path) -> anyhow::Result<Account> {
        let side = match self.fit.tap {
            Tap::Client => 0,
            Tap::Server => 1,
        };
        let report = explained(&folder.join(capture_at(side)), self.lab.stop())?;
        let connection = report.connections.first().context("the run left no connection")?;
        let direction = connection.directions[self.fit.sender.index()].as_deref();
        Ok(Account::of(direction.context("the run left no data")?))
    }
}
