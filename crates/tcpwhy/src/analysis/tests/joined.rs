//! Captures of both ends of a connection in one file.

use super::talk::{Act, MSS, Talk};
use super::tapes::server;
use crate::wire::{Flags, Options};

const MS: i64 = 1_000_000;

/// Captures of the client and of the server, 20 ms from each other, joined: packets, copies, and retransmissions.
fn joined(counted: bool) -> [u64; 3] {
    let mut talk = Talk::asked();
    talk.flights(&[10, 20, 40, 40]);
    let lost = talk.next[1];
    (0..4).for_each(|_| talk.data(1, MSS));
    (0..3).for_each(|_| talk.act(0, 1_000, Act::Repeat(500)));
    talk.now += 20 * MS;
    talk.push(1, Flags::ACK, lost, MSS, Options::default());
    talk.act(0, 20 * MS, Act::Ack(500));
    for (segment, id) in talk.segments.iter_mut().zip(1..) {
        segment.ip.id = Some(if counted { id } else { 0 });
    }
    let mut copies = talk.segments.clone();
    for copy in &mut copies {
        copy.time.0 += 20 * MS;
    }
    talk.segments.extend(copies);
    talk.segments.sort_by_key(|segment| segment.time.0);
    let account = talk.account(1 << 20, false);
    [account.packets, account.duplicates, server(&account).retransmitted.total()]
}

#[test]
fn captures_of_both_ends_that_were_joined_hold_each_packet_once() {
    let [packets, copies, again] = joined(true);
    assert_eq!((copies, again), (packets, 1));
    let [_, copies, again] = joined(false);
    assert!(copies >= 2, "SYNs are known by their time stamps");
    assert!(again > 100, "data without a counter may have been retransmitted: {again}");
}
