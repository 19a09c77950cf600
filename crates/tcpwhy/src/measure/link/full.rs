//! Runs in which the link was busy, and those of them in which it was full.

use super::stretch::{SLACK_PACKETS, Scale};
use crate::clocks::TapTime;

/// A link is full where it worked for this share of the time: no change gains more than a tenth.
pub(super) const FULL_SHARE: f64 = 0.9;

/// What came through this many times as fast as the link came another way, or the link became a faster one.
const FASTER: f64 = 1.3;

/// Runs of a kind that are kept one by one. Ours: 1 MB; a run is a round trip at the least, or some packets.
const MOST: usize = 1 << 16;

/// From when to when.
pub(crate) type Span = (TapTime, TapTime);

/// Spans of work, in the order of time, joined into runs.
#[derive(Clone, Debug, Default)]
pub(super) struct Runs {
    /// For how long the link worked.
    pub(super) worked: f64,
    /// When it was busy: at work, or idle for a packet or two at most.
    pub(super) busy: Vec<Span>,
    /// When it was full for a round trip and more.
    pub(super) full: Vec<Span>,
    pub(super) full_ns: i64,
    open: Option<Open>,
}

/// The run that may go on.
#[derive(Clone, Debug, Default)]
struct Open {
    from: f64,
    to: f64,
    /// Up to where it is known whether it is full.
    judged: f64,
    /// When it was at work behind that, and for how long what came through then takes.
    spans: Vec<(f64, f64, f64)>,
}

impl Runs {
    /// The link worked in `span`; what came through takes as long as `work`.
    pub(super) fn push(&mut self, span: (f64, f64), work: f64, scale: Scale) {
        let slack = SLACK_PACKETS * scale.packet;
        if self.open.as_ref().is_some_and(|open| span.0 > open.to + slack) {
            self.close(scale);
        }
        let open = self.open.get_or_insert_with(|| Open {
            from: span.0,
            to: span.0,
            judged: span.0,
            spans: Vec::new(),
        });
        self.worked += (span.1 - span.0.max(open.to)).max(0.0);
        match open.spans.last_mut() {
            Some(last) if span.0 <= last.1 => {
                (last.1, last.2) = (last.1.max(span.1), last.2 + work);
            }
            _ => open.spans.push((span.0, span.1, work)),
        }
        open.to = open.to.max(span.1);
        let piece = piece(scale);
        while let Some(open) =
            self.open.as_mut().filter(|open| open.to - open.judged >= 2.0 * piece)
        {
            let end = open.judged + piece;
            self.judge(end);
        }
    }

    /// The run is over.
    pub(super) fn close(&mut self, scale: Scale) {
        let Some(open) = &self.open else { return };
        let Open { from, to, .. } = *open;
        if to - from >= scale.terms.trip {
            self.judge(to);
        }
        if to > from {
            add(&mut self.busy, (from, to));
        }
        self.open = None;
    }

    /// Whether the link idled for more than a tenth in the piece of the open run up to `end`.
    fn judge(&mut self, end: f64) {
        let Some(open) = &mut self.open else { return };
        let begin = core::mem::replace(&mut open.judged, end);
        let (mut worked, mut work) = (0.0, 0.0);
        for (from, to, took) in open.spans.iter().take_while(|span| span.0 < end) {
            let within = to.min(end) - from.max(begin);
            worked += within;
            work += if to > from { took * within / (to - from) } else { *took };
        }
        let over = open.spans.partition_point(|span| span.1 <= end);
        open.spans.drain(..over);
        self.note((begin, end), worked, work);
    }

    /// The link worked for so long between, and what came through takes as long as `work`.
    fn note(&mut self, (begin, end): (f64, f64), worked: f64, work: f64) {
        let time = end - begin;
        if time <= 0.0 || worked < FULL_SHARE * time || work > FASTER * time {
            return;
        }
        self.full_ns += time as i64;
        add(&mut self.full, (begin, end));
    }

    /// What came through in a time of a round trip or more takes as long as `work`; more is not known of it. Whether
    /// it came as no such link lets it.
    pub(super) fn count(&mut self, span: (f64, f64), work: f64) -> bool {
        let time = span.1 - span.0;
        let worked = work.min(time);
        self.worked += worked;
        self.note(span, worked, work);
        if worked >= FULL_SHARE * time {
            add(&mut self.busy, span);
        }
        work > FASTER * time
    }
}

/// Adds a span behind the others, to the last if it goes on from that.
fn add(spans: &mut Vec<Span>, (from, to): (f64, f64)) {
    let has_room = spans.len() < MOST;
    let (from, to) = (TapTime(from as i64), TapTime(to as i64));
    match spans.last_mut() {
        Some(last) if from - last.1 <= 1 => last.1 = last.1.max(to),
        _ if has_room => spans.push((from, to)),
        _ => {}
    }
}

/// How long a piece of a run is that is judged by itself: a round trip, and so long that two packets are no tenth of it.
pub(super) fn piece(scale: Scale) -> f64 {
    scale.terms.trip.max(scale.packet * SLACK_PACKETS / (1.0 - FULL_SHARE)).max(1.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::measure::link::gap::Terms;

    /// A packet takes 1,000 ns, a round trip 20,000.
    fn scale() -> Scale {
        let terms = Terms { trip: 20_000.0, ..Terms::default() };
        Scale { per: 1.0, packet: 1_000.0, terms }
    }

    fn runs(spans: &[(f64, f64, f64)]) -> Runs {
        let mut runs = Runs::default();
        for span in spans {
            runs.push((span.0, span.1), span.2, scale());
        }
        runs.close(scale());
        runs
    }

    #[test]
    fn a_pause_of_more_than_two_packets_ends_a_run() {
        let with = |pause: f64| runs(&[(0.0, 5e3, 5e3), (5e3 + pause, 2e4, 1e4)]).busy.len();
        assert_eq!((with(2e3), with(2.1e3)), (1, 2));
    }

    #[test]
    fn a_link_is_full_for_a_round_trip_at_the_least() {
        assert_eq!(runs(&[(0.0, 2e4, 2e4)]).full, [(TapTime(0), TapTime(20_000))]);
        assert!(runs(&[(0.0, 1.9e4, 1.9e4)]).full.is_empty());
    }

    #[test]
    fn what_is_counted_is_full_where_it_fills_the_time() {
        let counted = |work: f64| {
            let mut runs = Runs::default();
            let is_faster = runs.count((0.0, 2e4), work);
            (runs.full.len(), is_faster)
        };
        assert_eq!(counted(1.79e4), (0, false));
        assert_eq!(counted(1.8e4), (1, false));
        assert_eq!(counted(2.7e4), (0, true), "the link became a faster one");
    }

    #[test]
    fn a_faster_link_is_not_full_by_the_rate_of_a_slower_one() {
        assert!(runs(&[(0.0, 2e4, 5e4)]).full.is_empty());
    }
}
