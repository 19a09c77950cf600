//! The size of packets that the path takes: told by routers, or found out by probing (RFC 1191,
//! RFC 8201, RFC 4821).
//!
//! Follows `tcp_v4_mtu_reduced`, `tcp_v6_mtu_reduced`, `tcp_simple_retransmit`, `tcp_sync_mss`,
//! `tcp_mtup_init`, `tcp_mtu_probe`, `tcp_mtu_check_reprobe`, `tcp_mtup_probe_success`,
//! `tcp_mtup_probe_failed`, `tcp_mtu_probing`. Left out: that a router's word expires
//! (`ip_rt_mtu_expires`, ten minutes).

use super::options::TCP_HEADER;
use super::queue::Skb;
use super::state::Purpose;
use super::{CaState, Socket, State};
use crate::segment::{Flags, Segment, after, before};

/// What is known of it, and searched for, in packets with their headers (`icsk_mtup`).
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Mtu {
    enabled: bool,
    low: u32,
    high: u32,
    /// Of the probe under way; 0 if there is none.
    probe: u32,
    probe_seq: (u32, u32),
    /// Tick at which the search began.
    since: u64,
    /// What the segment size was made from (`icsk_pmtu_cookie`).
    synced: u32,
    /// What the route says from the next packet on.
    coming: Option<u32>,
}

/// What became of the attempt to probe.
pub(super) enum Probed {
    /// Data is sent as ever.
    No,
    /// It waits until a probe can be sent.
    Waits,
    Sent,
}

impl Socket {
    /// A router says that packets of more than `mtu` bytes do not get through; `seq` is of the one that
    /// did not.
    pub fn on_mtu(&mut self, now_ns: u64, mtu: u32, seq: u32, out: &mut Vec<Segment>) {
        self.tick(now_ns);
        let ours = !before(seq, self.snd.una) && !after(seq, self.snd.nxt);
        self.counters.strange_errors += u64::from(!ours);
        if self.state == State::Closed || !ours {
            return;
        }
        let mtu = mtu.max(if self.config.link.ipv6 { LEAST_MTU_V6 } else { LEAST_MTU_V4 });
        if mtu >= self.path_mtu() {
            return;
        }
        self.config.path_mtu = Some(mtu);
        self.sync_mss();
        self.retransmit_smaller(out);
    }

    /// Another MTU of the route; it counts from the next packet on, as a route is looked up for each.
    pub const fn set_route_mtu(&mut self, mtu: Option<u32>) {
        self.mtu.coming = Some(match mtu {
            Some(mtu) => mtu,
            None => self.config.link.mtu,
        });
    }

    /// A packet leaves by the route as it is now.
    pub(super) fn look_up_route(&mut self) {
        if let Some(mtu) = self.mtu.coming.take() {
            self.config.route.mtu = Some(mtu);
        }
    }

    /// Largest packet that the path is believed to take.
    pub(super) fn path_mtu(&self) -> u32 {
        self.configured_mtu().min(self.config.path_mtu.unwrap_or(u32::MAX))
    }

    fn configured_mtu(&self) -> u32 {
        let (route, link) = (self.config.route.mtu, self.config.link.mtu);
        route.unwrap_or(link).min(link)
    }

    /// The largest segment that this end announces to its peer (`tcp_advertise_mss`).
    pub(super) fn announced_mss(&self) -> u32 {
        let mtu = if self.config.kernel.announces_configured_mtu {
            self.configured_mtu()
        } else {
            self.path_mtu()
        };
        let by_mtu = mtu.saturating_sub(self.config.link.ip_header() + TCP_HEADER);
        let least = if self.config.link.ipv6 { LEAST_ADVMSS_V6 } else { LEAST_ADVMSS_V4 };
        let told = self.config.route.advmss.unwrap_or(by_mtu.max(least));
        told.min(self.config.options.max_segment.unwrap_or(u32::MAX))
    }

    /// What has become too large is retransmitted in smaller pieces, and the window stays
    /// (`tcp_simple_retransmit`).
    fn retransmit_smaller(&mut self, out: &mut Vec<Segment>) {
        if self.state == State::SynSent {
            if self.q.sent() > 0 {
                // Data is too large for a SYN; it waits for the handshake.
                self.syn_retries += 1;
                self.rcv.advmss = self.rcv.advmss.min(self.announced_mss());
                self.send_syn(None, 0, out);
                let delay = self.rtt.rto;
                self.set_timer(Purpose::Retransmit, delay);
            }
            return;
        }
        if self.mark_larger() {
            self.enter_uncongested_loss();
            self.retransmit_queue(out);
        }
    }

    /// Marks as lost what is larger than a segment may be now; whether anything is.
    fn mark_larger(&mut self) -> bool {
        let mss = self.current_mss();
        for place in 0..self.q.sent() {
            let skb = self.q.at(place);
            let size = if skb.pcount > 1 { skb.mss } else { skb.len };
            if size > mss {
                self.mark_lost(place);
            }
        }
        self.rec.retransmit_hint = None;
        if self.rec.lost_out > 0 && !self.sack {
            self.limit_dup_acks(0);
        }
        self.rec.lost_out > 0
    }

    /// Recomputes the segment size from path, peer, window and what was found by probing.
    pub(super) fn sync_mss(&mut self) {
        let mtu = self.path_mtu();
        self.mtu.high = self.mtu.high.min(mtu);
        self.mtu.synced = mtu;
        let mut mss = self.bound_to_half_window(self.mss_of(mtu));
        if self.mtu.enabled {
            mss = mss.min(self.mss_of(self.mtu.low));
        }
        self.snd.mss_cache = mss;
    }

    /// A route may have changed since (`tcp_current_mss`).
    pub(super) fn follow_route(&mut self) {
        if self.mtu.synced != self.path_mtu() {
            self.sync_mss();
        }
    }

    /// Payload of a packet of this many bytes (`tcp_mtu_to_mss`).
    fn mss_of(&self, mtu: u32) -> u32 {
        let whole = mtu.saturating_sub(self.config.link.ip_header() + TCP_HEADER);
        whole.min(self.snd.mss_clamp).max(LEAST_MSS) - self.stamp_bytes()
    }

    /// The packet of this much payload (`tcp_mss_to_mtu`).
    const fn mtu_of(&self, mss: u32) -> u32 {
        mss + TCP_HEADER + self.stamp_bytes() + self.config.link.ip_header()
    }

    /// What is searched for as a connection begins (`tcp_mtup_init`).
    pub(super) fn begin_search(&mut self) {
        self.mtu = Mtu {
            enabled: self.config.sysctl.mtu_probing > 1,
            low: self.mtu_of(self.config.sysctl.base_mss),
            high: self.snd.mss_clamp.saturating_add(TCP_HEADER + self.config.link.ip_header()),
            since: self.jiffies(),
            probe: 0,
            ..self.mtu
        };
    }

    /// Sends a packet larger than those before, if there is enough to send and room for a loss
    /// (`tcp_mtu_probe`).
    pub(super) fn probe_mtu(&mut self, out: &mut Vec<Segment>) -> Probed {
        let search = self.mtu;
        if !search.enabled
            || search.probe > 0
            || self.rec.state != CaState::Open
            || self.cw.cwnd < LEAST_WINDOW
            || !self.sack_blocks().is_empty()
        {
            return Probed::No;
        }
        let size = self.mss_of(u32::midpoint(search.low, search.high));
        let needed = size + (self.rec.reordering + 1) * self.snd.mss_cache;
        let interval = search.high.saturating_sub(search.low);
        if size > self.mss_of(search.high) || interval < self.config.sysctl.probe_threshold {
            self.search_again();
            return Probed::No;
        }
        let waiting = self.snd.write_seq.wrapping_sub(self.snd.nxt);
        if waiting < needed || self.snd.wnd < needed {
            return Probed::No;
        }
        if after(self.snd.nxt.wrapping_add(needed), self.window_end()) {
            return Probed::Waits;
        }
        if self.in_flight() + 2 > self.cw.cwnd {
            return if self.in_flight() == 0 { Probed::No } else { Probed::Waits };
        }
        if !self.gather(size) {
            return Probed::No;
        }
        let place = self.q.sent();
        let Skb { seq, end_seq, .. } = *self.q.at(place);
        if !self.transmit(place, out) {
            return Probed::No;
        }
        // It counts as two, for it may be lost without congestion.
        self.cw.cwnd -= 1;
        self.on_new_data_sent(size);
        self.mtu.probe = self.mtu_of(size);
        self.mtu.probe_seq = (seq, end_seq);
        Probed::Sent
    }

    /// Makes the first unsent segment one of just `size` bytes; whether its bytes may be joined.
    fn gather(&mut self, size: u32) -> bool {
        let place = self.q.sent();
        let (mut left, mut at) = (size, place);
        while at < self.q.len() && left > self.q.at(at).len {
            if self.q.at(at).eor {
                return false;
            }
            left -= self.q.at(at).len;
            at += 1;
        }
        let truesize = self.config.kernel.memory.empty() + size;
        let seq = self.q.at(place).seq;
        let mut flags = Flags::ACK;
        let mut taken = 0;
        while taken < size {
            let head = *self.q.at(place);
            let copied = head.len.min(size - taken);
            taken += copied;
            if copied == head.len {
                flags = flags.with(head.flags);
                self.snd.wmem_queued = self.snd.wmem_queued.saturating_sub(head.truesize);
                self.q.remove_unsent(place);
            } else {
                let rest = self.q.at_mut(place);
                rest.seq = rest.seq.wrapping_add(copied);
                rest.len -= copied;
                rest.truesize = rest.truesize.saturating_sub(copied);
                self.snd.wmem_queued = self.snd.wmem_queued.saturating_sub(copied);
            }
        }
        self.snd.wmem_queued += truesize;
        let end_seq = seq.wrapping_add(size);
        let probe = Skb { seq, end_seq, len: size, flags, pcount: 1, truesize, ..Skb::default() };
        self.q.insert_unsent(place, probe);
        true
    }

    /// After a while the search begins anew (`tcp_mtu_check_reprobe`).
    fn search_again(&mut self) {
        let pause = u64::from(self.config.sysctl.probe_interval) * u64::from(self.config.kernel.hz);
        if self.jiffies() - self.mtu.since >= pause {
            let low = self.mtu_of(self.current_mss());
            self.begin_search();
            self.mtu.enabled = true;
            self.mtu.low = low;
        }
    }

    /// The probe arrived: packets may be so large, and the window counts fewer of them.
    pub(super) fn on_probe_acked(&mut self) {
        let Mtu { probe, probe_seq: (_, end), .. } = self.mtu;
        if probe == 0 || after(end, self.snd.una) {
            return;
        }
        self.cw.prior_ssthresh = self.current_ssthresh();
        let bytes = u64::from(self.cw.cwnd) * u64::from(self.mtu_of(self.snd.mss_cache));
        self.cw.cwnd = (bytes / u64::from(probe)).max(1) as u32;
        self.cw.increase = tcpwhy::cc::Increase::default();
        self.cw.stamp = self.jiffies();
        self.cw.ssthresh = self.current_ssthresh();
        self.mtu.low = probe;
        self.mtu.probe = 0;
        self.sync_mss();
    }

    /// Whether it is the probe that was lost: that is no congestion.
    pub(super) fn is_probe_lost(&mut self) -> bool {
        let Mtu { probe, probe_seq: (seq, _), .. } = self.mtu;
        if probe == 0 || self.snd.una != seq || self.rec.state >= CaState::Cwr {
            return false;
        }
        self.mtu.high = probe - 1;
        self.mtu.probe = 0;
        self.cw.cwnd += 1;
        if self.mark_larger() {
            self.enter_uncongested_loss();
        }
        true
    }

    /// Something is retransmitted: of a probe under way nothing is learned.
    pub(super) const fn forget_probe(&mut self) {
        self.mtu.probe = 0;
    }

    /// Nothing gets through any more: packets may be too large, and nobody says so
    /// (`tcp_mtu_probing`).
    pub(super) fn suspect_black_hole(&mut self) {
        let sysctl = &self.config.sysctl;
        if sysctl.mtu_probing == 0 {
            return;
        }
        if self.mtu.enabled {
            let half = self.mss_of(self.mtu.low) >> 1;
            let mss = half.min(sysctl.base_mss).max(sysctl.mtu_probe_floor).max(LEAST_MSS);
            self.mtu.low = self.mtu_of(mss);
        } else {
            self.mtu.enabled = true;
            self.mtu.since = self.jiffies();
        }
        self.sync_mss();
    }
}

/// `tcp_min_snd_mss` (`TCP_MIN_SND_MSS`, v5.2), which counts full options.
const LEAST_MSS: u32 = 48;

/// `ip_rt_min_pmtu`: `DEFAULT_MIN_PMTU` of `net/ipv4/route.c`, 512 + 20 + 20.
const LEAST_MTU_V4: u32 = 552;

/// `IPV6_MIN_MTU` (RFC 8200 section 5).
const LEAST_MTU_V6: u32 = 1280;

/// `ip_rt_min_advmss` of `net/ipv4/route.c`.
const LEAST_ADVMSS_V4: u32 = 256;

/// `ip6_rt_min_advmss` of `net/ipv6/route.c`: `IPV6_MIN_MTU` less its headers.
const LEAST_ADVMSS_V6: u32 = 1280 - 20 - 40;

/// Packets that the window must hold for a probe (`tcp_mtu_probe`).
const LEAST_WINDOW: u32 = 11;
