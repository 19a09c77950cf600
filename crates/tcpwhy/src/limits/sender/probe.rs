//! The probe of the tail that sent it again: was it needed?

use super::Sender;
use crate::clocks::StackTime;
use crate::flow::event::{Block, Event};
use crate::offsets::Offset;
use crate::segments::Segments;

/// The last probe that sent the tail again, until it shows whether that was lost.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct TailProbe(Option<Probe>);

/// A probe of the tail that retransmitted what lies in `range`, with this many segments in flight.
#[derive(Clone, Copy, Debug)]
struct Probe {
    range: Block,
    flight: Segments,
}

impl TailProbe {
    /// `event` retransmits the tail, by the timer of the probe, with `flight` segments in flight.
    pub(crate) fn begin(&mut self, event: &Event, flight: Segments) {
        self.0 = Some(Probe { range: (event.seq, event.end()), flight });
    }

    /// Whether an ACK of just this may be the probe's.
    pub(crate) fn is_answer(&self, ack: Offset) -> bool {
        self.0.is_some_and(|probe| ack == probe.range.1)
    }

    /// A repair cuts the window; the probe does not once more (`tcp_init_cwnd_reduction`).
    pub(super) fn end(&mut self) {
        self.0 = None;
    }

    /// The receiver got `block` twice: a probe of it was not needed.
    pub(super) fn on_dsack(&mut self, block: Block) {
        self.0 = self.0.filter(|probe| probe.range.0 >= block.1 || probe.range.1 <= block.0);
    }
}

impl Sender {
    /// Whether the probe of the tail was needed, as the sender learns by the ACK `event`: Linux cuts
    /// the window when something sent after the probe is acknowledged, and nothing has told that the
    /// probe came twice: a D-SACK, or an ACK that says nothing new (`tcp_process_tlp_ack`).
    /// `news` if this one does.
    pub(crate) fn watch_probe(&mut self, event: &Event, at: StackTime, news: bool) {
        let Some(Probe { range, flight }) = self.repairs.probe.0 else { return };
        if event.ack > range.1 {
            self.repairs.probe.end();
            let cwnd = Segments::new(self.replay.cwnd(Segments::NONE).high.unwrap_or(0));
            self.cut_window(cwnd.max(flight).max(self.flight.outstanding_segments()), at);
        } else if event.ack == range.1 && !news {
            self.repairs.probe.end();
        }
    }
}
