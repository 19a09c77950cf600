//! Originals that came so late that the receiver threw them away.

use super::talk::{Act, MSS, Talk};
use super::tapes::time;
use crate::report::{Connection, State};
use crate::wire::{Flags, Options};
use tcpwhy_words::units::{Seq, Time};

const MS: i64 = 1_000_000;

/// What the client says of the flight's first segment.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Told {
    /// Nothing.
    No,
    /// It came twice.
    Twice,
    /// This long after the repeat something came that tells nothing new, and that carries a timestamp of then, or one
    /// of before.
    Empty { after: i64, is_new: bool },
}

/// A flight of 20 segments, captured at the server. Its first `holes` segments seem lost and are repeated.
fn flight(talk: &mut Talk, holes: u32, told: Told) {
    let (first, in_order) = (talk.next[1], talk.stamps[1]);
    let reported = |talk: &mut Talk, to: u32| {
        let mut options = Options { sack_count: 1, ..Options::default() };
        options.sack[0] = (Seq(first + holes * MSS), Seq(first + to * MSS));
        talk.push(0, Flags::ACK, talk.next[0], 0, options);
        let pushed = &mut talk.segments.last_mut().expect("it was pushed").options;
        pushed.timestamps = Some((talk.stamps[0], in_order));
    };
    (0..20).for_each(|_| talk.data(1, MSS));
    talk.now += 20 * MS;
    (holes + 1..=15).for_each(|to| reported(talk, to));
    (0..holes)
        .for_each(|hole| talk.push(1, Flags::ACK, first + hole * MSS, MSS, Options::default()));
    let repeated = talk.now;
    talk.now += 2 * MS;
    (16..=20).for_each(|to| reported(talk, to));
    if let Told::Empty { after, is_new } = told {
        let before = talk.segments.last().expect("it was pushed").options.timestamps;
        talk.now = repeated + after;
        reported(talk, 20);
        let empty = talk.segments.last_mut().expect("it was pushed");
        empty.options.timestamps = if is_new { empty.options.timestamps } else { before };
    }
    talk.now = talk.now.max(repeated + 20 * MS);
    talk.act(0, 0, Act::Ack(5000));
    if told == Told::Twice {
        talk.now += 1_000;
        talk.report(first, first + MSS);
    }
    talk.now += 100_000;
}

/// A flight in which a repeat was needless, if `overtakes`, and one with `holes`. The client says `told` of these.
fn captured(overtakes: bool, holes: u32, told: Told) -> Connection {
    let mut talk = Talk::asked();
    // The server answers at once, and the client 20 ms later.
    talk.segments[1].time = Time(100_000);
    talk.flights(&[10]);
    if overtakes {
        flight(&mut talk, 1, Told::Twice);
    }
    flight(&mut talk, holes, told);
    talk.flights(&[20, 20]);
    talk.mark_at_server();
    talk.account(1 << 20, false)
}

#[test]
fn an_answer_to_nothing_before_the_repeat_can_have_come_was_to_the_original() {
    let lost = |overtakes, holes, told| {
        let account = captured(overtakes, holes, told);
        let direction = account.directions[1].as_deref().expect("data");
        let is_loss = time(&account, &[State::RecoveryLoss]) > 0;
        assert_eq!(is_loss, direction.events.lost > 0, "{:?}", direction.time_in);
        direction.events.lost
    };
    let empty = Told::Empty { after: 18 * MS, is_new: true };
    assert_eq!(lost(true, 1, empty), 0);
    assert_eq!(lost(true, 1, Told::No), 1, "the client says nothing");
    assert_eq!(lost(false, 1, empty), 1, "the receiver may report nothing that comes twice");
    assert_eq!(lost(true, 2, empty), 2, "either may be meant");
    let late = Told::Empty { after: 20 * MS, is_new: true };
    assert_eq!(lost(true, 1, late), 1, "it may answer the repeat");
    let copy = Told::Empty { after: 18 * MS, is_new: false };
    assert_eq!(lost(true, 1, copy), 1, "a copy, or one that was overtaken");
}

#[test]
fn what_was_cut_for_an_original_thrown_away_stays_cut() {
    let spent = |told| time(&captured(true, 1, told), &[State::CwndPostLoss, State::CwndAvoidance]);
    let empty = Told::Empty { after: 18 * MS, is_new: true };
    assert_eq!(spent(empty), spent(Told::No));
}
