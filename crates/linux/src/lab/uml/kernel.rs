//! Which simulated kernels this machine has, and the program that runs in them.
//!
//! `make uml` leaves both in a cache outside the clone: a folder for each version, the program
//! beside them. A program built from other sources than ours would misunderstand a plan or leave
//! other records, so it has to show the stamp of its sources, which the build script makes. A `tcpwhy`
//! that is given away carries that program and lays it into the cache when it is first needed.

use std::env;
use std::fs::{self, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde::Deserialize;

/// A kernel that can be booted.
#[derive(Clone, Debug)]
pub struct Kernel {
    /// Name of its folder: a version, with the tick rate if that is not the usual one.
    pub name: String,
    /// The executable with observation points.
    pub observing: PathBuf,
    /// The executable without them.
    pub stock: PathBuf,
    /// Its whole version, as `6.1.192`.
    pub full: String,
    /// The source package it was built from, if it came as one.
    pub package: Option<String>,
    /// Ticks a second.
    pub hz: u32,
}

/// What `scripts/uml` writes beside a kernel.
#[derive(Deserialize)]
struct Built {
    full: String,
    hz: u32,
    package: Option<String>,
}

/// Where `make uml` puts what it builds: `tcpwhy/uml` in the user's cache.
pub fn cache() -> Option<PathBuf> {
    let set = |name| env::var_os(name).filter(|v| !v.is_empty()).map(PathBuf::from);
    let cache = set("XDG_CACHE_HOME").or_else(|| Some(set("HOME")?.join(".cache")))?;
    Some(cache.join("tcpwhy").join("uml"))
}

/// All kernels of a cache, oldest version first.
pub fn kernels(cache: &Path) -> Vec<Kernel> {
    let mut found: Vec<Kernel> = fs::read_dir(cache)
        .into_iter()
        .flatten()
        .flatten()
        .filter_map(|entry| {
            let name = entry.file_name().into_string().ok()?;
            let text = fs::read_to_string(entry.path().join("build.json")).ok()?;
            let built: Built = serde_json::from_str(&text).ok()?;
            let observing = entry.path().join("linux-observe");
            let stock = entry.path().join("linux-stock");
            (observing.is_file() && stock.is_file()).then_some(Kernel {
                name,
                observing,
                stock,
                full: built.full,
                package: built.package,
                hz: built.hz,
            })
        })
        .collect();
    found.sort_by_key(|k| (version(&k.name), k.hz != USUAL_HZ, k.name.clone()));
    found
}

/// The kernel of this name; with none, that of the version we know best, or else the newest.
pub fn choose(cache: &Path, name: Option<&str>) -> Option<Kernel> {
    let mut found = kernels(cache);
    let wanted = name.unwrap_or(DEFAULT);
    match found.iter().position(|k| k.name == wanted) {
        Some(at) => Some(found.swap_remove(at)),
        None if name.is_none() => found.pop(),
        None => None,
    }
}

/// The numbers that a version begins with.
fn version(name: &str) -> Vec<u32> {
    name.split(['.', '-']).map_while(|part| part.parse().ok()).collect()
}

/// The guests' program, if it is there and of our own sources, or carried in this one; else why not.
pub(super) fn agent(cache: &Path) -> Result<PathBuf, String> {
    let path = cache.join(AGENT);
    match (is_ours(&path), CARRIED) {
        (Ok(()), _) => Ok(path),
        (Err(_), Some(program)) => lay(program, cache)
            .map(|()| path)
            .map_err(|error| format!("cannot lay its program into {}: {error}", cache.display())),
        (Err(why), None) => Err(why),
    }
}

/// Whether that file is the guests' program of our own sources; else why not.
fn is_ours(path: &Path) -> Result<(), String> {
    let told = Command::new(path).arg("--version").output();
    let told =
        told.map_err(|_| "the program that runs in a simulated kernel is not built".to_owned())?;
    if String::from_utf8_lossy(&told.stdout).trim().ends_with(STAMP) {
        Ok(())
    } else {
        Err("the program that runs in a simulated kernel was built from other sources".to_owned())
    }
}

/// Writes it under a name of its own first: another run may be starting it.
fn lay(program: &[u8], cache: &Path) -> io::Result<()> {
    fs::create_dir_all(cache)?;
    let fresh = cache.join(format!("{AGENT}.{}", std::process::id()));
    let mut options = OpenOptions::new();
    let file = options.write(true).create(true).truncate(true).mode(0o755).open(&fresh);
    let laid = file.and_then(|mut file| file.write_all(program));
    let laid = laid.and_then(|()| fs::rename(&fresh, cache.join(AGENT)));
    laid.inspect_err(|_| drop(fs::remove_file(&fresh)))
}

const AGENT: &str = "tcpwhy-agent";

/// The guests' program, in a `tcpwhy` that is given away.
#[cfg(carries_agent)]
const CARRIED: Option<&[u8]> = Some(include_bytes!(env!("TCPWHY_AGENT_FILE")));
#[cfg(not(carries_agent))]
const CARRIED: Option<&[u8]> = None;

/// Stamp of the sources that this was built from.
const STAMP: &str = env!("TCPWHY_LAB_STAMP");

/// The version that `make uml` builds if none is named.
pub(super) const DEFAULT: &str = "6.1";

/// Ticks a second as Debian and Ubuntu have them.
const USUAL_HZ: u32 = 250;

#[cfg(test)]
mod tests {
    use super::*;

    fn build(cache: &Path, name: &str, hz: u32) {
        let folder = cache.join(name);
        fs::create_dir_all(&folder).expect("made");
        let text = format!(r#"{{"full":"{name}.1","hz":{hz},"recipe":"x"}}"#);
        fs::write(folder.join("build.json"), text).expect("written");
        for file in ["linux-observe", "linux-stock"] {
            fs::write(folder.join(file), "").expect("written");
        }
    }

    #[test]
    fn a_carried_program_is_laid_whole_and_may_be_run() {
        let cache = tempfile::tempdir().expect("a folder");
        let cache = cache.path().join("tcpwhy/uml");
        let told = format!("#!/bin/sh\necho tcpwhy-agent 0.1.0 {STAMP}\n");
        lay(told.as_bytes(), &cache).expect("laid");
        assert_eq!(is_ours(&cache.join(AGENT)), Ok(()));
        lay(b"#!/bin/sh\necho tcpwhy-agent 0.1.0 of other sources\n", &cache)
            .expect("laid over it");
        let why = is_ours(&cache.join(AGENT)).expect_err("another's");
        assert!(why.contains("other sources"), "{why}");
        assert_eq!(fs::read_dir(&cache).expect("read").count(), 1, "nothing else is left");
    }

    #[test]
    fn versions_are_ordered_as_numbers() {
        let cache = tempfile::tempdir().expect("a folder");
        for name in ["6.12", "5.10", "6.1-hz1000", "6.1"] {
            build(cache.path(), name, if name.ends_with("hz1000") { 1000 } else { 250 });
        }
        fs::create_dir(cache.path().join("5.15")).expect("made: begun, not built");
        let names: Vec<_> = kernels(cache.path()).into_iter().map(|k| k.name).collect();
        assert_eq!(names, ["5.10", "6.1", "6.1-hz1000", "6.12"]);
    }

    #[test]
    fn one_is_chosen_by_name_or_by_default() {
        let cache = tempfile::tempdir().expect("a folder");
        assert!(choose(cache.path(), None).is_none());
        build(cache.path(), "5.10", 250);
        build(cache.path(), "6.12", 250);
        let chosen = |name| choose(cache.path(), name).map(|k| k.name);
        assert_eq!(chosen(None).as_deref(), Some("6.12"), "the newest");
        build(cache.path(), "6.1", 250);
        assert_eq!(chosen(None).as_deref(), Some("6.1"), "the one we know best");
        assert_eq!(chosen(Some("5.10")).as_deref(), Some("5.10"));
        assert_eq!(chosen(Some("5.15")), None);
    }
}
