//! Numbers read off the packets: clocks, round trips, flights, timers, pauses.

use std::collections::VecDeque;

mod arrivals;
pub(crate) mod clock;
pub(crate) mod doubled;
pub(crate) mod drops;
pub(crate) mod flight;
pub(crate) mod idle;
pub(crate) mod ipid;
pub(crate) mod link;
pub(crate) mod loss;
pub(crate) mod policer;
pub(crate) mod rto;
pub(crate) mod sketch;
pub(crate) mod stack;
pub(crate) mod stamps;

/// Drops the first `number` of `queue`, which are mostly one or two.
#[inline]
fn drop_first<T: Copy>(queue: &mut VecDeque<T>, number: usize) {
    if number > 2 {
        queue.drain(..number);
        return;
    }
    for _ in 0..number {
        queue.pop_front();
    }
}
