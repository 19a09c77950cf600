//! The receiver's window: at its maximum, still growing, or waiting for a reader.

use super::{Verdict, unseen};
use crate::limits::near::Near;
use crate::limits::wait::{Edge, Release, Wait};
use crate::report::State::{
    self, App, AppWindow, CwndAvoidance, RwndCap, RwndReader, Sndbuf, ZeroWindow,
};
use crate::report::Sure;

/// Which of the receiver's limits the window was at, if that it was is `sure`.
fn held(wait: &Wait, sure: Sure, alternative: &'static [State]) -> Verdict {
    let window = &wait.window;
    match window.state {
        state if window.is_scale_guessed => Verdict::possible(state, &[Sndbuf, CwndAvoidance, App]),
        RwndCap if window.was_answer_kept_back => {
            let others: &[State] =
                if alternative.is_empty() { &[RwndCap] } else { &[RwndCap, CwndAvoidance] };
            Verdict { state: RwndReader, sure: sure.min(Sure::Likely), alternative: others }
        }
        // It opens when a program reads ([`crate::limits::sender::reader`]): of a larger one that might read more.
        RwndReader if window.may_want_more => {
            let sure = sure.min(Sure::Likely);
            Verdict { state: RwndReader, sure, alternative: &[RwndCap, CwndAvoidance] }
        }
        state => Verdict { state, sure, alternative },
    }
}

/// Where the capture lacks what ended a wait, a window without room for a segment is seen: TCP may send no whole one
/// then, whatever else has room (RFC 9293 section 3.8.6.2.1).
pub(crate) fn full_before_hole(wait: &Wait) -> Verdict {
    held(wait, Sure::Likely, &[])
}

/// It was shut: what ended the wait opened it, or the sender had asked for that; else it may have been open and the
/// application slow.
pub(crate) fn shut(wait: &Wait) -> Verdict {
    if wait.has_probed_window || matches!(wait.ended_by, Release::Ack { .. } | Release::Window) {
        Verdict::shown(ZeroWindow)
    } else {
        Verdict::likely(ZeroWindow, &[App])
    }
}

/// The window moved without an ACK of new data, and the next send followed it at once.
pub(super) fn moved(wait: &Wait) -> Option<Verdict> {
    (wait.ended_by == Release::Window).then(|| held(wait, Sure::Shown, &[]))
}

/// It was shut and had been full before: it was at no time open between.
pub(super) fn stayed_full(wait: &Wait) -> Option<Verdict> {
    (wait.came_free() && wait.window.stayed_full).then(|| held(wait, Sure::Shown, &[]))
}

/// All was acknowledged, but the flight had filled the window, and the sender was a little late to use the answer.
pub(super) fn full_until_late(wait: &Wait) -> Option<Verdict> {
    (wait.is_by_itself_after_all() && !wait.had_room && wait.is_soon_after_ack)
        .then(|| held(wait, Sure::Shown, &[]))
}

/// One flight has filled it, and without a cut the congestion window does not become smaller than that.
pub(super) fn filled_before(wait: &Wait) -> Option<Verdict> {
    (wait.is_let_out_by_ack() && wait.window.is_proven)
        .then(|| held(wait, Sure::Likely, &[CwndAvoidance]))
}

/// The flight left no room for a segment, and the congestion window had some.
pub(super) fn full(wait: &Wait) -> Option<Verdict> {
    if !wait.is_let_out_by_ack() || wait.had_room || wait.fills_cwnd {
        return None;
    }
    Some(if wait.window.is_told { held(wait, Sure::Shown, &[]) } else { unseen::MAY_BE_FULL })
}

/// Less than a third was left, for which Linux waits (`tcp_tso_should_defer`), and the largest flight of the round
/// filled it.
pub(super) fn at_edge(wait: &Wait, near: &Near<'_>) -> Option<Verdict> {
    let round = near.this();
    let state = wait.edge().near().filter(|_| round.edge_flight >= round.flight)?;
    let others: &[State] = match state {
        RwndReader if wait.window.may_want_more => &[RwndCap, CwndAvoidance],
        _ => &[CwndAvoidance],
    };
    Some(Verdict::likely(state, others))
}

/// Less than a third was left, and the flight stands still or was let out late.
pub(super) fn under_lid(wait: &Wait, near: &Near<'_>) -> Option<Verdict> {
    let state = wait.edge().near().filter(|_| near.is_under_lid(wait))?;
    Some(Verdict::likely(state, &[Sndbuf, AppWindow, App]))
}

impl Edge {
    /// What the window is if it may have held the sender.
    fn near(self) -> Option<State> {
        match self {
            Self::Near(state) => Some(state),
            Self::Far | Self::PerhapsNear => None,
        }
    }

    pub(super) fn may_be_near(self) -> bool {
        self != Self::Far
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::limits::wait::Window;

    /// What a full window of this kind is called, and beside what.
    fn told(window: Window) -> (State, &'static [State]) {
        let window = Window { is_told: true, ..window };
        let ended_by = Release::Ack { by_data: false };
        let wait = Wait { ended_by, had_room: false, window, ..Wait::PLAIN };
        full(&wait).map(|told| (told.state, told.alternative)).expect("it was full")
    }

    #[test]
    fn a_reader_may_want_a_larger_window_unless_that_was_larger_once() {
        let reader = |may_want_more| {
            let was = Window { state: RwndReader, may_want_more, ..Window::OPEN };
            told(was)
        };
        assert_eq!(reader(true), (RwndReader, &[RwndCap, CwndAvoidance] as &[_]));
        assert_eq!(reader(false), (RwndReader, &[] as &[_]), "something lies unread");
        let cap = Window { state: RwndCap, may_want_more: true, ..Window::OPEN };
        assert_eq!(told(cap), (RwndCap, &[] as &[_]), "it opens at once");
    }
}
