//! Where the sender last stopped: what the verdict on the wait after it is made of.
//!
//! Any send may turn out to be the last one, but most are followed by the next of their burst.
//! So a send only says that a stop is due, and [`Walker::take_stop`] writes it down before
//! anything else can change what it is made of.

use super::Sender;
use crate::limits::evidence::Evidence;
use crate::limits::sense::OWN_QUEUE_NS;

/// The last send, as far as the wait after it cares.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Stop {
    pub(crate) evidence: Evidence,
    /// The round it belongs to.
    pub(crate) round: u64,
    /// The largest window announced by then: of all, and of the last rounds.
    pub(crate) window_largest: i64,
    pub(crate) window_recent: i64,
    /// The frame of a send after which this was not yet written down, and whether a burst began since it last was.
    due: Option<(u64, bool)>,
}

impl Stop {
    /// Data was sent in `frame`, with which a burst `begins` or goes on: should the sender stop here, all is to be taken
    /// down.
    pub(crate) fn on_send(&mut self, frame: u64, begins: bool) {
        let has_begun = self.due.is_some_and(|(_, has_begun)| has_begun);
        self.due = Some((frame, begins || has_begun));
    }
}

impl Sender {
    /// Takes down where the sender is, if it has sent since that was last done. Within a burst flights only grow and
    /// rooms only shrink, so the last send has the extremes of all.
    #[inline]
    pub(crate) fn take_stop(&mut self) {
        if let Some((frame, begins)) = self.stop.due.take() {
            self.take_stop_after(frame, begins);
        }
    }

    /// How much larger than `flight` a flight is that is seen away from its sender: a queue on the way to the tap lets
    /// data pass later than it was sent, beyond the lag that its time stamps tell for sure.
    fn hidden_by_queues(&self, flight: i64) -> i64 {
        let least = self.least_rtt();
        let told = (self.sends.lag - OWN_QUEUE_NS).max(0);
        let queue = (self.book.closed.standing_queue(least) - told).max(0);
        // A clock too coarse for the round trip tells no queue.
        if self.terms.tap_at_sender || queue == 0 || least == 0 {
            return 0;
        }
        let [flight, least, queue] = [flight, least, queue].map(i128::from);
        (flight * queue / (least + queue)) as i64
    }

    #[inline(never)]
    fn take_stop_after(&mut self, frame: u64, begins: bool) {
        let flight = self.flight.in_flight();
        let outstanding = self.flight.outstanding_segments();
        self.tally.max_in_flight = self.tally.max_in_flight.max(flight);
        self.pauses.largest_flight = self.pauses.largest_flight.max(outstanding);
        let room = self.window.room(self.flight.nxt);
        // In a repair more is outstanding than the congestion window holds.
        if self.repairs.episodes.current() == 0 {
            let hidden = self.hidden_by_queues(flight).min(room.max(0));
            let (flight, room) = (flight + hidden, room - hidden);
            let round = self.book.open.number;
            self.pauses.since_cut = self.pauses.since_cut.max(outstanding);
            self.window.on_stop((flight, room), self.terms.mss, round, begins);
        }
        self.stop = Stop {
            evidence: Evidence {
                in_flight: flight,
                segments: outstanding,
                room,
                window: self.window.size,
                cwnd: self.replay.cwnd(outstanding).best.unwrap_or(0),
                queue_ns: 0,
                first_frame: frame,
                last_frame: frame,
            },
            round: self.book.open.number,
            window_largest: self.window.largest,
            window_recent: self.window.recent_largest(),
            due: None,
        };
        self.book.open.stop_at(&self.stop.evidence, self.terms.mss);
    }
}

#[cfg(test)]
mod tests {
    use super::super::Terms;
    use super::*;
    use crate::limits::round::Round;

    const RTT: i64 = 20_000_000;

    /// How much of a flight of 60 kB a queue of 10 ms hides, if time stamps tell `lag` of its time.
    fn hidden(lag: i64, tap_at_sender: bool) -> i64 {
        let terms = Terms { tap_at_sender, ..Terms::default() };
        let mut walker = Sender::new(terms, true, 0);
        walker.trips.least = RTT;
        walker.sends.lag = lag;
        walker.book.closed.push(&Round { rtt_min: Some(RTT * 3 / 2), ..Round::default() });
        walker.hidden_by_queues(60_000)
    }

    #[test]
    fn a_queue_hides_what_no_time_stamp_puts_into_the_flight() {
        assert_eq!(hidden(0, false), 20_000);
        assert_eq!(hidden(OWN_QUEUE_NS, false), 20_000, "a tick is no lag for sure");
        assert_eq!(hidden(OWN_QUEUE_NS + RTT / 4, false), 12_000);
        assert_eq!(hidden(OWN_QUEUE_NS + RTT / 2, false), 0);
        assert_eq!(hidden(RTT, false), 0);
        assert_eq!(hidden(0, true), 0);
    }
}
