//! From stock tracepoints, the applications' log and samples of `TCP_INFO` to what the sender waited
//! for, as far as they tell.
//!
//! `tcp_probe` fires before an incoming segment is processed: it shows what held since the segment
//! before was. Between two of them acknowledgments and windows stand still, and a sender that
//! neither paces nor waits for its own host's queue sends all it may at once, in answer to the first of
//! them or in a call of write. So of each piece of that time (cut where the applications' calls begin
//! and end, and where `ca_state` changes) it is known what was sent, what was written at least and at
//! most, and by that why `tcp_write_xmit` (Linux v6.12 `net/ipv4/tcp_output.c`) stopped; its tests
//! are asked in its own order. What these do not settle is [`State::Unrecorded`]: its share is
//! printed, not guessed at. [`crate::stock`] holds the outcome against observed kernels.
//!
//! Left out: pacing, the host's own queue, Nagle; they have no record here. Where a sender paces or has
//! a queue of its own, most of its waits for a window are unrecorded, too, for nothing tells when it
//! came to wait for that. A writer that is blocked says little: its buffer is full of what is sent
//! ([`State::Sndbuf`]) or of what waits for something else. Only a sample that falls between the two
//! segments tells. So is unrecorded what follows the sender's own FIN: the event fires in
//! `tcp_rcv_established` alone, which is why scenarios drain before they end their writing.

use crate::records::{End, Probe, SAMPLE_LATE_NS, Sample};
use crate::spans::{Span, Timeline, cut};
use crate::states::State;

/// What an end waited for, from `first` to `last`.
pub(crate) fn spans(end: &End, first: u64, last: u64) -> Vec<Span<State>> {
    // The first event of a stock kernel comes when the handshake is over.
    let mut line = Timeline::new(first, last, State::Unrecorded);
    let Some((start, behind)) = end.probes.first().zip(end.probes.last()) else {
        return line.finish();
    };
    let mut walk = Walk::new(end, start.una);
    // Bytes cannot be counted by sequence numbers that begin too late, or come round.
    if end.habits.fast_open || walk.all > u64::from(u32::MAX) {
        return line.finish();
    }
    for pair in end.probes.windows(2) {
        walk.between(&pair[0], &pair[1], &mut line);
    }
    // The last segment to come in acknowledged the rest if a drain ended after it.
    let drained = walk.written.done == walk.all && end.drained.iter().any(|at| *at >= behind.t);
    line.change(behind.t, if drained { State::Closing } else { State::Unrecorded });
    let spans = cut(&line.finish(), &timer_waits(end), |_, wait| wait);
    cut(&spans, &end.reads, |state, ()| match state {
        State::IdleAppThink => State::IdlePeer,
        State::App => State::AppPeer,
        _ => state,
    })
}

/// Goes through an end's records once, in the order of time.
struct Walk<'a> {
    end: &'a End,
    /// The number of its first byte: what follows counts from it.
    base: u32,
    /// Where each call of write ends.
    ends: Vec<u64>,
    /// All that it will ever write.
    all: u64,
    mss: u64,
    written: Written,
    ca: u8,
    /// Next write and change of `ca_state`.
    next: [usize; 2],
}

/// What the application has written.
#[derive(Clone, Copy, Debug, Default)]
struct Written {
    /// By calls that have returned.
    done: u64,
    /// In the call that has not: how much it brings, and whether it was ever put to sleep.
    call: Option<(u64, bool)>,
    /// At least, with what samples found unsent.
    least: u64,
}

impl<'a> Walk<'a> {
    fn new(end: &'a End, base: u32) -> Self {
        let mut all = 0_u64;
        let ends = end.writes.iter().map(|write| {
            all = all.saturating_add(write.bytes);
            all
        });
        let ends = ends.collect();
        let mss = end.mss.unwrap_or(DEFAULT_MSS).clamp(1, GREATEST_MSS);
        Self { end, base, ends, all, mss, written: Written::default(), ca: OPEN, next: [0; 2] }
    }

    /// What held between two segments that came in, into `line`.
    fn between(&mut self, from: &Probe, to: &Probe, line: &mut Timeline<State>) {
        self.advance(from.t);
        let samples = &self.end.samples;
        let within = samples[samples.partition_point(|sample| sample.t < from.t)..]
            .iter()
            .take_while(|sample| sample.t.saturating_add(SAMPLE_LATE_NS) <= to.t);
        let mut piece = Piece {
            since: from.t,
            sent_before: u64::from(from.nxt.wrapping_sub(self.base)),
            sent: u64::from(to.nxt.wrapping_sub(self.base)),
            calls_before: self.next[0],
            sample: within.last().copied(),
            is_last: false,
            to,
        };
        loop {
            let next = self.next_change().filter(|next| *next < to.t);
            piece.is_last = next.is_none();
            line.change(piece.since, self.state(&piece));
            let Some(next) = next else { break };
            piece.since = next;
            self.advance(next);
        }
        // Written bytes stay written: what a sample found holds for all that follows.
        let unsent = piece.sample.map_or(0, |sample| sample.unsent);
        let found = piece.sent_before.saturating_add(unsent);
        self.written.least = self.written.least.max(found.min(self.all));
    }

    /// When the application's calls or `ca_state` change next.
    fn next_change(&self) -> Option<u64> {
        let write = self.end.writes.get(self.next[0]);
        let write = write.map(|w| if self.written.call.is_some() { w.to } else { w.from });
        let ca = self.end.ca.get(self.next[1]).map(|change| change.0);
        write.into_iter().chain(ca).min()
    }

    /// Takes all changes up to `t`.
    fn advance(&mut self, t: u64) {
        while let Some(write) = self.end.writes.get(self.next[0]) {
            match self.written.call {
                Some(_) if write.to <= t => {
                    self.written.call = None;
                    self.written.done = self.written.done.saturating_add(write.bytes);
                    self.next[0] += 1;
                }
                None if write.from <= t => self.written.call = Some((write.bytes, write.blocked)),
                _ => break,
            }
        }
        while let Some((_, ca)) = self.end.ca.get(self.next[1]).filter(|change| change.0 <= t) {
            self.ca = *ca;
            self.next[1] += 1;
        }
        self.written.least = self.written.least.max(self.written.done);
    }

    /// What held for a piece of the time between two segments.
    fn state(&self, piece: &Piece<'_>) -> State {
        let Written { done, call, least } = self.written;
        let held = self.end.habits.paces || self.end.habits.queues;
        let at_once = piece.is_last && !held && (!piece.is_timers() || self.is_free(piece, done));
        let is_sure = piece.sent_before == piece.sent || at_once;
        if call.is_none() && piece.sent_before >= done {
            return self.nothing_unsent(piece, done, false);
        }
        if !is_sure {
            return State::Unrecorded;
        }
        if call.is_none() && piece.sent >= done {
            return self.nothing_unsent(piece, done, false);
        }
        let least = least.saturating_sub(piece.sent);
        // Who is blocked when a sample is taken is so until the next segment comes in.
        let is_blocked = call.is_some_and(|(_, blocked)| blocked);
        let sample = piece.own_sample().map(|sample| sample.unsent).filter(|_| is_blocked);
        match sample {
            Some(0) if least == 0 => self.nothing_unsent(piece, piece.sent, true),
            _ => match sample.unwrap_or(0).max(least) {
                0 if is_blocked && piece.is_last => self.perhaps_with_data(piece),
                0 => State::Unrecorded,
                unsent => self.with_data(piece, unsent),
            },
        }
    }

    /// Whether all that is written could leave at once: it fits the windows, and no short segment had
    /// to wait for the ACK of another (`tcp_minshall_check`): there was nothing in flight before this
    /// one call of write.
    fn is_free(&self, piece: &Piece<'_>, done: u64) -> bool {
        let to = piece.to;
        let flight = done.saturating_sub(self.acked(piece));
        let fits = flight <= u64::from(to.wnd) && flight.div_ceil(self.mss) <= u64::from(to.cwnd);
        let calls = self.next[0] - piece.calls_before;
        let was_idle = self.acked(piece) == piece.sent_before;
        self.written.call.is_none() && fits && self.ca == OPEN && was_idle && calls <= 1
    }

    /// Everything written is sent.
    fn nothing_unsent(&self, piece: &Piece<'_>, sent: u64, blocked: bool) -> State {
        let flight = sent.saturating_sub(self.acked(piece));
        let done = self.written.done >= self.all;
        match (flight, self.ca) {
            (0, _) if blocked => State::Unrecorded,
            (0, _) if done => State::Closing,
            (0, _) => State::IdleAppThink,
            (_, LOSS) => State::Loss,
            (_, RECOVERY) => State::Recovery,
            _ if blocked => State::Sndbuf,
            _ if done => State::LastFlight,
            _ => State::App,
        }
    }

    /// A writer is blocked, and nobody knows whether what it could write is sent: only a window that has
    /// no room holds the sender either way.
    fn perhaps_with_data(&self, piece: &Piece<'_>) -> State {
        let to = piece.to;
        let flight = u64::from(to.nxt.wrapping_sub(to.una));
        let is_shut = u64::from(to.wnd) < flight + self.mss;
        let (least, most) = self.segments(piece, flight);
        let cwnd = u64::from(to.cwnd);
        match self.ca {
            // Its buffer is full, and nothing of that is under way.
            _ if flight == 0 => {
                if is_shut {
                    State::ZeroWindow
                } else {
                    State::Unrecorded
                }
            }
            LOSS => State::Loss,
            _ if self.end.habits.paces => State::Unrecorded,
            OPEN if least >= cwnd => piece.window(),
            OPEN if is_shut && most < cwnd => State::Rwnd,
            RECOVERY if !is_shut && !self.end.habits.queues => State::Recovery,
            _ => State::Unrecorded,
        }
    }

    /// At least this many bytes wait to be sent: the first test of `tcp_write_xmit` that they fail.
    fn with_data(&self, piece: &Piece<'_>, unsent: u64) -> State {
        let (to, habits) = (piece.to, &self.end.habits);
        let flight = u64::from(to.nxt.wrapping_sub(to.una));
        let room = u64::from(to.wnd).saturating_sub(flight);
        let is_shut = room < self.mss.min(unsent);
        let (least, most) = self.segments(piece, flight);
        let cwnd = u64::from(to.cwnd);
        match self.ca {
            LOSS => State::Loss,
            _ if is_shut && flight == 0 => State::ZeroWindow,
            _ if habits.paces => State::Unrecorded,
            CWR if least >= cwnd => State::Recovery,
            // What is under way is not known: some of it is lost or selectively acknowledged.
            CWR | DISORDER | RECOVERY if is_shut || unsent < self.mss || habits.queues => {
                State::Unrecorded
            }
            CWR | RECOVERY => State::Recovery,
            OPEN if least >= cwnd => piece.window(),
            OPEN if is_shut && most < cwnd => State::Rwnd,
            _ if is_shut || unsent < self.mss || habits.queues => State::Unrecorded,
            // Room for a segment in both windows, and yet nothing is sent: it waits until there is room
            // for a super-segment (`tcp_tso_should_defer`) in the lesser. Which that is has to hold for
            // all that may be under way.
            OPEN if room < cwnd.saturating_sub(most) * self.mss => State::Rwnd,
            OPEN if room < (cwnd - least) * self.mss => State::Unrecorded,
            _ => piece.window(),
        }
    }

    /// At least and at most this many segments are under way: where a call of write ends, and at its own
    /// ends, there may be a short one.
    fn segments(&self, piece: &Piece<'_>, flight: u64) -> (u64, u64) {
        if let Some(sample) = piece.own_sample() {
            return (sample.unacked, sample.unacked);
        }
        let acked = self.acked(piece);
        let calls = |bytes| self.ends.partition_point(|end| *end <= bytes) as u64;
        let short = calls(acked + flight) - calls(acked) + 1;
        (flight.div_ceil(self.mss), flight / self.mss + short + 1)
    }

    fn acked(&self, piece: &Piece<'_>) -> u64 {
        u64::from(piece.to.una.wrapping_sub(self.base))
    }
}

/// A part of the time between two segments, and what is known of all of that time.
struct Piece<'a> {
    /// When it begins.
    since: u64,
    /// Sent when all of that time began, and when it ended.
    sent_before: u64,
    sent: u64,
    /// Calls of write that had returned when it began.
    calls_before: usize,
    /// The last sample of that time.
    sample: Option<Sample>,
    /// The application's calls and `ca_state` stay as they are until it ends.
    is_last: bool,
    /// What the kernel has at its end, and has had since its beginning.
    to: &'a Probe,
}

impl Piece<'_> {
    /// The sample, if it is of this piece.
    fn own_sample(&self) -> Option<Sample> {
        self.sample.filter(|sample| self.is_last && sample.t >= self.since)
    }

    /// Whether it is so long that what was sent in it may have been sent by a timer, which has no record
    /// here if it sends something new: for the tail after two round trips (Linux v6.12
    /// `net/ipv4/tcp_output.c`, `tcp_schedule_loss_probe`), into a window that is nearly shut after the
    /// time of a retransmission (`tcp_check_probe_timer`).
    fn is_timers(&self) -> bool {
        let tail = 2_000 * u64::from(self.to.srtt_us);
        self.to.t - self.since >= tail.min(LEAST_RTO_NS)
    }

    /// The congestion window is full.
    const fn window(&self) -> State {
        if self.to.cwnd < self.to.ssthresh { State::CwndSlowStart } else { State::CwndAvoidance }
    }
}

/// From the last progress to a repetition by a timer. Behind the sender's FIN no progress is recorded.
fn timer_waits(end: &End) -> Vec<Span<State>> {
    let mut waits: Vec<Span<State>> = Vec::new();
    let ended = end.ended.unwrap_or(u64::MAX);
    for &t in end.retransmits.iter().take_while(|t| **t <= ended) {
        let ca = end.ca.iter().rev().find(|(at, _)| *at <= t).map_or(0, |(_, ca)| *ca);
        let before = end.probes.partition_point(|probe| probe.t <= t);
        let Some(since) = before.checked_sub(1).map(|at| end.probes[at].t) else { continue };
        let since = waits.last().map_or(since, |wait| since.max(wait.1));
        // Repetitions of an ACK's own call follow it within microseconds.
        if t.saturating_sub(since) < LEAST_TIMER_NS {
            continue;
        }
        let wait = match ca {
            // A sender that paces or queues repeats without an ACK, too.
            LOSS | RECOVERY if end.habits.paces || end.habits.queues => State::Unrecorded,
            LOSS => State::RtoWait,
            // RACK's timer for reordering (`tcp_rack_reo_timeout`), or an ACK's own.
            RECOVERY => continue,
            _ => State::TlpWait,
        };
        waits.push((since, t, wait));
    }
    waits
}

/// `enum tcp_ca_state` (Linux v6.12 `include/uapi/linux/tcp.h`).
const OPEN: u8 = 0;
const DISORDER: u8 = 1;
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

/// `TCP_RTO_MIN` (Linux v6.12 `include/net/tcp.h`), HZ/5.
const LEAST_RTO_NS: u64 = 200_000_000;
