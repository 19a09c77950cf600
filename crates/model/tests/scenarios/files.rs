//! Scenarios that are shipped or shown: all can be read, and the manual has every key.

use std::fs;
use std::path::{Path, PathBuf};

use tcpwhy_model::scenario::expect::Expect;
use tcpwhy_model::scenario::{Scenario, manual};

fn root(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(path)
}

#[test]
fn the_shipped_scenarios_can_be_read() {
    let mut names = Vec::new();
    for entry in fs::read_dir(root("scenarios")).expect("there are scenarios") {
        let path = entry.expect("an entry").path();
        let name = path.file_stem().expect("a name").to_string_lossy().into_owned();
        let text = fs::read_to_string(&path).expect("readable");
        let scenario = Scenario::read(&name, &text, &[])
            .unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        assert!(!scenario.about.is_empty(), "{name} says what it shows");
        for told in &scenario.told {
            let expects = told.expect.as_ref().is_some_and(|expect| *expect != Expect::default());
            assert!(expects || name == "textbook", "{name} expects something of each variant");
        }
        names.push(name);
    }
    assert!(names.len() >= 35, "{names:?}");
}

#[test]
fn the_manual_has_every_key() {
    let text = fs::read_to_string(root("docs/scenarios.md")).expect("the manual");
    assert!(
        text.contains(manual().trim_end()),
        "docs/scenarios.md lacks a key, or has an old one; its tables should be:\n{}",
        manual()
    );
}

#[test]
fn what_the_manual_shows_can_be_read() {
    let text = fs::read_to_string(root("docs/scenarios.md")).expect("the manual");
    let blocks: Vec<_> = text.split("```toml\n").skip(1).collect();
    assert!(blocks.len() >= 3, "it has examples");
    for block in blocks {
        let toml = block.split("```").next().expect("an end");
        Scenario::read("x", toml, &[]).unwrap_or_else(|error| panic!("{error}\n{toml}"));
    }
}
