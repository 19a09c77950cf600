//! What a run of the model says of a transfer: how long it takes, in how many rounds, and what its
//! sender waits for.

use core::cmp::Reverse;
use std::collections::BTreeMap;

use crate::scenario::plan::Plan;
use crate::segment::Flags;
use crate::world::{BuildError, Keep, Kernels, Limit, Seen, Side, Tap, Trace, World};

/// What comes of the connection that carries the most data. Times count from its opening.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Prediction {
    /// Whose data it is.
    pub sender: Side,
    /// Bytes of it, each once.
    pub bytes: u64,
    /// Bytes sent again.
    pub resent_bytes: u64,
    /// When the last byte has arrived, or when the model gave up.
    pub time_ns: u64,
    /// How often data was sent after the first of the round before was acknowledged.
    pub rounds: u32,
    /// What the sender waited for until then, the longest first.
    pub waits: Vec<(Limit, u64)>,
    /// What had not come to its end within the scenario's limit; empty if all had.
    pub unfinished: Vec<String>,
}

impl Prediction {
    /// Runs `plan` in the model.
    ///
    /// # Errors
    /// It asks for something that the model does not have.
    pub fn of(plan: &Plan, kernels: Kernels) -> Result<Self, BuildError> {
        let keep = Keep { segments: true, handed_down: true, limits: true, ..Keep::default() };
        let (outcome, trace) = World::new(plan, kernels, keep)?.run();
        let (connection, sender) = busiest(&trace);
        let transfer = Transfer { trace: &trace, connection, sender };
        let opened_ns = transfer.seen().next().map_or(0, |seen| seen.at_ns);
        let end_ns = match transfer.arrived_ns() {
            Some(arrived) if outcome.done => arrived,
            _ => outcome.end_ns,
        };
        let Sent { bytes, resent_bytes, rounds } = transfer.sent();
        Ok(Self {
            sender,
            bytes,
            resent_bytes,
            time_ns: end_ns.saturating_sub(opened_ns),
            rounds,
            waits: transfer.waits(opened_ns, end_ns),
            unfinished: outcome.waiting,
        })
    }

    /// How long it waited for `limit`.
    pub fn waited_ns(&self, limit: Limit) -> u64 {
        self.waits.iter().find(|(each, _)| *each == limit).map_or(0, |(_, ns)| *ns)
    }
}

/// The connection and side that handed down the most data.
fn busiest(trace: &Trace) -> (u32, Side) {
    let mut bytes = BTreeMap::new();
    for seen in &trace.handed_down {
        *bytes.entry((seen.connection, seen.from)).or_insert(0) += u64::from(seen.segment.len);
    }
    let most = bytes.into_iter().max_by_key(|(key, bytes)| (*bytes, Reverse(*key)));
    most.map_or((0, Side::Server), |(key, _)| key)
}

/// One direction of a connection in a trace.
struct Transfer<'a> {
    trace: &'a Trace,
    connection: u32,
    sender: Side,
}

/// What was sent in it.
#[derive(Default)]
struct Sent {
    bytes: u64,
    resent_bytes: u64,
    rounds: u32,
}

impl<'a> Transfer<'a> {
    /// What passed both taps of its connection.
    fn seen(&self) -> impl Iterator<Item = &'a Seen> {
        let connection = self.connection;
        self.trace.segments.iter().filter(move |seen| seen.connection == connection)
    }

    /// Its segments with data as they arrive.
    fn arrivals(&self) -> impl Iterator<Item = &'a Seen> {
        let (sender, tap) = (self.sender, Tap::from(self.sender.peer()));
        self.seen().filter(move |s| s.from == sender && s.tap == tap && s.segment.len > 0)
    }

    /// When the last byte that had not come before arrived.
    fn arrived_ns(&self) -> Option<u64> {
        let first = self.arrivals().next()?.segment.seq;
        // Offsets wrap as sequence numbers do; what has come is told piece by piece.
        let (mut come, mut last): (BTreeMap<i64, i64>, _) = (BTreeMap::new(), None);
        let mut reached = 0;
        for seen in self.arrivals() {
            let from = unwrapped(seen.segment.seq.wrapping_sub(first), reached);
            let to = from + i64::from(seen.segment.len);
            reached = reached.max(to);
            let before = come.range(..=from).next_back().map(|(_, end)| *end);
            if before.is_none_or(|end| end < to) {
                last = Some(seen.at_ns);
                let joined = come.entry(from).or_insert(to);
                *joined = to.max(*joined);
            }
        }
        last
    }

    /// What was handed down, and when it was let out.
    fn sent(&self) -> Sent {
        let mut sent = Sent::default();
        let mut data = self.trace.handed_down.iter().filter(|seen| {
            seen.connection == self.connection && seen.from == self.sender && seen.segment.len > 0
        });
        let Some(first) = data.clone().next().map(|seen| seen.segment.seq) else { return sent };
        let (own, peer) = (Tap::from(self.sender), self.sender.peer());
        let acks = self.seen().filter(|seen| {
            seen.tap == own && seen.from == peer && seen.segment.flags.has(Flags::ACK)
        });
        let mut acks = acks.peekable();
        let (mut una, mut nxt, mut marker) = (0, 0, -1);
        for seen in &mut data {
            while let Some(ack) = acks.next_if(|ack| ack.at_ns <= seen.at_ns) {
                una = una.max(unwrapped(ack.segment.ack.wrapping_sub(first), nxt).min(nxt));
            }
            let from = unwrapped(seen.segment.seq.wrapping_sub(first), nxt);
            let to = from + i64::from(seen.segment.len);
            if to > nxt && una > marker {
                sent.rounds += 1;
                marker = nxt;
            }
            let new = (to - nxt.max(from)).max(0);
            sent.bytes += new as u64;
            sent.resent_bytes += (to - from - new) as u64;
            nxt = nxt.max(to);
        }
        sent
    }

    /// What its sender waited for between two instants.
    fn waits(&self, from_ns: u64, to_ns: u64) -> Vec<(Limit, u64)> {
        let own = self.trace.limits.iter();
        let own = own.filter(|each| each.connection == self.connection && each.side == self.sender);
        let own = own.map(|each| (each.limit, each.at_ns));
        // A server's socket is there from the SYN on.
        let own = [(Limit::Handshake, from_ns)].into_iter().chain(own);
        let ends = own.clone().skip(1).map(|(_, at_ns)| at_ns).chain([u64::MAX]);
        let mut waits: Vec<(Limit, u64)> = Vec::new();
        for ((limit, at_ns), end) in own.zip(ends) {
            let ns = end.min(to_ns).saturating_sub(at_ns.max(from_ns));
            match waits.iter_mut().find(|(other, _)| *other == limit) {
                _ if ns == 0 => {}
                Some((_, sum)) => *sum += ns,
                None => waits.push((limit, ns)),
            }
        }
        waits.sort_by_key(|(_, ns)| Reverse(*ns));
        waits
    }
}

/// The offset nearest to `near` that `wrapped` may stand for.
fn unwrapped(wrapped: u32, near: i64) -> i64 {
    near + i64::from(wrapped.wrapping_sub(near as u32).cast_signed())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::profile::{KernelProfile, Version};
    use crate::scenario::Scenario;

    fn predicted(application: &str, overrides: &[&str]) -> Prediction {
        let text = format!(
            "[path]\nrtt = \"6ms\"\nrate = \"1gbit\"\n[application]\n{application}\nhead = \"43B\"\n"
        );
        let overrides: Vec<_> = overrides.iter().map(|&text| text.to_owned()).collect();
        let scenario = Scenario::read("test", &text, &overrides).expect("a scenario");
        let kernels = Kernels::both(KernelProfile::of(Version::new(6, 1)));
        Prediction::of(&scenario.variants[0], kernels).expect("the model has all of it")
    }

    #[test]
    fn half_a_megabyte_takes_six_rounds_of_slow_start() {
        let told = predicted("download = \"512KiB\"", &[]);
        assert_eq!((told.sender, told.rounds, told.resent_bytes), (Side::Server, 6, 0));
        assert_eq!(told.bytes, 43 + (512 << 10));
        assert_eq!(told.unfinished, [""; 0]);
        // Five waits of a round trip, less what it takes to send; the way there and back before.
        assert!((42_000_000..46_000_000).contains(&told.time_ns), "{}", told.time_ns);
        assert_eq!(told.waits[0].0, Limit::SlowStart, "{:?}", told.waits);
        let all: u64 = told.waits.iter().map(|(_, ns)| ns).sum();
        assert_eq!(all, told.time_ns, "the waits add up: {:?}", told.waits);
    }

    #[test]
    fn a_larger_first_flight_takes_fewer_rounds() {
        let few = predicted("download = \"512KiB\"", &["server.route.initcwnd=\"40\""]);
        assert_eq!(few.rounds, 4);
    }

    #[test]
    fn what_is_lost_is_sent_again() {
        let told = predicted("download = \"512KiB\"", &["path.loss=\"2%\""]);
        assert!(told.resent_bytes > 0);
        assert_eq!(told.bytes, 43 + (512 << 10), "each byte once");
    }

    #[test]
    fn what_cannot_end_is_told_with_what_it_waits_for() {
        let told = predicted("download = \"512KiB\"", &["path.loss=\"100%\"", "limit=\"3s\""]);
        assert_eq!((told.bytes, told.time_ns), (0, 3_000_000_000));
        assert_ne!(told.unfinished, [""; 0]);
    }

    #[test]
    fn numbers_wrap_and_offsets_go_on() {
        assert_eq!(unwrapped(5, 0), 5);
        assert_eq!(unwrapped(5, 1 << 32), (1 << 32) + 5);
        assert_eq!(unwrapped(u32::MAX, 1 << 32), (1 << 32) - 1);
    }
}
