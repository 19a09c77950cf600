//! `tcpwhy lab setup`: which backends work on this machine, and what the others lack; builds a simulated kernel.
//!
//! What builds a kernel is carried in this program, as `scripts/uml` has it.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::Context as _;
use clap::Args;
use tcpwhy_linux::lab::uml;

use super::{backends, scenarios};
use crate::exit::Exit;
use crate::{complain, output};

/// What is shown below the flags.
pub(super) const AFTER: &str = "\
  tcpwhy lab setup
  tcpwhy lab setup --build 6.1         (some minutes, 2 GB of disk while it builds)
  tcpwhy lab setup --build 6.12-hz1000

A kernel is built from its distribution's source package, which apt fetches and checks in a root of its own; the
built kernel lies in ~/.cache/tcpwhy/uml. Nothing is installed.

Exit status: 0 told or built, 2 wrong usage, 3 a kernel that cannot be built.";

/// Flags of `tcpwhy lab setup`.
#[derive(Args, Debug)]
pub struct SetupFlags {
    /// Build a kernel of this version that runs in simulated time, as 6.1 or 6.12-hz1000
    #[arg(long, value_name = "VERSION", value_parser = wanted)]
    pub build: Option<Wanted>,
}

/// A kernel to build.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Wanted {
    version: String,
    hz: Option<String>,
}

/// # Errors
/// It is no version; the words say what one looks like.
fn wanted(name: &str) -> Result<Wanted, String> {
    let (version, hz) = match name.split_once("-hz") {
        Some((version, hz)) => (version, Some(hz)),
        None => (name, None),
    };
    let is_number = |part: &str| !part.is_empty() && part.bytes().all(|b| b.is_ascii_digit());
    let is_version =
        version.split_once('.').is_some_and(|(major, minor)| is_number(major) && is_number(minor));
    if is_version && hz.is_none_or(|hz| matches!(hz, "100" | "250" | "300" | "1000")) {
        Ok(Wanted { version: version.to_owned(), hz: hz.map(str::to_owned) })
    } else {
        Err("a version is 6.1 or, with its ticks a second (100, 250, 300, 1000), 6.12-hz1000"
            .into())
    }
}

/// Tells or builds.
pub(super) fn run(flags: &SetupFlags) -> anyhow::Result<Exit> {
    if let Some(wanted) = &flags.build {
        return build(wanted);
    }
    output::print(&told()?).context("cannot write what works here")?;
    Ok(Exit::Analysed)
}

/// A line for each backend.
fn told() -> anyhow::Result<String> {
    let scenario = scenarios::open("slow-start", &[])?;
    let plan = scenario.plans(1).next().context("the scenario slow-start has no run")?;
    let mut text = String::new();
    for (name, what) in [
        ("tun", "the running kernel over a path of ours"),
        ("netem", "the running kernel over its own netem"),
        ("uml", "a kernel in simulated time"),
        ("model", "the model of Linux TCP, no kernel"),
    ] {
        let line = match backends::open(Some(name)).check(&plan) {
            Ok(()) => format!("{name:<6} works: {what}\n"),
            Err(refused) => {
                format!("{name:<6} does not work: {}\n{:7}{}\n", refused.why, "", refused.instead)
            }
        };
        text.push_str(&line);
    }
    let built: Vec<_> =
        uml::cache().iter().flat_map(|cache| uml::kernels(cache)).map(|k| k.name).collect();
    if !built.is_empty() {
        let _ = writeln!(text, "       built: {}", built.join(", "));
    }
    Ok(text)
}

/// Runs the carried script, whose words go to the user.
fn build(wanted: &Wanted) -> anyhow::Result<Exit> {
    let folder = tempfile::tempdir().context("cannot make a folder for what builds a kernel")?;
    lay(folder.path()).context("cannot write what builds a kernel")?;
    let mut command = Command::new("python3");
    command.arg(folder.path().join("uml")).arg(&wanted.version).arg("--no-agent");
    command.args(wanted.hz.iter().flat_map(|hz| ["--hz", hz]));
    let status = command
        .stdin(Stdio::null())
        .status()
        .context("cannot start python3, which a kernel is built with")?;
    if status.success() {
        return Ok(Exit::Analysed);
    }
    complain("the kernel is not built; the lines above say why");
    Ok(Exit::Unreadable)
}

fn lay(folder: &Path) -> std::io::Result<()> {
    fs::create_dir(folder.join("kernel"))?;
    SCRIPTS.iter().try_for_each(|(name, text)| fs::write(folder.join(name), text))
}

/// What builds a kernel, as `scripts/` has it.
const SCRIPTS: [(&str, &str); 3] = [
    ("uml", include_str!("../../../carried/uml")),
    ("kernel/edits.py", include_str!("../../../carried/kernel/edits.py")),
    ("kernel/config", include_str!("../../../carried/kernel/config")),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_version_is_two_numbers_and_may_have_its_ticks() {
        let of = |version: &str, hz: Option<&str>| {
            Ok(Wanted { version: version.to_owned(), hz: hz.map(str::to_owned) })
        };
        assert_eq!(wanted("6.1"), of("6.1", None));
        assert_eq!(wanted("6.12-hz1000"), of("6.12", Some("1000")));
        for none in ["", "6", "6.", "six.one", "6.1-hz", "6.1-hz77", "6.1;reboot", "--list"] {
            assert!(wanted(none).is_err(), "{none}");
        }
    }

    #[test]
    fn the_carried_scripts_run() {
        let folder = tempfile::tempdir().expect("a folder");
        lay(folder.path()).expect("laid");
        let script = folder.path().join("uml");
        let told = Command::new("python3").arg("-B").arg(script).arg("--help").output();
        let told = told.expect("python3");
        assert!(String::from_utf8_lossy(&told.stdout).contains("--no-agent"), "{told:?}");
    }
}
