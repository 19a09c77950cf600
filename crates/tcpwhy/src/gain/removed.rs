//! What may be removed, and the states that go with it.

use crate::report::State as S;

/// A cause that is thought away.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Removed {
    /// The first flight has this many bytes; `None`: all.
    SlowStart {
        /// Bytes of it.
        first_flight: Option<u64>,
    },
    /// The connection has sent its like before.
    Reuse,
    /// The receive window is larger.
    Window,
    /// The receiver's program reads at once.
    Reader,
    /// The send buffer is larger.
    SendBuffer,
    /// The window of the protocol above TCP is larger.
    AppWindow,
    /// The link is this many times as fast.
    Link {
        /// Twice is 2.
        times: u32,
    },
    /// Others leave the link.
    Others,
    /// Nothing is lost.
    Loss,
    /// What is lost is noticed without a timer.
    Timers,
    /// No SYN is lost.
    Syn,
    /// The handshake falls away.
    Opening,
    /// The server answers at once.
    Think,
    /// The sending program writes at once.
    Writer,
    /// Small writes leave at once.
    Nagle,
    /// A pause leaves the congestion window as it is.
    IdleRestart,
    /// Slow start goes on until the path is full.
    EarlyExit,
    /// The queue on the sender's host is empty.
    OwnQueue,
    /// The sender does not space its packets.
    Pacing,
    /// Nothing is taken for lost that only came late.
    Reordering,
    /// No router marks packets.
    Marks,
}

/// The states that end with a cause.
pub const fn family(removed: Removed) -> &'static [S] {
    use Removed as R;
    match removed {
        R::SlowStart { .. } => &[S::CwndSlowStart],
        R::Reuse => &[S::CwndSlowStart, S::RwndAutotune],
        R::Window => &[S::RwndCap, S::RwndAutotune],
        R::Reader => &[S::RwndReader, S::ZeroWindow, S::RwndCap, S::RwndAutotune],
        R::SendBuffer => &[S::Sndbuf],
        R::AppWindow => &[S::AppWindow],
        R::Link { .. } => &[
            S::BandwidthSelfQueue,
            S::BandwidthExternal,
            S::BandwidthVariable,
            S::BandwidthPolicer,
            S::RecoveryLoss,
            S::CwndPostLoss,
            S::CwndAvoidance,
        ],
        R::Others => &[S::BandwidthExternal, S::BandwidthVariable],
        R::Loss => &LOSS,
        R::Timers => &[S::RtoWait, S::TlpWait],
        R::Syn => &[S::SynRetry],
        R::Opening => &[S::Handshake],
        R::Think => &[S::IdlePeerThink],
        R::Writer => &[S::App],
        R::Nagle => &[S::NagleDelack],
        R::IdleRestart => &[S::CwndAfterIdle],
        R::EarlyExit => &[S::CwndAvoidance, S::CwndCachedSsthresh, S::CwndClamp],
        R::OwnQueue => &[S::LocalQdisc],
        R::Pacing => &[S::Pacing],
        R::Reordering => &[S::RecoveryReorderSpurious],
        R::Marks => &[S::RecoveryEcn],
    }
}

/// What losses make a sender wait for.
pub(super) const LOSS: [S; 8] = [
    S::RecoveryLoss,
    S::RecoveryCorrupt,
    S::CwndPostLoss,
    S::CwndAvoidance,
    S::CwndCachedSsthresh,
    S::RtoWait,
    S::TlpWait,
    S::BandwidthPolicer,
];

/// The path is full.
pub(super) const LINK: [S; 3] = [S::BandwidthSelfQueue, S::BandwidthExternal, S::BandwidthVariable];

/// What ends with the cause because it followed from it.
pub(super) const fn follows(removed: Removed) -> &'static [S] {
    use Removed as R;
    match removed {
        // A program that stopped reading has its sender probe, pause and begin again.
        R::Reader => &[
            S::NagleDelack,
            S::TlpWait,
            S::RtoWait,
            S::CwndAfterIdle,
            S::Sndbuf,
            S::IdleAppThink,
            S::IdleKeptOpen,
            S::CwndSlowStart,
            S::LastFlight,
        ],
        // A program that pauses has Nagle's algorithm hold what it wrote, and its next flight begins small.
        R::Writer => &[
            S::NagleDelack,
            S::IdleAppThink,
            S::IdleKeptOpen,
            S::CwndAfterIdle,
            S::CwndSlowStart,
            S::LastFlight,
            S::Sndbuf,
        ],
        // Linux paces by the congestion window (`tcp_update_pacing_rate`), which losses cut.
        R::Loss | R::EarlyExit => &[S::Pacing],
        // The last short segment waits while a full one is in flight.
        R::Window | R::SendBuffer => &[S::NagleDelack],
        _ => &[],
    }
}

/// Waits that are no climb: they stay as long as they were unless the cause takes them along.
pub(super) const fn is_wait(state: S) -> bool {
    matches!(
        state,
        S::CaptureGap
            | S::SilenceNoAck
            | S::SilenceHole
            | S::SilenceNoAnswer
            | S::SilenceCutShort
            | S::RtoWait
            | S::TlpWait
            | S::ZeroWindow
            | S::NagleDelack
            | S::IdleAppThink
            | S::IdlePeerThink
            | S::IdleKeptOpen
            | S::App
            | S::LocalQdisc
            | S::Pacing
    ) || is_repair(state)
}

/// Repairs are waits, but data may flow in them.
pub(super) const fn is_repair(state: S) -> bool {
    matches!(
        state,
        S::RecoveryLoss | S::RecoveryReorderSpurious | S::RecoveryCorrupt | S::RecoveryEcn
    )
}
