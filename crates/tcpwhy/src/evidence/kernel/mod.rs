//! What the kernel says of its socket, beside what the packets gave.
//!
//! | figure | set beside |
//! |---|---|
//! | congestion window | the replayed one, round by round; the measured one takes its place |
//! | slow start threshold | where slow start was found to end |
//! | busy, stopped by the receiver's window, by its own buffer | the time in those states |
//! | least round trip | the sender's, as rebuilt |
//! | bytes not sent yet | the verdict that the application had nothing to send |
//!
//! Samples have their place by the bytes they count ([`place`]), so no clock is needed. A difference
//! larger than both errors is a contradiction, and the report shows both values.

mod place;
mod times;
mod window;

use crate::report::{Beside, Connection, Direction, State};
use tcpwhy_words::said;

use super::sample::Sample;
use place::{Placed, Rounds};

/// One host's samples of one connection, and where what they tell goes.
pub(super) struct Case<'a> {
    /// The file's index.
    pub(super) source: usize,
    /// Whose kernel: 0 the client, 1 the server.
    pub(super) side: usize,
    pub(super) samples: &'a [&'a Sample],
}

impl Case<'_> {
    /// Lays the samples beside `connection`: what they say of it, and its rounds with what was measured.
    pub(super) fn apply(&self, connection: &mut Connection) -> Vec<Beside> {
        let placed = place::place(self.samples, connection, self.side);
        let mut told = Vec::new();
        if let Some(direction) = connection.directions[self.side].as_deref() {
            let rounds = Rounds::of(direction);
            told.extend(times::of(self, connection, direction, &rounds, &placed));
            let is_whole = connection.syns.iter().any(Option::is_some);
            told.extend(self.least_rtt(direction, connection.handshake_rtt_ns, is_whole));
            told.extend(self.unsent(direction, &rounds, &placed));
        }
        told.extend(self.buffers());
        if let Some(direction) = connection.directions[self.side].as_deref_mut() {
            let rounds = Rounds::of(direction);
            told.extend(window::ssthresh(self, direction, &rounds, &placed));
            told.extend(window::cwnd(self, direction, &rounds, &placed));
        }
        told
    }

    /// An entry of this file and this side.
    fn entry(&self, quantity: &'static str, verdict: &'static str, text: String) -> Beside {
        Beside {
            source: self.source as u64,
            side: self.who().into(),
            quantity: quantity.into(),
            verdict: verdict.into(),
            text,
            ..Beside::default()
        }
    }

    fn who(&self) -> &'static str {
        ["client", "server"][self.side]
    }

    /// The newest value of a figure.
    fn last<T>(&self, of: impl Fn(&Sample) -> Option<T>) -> Option<T> {
        self.samples.iter().rev().find_map(|sample| of(sample))
    }

    /// The kernel counts the handshake's, too, and forgets what is older than five minutes (`tcp_min_rtt_wlen`), or may be
    /// asked before the least: a greater one than the packets show contradicts nothing. Nor does a smaller one from before a
    /// capture that is not whole from the SYN on.
    fn least_rtt(
        &self,
        direction: &Direction,
        handshake: Option<i64>,
        is_whole: bool,
    ) -> Option<Beside> {
        let measured = self.samples.iter().filter_map(|sample| sample.min_rtt_ns).min()?;
        let ours =
            direction.rtt.min_ns.map(|ours| handshake.map_or(ours, |opened| ours.min(opened)));
        let verdict = ours.map_or(MEASURED, |ours| {
            let apart = measured.saturating_sub(ours).saturating_abs();
            match apart > TICK_NS && apart / ERROR_PERCENT > ours / 100 {
                true if measured < ours && is_whole => CONTRADICTS,
                true => MEASURED,
                false => AGREES,
            }
        });
        let kernel = said::time(measured);
        let text = match ours {
            Some(ours) => format!(
                "the {}'s kernel has seen a least round trip of {kernel}, the packets show {}",
                self.who(),
                said::time(ours)
            ),
            None => format!("the {}'s kernel has seen a least round trip of {kernel}", self.who()),
        };
        Some(Beside {
            unit: "ns".into(),
            measured: Some(measured),
            estimated: ours,
            ..self.entry("min_rtt", verdict, text)
        })
    }

    /// Data that waits in the kernel at an instant when we say that there was none.
    fn unsent(&self, direction: &Direction, rounds: &Rounds, placed: &[Placed]) -> Option<Beside> {
        let bytes = |placed: &Placed| placed.sample.unsent.filter(|bytes| *bytes > 0);
        let wrong = placed.iter().find(|placed| {
            let round = rounds.stopped_in(placed).and_then(|at| direction.rounds.get(at));
            bytes(placed).is_some() && round.is_some_and(|round| round.limited_by == State::App)
        })?;
        let (round, bytes) = (rounds.stopped_in(wrong)?, bytes(wrong)?);
        let text = format!(
            "round {} is said to have waited for the {}'s application, but its kernel held {} that were \
             not sent yet: something else stopped it",
            round + 1,
            self.who(),
            said::bytes(bytes)
        );
        Some(Beside {
            unit: "bytes".into(),
            measured: i64::try_from(bytes).ok(),
            estimated: Some(0),
            from_ns: direction.rounds.get(round).map(|round| round.start_ns),
            to_ns: direction.rounds.get(round + 1).map(|round| round.start_ns),
            ..self.entry("unsent", CONTRADICTS, text)
        })
    }

    /// Limits of memory, the window offered, and data that nobody reads.
    fn buffers(&self) -> Vec<Beside> {
        const MEMORY: &str = "kernel memory, overhead of packets included";
        let unread = self.samples.iter().filter_map(|sample| sample.unread).max();
        let who = self.who();
        let rows = [
            ("sndbuf", self.last(|s| s.sndbuf), format!("the {who}'s send buffer ({MEMORY}) is")),
            (
                "rcvbuf",
                self.last(|s| s.rcvbuf),
                format!("the {who}'s receive buffer ({MEMORY}) is"),
            ),
            ("unread", unread.filter(|bytes| *bytes > 0), format!("the {who} left unread up to")),
            (
                "snd_wnd",
                self.last(|s| s.snd_wnd),
                format!("the window last offered to the {who} is"),
            ),
        ];
        let entry = |(quantity, value, what): (&'static str, Option<u64>, String)| {
            let value = value?;
            let text = format!("{what} {}", said::bytes(value));
            Some(Beside {
                unit: "bytes".into(),
                measured: i64::try_from(value).ok(),
                ..self.entry(quantity, MEASURED, text)
            })
        };
        rows.into_iter().filter_map(entry).collect()
    }
}

pub(super) const MEASURED: &str = "measured";
pub(super) const AGREES: &str = "agrees";
pub(super) const CONTRADICTS: &str = "contradicts";

/// Which of both.
fn verdict(contradicts: bool) -> &'static str {
    if contradicts { CONTRADICTS } else { AGREES }
}

/// A sender's times are rebuilt to a tick of its timestamps: 1 ms on Linux (`TCP_TS_HZ`,
/// `include/net/tcp.h`).
const TICK_NS: i64 = 1_000_000;

/// Ours, not measured: an estimate that is off by less is no contradiction.
const ERROR_PERCENT: i64 = 10;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_shorter_round_trip_from_before_the_capture_contradicts_nothing() {
        let text = "ESTAB 0 0 10.0.0.1:80 10.0.0.2:40000\n\t cubic rtt:20/1 mss:1448 cwnd:10 minrtt:0.03\n";
        let (samples, _) = super::super::ss::read(text).expect("samples");
        let samples: Vec<&Sample> = samples.iter().collect();
        let case = Case { source: 0, side: 1, samples: &samples };
        let mut direction = Direction::default();
        direction.rtt.min_ns = Some(4_520_000);
        let verdict = |is_whole| {
            case.least_rtt(&direction, Some(4_600_000), is_whole).expect("told").verdict.clone()
        };
        assert_eq!((verdict(true), verdict(false)), (CONTRADICTS.into(), MEASURED.into()));
    }
}
