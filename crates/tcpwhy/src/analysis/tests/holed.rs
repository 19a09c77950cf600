//! Captures that lack packets. What was before a hole says nothing of what is behind it. What the beginning lacks
//! may be retransmitted.

use super::talk::{Act, MSS, Talk};
use super::tapes::{server, time};
use crate::report::{Connection, State};
use crate::wire::Flags;
use tcpwhy_words::units::Time;

const MS: i64 = 1_000_000;

/// A flight of this many segments into a window that takes 44 and a rest. Its ACK ends a hole of the capture.
fn into_a_hole(segments: u32) -> Connection {
    with_a_hole(segments).account(1 << 20, false)
}

fn with_a_hole(segments: u32) -> Talk {
    let mut talk = Talk::asked();
    talk.act(0, 10_000, Act::Ack(500));
    (0..segments).for_each(|_| talk.data(1, MSS));
    talk.act(0, 20 * MS, Act::Ack(500));
    talk.gaps.push(talk.segments.len());
    (0..20).for_each(|_| talk.act(1, 0, Act::Unseen));
    talk.now += 60 * MS;
    talk.act(0, 10_000, Act::Ack(500));
    talk.act(1, 10_000, Act::Burst(2));
    talk
}

#[test]
fn a_flight_that_filled_the_window_before_a_hole_was_held_by_it() {
    let held = |segments| time(&into_a_hole(segments), &[State::RwndCap, State::RwndAutotune]) / MS;
    assert_eq!(held(44), 20, "64,000 bytes of window take 44 segments and 288 bytes");
    assert_eq!(held(43), 0, "one more had room");
}

#[test]
fn the_end_of_slow_start_is_not_told_of_a_hole() {
    assert!(server(&into_a_hole(44)).slow_start_exit.is_none());
}

#[test]
fn a_request_that_was_acknowledged_does_not_go_on_in_a_hole() {
    let account = into_a_hole(10);
    let request = account.transfers.iter().find(|transfer| transfer.bytes == 100);
    let took = request.map(|request| (request.end_ns - request.start_ns) / MS);
    assert_eq!(took, Some(0), "its ACK came at once; the hole is 60 ms long");
}

/// Midway, a flight of ten segments; then what is older than the capture, stamped `later` after that, and its ACK.
fn older_than_the_capture(silence: i64, later: bool, acknowledged: bool) -> Connection {
    let mut talk = Talk { next: [1, 1_000_000], acked: [1_000_000, 1], ..Talk::default() };
    talk.window = [500; 2];
    talk.now = 100 * MS;
    if acknowledged {
        talk.act(0, 10_000, Act::Repeat(500));
    }
    talk.act(1, 100_000, Act::Burst(10));
    talk.now += silence;
    let next = std::mem::replace(&mut talk.next[1], 900_000);
    if !later {
        talk.now -= silence + 10 * MS;
    }
    talk.data(1, MSS);
    if !later {
        let last = talk.segments.len() - 1;
        talk.now += silence + 10 * MS;
        talk.segments[last].time = Time(talk.now);
    }
    talk.next[1] = next;
    talk.now += MS;
    talk.acked[0] = next;
    talk.push(0, Flags::ACK, 1, 0, crate::wire::Options::default());
    talk.account(1 << 20, false)
}

#[test]
fn what_is_sent_again_of_before_the_capture_was_sent_by_a_timer() {
    let timer = |silence, later, acknowledged| {
        let account = older_than_the_capture(silence, later, acknowledged);
        let directions = account.directions.iter().flatten();
        directions.map(|sent| sent.time_in.get(State::RtoWait).0).sum::<i64>() / 100_000
    };
    assert_eq!(timer(7 * MS, true, false), 70);
    assert_eq!(timer(MS, true, false), 10);
    assert_eq!(timer(MS - 100_000, true, false), 0, "too soon for a timer, and may come by itself");
    assert_eq!(timer(7 * MS, false, false), 0, "stamped before the others: it came late");
    assert_eq!(timer(7 * MS, true, true), 0, "an ACK told that it had arrived");
}

#[test]
fn data_that_the_capture_holds_nothing_of_was_sent() {
    let mut talk = Talk::default();
    talk.open();
    talk.now += MS;
    (0..10).for_each(|_| talk.act(1, 0, Act::Unseen));
    talk.act(0, 30 * MS, Act::Ack(500));
    let account = talk.account(1 << 20, false);
    let told = server(&account);
    assert_eq!((told.bytes, told.frames), (10 * u64::from(MSS), 0));
    // The handshake is over for the server 10 ms later.
    assert_eq!(told.time_in.get(State::CaptureGap).0 / MS, 21, "nobody knows when it passed");
    assert_eq!(told.time_in.get(State::IdleAppThink).0, 0);
    let mut silent = Talk::default();
    silent.open();
    silent.act(0, 30 * MS, Act::Ack(500));
    assert!(silent.account(1 << 20, false).directions.iter().all(Option::is_none));
}

/// How long the server was idle behind a hole, 20 ms from its client: ACKs come `gap` after each other, of what was
/// sent in the hole (`unseen`), or of what was sent just before.
fn idle_behind_a_hole(gap: i64, unseen: bool) -> i64 {
    let mut talk = Talk::default();
    talk.open();
    // The tap is at the server.
    talk.segments[1].time = Time(100_000);
    talk.act(0, 10_000, Act::Short);
    talk.act(1, 100_000, Act::Short);
    talk.gaps.push(talk.segments.len());
    (0..20).for_each(|_| talk.act(1, 0, Act::Unseen));
    talk.act(0, 60 * MS, Act::Ack(500));
    for _ in 0..10 {
        talk.now += gap - 20 * MS;
        talk.act(1, 0, if unseen { Act::Unseen } else { Act::Burst(1) });
        talk.act(0, 20 * MS, Act::Ack(500));
    }
    time(&talk.account(1 << 20, false), &[State::IdleAppThink, State::IdlePeerThink]) / MS
}

#[test]
fn what_was_sent_in_a_hole_was_in_flight_until_its_ack() {
    assert_eq!(idle_behind_a_hole(20 * MS, true), 0, "all the time something was on the way");
    // Ten times what a round trip leaves of 70 ms; what follows the hole itself is not known.
    for unseen in [false, true] {
        let idle = idle_behind_a_hole(70 * MS, unseen);
        assert!((440..=500).contains(&idle), "unseen {unseen}: {idle}");
    }
}

#[test]
fn an_ack_of_more_than_was_allowed_tells_of_no_data() {
    let mut talk = Talk::default();
    talk.open();
    talk.next[1] = 1 << 30;
    talk.act(0, 30 * MS, Act::Ack(500));
    assert!(talk.account(1 << 20, false).directions.iter().all(Option::is_none));
}
