//! Writes that follow each other a little later than a round trip, seen away from their sender.
//!
//! Question: did the ACK of a flight let the next one out, or was the application late to write that? From afar an ACK
//! and the send after it are a whole way apart, and what is a little late may be so by jitter.
//! A pause of the application shows by what jitter is not: one flight after the other is late by the same time. And by what
//! a full window or buffer does not do: each flight is acknowledged before the next one comes, ends with its only short
//! segment, leaves room in the receiver's window, and none is larger than those before.

use super::Sender;
use crate::clocks::StackTime;
use crate::flow::event::Event;
use crate::limits::sense::{LID_ROUNDS, STEADIER};
use crate::limits::wait::Release;

/// The last flights that may have been a write each.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Writes {
    flights: usize,
    /// The largest of them, in bytes.
    largest: i64,
    /// How late the one after the last was.
    late: i64,
    /// Short segments of the open one.
    shorts: u32,
    /// It was so by its application, though an ACK might have let it out.
    are_told: bool,
}

impl Writes {
    /// A short segment was sent.
    pub(crate) fn on_short(&mut self) {
        self.shorts += 1;
    }

    /// Whether the last was so by its application, though an ACK might have let it out.
    pub(crate) fn are_told(&self) -> bool {
        self.are_told
    }

    /// What follows a flight of `flight` bytes is late by `late`: whether enough were written so.
    fn push(&mut self, flight: i64, late: i64) -> bool {
        let is_alike = (late - self.late).abs() * STEADIER <= late && flight <= self.largest;
        let flights = if is_alike { self.flights + 1 } else { 1 };
        *self = Self { flights, largest: flight.max(self.largest), late, ..*self };
        flights > LID_ROUNDS
    }
}

impl Sender {
    /// What released `event` at `at`, which seems to be `release`: nothing that arrived, if its application has
    /// been as late before.
    pub(crate) fn unless_written(
        &mut self,
        release: Release,
        event: &Event,
        at: StackTime,
    ) -> Release {
        if release == Release::Burst {
            return release;
        }
        let shorts = core::mem::take(&mut self.sends.writes.shorts);
        let late = self.releases.acks.back().map(|ack| at - ack.at);
        let may_be_write = !self.terms.tap_at_sender
            && matches!(release, Release::Ack { by_data: false } | Release::Free)
            && self.flight.outstanding() == 0
            && self.sends.new.short
            && shorts == 1
            // Nagle's algorithm lets a full segment go.
            && i64::from(event.len) >= self.terms.mss
            && self.repairs.episodes.current() == 0;
        let writes = &mut self.sends.writes;
        match late.filter(|late| may_be_write && *late > self.trips.tolerance(0)) {
            None => *writes = Writes::default(),
            Some(late) => {
                let is_written = writes.push(self.stop.evidence.in_flight, late);
                writes.are_told = is_written && release != Release::Free;
            }
        }
        if writes.are_told { Release::Free } else { release }
    }
}
