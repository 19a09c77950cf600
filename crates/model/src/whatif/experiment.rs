//! What was fitted to a capture as a plan for a kernel.

use super::{Refusal, Study, plan, ways};
use crate::scenario::plan::{Loss, Plan};
use crate::world::{Keep, World};

/// The rate of a link that shows none, in bits per second. Ours: as fast as hosts usually have it. A kernel's receive buffer
/// does not grow by packets that come at one instant, as no link lets them (`tcp_rcv_space_adjust`).
const FAST: u64 = 10_000_000_000;

impl Study {
    /// The conversation `times` times with these changes. What the capture lost is lost by the number of its packet, as the
    /// nearest replay numbers them.
    ///
    /// # Errors
    /// The change makes no sense, or the model cannot run it.
    pub fn experiment(&self, times: u32, changes: &[String]) -> Result<Plan, Refusal> {
        let mut plan = plan(&self.fit, times, changes)?;
        for way in [&mut plan.path.up, &mut plan.path.down] {
            if way.rate == 0 && way.bucket.is_none() {
                way.rate = FAST;
            }
        }
        let recorded = ways::by_rules(&self.fit, changes);
        if recorded.lost.iter().all(Vec::is_empty) {
            return Ok(plan);
        }
        let kernels = self.nearest().ok_or(Refusal::Nothing)?.kernels;
        let most = self.fit.most_events().saturating_mul(u64::from(times));
        let world = World::new(&plan, kernels, Keep::default())?.with(&recorded).at_most(most);
        let (outcome, _) = world.run();
        if outcome.events >= most {
            return Err(Refusal::TooLong(most));
        }
        let [client, server] = outcome.lost;
        for (way, numbers) in [(&mut plan.path.up, client), (&mut plan.path.down, server)] {
            if !numbers.is_empty() {
                way.loss = Loss::Exact(numbers);
            }
        }
        Ok(plan)
    }
}
