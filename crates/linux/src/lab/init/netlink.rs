//! Netlink: requests to the kernel's network configuration, and its answers (RFC 3549).
//!
//! A message is a header, a fixed part and attributes, all in the machine's order, everything
//! aligned to four bytes. Each request asks for an acknowledgement; a refusal carries the kernel's
//! own sentence where it has one (`NETLINK_EXT_ACK`).

use std::io::{self, Read as _, Write as _};

use socket2::{Domain, Protocol, Socket, Type};

use super::system;

/// A request in the making.
#[derive(Clone, Debug)]
pub(super) struct Request {
    bytes: Vec<u8>,
}

impl Request {
    /// Begins a request; `flags` are besides those that ask for an answer.
    pub(super) fn new(kind: u16, flags: u16, fixed: &[u8]) -> Self {
        let mut bytes = Vec::with_capacity(256);
        bytes.extend(0_u32.to_ne_bytes());
        bytes.extend(kind.to_ne_bytes());
        bytes.extend((flags | NLM_F_REQUEST | NLM_F_ACK).to_ne_bytes());
        bytes.extend(1_u32.to_ne_bytes());
        bytes.extend(0_u32.to_ne_bytes());
        bytes.extend(fixed);
        let mut request = Self { bytes };
        request.align();
        request
    }

    /// Adds an attribute.
    pub(super) fn attribute(&mut self, kind: u16, value: &[u8]) -> &mut Self {
        self.bytes.extend((value.len() as u16 + 4).to_ne_bytes());
        self.bytes.extend(kind.to_ne_bytes());
        self.bytes.extend(value);
        self.align();
        self
    }

    /// Adds an attribute that is a number.
    pub(super) fn number(&mut self, kind: u16, value: u32) -> &mut Self {
        self.attribute(kind, &value.to_ne_bytes())
    }

    /// Adds an attribute that is a long number.
    pub(super) fn long(&mut self, kind: u16, value: u64) -> &mut Self {
        self.attribute(kind, &value.to_ne_bytes())
    }

    /// Adds an attribute that is a name, with its end.
    pub(super) fn name(&mut self, kind: u16, value: &str) -> &mut Self {
        let mut text = value.as_bytes().to_vec();
        text.push(0);
        self.attribute(kind, &text)
    }

    /// Adds an attribute that begins with fixed bytes and holds what `inside` adds.
    pub(super) fn nest(
        &mut self,
        kind: u16,
        fixed: &[u8],
        inside: impl FnOnce(&mut Self),
    ) -> &mut Self {
        let start = self.bytes.len();
        self.attribute(kind, fixed);
        inside(self);
        let length = (self.bytes.len() - start) as u16;
        self.bytes[start..start + 2].copy_from_slice(&length.to_ne_bytes());
        self
    }

    fn align(&mut self) {
        self.bytes.resize(self.bytes.len().next_multiple_of(4), 0);
    }

    fn finished(&self) -> Vec<u8> {
        let mut bytes = self.bytes.clone();
        let length = bytes.len() as u32;
        bytes[..4].copy_from_slice(&length.to_ne_bytes());
        bytes
    }
}

/// A line to the kernel, in the network namespace it was opened in.
#[derive(Debug)]
pub(super) struct Netlink {
    socket: Socket,
}

impl Netlink {
    /// Opens one in this thread's network namespace.
    pub(super) fn open() -> io::Result<Self> {
        let route = Protocol::from(libc::NETLINK_ROUTE);
        let socket = Socket::new(Domain::from(libc::AF_NETLINK), Type::RAW, Some(route))?;
        system::explain_errors(&socket)?;
        Ok(Self { socket })
    }

    /// Carries a request out.
    pub(super) fn ask(&mut self, request: &Request) -> io::Result<()> {
        self.socket.write_all(&request.finished())?;
        let mut answer = vec![0; 16 << 10];
        loop {
            let length = self.socket.read(&mut answer)?;
            if let Some(verdict) = verdict(&answer[..length]) {
                return verdict;
            }
        }
    }
}

/// What an answer says; `None` if it is no acknowledgement.
fn verdict(answer: &[u8]) -> Option<io::Result<()>> {
    let kind = u16::from_ne_bytes(answer.get(4..6)?.try_into().ok()?);
    if kind != NLMSG_ERROR {
        return None;
    }
    let code = i32::from_ne_bytes(answer.get(16..20)?.try_into().ok()?);
    if code == 0 {
        return Some(Ok(()));
    }
    let error = io::Error::from_raw_os_error(-code);
    Some(Err(match sentence(answer) {
        Some(said) => io::Error::new(error.kind(), format!("{error}: {said}")),
        None => error,
    }))
}

/// The kernel's own words in a refusal: the attribute `NLMSGERR_ATTR_MSG` behind what was asked.
fn sentence(answer: &[u8]) -> Option<String> {
    let flags = u16::from_ne_bytes(answer.get(6..8)?.try_into().ok()?);
    let asked = u32::from_ne_bytes(answer.get(20..24)?.try_into().ok()?) as usize;
    let carried = if flags & NLM_F_CAPPED == 0 { asked } else { 16 };
    let mut at = 20 + carried.next_multiple_of(4);
    loop {
        let length = usize::from(u16::from_ne_bytes(answer.get(at..at + 2)?.try_into().ok()?));
        let kind = u16::from_ne_bytes(answer.get(at + 2..at + 4)?.try_into().ok()?);
        if length < 4 {
            return None;
        }
        if kind == NLMSGERR_ATTR_MSG {
            let text = answer.get(at + 4..at + length)?;
            return Some(String::from_utf8_lossy(text).trim_end_matches('\0').to_owned());
        }
        at += length.next_multiple_of(4);
    }
}

// linux/netlink.h
const NLM_F_REQUEST: u16 = 1;
const NLM_F_ACK: u16 = 4;
const NLM_F_CAPPED: u16 = 0x100;
const NLMSG_ERROR: u16 = 2;
const NLMSGERR_ATTR_MSG: u16 = 1;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn attributes_are_aligned_and_nests_know_their_length() {
        let mut request = Request::new(36, 0, &[9; 4]);
        request.nest(2, &[], |r| {
            r.name(1, "tbf").number(3, 7);
        });
        let bytes = request.finished();
        assert_eq!(bytes.len(), 16 + 4 + 4 + 8 + 8);
        assert_eq!(bytes[..4], 40_u32.to_ne_bytes(), "the whole message");
        assert_eq!(bytes[20..24], [20, 0, 2, 0], "the nest: its own head, a name, a number");
        assert_eq!(bytes[24..32], [8, 0, 1, 0, b't', b'b', b'f', 0]);
        assert_eq!(bytes[32..], [8, 0, 3, 0, 7, 0, 0, 0]);
    }

    #[test]
    fn a_refusal_has_the_kernels_words() {
        let mut answer = vec![0; 20];
        answer[4..6].copy_from_slice(&NLMSG_ERROR.to_ne_bytes());
        answer[6..8].copy_from_slice(&NLM_F_CAPPED.to_ne_bytes());
        answer[16..20].copy_from_slice(&(-22_i32).to_ne_bytes());
        answer.extend([0; 16]);
        answer.extend([8, 0, 1, 0, b'n', b'o', b'!', 0]);
        let error = verdict(&answer).expect("an acknowledgement").expect_err("a refusal");
        assert!(error.to_string().ends_with(": no!"), "{error}");
    }

    #[test]
    fn an_answer_cut_short_is_no_answer() {
        assert!(verdict(&[0; 10]).is_none());
        let mut answer = [0; 20];
        answer[4..6].copy_from_slice(&NLMSG_ERROR.to_ne_bytes());
        answer[16..20].copy_from_slice(&(-2_i32).to_ne_bytes());
        let error = verdict(&answer).expect("an acknowledgement").expect_err("a refusal");
        assert_eq!(error.raw_os_error(), Some(2));
    }
}
