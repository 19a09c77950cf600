//! What the other connections between the same hosts filled, and when.

use std::net::IpAddr;

/// A smaller excess is no queue that anybody notices. Ours.
pub(super) const EXCESS_NS: i64 = 5_000_000;
/// A direction that filled its path, in the capture's time.
#[derive(Clone, Debug)]
pub(super) struct Filler {
    pub(super) id: u64,
    pub(super) from: IpAddr,
    /// Its usual round trip meanwhile.
    pub(super) rtt_ns: Option<i64>,
    /// When the path was full, in order.
    pub(super) full: Vec<(i64, i64)>,
    /// When each round began, and what was sent by its end.
    pub(super) rounds: Vec<(i64, u64)>,
    /// When each round began and the next did, and its least round trip.
    pub(super) trips: Vec<((i64, i64), i64)>,
    pub(super) bytes: u64,
}

impl Filler {
    /// For how long it filled the path within `span`.
    pub(super) fn filled_in(&self, span: (i64, i64)) -> i64 {
        let first = self.full.partition_point(|full| full.1 <= span.0);
        let within = self.full[first..].iter().take_while(|full| full.0 < span.1);
        within.map(|full| common(*full, span)).sum()
    }

    /// About what it sent within `span`, each round's bytes spread over it.
    pub(super) fn bytes_in(&self, (from, to): (i64, i64)) -> u64 {
        self.sent_by(to).saturating_sub(self.sent_by(from))
    }

    /// Counts rounds in which a queue stood as full, too: while losses are repaired, what the queue holds still
    /// keeps the path busy. `least` is the least round trip between the hosts.
    pub(super) fn add_standing(&mut self, least: i64) {
        let stands = |rtt: i64| rtt - least >= EXCESS_NS.max(least);
        let standing = self.trips.iter().filter(|(_, rtt)| stands(*rtt)).map(|(span, _)| *span);
        let mut all: Vec<(i64, i64)> = self.full.iter().copied().chain(standing).collect();
        all.sort_unstable();
        self.full.clear();
        for span in all {
            match self.full.last_mut() {
                Some(last) if span.0 <= last.1 => last.1 = last.1.max(span.1),
                _ => self.full.push(span),
            }
        }
    }

    fn sent_by(&self, at: i64) -> u64 {
        let next = self.rounds.partition_point(|round| round.0 <= at);
        let Some(round) = next.checked_sub(1).and_then(|round| self.rounds.get(round)) else {
            return 0;
        };
        let before = next.checked_sub(2).map_or(0, |before| self.rounds[before].1);
        let Some((begins, _)) = self.rounds.get(next) else { return round.1 };
        let length = i128::from(begins - round.0).max(1);
        let part = i128::from(at - round.0) * i128::from(round.1 - before) / length;
        before + part as u64
    }
}

/// How long two spans have in common.
fn common(a: (i64, i64), b: (i64, i64)) -> i64 {
    (a.1.min(b.1).saturating_sub(a.0.max(b.0))).max(0)
}

#[derive(Debug, Default)]
pub(super) struct Hosts {
    pub(super) fillers: Vec<Filler>,
    pub(super) least_rtt_ns: Option<i64>,
}

/// What a connection's neighbours did.
pub(super) struct Others<'a> {
    pub(super) id: u64,
    /// When this connection began.
    pub(super) start_ns: i64,
    pub(super) hosts: &'a Hosts,
    /// The least round trip between its hosts, of all connections.
    pub(super) least_rtt_ns: Option<i64>,
}

impl<'a> Others<'a> {
    /// The other connections that filled the link.
    pub(super) fn fillers(&self) -> impl Iterator<Item = &'a Filler> + use<'a> {
        let id = self.id;
        self.hosts.fillers.iter().filter(move |filler| filler.id != id)
    }
}
