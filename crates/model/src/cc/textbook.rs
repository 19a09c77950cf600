//! Congestion control as textbooks draw it: Tahoe and Reno in bytes, by RFC 5681, and stop-and-wait.
//!
//! The first window is 2, 3 or 4 segments by their size (RFC 5681 section 3.1); slow start grows by
//! min(N, SMSS) for N bytes that an acknowledgment covers, avoidance by SMSS*SMSS/cwnd (equations 2
//! and 3); after a loss ssthresh is max(FlightSize/2, 2*SMSS) (equation 4). Three duplicates: Tahoe
//! begins anew with one segment, Reno goes on from ssthresh, and with inflation from ssthresh plus
//! the three segments that have left the network, and one more for each duplicate (section 3.2).
//!
//! Ours: what avoidance adds is credited when it makes a whole segment, for only those are sent;
//! the figures that are drawn of it grow by whole segments, too. What a textbook does not have (limited
//! transmit, a restart after idle times) is not done. Further holes are repaired as `NewReno` does.

/// A window that follows the book.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Textbook {
    kind: Kind,
    smss: u64,
    cwnd: u64,
    ssthresh: u64,
    /// Towards the next segment of avoidance, in bytes times `cwnd`.
    credit: u64,
    /// The window is larger by what duplicates told of.
    inflated: bool,
}

/// Which book.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Kind {
    /// Any loss begins anew with one segment.
    Tahoe,
    /// Three duplicates halve the window.
    Reno,
    /// The same, with the window inflated while the hole is open.
    RenoInflated,
    /// One segment at a time.
    StopAndWait,
}

impl Kind {
    pub(crate) fn named(name: &str) -> Option<Self> {
        match name {
            "textbook-tahoe" => Some(Self::Tahoe),
            "textbook" | "textbook-reno" => Some(Self::Reno),
            "textbook-reno-inflated" => Some(Self::RenoInflated),
            "stop-and-wait" => Some(Self::StopAndWait),
            _ => None,
        }
    }
}

impl Textbook {
    pub(crate) const fn new(kind: Kind) -> Self {
        Self { kind, smss: 1, cwnd: 1, ssthresh: u64::MAX, credit: 0, inflated: false }
    }

    /// The connection is established; windows in segments.
    pub(crate) fn begin(&mut self, smss: u32, cwnd: u32, ssthresh: u32) {
        self.smss = u64::from(smss.max(1));
        self.cwnd = u64::from(cwnd.max(1)) * self.smss;
        self.ssthresh = u64::from(ssthresh) * self.smss;
        self.credit = 0;
        self.inflated = false;
    }

    /// The first window, in segments, for segments of a size.
    pub(crate) const fn initial_window(smss: u32) -> u32 {
        match smss {
            2191.. => 2,
            1096..=2190 => 3,
            _ => 4,
        }
    }

    /// The window, in whole segments.
    pub(crate) fn cwnd(&self) -> u32 {
        if self.kind == Kind::StopAndWait { 1 } else { (self.cwnd / self.smss) as u32 }
    }

    /// The threshold, in whole segments.
    fn ssthresh(&self) -> u32 {
        (self.ssthresh / self.smss).min(u64::from(u32::MAX)) as u32
    }

    /// This many bytes are acknowledged for the first time.
    pub(crate) fn on_new_ack(&mut self, bytes: u32) {
        if std::mem::take(&mut self.inflated) {
            self.cwnd = self.ssthresh;
        } else if self.cwnd < self.ssthresh {
            let grown = self.cwnd + u64::from(bytes).min(self.smss);
            self.cwnd = grown.min(self.ssthresh);
        } else {
            self.credit += self.smss * self.smss;
            if self.credit >= self.cwnd * self.smss {
                self.credit -= self.cwnd * self.smss;
                self.cwnd += self.smss;
            }
        }
    }

    /// Another duplicate while the hole is open.
    pub(crate) const fn on_duplicate(&mut self) {
        if self.inflated {
            self.cwnd += self.smss;
        }
    }

    /// Losses are believed while this many bytes are under way; the threshold, in segments.
    pub(crate) fn on_congestion(&mut self, flight: u32) -> u32 {
        self.ssthresh = (u64::from(flight) / 2).max(2 * self.smss);
        self.credit = 0;
        self.cwnd = match self.kind {
            Kind::Tahoe => self.smss,
            Kind::Reno | Kind::StopAndWait => self.ssthresh,
            Kind::RenoInflated => self.ssthresh + 3 * self.smss,
        };
        self.inflated = self.kind == Kind::RenoInflated;
        self.ssthresh()
    }

    /// The retransmission timer expired: the loss window (equation 4 and below).
    pub(crate) const fn on_timeout(&mut self) {
        self.cwnd = self.smss;
        self.credit = 0;
        self.inflated = false;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn book(kind: Kind, cwnd: u32, ssthresh: u32) -> Textbook {
        let mut book = Textbook::new(kind);
        book.begin(1460, cwnd, ssthresh);
        book
    }

    #[test]
    fn the_first_window_depends_on_the_segment() {
        let sizes = [536, 1095, 1096, 1460, 2190, 2191, 8960];
        assert_eq!(sizes.map(Textbook::initial_window), [4, 4, 3, 3, 3, 2, 2]);
    }

    #[test]
    fn slow_start_grows_by_what_is_acknowledged_at_most_a_segment() {
        let mut book = book(Kind::Reno, 1, 16);
        book.on_new_ack(1460);
        book.on_new_ack(2920);
        book.on_new_ack(100);
        assert_eq!(book.cwnd, 3 * 1460 + 100);
    }

    #[test]
    fn ten_acknowledgments_of_a_window_of_ten_make_one_segment_more() {
        // The article's: 146 bytes each.
        let mut book = book(Kind::Reno, 10, 2);
        (0..9).for_each(|_| book.on_new_ack(1460));
        assert_eq!((book.cwnd(), book.credit / book.cwnd), (10, 9 * 146));
        book.on_new_ack(1460);
        assert_eq!(book.cwnd, 14_600 + 1460);
    }

    #[test]
    fn three_duplicates_make_what_the_book_says() {
        let after = |kind| {
            let mut book = book(kind, 16, 16);
            assert_eq!(book.on_congestion(16 * 1460), 8);
            let at_once = book.cwnd();
            book.on_duplicate();
            let inflated = book.cwnd();
            book.on_new_ack(16 * 1460);
            [at_once, inflated, book.cwnd()]
        };
        assert_eq!(after(Kind::Tahoe), [1, 1, 2]);
        assert_eq!(after(Kind::Reno), [8, 8, 8]);
        assert_eq!(after(Kind::RenoInflated), [11, 12, 8]);
        assert_eq!(after(Kind::StopAndWait), [1, 1, 1]);
    }

    #[test]
    fn the_threshold_is_at_least_two_segments() {
        assert_eq!(book(Kind::Reno, 3, 9).on_congestion(3 * 1460), 2);
    }
}
