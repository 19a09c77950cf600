//! What is known of one side by its packets, and when the handshake's passed.

use super::event::{Event, TS};
use crate::clocks::TapTime;
use crate::offsets::Offset;
use crate::wire::{Checksum, Direction, Options, Segment};
use tcpwhy_words::units::Seq;

/// What one side said in its SYN, and what its packets look like.
#[derive(Clone, Debug, Default)]
pub(crate) struct SideInfo {
    /// The options of its SYN or SYN-ACK.
    pub(crate) syn: Option<Options>,
    /// The window of its SYN or SYN-ACK.
    pub(crate) syn_window: u16,
    /// How often it sent its SYN or SYN-ACK, and the payload in the longest.
    pub(crate) syns: u32,
    pub(crate) syn_payload: u32,
    /// How much of the payload of the other's SYN its SYN-ACK acknowledged.
    pub(crate) syn_acked: Option<u32>,
    /// Its SYN or SYN-ACK had ECE (RFC 3168 section 6.1.1: it offers, or agrees to, ECN).
    pub(crate) syn_ece: bool,
    /// The hop limit its packets arrived with.
    pub(crate) ttl: Option<u8>,
    /// Its hop limit varied: more than one device answers in its name.
    pub(crate) ttl_varies: bool,
    /// Packets marked as sent by the capturing host, and as received.
    pub(crate) outgoing: u32,
    pub(crate) incoming: u32,
    /// Packets with a good checksum, with one left to the network card, and with a wrong one.
    pub(crate) good_sums: u32,
    pub(crate) open_sums: u32,
    bad_sums: u32,
    /// Its segments carry timestamps.
    pub(crate) timestamps: bool,
    /// Packets of it that were met twice, and those of them that carry data.
    pub(crate) copies: u64,
    pub(crate) data_copies: u64,
    /// Offset after its last byte, once its FIN was seen.
    pub(crate) fin_at: Option<Offset>,
    /// When that FIN passed the tap.
    pub(crate) fin_tap: Option<TapTime>,
    /// How often it was sent without another packet of the connection between, and how many packets there were up to the last.
    pub(super) fins: (u64, u64),
    /// How far it has sent by the numbers of bare ACKs that do not just go on.
    pub(crate) bare_to: Offset,
    /// When it last sent a bare ACK that shows its number.
    pub(crate) bare_tap: Option<TapTime>,
    /// Data bytes seen, with repeats.
    pub(crate) data_frames: u64,
    /// Longest payload in one frame.
    pub(crate) longest_frame: u32,
    /// Longest payload without PSH, and how many frames had just that: a stream cut by the
    /// segment size, not by the application.
    pub(crate) longest_plain: u32,
    pub(crate) plain_count: u32,
    /// The newest number it sent or that was acknowledged, and its offset.
    pub(super) reference: Option<(Seq, Offset)>,
    /// The number of its SYN.
    pub(crate) isn: Option<Seq>,
}

impl SideInfo {
    /// Takes down who met this many frames.
    #[inline]
    pub(super) fn note_direction(&mut self, direction: Option<Direction>, frames: u32) {
        match direction {
            Some(Direction::Outgoing) => self.outgoing += frames,
            Some(Direction::Incoming) => self.incoming += frames,
            None => {}
        }
    }

    /// Takes down how the stream is cut by this many frames of `len` bytes. `plain` of them have no PSH.
    #[inline]
    pub(super) fn note_data(&mut self, len: u32, frames: u32, plain: u32) {
        if len == 0 {
            return;
        }
        self.data_frames += u64::from(frames);
        self.longest_frame = self.longest_frame.max(len);
        if plain > 0 && len >= self.longest_plain {
            let before = if len == self.longest_plain { self.plain_count } else { 0 };
            (self.longest_plain, self.plain_count) = (len, before + plain);
        }
    }

    /// Whether `segment` is damaged. Where wrong checksums are not rare they are no damage: some
    /// stack leaves something else in the field for its network card.
    pub(super) fn is_damaged(&mut self, segment: &Segment<'_>) -> bool {
        match segment.link.checksum {
            Some(Checksum::Good) => self.good_sums += 1,
            Some(Checksum::Offloaded) => self.open_sums += 1,
            Some(Checksum::Bad) => {
                self.bad_sums += 1;
                return self.open_sums == 0 && self.good_sums >= 4 * self.bad_sums;
            }
            None => {}
        }
        false
    }
}

/// When the handshake's packets passed the tap.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Handshake {
    pub(super) syn: Option<TapTime>,
    pub(super) syn_ack: Option<TapTime>,
    pub(super) ack: Option<TapTime>,
    /// When the first SYN passed the tap, with its time stamp, and the time stamp of the last.
    first_syn: Option<(TapTime, u32, u32)>,
    /// A SYN-ACK was retransmitted after others had been lost before the tap.
    pub(super) lost_answers: bool,
}

/// How long a SYN-ACK is waited for: Linux `TCP_TIMEOUT_INIT` (RFC 6298 section 2.1).
const SYN_ACK_TIMER_NS: i64 = 1_000_000_000;

impl Handshake {
    /// Takes a SYN that is no SYN-ACK.
    pub(super) fn on_syn(&mut self, event: &Event) {
        let (tap, first, _) = self.first_syn.unwrap_or((event.tap, event.tsval, event.tsval));
        self.first_syn = Some((tap, first, event.tsval));
    }

    /// Takes a SYN-ACK. One that echoes the first of several SYNs shows that this one had arrived, so that an answer
    /// was sent then. Where that is longer ago than the timer for it ([`SYN_ACK_TIMER_NS`]), the answer was lost, and
    /// the timer retransmitted it (RFC 7323 section 4.3: the echo is of the earliest segment that was not
    /// acknowledged; Linux `tcp_make_synack` sends the time stamp that the request was made with).
    pub(super) fn on_syn_ack(&mut self, event: &Event) {
        let Some((tap, first, last)) = self.first_syn.filter(|_| event.has(TS)) else { return };
        let is_of_first = event.tsecr == first && first != last;
        self.lost_answers |= is_of_first && event.tap - tap >= SYN_ACK_TIMER_NS;
    }

    /// Whether the client's next ACK is its end.
    pub(super) fn awaits_ack(&self) -> bool {
        self.ack.is_none() && self.syn_ack.is_some()
    }
}
