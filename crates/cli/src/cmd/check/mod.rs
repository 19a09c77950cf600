//! `tcpwhy check`: is this machine set up for fast TCP, and what do its counters say is going wrong.
//!
//! The host is looked at by `tcpwhy_linux::collect`, or read from a saved snapshot or pasted output; the
//! core judges.

mod flags;
mod here;
mod path;

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;

use anyhow::Context as _;
use serde::Serialize;
use tcpwhy::host::queues::{self, Queues};
use tcpwhy::host::snapshot::Snapshot;
use tcpwhy::host::view::{HostOptions, render, title};
use tcpwhy::host::{Finding, Judgement, Seen, Severity, doc, judge, script};

use crate::cmd::hosts::{self, Form};
use crate::exit::{Exit, Told};
use crate::flags::ExplainFlags;
use crate::options::{Options, Surroundings};
use crate::read::{Input, Kind, kind};
use crate::{complain, output, page, whole};

pub use flags::{AFTER, CheckFlags};

/// Looks, judges, prints.
///
/// # Errors
/// What was named cannot be read, or the answer cannot be written.
pub fn run(flags: &CheckFlags, around: &Surroundings) -> anyhow::Result<Exit> {
    if flags.list {
        output::tell(&list(), false).context("cannot write the list")?;
        return Ok(Exit::Analysed);
    }
    if flags.rate.is_some() && flags.path.is_none() && flags.queues.is_none() {
        complain("--rate is that of a --path or of the interface of --queues: name one");
        return Ok(Exit::Usage);
    }
    if flags.drops && flags.apart.is_some_and(|apart| apart.is_zero()) {
        complain("--drops counts between two looks: give --for more than 0");
        return Ok(Exit::Usage);
    }
    if let Some(path) = &flags.save {
        whole::may_replace(path, flags.force)?;
        whole::may_write(path)
            .with_context(|| format!("cannot write the snapshot to {}", path.display()))?;
    }
    if let Some(there) = flags.script.as_deref().and_then(script_there) {
        complain(&format!(
            "{} is there already, perhaps with the only way back: name another folder",
            there.display()
        ));
        return Ok(Exit::Usage);
    }
    if let Some(packets) = packets(flags) {
        return explained(flags, packets, around);
    }
    let options = HostOptions {
        width: around.columns(flags.width),
        color: around.color(flags.color),
        all: flags.all,
    };
    let snapshot = match &flags.file {
        Some(path) if is_plain_judgement(flags) => {
            let hosts = hosts::of(&Input::named(path))?;
            if let Some(to) = &flags.html {
                in_a_page(to, hosts.into_iter().map(hosts::Host::told))?;
                return Ok(Exit::Analysed);
            }
            let fail_on = flags.fail_on.map(Severity::from);
            let form = Form { json: flags.json, text: options, is_below: false, fail_on };
            return hosts::answer(&hosts, form);
        }
        Some(path) => hosts::from_file(path)?,
        None => here::this_host(flags, around)?,
    };
    if let Some(path) = &flags.save {
        save(path, &snapshot)?;
        complain(&format!(
            "the snapshot is in {0}: `tcpwhy check {0}` judges it anywhere",
            path.display()
        ));
    }
    if let Some(dev) = &flags.queues {
        output::print(&inside(flags, dev, &snapshot)?).context("cannot write the answer")?;
        return Ok(Exit::Analysed);
    }
    if let Some(peer) = flags.path {
        return path::run(flags, peer, &snapshot);
    }
    if let Some(to) = &flags.html {
        in_a_page(to, core::iter::once(("This host".to_owned(), snapshot)))?;
        return Ok(Exit::Analysed);
    }
    let judged = judge(&snapshot);
    let text = if flags.json {
        hosts::json(&snapshot, &judged, None, &[])?
    } else {
        render(&snapshot, &judged, options)
    };
    output::tell(&text, flags.json).context("cannot write the answer")?;
    if let Some(folder) = &flags.script {
        write_scripts(folder, &snapshot, &judged)?;
    }
    let limit = flags.fail_on.map(Severity::from);
    let is_grave = |found: &Finding| limit.is_some_and(|limit| found.severity >= limit);
    Ok(if judged.findings.iter().any(is_grave) { Exit::Found } else { Exit::Analysed })
}

/// What was found about the host or hosts of a text, or else this one; for a program that asks.
///
/// # Errors
/// The text cannot be read, or the host not be looked at.
pub(crate) fn asked(flags: &CheckFlags) -> anyhow::Result<Vec<Told>> {
    if let Some(path) = &flags.file {
        let told = |host: &hosts::Host| {
            let text = host.in_words(&judge(&host.snapshot), PLAIN);
            Ok(Told { text, json: host.json()? })
        };
        return hosts::of(&Input::named(path))?.iter().map(told).collect();
    }
    let snapshot = here::looked_at(flags, flags.apart.filter(|apart| !apart.is_zero()), None)?;
    let judged = judge(&snapshot);
    let text = render(&snapshot, &judged, PLAIN);
    Ok(vec![Told { text, json: hosts::json(&snapshot, &judged, None, &[])? }])
}

/// Writes a page of what was found about hosts.
fn in_a_page(to: &Path, hosts: impl Iterator<Item = (String, Snapshot)>) -> anyhow::Result<()> {
    let report = page::no_packets();
    let shown = hosts.fold(page::shown(&report), |shown, (title, snapshot)| {
        shown.with_text(title, render(&snapshot, &judge(&snapshot), PLAIN))
    });
    output::unless_seen_enough(page::write(shown, to)).context("cannot write the page")
}

/// The text on a page, and of an answer. Ours: a screen of 1,000 pixels.
const PLAIN: HostOptions = HostOptions { width: 100, color: false, all: false };

/// Whether a host is to be judged and nothing else is asked.
const fn is_plain_judgement(flags: &CheckFlags) -> bool {
    flags.path.is_none() && flags.queues.is_none() && flags.script.is_none()
}

/// The file, where it holds packets or a trace and nothing was asked for that only a host's text tells.
fn packets(flags: &CheckFlags) -> Option<&Path> {
    let is_plain = is_plain_judgement(flags) && flags.fail_on.is_none();
    let file = flags.file.as_deref().filter(|_| is_plain)?;
    matches!(kind(&Input::named(file), &AtomicBool::new(false)), Kind::Packets | Kind::Trace)
        .then_some(file)
}

/// What `tcpwhy FILE` says.
fn explained(flags: &CheckFlags, file: &Path, around: &Surroundings) -> anyhow::Result<Exit> {
    complain(&format!(
        "{0} is no host's text: it is explained as `tcpwhy {0}` does",
        file.display()
    ));
    let explain = ExplainFlags {
        files: vec![file.to_owned()],
        json: flags.json,
        color: flags.color,
        width: flags.width,
        ..ExplainFlags::default()
    };
    let options = Options::check(&explain, around)?;
    super::explain::run(options, around)
}

/// The path inside the host.
fn inside(flags: &CheckFlags, dev: &str, snapshot: &Snapshot) -> anyhow::Result<String> {
    let seen = Seen::new(snapshot).context("the snapshot holds no look at the host")?;
    let queues = queues::queues(&seen, dev, flags.rate.as_ref().map(|rate| rate.bps)).map_err(
        |missing| {
            anyhow::anyhow!("nothing was seen of {dev} ({missing}); `ip link` names the interfaces")
        },
    )?;
    if flags.json {
        let answer = Inside { format: "tcpwhy-check-queues/1", queues: &queues };
        return serde_json::to_string_pretty(&answer).context("cannot write the answer as JSON");
    }
    Ok(queues::text(&queues))
}

/// The path inside the host as programs read it.
#[derive(Serialize)]
struct Inside<'a> {
    format: &'static str,
    #[serde(flatten)]
    queues: &'a Queues,
}

/// All checks, by what may be in the way.
fn list() -> String {
    let mut text = String::new();
    let width = doc::pages().iter().map(|page| page.code.len()).max().unwrap_or_default();
    for (group, pages) in doc::by_group() {
        let _ = writeln!(text, "{}", title(group));
        for page in pages {
            let _ = writeln!(text, "  {:width$}  {}", page.code, page.title);
        }
        text.push('\n');
    }
    text + "`tcpwhy doc CODE` explains one.\n"
}

fn save(path: &Path, snapshot: &Snapshot) -> anyhow::Result<()> {
    let written = whole::write(path, |file| {
        serde_json::to_writer(file, snapshot).map_err(std::io::Error::from)
    });
    written.with_context(|| format!("cannot write the snapshot to {}", path.display()))
}

const SCRIPTS: [&str; 2] = ["fix.sh", "rollback.sh"];

/// A script of an earlier run.
fn script_there(folder: &Path) -> Option<PathBuf> {
    SCRIPTS.iter().map(|name| folder.join(name)).find(|path| path.symlink_metadata().is_ok())
}

fn write_scripts(folder: &Path, snapshot: &Snapshot, judged: &Judgement) -> anyhow::Result<()> {
    let Some(scripts) = script::scripts(snapshot, &judged.findings) else {
        complain("no setting would help: no scripts were written");
        return Ok(());
    };
    std::fs::create_dir_all(folder).with_context(|| format!("cannot make {}", folder.display()))?;
    for (name, text) in SCRIPTS.into_iter().zip([scripts.fix, scripts.rollback]) {
        let path = folder.join(name);
        // Nothing that somebody put there meanwhile is written over.
        whole::write_new(&path, text.as_bytes())
            .with_context(|| format!("cannot write {}", path.display()))?;
    }
    complain(&format!(
        "read {0}/fix.sh, then run it; {0}/rollback.sh takes it back",
        folder.display()
    ));
    Ok(())
}
