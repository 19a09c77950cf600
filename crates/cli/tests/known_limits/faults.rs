//! What goes wrong with captures: packets cut, left out, begun midway, of one way only.
//!
//! Works on the files that the model writes: blocks of pcapng (draft-ietf-opsawg-pcapng section 3.1),
//! little-endian, packets of raw IP.

use tcpwhy_model::path::Chance;

/// A capture's fault.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub(crate) enum Fault {
    /// None.
    Whole,
    /// Kept are 20 bytes of TCP's header: no options.
    Cut,
    /// One packet of a hundred is missing.
    Dropped,
    /// It begins behind the handshake.
    Midway,
    /// Only what the sender of the data sent.
    OneWay,
}

impl Fault {
    pub(crate) const ALL: [Self; 5] =
        [Self::Whole, Self::Cut, Self::Dropped, Self::Midway, Self::OneWay];

    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Whole => "whole",
            Self::Cut => "cut",
            Self::Dropped => "dropped",
            Self::Midway => "midway",
            Self::OneWay => "one way",
        }
    }

    /// The capture with this fault; `server_port` sends the data.
    pub(crate) fn of(self, file: &[u8], server_port: u16, seed: u64) -> Vec<u8> {
        let mut chance = Chance::new(seed);
        let (mut kept, mut packets) = (Vec::new(), 0);
        let mut rest = file;
        while let Some(length) = rest.get(4..8) {
            let length = u32::from_le_bytes([length[0], length[1], length[2], length[3]]) as usize;
            let (block, behind) = rest.split_at(length);
            rest = behind;
            if block[..4] != ENHANCED_PACKET {
                kept.extend(block);
                continue;
            }
            packets += 1;
            let is_kept = match self {
                Self::Whole | Self::Cut => true,
                Self::Dropped => packets <= 3 || !chance.hits(10_000),
                Self::Midway => packets > 3,
                Self::OneWay => source_port(block) == server_port,
            };
            match self {
                _ if !is_kept => {}
                Self::Cut => kept.extend(cut(block)),
                _ => kept.extend(block),
            }
        }
        kept
    }
}

const ENHANCED_PACKET: [u8; 4] = 6_u32.to_le_bytes();
/// Of a block before its packet, and behind it.
const HEAD: usize = 28;

fn ip_header(block: &[u8]) -> usize {
    if block[HEAD] >> 4 == 4 { 20 } else { 40 }
}

fn source_port(block: &[u8]) -> u16 {
    let tcp = HEAD + ip_header(block);
    u16::from_be_bytes([block[tcp], block[tcp + 1]])
}

fn cut(block: &[u8]) -> Vec<u8> {
    let kept = ip_header(block) + 20;
    let length = (HEAD + kept + 4) as u32;
    let mut cut = block[..HEAD + kept].to_vec();
    cut[4..8].copy_from_slice(&length.to_le_bytes());
    cut[20..24].copy_from_slice(&(kept as u32).to_le_bytes());
    cut.extend(length.to_le_bytes());
    cut
}
