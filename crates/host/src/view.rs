//! What the checks of a host found, as text: which is the worst, how do we know, what helps, and how to go back.

mod counters;
mod drops;

use core::fmt::Write as _;
use std::collections::BTreeMap;

use crate::snapshot::Snapshot;
use crate::{Confidence, Evidence, Finding, Fix, Group, Judgement, Seen, Severity};
use tcpwhy_words::page::{Ink, Page, plain};
use tcpwhy_words::tied;

/// How it is to be shown.
#[derive(Clone, Copy, Debug)]
pub struct HostOptions {
    /// Columns.
    pub width: usize,
    /// With colours.
    pub color: bool,
    /// With hygiene, counters, and the names of the checks that found nothing.
    pub all: bool,
}

/// The heading above the findings of one host among several.
pub fn heading(title: &str, options: HostOptions) -> String {
    let mut page = Page::new(options.width, options.color);
    page.wrapped(0, 2, &[(Ink::Strong, title.to_owned())]);
    page.into_text()
}

/// The findings of a host, the worst first.
pub fn render(snapshot: &Snapshot, judged: &Judgement, options: HostOptions) -> String {
    let mut page = Page::new(options.width, options.color);
    let is_shown = |found: &&Finding| options.all || found.group != Group::Hygiene;
    let shown: Vec<&Finding> = judged.findings.iter().filter(is_shown).collect();
    head(&mut page, snapshot);
    sum(&mut page, &shown, judged);
    let netns = snapshot.netns.as_deref();
    let mut group = None;
    for found in by_group(&shown) {
        if group != Some(found.group) {
            group = Some(found.group);
            page.heading(title(found.group));
        }
        finding(&mut page, found, netns);
    }
    let hidden = judged.findings.len() - shown.len();
    if hidden > 0 {
        let text = tied::count(hidden as u64, "remark");
        page.blank();
        page.wrapped(
            0,
            2,
            &[plain(format!(
                "{text} on settings that do nothing, contradict one another or are old: --all"
            ))],
        );
    }
    if snapshot.pasted && !options.all {
        lacking(&mut page, snapshot, judged);
    } else {
        unseen(&mut page, snapshot, judged);
    }
    if let Some(dropped) = &snapshot.drops {
        drops::drops(&mut page, dropped);
    }
    if let Some(seen) = Seen::new(snapshot).filter(|_| options.all) {
        counters::counters(&mut page, &seen);
    }
    if options.all && !judged.well.is_empty() {
        page.heading("Looked at and found well");
        page.wrapped(2, 2, &[plain(judged.well.join(", "))]);
    }
    page.into_text()
}

/// The group with the worst finding first, each with its own worst first.
fn by_group<'a>(shown: &[&'a Finding]) -> Vec<&'a Finding> {
    let mut worst: BTreeMap<Group, Severity> = BTreeMap::new();
    for found in shown {
        let entry = worst.entry(found.group).or_default();
        *entry = found.severity.max(*entry);
    }
    let mut sorted = shown.to_vec();
    sorted.sort_by_key(|found| {
        (
            core::cmp::Reverse(worst.get(&found.group)),
            found.group,
            core::cmp::Reverse(found.severity),
        )
    });
    sorted
}

fn head(page: &mut Page, snapshot: &Snapshot) {
    let mut told: Vec<String> = Vec::new();
    told.extend(snapshot.kernel.as_ref().map(|kernel| format!("Linux {kernel}")));
    told.extend(snapshot.system.clone());
    told.extend(snapshot.processors.map(|number| tied::count(number.into(), "processor")));
    told.extend(snapshot.memory_bytes.map(tied::bytes));
    told.extend(snapshot.netns.as_ref().map(|netns| format!("network namespace {netns}")));
    let first = snapshot.looks.first().and_then(|look| look.t_ns);
    let last = snapshot.looks.last().and_then(|look| look.t_ns);
    told.push(match (first.zip(last), snapshot.looks.len()) {
        (Some((first, last)), 2..) => {
            let apart = i64::try_from(last.saturating_sub(first)).unwrap_or(i64::MAX);
            format!("looked at twice, {} apart", tied::time(apart))
        }
        (None, 2..) => "two readings".to_owned(),
        _ if snapshot.pasted => "as pasted".to_owned(),
        _ => "looked at once: counters tell of all the time since it started".to_owned(),
    });
    let mut text = vec![(Ink::Strong, told.join(", "))];
    let shows = shows(snapshot);
    if snapshot.pasted && !shows.is_empty() {
        text.push(plain(format!(": {}", tcpwhy_words::said::listed(&shows))));
    }
    page.wrapped(0, 2, &text);
}

/// What of a host is there to be judged.
fn shows(snapshot: &Snapshot) -> Vec<String> {
    let mut told = Vec::new();
    let mut tell = |number: Option<usize>, noun| {
        told.extend(number.map(|number| tied::count(number as u64, noun)));
    };
    let last = snapshot.looks.last();
    tell(last.and_then(|look| Some(look.sockets.as_ref()?.len())), "socket");
    tell(last.and_then(|look| Some(look.listeners.as_ref()?.len())), "listener");
    let counted = |look: &crate::snapshot::Look| {
        Some(look.counters.as_ref()?.values().map(BTreeMap::len).sum())
    };
    tell(last.and_then(counted), "counter");
    tell(snapshot.settings.as_ref().map(|all| all.values.len()), "setting");
    tell(last.and_then(|look| Some(look.links.as_ref()?.len())), "interface");
    tell(snapshot.routes.as_ref().map(Vec::len), "route");
    told
}

fn sum(page: &mut Page, shown: &[&Finding], judged: &Judgement) {
    let count = |severity| shown.iter().filter(|found| found.severity == severity).count() as u64;
    let mut told: Vec<String> = [Severity::Error, Severity::Warning]
        .into_iter()
        .filter(|severity| count(*severity) > 0)
        .map(|severity| tied::count(count(severity), name(severity)))
        .collect();
    if count(Severity::Info) > 0 {
        told.push(tied::count(count(Severity::Info), "remark"));
    }
    let mut text = match (told.is_empty(), judged.unseen.is_empty()) {
        (true, true) => "nothing found".to_owned(),
        (true, false) => "no finding in what could be judged".to_owned(),
        (false, _) => tcpwhy_words::said::listed(&told),
    };
    let _ = write!(text, "; {} found nothing", tied::count(judged.well.len() as u64, "check"));
    if !judged.unseen.is_empty() {
        let _ = write!(text, ", {} could not be made", judged.unseen.len());
    }
    page.wrapped(2, 4, &[plain(text)]);
}

/// Commands are for a shell outside of the namespace that was looked at.
fn finding(page: &mut Page, found: &Finding, netns: Option<&str>) {
    let ink = if found.severity == Severity::Error { Ink::Alarm } else { Ink::Strong };
    let head = format!("{}: {}", name(found.severity), found.title);
    let doubt = match found.confidence {
        Confidence::High => "",
        Confidence::Medium => " (likely)",
        Confidence::Low => " (perhaps)",
    };
    page.wrapped(2, 4, &[(ink, head), plain(doubt), (Ink::Faint, format!(" [{}]", found.code))]);
    for (label, text) in [("why", &found.why), ("not", &found.not)] {
        if !text.is_empty() {
            page.wrapped(4, 6, &[plain(format!("{label}: {text}"))]);
        }
    }
    evidence(page, &found.evidence);
    if !found.unseen.is_empty() {
        page.wrapped(4, 6, &[plain(format!("not seen: {}", found.unseen.join("; ")))]);
    }
    let together = found.ways().first;
    for each in &found.fixes {
        let is_more = together.iter().skip(1).any(|more| core::ptr::eq(*more, each));
        let label = if is_more { "together with that" } else { "what would help" };
        fix(page, each, label, netns);
    }
}

/// Sources and values in two columns.
fn evidence(page: &mut Page, evidence: &[Evidence]) {
    const WIDEST: usize = 48;
    let length = |each: &Evidence| each.source.chars().count();
    let width = evidence.iter().map(length).filter(|length| *length <= WIDEST).max().unwrap_or(0);
    for each in evidence {
        let source = format!("{:width$}", each.source).replace(' ', "\u{a0}");
        page.wrapped(
            4,
            6,
            &[(Ink::Faint, format!("seen: {source}")), plain(format!(" {}", each.value))],
        );
    }
}

fn fix(page: &mut Page, fix: &Fix, label: &str, netns: Option<&str>) {
    let mut text = format!("{label}: {}", fix.what);
    if !fix.applies.is_empty() {
        let _ = write!(text, " ({})", fix.applies);
    }
    if !fix.risk.is_empty() {
        let _ = write!(text, "; risk: {}", fix.risk);
    }
    page.wrapped(4, 6, &[plain(text)]);
    let Some(change) = &fix.set else { return };
    let commands = change.commands().within(netns);
    page.row(&[plain(format!("      do: {}", commands.apply))]);
    if let Some(undo) = commands.undo {
        page.row(&[plain(format!("      undo: {undo}"))]);
    }
}

/// Sources that a text lacks and that are named. Ours: a line of them.
const LACKING: usize = 5;

/// What a text lacks, in few lines: the sources, and how many checks each would make.
fn lacking(page: &mut Page, snapshot: &Snapshot, judged: &Judgement) {
    let mut missing: BTreeMap<&str, u64> = BTreeMap::new();
    for (_, what) in &judged.unseen {
        *missing.entry(what.source.name()).or_default() += 1;
    }
    if missing.is_empty() && snapshot.unseen.is_empty() {
        return;
    }
    let mut sources: Vec<_> = missing.into_iter().collect();
    sources.sort_by_key(|(name, number)| (core::cmp::Reverse(*number), *name));
    let mut told: Vec<String> =
        sources.iter().take(LACKING).map(|(name, number)| format!("{name} ({number})")).collect();
    match sources.len().saturating_sub(LACKING) {
        0 => {}
        1 => told.push("one more source".to_owned()),
        more => told.push(format!("{more} more sources")),
    }
    page.heading("Not in the text, and so not judged");
    page.wrapped(2, 4, &[plain(told.join(", "))]);
    let more =
        "`tcpwhy check --all FILE` names the checks of each, `tcpwhy check` on the host makes them";
    page.wrapped(2, 4, &[plain(more.to_owned())]);
    unread(page, snapshot);
}

/// By what was missing: why, what to grant, and which checks need it.
fn unseen(page: &mut Page, snapshot: &Snapshot, judged: &Judgement) {
    let mut missing: BTreeMap<String, Vec<&str>> = BTreeMap::new();
    for (code, what) in &judged.unseen {
        missing.entry(what.to_string()).or_default().push(code);
    }
    if missing.is_empty() && snapshot.unseen.is_empty() {
        return;
    }
    page.heading("Not seen, and so not judged");
    for (what, codes) in missing {
        let text = format!("{what}: {}", codes.join(", "));
        page.wrapped(2, 4, &[plain(text)]);
    }
    unread(page, snapshot);
}

/// What could not be read, and why.
fn unread(page: &mut Page, snapshot: &Snapshot) {
    for each in &snapshot.unseen {
        let of = each.of.as_ref().map_or_else(String::new, |of| format!(" of {of}"));
        let grant = each.grant.as_ref().map_or_else(String::new, |grant| format!("; {grant}"));
        page.wrapped(2, 4, &[plain(format!("{}{of}: {}{grant}", each.source, each.why))]);
    }
}

const fn name(severity: Severity) -> &'static str {
    match severity {
        Severity::Info => "info",
        Severity::Warning => "warning",
        Severity::Error => "error",
    }
}

/// The words that stand above a group.
pub const fn title(group: Group) -> &'static str {
    match group {
        Group::Connecting => "Opening connections",
        Group::Receiving => "Receiving: buffers and windows",
        Group::Sending => "Sending: buffers, first windows, pacing",
        Group::Losses => "Losses, timeouts and congestion control",
        Group::Queues => "Interfaces, rings and queues",
        Group::Host => "Processors, memory and disks",
        Group::Closing => "Closing connections",
        Group::Routing => "Routes and addresses",
        Group::Hygiene => "Settings that do nothing, contradict one another or are old",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::snapshot::{Listener, Look, Settings, Unseen};
    use crate::{judge, script};

    fn host() -> Snapshot {
        let listener = |drops| Listener {
            local: "0.0.0.0:80".parse().expect("an address"),
            accept_queue: 129,
            accept_max: 128,
            drops: Some(drops),
            inode: 7,
            inode_unseen: false,
            owner: None,
        };
        let look = |t_ns, drops| Look {
            t_ns: Some(t_ns),
            listeners: Some(vec![listener(drops)]),
            ..Look::default()
        };
        let values = [("net.ipv4.tcp_moderate_rcvbuf", "0"), ("net.core.somaxconn", "128")];
        Snapshot {
            kernel: Some("6.18.44\n\u{1b}[2J".to_owned()),
            processors: Some(2),
            settings: Some(Settings {
                complete: true,
                values: values.map(|(key, value)| (key.to_owned(), value.to_owned())).into(),
                ..Settings::default()
            }),
            looks: vec![look(1_000_000_000, 3), look(11_000_000_000, 40)],
            unseen: vec![Unseen {
                source: "qdiscs".to_owned(),
                of: Some("eth0".to_owned()),
                why: "the device went away".to_owned(),
                grant: None,
            }],
            ..Snapshot::default()
        }
    }

    fn shown(snapshot: &Snapshot) -> String {
        let options = HostOptions { width: 100, color: false, all: false };
        let judged = judge(snapshot);
        let made_now = ["ACCEPT_QUEUE", "AUTOTUNING_OFF"];
        let findings =
            judged.findings.into_iter().filter(|f| made_now.contains(&&*f.code)).collect();
        render(snapshot, &Judgement { findings, ..Judgement::default() }, options)
    }

    #[test]
    fn findings_are_shown_with_what_was_seen_and_the_way_back() {
        insta::assert_snapshot!(shown(&host()));
    }

    #[test]
    fn scripts_carry_out_what_was_shown_and_take_it_back() {
        let host = host();
        let judged = judge(&host);
        let scripts = script::scripts(&host, &judged.findings).expect("something to set");
        let steps = |script: &str| script.split_once("\n# AC").map(|(_, steps)| steps.to_owned());
        insta::assert_snapshot!(steps(&scripts.fix).expect("steps"));
        let undo: Vec<&str> =
            scripts.rollback.lines().filter(|line| line.contains("sysctl -w")).collect();
        assert_eq!(
            undo,
            [
                "  'sysctl -w net.ipv4.tcp_moderate_rcvbuf=0'",
                "  'sysctl -w net.core.somaxconn=128'"
            ]
        );
    }

    #[test]
    fn a_snapshot_without_a_look_is_shown_without_a_verdict() {
        let nothing = Snapshot::default();
        let text =
            render(&nothing, &judge(&nothing), HostOptions { width: 80, color: false, all: true });
        assert!(text.contains("0 checks found nothing"), "{text}");
    }
}
