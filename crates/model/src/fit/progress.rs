//! When a direction's bytes were acknowledged, as the capture point saw it.

use serde::{Deserialize, Serialize};
use tcpwhy::report::Direction;

use super::trace;
use crate::socket::Offered;

/// Parts of the bytes at whose ends two runs are compared. Ours: half and twice as many change nothing
/// (`whatif::search`).
const PARTS: u64 = 64;

/// When each of equal parts of the bytes was acknowledged, in nanoseconds after the first byte passed; empty
/// where no packets were kept.
#[derive(Clone, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
pub struct Progress {
    acked_ns: Vec<i64>,
    /// The windows that were offered meanwhile.
    windows: Option<Offered>,
    /// The largest of them.
    largest_window: u64,
}

impl Progress {
    /// That of a direction.
    pub fn of(direction: &Direction) -> Self {
        let Some(first) = direction.passed.points.first() else { return Self::default() };
        let curve = trace::acked(direction);
        let parts = (1..=PARTS).map(|part| direction.bytes * part / PARTS);
        let reached = |bytes: u64| curve.get(curve.partition_point(|point| point.1 < bytes));
        Self {
            acked_ns: parts.map_while(reached).map(|point| point.0 - first.0).collect(),
            windows: Some(trace::windows(direction)),
            largest_window: trace::largest_window(direction),
        }
    }

    /// The largest window that was offered, in bytes; 0 where no packets were kept.
    pub const fn largest_window(&self) -> u64 {
        self.largest_window
    }

    /// How far two runs are apart, on the mean; none where one of them is not known.
    pub fn apart(&self, other: &Self) -> i64 {
        let pairs = self.acked_ns.iter().zip(&other.acked_ns).map(|(a, b)| (a - b).abs());
        let (sum, count) = pairs.fold((0, 0), |(sum, count), apart| (sum + apart, count + 1));
        sum / count.max(1)
    }

    /// How far the windows of `own` are from these, in millionths of them.
    pub fn windows_apart(&self, own: &Self) -> u64 {
        match (&self.windows, &own.windows) {
            (Some(seen), Some(own)) => own.apart(seen, u64::MAX),
            _ => 0,
        }
    }
}
