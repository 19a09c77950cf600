//! What the packets of a direction show one by one: how fast the narrowest link let them through, and
//! where its application's writes ended.
//!
//! Only spacing and sizes are looked at. When a packet was sent is not taken over: the model finds it.

use tcpwhy::report::{Connection, Direction, Vantage};

use crate::socket::Offered;
use crate::world::Side;

/// Pairs of packets that a rate needs. Ours: fewer may all be of one train that the sender spaced; half and
/// twice as many change nothing (`whatif::search`).
const LEAST_PAIRS: usize = 8;

/// Rate of payload at which one side's data came through the narrowest link: what lay between two
/// neighbours of a full segment or more, the median by bytes. `None` where too few neighbours have a distance.
///
/// A train of packets leaves the narrowest link spaced by it (packet pairs; Keshav 1991, Jacobson 1988). At the
/// receiver the data is looked at; elsewhere its acknowledgments, which keep that spacing.
pub(super) fn spacing(
    direction: &Direction,
    from: Side,
    vantage: Vantage,
    mss: u64,
) -> Option<u64> {
    let is_at_receiver = matches!(
        (vantage, from),
        (Vantage::Client, Side::Server) | (Vantage::Server, Side::Client)
    );
    let points = if is_at_receiver { direction.passed.points.clone() } else { acked(direction) };
    let pairs = points.windows(2).map(|pair| (pair[1].0 - pair[0].0, pair[1].1 - pair[0].1));
    let mut pairs: Vec<(u64, u64)> = pairs
        .filter(|(ns, bytes)| *ns > 0 && *bytes >= mss)
        .map(|(ns, bytes)| (rate(bytes, ns), bytes))
        .collect();
    if pairs.len() < LEAST_PAIRS {
        return None;
    }
    pairs.sort_unstable();
    let half = pairs.iter().map(|(_, bytes)| bytes).sum::<u64>() / 2;
    let mut below = 0;
    let middle = pairs.iter().find(|(_, bytes)| {
        below += bytes;
        below > half
    });
    middle.map(|(rate, _)| *rate)
}

/// When the acknowledged bytes reached each count, each count once.
pub(super) fn acked(direction: &Direction) -> Vec<(i64, u64)> {
    let mut kept: Vec<(i64, u64)> = Vec::new();
    for answer in &direction.answers.points {
        if kept.last().is_none_or(|last| last.1 < answer.acked) {
            kept.push((answer.at_ns, answer.acked));
        }
    }
    kept
}

/// Bits per second.
pub(super) fn rate(bytes: u64, ns: i64) -> u64 {
    let bits = u128::from(bytes) * 8_000_000_000;
    u64::try_from(bits / u128::from(ns.max(1).unsigned_abs())).unwrap_or(u64::MAX)
}

/// Where a write of the application ended, counted in bytes from the first: a segment that is not full
/// and that no window cut short ends one. None where not each packet was kept.
///
/// A window cuts the buffer that is to be sent (`tso_fragment`, 6.1): what is left of it goes out when the window
/// opens, full segments first, and its tail is short though no write ends there.
pub(super) fn write_ends(direction: &Direction, mss: u64) -> Vec<u64> {
    if direction.passed.is_thinned {
        return Vec::new();
    }
    let (mut before, mut edge, mut was_cut) = (0, 0, false);
    let mut answers = direction.answers.points.iter().peekable();
    let mut ends = Vec::new();
    for &(at_ns, end) in &direction.passed.points {
        while let Some(answer) = answers.next_if(|answer| answer.at_ns <= at_ns) {
            edge = edge.max(answer.edge);
        }
        if (end - before) % mss != 0 {
            let is_cut = end == edge;
            if !is_cut && !was_cut {
                ends.push(end);
            }
            was_cut = is_cut;
        }
        before = end;
    }
    ends
}

/// When the byte before `end` first passed the tap.
pub(super) fn passed_at(direction: &Direction, end: u64) -> Option<i64> {
    let points = &direction.passed.points;
    points.get(points.partition_point(|point| point.1 < end)).map(|point| point.0)
}

/// The last answer that passed before `at_ns`, with what it acknowledged.
pub(super) fn answered_before(direction: &Direction, at_ns: i64) -> Option<(i64, u64)> {
    let points = &direction.answers.points;
    let next = points.partition_point(|answer| answer.at_ns < at_ns);
    let acked = points.get(next.checked_sub(1)?)?.acked;
    // Of several with the same count the first tells when it came.
    let first = points.partition_point(|answer| answer.acked < acked);
    Some((points[first].at_ns, acked))
}

/// The host that was captured.
pub(super) const fn captured(connection: &Connection) -> Option<Side> {
    match connection.vantage {
        Vantage::Client => Some(Side::Client),
        Vantage::Server => Some(Side::Server),
        Vantage::Middle | Vantage::Unknown => None,
    }
}

/// From the capture point to a host and back, where that is known. Times of the captured host are its own.
pub(super) fn tap_rtt(connection: &Connection, side: Side) -> Option<i64> {
    match side {
        _ if captured(connection) == Some(side) => Some(0),
        Side::Client => connection.tap_to_client_rtt_ns,
        Side::Server => connection.tap_to_server_rtt_ns,
    }
}

/// Whether the sender let out a short end of what it had written though another short segment was not acknowledged:
/// Nagle's algorithm is off (`tcp_nagle_check`, `tcp_minshall_check`; `TCP_NODELAY`). `turns` are where its peer's turn
/// began: short segments that more follows at once pass (`tcp_write_xmit`), and so does one with the FIN.
pub(super) fn passes_nagle(direction: &Direction, turns: &[u64], mss: u64) -> bool {
    let with_fin = direction.passed.fin.is_some_and(|fin| fin.with_data);
    let (mut before, mut short) = (0, 0);
    !direction.passed.is_thinned
        && direction.passed.points.iter().any(|&(at_ns, end)| {
            let is_short = (end - before) % mss != 0;
            let may_wait =
                is_short && turns.contains(&end) && !(with_fin && end == direction.bytes);
            // Of the same instant it may have come first.
            let acked = || answered_before(direction, at_ns + 1).map_or(0, |last| last.1);
            let passes = may_wait && short > acked();
            before = end;
            short = if is_short { end } else { short };
            passes
        })
}

/// Rate of payload over the last half of what came.
pub(super) fn sustained(curve: &[(i64, u64)]) -> Option<u64> {
    let (end_ns, end) = *curve.last()?;
    let middle = curve.get(curve.partition_point(|point| point.1 < end / 2))?;
    (end_ns > middle.0 && end > middle.1).then(|| rate(end - middle.1, end_ns - middle.0))
}

/// The most that came between two instants beyond what `rate` bits per second carry in that time: the credit
/// of the smallest token bucket of this rate that lets it all pass.
pub(super) fn excess(curve: &[(i64, u64)], rate: u128) -> u64 {
    let refilled = |ns: i64| (rate * u128::from(ns.max(0).unsigned_abs()) / 8_000_000_000) as i128;
    let (mut least, mut most) = (i128::MAX, 0);
    for (at_ns, bytes) in curve {
        let beyond = i128::from(*bytes) - refilled(*at_ns);
        least = least.min(beyond);
        most = most.max(beyond - least);
    }
    u64::try_from(most).unwrap_or(0)
}

/// The windows that the receiver offered, one by one.
pub(super) fn windows(direction: &Direction) -> Offered {
    Offered::new(direction.answers.points.iter().map(|answer| (answer.acked, answer.edge)))
}

/// The largest of them, in bytes.
pub(super) fn largest_window(direction: &Direction) -> u64 {
    let points = direction.answers.points.iter();
    points.map(|answer| answer.edge.saturating_sub(answer.acked)).max().unwrap_or(0)
}

/// Writes that are all alike, in bytes, and the time between two of them: where the ends that show lie
/// at multiples of one size.
pub(super) fn steady_writes(direction: &Direction, mss: u64) -> Option<(u64, u64)> {
    let ends = write_ends(direction, mss);
    let ends = &ends[..ends.len().checked_sub(1)?];
    let apart = ends.windows(2).map(|pair| pair[1] - pair[0]);
    let bytes = apart.reduce(greatest_common_divisor).filter(|bytes| *bytes >= LEAST_WRITE)?;
    let (first, last) = (*ends.first()?, *ends.last()?);
    let count = (last - first) / bytes;
    let ns = passed_at(direction, last)? - passed_at(direction, first)?;
    (ends.len() > LEAST_ENDS && ns > 0).then(|| (bytes, ns.unsigned_abs() / count.max(1)))
}

fn greatest_common_divisor(a: u64, b: u64) -> u64 {
    if b == 0 { a } else { greatest_common_divisor(b, a % b) }
}

/// Ours: smaller divisors come by chance; half and twice as much change nothing (`whatif::search`).
const LEAST_WRITE: u64 = 64;

/// Ends of writes that have to agree. Ours: that three distances share a divisor of 64 or more by chance
/// happens once in some thousands; half and twice as many change nothing (`whatif::search`).
const LEAST_ENDS: usize = 3;

#[cfg(test)]
pub(super) mod tests {
    use tcpwhy::report::{Answer, Answers, FinPassed, Passed};

    use super::*;

    const MSS: u64 = 1000;

    /// Data that passed (time, last byte), and the windows that were offered (time, acknowledged, edge).
    pub(in crate::fit) fn direction(
        passed: &[(i64, u64)],
        answers: &[(i64, u64, u64)],
    ) -> Direction {
        let answer = |&(at_ns, acked, edge)| Answer { at_ns, acked, edge };
        Direction {
            bytes: passed.last().map_or(0, |last| last.1),
            passed: Passed { points: passed.to_vec(), ..Passed::default() },
            answers: Answers { points: answers.iter().map(answer).collect(), ..Answers::default() },
            ..Direction::default()
        }
    }

    #[test]
    fn a_short_segment_ends_a_write_unless_a_window_cut_it() {
        let passed = [(0, 1000), (1, 1300), (2, 2300), (3, 2500), (9, 3300), (9, 4000)];
        // The window ended at byte 2500, and what it cut off follows when it opens.
        let sent = direction(&passed, &[(0, 0, 2500), (8, 2500, 9000)]);
        assert_eq!(write_ends(&sent, MSS), [1300, 4000]);
        let mut thinned = sent;
        thinned.passed.is_thinned = true;
        assert!(write_ends(&thinned, MSS).is_empty());
    }

    #[test]
    fn a_short_end_behind_a_short_segment_waits_unless_nagle_is_off() {
        let sent =
            |acked_at| direction(&[(10, 300), (11, 1300), (12, 1500)], &[(acked_at, 300, 9000)]);
        let fin = |with_data| {
            let mut sent = sent(30);
            sent.passed.fin = Some(FinPassed { at_ns: 12, with_data });
            sent
        };
        assert!(passes_nagle(&sent(30), &[1500], MSS));
        assert!(passes_nagle(&sent(13), &[1500], MSS));
        assert!(!passes_nagle(&sent(12), &[1500], MSS), "the first was acknowledged");
        assert!(!passes_nagle(&sent(30), &[2500], MSS), "more followed it");
        assert!(!passes_nagle(&sent(30), &[300], MSS), "the first");
        assert!(passes_nagle(&fin(false), &[1500], MSS));
        assert!(!passes_nagle(&fin(true), &[1500], MSS), "with the FIN it may pass");
        let full = direction(&[(10, 300), (11, 1300), (12, 2300)], &[(30, 300, 9000)]);
        assert!(!passes_nagle(&full, &[2300], MSS), "a full one may pass");
    }

    #[test]
    fn the_tail_of_a_buffer_that_a_window_cut_ends_no_write() {
        // Of a buffer of four segments the window lets 2500 bytes pass; the tail comes behind a full segment.
        let passed = [(0, 1000), (1, 2000), (2, 2500), (9, 3500), (9, 4000), (10, 4300)];
        let sent = direction(&passed, &[(0, 0, 2500), (8, 2500, 9000)]);
        assert_eq!(write_ends(&sent, MSS), [4300]);
    }

    #[test]
    fn a_bucket_has_the_credit_that_the_data_took_beyond_its_rate() {
        // 5000 bytes at once, then 1000 each millisecond, which are 8 Mbit/s.
        let curve = [(0, 1000), (0, 5000), (1_000_000, 6000), (2_000_000, 7000)];
        assert_eq!(excess(&curve, 8_000_000), 4000);
        assert_eq!(excess(&curve, 16_000_000), 4000);
        assert_eq!(excess(&curve, 4_000_000), 5000);
    }

    #[test]
    fn writes_of_one_size_show_by_what_their_ends_share() {
        let passed: Vec<(i64, u64)> =
            (1..=6).map(|n: i64| (n * 2_000_000, n.unsigned_abs() * 700)).collect();
        assert_eq!(steady_writes(&direction(&passed, &[]), MSS), Some((700, 2_000_000)));
        assert_eq!(steady_writes(&direction(&passed[..4], &[]), MSS), None, "too few");
    }
}
