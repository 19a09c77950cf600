//! How connections end that waited in vain, and those that only look so.

use super::talk::{Act, MSS, Talk};
use super::tapes::time;
use crate::report::{Connection, Ending, EndingKind, State};
use crate::wire::{Flags, Options};

const MS: i64 = 1_000_000;

fn ending(account: &Connection) -> Option<(EndingKind, u64)> {
    account.ending.as_deref().map(|Ending { kind, bytes, .. }| (*kind, *bytes))
}

/// One segment that is retransmitted this many times, each time after twice as long. The client answers each with
/// this window, or not.
fn sent_again(times: u32, window: Option<u16>) -> Connection {
    let mut talk = Talk::asked();
    talk.data(1, MSS);
    for nth in 0..times {
        if let Some(window) = window {
            talk.act(0, 20 * MS, Act::Repeat(window));
        }
        talk.act(1, (500 * MS) << nth, Act::Resend);
    }
    talk.account(1 << 20, false)
}

#[test]
fn what_was_sent_three_times_and_never_acknowledged_was_not_repaired() {
    let account = sent_again(2, None);
    assert_eq!(ending(&account), Some((EndingKind::NeverAcknowledged, u64::from(MSS))));
    assert_eq!(time(&account, &[State::SilenceNoAck]) / (10 * MS), 150);
    assert_eq!(time(&account, &[State::RtoWait, State::RecoveryLoss, State::LastFlight]), 0);
    assert_eq!(ending(&sent_again(1, None)), None, "the capture may end in a repair");
}

#[test]
fn what_is_sent_again_into_a_window_of_0_probes_it() {
    let shut = sent_again(4, Some(0));
    assert_eq!(ending(&shut), None);
    assert!(time(&shut, &[State::ZeroWindow]) > 3_000 * MS);
    assert_eq!(shut.directions[1].as_ref().map(|sent| sent.events.lost), Some(0));
    let open = sent_again(4, Some(500));
    assert_eq!(ending(&open).map(|found| found.0), Some(EndingKind::NeverAcknowledged));
    assert_eq!(time(&open, &[State::ZeroWindow]), 0);
}

/// At the client a segment is missing before a short one. After `later` the client asks for it. It comes, or not.
fn missing(later: i64, comes: bool) -> Connection {
    let mut talk = Talk::asked();
    talk.now += 20 * MS;
    let hole = talk.next[1];
    talk.act(1, 0, Act::Unseen);
    talk.data(1, 200);
    talk.act(0, later, Act::Repeat(500));
    if comes {
        talk.push(1, Flags::ACK, hole, MSS, Options::default());
        talk.act(0, 2_000 * MS, Act::Ack(500));
    }
    talk.account(1 << 20, false)
}

#[test]
fn a_hole_that_stays_for_a_second_is_told_where_it_is_seen() {
    let found = Some((EndingKind::NeverArrived, u64::from(MSS)));
    assert_eq!(ending(&missing(1_000 * MS, false)), found);
    assert_eq!(ending(&missing(999 * MS, false)), None);
    assert_eq!(ending(&missing(1_000 * MS, true)), None, "it came at last");
}

#[test]
fn a_bare_ack_counts_what_was_sent_before_it() {
    let told = |unseen: usize| {
        let mut talk = Talk::asked();
        (0..unseen).for_each(|_| talk.act(1, 0, Act::Unseen));
        talk.act(0, 2_000 * MS, Act::Repeat(500));
        talk.act(1, 20 * MS, Act::Ack(500));
        let account = talk.account(1 << 20, false);
        (ending(&account), account.failure.map(|failure| failure.kind))
    };
    assert_eq!(told(3), (Some((EndingKind::NeverArrived, 3 * u64::from(MSS))), None));
    assert_eq!(told(0).0.map(|found| found.0), Some(EndingKind::NoAnswer));
}

#[test]
fn a_connection_is_kept_open_until_the_first_fin() {
    let kept = |pause: i64| {
        let mut talk = Talk::asked();
        talk.data(1, 200);
        talk.act(0, 20 * MS, Act::Ack(500));
        talk.now += pause;
        talk.push(0, Flags::FIN.with(Flags::ACK), talk.next[0], 0, Options::default());
        talk.act(1, 20 * MS, Act::Ack(500));
        let account = talk.account(1 << 20, false);
        [State::IdleKeptOpen, State::Closing].map(|state| time(&account, &[state]) / MS)
    };
    assert_eq!(kept(150 * MS), [149, 20], "but for the way from the tap");
    assert_eq!(kept(99 * MS), [0, 118], "a program may take some time to close");
}
