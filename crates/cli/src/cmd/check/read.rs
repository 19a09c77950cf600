//! Where a snapshot comes from: this host, a file that was saved, or pasted text.

use std::path::Path;
use std::time::Duration;

use anyhow::{Context as _, bail};
use tcpwhy::host::paste::{self, Notes, Pasted};
use tcpwhy::host::saved::{self, Saved};
use tcpwhy::host::snapshot::Snapshot;
use tcpwhy_linux::collect::{Netns, Options, take};
use tcpwhy_linux::record::Stop;

use super::CheckFlags;
use super::text::text;
use crate::complain;
use crate::options::Surroundings;

/// What was asked for, as far as it can be seen.
pub(super) fn snapshot(flags: &CheckFlags, around: &Surroundings) -> anyhow::Result<Snapshot> {
    match &flags.file {
        Some(path) => from_file(path),
        None => this_host(flags, around),
    }
}

/// Default of `--for`. Ours: long enough for a counter that grows once in some seconds, and still waited for.
const APART: Duration = Duration::from_secs(10);

fn this_host(flags: &CheckFlags, around: &Surroundings) -> anyhow::Result<Snapshot> {
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

/// What a file that was saved or pasted shows.
pub(crate) fn from_file(path: &Path) -> anyhow::Result<Snapshot> {
    let name = if path == Path::new("-") {
        "standard input".to_owned()
    } else {
        path.display().to_string()
    };
    let text = text(path).with_context(|| format!("cannot read {name}"))?;
    if text.trim_start().starts_with('{') {
        let read = saved::read(&text);
        let Saved { snapshot, remark } =
            read.with_context(|| format!("{name} is no snapshot of tcpwhy"))?;
        if let Some(remark) = remark {
            complain(&format!("{name}: {remark}"));
        }
        return Ok(snapshot);
    }
    let Pasted { snapshot, notes } = paste::read(&text);
    if notes.read == 0 {
        bail!(
            "{name} holds nothing that is known: neither a snapshot that --save wrote nor what sysctl, ss, \
             nstat, netstat, ip, tc, ethtool or dmesg print"
        );
    }
    if notes.hosts.len() > 1 {
        let hosts: Vec<&str> = notes.hosts.iter().map(String::as_str).collect();
        bail!(
            "{name} holds what was printed on several hosts ({}): give each a file of its own",
            hosts.join(", ")
        );
    }
    if notes.backwards {
        bail!(
            "{name} has readings whose dates go back, and what grew is told from the first to the last: put the \
             earlier one first, or leave one out"
        );
    }
    tell(&name, &notes);
    Ok(snapshot)
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
