//! The answer of `tcpwhy check --json`.

use std::collections::BTreeMap;

use anyhow::Context as _;
use serde::Serialize;
use tcpwhy::host::snapshot::{Drops, Process, Snapshot};
use tcpwhy::host::{Finding, Judgement};
use tcpwhy::live::{Connection, Line, over};

/// The answer as programs read it.
#[derive(Serialize)]
struct Answer<'a> {
    format: &'static str,
    /// As prompts or `uname -a` of a pasted text name it.
    #[serde(skip_serializing_if = "Option::is_none")]
    host: Option<&'a str>,
    /// The texts it was judged by, where there were several.
    #[serde(skip_serializing_if = "<[String]>::is_empty")]
    files: &'a [String],
    kernel: &'a Option<String>,
    netns: &'a Option<String>,
    looks: usize,
    /// Connections that something holds, or whose program lags.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    connections: Vec<Line<'a>>,
    findings: Vec<Told<'a>>,
    /// `None` where they were not asked for.
    drops: &'a Option<Drops>,
    /// Checks that could not be made.
    unseen: Vec<Unmade>,
    /// Checks that found nothing.
    well: &'a [&'static str],
}

#[derive(Serialize)]
struct Told<'a> {
    #[serde(flatten)]
    finding: &'a Finding,
    /// Of each fix, what carries it out and what takes it back.
    commands: Vec<Option<Both>>,
}

#[derive(Serialize)]
struct Both {
    apply: String,
    undo: Option<String>,
}

#[derive(Serialize)]
struct Unmade {
    code: &'static str,
    needs: String,
}

/// The answer of one host, with the name of the host and of the texts where there are several.
pub(crate) fn json(
    snapshot: &Snapshot,
    judged: &Judgement,
    host: Option<&str>,
    files: &[String],
) -> anyhow::Result<String> {
    let netns = snapshot.netns.as_deref();
    let told = |finding| Told { finding, commands: commands(finding, netns) };
    let course = over(snapshot);
    let processes = snapshot.looks.iter().rev().find_map(|look| look.processes.as_ref());
    let is_dated = snapshot.looks.iter().all(|look| look.t_ns.is_some());
    let shown = course.ranked().into_iter().filter(|each| each.held.is_some() || each.lags());
    let answer = Answer {
        format: "tcpwhy-check/1",
        host,
        files,
        kernel: &snapshot.kernel,
        netns: &snapshot.netns,
        looks: snapshot.looks.len(),
        connections: shown.map(|each| line(each, processes, is_dated)).collect(),
        findings: judged.findings.iter().map(told).collect(),
        drops: &snapshot.drops,
        unseen: judged
            .unseen
            .iter()
            .map(|(code, needs)| Unmade { code, needs: needs.to_string() })
            .collect(),
        well: &judged.well,
    };
    serde_json::to_string_pretty(&answer).context("cannot write the answer as JSON")
}

fn line<'a>(
    connection: &'a Connection,
    processes: Option<&'a BTreeMap<u32, Process>>,
    is_dated: bool,
) -> Line<'a> {
    let owner = connection.socket.owner.and_then(|owner| processes?.get(&owner.pid));
    connection.line(owner.map(|process| &*process.name), is_dated)
}

fn commands(finding: &Finding, netns: Option<&str>) -> Vec<Option<Both>> {
    let both = |change: &tcpwhy::host::Change| {
        let commands = change.commands().within(netns);
        Both { apply: commands.apply, undo: commands.undo }
    };
    finding.fixes.iter().map(|fix| fix.set.as_ref().map(both)).collect()
}
