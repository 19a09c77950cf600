//! Names asked for: how long did each question to a name server wait for its answer?
//!
//! Messages of RFC 1035 over UDP, one question each. A question belongs to its answer by both ends,
//! number, name and type; retransmitted it is still the same question, as a resolver that got no answer
//! sends it. The same packet met at a second interface (within [`COPY`]) is no repeat.
//!
//! Left out: DNS over TCP, whose connection is in the report like any other, and counts as DNS in a command's time; DNS over TLS and HTTPS,
//! which nobody can read; multicast DNS; whose question it was where a resolver on this host
//! (127.0.0.53) asks on for somebody: both are listed.

use core::net::{IpAddr, SocketAddr};
use std::collections::BTreeMap;

use crate::report::{Lookup, Text};
use crate::wire::Datagram;
use tcpwhy_words::units::{Duration, Time};

/// Questions so far.
#[derive(Debug, Default)]
pub(crate) struct Names {
    lookups: Vec<Lookup>,
    /// Questions without an answer, by what tells them apart: place in `lookups`, first and last time.
    open: BTreeMap<Key, (usize, Time, Time)>,
    /// Questions beyond what is listed.
    more: u64,
}

type Key = (SocketAddr, SocketAddr, u16, String, u16);

impl Names {
    /// Takes a datagram that may be DNS.
    pub(crate) fn take(&mut self, datagram: &Datagram<'_>) {
        let Some(message) = Message::read(datagram.payload) else { return };
        let Datagram { time, frame, source, destination, .. } = *datagram;
        let (client, resolver) =
            if message.is_answer { (destination, source) } else { (source, destination) };
        let Message { id, name, kind, .. } = message;
        let key = (client, resolver, id, name.clone(), kind);
        if message.is_answer {
            if let Some((at, first, _)) = self.open.remove(&key) {
                let lookup = &mut self.lookups[at];
                // A clock that was set back meanwhile tells no wait.
                lookup.duration_ns = Some(time.since(first).0.max(0));
                lookup.answer = Some(answer_name(message.code));
                lookup.addresses = message.addresses;
            }
            return;
        }
        if let Some((at, first, last)) = self.open.get_mut(&key) {
            if time.since(*last) > COPY {
                let lookup = &mut self.lookups[*at];
                lookup.asked += 1;
                lookup.last_asked_ns = time.since(*first).0.max(0);
                *last = time;
            }
            return;
        }
        if self.lookups.len() >= MOST {
            self.more += 1;
            return;
        }
        self.open.insert(key, (self.lookups.len(), time, time));
        self.lookups.push(Lookup {
            name,
            kind: kind_name(kind),
            client,
            resolver,
            start: time.rfc3339(),
            id,
            asked: 1,
            last_asked_ns: 0,
            duration_ns: None,
            answer: None,
            addresses: Vec::new(),
            frame,
        });
    }

    /// The questions listed, in their order.
    pub(crate) fn all(&self) -> &[Lookup] {
        &self.lookups
    }

    /// The questions listed, in their order, and how many more there were.
    pub(crate) fn lookups(&self) -> (Vec<Lookup>, u64) {
        (self.lookups.clone(), self.more)
    }
}

/// A message with one question.
#[derive(Debug)]
struct Message {
    id: u16,
    is_answer: bool,
    code: u8,
    name: String,
    kind: u16,
    addresses: Vec<IpAddr>,
}

impl Message {
    /// Reads a message that may be cut short behind its question.
    fn read(bytes: &[u8]) -> Option<Self> {
        const ANSWER: u8 = 0x80;
        const OPERATION: u8 = 0x78;
        let header: &[u8; 12] = bytes.first_chunk()?;
        let count = |at: usize| u16::from_be_bytes([header[at], header[at + 1]]);
        // Standard queries alone: operation 0, one question.
        if header[2] & OPERATION != 0 || count(4) != 1 {
            return None;
        }
        let (name, rest) = name(&bytes[12..])?;
        let kind = be16(rest, 0)?;
        Some(Self {
            id: count(0),
            is_answer: header[2] & ANSWER != 0,
            code: header[3] & 0x0f,
            name,
            kind,
            addresses: addresses(rest.get(4..).unwrap_or_default(), count(6)),
        })
    }
}

/// A name in labels (RFC 1035 section 3.1), and what follows it. In a question nothing precedes that
/// it could point back to.
fn name(mut bytes: &[u8]) -> Option<(String, &[u8])> {
    let mut text = String::new();
    loop {
        let (&length, rest) = bytes.split_first()?;
        if length == 0 {
            break Some((if text.is_empty() { ".".to_owned() } else { text }, rest));
        }
        // RFC 1035 section 2.3.4: a label has at most 63 bytes, a name 255.
        if length > 63 || text.len() + usize::from(length) > 1024 {
            return None;
        }
        let (label, rest) = rest.split_at_checked(usize::from(length))?;
        if !text.is_empty() {
            text.push('.');
        }
        text.extend(label.iter().copied().flat_map(core::ascii::escape_default).map(char::from));
        bytes = rest;
    }
}

/// The addresses among `count` records, as far as they go.
fn addresses(mut bytes: &[u8], count: u16) -> Vec<IpAddr> {
    let mut found = Vec::new();
    for _ in 0..count {
        let Some((kind, data, rest)) = record(bytes) else { break };
        bytes = rest;
        match kind {
            1 => found.extend(<[u8; 4]>::try_from(data).map(IpAddr::from)),
            28 => found.extend(<[u8; 16]>::try_from(data).map(IpAddr::from)),
            _ => {}
        }
        if found.len() >= MOST_ADDRESSES {
            break;
        }
    }
    found
}

/// A resource record (RFC 1035 section 4.1.3): type, data, and what follows it.
fn record(mut bytes: &[u8]) -> Option<(u16, &[u8], &[u8])> {
    // Its name: labels to a zero, or to a pointer of two bytes.
    loop {
        let length = *bytes.first()?;
        match length {
            0 => break bytes = bytes.get(1..)?,
            0xc0.. => break bytes = bytes.get(2..)?,
            _ => bytes = bytes.get(1 + usize::from(length)..)?,
        }
    }
    let length = usize::from(be16(bytes, 8)?);
    Some((be16(bytes, 0)?, bytes.get(10..10 + length)?, bytes.get(10 + length..)?))
}

fn be16(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_be_bytes(*bytes.get(at..)?.first_chunk()?))
}

/// Types as IANA's register has them.
fn kind_name(kind: u16) -> Text {
    match kind {
        1 => "A".into(),
        2 => "NS".into(),
        5 => "CNAME".into(),
        6 => "SOA".into(),
        12 => "PTR".into(),
        15 => "MX".into(),
        16 => "TXT".into(),
        28 => "AAAA".into(),
        33 => "SRV".into(),
        65 => "HTTPS".into(),
        // RFC 3597 section 5.
        other => format!("TYPE{other}").into(),
    }
}

/// RFC 1035 section 4.1.1, RFC 2136 section 2.2.
fn answer_name(code: u8) -> Text {
    match code {
        0 => "NOERROR".into(),
        1 => "FORMERR".into(),
        2 => "SERVFAIL".into(),
        3 => "NXDOMAIN".into(),
        4 => "NOTIMP".into(),
        5 => "REFUSED".into(),
        other => format!("RCODE{other}").into(),
    }
}

/// Ours: resolvers wait for a second and more before they ask again (resolv.conf(5): 5 s), a packet
/// takes less from one interface of a host to the next.
const COPY: Duration = Duration::from_millis(20);
/// Ours: a report that lists more names is read by nobody.
const MOST: usize = 1000;
/// Ours: as many as an answer of 512 bytes holds.
const MOST_ADDRESSES: usize = 28;

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const QUESTION: &[u8] = b"\x07example\x03org\x00\x00\x01\x00\x01";

    fn message(flags: [u8; 2], answers: &[&[u8]]) -> Vec<u8> {
        let mut bytes =
            vec![0x12, 0x34, flags[0], flags[1], 0, 1, 0, answers.len() as u8, 0, 0, 0, 0];
        bytes.extend(QUESTION);
        bytes.extend(answers.concat());
        bytes
    }

    /// Both ends and the time in milliseconds of each message.
    fn told(tape: &[(&str, &str, i64, Vec<u8>)]) -> Vec<Lookup> {
        let mut names = Names::default();
        for (frame, (from, to, ms, payload)) in (1..).zip(tape) {
            let end = |text: &str| text.parse().expect("an address");
            names.take(&Datagram {
                time: Time(ms * 1_000_000),
                frame,
                source: end(from),
                destination: end(to),
                payload,
            });
        }
        names.lookups().0
    }

    const HOST: &str = "192.0.2.1:40000";
    const RESOLVER: &str = "192.0.2.53:53";

    #[test]
    fn an_answer_ends_the_wait_and_tells_addresses_behind_an_alias() {
        let alias = b"\xc0\x0c\x00\x05\x00\x01\x00\x00\x00\x3c\x00\x02\xc0\x14";
        let address = b"\xc0\x14\x00\x01\x00\x01\x00\x00\x00\x3c\x00\x04\xc6\x33\x64\x07";
        let found = told(&[
            (HOST, RESOLVER, 10, message([1, 0], &[])),
            (RESOLVER, HOST, 22, message([0x81, 0x80], &[alias, address])),
        ]);
        assert_eq!(found.len(), 1);
        let lookup = &found[0];
        assert_eq!((lookup.name.as_str(), &*lookup.kind), ("example.org", "A"));
        assert_eq!((lookup.duration_ns, lookup.asked, lookup.frame), (Some(12_000_000), 1, 1));
        assert_eq!(lookup.answer.as_deref(), Some("NOERROR"));
        assert_eq!(lookup.addresses, [IpAddr::from([198, 51, 100, 7])]);
    }

    #[test]
    fn a_question_sent_again_is_one_and_its_copy_is_none() {
        let ask = || message([1, 0], &[]);
        let found = told(&[
            (HOST, RESOLVER, 0, ask()),
            (HOST, RESOLVER, 20, ask()),
            (HOST, RESOLVER, 5000, ask()),
            (RESOLVER, HOST, 5010, message([0x81, 0x83], &[])),
        ]);
        assert_eq!(found.len(), 1);
        assert_eq!((found[0].asked, found[0].duration_ns), (2, Some(5_010_000_000)));
        assert_eq!((found[0].id, found[0].last_asked_ns), (0x1234, 5_000_000_000));
        assert_eq!(found[0].answer.as_deref(), Some("NXDOMAIN"));
    }

    #[test]
    fn an_answer_of_another_or_to_nothing_is_none() {
        let mut other = message([0x81, 0x80], &[]);
        other[0] = 0x99;
        let found = told(&[
            (RESOLVER, HOST, 0, message([0x81, 0x80], &[])),
            (HOST, RESOLVER, 1, message([1, 0], &[])),
            (RESOLVER, HOST, 2, other),
        ]);
        assert_eq!(found.len(), 1);
        assert_eq!((found[0].duration_ns, found[0].answer.as_ref()), (None, None));
    }

    #[test]
    fn names_that_are_no_text_are_escaped() {
        let (text, rest) = name(b"\x03a\x1bb\x00rest").expect("a name");
        assert_eq!((text.as_str(), rest), ("a\\x1bb", &b"rest"[..]));
        assert_eq!(name(b"\x00").expect("the root").0, ".");
        assert!(name(b"\xc0\x0c").is_none() && name(b"\x05abc").is_none());
    }

    proptest! {
        #[test]
        fn any_bytes_are_borne(bytes in prop::collection::vec(any::<u8>(), 0..80), at in 0..60_usize) {
            let mut names = Names::default();
            let end: SocketAddr = HOST.parse().expect("an address");
            let mut whole = message([0x81, 0x80], &[b"\xc0\x0c\x00\x01\x00\x01\x00\x00\x00\x00\x00\x04abcd"]);
            for (place, byte) in whole.iter_mut().skip(at).zip(&bytes) {
                *place = *byte;
            }
            for payload in [&bytes[..], &whole] {
                let datagram = Datagram { time: Time(0), frame: 1, source: end, destination: end, payload };
                names.take(&datagram);
            }
        }
    }
}
