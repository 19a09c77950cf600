//! Timers of the sender that ran out before data that looks new.

use super::Verdict;
use crate::limits::proof::Proven;
use crate::limits::wait::{Probe, Wait};
use crate::report::State::{
    App, CaptureGap, IdleAppThink, RecoveryLoss, RtoWait, SynRetry, TlpWait,
};

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

/// What time was for that something proves afterwards.
pub(crate) fn proven(what: Proven) -> Verdict {
    match what {
        Proven::SynRepeated => Verdict::sure(SynRetry, 95),
        Proven::Probe => Verdict::sure(TlpWait, 92),
        Proven::Timeout => Verdict::sure(RtoWait, 92),
        Proven::ProbeUnseen => Verdict::sure(TlpWait, 80),
        Proven::TimeoutUnseen => Verdict::sure(RtoWait, 80),
        Proven::TimeoutBeforeCapture => Verdict::new(RtoWait, 75, &[TlpWait]),
        Proven::LoneRepeat => Verdict::sure(RecoveryLoss, 80),
        Proven::Gap => Verdict::sure(CaptureGap, 99),
        Proven::UnseenSends => Verdict::sure(CaptureGap, 90),
    }
}
