//! What the users of a connection waited for, from its first SYN on: the opening, each request with the wait for
//! its answer, and the answer. Nobody waits between an answer and the next request.
//!
//! The transfers alone tell it, so that it costs little for each of 100,000 connections: the wait is what lies
//! between the last byte of a request, with its ACK, and the first of the answer; what a TLS server sent before
//! its answer ([`super::Early`]) does not end it. The opening counts with the first request.
//!
//! Left out: the applications' silence inside a transfer, which has a state of its own there; later data of the
//! server that nobody asked for.

use super::{Connection, State, TimeIn, Transfer};
use tcpwhy_words::units::Duration;

/// How long somebody waited.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Waited {
    /// For the connection: from the last SYN to the ACK of its answer.
    pub handshake: Duration,
    /// For a SYN to be retransmitted.
    pub syn_retry: Duration,
    /// With nothing in flight, for the server's application to answer.
    pub answers: Duration,
    /// The longest of: a request, the wait for its answer, and that; data nobody asked for.
    pub longest: Duration,
}

impl Waited {
    /// What is not of the transfers themselves, by state.
    pub fn add_to(&self, sum: &mut TimeIn) {
        sum.add(State::Handshake, self.handshake);
        sum.add(State::SynRetry, self.syn_retry);
        sum.add(State::IdlePeerThink, self.answers);
    }
}

impl Transfer {
    /// How long it took, the silence of applications not counted.
    pub fn worked(&self) -> Duration {
        Duration(self.end_ns) - Duration(self.start_ns) - self.silence()
    }

    /// Time in it in which an application, not TCP, held the sender.
    fn silence(&self) -> Duration {
        let silent = self.time_in.iter().filter(|(state, _)| state.is_silence());
        silent.fold(Duration::ZERO, |sum, (_, span)| sum + span)
    }
}

impl Connection {
    /// How long its users waited.
    pub fn waited(&self) -> Waited {
        let mut waited = self.opening();
        let mut unit = Unit { span: waited.handshake + waited.syn_retry, ..Unit::default() };
        let mut is_first = true;
        for (at, transfer) in self.transfers.iter().enumerate() {
            let is_of_server = transfer.from == "server";
            if !is_of_server && transfer.start_ns < unit.early_until {
                // An acknowledgement of what came early, which asks for nothing.
                continue;
            }
            if is_of_server && (unit.is_asked || transfer.start_ns < unit.early_until) {
                waited.answers += unit.answer(transfer);
                continue;
            }
            waited.longest = waited.longest.max(unit.span);
            let opening = if core::mem::take(&mut is_first) { unit.span } else { Duration::ZERO };
            unit = Unit {
                is_asked: !is_of_server,
                until: transfer.end_ns,
                early_until: self.early_until(at),
                span: opening + transfer.worked(),
            };
        }
        waited.longest = waited.longest.max(unit.span);
        waited
    }

    /// The opening, if it lies in the part that the account is of.
    fn opening(&self) -> Waited {
        if self.part.is_some_and(|part| part.from_ns > 0) {
            return Waited::default();
        }
        let syn_retry = self.directions.iter().flatten().map(|d| d.time_in.get(State::SynRetry));
        Waited {
            handshake: Duration(self.handshake_rtt_ns.unwrap_or(0).max(0)),
            syn_retry: syn_retry.max().unwrap_or(Duration::ZERO),
            ..Waited::default()
        }
    }

    /// When the answer to the request at `at` begins, if something came before it.
    fn early_until(&self, at: usize) -> i64 {
        let early = self.exchanges.iter().find(|each| each.request == at as u64);
        let early = early.and_then(|each| each.early.as_ref());
        early.map_or(i64::MIN, |early| {
            self.transfers[at].start_ns.saturating_add(early.first_byte_ns)
        })
    }
}

/// A request with its answer, or data nobody asked for.
#[derive(Clone, Copy, Debug, Default)]
struct Unit {
    /// A request, whose answer is still to come.
    is_asked: bool,
    /// The furthest end so far.
    until: i64,
    /// Up to here what comes is no answer.
    early_until: i64,
    span: Duration,
}

impl Unit {
    /// Takes an answer; how long it was waited for.
    fn answer(&mut self, answer: &Transfer) -> Duration {
        let wait = Duration((answer.start_ns.saturating_sub(self.until)).max(0));
        let begun = answer.start_ns.max(self.until);
        let more = Duration(answer.end_ns.saturating_sub(begun)) - answer.silence();
        self.span = self.span + wait + more.max(Duration::ZERO);
        self.until = self.until.max(answer.end_ns);
        self.is_asked = false;
        wait
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::{Early, Exchange};

    const MS: i64 = 1_000_000;

    /// Opened in 20 ms; transfers of one side each, from and to these milliseconds.
    fn connection(transfers: &[(&'static str, i64, i64)]) -> Connection {
        let mut connection =
            crate::view::sample::connection(0, "10.0.0.1:1", "10.0.0.2:2", 100_000 * MS);
        connection.handshake_rtt_ns = Some(20 * MS);
        let transfer = |&(from, start, end): &(&'static str, i64, i64)| Transfer {
            from: from.into(),
            start_ns: start * MS,
            end_ns: end * MS,
            ..Transfer::default()
        };
        connection.transfers = transfers.iter().map(transfer).collect();
        connection
    }

    /// Waits for answers, and the longest of all, in milliseconds.
    fn waited(connection: &Connection) -> (i64, i64) {
        let waited = connection.waited();
        (waited.answers.0 / MS, waited.longest.0 / MS)
    }

    #[test]
    fn a_wait_goes_from_the_syn_to_the_end_of_the_answer() {
        let asked = connection(&[("client", 30, 50), ("server", 1_500, 1_540)]);
        assert_eq!(waited(&asked), (1_450, 20 + 1_510));
    }

    #[test]
    fn silence_between_an_answer_and_the_next_request_is_no_wait() {
        let asked = [("client", 30, 50), ("server", 40, 60), ("client", 60_060, 60_080)];
        assert_eq!(waited(&connection(&asked)), (0, 20 + 30));
        let answered = [&asked[..], &[("server", 60_180, 60_200)]].concat();
        assert_eq!(waited(&connection(&answered)), (100, 140), "the opening is of the first");
    }

    #[test]
    fn what_nobody_asked_for_is_waited_for_by_nobody() {
        let pushed = [("client", 30, 50), ("server", 60, 80), ("server", 9_000, 9_040)];
        assert_eq!(waited(&connection(&pushed)), (10, 20 + 50));
        assert_eq!(waited(&connection(&[("server", 5_000, 5_020)])), (0, 20 + 20));
    }

    #[test]
    fn what_came_early_does_not_end_the_wait() {
        let mut early = connection(&[
            ("client", 30, 50),
            ("server", 40, 60),
            ("client", 61, 80),
            ("server", 300, 340),
        ]);
        assert_eq!(waited(&early), (220, 279), "the client's second transfer is a request");
        early.exchanges = vec![Exchange {
            early: Some(Early { first_byte_ns: 271 * MS, ..Early::default() }),
            ..Exchange::default()
        }];
        assert_eq!(waited(&early), (240, 20 + 310));
    }

    #[test]
    fn a_part_that_begins_later_has_no_opening() {
        let mut asked = connection(&[("client", 30, 50)]);
        asked.part = Some(crate::report::Part { from_ns: 1, ..crate::report::Part::default() });
        assert_eq!(waited(&asked), (0, 20));
    }
}
