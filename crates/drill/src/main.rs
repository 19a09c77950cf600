//! Runs packetdrill scripts against the model.
//!
//!     cargo run -p tcpwhy-drill -- [--kernel 6.18] [--hz 1000] [-D NAME=VALUE] [--OPTION[=VALUE]] PATH...
//!
//! A PATH is a script or a folder, searched for `*.pkt` to its depths. Options with two dashes are
//! packetdrill's own (`--tolerance_usecs=14000`, `--ip_version=ipv6`). A line a script: `PASS`,
//! `FAIL` with the line, what was expected and what came, or `UNSUPPORTED` with what the model does
//! not have; then the totals. The exit code is 1 if a script failed or could not be read.

use std::fs;
use std::io::{self, Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use tcpwhy::host::shown;
use tcpwhy_drill::{Setup, Verdict, run};
use tcpwhy_model::profile::Version;

fn main() -> ExitCode {
    let mut out = io::stdout().lock();
    let ended = match arguments(std::env::args().skip(1)) {
        Ok((setup, paths)) => all(&setup, &paths, &mut out),
        Err(what) => writeln!(io::stderr(), "packetdrill: {}", printable(&what)).map(|()| false),
    };
    match ended {
        Ok(true) => ExitCode::SUCCESS,
        // Whoever reads has seen enough.
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => ExitCode::SUCCESS,
        Ok(false) | Err(_) => ExitCode::FAILURE,
    }
}

/// What scripts and names say, without what a terminal would obey.
fn printable(text: &str) -> String {
    shown(text.as_bytes())
}

/// What is asked for.
fn arguments(mut words: impl Iterator<Item = String>) -> Result<(Setup, Vec<PathBuf>), String> {
    let (mut setup, mut paths) = (Setup::default(), Vec::new());
    while let Some(word) = words.next() {
        if word == "--kernel" {
            let version = words.next().unwrap_or_default();
            setup.version = known_version(&version)?;
        } else if word == "--hz" {
            let ticks = words
                .next()
                .and_then(|ticks| ticks.parse().ok())
                .filter(|ticks| (100..=1000).contains(ticks));
            setup.hz = ticks.ok_or("--hz needs a number from 100 to 1000")?;
        } else if word == "-D" {
            let defined = words.next().unwrap_or_default();
            let (name, value) = defined.split_once('=').ok_or("-D needs NAME=VALUE")?;
            setup.defined.insert(name.into(), value.into());
        } else if let Some(option) = word.strip_prefix("--") {
            let (name, value) =
                option.split_once('=').map_or((option, None), |(name, value)| (name, Some(value)));
            setup.options.push((name.into(), value.map(String::from)));
        } else {
            paths.push(word.into());
        }
    }
    if paths.is_empty() {
        return Err("name a script or a folder of scripts".into());
    }
    Ok((setup, paths))
}

fn known_version(text: &str) -> Result<Version, String> {
    let numbers = text
        .split_once('.')
        .and_then(|(major, minor)| Some((major.parse().ok()?, minor.parse().ok()?)));
    match numbers {
        Some((major, minor)) => Ok(Version::new(major, minor)),
        None => Err(format!("--kernel needs a version such as 6.12, not `{text}`")),
    }
}

/// Runs every script; whether none failed.
fn all(setup: &Setup, paths: &[PathBuf], out: &mut impl io::Write) -> io::Result<bool> {
    let mut scripts = Vec::new();
    for path in paths {
        if let Err(error) = collect(path, &mut scripts) {
            let path = printable(&path.to_string_lossy());
            writeln!(io::stderr(), "packetdrill: cannot read {path}: {error}")?;
            return Ok(false);
        }
    }
    let (mut passed, mut failed, mut unsupported) = (0, 0, 0);
    for script in &scripts {
        let name = printable(&script.to_string_lossy());
        let setup = by_name(setup, script);
        match read(script).map(|text| run(&text, &setup)) {
            Ok(Verdict::Pass) => {
                passed += 1;
                writeln!(out, "PASS {name}")?;
            }
            Ok(Verdict::Fail { place, expected, got }) => {
                failed += 1;
                let oneline = |text: &str| printable(&text.trim().replace('\n', " "));
                let (expected, got) = (oneline(&expected), oneline(&got));
                let line = place.line;
                writeln!(out, "FAIL {name}: line {line}, expected {expected}, got {got}")?;
            }
            Ok(Verdict::Unsupported { place, construct }) => {
                unsupported += 1;
                writeln!(
                    out,
                    "UNSUPPORTED {name}: {} (line {})",
                    printable(&construct),
                    place.line
                )?;
            }
            Ok(Verdict::Broken(error)) => {
                failed += 1;
                writeln!(out, "FAIL {name}: {}", printable(&error.to_string()))?;
            }
            Err(error) => {
                failed += 1;
                writeln!(out, "FAIL {name}: cannot be read: {error}")?;
            }
        }
    }
    writeln!(
        out,
        "{} scripts: {passed} passed, {failed} failed, {unsupported} unsupported",
        scripts.len()
    )?;
    Ok(failed == 0)
}

/// A script's text. What is larger than any script, or endless, is not read to its end.
fn read(script: &Path) -> io::Result<String> {
    /// Ours: a hundred times the longest script of the Linux kernel and of google/packetdrill.
    const MOST_BYTES: u64 = 1 << 20;
    let mut bytes = Vec::new();
    fs::File::open(script)?.take(MOST_BYTES + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > MOST_BYTES {
        let what = format!("it has more than {MOST_BYTES} bytes, the most of a script; is it one?");
        return Err(io::Error::new(io::ErrorKind::InvalidData, what));
    }
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

/// A script whose name ends so is for IPv6 only (`run_all.py` of google/packetdrill).
fn by_name(setup: &Setup, script: &Path) -> Setup {
    let mut setup = setup.clone();
    if script.to_str().is_some_and(|name| name.ends_with("v6.pkt")) {
        setup.options.insert(0, ("ip_version".into(), Some("ipv6".into())));
    }
    setup
}

/// The scripts of a path, in the order of their names.
fn collect(path: &Path, found: &mut Vec<PathBuf>) -> io::Result<()> {
    if !path.is_dir() {
        found.push(path.into());
        return Ok(());
    }
    let mut inside: Vec<PathBuf> = fs::read_dir(path)?
        .map(|entry| entry.map(|entry| entry.path()))
        .collect::<Result<_, _>>()?;
    inside.sort();
    for path in inside {
        if path.is_dir() || path.extension().is_some_and(|extension| extension == "pkt") {
            collect(&path, found)?;
        }
    }
    Ok(())
}
