//! Services that are found by name (Linux `include/uapi/linux/genetlink.h`).

use std::ffi::CStr;
use std::io;

use super::message::{Request, attribute, number, put};
use super::{Answer, Netlink};

/// A line to one of them.
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

    /// Carries a command without attributes out.
    pub(crate) fn carry_out(&mut self, command: u8) -> io::Result<()> {
        self.netlink.carry_out(&Request::new(self.family, 0, &head(command)))
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

/// Length of a `genlmsghdr`.
const GENERIC_HEAD: usize = 4;
/// The service that knows the others, and what it is asked.
const GENL_ID_CTRL: u16 = 0x10;
const CTRL_CMD_GETFAMILY: u8 = 3;
const CTRL_ATTR_FAMILY_ID: u16 = 1;
const CTRL_ATTR_FAMILY_NAME: u16 = 2;
