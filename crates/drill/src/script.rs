//! A script as data.

use tcpwhy_model::repro::{Ecn, Tcp};

use crate::error::Place;

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
    /// Where its time is.
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
