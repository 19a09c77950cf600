//! Applications that write now and then, seen away from them.

use super::talk::{Act, MSS, Talk};
use super::tapes::time;
use crate::report::State;

const MS: i64 = 1_000_000;

/// At the client, 20 ms from the server: twenty flights of this many `writes`. A write is `full` segments, one more
/// every `growth` flights, and a `rest` in bytes. Each flight follows the ACK of the one before by 20 ms and what
/// `late` says of it. Returns for how many hundredths of that lateness the application was silent with nothing in
/// flight.
fn written([writes, full, rest]: [u32; 3], growth: u32, late: impl Fn(i64) -> i64) -> i64 {
    let mut talk = Talk::default();
    talk.open();
    talk.act(0, 10_000, Act::Short);
    talk.now += 20 * MS;
    let mut all = 0;
    for flight in 0..20 {
        for _ in 0..writes {
            (0..if flight == 0 { 3 } else { full + flight / growth })
                .for_each(|_| talk.data(1, MSS));
            talk.data(1, rest);
        }
        talk.act(0, 100_000, Act::Ack(500));
        talk.now += 20 * MS + late(i64::from(flight));
        all += late(i64::from(flight));
    }
    time(&talk.account(1 << 20, false), &[State::IdleAppThink]) * 100 / all.max(1)
}

#[test]
fn what_is_late_by_the_same_time_again_and_again_was_written_late() {
    let never = 1_000;
    let told = written([1, 3, 500], never, |_| 2 * MS);
    assert!((70..80).contains(&told), "all but the first five, and the last: {told}");
    assert_eq!(written([1, 3, 500], never, |_| MS / 2), 0, "as soon as an ACK lets it out");
    assert_eq!(written([1, 3, 500], never, |flight| (2 + flight % 2) * MS), 0, "jitter");
    assert_eq!(written([1, 3, MSS], never, |_| 2 * MS), 0, "a window or a buffer may end so");
    assert_eq!(written([2, 3, 500], never, |_| 2 * MS), 0, "what two writes fill, too");
    assert_eq!(written([1, 0, 500], never, |_| 2 * MS), 0, "Nagle's algorithm may hold it");
    assert_eq!(written([1, 3, 500], 2, |_| 2 * MS), 0, "a window that grows");
}
