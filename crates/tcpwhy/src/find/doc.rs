//! The pages of the manual, cut out of the heads of the findings' files.
//!
//! One source: what `tcpwhy doc CODE` prints and what `docs/findings.md` holds is the text that
//! is above each rule, so that whoever changes a rule has its words before their eyes.

use core::fmt::Write as _;

pub use tcpwhy_words::doc::{Page, SECTIONS};
use tcpwhy_words::doc::{chapters, page, speaks_of, without_tests};

use super::precedence::{self, Row};
use super::{RULES, states};
use crate::limits::rule::method;
use crate::report::State;

/// All pages, in the order of the manual.
pub fn pages() -> Vec<Page> {
    RULES.iter().map(|rule| page(rule.code, rule.file)).collect()
}

/// The page of a state of the account, by its dotted name or the part behind the dot where no other ends
/// so: what it means, how `tcpwhy` tells it, and the findings that rest on it.
pub fn state(name: &str) -> Option<Page> {
    let wanted = name.to_ascii_lowercase().replace('-', "_");
    let ends = |state: &State| state.name().rsplit('.').next() == Some(&*wanted);
    let exact = State::all().find(|state| state.name() == wanted);
    let state = exact.or_else(|| {
        let mut alike = State::all().filter(ends);
        alike.next().filter(|_| alike.next().is_none())
    })?;
    Some(Page { code: state.name(), title: state.meaning(), text: state_text(state) })
}

/// All states, in the order in which they are tested for.
pub fn states() -> Vec<Page> {
    let page =
        |state: State| Page { code: state.name(), title: state.meaning(), text: state_text(state) };
    State::all().map(page).collect()
}

fn state_text(state: State) -> String {
    let mut text = format!("# How tcpwhy tells\n{}\n", wrapped(states::told(state)));
    let quoted = format!("`{}`", state.name());
    let findings: Vec<&str> = pages()
        .into_iter()
        .filter(|page| {
            page.text.split("# What it is not").next().is_some_and(|t| t.contains(&quoted))
        })
        .map(|page| page.code)
        .collect();
    for (section, told) in method::of(state) {
        let _ = writeln!(text, "\n# {section}");
        for paragraph in told {
            let _ = writeln!(text, "{}", wrapped(&format!("- {paragraph}")));
        }
    }
    if !findings.is_empty() {
        let _ = write!(text, "\n# Findings that rest on it\n{}\n", findings.join(", "));
    }
    text
}

/// Lines of the width that the heads of files have.
fn wrapped(text: &str) -> String {
    const WIDTH: usize = 92;
    let (mut out, mut column) = (String::new(), 0);
    for word in text.split(' ') {
        if column > 0 && column + 1 + word.len() > WIDTH {
            out.push('\n');
            column = 0;
        }
        if column > 0 {
            out.push(' ');
            column += 1;
        }
        out.push_str(word);
        column += word.len();
    }
    out
}

/// The page of `code`, however it is written: `slow-start` and `SLOW_START` are one.
pub fn find(code: &str) -> Option<Page> {
    let wanted = code.to_ascii_uppercase().replace(['-', ' '], "_");
    RULES.iter().find(|rule| rule.code == wanted).map(|rule| page(rule.code, rule.file))
}

/// The codes of the findings whose sources speak of `name`, a setting or an option.
pub(crate) fn speaking_of(name: &str) -> Vec<&'static str> {
    let speaking = RULES.iter().filter(|rule| speaks_of(without_tests(rule.file), name));
    speaking.map(|rule| rule.code).collect()
}

/// The sources of all findings.
#[cfg(test)]
pub(crate) fn sources() -> impl Iterator<Item = &'static str> {
    RULES.iter().map(|rule| rule.file)
}

/// The whole manual as one Markdown document.
pub fn manual() -> String {
    let mut out = String::from(HEAD);
    chapters(&mut out, &pages());
    out.push_str(YIELDS);
    for Row { stays, yields, because } in precedence::TABLE {
        let codes = |codes: &[&str]| {
            codes.iter().map(|code| format!("`{code}`")).collect::<Vec<_>>().join(", ")
        };
        let _ = writeln!(out, "| {} | {} | {because} |", codes(stays), codes(yields));
    }
    out.push_str(STATES);
    for state in State::all() {
        let Page { code, title, .. } =
            Page { code: state.name(), title: state.meaning(), text: String::new() };
        let told = states::told(state).replace('\n', " ");
        let _ = writeln!(out, "| `{code}` | {title} | {told} |");
    }
    out
}

/// The rules in the order in which they are asked, as Markdown: section 6.1 of `docs/reference/limits-method.md`.
pub fn rules() -> String {
    method::table()
}

const HEAD: &str = "# What tcpwhy finds

Made from the sources by `tcpwhy doc --manual`; a test holds it to them. `tcpwhy doc CODE` prints one
page. The states in `code.like_this` are those of `docs/report.schema.json`.

A finding rests on intervals of the account: its cost is their time. Findings may rest on the same
intervals, so their costs are never added up; the most costly comes first, whatever its severity. Shares
are of the active time: opening the connection, its transfers, and requests until their answers (silence
between requests is not in it: its share is that of the lifetime); the working time is the same without
the silence of applications.

Severity is whether something is wrong: `broken`, it did not work; `wrong`, a setting, a program or a device works
against the transfer; `limit`, it works as designed and takes time; `note`, good to know. What took less than a
millisecond is a note, and what is only possible is no more than a limit.

How sure a cause is has three words: *shown*, the packets exclude the rest; *likely*, they speak for it; *possible*, it is
one of several that they do not tell apart. `docs/accuracy.md` has how often each is right.

What would help is ranked: keep the connection, change the application, the socket, the route, a
sysctl; it names the host that it is for. Commands are Linux's and left out where a host's packets show
another system. A predicted duration is by a model of Linux TCP where the model repeats the connection as it
was (`docs/whatif.md`), else arithmetic from the capture's own round trips and flights, from the best that can be
hoped for to the worst; where that arithmetic proves nothing there is no prediction.

| code | |
|---|---|
";

const YIELDS: &str = "
## Which finding yields to which

Where one finding explains the same time better than another, `--full` alone shows the other one, and has
`explained_by` in the JSON. It yields if the first took half of its time or more, of data of the same side.
Resets, options that were refused, thinned ACKs, marks and Fast Open yield to whatever took time.

| stays | yields | because |
|---|---|---|
";

const STATES: &str = "
## The states

What held a sender at an instant, in the order in which they are tested for. `tcpwhy doc STATE` prints one with
the findings that rest on it; `docs/reference/limits-method.md` section 6 has the exact conditions.

| state | | how tcpwhy tells |
|---|---|---|
";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_page_has_all_sections_in_order_and_words_in_each() {
        for Page { code, title, text } in pages().into_iter().chain(tcpwhy_host::doc::pages()) {
            assert!(title.ends_with('.') && title.len() > 10, "{code}: {title}");
            let named: Vec<&str> =
                text.lines().filter_map(|line| line.strip_prefix("# ")).collect();
            assert_eq!(named, SECTIONS, "{code}");
            for section in text.split("# ").skip(1) {
                let words = section.split_once('\n').map_or("", |(_, words)| words);
                assert!(words.trim().len() > 20, "{code}: {section}");
            }
        }
    }

    #[test]
    fn states_are_found_by_name_and_by_what_stands_behind_the_dot() {
        let code = |name: &str| state(name).map(|page| page.code);
        assert_eq!(code("cwnd.slow_start"), Some("cwnd.slow_start"));
        assert_eq!(
            [code("slow-start"), code("TLP_WAIT")],
            [Some("cwnd.slow_start"), Some("tlp_wait")]
        );
        assert_eq!([code("loss"), code("no_such")], [Some("recovery.loss"), None]);
    }

    #[test]
    fn a_state_names_the_findings_that_rest_on_it() {
        let text = state("rwnd.cap").expect("a state").text;
        assert!(text.contains("WINDOW_CAP") && !text.contains("SLOW_READER"), "{text}");
    }

    #[test]
    fn codes_are_unique_and_found_however_they_are_written() {
        let mut codes: Vec<&str> = pages().iter().map(|page| page.code).collect();
        assert_eq!(find("slow-start").map(|page| page.code), Some("SLOW_START"));
        assert_eq!(find("NO_SUCH"), None);
        let number = codes.len();
        codes.sort_unstable();
        codes.dedup();
        assert_eq!(codes.len(), number);
    }
}
