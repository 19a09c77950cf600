//! Small real inputs with what is known to be true of them: `testdata/cases`, whose README tells the form.
//!
//! A case must say what its `must` asks for, nothing of its `must_not`, and hold its `numbers`. One
//! that `waits` for something still to be built must fall short of that: when it does not any more,
//! the mark has to go, so that the case counts from then on.

mod common;

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use common::{Run, in_repository, tcpwhy};
use fancy_regex::Regex;
use serde::Deserialize;
use serde_json::Value;

/// `case.json`.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Case {
    /// What follows the program's name; `{TMP}` is an empty folder.
    args: Vec<String>,
    #[expect(dead_code, reason = "for people")]
    truth: String,
    #[expect(dead_code, reason = "for people")]
    origin: String,
    #[expect(dead_code, reason = "for people")]
    kind: String,
    #[serde(default)]
    must: Vec<String>,
    #[serde(default)]
    must_not: Vec<String>,
    #[serde(default)]
    numbers: Vec<Range>,
    /// Files written into `{TMP}` are matched, too.
    #[serde(default)]
    then_files: bool,
    /// It was right when it was taken in.
    #[serde(default)]
    #[expect(dead_code, reason = "for people")]
    guard: bool,
    /// It looks like its kind and is none.
    #[serde(default)]
    #[expect(dead_code, reason = "for people")]
    near_miss: bool,
    /// What has to be built before this can pass.
    waits: Option<String>,
}

/// Bounds of a number in `--json`; one value of those that the path names has to be within.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Range {
    json_path: String,
    low: Option<f64>,
    high: Option<f64>,
}

#[test]
fn every_case_says_what_is_true_of_it() {
    let root = in_repository("testdata/cases");
    let mut folders: Vec<_> = fs::read_dir(&root)
        .expect("testdata/cases can be read")
        .map(|entry| entry.expect("an entry can be read").path())
        .filter(|path| path.join("case.json").exists())
        .collect();
    folders.sort();
    assert!(folders.len() > 100, "only {} cases were found", folders.len());
    // CASES=part-of-a-name[,another] runs those alone.
    if let Ok(wanted) = std::env::var("CASES") {
        let is_wanted = |path: &Path| {
            let name = path.to_string_lossy().into_owned();
            wanted.split(',').any(|part| name.contains(part))
        };
        folders.retain(|path| is_wanted(path));
    }
    let (next, told) = (AtomicUsize::new(0), Mutex::new(Vec::new()));
    let workers = thread::available_parallelism().map_or(2, usize::from);
    thread::scope(|scope| {
        for _ in 0..workers {
            scope.spawn(|| {
                while let Some(folder) = folders.get(next.fetch_add(1, Ordering::Relaxed)) {
                    told.lock().expect("no panic elsewhere").extend(judged(folder));
                }
            });
        }
    });
    let mut told = told.into_inner().expect("no panic elsewhere");
    told.sort();
    assert!(told.is_empty(), "{}", told.join("\n"));
}

/// What is wrong with a case's outcome, if anything.
fn judged(folder: &Path) -> Option<String> {
    let name = folder.file_name().expect("a folder has a name").to_string_lossy();
    let text = fs::read_to_string(folder.join("case.json")).expect("case.json can be read");
    let case: Case = serde_json::from_str(&text).unwrap_or_else(|error| panic!("{name}: {error}"));
    let short = shortcomings(&case, folder);
    match (&case.waits, short.is_empty()) {
        (None, true) | (Some(_), false) => None,
        (None, false) => Some(format!("{name}: {}", short.join("; "))),
        (Some(what), true) => {
            Some(format!("{name} passes: it need not wait for {what}; take `waits` out"))
        }
    }
}

fn shortcomings(case: &Case, folder: &Path) -> Vec<String> {
    let made = tempfile::tempdir().expect("a folder can be made");
    let out = made.path().join("out");
    let args: Vec<_> =
        case.args.iter().map(|arg| arg.replace("{TMP}", &out.to_string_lossy())).collect();
    let run = ran(&args, folder);
    let first = format!("{}\n{}", run.stdout, run.stderr);
    let mut text = first.clone();
    // What a first screen leaves out counts, too.
    let mut in_full = None;
    if !args.iter().any(|arg| arg == "--json" || arg == "--full") {
        let full = ran(&[&args[..], &["--full".to_owned()]].concat(), folder);
        if full.status != Some(2) {
            text = format!("{text}\n{}", full.stdout);
            in_full = Some(full.stdout);
        }
    }
    if case.then_files {
        text.extend(files_below(&out).into_iter().map(|path| {
            String::from_utf8_lossy(&fs::read(path).expect("it can be read")).into_owned()
        }));
    }
    let all = flat(&text);
    let each: Vec<String> = match in_full {
        Some(full) => vec![flat(&first), flat(&full)],
        None => vec![all.clone()],
    };
    let mut short = Vec::new();
    if !matches!(run.status, Some(0..=3)) {
        short.push(format!("it died ({:?})", run.status));
    }
    short.extend(
        case.must.iter().filter(|r| found(r, &all).is_none()).map(|r| format!("must /{r}/")),
    );
    short.extend(case.must_not.iter().filter_map(|r| {
        each.iter()
            .find_map(|text| found(r, text))
            .map(|hit| format!("must_not /{r}/ ({})", hit.chars().take(60).collect::<String>()))
    }));
    if !case.numbers.is_empty() {
        short.extend(numbers_out_of_range(case, &args, run, folder));
    }
    short
}

/// All white space made one space.
fn flat(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

fn ran(args: &[String], folder: &Path) -> Run {
    let mut command = tcpwhy();
    command.args(args).current_dir(folder).env("NO_COLOR", "1").env("COLUMNS", "100");
    common::finish(command.output().expect("the binary starts"))
}

/// What a pattern finds, whatever the case of its letters.
fn found(pattern: &str, text: &str) -> Option<String> {
    let regex =
        Regex::new(&format!("(?i){pattern}")).unwrap_or_else(|e| panic!("/{pattern}/: {e}"));
    let hit = regex.find(text).unwrap_or_else(|error| panic!("/{pattern}/: {error}"));
    hit.map(|hit| hit.as_str().to_owned())
}

fn numbers_out_of_range(case: &Case, args: &[String], run: Run, folder: &Path) -> Vec<String> {
    let is_json = args.iter().any(|arg| arg == "--json");
    let json = if is_json {
        run.stdout
    } else {
        ran(&[args, &["--json".to_owned()]].concat(), folder).stdout
    };
    let Ok(json) = serde_json::from_str::<Value>(&json) else { return vec!["no JSON".to_owned()] };
    let is_within = |range: &Range, value: f64| {
        range.low.is_none_or(|low| low <= value) && range.high.is_none_or(|high| value <= high)
    };
    let short = |range: &Range| {
        let got: Vec<_> =
            values(&json, &range.json_path).iter().filter_map(|v| v.as_f64()).collect();
        (!got.iter().any(|value| is_within(range, *value))).then(|| {
            let Range { json_path, low, high } = range;
            format!(
                "number {json_path} in {low:?}..{high:?} ({:?})",
                got.iter().take(4).collect::<Vec<_>>()
            )
        })
    };
    case.numbers.iter().filter_map(short).collect()
}

/// The values at a path: keys with dots, `[N]`, `[*]`, `[key]` and `[key=value]`.
fn values<'a>(json: &'a Value, path: &str) -> Vec<&'a Value> {
    let (mut found, mut rest) = (vec![json], path);
    loop {
        rest = rest.trim_start_matches('.');
        // A key in brackets may have dots.
        let end = match rest.strip_prefix('[') {
            Some(inner) => inner.find(']').map_or(rest.len(), |at| at + 2),
            None => rest.find(['.', '[']).unwrap_or(rest.len()),
        };
        let (step, behind) = rest.split_at(end);
        if step.is_empty() {
            return found;
        }
        found = found.into_iter().flat_map(|value| one_step(value, step)).collect();
        rest = behind;
    }
}

fn one_step<'a>(value: &'a Value, step: &str) -> Vec<&'a Value> {
    let Some(index) = step.strip_prefix('[').and_then(|step| step.strip_suffix(']')) else {
        return value.get(step).into_iter().collect();
    };
    let all: Vec<&Value> = match value {
        Value::Array(list) => list.iter().collect(),
        Value::Object(map) => map.values().collect(),
        _ => Vec::new(),
    };
    if index == "*" {
        return all;
    }
    if let Some((key, wanted)) = index.split_once('=') {
        let is_wanted = |value: &&Value| {
            value
                .get(key)
                .is_some_and(|v| v.as_str().map_or(v.to_string(), str::to_owned) == wanted)
        };
        return all.into_iter().filter(is_wanted).collect();
    }
    let by_number = index.parse::<usize>().ok().and_then(|at| value.get(at));
    by_number.or_else(|| value.get(index)).into_iter().collect()
}

fn files_below(folder: &Path) -> Vec<PathBuf> {
    let Ok(entries) = fs::read_dir(folder) else { return Vec::new() };
    let mut files: Vec<_> = entries
        .flatten()
        .flat_map(|entry| {
            let path = entry.path();
            if path.is_dir() { files_below(&path) } else { vec![path] }
        })
        .collect();
    files.sort();
    files
}
