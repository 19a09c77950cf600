//! How tcpwhy tells each state of the account, for people: `tcpwhy doc STATE` and the manual print it.
//!
//! What a state means is with its name ([`State::meaning`]); the exact conditions are those of
//! `docs/reference/limits-method.md` section 6, which these sentences follow.

use crate::report::State;

/// In a few sentences, how `tcpwhy` tells `state`.
#[expect(clippy::too_many_lines, reason = "a flat match, a sentence a state")]
pub(super) const fn told(state: State) -> &'static str {
    use State as S;
    match state {
        S::CaptureGap => {
            "Data was acknowledged that the capture lacks and that was never retransmitted, or the capture says itself \
             that packets are missing."
        }
        S::Handshake => "From the first packet until data can flow.",
        S::SynRetry => "From a SYN or SYN-ACK to its repeat: its timer ran.",
        S::SilenceNoAck => {
            "To the end of the connection: from the first send of the oldest data (or from the last ACK before that, if it \
             is later) on. That data was retransmitted three times or more, and no ACK of it ever came. Nothing was repaired."
        }
        S::SilenceHole => {
            "To the end of the connection, away from the sender: later data, or the sender's own sequence numbers, prove that \
             data was sent which never passed here, and the receiver says that it lacks it."
        }
        S::SilenceNoAnswer => {
            "From the ACK of the last request, for a second or more, until one side closed or the capture ended; each earlier \
             request had an answer, three times as fast."
        }
        S::SilenceCutShort => {
            "From the last data of an answer that announced more (Content-Length), all of it acknowledged and the window \
             open, until one side closed or the capture ended."
        }
        S::IdleKeptOpen => {
            "All is acknowledged both ways and nobody has to speak, for 100 ms or more, until the first FIN or RST."
        }
        S::RtoWait => {
            "From the last progress to a repeat of the oldest unacknowledged data that no ACK released, after at \
             least 80 % of the timeout that the round trips give."
        }
        S::TlpWait => {
            "From the last progress to a repeat of the newest data that no ACK released, after about two round trips: \
             the tail loss probe, which goes before the timeout (RFC 8985 section 7)."
        }
        S::ZeroWindow => {
            "Less is left of the announced window than a segment and than half of the largest, with data pending: \
             probes were sent, or the transfer went on as soon as the window opened."
        }
        S::LastFlight => {
            "All that the application wrote is sent and its last ACK is on the way: a round trip that no setting \
             shortens."
        }
        S::Receiving => "Nothing of this side is in flight, and the peer's data flows.",
        S::IdleAppThink => {
            "Nothing is in flight either way, and the next data is this side's: its application was silent."
        }
        S::IdlePeerThink => {
            "Nothing is in flight either way, and the next data is the peer's: its application was silent."
        }
        S::RecoveryLoss => {
            "From the first repair after SACK or duplicate ACKs until all that was sent before it is acknowledged."
        }
        S::RecoveryReorderSpurious => {
            "A repair as in `recovery.loss`, where the receiver reports that it had all that was retransmitted (D-SACK), \
             or echoes the original's timestamp."
        }
        S::RecoveryCorrupt => {
            "A repair as in `recovery.loss`, where the lost segment was captured with a wrong checksum."
        }
        S::RecoveryEcn => {
            "After an ACK that echoes a congestion mark, where nothing was retransmitted."
        }
        S::RwndCap => {
            "Less than a segment is left of the receiver's window, the congestion window allows more, and the window \
             is as large as it was lately."
        }
        S::RwndAutotune => {
            "Less than a segment is left of the receiver's window, the congestion window allows more, and the window is larger than it ever was: it is still opening."
        }
        S::RwndReader => {
            "Less than a segment is left of the receiver's window, the congestion window allows more, and the window is smaller than it was lately: unread data fills the buffer."
        }
        S::Sndbuf => {
            "ACKs release the sends, the flight stays at one size for four rounds or more, and both windows have \
             room: the socket's buffer is the likeliest. A clamped congestion window, an application's own window \
             or one write a round trip look alike and are named beside it."
        }
        S::AppWindow => {
            "The flight stays at one size as in `sndbuf`, but small pieces of the peer's data release the sends, no \
             bare ACKs: the protocol's window (HTTP/2, SSH)."
        }
        S::NagleDelack => {
            "A short segment is sent only when the short one before it is acknowledged, most surely where that ACK \
             is delayed by 40 to 200 ms."
        }
        S::App => {
            "Both windows and the buffer have room, nothing is sent, and what comes next follows no ACK: the \
             application wrote nothing."
        }
        S::LocalQdisc => {
            "Timestamps show that packets stood between the sender's TCP and a capture on its own host, longer than \
             the constant part, while they left evenly."
        }
        S::Pacing => "Sends are spaced evenly, no ACK releases them, and all windows have room.",
        S::BandwidthSelfQueue => {
            "The delivery rate is flat while the round trip is above its least and follows this transfer's own \
             flight."
        }
        S::BandwidthExternal => {
            "There is a queue; some of this transfer's packets leave the narrowest link as close as it lets them, others \
             much later: it gets two thirds of the link or less."
        }
        S::BandwidthPolicer => {
            "Losses begin when a credit is spent, and the rate is flat afterwards without a queue."
        }
        S::BandwidthVariable => {
            "The path is full, and what it delivers goes up and down by a third and more, or fell by it."
        }
        S::AckPath => {
            "The round trip is above its least, and for most of that the ACKs waited in a queue on their way back: their time \
             stamps tell at the sender's host, and at others the sends that do not echo them yet."
        }
        S::CwndSlowStart => {
            "The flight fills the congestion window that Linux's slow start allows, the receiver's window has room, \
             and an ACK releases the next send."
        }
        S::CwndAvoidance => {
            "The flight fills the congestion window after slow start ended, and there is no queue: the window grows by \
             little each round."
        }
        S::CwndAfterIdle => {
            "The flight fills the congestion window after a pause longer than the retransmission timeout: the first \
             flight stopped at what Linux's halvings leave."
        }
        S::CwndPostLoss => {
            "The flight fills the congestion window after a loss cut it, until it has grown back."
        }
        S::CwndCachedSsthresh => {
            "The flight fills the congestion window, and slow start ended without loss, queue or long train of ACKs: a \
             remembered or configured threshold is the likeliest left."
        }
        S::CwndClamp => {
            "The flight fills a congestion window that never grows: a clamp on the route or the socket; so far only \
             named beside others."
        }
        S::Closing => {
            "After the last data was acknowledged both ways, or after the first FIN or RST behind that, until the last packet."
        }
        S::Unknown => {
            "None of the above is shown by these packets; the evidence of the interval says why."
        }
    }
}
