//! `[[client.changes]]` and `[[server.changes]]`: what changes at a host while a run goes on.
//!
//! Settings, and what the kernel remembers of its peers. All else of a host is as it was built.

use super::error::{Place, ScenarioError, shown};
use super::keys::{HOST, HOST_CHANGE};
use super::plan::HostChange;
use super::section::Section;
use super::settings::sysctl;
use super::tree::{Node, Value};
use super::units::Quantity;

/// Reads the list of a host; `limit_ns` is the longest time of a run.
pub(super) fn read(host: &Section<'_>, limit_ns: u64) -> Result<Vec<HostChange>, ScenarioError> {
    let path = host.name("changes");
    let mut changes: Vec<HostChange> = Vec::new();
    for node in host.list("changes")? {
        let change = one(&path, node)?;
        let (at, wrong) = (written(change.at_ns), |what| ScenarioError::new(&node.place, what));
        if change.at_ns > limit_ns {
            let limit = written(limit_ns);
            return Err(wrong(format!(
                "`{path}`: a change at {at} comes after the limit of {limit}; raise `limit`"
            )));
        }
        if let Some(last) = changes.last().filter(|last| last.at_ns > change.at_ns) {
            let last = written(last.at_ns);
            return Err(wrong(format!(
                "`{path}`: a change at {at} cannot follow one at {last}; write them in order of `at`"
            )));
        }
        changes.push(change);
    }
    Ok(changes)
}

fn one(path: &str, node: &Node) -> Result<HostChange, ScenarioError> {
    if let Some((place, word)) = what_stays(node) {
        let what = format!(
            "`{path}`: `{word}` stays as it is while a run goes on; what changes is `sysctl` and `metrics`"
        );
        return Err(ScenarioError::new(place, what));
    }
    let section = Section::open(path, HOST_CHANGE, Some(node))?;
    let at_ns = section.number("at")?.ok_or_else(|| {
        ScenarioError::new(&node.place, format!("`{path}`: a change needs `at`, as `at = \"2s\"`"))
    })?;
    let flush_metrics = match section.text("metrics")? {
        None => false,
        Some((_, word)) if word == "flush" => true,
        Some((place, word)) => {
            let what =
                format!("`{path}.metrics`: `{}` is no action; write \"flush\"", shown(&word));
            return Err(ScenarioError::new(place, what));
        }
    };
    let sysctl = sysctl(&section)?;
    if sysctl.is_empty() && !flush_metrics {
        let what = format!(
            "`{path}`: nothing changes at {}; write `sysctl.net.ipv4.NAME = VALUE` or `metrics = \"flush\"`",
            written(at_ns)
        );
        return Err(ScenarioError::new(&node.place, what));
    }
    Ok(HostChange { at_ns, sysctl, flush_metrics })
}

/// A key that a host has and a change of it has not.
fn what_stays(node: &Node) -> Option<(&Place, &str)> {
    let Value::Table(table) = &node.value else { return None };
    let is_fixed = |word: &str| {
        HOST.iter().any(|key| key.name == word) && HOST_CHANGE.iter().all(|key| key.name != word)
    };
    table.iter().find(|(word, _)| is_fixed(word)).map(|(word, (place, _))| (place, word.as_str()))
}

fn written(ns: u64) -> String {
    Quantity::Time.write(ns)
}
