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
fn every_finding_is_listed_and_has_its_page() {
    let list = run(&["doc"]).stdout;
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
