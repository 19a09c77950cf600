//! Whole runs: what was measured on kernels comes out of the model.

use super::*;
use crate::profile::{KernelProfile, Version};
use crate::scenario::Scenario;

/// The plan of a scenario's only variant.
fn plan(toml: &str) -> Plan {
    let scenario = Scenario::read("test", toml, &[]).expect("a scenario");
    scenario.plans(1).next().expect("a plan")
}

fn run(plan: &Plan, version: (u16, u16)) -> (Outcome, Trace) {
    let kernel = KernelProfile::of(Version::new(version.0, version.1));
    let keep = Keep { segments: true, handed_down: true, states: true };
    World::new(plan, Kernels::both(kernel), keep).expect("a world").run()
}

/// Payload of the server's flights: what leaves without a millisecond's pause.
fn flights(trace: &Trace) -> Vec<u32> {
    let mut flights = Vec::new();
    let mut last = 0;
    for seen in &trace.handed_down {
        if seen.from != Side::Server || seen.segment.len == 0 {
            continue;
        }
        if flights.is_empty() || seen.at_ns - last > 1_000_000 {
            flights.push(0);
        }
        last = seen.at_ns;
        *flights.last_mut().expect("one was pushed") += seen.segment.len;
    }
    flights
}

/// Time of the last acknowledgment of data at the server's tap, from the first SYN.
fn last_ack_ms(trace: &Trace) -> f64 {
    let last = trace
        .segments
        .iter()
        .rfind(|s| s.tap == Tap::Server && s.from == Side::Server && s.segment.len > 0)
        .map(|s| s.segment.end_seq())
        .expect("data");
    let ack = trace
        .segments
        .iter()
        .find(|s| s.tap == Tap::Server && s.from == Side::Client && s.segment.ack == last)
        .expect("its acknowledgment");
    ack.at_ns as f64 / 1e6
}

const DOWNLOAD: &str = r#"
[server.route]
congctl = "cubic"
[path]
rtt = "6ms"
rate = "1gbit"
[application]
download = "512KiB"
head = "43B"
"#;

#[test]
fn slow_start_of_512_kib_doubles_each_round_trip() {
    // docs/simulated-kernels.md's kernels: 6.1, 5.10 and 6.12 send just these.
    for version in [(5, 10), (6, 1), (6, 12)] {
        let (outcome, trace) = run(&plan(DOWNLOAD), version);
        assert!(outcome.done, "{version:?}");
        assert_eq!(
            flights(&trace),
            [13_075, 28_960, 57_920, 115_840, 231_680, 76_856],
            "{version:?}"
        );
        let ms = last_ack_ms(&trace);
        assert!((45.9..46.2).contains(&ms), "{version:?}: {ms}");
    }
}

#[test]
fn the_same_plan_gives_the_same_run() {
    let plan = plan(DOWNLOAD);
    let (a, b) = (run(&plan, (6, 1)).1, run(&plan, (6, 1)).1);
    assert_eq!(format!("{a:?}"), format!("{b:?}"));
}
