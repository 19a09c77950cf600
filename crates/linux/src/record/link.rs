//! What kind of packets an interface gives, and how they are found in a ring's block.
//!
//! Ethernet and loopback give frames; TUN and its kin give bare IP packets; all others, and `any`,
//! are read without their own header and get the one of `LINKTYPE_LINUX_SLL2` instead.

use super::pcapng::Direction;

/// A kind of packets.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Link {
    /// Frames with an Ethernet header.
    Ethernet,
    /// IP packets with nothing before them.
    Ip,
    /// IP packets behind a header of ours that tells interface and direction.
    Cooked,
}

impl Link {
    /// By hardware type (`ARPHRD_*`, Linux `include/uapi/linux/if_arp.h`).
    pub(super) const fn of(hardware: u16) -> Self {
        match hardware {
            libc::ARPHRD_ETHER | libc::ARPHRD_LOOPBACK => Self::Ethernet,
            libc::ARPHRD_NONE | ARPHRD_RAWIP => Self::Ip,
            _ => Self::Cooked,
        }
    }

    /// Bytes before the IP header of what a packet filter sees; a VLAN tag is taken out before.
    pub(super) const fn header_length(self) -> u32 {
        match self {
            Self::Ethernet => 14,
            Self::Ip | Self::Cooked => 0,
        }
    }

    /// The number by which captures name it (LINKTYPE registry of the tcpdump group).
    pub(super) const fn number(self) -> u16 {
        match self {
            Self::Ethernet => 1,
            Self::Ip => 101,
            Self::Cooked => 276,
        }
    }
}

/// One packet of a block.
#[derive(Clone, Copy, Debug)]
pub(super) struct Seen<'a> {
    /// Nanoseconds since 1970.
    pub(super) time: u64,
    pub(super) bytes: &'a [u8],
    /// On the wire.
    pub(super) length: u32,
    /// Its VLAN tag, which the kernel took out: protocol and tag.
    pub(super) vlan: Option<(u16, u16)>,
    address: &'a [u8],
}

/// The packets of a block (`tpacket_block_desc` and a chain of `tpacket3_hdr`, Linux
/// `include/uapi/linux/if_packet.h`).
pub(super) fn packets(block: &[u8]) -> impl Iterator<Item = Seen<'_>> {
    let left = word(block, 12).unwrap_or(0);
    let first = word(block, 16).unwrap_or(0) as usize;
    (0..left).scan(first, |at, _| {
        let head = block.get(*at..)?;
        let seen = packet(head)?;
        *at += word(head, 0)? as usize;
        Some(seen)
    })
}

fn packet(head: &[u8]) -> Option<Seen<'_>> {
    let seconds = u64::from(word(head, 4)?);
    let nanoseconds = u64::from(word(head, 8)?);
    let kept = word(head, 12)? as usize;
    let status = word(head, 20)?;
    let from = usize::from(half(head, 24)?);
    let tag = half(head, 32)?;
    let protocol =
        if status & libc::TP_STATUS_VLAN_TPID_VALID == 0 { 0x8100 } else { half(head, 36)? };
    Some(Seen {
        time: seconds * crate::sys::NS_PER_S + nanoseconds,
        bytes: head.get(from..from + kept)?,
        length: word(head, 16)?,
        vlan: (status & libc::TP_STATUS_VLAN_VALID != 0).then_some((protocol, tag)),
        address: head.get(ADDRESS..ADDRESS + 20)?,
    })
}

impl Seen<'_> {
    /// Which way it went.
    pub(super) fn direction(&self) -> Direction {
        if self.address[10] == libc::PACKET_OUTGOING {
            Direction::Outbound
        } else {
            Direction::Inbound
        }
    }

    /// The interface it passed.
    pub(super) fn interface(&self) -> i32 {
        word(self.address, 4).unwrap_or(0).cast_signed()
    }

    /// The header of `LINKTYPE_LINUX_SLL2`: protocol, interface, hardware, direction, address.
    pub(super) fn cooked_header(&self) -> [u8; 20] {
        let mut header = [0; 20];
        let address = self.address;
        header[0..2].copy_from_slice(&address[2..4]);
        header[4..8].copy_from_slice(&self.interface().to_be_bytes());
        header[8..10].copy_from_slice(&half(address, 8).unwrap_or(0).to_be_bytes());
        // Type and length of the address, and the address.
        header[10..20].copy_from_slice(&address[10..20]);
        header
    }
}

/// Hardware type of bare IP interfaces such as modems (Linux `include/uapi/linux/if_arp.h`).
const ARPHRD_RAWIP: u16 = 519;

/// Where a packet's `sockaddr_ll` is behind its head (`TPACKET3_HDRLEN`).
const ADDRESS: usize = 48;

fn word(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_ne_bytes(bytes.get(at..at + 4)?.try_into().ok()?))
}

fn half(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_ne_bytes(bytes.get(at..at + 2)?.try_into().ok()?))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// A block of packets with these bytes, as the kernel would fill it.
    fn block(packets: &[&[u8]]) -> Vec<u8> {
        let mut block = vec![0; 48];
        block[12..16].copy_from_slice(&(packets.len() as u32).to_ne_bytes());
        block[16..20].copy_from_slice(&48_u32.to_ne_bytes());
        for bytes in packets {
            let length = bytes.len() as u32;
            let mut head = vec![0; 80];
            head[0..4].copy_from_slice(&(80 + length.next_multiple_of(16)).to_ne_bytes());
            head[4..8].copy_from_slice(&7_u32.to_ne_bytes());
            head[8..12].copy_from_slice(&9_u32.to_ne_bytes());
            head[12..16].copy_from_slice(&length.to_ne_bytes());
            head[16..20].copy_from_slice(&1500_u32.to_ne_bytes());
            head[20..24].copy_from_slice(&libc::TP_STATUS_VLAN_VALID.to_ne_bytes());
            head[24..26].copy_from_slice(&80_u16.to_ne_bytes());
            head[32..36].copy_from_slice(&5_u32.to_ne_bytes());
            // Interface 3, outgoing.
            head[52..56].copy_from_slice(&3_i32.to_ne_bytes());
            head[58] = libc::PACKET_OUTGOING;
            block.extend(head);
            block.extend(*bytes);
            block.resize(block.len().next_multiple_of(16), 0);
        }
        block
    }

    #[test]
    fn packets_follow_each_other_in_a_block() {
        let block = block(&[b"first", b"second one"]);
        let seen: Vec<_> = packets(&block).collect();
        assert_eq!(
            seen.iter().map(|seen| seen.bytes).collect::<Vec<_>>(),
            [b"first".as_slice(), b"second one",]
        );
        assert_eq!((seen[0].time, seen[0].length), (7_000_000_009, 1500));
        assert_eq!(seen[0].vlan, Some((0x8100, 5)));
        assert_eq!((seen[0].interface(), seen[0].direction()), (3, Direction::Outbound));
    }

    proptest! {
        #[test]
        fn no_block_does_harm(bytes in prop::collection::vec(any::<u8>(), 0..300), at in 0_usize..300) {
            let _ = packets(&bytes).take(1000).count();
            let mut whole = block(&[b"first", b"second one"]);
            for (place, byte) in whole.iter_mut().skip(at).zip(&bytes) {
                *place = *byte;
            }
            let _ = packets(&whole).take(1000).count();
        }
    }
}
