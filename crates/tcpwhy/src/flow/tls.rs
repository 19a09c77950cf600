//! TLS handshake flights, told from the clear headers of records (RFC 8446 §5.1, RFC 5246 §6.2.1).
//!
//! Question: how many changes of direction did the TLS handshake take, and when did it end?
//! Each record starts with type, version and length; we hop from header to header. Nothing is
//! decrypted and no key is wanted. The watch gives up at the client's first gap or header that the
//! snap length cut, or after the handshake: it costs nothing on what is not TLS. The server's trail may
//! be lost without harm: where its records begin inside of cut segments its flights have fewer of them,
//! but the handshake ends with the client's.
//! TLS 1.3 hides its later handshake records as application data; the first flight of the client
//! after the server's hello is therefore reported as the end of the handshake. What the server sends
//! directly behind it is watched, too, up to the first answer ([`super::tls_behind`]): there a trail that was
//! lost is found again where a segment begins with a header.

use super::event::{Event, Side};
use super::failures::{self, What};
use super::hello::{Hellos, Told};
use super::tls_behind::{Behind, Early};
use crate::clocks::TapTime;
use crate::offsets::Offset;
use crate::report::{Tls, TlsFlight};

const HEADER: usize = 5;
/// RFC 8446 §5.2: a protected record is at most 2^14 + 256 bytes (RFC 5246: + 2048).
const MAX_RECORD: usize = (1 << 14) + 2048;
/// A handshake takes four or five flights; more is renegotiation and not our question.
const MAX_FLIGHTS: usize = 8;

/// Ours: an answer begins with a header; where none shows in this many segments the watch costs more than it tells.
const MOST_ASTRAY: u32 = 16;

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Phase {
    /// No payload seen yet.
    Fresh,
    /// Hopping from record to record.
    Watching,
    /// The handshake is over, the first answer still to come.
    Behind,
    /// Not TLS, or the first answer is there, or the trail was lost.
    Done,
}

/// Watches both directions of one connection.
#[derive(Clone, Debug)]
pub(crate) struct TlsWatch {
    phase: Phase,
    /// Offset of the next record header, by side.
    next: [Offset; 2],
    flights: Vec<Flight>,
    end: Option<TapTime>,
    behind: Behind,
    /// Segments of the server behind the handshake while its trail was lost.
    astray: u32,
    /// An alert in clear that nobody has taken yet.
    alert: Option<What>,
    /// Names and versions.
    hellos: Hellos,
}

#[derive(Clone, Debug)]
struct Flight {
    side: Side,
    start: TapTime,
    bytes: u64,
    records: Vec<u8>,
}

impl Default for TlsWatch {
    fn default() -> Self {
        Self {
            phase: Phase::Fresh,
            next: [Offset::FIRST; 2],
            flights: Vec::new(),
            end: None,
            behind: Behind::default(),
            astray: 0,
            alert: None,
            hellos: Hellos::default(),
        }
    }
}

impl TlsWatch {
    /// Whether more payload may still tell something.
    pub(crate) fn is_open(&self) -> bool {
        self.phase != Phase::Done
    }

    /// Takes the captured part of the payload of `event`.
    pub(crate) fn push(&mut self, side: Side, event: &Event, payload: &[u8]) {
        if self.phase == Phase::Fresh {
            let hello = side == 0
                && event.seq == Offset::FIRST
                && payload.len() > HEADER
                && payload[0] == 22;
            self.phase = if hello { Phase::Watching } else { Phase::Done };
        }
        if self.phase == Phase::Behind {
            self.push_behind(side, event, payload);
        }
        if self.phase != Phase::Watching {
            return;
        }
        self.hellos.push(side, event, payload);
        if self.flights.last().is_none_or(|f| f.side != side) {
            if self.flights.len() == MAX_FLIGHTS {
                self.phase = Phase::Done;
                return;
            }
            self.flights.push(Flight { side, start: event.tap, bytes: 0, records: Vec::new() });
        }
        if let Some(flight) = self.flights.last_mut() {
            flight.bytes += u64::from(event.len);
        }
        while self.phase == Phase::Watching && self.next[side] < event.end() {
            self.hop(side, event, payload);
        }
        if self.phase == Phase::Behind {
            self.push_behind(side, event, payload);
        }
    }

    /// Takes what follows the handshake, record by record.
    fn push_behind(&mut self, side: Side, event: &Event, payload: &[u8]) {
        let starts_with_header = header(event.seq, event, payload).is_some();
        if side == 1 && self.next[1] == Offset::MAX {
            self.astray += 1;
            if starts_with_header {
                self.next[1] = event.seq;
            } else if self.astray > MOST_ASTRAY {
                self.phase = Phase::Done;
            }
        }
        while self.phase == Phase::Behind && self.next[side] < event.end() {
            let at = self.next[side];
            let Some((23, len)) = header(at, event, payload) else {
                self.phase = Phase::Done;
                return;
            };
            self.next[side] += HEADER as i64 + i64::from(len);
            let goes_on = match side {
                0 => self.behind.on_request(event.tap, at, len),
                _ => self.behind.on_record(event.tap, at, len, event.ack),
            };
            if !goes_on {
                self.phase = Phase::Done;
            }
        }
        if self.phase == Phase::Behind && side == 0 {
            self.behind.on_request_bytes(event.tap, event.end());
        }
    }

    /// The alert in clear that the last segment held, if it did.
    pub(crate) fn take_alert(&mut self) -> Option<What> {
        self.alert.take()
    }

    /// Names and versions that were said in clear.
    pub(crate) fn told(&self) -> Option<Box<Told>> {
        self.hellos.told()
    }

    /// What came between the handshake and the first answer.
    pub(crate) fn early(&self) -> Option<Early> {
        self.end?;
        self.behind.early()
    }

    /// Reads the record header at `next`, if this payload holds it.
    fn hop(&mut self, side: Side, event: &Event, payload: &[u8]) {
        let header = header(self.next[side], event, payload);
        if header.is_none() && side == 1 && !self.holds_header(event, payload) {
            // Cut by the snap length, or split over two segments. The end shows in the client's records.
            self.next[side] = Offset::MAX;
            return;
        }
        let Some((kind, len)) = header else {
            self.phase = Phase::Done;
            return;
        };
        if kind == 21 {
            let at = usize::try_from(self.next[side] - event.seq).unwrap_or(usize::MAX);
            self.alert = payload.get(at..).and_then(failures::alert).or(self.alert);
        }
        self.next[side] += HEADER as i64 + i64::from(len);
        let server_spoke = self.flights.iter().any(|f| f.side == 1 && f.records.contains(&22));
        if let Some(flight) = self.flights.last_mut()
            && flight.records.last() != Some(&kind)
        {
            flight.records.push(kind);
        }
        if kind == 23 && side == 0 && server_spoke {
            self.end = Some(event.tap);
            self.phase = Phase::Behind;
            self.behind = Behind::new(self.is_tls_13());
            if !self.is_tls_13() {
                // Finished went before, in the clear: this is a request.
                self.behind.on_request(
                    event.tap,
                    self.next[0] - HEADER as i64 - i64::from(len),
                    len,
                );
            }
        }
    }

    /// Whether later records of the handshake are hidden: the server's are application data, and so is the
    /// client's Finished, where before TLS 1.3 it is a handshake record behind its change of cipher.
    fn is_tls_13(&self) -> bool {
        let hides = self.flights.iter().any(|f| f.side == 1 && f.records.contains(&23));
        let last = self.flights.last();
        hides || last.is_some_and(|f| f.side == 0 && !f.records.contains(&22))
    }

    /// Whether the five bytes of the next header are there, whatever they say.
    fn holds_header(&self, event: &Event, payload: &[u8]) -> bool {
        let at = usize::try_from(self.next[1] - event.seq).ok();
        at.is_some_and(|at| payload.get(at..at + HEADER).is_some())
    }

    /// What was seen; `None` if this was no TLS.
    pub(crate) fn report(&self) -> Option<Tls> {
        let first = self.flights.first()?;
        let flights = self.flights.iter().map(|f| TlsFlight {
            from: if f.side == 0 { "client" } else { "server" }.to_owned(),
            start_ns: f.start.0,
            bytes: f.bytes,
            records: f.records.iter().map(|kind| record_name(*kind).to_owned()).collect(),
        });
        self.flights.iter().any(|f| f.side == 1).then(|| Tls {
            start_ns: first.start.0,
            end_ns: self.end.map(|at| at.0),
            flights: flights.collect(),
        })
    }
}

/// Type and length of the record whose header is at offset `at`, if this payload holds it.
fn header(at: Offset, event: &Event, payload: &[u8]) -> Option<(u8, u32)> {
    let at = usize::try_from(at.checked_since(event.seq)?).ok()?;
    let &[kind @ 20..=23, 3, 0..=4, high, low] = payload.get(at..at.checked_add(HEADER)?)? else {
        return None;
    };
    let len = usize::from(high) << 8 | usize::from(low);
    (len <= MAX_RECORD).then_some((kind, len as u32))
}

fn record_name(kind: u8) -> &'static str {
    match kind {
        20 => "change_cipher_spec",
        21 => "alert",
        22 => "handshake",
        _ => "application_data",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(kind: u8, len: u16) -> Vec<u8> {
        let [high, low] = len.to_be_bytes();
        let mut bytes = vec![kind, 3, 3, high, low];
        bytes.resize(HEADER + usize::from(len), 0);
        bytes
    }

    fn event(tap: i64, seq: i64, payload: &[u8]) -> Event {
        Event {
            tap: TapTime(tap),
            seq: Offset::at(seq),
            len: payload.len() as u32,
            ..Event::default()
        }
    }

    #[test]
    fn a_tls_13_handshake_takes_three_flights() {
        let mut watch = TlsWatch::default();
        let hello = record(22, 200);
        watch.push(0, &event(10, 0, &hello), &hello);
        let answer = [record(22, 90), record(20, 1), record(23, 700)].concat();
        watch.push(1, &event(20, 0, &answer), &answer);
        let finish = [record(20, 1), record(23, 50), record(23, 300)].concat();
        watch.push(0, &event(30, hello.len() as i64, &finish), &finish);
        let tls = watch.report().expect("this is TLS");
        assert_eq!((tls.start_ns, tls.end_ns), (10, Some(30)));
        assert_eq!(tls.flights.len(), 3);
        assert_eq!(tls.flights[1].records, ["handshake", "change_cipher_spec", "application_data"]);
    }

    #[test]
    fn a_record_split_over_segments_is_followed() {
        let mut watch = TlsWatch::default();
        let hello = record(22, 200);
        watch.push(0, &event(1, 0, &hello[..100]), &hello[..100]);
        watch.push(0, &event(2, 100, &hello[100..]), &hello[100..]);
        let answer = record(22, 90);
        watch.push(1, &event(3, 0, &answer), &answer);
        assert_eq!(watch.report().expect("this is TLS").flights[0].bytes, 205);
    }

    /// A handshake whose last flight ends with a request, and the server's records after it with their times.
    fn behind(records: &[(i64, u16)], snap: usize) -> Option<Early> {
        let mut watch = TlsWatch::default();
        let hello = record(22, 200);
        let cut = |bytes: &[u8]| bytes[..bytes.len().min(snap)].to_vec();
        watch.push(0, &event(10, 0, &hello), &cut(&hello));
        let answer = [record(22, 90), record(20, 1), record(23, 700)].concat();
        watch.push(1, &event(20, 0, &answer), &cut(&answer));
        let finish = [record(20, 1), record(23, 53)].concat();
        watch.push(0, &event(30, hello.len() as i64, &finish), &cut(&finish));
        let asked = record(23, 3_000);
        let (at, half) = ((hello.len() + finish.len()) as i64, 1_448);
        watch.push(0, &event(31, at, &asked[..half]), &cut(&asked[..half]));
        watch.push(0, &event(33, at + half as i64, &asked[half..]), &cut(&asked[half..]));
        let mut seq = answer.len() as i64;
        for (tap, len) in records {
            let bytes = record(23, *len);
            let ack = at + asked.len() as i64;
            watch.push(
                1,
                &Event { ack: Offset::at(ack), ..event(*tap, seq, &bytes) },
                &cut(&bytes),
            );
            seq += bytes.len() as i64;
        }
        watch.early()
    }

    #[test]
    fn an_answer_is_looked_for_behind_session_tickets() {
        let records = [(50, 250), (50, 250), (300_000_000, 1_400)];
        for snap in [9_000, 80] {
            let early = behind(&records, snap).expect("tickets and an answer");
            assert_eq!(
                (early.records, early.request_at, early.answer_at),
                (2, TapTime(33), TapTime(300_000_000))
            );
        }
        assert_eq!(behind(&records[..1], 9_000), None, "a short answer");
        assert_eq!(behind(&records[2..], 9_000), None, "a long answer");
    }

    #[test]
    fn a_server_s_records_cut_by_the_snap_length_hide_no_end() {
        let mut watch = TlsWatch::default();
        let hello = record(22, 200);
        watch.push(0, &event(10, 0, &hello), &hello[..30]);
        let answer = [record(22, 90), record(20, 1), record(23, 700)].concat();
        watch.push(1, &event(20, 0, &answer), &answer[..30]);
        watch.push(1, &event(21, answer.len() as i64, &answer), &answer[..30]);
        let finish = [record(20, 1), record(23, 50)].concat();
        watch.push(0, &event(30, hello.len() as i64, &finish), &finish[..30]);
        let tls = watch.report().expect("this is TLS");
        assert_eq!((tls.end_ns, tls.flights.len()), (Some(30), 3));
        assert_eq!(tls.flights[1].bytes, 2 * answer.len() as u64);
        assert_eq!(tls.flights[1].records, ["handshake"]);
    }

    #[test]
    fn a_client_s_record_that_is_not_there_ends_the_watch() {
        let mut watch = TlsWatch::default();
        let hello = record(22, 200);
        watch.push(0, &event(10, 0, &hello), &hello[..30]);
        let answer = record(22, 90);
        watch.push(1, &event(20, 0, &answer), &answer[..30]);
        watch.push(0, &event(30, 900, &hello), &hello[..30]);
        assert!(!watch.is_open());
        assert_eq!(watch.report().expect("this is TLS").end_ns, None);
    }

    #[test]
    fn plain_http_is_no_tls() {
        let mut watch = TlsWatch::default();
        let get = b"GET / HTTP/1.1\r\n";
        watch.push(0, &event(1, 0, get), get);
        assert_eq!(watch.report(), None);
    }
}
