//! Packets as scripts of packetdrill write them.

use std::fmt::{self, Write as _};

/// The congestion bits of an IP header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ecn {
    /// `noecn`
    Not,
    /// `ect0`
    Ect0,
    /// `ect1`
    Ect1,
    /// `ce`
    Ce,
    /// `ect01`: either.
    Ect01,
}

/// A TCP segment. Sequence numbers are relative, as scripts write them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tcp {
    /// The flags, see [`Flags`].
    pub flags: Flags,
    /// First sequence number.
    pub seq: u32,
    /// Bytes of payload.
    pub length: u32,
    /// The acknowledgement number, 0 if none is written.
    pub ack: u32,
    /// The window's field, unscaled; `None`: anything.
    pub window: Option<u16>,
    /// The urgent pointer.
    pub urgent: u16,
    /// The options; `None`: anything.
    pub options: Option<Vec<TcpOption>>,
}

/// The flags of a segment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[expect(clippy::struct_excessive_bools, reason = "they are the header's bits")]
pub struct Flags {
    /// F
    pub fin: bool,
    /// S
    pub syn: bool,
    /// R
    pub rst: bool,
    /// P
    pub psh: bool,
    /// .
    pub ack: bool,
    /// U
    pub urg: bool,
    /// E
    pub ece: bool,
    /// W
    pub cwr: bool,
    /// A
    pub ae: bool,
    /// Whether E, W and A were written as the count of accurate ECN: `.5`.
    pub as_count: bool,
}

/// A TCP option.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TcpOption {
    /// `nop`
    Nop,
    /// `eol`
    Eol,
    /// `mss 1460`
    Mss(u16),
    /// `wscale 7`
    WindowScale(u8),
    /// `sackOK`
    SackPermitted,
    /// `sack 1:2 3:4`
    Sack(Vec<(u32, u32)>),
    /// `TS val 1 ecr 2`
    Timestamps(u32, u32),
    /// `FO` or `FO 0123abcd`
    FastOpen(Vec<u8>),
    /// `FOEXP`: the same in an experimental option.
    FastOpenExperimental(Vec<u8>),
    /// `ECN e1b 1 ceb 0 e0b 1`: the byte counters of accurate ECN, as named, in order.
    AccurateEcn(Vec<(String, u32)>),
    /// `md5 ..`
    Md5(Vec<u8>),
}

impl TcpOption {
    /// Its length in a header.
    pub fn length(&self) -> usize {
        match self {
            TcpOption::Nop | TcpOption::Eol => 1,
            TcpOption::Mss(_) => 4,
            TcpOption::WindowScale(_) => 3,
            TcpOption::SackPermitted => 2,
            TcpOption::Sack(blocks) => 2 + 8 * blocks.len(),
            TcpOption::Timestamps(..) => 10,
            TcpOption::FastOpen(cookie) => 2 + cookie.len(),
            TcpOption::FastOpenExperimental(cookie) => 4 + cookie.len(),
            TcpOption::AccurateEcn(counters) => 2 + 3 * counters.len(),
            TcpOption::Md5(digest) => 2 + digest.len(),
        }
    }
}

impl Flags {
    /// Sets the flag of this letter, if there is one.
    pub fn set(&mut self, letter: char) -> bool {
        match letter {
            'F' => self.fin = true,
            'S' => self.syn = true,
            'R' => self.rst = true,
            'P' => self.psh = true,
            'U' => self.urg = true,
            'E' => self.ece = true,
            'W' => self.cwr = true,
            'A' => self.ae = true,
            '0'..='7' => self.set_count(letter as u8 - b'0'),
            _ => return false,
        }
        true
    }

    /// Sets the count of accurate ECN.
    pub fn set_count(&mut self, count: u8) {
        self.as_count = true;
        self.ae = count & 4 != 0;
        self.cwr = count & 2 != 0;
        self.ece = count & 1 != 0;
    }

    /// The count of accurate ECN, which shares its bits with E, W and A.
    pub fn count(&self) -> u8 {
        u8::from(self.ae) << 2 | u8::from(self.cwr) << 1 | u8::from(self.ece)
    }
}

impl fmt::Display for Tcp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let end = self.seq.wrapping_add(self.length);
        write!(f, "{} {}:{end}({})", self.flags, self.seq, self.length)?;
        if self.flags.ack {
            write!(f, " ack {}", self.ack)?;
        }
        if let Some(window) = self.window {
            write!(f, " win {window}")?;
        }
        if self.urgent != 0 {
            write!(f, " urg {}", self.urgent)?;
        }
        match &self.options {
            None => write!(f, " <...>"),
            Some(options) if options.is_empty() => Ok(()),
            Some(options) => {
                let options: Vec<String> = options.iter().map(ToString::to_string).collect();
                write!(f, " <{}>", options.join(","))
            }
        }
    }
}

impl fmt::Display for Flags {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let set = [
            ('F', self.fin),
            ('S', self.syn),
            ('R', self.rst),
            ('E', self.ece && !self.as_count),
            ('W', self.cwr && !self.as_count),
            ('A', self.ae && !self.as_count),
            ('P', self.psh),
            ('U', self.urg),
            ('.', self.ack),
        ];
        let mut any = false;
        for (letter, _) in set.into_iter().filter(|(_, is_set)| *is_set) {
            f.write_char(letter)?;
            any = true;
        }
        match (self.as_count, any) {
            (true, _) => write!(f, "{}", self.count()),
            (false, true) => Ok(()),
            (false, false) => f.write_char('-'),
        }
    }
}

impl fmt::Display for Ecn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Ecn::Not => "noecn",
            Ecn::Ect0 => "ect0",
            Ecn::Ect1 => "ect1",
            Ecn::Ce => "ce",
            Ecn::Ect01 => "ect01",
        })
    }
}

impl fmt::Display for TcpOption {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            TcpOption::Nop => f.write_str("nop"),
            TcpOption::Eol => f.write_str("eol"),
            TcpOption::Mss(size) => write!(f, "mss {size}"),
            TcpOption::WindowScale(shift) => write!(f, "wscale {shift}"),
            TcpOption::SackPermitted => f.write_str("sackOK"),
            TcpOption::Sack(blocks) => {
                f.write_str("sack")?;
                blocks.iter().try_for_each(|(left, right)| write!(f, " {left}:{right}"))
            }
            TcpOption::Timestamps(value, echo) => write!(f, "TS val {value} ecr {echo}"),
            TcpOption::FastOpen(cookie) => bytes(f, "FO", cookie),
            TcpOption::FastOpenExperimental(cookie) => bytes(f, "FOEXP", cookie),
            TcpOption::Md5(digest) => bytes(f, "md5", digest),
            TcpOption::AccurateEcn(counters) => {
                f.write_str("ECN")?;
                counters.iter().try_for_each(|(name, count)| write!(f, " {name} {count}"))
            }
        }
    }
}

fn bytes(f: &mut fmt::Formatter<'_>, name: &str, bytes: &[u8]) -> fmt::Result {
    f.write_str(name)?;
    if !bytes.is_empty() {
        f.write_char(' ')?;
    }
    bytes.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
}
