//! What the two ends say in clear that failed: TLS alerts and HTTP statuses.
//!
//! Question: did this connection carry what it was opened for? Most of what an application says is hidden or unknown
//! here, but two refusals are plain in the packets:
//!
//! - **TLS alerts** before encryption (RFC 8446 section 6, RFC 5246 section 7.2): a record of type 21 with the two
//!   bytes level and description. Protection adds at least eight bytes to a record (RFC 6655 section 4 has the
//!   shortest tag), so one with two bytes is not protected. The TLS watch hands on those inside of longer segments;
//!   a segment that is nothing but such a record is seen anywhere, also behind STARTTLS or a proxy's CONNECT.
//! - **HTTP/1 statuses** (RFC 9112 section 4): the status line that begins the first segment behind a request. A
//!   connection whose first request is no HTTP is not looked at again.
//!
//! Beside them it keeps how long the last answer said that it is going to be ([`super::promise`]).
//!
//! Left out: what is encrypted; HTTP/2; a status line that begins inside of a segment; errors in other protocols.

use super::event::{Event, Side};
use super::promise::{self, Promise};
use super::requests::Requests;
use crate::clocks::TapTime;

/// A record's header and the alert's two bytes: such a segment takes the long way, whatever it is.
const ALERT_LEN: u32 = 7;
/// Failures kept one by one; equal ones are counted. Ours: more kinds of them tell no more.
const MOST: usize = 8;
/// The head of a status line: `HTTP/1.1 503`.
const STATUS_LEN: usize = 12;

/// Alerts that end nothing by themselves: `close_notify`, `user_canceled`, and `no_renegotiation`, which RFC 5246
/// section 7.2.2 has as a warning always.
const NO_ERROR: [u8; 3] = [0, 90, 100];

/// What failed.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum What {
    /// An alert's description; `fatal` by its level.
    Alert { code: u8, fatal: bool },
    /// A status of 400 and above.
    Status(u16),
}

/// Something that failed, as it was said first, and how often.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Failed {
    pub(crate) what: What,
    pub(crate) by: Side,
    pub(crate) tap: TapTime,
    pub(crate) frame: u64,
    pub(crate) times: u32,
}

/// Whether a connection talks HTTP/1 in clear.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
enum Http {
    /// No data passed yet.
    #[default]
    Unknown,
    No,
    /// `true` while the next data of the server begins a response.
    Yes(bool),
}

/// What failed on one connection.
#[derive(Clone, Debug, Default)]
pub(crate) struct Failures {
    http: Http,
    /// The last request wants the head of an answer alone, or was not read.
    wants_head: bool,
    /// How long the last answer is going to be.
    promise: Option<Promise>,
    /// What was asked for.
    requests: Requests,
    // Nearly all have none.
    #[expect(clippy::box_collection, reason = "the facts of each connection are copied")]
    list: Option<Box<Vec<Failed>>>,
}

impl Failures {
    /// Takes the captured part of the payload of `event`, which carries data that no segment before it did.
    pub(crate) fn push(&mut self, side: Side, event: &Event, payload: &[u8]) {
        if event.len == ALERT_LEN
            && let Some(alert) = alert(payload)
        {
            self.note(side, event, alert);
        }
        if side == 0 {
            self.on_request(event, payload);
        }
        match (self.http, side) {
            (Http::Unknown, 0) => {
                let is_http = method(payload).is_some();
                self.http = if is_http { Http::Yes(true) } else { Http::No };
            }
            // Its request may stand before the capture.
            (Http::Unknown, _) => {
                self.http =
                    if payload.starts_with(b"HTTP/1.") { Http::Yes(true) } else { Http::No };
                self.on_response(side, event, payload);
            }
            (Http::Yes(_), 0) => self.http = Http::Yes(true),
            (Http::Yes(true), _) => self.on_response(side, event, payload),
            (Http::Yes(false) | Http::No, _) => {}
        }
    }

    /// Whether `len` bytes of data of `side` have to be looked at: an alert may fill a segment of its own. A
    /// response begins with its status, and a request behind one with its method.
    #[inline]
    pub(crate) fn are_to_be_read(&self, side: Side, len: u32) -> bool {
        len == ALERT_LEN || len > 0 && self.http == Http::Yes(side == 1)
    }

    /// Takes `len` bytes of data of `side` that need not be looked at.
    #[inline]
    pub(crate) fn pass(&mut self, side: Side, len: u32) {
        if side == 0 && len > 0 && self.http == Http::Yes(false) {
            self.http = Http::Yes(true);
            (self.promise, self.wants_head) = (None, true);
        }
    }

    /// A request begins, or goes on.
    fn on_request(&mut self, event: &Event, payload: &[u8]) {
        let goes_on = self.http == Http::Yes(true);
        let begun = if goes_on || self.http == Http::No { None } else { method(payload) };
        if let Some(method) = begun {
            self.requests.begin(event.seq, method, payload);
        }
        let is_odd = !goes_on && begun.is_none();
        self.promise = None;
        self.wants_head = goes_on && self.wants_head || is_odd || payload.starts_with(b"HEAD ");
    }

    fn on_response(&mut self, side: Side, event: &Event, payload: &[u8]) {
        let Some(status) = status(payload) else {
            // Cut by the snap length, or no HTTP/1 after all.
            self.http = if self.http == Http::Yes(true) { Http::Yes(false) } else { Http::No };
            return;
        };
        // RFC 9110 section 15.2: a final response follows an interim one; behind 101 comes another protocol.
        self.http = match status {
            101 => Http::No,
            100..=199 => Http::Yes(true),
            _ => Http::Yes(false),
        };
        if status >= 200 || self.http == Http::No {
            self.requests.answered(status);
        }
        let length = promise::length(status, payload).filter(|_| !self.wants_head);
        let promised = |length| Promise { from: event.seq, to: event.seq + length, tap: event.tap };
        self.promise = length.map(promised);
        if status >= 400 {
            self.note(side, event, What::Status(status));
        }
    }

    /// Takes down what `event` of `side` says, once for each time that it was said.
    pub(crate) fn note(&mut self, by: Side, event: &Event, what: What) {
        if matches!(what, What::Alert { code, .. } if NO_ERROR.contains(&code)) {
            return;
        }
        let list = self.list.get_or_insert_default();
        if list.iter().any(|each| each.frame == event.frame && each.what == what) {
            return;
        }
        let same = list.iter_mut().find(|each| (each.by, each.what) == (by, what));
        if let Some(same) = same {
            same.times = same.times.saturating_add(1);
        } else if list.len() < MOST {
            list.push(Failed { what, by, tap: event.tap, frame: event.frame, times: 1 });
        }
    }

    /// How long the answer to the last request is going to be, as far as its head said so.
    pub(crate) fn promise(&self) -> Option<Promise> {
        self.promise
    }

    /// What was asked for, as far as it is in clear.
    pub(crate) fn requests(&self) -> &Requests {
        &self.requests
    }

    /// What failed, in the order in which it was said first.
    pub(crate) fn all(&self) -> &[Failed] {
        self.list.as_deref().map_or(&[], Vec::as_slice)
    }
}

/// The alert that `record` holds in clear, if it begins with one.
pub(crate) fn alert(record: &[u8]) -> Option<What> {
    let &[21, 3, 0..=4, 0, 2, level @ 1..=2, code, ..] = record else { return None };
    alert_name(code).map(|_| What::Alert { code, fatal: level == 2 })
}

/// Methods of RFC 9110 section 9, RFC 5789 (PATCH) and RFC 4918 (PROPFIND).
const METHODS: [&[u8]; 10] = [
    b"GET ",
    b"POST ",
    b"HEAD ",
    b"PUT ",
    b"DELETE ",
    b"OPTIONS ",
    b"PATCH ",
    b"CONNECT ",
    b"TRACE ",
    b"PROPFIND ",
];

/// The method of the request that `payload` begins with, and the space behind it.
fn method(payload: &[u8]) -> Option<&'static [u8]> {
    METHODS.into_iter().find(|method| payload.starts_with(method))
}

/// Whether `payload` begins as an HTTP/1 message does, whose head may be read.
pub(crate) fn begins_message(payload: &[u8]) -> bool {
    method(payload).is_some() || payload.starts_with(b"HTTP/1.")
}

/// The status of the response that `payload` begins with (RFC 9112 section 4).
fn status(payload: &[u8]) -> Option<u16> {
    let line = payload.get(..STATUS_LEN)?;
    let [b'H', b'T', b'T', b'P', b'/', b'1', b'.', b'0'..=b'9', b' ', digits @ ..] = line else {
        return None;
    };
    let ends = payload.get(STATUS_LEN).is_none_or(|next| matches!(next, b' ' | b'\r' | b'\n'));
    let status = digits.iter().try_fold(0, |sum, digit| {
        digit.is_ascii_digit().then(|| sum * 10 + u16::from(digit - b'0'))
    })?;
    (ends && (100..=599).contains(&status)).then_some(status)
}

/// The name of an alert's description.
///
/// RFC 8446 section 6 and RFC 5246 section 7.2, with those of the registry that later documents added
/// (RFC 6066, 7301, 7507 and 9849).
pub(crate) const fn alert_name(code: u8) -> Option<&'static str> {
    Some(match code {
        0 => "close_notify",
        10 => "unexpected_message",
        20 => "bad_record_mac",
        21 => "decryption_failed",
        22 => "record_overflow",
        30 => "decompression_failure",
        40 => "handshake_failure",
        41 => "no_certificate",
        42 => "bad_certificate",
        43 => "unsupported_certificate",
        44 => "certificate_revoked",
        45 => "certificate_expired",
        46 => "certificate_unknown",
        47 => "illegal_parameter",
        48 => "unknown_ca",
        49 => "access_denied",
        50 => "decode_error",
        51 => "decrypt_error",
        60 => "export_restriction",
        70 => "protocol_version",
        71 => "insufficient_security",
        80 => "internal_error",
        86 => "inappropriate_fallback",
        90 => "user_canceled",
        100 => "no_renegotiation",
        109 => "missing_extension",
        110 => "unsupported_extension",
        111 => "certificate_unobtainable",
        112 => "unrecognized_name",
        113 => "bad_certificate_status_response",
        114 => "bad_certificate_hash_value",
        115 => "unknown_psk_identity",
        116 => "certificate_required",
        120 => "no_application_protocol",
        121 => "ech_required",
        _ => return None,
    })
}

/// The phrase of a status of 400 and above (RFC 9110 section 15, RFC 6585); empty for one that they lack.
pub(crate) const fn status_phrase(status: u16) -> &'static str {
    match status {
        400 => "Bad Request",
        401 => "Unauthorized",
        402 => "Payment Required",
        403 => "Forbidden",
        404 => "Not Found",
        405 => "Method Not Allowed",
        406 => "Not Acceptable",
        407 => "Proxy Authentication Required",
        408 => "Request Timeout",
        409 => "Conflict",
        410 => "Gone",
        411 => "Length Required",
        412 => "Precondition Failed",
        413 => "Content Too Large",
        414 => "URI Too Long",
        415 => "Unsupported Media Type",
        416 => "Range Not Satisfiable",
        417 => "Expectation Failed",
        421 => "Misdirected Request",
        422 => "Unprocessable Content",
        426 => "Upgrade Required",
        428 => "Precondition Required",
        429 => "Too Many Requests",
        431 => "Request Header Fields Too Large",
        500 => "Internal Server Error",
        501 => "Not Implemented",
        502 => "Bad Gateway",
        503 => "Service Unavailable",
        504 => "Gateway Timeout",
        505 => "HTTP Version Not Supported",
        511 => "Network Authentication Required",
        _ => "",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::offsets::Offset;

    /// The failures that these segments show, each segment with the side that sent it.
    fn told(segments: &[(Side, &[u8])]) -> Vec<(Side, What, u32)> {
        let mut failures = Failures::default();
        for (frame, (side, payload)) in (1..).zip(segments) {
            let event = Event { frame, len: payload.len() as u32, ..Event::default() };
            failures.push(*side, &event, payload);
        }
        failures.all().iter().map(|each| (each.by, each.what, each.times)).collect()
    }

    const GET: (Side, &[u8]) = (0, b"GET /a HTTP/1.1\r\n");
    const BUSY: (Side, &[u8]) = (1, b"HTTP/1.1 503 Service Unavailable\r\n");

    #[test]
    fn a_fatal_alert_in_clear_is_told_wherever_it_stands() {
        let version = What::Alert { code: 70, fatal: true };
        let alert: (Side, &[u8]) = (1, &[21, 3, 3, 0, 2, 2, 70]);
        assert_eq!(told(&[alert]), [(1, version, 1)]);
        let smtp: (Side, &[u8]) = (1, b"220 mail ESMTP\r\n");
        assert_eq!(told(&[smtp, (0, b"STARTTLS\r\n"), alert]), [(1, version, 1)]);
    }

    #[test]
    fn what_closes_tls_or_cannot_be_read_is_no_failure() {
        for record in [
            &[21, 3, 3, 0, 2, 1, 0][..],
            &[21, 3, 3, 0, 2, 1, 90],
            &[21, 3, 3, 0, 2, 3, 70],
            &[21, 3, 3, 0, 2, 2, 200],
            &[21, 3, 3, 0, 26, 2, 70],
            &[23, 3, 3, 0, 2, 2, 70],
        ] {
            assert_eq!(told(&[(1, record)]), [], "{record:?}");
        }
    }

    #[test]
    fn an_error_status_behind_a_request_is_told_and_counted() {
        let busy = (1, What::Status(503), 1);
        assert_eq!(told(&[GET, BUSY]), [busy]);
        assert_eq!(told(&[GET, BUSY, (0, b"GET /b HTTP/1.1\r\n"), BUSY]), [(1, busy.1, 2)]);
        assert_eq!(told(&[BUSY]), [busy], "the request came before the capture");
        let going_on: (Side, &[u8]) = (1, b"HTTP/1.1 100 Continue\r\n\r\n");
        assert_eq!(told(&[GET, going_on, BUSY]), [busy]);
    }

    #[test]
    fn an_answer_is_promised_by_its_head_unless_the_head_alone_was_wanted() {
        let promised = |segments: &[(Side, &[u8])]| {
            let mut failures = Failures::default();
            for (side, payload) in segments {
                let len = payload.len() as u32;
                let event = Event { seq: Offset::at(100), len, ..Event::default() };
                if failures.are_to_be_read(*side, len) || failures.http == Http::Unknown {
                    failures.push(*side, &event, payload);
                } else {
                    failures.pass(*side, len);
                }
            }
            failures.promise().map(|promise| promise.to)
        };
        let ok: (Side, &[u8]) = (1, b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n");
        let head: (Side, &[u8]) = (0, b"HEAD /a HTTP/1.1\r\n\r\n");
        assert_eq!(promised(&[GET, ok]), Some(Offset::at(147)));
        assert_eq!(promised(&[GET, ok, GET]), None, "the answer to that is still to come");
        assert_eq!(promised(&[GET, ok, GET, ok, (1, b"body")]), Some(Offset::at(147)));
        assert_eq!(promised(&[head, ok]), None);
        assert_eq!(promised(&[GET, ok, head, ok]), None);
        let body: (Side, &[u8]) = (0, b"a body");
        assert_eq!(promised(&[(0, b"POST /a HTTP/1.1\r\n\r\n"), body, ok]), Some(Offset::at(147)));
    }

    #[test]
    fn what_only_looks_like_a_status_is_none() {
        for answer in
            ["HTTP/1.1 304 Not Modified\r\n", "HTTP/1.1 5030\r\n", "HTTP/1.1 50", "ICY 503"]
        {
            assert_eq!(told(&[GET, (1, answer.as_bytes())]), [], "{answer}");
        }
        let ok: (Side, &[u8]) = (1, b"HTTP/1.1 200 OK\r\n");
        assert_eq!(told(&[GET, ok, BUSY]), [], "inside of a body");
        assert_eq!(told(&[(0, b"NICK a\r\n"), BUSY]), [], "another protocol");
    }
}
