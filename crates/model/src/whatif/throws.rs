//! Changes after which chance decides: the dice are thrown many times, and one throw is no answer.

use super::work::Work;
use super::{Refusal, Replay, Run, Study, plan};
use crate::chance::THROWS;
use crate::world::{Kernels, Recorded};

/// Throws that are made at least, however much one takes.
const LEAST_THROWS: usize = 5;

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
