//! A text of a host: a snapshot that was saved, or what was pasted.

use anyhow::{Context as _, bail};
use tcpwhy::host::paste::Notes;
use tcpwhy::host::saved::{self, Saved};
use tcpwhy::host::snapshot::Snapshot;

use crate::complain;
use crate::read::Input;

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

/// Whether what was pasted can be used. A complaint lists the lines that were not read.
pub(super) fn told(name: &str, notes: &Notes) -> anyhow::Result<()> {
    if notes.read == 0 {
        bail!(
            "{name} holds nothing that is known: neither a snapshot that --save wrote nor what sysctl, ss, \
             nstat, netstat, ip, tc, ethtool or dmesg print"
        );
    }
    if notes.backwards {
        bail!(
            "{name} has readings whose dates go back, and growth counts from the first to the last: put the \
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
