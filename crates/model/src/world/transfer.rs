//! What a direction of a connection carried and waited for, summed up while the run goes on: its
//! memory follows what is under way, not what was sent.

use super::{Limit, Side};
use crate::segment::{Flags, Segment};
use crate::socket::Purpose;

/// One connection; its directions by who sends, the client's first.
#[derive(Clone, Debug)]
pub struct Carried {
    /// When its first segment was handed down.
    pub opened_ns: u64,
    /// What each side sent.
    pub directions: [Transfer; 2],
}

/// One direction.
#[derive(Clone, Debug, Default)]
pub struct Transfer {
    /// Bytes handed down, each once.
    pub bytes: u64,
    /// Bytes handed down again.
    pub resent_bytes: u64,
    /// How often data was sent after the first of the round before was acknowledged.
    pub rounds: u32,
    /// When the last byte arrived that had not come before.
    pub arrived_ns: Option<u64>,
    /// Number of the first byte; what follows counts from it and does not wrap.
    first: Option<u32>,
    una: i64,
    nxt: i64,
    /// `nxt` as the round began; none has begun below 0.
    marker: i64,
    arrivals: Arrivals,
    waits: Waits,
    /// When data was sent, or more of it acknowledged, or a SYN or SYN-ACK of either side was sent.
    progress_ns: u64,
}

/// Which bytes have come.
#[derive(Clone, Debug, Default)]
struct Arrivals {
    /// All before this one.
    whole_to: i64,
    /// And these beyond it, in order and apart.
    beyond: Vec<(i64, i64)>,
}

/// How long a sender waited for what.
#[derive(Clone, Debug)]
struct Waits {
    now: Limit,
    since_ns: u64,
    /// Up to `since_ns`.
    spent_ns: [u64; Limit::ALL.len()],
    /// Up to the end of the account.
    settled_ns: [u64; Limit::ALL.len()],
}

impl Carried {
    pub(super) fn opened(at_ns: u64) -> Self {
        let directions = [at_ns; 2].map(|at_ns| Transfer {
            marker: -1,
            waits: Waits { since_ns: at_ns, ..Waits::default() },
            ..Transfer::default()
        });
        Self { opened_ns: at_ns, directions }
    }

    /// A segment is handed down.
    pub(super) fn on_sent(&mut self, at_ns: u64, from: Side, segment: &Segment) {
        if segment.flags.has(Flags::SYN) {
            self.directions.iter_mut().for_each(|each| each.progress_ns = at_ns);
        }
        self.directions[from.index()].on_sent(at_ns, segment);
    }

    /// A timer of `side` fires. What its sender had waited since the last progress, it waited for that; until the
    /// handshake is done, both do.
    pub(super) fn on_timer(&mut self, at_ns: u64, side: Side, purpose: Purpose) {
        let opens = |each: &Transfer| each.waits.now == Limit::Handshake;
        let timer = match purpose {
            Purpose::Retransmit if opens(&self.directions[side.index()]) => {
                self.directions
                    .iter_mut()
                    .filter(|each| opens(each))
                    .for_each(|each| each.on_timer(at_ns, Limit::SynTimer));
                return;
            }
            Purpose::Retransmit => Limit::RetransmissionTimer,
            Purpose::LossProbe => Limit::ProbeTimer,
            Purpose::Reorder | Purpose::WindowProbe => return,
        };
        self.directions[side.index()].on_timer(at_ns, timer);
    }

    /// A segment has reached its receiver.
    pub(super) fn on_arrival(&mut self, at_ns: u64, from: Side, segment: &Segment) {
        self.directions[from.index()].on_data_arrival(at_ns, segment);
        if segment.flags.has(Flags::ACK) {
            self.directions[from.peer().index()].on_ack(at_ns, segment.ack);
        }
    }
}

impl Transfer {
    /// Bytes handed down, with those that were retransmitted.
    pub const fn handed_down(&self) -> u64 {
        self.bytes + self.resent_bytes
    }

    /// What it waited for until the last byte arrived (if none did: until the applications were
    /// done), the longest first.
    pub fn waits(&self) -> Vec<(Limit, u64)> {
        sorted(&self.waits.settled_ns)
    }

    /// The same up to an instant not before the last of its changes.
    pub fn waits_until(&self, at_ns: u64) -> Vec<(Limit, u64)> {
        sorted(&self.waits.up_to(at_ns))
    }

    fn on_sent(&mut self, at_ns: u64, segment: &Segment) {
        if segment.len == 0 {
            return;
        }
        self.progress_ns = at_ns;
        let (from, to) = self.span(segment);
        if to > self.nxt && self.una > self.marker {
            self.rounds += 1;
            self.marker = self.nxt;
        }
        let new = (to - self.nxt.max(from)).max(0);
        self.bytes += new as u64;
        self.resent_bytes += (to - from - new) as u64;
        self.nxt = self.nxt.max(to);
    }

    fn on_timer(&mut self, at_ns: u64, timer: Limit) {
        self.waits.end_in(at_ns, self.progress_ns, timer);
    }

    pub(super) fn on_limit(&mut self, at_ns: u64, limit: Limit) {
        self.waits.change(at_ns, limit);
    }

    /// The applications are done: if nothing arrives, the account ends here.
    pub(super) fn on_done(&mut self, at_ns: u64) {
        if self.arrived_ns.is_none() {
            self.waits.settle(at_ns);
        }
    }

    fn on_data_arrival(&mut self, at_ns: u64, segment: &Segment) {
        if segment.len == 0 {
            return;
        }
        let (from, to) = self.span(segment);
        if self.arrivals.take(from, to) {
            self.arrived_ns = Some(at_ns);
            self.waits.settle(at_ns);
        }
    }

    fn on_ack(&mut self, at_ns: u64, ack: u32) {
        let Some(first) = self.first else { return };
        let ack = unwrapped(ack.wrapping_sub(first), self.nxt).min(self.nxt);
        if ack > self.una {
            (self.una, self.progress_ns) = (ack, at_ns);
        }
    }

    /// Where a segment's data begins and ends, counted from the first byte.
    fn span(&mut self, segment: &Segment) -> (i64, i64) {
        let first = *self.first.get_or_insert(segment.seq);
        let from = unwrapped(segment.seq.wrapping_sub(first), self.nxt);
        (from, from + i64::from(segment.len))
    }
}

impl Arrivals {
    /// Whether any of these bytes had not come before.
    fn take(&mut self, from: i64, to: i64) -> bool {
        let place = self.beyond.partition_point(|(_, end)| *end < from);
        let known = self.beyond.get(place).is_some_and(|(low, high)| *low <= from && to <= *high);
        if to <= self.whole_to || known {
            return false;
        }
        let (mut from, mut to) = (from, to);
        let touching = self.beyond[place..].iter().take_while(|(low, _)| *low <= to).count();
        for (low, high) in self.beyond.drain(place..place + touching) {
            from = from.min(low);
            to = to.max(high);
        }
        if from <= self.whole_to {
            self.whole_to = to;
        } else {
            self.beyond.insert(place, (from, to));
        }
        true
    }
}

impl Default for Waits {
    fn default() -> Self {
        let none = [0; Limit::ALL.len()];
        Self { now: Limit::Handshake, since_ns: 0, spent_ns: none, settled_ns: none }
    }
}

impl Waits {
    fn change(&mut self, at_ns: u64, limit: Limit) {
        self.spent_ns = self.up_to(at_ns);
        (self.now, self.since_ns) = (limit, at_ns);
    }

    /// Of the present wait, what came after `progress_ns` was for a `timer` that fires now.
    fn end_in(&mut self, at_ns: u64, progress_ns: u64, timer: Limit) {
        let ns = at_ns.saturating_sub(progress_ns.max(self.since_ns));
        self.change(at_ns, self.now);
        self.spent_ns[self.now as usize] -= ns;
        self.spent_ns[timer as usize] += ns;
    }

    fn settle(&mut self, at_ns: u64) {
        self.settled_ns = self.up_to(at_ns);
    }

    fn up_to(&self, at_ns: u64) -> [u64; Limit::ALL.len()] {
        let mut spent = self.spent_ns;
        spent[self.now as usize] += at_ns.saturating_sub(self.since_ns);
        spent
    }
}

fn sorted(spent_ns: &[u64; Limit::ALL.len()]) -> Vec<(Limit, u64)> {
    let mut waits: Vec<_> = Limit::ALL.into_iter().zip(*spent_ns).collect();
    waits.retain(|(_, ns)| *ns > 0);
    waits.sort_by_key(|(_, ns)| core::cmp::Reverse(*ns));
    waits
}

/// The offset nearest to `near` that `wrapped` may stand for.
fn unwrapped(wrapped: u32, near: i64) -> i64 {
    near + i64::from(wrapped.wrapping_sub(near as u32).cast_signed())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_wrap_and_offsets_go_on() {
        assert_eq!(unwrapped(5, 0), 5);
        assert_eq!(unwrapped(5, 1 << 32), (1 << 32) + 5);
        assert_eq!(unwrapped(u32::MAX, 1 << 32), (1 << 32) - 1);
    }

    #[test]
    fn bytes_arrive_once_whatever_their_order() {
        let mut arrivals = Arrivals::default();
        let come = [(0, 10), (20, 30), (40, 50), (30, 40), (22, 28), (5, 20), (0, 50), (50, 60)];
        let new: Vec<_> = come.iter().map(|(from, to)| arrivals.take(*from, *to)).collect();
        assert_eq!(new, [true, true, true, true, false, true, false, true]);
        assert_eq!((arrivals.whole_to, arrivals.beyond.len()), (60, 0), "nothing is kept of it");
    }

    #[test]
    fn what_came_before_a_hole_is_told_from_what_fills_it() {
        let mut arrivals = Arrivals::default();
        assert!(arrivals.take(10, 20));
        assert!(arrivals.take(15, 25), "a part of it is new");
        assert!(!arrivals.take(12, 25));
        assert_eq!(arrivals.beyond, [(10, 25)]);
        assert!(arrivals.take(0, 12));
        assert_eq!((arrivals.whole_to, arrivals.beyond.len()), (25, 0));
    }

    #[test]
    fn waits_are_told_up_to_the_last_arrival() {
        let mut carried = Carried::opened(100);
        let data = Segment { len: 10, ..Segment::default() };
        let transfer = &mut carried.directions[0];
        transfer.on_limit(150, Limit::SlowStart);
        transfer.on_sent(150, &data);
        transfer.on_data_arrival(180, &data);
        transfer.on_limit(190, Limit::LastFlight);
        transfer.on_done(500);
        assert_eq!(transfer.waits(), [(Limit::Handshake, 50), (Limit::SlowStart, 30)]);
        let until = [(Limit::LastFlight, 310), (Limit::Handshake, 50), (Limit::SlowStart, 40)];
        assert_eq!(transfer.waits_until(500), until);
    }

    #[test]
    fn what_a_timer_ends_was_a_wait_for_it() {
        let mut carried = Carried::opened(0);
        let syn = Segment { flags: Flags::SYN, ..Segment::default() };
        carried.on_sent(0, Side::Client, &syn);
        carried.on_timer(1_000, Side::Client, Purpose::Retransmit);
        carried.on_sent(1_000, Side::Client, &syn);
        let server = |carried: &Carried, at_ns| carried.directions[1].waits_until(at_ns);
        let told = [(Limit::SynTimer, 1_000), (Limit::Handshake, 20)];
        assert_eq!(server(&carried, 1_020), told, "the server's data waits for the client's timer");
        // Its answer: all is sent, and the last of it is lost twice.
        let data = Segment { len: 10, ..Segment::default() };
        carried.directions[1].on_limit(1_020, Limit::LastFlight);
        carried.on_sent(1_030, Side::Server, &data);
        carried.on_timer(1_070, Side::Server, Purpose::LossProbe);
        carried.on_sent(1_070, Side::Server, &data);
        carried.on_timer(1_270, Side::Server, Purpose::Retransmit);
        let told = [
            (Limit::SynTimer, 1_000),
            (Limit::RetransmissionTimer, 200),
            (Limit::ProbeTimer, 40),
            (Limit::Handshake, 20),
            (Limit::LastFlight, 10),
        ];
        assert_eq!(server(&carried, 1_270), told, "10 of the last flight are before it was sent");
        carried.on_timer(1_300, Side::Server, Purpose::Reorder);
        assert_eq!(carried.directions[1].waits_until(1_300)[3], (Limit::LastFlight, 40));
    }
}
