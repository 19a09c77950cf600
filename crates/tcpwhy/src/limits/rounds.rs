//! Rounds, and what a run of them says that one wait cannot.
//!
//! A round starts at the first send, or at the ACK that first covers data sent in the current
//! round, and ends when `snd_una` exceeds the marker: `snd_nxt` just before the sends that ACK
//! releases (BBR's delivered-based round; it survives TSO, GRO and pacing).
//!
//! Waits that an ACK ended look alike whether the congestion window, the send buffer, an
//! application's window or the path's rate held the sender. Rounds tell them apart: does the
//! flight grow, does the round trip grow with it, does the rate?

use std::collections::VecDeque;

use super::afar::late_ack;
use super::decision::{Decision, Held, decision};
use super::piece::Edge;
use super::pulse::Pulses;
use super::queue::Outgrown;
use super::round::{Phase, Round, is_queue};
use super::spacing::shared;
use crate::report::State;

/// Rounds kept for decisions; a decision looks three rounds back and two ahead, a lid at all.
const KEPT: usize = 10;
/// The least send buffer lets so many full segments be in flight: half of its 4608 bytes is what a packet costs besides
/// (`SOCK_MIN_SNDBUF`, `include/net/sock.h`, v6.1).
const LEAST_BUFFER_SEGMENTS: u64 = 2;
/// What may let out full segments at even distances, as seen away from their sender.
pub(super) const ANY_CLOCK: &[State] = &[
    State::Pacing,
    State::LocalQdisc,
    State::CwndClamp,
    State::AppWindow,
    State::App,
    State::Sndbuf,
];
/// Flights that stay the same this many rounds have a lid (limits-method section 6: 4 rounds).
pub(super) const LID_ROUNDS: usize = 4;

/// A window that a loss has cut stands still for less. Linux v6.18 `tcp_cubic.c`, `bictcp_update`: the
/// curve is 410/1024 segments a second to the third around its plateau, so it takes 2.7 s from one
/// segment below it to one above; all others grow faster, or not at all.
const PLATEAU_NS: i64 = 3_000_000_000;

/// Flights that stay the same this many rounds have a lid where no loss has cut the window. Linux v6.18
/// `tcp_cubic.c`, `bictcp_update`: with nothing to regain a window that is used grows at least as Reno's would,
/// by a segment in 1.9 rounds (`beta_scale`), which would be four. Reno's grows by eight.
const UNCUT_LID_ROUNDS: u32 = 8;

/// The last rounds.
#[derive(Clone, Debug, Default)]
pub(crate) struct Rounds {
    pub(super) kept: VecDeque<Round>,
    /// The path, if it was full since the last loss.
    pub(super) outgrown: Option<Outgrown>,
    /// The newest rate, in bytes per second, that a loss did not change.
    pub(super) across_loss: Option<u64>,
    /// The newest rate, in bytes per second, at which a queue stood.
    pub(super) full_rate: Option<u64>,
}

impl Rounds {
    /// Takes over the room of `old`, which is done.
    pub(crate) fn reuse(&mut self, old: &mut Self) {
        core::mem::swap(&mut self.kept, &mut old.kept);
        self.kept.clear();
        self.outgrown = None;
        (self.across_loss, self.full_rate) = (None, None);
    }

    /// Closes a round.
    pub(crate) fn push(&mut self, round: &Round) {
        if self.kept.len() == KEPT {
            self.kept.pop_front();
        }
        self.kept.push_back(*round);
        self.outgrown =
            if round.loss { None } else { self.outgrown_at(self.kept.len() - 1).or(self.outgrown) };
        self.across_loss = self.rate_across_loss().or(self.across_loss);
    }

    /// Slow start turns out to have ended before round `number`.
    pub(crate) fn name_from(&mut self, number: u64, phase: Phase) {
        for round in self.kept.iter_mut().filter(|r| r.number >= number) {
            round.phase = phase;
        }
    }

    /// Rate of round `number`, in bytes per second.
    pub(crate) fn rate(&self, number: u64) -> Option<u64> {
        self.index(number).and_then(|at| self.kept[at].rate())
    }

    /// Number of the newest closed round.
    pub(crate) fn newest(&self) -> Option<u64> {
        self.kept.back().map(|r| r.number)
    }

    /// Whether packets stood in a queue throughout the newest round.
    pub(crate) fn is_queue_standing(&self, rtt_min: i64) -> bool {
        is_queue(self.standing_queue(rtt_min), rtt_min)
    }

    /// How long packets stood in queues in the newest round, at least.
    pub(super) fn standing_queue(&self, rtt_min: i64) -> i64 {
        self.kept.back().map_or(0, |round| round.standing_queue(rtt_min))
    }

    pub(super) fn index(&self, number: u64) -> Option<usize> {
        let first = self.kept.front()?.number;
        let at = usize::try_from(number.checked_sub(first)?).ok()?;
        // A round still open is judged by the last closed one.
        Some(at.min(self.kept.len() - 1))
    }

    /// Rounds around `at`: up to three before, two after.
    pub(super) fn around(&self, at: usize) -> impl Iterator<Item = &Round> {
        self.kept.range(at.saturating_sub(3)..(at + 3).min(self.kept.len()))
    }

    /// What held ack-released sends in round `number`; `rtt_min` is the path's least round trip.
    pub(crate) fn clocked(&self, number: u64, held: Held, rtt_min: i64) -> Decision {
        let Held { edge, by_data, past_pulse, passed_over } = held;
        let Some(at) = self.index(number) else {
            let either = &[State::CwndSlowStart, State::CwndAvoidance];
            return decision(State::Unknown, 30, either, 0);
        };
        let round = &self.kept[at];
        let queue = round.standing_queue(rtt_min);
        let queue_is_one = is_queue(queue, rtt_min);
        if let Some(lag) = round.local_queue(rtt_min) {
            return decision(State::LocalQdisc, 85, &[], lag);
        }
        if let Some(decision) = self.link_afar(at, edge, rtt_min) {
            return decision;
        }
        if !past_pulse && let Some(decision) = self.paced(at, queue, queue_is_one, false) {
            return decision;
        }
        if let Some(state) = edge.near().filter(|_| round.edge_flight >= round.flight) {
            return decision(state, 75, &[State::CwndAvoidance], queue);
        }
        if let Some(decision) = self.paced_afar(at, queue).filter(|_| !queue_is_one) {
            return decision;
        }

        // A queue that never emptied in a round kept the path's slowest link busy throughout.
        let never_empty = queue * 2 >= rtt_min && round.rtt_count >= 8;
        let is_full = round.is_answered_throughout()
            && (never_empty || self.is_rate_flat(at) || self.keeps_rate_across_loss(at));
        if queue_is_one && self.shared_link(at).is_some() {
            return shared(round.tap_at_sender, queue);
        }
        if queue_is_one && is_full {
            if self.is_rate_variable(at, rtt_min) {
                return decision(State::BandwidthVariable, 65, &[State::BandwidthExternal], queue);
            }
            return self.full_link(at, edge, rtt_min);
        }
        if self.outgrows_path(at) {
            return self.full_link(at, edge, rtt_min);
        }
        let below_window = passed_over || self.stays_below_window(at);
        if let Some(state) = edge.near().filter(|_| below_window || self.has_lid(at)) {
            return decision(state, 60, &[State::Sndbuf, State::AppWindow, State::App], queue);
        }
        if below_window || self.has_lid(at) {
            // On the sender's host a program's sends are seen to need no ACK.
            let is_little = round.flight_segments <= LEAST_BUFFER_SEGMENTS;
            if !by_data
                && !round.tap_at_sender
                && is_little
                && let Some(decision) = little_afar(self.pulses_near(at), queue)
            {
                return decision;
            }
            return lid(round, (edge, by_data, below_window), self.pulses_near(at), queue);
        }
        let has_clock = past_pulse && self.paced(at, queue, queue_is_one, false).is_some();
        window_of(round, has_clock, queue)
    }

    /// What held sends that came by themselves in round `number`.
    pub(crate) fn free(&self, number: u64, by_ack: bool, whole: bool, rtt_min: i64) -> Decision {
        let Some(at) = self.index(number) else {
            return decision(State::App, 60, &[State::Pacing], 0);
        };
        let round = &self.kept[at];
        if let Some(lag) = round.local_queue(rtt_min) {
            return decision(State::LocalQdisc, 85, &[], lag);
        }
        let queue = round.standing_queue(rtt_min);
        if let Some(decision) = self.link_afar(at, Edge::Far, rtt_min) {
            return decision;
        }
        if by_ack {
            return late_ack(queue);
        }
        if let Some(decision) = self.paced(at, queue, is_queue(queue, rtt_min), true) {
            return decision;
        }
        if let Some(decision) = self.paced_afar(at, 0).filter(|_| !is_queue(queue, rtt_min)) {
            return decision;
        }
        // Who fills the receiver's window has more to send, and need not have written it just then; what ends with a
        // whole segment is seldom the end of a write.
        let has_more = round.edge_flight > 0 && round.edge_flight >= round.flight;
        if whole || has_more {
            return decision(State::App, 60, &[State::Pacing], 0);
        }
        decision(State::App, 85, &[], 0)
    }

    /// Where the sender spaced its sends by a clock of its own: the pace is the limit, unless the
    /// path shows that it could not be faster, or the pulses end as writes do. Without such a clock
    /// only sends that came by themselves can be paced.
    fn paced(
        &self,
        at: usize,
        queue: i64,
        queue_is_one: bool,
        by_itself: bool,
    ) -> Option<Decision> {
        let pulses = self.pulses_near(at);
        let has_clock = pulses.are_even() || self.kept[at].is_smooth();
        if !pulses.are_own() || !(has_clock || by_itself && pulses.end_whole()) {
            return None;
        }
        Some(if has_clock && pulses.end_short() {
            decision(State::App, 65, &[State::Pacing], queue)
        } else if self.kept[at].shows_no_clock() {
            self.kept[at].paced_afar(queue)
        } else if queue_is_one && self.is_rate_flat(at) {
            decision(State::BandwidthSelfQueue, 75, &[State::Pacing], queue)
        } else if self.kept[at].fills_window() {
            // What a pace still holds has filled the window already.
            let others = &[State::LocalQdisc, State::CwndSlowStart, State::App, State::Sndbuf];
            decision(State::Pacing, 60, others, queue)
        } else if has_clock && pulses.are_unfinished() {
            decision(State::Pacing, 80, &[State::LocalQdisc], queue)
        } else {
            decision(State::Pacing, 60, &[State::LocalQdisc, State::App, State::Sndbuf], queue)
        })
    }

    /// Whether the last rounds look like a pace that the sender itself set.
    pub(super) fn are_paced(&self) -> bool {
        let pulses = Pulses::sum(self.kept.iter().filter(|r| !r.loss).map(|r| &r.pulses));
        pulses.are_own() && pulses.are_even_and_whole()
    }

    /// The pulses of the rounds around `at`, each of which may hold just one or two.
    fn pulses_near(&self, at: usize) -> Pulses {
        let near = self.kept.range(at.saturating_sub(6)..(at + 3).min(self.kept.len()));
        Pulses::sum(near.filter(|r| !r.loss).map(|r| &r.pulses))
    }

    /// Whether the round at `at` is one of a run whose flights are one to the segment: a lid, or a window
    /// that hardly grows. Or they swing, and it is a lid.
    pub(super) fn stands_still(&self, at: usize) -> bool {
        let later = self.kept.range(at..).zip(0..);
        self.has_lid(at)
            || self.swings(at)
            || later.into_iter().any(|(r, n)| r.still.1 >= LID_ROUNDS as u32 && n < r.still.1)
    }

    /// Whether flights around `at` go up and down between two sizes without a loss, as a send buffer lets them that
    /// takes more of large packets than of small ones, and no congestion window does. Ours: by an eighth.
    fn swings(&self, at: usize) -> bool {
        (at.saturating_sub(3)..=at).any(|from| {
            let mut four = self.kept.iter().skip(from).take(4);
            let (Some(a), Some(b), Some(c), Some(d)) =
                (four.next(), four.next(), four.next(), four.next())
            else {
                return false;
            };
            let are_one = |a: &Round, b: &Round| a.flight_segments.abs_diff(b.flight_segments) <= 1;
            let apart = a.flight_segments.abs_diff(b.flight_segments);
            let has_loss = [a, b, c, d].iter().any(|round| round.loss);
            !has_loss
                && are_one(a, c)
                && are_one(b, d)
                && apart * 8 > a.flight_segments.max(b.flight_segments)
        })
    }

    /// Whether something else than the congestion window stopped the flight of `at`: in slow start it doubles.
    /// Two rounds in a row tell, or two of three, for a send buffer takes more of large packets than of small ones,
    /// and swings until their sizes settle; but a flight that the receiver's window or the end of what was
    /// written stopped is no swing.
    fn stays_below_window(&self, at: usize) -> bool {
        let below = |at: usize| self.kept.get(at).filter(|round| round.is_below_window());
        let swings = |from: usize| {
            let is_free = self.kept.iter().skip(from + 1).take(2).any(|round| round.free > 0);
            !is_free
                && [from, from + 2]
                    .into_iter()
                    .all(|end| below(end).is_some_and(|round| round.edge_flight == 0))
        };
        if self.kept[at].is_below_window() {
            let near = [at.checked_sub(1), Some(at + 1)];
            near.into_iter().flatten().any(|near| below(near).is_some())
                || at.checked_sub(2).is_some_and(swings)
                || swings(at)
        } else {
            self.kept[at].phase == Phase::SlowStart && at.checked_sub(1).is_some_and(swings)
        }
    }

    /// Whether flights stand still without a loss: a run of rounds around `at` of one flight, or
    /// of one number of segments sent, to the segment. Before the first loss four such rounds are
    /// a lid, because an open window doubles, or in congestion avoidance grows by a segment (Reno)
    /// or a twentieth (CUBIC, `bictcp_update`). After a loss the window itself may stand still that long
    /// (CUBIC's plateau), but not for seconds.
    fn has_lid(&self, at: usize) -> bool {
        let this = &self.kept[at];
        let (span, rounds) = this.still;
        if span > PLATEAU_NS && rounds >= LID_ROUNDS as u32 {
            return true;
        }
        if this.phase == Phase::Uncut {
            let run = self.kept.range(at..).zip(0..).take_while(|(r, _)| r.phase == Phase::Uncut);
            return run.into_iter().any(|(r, n)| r.still.1 >= UNCUT_LID_ROUNDS.max(n + 1));
        }
        if !matches!(this.phase, Phase::SlowStart | Phase::Cached) {
            return false;
        }
        let is_alike = |of: fn(&Round) -> u64| {
            let alike =
                |r: &&Round| of(r).abs_diff(of(this)) <= 1 && !r.loss && r.phase == this.phase;
            let before = self.kept.range(..at).rev().take_while(alike).count();
            before + self.kept.range(at..).take_while(alike).count() >= LID_ROUNDS
        };
        is_alike(|r| r.flight_segments) || is_alike(|r| r.segments)
    }
}

/// A lid on the flight that is not the congestion window: these packets do not tell the send
/// buffer, an application's window and one write a round trip apart.
fn lid(
    round: &Round,
    (edge, by_data, below_window): (Edge, bool, bool),
    pulses: Pulses,
    queue: i64,
) -> Decision {
    use State::{App, AppWindow, CwndAvoidance, CwndClamp, LocalQdisc, Pacing, RwndCap, Sndbuf};
    let tap_at_sender = round.tap_at_sender;
    // A pace keeps a flight as still; what it spaces pauses for less than half a round, a full
    // window for most of it, unless it just fills the path. Ours: a half, made with one pace of three pulses a round.
    let has_no_pause = round.tap_gap * 2 <= round.end - round.start;
    // ACKs that a pace spread come as evenly: it may seem that they let the next ones out.
    let may_be_paced = round.is_smooth() || pulses.are_even_and_whole() && has_no_pause;
    let (state, confidence, alternative): (_, _, &'static [State]) = match (by_data, below_window) {
        (true, _) => (AppWindow, 75, &[Sndbuf]),
        // From afar a flight that fills the receiver's window seems smaller by what stands in queues.
        (_, _) if !tap_at_sender && has_no_pause => {
            (Sndbuf, 50, &[Pacing, LocalQdisc, AppWindow, App, CwndClamp, RwndCap])
        }
        (_, true) if !tap_at_sender => (Sndbuf, 60, &[AppWindow, App, CwndClamp, RwndCap]),
        (_, false) if !tap_at_sender => (Sndbuf, 50, &[CwndClamp, AppWindow, App, RwndCap]),
        _ if edge.may_be_near() && may_be_paced => {
            (Sndbuf, 50, &[Pacing, LocalQdisc, RwndCap, AppWindow, App, CwndClamp])
        }
        _ if edge.may_be_near() => (Sndbuf, 50, &[RwndCap, AppWindow, App, CwndClamp]),
        (_, true) if may_be_paced => (Sndbuf, 60, &[Pacing, LocalQdisc, AppWindow, App, CwndClamp]),
        _ if may_be_paced => {
            (Sndbuf, 60, &[Pacing, LocalQdisc, AppWindow, App, CwndClamp, CwndAvoidance])
        }
        (_, true) => (Sndbuf, 80, &[AppWindow, App, CwndClamp]),
        // The window of a controller that watches delays may stand by itself.
        (_, false) if round.phase == Phase::Uncut => {
            (Sndbuf, 60, &[CwndClamp, AppWindow, App, CwndAvoidance])
        }
        (_, false) => (Sndbuf, 60, &[CwndClamp, AppWindow, App]),
    };
    decision(state, confidence, alternative, queue)
}

/// What keeps flights as little as few buffers do, as seen away from the sender: a program that writes no more, a
/// clamped window, or Linux's pace, of two segments at least (`tcp_tso_autosize`, v6.1). Whether an ACK let them go
/// does not show there.
fn little_afar(pulses: Pulses, queue: i64) -> Option<Decision> {
    use State::{App, AppWindow, Sndbuf, Unknown};
    if pulses.all_end_short() {
        return Some(decision(App, 60, &[Sndbuf, AppWindow], queue));
    }
    pulses.are_even_and_whole().then(|| decision(Unknown, 30, ANY_CLOCK, queue))
}

/// The congestion window held `round`, which has a clock of its own or not.
fn window_of(round: &Round, has_clock: bool, queue: i64) -> Decision {
    let state = match round.phase {
        Phase::SlowStart => State::CwndSlowStart,
        Phase::AfterLoss => State::CwndPostLoss,
        Phase::AfterIdle => State::CwndAfterIdle,
        // Told by elimination: no loss, no delay, no train of ACKs ended slow start. Linux since
        // 5.6 remembers no threshold unless asked to (`tcp_no_ssthresh_metrics_save`).
        Phase::Cached => {
            let others = &[State::CwndAvoidance, State::Sndbuf];
            return decision(State::CwndCachedSsthresh, 55, others, queue);
        }
        // A pacing sender fills its window and its buffer alike: with pauses of its clock.
        Phase::Avoidance | Phase::Uncut if has_clock => {
            return decision(State::CwndAvoidance, 60, &[State::Sndbuf], queue);
        }
        // It stands for longer than CUBIC's plateau does in most of its rounds: there may be a lid.
        Phase::Avoidance | Phase::Uncut
            if round.still.0 > PLATEAU_NS / 2 && round.still.1 >= LID_ROUNDS as u32 =>
        {
            let others = &[State::Sndbuf, State::CwndClamp, State::AppWindow, State::App];
            return decision(State::CwndAvoidance, 60, others, queue);
        }
        Phase::Avoidance | Phase::Uncut => State::CwndAvoidance,
        Phase::Unseen => {
            let either = &[State::CwndSlowStart, State::CwndAvoidance];
            return decision(State::Unknown, 30, either, queue);
        }
    };
    decision(state, if round.rtt_count > 0 { 90 } else { 70 }, &[], queue)
}

#[cfg(test)]
mod tests;
