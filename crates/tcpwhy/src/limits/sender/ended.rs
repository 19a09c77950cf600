//! What was true of a wait when the send came that ended it.
//!
//! The sender's parts are asked here, and nowhere else, for what rules judge by.

use super::trips;
use super::{Sender, Sends};
use crate::clocks::StackTime;
use crate::flow::event::Event;
use crate::limits::sense::{
    DEFERRED, DELAYABLE_SEGMENTS, OWN_QUEUE_NS, PROMPT_NS, SOON, UNANSWERED,
};
use crate::limits::wait::{Flown, Probe, Release, Short, Wait, Window};

/// What the open wait's pieces tell of it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Lasted {
    /// When what ended it came.
    pub(crate) until: StackTime,
    /// All was acknowledged for a part of it, or a timer ran out.
    pub(crate) was_quiet: bool,
    /// The receiver's window was shut.
    pub(crate) was_shut: bool,
}

impl Sender {
    /// What was true of the wait that new data, `event` at `at`, ended.
    pub(crate) fn wait_until(
        &self,
        release: Release,
        (event, at): (&Event, StackTime),
        lasted: Lasted,
    ) -> Wait {
        let stop = &self.stop.evidence;
        let by_itself = matches!(release, Release::Burst | Release::Free);
        let had_room = self.had_room(event, stop.room);
        let was_full = lasted.was_shut && !had_room;
        let after_all = by_itself && lasted.was_quiet;
        let short = i64::from(event.len) < self.terms.mss;
        let both_short = self.sends.new.short && short;
        let held_by_nagle = self.is_held_by_nagle(release, event, at);
        let fills_cwnd = self.fills_cwnd();
        let is_proven = self.is_window_proven();
        let ack_may_be_late = by_itself && self.may_be_late_acks(at);
        let within = |most: i64| self.releases.acks.back().is_some_and(|ack| at - ack.at <= most);
        let full = !had_room || fills_cwnd || is_proven;
        let is_late_release = by_itself
            && !lasted.was_quiet
            && !was_full
            && full
            && (within(SOON.of(self.rtt_scale())) || ack_may_be_late);
        let by_ack = matches!(release, Release::Ack { .. }) || is_late_release;
        Wait {
            round: self.stop.round,
            ended_by: release,
            by_data: self.releases.by_data,
            at_sender: self.terms.tap_at_sender,
            is_blind: self.is_blind,
            in_own_queue: self.is_held_by_own_queue(lasted.until),
            was_quiet: lasted.was_quiet,
            is_late_release,
            is_soon_after_ack: after_all && within(SOON.of(self.rtt_scale()).max(PROMPT_NS)),
            ack_may_be_late,
            has_passed_over_acks: by_ack && self.has_passed_over_acks(at),
            is_past_pulse: by_ack && self.sends.new.is_pulse_missed(at),
            flown: self.flown(),
            had_room,
            fills_cwnd,
            window: Window { is_proven, stayed_full: was_full, ..self.window_at_stop() },
            behind_short: held_by_nagle
                .then_some(Short { is_as_long: event.len == self.sends.short.1 }),
            both_short,
            ack_was_delayed: (both_short || held_by_nagle)
                && trips::is_delayed_ack(at - self.sends.last - self.least_rtt()),
            ends_probed_tail: after_all
                && self.progress.tail_probed
                && short
                && self.waited_for_short(),
            probe: if release == Release::Free && !after_all {
                self.probe_like_new(event, at)
            } else {
                Probe::None
            },
            may_be_lost_tail: lasted.was_quiet && self.may_be_lost_tail(event, at),
            is_part_by_timer: lasted.was_quiet && self.is_part_by_timer(event, at),
            late_each_time: self.sends.writes.are_told(),
            is_slow_pace: lasted.was_quiet && self.is_slow_pace(at),
            goes_on: after_all && self.transfers.goes_on(at),
            ended_whole: !self.sends.new.short,
            has_probed_window: self.has_probed,
        }
    }

    /// What is true of a wait whose end the capture lacks.
    pub(crate) fn wait_without_end(&self) -> Wait {
        Wait { round: self.stop.round, window: self.window_at_stop(), ..Wait::PLAIN }
    }

    fn flown(&self) -> Flown {
        match self.stop.evidence.in_flight {
            flight if flight < self.terms.mss => Flown::LessThanOne,
            flight if flight < 2 * self.terms.mss => Flown::LessThanTwo,
            _ => Flown::More,
        }
    }

    /// Whether the wait up to `until` was for the queue on the sender's own host: what was sent last
    /// stood in it, and had not left when the next came.
    ///
    /// A window that is full lets nothing out either, whatever waits in queues. And TCP learns nothing of what an
    /// emulated delay holds (`netem_enqueue` orphans it), nor of what waits on another host: behind a delay, only
    /// ACKs of no repair that passed without letting anything out show it.
    pub(crate) fn is_held_by_own_queue(&self, until: StackTime) -> bool {
        let Sends { last, lag, .. } = self.sends;
        let stop = &self.stop.evidence;
        let is_near = self.terms.own_way <= OWN_QUEUE_NS;
        let passed = || self.releases.acks.iter().filter(|ack| ack.at < until).count();
        self.terms.tap_at_sender
            && lag > OWN_QUEUE_NS
            && last + lag >= until
            && stop.room >= self.terms.mss
            && !self.fills_cwnd()
            && (is_near || self.repairs.episodes.current() == 0 && passed() >= UNANSWERED)
    }

    /// When the send at `at` was released: by the last ACK before it where those before are seen to have let nothing out,
    /// on the sender's own host. Behind a delay there, and elsewhere, which of those that came together did it does not show.
    pub(crate) fn released_at(&self, at: StackTime) -> StackTime {
        let is_near = self.terms.own_way <= OWN_QUEUE_NS;
        match self.releases.acks.back() {
            Some(last) if self.terms.tap_at_sender && is_near => last.at,
            _ => self.cluster_start(at),
        }
    }

    /// The first of the ACKs that arrived together and released the send at `at`.
    fn cluster_start(&self, at: StackTime) -> StackTime {
        let tolerance = self.tolerance();
        self.releases.acks.iter().map(|ack| ack.at).find(|ack| at - *ack <= tolerance).unwrap_or(at)
    }

    /// Whether ACKs before those that released the send at `at` had taken more than a third of the flight, and let
    /// nothing out: a congestion window that was full lets out what such ACKs open. Linux waits for no more than a third of
    /// the window to open (`tcp_tso_should_defer`, `tcp_tso_win_divisor`). While it mends a loss it waits for the flight to
    /// fall to the window that was cut.
    pub(crate) fn has_passed_over_acks(&self, at: StackTime) -> bool {
        let cluster = self.cluster_start(at);
        let before = self.releases.acks.iter().rev().find(|ack| ack.at < cluster);
        let flight = self.stop.evidence.in_flight;
        // Two segments more may go unnoticed where ACKs come in pairs.
        let taken = before.map_or(0, |ack| ack.una - (self.flight.nxt - flight));
        self.repairs.episodes.current() == 0
            && self.growth.lost_at.is_none()
            && !DEFERRED.is_kept(taken - DELAYABLE_SEGMENTS * self.terms.mss, flight)
    }

    /// Whether the last stop was at the congestion window, as far as that is known.
    pub(crate) fn fills_cwnd(&self) -> bool {
        let segments = self.stop.evidence.segments;
        self.replay.cwnd(segments).high.is_some_and(|high| segments.get() >= high)
    }

    /// Whether the last ACK before the send at `at` may have come so late to a sender elsewhere that it let that go. The
    /// tap does not see that way, but how long the other one held up what found it empty of the sender's own.
    pub(crate) fn may_be_late_acks(&self, at: StackTime) -> bool {
        let delay = self.book.closed.held_up().max(self.book.open.held_up);
        let since = self.releases.last.map(|last| at - last);
        !self.terms.tap_at_sender
            && delay > 0
            && since.is_some_and(|since| since <= delay + self.tolerance())
    }

    /// Whether a sender that had nothing in flight before its send at `at` sends in time with those before in the same
    /// transfer, if they look like a pace. Ends that the receiver's window cut tell nothing.
    pub(crate) fn is_slow_pace(&self, at: StackTime) -> bool {
        !self.peer.spoke
            && !self.sends.new.short
            && self.stop.evidence.room >= self.terms.mss
            && !self.sends.new.is_pulse_missed(at)
            && self.transfers.goes_on(at)
            && self.book.closed.are_paced()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::limits::pulse::{Before, Cause};
    use crate::limits::round::Round;
    use crate::limits::sender::Terms;
    use crate::limits::sender::releases::Advance;
    use crate::limits::sender::transfers::Run;
    use crate::offsets::Offset;
    use crate::segments::Segments;

    const RTT: i64 = 20_000_000;

    /// Whether an ACK may be late that came `since` before a send, where the way to the tap held up an empty one's data so
    /// long.
    fn may_be_late(since: i64, held_up: i64, tap_at_sender: bool) -> bool {
        let terms = Terms { floor: RTT, tap_at_sender, ..Terms::default() };
        let mut walker = Sender::new(terms, true, 0);
        walker.releases.push(StackTime(RTT), Offset::at(1448), false);
        walker.book.open.held_up = held_up;
        walker.may_be_late_acks(StackTime(RTT + since))
    }

    #[test]
    fn an_ack_may_be_as_late_as_data_that_found_the_way_empty() {
        // At once is within 3 % of the round trip.
        let latest = 5_000_000 + RTT * 3 / 100;
        assert!(may_be_late(latest, 5_000_000, false));
        assert!(!may_be_late(latest + 1, 5_000_000, false), "the application's pause");
        assert!(!may_be_late(latest, 5_000_000, true), "at the sender it is seen when it comes");
        assert!(!may_be_late(1_000, 0, false), "nothing is ever late here");
    }

    const TICK: i64 = 10_000_000;

    /// Whether a sender sends in time `since` its last send, if before it sent `sends` full segments by itself, each
    /// after one tick; changed by `change`.
    fn slow_pace(sends: u64, since: i64, change: impl Fn(&mut Sender)) -> bool {
        let terms = Terms { mss: 1448, tap_at_sender: true, ..Terms::default() };
        let mut walker = Sender::new(terms, true, 0);
        for number in 0..sends {
            let at = number as i64 * TICK;
            let mut round = Round { number, ..Round::default() };
            round.pulses.push(StackTime(at), &mut walker.sends.new, Cause::Own, None);
            walker.sends.new = Before { at: StackTime(at), pushed: true, ..walker.sends.new };
            walker.book.closed.push(&round);
        }
        walker.transfers.begin(Run::at(StackTime(0), Offset::FIRST, 0));
        walker.stop.evidence.room = 1448;
        change(&mut walker);
        walker.is_slow_pace(walker.sends.new.at + since)
    }

    #[test]
    fn what_comes_in_time_after_nothing_was_in_flight_may_be_a_slow_pace() {
        assert!(slow_pace(9, TICK, |_| ()));
        assert!(!slow_pace(8, TICK, |_| ()), "seven distances");
        assert!(slow_pace(9, 2 * TICK, |_| ()));
        assert!(!slow_pace(9, 2 * TICK + 1, |_| ()), "the application's pause");
        assert!(!slow_pace(9, TICK, |w| w.sends.new.short = true), "a write's end");
        assert!(!slow_pace(9, TICK, |w| w.peer.spoke = true), "an answer");
        let cut = slow_pace(9, TICK, |w| w.stop.evidence.room = 1447);
        assert!(!cut, "the receiver's window may have cut what was written");
        let anew = slow_pace(9, TICK, |w| {
            w.transfers.begin(Run::at(StackTime(9 * TICK), Offset::FIRST, 0));
        });
        assert!(!anew, "a transfer of its own");
    }

    const MSS: i64 = 1448;

    /// A sender whose last data stood 3 ms in a queue after it was sent at 10 ms.
    fn queued(own_way: i64) -> Sender {
        let terms = Terms { mss: MSS, tap_at_sender: true, own_way, ..Terms::default() };
        let mut walker = Sender::new(terms, true, 0);
        (walker.sends.last, walker.sends.lag) = (StackTime(10_000_000), 3_000_000);
        walker.stop.evidence.room = MSS;
        walker
    }

    #[test]
    fn what_is_sent_before_the_last_has_left_its_host_waited_for_that_queue() {
        let mut walker = queued(0);
        assert!(walker.is_held_by_own_queue(StackTime(13_000_000)));
        assert!(!walker.is_held_by_own_queue(StackTime(13_000_001)), "it had left");
        walker.sends.lag = OWN_QUEUE_NS;
        assert!(!walker.is_held_by_own_queue(StackTime(10_500_000)), "within a tick");
        let full = &mut queued(0);
        full.stop.evidence.room = MSS - 1;
        assert!(!full.is_held_by_own_queue(StackTime(12_000_000)), "a full window holds it too");
    }

    #[test]
    fn behind_a_delay_only_acks_that_let_nothing_out_tell_of_the_hosts_queue() {
        let mut walker = queued(OWN_QUEUE_NS + 1);
        let ack = |at| Advance { at: StackTime(at), una: Offset::FIRST };
        walker.releases.acks.extend([11_000_000, 11_500_000, 12_000_000].map(ack));
        assert!(!walker.is_held_by_own_queue(StackTime(12_800_000)));
        walker.releases.acks.push_back(ack(12_500_000));
        assert!(walker.is_held_by_own_queue(StackTime(12_800_000)));
        assert!(
            !walker.is_held_by_own_queue(StackTime(12_500_000)),
            "the fourth is what let it out"
        );
        walker.repairs.episodes.on_duplicate(Offset::at(9), Segments::new(1), StackTime(0));
        assert!(
            !walker.is_held_by_own_queue(StackTime(12_800_000)),
            "in a repair ACKs may let nothing out"
        );
    }

    #[test]
    fn on_the_senders_host_an_ack_that_let_nothing_out_is_waited_past() {
        let released_at = |tap_at_sender, own_way| {
            let terms = Terms { own_way, tap_at_sender, ..Terms::default() };
            let mut walker = Sender::new(terms, true, 0);
            walker.trips.sample(100_000_000, Offset::FIRST, Offset::FIRST);
            let ack = |at| Advance { at: StackTime(at), una: Offset::FIRST };
            walker.releases.acks.extend([9_000_000, 10_000_000, 10_700_000].map(ack));
            walker.released_at(StackTime(10_701_000))
        };
        assert_eq!(released_at(true, OWN_QUEUE_NS), StackTime(10_700_000));
        assert_eq!(
            released_at(true, OWN_QUEUE_NS + 1),
            StackTime(9_000_000),
            "what it let out is delayed"
        );
        assert_eq!(
            released_at(false, 0),
            StackTime(9_000_000),
            "all came within 3 % of a round trip"
        );
    }

    #[test]
    fn a_full_congestion_window_lets_nothing_of_a_third_of_it_pass() {
        // Thirty segments are in flight, and two that ACKs take off let nothing out.
        let mut walker = Sender::new(Terms { mss: MSS, detail: true, ..Terms::default() }, true, 0);
        walker.flight.nxt = Offset::at(30 * MSS);
        walker.stop.evidence.in_flight = 30 * MSS;
        let mut passes_over = |taken: i64| {
            walker.releases.acks.clear();
            let una = taken * MSS;
            walker.releases.acks.extend(
                [(10_000_000, una), (20_000_000, una + MSS)]
                    .map(|(at, una)| Advance { at: StackTime(at), una: Offset::at(una) }),
            );
            walker.has_passed_over_acks(StackTime(20_000_000))
        };
        assert!(passes_over(13));
        assert!(!passes_over(12), "Linux may wait for a super-segment");
        walker.growth.cut(Segments::new(40), 0);
        walker.releases.acks[0].una = Offset::at(20 * MSS);
        assert!(
            !walker.has_passed_over_acks(StackTime(20_000_000)),
            "a loss has cut the window below the flight"
        );
    }
}
