//! The least or the most of a sliding window, by three samples: Kathleen Nichols' filter
//! (`lib/minmax.c`, `lib/win_minmax.c`).

/// The best sample of the window, the second best after it, and the third after that; each with
/// its time, in whatever unit the window has.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Windowed<T> {
    best: [(u64, T); 3],
}

impl<T: Copy> Windowed<T> {
    /// As if `value` had been the only sample.
    pub(crate) const fn of(now: u64, value: T) -> Self {
        Self { best: [(now, value); 3] }
    }

    /// The best of the window.
    pub(crate) const fn get(&self) -> T {
        self.best[0].1
    }

    /// Takes a sample; `as_good` says whether its first value is at least as good as its second.
    pub(crate) fn take(&mut self, now: u64, value: T, window: u64, as_good: impl Fn(T, T) -> bool) {
        let best = &mut self.best;
        if as_good(value, best[0].1) || now.wrapping_sub(best[2].0) > window {
            *best = [(now, value); 3];
            return;
        }
        if as_good(value, best[1].1) {
            (best[1], best[2]) = ((now, value), (now, value));
        } else if as_good(value, best[2].1) {
            best[2] = (now, value);
        }
        let age = now.wrapping_sub(best[0].0);
        if age > window {
            // The best has become too old: the others move up, twice if need be.
            *best = [best[1], best[2], (now, value)];
            if now.wrapping_sub(best[0].0) > window {
                *best = [best[1], best[2], (now, value)];
            }
        } else if best[1].0 == best[0].0 && age > window / 4 {
            (best[1], best[2]) = ((now, value), (now, value));
        } else if best[2].0 == best[1].0 && age > window / 2 {
            best[2] = (now, value);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_least_is_forgotten_when_it_is_too_old() {
        let mut least = Windowed::of(0, 100u32);
        for (now, value, expected) in
            [(1, 50, 50), (2, 70, 50), (4, 60, 50), (9, 80, 50), (12, 90, 60), (15, 95, 80)]
        {
            least.take(now, value, 10, |a, b| a <= b);
            assert_eq!(least.get(), expected, "at {now}");
        }
    }
}
