//! The rules: what held the sender in a wait.
//!
//! Each rule is a pure function of what was true in the wait ([`Wait`]) and, where that is not enough, of the rounds
//! around it ([`Near`]). [`ORDER`] is the method: the first rule that answers is believed. What is nearest to the
//! sender's TCP is asked first, for it holds whatever else would hold, too; what elimination shows comes last. A rule
//! is in the file of what it proves, with its reason and its tests.
//!
//! [`rivals`] tells what else a rule's packets allow. To add a rule, write it there and put it into the table.

#[cfg(feature = "ablation")]
pub mod ablation;
pub(crate) mod ack_path;
pub(crate) mod app;
pub(crate) mod buffer;
pub(crate) mod cwnd;
pub(crate) mod link;
pub(crate) mod method;
pub(crate) mod nagle;
pub(crate) mod own_queue;
pub(crate) mod pace;
pub(crate) mod rivals;
pub(crate) mod timer;
pub(crate) mod unseen;
pub(crate) mod window;

use self::rivals::{Seen, rivals};
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
    pub(crate) const fn likely(state: State) -> Self {
        Self { state, sure: Sure::Likely, alternative: &[] }
    }

    /// It is one of several that they do not tell apart.
    pub(crate) const fn possible(state: State) -> Self {
        Self { state, sure: Sure::Possible, alternative: &[] }
    }

    /// These packets do not tell.
    pub(crate) const fn unknown() -> Self {
        Self::possible(State::Unknown)
    }

    /// It may be whatever the table has for it where this was `seen`.
    pub(crate) const fn seen(self, seen: Seen) -> Self {
        Self { alternative: rivals(self.state, seen), ..self }
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
    /// What it is called.
    pub(crate) name: &'static str,
    /// The file and the function that it is.
    pub(crate) place: (&'static str, &'static str),
    /// What it can tell.
    pub(crate) states: &'static [State],
    ask: Ask,
}

impl Rule {
    /// Whether it waits for two more rounds.
    pub(crate) fn waits(&self) -> bool {
        matches!(self.ask, Ask::TwoRoundsLater(_))
    }

    /// `verdict`, which is this rule's.
    fn told(&self, verdict: Verdict) -> Verdict {
        debug_assert!(self.states.contains(&verdict.state), "{}: {:?}", self.name, verdict.state);
        verdict
    }
}

macro_rules! rules {
    ($(#[$doc:meta])* $table:ident:
     $($when:ident $name:literal, $file:ident::$ask:ident => [$($state:ident),+];)+) => {
        $(#[$doc])*
        pub(crate) const $table: &[Rule] = &[$(Rule {
            name: $name,
            place: (stringify!($file), stringify!($ask)),
            states: &[$(State::$state),+],
            ask: rules!(@$when $file::$ask),
        }),+];
    };
    (@at_send $file:ident::$ask:ident) => { Ask::AtSend($file::$ask) };
    (@later $file:ident::$ask:ident) => { Ask::TwoRoundsLater($file::$ask) };
}

rules! {
    /// Why data in flight was not followed by more at once.
    ORDER:
    // Nothing is said of what the capture lacks.
    at_send "blind", unseen::blind => [Unknown];
    // Below TCP: its own host's queue holds whatever windows allow.
    at_send "own queue", own_queue::stood_there => [LocalQdisc];
    // By its length the segment itself tells: a full one goes when windows are open, a short one may not.
    at_send "Nagle, seen", nagle::held_short => [NagleDelack, App];
    // The receiver's word is exact: a window that moved, or stayed full, is no guess.
    at_send "window moved", window::moved => [RwndCap, RwndAutotune, RwndReader];
    at_send "window stayed full", window::stayed_full => [RwndCap, RwndAutotune, RwndReader];
    // All was acknowledged before: nothing that an ACK opens held the sender any more.
    at_send "window full until late", window::full_until_late => [RwndCap, RwndAutotune, RwndReader];
    at_send "late each time", app::late_each_time => [App];
    at_send "Nagle, tail", nagle::end_of_tail => [LastFlight];
    at_send "slow pace", pace::slow => [Pacing, Unknown];
    at_send "all acknowledged", app::all_acknowledged => [App, LastFlight];
    // A timer that ran out while data was in flight.
    at_send "probe with new data", timer::probe_with_new_data => [TlpWait];
    // An ACK let it out: less than a segment in flight fills no window, then the receiver's window is asked.
    at_send "short behind short", nagle::short_behind_short => [NagleDelack];
    at_send "window filled before", window::filled_before => [RwndCap, RwndAutotune, RwndReader];
    at_send "window full", window::full => [RwndCap, RwndAutotune, RwndReader, Unknown];
    // From here on rounds tell. What the capture lacks of them, and what stood below TCP in all of one.
    later "round unknown", unseen::round_unknown => [App, Unknown];
    later "own queue all along", own_queue::stood_all_along => [LocalQdisc];
    // What the ACKs' own stamps or their echoes show is no queue of the data, and no program's silence.
    later "ACKs queue", ack_path::acks_queue => [AckPath];
    // A stream that never pauses, as a link sees it that is full before the tap.
    later "link, from afar", link::from_afar => [BandwidthExternal, BandwidthSelfQueue, Unknown];
    // A send that came by itself, unless its ACK was late on a way that is not seen.
    later "late ACK", unseen::late_ack => [Unknown];
    // What a program writes by its timer comes whenever ACKs do, and as evenly as a pace.
    later "written by a timer", app::by_a_timer => [App];
    later "pace", pace::clock => [App, Pacing, BandwidthSelfQueue, Unknown];
    later "window at its edge", window::at_edge => [RwndCap, RwndAutotune, RwndReader];
    later "pace, from afar", pace::from_afar => [BandwidthSelfQueue, CwndAvoidance, Pacing, Unknown];
    later "by itself", app::by_itself => [App];
    // A queue that never empties: the link is full, whichever window ran beside it.
    later "link shared", link::shared_with_others => [BandwidthExternal];
    later "link full", link::queue_stands => [BandwidthVariable, BandwidthSelfQueue];
    // A flight that stays the same though its window would grow has another lid.
    later "window under a lid", window::under_lid => [RwndCap, RwndAutotune, RwndReader];
    later "little from afar", buffer::little_from_afar => [App, Unknown];
    later "lid", buffer::lid => [AppWindow, Sndbuf];
    // What is left: the congestion window, whose phase its growth tells.
    later "congestion window", cwnd::holds => [CwndSlowStart, CwndAvoidance, CwndAfterIdle, CwndPostLoss, CwndCachedSsthresh, Unknown];
}

rules! {
    /// What time without data in flight was for.
    QUIET:
    at_send "quiet and blind", unseen::blind => [Unknown];
    at_send "quiet and late each time", app::writes_late_each_time => [IdleAppThink];
    at_send "part of a segment by a timer", window::part_by_timer => [RwndCap, RwndAutotune, RwndReader];
    at_send "lost tail", timer::may_be_lost_tail => [IdleAppThink];
    at_send "quiet and slow pace", pace::slow_without_flight => [Pacing, Unknown];
    at_send "thinks", app::thinks => [IdleAppThink];
}

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
        Ask::AtSend(ask) if is_asked(rule) => ask(wait).map(|verdict| rule.told(verdict)),
        _ => None,
    })
}

/// What a wait was for if its end did not show it.
pub(crate) fn by_rounds(wait: &Wait, near: &Near<'_>) -> Verdict {
    let asked = ORDER.iter().find_map(|rule| match rule.ask {
        Ask::TwoRoundsLater(ask) if is_asked(rule) => {
            ask(wait, near).map(|verdict| rule.told(verdict))
        }
        _ => None,
    });
    asked.unwrap_or(Verdict::unknown())
}

/// Whether no measurement took it out.
#[cfg(not(feature = "ablation"))]
const fn is_asked(_: &Rule) -> bool {
    true
}

#[cfg(feature = "ablation")]
fn is_asked(rule: &Rule) -> bool {
    !ablation::is_out(rule.name)
}

#[cfg(test)]
mod tests;
