//! What the tests of the live lab share: plans, runs, and readers of what runs leave behind.

#![expect(dead_code, reason = "each test binary uses its part")]

mod watch;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::{Mutex, MutexGuard, PoisonError};

use serde_json::Value;
use tcpwhy_linux::lab::backend::{Backend as _, Lateness, Manifest, Refusal};
use tcpwhy_linux::lab::folder;
use tcpwhy_linux::lab::live::{Again, Live};
use tcpwhy_model::scenario::plan::{Flow, Path as Route, Plan, Records, Socket, Step, Way};
use watch::Watch;

pub(crate) const MS: u64 = 1_000_000;

/// Labs of one test binary take turns: they would make each other late.
pub(crate) fn my_turn() -> MutexGuard<'static, ()> {
    static TURN: Mutex<()> = Mutex::new(());
    TURN.lock().unwrap_or_else(PoisonError::into_inner)
}

pub(crate) fn live() -> Live {
    Live::tun(again())
}

pub(crate) fn again() -> Again {
    let program = PathBuf::from(env!("CARGO_BIN_EXE_tcpwhy-live"));
    Again { program, lead: vec!["lab-inner".into()] }
}

/// Whether this machine can run a lab at all. If not, the refusal must say what is missing.
pub(crate) fn possible() -> bool {
    let Err(refusal) = live().check(&download()) else { return true };
    assert!(
        std::env::var_os("TCPWHY_REQUIRE_ALL").is_none(),
        "the lab has to run here, but {refusal}"
    );
    assert_is_a_sentence(&refusal);
    false
}

pub(crate) fn assert_is_a_sentence(refusal: &Refusal) {
    let text = refusal.to_string();
    assert!(!text.contains('\n') && text.len() < 400, "{text}");
    for part in [&refusal.what, &refusal.why, &refusal.instead] {
        assert!(!part.is_empty(), "{text}");
    }
}

/// 512 KiB over 1000 Mbit/s and 6 ms.
pub(crate) fn download() -> Plan {
    let way = Way { rate: 1_000_000_000, delay_ns: 3 * MS, ..Way::default() };
    let socket = Socket { congestion: Some("cubic".to_owned()), ..Socket::default() };
    Plan {
        scenario: "download".to_owned(),
        seed: 1,
        path: Route { down: way.clone(), up: way, changes: Vec::new() },
        flows: vec![Flow {
            port: 8080,
            connections: 1,
            client: vec![Step::WriteHead(80), Step::ReadToEnd { chunk: 0, pause_ns: 0 }],
            server: vec![
                Step::ReadHead,
                Step::WriteHead(200),
                Step::Write { bytes: 512 << 10, chunk: 0, pause_ns: 0 },
                Step::EndWriting,
                Step::ReadToEnd { chunk: 0, pause_ns: 0 },
            ],
            client_socket: socket.clone(),
            server_socket: socket,
            ..Flow::default()
        }],
        records: Records { snap_length: 128, ..Records::default() },
        limit_ns: 20_000 * MS,
        tail_ns: 50 * MS,
        ..Plan::default()
    }
}

/// So many requests of 100 bytes that are answered at once, so far apart.
pub(crate) fn echo(times: u32, pause_ns: u64) -> Plan {
    let write = Step::Write { bytes: 100, chunk: 0, pause_ns: 0 };
    let read = Step::Read { bytes: 100, chunk: 0, pause_ns: 0 };
    let mut plan = download();
    let ask = vec![write.clone(), read.clone(), Step::Sleep(pause_ns)];
    plan.flows[0].client = vec![Step::Repeat { times, steps: ask }];
    plan.flows[0].server = vec![Step::Repeat { times, steps: vec![read, write] }];
    plan
}

/// Runs a plan, until the machine lets it be valid. `None` where it never does: what else the machine
/// does meanwhile then decides about times, and nothing can be told of the emulator.
///
/// # Panics
/// Most runs are invalid for reasons that the host does not explain ([`watch::excuses`]).
#[expect(clippy::print_stderr, reason = "why a test was skipped")]
pub(crate) fn run(plan: &Plan) -> Option<(tempfile::TempDir, Manifest)> {
    let mut problems = Vec::new();
    let mut excused = 0;
    for _ in 0..ATTEMPTS {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let watch = Watch::begin();
        let manifest = live().run(plan, folder.path()).expect("a run");
        let host = watch.end();
        if manifest.valid {
            return Some((folder, manifest));
        }
        excused += usize::from(is_excused(&manifest, host));
        problems.push((host, manifest.lateness, manifest.problems));
    }
    assert!(
        excused * 2 >= ATTEMPTS,
        "the host explains {excused} of {ATTEMPTS} invalid runs (host, emulator, why): {problems:#?}"
    );
    eprintln!("skipped: the machine let no run be valid: {problems:#?}");
    None
}

const ATTEMPTS: usize = 8;

/// Lost records and refused packets are nobody's fault but ours; so is an emulator that uses all of a
/// processor, which the kernel stops for that.
fn is_excused(manifest: &Manifest, host: Lateness) -> bool {
    let ours = |problem: &String| {
        ["records of the emulator", "packets were refused", "the emulator was busy"]
            .iter()
            .any(|words| problem.contains(words))
    };
    watch::excuses(host) && !manifest.problems.iter().any(ours)
}

/// The lines of one of a run's files.
pub(crate) fn lines(folder: &Path, name: &str) -> Vec<Value> {
    let text = fs::read_to_string(folder.join(name)).expect(name);
    text.lines().map(|line| serde_json::from_str(line).expect(line)).collect()
}

/// Bytes that the clients' applications have read.
pub(crate) fn received(folder: &Path) -> u64 {
    lines(folder, folder::APPLICATIONS)
        .iter()
        .filter(|line| line["who"] == "client" && line["step"] == "read")
        .filter_map(|line| line["bytes"].as_u64())
        .sum()
}

pub(crate) fn packets(folder: &Path) -> Vec<Value> {
    lines(folder, folder::PACKETS)
}

/// A TCP packet of a capture.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Captured {
    pub(crate) at: u64,
    pub(crate) from: u16,
    pub(crate) seq: u32,
    pub(crate) ack: u32,
    pub(crate) flags: u8,
    pub(crate) data: usize,
}

/// Reads the IPv4 and TCP heads of a pcapng file as the lab writes it.
pub(crate) fn capture(folder: &Path, name: &str) -> Vec<Captured> {
    let bytes = fs::read(folder.join(name)).expect(name);
    let word = |at: usize| u32::from_le_bytes(bytes[at..at + 4].try_into().expect("4 bytes"));
    let (mut at, mut found) = (0, Vec::new());
    while at < bytes.len() {
        if word(at) == 6 {
            let time = (u64::from(word(at + 12)) << 32) | u64::from(word(at + 16));
            let packet = &bytes[at + 28..at + 28 + word(at + 20) as usize];
            assert_eq!(packet[0], 0x45, "an IPv4 packet without a link layer");
            let total = usize::from(u16::from_be_bytes([packet[2], packet[3]]));
            let tcp = &packet[20..];
            let long = |at: usize| u32::from_be_bytes(tcp[at..at + 4].try_into().expect("4"));
            found.push(Captured {
                at: time,
                from: u16::from_be_bytes([tcp[0], tcp[1]]),
                seq: long(4),
                ack: long(8),
                flags: tcp[13],
                data: total - 20 - usize::from(tcp[12] >> 4) * 4,
            });
        }
        at += word(at + 4) as usize;
    }
    found
}

/// Processes that have to do with a folder: every one of a run names it.
pub(crate) fn processes(folder: &Path) -> Vec<u32> {
    let needle = folder.to_str().expect("UTF-8").as_bytes();
    let listed = fs::read_dir("/proc").expect("/proc").flatten();
    listed
        .filter_map(|entry| entry.file_name().to_str()?.parse().ok())
        .filter(|process| {
            let words = fs::read(format!("/proc/{process}/cmdline")).unwrap_or_default();
            words.windows(needle.len()).any(|part| part == needle)
        })
        .collect()
}

/// The network namespaces that these processes are in, without our own.
pub(crate) fn namespaces(processes: &[u32]) -> Vec<PathBuf> {
    let of = |process: &str| fs::read_link(format!("/proc/{process}/ns/net")).ok();
    let own = of("self");
    let mut found: Vec<PathBuf> =
        processes.iter().filter_map(|process| of(&process.to_string())).collect();
    found.retain(|one| Some(one) != own.as_ref());
    found.sort();
    found.dedup();
    found
}

pub(crate) fn output(program: &str, words: &[&str]) -> Output {
    Command::new(program).args(words).output().expect(program)
}
