//! What each rule is worth: taken out one at a time, what moves.
//!
//!     make ablation SEEDS=1001,1002      the table in docs/accuracy.md
//!
//! The loop's captures and those of `testdata/kernel` are held against the truth. For all captures of
//! `testdata` the table says whose time in states moves, and how many of those are cases.

use std::collections::BTreeSet;
use std::fs;
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use flate2::read::GzDecoder;
use serde_json::Value;
use tcpwhy::ablation;
use tcpwhy::report::{Report, State as Named};
use tcpwhy::session::Session;
use tcpwhy::tracker::Config;
use truth::compare::{Agreement, compare};
use truth::{Connection, Direction, Interval, Truth};

use super::{Fault, LOOP_SEEDS, SIDE, carried_out, grid, is_limited};

/// A capture, and the truth if it is known: of whose data, and seen from where.
struct Capture {
    name: String,
    bytes: Vec<u8>,
    truth: Option<(Set, Truth, usize)>,
}

/// What is held against the truth together.
#[derive(Clone, Copy, Eq, Ord, PartialEq, PartialOrd)]
enum Set {
    LoopSender,
    LoopReceiver,
    KernelSender,
    KernelReceiver,
}

const SETS: [(Set, &str); 4] = [
    (Set::LoopSender, "loop, sender"),
    (Set::LoopReceiver, "loop, receiver"),
    (Set::KernelSender, "kernels, sender"),
    (Set::KernelReceiver, "kernels, receiver"),
];

/// What one explanation says.
struct Told {
    /// Time in each state, of each direction of each connection.
    times: Vec<Vec<(Named, i64)>>,
    agreement: Agreement,
}

fn told(capture: &Capture) -> Option<Told> {
    let mut session = Session::new(Config { detail: true, ..Config::default() });
    session.begin(&capture.name);
    session.push(&capture.bytes).ok()?;
    session.end().ok()?;
    let report = session.finish();
    let times = times(&report);
    let agreement = capture.truth.as_ref().map(|(_, truth, side)| {
        let json = serde_json::to_string(&report).expect("plain data");
        let mut truth = truth.clone();
        let server = report.connections.first().map_or(0, |each| each.server.port());
        for each in truth.connections.iter_mut().filter(|each| each.server_port == 0) {
            each.server_port = server;
        }
        compare(&truth, &json, &[*side]).expect("a report")
    });
    Some(Told { times, agreement: agreement.unwrap_or_default() })
}

fn times(report: &Report) -> Vec<Vec<(Named, i64)>> {
    let sides = report.connections.iter().flat_map(|each| &each.directions);
    let of = |side: &Option<_>| {
        let side: &Option<Box<tcpwhy::report::Direction>> = side;
        let times = side.as_ref().map(|side| side.time_in.iter().map(|(s, t)| (s, t.0)).collect());
        times.unwrap_or_default()
    };
    sides.map(of).collect()
}

/// All of them in this order, on as many threads as there are.
fn all_told(captures: &[Capture]) -> Vec<Option<Told>> {
    let next = AtomicUsize::new(0);
    let done = Mutex::new(Vec::new());
    let workers = thread::available_parallelism().map_or(2, usize::from);
    thread::scope(|scope| {
        for _ in 0..workers {
            scope.spawn(|| {
                loop {
                    let at = next.fetch_add(1, Ordering::Relaxed);
                    let Some(capture) = captures.get(at) else { break };
                    let told = told(capture);
                    done.lock().expect("no panic elsewhere").push((at, told));
                }
            });
        }
    });
    let mut done = done.into_inner().expect("no panic elsewhere");
    done.sort_by_key(|(at, _)| *at);
    done.into_iter().map(|(_, told)| told).collect()
}

/// Time that is in other states than before: half of all differences.
fn moved(before: &Told, now: &Told) -> i64 {
    let of = |times: &[(Named, i64)], state| {
        times.iter().find(|(named, _)| *named == state).map_or(0, |(_, ns)| *ns)
    };
    let sides = before.times.iter().zip(&now.times);
    let differences = sides.flat_map(|(before, now)| {
        let states: BTreeSet<Named> = before.iter().chain(now).map(|(state, _)| *state).collect();
        states.into_iter().map(move |state| (of(before, state) - of(now, state)).abs())
    });
    differences.sum::<i64>() / 2
}

fn files_below(folder: &Path, files: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).expect("a folder") {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            files_below(&path, files);
        } else {
            files.push(path);
        }
    }
}

/// All files of `testdata` that may be captures; what is none says so when it is read.
fn of_testdata() -> Vec<Capture> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata");
    let mut files = Vec::new();
    files_below(&root, &mut files);
    files.sort();
    let is_data = |path: &PathBuf| {
        let ending = path.extension().and_then(|ending| ending.to_str()).unwrap_or("");
        matches!(ending, "pcap" | "pcapng" | "gz" | "txt") && !path.ends_with("README.txt")
    };
    let small = |path: &PathBuf| fs::metadata(path).is_ok_and(|data| data.len() < 1 << 20);
    files.retain(|path| is_data(path) && small(path));
    files.iter().map(|path| capture(&root, path)).collect()
}

fn capture(root: &Path, path: &Path) -> Capture {
    let mut bytes = fs::read(path).expect("a file");
    if path.extension().is_some_and(|ending| ending == "gz") {
        let mut unpacked = Vec::new();
        GzDecoder::new(&bytes[..]).read_to_end(&mut unpacked).expect("packed by gzip");
        bytes = unpacked;
    }
    let name = path.strip_prefix(root).expect("below it").to_string_lossy().into_owned();
    let truth = name.starts_with("kernel/").then(|| kernels_truth(path)).flatten();
    Capture { name, bytes, truth }
}

/// What the sending kernel of a capture of `testdata/kernel` counted.
fn kernels_truth(path: &Path) -> Option<(Set, Truth, usize)> {
    let name = path.file_name()?.to_str()?;
    let (name, host) = name.strip_suffix(".pcap.gz")?.rsplit_once('.')?;
    let text = fs::read_to_string(path.with_file_name(format!("{name}.truth.json"))).ok()?;
    let told: Value = serde_json::from_str(&text).ok()?;
    let sender = told["sender"].as_str()?;
    let side = usize::from(sender == "server");
    let set = if sender == host { Set::KernelSender } else { Set::KernelReceiver };
    let rows = told["connections"].as_object()?.iter();
    let connections = rows.filter_map(|(port, rows)| {
        let intervals: Vec<Interval> = rows.as_array()?.iter().filter_map(interval).collect();
        let (start_ns, end_ns) = (intervals.first()?.start_ns, intervals.last()?.end_ns);
        let mut directions = [None, None];
        directions[side] = Some(Direction { intervals, ..Direction::default() });
        let client_port = port.parse().ok()?;
        Some(Connection { client_port, start_ns, end_ns, directions, ..Connection::default() })
    });
    Some((set, Truth { connections: connections.collect(), ..Truth::default() }, side))
}

fn interval(row: &Value) -> Option<Interval> {
    let state = serde_json::from_value(row[2].clone()).ok()?;
    let (start_ns, end_ns) = (row[0].as_u64()?, row[1].as_u64()?);
    Some(Interval { start_ns, end_ns, state, cwnd: None, ssthresh: None })
}

/// The loop's captures, whole and without options.
fn of_loop(seeds: &[u64]) -> Vec<Capture> {
    let mut captures = Vec::new();
    for case in seeds.iter().flat_map(|seed| grid::cases(*seed)) {
        let (truth, taken) = carried_out(&case, &[]);
        if !is_limited(&case, &truth) {
            continue;
        }
        for (set, bytes) in [Set::LoopSender, Set::LoopReceiver].into_iter().zip(&taken) {
            for fault in [Fault::Whole, Fault::Cut] {
                let name = format!("loop/{}, {}", case.name, fault.name());
                let bytes = fault.of(bytes, super::SERVER_PORT, 1);
                captures.push(Capture { name, bytes, truth: Some((set, truth.clone(), SIDE)) });
            }
        }
    }
    captures
}

/// Wrong and open time of a set, in thousandths: the mean of its explanations.
fn errors(captures: &[Capture], told: &[Option<Told>], set: Set) -> f64 {
    let of_set = captures.iter().zip(told).filter_map(|(capture, told)| {
        let is_of_set = capture.truth.as_ref().is_some_and(|(of, ..)| *of == set);
        let agreement = &told.as_ref().filter(|_| is_of_set)?.agreement;
        let error = (agreement.wrong_ns + agreement.undecided_ns) as f64;
        (agreement.compared_ns > 0).then(|| error / agreement.compared_ns as f64)
    });
    let errors: Vec<f64> = of_set.collect();
    100.0 * errors.iter().sum::<f64>() / errors.len().max(1) as f64
}

#[test]
#[expect(clippy::print_stdout, reason = "`make ablation` shows the table")]
fn what_each_rule_is_worth() {
    let asked = std::env::var("LOOP_SEEDS");
    let seeds = asked.as_deref().unwrap_or(LOOP_SEEDS).split(',');
    let seeds: Vec<u64> = seeds.filter_map(|seed| seed.trim().parse().ok()).collect();
    let mut captures = of_testdata();
    captures.extend(of_loop(&seeds));
    ablation::take_out(None);
    let before = all_told(&captures);
    let head: Vec<String> = SETS.iter().map(|(_, name)| (*name).to_owned()).collect();
    println!("| without the rule | {} | captures | cases | time |", head.join(" | "));
    println!("|---|{}---|---|---|", "---|".repeat(SETS.len()));
    let all: Vec<f64> = SETS.iter().map(|(set, _)| errors(&captures, &before, *set)).collect();
    let cells: Vec<String> = all.iter().map(|error| format!("{error:.2} %")).collect();
    println!("| (none) | {} | | | |", cells.join(" | "));
    for (place, name) in ablation::names().enumerate() {
        ablation::take_out(Some(place));
        let now = all_told(&captures);
        let cells = SETS.iter().zip(&all).map(|((set, _), before)| {
            match errors(&captures, &now, *set) - before {
                change if change.abs() < 0.005 => "0".to_owned(),
                change => format!("{change:+.2}"),
            }
        });
        let cells: Vec<String> = cells.collect();
        let changes = captures.iter().zip(before.iter().zip(&now)).filter_map(|(capture, told)| {
            let ns = moved(told.0.as_ref()?, told.1.as_ref()?);
            (ns > 0).then_some((&capture.name, ns))
        });
        let changes: Vec<_> = changes.collect();
        let cases: BTreeSet<&str> = changes
            .iter()
            .filter_map(|(name, _)| name.strip_prefix("cases/")?.split('/').next())
            .collect();
        let seconds = changes.iter().map(|(_, ns)| ns).sum::<i64>() as f64 / 1e9;
        let (cells, count) = (cells.join(" | "), changes.len());
        println!("| {name} | {cells} | {count} | {} | {seconds:.1} s |", cases.len());
    }
    ablation::take_out(None);
    println!(
        "\n{} captures; seeds {seeds:?}; errors are time named otherwise or left open, in points",
        captures.len()
    );
}
