//! How pieces are decided: at the next send, by the rounds after, at the end.

use super::Walker;
use crate::clocks::StackTime;
use crate::flow::event::Event;
use crate::limits::account::due::FullLink;
use crate::limits::account::ledger::Interval;
use crate::limits::account::piece::{Base, Piece};
use crate::limits::account::waits::Nagled;
use crate::limits::evidence::Evidence;
use crate::limits::near::Near;
use crate::limits::rule::rivals::Seen;
use crate::limits::rule::{self, Verdict};
use crate::limits::sender::ended::Lasted;
use crate::limits::sense::{PIECES, ROUNDS_AFTER};
use crate::limits::wait::{Release, Wait};
use crate::report::State;

/// Final reason of an open wait, one per provisional kind.
struct Decided {
    flying: Base,
    idle: Base,
    shut: Base,
}

impl Walker {
    /// New data at `at` ends the open wait.
    pub(crate) fn settle_wait(&mut self, release: Release, event: &Event, at: StackTime) {
        let by_ack = matches!(release, Release::Ack { .. });
        let until = if by_ack { self.sender.released_at(at) } else { at };
        let upto = self.split_at(until);
        let open = || self.waits.pieces.range(self.waits.from..upto);
        // Before it stood still, or waited for a timer, it had sent all there was.
        let was_quiet = open().any(|piece| match piece.base {
            Base::Quiet => true,
            Base::Told(told) => matches!(told.state, State::TlpWait | State::RtoWait),
            _ => false,
        });
        let was_shut = open().any(|piece| piece.base == Base::Shut);
        let lasted = Lasted { until, was_quiet, was_shut };
        let wait = self.sender.wait_until(release, (event, at), lasted);
        let flying = told(&wait);
        if wait.behind_short.is_some() && !wait.is_blind && !wait.in_own_queue {
            let since = self.waits.pieces.get(self.waits.from).map_or(until, |p| p.start);
            let otherwise = told(&Wait { behind_short: None, ..wait });
            self.waits.nagled = Some(Nagled { since, by_nagle: flying, otherwise });
        }
        if wait.may_be_lost_tail {
            self.sender.note_suspect(event, at);
        }
        if wait.in_own_queue && !wait.is_blind {
            self.sender.stop.evidence.queue_ns = self.sender.sends.lag;
        }
        if self.sender.stop.evidence.in_flight > 0 {
            self.waits.last_flying = flying;
        }
        let idle = rule::quiet(&wait).filter(|_| was_quiet).map_or(flying, Base::Told);
        let shut = Base::Told(rule::window::shut(&wait));
        self.decide(upto, event.frame, Decided { flying, idle, shut });
        // What follows the ACK that released the send belongs to the wait after the send.
        self.waits.begin_next_at(upto);
        self.sender.releases.acks.clear();
        self.sender.has_probed = false;
        self.waits.merge_settled();
        self.flush(false);
    }

    /// Books the pieces of the open wait before `upto`, which the send in `frame` ended.
    fn decide(&mut self, upto: usize, frame: u64, Decided { flying, idle, shut }: Decided) {
        // The replay has caught up with the stop since that was taken down.
        let cwnd = self.sender.replay.cwnd(self.sender.stop.evidence.segments).best.unwrap_or(0);
        self.sender.stop.evidence.cwnd = cwnd;
        for at in self.waits.from..upto {
            let piece = &mut self.waits.pieces[at];
            if piece.base.is_open() {
                let stop = match piece.base {
                    Base::Flying => self.sender.stop.evidence,
                    _ => piece.evidence,
                };
                piece.evidence = Evidence { last_frame: frame, cwnd, ..stop };
            }
            piece.base = match piece.base {
                Base::Flying => flying,
                Base::Quiet => idle,
                Base::Shut => shut,
                decided => decided,
            };
        }
    }

    /// Index of the first piece of the open wait at or after `from`; splits the one across it.
    fn split_at(&mut self, from: StackTime) -> usize {
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

    /// Books what can be decided; everything if `all`.
    pub(crate) fn flush(&mut self, all: bool) {
        // Rounds stay as they are meanwhile, and what they tell of pieces alike.
        let mut told = None;
        while let Some(piece) = self.waits.pieces.front() {
            let forced = all || self.waits.pieces.len() > PIECES;
            if !forced && (self.sender.suspect.is_some() || self.waits.nagled.is_some()) {
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
        if piece.end > self.sender.book.open.start
            || self.sender.repairs.episodes.is_open(piece.episode)
        {
            return false;
        }
        match piece.base {
            Base::Untold(wait) => self.sender.book.closed.newest().is_some_and(|newest| {
                newest >= wait.round + ROUNDS_AFTER as u64
                    && !self.sender.growth.is_undecided(wait.round, newest)
            }),
            _ => true,
        }
    }

    /// Books `piece`; `told` is what rounds told of the last one that they were asked about.
    fn book(&mut self, piece: &Piece, told: &mut Option<(Wait, Verdict, i64)>) {
        let mut evidence = piece.evidence;
        let mut verdict = match piece.base {
            Base::Told(verdict) => verdict,
            Base::Untold(wait) => {
                let (verdict, queue) = match *told {
                    Some((last, verdict, queue)) if last == wait => (verdict, queue),
                    _ => {
                        let near = Near::new(
                            &self.sender.book.closed,
                            wait.round,
                            self.sender.least_rtt(),
                        );
                        let verdict = rule::by_rounds(&wait, &near);
                        let queue = near.queue_of(verdict.state);
                        *told = Some((wait, verdict, queue));
                        (verdict, queue)
                    }
                };
                evidence.queue_ns = queue;
                self.unless_policed(&wait, verdict)
            }
            Base::Flying => Verdict::unknown().seen(Seen::StillOpen),
            Base::Quiet => Verdict::possible(State::IdleAppThink).seen(Seen::StillOpen),
            Base::Shut => Verdict::likely(State::ZeroWindow),
        };
        if self.is_repairs(piece, verdict.state)
            && let Some(repair) = self.sender.repairs.episodes.verdict(piece.episode)
        {
            verdict = self.clock_in(piece, repair).unwrap_or(Verdict::shown(repair));
        }
        if self.sender.terms.unanswered {
            verdict =
                rule::unseen::alone(verdict.state, self.sender.terms.side == 0, piece.episode != 0);
        }
        let Verdict { mut state, sure, alternative } = verdict;
        if let Base::Untold(wait) = piece.base
            && matches!(
                state,
                State::BandwidthSelfQueue
                    | State::BandwidthExternal
                    | State::BandwidthPolicer
                    | State::BandwidthVariable
            )
        {
            self.sender.book.note_path_rate(wait.round, state);
        }
        // What became larger since was not at its maximum.
        if state == State::RwndCap && self.sender.window.has_grown_since(piece.end) {
            state = State::RwndAutotune;
        }
        let start = self.judged_until;
        let end = self.sender.told_at(piece.end);
        self.judged_until = start.max(end);
        let judged = Interval { start, end, state, sure, alternative, evidence };
        if self.due.passes() {
            self.book_part(judged);
        } else {
            self.due.push(judged);
            self.book_due();
        }
    }

    /// Books what is judged, as far as it is known whether the link was full meanwhile.
    fn book_due(&mut self) {
        while let Some(parts) = self.due.next() {
            for part in parts {
                self.book_part(part);
            }
        }
    }

    fn book_part(&mut self, part: Interval) {
        self.name_rounds(part.end, part.state);
        let (from, state) = (self.ledger.cursor(), part.state);
        self.ledger.book(part);
        self.sender.transfers.last_until(self.sender.gone_on_at());
        self.sender.transfers.share(from, self.ledger.cursor(), state, self.sender.shift_in);
    }

    /// The link that this sender's packets passed is known: it was `full` at these times of the report.
    fn take_link(&mut self, full: FullLink) {
        // Without an answer nobody knows what was waited for.
        let full = if self.sender.terms.unanswered { FullLink::default() } else { full };
        let came_back = self.sender.book.closed.came_back;
        self.due.release(FullLink { came_back, ..full });
        self.book_due();
    }

    /// `verdict`, unless a policer cut the window that held what an ACK ended.
    fn unless_policed(&self, wait: &Wait, verdict: Verdict) -> Verdict {
        let by_window = matches!(verdict.state, State::CwndPostLoss | State::CwndAvoidance);
        if by_window && !wait.came_free() && self.sender.repairs.losses.are_policed() {
            return Verdict::likely(State::BandwidthPolicer).seen(Seen::Policed);
        }
        verdict
    }

    /// What held the sender in the `repair` that `piece` falls into, if it has a clock. After a timeout the window is as
    /// small as can be.
    fn clock_in(&self, piece: &Piece, repair: State) -> Option<Verdict> {
        let Base::Untold(wait) = piece.base else { return None };
        let sender = &self.sender;
        let timed_out = sender.repairs.episodes.is_behind_timeout(piece.episode);
        let near = Near::new(&sender.book.closed, wait.round, sender.least_rtt());
        let is_asked = repair == State::RecoveryLoss && !timed_out;
        rule::pace::in_repair(piece.by_itself, &near).filter(|_| is_asked)
    }

    /// Whether a repair is what `piece` waited for if it fell into one, though else it would be `state`.
    pub(super) fn is_repairs(&self, piece: &Piece, state: State) -> bool {
        // A sender with a clock of its own keeps to it in a repair. Where that does not show, none is proven.
        let by_clock = matches!(piece.base, Base::Untold(wait) if wait.came_free())
            && match state {
                State::Pacing => true,
                State::BandwidthSelfQueue => self.sender.terms.sees_queues,
                _ => false,
            };
        let by_rounds = matches!(piece.base, Base::Untold(_) | Base::Flying);
        // A receiver's window that stays full in a repair is a limit of its own, if its size is known.
        let was_full = (!piece.at_edge || self.sender.terms.shift_guessed)
            && matches!(state, State::RwndCap | State::RwndAutotune | State::RwndReader);
        (by_rounds && !by_clock) || was_full || state == State::LastFlight
    }

    /// Rounds whose last send lies before `end` of the report's time were limited by `state`.
    fn name_rounds(&mut self, end: i64, state: State) {
        while let Some(listed) = self.sender.book.listed.get_mut(self.sender.book.next_unnamed) {
            if listed.stopped_at.in_report(self.sender.shift_in) >= end {
                break;
            }
            listed.name(state);
            self.sender.book.next_unnamed += 1;
        }
    }

    /// The capture ends at `end` of the report; `closed` if the connection did. The link was `full` at these
    /// times of it.
    pub(crate) fn finish(&mut self, end: i64, closed: bool, full: FullLink) {
        self.sender.take_stop();
        self.advance(StackTime::of_report(end, self.sender.shift_in), self.sender.frame);
        self.sender.replay_batch(StackTime::MAX);
        if self.sender.book.open.sends > 0 {
            self.sender.book.open.cwnd =
                self.sender.replay.cwnd(self.sender.book.open.flight_segments);
            self.sender.book.open.phase =
                self.sender.book.open.before_loss.unwrap_or(self.sender.phase());
            let last = self.sender.flight.una.max(self.sender.book.marker);
            self.sender.book.marker = last;
            let at = if self.sender.flight.outstanding() == 0 {
                self.sender.progress.done.max(self.sender.book.open.start)
            } else {
                self.sender.now
            };
            self.sender.close_round(at);
        }
        self.sender.judge_idle(false);
        let done = self.sender.flight.outstanding() == 0;
        // With data in flight at the end, nobody knows what would have released the next send; if
        // all before it waited for one thing, this did too.
        let rest =
            if done || closed { Base::shown(State::LastFlight) } else { self.waits.last_flying };
        self.waits.tell_flying(rest);
        if done && self.sender.handshake.is_over {
            self.waits.relabel(self.sender.progress.done, Base::shown(State::Closing));
        }
        self.book_tail();
        self.flush(true);
        self.take_link(full);
        self.sender.transfers.last_until(self.sender.gone_on_at());
        self.sender.transfers.settle();
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

    /// Books what the end tells of the time before it.
    fn book_tail(&mut self) {
        let Some(tail) = self.sender.tail.take() else { return };
        let [from, until] =
            [tail.from, tail.until].map(|at| StackTime::of_report(at, self.sender.shift_in));
        self.waits.relabel(from, Base::shown(tail.state));
        if self.sender.flight.outstanding() == 0 && until < self.sender.now {
            self.waits.relabel(until.max(from), Base::shown(State::Closing));
        }
    }
}

/// What `wait` was for, if its end tells, or that rounds are to be asked.
fn told(wait: &Wait) -> Base {
    rule::at_its_end(wait).map_or_else(|| Base::Untold(wait.for_rounds()), Base::Told)
}
