//! Links whose rate falls, and comes back or does not.

use super::RoundBook;
use crate::clocks::StackTime;
use crate::limits::round::Round;

/// Enters a round of 30 ms with as many segments, which came evenly, and with a queue; whether the link was slower.
fn enter(book: &mut RoundBook, number: i64, segments: i64) -> bool {
    enter_spaced(book, number, segments, (&[30_000 / segments], 10_000_000))
}

/// The same with segments at these distances in microseconds, over and over, and with `queue` above the least round
/// trip.
fn enter_spaced(
    book: &mut RoundBook,
    number: i64,
    segments: i64,
    (distances, queue): (&[i64], i64),
) -> bool {
    let times = distances.iter().cycle().take(64);
    times.for_each(|us| book.spacing.push(1448, us * 1_000));
    let (start, least) = (number * 30_000_000, 20_000_000);
    let rtt = least + queue;
    let round = Round {
        number: number.cast_unsigned(),
        start: StackTime(start),
        end: StackTime(start + 30_000_000),
        acked: segments * 1448,
        rtt_min: Some(rtt),
        rtt_max: rtt,
        rtt_sum: 30 * rtt,
        rtt_count: 30,
        ..Round::default()
    };
    book.enter(&round, least, true);
    book.closed.kept.back().is_some_and(|round| round.is_slower)
}

/// Whether the link turns out to be slower in a round behind five others of 30 segments each.
fn slower(segments: i64, distances: &[i64], queue: i64) -> bool {
    let mut book = RoundBook::default();
    let before = (0..5).any(|number| enter(&mut book, number, 30));
    assert!(!before, "they are alike");
    enter_spaced(&mut book, 5, segments, (distances, queue))
}

#[test]
fn a_link_is_slower_if_even_neighbours_in_its_queue_come_further_apart() {
    let queue = 10_000_000;
    assert!(slower(20, &[1_500], queue));
    assert!(!slower(21, &[1_500], queue), "less than a third of its rate is missing");
    assert!(!slower(20, &[1_490], queue), "neighbours came closer");
    assert!(!slower(10, &[1_000, 5_000], queue), "others have the rest of it");
    assert!(!slower(20, &[1_500], 0), "no queue stood: the sender had no more to send");
}

#[test]
fn a_rate_came_back_if_it_was_as_high_before_and_behind_slower_rounds() {
    let came_back = |slower_rounds: i64, behind: i64| {
        let mut book = RoundBook::default();
        let slow = 5..5 + slower_rounds;
        for number in 0..slow.end + behind {
            enter(&mut book, number, if slow.contains(&number) { 20 } else { 30 });
        }
        book.closed.came_back
    };
    assert!(came_back(6, 6));
    assert!(!came_back(0, 12), "it never fell");
    assert!(!came_back(6, 0), "it never rose");
    assert!(came_back(40, 6), "however long it took");
}
