//! Runs in which the link was busy, and those of them in which it was full.

use super::busy::{SLACK_PACKETS, Scale};

/// A link is full where it worked for so much of the time: no change gains more than a tenth.
pub(super) const FULL_SHARE: f64 = 0.9;

/// Runs of a kind that are kept one by one. Ours: 1 MB; a run is a round trip at the least, or some packets.
const MOST: usize = 1 << 16;

/// From when to when.
pub(crate) type Span = (i64, i64);

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
    /// What it worked behind that.
    spans: Vec<(f64, f64)>,
}

impl Runs {
    /// The link worked in `span`.
    pub(super) fn push(&mut self, span: (f64, f64), scale: Scale) {
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
            Some(last) if span.0 <= last.1 => last.1 = last.1.max(span.1),
            _ => open.spans.push(span),
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
        if to > from && self.busy.len() < MOST {
            self.busy.push((from as i64, to as i64));
        }
        self.open = None;
    }

    /// Whether the link idled for more than a tenth in the piece of the open run up to `end`.
    fn judge(&mut self, end: f64) {
        let Some(open) = &mut self.open else { return };
        let begin = core::mem::replace(&mut open.judged, end);
        let within = open.spans.iter().take_while(|span| span.0 < end);
        let worked: f64 = within.map(|span| span.1.min(end) - span.0.max(begin)).sum();
        let over = open.spans.partition_point(|span| span.1 <= end);
        open.spans.drain(..over);
        if end <= begin || worked < FULL_SHARE * (end - begin) {
            return;
        }
        self.full_ns += (end - begin) as i64;
        let has_room = self.full.len() < MOST;
        match self.full.last_mut() {
            Some(last) if begin as i64 - last.1 <= 1 => last.1 = end as i64,
            _ if has_room => self.full.push((begin as i64, end as i64)),
            _ => {}
        }
    }
}

/// How long a piece of a run is that is judged by itself: a round trip, and so long that two packets are no tenth of it.
fn piece(scale: Scale) -> f64 {
    scale.terms.trip.max(scale.packet * SLACK_PACKETS / (1.0 - FULL_SHARE)).max(1.0)
}
