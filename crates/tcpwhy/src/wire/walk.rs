//! From the first byte of a frame to its innermost TCP header.
//!
//! A frame is a row of headers, each naming the next. The walk takes them one by one: a
//! [`Layer`] says which header comes next, its function takes the header off `Rest`, notes
//! what it tells in [`Walk`] and answers with the layer after it.
//!
//! ```text
//! link::first -> Ethernet -> Vlan -> Ipv4 -> Udp (VXLAN) -> Ethernet -> Ipv6 -> Tcp
//!                 link.rs    link.rs  ip.rs   tunnel.rs      link.rs     ip.rs    tcp.rs
//! ```
//!
//! The inner connection wins: addresses and IP fields are overwritten by each further IP
//! header. The steps are counted, so no frame can nest without end. There is no recursion and
//! no allocation.
//!
//! Left out: what hides the TCP header (ESP, `MACsec`, compressed PPP), the TCP header quoted in
//! an ICMP error (it is not a segment; `icmp.rs` reads it), and reassembly of IP fragments.

use super::layer::{Layer, Walk, be16};
use super::{Skip, ip, link, tunnel};

/// Headers that are taken off before a frame counts as malformed.
///
/// Ours: the deepest stack built in earnest that we know (`QinQ`, MPLS, pseudo-wire, VLAN, IPv6
/// with three extension headers, VXLAN, Ethernet, VLAN, IP, TCP) has 14.
const MAX_HEADERS: u32 = 32;

impl Walk<'_> {
    /// Walks from the start of a frame of `link_type` to the TCP header; `rest` then begins with
    /// it.
    ///
    /// Ethernet, a VLAN tag and IP are walked without a loop; all else goes on in
    /// [`Walk::onward`]. Nothing is moved on the way: copying what was just written in small
    /// pieces took a tenth of the whole run.
    #[inline]
    pub(super) fn reach_tcp(&mut self, link_type: u32) -> Result<(), Skip> {
        let mut layer = link::first(link_type);
        if layer == Layer::Ethernet {
            layer = link::ethernet(self)?;
        }
        if layer == Layer::Vlan {
            layer = link::vlan(self)?;
        }
        match layer {
            Layer::Ipv4 => layer = ip::v4(self)?,
            Layer::Ipv6 => layer = ip::v6(self)?,
            _ => {}
        }
        if layer == Layer::Tcp { Ok(()) } else { self.onward(layer) }
    }

    /// Walks on from any layer.
    #[inline(never)]
    fn onward(&mut self, mut layer: Layer) -> Result<(), Skip> {
        for _ in 0..MAX_HEADERS {
            if layer == Layer::Tcp {
                return Ok(());
            }
            layer = self.take_off(layer)?;
        }
        Err(Skip::Malformed)
    }

    /// Walks from the start of a frame to a UDP header with the port of name servers; `rest` then
    /// begins with it.
    pub(super) fn reach_names(&mut self, link_type: u32) -> Result<(), Skip> {
        /// RFC 1035 section 4.2.1.
        const DNS: u16 = 53;
        let mut layer = link::first(link_type);
        for _ in 0..MAX_HEADERS {
            match layer {
                Layer::Tcp => return Err(Skip::NotTcp),
                Layer::Udp => {
                    let header: &[u8; 8] = self.rest.peek()?;
                    if be16(header, 0) == DNS || be16(header, 2) == DNS {
                        return Ok(());
                    }
                }
                _ => {}
            }
            layer = self.take_off(layer)?;
        }
        Err(Skip::Malformed)
    }

    /// Walks from the start of a frame to an ICMP message, which `rest` then begins with. Returns its
    /// kind.
    pub(super) fn reach_icmp(&mut self, link_type: u32) -> Result<Layer, Skip> {
        let mut layer = link::first(link_type);
        for _ in 0..MAX_HEADERS {
            match layer {
                Layer::Tcp => return Err(Skip::NotTcp),
                Layer::Icmp | Layer::Icmp6 => return Ok(layer),
                _ => layer = self.take_off(layer)?,
            }
        }
        Err(Skip::Malformed)
    }

    /// Walks from the start of a quoted packet to its TCP header, if that follows its IP header and
    /// extensions at once.
    pub(super) fn reach_quoted_tcp(&mut self) -> Result<(), Skip> {
        let mut layer = Layer::Ip;
        for _ in 0..MAX_HEADERS {
            layer = match layer {
                Layer::Tcp => return Ok(()),
                Layer::Ip => ip::any(self)?,
                Layer::Ipv4 => match ip::v4(self)? {
                    // A packet inside the quoted one was not sent by whom the error goes to.
                    Layer::Ipv4 | Layer::Ipv6 => return Err(Skip::NotTcp),
                    next => next,
                },
                Layer::Ipv6 => match ip::v6(self)? {
                    Layer::Ipv4 | Layer::Ipv6 => return Err(Skip::NotTcp),
                    next => next,
                },
                Layer::Extension(kind) => ip::extension(self, kind)?,
                _ => return Err(Skip::NotTcp),
            };
        }
        Err(Skip::Malformed)
    }

    /// Takes one header off; TCP's stays.
    #[inline]
    fn take_off(&mut self, layer: Layer) -> Result<Layer, Skip> {
        match layer {
            Layer::Link(link_type) => link::pseudo_header(self, link_type),
            Layer::Ethernet => link::ethernet(self),
            Layer::Vlan => link::vlan(self),
            Layer::Llc => link::llc(self),
            Layer::Pppoe => link::pppoe(self),
            Layer::Ppp => link::ppp(self),
            Layer::Mpls => tunnel::mpls(self),
            Layer::Ip => ip::any(self),
            Layer::Ipv4 => ip::v4(self),
            Layer::Ipv6 => ip::v6(self),
            Layer::Extension(kind) => ip::extension(self, kind),
            Layer::Gre => tunnel::gre(self),
            Layer::Udp => tunnel::udp(self),
            Layer::Tcp => Ok(Layer::Tcp),
            Layer::Icmp | Layer::Icmp6 => Err(Skip::NotTcp),
        }
    }
}
