//! Where chance decides: losses, jitter, reordering, copies and damage at random. One throw of the dice is no answer then, so they are
//! thrown many times: the answer is the run in the middle, and the range of all.

use crate::predict::Prediction;
use crate::profile::KnobError;
use crate::scenario::plan::{Loss, Path, Plan, Way};
use crate::world::Kernels;

/// Throws of the dice. Ours: with 21 the middle one lies between the 30th and the 70th per cent of all in 95 of 100 sets, and
/// nine in ten of all throws between the least and the most in 63 of 100.
pub const THROWS: u32 = 21;

impl Way {
    fn is_by_chance(&self) -> bool {
        matches!(self.loss, Loss::Random(_) | Loss::Gilbert { .. })
            || self.jitter_ns > 0
            || self.reorder > 0
            || self.duplicate > 0
            || self.corrupt > 0
    }
}

impl Path {
    /// Whether another seed makes another run.
    pub fn is_by_chance(&self) -> bool {
        self.up.is_by_chance() || self.down.is_by_chance()
    }
}

/// A plan's run in the middle of all throws.
#[derive(Clone, Debug)]
pub struct Thrown {
    /// The plan, with the seed of that run.
    pub plan: Plan,
    /// What came of it.
    pub prediction: Prediction,
    /// The least and the most time of all, in nanoseconds.
    pub range_ns: (u64, u64),
    /// How many throws.
    pub throws: u32,
    /// Events of all.
    pub events: u64,
}

impl Thrown {
    /// Runs a plan once, or [`THROWS`] times if chance decides, in at most `most` events of the model; `None` if it takes
    /// more.
    ///
    /// # Errors
    /// The model does not have something that the plan asks for.
    pub fn within(plan: &Plan, kernels: Kernels, most: u64) -> Result<Option<Self>, KnobError> {
        let throws = if plan.path.is_by_chance() { THROWS } else { 1 };
        let (mut runs, mut left) = (Vec::new(), most);
        for throw in 0..throws {
            let plan = Plan { seed: plan.seed.wrapping_add(u64::from(throw)), ..plan.clone() };
            let Some(prediction) = Prediction::within(&plan, kernels, left)? else {
                return Ok(None);
            };
            left -= prediction.events;
            runs.push((plan, prediction));
        }
        // What did not come to its end is the longest of all.
        runs.sort_by_key(|(_, run)| (!run.unfinished.is_empty(), run.time_ns));
        let of = |at: usize| runs[at].1.time_ns;
        let range_ns = (of(0), of(runs.len() - 1));
        let (plan, prediction) = runs.swap_remove(runs.len() / 2);
        Ok(Some(Self { plan, prediction, range_ns, throws, events: most - left }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::profile::{KernelProfile, Version};
    use crate::scenario::Scenario;

    /// A download over 20 ms with this change.
    fn thrown(change: &str, most: u64) -> Option<Thrown> {
        let text = "[path]
rtt = \"20ms\"
[application]
download = \"300KiB\"
";
        let scenario = Scenario::read("test", text, &[change.to_owned()]).expect("a scenario");
        let plan = &scenario.variants[0];
        let kernels = Kernels::both(KernelProfile::of(Version::new(6, 1)));
        Thrown::within(plan, kernels, most).expect("the model has all of it")
    }

    #[test]
    fn the_middle_of_many_throws_is_told_where_chance_decides() {
        let lossy = thrown("path.loss=2%", u64::MAX).expect("no limit");
        let (low, high) = lossy.range_ns;
        assert_eq!(lossy.throws, THROWS);
        assert!(low < lossy.prediction.time_ns && lossy.prediction.time_ns < high, "{lossy:?}");
        assert!(lossy.events > lossy.prediction.events);
    }

    #[test]
    fn one_run_tells_all_where_it_does_not() {
        for change in ["path.rtt=9ms", "path.down.loss=exact 20", "path.queue=20 packets"] {
            let plain = thrown(change, u64::MAX).expect("no limit");
            let time = plain.prediction.time_ns;
            assert_eq!((plain.throws, plain.range_ns), (1, (time, time)), "{change}");
        }
    }

    #[test]
    fn all_throws_have_to_be_within_the_work() {
        let all = thrown("path.loss=2%", u64::MAX).expect("no limit").events;
        assert!(thrown("path.loss=2%", all + 1).is_some());
        assert!(thrown("path.loss=2%", all - 1).is_none());
    }
}
