//! Does `tcpwhy doc` tell of every finding, and is the manual the one that it prints?

mod common;

use common::{in_repository, run};
use tcpwhy::find::doc::{SECTIONS, pages};

#[test]
fn the_manual_is_what_the_sources_say() {
    let manual = run(&["doc", "--manual"]).stdout;
    let kept = std::fs::read_to_string(in_repository("docs/findings.md")).expect("is there");
    assert!(manual == kept, "stale: run `tcpwhy doc --manual > docs/findings.md`");
}

#[test]
fn the_method_lists_the_rules_as_the_sources_have_them() {
    let rules = run(&["doc", "--rules"]).stdout;
    let path = in_repository("docs/reference/limits-method.md");
    let kept = std::fs::read_to_string(path).expect("is there");
    let stale = "stale: put what `tcpwhy doc --rules` prints between the marks in limits-method.md";
    assert!(kept.contains(&format!("<!-- rules -->\n{rules}<!-- end of rules -->\n")), "{stale}");
}

#[test]
fn the_page_of_a_state_has_the_rules_that_tell_it_and_its_rivals() {
    let page = run(&["doc", "rwnd.reader"]).stdout;
    assert!(page.contains("Rules that tell it") && page.contains("window full"), "{page}");
    assert!(page.contains("`rwnd.cap`"), "{page}");
}

#[test]
fn every_finding_is_listed_and_has_its_page() {
    let list = run(&["doc", "--width", "400"]).stdout;
    for page in pages() {
        assert!(list.contains(page.code) && list.contains(page.title), "{}", page.code);
        let told = run(&["doc", page.code]);
        assert_eq!(told.status, Some(0));
        for section in SECTIONS {
            assert!(told.stdout.contains(&format!("\n{section}\n")), "{}: {section}", page.code);
        }
    }
}

#[test]
fn a_code_is_known_in_small_letters_too() {
    assert_eq!(run(&["doc", "slow-start"]).stdout, run(&["doc", "SLOW_START"]).stdout);
}

#[test]
fn an_unknown_code_is_a_wrong_usage_that_says_where_to_look() {
    let told = run(&["doc", "NO_SUCH_THING"]);
    assert_eq!((told.status, told.stdout.as_str()), (Some(2), ""));
    assert!(told.stderr.contains("NO_SUCH_THING") && told.stderr.contains("tcpwhy doc"));
}

#[test]
fn all_words_that_the_text_uses_are_listed_in_groups() {
    let list = run(&["doc"]).stdout;
    for heading in [
        "Findings",
        "States",
        "Terms",
        "Kernel settings",
        "Route metrics",
        "Socket options",
        "Checks",
    ] {
        assert!(list.lines().any(|line| line.starts_with(heading)), "{heading}");
    }
    for word in ["BDP", "net.ipv4.tcp_rmem", "initcwnd", "SO_RCVBUF", "ACCEPT_QUEUE"] {
        assert!(list.contains(word), "{word}");
    }
}

#[test]
fn a_page_is_set_for_the_columns_asked_for() {
    for columns in ["40", "80", "120"] {
        let told = run(&["doc", "tcp_rmem", "--width", columns]);
        let width: usize = columns.parse().expect("a number");
        let is_command = |line: &&str| line.trim_start().starts_with("tcpwhy ");
        let longest = told
            .stdout
            .lines()
            .filter(|line| !is_command(line))
            .map(|line| line.chars().count())
            .max();
        assert!(longest.is_some_and(|longest| longest <= width), "{longest:?} {}", told.stdout);
    }
}

#[test]
fn a_word_may_be_of_several_words_and_nearly_right() {
    assert!(run(&["doc", "slow", "start"]).stdout.starts_with("slow start: "));
    let told = run(&["doc", "tcp_rmen"]);
    assert_eq!(told.status, Some(2));
    assert!(told.stderr.contains("did you mean `tcpwhy doc net.ipv4.tcp_rmem`"), "{}", told.stderr);
}

#[test]
fn the_experiments_of_the_pages_can_be_run() {
    for command in tcpwhy::manual::experiments() {
        let mut words = Vec::new();
        // Quoted parts hold blanks; nothing else of the shell is used.
        for (at, part) in command.split('"').enumerate() {
            if at % 2 == 1 {
                words.push(part.to_owned());
            } else {
                words.extend(part.split_whitespace().map(str::to_owned));
            }
        }
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        assert_eq!(words[..2], ["tcpwhy", "predict"], "{command}");
        let told = run(&words[1..]);
        assert_eq!(told.status, Some(0), "{command}: {}", told.stderr);
    }
}
