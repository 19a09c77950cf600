//! What HTTP/1 requests in clear ask for, and with which status they were answered.
//!
//! People know a request by its method and path, not by its number. The request line and the `Host` field stand in the
//! first segment of a request nearly always (RFC 9112 sections 3 and 3.2).
//!
//! Left out: query strings, which hold passwords and keys as often as not; what is encrypted; HTTP/2; a request line that
//! goes on in the next segment; the second of requests that come in one segment.

use crate::offsets::Offset;
use core::net::IpAddr;

use super::said::safe;

/// Requests kept one by one; of more the last takes the place of the one before. Ours: bounds the memory.
const MOST: usize = 32;
/// Characters of a target. Ours.
const TARGET: usize = 120;
/// Characters of a host's name (RFC 1035 section 2.3.4).
const HOST: usize = 253;
/// Bytes of a head in which the `Host` field is looked for. Ours: it mostly comes first.
const HEAD: usize = 1024;

/// A request.
#[derive(Clone, Debug)]
pub(crate) struct Request {
    /// Offset of its first byte.
    pub(crate) from: Offset,
    pub(crate) method: &'static str,
    /// Its target without the query.
    pub(crate) target: Box<str>,
    /// How it was answered.
    pub(crate) status: Option<u16>,
}

/// The requests of one connection.
#[derive(Clone, Debug, Default)]
pub(crate) struct Requests(Option<Box<Known>>);

#[derive(Clone, Debug, Default)]
struct Known {
    host: Option<Box<str>>,
    list: Vec<Request>,
}

impl Requests {
    /// Takes the request that `payload` begins with, whose first byte is at offset `from`.
    pub(super) fn begin(&mut self, from: Offset, method: &'static [u8], payload: &[u8]) {
        let line = payload.get(method.len()..).unwrap_or_default();
        let end = line.iter().position(|byte| matches!(byte, b' ' | b'\r' | b'\n' | b'?'));
        let (target, has_query) = match end {
            Some(end) => (&line[..end], line[end] == b'?'),
            None => (line, false),
        };
        if !is_request_line(target, &line[target.len()..], has_query) {
            return;
        }
        let mut target = safe(target, TARGET);
        if has_query {
            target.push_str("?...");
        }
        let known = self.0.get_or_insert_default();
        if known.host.is_none() {
            known.host = host(line).map(String::into_boxed_str);
        }
        if known.list.len() >= MOST {
            known.list.pop();
        }
        let method = core::str::from_utf8(method).unwrap_or_default().trim_end();
        known.list.push(Request { from, method, target: target.into_boxed_str(), status: None });
    }

    /// The last one was answered.
    pub(super) fn answered(&mut self, status: u16) {
        let last = self.0.as_mut().and_then(|known| known.list.last_mut());
        if let Some(last) = last.filter(|last| last.status.is_none()) {
            last.status = Some(status);
        }
    }

    /// The first ones, and the last.
    pub(crate) fn all(&self) -> &[Request] {
        self.0.as_ref().map_or(&[], |known| &known.list)
    }

    /// The name of the host that they are for.
    pub(crate) fn host(&self) -> Option<&str> {
        self.0.as_ref()?.host.as_deref()
    }
}

/// Whether this is a target (RFC 9112 section 3.2), and what follows it no other protocol than HTTP/1, as far as it was
/// captured.
fn is_request_line(target: &[u8], behind: &[u8], has_query: bool) -> bool {
    let is_target = matches!(target.first(), Some(b'/' | b'*'))
        || target.windows(3).any(|part| part == b"://")
        || target.contains(&b':');
    let version = b" HTTP/1.";
    let seen = behind.len().min(version.len());
    is_target && (has_query || behind[..seen] == version[..seen])
}

/// The name in the `Host` field, without its port; an address is no name.
fn host(head: &[u8]) -> Option<String> {
    let head = &head[..head.len().min(HEAD)];
    let value = head.split(|byte| *byte == b'\n').skip(1).find_map(|line| {
        let (name, value) = line.split_at_checked(5)?;
        name.eq_ignore_ascii_case(b"host:").then(|| value.trim_ascii())
    })?;
    let text = safe(value, HOST);
    let bare = match text.rsplit_once(':') {
        Some((host, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) => host,
        _ => &text,
    };
    let address = bare.trim_start_matches('[').trim_end_matches(']');
    (!bare.is_empty() && address.parse::<IpAddr>().is_err()).then(|| bare.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked(request: &[u8]) -> Requests {
        let mut requests = Requests::default();
        requests.begin(Offset::FIRST, b"GET ", request);
        requests
    }

    #[test]
    fn a_request_has_a_target_and_a_host() {
        let mut requests =
            asked(b"GET /a/b HTTP/1.1\r\nAccept: *\r\nHost: files.example:8080\r\n\r\n");
        requests.answered(200);
        let first = &requests.all()[0];
        assert_eq!((first.method, &*first.target, first.status), ("GET", "/a/b", Some(200)));
        assert_eq!(requests.host(), Some("files.example"));
    }

    #[test]
    fn what_may_be_secret_is_left_out() {
        let requests = asked(b"GET /login?password=hunter2 HTTP/1.1\r\n\r\n");
        assert_eq!(&*requests.all()[0].target, "/login?...");
    }

    #[test]
    fn what_only_begins_like_a_request_has_no_name() {
        for line in ["GET xxxx", "GET x HTTP/1.1", "GET / ICY", "GET /a\r\n"] {
            assert!(asked(line.as_bytes()).all().is_empty(), "{line}");
        }
        for line in ["GET /", "GET /a HT", "GET http://a.example/ HTTP/1.0"] {
            assert_eq!(asked(line.as_bytes()).all().len(), 1, "{line}");
        }
    }

    #[test]
    fn an_address_is_no_name() {
        for host in ["192.0.2.1", "192.0.2.1:80", "[2001:db8::1]:80", "[2001:db8::1]", ""] {
            let request = format!("GET / HTTP/1.1\r\nHost: {host}\r\n\r\n");
            assert_eq!(asked(request.as_bytes()).host(), None, "{host}");
        }
    }

    #[test]
    fn hostile_bytes_are_escaped_and_long_ones_cut() {
        let requests = asked(b"GET /\x1b]0;x\x07<script> HTTP/1.1\r\nhost: a\x1b[2Jb\r\n\r\n");
        assert_eq!(&*requests.all()[0].target, "/%1B]0;x%07%3Cscript%3E");
        assert_eq!(requests.host(), Some("a%1B[2Jb"));
        let long = [b"GET /".as_slice(), &[b'a'; 10_000]].concat();
        assert_eq!(asked(&long).all()[0].target.len(), TARGET + 3);
    }

    #[test]
    fn of_very_many_the_first_and_the_last_are_kept() {
        let mut requests = Requests::default();
        for from in 0..1000 {
            requests.begin(
                Offset::at(from),
                b"GET ",
                format!("GET /{from} HTTP/1.1\r\n").as_bytes(),
            );
        }
        let targets: Vec<&str> = requests.all().iter().map(|each| &*each.target).collect();
        assert_eq!((targets.len(), targets[0], targets[MOST - 1]), (MOST, "/0", "/999"));
    }
}
