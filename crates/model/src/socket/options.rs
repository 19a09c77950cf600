//! Options of segments, and the segment size that they leave.
//!
//! Follows `tcp_established_options`, `tcp_current_mss`, `tcp_bound_to_half_wnd`.

use super::Socket;
use crate::segment::{Options, SackBlocks, Stamps};

impl Socket {
    /// Options of a segment after the handshake, stamped with `stamp_ns`.
    pub(super) fn data_options(&mut self, stamp_ns: u64) -> Options {
        let mut options = Options::default();
        if self.stamps {
            options.stamps =
                Some(Stamps { value: self.stamp_at(stamp_ns), echo: self.rcv.ts_recent });
        }
        options.sack = self.sack_blocks();
        self.rcv.dsack = None;
        options
    }

    /// The timestamp of an instant: milliseconds (`tcp_skb_timestamp`).
    pub(super) const fn stamp_at(&self, ns: u64) -> u32 {
        ((ns / 1_000_000) as u32).wrapping_add(self.config.stamp_offset)
    }

    pub(super) fn sack_blocks(&self) -> SackBlocks {
        let most = if self.stamps { SackBlocks::MOST - 1 } else { SackBlocks::MOST };
        let mut blocks = SackBlocks::default();
        for (from, to) in
            self.rcv.dsack.into_iter().chain(self.rcv.sacks.iter().copied()).take(most)
        {
            blocks.push(from, to);
        }
        blocks
    }

    /// Payload of a segment sent now.
    pub(super) fn current_mss(&self) -> u32 {
        let blocks = self.sack_blocks();
        let sack = if blocks.is_empty() { 0 } else { 4 + 8 * blocks.as_slice().len() as u32 };
        self.snd.mss_cache.saturating_sub(sack).max(1)
    }

    /// Bytes that timestamps take in every segment.
    pub(super) const fn stamp_bytes(&self) -> u32 {
        if self.stamps { 12 } else { 0 }
    }

    /// At most half of the peer's largest window, so that there are always two segments.
    pub(super) fn bound_to_half_window(&self, size: u32) -> u32 {
        let window = self.snd.max_window;
        let cutoff = if window > DEFAULT_MSS { window >> 1 } else { window };
        if cutoff == 0 || size <= cutoff {
            return size;
        }
        cutoff.max(LEAST_SEGMENT - TCP_HEADER - self.stamp_bytes())
    }
}

/// Bytes of a TCP header without options.
pub(super) const TCP_HEADER: u32 = 20;

/// `TCP_MSS_DEFAULT` of include/net/tcp.h (RFC 1122 section 4.2.2.6).
pub(super) const DEFAULT_MSS: u32 = 536;

/// Smallest IP packet that every host takes (`tcp_bound_to_half_wnd`; RFC 791 section 3.2).
const LEAST_SEGMENT: u32 = 68;
