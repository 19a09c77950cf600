//! When a quiet wire is settled.

use super::*;
use crate::limits::releases::Advance;
use crate::limits::walker::Terms;

const MSS: i64 = 1448;

/// A sender whose last data stood 3 ms in a queue after it was sent at 10 ms.
fn queued(own_way: i64) -> Walker {
    let terms = Terms { mss: MSS, tap_at_sender: true, own_way, ..Terms::default() };
    let mut walker = Walker::new(terms, true, 0);
    (walker.sends.last, walker.sends.lag) = (10_000_000, 3_000_000);
    walker.stop.evidence.room = MSS;
    walker
}

#[test]
fn what_is_sent_before_the_last_has_left_its_host_waited_for_that_queue() {
    let mut walker = queued(0);
    assert!(walker.is_held_by_own_queue(13_000_000));
    assert!(!walker.is_held_by_own_queue(13_000_001), "it had left");
    walker.sends.lag = OWN_QUEUE_NS;
    assert!(!walker.is_held_by_own_queue(10_500_000), "within a tick");
    let full = &mut queued(0);
    full.stop.evidence.room = MSS - 1;
    assert!(!full.is_held_by_own_queue(12_000_000), "a full window holds it too");
}

#[test]
fn behind_a_delay_only_acks_that_let_nothing_out_tell_of_the_hosts_queue() {
    let mut walker = queued(OWN_QUEUE_NS + 1);
    let ack = |at| Advance { at, una: 0 };
    walker.releases.acks.extend([11_000_000, 11_500_000, 12_000_000].map(ack));
    assert!(!walker.is_held_by_own_queue(12_800_000));
    walker.releases.acks.push_back(ack(12_500_000));
    assert!(walker.is_held_by_own_queue(12_800_000));
    assert!(!walker.is_held_by_own_queue(12_500_000), "the fourth is what let it out");
    walker.repairs.on_duplicate(9, 1, 0);
    assert!(!walker.is_held_by_own_queue(12_800_000), "in a repair ACKs may let nothing out");
}

#[test]
fn on_the_senders_host_an_ack_that_let_nothing_out_is_waited_past() {
    let released_at = |tap_at_sender, own_way| {
        let terms = Terms { own_way, tap_at_sender, ..Terms::default() };
        let mut walker = Walker::new(terms, true, 0);
        walker.trips.sample(100_000_000, 0, 0);
        let ack = |at| Advance { at, una: 0 };
        walker.releases.acks.extend([9_000_000, 10_000_000, 10_700_000].map(ack));
        walker.released_at(10_701_000)
    };
    assert_eq!(released_at(true, OWN_QUEUE_NS), 10_700_000);
    assert_eq!(released_at(true, OWN_QUEUE_NS + 1), 9_000_000, "what it let out is delayed");
    assert_eq!(released_at(false, 0), 9_000_000, "all came within 3 % of a round trip");
}

#[test]
fn a_full_congestion_window_lets_nothing_of_a_third_of_it_pass() {
    // Thirty segments are in flight, and two that ACKs take off let nothing out.
    let mut walker = Walker::new(Terms { mss: MSS, detail: true, ..Terms::default() }, true, 0);
    walker.flight.nxt = 30 * MSS;
    walker.stop.evidence.in_flight = 30 * MSS;
    let mut passes_over = |taken: i64| {
        walker.releases.acks.clear();
        let una = taken * MSS;
        walker.releases.acks.extend(
            [(10_000_000, una), (20_000_000, una + MSS)].map(|(at, una)| Advance { at, una }),
        );
        walker.has_passed_over_acks(20_000_000)
    };
    assert!(passes_over(13));
    assert!(!passes_over(12), "Linux may wait for a super-segment");
    walker.growth.cut(40);
    walker.releases.acks[0].una = 20 * MSS;
    assert!(!walker.has_passed_over_acks(20_000_000), "a loss has cut the window below the flight");
}

/// How a side's silence is told before the peer's first data at 10 ms, if the SYN was seen or not.
fn first_silence(side: usize, saw_syn: bool) -> (State, &'static [State]) {
    let terms = Terms { mss: MSS, side, detail: true, ..Terms::default() };
    let mut walker = Walker::new(terms, true, 0);
    walker.handshake.last_syn[0] = saw_syn.then_some(0);
    walker.advance(0, 1);
    walker.advance(10_000_000, 2);
    walker.on_peer_data(10_000_000);
    walker.finish(20_000_000, false);
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
            start: 0,
            end: 1,
            base,
            episode: 1,
            at_edge: true,
            evidence: Evidence::default(),
        };
        walker.is_repairs(&piece, state)
    };
    let free = Base::Free { round: 0, by_ack: false, whole: false };
    let seen = Terms { sees_queues: true, ..Terms::default() };
    assert!(!told(State::Pacing, free, seen) && !told(State::BandwidthSelfQueue, free, seen));
    assert!(told(State::BandwidthSelfQueue, free, Terms::default()), "no queue can be seen");
    let (full, guess) = (Base::sure(State::RwndCap, 92), Terms { shift_guessed: true, ..seen });
    assert!(!told(State::RwndCap, full, seen) && told(State::RwndCap, full, guess));
}
