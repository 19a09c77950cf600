//! The link's rate, by what more in flight did: beyond what the path holds each segment more only waits in its queue, so that the
//! round trip grows and the rate does not (Cardwell et al., "BBR: Congestion-Based Congestion Control", 2016, figure 1).

use tcpwhy_words::said::time;
use tcpwhy_words::units::BitRate;

use crate::host::snapshot::Info;

/// In flight, in per cent of what it was, from which on it is more. Ours: CUBIC grows by 43 from a loss to the next, Reno by 100.
const MORE_PERCENT: u64 = 115;

/// The rate, in per cent of what it was, up to which it is the same. Ours: a third of what more in flight would make.
const SAME_PERCENT: u64 = 105;

/// Of the link's rate, in per cent, from which on the link is full. Ours.
const FULL_PERCENT: u64 = 90;

/// Fewer segments in flight tell nothing: delayed ACKs make their round trip. Ours: an initial window (RFC 6928).
const TELLING: u32 = 10;

/// What a queue adds at least to the least round trip: an eighth of it, and of these bounds (RFC 9406 section 4.2).
const QUEUE_NS: (u64, u64) = (4_000_000, 16_000_000);

/// What was seen of a connection's link.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub(super) struct Link {
    /// Segments in flight and the rate when its window began to grow.
    base: Option<(u32, u64)>,
    /// What it gives, in bytes per second.
    rate: Option<u64>,
    /// The last look found it full: its rate, the round trip, and the least one.
    full: Option<(u64, u64, u64)>,
}

impl Link {
    /// A look; whether something was lost since the one before. What arrives is the kernel's own measure of a flight
    /// (`tcp_rate_gen`).
    pub(super) fn see(&mut self, now: &Info, has_lost: bool) {
        self.full = None;
        if has_lost {
            self.base = None;
        }
        let is_idle = has_lost || now.delivery_rate_app_limited == Some(true);
        let flight = now.unacked.filter(|all| *all >= TELLING && !is_idle);
        let (Some(flight), Some(gives)) = (flight, now.delivery_rate) else { return };
        let (Some(rtt), Some(least)) = (now.rtt_ns, now.min_rtt_ns) else { return };
        let has_queue = rtt >= least + (least / 8).clamp(QUEUE_NS.0, QUEUE_NS.1);
        let is_same = |before: u64| is_at_most(gives, SAME_PERCENT, before);
        if self.rate.is_some_and(|known| !is_same(known)) {
            // It gives more than that: it was not full, or is another one now.
            (self.rate, self.base) = (None, None);
        }
        match self.base.filter(|(less, before)| flight >= *less && is_same(*before)) {
            None => self.base = Some((flight, gives)),
            Some((less, _)) => {
                let is_more = u64::from(flight) * 100 >= u64::from(less) * MORE_PERCENT;
                if is_more && has_queue {
                    self.rate = self.rate.or(Some(gives));
                }
            }
        }
        let is_all = |known: &u64| {
            has_queue && u128::from(gives) * 100 >= u128::from(*known) * u128::from(FULL_PERCENT)
        };
        self.full = self.rate.filter(is_all).map(|known| (known, rtt, least));
    }

    /// Whether it gave all that it can at the last look.
    pub(super) const fn is_full(&self) -> bool {
        self.full.is_some()
    }

    /// What shows that.
    pub(super) fn words(&self) -> String {
        let Some((known, rtt, least)) = self.full else { return String::new() };
        let [rtt, least] = [rtt, least].map(|ns| time(ns.cast_signed()));
        format!(
            "more in flight made no more than {} and a longer round trip ({rtt}, the least is {least})",
            BitRate(known.saturating_mul(8))
        )
    }
}

/// Whether `rate` is at most this share of another, in per cent.
fn is_at_most(rate: u64, percent: u64, of: u64) -> bool {
    u128::from(rate) * 100 <= u128::from(of) * u128::from(percent)
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    fn look((flight, rtt, rate): (u32, u64, u64)) -> Info {
        Info {
            unacked: Some(flight),
            rtt_ns: Some(rtt * MS),
            min_rtt_ns: Some(40 * MS),
            delivery_rate: Some(rate * 1_000),
            ..Info::default()
        }
    }

    /// Looks: segments in flight, round trip in ms (the least is 40), kB/s. Whether the link is full at the last.
    fn full(looks: &[(u32, u64, u64)]) -> bool {
        let mut link = Link::default();
        for each in looks {
            link.see(&look(*each), false);
        }
        link.is_full()
    }

    #[test]
    fn more_in_flight_that_only_waits_longer_fills_the_link() {
        assert!(full(&[(40, 40, 1_000), (46, 46, 1_000)]));
        assert!(!full(&[(40, 40, 1_000), (45, 46, 1_000)]), "not much more in flight");
        assert!(full(&[(40, 40, 1_000), (46, 46, 1_050)]), "the same rate");
        assert!(!full(&[(40, 40, 1_000), (46, 46, 1_051)]), "more rate");
        assert!(full(&[(40, 40, 1_000), (46, 45, 1_000)]), "an eighth is a queue");
        assert!(!full(&[(40, 40, 1_000), (46, 44, 1_000)]), "no queue");
        assert!(!full(&[(8, 40, 1_000), (9, 80, 1_000)]), "delayed ACKs of few segments");
        assert!(!full(&[(40, 40, 1_000), (40, 60, 1_000)]), "a longer way");
    }

    #[test]
    fn it_stays_full_as_long_as_it_gives_as_much() {
        let known = [(40, 40, 1_000), (46, 46, 1_000)];
        let then = |look| full(&[&known[..], &[look]].concat());
        assert!(then((30, 46, 900)) && !then((30, 46, 899)));
        assert!(!then((30, 44, 1_000)), "its queue is gone");
        assert!(!then((50, 46, 1_060)), "it gives more");
    }

    #[test]
    fn a_loss_begins_anew_and_what_the_program_gave_is_no_rate() {
        let mut link = Link::default();
        link.see(&look((40, 40, 1_000)), false);
        link.see(&look((46, 46, 1_000)), true);
        link.see(&look((46, 46, 1_000)), false);
        assert!(!link.is_full());
        let program = Info { delivery_rate_app_limited: Some(true), ..look((60, 60, 1_000)) };
        link.see(&program, false);
        assert!(!link.is_full());
    }
}
