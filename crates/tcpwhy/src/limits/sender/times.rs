//! Instants of this sender in the report's time.

use super::Sender;
use crate::clocks::{StackTime, TapTime};

impl Sender {
    /// `at` in the report's time.
    pub(crate) fn told_at(&self, at: StackTime) -> i64 {
        at.in_report(self.shift_in)
    }

    /// When what would have passed at `tap` if the tap stood at this sender passed, in the report's time.
    pub(crate) fn on_own_time(&self, tap: TapTime) -> i64 {
        self.told_at(tap.left(self.terms.own_way))
    }

    /// When all was acknowledged, and nothing of the peer came since, in the report's time.
    pub(crate) fn done_at(&self) -> Option<i64> {
        (self.flight.outstanding() == 0 && self.handshake.is_over)
            .then(|| self.told_at(self.progress.done))
    }
}
