//! Sums over the connections of one group that never go back.
//!
//! A sum is what ended connections had plus what the open ones have. What a connection had before the first look is taken off once, so
//! that no sum begins with the past. Where a kernel's counter goes back, or one connection's time is booked anew, the sum stands still.

use tcpwhy::host::snapshot::{Socket, State as Tcp};
use tcpwhy::live::Connection;
use tcpwhy::report::State;

/// What is summed of each socket.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Count {
    Acked,
    Received,
    Sent,
    Resent,
    Retransmitted,
    Needless,
    SynRetries,
}

pub(super) const COUNTS: usize = 7;

/// Upper bounds of a round trip's buckets in microseconds; beyond the last there is one more. Ours: from a rack to a satellite with a
/// queue, two or three in each power of ten.
pub(super) const BUCKETS_US: [u64; 14] = [
    100, 250, 500, 1_000, 2_500, 5_000, 10_000, 25_000, 50_000, 100_000, 250_000, 500_000,
    1_000_000, 2_500_000,
];

/// States of TCP, by the words of OpenTelemetry (`network.connection.state`).
pub(super) const TCP: [(Tcp, &str); 9] = [
    (Tcp::Established, "established"),
    (Tcp::SynSent, "syn_sent"),
    (Tcp::SynRecv, "syn_received"),
    (Tcp::FinWait1, "fin_wait_1"),
    (Tcp::FinWait2, "fin_wait_2"),
    (Tcp::Close, "closed"),
    (Tcp::CloseWait, "close_wait"),
    (Tcp::LastAck, "last_ack"),
    (Tcp::Closing, "closing"),
];

/// A socket's counters.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub(super) struct Values(pub(super) [u64; COUNTS]);

impl Values {
    /// `syn` is how often its SYN or SYN-ACK was retransmitted.
    pub(super) fn of(socket: &Socket, syn: u32) -> Self {
        let mut all = [0; COUNTS];
        if let Some(info) = socket.info.as_deref() {
            all[Count::Acked as usize] = info.bytes_acked.unwrap_or(0);
            all[Count::Received as usize] = info.bytes_received.unwrap_or(0);
            all[Count::Sent as usize] = info.bytes_sent.unwrap_or(0);
            all[Count::Resent as usize] = info.bytes_retrans.unwrap_or(0);
            all[Count::Retransmitted as usize] = info.total_retrans.map_or(0, u64::from);
            all[Count::Needless as usize] = info.dsack_dups.map_or(0, u64::from);
        }
        all[Count::SynRetries as usize] = u64::from(syn);
        Self(all)
    }

    /// What both have.
    pub(super) fn least(self, other: Self) -> Self {
        Self(core::array::from_fn(|at| self.0[at].min(other.0[at])))
    }
}

/// How often the SYN of a socket that is being opened was retransmitted.
pub(super) fn syn_retries(socket: &Socket) -> u32 {
    if !matches!(socket.state, Tcp::SynSent | Tcp::SynRecv) {
        return 0;
    }
    let told = socket.info.as_deref().and_then(|info| info.total_retrans).unwrap_or(0);
    told.max(socket.timer.map_or(0, |timer| u32::from(timer.retransmits)))
}

/// A sum of what grows.
#[derive(Clone, Copy, Debug, Default)]
struct Sum {
    /// What ended, without what was before the first look.
    ended: i64,
    open: u64,
    shown: u64,
}

impl Sum {
    fn settle(&mut self) {
        let now = self.ended.saturating_add_unsigned(self.open);
        let back = self.shown.cast_signed().saturating_sub(now).max(0);
        self.ended = self.ended.saturating_add(back);
        self.shown = now.saturating_add(back).max(0).cast_unsigned();
    }
}

/// How often a time was within each bound.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Histogram {
    /// By bucket, not added up.
    pub(super) counts: [u64; BUCKETS_US.len() + 1],
    pub(super) sum_ns: u64,
}

impl Histogram {
    fn see(&mut self, ns: u64) {
        let at = BUCKETS_US.partition_point(|bound| bound * 1_000 < ns);
        self.counts[at] += 1;
        self.sum_ns = self.sum_ns.saturating_add(ns);
    }
}

/// What a group's connections add up to.
#[derive(Clone, Debug)]
pub(super) struct Tally {
    counts: [Sum; COUNTS],
    times: [Sum; State::COUNT],
    pub(super) rtt: Histogram,
    pub(super) min_rtt: Histogram,
    pub(super) opened: u64,
    pub(super) closed: u64,
    /// Now open, by state of TCP.
    pub(super) tcp: [u64; TCP.len()],
    /// Now held, by state.
    pub(super) held: [u64; State::COUNT],
    /// Now open, whose own program does not read.
    pub(super) lagging: u64,
}

impl Default for Tally {
    fn default() -> Self {
        Self {
            counts: [Sum::default(); COUNTS],
            times: [Sum::default(); State::COUNT],
            rtt: Histogram::default(),
            min_rtt: Histogram::default(),
            opened: 0,
            closed: 0,
            tcp: [0; TCP.len()],
            held: [0; State::COUNT],
            lagging: 0,
        }
    }
}

impl Tally {
    /// A look begins: nothing is open yet.
    pub(super) fn begin(&mut self) {
        self.counts.iter_mut().chain(&mut self.times).for_each(|sum| sum.open = 0);
        (self.tcp, self.held, self.lagging) = ([0; TCP.len()], [0; State::COUNT], 0);
    }

    /// A connection is open.
    pub(super) fn open(&mut self, connection: &Connection, values: Values) {
        for (sum, value) in self.counts.iter_mut().zip(values.0) {
            sum.open = sum.open.saturating_add(value);
        }
        for (state, span) in connection.times.iter() {
            let sum = &mut self.times[state as usize];
            sum.open = sum.open.saturating_add(span.0.max(0).cast_unsigned());
        }
        if let Some(at) = TCP.iter().position(|row| row.0 == connection.socket.state) {
            self.tcp[at] += 1;
        }
        if let Some(held) = &connection.held {
            self.held[held.state as usize] += 1;
        }
        self.lagging += u64::from(connection.reader.is_some_and(tcpwhy::live::Reader::is_full));
        let rtt = connection.socket.info.as_deref().and_then(|info| info.rtt_ns);
        // An estimate that no ACK has touched since the look before says nothing new.
        if let Some(ns) = rtt.filter(|_| connection.sent_bps.is_some_and(|rate| rate > 0)) {
            self.rtt.see(ns);
        }
    }

    /// A connection has ended.
    pub(super) fn end(&mut self, connection: &Connection, values: Values) {
        self.add(values, i64::saturating_add_unsigned);
        for (state, span) in connection.times.iter() {
            let sum = &mut self.times[state as usize];
            sum.ended = sum.ended.saturating_add(span.0.max(0));
        }
        if let Some(ns) = connection.socket.info.as_deref().and_then(|info| info.min_rtt_ns) {
            self.min_rtt.see(ns);
        }
        self.closed += 1;
    }

    /// What a connection had before it was followed.
    pub(super) fn take_off(&mut self, values: Values) {
        self.add(values, i64::saturating_sub_unsigned);
    }

    fn add(&mut self, values: Values, by: fn(i64, u64) -> i64) {
        for (sum, value) in self.counts.iter_mut().zip(values.0) {
            sum.ended = by(sum.ended, value);
        }
    }

    /// A look ends.
    pub(super) fn settle(&mut self) {
        self.counts.iter_mut().chain(&mut self.times).for_each(Sum::settle);
    }

    pub(super) const fn count(&self, count: Count) -> u64 {
        self.counts[count as usize].shown
    }

    /// Nanoseconds in `state`.
    pub(super) const fn time_ns(&self, state: State) -> u64 {
        self.times[state as usize].shown
    }

    /// Nothing was ever seen of it.
    pub(super) fn is_empty(&self) -> bool {
        self.opened + self.closed + self.tcp.iter().sum::<u64>() == 0
            && self.times.iter().all(|sum| sum.shown == 0)
    }
}
