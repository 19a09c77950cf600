//! States of one kind have one colour, on a terminal and in pictures.

use serde::Serialize;
use tcpwhy_words::page::Ink;

use crate::report::State;

/// The colour of a state's family on a terminal.
///
/// The colours are the nearest of the 256-colour cube to the palette of Okabe and Ito ("Color Universal Design",
/// 2008), which stays apart under all common colour blindness.
pub(super) fn ink(state: State) -> Ink {
    Ink::In(match Family::of(state) {
        Family::Round => "38;5;175",
        Family::Loss => "38;5;166",
        Family::Window => "38;5;74",
        Family::Sender => "38;5;220",
        Family::Path => "38;5;36",
        Family::Congestion => "38;5;214",
        Family::Program => "38;5;245",
        Family::Unknown => return Ink::Plain,
    })
}

/// A kind of state.
#[derive(Clone, Copy, Debug, Eq, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Family {
    /// Opening, the last ACK, closing.
    Round,
    /// Losses and timers.
    Loss,
    /// The receiver's window.
    Window,
    /// The sender's host and its settings.
    Sender,
    /// The link.
    Path,
    /// The congestion window.
    Congestion,
    /// Programs.
    Program,
    /// Nothing that is known.
    Unknown,
}

impl Family {
    /// That of a state.
    pub(super) const fn of(state: State) -> Self {
        use State as S;
        match state {
            S::Handshake | S::Closing | S::LastFlight | S::IdleKeptOpen => Self::Round,
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
            | S::RecoveryEcn => Self::Loss,
            S::ZeroWindow | S::RwndCap | S::RwndAutotune | S::RwndReader => Self::Window,
            S::Sndbuf | S::AppWindow | S::NagleDelack | S::LocalQdisc | S::Pacing => Self::Sender,
            S::BandwidthSelfQueue
            | S::BandwidthExternal
            | S::BandwidthPolicer
            | S::BandwidthVariable
            | S::AckPath => Self::Path,
            S::CwndSlowStart
            | S::CwndAvoidance
            | S::CwndAfterIdle
            | S::CwndPostLoss
            | S::CwndCachedSsthresh
            | S::CwndClamp => Self::Congestion,
            S::Receiving | S::IdleAppThink | S::IdlePeerThink | S::App => Self::Program,
            S::CaptureGap | S::Unknown => Self::Unknown,
        }
    }
}
