//! What a TLS server sends directly behind the handshake, told from the clear headers of records.
//!
//! Question: where does the first answer begin? A TLS 1.3 server sends session tickets as soon as it has the
//! client's Finished (RFC 8446 section 4.6.1), one of HTTP/2 its SETTINGS (RFC 9113 section 3.4); neither
//! answers anything, and both look like an answer that came at once. Their headers say no more than application
//! data, so lengths and places decide:
//!
//! - what does not acknowledge a byte of a request answers none;
//! - two and more records of equal length, as long as tickets, at the very start are tickets: the clients of
//!   one server get the same kind, and OpenSSL sends two (`SSL_CTX_set_num_tickets`);
//! - a short record is HTTP/2's SETTINGS if the client's next record is an empty frame, the acknowledgement;
//!   SETTINGS are the first of the server's frames, so what stood before them is none;
//! - one record alone of such lengths may also be the beginning of the answer: then the report shows both readings.
//!
//! Left out: tickets in the flight of the handshake itself (`BoringSSL`'s), for these come before any request;
//! answers behind a request of more than [`MOST_ASKED`]; what a capture without the records' headers holds.

use crate::clocks::TapTime;
use crate::offsets::Offset;

/// Ours: tickets of OpenSSL, rustls, Go and Java are 60 to 300 B without the client's certificate; a response's
/// head and a little body are often longer than twice that.
const TICKET: core::ops::RangeInclusive<u32> = 60..=512;
/// HTTP/2's SETTINGS and what goes with them: 9 B of head and 6 B for each of some settings (RFC 9113 section
/// 6.5), a `WINDOW_UPDATE` of 13 B, and up to 25 B of protection.
const SETTINGS: u32 = 110;
/// The frames of HTTP/2 that come with SETTINGS: their acknowledgement and a `WINDOW_UPDATE`, protected.
/// Ours: a response's HEADERS with a date, a type and a length are longer.
const BESIDE_SETTINGS: u32 = 45;
/// Plaintext of a frame without payload (RFC 9113 section 4.1), as AES-GCM or `ChaCha20` protects it: 17 B more
/// with TLS 1.3 (RFC 8446 section 5.2), 16 or 24 B with TLS 1.2 (RFC 7905, RFC 5288).
const EMPTY_FRAME: [u32; 3] = [9 + 17, 9 + 16, 9 + 24];
/// Records of the server that are looked at: tickets, SETTINGS, their acknowledgement. Ours.
const MOST_RECORDS: usize = 8;
/// Bytes of requests behind which an answer is no longer looked for. Ours: a large head, some bodies.
const MOST_ASKED: i64 = 1 << 16;
/// The second reading of what cannot be decided is shown, too, if it is at least this much later. Ours: the
/// least a user may feel in sum, and more than the pause between a head and a body that were written in two
/// calls.
const PAUSE_NS: i64 = 1_000_000;

/// What came early, and how to tell an answer from it.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct Early {
    /// Offset of the request's first byte, and when its last byte passed.
    pub(crate) request: Offset,
    pub(crate) request_at: TapTime,
    /// Offset of the client's record that acknowledges SETTINGS and asks for nothing.
    pub(crate) acknowledged: Option<Offset>,
    /// What there is of the server's before `answer`.
    pub(crate) records: u64,
    pub(crate) bytes: u64,
    pub(crate) kind: Kind,
    /// Offset and time of the first byte that may be an answer's, and of the first behind all these.
    pub(crate) may_answer: Offset,
    pub(crate) may_answer_at: TapTime,
    pub(crate) answer: Offset,
    pub(crate) answer_at: TapTime,
}

/// What the early records look like.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Kind {
    Tickets,
    Settings,
    /// Sent before the request was there.
    Unasked,
    /// They may be either, or the beginning of the answer.
    Undecided,
}

/// A record of the server.
#[derive(Clone, Copy, Debug)]
struct Record {
    tap: TapTime,
    seq: Offset,
    len: u32,
    /// Acknowledges a part of a request.
    may_answer: bool,
}

/// Watches what follows the handshake.
#[derive(Clone, Debug, Default)]
pub(crate) struct Behind {
    is_tls_13: bool,
    /// Offsets of the first request and behind what was seen of it, and when that passed.
    request: Option<(Offset, Offset)>,
    request_at: TapTime,
    records: Vec<Record>,
    /// How many records there were when the client acknowledged HTTP/2's SETTINGS, and the offset of that.
    acknowledged: Option<(usize, Offset)>,
}

impl Behind {
    pub(crate) fn new(is_tls_13: bool) -> Self {
        Self { is_tls_13, ..Self::default() }
    }

    /// The client sent a record of `len` bytes at `tap`, at `seq`; whether there is more to watch for.
    pub(crate) fn on_request(&mut self, tap: TapTime, seq: Offset, len: u32) -> bool {
        let answered = self.records.iter().any(|record| record.may_answer);
        if answered && self.acknowledged.is_none() && EMPTY_FRAME.contains(&len) {
            self.acknowledged = Some((self.records.len(), seq));
            return true;
        }
        let from = self.request.map_or(seq, |request| request.0);
        if answered || seq - from > MOST_ASKED {
            return false;
        }
        if self.request.is_none() {
            (self.request, self.request_at) = (Some((seq, seq)), tap);
        }
        true
    }

    /// Bytes of the client up to `end` passed at `tap`.
    pub(crate) fn on_request_bytes(&mut self, tap: TapTime, end: Offset) {
        if let Some((_, seen)) = self.request.as_mut().filter(|request| end > request.1)
            && self.acknowledged.is_none()
        {
            (*seen, self.request_at) = (end, tap);
        }
    }

    /// The server sent a record that acknowledges up to `ack`; whether there is more to watch for.
    pub(crate) fn on_record(&mut self, tap: TapTime, seq: Offset, len: u32, ack: Offset) -> bool {
        let may_answer = self.request.is_some_and(|request| ack > request.0);
        self.records.push(Record { tap, seq, len, may_answer });
        let is_early = len <= *TICKET.end();
        self.records.len() < MOST_RECORDS && (is_early || !may_answer)
    }

    /// What came early, if something did and an answer after it.
    pub(crate) fn early(&self) -> Option<Early> {
        let (request, _) = self.request?;
        let aside = self.aside();
        let maybe = aside + self.maybe(aside);
        let sure = self.records.get(aside)?;
        let doubt = self.records.get(maybe).filter(|later| later.tap - sure.tap >= PAUSE_NS);
        let (number, answer, kind) = match doubt {
            Some(later) => (maybe, later, Kind::Undecided),
            None if aside == 0 => return None,
            None => (aside, sure, self.kind()),
        };
        Some(Early {
            request,
            request_at: self.request_at,
            acknowledged: self.acknowledged.map(|(_, seq)| seq),
            records: number as u64,
            bytes: (answer.seq - self.records[0].seq).max(0) as u64,
            kind,
            may_answer: sure.seq,
            may_answer_at: sure.tap,
            answer: answer.seq,
            answer_at: answer.tap,
        })
    }

    /// What those records look like that are no answer for sure.
    fn kind(&self) -> Kind {
        let first = self.records.first().map_or(0, |record| record.len);
        if self.is_tls_13 && (first > SETTINGS || self.begins_with_tickets()) {
            Kind::Tickets
        } else if self.acknowledged.is_some() {
            Kind::Settings
        } else {
            Kind::Unasked
        }
    }

    /// How many records at the start are no answer for sure.
    fn aside(&self) -> usize {
        let before = self.records.iter().take_while(|record| !record.may_answer).count();
        let alike = if self.begins_with_tickets() { self.alike() } else { 0 };
        before.max(alike).max(self.settings().unwrap_or(0))
    }

    /// How many records end with HTTP/2's SETTINGS and what goes with them.
    fn settings(&self) -> Option<usize> {
        let of = &self.records[..self.acknowledged?.0];
        let settings = of.iter().position(|record| record.len <= SETTINGS)?;
        let of_tickets = |record: &Record| self.is_tls_13 && TICKET.contains(&record.len);
        if !of[..settings].iter().all(of_tickets) {
            return None;
        }
        let beside = self.records[settings + 1..].iter();
        Some(settings + 1 + beside.take_while(|record| record.len <= BESIDE_SETTINGS).count())
    }

    /// How many behind these may be no answer either.
    fn maybe(&self, aside: usize) -> usize {
        let rest = &self.records[aside..];
        if self.acknowledged.is_some() && aside > 0 {
            return 0;
        }
        let ticket = usize::from(
            aside == 0 && self.is_tls_13 && rest.first().is_some_and(|r| TICKET.contains(&r.len)),
        );
        ticket + rest[ticket..].iter().take_while(|record| record.len <= SETTINGS).count()
    }

    fn begins_with_tickets(&self) -> bool {
        self.is_tls_13 && self.alike() > 1
    }

    /// How many records at the start have the length of the first, which is a ticket's.
    fn alike(&self) -> usize {
        let Some(first) = self.records.first().filter(|record| TICKET.contains(&record.len)) else {
            return 0;
        };
        self.records.iter().take_while(|record| record.len == first.len).count()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: i64 = 1_000_000;
    /// Finished ends at this offset, and a request of 100 B follows it.
    const REQUEST: Offset = Offset::at(600);

    /// The early records among these of the server, each with its time and length, after a request at 0 ms.
    fn told(records: &[(i64, u32)]) -> Option<Early> {
        watched(records, REQUEST + 100, None).early()
    }

    fn watched(records: &[(i64, u32)], ack: Offset, frame: Option<(usize, u32)>) -> Behind {
        let mut behind = Behind::new(true);
        assert!(behind.on_request(TapTime(0), REQUEST, 100));
        let mut seq = Offset::at(1_000);
        for (at, (ms, len)) in records.iter().enumerate() {
            if let Some((_, len)) = frame.filter(|frame| frame.0 == at) {
                behind.on_request(TapTime(ms * MS - 1), REQUEST + 100, len);
            }
            behind.on_record(TapTime(ms * MS), seq, *len, ack);
            seq += i64::from(*len) + 5;
        }
        behind
    }

    fn answer(records: &[(i64, u32)]) -> Option<(Kind, i64)> {
        told(records).map(|early| (early.kind, early.answer_at.0 / MS))
    }

    #[test]
    fn two_tickets_are_no_answer() {
        let early = told(&[(0, 250), (60, 250), (250, 16_401)]).expect("tickets");
        assert_eq!((early.kind, early.answer_at), (Kind::Tickets, TapTime(250 * MS)));
        assert_eq!((early.records, early.bytes, early.answer), (2, 510, Offset::at(1_510)));
        assert_eq!(answer(&[(0, 250), (0, 250), (250, 300)]), Some((Kind::Tickets, 250)));
    }

    #[test]
    fn a_short_answer_of_one_record_is_an_answer() {
        assert_eq!(told(&[(0, 250)]), None);
        assert_eq!(told(&[(0, 250), (0, 250)]), None, "nothing came behind them");
    }

    #[test]
    fn one_ticket_may_be_the_beginning_of_the_answer() {
        assert_eq!(answer(&[(0, 250), (250, 16_401)]), Some((Kind::Undecided, 250)));
        assert_eq!(answer(&[(0, 513), (250, 16_401)]), None, "as long as no ticket");
        assert_eq!(answer(&[(0, 250), (1, 900)]), Some((Kind::Undecided, 1)));
        let behind = [(0, 250), (0, 900)];
        assert_eq!(answer(&behind), None, "no pause: both readings say the same");
    }

    #[test]
    fn a_short_record_behind_tickets_may_be_settings_or_an_answer() {
        let records = [(0, 250), (0, 250), (1, 62), (250, 900)];
        assert_eq!(answer(&records), Some((Kind::Undecided, 250)));
        let early = watched(&records, REQUEST + 100, Some((3, 26))).early().expect("told");
        assert_eq!((early.kind, early.records), (Kind::Tickets, 3), "acknowledged as SETTINGS are");
        let longer = watched(&records, REQUEST + 100, Some((3, 27))).early().expect("told");
        assert_eq!((longer.kind, longer.answer_at), (Kind::Undecided, TapTime(250 * MS)));
    }

    #[test]
    fn settings_without_tickets_are_told_by_their_acknowledgement() {
        let early = watched(&[(0, 62), (250, 900)], REQUEST + 100, Some((1, 26))).early();
        assert_eq!(early.map(|early| early.kind), Some(Kind::Settings));
        assert_eq!(answer(&[(0, 62), (250, 900)]), Some((Kind::Undecided, 250)));
    }

    #[test]
    fn what_acknowledges_no_request_answers_none() {
        let mut behind = watched(&[(0, 250)], REQUEST, None);
        assert_eq!(behind.early(), None);
        behind.on_record(TapTime(250 * MS), Offset::at(1_255), 251, REQUEST + 1);
        let early = behind.early().expect("a ticket");
        assert_eq!(
            (early.kind, early.records, early.answer_at),
            (Kind::Tickets, 1, TapTime(250 * MS))
        );
    }

    #[test]
    fn an_answer_without_anything_before_it_is_no_news() {
        assert_eq!(told(&[(250, 16_401)]), None);
    }
}
