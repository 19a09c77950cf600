//! Numbers and states in words, the same in every view.

pub(super) use tcpwhy_words::said::{grouped, listed};
pub(super) use tcpwhy_words::tied::{
    bytes, count, exact_bytes, percent, rate, tie, tie_numbers, time,
};

use crate::report::{FrameRange, State};

/// Thousands set apart by commas, with a sign.
pub(super) fn grouped_signed(number: i64) -> String {
    let sign = if number < 0 { "-" } else { "" };
    format!("{sign}{}", grouped(number.unsigned_abs()))
}

/// `frame 7`, `frames 6-15`; nothing for the range of a report that knows none.
pub(super) fn frames(range: FrameRange) -> Option<String> {
    match (range.first, range.last) {
        (0, 0) => None,
        (first, last) if first == last => Some(format!("frame\u{a0}{first}")),
        (first, last) => Some(format!("frames\u{a0}{first}-{last}")),
    }
}

/// The two ends of a direction by their parts.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) struct Ends {
    /// Who sends in this direction.
    pub(super) sender: &'static str,
    /// Who receives.
    pub(super) receiver: &'static str,
}

/// The ends of direction `at` (0: client to server).
pub(super) const fn ends(at: usize) -> Ends {
    if at == 0 {
        Ends { sender: "client", receiver: "server" }
    } else {
        Ends { sender: "server", receiver: "client" }
    }
}

/// The name people use for a state, where it differs from the report's.
///
/// It follows "28 % of it": every phrase says where the time went.
pub(super) fn spent(state: State, ends: Ends) -> String {
    use State as S;
    let Ends { sender, receiver } = ends;
    let fixed = match state {
        S::CaptureGap => "inside a hole of the capture",
        S::Handshake => "opening the connection",
        S::SynRetry => "waiting to repeat a lost SYN",
        S::SilenceNoAck => "sending again what was never acknowledged",
        S::SilenceHole => "waiting for missing data that never came",
        S::SilenceNoAnswer => "waiting for an answer that never came",
        S::SilenceCutShort => "waiting for the rest of an answer, which never came",
        S::IdleKeptOpen => "kept open, and not used any more",
        S::RtoWait => "waiting for the retransmission timer",
        S::TlpWait => "waiting for the timer that probes for a lost tail",
        S::LastFlight => "waiting for the last ACKs: one round trip",
        S::RecoveryLoss => "repairing lost segments",
        S::RecoveryReorderSpurious => "repairing what was not lost but out of order",
        S::RecoveryCorrupt => "repairing damaged segments",
        S::RecoveryEcn => "slowing down for congestion marks",
        S::AppWindow => "stopped by the application protocol's own window",
        S::NagleDelack => "where Nagle's algorithm waits for an ACK",
        S::Pacing => "spacing packets out (pacing)",
        S::BandwidthSelfQueue => "at the path's full rate, behind its own queue",
        S::BandwidthExternal => "at a full path that others have a part of",
        S::BandwidthPolicer => "held down by a policer that drops what exceeds its rate",
        S::BandwidthVariable => "at the full rate of a path whose rate varies",
        S::AckPath => "waiting for ACKs that stand in a queue on their way back",
        S::CwndSlowStart => "in slow start, waiting for ACKs to open the congestion window",
        S::CwndAvoidance => "waiting for ACKs, the congestion window grows slowly",
        S::CwndAfterIdle => "waiting for ACKs, the congestion window was cut after a pause",
        S::CwndPostLoss => "waiting for ACKs, the congestion window was cut by an earlier loss",
        S::CwndCachedSsthresh => {
            "waiting for ACKs, slow start ended early at a threshold remembered from before"
        }
        S::CwndClamp => "waiting for ACKs, the congestion window never grows",
        S::Closing => "after the last data, up to the last packet",
        S::Unknown => "not decided by these packets",
        S::ZeroWindow => return format!("stopped: the {receiver} had shut its window"),
        S::Receiving => return format!("while the {receiver}'s data flowed"),
        S::IdleAppThink => return format!("while the {sender}'s application was silent"),
        S::IdlePeerThink => return format!("while the {receiver}'s application was silent"),
        S::RwndCap => {
            return format!("waiting for the {receiver}'s window, which is at its maximum");
        }
        S::RwndAutotune => {
            return format!("waiting for the {receiver}'s window, which is still growing");
        }
        S::RwndReader => {
            return format!(
                "waiting for the {receiver}'s application to read, which is not the network"
            );
        }
        S::Sndbuf => return format!("stopped by the {sender}'s full socket buffer"),
        S::App => {
            return format!(
                "waiting for the {sender}'s application to write more, which is not TCP"
            );
        }
        S::LocalQdisc => return format!("in a queue inside the {sender}'s own host"),
    };
    fixed.to_owned()
}

/// The meaning of a state with the ends of a direction named in it.
pub(super) fn meaning(state: State, ends: Ends) -> String {
    let Ends { sender, receiver } = ends;
    state
        .meaning()
        .replace("this side's", &format!("the {sender}'s"))
        .replace("the sender's", &format!("the {sender}'s"))
        .replace("the peer's", &format!("the {receiver}'s"))
        .replace("the receiver's", &format!("the {receiver}'s"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn thousands_are_set_apart_with_a_sign() {
        assert_eq!(grouped_signed(i64::MIN), "-9,223,372,036,854,775,808");
    }
}
