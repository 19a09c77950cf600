//! The receiver's window: at its maximum, still growing, or waiting for a reader.

use super::rivals::{Room, Seen};
use super::{Verdict, unseen};
use crate::limits::near::Near;
use crate::limits::wait::{Edge, Release, Wait};
use crate::report::State::{self, RwndCap, RwndReader, ZeroWindow};
use crate::report::Sure;

/// Which of the receiver's limits the window was at, if that it was is `sure`; `is_full`: no room was left for a segment.
fn held(wait: &Wait, sure: Sure, is_full: bool) -> Verdict {
    let window = &wait.window;
    let of = |state, sure| Verdict { state, sure, alternative: &[] };
    match window.state {
        state if window.is_scale_guessed => Verdict::possible(state).seen(Seen::ScaleUnknown),
        RwndCap if window.was_answer_kept_back => {
            of(RwndReader, sure.min(Sure::Likely)).seen(Seen::AnswerKeptBack { is_full })
        }
        // It opens when a program reads ([`crate::limits::sender::reader`]): of a larger one that might read more.
        RwndReader if window.may_want_more => {
            of(RwndReader, sure.min(Sure::Likely)).seen(Seen::MayWantMore)
        }
        state if is_full => of(state, sure),
        state => of(state, sure).seen(Seen::LittleRoom),
    }
}

/// Where the capture lacks what ended a wait, a window without room for a segment is seen: TCP may send no whole one
/// then, whatever else has room (RFC 9293 section 3.8.6.2.1).
pub(crate) fn full_before_hole(wait: &Wait) -> Verdict {
    held(wait, Sure::Likely, true)
}

/// It was shut: what ended the wait opened it, or the sender had asked for that; else it may have been open and the
/// application slow.
pub(crate) fn shut(wait: &Wait) -> Verdict {
    if wait.has_probed_window || matches!(wait.ended_by, Release::Ack { .. } | Release::Window) {
        Verdict::shown(ZeroWindow)
    } else {
        Verdict::likely(ZeroWindow).seen(Seen::OpenedUnasked)
    }
}

/// Nothing was in flight, the window had room for a part of a segment, and a timer let that out.
pub(super) fn part_by_timer(wait: &Wait) -> Option<Verdict> {
    wait.is_part_by_timer.then(|| held(wait, Sure::Likely, true))
}

/// The receiver's window moved without an ACK of new data, and the next send followed it at once.
pub(super) fn moved(wait: &Wait) -> Option<Verdict> {
    (wait.ended_by == Release::Window).then(|| held(wait, Sure::Shown, true))
}

/// The receiver's window was shut and had been full before: it was at no time open between.
pub(super) fn stayed_full(wait: &Wait) -> Option<Verdict> {
    (wait.came_free() && wait.window.stayed_full).then(|| held(wait, Sure::Shown, true))
}

/// All was acknowledged, but the flight had filled the receiver's window, and the sender was a little late to use the answer.
pub(super) fn full_until_late(wait: &Wait) -> Option<Verdict> {
    (wait.is_by_itself_after_all() && !wait.had_room && wait.is_soon_after_ack)
        .then(|| held(wait, Sure::Shown, true))
}

/// One flight has filled the receiver's window, and without a cut the congestion window does not become smaller than that.
pub(super) fn filled_before(wait: &Wait) -> Option<Verdict> {
    (wait.is_let_out_by_ack() && wait.window.is_proven).then(|| held(wait, Sure::Likely, false))
}

/// The flight left no room for a segment in the receiver's window, and the congestion window had some.
pub(super) fn full(wait: &Wait) -> Option<Verdict> {
    if !wait.is_let_out_by_ack() || wait.had_room || wait.fills_cwnd {
        return None;
    }
    Some(if wait.window.is_told { held(wait, Sure::Shown, true) } else { unseen::MAY_BE_FULL })
}

/// Less than a third of the receiver's window was left, for which Linux waits (`tcp_tso_should_defer`), and the largest flight of the round
/// filled it.
pub(super) fn at_edge(wait: &Wait, near: &Near<'_>) -> Option<Verdict> {
    let round = near.this();
    let state = wait.edge().near().filter(|_| round.edge_flight >= round.flight)?;
    Some(Verdict::likely(state).seen(match state {
        RwndReader if wait.window.may_want_more => Seen::MayWantMore,
        _ => Seen::LittleRoom,
    }))
}

/// Less than a third of the receiver's window was left, and the flight stands still or was let out late.
pub(super) fn under_lid(wait: &Wait, near: &Near<'_>) -> Option<Verdict> {
    let state = wait.edge().near().filter(|_| near.is_under_lid(wait))?;
    Some(Verdict::likely(state).seen(Seen::LittleRoomStill))
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

    /// The room, as finely as rivals tell it apart.
    pub(super) fn room(self) -> Room {
        match self {
            Self::Far => Room::Much,
            Self::PerhapsNear => Room::PerhapsLittle,
            Self::Near(_) => Room::Little,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::limits::wait::Window;
    use crate::report::State::CwndAvoidance;

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
