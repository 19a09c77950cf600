//! Names the source that a released program was built from: its commit and that commit's date, the same on every
//! machine. A build for tests names none, so that a new commit compiles nothing anew.

use std::path::Path;
use std::process::Command;
use std::{env, fs};

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-env-changed=TCPWHY_SOURCE");
    let version = env!("CARGO_PKG_VERSION");
    let is_released = env::var("PROFILE").is_ok_and(|profile| profile == "release");
    let source = given().or_else(|| is_released.then(found).flatten());
    let built = match source {
        Some(source) => format!("{version} ({source})"),
        None if is_released => version.to_owned(),
        None => format!("{version} (built for tests)"),
    };
    println!("cargo::rustc-env=TCPWHY_VERSION={built}");
}

/// What a packager says the source is, as `0123456789ab 2026-01-31`.
fn given() -> Option<String> {
    env::var("TCPWHY_SOURCE").ok().filter(|source| !source.trim().is_empty())
}

/// The source as this folder tells it: a tarball of the repository, a clone, or a package of crates.io.
fn found() -> Option<String> {
    let own = Path::new(env!("CARGO_MANIFEST_DIR"));
    of_tarball(&own.join("../../.source")).or_else(|| of_clone(own)).or_else(|| of_package(own))
}

/// `git archive` writes commit and date into that file (.gitattributes).
fn of_tarball(file: &Path) -> Option<String> {
    let text = fs::read_to_string(file).ok()?;
    println!("cargo::rerun-if-changed={}", file.display());
    shortened(&text)
}

fn of_clone(own: &Path) -> Option<String> {
    // The commit of a repository that merely lies around a copy of this source is not its commit.
    own.join("../../.git").exists().then_some(())?;
    let log = git(own, &["rev-parse", "--path-format=absolute", "--git-path", "logs/HEAD"])?;
    println!("cargo::rerun-if-changed={log}");
    shortened(&git(own, &["log", "-1", "--format=%H %cs"])?)
}

/// What `cargo package` notes of the commit; it notes no date.
fn of_package(own: &Path) -> Option<String> {
    let text = fs::read_to_string(own.join(".cargo_vcs_info.json")).ok()?;
    let (_, after) = text.split_once("\"sha1\"")?;
    shortened(after.split('"').nth(1)?)
}

fn git(folder: &Path, words: &[&str]) -> Option<String> {
    let told = Command::new("git").arg("-C").arg(folder).args(words).output().ok()?;
    let text = String::from_utf8(told.stdout).ok()?;
    told.status.success().then(|| text.trim().to_owned())
}

/// Twelve digits of the commit, and its date where that is known.
fn shortened(text: &str) -> Option<String> {
    let mut words = text.split_whitespace();
    let commit = words.next().filter(|word| word.len() == 40 && word.is_ascii())?;
    let commit = &commit[..12];
    Some(words.next().map_or_else(|| commit.to_owned(), |date| format!("{commit} {date}")))
}
