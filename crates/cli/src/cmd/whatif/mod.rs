//! `tcpwhy whatif`: what a captured transfer would have taken with another setting.

mod keys;
mod table;

use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;

use anyhow::Context as _;
use clap::Args;
use tcpwhy::report::Connection;
use tcpwhy_model::predict;
use tcpwhy_model::whatif::{Refusal, Remedies, Study, Tried};

pub(super) use table::{about, longest};

use super::one;
use super::predict::grid::{self, Axis};
use super::signals::stop_on_signals;
use crate::exit::{Exit, Refused, Told};
use crate::read::Input;
use crate::{choose, complain, number, output, page};

/// What is shown below the flags.
pub const AFTER: &str = "\
Without --set every remedy that fits is tried, and ranked. Several --set are changed together; lists and
ranges are tried one by one.

  tcpwhy whatif slow.pcap
  tcpwhy whatif slow.pcap --set initcwnd=20,40 --set client.rmem=16MiB
  tcpwhy whatif slow.pcap --set rtt=5ms
  tcpwhy whatif slow.pcap --scenario > slow.toml; tcpwhy lab run slow.toml

Settings: initcwnd, congctl, sndbuf, wmem (of the data's sender), initrwnd, rcvbuf, rmem (of its receiver), each
also with the host before it (server.rmem); reads (how fast the receiver's program does: at-once, 8mbit); rtt,
rate, queue, loss (of the path); and every key of
`tcpwhy lab list --keys`.";

/// Flags of `tcpwhy whatif`.
#[derive(Args, Debug)]
pub struct WhatifFlags {
    /// A capture that holds the connection from its SYN on
    #[arg(value_name = "FILE")]
    pub file: PathBuf,
    /// Which connection, by its number in the report [default: the only one, or the one with most data]
    #[arg(long, value_name = "N", value_parser = number::connection)]
    pub connection: Option<u64>,
    /// What to change
    #[arg(long, value_name = "KEY=VALUE,...", allow_hyphen_values = true)]
    pub set: Vec<String>,
    /// Print the scenario that was fitted to the capture, for `predict` and `lab run`
    #[arg(long, conflicts_with_all = ["set", "json"])]
    pub scenario: bool,
    /// Print the answer as JSON
    #[arg(long)]
    pub json: bool,
    /// Write a page for the browser into this file, where sliders change the transfer; it begins with --set
    #[arg(long, value_name = "FILE", conflicts_with_all = ["scenario", "json"])]
    pub html: Option<PathBuf>,
}

/// Reads, fits, repeats, asks, prints.
///
/// # Errors
/// A signal handler cannot be set, or the answer cannot be written.
pub fn run(flags: &WhatifFlags) -> anyhow::Result<Exit> {
    let input = Input::named(&flags.file);
    let stop = stop_on_signals().context("cannot listen for Ctrl-C")?;
    let (connection, study) = match studied(flags, &input, &stop, &mut complain) {
        Ok(both) => both,
        Err(refused) => return Ok(refused.told()),
    };
    if flags.scenario {
        output::print(&study.fit.scenario(1)).context("cannot write the scenario")?;
        return Ok(Exit::Analysed);
    }
    let rows = match rows(flags, &study) {
        Ok(rows) => rows,
        Err(error) => {
            complain(&format!("{error:#}"));
            return Ok(Exit::Usage);
        }
    };
    if let Some(path) = &flags.html {
        return in_a_page(path, &input, connection.id, &rows, &stop);
    }
    let text = answer(flags, &connection, &study, &rows)?;
    output::tell(&text, flags.json).context("cannot write the answer")?;
    let Some(why) = rows.stopped else { return Ok(Exit::Analysed) };
    complain(&why);
    Ok(Exit::Usage)
}

/// The connection, and what the model makes of it.
pub(super) fn studied(
    flags: &WhatifFlags,
    input: &Input,
    stop: &AtomicBool,
    remarked: &mut dyn FnMut(&str),
) -> Result<(Connection, Study), Refused> {
    let reads_again = flags.html.is_some();
    let connection = one::connection(input, flags.connection, reads_again, stop, remarked)?;
    let study = Study::of(&connection).map_err(|why| {
        let number = connection.id;
        Refused::unreadable(format!("connection {number} cannot be run otherwise: {why}"))
    })?;
    Ok((connection, study))
}

/// The answer, or in its place the scenario that was fitted, for a program that asks.
///
/// # Errors
/// The capture cannot be read, or a change makes no sense.
pub(crate) fn asked(
    flags: &WhatifFlags,
    stop: &AtomicBool,
    remarked: &mut dyn FnMut(&str),
) -> Result<Told, Refused> {
    let (connection, study) = studied(flags, &Input::named(&flags.file), stop, remarked)?;
    if flags.scenario {
        let scenario = study.fit.scenario(1);
        return Ok(Told { text: scenario.clone(), json: scenario });
    }
    let rows = rows(flags, &study).map_err(|error| Refused::usage(format!("{error:#}")))?;
    rows.stopped.as_deref().into_iter().for_each(remarked);
    let json = table::json(&connection, &study, &rows).map_err(Refused::unreadable)?;
    Ok(Told { text: table::text(&connection, &study, &rows), json })
}

/// Writes a page of the connection, which begins with the change that was asked for.
fn in_a_page(
    path: &Path,
    input: &Input,
    number: u64,
    rows: &Rows,
    stop: &AtomicBool,
) -> anyhow::Result<Exit> {
    let tries = match &rows.remedies.tried[..] {
        [only] => only.changes.clone(),
        _ => Vec::new(),
    };
    let mut report = match one::for_page(input, stop, &mut complain) {
        Ok(report) => report,
        Err(refused) => return Ok(refused.told()),
    };
    if let Err(error) = choose::only(&mut report, number) {
        complain(&error.to_string());
        return Ok(Exit::Usage);
    }
    let written = page::write(page::shown(&report).trying(tries), path);
    output::unless_seen_enough(written).context("cannot write the page")?;
    Ok(Exit::Analysed)
}

/// What the answer shows of changes.
#[derive(Default)]
pub(super) struct Rows {
    remedies: Remedies,
    /// Changes without an answer.
    refused: Vec<(String, Refusal)>,
    /// Why not all were tried, if that is so.
    stopped: Option<String>,
}

impl Rows {
    /// What there is an answer to; why there is none to the others, or not to all, is `remarked`.
    pub(super) fn into_tried(self, remarked: &mut dyn FnMut(&str)) -> Vec<Tried> {
        for (what, why) in &self.refused {
            remarked(&format!("no answer to {what}: {why}"));
        }
        self.stopped.iter().for_each(|why| remarked(why));
        self.remedies.tried
    }
}

/// What the model makes of a connection, without changes.
pub(super) fn told(connection: &Connection, study: &Study) -> String {
    table::text(connection, study, &Rows::default())
}

/// Events of the model for all answers of one command. Ours: as many as of one prediction's, two minutes.
const MOST_EVENTS: u64 = predict::MOST_WORK;

fn answer(
    flags: &WhatifFlags,
    connection: &Connection,
    study: &Study,
    rows: &Rows,
) -> anyhow::Result<String> {
    if flags.json {
        return Ok(table::json(connection, study, rows)? + "\n");
    }
    Ok(table::text(connection, study, rows))
}

/// What was asked for; nothing where the model does not repeat the capture.
///
/// # Errors
/// A change that makes no sense.
pub(super) fn rows(flags: &WhatifFlags, study: &Study) -> anyhow::Result<Rows> {
    let axes = axes(flags, study)?;
    if axes.is_empty() {
        return Ok(Rows { remedies: study.remedies(), ..Rows::default() });
    }
    let (mut rows, mut left) = (Rows::default(), MOST_EVENTS);
    for values in grid::combinations(&axes)? {
        let changes: Vec<String> =
            axes.iter().zip(&values).map(|(axis, value)| format!("{}={value}", axis.key)).collect();
        let named = axes.iter().zip(&values).map(|(axis, value)| format!("{} {value}", axis.title));
        let what = named.collect::<Vec<_>>().join(", ");
        study.check(&changes).with_context(|| format!("cannot answer `{what}`"))?;
        if study.repeats() {
            match study.ask_of(&mut left, &changes) {
                Ok(answer) => rows.remedies.tried.push(Tried { what, changes, answer }),
                Err(error @ (Refusal::Scenario(_) | Refusal::Build(_))) => {
                    return Err(error).with_context(|| format!("cannot answer `{what}`"));
                }
                Err(_) if left == 0 => {
                    rows.stopped = Some(format!(
                        "stopped at `{what}`: all answers together take more than {} million events of the model; \
                         try fewer values",
                        MOST_EVENTS / 1_000_000
                    ));
                    break;
                }
                Err(why) => rows.refused.push((what, why)),
            }
        }
    }
    Ok(rows)
}

fn axes(flags: &WhatifFlags, study: &Study) -> anyhow::Result<Vec<Axis>> {
    let axis = |set: &String| {
        let (title, typed) = set
            .split_once('=')
            .with_context(|| format!("`--set {set}` has no `=`; write it as initcwnd=20"))?;
        keys::axis(title.trim(), typed, study.fit.sender)
    };
    flags.set.iter().map(axis).collect()
}
