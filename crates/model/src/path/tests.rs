//! Ways and queues with frames of a size and a flow.

use super::*;
use crate::scenario::plan::{Overhead, TokenBucket};

/// A packet.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub(super) struct Frame {
    pub(super) flow: u32,
    pub(super) bytes: u32,
    /// Its transport understands marks.
    pub(super) capable: bool,
    pub(super) marked: bool,
    /// It is cut into pieces of so much.
    pub(super) piece: u32,
    pub(super) departs: u64,
    pub(super) damaged: bool,
}

impl Frame {
    pub(super) fn of(flow: u32, bytes: u32) -> Self {
        Self { flow, bytes, ..Self::default() }
    }
}

impl OnWire for Frame {
    fn wire_bytes(&self) -> u32 {
        self.bytes
    }

    fn has_data(&self) -> bool {
        self.bytes > 100
    }

    fn flow(&self) -> u32 {
        self.flow
    }

    fn mark_congestion(&mut self) -> bool {
        self.marked = self.capable;
        self.capable
    }

    fn damage(&mut self) {
        self.damaged = true;
    }
}

impl HandedDown for Frame {
    fn departs_ns(&self) -> u64 {
        self.departs
    }

    fn pieces(&self) -> VecDeque<Self> {
        let size = if self.piece == 0 { self.bytes } else { self.piece };
        let starts = (0..self.bytes).step_by(size as usize);
        starts.map(|at| Self { bytes: size.min(self.bytes - at), ..*self }).collect()
    }
}

/// When each frame arrives at the far end.
fn arrivals(way: &mut Way<Frame>) -> Vec<(u64, Frame)> {
    let mut arrived = Vec::new();
    while let Some(at) = way.next() {
        arrived.extend(way.advance(at).map(|frame| (at, frame)));
    }
    arrived
}

#[test]
fn cells_of_53_bytes_carry_48() {
    let dsl = Overhead { bytes: 8, atm: true };
    // 1506 bytes fill 32 cells, and one more.
    assert_eq!([1498, 1528, 1529, 40].map(|b| dsl.on_line(b)), [32 * 53, 32 * 53, 33 * 53, 53]);
    assert_eq!(Overhead { bytes: 24, atm: false }.on_line(1514), 1538);
    let settings = Settings { rate: 1_000_000, overhead: dsl, ..Settings::default() };
    let mut way = Way::new(settings, 1, 0);
    way.offer(0, Frame::of(1, 1498));
    // 32 cells of 424 bits at 1 Mbit/s.
    assert_eq!(arrivals(&mut way)[0].0, 32 * 424 * 1_000);
}

#[test]
fn a_link_tells_what_is_too_long_unless_it_is_a_black_hole() {
    let settings = Settings { mtu: Some(1400), ..Settings::default() };
    let mut way = Way::new(settings.clone(), 1, 0);
    assert_eq!(way.offer(0, Frame::of(1, 1400 + ETHERNET)), None);
    assert_eq!(way.offer(0, Frame::of(1, 1401 + ETHERNET)), Some(1400));
    let mut hole = Way::new(Settings { black_hole: true, ..settings }, 1, 0);
    assert_eq!(hole.offer(0, Frame::of(1, 1500)), None);
    assert_eq!((arrivals(&mut way).len(), arrivals(&mut hole).len()), (1, 0));
    assert_eq!((way.counts.too_long, hole.counts.too_long), (1, 1));
}

#[test]
fn only_data_is_damaged() {
    let mut way = Way::new(Settings { corrupt: 1_000_000, ..Settings::default() }, 1, 0);
    way.offer(0, Frame::of(1, 60));
    way.offer(0, Frame::of(1, 1514));
    let damaged: Vec<_> = arrivals(&mut way).iter().map(|(_, frame)| frame.damaged).collect();
    assert_eq!(damaged, [false, true]);
}

/// Every packet that is offered is delivered, dropped, lost or on its way, whatever the settings
/// and their changes; the same seed gives the same run.
#[test]
fn packets_are_conserved() {
    for seed in 0..200 {
        let run = || {
            let mut dice = Chance::new(seed);
            let mut way = Way::new(any(&mut dice), seed, 0);
            let (mut arrived, mut offered, mut now) = (Vec::new(), 0, 0);
            for step in 0..400 {
                now += dice.below(2_000_000);
                while let Some(at) = way.next().filter(|at| *at <= now) {
                    arrived.extend(way.advance(at).map(|frame| (at, frame)));
                }
                if step == 200 {
                    way.change(any(&mut dice), now);
                }
                for _ in 0..dice.below(5) {
                    let bytes = 60 + dice.below(1455) as u32;
                    let frame = Frame {
                        capable: dice.hits(300_000),
                        ..Frame::of(dice.below(4) as u32, bytes)
                    };
                    way.offer(now, frame);
                    offered += 1;
                }
            }
            arrived.extend(arrivals(&mut way));
            (arrived, offered, way.counts)
        };
        let (arrived, offered, counts) = run();
        let gone = counts.overflowed + counts.lost + counts.too_long;
        assert_eq!(counts.offered, offered);
        assert_eq!(arrived.len() as u64 + gone, offered + counts.duplicated, "{seed} {counts:?}");
        assert_eq!((arrived, offered, counts), run(), "{seed}");
    }
}

fn any(dice: &mut Chance) -> Settings {
    let queue = match dice.below(4) {
        0 => Queue::FqCodel,
        1 => Queue::Packets(1 + dice.below(20)),
        2 => Queue::Bytes(1514 + dice.below(60_000)),
        _ => Queue::Endless,
    };
    let bucket = TokenBucket {
        rate: 1_000_000 + dice.below(20_000_000),
        burst: 2_000 + dice.below(20_000),
        queue: dice.below(2) * 20_000,
    };
    Settings {
        rate: dice.below(3) * 5_000_000,
        queue,
        bucket: dice.hits(300_000).then_some(bucket),
        overhead: Overhead { bytes: dice.below(50) as u32, atm: dice.hits(500_000) },
        mtu: dice.hits(200_000).then_some(1_000),
        delay_ns: dice.below(10_000_000),
        jitter_ns: dice.below(2) * 3_000_000,
        duplicate: dice.below(2) as u32 * 20_000,
        corrupt: dice.below(2) as u32 * 20_000,
        ..Settings::default()
    }
}
