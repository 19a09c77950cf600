//! The receiver's window as the sender knows it.
//!
//! Question: how many bytes more would the receiver take, and is that as much as it ever took?
//! The right edge never moves back: a reordered old ACK takes nothing away (RFC 9293 §3.8.6).

use crate::clocks::StackTime;
use crate::limits::sense::{AT_MAXIMUM, FILLED_ROUNDS, NEVER, NOWHERE, RECENT_ROUNDS};
use crate::offsets::Offset;

/// What the receiver announced.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ReceiverWindow {
    /// Highest byte it allows, `NOWHERE` before the first announcement.
    pub(crate) end: Offset,
    /// The window as last announced, and at most.
    pub(crate) size: i64,
    pub(crate) largest: i64,
    /// Largest window of this run of eight rounds and of the one before: a buffer that shrank long
    /// ago is no reader that lags now.
    pub(crate) recent: [i64; 2],
    /// When its edge last moved without an ACK of new data.
    pub(crate) moved_at: StackTime,
    /// The largest window when it last counted as grown, and when that was.
    grown: (i64, StackTime),
    /// What filled it since the congestion window was last cut, which is no smaller.
    pub(crate) filled: Filled,
    /// How far an ACK in order took the right edge back at most, and the largest window while it was.
    pub(crate) taken_back: (i64, i64),
}

/// Rounds whose flights filled the receiver's window.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Filled {
    /// The largest of the flights, give or take a segment.
    flight: i64,
    rounds: u32,
    last: u64,
    /// The flight of the last burst if it filled the window, and its round: only what it comes to counts.
    open: Option<(i64, u64)>,
}

impl Filled {
    /// With the last burst, to which the flight comes up to `mss` more before it counts as larger.
    fn with_last_burst(self, mss: i64) -> Self {
        let Some((flight, round)) = self.open else { return self };
        let Self { flight: before, rounds, last, .. } = self;
        match () {
            () if flight > before + mss => Self { flight, rounds: 1, last: round, open: None },
            () if round == last => Self { open: None, ..self },
            () => Self { flight: before.max(flight), rounds: rounds + 1, last: round, open: None },
        }
    }
}

impl Default for ReceiverWindow {
    fn default() -> Self {
        Self {
            end: NOWHERE,
            size: 0,
            largest: 0,
            recent: [0; 2],
            moved_at: NEVER,
            grown: (0, NEVER),
            filled: Filled::default(),
            taken_back: (0, 0),
        }
    }
}

impl ReceiverWindow {
    /// Whether the receiver announced one yet.
    pub(crate) fn is_known(&self) -> bool {
        self.end > NOWHERE
    }

    /// What is left of it beyond `nxt`; `i64::MAX` while it is unknown.
    pub(crate) fn room(&self, nxt: Offset) -> i64 {
        if self.is_known() { self.end - nxt } else { i64::MAX }
    }

    /// The last offset behind which it has room for `bytes`; [`Offset::MAX`] while it is unknown.
    pub(crate) fn last_with_room(&self, bytes: i64) -> Offset {
        if self.is_known() { self.end - bytes } else { Offset::MAX }
    }

    /// Announcements were missed: how far the receiver allows now is not known until the next one.
    pub(crate) fn forget_edge(&mut self) {
        self.end = NOWHERE;
    }

    /// Takes an announcement of `size` bytes beyond `ack`; whether the right edge moved.
    pub(crate) fn take(&mut self, ack: Offset, size: i64, una: Offset) -> bool {
        let end = ack + size;
        let moved = end > self.end;
        if ack >= una || moved {
            if end < self.end {
                let (most, largest) = self.taken_back;
                self.taken_back = (most.max(self.end - end), largest.max(size));
            }
            self.size = size;
            self.end = self.end.max(end);
        }
        self.largest = self.largest.max(size);
        self.recent[0] = self.recent[0].max(size);
        moved
    }

    /// The announcement taken last came at `at`.
    pub(crate) fn note_growth(&mut self, at: StackTime) {
        if !AT_MAXIMUM.is_reached(self.grown.0, self.largest) {
            self.grown = (self.largest, at);
        }
    }

    /// Whether it became larger than ever at `at` or later.
    pub(crate) fn has_grown_since(&self, at: StackTime) -> bool {
        self.grown.1 >= at
    }

    /// A flight of `flight` bytes in `round` leaves `room` in it, less than a segment or not; whether a burst `begins` with
    /// it or goes on.
    pub(crate) fn on_stop(
        &mut self,
        (flight, room): (i64, i64),
        mss: i64,
        round: u64,
        begins: bool,
    ) {
        if begins {
            self.filled = self.filled.with_last_burst(mss);
        }
        self.filled.open = (room < mss).then_some((flight, round));
    }

    /// Whether flights have filled as much as `size` bytes since the congestion window was cut.
    pub(crate) fn was_filled(&self, size: i64, mss: i64) -> bool {
        let filled = self.filled.with_last_burst(mss);
        filled.rounds >= FILLED_ROUNDS && filled.flight + mss > size
    }

    /// The largest of the last eight to sixteen rounds.
    pub(crate) fn recent_largest(&self) -> i64 {
        self.recent[0].max(self.recent[1])
    }

    /// Round `number` begins: every eighth begins a new run.
    pub(crate) fn on_round(&mut self, number: u64) {
        if number.is_multiple_of(RECENT_ROUNDS) {
            self.recent = [0, self.recent[0]];
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_old_ack_does_not_take_the_window_back() {
        let mut window = ReceiverWindow::default();
        assert_eq!(window.room(Offset::FIRST), i64::MAX);
        assert!(window.take(Offset::at(100), 1000, Offset::at(100)));
        assert!(!window.take(Offset::at(50), 900, Offset::at(100)), "reordered");
        assert_eq!(
            (window.end, window.size, window.room(Offset::at(300))),
            (Offset::at(1100), 1000, 800)
        );
        assert!(
            !window.take(Offset::at(100), 500, Offset::at(100)),
            "shrunk: RFC 9293 tells senders to bear it"
        );
        assert_eq!((window.end, window.size, window.largest), (Offset::at(1100), 500, 1000));
        assert_eq!(window.taken_back, (500, 500));
    }

    #[test]
    fn a_window_has_grown_if_it_is_a_twentieth_larger_than_ever() {
        let mut window = ReceiverWindow::default();
        let grown = |window: &mut ReceiverWindow, size, at| {
            window.take(Offset::at(at), size, Offset::at(at));
            window.note_growth(StackTime(at));
            window.has_grown_since(StackTime(at))
        };
        assert!(grown(&mut window, 9500, 1));
        assert!(!grown(&mut window, 10_000, 2));
        assert!(grown(&mut window, 10_001, 3), "since it last was, little by little or not");
        assert!(!grown(&mut window, 4000, 4));
        assert!(window.has_grown_since(StackTime(3)));
    }

    #[test]
    fn a_window_that_three_rounds_filled_to_the_segment_was_filled() {
        let filled = |room, rounds: &[u64]| {
            let mut window = ReceiverWindow::default();
            for round in rounds {
                window.on_stop((9_000, room), 1448, *round, true);
            }
            window
        };
        assert!(!filled(1448, &[1, 2, 3]).was_filled(9_000, 1448), "room for one more");
        assert!(filled(1447, &[1, 2, 3]).was_filled(10_447, 1448));
        assert!(!filled(1447, &[1, 2, 3]).was_filled(10_448, 1448), "it has grown since");
        assert!(!filled(1447, &[1, 2, 2]).was_filled(9_000, 1448), "two rounds");
    }

    #[test]
    fn of_a_burst_only_what_it_comes_to_counts() {
        let mut window = ReceiverWindow::default();
        for round in 1..4 {
            window.on_stop((9_000, 1_200), 1448, round, true);
            window.on_stop((10_200, 0), 1448, round, false);
            window.on_stop((10_600, 0), 1448, round, false);
        }
        assert!(window.was_filled(10_600, 1448));
    }

    #[test]
    fn a_large_window_of_long_ago_is_forgotten() {
        let mut window = ReceiverWindow::default();
        window.take(Offset::FIRST, 9000, Offset::FIRST);
        window.on_round(8);
        window.take(Offset::FIRST, 500, Offset::FIRST);
        assert_eq!(window.recent_largest(), 9000);
        window.on_round(9);
        window.on_round(16);
        assert_eq!((window.recent_largest(), window.largest), (500, 9000));
    }
}
