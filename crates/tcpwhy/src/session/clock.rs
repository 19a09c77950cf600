//! The time of a capture's segments.

use crate::capture::QualityKind;
use crate::report::Quality;
use tcpwhy_words::units::{Duration, Time};

/// The time of a capture's segments: where does it go back, and does it go on at all?
#[derive(Debug, Default)]
pub(super) struct Clock {
    first: Option<Time>,
    /// Time of the segment before.
    before: Option<Time>,
    /// Steps back, and the frame of the first.
    count: u64,
    first_frame: u64,
}

impl Clock {
    /// Packets of several interfaces or processors may be stored out of order by less. Ours.
    const TOLERATED: Duration = Duration::from_millis(1);

    /// As many segments of one time have lost theirs. Ours: a handshake, a request, and its answer with their ACKs take
    /// longer than any clock's tick but those that count seconds.
    const TIMELESS: u64 = 10;

    #[inline]
    pub(super) fn look_at(&mut self, time: Time, frame: u64) {
        if self.before.is_none_or(|before| time < before) {
            self.step(time, frame);
        }
        self.before = Some(time);
    }

    /// The first time, and the last.
    pub(super) fn times(&self) -> Option<(Time, Time)> {
        self.first.zip(self.before)
    }

    /// Segments came in order, from the one before up to `time`.
    pub(super) fn go_on(&mut self, time: Time) {
        self.before = Some(time);
    }

    #[cold]
    fn step(&mut self, time: Time, frame: u64) {
        let Some(before) = self.before else {
            self.first = Some(time);
            return;
        };
        if before.since(time) > Self::TOLERATED {
            if self.count == 0 {
                self.first_frame = frame;
            }
            self.count += 1;
        }
    }

    /// What the report says of it in a capture of this many segments.
    pub(super) fn told(&self, segments: u64) -> Option<Quality> {
        if self.count > 0 {
            let note = format!(
                "the time goes back between packets, first at frame {}: the clock was set, or captures \
                 were joined out of order; waits around there are not to be trusted",
                self.first_frame
            );
            let kind = QualityKind::TimeGoesBack.name().to_owned();
            return Some(Quality { kind, count: self.count, note });
        }
        (segments >= Self::TIMELESS && self.first == self.before).then(|| Quality {
            kind: QualityKind::TimeStandsStill.name().to_owned(),
            count: segments,
            note: "all segments have one time: what wrote or converted the capture lost it, and no time here is known"
                .to_owned(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What the report says of segments at these milliseconds. The capture counts `segments` of them.
    fn told(times: &[i64], segments: u64) -> Option<(String, u64)> {
        let mut clock = Clock::default();
        for (time, frame) in times.iter().zip(1..) {
            clock.look_at(Time(time * 1_000_000), frame);
        }
        clock.told(segments).map(|told| (told.kind, told.count))
    }

    #[test]
    fn a_clock_that_goes_back_or_stands_still_is_told() {
        assert_eq!(
            told(&[5, 6, 5, 3, 7], 5),
            Some(("time_goes_back".to_owned(), 1)),
            "by 1 ms it may"
        );
        assert_eq!(told(&[5, 5, 5], 10), Some(("time_stands_still".to_owned(), 10)));
        assert_eq!(told(&[5, 5, 5], 9), None, "these few may come within a tick");
        assert_eq!(told(&[5, 5, 6], 10), None);
        assert_eq!(told(&[], 0), None);
    }

    #[test]
    fn a_capture_begins_and_ends_with_its_segments() {
        let mut clock = Clock::default();
        assert_eq!(clock.times(), None);
        clock.look_at(Time(5), 1);
        clock.go_on(Time(9));
        assert_eq!(clock.times(), Some((Time(5), Time(9))));
    }
}
