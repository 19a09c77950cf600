//! An even sample of at most 1,000 flights over all sends, for the loss test.

use crate::limits::sense::SAMPLES;

/// The sample.
#[derive(Clone, Debug)]
pub(crate) struct FlightSamples {
    pub(crate) kept: Vec<i64>,
    /// Every how many frames one is taken.
    every: u64,
}

impl Default for FlightSamples {
    fn default() -> Self {
        Self { kept: Vec::new(), every: 1 }
    }
}

impl FlightSamples {
    /// Takes over the room of `old`, which is done.
    pub(crate) fn reuse(&mut self, old: &mut Self) {
        self.kept = super::emptied(&mut old.kept);
    }

    /// As [`Self::push`] for each of `count` frames behind frame number `sent`; `flight` tells the
    /// flight after a number of them.
    pub(crate) fn push_each(&mut self, sent: u64, count: u64, flight: impl Fn(u64) -> i64) {
        let mut done = 0;
        // The next multiple of a power of two.
        while let due = ((sent + done) | (self.every - 1)) + 1 - sent
            && due <= count
        {
            self.push(sent + due, || flight(due));
            done = due;
        }
    }

    /// Data frame `number` was sent; the flight after it is asked for if it is of the sample.
    pub(crate) fn push(&mut self, number: u64, flight: impl FnOnce() -> i64) {
        // A power of two: quicker to mask than to divide by.
        if number & (self.every - 1) != 0 {
            return;
        }
        self.kept.push(flight());
        if self.kept.len() == SAMPLES {
            let mut odd = false;
            self.kept.retain(|_| {
                odd = !odd;
                odd
            });
            self.every *= 2;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_together_are_sampled_as_one_by_one() {
        let (mut single, mut together) = (FlightSamples::default(), FlightSamples::default());
        (1..=9000).for_each(|number| single.push(number, || number as i64));
        let mut sent = 0;
        for count in (1..).take_while(|count| count * (count + 1) / 2 <= 9000) {
            together.push_each(sent, count, |more| (sent + more) as i64);
            sent += count;
        }
        together.push_each(sent, 9000 - sent, |more| (sent + more) as i64);
        assert_eq!((single.kept, single.every), (together.kept, together.every));
    }

    #[test]
    fn the_sample_stays_small_and_even() {
        let mut samples = FlightSamples::default();
        (0..100_000).for_each(|number| samples.push(number, || number as i64));
        assert!((500..1000).contains(&samples.kept.len()), "{}", samples.kept.len());
        let middle = samples.kept[samples.kept.len() / 2];
        assert!((45_000..55_000).contains(&middle), "{middle}");
    }
}
