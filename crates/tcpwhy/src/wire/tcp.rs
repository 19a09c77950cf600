//! The TCP header and its options (RFC 9293 §3.1).
//!
//! The fixed part must be there, or there is no segment. Options are read as far as they were
//! captured and make sense; after that [`Options::incomplete`] says that what is absent is
//! unknown, not unsent. The payload's length is the IP packet's rest, not what was captured.

use core::net::SocketAddr;

use super::layer::{Excess, Hosts, Walk, be16, be32};
use super::{Flags, Options, Segment, Skip};
use crate::frame::Frame;
use tcpwhy_words::units::Seq;

/// Length of the fixed part of the header.
const FIXED: usize = 20;

/// The segment at the end of a walk.
#[inline]
pub(super) fn segment<'a>(frame: &Frame<'a>, walk: &Walk<'a>) -> Result<Segment<'a>, Skip> {
    let rest = walk.rest;
    let header: &[u8; FIXED] = rest.peek().map_err(|skip| match skip {
        // The header goes on in the next fragment.
        Skip::Malformed if walk.fragment => Skip::LaterFragment,
        skip => skip,
    })?;
    let header_len = usize::from(header[12] >> 4) * 4;
    let beyond = header_len as u32 > rest.wire;
    // An anonymiser that cut the options off may have left both lengths as they were.
    let is_odd = beyond && !walk.fragment && rest.excess != Excess::Denied;
    if header_len < FIXED || is_odd {
        return Err(Skip::Malformed);
    }
    let (from, to) = (be16(header, 0), be16(header, 2));
    let (source, destination) = match walk.hosts {
        Hosts::V4([a, b]) => (SocketAddr::from((*a, from)), SocketAddr::from((*b, to))),
        Hosts::V6([a, b]) => (SocketAddr::from((*a, from)), SocketAddr::from((*b, to))),
    };
    let captured = rest.data.len().min(header_len);
    let bare = Options {
        len: (header_len - FIXED) as u8,
        incomplete: captured < header_len,
        ..Options::default()
    };
    let flags = Flags(be16(header, 12) & 0x01ff);
    let payload_len = rest.wire.saturating_sub(header_len as u32);
    // A SYN carries data with Fast Open only (RFC 7413 section 2): what its frame lacks never was.
    let is_bounded = rest.excess == Excess::Believed && flags.has(Flags::SYN);
    let held = if is_bounded { (rest.data.len() - captured) as u32 } else { payload_len };
    let with = |options| Segment {
        time: frame.time,
        frame: frame.frame,
        network: walk.network,
        source,
        destination,
        seq: Seq(be32(header, 4)),
        ack: Seq(be32(header, 8)),
        flags,
        window: be16(header, 14),
        payload_len: held,
        payload: &rest.data[captured..],
        options,
        ip: walk.ip,
        link: walk.link,
    };
    // Ours: a segment written in one go is a tenth faster than one completed in place.
    let bytes = &rest.data[FIXED..captured];
    if bytes.is_empty() {
        return Ok(with(bare));
    }
    if let Some(timestamps) = only_timestamps(bytes) {
        return Ok(with(Options { timestamps: Some(timestamps), order: STAMPS_ORDER, ..bare }));
    }
    let mut segment = with(bare);
    segment.options.read(bytes);
    if segment.options.fast_open.is_some() {
        segment.payload_len = payload_len;
    }
    Ok(segment)
}

/// `TSval` and `TSecr` where the options are laid out as RFC 7323 appendix A advises, which
/// holds for all but a few data segments.
#[inline]
fn only_timestamps(options: &[u8]) -> Option<(u32, u32)> {
    timestamps(options.try_into().ok()?)
}

/// The kinds of such options, in order.
pub(super) const STAMPS_ORDER: [u8; 8] = [kind::NOP, kind::NOP, kind::TIMESTAMPS, 0, 0, 0, 0, 0];

/// The timestamps of options that may be so.
#[inline]
pub(super) fn timestamps(options: &[u8; 12]) -> Option<(u32, u32)> {
    let usual = options[..4] == [kind::NOP, kind::NOP, kind::TIMESTAMPS, 10];
    usual.then(|| (be32(options, 4), be32(options, 8)))
}

/// Option kinds of IANA's register; their lengths stand where they are read.
mod kind {
    pub(super) const END: u8 = 0;
    pub(super) const NOP: u8 = 1;
    pub(super) const MSS: u8 = 2;
    pub(super) const WINDOW_SCALE: u8 = 3;
    pub(super) const SACK_PERMITTED: u8 = 4;
    pub(super) const SACK: u8 = 5;
    pub(super) const TIMESTAMPS: u8 = 8;
    pub(super) const FAST_OPEN: u8 = 34;
    pub(super) const EXPERIMENT: u8 = 254;
}

impl Options {
    /// Reads the captured part of the options.
    #[inline(never)]
    fn read(&mut self, mut bytes: &[u8]) {
        let mut at = 0;
        while let [kind, after @ ..] = bytes
            && *kind != kind::END
        {
            if let Some(place) = self.order.get_mut(at) {
                *place = *kind;
                at += 1;
            }
            if *kind == kind::NOP {
                bytes = after;
                continue;
            }
            // The length counts the kind and itself.
            let body_len = after.first().and_then(|len| usize::from(*len).checked_sub(2));
            let Some(body) = body_len.and_then(|len| after.get(1..=len)) else {
                self.incomplete = true;
                break;
            };
            self.incomplete |= !self.note(*kind, body);
            bytes = &after[1 + body.len()..];
        }
    }

    /// Takes one option in; `false` when a known kind does not have its length.
    fn note(&mut self, kind: u8, body: &[u8]) -> bool {
        match (kind, body) {
            (kind::MSS, [a, b]) => self.mss = Some(u16::from_be_bytes([*a, *b])),
            (kind::WINDOW_SCALE, [shift]) => self.window_scale = Some(*shift),
            (kind::SACK_PERMITTED, []) => self.sack_permitted = true,
            (kind::TIMESTAMPS, body) => {
                let Ok(stamps) = <&[u8; 8]>::try_from(body) else { return false };
                self.timestamps = Some((be32(stamps, 0), be32(stamps, 4)));
            }
            (kind::SACK, body) => {
                let (blocks, []) = body.as_chunks::<8>() else { return false };
                for (block, bytes) in self.sack.iter_mut().zip(blocks) {
                    *block = (Seq(be32(bytes, 0)), Seq(be32(bytes, 4)));
                }
                self.sack_count = blocks.len().min(self.sack.len()) as u8;
            }
            // RFC 7413 §4.1.1, and §4.1.1 of its drafts with the magic of RFC 6994.
            (kind::FAST_OPEN, cookie) | (kind::EXPERIMENT, [0xf9, 0x89, cookie @ ..]) => {
                self.fast_open = Some(cookie.len() as u8);
            }
            (kind::MSS | kind::WINDOW_SCALE | kind::SACK_PERMITTED, _) => return false,
            _ => {}
        }
        true
    }
}
