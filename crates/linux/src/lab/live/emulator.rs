//! The emulator as a run sees it: two threads, the pump and its journal, from start to verdict.

use std::io;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Sender, channel, sync_channel};
use std::thread::{self, JoinHandle};

use tcpwhy_model::scenario::plan::Plan;

use super::journal::{self, Tap};
use super::lateness::{BEAT_LIMIT_NS, LIMIT_NS};
use super::pump::{End, Order, Outcome, Pump, PumpError};
use super::stage::Trouble;
use super::sys;
use crate::lab::backend::{ClockMap, LabError, Manifest};

/// An emulator at work.
pub(super) struct Emulator {
    pump: JoinHandle<(Result<Outcome, PumpError>, Option<io::Error>)>,
    journal: JoinHandle<Result<ClockMap, LabError>>,
    orders: Sender<Order>,
    failed: Arc<AtomicBool>,
}

/// The captures that the emulator takes for this plan.
pub(super) fn own_taps(plan: &Plan) -> Vec<Tap> {
    let taps = [
        (Tap::Client, plan.client.stack_to_tap_ns > 0),
        (Tap::Server, plan.server.stack_to_tap_ns > 0),
        (Tap::Middle, plan.records.middle),
    ];
    taps.into_iter().filter_map(|(tap, own)| own.then_some(tap)).collect()
}

impl Emulator {
    /// Starts both threads.
    pub(super) fn start(plan: &Plan, folder: &Path, ends: [End; 2]) -> Result<Self, Trouble> {
        let (orders, told) = channel();
        let (record, records) = sync_channel(RECORDS);
        let failed = Arc::new(AtomicBool::new(false));
        let pump = Pump::new(plan, ends, record, told);
        let missing = |error: io::Error| Trouble::Missing {
            doing: "start a thread".to_owned(),
            why: error.to_string(),
            advice: "free some memory or raise the limit on processes".to_owned(),
        };
        let (taps, folder, flag) = (own_taps(plan), folder.to_owned(), Arc::clone(&failed));
        let snap_length = plan.records.snap_length;
        let journal = thread::Builder::new()
            .name("journal".to_owned())
            .spawn(move || journal::write(&folder, &taps, snap_length, &records, &flag))
            .map_err(missing)?;
        let pump = thread::Builder::new()
            .name("pump".to_owned())
            .spawn(move || {
                let first = sys::fine_timers().and_then(|()| sys::run_first(PRIORITY));
                (pump.run(), first.err())
            })
            .map_err(missing)?;
        Ok(Self { pump, journal, orders, failed })
    }

    /// Says when the first application starts, on `CLOCK_MONOTONIC`.
    pub(super) fn begin(&self, origin_ns: u64) {
        // If it is gone, `alive` says so.
        let _ = self.orders.send(Order::Begin(origin_ns));
    }

    /// Whether it can still do its work.
    pub(super) fn alive(&self) -> bool {
        !self.pump.is_finished() && !self.failed.load(Ordering::Relaxed)
    }

    /// Ends it; what it has to say goes into the manifest.
    pub(super) fn stop(self, manifest: &mut Manifest) -> Result<(), Trouble> {
        let _ = self.orders.send(Order::Stop);
        let pumped = self.pump.join();
        let written = self.journal.join();
        let died = |who: &str| Trouble::Ended {
            why: format!("the emulator's {who} failed in itself"),
            advice: "this is an error in tcpwhy, please report it".to_owned(),
        };
        let (pumped, not_first) = pumped.map_err(|_| died("pump"))?;
        manifest.clock = Some(written.map_err(|_| died("journal"))??);
        let outcome = pumped.map_err(|error| Trouble::Ended {
            why: error.to_string(),
            advice: "repeat the run".to_owned(),
        })?;
        if let Some(error) = not_first {
            manifest.problems.push(format!(
                "SCHED_FIFO is refused to the emulator, the applications and the captures \
                 ({error}), so any of them may be late by a scheduler's slice: run as root, or raise the limit on real-time priority"
            ));
        }
        judge(&outcome, manifest);
        Ok(())
    }
}

/// Says how late the emulator was and whether that can be believed.
fn judge(outcome: &Outcome, manifest: &mut Manifest) {
    let (packets, beats) = (outcome.packets.lateness(), outcome.beats.lateness());
    manifest.lateness = Some(packets);
    let limit = ms(LIMIT_NS);
    if packets.p99_ns > LIMIT_NS {
        let (late, max) = (ms(packets.p99_ns), ms(packets.max_ns));
        manifest.distrust(format!(
            "one packet in a hundred was taken in or let out {late} ms late or more (at most {max} ms; \
             the limit is {limit} ms): repeat the run on a quieter machine"
        ));
    }
    if beats.p99_ns > BEAT_LIMIT_NS {
        let (late, max, limit) = (ms(beats.p99_ns), ms(beats.max_ns), ms(BEAT_LIMIT_NS));
        manifest.distrust(format!(
            "for one hundredth of the time the emulator was asleep {late} ms too long or more (at \
             most {max} ms; the limit is {limit} ms), so packets may have been taken in late: \
             repeat the run on a quieter machine"
        ));
    }
    if outcome.records_lost > 0 {
        let lost = outcome.records_lost;
        manifest.distrust(format!("{lost} records of the emulator were lost for lack of room"));
    }
    if outcome.refused > 0 {
        let refused = outcome.refused;
        manifest.distrust(format!("{refused} packets were refused by the receiving device"));
    }
    if outcome.busiest_percent >= TOO_BUSY_PERCENT {
        let busy = outcome.busiest_percent;
        manifest.problems.push(format!(
            "the emulator was busy for {busy} % of a second, close to where the kernel stops a \
             real-time thread: use a lower rate"
        ));
    }
}

fn ms(ns: u64) -> String {
    format!("{}.{:03}", ns / 1_000_000, ns % 1_000_000 / 1_000)
}

/// Ours: before all programs of a run, behind the kernel's own threads (50, where there are any).
const PRIORITY: i32 = 40;

/// Ours: at the packet rate of 1 Gbit/s, both ways, this is 0.5 s.
const RECORDS: usize = 1 << 16;

/// Ours: a little under the kernel's 95.
const TOO_BUSY_PERCENT: u64 = 92;

#[cfg(test)]
mod tests {
    use super::*;

    fn judged(outcome: &Outcome) -> Manifest {
        let mut manifest = Manifest { valid: true, ..Manifest::default() };
        judge(outcome, &mut manifest);
        manifest
    }

    #[test]
    fn a_punctual_run_is_valid() {
        let mut outcome = Outcome::default();
        (0..1000).for_each(|_| outcome.packets.add(30_000));
        (0..1000).for_each(|_| outcome.beats.add_beat(40_000));
        let manifest = judged(&outcome);
        assert!(manifest.valid && manifest.problems.is_empty(), "{manifest:?}");
        assert_eq!(manifest.lateness.map(|lateness| lateness.max_ns), Some(30_000));
    }

    #[test]
    fn late_packets_make_it_invalid() {
        let mut outcome = Outcome::default();
        (0..98).for_each(|_| outcome.packets.add(30_000));
        (0..2).for_each(|_| outcome.packets.add(400_000));
        let manifest = judged(&outcome);
        assert!(!manifest.valid);
        assert!(manifest.problems[0].contains("0.400 ms late"), "{manifest:?}");
    }

    #[test]
    fn a_thread_that_slept_makes_it_invalid_though_no_packet_was_late() {
        let mut outcome = Outcome::default();
        (0..100).for_each(|_| outcome.beats.add_beat(10_000));
        outcome.beats.add_beat(8_000_000);
        assert!(!judged(&outcome).valid);
    }

    #[test]
    fn lost_records_and_refused_packets_make_it_invalid() {
        assert!(!judged(&Outcome { records_lost: 1, ..Outcome::default() }).valid);
        assert!(!judged(&Outcome { refused: 1, ..Outcome::default() }).valid);
    }
}
