//! From stock tracepoints and the applications' log to what the sender waited for, as far as they
//! tell.
//!
//! `tcp_probe` fires before an incoming segment is processed: what it shows held since the segment
//! before was processed, so it judges the time behind it. In the order of limits-method.md
//! section 10: nothing unsent (by the bytes that the application wrote), no room in the receiver's
//! window, blocked in write, `ca_state`, a full congestion window. What none of these explains is
//! [`State::Unrecorded`]: its share is printed, not guessed at.
//!
//! Left out: pacing, the host's own queue, Nagle; they have no record here and are unrecorded. So
//! is what follows the sender's own FIN: the event fires in `tcp_rcv_established` alone, which is
//! why scenarios drain before they end their writing.

use crate::records::{End, Probe};
use crate::spans::{Span, Timeline, cut};
use crate::states::State;

/// What an end waited for, from `first` to `last`.
pub(crate) fn spans(end: &End, first: u64, last: u64) -> Vec<Span<State>> {
    let Some(start) = end.probes.first() else {
        return Timeline::new(first, last, State::Unrecorded).finish();
    };
    let all = end.writes.iter().fold(0_u64, |sum, write| sum.saturating_add(write.bytes));
    // The first event of a stock kernel comes when the handshake is over.
    let mut line = Timeline::new(first, last, State::Unrecorded);
    let base = start.una;
    let mut since = start.t;
    for probe in &end.probes[1..] {
        for (from, state) in between(end, since, probe, base, all) {
            line.change(from, state);
        }
        since = probe.t;
    }
    if since > first {
        let acked = end.probes.last().map_or(0, |probe| probe.nxt.wrapping_sub(base));
        let done = u64::from(acked) >= all;
        line.change(since, if done { State::Closing } else { State::Unrecorded });
    }
    let waits = timer_waits(end);
    let spans = cut(&line.finish(), &waits, |_, wait| wait);
    cut(&spans, &end.reads, |state, ()| match state {
        State::IdleAppThink => State::IdlePeer,
        State::App => State::AppPeer,
        _ => state,
    })
}

/// What held from `since` to the probe: once until the application wrote what was sent last, and
/// from then on.
fn between(end: &End, since: u64, probe: &Probe, base: u32, all: u64) -> Vec<(u64, State)> {
    let sent = u64::from(probe.nxt.wrapping_sub(base));
    let flight = u64::from(probe.nxt.wrapping_sub(probe.una));
    let mss = end.mss.unwrap_or(DEFAULT_MSS).clamp(1, GREATEST_MSS);
    let (written, written_at) = written(end, probe.t);
    let nothing_unsent = sent >= written;
    let ca = end.ca.iter().rev().find(|(t, _)| *t <= since).map_or(0, |(_, ca)| *ca);
    let blocked = end.writes.iter().any(|w| w.blocked && w.from <= since && w.to >= probe.t);
    let state = if nothing_unsent && !blocked {
        match (flight, written >= all) {
            (0, true) => State::Closing,
            (0, false) => State::IdleAppThink,
            (_, true) => State::LastFlight,
            (_, false) => State::App,
        }
    } else if u64::from(probe.wnd) < flight + mss {
        if probe.wnd == 0 { State::ZeroWindow } else { State::Rwnd }
    } else if flight.div_ceil(mss) >= u64::from(probe.cwnd) {
        match ca {
            LOSS => State::Loss,
            CWR | RECOVERY => State::Recovery,
            _ if probe.cwnd < probe.ssthresh => State::CwndSlowStart,
            _ => State::CwndAvoidance,
        }
    } else if matches!(ca, RECOVERY | LOSS) {
        if ca == LOSS { State::Loss } else { State::Recovery }
    } else if blocked {
        State::Sndbuf
    } else {
        State::Unrecorded
    };
    // Before the last write of what is in flight, nothing waited but the application.
    match written_at.filter(|at| *at > since && nothing_unsent && flight > 0) {
        Some(at) => vec![(since, State::IdleAppThink), (at, state)],
        None => vec![(since, state)],
    }
}

/// Bytes that the application had written by `t`, and when the last write before that began.
fn written(end: &End, t: u64) -> (u64, Option<u64>) {
    let before = end.writes.iter().take_while(|write| write.from <= t);
    before
        .fold((0, None), |(bytes, _), write| (bytes.saturating_add(write.bytes), Some(write.from)))
}

/// From the last segment that came in to a repetition by a timer.
fn timer_waits(end: &End) -> Vec<Span<State>> {
    let mut waits: Vec<Span<State>> = Vec::new();
    for &t in &end.retransmits {
        let ca = end.ca.iter().rev().find(|(at, _)| *at <= t).map_or(0, |(_, ca)| *ca);
        let before = end.probes.partition_point(|probe| probe.t < t);
        let Some(since) = before.checked_sub(1).map(|at| end.probes[at].t) else { continue };
        let since = waits.last().map_or(since, |wait| since.max(wait.1));
        // Repetitions of an ACK's own call follow it within microseconds.
        if t.saturating_sub(since) < LEAST_TIMER_NS {
            continue;
        }
        waits.push((since, t, if ca == LOSS { State::RtoWait } else { State::TlpWait }));
    }
    waits
}

/// `enum tcp_ca_state` (Linux v6.12 `include/uapi/linux/tcp.h`).
const CWR: u8 = 2;
const RECOVERY: u8 = 3;
const LOSS: u8 = 4;

/// Ethernet with time stamps: 1500 less 20, 20 and 12 bytes.
const DEFAULT_MSS: u64 = 1448;

/// What the 16 bits of an IP packet's length leave room for.
const GREATEST_MSS: u64 = 65_535;

/// The shortest timer that repeats data: a tail loss probe waits for two jiffies at least
/// (`TCP_TIMEOUT_MIN`, Linux v6.12 `include/net/tcp.h`), 2 ms with HZ=1000.
const LEAST_TIMER_NS: u64 = 2_000_000;
