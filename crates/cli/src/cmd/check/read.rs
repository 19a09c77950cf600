//! Where a snapshot comes from: this host, a file that was saved, or pasted text.

use std::path::Path;
use std::time::Duration;

use anyhow::{Context as _, bail};
use tcpwhy::host::paste::Notes;
use tcpwhy::host::saved::{self, Saved};
use tcpwhy::host::snapshot::Snapshot;
use tcpwhy_linux::collect::{Netns, Options, take};
use tcpwhy_linux::record::Stop;

use super::CheckFlags;
use super::hosts::Host;
use crate::complain;
use crate::options::Surroundings;
use crate::read::Input;

/// Default of `--for`. Ours: long enough for a counter that grows once in some seconds, and still waited for.
const APART: Duration = Duration::from_secs(10);

/// This host, as far as it can be seen.
pub(super) fn this_host(flags: &CheckFlags, around: &Surroundings) -> anyhow::Result<Snapshot> {
    // A path asks for settings: nothing of them grows.
    let default = if flags.path.is_some() { Duration::ZERO } else { APART };
    let apart = Some(flags.apart.unwrap_or(default)).filter(|apart| !apart.is_zero());
    let stop = Stop::listen().context("cannot listen for Ctrl-C")?;
    if let Some(apart) = apart.filter(|_| around.stderr_is_terminal) {
        complain(&format!(
            "looking at this host for {} s; Ctrl-C ends it sooner",
            apart.as_secs_f64()
        ));
    }
    let options = Options {
        netns: flags.netns.as_deref().map(Netns::parse),
        apart,
        processes: true,
        locks: flags.socket,
        drops: flags.drops,
        stop: Some(stop),
    };
    let taken = take(&options);
    // What comes now may take a while, too.
    if let Some(stop) = options.stop {
        stop.release();
    }
    Ok(taken?)
}

/// What a file that was saved or pasted shows of one host.
pub(crate) fn from_file(path: &Path) -> anyhow::Result<Snapshot> {
    let mut hosts = super::hosts::of(&Input::named(path))?;
    match hosts.pop() {
        Some(only) if hosts.is_empty() => Ok(only.snapshot),
        last => {
            let names: Vec<String> = hosts.into_iter().chain(last).map(Host::called).collect();
            bail!(
                "{} holds what was printed on several hosts ({}), and this is about one: give it a file of its own, \
                 or judge all by `tcpwhy {0}`",
                path.display(),
                names.join(", ")
            );
        }
    }
}

/// The name of an input in a sentence.
pub(super) fn spoken(input: &Input) -> String {
    match input {
        Input::Stdin => "standard input".to_owned(),
        Input::File(path) => path.display().to_string(),
    }
}

/// A snapshot that was saved; `None` for other text.
pub(super) fn saved_in(name: &str, text: &str) -> anyhow::Result<Option<Snapshot>> {
    if !text.trim_start().starts_with('{') {
        return Ok(None);
    }
    let Saved { snapshot, remark } =
        saved::read(text).with_context(|| format!("{name} is no snapshot of tcpwhy"))?;
    if let Some(remark) = remark {
        complain(&format!("{name}: {remark}"));
    }
    Ok(Some(snapshot))
}

/// Whether what was pasted can be used; the lines that were not read are told.
pub(super) fn told(name: &str, notes: &Notes) -> anyhow::Result<()> {
    if notes.read == 0 {
        bail!(
            "{name} holds nothing that is known: neither a snapshot that --save wrote nor what sysctl, ss, \
             nstat, netstat, ip, tc, ethtool or dmesg print"
        );
    }
    if notes.backwards {
        bail!(
            "{name} has readings whose dates go back, and what grew is told from the first to the last: put the \
             earlier one first, or leave one out"
        );
    }
    tell(name, notes);
    Ok(())
}

/// What of a pasted text was not read.
fn tell(name: &str, notes: &Notes) {
    if notes.unknown > 0 {
        complain(&format!(
            "{name}: {} of {} lines were not understood",
            notes.unknown,
            notes.unknown + notes.read
        ));
    }
    for note in notes.first.iter().chain(&notes.differing) {
        let why = note.why.as_deref().unwrap_or("not understood");
        complain(&format!("{name}, line {}: {why}: {}", note.line, note.text.escape_debug()));
    }
    let more = notes.differ.saturating_sub(notes.differing.len() as u64);
    if more > 0 {
        complain(&format!("{name}: {more} more lines give a setting another value"));
    }
}
