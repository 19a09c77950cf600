//! Single situations, packets in and fates out, times in the margin.

use tcpwhy_model::scenario::plan::{Loss, Overhead, Queue, TokenBucket, Way};

use super::{Decision, Direction, Fate, Packet};

const MS: u64 = 1_000_000;

/// Offers packets of 1000 bytes at these instants and lets all of them through.
fn run(mut direction: Direction, offers: &[u64]) -> Vec<Decision> {
    for (number, at) in offers.iter().enumerate() {
        let packet = Packet { number: number as u64, bytes: 1000, data: 900 };
        direction.offer(*at, packet);
    }
    direction.advance(3_600_000 * MS);
    std::iter::from_fn(|| direction.poll()).collect()
}

fn fates(way: &Way, offers: &[u64]) -> Vec<Fate> {
    run(Direction::new(way, 1, 0, 0), offers).into_iter().map(|decision| decision.fate).collect()
}

fn arrives(left_ns: u64, due_ns: u64) -> Fate {
    Fate::Delivered {
        left_ns,
        due_ns,
        stack_ns: due_ns,
        held_back: false,
        twice: false,
        flipped: None,
    }
}

/// 8 Mbit/s: a packet a millisecond.
fn slow() -> Way {
    Way { rate: 8_000_000, ..Way::default() }
}

#[test]
fn a_way_without_anything_delays_nothing() {
    assert_eq!(fates(&Way::default(), &[5, 5, 7]), [arrives(5, 5), arrives(5, 5), arrives(7, 7)]);
}

#[test]
fn packets_leave_one_after_the_other_at_the_rate() {
    let way = Way { delay_ns: 10 * MS, ..slow() };
    assert_eq!(
        fates(&way, &[0, 0, 5 * MS]),
        [arrives(MS, 11 * MS), arrives(2 * MS, 12 * MS), arrives(6 * MS, 16 * MS)]
    );
}

#[test]
fn the_packet_being_sent_does_not_wait() {
    // Two packets of room, one on the link: the fourth finds the queue full, and the instant the
    // first has left there is room again.
    let way = Way { queue: Queue::Packets(2), ..slow() };
    assert_eq!(
        fates(&way, &[0, 0, 0, 0, MS]),
        [
            Fate::QueueFull,
            arrives(MS, MS),
            arrives(2 * MS, 2 * MS),
            arrives(3 * MS, 3 * MS),
            arrives(4 * MS, 4 * MS)
        ]
    );
}

#[test]
fn a_queue_in_bytes_holds_just_so_many() {
    let way = |limit| Way { queue: Queue::Bytes(limit), ..slow() };
    assert_eq!(fates(&way(2000), &[0, 0, 0]).len(), 3);
    assert!(!fates(&way(2000), &[0, 0, 0]).contains(&Fate::QueueFull));
    assert!(fates(&way(1999), &[0, 0, 0]).contains(&Fate::QueueFull));
}

#[test]
fn a_decision_says_what_the_packet_found() {
    let found: Vec<u64> = run(Direction::new(&slow(), 1, 0, 0), &[0, 0, 0, 2 * MS])
        .iter()
        .map(|decision| decision.found.packets)
        .collect();
    assert_eq!(found, [0, 0, 1, 0]);
}

#[test]
fn what_a_link_adds_takes_its_time() {
    let way = Way { overhead: Overhead { bytes: 8, atm: true }, ..slow() };
    // 1008 bytes in 21 cells of 53.
    assert_eq!(fates(&way, &[0]), [arrives(21 * 53 * 1000, 21 * 53 * 1000)]);
}

#[test]
fn a_bucket_lets_its_burst_pass_and_then_its_rate() {
    let bucket = TokenBucket { rate: 8_000_000, burst: 2000, queue: 10_000 };
    let way = Way { bucket: Some(bucket), ..Way::default() };
    assert_eq!(
        fates(&way, &[0, 0, 0, 0]),
        [arrives(0, 0), arrives(0, 0), arrives(MS, MS), arrives(2 * MS, 2 * MS)]
    );
}

#[test]
fn a_bucket_without_a_queue_polices() {
    let bucket = TokenBucket { rate: 8_000_000, burst: 2000, queue: 0 };
    let way = Way { bucket: Some(bucket), ..Way::default() };
    assert_eq!(
        fates(&way, &[0, 0, 0, MS - 1, MS]),
        [arrives(0, 0), arrives(0, 0), Fate::Policed, Fate::Policed, arrives(MS, MS)]
    );
}

#[test]
fn a_bucket_refuses_what_could_never_find_credit() {
    let bucket = TokenBucket { rate: 8_000_000, burst: 999, queue: 10_000 };
    let way = Way { bucket: Some(bucket), ..Way::default() };
    assert_eq!(fates(&way, &[0]), [Fate::TooLong]);
}

#[test]
fn a_lost_packet_took_its_time_on_the_link() {
    let way = Way { loss: Loss::Exact(vec![1]), ..slow() };
    assert_eq!(fates(&way, &[0, 0]), [Fate::Lost { left_ns: MS }, arrives(2 * MS, 2 * MS)]);
}

#[test]
fn a_change_of_rate_keeps_what_waits_and_what_was_sent() {
    // Half of the first is sent when the link becomes ten times faster.
    let mut direction = Direction::new(&slow(), 1, 0, 0);
    direction.schedule([(MS / 2, Way { rate: 80_000_000, ..Way::default() })]);
    let fates: Vec<Fate> = run(direction, &[0, 0]).into_iter().map(|one| one.fate).collect();
    assert_eq!(fates, [arrives(550_000, 550_000), arrives(650_000, 650_000)]);
}

#[test]
fn a_change_keeps_counting_for_exact_losses() {
    let lossy = Way { loss: Loss::Exact(vec![3]), ..Way::default() };
    let mut direction = Direction::new(&lossy, 1, 0, 0);
    direction.schedule([(15, Way { delay_ns: MS, ..lossy.clone() })]);
    let fates: Vec<Fate> = run(direction, &[0, 10, 20]).into_iter().map(|one| one.fate).collect();
    assert_eq!(fates, [arrives(0, 0), arrives(10, 10), Fate::Lost { left_ns: 20 }]);
}

#[test]
fn the_distance_between_stack_and_tap_comes_before_and_behind_all() {
    let way = Way { delay_ns: 10 * MS, ..slow() };
    let decision = run(Direction::new(&way, 1, 2 * MS, 3 * MS), &[0])[0];
    assert_eq!(decision.arrived_ns, 2 * MS);
    let Fate::Delivered { left_ns, due_ns, stack_ns, .. } = decision.fate else {
        panic!("{decision:?}");
    };
    assert_eq!((left_ns, due_ns, stack_ns), (3 * MS, 13 * MS, 16 * MS));
}

#[test]
fn what_is_held_back_is_overtaken() {
    let way = Way { reorder: 500_000, reorder_ns: 5 * MS, ..Way::default() };
    let offers: Vec<u64> = (0..100).map(|number| number * MS).collect();
    let late: Vec<u64> = fates(&way, &offers)
        .iter()
        .zip(&offers)
        .map(|(fate, at)| match fate {
            Fate::Delivered { due_ns, .. } => due_ns - at,
            _ => panic!("{fate:?}"),
        })
        .collect();
    assert!(late.iter().all(|late| [0, 5 * MS].contains(late)), "{late:?}");
    assert!((25..75).contains(&late.iter().filter(|late| **late > 0).count()), "{late:?}");
}

#[test]
fn only_a_payload_is_damaged() {
    let way = Way { corrupt: 1_000_000, ..Way::default() };
    let mut direction = Direction::new(&way, 1, 0, 0);
    direction.offer(0, Packet { number: 0, bytes: 66, data: 0 });
    direction.offer(0, Packet { number: 1, bytes: 67, data: 1 });
    let flipped: Vec<bool> = std::iter::from_fn(|| direction.poll())
        .map(|decision| matches!(decision.fate, Fate::Delivered { flipped: Some(0..8), .. }))
        .collect();
    assert_eq!(flipped, [false, true]);
}
