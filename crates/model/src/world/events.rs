//! What happens next: in order of time, and of planning where times are equal; but a program goes on
//! when its host's kernel has done all that is due at that instant (`irq_exit` runs softirqs before the
//! interrupted processor looks which process is next).
//!
//! Nearly all events are the ways', and each way has but one that counts: those two stand beside the
//! queue, not in it.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use super::Side;

/// Something that happens.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub(super) enum Event {
    /// A client opens the next connection of this flow.
    Open(u32),
    /// Something on the way from this side.
    Way(Side),
    /// The timers of a socket may be due.
    Timer(u32, Side),
    /// The pause of an application ends.
    App(u32, Side),
    /// The path changes.
    Change(u32),
    /// A host forgets what it remembers of its peer.
    Forget(Side),
    /// A driver waits no longer for more.
    Gathered(u32, Side),
    /// Something in a host's device.
    Device(Side),
    /// A frame of other traffic comes to the way from this side.
    Cross(Side),
    /// A router tells that packets have to be smaller: what the path takes, and whose sequence number
    /// the packet had that was too long.
    TooLong(u32, Side, u32, u32),
}

impl Event {
    const fn is_of_program(self) -> bool {
        matches!(self, Self::App(..) | Self::Open(_))
    }
}

/// What the numbers of plans of programs begin with: they come after all others of their instant.
const PROGRAMS: u64 = 1 << 63;

/// An instant, and the number of the plan for it.
type Due = (u64, u64);

const NEVER: Due = (u64::MAX, u64::MAX);

/// What is planned.
#[derive(Clone, Debug)]
pub(super) struct Events {
    queue: BinaryHeap<Reverse<(u64, u64, Event)>>,
    /// By who sends on it.
    ways: [Due; 2],
    planned: u64,
}

impl Events {
    pub(super) const fn new() -> Self {
        Self { queue: BinaryHeap::new(), ways: [NEVER; 2], planned: 0 }
    }

    pub(super) fn plan(&mut self, at: u64, event: Event) {
        self.planned += 1;
        let order = if event.is_of_program() { PROGRAMS | self.planned } else { self.planned };
        self.queue.push(Reverse((at, order, event)));
    }

    /// A way has something to do at `at`, if not before.
    pub(super) fn plan_way(&mut self, from: Side, at: u64) {
        if at < self.ways[from.index()].0 {
            self.put_aside(from);
            self.planned += 1;
            self.ways[from.index()] = (at, self.planned);
        }
    }

    /// Takes the first.
    pub(super) fn next(&mut self) -> Option<(u64, Event)> {
        loop {
            let [up, down] = self.ways;
            let (from, due) = if up < down { (Side::Client, up) } else { (Side::Server, down) };
            let first = self.queue.peek().map(|Reverse((at, planned, _))| (*at, *planned));
            if first.is_none_or(|first| due < first) {
                self.ways[from.index()] = NEVER;
                return (due != NEVER).then_some((due.0, Event::Way(from)));
            }
            match self.queue.pop() {
                // A plan from before: it counts if the way is due again just now, and so the way
                // keeps the place among its equals in time that it had first.
                Some(Reverse((at, _, Event::Way(from)))) => {
                    if self.ways[from.index()].0 == at {
                        self.put_aside(from);
                        return Some((at, Event::Way(from)));
                    }
                }
                other => return other.map(|Reverse((at, _, event))| (at, event)),
            }
        }
    }

    fn put_aside(&mut self, from: Side) {
        let (at, planned) = std::mem::replace(&mut self.ways[from.index()], NEVER);
        if at != u64::MAX {
            self.queue.push(Reverse((at, planned, Event::Way(from))));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(events: &mut Events) -> Vec<(u64, Event)> {
        std::iter::from_fn(|| events.next()).collect()
    }

    #[test]
    fn equal_times_come_as_they_were_planned() {
        let mut events = Events::new();
        events.plan(7, Event::Change(0));
        events.plan_way(Side::Client, 7);
        events.plan(7, Event::Change(1));
        events.plan_way(Side::Server, 5);
        let told = all(&mut events);
        let (up, down) = (Event::Way(Side::Client), Event::Way(Side::Server));
        assert_eq!(told, [(5, down), (7, Event::Change(0)), (7, up), (7, Event::Change(1))]);
    }

    #[test]
    fn programs_go_on_when_their_kernels_have_done_what_is_due() {
        let mut events = Events::new();
        let (reader, writer) = (Event::App(0, Side::Client), Event::App(0, Side::Server));
        let (up, timer) = (Event::Way(Side::Client), Event::Timer(0, Side::Server));
        events.plan(7, reader);
        events.plan(7, timer);
        events.plan(6, writer);
        events.plan_way(Side::Client, 7);
        assert_eq!(all(&mut events), [(6, writer), (7, timer), (7, up), (7, reader)]);
    }

    #[test]
    fn a_way_that_is_due_again_keeps_its_place() {
        let mut events = Events::new();
        let way = Event::Way(Side::Client);
        events.plan_way(Side::Client, 7);
        events.plan(7, Event::Change(0));
        events.plan_way(Side::Client, 3);
        assert_eq!(events.next(), Some((3, way)));
        events.plan_way(Side::Client, 7);
        assert_eq!(all(&mut events), [(7, way), (7, Event::Change(0))]);
    }

    #[test]
    fn a_plan_from_before_is_nothing_by_itself() {
        let mut events = Events::new();
        events.plan_way(Side::Server, 7);
        events.plan_way(Side::Server, 3);
        events.plan_way(Side::Server, 5);
        assert_eq!(all(&mut events), [(3, Event::Way(Side::Server))]);
    }
}
