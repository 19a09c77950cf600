//! What the tests of the live lab share: plans, runs, and readers of what runs leave behind.

#![expect(dead_code, reason = "each test binary uses its part")]

mod watch;

use std::cell::Cell;
use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use serde_json::Value;
use tcpwhy_linux::lab::backend::{Backend as _, Lateness, Manifest, Refusal};
use tcpwhy_linux::lab::folder;
use tcpwhy_linux::lab::live::{Again, Live};
use tcpwhy_model::scenario::plan::{Flow, Path as Route, Plan, Records, Socket, Step, Way};
use watch::{FORGIVEN_NS, Host, Watch};

pub(crate) const MS: u64 = 1_000_000;

/// Labs of one test binary take turns: they would make each other late.
pub(crate) fn my_turn() -> MutexGuard<'static, ()> {
    static TURN: Mutex<()> = Mutex::new(());
    let turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
    ACCOUNT.set(Account { began: Some(Instant::now()), ..Account::NEW });
    turn
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

/// `times` requests of 100 bytes, each answered at once, with this pause between.
pub(crate) fn echo(times: u32, pause_ns: u64) -> Plan {
    let write = Step::Write { bytes: 100, chunk: 0, pause_ns: 0 };
    let read = Step::Read { bytes: 100, chunk: 0, pause_ns: 0 };
    let mut plan = download();
    let ask = vec![write.clone(), read.clone(), Step::Sleep(pause_ns)];
    plan.flows[0].client = vec![Step::Repeat { times, steps: ask }];
    plan.flows[0].server = vec![Step::Repeat { times, steps: vec![read, write] }];
    plan
}

/// Runs a plan, again and again, until the machine lets it be valid. `None` where it does not for as long
/// as a test has patience: what else the machine does meanwhile then decides about times.
///
/// # Panics
/// As [`watched`].
pub(crate) fn run(plan: &Plan) -> Option<(tempfile::TempDir, Manifest)> {
    watched(plan).map(|(folder, manifest, _)| (folder, manifest))
}

/// The same with what was seen of the host meanwhile.
///
/// # Panics
/// The emulator was late as a rule while the host was quiet, in this run and earlier ones of this test; or two
/// runs are invalid by its own fault.
pub(crate) fn watched(plan: &Plan) -> Option<(tempfile::TempDir, Manifest, Host)> {
    let mut runs = 0;
    loop {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let watch = Watch::begin();
        let manifest = live().run(plan, folder.path()).expect("a run");
        let host = watch.end();
        let mut account = ACCOUNT.take();
        account.judge(&host, folder.path(), &manifest);
        ACCOUNT.set(account);
        if manifest.valid {
            return Some((folder, manifest, host));
        }
        runs += 1;
        if !patient() {
            let Lateness { p99_ns, max_ns, .. } = host.lateness;
            skip(&format!(
                "none of {runs} runs was valid, and the host itself had stood still, at last for \
                 {max_ns} ns, and one alarm in a hundred for {p99_ns} ns; of it: {}",
                manifest.problems.join("; ")
            ));
            return None;
        }
    }
}

/// Whether this test may go on looking for a quiet machine.
pub(crate) fn patient() -> bool {
    let account = ACCOUNT.take();
    ACCOUNT.set(account);
    account.began.is_some_and(|began| began.elapsed() < PATIENCE)
}

/// Tells that the test of this thread judged nothing. `.ci/run` counts such lines (`scripts/tally`), so
/// they go past libtest, which keeps what a test prints to itself.
pub(crate) fn skip(why: &str) {
    let test = std::thread::current().name().unwrap_or("a test").to_owned();
    let _ = writeln!(std::io::stderr().lock(), "\nskipped {test}: {why}");
}

/// Ours: some twenty runs.
const PATIENCE: Duration = Duration::from_secs(40);

thread_local! {
    /// Of the test that has this thread.
    static ACCOUNT: Cell<Account> = const { Cell::new(Account::NEW) };
}

/// What the runs of one test have shown of the emulator.
#[derive(Clone, Copy, Debug, Default)]
struct Account {
    began: Option<Instant>,
    /// Packets that it let out while the host was quiet, and how many of them late.
    quiet: usize,
    late: usize,
    /// Runs that are invalid by the emulator's own fault.
    broken: usize,
}

impl Account {
    const NEW: Self = Self { began: None, quiet: 0, late: 0, broken: 0 };

    /// What a machine's moods do not explain fails a test: an emulator that is late as a rule, or one that breaks by itself.
    /// How late it is beyond that is the manifest's to tell, and no test's: a virtual machine stands still unseen.
    fn judge(&mut self, host: &Host, folder: &Path, manifest: &Manifest) {
        for (due, sent) in alone(&packets(folder)) {
            if host.was_quiet(due, sent) {
                self.quiet += 1;
                self.late += usize::from(sent.saturating_sub(due) > FORGIVEN_NS);
            }
        }
        assert!(
            self.quiet < LEAST_PACKETS || self.late * MOST_LATE <= self.quiet,
            "the host was quiet, and the emulator late: {self:?}, at last {manifest:?}"
        );
        self.broken += usize::from(is_broken(manifest));
        assert!(self.broken < 2, "the emulator breaks by itself: {manifest:?}");
    }
}

/// When packets were due and sent before which the emulator had nothing to do: how long it takes for a
/// burst depends on the processor, which others may slow down without ever taking it away.
fn alone(packets: &[Value]) -> Vec<(u64, u64)> {
    let stamp = |packet: &Value, name: &str| packet[name].as_u64();
    let mut sent: Vec<(u64, u64)> =
        packets.iter().filter_map(|p| stamp(p, "due").zip(stamp(p, "sent"))).collect();
    // What it does, from when to when: it takes packets in, and lets them out.
    let taken = packets.iter().filter_map(|p| stamp(p, "t")).map(|at| (at, at));
    let mut works: Vec<_> = taken.chain(sent.iter().copied()).collect();
    works.sort_unstable();
    let mut works = works.into_iter().peekable();
    let mut done = 0;
    sent.sort_unstable();
    sent.retain(|(due, _)| {
        while let Some(work) = works.next_if(|work| work.0 < *due) {
            done = done.max(work.1);
        }
        done + ALONE_NS <= *due
    });
    sent
}

/// Ours: a burst of twenty packets is over by then.
const ALONE_NS: u64 = 200_000;

/// Ours: enough for a share.
const LEAST_PACKETS: usize = 200;

/// One in so many. Ours: a machine that stood still unseen made three of a hundred late.
const MOST_LATE: usize = 4;

/// Lost records and refused packets are our fault alone; so is an emulator that uses all of a
/// processor, which the kernel stops for that.
fn is_broken(manifest: &Manifest) -> bool {
    let ours = |problem: &String| {
        ["records of the emulator", "packets were refused", "the emulator was busy"]
            .iter()
            .any(|words| problem.contains(words))
    };
    manifest.problems.iter().any(ours)
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

#[test]
fn a_packet_is_alone_when_all_before_it_is_done() {
    let packet =
        |t: u64, due: u64, sent: u64| serde_json::json!({"t": t, "due": due, "sent": sent});
    let packets = [
        packet(1_000_000, 2_000_000, 2_001_000),
        // Of the same burst.
        packet(1_010_000, 2_010_000, 2_300_000),
        // Before the burst is out.
        packet(1_020_000, 2_450_000, 2_451_000),
        packet(2_651_000, 2_651_000, 2_960_000),
        // One comes in just before.
        packet(2_990_000, 3_170_000, 3_170_000),
        packet(3_170_000, 3_371_000, 3_371_000),
    ];
    let due: Vec<u64> = alone(&packets).iter().map(|one| one.0).collect();
    assert_eq!(due, [2_000_000, 2_651_000, 3_371_000]);
}
