//! Time laid down and not yet booked: decided waits, then the open one.

use crate::clocks::StackTime;
use std::collections::VecDeque;

use super::piece::{Base, Piece};
use crate::limits::evidence::Evidence;
use crate::limits::sense::WAIT_ACKS;

/// The pieces of one sender's timeline that wait for a decision.
#[derive(Clone, Debug)]
pub(crate) struct Waits {
    pub(crate) pieces: VecDeque<Piece>,
    /// Index of the first piece of the open wait.
    pub(crate) from: usize,
    /// What the last wait with data in flight was decided to be.
    pub(crate) last_flying: Base,
    /// The last wait, if the next event decides whether Nagle's algorithm held its end. Nothing is booked meanwhile.
    pub(crate) nagled: Option<Nagled>,
}

/// A wait that Nagle's algorithm may have held.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Nagled {
    pub(crate) since: StackTime,
    pub(crate) by_nagle: Base,
    pub(crate) otherwise: Base,
}

impl Default for Waits {
    fn default() -> Self {
        Self { pieces: VecDeque::new(), from: 0, last_flying: Base::Flying, nagled: None }
    }
}

impl Waits {
    /// Takes over the room of `old`, which is done.
    pub(crate) fn reuse(&mut self, old: &mut Self) {
        core::mem::swap(&mut self.pieces, &mut old.pieces);
        self.pieces.clear();
    }

    /// Lays down time from `start` to `end` in the open wait: more of the last piece, if it is of
    /// the same kind and `join` allows it, or there are many already, else a new one.
    pub(crate) fn lay(&mut self, piece: Piece, join: bool) {
        let open = self.pieces.len() - self.from;
        if (join || open > WAIT_ACKS)
            && open > 0
            && let Some(last) = self.pieces.back_mut()
            && last.base == piece.base
            && last.episode == piece.episode
            && last.at_edge == piece.at_edge
            && last.by_itself == piece.by_itself
        {
            last.end = piece.end;
            if piece.base != Base::Flying {
                last.evidence.last_frame = piece.evidence.last_frame;
            }
            return;
        }
        self.pieces.push_back(piece);
    }

    /// Whether the open wait has a last piece in which data flies as in `episode`.
    pub(crate) fn flies(&self, episode: u32) -> bool {
        let last = self.pieces.back().filter(|_| self.pieces.len() > self.from);
        last.is_some_and(|piece| {
            piece.base == Base::Flying
                && piece.episode == episode
                && !piece.at_edge
                && !piece.by_itself
        })
    }

    /// Lets that piece go on to `at`.
    pub(crate) fn fly_on(&mut self, at: StackTime) {
        if let Some(last) = self.pieces.back_mut() {
            last.end = at;
        }
    }

    /// Gives all time since `from` a decided base; a piece that straddles it is split.
    pub(crate) fn relabel(&mut self, from: StackTime, base: Base) {
        for piece in self.since(from) {
            piece.base = base;
            piece.episode = 0;
        }
    }

    /// Lets all time since `from` belong to the episode `id`; a piece that straddles it is split.
    pub(crate) fn belong(&mut self, from: StackTime, id: u32) {
        self.since(from).for_each(|piece| piece.episode = id);
    }

    /// All time since `from` ended with a send that came by itself.
    pub(crate) fn end_by_itself(&mut self, from: StackTime) {
        self.since(from).for_each(|piece| piece.by_itself = true);
    }

    /// What lies behind `from`; a piece that straddles it is split.
    fn since(&mut self, from: StackTime) -> impl Iterator<Item = &mut Piece> {
        let mut at = self.pieces.len();
        while at > 0 && self.pieces[at - 1].end > from {
            at -= 1;
        }
        if let Some(first) = self.pieces.get_mut(at).filter(|first| first.start < from) {
            let tail = Piece { start: from, ..*first };
            first.end = from;
            at += 1;
            self.pieces.insert(at, tail);
            if at <= self.from {
                self.from += 1;
            }
        }
        self.pieces.range_mut(at..)
    }

    /// The last wait was not for Nagle's algorithm.
    pub(crate) fn clear_of_nagle(&mut self, Nagled { since, by_nagle, otherwise }: Nagled) {
        for at in (0..self.from).rev() {
            let piece = &mut self.pieces[at];
            if piece.end <= since || piece.base != by_nagle {
                break;
            }
            if piece.start >= since {
                piece.base = otherwise;
                continue;
            }
            // It was merged with that of the wait before.
            let tail = Piece { start: since, base: otherwise, ..*piece };
            piece.end = since;
            self.pieces.insert(at + 1, tail);
            self.from += 1;
            break;
        }
    }

    /// Where data flies in the open wait, that was for `base`.
    pub(crate) fn tell_flying(&mut self, base: Base) {
        for piece in self.pieces.range_mut(self.from..) {
            if piece.base == Base::Flying {
                piece.base = base;
            }
        }
    }

    /// The open wait is decided as it is now; the next begins.
    pub(crate) fn begin_next(&mut self) {
        self.from = self.pieces.len();
    }

    /// The pieces before `piece` are decided; with it the next wait begins, in which data flies.
    pub(crate) fn begin_next_at(&mut self, piece: usize) {
        self.from = piece;
        for at in piece..self.pieces.len() {
            let piece = &mut self.pieces[at];
            if piece.base.is_open() {
                piece.base = Base::Flying;
            }
        }
    }

    /// Merges neighbours of one base among the decided, so a wait per ACK costs one piece a round.
    pub(crate) fn merge_settled(&mut self) {
        while self.from >= 2 {
            let (left, right) = (&self.pieces[self.from - 2], &self.pieces[self.from - 1]);
            if left.base != right.base
                || left.episode != right.episode
                || left.at_edge != right.at_edge
                || left.by_itself != right.by_itself
                || left.end != right.start
            {
                break;
            }
            let (end, evidence) = (right.end, right.evidence);
            let joined = &mut self.pieces[self.from - 2];
            joined.end = end;
            joined.evidence.join(&evidence);
            self.from -= 1;
            if self.from + 1 == self.pieces.len() {
                self.pieces.pop_back();
            } else {
                self.pieces.remove(self.from);
            }
        }
    }

    /// The last decided piece, if it is of `base` and outside of repairs, and the open wait is at
    /// most a quiet piece.
    pub(crate) fn flow_of(&self, base: Base) -> bool {
        let open = self.pieces.len() - self.from;
        let is_quiet = |piece: &Piece| piece.base == Base::Quiet && piece.episode == 0;
        let decided = self.from.checked_sub(1).and_then(|last| self.pieces.get(last));
        open <= 1
            && (open == 0 || self.pieces.back().is_some_and(is_quiet))
            && decided.is_some_and(|piece| piece.base == base && piece.episode == 0)
    }

    /// The frame that ended the open wait's last piece, 0 without one.
    pub(crate) fn open_until(&self) -> u64 {
        let open = self.pieces.back().filter(|_| self.pieces.len() > self.from);
        open.map_or(0, |piece| piece.evidence.last_frame)
    }

    /// Lets the last decided piece go on to `at` in place of the open wait.
    pub(crate) fn go_on(&mut self, at: StackTime, stop: &Evidence) {
        self.pieces.truncate(self.from);
        if let Some(last) = self.pieces.back_mut() {
            last.end = at;
            last.evidence.join(stop);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::State;

    fn piece(start: i64, end: i64, base: Base) -> Piece {
        let (start, end) = (StackTime(start), StackTime(end));
        let evidence = Evidence::default();
        Piece { start, end, base, episode: 0, at_edge: false, by_itself: false, evidence }
    }

    fn spans(waits: &Waits) -> Vec<(i64, i64, Base)> {
        waits.pieces.iter().map(|p| (p.start.0, p.end.0, p.base)).collect()
    }

    #[test]
    fn time_of_one_kind_is_one_piece() {
        let mut waits = Waits::default();
        waits.lay(piece(0, 5, Base::Flying), true);
        waits.lay(piece(5, 7, Base::Flying), true);
        waits.lay(piece(7, 8, Base::Flying), false);
        waits.begin_next();
        waits.lay(piece(8, 9, Base::Flying), true);
        assert_eq!(
            spans(&waits),
            [(0, 7, Base::Flying), (7, 8, Base::Flying), (8, 9, Base::Flying)]
        );
    }

    #[test]
    fn relabelling_splits_the_piece_it_begins_in() {
        let timer = Base::shown(State::RtoWait);
        let mut waits = Waits::default();
        waits.lay(piece(0, 10, Base::Flying), true);
        waits.begin_next();
        waits.lay(piece(10, 12, Base::Quiet), true);
        waits.relabel(StackTime(4), timer);
        assert_eq!(spans(&waits), [(0, 4, Base::Flying), (4, 10, timer), (10, 12, timer)]);
        assert_eq!(waits.from, 2, "the open wait is still the same piece");
    }

    #[test]
    fn a_flow_goes_on_only_where_nothing_else_happened() {
        let flow = Base::shown(State::Receiving);
        let mut waits = Waits::default();
        assert!(!waits.flow_of(flow), "nothing to go on from");
        waits.lay(piece(0, 5, flow), true);
        waits.begin_next();
        waits.lay(Piece { episode: 1, ..piece(5, 8, Base::Quiet) }, true);
        assert!(!waits.flow_of(flow), "in a repair");
        waits.pieces[1].episode = 0;
        assert!(waits.flow_of(flow));
        waits.go_on(StackTime(9), &Evidence::default());
        assert_eq!(spans(&waits), [(0, 9, flow)]);
        waits.lay(piece(9, 10, Base::Flying), true);
        assert!(!waits.flow_of(flow), "data is in flight");
    }
}
