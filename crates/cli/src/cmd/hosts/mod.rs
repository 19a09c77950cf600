//! Texts of hosts that were named on the command line: the host of each, and an answer for each host.

mod json;
mod read;
mod text;

use std::net::IpAddr;
use std::path::Path;

use anyhow::{Context as _, bail};
use tcpwhy::capture::listing::is_of_listing;
use tcpwhy::host::paste::{self, Notes, Part};
use tcpwhy::host::snapshot::{Look, Snapshot};
use tcpwhy::host::view::{HostOptions, heading, render};
use tcpwhy::host::{Finding, Judgement, Severity, judge};
use tcpwhy::view::live;

use crate::exit::Exit;
use crate::read::Input;
use crate::{complain, output, printable};
use read::{saved_in, spoken, told};
use text::text;

pub(crate) use json::json;

/// What the texts show of one host.
#[derive(Debug)]
pub(crate) struct Host {
    /// As prompts or `uname -a` name it.
    name: Option<String>,
    /// Names of the texts.
    pub(crate) files: Vec<String>,
    pub(crate) snapshot: Snapshot,
    /// Nothing says that the texts are of one host.
    is_supposed: bool,
    /// It is an end of the packets' connections: `client`, `server` or `host`, by this address.
    pub(crate) end: Option<(&'static str, IpAddr)>,
}

/// How it is to be answered.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Form {
    pub(crate) json: bool,
    pub(crate) text: HostOptions,
    /// Something is printed above: each host has a heading.
    pub(crate) is_below: bool,
    pub(crate) fail_on: Option<Severity>,
}

/// The hosts of several texts, and whether one text could not be read. A complaint names each such text.
pub(crate) fn gather(inputs: &[Input]) -> (Vec<Host>, bool) {
    let (mut names, mut texts, mut hosts) = (Vec::new(), Vec::new(), Vec::new());
    let mut has_failed = false;
    let mut failed = |error: &anyhow::Error| {
        complain(&format!("{error:#}"));
        has_failed = true;
    };
    for input in inputs {
        let name = spoken(input);
        let read = text(input).with_context(|| format!("cannot read {name}"));
        match read.and_then(|text| Ok((saved_in(&name, &text)?, text))) {
            Ok((Some(snapshot), _)) => hosts.push(Host::saved(name, snapshot)),
            Ok((None, text)) => {
                names.push(name);
                texts.push(text);
            }
            Err(error) => failed(&error),
        }
    }
    let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
    for host in paste::hosts(&texts, is_of_listing) {
        let each = host.parts.iter().map(|part| (&*names[part.text], &part.notes));
        match usable(each) {
            Ok(()) => hosts.push(Host::pasted(host, &names)),
            Err(error) => failed(&error),
        }
    }
    (hosts, has_failed)
}

/// Whether it is a text that can be read again, or cannot be read at all.
pub(crate) fn is_no_capture(input: &Input) -> bool {
    input.check().is_err() || (input.can_be_reread() && text(input).is_ok())
}

/// The hosts of one text.
///
/// # Errors
/// It cannot be read, or nothing in it can be used.
pub(crate) fn of(input: &Input) -> anyhow::Result<Vec<Host>> {
    let name = spoken(input);
    let text = text(input).with_context(|| format!("cannot read {name}"))?;
    if let Some(snapshot) = saved_in(&name, &text)? {
        return Ok(vec![Host::saved(name, snapshot)]);
    }
    let names = [name];
    let hosts = paste::hosts(&[&text], is_of_listing);
    let parts = hosts.iter().flat_map(|host| &host.parts);
    usable(parts.map(|part| (&*names[0], &part.notes)))?;
    Ok(hosts.into_iter().map(|host| Host::pasted(host, &names)).collect())
}

/// What a file that was saved or pasted shows of one host.
pub(crate) fn from_file(path: &Path) -> anyhow::Result<Snapshot> {
    let mut hosts = of(&Input::named(path))?;
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

fn usable<'a>(mut parts: impl Iterator<Item = (&'a str, &'a Notes)>) -> anyhow::Result<()> {
    parts.try_for_each(|(name, notes)| told(name, notes))
}

impl Host {
    fn saved(name: String, snapshot: Snapshot) -> Self {
        Self { name: None, files: vec![name], snapshot, is_supposed: false, end: None }
    }

    fn pasted(host: paste::Host, names: &[String]) -> Self {
        let of = |part: &Part| {
            let name = &names[part.text];
            if part.is_above_prompts { format!("{name}, above its prompts") } else { name.clone() }
        };
        let mut files: Vec<String> = Vec::new();
        for name in host.parts.iter().map(of) {
            if !files.contains(&name) {
                files.push(name);
            }
        }
        let paste::Host { name, snapshot, is_supposed, .. } = host;
        Self { name, files, snapshot, is_supposed, end: None }
    }

    /// What was found about it.
    pub(crate) fn json(&self) -> anyhow::Result<String> {
        json(&self.snapshot, &judge(&self.snapshot), self.name.as_deref(), &self.files)
    }

    /// What was found about it, in words.
    pub(crate) fn in_words(&self, judged: &Judgement, options: HostOptions) -> String {
        sockets(&self.snapshot, options) + &render(&self.snapshot, judged, options)
    }

    /// What it is called where several are listed.
    pub(crate) fn called(self) -> String {
        self.name.unwrap_or_else(|| self.files.join(", "))
    }

    /// Its title and what was seen of it.
    pub(crate) fn told(self) -> (String, Snapshot) {
        (printable(&self.title()), self.snapshot)
    }

    /// Whether it shows more than what programs did.
    pub(crate) fn has_more_than_calls(&self) -> bool {
        let empty = Snapshot { looks: vec![Look::default()], ..Snapshot::default() };
        let rest = Snapshot {
            traces: Vec::new(),
            format: String::new(),
            made_by: String::new(),
            pasted: false,
            ..self.snapshot.clone()
        };
        rest != empty
    }

    /// Whose host, by which files, and whether that is supposed.
    fn title(&self) -> String {
        let files = listed(&self.files);
        let who = match (&self.end, &self.name) {
            (Some((end, address)), Some(name)) => Some(format!("The {end} {name} ({address})")),
            (Some((end, address)), None) => Some(format!("The {end} {address}")),
            (None, Some(name)) => Some(name.clone()),
            (None, None) => None,
        };
        let title = who.map_or_else(|| files.clone(), |who| format!("{who}: {files}"));
        if self.is_supposed {
            format!("{title}, taken as one host's: nothing in them tells hosts apart")
        } else {
            title
        }
    }
}

/// `a, b and c`.
fn listed(names: &[String]) -> String {
    match names {
        [first @ .., last] if !first.is_empty() => format!("{} and {last}", first.join(", ")),
        [only] => only.clone(),
        _ => String::new(),
    }
}

/// What holds the connections, above the findings.
fn sockets(snapshot: &Snapshot, options: HostOptions) -> String {
    let told = live::sockets(snapshot, options.width, options.color);
    if told.is_empty() { told } else { told + "\n" }
}

/// Judges each host, and prints its answer.
///
/// # Errors
/// The answer cannot be written.
pub(crate) fn answer(hosts: &[Host], form: Form) -> anyhow::Result<Exit> {
    let mut exit = Exit::Analysed;
    let mut answers = String::new();
    let is_headed =
        form.is_below || hosts.len() > 1 || hosts.iter().any(|host| host.files.len() > 1);
    for (at, host) in hosts.iter().enumerate() {
        let judged = judge(&host.snapshot);
        let is_grave = |found: &Finding| form.fail_on.is_some_and(|least| found.severity >= least);
        if judged.findings.iter().any(is_grave) {
            exit = Exit::Found;
        }
        let text = if form.json {
            let files = if is_headed { &*host.files } else { &[] };
            json(&host.snapshot, &judged, host.name.as_deref(), files)?
        } else {
            let told = host.in_words(&judged, form.text);
            let gap = if at > 0 || form.is_below { "\n" } else { "" };
            let title = printable(&host.title());
            let title = if is_headed { heading(&title, form.text) } else { String::new() };
            format!("{gap}{title}{told}")
        };
        answers.push_str(&text);
        if !text.ends_with('\n') {
            answers.push('\n');
        }
    }
    // An answer that is printed below another gets no screen of its own.
    let is_whole = form.json || form.is_below;
    if !answers.is_empty() {
        output::tell(&answers, is_whole).context("cannot write the answer")?;
    }
    Ok(exit)
}
