//! How pieces are decided: at the next send, by the rounds after, at the end.

use super::decision::{Decision, Held};
use super::evidence::Evidence;
use super::ledger::Interval;
use super::piece::{Base, Edge, Piece};
use super::round::Phase;
use super::sends::Release;
use super::trips;
use super::unseen::MAY_BE_FULL;
use super::waits::Nagled;
use super::walker::{Sends, Walker};
use super::window::Filled;
use crate::flow::event::Event;
use crate::report::State;

/// What stands this long below TCP stands in a queue: the sender's own time is known to the tick of
/// its time stamps, which is 1 ms in Linux (`TCP_TS_HZ`).
pub(super) const OWN_QUEUE_NS: i64 = 1_000_000;
/// ACKs in a row that let nothing out are no delayed release of a full window: Linux waits for at
/// most some to fill a super-segment (`tcp_tso_should_defer`). Ours: not measured.
const UNANSWERED: usize = 4;
/// Pieces a decision may wait for (design: decisions lag by at most 65,536 segments).
const MAX_PIECES: usize = 65_536;

/// What an open wait was for, by what it was taken for while it lasted.
struct Decided {
    flying: Base,
    idle: Base,
    shut: Base,
}

impl Walker {
    /// New data at `at` ends the open wait.
    pub(crate) fn settle_wait(&mut self, release: Release, event: &Event, at: i64) {
        let by_ack = matches!(release, Release::Ack { .. });
        let from = if by_ack { self.released_at(at) } else { at };
        let upto = self.split_at(from);
        // Before it stood still, or waited for a timer, it had sent all there was.
        let is_quiet = |at: usize| match self.waits.pieces[at].base {
            Base::Quiet => true,
            Base::Fixed { state, .. } => matches!(state, State::TlpWait | State::RtoWait),
            _ => false,
        };
        let quiet = (self.waits.from..upto).any(is_quiet);
        // Where a window was shut that had been full before, it was at no time open between.
        let stays_full = (self.waits.from..upto).any(|at| self.waits.pieces[at].base == Base::Shut)
            && !self.had_room(event, self.stop.evidence.room);
        let flying = match release {
            _ if self.waits.blind => {
                Base::Fixed { state: State::Unknown, confidence: 30, alternative: &[] }
            }
            _ if self.is_held_by_own_queue(from) => {
                self.stop.evidence.queue_ns = self.sends.lag;
                Base::sure(State::LocalQdisc, 80)
            }
            Release::Ack { by_data } if self.is_held_by_nagle(release, event) => {
                let by_nagle = self.nagle_wait(event, at);
                let otherwise = self.blocked(by_data, event, at);
                let since = self.waits.pieces.get(self.waits.from).map_or(from, |p| p.start);
                self.waits.nagled = Some(Nagled { since, by_nagle, otherwise });
                by_nagle
            }
            Release::Ack { by_data } => self.blocked(by_data, event, at),
            Release::Window => self.window_wait(92, &[]),
            Release::Burst | Release::Free if stays_full => self.window_wait(92, &[]),
            Release::Burst | Release::Free if quiet => self.flight_before(event, at),
            Release::Free if let Some(probed) = self.probe_like_new(event, at) => probed,
            Release::Burst | Release::Free => self.held_until_late(event, at),
        };
        let shut = if by_ack || release == Release::Window || self.waits.probed {
            Base::sure(State::ZeroWindow, 95)
        } else {
            Base::Fixed { state: State::ZeroWindow, confidence: 60, alternative: &[State::App] }
        };
        let idle = if quiet { self.quiet_wait(event, at) } else { flying };
        if self.stop.evidence.in_flight > 0 {
            self.waits.last_flying = flying;
        }
        self.decide(upto, event.frame, Decided { flying, idle, shut });
        // What follows the ACK that released the send belongs to the wait after the send.
        self.waits.begin_next_at(upto);
        self.releases.acks.clear();
        self.waits.probed = false;
        self.waits.merge_settled();
        self.flush(false);
    }

    /// Books the pieces of the open wait before `upto`, which the send in `frame` ended.
    fn decide(&mut self, upto: usize, frame: u64, Decided { flying, idle, shut }: Decided) {
        // The replay has caught up with the stop since that was taken down.
        let cwnd = self.replay.cwnd(self.stop.evidence.segments).best.unwrap_or(0);
        self.stop.evidence.cwnd = cwnd;
        for at in self.waits.from..upto {
            let piece = &mut self.waits.pieces[at];
            if piece.base.is_open() {
                let stop = match piece.base {
                    Base::Flying => self.stop.evidence,
                    _ => piece.evidence,
                };
                piece.evidence = Evidence { last_frame: frame, cwnd, ..stop };
            }
            piece.base = match piece.base {
                Base::Flying => flying,
                Base::Quiet if self.waits.blind => flying,
                Base::Quiet => idle,
                Base::Shut => shut,
                decided => decided,
            };
        }
    }

    /// Whether the wait up to `until` was for the queue on the sender's own host: what was sent last
    /// stood in it, and had not left when the next came. TCP keeps a millisecond's worth or two
    /// super-segments there (`tcp_small_queue_check`), and sends more as that leaves.
    ///
    /// A window that is full lets nothing out either, whatever stands in queues. And TCP is not told
    /// of what an emulated delay holds (`netem_enqueue` orphans it), nor of what stands on another
    /// host: behind a delay, only ACKs of no repair that passed without letting anything out show it.
    fn is_held_by_own_queue(&self, until: i64) -> bool {
        let Sends { last, lag, .. } = self.sends;
        let stop = &self.stop.evidence;
        let is_near = self.terms.own_way <= OWN_QUEUE_NS;
        let passed = || self.releases.acks.iter().filter(|ack| ack.at < until).count();
        self.terms.tap_at_sender
            && lag > OWN_QUEUE_NS
            && last + lag >= until
            && stop.room >= self.terms.mss
            && !self.fills_cwnd()
            && (is_near || self.repairs.current() == 0 && passed() >= UNANSWERED)
    }

    /// When the send at `at` was released: by the last ACK before it where those before are seen to have let nothing out,
    /// on the sender's own host. Behind a delay there, and elsewhere, which of those that came together did it does not show.
    fn released_at(&self, at: i64) -> i64 {
        let is_near = self.terms.own_way <= OWN_QUEUE_NS;
        match self.releases.acks.back() {
            Some(last) if self.terms.tap_at_sender && is_near => last.at,
            _ => self.cluster_start(at),
        }
    }

    /// The first of the ACKs that arrived together and released the send at `at`.
    fn cluster_start(&self, at: i64) -> i64 {
        let tolerance = self.tolerance();
        self.releases.acks.iter().map(|ack| ack.at).find(|ack| at - ack <= tolerance).unwrap_or(at)
    }

    /// Index of the first piece of the open wait at or after `from`; splits the one across it.
    fn split_at(&mut self, from: i64) -> usize {
        let mut at = self.waits.pieces.len();
        while at > self.waits.from && self.waits.pieces[at - 1].end > from {
            at -= 1;
        }
        if let Some(piece) = self.waits.pieces.get_mut(at)
            && piece.start < from
        {
            let tail = Piece { start: from, ..*piece };
            piece.end = from;
            self.waits.pieces.insert(at + 1, tail);
            return at + 1;
        }
        at
    }

    /// Why a send had to wait for the ACK that released it.
    fn blocked(&self, by_data: bool, event: &Event, at: i64) -> Base {
        let stop = &self.stop.evidence;
        let late = at - self.sends.last - self.least_rtt();
        let short = i64::from(event.len) < self.terms.mss;
        if self.sends.new.short
            && short
            && stop.in_flight < 2 * self.terms.mss
            && trips::is_delayed_ack(late)
        {
            return Base::sure(State::NagleDelack, 85);
        }
        // Less than a segment in flight fills no window and no buffer: Nagle's algorithm held the
        // next short segment for the ACK, or the application wrote once a round trip.
        if self.sends.new.short
            && short
            && stop.in_flight < self.terms.mss
            && self.had_room(event, stop.room)
        {
            return Base::Fixed {
                state: State::NagleDelack,
                confidence: 60,
                alternative: &[State::App],
            };
        }
        if self.is_window_proven() {
            return self.window_wait(75, &[State::CwndAvoidance]);
        }
        let cwnd_full = self.fills_cwnd();
        let is_edge_told = self.is_edge_told();
        if !self.had_room(event, stop.room) && !cwnd_full {
            return if is_edge_told { self.window_wait(92, &[]) } else { MAY_BE_FULL };
        }
        let edge = match stop.room < stop.window / 3 && !cwnd_full {
            false => Edge::Far,
            true if is_edge_told => Edge::Near(self.window_state()),
            true => Edge::PerhapsNear,
        };
        let past_pulse = self.sends.new.is_pulse_missed(at);
        let passed_over = self.has_passed_over_acks(at);
        Base::Clocked { round: self.stop.round, edge, by_data, past_pulse, passed_over }
    }

    /// Whether ACKs before those that released the send at `at` had taken more than a third of the flight, and let
    /// nothing out: a congestion window that was full lets out what such ACKs open. Linux waits for no more than a third of
    /// the window to open (`tcp_tso_should_defer`, `tcp_tso_win_divisor`). While it mends a loss it waits for the flight to
    /// fall to the window that was cut.
    fn has_passed_over_acks(&self, at: i64) -> bool {
        let cluster = self.cluster_start(at);
        let before = self.releases.acks.iter().rev().find(|ack| ack.at < cluster);
        let flight = self.stop.evidence.in_flight;
        // Two segments more may go unnoticed where ACKs come in pairs.
        let taken = before.map_or(0, |ack| ack.una - (self.flight.nxt - flight));
        self.repairs.current() == 0
            && self.growth.lost_at.is_none()
            && (taken - 2 * self.terms.mss) * 3 > flight
    }

    /// A send that came by itself, though the last stop was at a full window: the window held it
    /// until an ACK came, and the host was late to use that. Later than a tenth of a round trip,
    /// the application was.
    fn held_until_late(&self, event: &Event, at: i64) -> Base {
        let full = !self.had_room(event, self.stop.evidence.room)
            || self.fills_cwnd()
            || self.is_window_proven();
        let late =
            self.releases.acks.back().is_some_and(|ack| at - ack.at <= self.rtt_scale() / 10);
        let by_ack = self.may_be_late_acks(at);
        if full && (late || by_ack) {
            self.blocked(self.releases.by_data, event, at)
        } else {
            Base::Free { round: self.stop.round, by_ack, whole: !self.sends.new.short }
        }
    }

    /// Whether the last stop was at the congestion window, as far as that is known.
    pub(super) fn fills_cwnd(&self) -> bool {
        let segments = self.stop.evidence.segments;
        self.replay.cwnd(segments).high.is_some_and(|high| segments >= high)
    }

    /// Watches for a restart after idling: `event` is new data, not yet in flight, which resumed at
    /// `resumed_at` what had paused.
    pub(crate) fn watch_idle(
        &mut self,
        event: &Event,
        segments: u64,
        release: Release,
        resumed_at: Option<i64>,
    ) {
        let by_ack = matches!(release, Release::Ack { .. } | Release::Window);
        if self.pauses.watch.is_judging()
            && !self.pauses.watch.extend(event, segments, self.terms.mss, by_ack)
        {
            // A first flight that the receiver's window ended tells nothing of the congestion window.
            self.judge_idle(by_ack && self.had_room(event, self.stop.evidence.room));
        }
        let Some(at) = resumed_at else { return };
        self.replay_now();
        if self.pauses.watch.on_send(at, event, self.sends.last, self.window_before_pause()) {
            self.pauses.start = self.flight.segments_to_nxt;
            self.pauses.round = self.book.open.number;
            self.pauses.watch.extend(event, segments, self.terms.mss, false);
        }
    }

    /// The congestion window before a pause: by the replay if it still holds, else at least the
    /// largest flight.
    fn window_before_pause(&self) -> u64 {
        self.replay.cwnd(0).high.unwrap_or(0).max(self.pauses.largest_flight)
    }

    fn judge_idle(&mut self, full: bool) {
        let initial = self.initial.filter(|i| i.full == Some(true)).map(|i| i.segments);
        if let Some(restarted) = self.pauses.watch.judge(full, initial) {
            // `tcp_current_ssthresh`: three quarters of the window, unless there is no threshold yet.
            let share = if self.growth.exit.is_some() { 3 } else { 4 };
            self.growth.regain = Some(restarted.before * share / 4);
            self.window.filled = Filled::default();
            self.book.closed.name_from(self.pauses.round, Phase::AfterIdle);
            if self.growth.exit.is_none() {
                let una = self.pauses.start;
                self.replay.start(una, una + restarted.segments, full);
            }
        }
    }

    /// Books what can be decided; everything if `all`.
    pub(crate) fn flush(&mut self, all: bool) {
        // Rounds stay as they are meanwhile, and what they tell of pieces alike.
        let mut told = [None, None];
        while let Some(piece) = self.waits.pieces.front() {
            let forced = all || self.waits.pieces.len() > MAX_PIECES;
            if !forced && (self.waits.suspect.is_some() || self.waits.nagled.is_some()) {
                break;
            }
            if !forced && (self.waits.from == 0 || !self.is_ripe(piece)) {
                break;
            }
            let Some(piece) = self.waits.pieces.pop_front() else { break };
            self.waits.from = self.waits.from.saturating_sub(1);
            self.book(&piece, &mut told);
        }
    }

    fn is_ripe(&self, piece: &Piece) -> bool {
        if piece.end > self.book.open.start || self.repairs.is_open(piece.episode) {
            return false;
        }
        match piece.base {
            Base::Clocked { round, .. } | Base::Free { round, .. } => {
                self.book.closed.newest().is_some_and(|newest| newest >= round + 2)
            }
            _ => true,
        }
    }

    /// Books `piece`; `told` keeps what rounds told of the last one an ACK ended and the last one that
    /// ended by itself.
    fn book(&mut self, piece: &Piece, told: &mut [Option<(Base, Decision)>; 2]) {
        let mut evidence = piece.evidence;
        let least = self.least_rtt();
        let (mut state, mut confidence, mut alternative) = match piece.base {
            Base::Fixed { state, confidence, alternative } => (state, confidence, alternative),
            Base::Clocked { round, edge, by_data, past_pulse, passed_over } => {
                let held = Held { edge, by_data, past_pulse, passed_over };
                let decision = known(&mut told[0], piece.base, || {
                    self.book.closed.clocked(round, held, least)
                });
                evidence.queue_ns = decision.queue;
                let by_window =
                    matches!(decision.state, State::CwndPostLoss | State::CwndAvoidance);
                if by_window && self.repairs.are_policed() {
                    (State::BandwidthPolicer, 75, &[State::CwndPostLoss] as &[_])
                } else {
                    (decision.state, decision.confidence, decision.alternative)
                }
            }
            Base::Free { round, by_ack, whole } => {
                let decision = known(&mut told[1], piece.base, || {
                    self.book.closed.free(round, by_ack, whole, least)
                });
                evidence.queue_ns = decision.queue;
                (decision.state, decision.confidence, decision.alternative)
            }
            Base::Flying => (State::Unknown, 30, &[State::LastFlight, State::App] as &[_]),
            Base::Quiet => (State::IdleAppThink, 50, &[State::IdlePeerThink] as &[_]),
            Base::Shut => (State::ZeroWindow, 80, &[] as &[_]),
        };
        if self.is_repairs(piece, state)
            && let Some(repair) = self.repairs.verdict(piece.episode)
        {
            (state, confidence, alternative) = (repair, 90, &[]);
        }
        if self.terms.unanswered {
            (state, confidence, alternative) = self.told_alone(piece, state);
        }
        if let Base::Clocked { round, .. } | Base::Free { round, .. } = piece.base
            && matches!(
                state,
                State::BandwidthSelfQueue
                    | State::BandwidthExternal
                    | State::BandwidthPolicer
                    | State::BandwidthVariable
            )
        {
            self.book.note_path_rate(round, state);
        }
        // What became larger since was not at its maximum.
        if state == State::RwndCap && self.window.has_grown_since(piece.end) {
            state = State::RwndAutotune;
        }
        self.name_rounds(piece, state);

        let end = piece.end + self.shift_in;
        let from = self.ledger.cursor();
        self.ledger.book(Interval { start: 0, end, state, confidence, alternative, evidence });
        self.transfers.last_until(self.gone_on_at());
        self.transfers.share(from, self.ledger.cursor(), state, self.shift_in);
    }

    /// Whether a repair is what `piece` waited for if it fell into one, though else it would be `state`.
    fn is_repairs(&self, piece: &Piece, state: State) -> bool {
        // A sender with a clock of its own keeps to it in a repair. Where that does not show, none is proven.
        let by_clock = matches!(piece.base, Base::Free { .. })
            && match state {
                State::Pacing => true,
                State::BandwidthSelfQueue => self.terms.sees_queues,
                _ => false,
            };
        let by_rounds =
            matches!(piece.base, Base::Clocked { .. } | Base::Free { .. } | Base::Flying);
        // A receiver's window that stays full in a repair is a limit of its own, if its size is known.
        let was_full = (!piece.at_edge || self.terms.shift_guessed)
            && matches!(state, State::RwndCap | State::RwndAutotune | State::RwndReader);
        (by_rounds && !by_clock) || was_full || state == State::LastFlight
    }

    /// Rounds whose last send lies before the end of `piece` were limited by its state.
    fn name_rounds(&mut self, piece: &Piece, state: State) {
        while let Some(listed) = self.book.listed.get_mut(self.book.next_unnamed) {
            if listed.stopped_at >= piece.end {
                break;
            }
            listed.name(state);
            self.book.next_unnamed += 1;
        }
    }

    /// The capture ends at `end` (time of the tap, relative); `closed` if the connection did.
    pub(crate) fn finish(&mut self, end: i64, closed: bool) {
        self.take_stop();
        self.advance(end - self.shift_in, self.frame);
        self.replay_batch(i64::MAX);
        if self.book.open.sends > 0 {
            self.book.open.cwnd = self.replay.cwnd(self.book.open.flight_segments);
            self.book.open.phase = self.book.open.before_loss.unwrap_or(self.phase());
            let last = self.flight.una.max(self.book.marker);
            self.book.marker = last;
            let at = if self.flight.outstanding() == 0 {
                self.progress.done.max(self.book.open.start)
            } else {
                self.now
            };
            self.close_round(at);
        }
        self.judge_idle(false);
        let done = self.flight.outstanding() == 0;
        // With data in flight at the end, nobody knows what would have released the next send; if
        // all before it waited for one thing, this did too.
        let rest =
            if done || closed { Base::sure(State::LastFlight, 95) } else { self.waits.last_flying };
        for piece in self.waits.pieces.range_mut(self.waits.from..) {
            if piece.base == Base::Flying {
                piece.base = rest;
            }
        }
        if done && self.handshake.is_over {
            self.relabel(self.progress.done, Base::sure(State::Closing, 99));
        }
        self.flush(true);
        self.transfers.last_until(self.gone_on_at());
        self.transfers.settle();
        let state = self.ledger.last;
        let state = if self.ledger.cursor() == 0 {
            State::Unknown
        } else if done {
            State::Closing
        } else {
            state
        };
        self.ledger.close(end, state);
    }
}

/// What was told of `base`, if that was asked for last.
fn known(
    told: &mut Option<(Base, Decision)>,
    base: Base,
    ask: impl FnOnce() -> Decision,
) -> Decision {
    match told {
        Some((last, decision)) if *last == base => *decision,
        _ => told.insert((base, ask())).1,
    }
}

#[cfg(test)]
mod tests;
