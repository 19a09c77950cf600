//! Short segments that wait for the one before them: Nagle's algorithm (RFC 9293 section 3.7.4).

use super::Sender;
use crate::clocks::StackTime;
use crate::flow::event::Event;
use crate::limits::sense::{LINUX_INITIAL_WINDOW, OWN_QUEUE_NS};
use crate::limits::wait::Release;

impl Sender {
    /// Whether Nagle's algorithm held `event`, a short segment: in Linux until the last short one
    /// before it was acknowledged (`tcp_minshall_check`). Stacks that wait for all that was sent
    /// (RFC 9293 §3.7.4) are not told.
    pub(super) fn is_held_by_nagle(&self, release: Release, event: &Event, at: StackTime) -> bool {
        matches!(release, Release::Ack { by_data: false })
            && i64::from(event.len) < self.terms.mss
            && self.had_room(event, self.window.room(event.seq))
            && !self.repairs.episodes.is_repairing()
            && !self.is_held_by_cwnd_first()
            && self.waited_for_short()
            && self.was_released_with_short(at)
    }

    /// Whether the congestion window was full, too: it is asked for first (`tcp_write_xmit`, v6.1: `tcp_cwnd_test` before
    /// `tcp_nagle_test`). Of the first flight nothing tells but that Linux begins with this many segments.
    fn is_held_by_cwnd_first(&self) -> bool {
        let sent = self.flight.segments_to_nxt;
        match self.initial {
            Some(initial) if initial.segments.get() == sent => sent == LINUX_INITIAL_WINDOW,
            _ => self.fills_cwnd(),
        }
    }

    /// Whether the last short segment was acknowledged since the sender stopped.
    pub(super) fn waited_for_short(&self) -> bool {
        let una_then = self.flight.nxt - self.stop.evidence.in_flight;
        (una_then + 1..=self.flight.una).contains(&self.sends.short.0)
    }

    /// Whether the ACK that took the last short segment is one that released the send at `at`. Linux sends what Nagle's
    /// algorithm held in the call that took that ACK (`tcp_ack`, `tcp_push_pending_frames`). A full send buffer lets its
    /// writer go on only when a third of it is free (`sk_stream_write_space`), which is ACKs later.
    fn was_released_with_short(&self, at: StackTime) -> bool {
        let covers = self.releases.acks.iter().find(|ack| ack.una >= self.sends.short.0);
        let is_near = self.terms.tap_at_sender && self.terms.own_way <= OWN_QUEUE_NS;
        let is_last = covers == self.releases.acks.back();
        let latest = if is_near { self.promptness() } else { self.tolerance() };
        is_last || covers.is_some_and(|ack| at - ack.at <= latest)
    }
}

#[cfg(test)]
mod tests {
    use super::super::Terms;
    use super::*;
    use crate::limits::sender::releases::Advance;
    use crate::offsets::Offset;

    const MSS: i64 = 1448;

    /// Whether a send was released with a short segment of 376 bytes, whose ACK came so long before, with others behind
    /// it.
    fn released_with(before: i64, others: &[i64], terms: Terms) -> bool {
        let mut sender = Sender::new(Terms { mss: MSS, ..terms }, true, 0);
        sender.trips.sample(20_000_000, Offset::FIRST, Offset::FIRST);
        sender.sends.short = (Offset::at(376), 376);
        let at = 100_000_000;
        sender.releases.push(StackTime(at - before - 10_000), Offset::at(300), false);
        sender.releases.push(StackTime(at - before), Offset::at(376), false);
        for (number, since) in (1..).zip(others) {
            sender.releases.acks.push_back(Advance {
                at: StackTime(at - since),
                una: Offset::at(376 + number * MSS),
            });
        }
        sender.was_released_with_short(StackTime(at))
    }

    #[test]
    fn what_leaves_acks_later_waited_for_more_than_the_short_segment() {
        let near = Terms { tap_at_sender: true, ..Terms::default() };
        let told = |before, others: &[i64]| released_with(before, others, near);
        let prompt = Sender::new(near, true, 0).promptness();
        assert!(told(prompt, &[1000]), "too close to tell which of them it was");
        assert!(!told(prompt + 1, &[1000]));
        assert!(told(500_000, &[]), "no other came");
    }

    #[test]
    fn away_from_the_sender_acks_that_came_together_released_it_together() {
        let told = |before| released_with(before, &[1000], Terms::default());
        assert!(told(600_000), "3 % of the round trip");
        assert!(!told(600_001));
    }
}
