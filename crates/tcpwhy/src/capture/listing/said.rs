//! What a line of a listing says, whoever printed it.

use super::icmp::Said;
use super::names::Endpoint;
use super::segment::Printed;
use super::stamp::Stamp;
use crate::frame::Direction;
use crate::wire::IpInfo;

/// A line of a listing.
#[derive(Clone, Debug)]
pub(super) enum Line<'a> {
    /// A packet, or a part of one.
    Packet(Packet<'a>),
    /// `tcpdump` says what it listens on or reads from.
    Start,
    /// One line of the figures at the end.
    Footer(Footer),
    /// Lines were left out here.
    Gap,
    /// Bytes of a packet in hexadecimal.
    Dump,
    /// Begins like a packet, but cannot be understood.
    Unreadable,
    /// Anything else.
    Prose,
}

/// A figure `tcpdump` prints at the end.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Footer {
    Captured(u64),
    Received,
    KernelDropped(u64),
    InterfaceDropped(u64),
}

/// A line that describes a packet.
#[derive(Clone, Debug)]
pub(super) struct Packet<'a> {
    pub(super) number: Option<u64>,
    pub(super) stamp: Option<Stamp>,
    pub(super) link: Link<'a>,
    pub(super) ip: IpInfo,
    pub(super) body: Body<'a>,
    /// It is behind a tab, as packets quoted by ICMP errors are.
    pub(super) nested: bool,
}

/// What a line tells of the link layer.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Link<'a> {
    pub(super) interface: Option<&'a str>,
    pub(super) direction: Option<Direction>,
    /// VLAN tags, the outermost highest.
    pub(super) network: u32,
}

/// What a packet line says behind its headers.
#[derive(Clone, Debug)]
pub(super) enum Body<'a> {
    /// A TCP segment.
    Tcp { from: Endpoint<'a>, to: Endpoint<'a>, v6: bool, printed: Box<Printed> },
    /// A TCP segment without numbers.
    TooLittle,
    /// The ends come on the next line.
    Header,
    /// An ICMP error that may be about TCP.
    Icmp(Box<Said>),
    /// Not TCP.
    Other,
}
