//! What the packets of a connection say of it as a whole.
//!
//! Kept beside the events because the analysis reads it while the next packets come in: each part of
//! the events goes to it with a copy of what was known when that part ended.

use crate::clocks::TapTime;
use core::net::SocketAddr;
use core::ops::BitXor;
use std::collections::BTreeMap;

use super::event::Side;
use super::failures::Failures;
use super::peers::Peers;
use super::side::{Handshake, SideInfo};
use super::tls::TlsWatch;
use super::untaken::Untaken;
use crate::report::{self, End, Reset};
use crate::wire::{Flags, Segment};
use tcpwhy_words::units::Time;

/// Most packets of a slight connection. Ours: a request and its answer without handshake and end
/// are four with their ACKs.
const MOST_OF_SLIGHT: u64 = 3;

/// What is known of one connection.
#[derive(Clone, Debug)]
pub(crate) struct Facts {
    /// Client and server.
    pub(crate) endpoints: [SocketAddr; 2],
    /// Which network its packets were seen in ([`Segment::network`]).
    pub(crate) network: u32,
    /// Capture time of the first packet.
    pub(crate) start: Time,
    /// Capture time of the last packet, relative.
    pub(crate) last_tap: TapTime,
    /// The frame that it began with, which no other connection did.
    pub(crate) first_frame: u64,
    pub(crate) last_frame: u64,
    pub(crate) packets: u64,
    pub(crate) duplicates: u64,
    /// Whether it is one of the first that carry data, which are shown in detail.
    pub(crate) is_chosen: bool,
    pub(crate) sides: [SideInfo; 2],
    pub(crate) end: End,
    /// The first reset.
    pub(crate) reset: Option<Box<Reset>>,
    pub(crate) peers: Peers,
    pub(crate) tls: TlsWatch,
    /// What the ends said in clear that failed.
    pub(crate) failures: Failures,
    pub(super) handshake: Handshake,
    /// What passed between the handshake and the first word of the server.
    pub(super) untaken: Untaken,
    /// Shift of the windows each side announces, once both SYNs were seen.
    pub(super) shifts: Option<[u8; 2]>,
}

impl Facts {
    /// What the first segment tells.
    pub(super) fn new(segment: &Segment<'_>) -> Self {
        let endpoints = if opened_by_source(segment) {
            [segment.source, segment.destination]
        } else {
            [segment.destination, segment.source]
        };
        Self {
            endpoints,
            network: segment.network,
            start: segment.time,
            last_tap: TapTime::default(),
            first_frame: segment.frame,
            last_frame: segment.frame,
            packets: 0,
            duplicates: 0,
            is_chosen: false,
            sides: [SideInfo::default(), SideInfo::default()],
            end: End::Open,
            reset: None,
            peers: Peers::default(),
            tls: TlsWatch::default(),
            failures: Failures::default(),
            handshake: Handshake::default(),
            untaken: Untaken::default(),
            shifts: None,
        }
    }

    /// Something of each of its cache lines that the analysis reads first.
    pub(crate) fn a_bit_of_each_line(&self) -> u64 {
        let of_side = |side: &SideInfo| side.data_frames ^ u64::from(side.outgoing ^ side.syns);
        let sides = self.sides.iter().map(of_side).fold(0, BitXor::bitxor);
        sides ^ self.packets ^ self.first_frame ^ self.handshake.syn.unwrap_or_default().0 as u64
    }

    /// How often `side` sent its FIN up to the last packet without hearing anything.
    pub(crate) fn unheard_fins(&self, side: usize) -> u64 {
        let (times, packets) = self.sides[side].fins;
        if packets == self.packets { times } else { 0 }
    }

    /// Whether a few packets are all there was, and at most one side sent data: a scan, a stray
    /// reset, the end of a connection that the capture met too late. Such a connection explains
    /// nothing, and a hostile capture holds millions.
    pub(crate) fn is_slight(&self) -> bool {
        self.packets <= MOST_OF_SLIGHT && self.sides.iter().any(|side| side.data_frames == 0)
    }

    /// Whether any side sent data.
    pub(crate) fn carries_data(&self) -> bool {
        self.sides.iter().any(|side| side.data_frames > 0)
    }

    /// Whether one side sent nothing that was captured.
    pub(crate) fn is_one_way(&self) -> bool {
        [0, 1].into_iter().any(|side| self.has_sent_nothing(side))
    }

    /// Whether nothing that `side` sent was captured.
    pub(crate) fn has_sent_nothing(&self, side: Side) -> bool {
        self.peers.last(side).is_none()
    }

    /// How long it lasted at the tap.
    pub(crate) fn lifetime(&self) -> i64 {
        self.last_tap.0
    }

    /// Capture time of its last packet.
    pub(crate) fn last_seen(&self) -> i64 {
        self.start.0.saturating_add(self.last_tap.0)
    }

    /// Whether both sides closed, or one reset.
    pub(crate) fn is_closed(&self) -> bool {
        self.end == End::Rst || self.sides.iter().all(|s| s.fin_at.is_some())
    }

    /// Last SYN to the ACK of the SYN-ACK, unless the capture's clock went back between.
    pub(crate) fn handshake_rtt(&self) -> Option<i64> {
        Some(self.handshake.ack? - self.handshake.syn?).filter(|took| *took >= 0)
    }

    /// Whether a SYN-ACK shows that others before it were lost before the tap.
    pub(crate) fn has_lost_answers(&self) -> bool {
        self.handshake.lost_answers
    }

    /// Last SYN to the SYN-ACK.
    pub(crate) fn syn_ack_delay(&self) -> Option<i64> {
        Some(self.handshake.syn_ack? - self.handshake.syn?).filter(|took| *took >= 0)
    }

    /// What shows that the server did not take the connection when the client had done its part.
    pub(crate) fn untaken(&self) -> Option<report::Untaken> {
        self.untaken.report(self.handshake.ack?)
    }

    /// Takes the shifts of windows from what else is known of its two ends; SYNs tell them better.
    pub(crate) fn learn_shifts(&mut self, scales: &BTreeMap<[SocketAddr; 2], [u8; 2]>) {
        let ends = self.endpoints.map(|end| SocketAddr::new(end.ip().to_canonical(), end.port()));
        let [client, server] = ends;
        let reversed = || scales.get(&[server, client]).map(|[server, client]| [*client, *server]);
        self.shifts = scales.get(&ends).copied().or_else(reversed);
    }

    /// Shift of the windows `side` announces, once both SYNs were seen.
    pub(crate) fn window_shift(&self, side: Side) -> Option<u8> {
        self.shifts.map(|shifts| shifts[side])
    }
}

/// Whether the segment's source opened the connection, as far as one segment tells.
fn opened_by_source(segment: &Segment<'_>) -> bool {
    let flags = segment.flags;
    if flags.has(Flags::SYN) {
        return !flags.has(Flags::ACK);
    }
    // Met midway: servers listen on low ports (IANA system ports end at 1023, RFC 6335), clients
    // take high ones; the lower port is the server's.
    let (source, destination) = (segment.source.port(), segment.destination.port());
    source >= destination
}
