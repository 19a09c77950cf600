//! Round trips of one sender, and the scale of time that follows from them.
//!
//! Question: what counts as "at once" on this path? Whatever follows its cause within a small
//! share of a round trip was drawn by it; a pause is long when it exceeds one. The timers that the
//! kernel would run ([`Rto`]) are fed from the same samples.
//!
//! The least round trip is the path's, until the path changes. A queue of the sender's own is empty
//! whenever its link has stood idle, so what is sent first after that finds the path as it is. If
//! round after round begins so, and no round trip comes near the old least any more, the path has
//! become longer (or others fill it for good, which these packets cannot tell apart). Linux and BBR
//! forget by the clock, after 300 s and 10 s (`tcp_min_rtt_wlen`, `bbr_min_rtt_win_sec`): a queue
//! that lasts that long would become the path.

use super::jumps::Jumps;
use crate::limits::round::least_queue;
use crate::limits::sense::{
    DELAYED_ACK_NS, GUESSED_RTT_NS, LONGER_ROUNDS, RELEASE_MIN_NS, RELEASE_SHARE,
};
use crate::measure::rto::Rto;
use crate::measure::sketch::Sketch;
use crate::offsets::Offset;

/// Whether an ACK that comes `late` behind the least round trip waited for that timer.
pub(crate) fn is_delayed_ack(late: i64) -> bool {
    DELAYED_ACK_NS.contains(&late)
}

/// Whether what is sent so long behind a segment draws its ACK before that timer runs out: the second full segment
/// does (RFC 9293 section 3.8.6.3), and it arrives as long behind.
pub(crate) fn draws_ack(behind: i64) -> bool {
    behind < *DELAYED_ACK_NS.start()
}

/// What is known of the round trip.
#[derive(Clone, Debug)]
pub(crate) struct RoundTrips {
    pub(crate) timers: Rto,
    /// All samples, for the report.
    pub(crate) spans: Sketch,
    /// The least, `i64::MAX` while unknown.
    pub(crate) least: i64,
    pub(crate) jumps: Jumps,
    /// The share of [`Self::scale`] within which a send follows its cause; kept, because it is
    /// asked for at each packet.
    share: i64,
    /// Round trips up to this are near the least.
    near: i64,
    longer: Longer,
}

/// Round trips since the last that was near the least.
#[derive(Clone, Copy, Debug)]
struct Longer {
    least: i64,
    /// Rounds that began on an idle link.
    rounds: u32,
    /// The open round has some.
    seen: bool,
}

impl Longer {
    const NONE: Self = Self { least: i64::MAX, rounds: 0, seen: false };
}

impl RoundTrips {
    /// Nothing but `floor` is known, 0 if not even that: the constant round trips on both sides of
    /// the tap.
    pub(crate) fn new(floor: i64) -> Self {
        let least = if floor > 0 { floor } else { i64::MAX };
        let mut trips = Self {
            timers: Rto::default(),
            spans: Sketch::default(),
            least,
            jumps: Jumps::default(),
            share: 0,
            near: 0,
            longer: Longer::NONE,
        };
        trips.fit_share();
        trips
    }

    /// Takes a round trip.
    pub(crate) fn shorten(&mut self, rtt: i64) {
        if rtt < self.least {
            self.least = rtt;
            self.fit_share();
        }
    }

    /// Takes a round trip of data; `plain` if nothing but the path made it as long as it is.
    pub(crate) fn push(&mut self, rtt: i64, plain: bool) {
        self.spans.push(rtt);
        self.shorten(rtt);
        if rtt <= self.near {
            self.longer = Longer::NONE;
        } else if plain {
            self.longer.least = self.longer.least.min(rtt);
            self.longer.seen = true;
        }
    }

    /// A round ends, in which the link stood idle or not.
    pub(crate) fn on_round(&mut self, idle: bool) {
        let counts = core::mem::take(&mut self.longer.seen) && idle;
        self.longer.rounds += u32::from(counts);
        if self.longer.rounds == LONGER_ROUNDS {
            self.least = core::mem::replace(&mut self.longer, Longer::NONE).least;
            self.fit_share();
        }
    }

    /// Feeds the timers, as [`Rto::sample`] does.
    pub(crate) fn sample(&mut self, rtt: i64, una: Offset, nxt: Offset) {
        self.timers.sample(rtt, una, nxt);
        if self.least == i64::MAX {
            self.fit_share();
        }
    }

    fn fit_share(&mut self) {
        self.share = RELEASE_MIN_NS.max(RELEASE_SHARE.of(self.scale()));
        self.near = self.scale() + least_queue(self.scale());
    }

    /// The round trip to judge by: the least, else the smoothed one, else a guess of 1 ms.
    pub(crate) fn scale(&self) -> i64 {
        let least = (self.least < i64::MAX).then_some(self.least);
        least.or(self.timers.srtt()).unwrap_or(GUESSED_RTT_NS)
    }

    /// A send within this of its cause was released by it; `spread` is the capture's noise.
    pub(crate) fn tolerance(&self, spread: i64) -> i64 {
        self.share + spread
    }
}

/// A send later than this after its cause, though within the tolerance, may have had another.
pub(crate) fn promptness(spread: i64) -> i64 {
    RELEASE_MIN_NS + spread
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_scale_is_the_best_that_is_known() {
        let mut trips = RoundTrips::new(0);
        assert_eq!(trips.scale(), 1_000_000);
        trips.sample(8_000_000, Offset::FIRST, Offset::FIRST);
        assert_eq!((trips.scale(), trips.tolerance(0)), (8_000_000, 240_000));
        trips.shorten(7_000_000);
        trips.shorten(9_000_000);
        assert_eq!((trips.scale(), trips.tolerance(0)), (7_000_000, 210_000));
        assert_eq!(RoundTrips::new(5_000_000).scale(), 5_000_000);
    }

    /// The least round trip after it was 20 ms, and then rounds of `rtt` each.
    fn least_after(rtt: i64, rounds: u32, idle: bool) -> i64 {
        let mut trips = RoundTrips::new(20_000_000);
        for _ in 0..rounds {
            trips.push(rtt + 3, true);
            trips.push(rtt, true);
            trips.on_round(idle);
        }
        trips.least
    }

    #[test]
    fn a_path_that_became_longer_is_believed_after_rounds_on_an_idle_link() {
        assert_eq!(least_after(40_000_000, 7, true), 20_000_000);
        assert_eq!(least_after(40_000_000, 8, true), 40_000_000);
        assert_eq!(least_after(40_000_000, 99, false), 20_000_000, "a queue may stand");
        assert_eq!(least_after(22_000_000, 99, true), 20_000_000, "a tenth more is near");
        assert_eq!(least_after(22_000_001, 8, true), 22_000_001);
    }

    #[test]
    fn one_round_trip_near_the_least_is_enough_to_keep_it() {
        let mut trips = RoundTrips::new(20_000_000);
        for round in 0..20 {
            trips.push(if round % 8 == 7 { 21_000_000 } else { 40_000_000 }, true);
            trips.on_round(true);
        }
        assert_eq!(trips.least, 20_000_000);
        for _ in 0..20 {
            trips.push(60_000_000, false);
            trips.on_round(true);
        }
        assert_eq!(trips.least, 20_000_000, "a late answer is no path");
    }

    #[test]
    fn at_once_is_never_less_than_the_capture_can_tell() {
        assert_eq!(RoundTrips::new(20_000).tolerance(7), 50_007);
        assert_eq!(RoundTrips::new(100_000_000).tolerance(0), 3_000_000);
    }
}
