use super::*;
use crate::flow::event::block;

/// Whether data at `tap` is drawn by what the capture lacks: the peer's tick is 4 ms, its stamp 10 came at 0, and
/// the data echoes `echo`.
fn is_drawn(tap: i64, echo: u32) -> bool {
    let mut clock = SideClock::default();
    clock.peer_passed(&Event { tsval: 10, bits: TS, ..Event::default() });
    let event =
        Event { tap: TapTime(tap), tsecr: echo, len: 100, bits: TS | ACK, ..Event::default() };
    let echoed = clock.unseen_echo(&event);
    assert_eq!(clock.unseen_echo(&event), None, "the first to echo it alone");
    echoed.is_some_and(|echoed| clock.came_just_before(&event, echoed, 4_000_000))
}

#[test]
fn an_echo_of_what_was_not_seen_tells_that_it_came_within_two_ticks() {
    // Stamp 20 came 40 ms later, give or take a tick.
    assert!(is_drawn(40_000_000, 20) && is_drawn(48_000_000, 20) && is_drawn(32_000_000, 20));
    assert!(!is_drawn(48_000_001, 20) && !is_drawn(31_999_999, 20));
    assert!(!is_drawn(0, 10), "the capture has it");
}

/// The floor of a stack without time stamps whose answer to a request took so long, with so long a silence
/// before an ACK and data behind that.
fn floor_after(answer: i64, silence: i64, lag: i64) -> Option<i64> {
    let mut clock = SideClock::default();
    clock.peer_passed(&Event { len: 100, bits: ACK, ..Event::default() });
    let sent = Event {
        tap: TapTime(answer),
        ack: Offset::at(100),
        len: 100,
        bits: ACK,
        ..Event::default()
    };
    let cause = clock.cause_of(&sent, &[]);
    clock.learn(&sent, cause);
    let acked = Event {
        tap: TapTime(answer + silence),
        ack: Offset::at(100),
        bits: ACK,
        ..Event::default()
    };
    clock.peer_passed(&acked);
    let more = Event { tap: acked.tap + lag, seq: Offset::at(100), ..sent };
    let cause = clock.cause_of(&more, &[]);
    clock.learn(&more, cause);
    clock.floor()
}

#[test]
fn without_stamps_what_an_ack_lets_out_of_a_silence_tells_how_near_the_stack_is() {
    assert_eq!(floor_after(NEAR_NS, SILENCE_NS, 10_000), Some(10_000));
    assert_eq!(floor_after(NEAR_NS + 1, SILENCE_NS, 10_000), Some(NEAR_NS + 1), "it is far");
    assert_eq!(floor_after(NEAR_NS, SILENCE_NS - 1, 10_000), Some(NEAR_NS), "no silence");
    assert_eq!(floor_after(30_000, SILENCE_NS, 40_000), Some(30_000), "it waited");
}

/// How far the stack seems that reports the second of two segments by SACK after `sacked`, and acknowledges all
/// after `acked`.
fn floor_of_sack(sacked: i64, acked: i64, first: Block) -> Option<i64> {
    let mut clock = SideClock::default();
    let data = Event { seq: Offset::at(1460), len: 500, bits: ACK, ..Event::default() };
    clock.peer_passed(&data);
    for (tap, ack, blocks) in [(sacked, 0, &[first, block(1460, 1960)][..]), (acked, 1960, &[][..])]
    {
        let answer =
            Event { tap: TapTime(tap), ack: Offset::at(ack), bits: ACK, ..Event::default() };
        let cause = clock.cause_of(&answer, blocks);
        clock.learn(&answer, cause);
    }
    clock.floor()
}

#[test]
fn a_report_by_sack_is_the_answer_and_what_fills_the_hole_draws_the_ack() {
    let second = 1_000_000_000;
    assert_eq!(floor_of_sack(200_000, 21 * second, block(1460, 1960)), Some(200_000));
    assert_eq!(floor_of_sack(300_000, 200_000, block(1460, 1960)), Some(300_000));
    assert_eq!(
        floor_of_sack(300_000, second, block(1500, 1600)),
        Some(300_000),
        "a duplicate first"
    );
}

#[test]
fn what_echoes_no_later_stamp_was_on_its_way_when_that_came() {
    let until = |seq: i64, echo: u32| {
        let mut clock = SideClock::default();
        for (tsval, tap) in [(10, 0), (20, 40_000_000)] {
            clock.peer_passed(&Event {
                tsval,
                tap: TapTime(tap),
                seq: Offset::at(seq),
                bits: TS,
                ..Event::default()
            });
        }
        clock.cause_of(&Event { tsecr: echo, bits: TS | ACK, ..Event::default() }, &[]).until
    };
    assert_eq!(until(0, 10), TapTime(40_000_000));
    assert_eq!(until(0, 20), TapTime::MAX, "it echoes the newest");
    assert_eq!(until(1, 10), TapTime::MAX, "out of order, it need not be echoed");
}
