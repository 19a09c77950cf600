//! The manual that `tcpwhy doc` prints: what the findings, the checks, the states, the terms and the settings are.
//!
//! The pages of findings and checks are the heads of their files. Terms and settings have their entries in the
//! text files beside this one, which only this module reads. What can be derived is not written twice: which
//! check or finding names a setting is searched for in their sources, folklore is cut out of `docs/folklore.md`.
//!
//! Here a word is looked up, nearly however it is written, and every word is listed; `entry` reads the files and
//! makes the pages, `set` puts a page into the columns of a terminal.

mod entry;
mod near;
mod set;

use core::fmt::Write as _;

use tcpwhy_words::doc::Page;

use crate::find::doc as findings;
use tcpwhy_host::doc as checks;

pub use entry::{Kind, experiments};
pub use near::distance;
pub use set::set;

/// What there is about `word`, best first: exactly this name goes before the same in other letters, findings
/// before checks, states and entries.
pub fn look_up(word: &str) -> Vec<Page> {
    let entries = entry::named(word);
    let mut pages: Vec<Page> = findings::find(word).into_iter().collect();
    pages.extend(checks::find(word));
    let only_exact = !pages.is_empty() || !entries.is_empty();
    pages.extend(findings::state(word).filter(|page| !only_exact || page.code == word));
    pages.extend(entries);
    pages.sort_by_key(|page| page.code != word);
    pages
}

/// Names that `word` may have been meant for, the nearest first.
pub fn meant(word: &str) -> Vec<&'static str> {
    near::nearest(word, names())
}

/// All names that [`look_up`] knows, the other names of entries among them.
fn names() -> impl Iterator<Item = &'static str> {
    let pages = findings::pages().into_iter().chain(checks::pages()).chain(findings::states());
    pages.map(|page| page.code).chain(entry::names())
}

/// Every word, in groups: findings, states, terms and settings with a line each, checks by their group.
pub fn list(columns: usize) -> String {
    let mut text = String::new();
    group(&mut text, "Findings in captures", &findings::pages(), columns);
    let title = "States of a transfer, in the order in which they are tested for";
    group(&mut text, title, &findings::states(), columns);
    for kind in Kind::ALL {
        group(&mut text, kind.heading(), &entry::pages(kind), columns);
    }
    let codes: Vec<&str> = checks::pages().iter().map(|page| page.code).collect();
    let _ = writeln!(text, "Checks of a host (`tcpwhy check --list` tells more)\n");
    text += &set::hanging("  ", &codes.join(", "), columns);
    text + "\n`tcpwhy doc WORD` explains any of them, however it is written.\n"
}

fn group(text: &mut String, heading: &str, pages: &[Page], columns: usize) {
    let _ = writeln!(text, "{heading}\n");
    let width = pages.iter().map(|page| page.code.len()).max().unwrap_or_default();
    for page in pages {
        let first = format!("  {:width$}  ", page.code);
        text.push_str(&set::hanging(&first, page.title, columns));
    }
    text.push('\n');
}

#[cfg(test)]
mod tests;
