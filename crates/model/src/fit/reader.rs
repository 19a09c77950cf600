//! What the windows of a direction show of the program that reads at its end.

use tcpwhy::report::{Answer, Direction};

use super::steps::Pieces;
use super::{Fit, trace};

/// Rate in bytes read per second by which the window's edge went on in the last half of what came.
pub(super) fn edge_rate(direction: &Direction) -> Option<u64> {
    let edges: Vec<(i64, u64)> =
        direction.answers.points.iter().map(|each| (each.at_ns, each.edge)).collect();
    let acked = direction.answers.points.last()?.acked;
    let last = edges.partition_point(|edge| edge.1 <= acked);
    trace::sustained(&edges[..last.max(2).min(edges.len())]).map(|bits| bits / 8)
}

/// The longest time for which the window's edge stood still before it went on, though a good part of the window
/// had come: what was acknowledged when it last moved, and how long it stood.
pub(super) fn longest_stand(direction: &Direction) -> Option<(u64, i64)> {
    let points = &direction.answers.points;
    let stands = points.chunk_by(|a, b| b.edge <= a.edge);
    let moved: Vec<(Answer, u64)> =
        stands.filter_map(|stand| Some((*stand.first()?, stand.last()?.acked))).collect();
    let came = |(first, acked): &(Answer, u64)| {
        (acked - first.acked) * STANDS >= first.edge.saturating_sub(first.acked)
    };
    let pairs = moved.windows(2).filter(|pair| came(&pair[0]));
    let stands = pairs.map(|pair| (pair[0].0.acked, pair[1].0.at_ns - pair[0].0.at_ns));
    stands.max_by_key(|(_, ns)| *ns)
}

/// The longest time for which the window was smaller than it had been, by an eighth or more: what its receiver's
/// program had not read was missing in it. A window that is never told again counts until the last answer.
pub(super) fn longest_unread(direction: &Direction) -> i64 {
    let (mut largest, mut since, mut longest) = (0, None, 0);
    for answer in &direction.answers.points {
        let window = answer.edge.saturating_sub(answer.acked);
        if let Some(since) = since {
            longest = longest.max(answer.at_ns - since);
        }
        if window >= largest - largest / SHRINKS {
            since = None;
        } else {
            since = since.or(Some(answer.at_ns));
        }
        largest = largest.max(window);
    }
    longest
}

/// A window is smaller where this part of the largest is missing. Ours: of `make whatif EACH=2 SEED=39` a reader
/// that stopped took a quarter of it; half of that is enough.
const SHRINKS: u64 = 8;

/// An edge is still where this part of the window came without that it moved. Ours: windows that grow, or open again
/// by steps of two segments, show less; half and twice as much change nothing (`whatif::search`).
const STANDS: u64 = 4;

/// The time between two reads of a program that pauses after each. It is the longest one that divides the distances
/// between moves of the window's edge, in the last half of what came.
///
/// A window that is full opens by what was read, at the read; where too little was read for a segment it opens a
/// read later (`__tcp_select_window`, 6.1), so that some distances are two pauses and more.
pub(super) fn read_period(direction: &Direction, mss: u64) -> Option<i64> {
    let moved = moves(direction, mss);
    let apart: Vec<i64> = moved.windows(2).map(|pair| pair[1] - pair[0]).collect();
    if apart.len() < LEAST_MOVES {
        return None;
    }
    let mut sorted = apart.clone();
    sorted.sort_unstable();
    // The shortest distances may be jitter, the longer ones several pauses.
    let few = [sorted[sorted.len() / 10], sorted[sorted.len() / 4], sorted[sorted.len() / 2]];
    let tried =
        few.into_iter().flat_map(|ns| [ns, ns / 2, ns / 3]).filter(|ns| *ns >= LEAST_PERIOD_NS);
    let fitting = tried.filter_map(|ns| period_near(&apart, ns));
    fitting.max()
}

/// The period near `ns` that divides nearly all distances.
fn period_near(apart: &[i64], ns: i64) -> Option<i64> {
    let times = |of: i64| (of + ns / 2) / ns;
    let is_multiple = |of: i64| times(of) > 0 && (of - times(of) * ns).abs() <= ns / OFF;
    let fitting: Vec<i64> = apart.iter().copied().filter(|of| is_multiple(*of)).collect();
    let count: i64 = fitting.iter().map(|of| times(*of)).sum();
    (fitting.len() * 10 >= apart.len() * 9).then(|| fitting.iter().sum::<i64>() / count.max(1))
}

/// When the window's edge went on by a segment or more, in the last half of what came but for the last.
fn moves(direction: &Direction, mss: u64) -> Vec<i64> {
    let points = &direction.answers.points;
    let all = points.last().map_or(0, |last| last.acked);
    let below = |bytes: u64| points.partition_point(|answer| answer.acked < bytes);
    // What is read when all has come moves the edge at the reader's end, or not at all.
    let late = &points[below(all / 2)..below(all)];
    let mut edge = late.first().map_or(0, |first| first.edge);
    let mut moved = Vec::new();
    for answer in late {
        if answer.edge >= edge + mss {
            moved.push(answer.at_ns);
        }
        edge = edge.max(answer.edge);
    }
    moved
}

/// Distances that have to agree. Ours: by chance one of ten does, for the nine things tried here.
const LEAST_MOVES: usize = 8;

/// So small a part of the period distances may be off. Ours: a program's sleeps are some 0.1 ms longer than asked.
pub(super) const OFF: i64 = 20;

/// Moves that are nearer to each other are of packets, not of reads. Ours: what a host takes from an
/// acknowledgment to what that lets go (`steps`).
const LEAST_PERIOD_NS: i64 = 200_000;

impl Fit {
    /// What is fitted has no pauses of the receiver's program.
    pub(crate) fn reads_at_once(&self) -> bool {
        !self.has_pauses() && self.manner.stall.is_none()
    }

    /// The same with a receiver's program that reads what there is, without pauses.
    pub(crate) fn reading_all(&self) -> Self {
        let mut fit = self.clone();
        (fit.manner.reads, fit.manner.stall) = (None, None);
        fit
    }

    /// The same with one that reads at this rate of bits a second.
    pub(crate) fn reading_at(&self, rate: u64) -> Self {
        let bytes = self.manner.reads.map_or(USUAL_READ, |reads| reads.bytes).max(1);
        let pause = u128::from(bytes) * 8 * 1_000_000_000 / u128::from(rate.max(1));
        let pause_ns = u64::try_from(pause).unwrap_or(u64::MAX);
        let mut fit = self.reading_all();
        fit.manner.reads = Some(Pieces { bytes, pause_ns });
        fit
    }
}

/// What a program reads at once where nothing tells. Ours: a usual buffer.
const USUAL_READ: u64 = 16_384;

#[cfg(test)]
mod tests {
    use super::super::trace::tests::direction;
    use super::*;

    const MSS: u64 = 1000;

    #[test]
    fn a_window_stands_when_much_of_it_came_and_its_edge_did_not_move() {
        let answers =
            [(0, 0, 8000), (5, 1000, 9000), (6, 3000, 9000), (7, 5000, 9000), (90, 5000, 20_000)];
        assert_eq!(longest_stand(&direction(&[(1, 5000)], &answers)), Some((1000, 85)));
    }

    /// Windows that open at these milliseconds by 2000 bytes, and are full when they do.
    fn opened(at_ms: &[i64]) -> Direction {
        let answers =
            at_ms.iter().zip(0..).map(|(ms, n)| (ms * 1_000_000, n * 2000, n * 2000 + 2000));
        direction(&[(0, 1)], &answers.collect::<Vec<_>>())
    }

    #[test]
    fn reads_with_a_pause_show_by_what_the_distances_of_windows_share() {
        let early = [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12];
        let late = [40, 65, 90, 140, 165, 240, 265, 290, 340, 365, 390, 415];
        let both = [early, late].concat();
        assert_eq!(read_period(&opened(&both), MSS), Some(25_000_000));
        let uneven = [40, 53, 90, 131, 165, 212, 265, 287, 340, 361, 390, 429];
        assert_eq!(read_period(&opened(&[early, uneven].concat()), MSS), None, "no pause");
        assert_eq!(read_period(&opened(&late[..8]), MSS), None, "too few in the last half");
    }
}
