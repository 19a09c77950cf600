//! Uploads that stand in a queue on their way: what the server waited for before it answered.

use super::talk::{Act, MSS, Talk};
use crate::report::Connection;
use crate::wire::{Flags, Options};

const MS: i64 = 1_000_000;

/// The client sends 40 segments at once over a path of 20 ms whose link takes a millisecond for each. The server
/// acknowledges each, or all of them at the end, and answers `later` than the last ACK came.
fn uploaded(acks_each: bool, later: i64) -> Connection {
    let mut talk = Talk::default();
    talk.open();
    let begun = talk.now;
    talk.act(0, 10_000, Act::Burst(40));
    for segment in 1..=40 {
        talk.now = begun + 20 * MS + i64::from(segment) * MS;
        talk.acked[1] = 1 + segment * MSS;
        if acks_each || segment == 40 {
            talk.push(1, Flags::ACK, talk.next[1], 0, Options::default());
        }
    }
    talk.act(1, later, Act::Short);
    talk.act(0, 10_000, Act::Ack(500));
    talk.account(1 << 20, false)
}

/// How long the server thought, in milliseconds.
fn thought(account: &Connection) -> Option<i64> {
    account.exchanges[0].server_think_ns.map(|ns| ns / MS)
}

#[test]
fn a_server_that_lacked_a_part_of_the_request_did_not_think() {
    assert_eq!(
        thought(&uploaded(true, 10_000)),
        Some(1),
        "from the last ACK that names a missing byte"
    );
}

#[test]
fn a_server_that_had_all_of_it_thought() {
    assert_eq!(thought(&uploaded(true, 60 * MS)), Some(61));
}

#[test]
fn without_such_acks_nothing_tells_that_it_waited() {
    assert_eq!(thought(&uploaded(false, 10_000)), Some(39));
}
