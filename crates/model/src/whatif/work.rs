//! How much is run for one connection: a limit in events of the model, which are the same on every machine, so
//! that a what-if takes seconds whatever the capture, and says where it stopped short of trying everything.

use core::cell::Cell;

/// Events that may still be run. What runs takes from it; at its end a run is broken off.
#[derive(Debug)]
pub(super) struct Work {
    most: u64,
    left: Cell<u64>,
    was_short: Cell<bool>,
}

impl Work {
    pub(super) const fn of(most: u64) -> Self {
        Self { most, left: Cell::new(most), was_short: Cell::new(false) }
    }

    pub(super) fn left(&self) -> u64 {
        self.left.get()
    }

    pub(super) fn spent(&self) -> u64 {
        self.most - self.left.get()
    }

    pub(super) fn spend(&self, events: u64) {
        self.left.set(self.left().saturating_sub(events));
    }

    /// Something was not run, or not to its end, because nothing was left for it.
    pub(super) fn was_short(&self) -> bool {
        self.was_short.get()
    }

    pub(super) fn ran_short(&self) {
        self.was_short.set(true);
    }

    /// Does something with all but this reserve of what is left.
    pub(super) fn but<T>(&self, reserve: u64, does: impl FnOnce(&Self) -> T) -> T {
        let part = Self::of(self.left().saturating_sub(reserve));
        let done = does(&part);
        self.spend(part.spent());
        if part.was_short() {
            self.ran_short();
        }
        done
    }
}
