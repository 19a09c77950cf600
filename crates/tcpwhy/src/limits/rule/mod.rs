//! The rules: what held the sender in a wait.
//!
//! Each rule is a pure function of what was true in the wait ([`Wait`]) and, where that is not enough, of the rounds
//! around it ([`Near`]). [`ORDER`] is the method: the first rule that answers is believed. What is nearest to the
//! sender's TCP is asked first, for it holds whatever else would hold, too; what is told by elimination comes last.
//! A rule stands in the file of what it proves, with its reason and its tests.
//!
//! To add a rule, write it there and put it into the table.

pub(crate) mod app;
pub(crate) mod buffer;
pub(crate) mod cwnd;
pub(crate) mod link;
pub(crate) mod nagle;
pub(crate) mod own_queue;
pub(crate) mod pace;
pub(crate) mod timer;
pub(crate) mod unseen;
pub(crate) mod window;

use super::near::Near;
use super::wait::Wait;
use crate::report::{State, Sure};

/// What a wait was for.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Verdict {
    pub(crate) state: State,
    pub(crate) sure: Sure,
    /// What looks the same in these packets.
    pub(crate) alternative: &'static [State],
}

impl Verdict {
    /// The packets exclude the rest.
    pub(crate) const fn shown(state: State) -> Self {
        Self { state, sure: Sure::Shown, alternative: &[] }
    }

    /// They speak for it, but do not exclude all else.
    pub(crate) const fn likely(state: State, alternative: &'static [State]) -> Self {
        Self { state, sure: Sure::Likely, alternative }
    }

    /// It is one of several that they do not tell apart.
    pub(crate) const fn possible(state: State, alternative: &'static [State]) -> Self {
        Self { state, sure: Sure::Possible, alternative }
    }

    /// One of `alternative`: these packets do not tell which.
    pub(crate) const fn unknown(alternative: &'static [State]) -> Self {
        Self::possible(State::Unknown, alternative)
    }
}

/// When a rule can be asked.
#[derive(Clone, Copy, Debug)]
enum Ask {
    /// At the send that ends the wait: what is known then is enough.
    AtSend(fn(&Wait) -> Option<Verdict>),
    /// When two more rounds have passed: waits look alike, rounds do not.
    TwoRoundsLater(fn(&Wait, &Near<'_>) -> Option<Verdict>),
}

/// A row of the method.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Rule {
    /// What it is called, for tests.
    #[cfg_attr(not(test), expect(dead_code, reason = "tests name rules"))]
    pub(crate) name: &'static str,
    ask: Ask,
}

const fn at_send(name: &'static str, ask: fn(&Wait) -> Option<Verdict>) -> Rule {
    Rule { name, ask: Ask::AtSend(ask) }
}

const fn later(name: &'static str, ask: fn(&Wait, &Near<'_>) -> Option<Verdict>) -> Rule {
    Rule { name, ask: Ask::TwoRoundsLater(ask) }
}

/// Why data in flight was not followed by more at once.
pub(crate) const ORDER: &[Rule] = &[
    // Nothing is said of what the capture lacks.
    at_send("blind", unseen::blind),
    // Below TCP: its own host's queue holds whatever windows allow.
    at_send("own queue", own_queue::stood_there),
    // By its length the segment itself tells: a full one goes when windows are open, a short one may not.
    at_send("Nagle, seen", nagle::held_short),
    // The receiver's word is exact: a window that moved, or stayed full, is no guess.
    at_send("window moved", window::moved),
    at_send("window stayed full", window::stayed_full),
    // All was acknowledged before: nothing that an ACK opens held the sender any more.
    at_send("window full until late", window::full_until_late),
    at_send("late each time", app::late_each_time),
    at_send("Nagle, tail", nagle::end_of_tail),
    at_send("slow pace", pace::slow),
    at_send("all acknowledged", app::all_acknowledged),
    // A timer that ran out while data was in flight.
    at_send("probe with new data", timer::probe_with_new_data),
    // An ACK let it out: less than a segment in flight fills no window, then the receiver's window is asked.
    at_send("short behind short", nagle::short_behind_short),
    at_send("window filled before", window::filled_before),
    at_send("window full", window::full),
    // From here on rounds tell. What the capture lacks of them, and what stood below TCP in all of one.
    later("round unknown", unseen::round_unknown),
    later("own queue all along", own_queue::stood_all_along),
    // A stream that never pauses, as a link sees it that is full before the tap.
    later("link, from afar", link::from_afar),
    // A send that came by itself, unless its ACK was late on a way that is not seen.
    later("late ACK", unseen::late_ack),
    later("pace", pace::clock),
    later("window at its edge", window::at_edge),
    later("pace, from afar", pace::from_afar),
    later("by itself", app::by_itself),
    // A queue that stands all the time: the link is full, whichever window ran beside it.
    later("link shared", link::shared_with_others),
    later("link full", link::queue_stands),
    later("link outgrown", link::outgrown),
    // A flight that stands still though its window would grow has another lid.
    later("window under a lid", window::under_lid),
    later("little from afar", buffer::little_from_afar),
    later("lid", buffer::lid),
    // What is left: the congestion window, whose phase its growth tells.
    later("congestion window", cwnd::holds),
];

/// What time without data in flight was for.
const QUIET: &[Rule] = &[
    at_send("blind", unseen::blind),
    at_send("late each time", app::writes_late_each_time),
    at_send("lost tail", timer::may_be_lost_tail),
    at_send("slow pace", pace::slow_without_flight),
    at_send("thinks", app::thinks),
];

/// What a wait with data in flight was for, if that shows when it ends.
pub(crate) fn at_its_end(wait: &Wait) -> Option<Verdict> {
    ask_at_send(ORDER, wait)
}

/// What it was for without data in flight.
pub(crate) fn quiet(wait: &Wait) -> Option<Verdict> {
    ask_at_send(QUIET, wait)
}

fn ask_at_send(rules: &[Rule], wait: &Wait) -> Option<Verdict> {
    rules.iter().find_map(|rule| match rule.ask {
        Ask::AtSend(ask) => ask(wait),
        Ask::TwoRoundsLater(_) => None,
    })
}

/// What a wait was for of which its end did not tell.
pub(crate) fn by_rounds(wait: &Wait, near: &Near<'_>) -> Verdict {
    let asked = ORDER.iter().find_map(|rule| match rule.ask {
        Ask::AtSend(_) => None,
        Ask::TwoRoundsLater(ask) => ask(wait, near),
    });
    asked.unwrap_or(Verdict::unknown(&[]))
}

#[cfg(test)]
mod tests;
