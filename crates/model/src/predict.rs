//! What a run of the model says of a transfer: how long it takes, in how many rounds, and what its
//! sender waits for.

use core::cmp::Reverse;
use std::collections::BTreeMap;

use serde::Serialize;

use crate::profile::KnobError;
use crate::scenario::plan::Plan;
use crate::world::{Carried, Keep, Kernels, Limit, Outcome, Side, Trace, Transfer, World};

/// The form of predictions as JSON.
pub const FORMAT: &str = "tcpwhy-predict/1";

/// Events of the model that all runs of one question may take together: beyond that nobody waits for an answer.
/// Ours: some 400 GB of downloads, in two minutes of a processor; one of 10 GB takes three seconds.
pub const MOST_WORK: u64 = 1_000_000_000;

/// What comes of the connection that carries the most data. Times count from its opening.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Prediction {
    /// Whose data it is.
    pub sender: Side,
    /// Bytes of it, each once.
    pub bytes: u64,
    /// Retransmitted bytes.
    pub resent_bytes: u64,
    /// When the last byte has arrived, or when the model gave up.
    pub time_ns: u64,
    /// How often data was sent after the first of the round before was acknowledged.
    pub rounds: u32,
    /// What the sender waited for until then, the longest first.
    pub waits: Vec<(Limit, u64)>,
    /// For how long the sender's program had nothing to say while the other side repeated what was lost of its data.
    pub behind_repairs_ns: u64,
    /// When the last byte of the same side had arrived on each connection, from its opening; empty where there is
    /// only one.
    pub each_ns: Vec<u64>,
    /// What had not come to its end within the scenario's limit; empty if all had.
    pub unfinished: Vec<String>,
    /// Events of the model that it took, as [`World::at_most`] counts them.
    pub events: u64,
}

/// One run as JSON, with what was asked for it.
#[derive(Debug, Serialize)]
pub struct Run<'a> {
    /// What was set, by name.
    pub settings: BTreeMap<&'a str, &'a str>,
    /// The scenario's variant.
    pub variant: &'a str,
    /// `client` or `server`.
    pub sender: &'static str,
    /// As in [`Prediction`].
    pub bytes: u64,
    /// As in [`Prediction`].
    pub resent_bytes: u64,
    /// As in [`Prediction`].
    pub time_ns: u64,
    /// As [`Prediction::least_ns`].
    pub size_over_rate_ns: Option<u64>,
    /// As in [`Prediction`].
    pub rounds: u32,
    /// By what was waited for; they add up to the time.
    pub waits_ns: BTreeMap<&'static str, u64>,
    /// As in [`Prediction`].
    pub unfinished: &'a [String],
}

impl Prediction {
    /// Runs `plan` in the model.
    ///
    /// # Errors
    /// It asks for something that the model does not have.
    pub fn of(plan: &Plan, kernels: Kernels) -> Result<Self, KnobError> {
        let (outcome, trace) = world(plan, kernels)?.run();
        Ok(Self::told_by(outcome, &trace))
    }

    /// The same if it takes fewer than this many events of the model; none if not.
    ///
    /// # Errors
    /// As of [`Self::of`].
    pub fn within(plan: &Plan, kernels: Kernels, events: u64) -> Result<Option<Self>, KnobError> {
        let (outcome, trace) = world(plan, kernels)?.at_most(events).run();
        let is_whole = outcome.events < events;
        Ok(is_whole.then(|| Self::told_by(outcome, &trace)))
    }

    fn told_by(outcome: Outcome, trace: &Trace) -> Self {
        let events = outcome.events;
        let (connection, sender) = busiest(trace);
        let unfinished = outcome.waiting;
        let Some(carried) = trace.transfers.get(connection) else {
            return Self { time_ns: outcome.end_ns, unfinished, events, ..Self::nothing() };
        };
        let transfer = &carried.directions[sender.index()];
        let arrived = transfer.arrived_ns.filter(|_| outcome.done);
        let end_ns = arrived.unwrap_or(outcome.end_ns);
        let waits = if outcome.done { transfer.waits() } else { transfer.waits_until(end_ns) };
        Self {
            sender,
            bytes: transfer.bytes,
            resent_bytes: transfer.resent_bytes,
            time_ns: end_ns.saturating_sub(carried.opened_ns),
            rounds: transfer.rounds,
            behind_repairs_ns: behind_repairs(&waits, &carried.directions[sender.peer().index()]),
            waits,
            each_ns: each_ns(trace, sender),
            unfinished,
            events,
        }
    }

    const fn nothing() -> Self {
        Self {
            sender: Side::Server,
            bytes: 0,
            resent_bytes: 0,
            time_ns: 0,
            rounds: 0,
            waits: Vec::new(),
            behind_repairs_ns: 0,
            each_ns: Vec::new(),
            unfinished: Vec::new(),
            events: 0,
        }
    }

    /// How long it waited for `limit`.
    pub fn waited_ns(&self, limit: Limit) -> u64 {
        self.waits.iter().find(|(each, _)| *each == limit).map_or(0, |(_, ns)| *ns)
    }

    /// What its bytes take on the path's link alone; none if that is unlimited.
    pub fn least_ns(&self, plan: &Plan) -> Option<u64> {
        let way = match self.sender {
            Side::Client => &plan.path.up,
            Side::Server => &plan.path.down,
        };
        let ns = u128::from(self.bytes) * 8_000_000_000;
        ns.checked_div(u128::from(way.rate)).and_then(|ns| u64::try_from(ns).ok())
    }

    /// The same as JSON has it, for `plan` and what was set.
    pub fn told<'a>(&'a self, plan: &'a Plan, settings: BTreeMap<&'a str, &'a str>) -> Run<'a> {
        let mut waits_ns = BTreeMap::new();
        for (limit, ns) in &self.waits {
            // Two of them have one name.
            *waits_ns.entry(limit.name()).or_default() += ns;
        }
        Run {
            settings,
            variant: &plan.variant,
            sender: self.sender.name(),
            bytes: self.bytes,
            resent_bytes: self.resent_bytes,
            time_ns: self.time_ns,
            size_over_rate_ns: self.least_ns(plan),
            rounds: self.rounds,
            waits_ns,
            unfinished: &self.unfinished,
        }
    }
}

fn world(plan: &Plan, kernels: Kernels) -> Result<World, KnobError> {
    World::new(plan, kernels, Keep { transfers: true, ..Keep::default() })
}

/// Silence of a program while the other side waited for the acknowledgment of what it had sent more than once: no more
/// than either.
fn behind_repairs(waits: &[(Limit, u64)], other: &Transfer) -> u64 {
    if other.resent_bytes == 0 {
        return 0;
    }
    let sum = |waits: &[(Limit, u64)], of: &[Limit]| -> u64 {
        waits.iter().filter(|(limit, _)| of.contains(limit)).map(|(_, ns)| ns).sum()
    };
    let repairs = [
        Limit::Timeout,
        Limit::Recovery,
        Limit::ProbeTimer,
        Limit::RetransmissionTimer,
        Limit::LastFlight,
        Limit::ApplicationInFlight,
    ];
    sum(waits, &[Limit::Application]).min(sum(&other.waits(), &repairs))
}

/// When the last byte of a side had arrived, on each of several connections.
fn each_ns(trace: &Trace, sender: Side) -> Vec<u64> {
    if trace.transfers.len() < 2 {
        return Vec::new();
    }
    let took = |carried: &Carried| {
        let arrived = carried.directions[sender.index()].arrived_ns;
        arrived.map_or(0, |at| at.saturating_sub(carried.opened_ns))
    };
    trace.transfers.iter().map(took).collect()
}

/// The connection and side that handed down the most data, the first of equals.
fn busiest(trace: &Trace) -> (usize, Side) {
    let sides = trace.transfers.iter().enumerate().flat_map(|(connection, carried)| {
        [Side::Client, Side::Server].map(|side| {
            let handed_down = carried.directions[side.index()].handed_down();
            (handed_down, Reverse((connection, side)))
        })
    });
    let most = sides.filter(|(bytes, _)| *bytes > 0).max();
    most.map_or((0, Side::Server), |(_, Reverse(key))| key)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::profile::{KernelProfile, Version};
    use crate::scenario::Scenario;

    fn predicted(application: &str, overrides: &[&str]) -> Prediction {
        let text = format!(
            "[path]\nrtt = \"6ms\"\nrate = \"1gbit\"\n[application]\n{application}\nhead = \"43B\"\n"
        );
        let overrides: Vec<_> = overrides.iter().map(|&text| text.to_owned()).collect();
        let scenario = Scenario::read("test", &text, &overrides).expect("a scenario");
        let kernels = Kernels::both(KernelProfile::of(Version::new(6, 1)));
        Prediction::of(&scenario.variants[0], kernels).expect("the model has all of it")
    }

    #[test]
    fn half_a_megabyte_takes_six_rounds_of_slow_start() {
        let told = predicted("download = \"512KiB\"", &[]);
        assert_eq!((told.sender, told.rounds, told.resent_bytes), (Side::Server, 6, 0));
        assert_eq!(told.bytes, 43 + (512 << 10));
        assert_eq!(told.unfinished, [""; 0]);
        // Five waits of a round trip, less what it takes to send; the way there and back before.
        assert!((42_000_000..46_000_000).contains(&told.time_ns), "{}", told.time_ns);
        assert_eq!(told.waits[0].0, Limit::SlowStart, "{:?}", told.waits);
        let all: u64 = told.waits.iter().map(|(_, ns)| ns).sum();
        assert_eq!(all, told.time_ns, "the waits add up: {:?}", told.waits);
    }

    #[test]
    fn a_larger_first_flight_takes_fewer_rounds() {
        let few = predicted("download = \"512KiB\"", &["server.route.initcwnd=\"40\""]);
        assert_eq!(few.rounds, 4);
    }

    #[test]
    fn what_is_lost_is_sent_again() {
        let told = predicted("download = \"512KiB\"", &["path.loss=\"2%\""]);
        assert!(told.resent_bytes > 0);
        assert_eq!(told.bytes, 43 + (512 << 10), "each byte once");
    }

    #[test]
    fn silence_behind_a_repeated_request_is_no_programs() {
        let exchange = |loss: &str| {
            let text = format!("[path]\nrtt = \"20ms\"\n{loss}[application]\nexchange = \"1kB\"\n");
            let scenario = Scenario::read("test", &text, &[]).expect("a scenario");
            let kernels = Kernels::both(KernelProfile::of(Version::new(6, 1)));
            Prediction::of(&scenario.variants[0], kernels).expect("the model has all of it")
        };
        let lost = exchange("up.loss = \"exact 1 2 3\"\n");
        assert!(lost.behind_repairs_ns * 10 > lost.time_ns * 9, "{lost:?}");
        let told = exchange("");
        assert_eq!((told.behind_repairs_ns, told.each_ns), (0, Vec::new()));
        let slow = predicted("download = \"9kB\"\nthink = \"90ms\"", &[]);
        assert_eq!(slow.behind_repairs_ns, 0, "{slow:?}");
    }

    #[test]
    fn each_of_several_connections_has_its_time() {
        let told = predicted("download = \"90kB\"\nconnections = 3", &[]);
        assert_eq!(told.each_ns.len(), 3);
        assert!(told.each_ns.contains(&told.time_ns), "{told:?}");
    }

    #[test]
    fn what_cannot_end_is_told_with_what_it_waits_for() {
        let told = predicted("download = \"512KiB\"", &["path.loss=\"100%\"", "limit=\"3s\""]);
        assert_eq!((told.bytes, told.time_ns), (0, 3_000_000_000));
        assert_ne!(told.unfinished, [""; 0]);
    }

    #[test]
    fn a_run_that_takes_more_than_it_may_has_no_answer() {
        let text = "[path]\nrtt = \"6ms\"\n[application]\ndownload = \"512KiB\"\n";
        let scenario = Scenario::read("test", text, &[]).expect("a scenario");
        let kernels = Kernels::both(KernelProfile::of(Version::new(6, 1)));
        let within = |events| {
            Prediction::within(&scenario.variants[0], kernels, events).expect("the model has it")
        };
        let told = within(u64::MAX).expect("it ends");
        assert_eq!(within(told.events), None);
        assert_eq!(within(told.events + 1).as_ref(), Some(&told));
    }

    #[test]
    fn waits_of_one_name_are_added_up() {
        let application = "send = \"200kB\"\nwrite = \"20kB\"\npause = \"9ms\"";
        let text = format!("[path]\nrtt = \"6ms\"\n[application]\n{application}\n");
        let scenario = Scenario::read("test", &text, &[]).expect("a scenario");
        let plan = &scenario.variants[0];
        let kernels = Kernels::both(KernelProfile::of(Version::new(6, 1)));
        let told = Prediction::of(plan, kernels).expect("the model has all of it");
        assert!(told.waited_ns(Limit::Application) > 0, "{:?}", told.waits);
        assert!(told.waited_ns(Limit::ApplicationInFlight) > 0, "{:?}", told.waits);
        let run = told.told(plan, BTreeMap::new());
        assert_eq!(run.waits_ns.values().sum::<u64>(), told.time_ns);
    }
}
