//! Tape tests of what is in flight.

use super::*;
use crate::clocks::TapTime;

/// Frames of 100 bytes from 0 on, numbered from 1, which left at 10, 20, 30, ..., each 5 before it passed.
fn volley(frames: usize) -> Flight {
    let mut flight = Flight::default();
    let first = Event { frame: 1, len: 100, ..Event::default() };
    let follower = |frame: u32| {
        let tap = 10 * i64::from(frame) + 5;
        Follower { tap: TapTime(tap), frame, id: 0, is_pushed: false }
    };
    let others: Vec<_> = (2..=frames as u32).map(follower).collect();
    flight.push_each(&first, StackTime(10), (&others, Left::Ahead(5)), Segments::new(1));
    flight
}

/// Start, when it left, frame and segments before its end of what is in flight, one by one.
fn told(flight: &mut Flight) -> Vec<(i64, i64, u64, u64)> {
    let all = flight.overlapping(Offset::MIN, Offset::MAX);
    all.map(|sent| (sent.start.get(), sent.at.0, sent.frame, sent.segments_to)).collect()
}

#[test]
fn a_volley_that_is_spread_is_the_frames_that_it_was_made_of() {
    let mut flight = volley(3);
    assert_eq!(told(&mut flight), [(0, 10, 1, 1), (100, 20, 2, 2), (200, 30, 3, 3)]);
    assert_eq!((flight.nxt, flight.segments_to_nxt, flight.frames()), (Offset::at(300), 3, 3));
    let then: Vec<_> =
        flight.overlapping(Offset::FIRST, Offset::at(300)).map(|sent| sent.flight_then).collect();
    assert_eq!(then, [100, 200, 300]);
}

#[test]
fn an_ack_takes_the_first_frames_of_a_volley() {
    for (ack, newest_at, left) in [(99, None, 4), (100, Some(10), 3), (399, Some(30), 1)] {
        let mut flight = volley(4);
        let acked = flight.ack(Offset::at(ack));
        assert_eq!(
            [acked.newest_at, acked.oldest_at],
            [newest_at, newest_at.map(|_| 10)].map(|at| at.map(StackTime))
        );
        assert_eq!((flight.frames(), flight.outstanding()), (left, 400 - ack), "{ack}");
        assert_eq!(flight.segments_to(Offset::at(ack)), ack as u64 / 100);
        let first = 4 - left as i64;
        let frame = |at: i64| (100 * at, 10 + 10 * at, 1 + at as u64, 1 + at as u64);
        assert_eq!(told(&mut flight), (first..4).map(frame).collect::<Vec<_>>(), "{ack}");
    }
    let mut flight = volley(4);
    assert_eq!(flight.ack(Offset::at(400)).newest_at, Some(StackTime(40)));
    assert_eq!((flight.frames(), flight.segments_to(Offset::at(400))), (0, 4));
}

#[test]
fn an_ack_of_two_volleys_takes_the_times_of_the_right_ones() {
    let mut flight = volley(2);
    let second = Event { frame: 9, seq: Offset::at(200), len: 50, ..Event::default() };
    let other = Follower { tap: TapTime(0), frame: 10, id: 0, is_pushed: false };
    flight.push_each(&second, StackTime(70), (&[other], Left::At(StackTime(80))), Segments::new(1));
    let acked = flight.ack(Offset::at(250));
    assert_eq!(
        (acked.oldest_at, acked.newest_at, acked.largest),
        (Some(StackTime(10)), Some(StackTime(70)), 100)
    );
    assert_eq!(told(&mut flight), [(250, 80, 10, 4)]);
}

#[test]
fn a_reported_range_tells_of_a_segment_only_if_that_lies_in_it_whole() {
    let largest = |segments: u64, (from, to): (i64, i64)| {
        let mut flight = Flight::default();
        let frames = [(0, 1000), (1000, 400), (1400, 1000), (2400, 1000)];
        for (frame, (seq, len)) in (1..).zip(frames) {
            let event = Event { frame, seq: Offset::at(seq), len, ..Event::default() };
            flight.push(Sent::of(&event, StackTime(10), Segments::new(segments)));
        }
        flight.sack(&[(Offset::at(from), Offset::at(to))]);
        flight.largest_sacked()
    };
    assert_eq!(largest(1, (1000, 1400)), 400);
    assert_eq!(largest(1, (1000, 2399)), 400, "a byte of the next is missing");
    assert_eq!(largest(1, (1000, 2400)), 1000);
    assert_eq!(largest(1, (1500, 3300)), 0, "parts of two");
    assert_eq!(largest(2, (1900, 3400)), 500, "a frame of two segments, and the next");
    let mut flight = volley(4);
    flight.sack(&[(Offset::at(150), Offset::at(299))]);
    assert_eq!(flight.largest_sacked(), 0);
    flight.sack(&[(Offset::at(150), Offset::at(300))]);
    assert_eq!(flight.largest_sacked(), 100, "the third of four behind each other");
}
