//! The scenario language over any text: a plan or a sentence, never a panic, and a sentence names a
//! place that is there.
//!
//! What follows a NUL is an override, as `--set` gives it.

#![no_main]

use libfuzzer_sys::fuzz_target;
use tcpwhy_model::scenario::{Place, Scenario, ScenarioError};

fuzz_target!(|bytes: &[u8]| {
    let Ok(input) = std::str::from_utf8(bytes) else { return };
    let mut parts = input.split('\0');
    let text = parts.next().unwrap_or_default();
    let overrides: Vec<String> = parts.map(str::to_owned).collect();
    match Scenario::read("fuzz", text, &overrides) {
        Ok(scenario) => {
            assert!(!scenario.variants.is_empty());
            for plan in scenario.plans(2) {
                let mut ports: Vec<_> = plan.flows.iter().map(|flow| flow.port).collect();
                ports.sort_unstable();
                assert!(!ports.is_empty() && ports.windows(2).all(|pair| pair[0] != pair[1]));
                assert!(plan.path.changes.is_sorted_by_key(|change| change.at_ns));
            }
        }
        Err(error) => assert_is_there(&error, text, &overrides),
    }
});

fn assert_is_there(error: &ScenarioError, text: &str, overrides: &[String]) {
    assert!(!error.what.is_empty());
    match &error.place {
        Place::Unwritten => {}
        Place::File { line, column } => {
            let lines: Vec<&str> = text.split('\n').collect();
            let found = lines.get(line - 1).unwrap_or_else(|| panic!("no such line: {error}"));
            assert!((1..=found.chars().count() + 1).contains(column), "no such column: {error}");
        }
        Place::Set(set) => {
            // A long one is shown by its beginning.
            let begin = set.strip_suffix("...").unwrap_or(set);
            assert!(overrides.iter().any(|given| given.starts_with(begin)), "{error}");
        }
    }
}
