//! Which packets are lost behind the link: by chance, in bursts, or just these.

use super::Chance;
use crate::scenario::plan::Loss;

/// Losses under way.
#[derive(Clone, Debug)]
pub(super) struct Losses {
    kind: Loss,
    is_bad: bool,
    /// Packets with data so far.
    seen: u64,
}

impl Losses {
    pub(super) fn of(kind: &Loss) -> Self {
        Self { kind: kind.clone(), is_bad: false, seen: 0 }
    }

    /// Other losses from now on; what was counted stays counted.
    pub(super) fn change(&mut self, kind: &Loss) {
        self.kind = kind.clone();
    }

    /// Whether this packet is lost.
    pub(super) fn takes(&mut self, has_data: bool, chance: &mut Chance) -> bool {
        self.seen += u64::from(has_data);
        match &self.kind {
            Loss::None => false,
            Loss::Random(ppm) => chance.hits(*ppm),
            Loss::Gilbert { enter, leave, bad } => {
                let change = if self.is_bad { *leave } else { *enter };
                if chance.hits(change) {
                    self.is_bad = !self.is_bad;
                }
                self.is_bad && chance.hits(*bad)
            }
            Loss::Exact(packets) => has_data && packets.contains(&self.seen),
        }
    }
}
