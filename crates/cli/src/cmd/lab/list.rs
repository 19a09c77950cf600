//! `lab list`: the scenarios that come with tcpwhy, by article and by subject.

use core::fmt::Write;
use std::collections::BTreeMap;

use anyhow::bail;
use tcpwhy_model::scenario::Scenario;
use tcpwhy_words::page::{Page, plain};

use crate::cmd::scenarios::SHIPPED;

/// A scenario, with the numbers of the articles it repeats.
struct Listed {
    scenario: Scenario,
    articles: Vec<String>,
}

/// The list: of those that `what` asks for with their variants, else of all, and the articles first.
///
/// # Errors
/// There is none of that kind.
pub(super) fn list(what: Option<&str>) -> anyhow::Result<String> {
    let all = shipped();
    let chosen: Vec<&Listed> =
        all.iter().filter(|listed| what.is_none_or(|what| listed.is_of(what))).collect();
    if let (Some(what), true) = (what, chosen.is_empty()) {
        let subjects = subjects(&all.iter().collect::<Vec<_>>()).join(", ");
        bail!(
            "nothing is listed under `{what}`; name an article (as 003), a subject ({subjects}) or a part of a name"
        );
    }
    let mut page = Page::new(80, false);
    if what.is_none() {
        by_article(&mut page, &chosen);
    }
    for subject in subjects(&chosen) {
        page.heading(subject);
        for listed in chosen.iter().filter(|listed| listed.scenario.subject == subject) {
            listed.tell(&mut page, what.is_some());
        }
    }
    let mut text = page.into_text();
    let _ = writeln!(
        text,
        "\nrun one: tcpwhy lab run NAME      see its variants: tcpwhy lab list NAME"
    );
    let _ = writeln!(text, "write your own: tcpwhy lab list --keys");
    Ok(text)
}

fn shipped() -> Vec<Listed> {
    // That they can be read is seen by a test.
    let read = SHIPPED.iter().filter_map(|(name, text)| Scenario::read(name, text, &[]).ok());
    read.map(|scenario| {
        let articles = scenario.told.iter().filter_map(|told| told.article.as_ref());
        let mut articles: Vec<_> = articles.map(|article| article.number.clone()).collect();
        articles.sort();
        articles.dedup();
        Listed { scenario, articles }
    })
    .collect()
}

/// In the order of the list, each once.
fn subjects<'l>(listed: &[&'l Listed]) -> Vec<&'l str> {
    let mut subjects: Vec<&str> = Vec::new();
    for listed in listed {
        let subject = listed.scenario.subject.as_str();
        if !subjects.contains(&subject) {
            subjects.push(subject);
        }
    }
    subjects
}

fn by_article(page: &mut Page, listed: &[&Listed]) {
    let mut names: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for listed in listed {
        for number in &listed.articles {
            names.entry(number).or_default().push(&listed.scenario.name);
        }
    }
    page.heading("by article");
    for (number, names) in names {
        page.wrapped(2, 7, &[plain(format!("{number}\u{a0} {}", names.join(", ")))]);
    }
}

impl Listed {
    fn is_of(&self, what: &str) -> bool {
        self.articles.iter().any(|number| number == what)
            || self.scenario.subject == what
            || self.scenario.name.contains(what)
    }

    fn tell(&self, page: &mut Page, with_variants: bool) {
        const NAME: usize = 22;
        let padded = format!("{:<NAME$}", self.scenario.name).replace(' ', "\u{a0}");
        page.wrapped(2, NAME + 3, &[plain(padded), plain(format!(" {}", self.scenario.about))]);
        if with_variants {
            let names = self.scenario.variants.iter().map(|plan| plan.variant.as_str());
            let names: Vec<_> = names.filter(|name| !name.is_empty()).collect();
            if !names.is_empty() {
                let names = format!("variants: {}", names.join("; "));
                page.wrapped(NAME + 3, NAME + 5, &[plain(names)]);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_scenario_stands_under_its_subject_and_fits_the_terminal() {
        let text = list(None).expect("a list");
        for (name, source) in SHIPPED {
            let scenario = Scenario::read(name, source, &[]).expect("it can be read");
            assert!(!scenario.about.is_empty() && !scenario.subject.is_empty(), "{name}");
            assert!(text.contains(&format!("\n  {name:<22} ")), "{name} in\n{text}");
        }
        let widest = text.lines().map(|line| line.chars().count()).max();
        assert!(widest <= Some(80), "{widest:?}");
    }

    #[test]
    fn an_article_is_found_by_its_number_and_shown_with_variants() {
        let text = list(Some("000")).expect("it is there");
        assert!(text.contains("  slow-start ") && text.contains("variants: "), "{text}");
        assert!(!text.contains("random-loss"), "{text}");
        let error = list(Some("999")).expect_err("there is none").to_string();
        assert!(error.starts_with("nothing is listed under `999`; name an article"), "{error}");
    }
}
