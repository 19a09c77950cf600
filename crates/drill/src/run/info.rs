//! `TCP_INFO` of a connection by the names that code uses.
//!
//! Names are those of packetdrill (gtests/net/packetdrill/code.c), which are the fields of
//! `struct tcp_info` (include/uapi/linux/tcp.h). What the model does not count is left out: code
//! that asks for it is unsupported.

use std::collections::BTreeMap;

use tcpwhy_model::socket::{CaState, Info, State, Traffic};

/// What is known, by name.
pub(super) fn names(info: &Info) -> BTreeMap<&'static str, i128> {
    let bits = [
        (info.timestamps, 1),
        (info.sack, 2),
        (info.rcv_wscale > 0, 4),
        (info.ecn, 8),
        (info.syn_data, 32),
    ];
    let options: i128 = bits.into_iter().filter(|(on, _)| *on).map(|(_, bit)| bit).sum();
    BTreeMap::from([
        ("tcpi_state", state(info.state)),
        ("tcpi_ca_state", ca_state(info.ca_state)),
        ("tcpi_retransmits", info.retransmits.into()),
        ("tcpi_probes", info.probes.into()),
        ("tcpi_backoff", info.backoff.into()),
        ("tcpi_options", options),
        ("tcpi_snd_wscale", info.snd_wscale.into()),
        ("tcpi_rcv_wscale", info.rcv_wscale.into()),
        ("tcpi_rto", info.rto_us.into()),
        ("tcpi_snd_mss", info.snd_mss.into()),
        ("tcpi_rcv_mss", info.rcv_mss.into()),
        ("tcpi_unacked", info.unacked.into()),
        ("tcpi_sacked", info.sacked.into()),
        ("tcpi_lost", info.lost.into()),
        ("tcpi_retrans", info.retrans.into()),
        ("tcpi_rcv_ssthresh", info.rcv_ssthresh.into()),
        ("tcpi_rtt", info.srtt_us.into()),
        ("tcpi_rttvar", info.rttvar_us.into()),
        ("tcpi_snd_ssthresh", info.ssthresh.into()),
        ("tcpi_snd_cwnd", info.cwnd.into()),
        ("tcpi_advmss", info.advmss.into()),
        ("tcpi_reordering", info.reordering.into()),
        ("tcpi_total_retrans", info.total_retrans.into()),
        ("tcpi_rcv_rtt", info.rcv_rtt_us.into()),
        ("tcpi_rcv_space", info.rcv_space.into()),
        ("tcpi_notsent_bytes", info.write_seq.wrapping_sub(info.snd_nxt).into()),
        ("tcpi_min_rtt", info.min_rtt_us.into()),
        ("tcpi_snd_wnd", info.snd_wnd.into()),
        ("tcpi_rcv_wnd", info.rcv_wnd.into()),
        ("tcpi_delivered", info.delivered.into()),
        ("tcpi_pacing_rate", info.pacing_rate.into()),
        ("SK_MEMINFO_SNDBUF", info.sndbuf.into()),
        ("SK_MEMINFO_RCVBUF", info.rcvbuf.into()),
        ("SK_MEMINFO_WMEM_QUEUED", info.wmem_queued.into()),
        ("SK_MEMINFO_RMEM_ALLOC", info.rmem_alloc.into()),
    ])
}

/// What is counted, by name.
pub(super) fn counts(traffic: &Traffic) -> [(&'static str, i128); 12] {
    [
        ("tcpi_segs_in", traffic.segs_in.into()),
        ("tcpi_data_segs_in", traffic.data_segs_in.into()),
        ("tcpi_segs_out", traffic.segs_out.into()),
        ("tcpi_data_segs_out", traffic.data_segs_out.into()),
        ("tcpi_bytes_sent", traffic.bytes_sent.into()),
        ("tcpi_bytes_retrans", traffic.bytes_retrans.into()),
        ("tcpi_bytes_acked", traffic.bytes_acked.into()),
        ("tcpi_dsack_dups", traffic.dsack_dups.into()),
        ("tcpi_reord_seen", traffic.reord_seen.into()),
        ("tcpi_rcv_ooopack", traffic.rcv_ooopack.into()),
        ("tcpi_total_rto", traffic.total_rto.into()),
        ("tcpi_delivered_ce", traffic.delivered_ce.into()),
    ]
}

/// `enum` of `include/net/tcp_states.h`.
fn state(state: State) -> i128 {
    match state {
        State::Established => 1,
        State::SynSent => 2,
        State::SynReceived => 3,
        State::FinWait1 => 4,
        State::FinWait2 => 5,
        State::TimeWait => 6,
        State::Closed => 7,
        State::CloseWait => 8,
        State::LastAck => 9,
        State::Closing => 11,
    }
}

/// `enum tcp_ca_state` of include/uapi/linux/tcp.h.
fn ca_state(state: CaState) -> i128 {
    match state {
        CaState::Open => 0,
        CaState::Disorder => 1,
        CaState::Cwr => 2,
        CaState::Recovery => 3,
        CaState::Loss => 4,
    }
}
