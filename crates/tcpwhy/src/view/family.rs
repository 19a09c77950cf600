//! The colours of states.

use tcpwhy_words::page::Ink;

use crate::report::State;

/// The colour of a state's family.
///
/// The colours are the nearest of the 256-colour cube to the palette of Okabe and Ito ("Color Universal Design",
/// 2008), which stays apart under all common colour blindness.
pub(super) fn ink(state: State) -> Ink {
    sgr(state).map_or(Ink::Plain, Ink::In)
}

fn sgr(state: State) -> Option<&'static str> {
    use State as S;
    Some(match state {
        S::Handshake | S::Closing | S::LastFlight | S::IdleKeptOpen => "38;5;175",
        S::SynRetry
        | S::SilenceNoAck
        | S::SilenceHole
        | S::SilenceNoAnswer
        | S::SilenceCutShort
        | S::RtoWait
        | S::TlpWait
        | S::RecoveryLoss
        | S::RecoveryReorderSpurious
        | S::RecoveryCorrupt
        | S::RecoveryEcn => "38;5;166",
        S::ZeroWindow | S::RwndCap | S::RwndAutotune | S::RwndReader => "38;5;74",
        S::Sndbuf | S::AppWindow | S::NagleDelack | S::LocalQdisc | S::Pacing => "38;5;220",
        S::BandwidthSelfQueue
        | S::BandwidthExternal
        | S::BandwidthPolicer
        | S::BandwidthVariable => "38;5;36",
        S::CwndSlowStart
        | S::CwndAvoidance
        | S::CwndAfterIdle
        | S::CwndPostLoss
        | S::CwndCachedSsthresh
        | S::CwndClamp => "38;5;214",
        S::Receiving | S::IdleAppThink | S::IdlePeerThink | S::App => "38;5;245",
        S::CaptureGap | S::Unknown => return None,
    })
}
