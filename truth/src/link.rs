//! Holds what a report says of the narrowest link against the log of that link's own queue.
//!
//! The log tells when the link was at work. It was *busy* where it paused for two packets at most, and *full* where it was
//! busy for two round trips or more: then nothing the sender changes makes the transfer shorter. Between 0.7 and two round
//! trips either word is right.

use serde::Serialize;

/// From, to, in nanoseconds since 1970.
pub type Span = (u64, u64);

/// A link may pause for this many of the largest packets on Ethernet and still be busy: receivers acknowledge every second
/// segment (RFC 5681 section 4.2).
const PAUSE_BYTES: u64 = 2 * 1_514;

/// What a link did by its own log.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Log {
    /// Its rate in bits per second on layer 2.
    pub rate: u64,
    /// When it was busy, in order of time.
    pub busy: Vec<Span>,
    /// How often its queue had no room.
    pub dropped: u64,
    /// The round trip without queues.
    pub trip_ns: u64,
}

/// What a report says of it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Said {
    /// Its rate.
    pub rate: u64,
    /// When it was busy, and when it was full.
    pub busy: Vec<Span>,
    /// When it was full.
    pub full: Vec<Span>,
    /// Packets lost before it or in its queue, behind it, and while its queue was empty.
    pub lost: [u64; 3],
}

/// How far they agree, over all runs. All times in nanoseconds.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Held {
    /// Runs, and those whose report names a link.
    pub runs: u64,
    /// Of them.
    pub named: u64,
    /// Rates that are within a hundredth.
    pub rates_right: u64,
    /// Said to be busy, rightly so, in truth busy, and found so.
    pub busy: [u64; 4],
    /// Said to be full, for which 0.7 round trips are enough; in truth full for two, and found so.
    pub full: [u64; 4],
    /// Runs whose report tells of places of losses, and those where most are right.
    pub placed: [u64; 2],
}

impl Log {
    /// `spans` at which the link was at work, in order of time.
    pub fn new(rate: u64, spans: &[Span], dropped: usize, trip_ns: u64) -> Self {
        let pause = PAUSE_BYTES * 8 * 1_000_000_000 / rate.max(1);
        let mut busy: Vec<Span> = Vec::new();
        for &(from, to) in spans {
            match busy.last_mut() {
                Some(last) if from <= last.1 + pause => last.1 = last.1.max(to),
                _ => busy.push((from, to)),
            }
        }
        Self { rate, busy, dropped: dropped as u64, trip_ns }
    }

    /// The same link, this much nearer to the sender.
    #[must_use]
    pub fn earlier_by(mut self, ns: u64) -> Self {
        for run in &mut self.busy {
            *run = (run.0.saturating_sub(ns), run.1.saturating_sub(ns));
        }
        self
    }

    /// Runs of this many tenths of a round trip and more.
    pub fn runs(&self, tenths: u64) -> Vec<Span> {
        let is_long = |run: &&Span| (run.1 - run.0) * 10 >= self.trip_ns * tenths;
        self.busy.iter().filter(is_long).copied().collect()
    }
}

impl Held {
    /// Adds a run: what its report says of the link, its retransmitted segments (`resent`), and from when to when the
    /// connection lasted.
    pub fn add(&mut self, log: &Log, said: Option<&Said>, resent: u64, life: Span) {
        let nothing = Said::default();
        let said_of = said.unwrap_or(&nothing);
        let book = |row: &mut [u64; 4], said: &[Span], enough: &[Span], due: &[Span]| {
            let (enough, due) = (within(enough, life), within(due, life));
            row[0] += length(said);
            row[1] += common(said, &enough);
            row[2] += length(&due);
            row[3] += common(said, &due);
        };
        self.runs += 1;
        book(&mut self.busy, &said_of.busy, &log.busy, &log.busy);
        book(&mut self.full, &said_of.full, &log.runs(7), &log.runs(20));
        if let Some(said) = said {
            self.named += 1;
            self.rates_right += u64::from(said.rate.abs_diff(log.rate) * 100 <= log.rate);
            let [before, behind, elsewhere] = said.lost;
            let told = before + behind + elsewhere;
            if told > 0 {
                self.placed[0] += 1;
                let overflowed = log.dropped * 2 >= resent.max(log.dropped);
                self.placed[1] += u64::from((before * 2 >= told) == overflowed);
            }
        }
    }
}

fn within(spans: &[Span], (from, to): Span) -> Vec<Span> {
    let cut = spans.iter().map(|span| (span.0.max(from), span.1.min(to)));
    cut.filter(|span| span.0 < span.1).collect()
}

fn length(spans: &[Span]) -> u64 {
    spans.iter().map(|span| span.1 - span.0).sum()
}

/// For how long both are; each in order of time.
fn common(a: &[Span], b: &[Span]) -> u64 {
    let (mut i, mut j, mut sum) = (0, 0, 0);
    while let (Some(x), Some(y)) = (a.get(i), b.get(j)) {
        sum += x.1.min(y.1).saturating_sub(x.0.max(y.0));
        if x.1 < y.1 { i += 1 } else { j += 1 }
    }
    sum
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Two packets of 1,514 bytes take 24,224 ns.
    const RATE: u64 = 1_000_000_000;

    #[test]
    fn pauses_of_two_packets_are_no_pauses_and_runs_count_by_round_trips() {
        let spans = [(0, 10_000), (34_224, 50_000), (74_225, 100_000)];
        let log = Log::new(RATE, &spans, 0, 50_000);
        assert_eq!(log.busy, [(0, 50_000), (74_225, 100_000)]);
        let near = log.clone().earlier_by(10_000);
        assert_eq!(near.busy, [(0, 40_000), (64_225, 90_000)]);
        assert_eq!((log.runs(10), log.runs(20).len()), (vec![(0, 50_000)], 0));
    }

    #[test]
    fn a_report_is_held_against_the_log() {
        let log = Log { rate: RATE, busy: vec![(100, 300), (400, 440)], dropped: 3, trip_ns: 100 };
        let said = Said {
            rate: RATE + RATE / 100,
            busy: vec![(150, 350)],
            full: vec![(150, 350)],
            lost: [2, 1, 0],
        };
        let mut held = Held::default();
        held.add(&log, Some(&said), 4, (0, 420));
        assert_eq!(held.busy, [200, 150, 220, 150]);
        assert_eq!(held.full, [200, 150, 200, 150], "40 ns are no round trip");
        assert_eq!((held.rates_right, held.placed), (1, [1, 1]));
        held.add(&log, None, 4, (0, 420));
        assert_eq!((held.runs, held.named, held.busy[2]), (2, 1, 440));
        held.add(&log, Some(&Said { rate: 2 * RATE, lost: [0, 1, 1], ..said }), 3, (0, 420));
        assert_eq!((held.rates_right, held.placed), (1, [2, 1]));
    }
}
