//! What an arrival at the sender does: progress, windows, duplicates, the peer's own data.

use super::Sender;
use super::hystart;
use super::trips;
use super::window::Filled;
use crate::clocks::StackTime;
use crate::flow::event::{Block, ECE, Event, FIN, RST};
use crate::limits::sense::{DELAYABLE_SEGMENTS, FLOWING_NS, FLOWING_TRIPS, LONGEST_DELAYED_ACK_NS};
use crate::limits::wait::Lull;
use crate::offsets::Offset;
use crate::segments::Segments;

impl Sender {
    /// An ACK arrived.
    pub(crate) fn on_ack(&mut self, event: &Event, at: StackTime, blocks: &[Block]) {
        self.on_ack_of_unseen(event.ack, at);
        self.reach_back(event, blocks);
        let ack = event.ack.min(self.flight.nxt);
        if self.flight.segments_to_nxt == 0 && self.transfers.first_at.is_none() {
            // Nothing sent yet: a capture that starts midway learns where it is.
            self.begin_with_ack(event.ack, blocks);
        }
        let advanced = ack > self.flight.una;
        let duplicate = !advanced
            && event.len == 0
            && !event.has(FIN)
            && event.ack == self.flight.una
            && self.flight.outstanding() > 0
            && self.flight.nxt > event.ack;
        if advanced {
            self.replay_batch(at);
        }
        let allowed = self.window.end;
        let moved = self.take_window(event);
        self.watch_silence(event, at, advanced, blocks);
        let dsack = blocks.first().is_some_and(|b| {
            b.1 <= event.ack || blocks.get(1).is_some_and(|c| b.0 >= c.0 && b.1 <= c.1)
        });
        if advanced {
            // Beyond the window goes only what a timer probes it with; that is answered when the reader reads.
            let is_probe = ack > allowed && self.window.is_known() && !self.terms.shift_guessed;
            // One with a D-SACK answers the duplicate (RFC 2883 section 4), not what it acknowledges beside it.
            self.on_advance(ack, at, event, is_probe || dsack);
        }
        if dsack && let Some(block) = blocks.first() {
            self.on_dsack(*block);
        }
        let newly = if blocks.is_empty() { 0 } else { self.on_sack(at, blocks) };
        if moved && !advanced {
            self.window.moved_at = at;
        }
        if advanced || newly > 0 {
            self.progress.at = at;
        }
        if !advanced && (newly > 0 || (duplicate && !moved)) {
            // What SACK takes out of the flight lets data out (RFC 6675, PRR), and so does a
            // duplicate ACK (RFC 5681 §3.2).
            self.note_release(at, event);
        }
        // What a probe brought twice is acknowledged twice.
        let is_sign = duplicate && !moved && blocks.is_empty() && !dsack && !self.is_at_zero();
        if newly > 0 || is_sign && !self.repairs.probe.is_answer(event.ack) {
            self.repairs.heads.on_arrival();
            let behind = Segments::new((newly / self.terms.mss.max(1)).max(1) as u64);
            self.repairs.episodes.on_duplicate(self.flight.nxt, behind, at);
        }
        self.watch_probe(event, at, advanced || moved || newly > 0 || event.len > 0);
        if event.has(ECE) {
            self.repairs.episodes.on_ece(self.flight.nxt);
            self.growth.was_cut = true;
            self.window.filled = Filled::default();
        }
        let was_repairing = self.repairs.episodes.is_repairing();
        self.repairs.episodes.on_progress(self.flight.una);
        if was_repairing && self.repairs.episodes.current() == 0 {
            self.repair_on(at);
        }
    }

    /// SACK blocks came; how many bytes they newly report. What reaches further than all before and was sent once is
    /// answered at once: its round trip feeds the timers where no ACK gives one (`tcp_ack_update_rtt`).
    fn on_sack(&mut self, at: StackTime, blocks: &[Block]) -> i64 {
        let before = self.flight.highest_sacked();
        let newly = self.flight.sack(blocks);
        let sent = self.flight.highest_sacked().filter(|_| newly > 0);
        if let Some(sent) =
            sent.filter(|end| before < Some(*end)).and_then(|end| self.flight.sent_once(end))
        {
            let rtt = at - sent;
            if rtt > 0 {
                self.trips.sample(rtt, self.flight.una, self.flight.nxt);
                self.trips.push(rtt, false);
            }
        }
        newly
    }

    /// An ACK moves forward; `is_other` if it answers something else than what it acknowledges: a probe of the
    /// window, or a duplicate.
    fn on_advance(&mut self, ack: Offset, at: StackTime, event: &Event, is_other: bool) {
        let positions_before = self.flight.una;
        // The replay needs the position before entries go.
        let round_over =
            self.flight.segments_to_nxt > 0 && ack > self.book.marker && self.book.open.sends > 0;
        // What waited behind a hole was answered when that was filled.
        let was_full = self.stop.evidence.room < self.terms.mss && self.flight.sacked_bytes() == 0;
        let acked = self.flight.ack(ack);
        self.repairs.heads.on_advance(ack, acked.largest);
        self.is_blind = false;
        self.progress.tail_probed = false;
        self.queue_ack();
        self.tally.not_captured += acked.unseen_segments;
        let clean = acked.newest_at.filter(|_| !self.repairs.episodes.is_repairing() && !is_other);
        if let Some(sent) = clean {
            if was_full {
                self.note_answer(acked.bytes, (sent, at));
            }
            self.on_rtt(acked.bytes, (sent, at), event);
        }
        if let Some(sent) = acked.oldest_at.filter(|_| !is_other) {
            self.trips.sample(at - sent, self.flight.una, self.flight.nxt);
        }
        self.book.open.acked += ack - positions_before;
        if self.repairs.episodes.is_repairing() && self.flight.outstanding() > 0 {
            self.tally.partial_acks += 1;
        }
        if let Some(last) =
            self.releases.last.filter(|_| clean.is_some() && acked.bytes >= self.terms.mss)
        {
            self.book.spacing.push(acked.bytes, at - last);
        }
        self.watch_echo(event, positions_before);
        self.note_release(at, event);
        if round_over {
            self.book.open.cwnd = self.replay.cwnd(self.book.open.flight_segments);
            self.book.open.phase = self.book.open.before_loss.unwrap_or(self.phase());
            self.close_round(at);
        }
        if self.flight.outstanding() == 0 {
            self.progress.done = at;
            self.pauses.watch.on_quiet(at, self.trips.timers.rto());
        }
    }

    /// Something left the flight at `at`: sends that follow closely were released by it.
    fn note_release(&mut self, at: StackTime, event: &Event) {
        let since =
            self.releases.last.map_or(self.book.open.start, |last| last.max(self.book.open.start));
        self.book.open.ack_gap = self.book.open.ack_gap.max(at - since);
        let round = &mut self.book.open;
        round.train_end = hystart::train_end(round.start, round.train_end, at);
        round.advances += 1;
        self.releases.push(at, self.flight.una, event.is_data());
    }

    /// `event` came at `at` and took `acked` bytes, whose newest left at `sent`.
    fn on_rtt(&mut self, acked: i64, (sent, at): (StackTime, StackTime), event: &Event) {
        let rtt = at - sent;
        if rtt <= 0 {
            return;
        }
        let late = rtt - self.trips.least.min(rtt);
        // With more behind it the receiver would have acknowledged at once; data may have waited for the
        // peer's application.
        let behind = self.flight.outstanding();
        let may_wait = event.is_data() || acked.max(behind) < DELAYABLE_SEGMENTS * self.terms.mss;
        if !may_wait || late > LONGEST_DELAYED_ACK_NS && !event.is_data() {
            self.trips.jumps.push(rtt, at, event);
        }
        // A delayed ACK measures the peer's timer, not the path (limits-method section 3), one that waited for a
        // program that one.
        let next = self.flight.oldest_at().filter(|_| behind >= self.terms.mss);
        let is_drawn = next.is_some_and(|next| trips::draws_ack(next - sent));
        let is_prompt = (acked >= DELAYABLE_SEGMENTS * self.terms.mss
            || is_drawn
            || !trips::is_delayed_ack(late))
            && !(behind == 0 && self.is_kept_back(acked, (sent, at)));
        // One on data may have waited for the peer's application.
        self.trips.push(rtt, is_prompt && !event.is_data());
        if is_prompt {
            let round = &mut self.book.open;
            round.rtt_sum = round.rtt_sum.saturating_add(rtt);
            round.rtt_count += 1;
            let held = self.acks_held;
            let least = |of: Option<i64>, new: i64| Some(of.map_or(new, |least| least.min(new)));
            round.held_back = least(round.held_back, held);
            round.rtt_else = least(round.rtt_else, rtt - held);
            round.rtt_max = round.rtt_max.max(rtt);
            round.rtt_min = Some(round.rtt_min.map_or(rtt, |least| least.min(rtt)));
        }
    }

    /// Takes the window that `event` announces; whether its right edge moved.
    pub(crate) fn take_window(&mut self, event: &Event) -> bool {
        // The window of a reset is none (RFC 9293 section 3.10.7: it is not looked at).
        if event.has(RST) {
            return false;
        }
        let shift = if event.has(crate::flow::event::SYN) { 0 } else { self.terms.shift };
        let window = i64::from(event.window) << shift;
        let moved = self.window.take(event.ack, window, self.flight.una);
        self.window.note_growth(self.now);
        moved
    }

    /// Longest gap within one flow of the peer's data.
    pub(crate) fn flowing_gap(&self) -> i64 {
        FLOWING_NS.max(FLOWING_TRIPS.of(self.rtt_scale()))
    }

    /// What this side's silence was that ends with data of the peer at `at`.
    pub(crate) fn lull_until(&self, at: StackTime) -> Lull {
        let flowing = self.flowing_gap();
        let since = self.peer.last_data.filter(|_| self.peer.spoke);
        let is_first = self.peer.last_data.is_none() && self.transfers.first_at.is_none();
        let has_no_syn = self.handshake.last_syn == [None; 2];
        match since {
            Some(before) if at - before <= flowing => Lull::Flow,
            _ if is_first && has_no_syn && self.terms.side == 1 => Lull::FirstOfCapture,
            _ => Lull::Peer,
        }
    }

    /// Data of the peer arrived.
    pub(crate) fn peer_spoke(&mut self, at: StackTime) {
        self.peer.last_data = Some(at);
        self.peer.spoke = true;
        self.progress.done = self.progress.done.max(at);
    }
}
