//! A sender that keeps to a clock of its own while it repairs what was lost.

use super::talk::{Act, MSS, Talk};
use super::tapes::{server, time};
use crate::report::{Connection, State};
use crate::wire::{Flags, Options};

const MS: i64 = 1_000_000;

/// Pulses of two segments come each 4 ms, over a round trip of 20 ms. A segment of pulse 25 is lost, and retransmitted
/// with pulse 33; with each pulse up to `until` another that was lost behind it. ACKs arrive so long before each pulse.
/// Returns also for how long the sender kept to its clock, and for how long it repaired.
fn repaired_until(until: usize, before: impl Fn(usize) -> i64) -> (Connection, i64, i64) {
    let mut talk = Talk::default();
    talk.open();
    talk.act(0, 10_000, Act::Short);
    talk.act(1, 100_000, Act::Ack(500));
    let mut ends = Vec::new();
    for pulse in 0..60 + until {
        let before = before(pulse);
        talk.now += 4 * MS - before;
        if let Some(arrived) = usize::checked_sub(pulse, 5) {
            let acked = if (25..until).contains(&arrived) { 24 } else { arrived };
            talk.acked[0] = ends[acked];
            talk.push(0, Flags::ACK, talk.next[0], 0, Options::default());
        }
        talk.now += before;
        if (33..=until).contains(&pulse) {
            let lost = ends[24] + (pulse - 33) as u32 * 2 * MSS;
            talk.push(1, Flags::ACK, lost, MSS, Options::default());
        }
        (0..2).for_each(|_| talk.data(1, MSS));
        ends.push(talk.next[1]);
    }
    talk.act(0, 20 * MS, Act::Ack(500));
    let account = talk.account(1 << 20, false);
    assert!(server(&account).retransmitted.fast > 0, "{:?}", server(&account).retransmitted);
    // Its round trip is longer than what the ends answered in at first: a queue, to the report.
    let paced = time(&account, &[State::Pacing, State::BandwidthSelfQueue]);
    let repair = time(&account, &[State::RecoveryLoss]);
    (account, paced, repair)
}

#[test]
fn a_sender_keeps_to_its_clock_in_a_repair() {
    let (_, pacing, repair) = repaired_until(33, |_| 2 * MS);
    assert!(pacing > 200 * MS && repair < 5 * MS, "{pacing} {repair}");
    // What ACKs let out waits for the repair.
    let (.., repair) = repaired_until(33, |_| 100_000);
    assert!(repair > 15 * MS, "{repair}");
}

#[test]
fn what_an_ack_seems_to_let_out_in_a_repair_may_have_waited_for_the_clock() {
    let by_chance = |times: &'static [usize]| {
        let before = |pulse| if times.contains(&pulse) { 10_000 } else { 2 * MS };
        let (account, _, repair) = repaired_until(47, before);
        let repairs = server(&account).limits.iter().filter(|l| l.state == State::RecoveryLoss);
        let may_be_paced = repairs.map(|l| l.alternative == [State::Pacing]);
        (repair / MS, may_be_paced.collect::<Vec<_>>())
    };
    assert_eq!(by_chance(&[]), (0, vec![]));
    assert_eq!(by_chance(&[37]), (4, vec![true]));
    assert_eq!(by_chance(&[37, 41]), (8, vec![true; 2]));
    let (_, paced, repair) = repaired_until(47, |_| 10_000);
    assert!(repair > 50 * MS, "all of it follows ACKs: {paced} {repair}");
}
