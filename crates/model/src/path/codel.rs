//! `CoDel` (RFC 8289): drops or marks what waited too long, at a pace that grows while it does.
//!
//! Follows `codel_dequeue`, `codel_should_drop`, `codel_control_law` and `codel_Newton_step` of
//! `include/net/codel_impl.h` (v4.18 to v6.18), with its clock of 1024 ns in 32 bits.

use super::OnWire;

/// State of one queue (`struct codel_vars`).
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Codel {
    /// Drops since it began to drop.
    count: u32,
    last_count: u32,
    dropping: bool,
    /// The inverse square root of `count`; 1 is all bits set.
    rec_inv_sqrt: u16,
    /// When the delay will have been too long for an interval; 0 while it is not.
    first_above: u32,
    drop_next: u32,
}

/// What is taken from a queue.
pub(super) struct Taken<P> {
    pub(super) packet: P,
    /// When it came.
    pub(super) came: u32,
    /// What waits behind it, in the whole discipline.
    pub(super) backlog: u64,
}

/// `CoDel`'s time (`codel_get_time`).
pub(super) const fn codel_time(ns: u64) -> u32 {
    (ns >> 10) as u32
}

impl Codel {
    /// The next packet that leaves; those that do not are handed to `drop`.
    pub(super) fn dequeue<P: OnWire>(
        &mut self,
        now: u32,
        mut take: impl FnMut() -> Option<Taken<P>>,
        mut drop: impl FnMut(P),
    ) -> Option<P> {
        let Some(mut taken) = take() else {
            self.dropping = false;
            return None;
        };
        let too_long = self.should_drop(Some(&taken), now);
        if self.dropping {
            if !too_long {
                self.dropping = false;
            }
            while self.dropping && !before(now, self.drop_next) {
                self.count = self.count.wrapping_add(1);
                self.newton_step();
                if taken.packet.mark_congestion() {
                    self.drop_next = self.control_law(self.drop_next);
                    break;
                }
                drop(taken.packet);
                let next = take();
                if self.should_drop(next.as_ref(), now) {
                    self.drop_next = self.control_law(self.drop_next);
                } else {
                    self.dropping = false;
                }
                taken = next?;
            }
            return Some(taken.packet);
        }
        if too_long {
            let mut next = Some(taken);
            if let Some(first) = next.take_if(|first| !first.packet.mark_congestion()) {
                drop(first.packet);
                next = take();
                self.should_drop(next.as_ref(), now);
            }
            self.begin_dropping(now);
            return next.map(|taken| taken.packet);
        }
        Some(taken.packet)
    }

    /// This many were dropped for want of room: its own drops come faster.
    pub(super) const fn hurry(&mut self, drops: u32) {
        self.count = self.count.wrapping_add(drops);
    }

    /// It drops from now on, as fast as it had to last time if that was not long ago.
    fn begin_dropping(&mut self, now: u32) {
        self.dropping = true;
        let since = self.count.wrapping_sub(self.last_count);
        if since > 1 && before(now.wrapping_sub(self.drop_next), 16 * INTERVAL) {
            self.count = since;
            self.newton_step();
        } else {
            self.count = 1;
            self.rec_inv_sqrt = u16::MAX;
        }
        self.last_count = self.count;
        self.drop_next = self.control_law(now);
    }

    /// Whether packets have waited longer than the target for a whole interval.
    fn should_drop<P: OnWire>(&mut self, taken: Option<&Taken<P>>, now: u32) -> bool {
        let Some(taken) = taken else {
            self.first_above = 0;
            return false;
        };
        if before(now.wrapping_sub(taken.came), TARGET) || taken.backlog <= MTU {
            self.first_above = 0;
            return false;
        }
        if self.first_above == 0 {
            self.first_above = now.wrapping_add(INTERVAL);
            return false;
        }
        before(self.first_above, now)
    }

    /// One step of Newton's towards the inverse square root: half of x times (3 - count x²).
    fn newton_step(&mut self) {
        let inverse = u64::from(self.rec_inv_sqrt) << 16;
        let square = (inverse * inverse) >> 32;
        let rest = (3_u64 << 32).wrapping_sub(u64::from(self.count).wrapping_mul(square)) >> 2;
        self.rec_inv_sqrt = (rest.wrapping_mul(inverse) >> 31 >> 16) as u16;
    }

    /// An interval over the root of `count` later.
    fn control_law(&self, time: u32) -> u32 {
        let share = u64::from(self.rec_inv_sqrt) << 16;
        time.wrapping_add(((u64::from(INTERVAL) * share) >> 32) as u32)
    }
}

/// Whether `a` lies before `b` on the circle of times (`codel_time_before`).
const fn before(a: u32, b: u32) -> bool {
    a.wrapping_sub(b).cast_signed() < 0
}

/// `MS2TIME(5)` and `MS2TIME(100)`, the defaults of `codel_params_init`.
const TARGET: u32 = codel_time(5_000_000);
const INTERVAL: u32 = codel_time(100_000_000);

/// A queue of no more than a packet is never too long (`psched_mtu`: an Ethernet frame).
const MTU: u64 = 1514;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_pace_grows_with_the_root_of_the_drops() {
        let mut codel = Codel { count: 1, rec_inv_sqrt: u16::MAX, ..Codel::default() };
        let mut gaps = Vec::new();
        for count in 1..=100 {
            codel.count = count;
            codel.newton_step();
            gaps.push(f64::from(codel.control_law(0)) / f64::from(INTERVAL));
        }
        // One step a drop is rough at first, as in the kernel, and close soon.
        assert!((0.49..0.51).contains(&gaps[1]), "{gaps:?}");
        for (place, gap) in gaps.iter().enumerate().skip(7) {
            let exact = 1.0 / f64::from(place as u32 + 1).sqrt();
            assert!((gap / exact - 1.0).abs() < 0.01, "{place}: {gap} {exact}");
        }
    }

    #[test]
    fn times_are_ordered_around_the_circle() {
        assert!(before(u32::MAX, 3));
        assert!(!before(3, u32::MAX));
    }
}
