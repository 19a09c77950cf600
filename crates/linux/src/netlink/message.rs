//! Messages and their attributes, written and read.

use std::io;
use std::net::IpAddr;

/// A request in the making.
#[derive(Clone, Debug)]
pub(crate) struct Request {
    bytes: Vec<u8>,
}

impl Request {
    /// Begins a request of a kind and its fixed part; `flags` are besides that of a request (`NLM_F_*`).
    pub(crate) fn new(kind: u16, flags: u16, fixed: &[u8]) -> Self {
        let mut bytes = Vec::with_capacity(256);
        bytes.extend(0_u32.to_ne_bytes());
        bytes.extend(kind.to_ne_bytes());
        bytes.extend((flags | libc::NLM_F_REQUEST as u16).to_ne_bytes());
        // The sequence number comes when it is sent; the kernel knows the sender.
        bytes.extend(0_u32.to_ne_bytes());
        bytes.extend(0_u32.to_ne_bytes());
        bytes.extend(fixed);
        let mut request = Self { bytes };
        request.align();
        request
    }

    /// Adds an attribute.
    pub(crate) fn attribute(&mut self, kind: u16, value: &[u8]) -> &mut Self {
        put(&mut self.bytes, kind, value);
        self
    }

    /// Adds an attribute that is a number.
    pub(crate) fn number(&mut self, kind: u16, value: u32) -> &mut Self {
        self.attribute(kind, &value.to_ne_bytes())
    }

    /// Adds an attribute that is a long number.
    pub(crate) fn long(&mut self, kind: u16, value: u64) -> &mut Self {
        self.attribute(kind, &value.to_ne_bytes())
    }

    /// Adds an attribute that is a name, with its end.
    pub(crate) fn name(&mut self, kind: u16, value: &str) -> &mut Self {
        let mut text = value.as_bytes().to_vec();
        text.push(0);
        self.attribute(kind, &text)
    }

    /// Adds an attribute that begins with fixed bytes and holds what `inside` adds.
    pub(crate) fn nest(
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

    /// The message under its number.
    pub(super) fn finished(&self, sequence: u32, flags: u16) -> Vec<u8> {
        let mut bytes = self.bytes.clone();
        let length = bytes.len() as u32;
        bytes[..4].copy_from_slice(&length.to_ne_bytes());
        let flags = u16::from_ne_bytes([bytes[6], bytes[7]]) | flags;
        bytes[6..8].copy_from_slice(&flags.to_ne_bytes());
        bytes[8..12].copy_from_slice(&sequence.to_ne_bytes());
        bytes
    }
}

/// A message of an answer (`nlmsghdr`).
pub(super) struct Message<'a> {
    pub(super) kind: u16,
    pub(super) flags: u16,
    pub(super) sequence: u32,
    pub(super) body: &'a [u8],
    /// What follows it.
    pub(super) next: &'a [u8],
}

impl<'a> Message<'a> {
    pub(super) fn first(bytes: &'a [u8]) -> Option<Self> {
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
    pub(super) fn result(&self) -> io::Result<()> {
        match number(self.body, 0, 4).map_or(0, |code| code as i32) {
            code if code >= 0 => Ok(()),
            code => {
                let error = io::Error::from_raw_os_error(code.saturating_neg());
                Err(match self.sentence() {
                    Some(said) => io::Error::new(error.kind(), format!("{error}: {said}")),
                    None => error,
                })
            }
        }
    }

    /// The kernel's own words in a refusal, where it was asked for them: the attribute `NLMSGERR_ATTR_MSG` behind
    /// the code and what was asked, or its head alone.
    fn sentence(&self) -> Option<String> {
        let flags = libc::c_int::from(self.flags);
        if flags & libc::NLM_F_ACK_TLVS == 0 {
            return None;
        }
        let asked = number(self.body, 4, 4)? as usize;
        let carried = if flags & libc::NLM_F_CAPPED == 0 { asked } else { HEAD };
        let behind = self.body.get(carried.checked_next_multiple_of(4)?.checked_add(4)?..)?;
        let text = attribute(behind, NLMSGERR_ATTR_MSG)?;
        Some(String::from_utf8_lossy(text).trim_end_matches('\0').to_owned())
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
/// The words of a refusal (linux/netlink.h).
const NLMSGERR_ATTR_MSG: u16 = 1;
/// Types of messages.
pub(super) const ERROR: u16 = 2;
pub(super) const DONE: u16 = 3;

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
    fn attributes_are_aligned_and_nests_know_their_length() {
        let mut request = Request::new(36, 0, &[9; 4]);
        request.nest(2, &[], |r| {
            r.name(1, "tbf").number(3, 7);
        });
        let bytes = request.finished(1, 0);
        assert_eq!(bytes.len(), 16 + 4 + 4 + 8 + 8);
        assert_eq!(bytes[..4], 40_u32.to_ne_bytes(), "the whole message");
        assert_eq!(bytes[20..24], [20, 0, 2, 0], "the nest: its own head, a name, a number");
        assert_eq!(bytes[24..32], [8, 0, 1, 0, b't', b'b', b'f', 0]);
        assert_eq!(bytes[32..], [8, 0, 3, 0, 7, 0, 0, 0]);
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

    /// A refusal of `code` with its flags, and what follows the head of what was asked.
    fn refused(code: i32, flags: libc::c_int, behind: &[u8]) -> io::Error {
        let mut bytes = ((36 + behind.len()) as u32).to_ne_bytes().to_vec();
        bytes.extend(ERROR.to_ne_bytes());
        bytes.extend((flags as u16).to_ne_bytes());
        bytes.extend([0; 8]);
        bytes.extend(code.to_ne_bytes());
        bytes.extend([0; 16]);
        bytes.extend(behind);
        Message::first(&bytes).expect("whole").result().expect_err("a refusal")
    }

    #[test]
    fn a_refusal_has_the_kernels_words() {
        let words = [8, 0, 1, 0, b'n', b'o', b'!', 0];
        let asked_for = libc::NLM_F_ACK_TLVS | libc::NLM_F_CAPPED;
        let error = refused(-libc::EINVAL, asked_for, &words);
        assert!(error.to_string().ends_with(": no!"), "{error}");
        let error = refused(-libc::ENOENT, libc::NLM_F_CAPPED, &words);
        assert_eq!(error.raw_os_error(), Some(libc::ENOENT), "nobody asked for words");
        let error = refused(-libc::ENOENT, asked_for, &words[..5]);
        assert_eq!(error.raw_os_error(), Some(libc::ENOENT), "words that are cut are none");
    }
}
