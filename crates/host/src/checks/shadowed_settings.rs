//! Files that set the kernel's parameters contradict one another, or the running kernel.
//!
//! # What it says
//! Of several files that set a key the last one wins, in the order of their names. A value that differs from it was set since: the next start
//! of the host, or of the program that applies the files, brings the other back.
//!
//! # How we know
//! The files of sysctl.d(5), `/etc/sysctl.conf` and the profile of tuned(8) are read in the order in which they are applied, and compared
//! with `/proc/sys`.
//!
//! # What it is not
//! A file of yours that overrides one of the distribution's is meant so, and is not told.
//!
//! # What to do
//! Keep one line for each key, with the value that is wanted.
//!
//! # Sources
//! sysctl.d(5); systemd-sysctl.service(8); tuned.conf(5).

use super::{Check, words};
use crate::finding::{Confidence, Evidence, Finding, Group, Scope, Severity};
use crate::seen::{Asked, Missing, Seen};
use crate::snapshot::{SetIn, Source};

pub(super) const CHECK: Check = Check {
    code: "SHADOWED_SETTINGS",
    file: include_str!("shadowed_settings.rs"),
    group: Group::Hygiene,
    judge,
};

fn judge(seen: &Seen<'_>) -> Asked<Vec<Finding>> {
    let files = seen.snapshot.set_in.as_ref().ok_or(Missing::all(Source::SettingFiles))?;
    let mut shadowed: Vec<(&str, &SetIn, &SetIn)> = Vec::new();
    let mut changed: Vec<(&str, &SetIn, &str)> = Vec::new();
    for (key, lines) in files.iter().filter(|(key, _)| key.starts_with("net.")) {
        let Some(last) = lines.last() else { continue };
        let other = lines
            .iter()
            .find(|line| is_local(line) && is_local(last) && !is_same(&line.value, &last.value));
        shadowed.extend(other.map(|other| (key.as_str(), other, last)));
        let now = seen.setting(key).ok().flatten();
        changed.extend(
            now.filter(|now| !is_same(now, &last.value)).map(|now| (key.as_str(), last, now)),
        );
    }
    seen.setting("net.ipv4.tcp_rmem")?;
    let mut found = Vec::new();
    if !shadowed.is_empty() {
        let evidence = shadowed.iter().map(|(key, other, last)| {
            let value = format!(
                "{} in {}:{}, then {} in {}:{}",
                other.value, other.file, other.line, last.value, last.file, last.line
            );
            Evidence::new(*key, value)
        });
        found.push(Finding {
            severity: Severity::Info,
            title: format!(
                "files give different values for {}",
                words::named(&keys(shadowed.iter().map(|each| each.0)))
            ),
            why: "the last file wins: who changes the other wonders why nothing happens."
                .to_owned(),
            not: "not which of them is wanted".to_owned(),
            evidence: evidence.take(MANY).collect(),
            ..finding()
        });
    }
    // The files are those of the host: another namespace was never set from them.
    if !changed.is_empty() && seen.snapshot.initial_netns != Some(false) {
        let evidence = changed.iter().map(|(key, last, now)| {
            Evidence::new(*key, format!("{now} now, {} in {}:{}", last.value, last.file, last.line))
        });
        found.push(Finding {
            severity: Severity::Warning,
            title: format!("the next start brings other values for {}", words::named(&keys(changed.iter().map(|each| each.0)))),
            why: "they differ from the files that set them: someone, or a program, has changed them since.".to_owned(),
            not: "not which value is wanted, nor who changed it".to_owned(),
            evidence: evidence.take(MANY).collect(),
            ..finding()
        });
    }
    seen.unless_refused(Source::SettingFiles, found)
}

/// As many are listed one by one. Ours: what a screen holds.
const MANY: usize = 10;

fn finding() -> Finding {
    Finding {
        confidence: Confidence::High,
        scope: Scope::Host,
        fixes: vec![words::advise("keep one line for each key, with the value that is wanted", "")],
        ..Finding::default()
    }
}

fn keys<'a>(keys: impl Iterator<Item = &'a str>) -> Vec<&'a str> {
    keys.map(|key| key.rsplit_once("net.").map_or(key, |(_, rest)| rest)).collect()
}

/// Written on this host, not shipped by its distribution.
fn is_local(line: &SetIn) -> bool {
    line.file.starts_with("/etc/") || line.file.starts_with("/run/")
}

/// Blanks between numbers and leading zeros do not count.
fn is_same(one: &str, other: &str) -> bool {
    let plain = |word: &str| {
        word.parse::<i64>().map_or_else(|_| word.to_owned(), |number| number.to_string())
    };
    one.split_whitespace().map(plain).eq(other.split_whitespace().map(plain))
}

#[cfg(test)]
mod tests {
    use super::super::sample::{host, judged, missing, shown};
    use super::*;
    use crate::snapshot::Snapshot;

    const KEY: &str = "net.core.somaxconn";

    fn files(lines: &[(&str, &str)], now: &str) -> Snapshot {
        let line = |(file, value): &(&str, &str)| SetIn {
            file: (*file).to_owned(),
            line: 2,
            value: (*value).to_owned(),
        };
        let set_in = Some([(KEY.to_owned(), lines.iter().map(line).collect())].into());
        Snapshot { set_in, initial_netns: Some(true), ..host(&[(KEY, now)]) }
    }

    #[test]
    fn two_files_and_a_value_that_is_neither_are_told() {
        let lines = [("/etc/sysctl.d/10-a.conf", "1024"), ("/etc/sysctl.d/90-b.conf", "2048")];
        insta::assert_snapshot!(shown(&CHECK, &files(&lines, "4096")));
    }

    #[test]
    fn a_distributions_file_that_is_overridden_and_equal_values_are_well() {
        let lines =
            [("/usr/lib/sysctl.d/50-default.conf", "128"), ("/etc/sysctl.d/90-b.conf", "04096")];
        assert_eq!(judged(&CHECK, &files(&lines, "4096")), Ok(Vec::new()));
        let lines = [("/etc/sysctl.d/10-a.conf", "4096"), ("/etc/sysctl.conf", " 4096 ")];
        assert_eq!(judged(&CHECK, &files(&lines, "4096")), Ok(Vec::new()));
    }

    #[test]
    fn another_namespace_was_never_set_from_files() {
        let mut child = files(&[("/etc/sysctl.conf", "1024")], "4096");
        child.initial_netns = Some(false);
        assert_eq!(judged(&CHECK, &child), Ok(Vec::new()));
    }

    #[test]
    fn without_files_nothing_is_said() {
        assert_eq!(missing(&CHECK, &host(&[])).source, Source::SettingFiles);
    }
}
