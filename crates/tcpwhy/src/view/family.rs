//! States of one kind have one colour, on a terminal and in pictures.

use serde::Serialize;
use tcpwhy_words::page::Ink;

use crate::report::State;

/// The colour of a state's family on a terminal.
///
/// The colours are the nearest of the 256-colour cube to the palette of Okabe and Ito ("Color Universal Design",
/// 2008), which stays apart under all common colour blindness.
pub(super) const fn ink(state: State) -> Ink {
    match Family::of(state).colors() {
        Some((_, code)) => Ink::In(code),
        None => Ink::Plain,
    }
}

/// The same as a number of the 256 colours.
pub(super) const fn color(state: State) -> Option<u8> {
    match Family::of(state).colors() {
        Some((number, _)) => Some(number),
        None => None,
    }
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
    /// The number of its colour, and the code that a terminal takes.
    const fn colors(self) -> Option<(u8, &'static str)> {
        Some(match self {
            Self::Round => (175, "38;5;175"),
            Self::Loss => (166, "38;5;166"),
            Self::Window => (74, "38;5;74"),
            Self::Sender => (220, "38;5;220"),
            Self::Path => (36, "38;5;36"),
            Self::Congestion => (214, "38;5;214"),
            Self::Program => (245, "38;5;245"),
            Self::Unknown => return None,
        })
    }

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
