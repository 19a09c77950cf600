//! Tails that were lost, and what timers send of them again.

use super::talk::{Act, MSS, Talk};
use super::tapes::{server, time};
use crate::report::State;
use crate::wire::{Flags, Options};

const MS: i64 = 1_000_000;

/// At the client, 20 ms from the server: 30 segments, and after a pause `segments` more together. Behind their ACK
/// another segment comes. Returns how many tens of milliseconds the repair took, and how many timeouts there were.
fn behind_a_pause(pause: i64, segments: u32, len: u32) -> (i64, u64) {
    let mut talk = Talk::asked();
    talk.now += 20 * MS;
    for flight in [10, 20] {
        (0..flight).for_each(|_| talk.data(1, MSS));
        talk.act(0, 10_000, Act::Ack(5000));
        talk.now += 20 * MS;
    }
    talk.now += pause;
    (0..segments).for_each(|_| talk.data(1, len));
    talk.act(0, 10_000, Act::Ack(5000));
    talk.now += 20 * MS;
    talk.data(1, MSS);
    talk.act(0, 10_000, Act::Ack(5000));
    talk.segments.remove(4);
    let account = talk.account(1 << 20, false);
    let repair = time(&account, &[State::RecoveryLoss]) / (9 * MS);
    (repair, server(&account).retransmitted.rto)
}

#[test]
fn a_lone_segment_behind_a_timers_pause_comes_from_a_timeout() {
    // The probe after 42 ms, and the timeout 220 ms later.
    assert_eq!(behind_a_pause(240 * MS, 1, MSS), (3, 1), "and the next segment's, half seen");
    assert_eq!(behind_a_pause(240 * MS, 2, MSS), (0, 0), "an application's pause");
    assert_eq!(behind_a_pause(240 * MS, 1, 700), (0, 0), "all that was written");
    assert_eq!(behind_a_pause(120 * MS, 1, MSS), (0, 0), "no timer ran out");
}

/// A flight of nine segments, whose first is short if `short`. A short tail was lost, and the probe retransmitted it.
/// Returns what else the wait for the flight's ACKs may be.
fn lost_short_tail(short: bool) -> Vec<State> {
    let mut talk = Talk::asked();
    talk.segments.remove(4);
    talk.now += 20 * MS;
    talk.data(1, if short { 200 } else { MSS });
    (0..8).for_each(|_| talk.data(1, MSS));
    talk.act(0, 10_000, Act::Ack(5000));
    talk.now += 240 * MS;
    let jump = talk.segments.len();
    talk.data(1, 300);
    talk.act(0, 10_000, Act::Ack(5000));
    talk.count(jump, 1);
    let account = talk.account(1 << 20, false);
    assert_eq!(server(&account).retransmitted.tlp, 1, "{:?}", server(&account).limits);
    let flights = server(&account).limits.iter().filter(|l| l.state == State::LastFlight);
    flights.flat_map(|limit| limit.alternative.clone()).collect()
}

#[test]
fn nagles_algorithm_may_have_held_a_short_tail_that_was_lost() {
    assert_eq!(lost_short_tail(true), [State::NagleDelack]);
    assert_eq!(lost_short_tail(false), [], "no short segment was in flight");
}

/// Whole flights of `before`, then one of `segments`, whose first is short. The ACK of that one alone lets out a short
/// last segment. Returns how long the sender waited for the congestion window and for Nagle's algorithm, in round
/// trips.
fn short_after(before: &[u32], segments: u32) -> [i64; 2] {
    let mut talk = Talk::asked();
    talk.flights(before);
    talk.data(1, 200);
    let head = talk.next[1];
    (1..segments).for_each(|_| talk.data(1, MSS));
    talk.now += 20 * MS;
    talk.acked[0] = head;
    talk.push(0, Flags::ACK, talk.next[0], 0, Options::default());
    talk.data(1, 300);
    talk.act(0, 20 * MS, Act::Ack(5000));
    let account = talk.account(1 << 20, false);
    [State::CwndSlowStart, State::NagleDelack].map(|state| time(&account, &[state]) / (20 * MS))
}

#[test]
fn a_full_initial_window_holds_a_short_segment_before_nagles_algorithm_does() {
    assert_eq!(short_after(&[], 10), [1, 0]);
    assert_eq!(short_after(&[], 9), [0, 1], "it let out one more");
    assert_eq!(short_after(&[], 11), [0, 1], "it is larger");
}

#[test]
fn a_full_window_of_slow_start_holds_a_short_segment_before_nagles_algorithm_does() {
    assert_eq!(short_after(&[10], 20), [2, 0]);
    assert_eq!(short_after(&[10], 18), [1, 1], "it let out two more");
}

/// The probe retransmits what had arrived. `times` more ACKs follow, and none of them reports that data. The tail is
/// retransmitted 60 ms later. Returns how many probes and other retransmissions there were.
fn probed_in_vain(times: u32) -> (u64, u64) {
    let mut talk = Talk::asked();
    talk.flights(&[10, 10]);
    (0..4).for_each(|_| talk.data(1, MSS));
    talk.act(1, 50 * MS, Act::Resend);
    talk.act(0, 5 * MS, Act::Ack(5000));
    talk.now += 100_000;
    (0..2).for_each(|_| talk.data(1, MSS));
    talk.now += 14 * MS;
    let acked = talk.next[1] - 2 * MSS;
    (0..times).for_each(|_| {
        talk.acked[0] = acked;
        talk.act(0, 100_000, Act::Repeat(5000));
    });
    talk.act(1, 70 * MS, Act::Resend);
    talk.act(0, 20 * MS, Act::Ack(5000));
    let repeated = server(&talk.account(1 << 20, false)).retransmitted;
    (repeated.tlp, repeated.fast)
}

#[test]
fn what_a_probe_brought_twice_is_acknowledged_twice_and_tells_of_no_loss() {
    assert_eq!(probed_in_vain(1), (2, 0));
    assert_eq!(probed_in_vain(2), (1, 1), "something behind it arrived");
}

/// The last two of three segments are lost, and the capture lacks the ACK of the first: the probe sends the last again,
/// and so long after it the second comes again. How many timeouts and other repeats there were, and how many tens of
/// milliseconds the timeout took. With `signs` there is a duplicate ACK before.
fn behind_an_ack_not_seen(pause: i64, signs: bool) -> (u64, u64, i64) {
    let mut talk = Talk::asked();
    talk.flights(&[10, 10]);
    (0..3).for_each(|_| talk.data(1, MSS));
    talk.act(1, 50 * MS, Act::Resend);
    if signs {
        talk.act(0, 20 * MS, Act::Repeat(5000));
    }
    talk.now += pause;
    let second = talk.next[1] - 2 * MSS;
    talk.push(1, Flags::ACK, second, MSS, Options::default());
    talk.act(0, 20 * MS, Act::Ack(5000));
    let account = talk.account(1 << 20, false);
    let repeated = server(&account).retransmitted;
    (repeated.rto, repeated.fast, time(&account, &[State::RtoWait]) / (10 * MS))
}

#[test]
fn without_a_sign_of_a_hole_it_is_a_timer_that_sends_again() {
    assert_eq!(behind_an_ack_not_seen(230 * MS, false), (1, 0, 23));
    assert_eq!(behind_an_ack_not_seen(100 * MS, false), (0, 1, 0), "no timer ran out");
    assert_eq!(behind_an_ack_not_seen(230 * MS, true), (0, 1, 0), "a hole may be known");
}

/// A second request on a connection, seen at the client. Its answer of `segments` and a short one comes `pause` behind the
/// request's ACK, all but its first `lost` segments, which come a round trip later. The server's packets count up, and
/// this many of them are missing before the answer. Returns for how long it waited for timers, and what it may have
/// waited for instead of its program.
fn answered_late(
    pause: i64,
    [segments, lost, len]: [u32; 3],
    missing: Option<u16>,
) -> (i64, Vec<State>) {
    let mut talk = Talk::asked();
    talk.flights(&[2, 2]);
    talk.act(0, 50 * MS, Act::Short);
    talk.act(1, 100_000, Act::Ack(500));
    talk.now += pause;
    let (first, begins) = (talk.next[1], talk.segments.len());
    talk.next[1] += lost * MSS;
    (0..segments - lost).for_each(|_| talk.data(1, MSS));
    talk.data(1, len);
    (talk.acked[0], talk.window[0]) = (first, 5000);
    if lost > 0 {
        talk.act(0, 10_000, Act::Repeat(5000));
        talk.now += 20 * MS;
        (0..lost).for_each(|number| {
            talk.push(1, Flags::ACK, first + number * MSS, MSS, Options::default());
        });
    }
    talk.act(0, 10_000, Act::Ack(5000));
    if let Some(missing) = missing {
        talk.count(begins, missing);
    }
    let account = talk.account(1 << 20, false);
    let thinks = server(&account).limits.iter().filter(|l| l.state == State::IdleAppThink);
    let longest = thinks.max_by_key(|l| l.end_ns - l.start_ns).map(|l| l.alternative.clone());
    (time(&account, &[State::RtoWait, State::TlpWait]) / MS, longest.unwrap_or_default())
}

#[test]
fn an_answer_that_was_lost_shows_by_what_is_missing_before_it() {
    let timers = vec![State::RtoWait, State::TlpWait];
    let whole = |pause, missing| answered_late(pause * MS, [0, 0, 700], missing);
    assert_eq!(whole(220, Some(1)).0, 220, "a timeout sent it again");
    assert_eq!(whole(220, Some(0)), (0, vec![]), "nothing is missing: the program was slow");
    assert_eq!(whole(500, Some(1)).0, 0, "no timer takes so long");
    assert_eq!(whole(220, None), (0, timers.clone()), "nothing counts its packets");
    assert_eq!(whole(195, None), (0, vec![]), "sooner than the timeout");
    assert_eq!(whole(260, None), (0, vec![]), "later than a timeout");
    let holed = |pause, lost| answered_late(pause * MS, [3, lost, 700], None);
    assert_eq!(holed(12, 1), (0, timers), "as late as a probe, and with a hole before it");
    assert_eq!(holed(12, 0), (0, vec![]), "nothing of it was lost");
    assert_eq!(holed(100, 1), (0, vec![]), "no timer takes so long");
}
