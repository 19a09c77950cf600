//! Why a capture could not be read (any further): what happened, where, likely why, what to try.
//!
//! Each sentence is a fragment that reads well after "cannot read download.pcap: ". A capture
//! that merely ends too early is no error but a remark ([`super::QualityKind::CutShort`]).

/// Why reading a capture stopped.
#[derive(Clone, Debug, thiserror::Error, Eq, PartialEq)]
pub enum CaptureError {
    /// Nothing at all to read.
    #[error("the capture is empty")]
    Empty,
    /// The stream ends before the header of its format does.
    #[error(
        "it ends inside the {format} header, at least {missing} bytes short: it was probably \
         copied while being written, or incompletely; copy or capture it again"
    )]
    CutHeader {
        /// The format it begins like.
        format: &'static str,
        /// Bytes missing at least.
        missing: u64,
    },
    /// Compressed in a way that this reader gets to see only if nobody unpacked it.
    #[error("it is compressed with {with}: unpack it first, for instance `{unpack} | tcpwhy -`")]
    Compressed {
        /// The compression.
        with: &'static str,
        /// A shell command that unpacks.
        unpack: &'static str,
    },
    /// A known kind of file that is no capture in a format read here.
    #[error("it is {what}: {advice}")]
    Other {
        /// What it is, with an article.
        what: &'static str,
        /// What to try.
        advice: &'static str,
    },
    /// Neither a known binary format nor text.
    #[error(
        "it begins with {first}, which is neither pcap, pcapng nor a listing as tcpdump prints \
         it: if Wireshark opens it, convert it with `editcap -F pcap IN OUT`"
    )]
    Unknown {
        /// The first bytes in hexadecimal digits.
        first: String,
    },
    /// Text, but no line of it is a packet that `tcpdump` printed.
    #[error(
        "none of its {lines} lines reads as a packet (the first is \"{first}\"); name the capture \
         itself (tcpdump -w), or text with whole lines of packets as tcpdump (without -q), tshark or \
         Wireshark's packet list show them, or with what Linux's ss, nstat, netstat -s, sysctl, ip or \
         ethtool print"
    )]
    NotAListing {
        /// How many lines there are.
        lines: u64,
        /// The start of the first line with text in it, escaped.
        first: String,
    },
    /// Packets that `tcpdump` printed, none of them with a time.
    #[error(
        "this is a packet listing without times (tcpdump -t), and where time went cannot be told \
         from its {packets} packets: print it again without -t, or try the capture file itself \
         (tcpdump -w)"
    )]
    NoTimes {
        /// How many there are.
        packets: u64,
    },
    /// A version of the format that nobody is known to write.
    #[error(
        "it claims {format} version {major}.{minor}, but only {known} is known: its header is \
         probably damaged; copy or capture it again"
    )]
    Version {
        /// The format.
        format: &'static str,
        /// Major version found.
        major: u16,
        /// Minor version found.
        minor: u16,
        /// Version expected.
        known: &'static str,
    },
    /// A pcap record claims more bytes than one can have.
    #[error(
        "packet {packet}, at byte {offset}, claims {claimed} captured bytes where at most {limit} \
         are possible: {}", damaged(packet - 1)
    )]
    RecordTooLong {
        /// Number of the packet, from 1.
        packet: u64,
        /// Where its record begins.
        offset: u64,
        /// Captured length in the record.
        claimed: u32,
        /// The longest that is believed.
        limit: u32,
    },
    /// A pcap record of zeros only, time included.
    #[error(
        "there are only zeros at byte {offset}, where packet {packet} should begin: the disk was \
         probably full or the machine crashed while capturing; capture again{}", read(packet - 1)
    )]
    Zeros {
        /// Number of the packet, from 1.
        packet: u64,
        /// Where its record begins.
        offset: u64,
    },
    /// A pcapng block that cannot be.
    #[error("the block at byte {offset} {problem}: {}", damaged(*packets))]
    Block {
        /// Packets before it.
        packets: u64,
        /// Where it begins.
        offset: u64,
        /// What is wrong with it.
        problem: BlockProblem,
    },
}

impl CaptureError {
    /// Where the damage is, where it has a place: the packet that should begin there, from 1, and the bytes before it.
    pub const fn place(&self) -> Option<(u64, u64)> {
        match *self {
            Self::RecordTooLong { packet, offset, .. } | Self::Zeros { packet, offset } => {
                Some((packet, offset))
            }
            Self::Block { packets, offset, .. } => Some((packets + 1, offset)),
            _ => None,
        }
    }
}

/// What is wrong with a pcapng block. Each is a fragment that follows "the block at byte 123 ".
#[derive(Clone, Copy, Debug, thiserror::Error, Eq, PartialEq)]
pub enum BlockProblem {
    /// Its length is too small for its kind or no multiple of 4.
    #[error("claims a length of {claimed} bytes, not a multiple of 4 from {least} on")]
    Length {
        /// Length in the block.
        claimed: u32,
        /// Least length of its kind.
        least: u32,
    },
    /// It is longer than anybody writes and than this reader is ready to hold.
    #[error("claims a length of {claimed} bytes, more than {limit}")]
    TooLong {
        /// Length in the block.
        claimed: u32,
        /// The longest that is believed.
        limit: u32,
    },
    /// Its length at the end is not the one at its beginning.
    #[error("has a length of {first} bytes at its beginning, but {last} at its end")]
    Lengths {
        /// Length at the beginning.
        first: u32,
        /// Length at the end.
        last: u32,
    },
    /// A section header whose byte order cannot be told.
    #[error("starts a section, but has {found:#010x} for the byte-order magic")]
    ByteOrder {
        /// What is there instead of 0x1a2b3c4d.
        found: u32,
    },
    /// It names an interface that its section has not described.
    #[error("names interface {interface}, but only {known} are described before it")]
    NoInterface {
        /// Number in the block.
        interface: u32,
        /// Interfaces of this section.
        known: u32,
    },
    /// Its packet does not fit into it.
    #[error("claims {claimed} captured bytes, but has room for {room}")]
    Data {
        /// Captured length in the block.
        claimed: u32,
        /// Bytes of the block that could hold it.
        room: u32,
    },
    /// One more interface than this reader is ready to hold.
    #[error("describes interface number {limit} of its section, more than any machine has")]
    Interfaces {
        /// The most that are believed.
        limit: u32,
    },
}

/// The likely cause of nonsense after `packets` good packets, and what to try.
fn damaged(packets: u64) -> String {
    format!(
        "the file is probably damaged, or was transferred incompletely or as text; copy it again \
         in binary mode or capture again{}",
        read(packets)
    )
}

/// What was read nevertheless.
fn read(packets: u64) -> String {
    match packets {
        0 => String::new(),
        1 => " (the packet before it was read)".to_owned(),
        _ => format!(" (the {packets} packets before it were read)"),
    }
}
