//! Scenarios by name or file: those that come with tcpwhy stand in the binary.

use core::error::Error;
use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

use anyhow::Context;
use tcpwhy_model::scenario::expect::is_code;
use tcpwhy_model::scenario::{MOST_BYTES, Place, Scenario, ScenarioError, nearest};

use crate::exit::Exit;

macro_rules! shipped {
    ($($name:literal)*) => {
        /// Names and texts of those that come with tcpwhy, in the order of `lab list`.
        pub(super) const SHIPPED: &[(&str, &str)] = &[
            $(($name, include_str!(concat!("../../carried/scenarios/", $name, ".toml")))),*
        ];
    };
}

shipped! {
    "slow-start" "initcwnd" "post-500k-20ms" "idle-restart" "cached-ssthresh"
    "default-buffers" "send-window-4096" "receive-window-4096" "zero-window" "no-window-scaling" "http2-window"
    "sndbuf"
    "buffer-sweep-rpc" "tiny-receive-buffer" "warm-up"
    "random-loss" "periodic-loss" "tail-loss" "policer" "duplicate" "corrupt" "reorder"
    "rate-8" "rate-400" "changing-rate"
    "bufferbloat" "fair-queueing" "byte-queue-limits"
    "nagle-delayed-ack" "small-mss" "pmtu-blackhole"
    "syn-retries" "fast-open" "accept-queue-overflow" "syn-flood" "two-nics"
    "close-wait" "fin-wait" "orphans" "time-wait"
    "controllers" "gentle-on-lossy" "vegas" "textbook"
}

/// There is no such scenario.
#[derive(Debug, thiserror::Error)]
#[error("there is no scenario `{name}`{} `tcpwhy lab list` names all, or name a .toml file", meant(*.near))]
pub(super) struct Unknown {
    /// What was asked for.
    name: String,
    /// What was probably meant.
    near: Option<&'static str>,
}

fn meant(near: Option<&str>) -> String {
    near.map_or_else(|| ";".to_owned(), |near| format!("; did you mean `{near}`?"))
}

/// The scenario of that name, or in that file, with `overrides`.
///
/// # Errors
/// There is none, or it cannot be read; the sentence names it.
pub(super) fn open(name: &str, overrides: &[String]) -> anyhow::Result<Scenario> {
    if let Some((name, text)) = SHIPPED.iter().find(|(shipped, _)| *shipped == name) {
        let read = Scenario::read(name, text, overrides).map_err(anyhow::Error::from);
        return read
            .and_then(with_known_findings)
            .with_context(|| format!("cannot run the scenario {name}"));
    }
    let path = Path::new(name);
    let is_file = path.extension().is_some_and(|ending| ending == "toml") || path.exists();
    if !is_file {
        let known: Vec<_> = SHIPPED.iter().map(|(name, _)| *name).collect();
        return Err(Unknown { name: name.to_owned(), near: nearest(name, &known) }.into());
    }
    let text = read(path).with_context(|| format!("cannot read {name}"))?;
    let stem = path.file_stem().map_or_else(|| "scenario".into(), |stem| stem.to_string_lossy());
    let plain = |c: char| if c.is_ascii_alphanumeric() || "-_".contains(c) { c } else { '-' };
    let stem: String = stem.chars().map(plain).take(64).collect();
    let scenario = Scenario::read(&stem, &text, overrides).map_err(anyhow::Error::from);
    scenario.and_then(with_known_findings).with_context(|| format!("cannot read {name}"))
}

/// The scenario, if there are all the findings that it expects to be named or not.
fn with_known_findings(scenario: Scenario) -> anyhow::Result<Scenario> {
    let expected = || scenario.told.iter().filter_map(|told| told.expect.as_ref());
    let mut checked = expected().flat_map(|expect| &expect.checked);
    if let Some((_, code)) = checked.find(|(_, code)| tcpwhy::host::doc::find(code).is_none()) {
        let what = format!(
            "`expect.checked`: there is no check `{code}`; `tcpwhy doc --checks` lists them"
        );
        return Err(ScenarioError { place: Place::Unwritten, what }.into());
    }
    let mut words = expected().flat_map(|expect| expect.named.iter().chain(&expect.absent));
    match words.find(|word| is_code(word) && tcpwhy::find::doc::find(word).is_none()) {
        None => Ok(scenario),
        Some(code) => Err(ScenarioError {
            place: Place::Unwritten,
            what: format!("`expect`: there is no finding `{code}`; `tcpwhy doc` lists them"),
        }
        .into()),
    }
}

/// How a command ends that `error` kept from its scenario: a file that cannot be read is no wrong usage, what was said on
/// the command line is.
pub(super) fn exit(error: &anyhow::Error) -> Exit {
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
    fn what_comes_with_tcpwhy_can_be_opened() {
        for &(name, _) in SHIPPED {
            assert_eq!(open(name, &[]).expect(name).name, name);
        }
    }

    #[test]
    fn a_name_that_is_none_is_told_with_what_was_meant() {
        let error = |name| open(name, &[]).expect_err("none").to_string();
        assert_eq!(
            error("slowstart"),
            "there is no scenario `slowstart`; did you mean `slow-start`? `tcpwhy lab list` names all, or name a \
             .toml file"
        );
        assert_eq!(
            error("unlike"),
            "there is no scenario `unlike`; `tcpwhy lab list` names all, or name a .toml file"
        );
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
        std::fs::write(&path, "application.send = 5\nexpect.named = [\"LOST\"]\n")
            .expect("written");
        let error = format!("{:#}", open(&name, &[]).expect_err("no such finding"));
        assert!(error.ends_with("there is no finding `LOST`; `tcpwhy doc` lists them"), "{error}");
    }
}
