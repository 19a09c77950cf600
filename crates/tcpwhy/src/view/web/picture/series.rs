//! Columns of numbers, written as differences: neighbours are near each other, so that they are short and pack well.

use serde::{Serialize, Serializer};

use crate::report::Sent;

/// How a series is drawn.
#[derive(Clone, Copy, Debug, Eq, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Mark {
    /// Each from its least to its most, at its time: segments.
    Spans,
    /// A line that keeps its height until the next.
    Steps,
    /// As steps, filled down to zero.
    Area,
    /// As steps, filled from the least to the most.
    Band,
    /// Dots.
    Dots,
    /// Crosses, on top of everything.
    Crosses,
    /// Short lines at the foot.
    Ticks,
}

/// What is drawn in one way.
#[derive(Clone, Debug, Serialize)]
pub struct Series {
    /// For the legend.
    pub name: &'static str,
    /// How it is drawn.
    pub mark: Mark,
    /// In which colour.
    pub ink: &'static str,
    /// Is drawn however small it would be.
    #[serde(skip_serializing_if = "core::ops::Not::not")]
    pub rare: bool,
    /// When each mark begins.
    #[serde(rename = "t", serialize_with = "differences")]
    pub at: Vec<i64>,
    /// How long each lasts; empty if all are instants.
    #[serde(rename = "d", skip_serializing_if = "Vec::is_empty")]
    pub lasts: Vec<i64>,
    /// The least of each.
    #[serde(rename = "y", serialize_with = "differences")]
    pub least: Vec<i64>,
    /// By how much its most is more; empty if each has one value.
    #[serde(rename = "h", skip_serializing_if = "Vec::is_empty")]
    pub height: Vec<i64>,
    /// The frame of each, if it is of one.
    #[serde(rename = "f", skip_serializing_if = "Vec::is_empty", serialize_with = "differences")]
    pub frames: Vec<i64>,
    /// How many packets each stands for; empty if each is one.
    #[serde(rename = "n", skip_serializing_if = "Vec::is_empty")]
    pub packets: Vec<i64>,
}

impl Series {
    /// Marks from their begins, ends, least and most.
    pub(super) fn of(
        name: &'static str,
        mark: Mark,
        ink: &'static str,
        marks: impl IntoIterator<Item = (i64, i64, i64, i64)>,
    ) -> Self {
        let marks = marks.into_iter();
        let number = marks.size_hint().0;
        let (mut at, mut least) = (Vec::with_capacity(number), Vec::with_capacity(number));
        let (mut lasts, mut height) = (vec![], vec![]);
        for (from, until, low, high) in marks {
            grow(&mut lasts, at.len(), until.saturating_sub(from), number);
            grow(&mut height, at.len(), high.saturating_sub(low), number);
            at.push(from);
            least.push(low);
        }
        let (frames, packets) = (Vec::new(), Vec::new());
        Self { name, mark, ink, rare: false, at, lasts, least, height, frames, packets }
    }

    /// Steps.
    pub(super) fn steps(
        name: &'static str,
        ink: &'static str,
        marks: impl IntoIterator<Item = (i64, i64, i64, i64)>,
    ) -> Self {
        Self::of(name, Mark::Steps, ink, marks)
    }

    /// Segments.
    pub(super) fn spans<'a>(
        name: &'static str,
        ink: &'static str,
        marks: impl Iterator<Item = (&'a Sent, i64, i64)>,
    ) -> Self {
        let number = marks.size_hint().0;
        let (mut frames, mut packets) = (Vec::with_capacity(number), Vec::with_capacity(number));
        let marks = marks.map(|(mark, from, to)| {
            frames.push(mark.frame as i64);
            packets.push(i64::from(mark.packets));
            (mark.at_ns, mark.until_ns, from, to)
        });
        let mut series = Self::of(name, Mark::Spans, ink, marks);
        if packets.iter().all(|number| *number == 1) {
            packets.clear();
        }
        (series.frames, series.packets) = (frames, packets);
        series
    }

    /// Is drawn however small it would be.
    pub(super) fn rare(mut self) -> Self {
        self.rare = true;
        self
    }

    /// The same with at most this many marks, each with the least and the most of its neighbours; what is rare, and
    /// what is a cross, stays one by one.
    #[must_use]
    pub(super) fn coarse(&self, most: usize) -> Self {
        if self.len() <= most || self.rare || self.mark == Mark::Crosses {
            return self.clone();
        }
        let each = self.len().div_ceil(most.max(1));
        let value = |column: &[i64], at: usize| column.get(at).copied().unwrap_or(0);
        let groups = (0..self.len()).step_by(each).map(|first| {
            let all = first..(first + each).min(self.len());
            let until = all.clone().map(|at| self.at[at].saturating_add(value(&self.lasts, at)));
            let most = all.clone().map(|at| self.least[at].saturating_add(value(&self.height, at)));
            (self.at[first], until.max(), self.least[all.clone()].iter().min(), most.max())
        });
        let marks =
            groups.filter_map(|(at, until, least, most)| Some((at, until?, *least?, most?)));
        let mut coarse = Self::of(self.name, self.mark, self.ink, marks);
        coarse.frames = self.frames.iter().copied().step_by(each).collect();
        if !self.frames.is_empty() {
            let packets = |chunk: &[i64]| chunk.iter().sum();
            coarse.packets = match &self.packets[..] {
                [] => (0..self.len())
                    .step_by(each)
                    .map(|first| each.min(self.len() - first) as i64)
                    .collect(),
                known => known.chunks(each).map(packets).collect(),
            };
        }
        coarse
    }

    /// How many marks it has.
    #[expect(clippy::len_without_is_empty, reason = "an empty one is left out of its graph")]
    pub fn len(&self) -> usize {
        self.at.len()
    }
}

/// A column that stays empty while all is zero: `value` comes behind the `before` of it, of about `number`.
fn grow(column: &mut Vec<i64>, before: usize, value: i64, number: usize) {
    if column.is_empty() && value != 0 {
        column.reserve_exact(number.max(before + 1));
        column.resize(before, 0);
    }
    if !column.is_empty() || value != 0 {
        column.push(value);
    }
}

/// Each but the first as the difference to the one before it.
fn differences<S: Serializer>(values: &[i64], serializer: S) -> Result<S::Ok, S::Error> {
    let mut before = 0;
    serializer.collect_seq(values.iter().map(|value| {
        let difference = value.wrapping_sub(before);
        before = *value;
        difference
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_written_as_differences_and_only_where_they_tell_something() {
        let marks = [(10, 10, 5, 5), (14, 14, 4, 4)];
        let series = Series::steps("a line", "ack", marks);
        let json = serde_json::to_string(&series).expect("JSON");
        assert_eq!(json, r#"{"name":"a line","mark":"steps","ink":"ack","t":[10,4],"y":[5,-1]}"#);
    }

    #[test]
    fn a_column_begins_with_zeros_where_the_first_marks_have_none() {
        let marks = [(1, 1, 5, 5), (2, 2, 5, 5), (3, 7, 5, 9), (8, 8, 5, 5)];
        let series = Series::steps("a line", "ack", marks);
        assert_eq!((&series.lasts[..], &series.height[..]), (&[0, 0, 4, 0][..], &[0, 0, 4, 0][..]));
    }

    #[test]
    fn a_coarse_mark_has_the_extremes_of_its_neighbours_and_rare_marks_stay() {
        let sent = [3, 9, 1, 4, 7].map(|from| Sent {
            at_ns: from * 10,
            until_ns: from * 10,
            packets: 1,
            frame: from as u64,
            ..Sent::default()
        });
        let of = || sent.iter().map(|mark| (mark, mark.at_ns / 10, mark.at_ns / 10 + 1));
        let coarse = Series::spans("segments", "data", of()).coarse(3);
        assert_eq!((coarse.len(), &coarse.least[..]), (3, &[3, 1, 7][..]));
        assert_eq!((&coarse.height[..], &coarse.frames[..]), (&[7, 4, 1][..], &[3, 1, 7][..]));
        assert_eq!(coarse.packets, [2, 2, 1]);
        assert_eq!(Series::spans("again", "fast", of()).rare().coarse(3).len(), 5);
        assert_eq!(Series::spans("segments", "data", of()).coarse(5).len(), 5);
    }
}
