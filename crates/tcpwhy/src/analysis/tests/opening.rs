//! How the opening of a connection shapes its first flights.

use super::talk::{Act, MSS, Talk};
use super::tapes::{server, time};
use crate::report::{InitialWindow, State};
use crate::wire::{Flags, Options};

const MS: i64 = 1_000_000;

/// What the first flight of a server was, at the client's tap: its SYNs at these times in ms, the SYN-ACK at `answer`
/// with the time stamp of the SYN number `echo`, then flights of these segments.
fn first_flight(syns: &[i64], answer: i64, echo: usize, flights: &[u32]) -> InitialWindow {
    let mut talk = Talk::default();
    talk.open();
    let options = talk.segments[0].options;
    talk.segments.clear();
    (talk.next, talk.acked) = Default::default();
    let mut stamps = Vec::new();
    for at in syns {
        talk.now = at * MS;
        talk.push(0, Flags::SYN, 0, 0, options);
        stamps.push(talk.stamps[0]);
    }
    (talk.now, talk.acked[1], talk.stamps[0]) = (answer * MS, 1, stamps[echo]);
    talk.push(1, Flags::SYN.with(Flags::ACK), 0, 0, options);
    (talk.next, talk.acked[0]) = ([1; 2], 1);
    talk.now += MS / 10;
    talk.push(0, Flags::ACK, 1, 0, Options::default());
    talk.data(0, 100);
    for (at, flight) in flights.iter().enumerate() {
        talk.now += 20 * MS;
        for number in 0..*flight {
            talk.now += MS / 100;
            talk.data(1, if at + 1 < flights.len() || number > 0 { MSS } else { 200 });
        }
        talk.act(0, 10_000, Act::Ack(500));
    }
    server(&talk.account(1 << 20, false)).initial_window.expect("a first flight")
}

#[test]
fn answers_lost_before_the_clients_tap_cut_the_servers_window() {
    let cut = |syns: &[i64], answer, echo, flights: &[u32]| {
        first_flight(syns, answer, echo, flights).cut_by_syns
    };
    assert!(cut(&[0, 1_000, 2_000], 2_020, 0, &[1, 2, 4, 8, 2]));
    assert!(cut(&[0, 1_000], 3_050, 0, &[1, 2, 4, 8, 2]));
    assert!(!cut(&[0, 1_000, 2_000], 2_020, 2, &[1, 2, 4, 8, 2]), "the SYNs were lost");
    assert!(!cut(&[0, 1_000], 999, 0, &[1, 2, 4, 8, 2]), "no timer ran out");
    assert!(!cut(&[0], 3_050, 0, &[1, 2, 4, 8, 2]), "a path this long lost nothing");
    assert!(!cut(&[0, 1_000, 2_000], 2_020, 0, &[10, 20, 30]), "a time stamp took it back");
}

/// How long a server was in slow start, in ms, whose SYN-ACK took the request, with that its first flight, and the rest
/// `lag` behind the ACK of it, a round trip of 40 ms later. The few answers of its host took 30 us.
fn waits_with_fast_open(lag: i64) -> i64 {
    let mut talk = Talk::default();
    talk.open();
    let options = talk.segments[0].options;
    talk = Talk { window: [500; 2], ..Talk::default() };
    talk.push(0, Flags::SYN, 0, 300, options);
    (talk.now, talk.acked[1]) = (30_000, 301);
    talk.push(1, Flags::SYN.with(Flags::ACK), 0, 0, options);
    (talk.next, talk.acked[0]) = ([301, 1], 1);
    talk.now += 100_000;
    (0..10).for_each(|_| talk.data(1, MSS));
    // What opens the connection, and what acknowledges data, have one time stamp.
    talk.now = 40 * MS + 100_000;
    talk.push(0, Flags::ACK, 301, 0, Options::default());
    talk.act(0, 100_000, Act::Ack(500));
    talk.now += lag;
    (0..9).for_each(|_| talk.data(1, MSS));
    talk.data(1, 200);
    talk.act(0, 40 * MS, Act::Ack(500));
    let account = talk.account(1 << 20, false);
    time(&account, &[State::CwndSlowStart]) / MS
}

#[test]
fn what_went_with_the_syn_ack_fills_the_window_until_its_ack_comes() {
    assert_eq!(waits_with_fast_open(17_000), 40, "nearer than its answers tell");
    assert_eq!(waits_with_fast_open(50_000), 40);
    assert_eq!(waits_with_fast_open(20 * MS), 0, "its program wrote late");
}
