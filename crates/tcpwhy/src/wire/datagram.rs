//! UDP datagrams that may be DNS; tunnels are opened on the way, as for TCP.

use core::net::SocketAddr;

use super::layer::{Hosts, Walk, be16};
use crate::frame::Frame;
use tcpwhy_words::units::Time;

/// A captured UDP datagram.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Datagram<'a> {
    /// Capture time.
    pub(crate) time: Time,
    /// Number of the packet.
    pub(crate) frame: u64,
    /// Who sent it.
    pub(crate) source: SocketAddr,
    /// Who is to receive it.
    pub(crate) destination: SocketAddr,
    /// What was captured of its payload.
    pub(crate) payload: &'a [u8],
}

/// The datagram from or to a name server in a frame.
pub(crate) fn name_datagram<'a>(frame: &Frame<'a>) -> Option<Datagram<'a>> {
    let mut walk = Walk::at_start_of(frame);
    walk.reach_names(frame.link_type).ok()?;
    let header: &[u8; 8] = walk.rest.take().ok()?;
    let (from, to) = (be16(header, 0), be16(header, 2));
    let (source, destination) = match walk.hosts {
        Hosts::V4([a, b]) => (SocketAddr::from((*a, from)), SocketAddr::from((*b, to))),
        Hosts::V6([a, b]) => (SocketAddr::from((*a, from)), SocketAddr::from((*b, to))),
    };
    let (time, frame) = (frame.time, frame.frame);
    Some(Datagram { time, frame, source, destination, payload: walk.rest.data })
}
