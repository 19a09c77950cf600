//! Which words of a report may stand for which state of a sending kernel.
//!
//! The kernel speaks of its stack, a report of what would help. Words are in two classes: *narrow*
//! ones say the same thing; *wide* ones are what the network sees where the kernel sees something
//! else (a full path looks like a full congestion window), or what this kernel's record cannot
//! tell apart. Agreement is printed with narrow words alone, with wide ones, and with those that
//! the report names as alternatives.

use core::fmt::Write;

use crate::states::State;
use crate::truth::Fullness;

/// The words for one state, by the start of their names.
#[derive(Clone, Copy, Debug)]
pub struct Class {
    /// The kernel's state.
    pub state: State,
    /// The report's states that say the same.
    pub narrow: &'static [&'static str],
    /// Those that may stand for it, and why.
    pub wide: &'static [&'static str],
    /// Why those may.
    pub because: &'static str,
}

/// Shortens the table.
const fn class(
    state: State,
    narrow: &'static [&'static str],
    wide: &'static [&'static str],
    because: &'static str,
) -> Class {
    Class { state, narrow, wide, because }
}

/// Every state but those that judge nothing ([`State::Busy`], [`State::Unrecorded`]).
pub const CLASSES: [Class; 21] = [
    class(State::Handshake, &["handshake"], &["syn_retry"], "a lost SYN-ACK leaves no record here"),
    class(
        State::SynRetry,
        &["syn_retry"],
        &["handshake"],
        "a SYN lost before the tap leaves no packet",
    ),
    class(State::IdleAppThink, &["idle.app_think", "idle.kept_open"], &[], ""),
    class(
        State::IdlePeer,
        &[
            "idle.peer_think",
            "receiving",
            "idle.kept_open",
            "silence.no_answer",
            "silence.cut_short",
        ],
        &[],
        "",
    ),
    class(State::App, &["app"], &["last_flight"], "between two writes all is sent, as at the end"),
    class(
        State::AppPeer,
        &["app_window", "last_flight"],
        &["app", "idle.peer_think"],
        "the application waits for the peer while its own data is under way",
    ),
    class(
        State::Nagle,
        &["nagle_delack"],
        &["app"],
        "a short segment held looks like no segment written",
    ),
    class(
        State::CwndSlowStart,
        &["cwnd.slow_start", "cwnd.after_idle"],
        &["bandwidth.", "ack_path"],
        "a full path is a full window to the sender",
    ),
    class(
        State::CwndAvoidance,
        &["cwnd.avoidance", "cwnd.post_loss", "cwnd.cached_ssthresh", "cwnd.clamp"],
        &["bandwidth.", "ack_path"],
        "a full path is a full window to the sender",
    ),
    class(
        State::Defer,
        &["cwnd."],
        &["bandwidth.", "ack_path", "rwnd."],
        "the window that it waits for is not named",
    ),
    class(State::Rwnd, &["rwnd."], &[], ""),
    class(State::ZeroWindow, &["zero_window"], &[], ""),
    class(State::Sndbuf, &["sndbuf"], &["app_window"], "both emit the same packets"),
    class(State::Tsq, &["local_qdisc"], &["pacing"], "fq holds what TCP asks it to pace"),
    class(
        State::Pacing,
        &["pacing"],
        &["bandwidth.", "ack_path", "rwnd.", "local_qdisc"],
        "BBR paces at the rate that the path, a window or a shaper lets through",
    ),
    class(State::Recovery, &["recovery."], &[], ""),
    class(
        State::Loss,
        &["recovery."],
        &["rto_wait", "silence.no_ack", "cwnd.slow_start", "cwnd.post_loss"],
        "after a timeout the sender repeats in slow start",
    ),
    class(State::RtoWait, &["rto_wait", "silence.no_ack"], &[], ""),
    class(State::TlpWait, &["tlp_wait"], &[], ""),
    class(State::LastFlight, &["last_flight"], &[], ""),
    class(
        State::Closing,
        &["closing"],
        &["idle.kept_open"],
        "an application that closes late keeps open until then",
    ),
];

/// How well a word of a report fits a state.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub enum Fit {
    /// It says the same.
    Narrow,
    /// It may stand for it.
    Wide,
    /// It names an alternative that says the same or may stand for it.
    Alternative,
    /// The report does not decide.
    Undecided,
    /// It says something else.
    Wrong,
}

/// How a verdict, with its alternatives, fits a state; none where the truth judges nothing.
pub fn fit(state: State, verdict: &str, alternatives: &[String]) -> Option<Fit> {
    let class = CLASSES.iter().find(|class| class.state == state)?;
    let is_one_of = |words: &[&str], name: &str| {
        words.iter().any(|word| name == *word || (word.ends_with('.') && name.starts_with(word)))
    };
    let may_stand = |name: &str| is_one_of(class.narrow, name) || is_one_of(class.wide, name);
    Some(if is_one_of(class.narrow, verdict) {
        Fit::Narrow
    } else if is_one_of(class.wide, verdict) {
        Fit::Wide
    } else if alternatives.iter().any(|name| may_stand(name)) {
        Fit::Alternative
    } else if matches!(verdict, "unknown" | "capture_gap") {
        Fit::Undecided
    } else {
        Fit::Wrong
    })
}

/// States that a full link makes: whatever the sender waited for, no more would have come through.
pub fn yields(state: State) -> bool {
    matches!(
        state,
        State::CwndSlowStart
            | State::CwndAvoidance
            | State::Defer
            | State::Rwnd
            | State::Sndbuf
            | State::Tsq
            | State::Pacing
            | State::Recovery
            | State::Loss
    )
}

/// How well a verdict that fits the stack's word so fits while the link was known to be full.
pub fn fit_beside_link(
    by_stack: Fit,
    (state, link): (State, Fullness),
    verdict: &str,
    alternatives: &[String],
) -> Fit {
    if link == Fullness::NotKnown || !yields(state) {
        return by_stack;
    }
    let says = |name: &str| name.starts_with("bandwidth.");
    if says(verdict) {
        return Fit::Narrow;
    }
    match by_stack {
        // A window that is full is full, too; a wider one would only queue.
        Fit::Narrow if link == Fullness::Full && state != State::Rwnd => Fit::Wide,
        Fit::Undecided | Fit::Wrong if alternatives.iter().any(|name| says(name)) => {
            Fit::Alternative
        }
        by_stack => by_stack,
    }
}

/// The table as Markdown; `docs/accuracy.md` holds just this.
pub fn manual() -> String {
    let mut text =
        "| the kernel's state | the same | may stand for it | because |\n|---|---|---|---|\n"
            .to_owned();
    for Class { state, narrow, wide, because } in CLASSES {
        let words = |words: &[&str]| {
            let words: Vec<_> =
                words
                    .iter()
                    .map(|word| {
                        if word.ends_with('.') { format!("`{word}*`") } else { format!("`{word}`") }
                    })
                    .collect();
            words.join(", ")
        };
        let (name, narrow, wide) = (state.name(), words(narrow), words(wide));
        let _ = writeln!(text, "| `{name}` | {narrow} | {wide} | {because} |");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_state_that_judges_has_one_row() {
        for state in State::ALL {
            let rows = CLASSES.iter().filter(|class| class.state == state).count();
            let judges = !matches!(state, State::Busy | State::Unrecorded);
            assert_eq!(rows, usize::from(judges), "{}", state.name());
        }
    }

    #[test]
    fn narrow_comes_before_wide_and_wide_before_alternatives() {
        let fit = |state, verdict: &str, other: &str| fit(state, verdict, &[other.to_owned()]);
        assert_eq!(
            fit(State::CwndAvoidance, "cwnd.post_loss", "bandwidth.self_queue"),
            Some(Fit::Narrow)
        );
        assert_eq!(
            fit(State::CwndAvoidance, "bandwidth.self_queue", "cwnd.avoidance"),
            Some(Fit::Wide)
        );
        assert_eq!(fit(State::CwndAvoidance, "sndbuf", "cwnd.avoidance"), Some(Fit::Alternative));
        assert_eq!(fit(State::CwndAvoidance, "unknown", "sndbuf"), Some(Fit::Undecided));
        assert_eq!(fit(State::CwndAvoidance, "cwnd.slow_start", "sndbuf"), Some(Fit::Wrong));
        assert_eq!(
            fit(State::App, "app_window", "sndbuf"),
            Some(Fit::Wrong),
            "names are whole words"
        );
        assert_eq!(fit(State::Busy, "app", "app"), None);
    }
}
