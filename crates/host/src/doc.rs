//! The pages of the checks, cut out of the heads of their files.

use std::collections::BTreeMap;

use super::checks::CHECKS;
use super::finding::Group;
use tcpwhy_words::doc::{Page, chapters, page, speaks_of, without_tests};

/// All pages, in the order of the manual.
pub fn pages() -> Vec<Page> {
    CHECKS.iter().map(|check| page(check.code, check.file)).collect()
}

/// The pages by what the checks look for, as the report shows them.
pub fn by_group() -> Vec<(Group, Vec<Page>)> {
    let mut groups: BTreeMap<Group, Vec<Page>> = BTreeMap::new();
    for check in CHECKS {
        groups.entry(check.group).or_default().push(page(check.code, check.file));
    }
    groups.into_iter().collect()
}

/// The page of `code`, however it is written: `accept-queue` and `ACCEPT_QUEUE` are one.
pub fn find(code: &str) -> Option<Page> {
    let wanted = code.to_ascii_uppercase().replace(['-', ' '], "_");
    pages().into_iter().find(|page| page.code == wanted)
}

/// The codes of the checks whose sources speak of `name`, a setting or an option.
pub fn speaking_of(name: &str) -> Vec<&'static str> {
    let speaking = CHECKS.iter().filter(|check| speaks_of(without_tests(check.file), name));
    speaking.map(|check| check.code).collect()
}

/// The sources of all checks.
pub fn sources() -> impl Iterator<Item = &'static str> {
    CHECKS.iter().map(|check| check.file)
}

/// The whole manual as one Markdown document.
pub fn manual() -> String {
    let mut out = String::from(HEAD);
    chapters(&mut out, &pages());
    out
}

const HEAD: &str = "# What tcpwhy checks on a host

Made from the sources by `tcpwhy doc --checks`; a test holds it to them. `tcpwhy doc CODE` prints one page.

| code | |
|---|---|
";
