//! Numbers and states in words, the same in every view.
//!
//! A number keeps its unit: they are joined by a no-break space, which [`super::page`] prints as
//! a plain one.

use crate::report::{FrameRange, State};
use crate::units::BitRate;
use crate::words;

pub(super) use crate::words::{grouped, listed};

/// A span of time, three significant digits.
pub(super) fn time(ns: i64) -> String {
    tie(&words::time(ns))
}

/// A number of bytes.
pub(super) fn bytes(count: u64) -> String {
    tie(&words::bytes(count))
}

/// A number of bytes to the byte.
pub(super) fn exact_bytes(count: u64) -> String {
    tie(&words::exact_bytes(count))
}

/// A rate.
pub(super) fn rate(bps: u64) -> String {
    tie(&BitRate(bps).to_string())
}

/// `1 segment`, `12,345 segments`.
pub(super) fn count(number: u64, noun: &str) -> String {
    let told = words::count(number, noun);
    told.replacen(' ', "\u{a0}", 1)
}

/// Whole percents: `45 %`.
pub(super) fn percent(part: i64, whole: i64) -> String {
    tie(&words::percent(part, whole))
}

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

/// Spaces made unbreakable.
pub(super) fn tie(text: &str) -> String {
    text.replace(' ', "\u{a0}")
}

/// The same for those that follow a digit: a number keeps its unit.
pub(super) fn tie_numbers(text: &str) -> String {
    let mut after_digit = false;
    let tied = |letter: char| {
        let tied = if letter == ' ' && after_digit { '\u{a0}' } else { letter };
        after_digit = letter.is_ascii_digit();
        tied
    };
    text.chars().map(tied).collect()
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
        S::LastFlight => "waiting for the last ACKs, which only distance decides",
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

    #[test]
    fn a_number_keeps_its_unit() {
        assert_eq!(tie_numbers("took 63.1 ms of 2 s"), "took 63.1\u{a0}ms of 2\u{a0}s");
    }
}
