//! Questions to the kernel by netlink, and its answers (RFC 3549; Linux
//! `include/uapi/linux/netlink.h`).
//!
//! Only questions: what changes something is the lab's (`lab/init/netlink`). All numbers are
//! in the machine's order, everything is aligned to four bytes.

use std::ffi::CStr;
use std::io::{self, Write as _};
use std::net::IpAddr;
use std::os::fd::AsFd as _;
use std::time::Duration;

use socket2::{Domain, Protocol, Socket, Type};

use crate::sys;

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

    fn ask(
        &mut self,
        kind: u16,
        flags: u16,
        body: &[u8],
        mut each: impl FnMut(&[u8]),
    ) -> io::Result<Answer> {
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

/// A line to one of the services that are found by name (Linux `include/uapi/linux/genetlink.h`).
#[derive(Debug)]
pub(crate) struct Generic {
    netlink: Netlink,
    family: u16,
}

impl Generic {
    /// Opens one; `None` if this kernel has no such service.
    pub(crate) fn open(name: &CStr) -> io::Result<Option<Self>> {
        let mut netlink = Netlink::open(libc::NETLINK_GENERIC)?;
        let mut body = head(CTRL_CMD_GETFAMILY);
        put(&mut body, CTRL_ATTR_FAMILY_NAME, name.to_bytes_with_nul());
        let Some(answer) = netlink.one(GENL_ID_CTRL, &body)? else { return Ok(None) };
        let facts = answer.get(GENERIC_HEAD..).unwrap_or_default();
        let family = attribute(facts, CTRL_ATTR_FAMILY_ID).and_then(|value| number(value, 0, 2));
        Ok(family.map(|family| Self { netlink, family: family as u16 }))
    }

    /// [`Netlink::gather`] by a command and its attributes; `each` gets the attributes of an answer.
    pub(crate) fn gather<T>(
        &mut self,
        command: u8,
        facts: &[u8],
        mut each: impl FnMut(&mut Vec<T>, &[u8]),
    ) -> io::Result<(Vec<T>, Answer)> {
        let mut body = head(command);
        body.extend(facts);
        self.netlink.gather(self.family, &body, |found, message| {
            each(found, message.get(GENERIC_HEAD..).unwrap_or_default());
        })
    }
}

/// A `genlmsghdr`: command, version, and two bytes that mean nothing.
fn head(command: u8) -> Vec<u8> {
    vec![command, 1, 0, 0]
}

/// A message of an answer (`nlmsghdr`).
struct Message<'a> {
    kind: u16,
    flags: u16,
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
            flags: number(bytes, 6, 2)? as u16,
            sequence: number(bytes, 8, 4)? as u32,
            body: bytes.get(HEAD..length)?,
            next: bytes.get(length.next_multiple_of(4)..).unwrap_or(&[]),
        })
    }

    /// What the last message says of the whole: 0, or the negative number of an error. A list that
    /// failed on the way ends so, too (`netlink_dump`, since Linux 4.15).
    fn result(&self) -> io::Result<()> {
        match number(self.body, 0, 4).map_or(0, |code| code as i32) {
            code if code >= 0 => Ok(()),
            code => Err(io::Error::from_raw_os_error(code.saturating_neg())),
        }
    }
}

/// The attributes that `bytes` hold (`nlattr`): kind and value.
pub(crate) fn attributes(mut bytes: &[u8]) -> impl Iterator<Item = (u16, &[u8])> {
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
pub(crate) fn number(bytes: &[u8], at: usize, size: usize) -> Option<u64> {
    let mut value = [0; 8];
    let bytes = bytes.get(at..at.checked_add(size)?)?;
    if cfg!(target_endian = "little") {
        value.get_mut(..size)?.copy_from_slice(bytes);
    } else {
        value.get_mut(8_usize.checked_sub(size)?..)?.copy_from_slice(bytes);
    }
    Some(u64::from_ne_bytes(value))
}

/// The value of the first attribute of this kind.
pub(crate) fn attribute(bytes: &[u8], wanted: u16) -> Option<&[u8]> {
    attributes(bytes).find(|(kind, _)| *kind == wanted).map(|(_, value)| value)
}

/// An attribute that is one number of 32 bits.
pub(crate) fn u32_of(value: &[u8]) -> Option<u32> {
    number(value, 0, 4).map(|value| value as u32)
}

/// An attribute that is an address.
pub(crate) fn address(value: &[u8]) -> Option<IpAddr> {
    let v4 = <[u8; 4]>::try_from(value).map(IpAddr::from);
    v4.or_else(|_| <[u8; 16]>::try_from(value).map(IpAddr::from)).ok()
}

/// Adds an attribute (`nlattr`) to a message's body.
pub(crate) fn put(body: &mut Vec<u8>, kind: u16, value: &[u8]) {
    body.extend(((4 + value.len()) as u16).to_ne_bytes());
    body.extend(kind.to_ne_bytes());
    body.extend(value);
    body.resize(body.len().next_multiple_of(4), 0);
}

/// Length of a `nlmsghdr`.
const HEAD: usize = 16;
/// Length of a `genlmsghdr`.
const GENERIC_HEAD: usize = 4;
/// The service that knows the others, and what it is asked.
const GENL_ID_CTRL: u16 = 0x10;
const CTRL_CMD_GETFAMILY: u8 = 3;
const CTRL_ATTR_FAMILY_ID: u16 = 1;
const CTRL_ATTR_FAMILY_NAME: u16 = 2;
/// Types of messages.
const ERROR: u16 = 2;
const DONE: u16 = 3;
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
    fn an_attribute_that_is_put_is_found_again() {
        let mut body = Vec::new();
        put(&mut body, 3, &[7]);
        put(&mut body, 9, &[]);
        assert_eq!(attributes(&body).collect::<Vec<_>>(), [(3, &[7][..]), (9, &[])]);
    }

    #[test]
    fn a_list_that_fails_on_the_way_ends_with_its_error() {
        let mut bytes = Vec::from(20_u32.to_ne_bytes());
        bytes.extend(DONE.to_ne_bytes());
        bytes.extend([2, 0, 1, 0, 0, 0, 0, 0, 0, 0]);
        let mut ended = |code: i32| {
            bytes.truncate(HEAD);
            bytes.extend(code.to_ne_bytes());
            Message::first(&bytes).expect("whole").result().map_err(|error| error.raw_os_error())
        };
        assert_eq!(ended(0), Ok(()));
        assert_eq!(ended(-libc::EOPNOTSUPP), Err(Some(libc::EOPNOTSUPP)));
        assert_eq!(ended(i32::MIN), Err(Some(i32::MAX)));
    }

    #[test]
    fn this_machine_has_a_loopback_interface() {
        let mut route = Netlink::open(libc::NETLINK_ROUTE).expect("netlink");
        let mut number = 0;
        route.list(libc::RTM_GETLINK, &[0; 16], |_| number += 1).expect("a list");
        assert!(number > 0);
    }
}
