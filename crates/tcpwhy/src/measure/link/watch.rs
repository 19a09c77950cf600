//! One link as its departures come: what of it is judged, and what waits for a rate.

use super::Busy;
use super::busy::Course;
use super::even::Evenness;
use super::full;
use super::gap::{Gap, Lost, Terms};
use super::slopes::{Agreed, Slopes};
use super::stretch::Scale;

/// Gaps that wait to be judged. Ours: 1.2 MB; a rate that shows itself later is not held against those before.
const MOST_GAPS: usize = 1 << 14;
/// What is judged last of a block of gaps waits for those behind it: what tells of a departure may come late.
const KEPT_GAPS: usize = MOST_GAPS / 16;
/// After this many counts in a row that outrun it, a link is another one. Ours: as many as windows without
/// which a scale says nothing.
const MOST_FASTER: u32 = 8;
/// The share that proves a link: of what came out dispersed, or of the delays that its queue explains. More
/// than not.
const PROOF: f64 = 0.5;

/// A link's departures.
#[derive(Clone, Debug, Default)]
pub(super) struct Watch {
    slopes: Slopes,
    gaps: Vec<Gap>,
    course: Course,
    largest: u32,
    terms: Option<Terms>,
    /// While packets are only counted: the link's rate, when the count began, and what came through since.
    counted: Option<Scale>,
    since: Option<(i64, f64)>,
    /// Counts in a row that no such link lets through.
    faster: u32,
    /// The rate that was found last, and whether it became another.
    agreed: Option<Agreed>,
    is_another: bool,
}

impl Watch {
    /// The bytes on the wire of a packet.
    pub(super) fn is_sent(&mut self, wire: u32) {
        self.largest = self.largest.max(wire);
    }

    /// A packet left; `waited` if each packet of the gap waited for the one before it.
    pub(super) fn push(&mut self, gap: Gap, waited: bool, lost: &mut Vec<Lost>, terms: Terms) {
        self.terms = Some(terms);
        self.slopes.push(&gap, waited, terms.tick.unwrap_or(0));
        self.gaps.push(gap);
        if self.gaps.len() == MOST_GAPS {
            match self.slopes.agreed() {
                Some(agreed) => self.judge(MOST_GAPS - KEPT_GAPS, agreed, lost, terms),
                None => {
                    self.gaps.drain(..MOST_GAPS / 2);
                }
            }
        }
    }

    /// Gaps that are not judged yet.
    #[cfg(test)]
    pub(super) fn waiting(&self) -> usize {
        self.gaps.len()
    }

    /// What follows is only counted.
    pub(super) fn settle(&mut self, lost: &mut Vec<Lost>) {
        if let (Some(agreed), Some(terms)) = (self.slopes.agreed(), self.terms) {
            self.judge(self.gaps.len(), agreed, lost, terms);
            let scale = self.scale(agreed, terms);
            self.course.runs.close(scale);
            (self.counted, self.agreed) = (Some(scale), Some(agreed));
        }
        self.gaps.clear();
        lost.clear();
        self.since = None;
    }

    /// Packets are followed again.
    pub(super) fn restart(&mut self) {
        self.counted = None;
        self.slopes.pause();
    }

    /// This many bytes on the wire came through by `at`. Whether the link became a faster one, so that its rate has to be
    /// found anew.
    #[inline]
    pub(super) fn count(&mut self, at: i64, bytes: f64, is_border: bool) -> bool {
        let Some(scale) = self.counted else { return false };
        let (since, sum) = self.since.get_or_insert((at, -bytes));
        *sum += bytes;
        let time = (at - *since) as f64;
        is_border && time >= full::piece(scale) && self.book(at, scale)
    }

    fn book(&mut self, at: i64, scale: Scale) -> bool {
        let Some((since, sum)) = self.since.replace((at, 0.0)) else { return false };
        let on_clock = |at: i64| at as f64 - scale.terms.late;
        let is_faster = self.course.count((on_clock(since), on_clock(at)), sum, scale);
        self.faster = if is_faster { self.faster + 1 } else { 0 };
        let is_another = self.faster == MOST_FASTER;
        if is_another {
            (self.faster, self.is_another) = (0, true);
            self.slopes = Slopes::default();
        }
        is_another
    }

    /// Holds the first `count` gaps against the rate.
    fn judge(&mut self, count: usize, agreed: Agreed, lost: &mut Vec<Lost>, terms: Terms) {
        let scale = self.scale(agreed, terms);
        let end = self.course.take(&self.gaps, count, scale);
        self.gaps.drain(..count);
        if let Some((next, end)) = self.gaps.first_mut().zip(end) {
            next.from = end;
        }
        let next = self.gaps.first().map_or(u64::MAX, |gap| gap.number);
        lost.retain(|lost| {
            let is_judged = lost.number < next;
            if is_judged {
                self.course.places.on_lost(lost, scale.packet);
            }
            !is_judged
        });
    }

    fn scale(&self, agreed: Agreed, terms: Terms) -> Scale {
        let per = 1.0 / agreed.rate;
        let own = f64::from(terms.own) * per;
        let (late, trip) = ((terms.late - own).max(0.0), (terms.trip - own).max(0.0));
        Scale { per, packet: f64::from(self.largest) * per, terms: Terms { late, trip, ..terms } }
    }

    /// What is known at the end; `None` where nothing shows a link. Without send times it has to be even.
    pub(super) fn measured(&mut self, lost: &mut Vec<Lost>, even: &Evenness) -> Option<Busy> {
        let (agreed, terms) = (self.slopes.agreed().or(self.agreed)?, self.terms?);
        self.judge(self.gaps.len(), agreed, lost, terms);
        let scale = self.scale(agreed, terms);
        let Course { runs, places, whole, floor, .. } = &mut self.course;
        runs.close(scale);
        // Short trains of a few packets show what they left their host with.
        if runs.worked < scale.terms.trip {
            return None;
        }
        let (runs, places) = (core::mem::take(runs), core::mem::take(places));
        let (whole_ns, floor_ns) = (*whole as i64, *floor as i64);
        let is_proven = terms.tick.is_some();
        let shows = if is_proven {
            agreed.dispersed.is_some_and(|share| share >= PROOF) || self.course.explained() >= PROOF
        } else {
            even.is_a_links(&scale, self.slopes.faster_than(agreed.rate))
        };
        let bits = |rate: f64| rate * 8e9;
        let Agreed { rate, low, high, varies, .. } = agreed;
        shows.then(|| Busy {
            is_before_tap: false,
            is_proven,
            rate_bps: [low.min(rate), rate, high.max(rate)].map(bits),
            varies: varies || self.is_another,
            worked_ns: runs.worked as i64,
            whole_ns,
            floor_ns,
            at_work: runs.busy,
            full: runs.full,
            full_ns: runs.full_ns,
            lost: places.counts,
            lost_full: places.full,
            places: places.told,
        })
    }
}
