//! Numbers and states in words, the same in every view.
//!
//! A number keeps its unit: they are joined by a no-break space, which [`super::page`] prints as
//! a plain one.

use crate::report::{FrameRange, State};
use crate::units::{BitRate, Bytes, Duration};

/// A span of time, three significant digits.
pub(super) fn time(ns: i64) -> String {
    if ns == 0 {
        return "0".to_owned();
    }
    tie(&Duration(ns).to_string())
}

/// A number of bytes.
pub(super) fn bytes(count: u64) -> String {
    if count < 10_000 {
        tie(&format!("{} B", grouped(count)))
    } else {
        tie(&Bytes(count).to_string())
    }
}

/// A number of bytes to the byte.
pub(super) fn exact_bytes(count: u64) -> String {
    tie(&format!("{} B", grouped(count)))
}

/// A rate.
pub(super) fn rate(bps: u64) -> String {
    tie(&BitRate(bps).to_string())
}

/// `1 segment`, `12,345 segments`.
pub(super) fn count(number: u64, noun: &str) -> String {
    let plural = if number == 1 { "" } else { "s" };
    format!("{}\u{a0}{noun}{plural}", grouped(number))
}

/// Whole percents: `45 %`; what is there but rounds to nothing is `<1 %`, all but a rest `>99 %`.
pub(super) fn percent(part: i64, whole: i64) -> String {
    let share = Duration(part).percent_of(Duration(whole));
    if whole <= 0 {
        return "?\u{a0}%".to_owned();
    }
    if part > 0 && share < 0.5 {
        "<1\u{a0}%".to_owned()
    } else if part < whole && share >= 99.5 {
        ">99\u{a0}%".to_owned()
    } else {
        format!("{share:.0}\u{a0}%")
    }
}

/// Thousands set apart by commas.
pub(super) fn grouped(number: u64) -> String {
    group(&number.to_string())
}

/// The same with a sign.
pub(super) fn grouped_signed(number: i64) -> String {
    let sign = if number < 0 { "-" } else { "" };
    format!("{sign}{}", grouped(number.unsigned_abs()))
}

fn group(digits: &str) -> String {
    let mut out = String::with_capacity(digits.len() + digits.len() / 3);
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

/// `frame 7`, `frames 6-15`; nothing for the range of a report that knows none.
pub(super) fn frames(range: FrameRange) -> Option<String> {
    match (range.first, range.last) {
        (0, 0) => None,
        (first, last) if first == last => Some(format!("frame\u{a0}{first}")),
        (first, last) => Some(format!("frames\u{a0}{first}-{last}")),
    }
}

/// `a`, `a and b`, `a, b and c`.
pub(super) fn listed(items: &[String]) -> String {
    match items {
        [] => String::new(),
        [one] => one.clone(),
        [init @ .., last] => format!("{} and {last}", init.join(", ")),
    }
}

/// Spaces made unbreakable.
pub(super) fn tie(text: &str) -> String {
    text.replace(' ', "\u{a0}")
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
        S::RtoWait => "waiting for the retransmission timer after a loss",
        S::TlpWait => "waiting for the timer that probes for a lost tail",
        S::LastFlight => "waiting for the last ACKs, which only distance decides",
        S::RecoveryLoss => "repairing lost segments",
        S::RecoveryReorderSpurious => "repairing what was not lost but out of order",
        S::RecoveryCorrupt => "repairing damaged segments",
        S::RecoveryEcn => "slowing down for congestion marks",
        S::AppWindow => "stopped by the application protocol's own window",
        S::NagleDelack => "where Nagle's algorithm waits for a delayed ACK",
        S::Pacing => "spacing packets out (pacing)",
        S::BandwidthSelfQueue => "at the path's full rate, behind its own queue",
        S::BandwidthExternal => "behind other traffic that fills the path",
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
        S::Closing => "closing the connection",
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

/// Whether an application, and not TCP or the network, is what held the sender.
pub(super) const fn is_silence(state: State) -> bool {
    matches!(state, State::IdleAppThink | State::IdlePeerThink | State::App)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn thousands_are_set_apart() {
        let shown = [0, 999, 1_000, 46_080, 1_234_567].map(grouped);
        assert_eq!(shown, ["0", "999", "1,000", "46,080", "1,234,567"]);
        assert_eq!(grouped_signed(i64::MIN), "-9,223,372,036,854,775,808");
    }

    #[test]
    fn a_share_that_exists_is_never_shown_as_nothing() {
        assert_eq!(percent(1, 1_000_000), "<1\u{a0}%");
        assert_eq!(percent(999_999, 1_000_000), ">99\u{a0}%");
        assert_eq!(percent(0, 1_000_000), "0\u{a0}%");
        assert_eq!(percent(1, 0), "?\u{a0}%");
    }

    #[test]
    fn lists_read_as_a_person_says_them() {
        let items = ["a", "b", "c"].map(str::to_owned);
        assert_eq!(
            [listed(&items[..1]), listed(&items[..2]), listed(&items)],
            ["a", "a and b", "a, b and c"]
        );
    }
}
