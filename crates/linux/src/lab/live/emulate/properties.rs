//! What holds for every way and every packet.

use proptest::collection::vec;
use proptest::prelude::*;
use tcpwhy_model::scenario::plan::{Loss, Queue, TokenBucket, Way};

use super::{Decision, Direction, Fate, Packet};

const SECOND: u64 = 1_000_000_000;

fn a_queue() -> impl Strategy<Value = Queue> {
    prop_oneof![
        Just(Queue::Endless),
        (0_u64..20_000).prop_map(Queue::Bytes),
        (0_u64..20).prop_map(Queue::Packets),
    ]
}

fn a_loss() -> impl Strategy<Value = Loss> {
    prop_oneof![
        Just(Loss::None),
        (0_u32..1_000_000).prop_map(Loss::Random),
        (0_u32..1_000_000, 1_u32..1_000_000, 0_u32..1_000_000)
            .prop_map(|(enter, leave, bad)| Loss::Gilbert { enter, leave, bad }),
        vec(1_u64..50, 0..10).prop_map(Loss::Exact),
    ]
}

fn a_bucket() -> impl Strategy<Value = TokenBucket> {
    (1_u64..1_000_000_000, 0_u64..20_000, prop_oneof![Just(0), 0_u64..20_000])
        .prop_map(|(rate, burst, queue)| TokenBucket { rate, burst, queue })
}

/// A way on which packets do not overtake.
fn an_orderly_way() -> impl Strategy<Value = Way> {
    let rate = prop_oneof![Just(0), 8_000_u64..10_000_000_000];
    let link = (rate, a_queue(), proptest::option::of(a_bucket()));
    (link, a_loss(), 0_u64..SECOND, 0_u32..1_000_000, 0_u32..1_000_000).prop_map(
        |((rate, queue, bucket), loss, delay_ns, duplicate, corrupt)| Way {
            rate,
            queue,
            bucket,
            loss,
            delay_ns,
            duplicate,
            corrupt,
            ..Way::default()
        },
    )
}

fn a_way() -> impl Strategy<Value = Way> {
    (an_orderly_way(), 0_u64..SECOND, 0_u32..1_000_000, 0_u64..SECOND).prop_map(
        |(way, jitter_ns, reorder, reorder_ns)| Way { jitter_ns, reorder, reorder_ns, ..way },
    )
}

/// Gaps before packets, and their lengths.
fn traffic() -> impl Strategy<Value = Vec<(u64, u32)>> {
    vec((prop_oneof![Just(0), 0_u64..2_000_000], 54_u32..1515), 1..120)
}

/// Runs the traffic to its end, asking for the time in steps that its length decides.
fn run(mut direction: Direction, traffic: &[(u64, u32)]) -> Vec<Decision> {
    let mut now = 0;
    for (number, (gap, bytes)) in traffic.iter().enumerate() {
        now += gap;
        if bytes % 3 == 0 {
            direction.advance(now.saturating_sub(gap / 2));
        }
        let data = bytes - 54;
        direction.offer(now, Packet { number: number as u64, bytes: *bytes, data });
    }
    direction.advance(1_000_000 * SECOND);
    std::iter::from_fn(|| direction.poll()).collect()
}

fn in_order_of_leaving(decisions: &[Decision]) -> Vec<(u64, Decision)> {
    decisions.iter().filter_map(|one| Some((one.fate.left_ns()?, *one))).collect()
}

proptest! {
    #[test]
    fn every_packet_has_one_fate(way in a_way(), traffic in traffic(), seed: u64) {
        let decisions = run(Direction::new(&way, seed, 0, 0), &traffic);
        let mut numbers: Vec<u64> = decisions.iter().map(|one| one.packet.number).collect();
        numbers.sort_unstable();
        prop_assert_eq!(numbers, (0..traffic.len() as u64).collect::<Vec<_>>());
    }

    #[test]
    fn every_packet_has_one_fate_while_the_way_changes(
        way in a_way(), other in a_way(), at in 0..SECOND / 10, traffic in traffic(), seed: u64,
    ) {
        let mut direction = Direction::new(&way, seed, 0, 0);
        direction.schedule([(at, other)]);
        let decisions = run(direction, &traffic);
        let mut numbers: Vec<u64> = decisions.iter().map(|one| one.packet.number).collect();
        numbers.sort_unstable();
        prop_assert_eq!(numbers, (0..traffic.len() as u64).collect::<Vec<_>>());
    }

    #[test]
    fn no_window_sees_more_than_the_rate(
        rate in 8_000_u64..10_000_000_000, queue in a_queue(), traffic in traffic(),
    ) {
        let way = Way { rate, queue, ..Way::default() };
        let left = in_order_of_leaving(&run(Direction::new(&way, 1, 0, 0), &traffic));
        // From the end of any packet to the end of any later one: all behind the first was sent.
        for (first, (from, _)) in left.iter().enumerate() {
            let mut bits = 0;
            for (to, decision) in &left[first + 1..] {
                bits += u128::from(decision.packet.bytes) * 8;
                prop_assert!(bits * 1_000_000_000 <= u128::from(to - from) * u128::from(rate));
            }
        }
    }

    #[test]
    fn no_window_sees_more_than_burst_and_rate(bucket in a_bucket(), traffic in traffic()) {
        let way = Way { bucket: Some(bucket), ..Way::default() };
        let left = in_order_of_leaving(&run(Direction::new(&way, 1, 0, 0), &traffic));
        for (first, (from, _)) in left.iter().enumerate() {
            let mut bits = 0;
            for (to, decision) in &left[first..] {
                bits += u128::from(decision.packet.bytes) * 8;
                let credit = u128::from(bucket.burst) * 8 * 1_000_000_000;
                let gained = u128::from(to - from) * u128::from(bucket.rate);
                prop_assert!(bits * 1_000_000_000 <= credit + gained);
            }
        }
    }

    #[test]
    fn a_busy_link_never_idles(rate in 8_000_u64..10_000_000_000, traffic in traffic()) {
        let way = Way { rate, ..Way::default() };
        let left = in_order_of_leaving(&run(Direction::new(&way, 1, 0, 0), &traffic));
        let mut free = 0;
        for (at, decision) in left {
            let bits = u128::from(decision.packet.bytes) * 8 * 1_000_000_000;
            let takes = bits.div_ceil(u128::from(rate)) as u64;
            prop_assert_eq!(at, free.max(decision.arrived_ns) + takes);
            free = at;
        }
    }

    #[test]
    fn no_more_waits_than_fits(way in a_way(), traffic in traffic(), seed: u64) {
        for decision in run(Direction::new(&way, seed, 0, 0), &traffic) {
            match (way.bucket, way.queue) {
                (Some(bucket), _) => prop_assert!(decision.found.bytes <= bucket.queue),
                (None, Queue::Bytes(limit)) => prop_assert!(decision.found.bytes <= limit),
                (None, Queue::Packets(limit)) => prop_assert!(decision.found.packets <= limit),
                (None, Queue::Endless | Queue::FqCodel) => prop_assert_ne!(decision.fate, Fate::QueueFull),
            }
        }
    }

    #[test]
    fn without_jitter_and_reordering_none_overtakes(
        way in an_orderly_way(), traffic in traffic(), near in 0..SECOND, far in 0..SECOND,
    ) {
        let decisions = run(Direction::new(&way, 1, near, far), &traffic);
        let delivered: Vec<(u64, u64)> = decisions
            .iter()
            .filter_map(|one| match one.fate {
                Fate::Delivered { stack_ns, .. } => Some((one.packet.number, stack_ns)),
                _ => None,
            })
            .collect();
        prop_assert!(delivered.is_sorted_by(|a, b| a.0 < b.0 && a.1 <= b.1), "{:?}", delivered);
    }

    #[test]
    fn delays_stay_within_the_jitter(way in a_way(), traffic in traffic(), seed: u64) {
        for decision in run(Direction::new(&way, seed, 0, 0), &traffic) {
            let Fate::Delivered { left_ns, due_ns, held_back, .. } = decision.fate else { continue };
            prop_assert!(left_ns >= decision.arrived_ns);
            let held = if held_back { way.reorder_ns } else { 0 };
            let least = way.delay_ns.saturating_sub(way.jitter_ns) + held;
            prop_assert!((least..=way.delay_ns + way.jitter_ns + held).contains(&(due_ns - left_ns)));
        }
    }

    #[test]
    fn whoever_asks_when_needed_hears_of_every_packet_in_time(
        way in a_way(), other in a_way(), at in 0..SECOND / 10, traffic in traffic(),
        far in 0..SECOND / 10, seed: u64,
    ) {
        let mut direction = Direction::new(&way, seed, 0, far);
        direction.schedule([(at, other)]);
        let mut heard = Vec::new();
        let mut now = 0;
        for (number, (gap, bytes)) in traffic.iter().enumerate() {
            while let Some(needed) = direction.needed_by().filter(|needed| *needed <= now + gap) {
                direction.advance(needed);
                heard.extend(std::iter::from_fn(|| direction.poll()).map(|one| (needed, one)));
            }
            now += gap;
            let data = bytes - 54;
            direction.offer(now, Packet { number: number as u64, bytes: *bytes, data });
            heard.extend(std::iter::from_fn(|| direction.poll()).map(|one| (now, one)));
        }
        while let Some(needed) = direction.needed_by() {
            direction.advance(needed);
            heard.extend(std::iter::from_fn(|| direction.poll()).map(|one| (needed, one)));
        }
        prop_assert_eq!(heard.len(), traffic.len());
        for (when, decision) in heard {
            if let Fate::Delivered { stack_ns, .. } = decision.fate {
                prop_assert!(when <= stack_ns, "{} {:?}", when, decision);
            }
        }
    }

    #[test]
    fn the_same_seed_gives_the_same_fates(way in a_way(), traffic in traffic(), seed: u64) {
        let once = run(Direction::new(&way, seed, 0, 0), &traffic);
        prop_assert_eq!(once, run(Direction::new(&way, seed, 0, 0), &traffic));
    }

    #[test]
    fn asking_late_changes_nothing(way in a_way(), traffic in traffic(), seed: u64) {
        let late = run(Direction::new(&way, seed, 0, 0), &traffic);
        let mut direction = Direction::new(&way, seed, 0, 0);
        let mut now = 0;
        let mut eager = Vec::new();
        for (number, (gap, bytes)) in traffic.iter().enumerate() {
            now += gap;
            while let Some(at) = direction.next_at().filter(|at| *at <= now) {
                direction.advance(at);
                eager.extend(std::iter::from_fn(|| direction.poll()));
            }
            let data = bytes - 54;
            direction.offer(now, Packet { number: number as u64, bytes: *bytes, data });
        }
        direction.advance(1_000_000 * SECOND);
        eager.extend(std::iter::from_fn(|| direction.poll()));
        prop_assert_eq!(late, eager);
    }
}
