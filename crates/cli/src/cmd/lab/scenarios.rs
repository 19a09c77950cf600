//! Scenarios by name or file: those that come with tcpwhy stand in the binary.

use core::error::Error;
use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

use anyhow::Context;
use tcpwhy_model::scenario::{MOST_BYTES, Place, Scenario, ScenarioError};

use super::runs::Ended;
use crate::exit::Exit;

/// Names and texts of those that come with tcpwhy, in the order of `lab list`.
pub(super) const SHIPPED: [(&str, &str); 7] = [
    ("slow-start", include_str!("../../../carried/scenarios/slow-start.toml")),
    ("initcwnd", include_str!("../../../carried/scenarios/initcwnd.toml")),
    ("idle-restart", include_str!("../../../carried/scenarios/idle-restart.toml")),
    ("sndbuf", include_str!("../../../carried/scenarios/sndbuf.toml")),
    ("zero-window", include_str!("../../../carried/scenarios/zero-window.toml")),
    ("random-loss", include_str!("../../../carried/scenarios/random-loss.toml")),
    ("textbook", include_str!("../../../carried/scenarios/textbook.toml")),
];

/// The scenario of that name, or in that file, with `overrides`.
///
/// # Errors
/// There is none, or it cannot be read; the sentence names it.
pub(in crate::cmd) fn open(name: &str, overrides: &[String]) -> anyhow::Result<Scenario> {
    if let Some((name, text)) = SHIPPED.iter().find(|(shipped, _)| *shipped == name) {
        return Scenario::read(name, text, overrides)
            .with_context(|| format!("cannot run the scenario {name}"));
    }
    let path = Path::new(name);
    let is_file = path.extension().is_some_and(|ending| ending == "toml") || path.exists();
    if !is_file {
        let known: Vec<_> = SHIPPED.iter().map(|(name, _)| *name).collect();
        return Err(Ended::Unknown { name: name.to_owned(), known: known.join(", ") }.into());
    }
    let text = read(path).with_context(|| format!("cannot read {name}"))?;
    let stem = path.file_stem().map_or_else(|| "scenario".into(), |stem| stem.to_string_lossy());
    let plain = |c: char| if c.is_ascii_alphanumeric() || "-_".contains(c) { c } else { '-' };
    let stem: String = stem.chars().map(plain).take(64).collect();
    Scenario::read(&stem, &text, overrides).with_context(|| format!("cannot read {name}"))
}

/// How a command ends that `error` kept from its scenario: a file that cannot be read is no wrong usage, what was said on
/// the command line is.
pub(in crate::cmd) fn exit(error: &anyhow::Error) -> Exit {
    let is_input = |cause: &(dyn Error + 'static)| match cause.downcast_ref::<ScenarioError>() {
        Some(ScenarioError { place, .. }) => !matches!(place, Place::Set(_)),
        None => cause.is::<io::Error>(),
    };
    if error.chain().any(is_input) { Exit::Unreadable } else { Exit::Usage }
}

/// The text of a file; of one that is larger than any scenario, or endless, no more than shows that.
fn read(path: &Path) -> anyhow::Result<String> {
    let no_scenario = |what| ScenarioError { place: Place::Unwritten, what };
    let mut bytes = Vec::new();
    File::open(path)?.take(MOST_BYTES as u64 + 1).read_to_end(&mut bytes)?;
    if bytes.len() > MOST_BYTES {
        let what =
            format!("it has more than {MOST_BYTES} bytes, the most of a scenario; is it one?");
        return Err(no_scenario(what).into());
    }
    let text = String::from_utf8(bytes).map_err(|error| {
        let at = error.utf8_error().valid_up_to();
        no_scenario(format!(
            "it is no UTF-8 text at byte {at}; is it a scenario? If so, save it as UTF-8"
        ))
    })?;
    Ok(text)
}

/// Names and what each shows.
pub(super) fn list() -> String {
    let row = |(name, text): &(&str, &str)| match Scenario::read(name, text, &[]) {
        Ok(scenario) => {
            let names: Vec<_> =
                scenario.variants.iter().map(|plan| plan.variant.as_str()).collect();
            format!("{name:<14}{}\n{:14}variants: {}\n", scenario.about, "", names.join("; "))
        }
        Err(error) => format!("{name:<14}cannot be read: {error}\n"),
    };
    let how = "\nrun one: tcpwhy lab run NAME      write your own: tcpwhy lab list --keys\n";
    SHIPPED.iter().map(row).chain([how.to_owned()]).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_unreadable_and_a_flag_wrongly_used() {
        let ends = |name: &str, set: &[&str]| {
            let set: Vec<String> = set.iter().map(|one| (*one).to_owned()).collect();
            exit(&open(name, &set).expect_err("it is wrong"))
        };
        assert!(matches!(ends("nowhere.toml", &[]), Exit::Unreadable));
        assert!(matches!(ends("/dev/zero", &[]), Exit::Unreadable));
        assert!(matches!(ends("initcwnd", &["path.rtt=-1"]), Exit::Usage));
        assert!(matches!(ends("no-such-name", &[]), Exit::Usage));
    }

    #[test]
    fn what_comes_with_tcpwhy_can_be_opened_and_is_listed() {
        for (name, _) in SHIPPED {
            assert_eq!(open(name, &[]).expect(name).name, name);
            assert!(list().contains(name));
        }
        assert!(!list().contains("cannot be read"));
    }

    #[test]
    fn a_name_that_is_none_is_told_with_those_that_are() {
        let error = open("slow-stat", &[]).expect_err("none").to_string();
        assert!(error.contains("slow-start"), "{error}");
        let error = format!("{:#}", open("nowhere.toml", &[]).expect_err("none"));
        assert!(error.starts_with("cannot read nowhere.toml: "), "{error}");
    }

    #[test]
    fn what_has_no_end_or_is_no_text_is_refused() {
        let said = |name: &str| format!("{:#}", open(name, &[]).expect_err("no scenario"));
        assert_eq!(
            said("/dev/zero"),
            "cannot read /dev/zero: it has more than 1048576 bytes, the most of a scenario; is it one?"
        );
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("latin.toml");
        std::fs::write(&path, b"about = \"caf\xe9\"\n").expect("written");
        let error = said(&path.to_string_lossy());
        assert!(error.contains("no UTF-8 text at byte 12") && error.contains("save it"), "{error}");
    }

    #[test]
    fn a_file_is_named_in_its_errors() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("my lab.toml");
        std::fs::write(&path, "[path]\nrt = 5\n").expect("written");
        let name = path.to_string_lossy().into_owned();
        let error = format!("{:#}", open(&name, &[]).expect_err("a slip"));
        assert!(
            error.ends_with(
                "my lab.toml: line 2, column 1: `path` has no key `rt`; did you mean `rtt`?"
            ),
            "{error}"
        );
        std::fs::write(&path, "application.send = 5\n").expect("written");
        assert_eq!(open(&name, &[]).expect("it is fine").name, "my-lab");
    }
}
