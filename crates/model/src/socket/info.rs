//! What `TCP_INFO` would say (`tcp_get_info`), and a little more.

use super::{CaState, Socket, State};

/// A socket's state at an instant.
#[derive(Clone, Copy, Debug, Default, Eq, Hash, PartialEq)]
#[expect(clippy::struct_excessive_bools, reason = "the bits of `tcpi_options`")]
pub struct Info {
    /// State of the connection.
    pub state: State,
    /// State of congestion control.
    pub ca_state: CaState,
    /// Congestion window, in packets.
    pub cwnd: u32,
    /// Threshold of slow start, in packets.
    pub ssthresh: u32,
    /// Smoothed round trip.
    pub srtt_us: u32,
    /// Its mean deviation.
    pub rttvar_us: u32,
    /// Least round trip of the last minutes.
    pub min_rtt_us: u32,
    /// Retransmission timeout.
    pub rto_us: u64,
    /// Packets sent and not acknowledged.
    pub unacked: u32,
    /// Of these, selectively acknowledged.
    pub sacked: u32,
    /// Of these, believed lost.
    pub lost: u32,
    /// Copies believed under way.
    pub retrans: u32,
    /// Packets believed under way.
    pub in_flight: u32,
    /// Packets retransmitted in all.
    pub total_retrans: u32,
    /// Timeouts in a row.
    pub retransmits: u32,
    /// Window probes in a row.
    pub probes: u32,
    /// Doublings of the timeout.
    pub backoff: u32,
    /// Window of the peer.
    pub snd_wnd: u32,
    /// Window offered.
    pub rcv_wnd: u32,
    /// What the window may grow to now.
    pub rcv_ssthresh: u32,
    /// Round trip as the receiver sees it.
    pub rcv_rtt_us: u32,
    /// What the application reads in one.
    pub rcv_space: u32,
    /// Payload of a segment.
    pub snd_mss: u32,
    /// Payload of the peer's.
    pub rcv_mss: u32,
    /// Largest segment that was announced.
    pub advmss: u32,
    /// Displacement of packets that counts as reordering.
    pub reordering: u32,
    /// Packets delivered.
    pub delivered: u32,
    /// First byte that is not acknowledged.
    pub snd_una: u32,
    /// Next byte to send.
    pub snd_nxt: u32,
    /// Behind the last byte that was written.
    pub write_seq: u32,
    /// Next byte expected.
    pub rcv_nxt: u32,
    /// Bytes a second that are aimed at.
    pub pacing_rate: u64,
    /// Send buffer, and what is charged to it.
    pub sndbuf: u32,
    /// Charged to it.
    pub wmem_queued: u32,
    /// Receive buffer.
    pub rcvbuf: u32,
    /// Charged to it.
    pub rmem_alloc: u32,
    /// Timestamps are used.
    pub timestamps: bool,
    /// Selective acknowledgments are used.
    pub sack: bool,
    /// Scale of the peer's windows, and of ours.
    pub snd_wscale: u8,
    /// Ours.
    pub rcv_wscale: u8,
    /// ECN is used.
    pub ecn: bool,
    /// Data of the SYN was taken.
    pub syn_data: bool,
}

/// What was refused, as the host counts it (`net/ipv4/proc.c`).
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Counters {
    /// `BeyondWindow`: segments that lie or end behind the window.
    pub beyond_window: u64,
    /// `TCPZeroWindowDrop`: data that came although the window was closed.
    pub zero_window: u64,
    /// `TCPRcvQDrop`: data for which there was no memory.
    pub no_memory: u64,
    /// `OutOfWindowIcmps`: errors about what is not under way.
    pub strange_errors: u64,
}

/// What has passed so far, as `TCP_INFO` counts it.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Traffic {
    /// Segments that came in (`tcpi_segs_in`).
    pub segs_in: u32,
    /// With data (`tcpi_data_segs_in`).
    pub data_segs_in: u32,
    /// Segments that went out (`tcpi_segs_out`).
    pub segs_out: u32,
    /// With data (`tcpi_data_segs_out`).
    pub data_segs_out: u32,
    /// Bytes that went out, all copies of them (`tcpi_bytes_sent`).
    pub bytes_sent: u64,
    /// In further copies (`tcpi_bytes_retrans`).
    pub bytes_retrans: u64,
    /// Acknowledged; a client's SYN counts as one (`tcpi_bytes_acked`).
    pub bytes_acked: u64,
    /// Packets that the peer had twice (`tcpi_dsack_dups`).
    pub dsack_dups: u32,
    /// How often packets were seen out of order on their way to the peer (`tcpi_reord_seen`).
    pub reord_seen: u32,
    /// Packets that came before their time (`tcpi_rcv_ooopack`).
    pub rcv_ooopack: u32,
    /// Timeouts (`tcpi_total_rto`).
    pub total_rto: u32,
    /// Packets whose congestion the peer told (`tcpi_delivered_ce`).
    pub delivered_ce: u32,
}

impl std::ops::Add for Counters {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self {
            beyond_window: self.beyond_window + other.beyond_window,
            zero_window: self.zero_window + other.zero_window,
            no_memory: self.no_memory + other.no_memory,
            strange_errors: self.strange_errors + other.strange_errors,
        }
    }
}

impl Socket {
    /// What it refused.
    pub const fn counters(&self) -> Counters {
        self.counters
    }

    /// What has passed so far.
    pub const fn traffic(&self) -> Traffic {
        Traffic {
            data_segs_out: self.snd.data_segs_out,
            bytes_acked: self.snd.bytes_acked,
            delivered_ce: self.rec.delivered_ce,
            ..self.traffic
        }
    }

    /// State as it is now.
    pub fn info(&self) -> Info {
        let (snd, cw, rec, rtt, rcv) = (&self.snd, &self.cw, &self.rec, &self.rtt, &self.rcv);
        Info {
            state: self.state,
            ca_state: rec.state,
            cwnd: self.cc.shown_cwnd().unwrap_or(cw.cwnd),
            ssthresh: cw.ssthresh,
            srtt_us: rtt.srtt_us >> 3,
            rttvar_us: rtt.mdev_us >> 2,
            min_rtt_us: self.min_rtt_us(),
            rto_us: self.us_from_jiffies(rtt.rto),
            unacked: rec.packets_out,
            sacked: rec.sacked_out,
            lost: rec.lost_out,
            retrans: rec.retrans_out,
            in_flight: self.in_flight(),
            total_retrans: snd.segs_retrans,
            retransmits: rec.retransmits,
            probes: rec.probes_out,
            backoff: rec.backoff,
            snd_wnd: snd.wnd,
            rcv_wnd: rcv.wnd,
            rcv_ssthresh: rcv.ssthresh,
            rcv_rtt_us: rcv.rtt_us >> 3,
            rcv_space: rcv.space,
            snd_mss: snd.mss_cache,
            rcv_mss: self.ack.rcv_mss,
            advmss: rcv.advmss,
            reordering: rec.reordering,
            delivered: rec.delivered,
            snd_una: snd.una,
            snd_nxt: snd.nxt,
            write_seq: snd.write_seq,
            rcv_nxt: rcv.nxt,
            pacing_rate: snd.pacing_rate,
            sndbuf: snd.sndbuf,
            wmem_queued: snd.wmem_queued,
            rcvbuf: rcv.rcvbuf,
            rmem_alloc: rcv.rmem_alloc,
            timestamps: self.stamps,
            sack: self.sack,
            snd_wscale: snd.wscale,
            rcv_wscale: rcv.wscale,
            ecn: self.ecn.ok,
            syn_data: self.fast.data_acked,
        }
    }
}
