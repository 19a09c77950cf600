//! A script as data.

use super::error::Place;

/// A script: what is set up, what happens, what is cleaned up.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Script {
    /// `--name` or `--name=value`, in order.
    pub options: Vec<(String, Option<String>)>,
    /// The shell command before the first event.
    pub setup: Option<Command>,
    /// What happens, in order.
    pub events: Vec<Event>,
}

/// A shell command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Command {
    /// Where it begins.
    pub place: Place,
    /// Its lines.
    pub text: String,
}

/// Something that happens at a time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Event {
    /// Where its time stands.
    pub place: Place,
    /// When.
    pub when: When,
    /// What.
    pub action: Action,
}

/// The time of an event, in nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum When {
    /// Since the script's start.
    At(u64),
    /// Since the event before.
    After(u64),
    /// Between two times since the script's start.
    Between(u64, u64),
    /// Between two times since the event before.
    AfterBetween(u64, u64),
    /// `*`: whenever it comes.
    Any,
}

/// What happens.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Action {
    /// `<`: a packet comes in.
    Inject(Packet),
    /// `>`: a packet must go out.
    Expect(Packet),
    /// A system call.
    Call(Call),
    /// A shell command.
    Shell(Command),
    /// Python that judges what `TCP_INFO` says.
    Code(Command),
}

/// A packet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Packet {
    /// What is said of the IP header's congestion bits.
    pub ecn: Option<Ecn>,
    /// Ports, where they are not the connection's own.
    pub ports: Option<(u16, u16)>,
    /// What it carries.
    pub body: Body,
}

/// What a packet carries.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Body {
    /// TCP.
    Tcp(Tcp),
    /// An ICMP error about a packet of ours.
    Icmp(Icmp),
}

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

/// An ICMP error about a packet of ours.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Icmp {
    /// `unreachable`
    pub kind: String,
    /// `frag_needed`
    pub code: Option<String>,
    /// `mtu 1200`
    pub mtu: Option<u32>,
    /// First sequence number and length of the segment it is about.
    pub about: Option<(u32, u32)>,
}

/// A system call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Call {
    /// When it must end, if it blocks; of the same kind as the event's time.
    pub until_ns: Option<u64>,
    /// Its name.
    pub name: String,
    /// Its arguments.
    pub arguments: Vec<Expression>,
    /// What it must return.
    pub result: Expression,
    /// The error that it must set.
    pub errno: Option<String>,
}

/// An argument or a result of a system call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Expression {
    /// `...`: anything.
    Ellipsis,
    /// A number.
    Int(i64),
    /// A name.
    Word(String),
    /// A text.
    Text(String),
    /// `A|B`
    Or(Vec<Expression>),
    /// `[..]`
    List(Vec<Expression>),
    /// `{..}`: fields (`Field`) or values in order.
    Struct(Vec<Expression>),
    /// `name=value`
    Field(String, Box<Expression>),
    /// `htons(80)`
    Apply(String, Vec<Expression>),
}
