//! Sends that a timer of the sender set off, and the waits before them, where the packets that would
//! show the loss are missing: a tail that was lost before the tap, an ACK that was lost behind it, a
//! probe that brings new data.

use super::Sender;
use super::sends::segments_of;
use crate::clocks::StackTime;
use crate::flow::event::Event;
use crate::limits::proof::Proven;
use crate::limits::sense::{
    COUNTED_TIMEOUTS, JIFFIES_NS, MOST_TIMEOUTS, NEVER, is_probe_in_time, may_end_by, ran_out,
};
use crate::limits::wait::{Probe, Release};
use crate::measure::ipid::Step;
use crate::report::RepeatCause;
use crate::segments::Segments;

/// A segment sent at `at`, `quiet` after all that is known at `since`: a timer may have sent it again. What is sent
/// next tells.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Suspect {
    event: Event,
    at: StackTime,
    since: StackTime,
    quiet: i64,
}

impl Sender {
    /// A retransmission of what was acknowledged: the sender lacks the ACK, which was lost behind the tap. If the
    /// time before it is a timer's, that was waited for, whatever the application did.
    pub(crate) fn watch_lost_acks(&mut self, at: StackTime) {
        let since = self.progress.at.max(self.sends.last);
        let ran_out = |timer: i64| ran_out(timer, at - since);
        let (rto, probe) = (self.trips.timers.rto(), self.trips.timers.pto(false));
        let may_probe = self.terms.sack && !self.progress.tail_probed;
        // The timeout counts anew from the probe, if there was one.
        let probed = may_probe && ran_out(probe + rto);
        if probed || may_probe && ran_out(probe) && !ran_out(rto) {
            self.prove(since, Proven::ProbeUnseen);
        }
        if ran_out(rto) {
            let from = if probed { since + probe } else { since };
            self.prove(from, Proven::TimeoutUnseen);
            self.progress.done = at;
        }
    }

    /// Since when nothing was sent or acknowledged before `at`, and for how long.
    fn quiet_until(&self, at: StackTime) -> (StackTime, i64) {
        let since = self.progress.at.max(self.sends.last).max(self.peer.last_data.unwrap_or(NEVER));
        (since, at.since(since))
    }

    /// Data that looks new, but the ledger of IP identifications jumps before it and the quiet
    /// time is a timer's: the tail before it was lost before the tap, and this repeats it, if `true`.
    pub(crate) fn watch_lost_tail(&mut self, event: &Event, at: StackTime, step: Step) -> bool {
        let (since, quiet) = self.quiet_until(at);
        let is_timer = |timer: i64| ran_out(timer, quiet);
        let missing = self.take_unexplained(event, step);
        if missing == 0 || !self.handshake.is_over || self.may_lack_an_answer() {
            return false;
        }
        let segments = segments_of(event.len, self.terms.mss);
        let lone = missing == 1 && event.seq == self.flight.nxt;
        let (cause, lost_timers) = match self.timers_until(since, quiet, missing, lone) {
            Some(ran_out) => ran_out,
            None if self.repairs.episodes.repeats_tail(event) => (RepeatCause::Rto, 0),
            None if self.transfers.first_at.is_some()
                && is_timer(self.rtt_scale())
                && !is_timer(self.trips.timers.pto(lone)) =>
            {
                (RepeatCause::Fast, 0)
            }
            None => {
                self.watch_own_drop(at);
                return false;
            }
        };
        self.order.unexplained = self.order.unexplained.saturating_sub(lost_timers);
        let flight = self.flight.outstanding_segments() + Segments::new(missing);
        match cause {
            RepeatCause::Rto => self.tally.rto += segments,
            RepeatCause::Tlp => self.tally.tlp += segments,
            _ => self.tally.fast += segments,
        }
        if cause == RepeatCause::Tlp {
            self.repairs.probe.begin(event, flight);
        } else {
            // More may have been lost; that this much was is known. Where the last segment may be short, its first
            // byte is known.
            let others =
                if cause == RepeatCause::Rto { missing.saturating_sub(lost_timers + 1) } else { 0 };
            let last = event.seq + others as i64 * self.terms.mss + 1;
            if self.repairs.begin_tail(event.end().max(last), cause == RepeatCause::Rto) {
                self.cut_window(flight, at);
            }
        }
        self.tally.lost += segments;
        self.list(event, at, cause, Vec::new());
        true
    }

    /// Whether what is missing may be the ACK that data of the peer drew.
    fn may_lack_an_answer(&self) -> bool {
        self.peer.spoke && self.peer.answered_to < self.peer.end
    }

    /// Whether a sender with nothing in flight may have waited until it sent `event` at `at` for a timer that sends a
    /// tail again which was lost before the tap, if no identification would tell of that. Then the last flight that
    /// was seen did not end short, as an application's writes do, and it took as long as a chain of timers. Of an answer
    /// what came first has a hole before it, or it is one short segment that took the first timeout to the tick.
    pub(crate) fn may_be_lost_tail(&self, event: &Event, at: StackTime) -> bool {
        let (_, quiet) = self.quiet_until(at);
        let (timers, nxt) = (&self.trips.timers, self.flight.nxt);
        let may_be = match () {
            () if !self.peer.spoke => {
                let goes_on = self.transfers.first_at.is_some() && !self.sends.new.short;
                goes_on && event.seq >= nxt && self.took_timers(quiet)
            }
            () if event.seq > nxt => self.took_timers(quiet),
            () if self.may_lack_an_answer() => false,
            () => {
                let due = timers.rto() - self.terms.spread..=timers.rto() + JIFFIES_NS;
                i64::from(event.len) < self.terms.mss && due.contains(&quiet)
            }
        };
        may_be
            && !self.terms.tap_at_sender
            && !self.order.counts_packets()
            && !self.sends.writes.are_told()
            && timers.srtt().is_some()
    }

    /// Whether a `quiet` time is as long as a chain of timers: the probe and a few timeouts.
    fn took_timers(&self, quiet: i64) -> bool {
        let timers = &self.trips.timers;
        let probe = if self.terms.sack { timers.pto(false) } else { 0 };
        let timeouts = (0..=MOST_TIMEOUTS).map(|count| timers.rto() * ((1 << count) - 1));
        let took_it =
            |due: i64| due > 0 && ran_out(due, quiet) && may_end_by(due + JIFFIES_NS, quiet);
        timeouts.map(|timeouts| probe + timeouts).any(took_it)
    }

    /// A full segment that may send a lost tail again is remembered: what follows it may tell.
    pub(crate) fn note_suspect(&mut self, event: &Event, at: StackTime) {
        let (since, quiet) = self.quiet_until(at);
        let is_full = i64::from(event.len) == self.terms.mss && event.seq == self.flight.nxt;
        self.suspect = is_full.then_some(Suspect { event: *event, at, since, quiet });
    }

    /// Whether the segment that was suspected did come from a timeout: it came alone, though more was to be sent, for
    /// `event` follows its ACK. After a timeout the window is one segment, after a pause of the application at least
    /// the initial one, which is more (RFC 5681 sections 3.1 and 4.1). `event` was lost behind it, then.
    pub(crate) fn watch_lone_repeat(
        &mut self,
        event: &Event,
        release: Release,
        at: StackTime,
    ) -> bool {
        let Some(lone) = self.suspect.take() else { return false };
        let timers = &self.trips.timers;
        let probe = if self.terms.sack { timers.pto(false) } else { 0 };
        let timed_out = ran_out(probe + timers.rto(), lone.quiet);
        let came_alone = event.seq == lone.event.end()
            && matches!(release, Release::Ack { by_data: false })
            && self.stop.evidence.in_flight == i64::from(lone.event.len)
            && self.stop.evidence.room >= self.terms.mss;
        if !timed_out || !came_alone {
            return false;
        }
        if self.timers_until(lone.since, lone.quiet, u64::MAX, false).is_none() {
            return false;
        }
        self.prove(lone.at, Proven::LoneRepeat);
        self.tally.rto += Segments::new(1);
        self.tally.lost += Segments::new(1);
        self.list(&lone.event, lone.at, RepeatCause::Rto, Vec::new());
        if self.repairs.begin_tail(event.end(), true) {
            // At least the lone segment and `event`: how much more stood behind them, the capture lacks.
            self.cut_window(Segments::new(2), at);
        }
        true
    }

    /// The ledger jumps, though nothing is missing in sequence and no timer ran out: a queueing
    /// discipline of the sender's own host refused what was sent before, and TCP sends that anew as if
    /// it never had. It takes the refusal for congestion, once a round trip (`__tcp_transmit_skb`,
    /// `tcp_enter_cwr`). A needless repeat that was lost looks the same, and cuts the window, too.
    fn watch_own_drop(&mut self, at: StackTime) {
        if self.flight.outstanding() == 0 {
            return;
        }
        // One super-segment takes many numbers, and is sent anew in any pieces.
        self.order.unexplained = 0;
        if self.flight.una >= self.progress.refused_to && self.repairs.episodes.current() == 0 {
            self.cut_window(self.flight.outstanding_segments(), at);
            self.progress.refused_to = self.flight.nxt;
        }
    }

    /// Names the `quiet` time since `since` by the timers that ran out in it, if the capture lacks
    /// enough (`missing` segments) for all their sends but the last: the probe of the tail first,
    /// which needs SACK (`tcp_schedule_loss_probe`), then timeouts, each twice as long. Also, how many
    /// sends of timers are missing.
    fn timers_until(
        &mut self,
        since: StackTime,
        quiet: i64,
        missing: u64,
        lone: bool,
    ) -> Option<(RepeatCause, u64)> {
        let probe = if self.terms.sack && !self.progress.tail_probed {
            self.trips.timers.pto(lone)
        } else {
            0
        };
        let mut timers = u64::from(probe > 0);
        let (mut due, mut timeout) = (probe, self.trips.timers.rto());
        let ran_out = |due: i64| ran_out(due, quiet);
        if due > 0 && !ran_out(due) {
            return None;
        }
        while ran_out(due + timeout) && timers < missing.min(COUNTED_TIMEOUTS) {
            due += timeout;
            timeout *= 2;
            timers += 1;
        }
        // Longer than all these timers: something else was lost, and the application paused. Of
        // several that are missing one alone may have been in flight.
        let latest = due - probe + self.trips.timers.pto(true).max(probe) + JIFFIES_NS;
        if due == 0 || !may_end_by(latest, quiet) {
            return None;
        }
        if probe > 0 {
            self.progress.tail_probed = true;
            self.prove(since, Proven::ProbeUnseen);
        }
        if due > probe {
            self.prove(since + probe, Proven::TimeoutUnseen);
            return Some((RepeatCause::Rto, timers - 1));
        }
        Some((RepeatCause::Tlp, 0))
    }

    /// Adds up the segments that the ledger misses and no hole in sequence explains. If `event`
    /// may be the repeat of one, that is taken: how many were missing, else 0.
    pub(crate) fn take_unexplained(&mut self, event: &Event, step: Step) -> u64 {
        let mut surplus = 0;
        if let Step::After(jump) = step {
            let hole = (event.seq - self.flight.nxt).clamp(0, 1 << 20) as u32;
            surplus = u64::from(jump).saturating_sub(segments_of(hole, self.terms.mss).get());
        }
        self.order.unexplained += surplus;
        // Beyond a hole, only what is missing just before it can be its first copy; at the sender's
        // own tap the capture is likelier to have missed that.
        let missing = match event.seq.cmp(&self.flight.nxt) {
            core::cmp::Ordering::Equal => self.order.unexplained,
            core::cmp::Ordering::Greater if !self.terms.tap_at_sender => surplus,
            _ => 0,
        };
        if event.len == 0 || missing == 0 {
            return 0;
        }
        self.order.unexplained -= 1;
        missing
    }

    /// A probe of the tail that looks new: it sends new data (`tcp_send_loss_probe`), a frame of full segments by
    /// itself, or away from the sender the end of a tail that was lost before the tap, behind a hole. It comes
    /// after the probe timer's quiet time, while data is in flight and the application has
    /// not ended a write short. An application that pauses just that long looks the same, and away from the sender a
    /// timeout behind a probe that was lost before the tap.
    pub(crate) fn probe_like_new(&self, event: &Event, at: StackTime) -> Probe {
        let quiet = at - self.progress.at.max(self.sends.last);
        let behind_hole = !self.terms.tap_at_sender && event.seq > self.flight.nxt;
        let sent = if behind_hole { event.end() } else { self.flight.nxt };
        let timer = self.trips.timers.pto(sent - self.flight.una <= self.terms.mss);
        let in_time = ran_out(timer, quiet) && is_probe_in_time(timer, quiet);
        let is_probe = in_time
            && self.terms.sack
            && self.flight.outstanding() > 0
            && !self.sends.new.short
            && (behind_hole || i64::from(event.len) % self.terms.mss.max(1) == 0)
            && self.trips.timers.srtt().is_some();
        let may_be_timeout = !self.terms.tap_at_sender && ran_out(self.trips.timers.rto(), quiet);
        match is_probe {
            false => Probe::None,
            true if may_be_timeout => Probe::TailOrTimeout,
            true => Probe::Tail,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::limits::sender::Terms;
    use crate::offsets::Offset;

    /// Whether `segments` at `at` are taken for a probe, 10 ms being the round trip and two segments
    /// in flight since 0.
    fn is_probe(segments: i64, at: i64) -> bool {
        is_probe_of([0, 2 * 1448, segments * 1448], at, false)
    }

    /// Whether `len` bytes from offset `seq` on are, all before `una` being acknowledged.
    fn is_probe_of([una, seq, len]: [i64; 3], at: i64, tap_at_sender: bool) -> bool {
        let terms = Terms { mss: 1448, sack: true, tap_at_sender, ..Terms::default() };
        let mut walker = Sender::new(terms, true, 0);
        walker.trips.sample(10_000_000, Offset::FIRST, Offset::FIRST);
        walker.flight.send_unseen(Offset::at(2 * 1448), StackTime(0), 1448);
        walker.flight.una = Offset::at(una);
        (walker.progress.at, walker.sends.last, walker.sends.new.short) =
            (StackTime(0), StackTime(0), false);
        let event = Event { seq: Offset::at(seq), len: len as u32, ..Event::default() };
        walker.probe_like_new(&event, StackTime(at)) != Probe::None
    }

    #[test]
    fn a_probe_of_the_tail_is_one_frame_of_whole_segments_when_its_timer_runs_out() {
        // 22 ms, which our estimate may miss by a fifth, and two jiffies of HZ=100.
        assert!(is_probe(1, 17_600_000) && is_probe(2, 17_600_000));
        assert!(!is_probe(2, 17_599_999));
        assert!(is_probe(2, 46_400_000));
        assert!(!is_probe(2, 46_400_001));
    }

    #[test]
    fn the_short_end_of_a_tail_behind_a_hole_is_probed_with() {
        assert!(is_probe_of([0, 3 * 1448, 500], 22_000_000, false));
        assert!(
            is_probe_of([1448, 3 * 1448, 500], 22_000_000, false),
            "more than one is in flight"
        );
        assert!(
            !is_probe_of([0, 2 * 1448, 500], 22_000_000, false),
            "no hole: an application's write"
        );
        assert!(
            !is_probe_of([0, 3 * 1448, 500], 22_000_000, true),
            "a lost tail would be in the capture"
        );
    }

    #[test]
    fn from_afar_a_probe_of_one_segment_comes_as_late_as_a_timeout() {
        // `segments` are in flight since 0, 10 ms being the round trip: the timeout is due at 210 ms.
        let told = |segments: i64, at: i64, tap_at_sender: bool| {
            let terms = Terms { mss: 1448, sack: true, tap_at_sender, ..Terms::default() };
            let mut walker = Sender::new(terms, true, 0);
            walker.trips.sample(10_000_000, Offset::FIRST, Offset::FIRST);
            walker.flight.send_unseen(Offset::at(segments * 1448), StackTime(0), 1448);
            (walker.progress.at, walker.sends.last, walker.sends.new.short) =
                (StackTime(0), StackTime(0), false);
            let event = Event { seq: Offset::at(segments * 1448), len: 1448, ..Event::default() };
            walker.probe_like_new(&event, StackTime(at))
        };
        assert_eq!(told(1, 210_000_000, false), Probe::TailOrTimeout);
        assert_eq!(told(1, 210_000_000, true), Probe::Tail, "there the first probe would be seen");
        assert_eq!(told(2, 22_000_000, false), Probe::Tail, "no timeout yet");
    }

    /// Whether a pause of so long before `event` may have been a timer's, seen away from the sender, 10 ms being the
    /// round trip and all of two segments acknowledged at 0; `change` makes it another.
    fn may_be_timers(quiet: i64, change: impl Fn(&mut Sender)) -> bool {
        may_be_timers_at(2 * 1448, quiet, change)
    }

    fn may_be_timers_at(seq: i64, quiet: i64, change: impl Fn(&mut Sender)) -> bool {
        let mut walker = Sender::new(Terms { mss: 1448, sack: true, ..Terms::default() }, true, 0);
        walker.trips.sample(10_000_000, Offset::FIRST, Offset::FIRST);
        walker.flight.restart(Offset::at(2 * 1448));
        walker.transfers.first_at = Some(StackTime(0));
        (walker.progress.at, walker.sends.last, walker.sends.new.short) =
            (StackTime(0), StackTime(0), false);
        change(&mut walker);
        let event = Event { seq: Offset::at(seq), len: 1448, ..Event::default() };
        walker.may_be_lost_tail(&event, StackTime(quiet))
    }

    #[test]
    fn a_pause_of_a_chain_of_timers_may_hide_a_lost_tail_where_nothing_counts_the_packets() {
        // The probe after 22 ms and a timeout of 210 ms after it, a fifth off, and two jiffies of HZ=100 later.
        assert!(may_be_timers(185_600_000, |_| ()) && may_be_timers(315_000_000, |_| ()));
        assert!(!may_be_timers(185_599_999, |_| ()) && !may_be_timers(315_000_001, |_| ()));
        assert!(!may_be_timers(i64::MAX, |_| ()), "longer than any");
        assert!(may_be_timers_at(3 * 1448, 22_000_000, |_| ()), "a probe with a hole before it");
        // The second timeout, after 420 ms more.
        assert!(may_be_timers(652_000_000, |_| ()));
        let [ends_short, answers, at_the_sender]: [fn(&mut Sender); 3] = [
            |walker| walker.sends.new.short = true,
            |walker| walker.peer.spoke = true,
            |walker| walker.terms.tap_at_sender = true,
        ];
        assert!(!may_be_timers(232_000_000, ends_short), "all that was written had come");
        assert!(!may_be_timers(232_000_000, answers), "a request came between");
        assert!(!may_be_timers(232_000_000, at_the_sender), "a lost tail would be in the capture");
    }
}
