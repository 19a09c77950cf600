//! A gap-free list of spans of time, and cutting others into it.

/// From, to (nanoseconds since 1970), what.
pub(crate) type Span<T> = (u64, u64, T);

/// Builds a gap-free list: each value holds until the next.
#[derive(Debug)]
pub(crate) struct Timeline<T> {
    begin: u64,
    end: u64,
    now: T,
    spans: Vec<Span<T>>,
}

impl<T: Copy + Eq> Timeline<T> {
    /// From `begin` to `end`, with what holds first.
    pub(crate) const fn new(begin: u64, end: u64, now: T) -> Self {
        Self { begin, end, now, spans: Vec::new() }
    }

    /// What holds now.
    pub(crate) const fn now(&self) -> T {
        self.now
    }

    /// From `at` on, `next` holds. Times before the last change count as that.
    pub(crate) fn change(&mut self, at: u64, next: T) {
        if next == self.now {
            return;
        }
        let at = at.clamp(self.begin, self.end);
        push(&mut self.spans, (self.begin, at, self.now));
        self.begin = at;
        self.now = next;
    }

    /// The list.
    pub(crate) fn finish(mut self) -> Vec<Span<T>> {
        push(&mut self.spans, (self.begin, self.end, self.now));
        self.spans
    }
}

/// Adds a span behind the others; an empty one is nothing, and equal neighbours are one.
fn push<T: Copy + Eq>(spans: &mut Vec<Span<T>>, (from, to, what): Span<T>) {
    match spans.last_mut() {
        _ if from >= to => {}
        Some(last) if last.2 == what && last.1 == from => last.1 = to,
        _ => spans.push((from, to, what)),
    }
}

/// Cuts `cuts` (sorted by start) into gap-free `spans`: where both are, `choose` says what holds.
pub(crate) fn cut<T: Copy + Eq, C: Copy>(
    spans: &[Span<T>],
    cuts: &[Span<C>],
    choose: impl Fn(T, C) -> T,
) -> Vec<Span<T>> {
    let mut out = Vec::with_capacity(spans.len());
    let mut first = 0;
    for &(from, to, what) in spans {
        let mut at = from;
        while cuts.get(first).is_some_and(|cut| cut.1 <= at) {
            first += 1;
        }
        for &(begin, end, cut) in cuts[first..].iter().take_while(|cut| cut.0 < to) {
            let (begin, end) = (begin.max(at), end.min(to));
            if begin < end {
                push(&mut out, (at, begin, what));
                push(&mut out, (begin, end, choose(what, cut)));
                at = end;
            }
        }
        push(&mut out, (at, to, what));
    }
    out
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_cut_takes_its_part_and_leaves_the_rest() {
        let spans = [(0, 10, 'a'), (10, 20, 'b')];
        let cut = cut(&spans, &[(4, 6, 'x'), (8, 14, 'y')], |_, c| c);
        assert_eq!(cut, [(0, 4, 'a'), (4, 6, 'x'), (6, 8, 'a'), (8, 14, 'y'), (14, 20, 'b')]);
    }

    proptest! {
        #[test]
        fn whatever_happens_the_list_has_no_gap(
            changes in prop::collection::vec((0_u64..1000, 0_u8..4), 0..40),
            mut cuts in prop::collection::vec((0_u64..1000, 0_u64..200), 0..40),
        ) {
            let mut line = Timeline::new(100, 900, 0);
            for (at, what) in changes {
                line.change(at, what);
            }
            cuts.sort_unstable();
            let cuts: Vec<_> = cuts.iter().map(|&(from, long)| (from, from + long, ())).collect();
            let spans = cut(&line.finish(), &cuts, |what, ()| what + 10);
            prop_assert_eq!(spans.first().map(|s| s.0), Some(100));
            prop_assert_eq!(spans.last().map(|s| s.1), Some(900));
            for pair in spans.windows(2) {
                prop_assert_eq!(pair[0].1, pair[1].0);
                prop_assert!(pair[0].2 != pair[1].2);
            }
        }
    }
}
