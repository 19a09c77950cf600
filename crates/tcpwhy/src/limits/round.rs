//! One round trip as the capture shows it: what passed in it, how long that took, where it stopped.

use super::beat::Beats;
use super::evidence::Evidence;
use super::pulse::{Mending, Pulses};
use crate::clocks::StackTime;
use crate::limits::sense::{
    ANSWERED, BELOW_WINDOW, PASSES, QUEUE, QUEUE_MIN_NS, SECOND_NS, SMOOTH, SMOOTH_GAPS,
};
use crate::report::Cwnd;
use crate::segments::Segments;

/// How slow start ended, as far as the waits after it care.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub(crate) enum Phase {
    /// It has not.
    #[default]
    SlowStart,
    /// By a loss.
    AfterLoss,
    /// The window restarted after idling and is below what it was.
    AfterIdle,
    /// Without a loss, a delay or another limit: at a remembered threshold.
    Cached,
    /// Nobody knows: the capture lacks packets.
    Unseen,
    /// By a delay or a train of ACKs, and neither a loss nor a mark has cut the window, or that was taken back.
    Uncut,
    /// Otherwise.
    Avoidance,
}

/// One closed round.
#[expect(clippy::struct_excessive_bools, reason = "independent facts, no state machine")]
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Round {
    pub(crate) number: u64,
    pub(crate) start: StackTime,
    pub(crate) end: StackTime,
    pub(crate) bytes: i64,
    pub(crate) segments: Segments,
    pub(crate) rtt_min: Option<i64>,
    pub(crate) rtt_max: i64,
    pub(crate) rtt_sum: i64,
    pub(crate) rtt_count: i64,
    /// The least of what their ACKs stood in queues on their way back, and the least of the rest.
    pub(crate) held_back: Option<i64>,
    pub(crate) rtt_else: Option<i64>,
    pub(crate) acked: i64,
    /// Largest flight after a stop.
    pub(crate) flight: i64,
    pub(crate) flight_segments: Segments,
    /// The window had let out clearly more before, and nothing has cut it since.
    pub(crate) let_out_more: bool,
    /// Where the last send stopped.
    pub(crate) stop: Evidence,
    pub(crate) stopped_at: StackTime,
    pub(crate) cwnd: Cwnd,
    pub(crate) phase: Phase,
    /// What it was before a repair began in it.
    pub(crate) before_loss: Option<Phase>,
    pub(crate) sends: u32,
    pub(crate) ack_released: u32,
    pub(crate) free: u32,
    /// Longest lag of its sends that found nothing of their sender's before them on the way to the tap.
    pub(crate) held_up: i64,
    /// Least variable lag of its sends.
    pub(crate) lag_min: i64,
    pub(crate) tap_at_sender: bool,
    /// Queues between the sender and the tap show in round trips.
    pub(crate) sees_queues: bool,
    /// Longest time between two of its sends, or the last one before it, at the tap.
    pub(crate) tap_gap: i64,
    pub(crate) pulses: Pulses,
    pub(crate) beats: Beats,
    pub(crate) mending: Mending,
    /// Sends that followed another.
    pub(crate) gaps: i64,
    /// Longest time between two of its sends, and between two ACKs that let something out.
    pub(crate) longest_gap: i64,
    pub(crate) ack_gap: i64,
    /// Rate of the link, in bytes per second, if a queue stood and the ACKs show that others had a part of it.
    pub(crate) link: Option<u64>,
    /// A queue stood, and its ACKs came further apart by far than at the fastest rate before with one.
    pub(crate) is_slower: bool,
    pub(crate) loss: bool,
    /// The capture misses some of what passed in it.
    pub(crate) holed: bool,
    /// For how long, and how many rounds, the flight has stood still with it.
    pub(crate) still: (i64, u32),
    /// End of the train of ACKs that began with the round, for `HyStart`.
    pub(crate) train_end: StackTime,
    /// ACKs that took something out of the flight.
    pub(crate) advances: u32,
    /// Bytes of its largest run of sends without a pause.
    pub(crate) burst: i64,
    pub(crate) burst_now: i64,
    /// Largest flight that filled the receiver's window to the segment in it, 0 if none did.
    pub(crate) edge_flight: i64,
    pub(crate) first_frame: u64,
    pub(crate) last_frame: u64,
}

impl Round {
    /// Payload acknowledged by its length, in bytes per second.
    pub(crate) fn rate(&self) -> Option<u64> {
        let span = self.end - self.start;
        (span > 0 && self.acked > 0 && !self.holed)
            .then(|| (i128::from(self.acked) * i128::from(SECOND_NS) / i128::from(span)) as u64)
    }

    /// Whether its packets came through without loss and without standing in a queue.
    pub(crate) fn is_clean(&self, rtt_min: i64) -> bool {
        !self.loss && self.rtt_count > 0 && !is_queue(self.rtt_max - rtt_min, rtt_min)
    }

    /// The least variable lag of its sends (a burst's own serialisation does not count), where that
    /// is a queue on the sender's own host.
    pub(super) fn local_queue(&self, rtt_min: i64) -> Option<i64> {
        (self.tap_at_sender && is_queue(self.lag_min, rtt_min)).then_some(self.lag_min)
    }

    /// In slow start, a flight well below the replayed window, or below one that was let out before.
    pub(super) fn is_below_window(&self) -> bool {
        let replayed = self.cwnd.low.filter(|_| self.cwnd.high.is_some());
        self.phase == Phase::SlowStart
            && (self.let_out_more
                || replayed.is_some_and(|cwnd| BELOW_WINDOW.is_kept(self.flight_segments, cwnd)))
    }

    /// In slow start, a flight as large as the replayed window.
    pub(super) fn fills_window(&self) -> bool {
        self.phase == Phase::SlowStart && self.cwnd.high.is_some() && !self.is_below_window()
    }

    /// What the round's least round trip has above the path's: a queue that never emptied in it.
    /// The mean would count a burst's own serialisation as a queue.
    pub(super) fn standing_queue(&self, rtt_min: i64) -> i64 {
        self.rtt_min.map_or(0, |rtt| rtt - rtt_min).max(0)
    }

    /// How much of that the ACKs stood in queues on their way back.
    pub(super) fn queue_back(&self) -> i64 {
        self.held_back.unwrap_or(0)
    }

    /// What else the least round trip has above the path's: the data waited all along.
    pub(super) fn queue_elsewhere(&self, rtt_min: i64) -> i64 {
        self.rtt_else.map_or(0, |rtt| rtt - rtt_min).max(0)
    }

    pub(super) fn rtt(&self) -> Option<i64> {
        (self.rtt_count > 0).then(|| self.rtt_sum / self.rtt_count)
    }

    /// Whether its sends came without a pause. A flight that a window stops and that does not fill
    /// the path leaves it silent for the rest of the round trip.
    pub(super) fn is_smooth(&self) -> bool {
        let silence = self.longest_gap.max(self.end - self.stopped_at);
        self.gaps >= SMOOTH_GAPS && SMOOTH.is_kept(silence, self.end - self.start)
    }

    /// Seen away from its sender, without the time stamps that tell what stood in queues: its packets come as the
    /// path let them through, and whether the sender had a clock does not show.
    pub(super) const fn shows_no_clock(&self) -> bool {
        !self.tap_at_sender && !self.sees_queues
    }

    /// Whether data kept passing the tap.
    pub(super) fn passes_evenly(&self) -> bool {
        PASSES.is_kept(self.tap_gap, self.end - self.start)
    }

    /// Whether ACKs kept coming.
    pub(super) fn is_answered_throughout(&self) -> bool {
        ANSWERED.is_kept(self.ack_gap, self.end - self.start)
    }
}

/// Whether a delay of `queue` beyond the least round trip is a queue.
pub(super) fn is_queue(queue: i64, rtt_min: i64) -> bool {
    queue > least_queue(rtt_min)
}

/// The longest delay beyond the least round trip that is none.
pub(super) fn least_queue(rtt_min: i64) -> i64 {
    QUEUE_MIN_NS.max(QUEUE.of(rtt_min))
}
