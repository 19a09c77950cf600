//! How late this host is by itself while a run goes on: what excuses a run that is late, and what does not.
//!
//! One thread on each processor, before the emulator in the scheduler's order, asks to be woken every
//! 0.1 ms and notes how late it is. It meets what the emulator meets (a hypervisor that takes the
//! processor away, kernel code that cannot be interrupted) and nothing that the emulator does. Where
//! `SCHED_FIFO` is refused, it is refused to both.

#![expect(unsafe_code, reason = "affinity and priority of its own threads")]

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use tcpwhy_linux::lab::backend::Lateness;

/// Threads that watch.
pub(crate) struct Watch {
    over: Arc<AtomicBool>,
    watchers: Vec<JoinHandle<Vec<u64>>>,
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

    /// Ends it: how late the host was where it was latest.
    pub(crate) fn end(self) -> Lateness {
        self.over.store(true, Ordering::Relaxed);
        let seen = self.watchers.into_iter().map(|w| quantiles(w.join().expect("a watcher")));
        seen.max_by_key(|lateness| lateness.max_ns).unwrap_or_default()
    }
}

fn watch(processor: usize, over: &AtomicBool) -> Vec<u64> {
    stay_first_on(processor);
    let mut late = Vec::new();
    let mut due = Instant::now();
    while !over.load(Ordering::Relaxed) {
        due += BEAT;
        thread::sleep(due.saturating_duration_since(Instant::now()));
        let by = due.elapsed();
        late.push(by.as_nanos() as u64);
        // Beats that it slept through are not made up for.
        due += by;
    }
    late
}

/// Ours: a pause that hides between two beats is shorter than what [`excuses`] forgives.
const BEAT: Duration = Duration::from_micros(100);

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

/// Whether the host may explain how late the emulator was: it stood still for longer than a run may be
/// late. How late that makes which packets depends on where it falls: a pause in a burst makes all of
/// that late, and two pauses add up, so no more is asked for. On a host that never stands still that
/// long nothing is excused.
pub(crate) fn excuses(host: Lateness) -> bool {
    host.max_ns > FORGIVEN_NS
}

/// The emulator's own limit (`lateness.rs`).
const FORGIVEN_NS: u64 = 300_000;

#[test]
fn a_host_that_never_stands_still_excuses_nothing() {
    let host = |max_ns| Lateness { p50_ns: 10_000, p99_ns: 40_000, max_ns };
    assert!(!excuses(host(FORGIVEN_NS)));
    assert!(excuses(host(FORGIVEN_NS + 1)));
}

#[test]
fn a_watcher_measures_what_it_is_told() {
    let late = quantiles((1..=100).rev().collect());
    assert_eq!((late.p50_ns, late.p99_ns, late.max_ns), (50, 99, 100));
    assert_eq!(quantiles(vec![]), Lateness::default());
    let watch = Watch::begin();
    thread::sleep(Duration::from_millis(20));
    assert!(watch.end().max_ns > 0, "no alarm comes at its very instant");
}
