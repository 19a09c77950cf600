//! Questions and requests to the kernel by netlink, and its answers (RFC 3549; Linux
//! `include/uapi/linux/netlink.h`).
//!
//! All numbers are in the machine's order, everything is aligned to four bytes.

mod generic;
mod message;

use std::io::{self, ErrorKind, Write as _};
use std::os::fd::AsFd as _;
use std::time::Duration;

use rustix::net::netlink::SocketAddrNetlink;
use socket2::{Domain, Protocol, Socket, Type};

use crate::sys;
pub(crate) use generic::Generic;
use message::{DONE, ERROR, Message};
pub(crate) use message::{Request, address, attribute, attributes, number, put, u32_of};

/// A line to one of the kernel's services, in the network namespace it was opened in.
#[derive(Debug)]
pub(crate) struct Netlink {
    socket: Socket,
    buffer: Vec<u8>,
    sequence: u32,
}

/// Whether an answer is all of it.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Answer {
    /// It is, as it stood at one instant or was while the kernel told it.
    Whole,
    /// What was listed changed meanwhile (`NLM_F_DUMP_INTR`): something may be missing or told twice.
    Interrupted,
    /// A message was longer than there was room for; there is more the next time.
    Cut,
}

impl Netlink {
    /// Opens one to a service (`NETLINK_SOCK_DIAG`, `NETLINK_ROUTE`).
    pub(crate) fn open(service: i32) -> io::Result<Self> {
        let netlink = Domain::from(libc::AF_NETLINK);
        let socket = Socket::new(netlink, Type::DGRAM, Some(Protocol::from(service)))?;
        socket.set_read_timeout(Some(PATIENCE))?;
        Ok(Self { socket, buffer: vec![0; ANSWER_ROOM], sequence: 0 })
    }

    /// Opens one to what a service tells everyone who listens: a bit for each of its first groups. May be refused.
    pub(crate) fn listen(service: i32, groups: u32) -> io::Result<Self> {
        let line = Self::open(service)?;
        rustix::net::bind(&line.socket, &SocketAddrNetlink::new(0, groups))?;
        Ok(line)
    }

    /// Calls `each` with what it has told since this was asked last. It does not wait.
    pub(crate) fn heard(&mut self, mut each: impl FnMut(&[u8])) -> io::Result<Answer> {
        let mut answer = Answer::Whole;
        loop {
            let length = match sys::receive_now(self.socket.as_fd(), &mut self.buffer) {
                Ok(length) => length,
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(answer),
                // It told more than there was room for.
                Err(error) if error.raw_os_error() == Some(libc::ENOBUFS) => {
                    answer = Answer::Cut;
                    continue;
                }
                Err(error) => return Err(error),
            };
            let mut rest = self.buffer.get(..length).unwrap_or_default();
            while let Some(message) = Message::first(rest) {
                rest = message.next;
                each(message.body);
            }
        }
    }

    /// Asks for the whole list, and calls `each` with every answer.
    pub(crate) fn list(
        &mut self,
        kind: u16,
        body: &[u8],
        each: impl FnMut(&[u8]),
    ) -> io::Result<Answer> {
        self.ask(kind, libc::NLM_F_DUMP as u16, body, each)
    }

    /// Asks for the whole list, up to [`TRIES`] times if it changes meanwhile, and gathers it; of
    /// the last time, if none was whole.
    pub(crate) fn gather<T>(
        &mut self,
        kind: u16,
        body: &[u8],
        mut each: impl FnMut(&mut Vec<T>, &[u8]),
    ) -> io::Result<(Vec<T>, Answer)> {
        let mut found = Vec::new();
        let mut answer = Answer::Cut;
        for _ in 0..TRIES {
            found.clear();
            answer = self.list(kind, body, |message| each(&mut found, message))?;
            if answer == Answer::Whole {
                break;
            }
        }
        Ok((found, answer))
    }

    /// Asks for one thing; `None` if there is no such thing.
    pub(crate) fn one(&mut self, kind: u16, body: &[u8]) -> io::Result<Option<Vec<u8>>> {
        let mut answer = None;
        match self.ask(kind, 0, body, |body| answer = Some(body.to_vec())) {
            Ok(_) => Ok(answer),
            Err(error) if error.raw_os_error() == Some(libc::ENOENT) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Opens one whose refusals come with the kernel's own words (`NETLINK_EXT_ACK`).
    pub(crate) fn open_for_changes() -> io::Result<Self> {
        let line = Self::open(libc::NETLINK_ROUTE)?;
        sys::explain_refusals(line.socket.as_fd())?;
        Ok(line)
    }

    /// Carries a request out.
    pub(crate) fn carry_out(&mut self, request: &Request) -> io::Result<()> {
        self.send(request, libc::NLM_F_ACK as u16)?;
        self.answers(|_| ()).map(drop)
    }

    fn ask(
        &mut self,
        kind: u16,
        flags: u16,
        body: &[u8],
        each: impl FnMut(&[u8]),
    ) -> io::Result<Answer> {
        self.send(&Request::new(kind, flags, body), 0)?;
        self.answers(each)
    }

    fn send(&mut self, request: &Request, flags: u16) -> io::Result<()> {
        self.sequence = self.sequence.wrapping_add(1);
        // Not connected: a message without an address goes to the kernel.
        (&self.socket).write_all(&request.finished(self.sequence, flags))
    }

    /// Calls `each` with every answer to what was sent last.
    fn answers(&mut self, mut each: impl FnMut(&[u8])) -> io::Result<Answer> {
        let mut answer = Answer::Whole;
        loop {
            let length = sys::receive(self.socket.as_fd(), &mut self.buffer)?;
            if length > self.buffer.len() {
                // The rest of it is lost; the list goes on with the next message.
                answer = Answer::Cut;
                self.buffer.resize(length.next_power_of_two(), 0);
                continue;
            }
            let mut rest = &self.buffer[..length];
            while let Some(message) = Message::first(rest) {
                rest = message.next;
                if message.sequence != self.sequence {
                    continue;
                }
                if message.flags & DUMP_INTERRUPTED != 0 && answer == Answer::Whole {
                    answer = Answer::Interrupted;
                }
                match message.kind {
                    DONE | ERROR => return message.result().map(|()| answer),
                    _ => each(message.body),
                }
                if message.flags & libc::NLM_F_MULTI as u16 == 0 {
                    return Ok(answer);
                }
            }
        }
    }
}

/// `NLM_F_DUMP_INTR`.
const DUMP_INTERRUPTED: u16 = 0x10;

/// The kernel fills at most 32 KiB at a time for a reader that takes that much (`netlink_dump`).
const ANSWER_ROOM: usize = 64 << 10;

/// Ours: a list that changes all the time will not stand still for a fourth look either.
const TRIES: usize = 3;

/// Ours: the kernel answers while it is asked, so whoever is silent for so long will stay so.
const PATIENCE: Duration = Duration::from_secs(5);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_machine_has_a_loopback_interface() {
        let mut route = Netlink::open(libc::NETLINK_ROUTE).expect("netlink");
        let mut number = 0;
        route.list(libc::RTM_GETLINK, &[0; 16], |_| number += 1).expect("a list");
        assert!(number > 0);
    }
}
