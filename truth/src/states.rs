//! What a sending kernel waits for.
//!
//! These are the kernel's own views, so there is no bandwidth among them: a full bottleneck is a
//! full congestion window to it, or a repair.

use serde::{Deserialize, Serialize};

/// What a sending kernel waited for at an instant.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd, Serialize, Deserialize)]
pub enum State {
    /// Until the connection is established.
    #[serde(rename = "handshake")]
    Handshake,
    /// For the timer that repeats a lost SYN.
    #[serde(rename = "syn_retry")]
    SynRetry,
    /// All acknowledged; its application does not wait in read: it works, or sleeps.
    #[serde(rename = "idle.app_think")]
    IdleAppThink,
    /// All acknowledged; its application waits in read.
    #[serde(rename = "idle.peer")]
    IdlePeer,
    /// All written is sent and not all acknowledged; the application works, and will write more.
    #[serde(rename = "app")]
    App,
    /// The same, but the application waits in read: a message of the peer must come first.
    #[serde(rename = "app.peer")]
    AppPeer,
    /// Nagle's algorithm holds a short segment (RFC 896).
    #[serde(rename = "nagle")]
    Nagle,
    /// The congestion window is full, below `ssthresh`.
    #[serde(rename = "cwnd.slow_start")]
    CwndSlowStart,
    /// The congestion window is full, at or above `ssthresh`.
    #[serde(rename = "cwnd.avoidance")]
    CwndAvoidance,
    /// Waits to fill a super-segment, for no window's sake (`tcp_tso_should_defer`).
    #[serde(rename = "defer")]
    Defer,
    /// The receiver's window has no room for the next segment.
    #[serde(rename = "rwnd")]
    Rwnd,
    /// The receiver's window is shut.
    #[serde(rename = "zero_window")]
    ZeroWindow,
    /// The application is blocked in write and all it could write is sent.
    #[serde(rename = "sndbuf")]
    Sndbuf,
    /// Enough of its bytes stand below TCP, in a queue of its own host (`tcp_small_queue_check`).
    #[serde(rename = "tsq")]
    Tsq,
    /// The pacing timer.
    #[serde(rename = "pacing")]
    Pacing,
    /// Fast recovery (`TCP_CA_Recovery`, or a reduced window in `TCP_CA_CWR`).
    #[serde(rename = "recovery")]
    Recovery,
    /// Repair after a retransmission timeout (`TCP_CA_Loss`).
    #[serde(rename = "loss")]
    Loss,
    /// The retransmission timer.
    #[serde(rename = "rto_wait")]
    RtoWait,
    /// The tail loss probe's timer.
    #[serde(rename = "tlp_wait")]
    TlpWait,
    /// All is sent and nothing more will be written.
    #[serde(rename = "last_flight")]
    LastFlight,
    /// All is acknowledged and nothing more will be written.
    #[serde(rename = "closing")]
    Closing,
    /// Within one call of the kernel.
    #[serde(rename = "busy")]
    Busy,
    /// No record says.
    #[serde(rename = "unrecorded")]
    Unrecorded,
}

impl State {
    /// All, in order.
    pub const ALL: [Self; 23] = [
        Self::Handshake,
        Self::SynRetry,
        Self::IdleAppThink,
        Self::IdlePeer,
        Self::App,
        Self::AppPeer,
        Self::Nagle,
        Self::CwndSlowStart,
        Self::CwndAvoidance,
        Self::Defer,
        Self::Rwnd,
        Self::ZeroWindow,
        Self::Sndbuf,
        Self::Tsq,
        Self::Pacing,
        Self::Recovery,
        Self::Loss,
        Self::RtoWait,
        Self::TlpWait,
        Self::LastFlight,
        Self::Closing,
        Self::Busy,
        Self::Unrecorded,
    ];

    /// Its name, as in the JSON.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Handshake => "handshake",
            Self::SynRetry => "syn_retry",
            Self::IdleAppThink => "idle.app_think",
            Self::IdlePeer => "idle.peer",
            Self::App => "app",
            Self::AppPeer => "app.peer",
            Self::Nagle => "nagle",
            Self::CwndSlowStart => "cwnd.slow_start",
            Self::CwndAvoidance => "cwnd.avoidance",
            Self::Defer => "defer",
            Self::Rwnd => "rwnd",
            Self::ZeroWindow => "zero_window",
            Self::Sndbuf => "sndbuf",
            Self::Tsq => "tsq",
            Self::Pacing => "pacing",
            Self::Recovery => "recovery",
            Self::Loss => "loss",
            Self::RtoWait => "rto_wait",
            Self::TlpWait => "tlp_wait",
            Self::LastFlight => "last_flight",
            Self::Closing => "closing",
            Self::Busy => "busy",
            Self::Unrecorded => "unrecorded",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_those_of_the_json() {
        for state in State::ALL {
            let json = serde_json::to_string(&state).expect("a name");
            assert_eq!(json, format!("\"{}\"", state.name()));
        }
    }
}
