//! A wait: all that was true from one send of new data to the next, as plain facts.
//!
//! What the sender's parts know of it is written down here once, when the send that ends it is seen. Rules judge by
//! nothing else, so a test of a rule is a literal of this type.

use crate::report::State;

/// What released a send.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub(crate) enum Release {
    /// An ACK that advanced; `by_data`: it came on data of the peer.
    Ack { by_data: bool },
    /// The receiver's window moved without an ACK of new data.
    Window,
    /// It follows the last send of its burst directly.
    Burst,
    /// Nothing that arrived.
    #[default]
    Free,
}

/// A side's silence that ended with data of its peer.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Lull {
    /// The data goes on with the peer's flow.
    Flow,
    Peer,
    /// The capture begins in it, at a server.
    FirstOfCapture,
}

/// How much of the receiver's window was left at a stop. Linux waits for a third to open before it sends less than
/// a super-segment (`tcp_tso_should_defer`, `tcp_tso_win_divisor`).
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Edge {
    Far,
    /// Less than a third if it is the least window that can be, for its scale is a guess.
    PerhapsNear,
    /// Less than a third, and then it is this.
    Near(State),
}

/// How much was in flight, in full segments.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub(crate) enum Flown {
    LessThanOne,
    LessThanTwo,
    #[default]
    More,
}

/// A short segment that Nagle's algorithm may have held.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct Short {
    /// It is as long as the short one before it.
    pub(crate) is_as_long: bool,
}

/// Whether new data came when the timer of the tail's probe ran out.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub(crate) enum Probe {
    #[default]
    None,
    Tail,
    /// A timeout would have, too, behind a probe that was lost before the tap.
    TailOrTimeout,
}

/// What the receiver's window was when the sender stopped.
#[expect(clippy::struct_excessive_bools, reason = "independent facts, no state machine")]
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Window {
    /// Which of the receiver's limits it was: grown since, at its maximum, or below that.
    pub(crate) state: State,
    /// Windows are the least that they can be, for the capture lacks their scale.
    pub(crate) is_scale_guessed: bool,
    /// A flight that leaves no room in it is known to fill it.
    pub(crate) is_told: bool,
    /// Less than a third was left.
    pub(crate) is_near: bool,
    /// Flights before had filled it, and the congestion window has not been cut since.
    pub(crate) is_proven: bool,
    /// It was shut in the wait, and had been full before.
    pub(crate) stayed_full: bool,
    /// The receiver answered the flight that filled it late and at once, or opened it only later than it answered.
    pub(crate) was_answer_kept_back: bool,
    /// It was as large as any lately, and not much smaller than the largest of all: what waits for a reader then may
    /// wait for a larger one as well.
    pub(crate) may_want_more: bool,
}

impl Window {
    /// One that takes everything.
    pub(crate) const OPEN: Self = Self {
        state: State::RwndCap,
        is_scale_guessed: false,
        is_told: false,
        is_near: false,
        is_proven: false,
        stayed_full: false,
        was_answer_kept_back: false,
        may_want_more: false,
    };
}

/// All that was true from one send to the next.
#[expect(clippy::struct_excessive_bools, reason = "independent facts, no state machine")]
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Wait {
    /// The round of the last send.
    pub(crate) round: u64,
    pub(crate) ended_by: Release,
    /// The last ACK came on data of the peer.
    pub(crate) by_data: bool,
    /// The tap is on the sender's host.
    pub(crate) at_sender: bool,
    /// The capture lacks packets, and no ACK has come since.
    pub(crate) is_blind: bool,
    /// What was sent last stood in a queue of its own host until the next came.
    pub(crate) in_own_queue: bool,
    /// All was acknowledged for a part of it, or a timer ran out.
    pub(crate) was_quiet: bool,
    /// The flight filled a window, and its ACK came soon before the send, or may have been late at the sender.
    pub(crate) is_late_release: bool,
    /// An ACK came within a tenth of a round trip of the send, or a millisecond.
    pub(crate) is_soon_after_ack: bool,
    /// The last ACK may have been late on a way that the tap does not see.
    pub(crate) ack_may_be_late: bool,
    /// ACKs before the one that released the send had taken more than a third of the flight.
    pub(crate) has_passed_over_acks: bool,
    /// A clock of the sender's own would have let the send go before.
    pub(crate) is_past_pulse: bool,
    pub(crate) flown: Flown,
    /// The receiver would have taken the next segment.
    pub(crate) had_room: bool,
    /// The flight is no less than the replayed congestion window.
    pub(crate) fills_cwnd: bool,
    pub(crate) window: Window,
    /// A short segment that went when the short one before it was acknowledged, and had room.
    pub(crate) behind_short: Option<Short>,
    /// The last send and the next are short segments.
    pub(crate) both_short: bool,
    /// The ACK came as late as the receiver's timer makes it.
    pub(crate) ack_was_delayed: bool,
    /// It ends with a short segment, of a tail that was probed.
    pub(crate) ends_probed_tail: bool,
    pub(crate) probe: Probe,
    /// Nothing was in flight that was seen, and it took as long as timers do that send a lost tail again.
    pub(crate) may_be_lost_tail: bool,
    /// The receiver's window had room for a part of a segment only, and the sender filled that when its timer ran out.
    pub(crate) is_part_by_timer: bool,
    /// Flights before were written as late.
    pub(crate) late_each_time: bool,
    /// The send came in time with those before, which look like a pace of less than a pulse a round trip.
    pub(crate) is_slow_pace: bool,
    /// The transfer began before it.
    pub(crate) goes_on: bool,
    /// The send before it did not end as writes do, with a short segment.
    pub(crate) ended_whole: bool,
    /// The sender probed the receiver's window.
    pub(crate) has_probed_window: bool,
}

impl Wait {
    /// Nothing is known but that it ended by itself.
    pub(crate) const PLAIN: Self = Self {
        round: 0,
        ended_by: Release::Free,
        by_data: false,
        at_sender: false,
        is_blind: false,
        in_own_queue: false,
        was_quiet: false,
        is_late_release: false,
        is_soon_after_ack: false,
        ack_may_be_late: false,
        has_passed_over_acks: false,
        is_past_pulse: false,
        flown: Flown::More,
        had_room: true,
        fills_cwnd: false,
        window: Window::OPEN,
        behind_short: None,
        both_short: false,
        ack_was_delayed: false,
        ends_probed_tail: false,
        probe: Probe::None,
        may_be_lost_tail: false,
        is_part_by_timer: false,
        late_each_time: false,
        is_slow_pace: false,
        goes_on: false,
        ended_whole: false,
        has_probed_window: false,
    };

    /// Whether no arrival ended it at once.
    fn came_by_itself(&self) -> bool {
        matches!(self.ended_by, Release::Burst | Release::Free)
    }

    /// Whether nothing that arrived ended it, at once or late.
    pub(crate) fn came_free(&self) -> bool {
        self.came_by_itself() && !self.is_late_release
    }

    /// Whether an ACK ended it, at once or late.
    pub(crate) fn is_let_out_by_ack(&self) -> bool {
        matches!(self.ended_by, Release::Ack { .. })
            || self.came_by_itself() && self.is_late_release
    }

    /// Whether the next send came by itself after all before it was acknowledged.
    pub(crate) fn is_by_itself_after_all(&self) -> bool {
        self.came_by_itself() && self.was_quiet
    }

    /// How much of the receiver's window was left, if it may have held what an ACK let out.
    pub(crate) fn edge(&self) -> Edge {
        match self.window.is_near && !self.fills_cwnd && !self.came_free() {
            false => Edge::Far,
            true if self.window.is_told => Edge::Near(self.window.state),
            true => Edge::PerhapsNear,
        }
    }

    /// What rounds are asked about it: waits that are one in this are judged as one.
    pub(crate) fn for_rounds(&self) -> Self {
        if self.came_free() {
            Self {
                round: self.round,
                ack_may_be_late: self.ack_may_be_late,
                ended_whole: self.ended_whole,
                ..Self::PLAIN
            }
        } else {
            let Window { state, is_told, may_want_more, .. } = self.window;
            let is_near = self.window.is_near && !self.fills_cwnd;
            let window = if !is_near {
                Window::OPEN
            } else if is_told {
                Window { state, is_told, is_near, may_want_more, ..Window::OPEN }
            } else {
                Window { is_near, ..Window::OPEN }
            };
            Self {
                round: self.round,
                ended_by: Release::Ack { by_data: self.by_data },
                by_data: self.by_data,
                has_passed_over_acks: self.has_passed_over_acks,
                is_past_pulse: self.is_past_pulse,
                window,
                ..Self::PLAIN
            }
        }
    }
}
