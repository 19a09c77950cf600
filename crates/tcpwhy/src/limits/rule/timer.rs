//! Timers of the sender that ran out before data that looks new.

use super::Verdict;
use crate::limits::wait::{Probe, Wait};
use crate::report::State::{App, IdleAppThink, RtoWait, TlpWait};

/// The probe of the tail sends new data if there is any (`tcp_send_loss_probe`). An application that pauses just that
/// long looks the same, and away from the sender a timeout behind a probe that was lost before the tap.
pub(super) fn probe_with_new_data(wait: &Wait) -> Option<Verdict> {
    match wait.probe {
        Probe::None => None,
        Probe::Tail => Some(Verdict::new(TlpWait, 60, &[App])),
        Probe::TailOrTimeout => Some(Verdict::new(TlpWait, 60, &[App, RtoWait])),
    }
}

/// Nothing was in flight that was seen, and it took as long as a chain of timers.
pub(super) fn may_be_lost_tail(wait: &Wait) -> Option<Verdict> {
    wait.may_be_lost_tail.then_some(Verdict::new(IdleAppThink, 50, &[RtoWait, TlpWait]))
}
