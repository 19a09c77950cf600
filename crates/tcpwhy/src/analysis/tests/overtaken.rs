//! Segments that others overtook, seen away from their sender.

use super::talk::{Act, MSS, Talk};
use super::tapes::time;
use crate::report::{Connection, State};
use crate::wire::{Flags, Options};

const MS: i64 = 1_000_000;

/// At the client: the first segment of a flight of 20 is missing, and is repeated 20 ms later. Then it comes, sent
/// `sent` milliseconds ago, or not at all.
fn captured(sent: Option<u32>) -> Connection {
    let mut talk = Talk::asked();
    talk.flights(&[10]);
    let first = talk.next[1];
    talk.act(1, 0, Act::Unseen);
    (0..19).for_each(|_| talk.data(1, MSS));
    (0..4).for_each(|_| talk.act(0, 1_000, Act::Repeat(5000)));
    talk.now += 20 * MS;
    talk.push(1, Flags::ACK, first, MSS, Options::default());
    talk.act(0, 1_000, Act::Ack(5000));
    talk.now += 5 * MS;
    if let Some(sent) = sent {
        talk.push(1, Flags::ACK, first, MSS, Options::default());
        let late = &mut talk.segments.last_mut().expect("it was pushed").options;
        late.timestamps = late.timestamps.map(|(own, echo)| (own - sent, echo));
    }
    talk.now += 15 * MS;
    talk.flights(&[20, 20]);
    talk.account(1 << 20, false)
}

#[test]
fn what_comes_behind_its_repeat_and_was_sent_before_it_was_not_lost() {
    let told = |sent| {
        let account = captured(sent);
        let direction = account.directions[1].as_deref().expect("data");
        let lost = time(&account, &[State::RecoveryLoss]) > 0;
        let needless = time(&account, &[State::RecoveryReorderSpurious]) > 0;
        assert_ne!(lost, needless, "{:?}", direction.time_in);
        (
            direction.events.lost,
            direction.retransmitted.spurious,
            direction.events.out_of_order,
            lost,
        )
    };
    assert_eq!(told(Some(40)), (0, 1, 1, false));
    assert_eq!(told(None), (1, 0, 0, true));
    let again = told(Some(0));
    assert!(again.3 && again.2 == 0, "repeated again: {again:?}");
}
