//! Changes after which chance decides: the dice are thrown many times, and one throw is no answer.

use super::work::Work;
use super::{Refusal, Replay, Run, Study, plan};
use crate::scenario::plan::{Loss, Path, Way};
use crate::world::{Kernels, Recorded};

/// Throws of the dice. Ours: with 21 the middle one lies between the 30th and the 70th per cent of all in 95 of 100 sets, and
/// nine in ten of all throws between the least and the most in 63 of 100.
const THROWS: u32 = 21;

/// Throws that are made at least, however much one takes.
const LEAST_THROWS: usize = 5;

impl Way {
    fn is_by_chance(&self) -> bool {
        matches!(self.loss, Loss::Random(_) | Loss::Gilbert { .. })
            || self.jitter_ns > 0
            || self.reorder > 0
            || self.duplicate > 0
    }
}

impl Path {
    fn is_by_chance(&self) -> bool {
        self.up.is_by_chance() || self.down.is_by_chance()
    }
}

impl Study {
    /// The runs with these changes on the nearest kernels, the shortest first: one, or many if chance decides. Half of the
    /// work is kept for what follows.
    ///
    /// # Errors
    /// The change makes no sense, or there is not work enough for [`LEAST_THROWS`].
    pub(super) fn throws(
        &self,
        changes: &[String],
        (kernels, recorded): (Kernels, &Recorded),
        run: &Run<'_>,
        work: &Work,
    ) -> Result<Vec<Replay>, Refusal> {
        let has_own_seed = changes.iter().any(|change| change.starts_with("seed="));
        if has_own_seed || !plan(&self.fit, 1, changes)?.path.is_by_chance() {
            return Ok(vec![run(&self.fit, changes, kernels, recorded)?]);
        }
        let kept = work.left() / 2;
        let mut thrown = Vec::new();
        for seed in 1..=THROWS {
            let dice = [&[format!("seed={seed}")], changes].concat();
            thrown.push(run(&self.fit, &dice, kernels, recorded)?);
            if work.left() < kept && thrown.len() >= LEAST_THROWS {
                break;
            }
        }
        thrown.sort_by_key(|replay| replay.account.ns);
        Ok(thrown)
    }
}
