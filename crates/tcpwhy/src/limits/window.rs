//! The receiver's window as the sender knows it.
//!
//! Question: how many bytes more would the receiver take, and is that as much as it ever took?
//! The right edge never moves back: a reordered old ACK takes nothing away (RFC 9293 §3.8.6).

use super::walker::NEVER;

/// What the receiver announced.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ReceiverWindow {
    /// Highest byte it allows, `NEVER` before the first announcement.
    pub(crate) end: i64,
    /// The window as last announced, and at most.
    pub(crate) size: i64,
    pub(crate) largest: i64,
    /// Largest window of this run of eight rounds and of the one before: a buffer that shrank long
    /// ago is no reader that lags now.
    pub(crate) recent: [i64; 2],
    /// When its edge last moved without an ACK of new data.
    pub(crate) moved_at: i64,
}

impl Default for ReceiverWindow {
    fn default() -> Self {
        Self { end: NEVER, size: 0, largest: 0, recent: [0; 2], moved_at: NEVER }
    }
}

impl ReceiverWindow {
    /// Whether the receiver announced one yet.
    pub(crate) fn is_known(&self) -> bool {
        self.end > NEVER
    }

    /// What is left of it beyond `nxt`; `i64::MAX` while it is unknown.
    pub(crate) fn room(&self, nxt: i64) -> i64 {
        if self.is_known() { self.end - nxt } else { i64::MAX }
    }

    /// Takes an announcement of `size` bytes beyond `ack`; whether the right edge moved.
    pub(crate) fn take(&mut self, ack: i64, size: i64, una: i64) -> bool {
        let end = ack + size;
        let moved = end > self.end;
        if ack >= una || moved {
            self.size = size;
            self.end = self.end.max(end);
        }
        self.largest = self.largest.max(size);
        self.recent[0] = self.recent[0].max(size);
        moved
    }

    /// The largest of the last eight to sixteen rounds.
    pub(crate) fn recent_largest(&self) -> i64 {
        self.recent[0].max(self.recent[1])
    }

    /// Round `number` begins: every eighth begins a new run.
    pub(crate) fn on_round(&mut self, number: u64) {
        if number.is_multiple_of(8) {
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
        assert_eq!(window.room(0), i64::MAX);
        assert!(window.take(100, 1000, 100));
        assert!(!window.take(50, 900, 100), "reordered");
        assert_eq!((window.end, window.size, window.room(300)), (1100, 1000, 800));
        assert!(!window.take(100, 500, 100), "shrunk: RFC 9293 tells senders to bear it");
        assert_eq!((window.end, window.size, window.largest), (1100, 500, 1000));
    }

    #[test]
    fn a_large_window_of_long_ago_is_forgotten() {
        let mut window = ReceiverWindow::default();
        window.take(0, 9000, 0);
        window.on_round(8);
        window.take(0, 500, 0);
        assert_eq!(window.recent_largest(), 9000);
        window.on_round(9);
        window.on_round(16);
        assert_eq!((window.recent_largest(), window.largest), (500, 9000));
    }
}
