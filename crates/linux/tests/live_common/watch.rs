//! How late this host is by itself while a run goes on: whether it was quiet while a packet waited.
//!
//! One thread on each processor, before the emulator in the scheduler's order, asks to be woken every
//! 0.2 ms and notes how late it is. It meets what the emulator meets (a hypervisor that takes the
//! processor away, kernel code that cannot be interrupted) and nothing that the emulator does. Where
//! `SCHED_FIFO` is refused, it is refused to both.

#![expect(unsafe_code, reason = "affinity and priority of its own threads")]

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant, SystemTime};

use tcpwhy_linux::lab::backend::Lateness;

/// Threads that watch.
pub(crate) struct Watch {
    over: Arc<AtomicBool>,
    watchers: Vec<JoinHandle<Vec<Beat>>>,
}

/// How late a watcher was woken, and when (nanoseconds since 1970).
#[derive(Clone, Copy, Debug)]
struct Beat {
    woken: u64,
    late_ns: u64,
}

/// What was seen of the host.
#[derive(Clone, Debug, Default)]
pub(crate) struct Host {
    /// Of the processor that was latest.
    pub(crate) lateness: Lateness,
    /// When any processor stood still for longer than [`QUIET_NS`], from and to, in order.
    pauses: Vec<(u64, u64)>,
}

impl Watch {
    pub(crate) fn begin() -> Self {
        let over = Arc::new(AtomicBool::new(false));
        let processors = thread::available_parallelism().map_or(1, usize::from);
        let watchers = (0..processors)
            .map(|processor| {
                let over = Arc::clone(&over);
                thread::spawn(move || watch(processor, &over))
            })
            .collect();
        Self { over, watchers }
    }

    /// Ends it.
    pub(crate) fn end(self) -> Host {
        self.over.store(true, Ordering::Relaxed);
        let beats = self.watchers.into_iter().map(|watcher| watcher.join().expect("a watcher"));
        Host::of(&beats.collect::<Vec<_>>())
    }
}

impl Host {
    /// Of what the watcher of each processor saw.
    fn of(processors: &[Vec<Beat>]) -> Self {
        let seen =
            processors.iter().map(|beats| quantiles(beats.iter().map(|b| b.late_ns).collect()));
        let lateness = seen.max_by_key(|lateness| lateness.max_ns).unwrap_or_default();
        let late = processors.iter().flatten().filter(|beat| beat.late_ns > QUIET_NS);
        let mut pauses: Vec<_> = late.map(|beat| (beat.woken - beat.late_ns, beat.woken)).collect();
        pauses.sort_unstable();
        Self { lateness, pauses }
    }

    /// Whether no processor stood still between these instants, nor shortly before.
    pub(crate) fn was_quiet(&self, from: u64, to: u64) -> bool {
        let from = from.saturating_sub(AFTERMATH_NS);
        !self.pauses.iter().any(|pause| pause.0 < to && pause.1 > from)
    }
}

/// Ours: a pause that the emulator's own limit has room for three times.
const QUIET_NS: u64 = 100_000;

/// Ours: what came to stand in a pause is moved on within this.
const AFTERMATH_NS: u64 = 1_000_000;

/// The emulator's own limit (`lateness.rs`).
pub(crate) const FORGIVEN_NS: u64 = 300_000;

fn watch(processor: usize, over: &AtomicBool) -> Vec<Beat> {
    stay_first_on(processor);
    let mut beats = Vec::new();
    let mut due = Instant::now();
    while !over.load(Ordering::Relaxed) {
        due += BEAT;
        thread::sleep(due.saturating_duration_since(Instant::now()));
        let by = due.elapsed();
        let woken = SystemTime::UNIX_EPOCH.elapsed().map_or(0, |since| since.as_nanos() as u64);
        beats.push(Beat { woken, late_ns: by.as_nanos() as u64 });
        // Beats that it slept through are not made up for.
        due += by;
    }
    beats
}

/// Ours: with [`QUIET_NS`], a pause longer than [`FORGIVEN_NS`] hides between no two beats, and a virtual
/// processor is not kept busy by alarms.
const BEAT: Duration = Duration::from_micros(200);

/// Ours: ahead of the emulator (`emulator.rs`, 40), behind the kernel's own threads (50).
const PRIORITY: libc::c_int = 45;

/// What is refused leaves the thread where it is, a watcher all the same.
fn stay_first_on(processor: usize) {
    let priority: libc::c_int = PRIORITY;
    // SAFETY: all zeros is a valid set of processors; the calls read what lives until they return.
    unsafe {
        let mut only: libc::cpu_set_t = std::mem::zeroed();
        libc::CPU_SET(processor, &mut only);
        libc::sched_setaffinity(0, size_of::<libc::cpu_set_t>(), &raw const only);
        libc::prctl(libc::PR_SET_TIMERSLACK, 1 as libc::c_ulong);
        libc::syscall(libc::SYS_sched_setscheduler, 0, libc::SCHED_FIFO, &raw const priority);
    }
}

fn quantiles(mut late: Vec<u64>) -> Lateness {
    late.sort_unstable();
    let at = |part: usize| late.get((late.len() * part).div_ceil(100).max(1) - 1).copied();
    let [p50_ns, p99_ns, max_ns] = [50, 99, 100].map(|part| at(part).unwrap_or_default());
    Lateness { p50_ns, p99_ns, max_ns }
}

#[test]
fn a_pause_of_any_processor_ends_the_quiet_until_it_is_made_up_for() {
    let beat = |woken, late_ns| Beat { woken, late_ns };
    let host = Host::of(&[
        vec![beat(10_000_000, QUIET_NS), beat(20_000_000, 500_000)],
        vec![beat(30_000_000, 5_000_000)],
    ]);
    assert!(host.was_quiet(9_000_000, 19_500_000));
    assert!(!host.was_quiet(9_000_000, 19_500_001));
    assert!(!host.was_quiet(20_999_999, 21_500_000));
    assert!(host.was_quiet(21_000_000, 25_000_000));
    assert!(!host.was_quiet(26_000_000, 26_000_001), "the other processor's");
}

#[test]
fn a_watcher_measures_what_it_is_told() {
    let late = quantiles((1..=100).rev().collect());
    assert_eq!((late.p50_ns, late.p99_ns, late.max_ns), (50, 99, 100));
    assert_eq!(quantiles(vec![]), Lateness::default());
    let watch = Watch::begin();
    thread::sleep(Duration::from_millis(20));
    assert!(watch.end().lateness.max_ns > 0, "no alarm comes at its very instant");
}
