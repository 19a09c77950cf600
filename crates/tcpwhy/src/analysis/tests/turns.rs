//! Sides that talk in turns count without a walk: the same must come out as with one.

use proptest::prelude::*;

use super::talk::{Act, MSS, Talk};
use super::{Odd, counts_of, odd};
use crate::wire::{Flags, Options};

/// One side sends `len` bytes some time after what was before. Its peer acknowledges them by themselves
/// later, or at once with the next that it sends.
#[derive(Clone, Copy, Debug)]
struct Turn {
    side: usize,
    gap: i64,
    len: u32,
    ack: Option<i64>,
    /// How many identifications are missing before it.
    missing: u16,
}

fn turns() -> impl Strategy<Value = Vec<Turn>> {
    let gaps = [0, 1_000, 60_000, 900_000, 20_000_000, 45_000_000, 300_000_000];
    let gap = proptest::sample::select(gaps.to_vec());
    let ack = proptest::option::weighted(0.7, gap.clone());
    let len = prop_oneof![4 => 1u32..MSS, 1 => Just(MSS), 1 => Just(5 * MSS)];
    let missing = prop_oneof![20 => Just(0), 1 => 1u16..9];
    let turn = (proptest::bool::weighted(0.05), gap, len, ack, missing);
    proptest::collection::vec(turn, 1..12).prop_map(|turns| {
        let (mut side, mut all) = (1, Vec::new());
        for (again, gap, len, ack, missing) in turns {
            side = if again { side } else { 1 - side };
            all.push(Turn { side, gap, len, ack, missing });
        }
        all
    })
}

impl Talk {
    /// Opens the connection as [`Talk::open`] does, with windows that take a segment from the start.
    fn open_wide(&mut self) {
        self.open();
        self.segments[..2].iter_mut().for_each(|syn| syn.window = 64_000);
    }

    fn take_turns(&mut self, turns: &[Turn]) {
        for turn in turns {
            let Turn { side, gap, len, ack, .. } = *turn;
            self.now += gap;
            self.acked[side] = self.next[1 - side];
            self.data(side, len);
            if let Some(gap) = ack {
                self.act(1 - side, gap, Act::Ack(500));
            }
        }
    }

    /// The client ends, then the server, and each gets its ACK.
    fn close(&mut self, gap: i64) {
        for side in [0, 1] {
            self.now += gap;
            self.acked[side] = self.next[1 - side];
            self.push(side, Flags::ACK.with(Flags::FIN), self.next[side], 0, Options::default());
            self.next[side] += 1;
        }
        self.act(0, gap, Act::Ack(500));
    }

    /// Numbers each side's packets one by one; some of `turns` tell of packets that are not there.
    fn number(&mut self, turns: &[Turn]) {
        let mut ids = [7_u16, 900];
        let mut missing = turns.iter().map(|turn| turn.missing);
        let client = self.segments[0].source;
        for segment in &mut self.segments {
            let id = &mut ids[usize::from(segment.source != client)];
            let gone = if segment.payload_len > 0 { missing.next().unwrap_or(0) } else { 0 };
            *id = id.wrapping_add(1 + gone);
            segment.ip.id = Some(*id);
        }
    }
}

proptest! {
    #[test]
    fn turns_count_without_a_walk_as_with_one(
        turns in turns(),
        (closes, is_numbered) in any::<(bool, bool)>(),
        odd in proptest::collection::vec((any::<proptest::sample::Index>(), odd()), 0..2),
    ) {
        let mut talk = Talk::default();
        talk.open_wide();
        talk.take_turns(&turns);
        if closes {
            talk.close(turns[0].gap);
        }
        if is_numbered {
            talk.number(&turns);
        }
        for (at, odd) in odd {
            talk.spoil(at.index(talk.segments.len() - 1), odd);
        }
        if let Some(counted) = talk.counted() {
            prop_assert_eq!(counts_of(&counted), counts_of(&talk.outline()));
        }
    }
}

/// Whether a request and its answer count without a walk if the answer's segments are these and `change` is
/// made to the packets.
fn counts_without_a_walk(answer: &[u32], change: impl Fn(&mut Talk)) -> bool {
    let mut talk = Talk::default();
    talk.open_wide();
    let request = Turn { side: 0, gap: 1_000_000, len: 100, ack: Some(20_000_000), missing: 0 };
    talk.take_turns(&[request]);
    for len in answer {
        talk.data(1, *len);
    }
    talk.act(0, 10_000, Act::Ack(500));
    talk.close(5_000_000);
    change(&mut talk);
    talk.counted().is_some()
}

#[test]
fn only_answers_of_one_segment_need_no_walk() {
    assert!(counts_without_a_walk(&[259], |_| ()));
    assert!(!counts_without_a_walk(&[259, 1], |_| ()));
}

#[test]
fn what_is_not_acknowledged_missed_reset_or_repeated_needs_a_walk() {
    let needs = |change: fn(&mut Talk)| !counts_without_a_walk(&[259], change);
    assert!(needs(|talk| talk.segments.truncate(6)), "the answer's ACK never comes");
    assert!(needs(|talk| talk.spoil(5, Odd::AfterGap)));
    assert!(needs(|talk| talk.spoil(8, Odd::Flags(Flags::RST))));
    assert!(needs(|talk| talk.spoil(6, Odd::Sacked)));
    assert!(needs(|talk| talk.segments[1].window = 1000), "the request fills the first window");
    let repeats = |talk: &mut Talk| {
        let mut again = talk.segments[3].clone();
        again.time.0 += 19_000_000;
        talk.segments.insert(4, again);
    };
    assert!(needs(repeats));
}
