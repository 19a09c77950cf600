//! Questions to the kernel by netlink, and its answers (RFC 3549; Linux
//! `include/uapi/linux/netlink.h`).
//!
//! Only questions: what changes something is the lab's (`lab/agent/init/netlink`). All numbers are
//! in the machine's order, everything is aligned to four bytes.

use std::io::{self, Read as _, Write as _};

use socket2::{Domain, Protocol, Socket, Type};

/// A line to one of the kernel's services, in the network namespace it was opened in.
#[derive(Debug)]
pub(super) struct Netlink {
    socket: Socket,
    buffer: Vec<u8>,
    sequence: u32,
}

impl Netlink {
    /// Opens one to a service (`NETLINK_SOCK_DIAG`, `NETLINK_ROUTE`).
    pub(super) fn open(service: i32) -> io::Result<Self> {
        let netlink = Domain::from(libc::AF_NETLINK);
        let socket = Socket::new(netlink, Type::DGRAM, Some(Protocol::from(service)))?;
        Ok(Self { socket, buffer: vec![0; ANSWER_ROOM], sequence: 0 })
    }

    /// Asks for all there is, and calls `each` with every answer.
    pub(super) fn list(
        &mut self,
        kind: u16,
        body: &[u8],
        each: impl FnMut(&[u8]),
    ) -> io::Result<()> {
        self.ask(kind, libc::NLM_F_DUMP as u16, body, each)
    }

    /// Asks for one thing; `None` if there is no such thing.
    pub(super) fn one(&mut self, kind: u16, body: &[u8]) -> io::Result<Option<Vec<u8>>> {
        let mut answer = None;
        match self.ask(kind, 0, body, |body| answer = Some(body.to_vec())) {
            Ok(()) => Ok(answer),
            Err(error) if error.raw_os_error() == Some(libc::ENOENT) => Ok(None),
            Err(error) => Err(error),
        }
    }

    fn ask(
        &mut self,
        kind: u16,
        flags: u16,
        body: &[u8],
        mut each: impl FnMut(&[u8]),
    ) -> io::Result<()> {
        self.sequence = self.sequence.wrapping_add(1);
        let mut request = Vec::with_capacity(HEAD + body.len());
        request.extend(((HEAD + body.len()) as u32).to_ne_bytes());
        request.extend(kind.to_ne_bytes());
        request.extend((flags | libc::NLM_F_REQUEST as u16).to_ne_bytes());
        request.extend(self.sequence.to_ne_bytes());
        request.extend(0_u32.to_ne_bytes());
        request.extend(body);
        // Not connected: a message without an address goes to the kernel.
        (&self.socket).write_all(&request)?;
        loop {
            let length = (&self.socket).read(&mut self.buffer)?;
            let mut rest = &self.buffer[..length];
            while let Some(message) = Message::first(rest) {
                rest = message.next;
                if message.sequence != self.sequence {
                    continue;
                }
                match message.kind {
                    DONE => return Ok(()),
                    ERROR => {
                        let code = number(message.body, 0, 4).map_or(0, |code| code as i32);
                        if code == 0 {
                            return Ok(());
                        }
                        return Err(io::Error::from_raw_os_error(-code));
                    }
                    _ => each(message.body),
                }
                if !message.is_one_of_many {
                    return Ok(());
                }
            }
        }
    }
}

/// A message of an answer (`nlmsghdr`).
struct Message<'a> {
    kind: u16,
    is_one_of_many: bool,
    sequence: u32,
    body: &'a [u8],
    /// What follows it.
    next: &'a [u8],
}

impl<'a> Message<'a> {
    fn first(bytes: &'a [u8]) -> Option<Self> {
        let length = number(bytes, 0, 4)? as usize;
        Some(Self {
            kind: number(bytes, 4, 2)? as u16,
            is_one_of_many: number(bytes, 6, 2)? as u16 & libc::NLM_F_MULTI as u16 != 0,
            sequence: number(bytes, 8, 4)? as u32,
            body: bytes.get(HEAD..length)?,
            next: bytes.get(length.next_multiple_of(4)..).unwrap_or(&[]),
        })
    }
}

/// The attributes that `bytes` hold (`nlattr`): kind and value.
pub(super) fn attributes(mut bytes: &[u8]) -> impl Iterator<Item = (u16, &[u8])> {
    // The two highest bits say how the value is built (`NLA_F_NESTED`, `NLA_F_NET_BYTEORDER`).
    const KIND: u16 = 0x3fff;
    std::iter::from_fn(move || {
        let length = number(bytes, 0, 2)? as usize;
        let kind = number(bytes, 2, 2)? as u16 & KIND;
        let value = bytes.get(4..length)?;
        bytes = bytes.get(length.next_multiple_of(4)..).unwrap_or(&[]);
        Some((kind, value))
    })
}

/// A number in the machine's order, if `bytes` reach so far.
pub(super) fn number(bytes: &[u8], at: usize, size: usize) -> Option<u64> {
    let mut value = [0; 8];
    let bytes = bytes.get(at..at.checked_add(size)?)?;
    if cfg!(target_endian = "little") {
        value[..size].copy_from_slice(bytes);
    } else {
        value[8 - size..].copy_from_slice(bytes);
    }
    Some(u64::from_ne_bytes(value))
}

/// Length of a `nlmsghdr`.
const HEAD: usize = 16;
/// Types of messages.
const ERROR: u16 = 2;
const DONE: u16 = 3;

/// The kernel fills at most 32 KiB at a time for a reader that takes that much (`netlink_dump`).
const ANSWER_ROOM: usize = 64 << 10;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn attributes_end_where_they_are_cut() {
        let told = |bytes: &'static [u8]| attributes(bytes).collect::<Vec<_>>();
        assert_eq!(
            told(&[5, 0, 3, 0x80, 7, 0, 0, 0, 4, 0, 9, 0]),
            [(3, &[7][..]), (9, &[])],
            "a value is padded, flags are no part of the kind"
        );
        assert_eq!(told(&[9, 0, 3, 0, 7]), []);
        assert_eq!(told(&[3, 0, 3, 0, 7]), [], "shorter than its head");
    }

    #[test]
    fn this_machine_has_a_loopback_interface() {
        let mut route = Netlink::open(libc::NETLINK_ROUTE).expect("netlink");
        let mut number = 0;
        route.list(libc::RTM_GETLINK, &[0; 16], |_| number += 1).expect("a list");
        assert!(number > 0);
    }
}
