//! Throughput: what passed the tap and what was acknowledged, in equal pieces of the time.

use super::{BITS, Figure, Mark, Series, Unit, about};
use crate::report::{Connection, Direction, Trail};

/// Pieces at least and at most. Ours: what a small and a large screen show one by one.
const PIECES: (i64, i64) = (40, 800);

/// The graph. A piece is a round trip where that gives a sensible number of them.
pub(super) fn figure(
    at: usize,
    connection: &Connection,
    direction: &Direction,
    trail: &Trail,
) -> Figure {
    let (piece, number) = pieces(connection.duration_ns, direction.rtt.min_ns);
    let sent = trail.sends.list.iter().chain(&trail.late.list);
    let wire =
        bins(piece, number, sent.map(|mark| (mark.at_ns, mark.until_ns, mark.to - mark.from)));
    let mut before = 0;
    let acked = trail.answers.list.iter().map(|mark| {
        let new = mark.acked.saturating_sub(before).max(0);
        before = before.max(mark.acked);
        (mark.at_ns, mark.until_ns, new)
    });
    let good = bins(piece, number, acked);
    let steps = |name, mark, ink, bins: Vec<i64>| {
        let points = bins.into_iter().enumerate().map(|(index, bytes)| {
            let rate = (i128::from(bytes) * BITS / i128::from(piece)) as i64;
            (index as i64 * piece, index as i64 * piece, rate, rate)
        });
        Series::of(name, mark, ink, points)
    };
    let link = direction.bottleneck_rate_bps.and_then(|rate| i64::try_from(rate).ok());
    Figure {
        id: "rate",
        title: "Throughput",
        axis: "bits a second",
        unit: Unit::Rate,
        about: about::rate(at, direction, piece),
        notes: Vec::new(),
        series: vec![
            steps("throughput (with repeats)", Mark::Area, "rate", wire),
            steps("goodput (acknowledged)", Mark::Steps, "ack", good),
            Series::steps("link rate", "bdp", link.map(|rate| (0, 0, rate, rate))),
        ],
    }
}

/// How long a piece is, and how many there are.
fn pieces(lifetime: i64, round_trip: Option<i64>) -> (i64, i64) {
    let lifetime = lifetime.max(1);
    let wanted = lifetime / round_trip.unwrap_or(1).max(1);
    let number = wanted.clamp(PIECES.0, PIECES.1);
    let piece = (lifetime / number).max(1);
    (piece, lifetime / piece + 1)
}

/// Bytes in each piece; those of a mark that lasts are spread over its time.
fn bins(piece: i64, number: i64, marks: impl Iterator<Item = (i64, i64, i64)>) -> Vec<i64> {
    let mut bins = vec![0_i64; number.max(1) as usize];
    let last = bins.len() as i64 - 1;
    for (from, until, bytes) in marks {
        let (first, end) = ((from / piece).clamp(0, last), (until / piece).clamp(0, last));
        let shares = end - first + 1;
        for at in first..=end {
            let share = bytes / shares + i64::from(at - first < bytes % shares);
            bins[at as usize] = bins[at as usize].saturating_add(share);
        }
    }
    bins
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_byte_is_lost_between_pieces() {
        let marks = [(0, 35, 100), (9, 9, 7), (1000, 1000, 3)];
        let bins = bins(10, 5, marks.into_iter());
        assert_eq!(bins, [32, 25, 25, 25, 3]);
        assert_eq!(bins.iter().sum::<i64>(), 110);
    }

    #[test]
    fn absurd_lifetimes_have_pieces() {
        for lifetime in [i64::MIN, 0, 1, i64::MAX] {
            let (piece, number) = pieces(lifetime, Some(0));
            assert!(piece > 0 && number > 0 && number < 2000, "{piece} {number}");
        }
    }
}
