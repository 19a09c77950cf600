//! Timers of the sender that ran out before data that looks new.

use super::Verdict;
use super::rivals::Seen;
use crate::limits::proof::Proven;
use crate::limits::wait::{Probe, Wait};
use crate::report::State::{CaptureGap, IdleAppThink, RecoveryLoss, RtoWait, SynRetry, TlpWait};

/// The probe of the tail sends new data if there is any (`tcp_send_loss_probe`). An application that pauses just that
/// long looks the same, and away from the sender a timeout behind a probe that was lost before the tap.
pub(super) fn probe_with_new_data(wait: &Wait) -> Option<Verdict> {
    match wait.probe {
        Probe::None => None,
        Probe::Tail => Some(Verdict::likely(TlpWait).seen(Seen::LateAsProbe { or_timeout: false })),
        Probe::TailOrTimeout => {
            Some(Verdict::likely(TlpWait).seen(Seen::LateAsProbe { or_timeout: true }))
        }
    }
}

/// Nothing was in flight that was seen, and it took as long as a chain of timers.
pub(super) fn may_be_lost_tail(wait: &Wait) -> Option<Verdict> {
    wait.may_be_lost_tail.then_some(Verdict::possible(IdleAppThink).seen(Seen::LongAsTimers))
}

/// What time was for that something proves afterwards.
pub(crate) fn proven(what: Proven) -> Verdict {
    match what {
        Proven::SynRepeated => Verdict::shown(SynRetry),
        Proven::Probe => Verdict::shown(TlpWait),
        Proven::Timeout => Verdict::shown(RtoWait),
        Proven::ProbeUnseen => Verdict::likely(TlpWait),
        Proven::TimeoutUnseen => Verdict::likely(RtoWait),
        Proven::TimeoutBeforeCapture => Verdict::likely(RtoWait).seen(Seen::BeforeCapture),
        Proven::LoneRepeat => Verdict::likely(RecoveryLoss),
        Proven::Gap | Proven::UnseenSends => Verdict::shown(CaptureGap),
    }
}
