//! The method as people read it: the head of each rule, cut out of its file, in the order in which they are asked.

use core::fmt::Write as _;

use super::{ORDER, QUIET, Rule, rivals};
use crate::report::State;

/// The files of the rules.
const FILES: &[(&str, &str)] = &[
    ("ack_path", include_str!("ack_path.rs")),
    ("app", include_str!("app.rs")),
    ("buffer", include_str!("buffer.rs")),
    ("cwnd", include_str!("cwnd.rs")),
    ("link", include_str!("link.rs")),
    ("nagle", include_str!("nagle.rs")),
    ("own_queue", include_str!("own_queue.rs")),
    ("pace", include_str!("pace.rs")),
    ("timer", include_str!("timer.rs")),
    ("unseen", include_str!("unseen.rs")),
    ("window", include_str!("window.rs")),
];

/// What is behind `rule`, in whole sentences.
fn head(rule: &Rule) -> String {
    let (file, ask) = rule.place;
    let text = FILES.iter().find(|each| each.0 == file).map_or("", |each| each.1);
    let begin = format!("fn {ask}(");
    let mut remark = String::new();
    for line in text.lines() {
        if let Some(more) = line.strip_prefix("/// ") {
            if !remark.is_empty() {
                remark.push(' ');
            }
            remark.push_str(more);
        } else if line.contains(&begin) {
            break;
        } else if !line.starts_with("#[") {
            remark.clear();
        }
    }
    without_links(&remark)
}

/// Links of the code lead nowhere here: their words stay.
fn without_links(text: &str) -> String {
    let mut parts = text.split("](");
    let mut out = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        out.push_str(part.split_once(')').map_or(part, |two| two.1));
    }
    out.replace("[`", "`").replace("`]", "`")
}

fn names(states: &[State]) -> String {
    let names: Vec<String> = states.iter().map(|state| format!("`{}`", state.name())).collect();
    names.join(", ")
}

/// What the page of `state` says of the rules that can name it, and of what it may be confused with: the names of the
/// sections and their paragraphs.
pub(crate) fn of(state: State) -> Vec<(&'static str, Vec<String>)> {
    let rules = ORDER.iter().chain(QUIET).filter(|rule| rule.states.contains(&state));
    let rules: Vec<String> = rules.map(|rule| format!("{}: {}", rule.name, head(rule))).collect();
    let rivals = rivals::of(state).map(|row| format!("{}: {}", names(row.rivals), row.why));
    let sections = [
        ("Rules that tell it, in their order", rules),
        ("What these packets may allow too", rivals.collect()),
    ];
    sections.into_iter().filter(|(_, told)| !told.is_empty()).collect()
}

/// The rules in the order in which they are asked, as Markdown.
pub(crate) fn table() -> String {
    let mut out = String::new();
    for (title, rules) in [("While data is in flight", ORDER), ("While none is", QUIET)] {
        let _ = write!(out, "{title}:\n\n| | rule | tells | why |\n|---|---|---|---|\n");
        for (number, rule) in rules.iter().enumerate() {
            let later = if rule.waits() { " (two rounds later)" } else { "" };
            let (name, states, head) = (rule.name, names(rule.states), head(rule));
            let _ = writeln!(out, "| {} | {name}{later} | {states} | {head} |", number + 1);
        }
        out.push('\n');
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_rule_has_a_head_that_ends_as_sentences_do() {
        for rule in ORDER.iter().chain(QUIET) {
            let head = head(rule);
            assert!(head.ends_with('.') && head.len() > 40, "{}: {head:?}", rule.name);
            assert!(!head.contains("]("), "{}: {head:?}", rule.name);
        }
    }

    #[test]
    fn links_leave_their_words() {
        assert_eq!(without_links("a ([`b::c`](crate::b)), [`d`]"), "a (`b::c`), `d`");
    }
}
