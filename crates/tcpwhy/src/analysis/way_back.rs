//! How late arrivals came to a sender: how long they waited in queues on the way back, which the tap does not see.
//!
//! At the sender's host an arrival tells by its own time stamp when its host let it go; what it took beyond the least
//! way of all, it stood in queues ([`Stamps`]). Elsewhere the tap sees it before it waits there. But a send that does
//! not echo what had passed the tap left before that came (RFC 7323 section 4.3: all that leaves later echoes it or a
//! later one). How long before, beyond the least round trip between tap and sender, is the least that it was held up;
//! the time that the send itself stood in queues is known by its own time stamp. An ACK that is lost seems late until
//! the next one comes.

use crate::clocks::{StackTime, TapTime};
use crate::flow::event::{Event, TS};
use crate::measure::clock::SideClock;
use crate::measure::stamps::Stamps;

/// What comes this much later than on the least way stood in a queue, beyond the noise of answers. Ours: as a queue of
/// the data is one.
const LATE_NS: i64 = 1_000_000;

/// And this part of that way. Ours: the same.
const LATE_PART: i64 = 10;

/// What came before something that is known to be late came late as well, by up to twice as much. Ours: a queue
/// does not halve between two that left together.
const AS_LATE: i64 = 2;

/// The way back to one sender.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct WayBack {
    /// What the sends and the arrivals took on their ways to the tap.
    sends: Stamps,
    arrivals: Stamps,
    /// Up to when a send left that shows that what is still to come had not come then.
    shown: Option<StackTime>,
    /// By how much the next to come is late at least, when the send at hand leaves, and when that is at the earliest.
    late: Option<i64>,
    left: StackTime,
    /// The most that one was.
    pub(super) most: i64,
}

impl WayBack {
    /// Takes a send that passed the tap away from its sender, with the `clock` of that, and that left before what passed
    /// the tap at `until` had come. By how much that was late then, if it stood in a queue.
    pub(super) fn overdue(
        &mut self,
        send: &Event,
        until: TapTime,
        clock: &SideClock,
    ) -> Option<i64> {
        self.late = None;
        let (tick, floor) = clock.tick().filter(|_| send.has(TS)).zip(clock.floor())?;
        self.left = self.sends.unhindered(send.tap, send.tsval, tick).left(floor);
        let least = LATE_NS.max(floor / LATE_PART);
        // Few are late at all: only of those the noise is asked, which has to be counted out.
        let is_late = |late: &i64| *late > least && *late > least + clock.spread();
        self.late = Some(self.left.since(until.at_stack())).filter(is_late);
        self.most = self.most.max(self.late.unwrap_or(0));
        self.late
    }

    /// The send at hand is taken, put at `at`.
    pub(super) fn took(&mut self, at: StackTime) {
        if self.late.is_some() {
            self.shown = Some(at);
        }
    }

    /// When what passed the tap at `tap` came, if the next send leaves at `send`.
    pub(super) fn came(&self, tap: TapTime, send: StackTime) -> StackTime {
        let tap = tap.at_stack();
        let is_shown = self.shown.is_some_and(|shown| tap <= shown);
        let is_as_late = self.late.is_some_and(|late| (send - tap) / AS_LATE <= late);
        if send < StackTime::MAX && (is_shown || is_as_late) { send.max(tap) } else { tap }
    }

    /// How long what passed the tap at `tap` stood in queues behind it, at least, if it came as late as `came`.
    pub(super) fn held_behind(&self, tap: TapTime, came: StackTime) -> i64 {
        (self.left.min(came) - tap.at_stack()).max(0)
    }

    /// How long what arrives at the tap at its sender's host stood in queues on its way, at least.
    pub(super) fn held_before(&mut self, arrival: &Event, peer: &SideClock) -> i64 {
        let Some(tick) = peer.tick().filter(|_| arrival.has(TS)) else { return 0 };
        let unhindered = self.arrivals.unhindered(arrival.tap, arrival.tsval, tick);
        (arrival.tap - unhindered - tick).max(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::flow::event::ACK;
    use crate::offsets::Offset;

    const MS: i64 = 1_000_000;

    /// The clock of a sender 40 ms from the tap and back, whose stamps tick every millisecond.
    fn clock() -> SideClock {
        let mut clock = SideClock::default();
        for number in 0..20_u32 {
            let at = i64::from(number) * 50 * MS;
            let (drew, seq) = (
                Event { tap: TapTime(at), len: 100, bits: ACK, ..Event::default() },
                i64::from(number) * 100,
            );
            clock.peer_passed(&Event { seq: Offset::at(seq), ..drew });
            let answer = Event { ack: Offset::at(seq + 100), ..send(at + 40 * MS, 0) };
            let cause = clock.cause_of(&answer, &[]);
            clock.learn(&answer, cause);
        }
        clock.fit_tick();
        clock
    }

    /// A send that passed the tap `late` behind the least way.
    fn send(tap: i64, late: i64) -> Event {
        Event {
            tap: TapTime(tap),
            tsval: ((tap - late) / MS) as u32,
            bits: ACK | TS,
            ..Event::default()
        }
    }

    /// By how much what passed the tap at 100 ms is overdue at a send that passed it at `tap`, `late` by its own way.
    fn overdue(tap: i64, late: i64) -> Option<i64> {
        let (mut back, clock) = (WayBack::default(), clock());
        back.overdue(&send(0, 0), TapTime::MAX, &clock);
        back.overdue(&send(tap, late), TapTime(100 * MS), &clock).map(|late| late / MS)
    }

    /// When what passed the tap at `tap` came, in milliseconds, if the next send leaves at `send`.
    fn came(back: WayBack, tap: i64, send: i64) -> i64 {
        back.came(TapTime(tap * MS), StackTime(send * MS)).0 / MS
    }

    #[test]
    fn what_a_send_does_not_echo_had_not_come() {
        assert_eq!(overdue(340 * MS, 0), Some(200));
        assert_eq!(overdue(140 * MS, 0), None, "it was due just then");
        assert_eq!(
            [overdue(144 * MS, 0), overdue(145 * MS, 0)],
            [None, Some(5)],
            "a tenth of the way"
        );
    }

    #[test]
    fn what_the_send_itself_stood_in_a_queue_is_not_the_way_backs() {
        assert_eq!(overdue(340 * MS, 150 * MS), Some(50));
        assert_eq!(overdue(340 * MS, 200 * MS), None);
    }

    #[test]
    fn what_was_shown_not_to_have_come_comes_with_the_send_that_follows() {
        let (mut back, clock) = (WayBack::default(), clock());
        back.overdue(&send(0, 0), TapTime::MAX, &clock);
        assert_eq!(came(back, 90, 95), 90, "nothing is shown");
        back.overdue(&send(340 * MS, 0), TapTime(100 * MS), &clock);
        let late = [80, 120].map(|tap| came(back, tap, 300));
        assert_eq!(late, [300, 300], "what left with it, by up to twice its time");
        assert_eq!(came(back, -101, 300), -101, "more than twice");
        back.took(StackTime(300 * MS));
        back.overdue(&send(360 * MS, 0), TapTime::MAX, &clock);
        let late = [100, 300, 301].map(|tap| came(back, tap, 320));
        assert_eq!(
            late,
            [320, 320, 301],
            "what passed the tap after that send is not known to be late"
        );
        let alone = back.came(TapTime(100 * MS), StackTime::MAX);
        assert_eq!(alone, StackTime(100 * MS), "no send follows");
    }

    #[test]
    fn an_arrivals_own_stamp_tells_what_it_stood_in_queues() {
        let (mut back, clock) = (WayBack::default(), clock());
        let mut held = |tap, late| back.held_before(&send(tap, late), &clock) / MS;
        assert_eq!(
            [held(10 * MS, 0), held(50 * MS, 30 * MS)],
            [0, 28],
            "a tick and a clock's drift less"
        );
    }
}
