//! When a quiet wire is settled.

use super::*;
use crate::limits::account::due::FullLink;
use crate::limits::wait::Wait;

const MSS: i64 = 1448;

/// The verdict on a side's silence before the peer's first data at 10 ms, if the SYN was seen or
/// not.
fn first_silence(side: usize, saw_syn: bool) -> (State, &'static [State]) {
    let terms = Terms { mss: MSS, side, detail: true, ..Terms::default() };
    let mut walker = Walker::new(terms, true, 0);
    walker.sender.handshake.last_syn[0] = saw_syn.then_some(StackTime(0));
    walker.advance(StackTime(0), 1);
    walker.advance(StackTime(10_000_000), 2);
    walker.on_peer_data(StackTime(10_000_000));
    walker.finish(20_000_000, false, FullLink::default());
    let first = &walker.ledger.intervals[0];
    (first.state, first.alternative)
}

#[test]
fn a_server_that_is_silent_as_a_capture_begins_may_be_at_the_end_of_its_handshake() {
    assert_eq!(first_silence(1, false), (State::IdlePeerThink, &[State::Handshake] as &[_]));
    assert_eq!(first_silence(1, true), (State::IdlePeerThink, &[] as &[_]));
    assert_eq!(first_silence(0, false), (State::IdlePeerThink, &[] as &[_]), "a client's is over");
}

#[test]
fn a_repair_ends_what_only_seems_to_hold_the_sender() {
    let told = |state, base, terms| {
        let walker = Walker::new(Terms { mss: MSS, ..terms }, true, 0);
        let piece = Piece {
            start: StackTime(0),
            end: StackTime(1),
            base,
            episode: 1,
            at_edge: true,
            by_itself: false,
            evidence: Evidence::default(),
        };
        walker.is_repairs(&piece, state)
    };
    let free = Base::Untold(Wait::PLAIN);
    let seen = Terms { sees_queues: true, ..Terms::default() };
    assert!(!told(State::Pacing, free, seen) && !told(State::BandwidthSelfQueue, free, seen));
    assert!(told(State::BandwidthSelfQueue, free, Terms::default()), "no queue can be seen");
    let (full, guess) = (Base::shown(State::RwndCap), Terms { shift_guessed: true, ..seen });
    assert!(!told(State::RwndCap, full, seen) && told(State::RwndCap, full, guess));
}
