//! A transfer round by round: the congestion window, the threshold, and what ended a round.
//!
//! A round begins at the first send, and anew when something that was sent in it is acknowledged, or
//! when slow start begins anew. Fast retransmit alone begins none: what it sends repairs the round
//! whose loss it answers, as textbooks draw it. A round's window is what it was before the next
//! round began, or before its losses were believed.

use core::cmp::Reverse;
use std::collections::BTreeMap;

use crate::profile::KnobError;
use crate::scenario::plan::Plan;
use crate::segment::Flags;
use crate::socket::{CaState, INFINITE_SSTHRESH};
use crate::world::{Keep, Kernels, Seen, Side, Tap, Trace, WindowSince, World};

/// A round.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Rung {
    /// When it began, from the opening of the connection.
    pub start_ns: u64,
    /// The congestion window, in segments.
    pub cwnd: u32,
    /// The threshold of slow start then; `None` where there is none yet.
    pub ssthresh: Option<u32>,
    /// Packets sent in it, and those of them that were sent before.
    pub packets: u32,
    /// Those that are retransmissions.
    pub resent: u32,
    /// What was believed lost in it, and how.
    pub loss: Option<Loss>,
}

/// How a loss was believed.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Loss {
    /// By acknowledgments: duplicates, or selective ones.
    FastRetransmit,
    /// By the retransmission timer.
    Timeout,
    /// Congestion was told without loss.
    Told,
}

/// The rounds of the connection that carries the most data.
///
/// # Errors
/// The plan asks for something that the model does not have.
pub fn ladder(plan: &Plan, kernels: Kernels) -> Result<Vec<Rung>, KnobError> {
    let keep = Keep { segments: true, handed_down: true, windows: true, ..Keep::default() };
    let (_, trace) = World::new(plan, kernels, keep)?.run();
    let mut bytes = BTreeMap::new();
    for seen in &trace.handed_down {
        *bytes.entry((seen.connection, seen.from)).or_insert(0) += u64::from(seen.segment.len);
    }
    let most = bytes.into_iter().max_by_key(|(key, bytes)| (*bytes, Reverse(*key)));
    Ok(most.map_or_else(Vec::new, |((connection, sender), _)| climb(&trace, connection, sender)))
}

fn climb(trace: &Trace, connection: u32, sender: Side) -> Vec<Rung> {
    let of = |seen: &&Seen| seen.connection == connection;
    let sends = trace.handed_down.iter().enumerate().filter(|(_, seen)| of(seen));
    let sends = sends.filter(|(_, seen)| seen.from == sender && seen.segment.len > 0);
    let tap = Tap::from(sender);
    let acks = trace.segments.iter().filter(of).filter(|seen| {
        seen.tap == tap && seen.from != sender && seen.segment.flags.has(Flags::ACK)
    });
    let windows = trace.windows.iter();
    let windows = windows.filter(|each| each.connection == connection && each.side == sender);
    let mut climber = Climber {
        opened_ns: trace.segments.iter().find(of).map_or(0, |seen| seen.at_ns),
        windows: windows.copied().collect(),
        ..Climber::default()
    };
    let mut acks = acks.peekable();
    for (number, send) in sends {
        while let Some(ack) = acks.next_if(|ack| ack.at_ns <= send.at_ns) {
            climber.on_ack(ack);
        }
        climber.on_send(number, send);
    }
    acks.for_each(|ack| climber.on_ack(ack));
    climber.end_round(u64::MAX);
    climber.rungs
}

#[derive(Default)]
struct Climber {
    opened_ns: u64,
    windows: Vec<WindowSince>,
    /// How many of them were looked at for losses.
    looked: usize,
    first: Option<u32>,
    nxt: i64,
    last_ack_ns: u64,
    round: Option<Round>,
    rungs: Vec<Rung>,
}

struct Round {
    rung: Rung,
    /// Its window is settled: losses were believed since.
    is_settled: bool,
    /// The least end of what was sent in it.
    least_end: i64,
}

impl Climber {
    fn on_ack(&mut self, ack: &Seen) {
        let Some(first) = self.first else { return };
        self.last_ack_ns = ack.at_ns;
        let una = i64::from(
            ack.segment.ack.wrapping_sub(first.wrapping_add(self.nxt as u32)).cast_signed(),
        );
        if self.round.as_ref().is_some_and(|round| self.nxt + una >= round.least_end) {
            self.end_round(ack.at_ns);
        }
    }

    fn on_send(&mut self, number: usize, send: &Seen) {
        let segment = &send.segment;
        let first = *self.first.get_or_insert(segment.seq);
        let from = self.nxt
            + i64::from(
                segment.seq.wrapping_sub(first.wrapping_add(self.nxt as u32)).cast_signed(),
            );
        let end = from + i64::from(segment.len);
        let is_again = from < self.nxt;
        let window = self.windows_until(send.at_ns).last();
        let by_timer = window.is_some_and(|each| each.timeouts > 0);
        if is_again && by_timer && send.at_ns != self.last_ack_ns {
            if let Some(round) = &mut self.round {
                round.rung.loss = Some(Loss::Timeout);
            }
            self.end_round(send.at_ns);
        }
        self.look_for_losses(number);
        let start_ns = send.at_ns.saturating_sub(self.opened_ns);
        let round = self.round.get_or_insert(Round {
            rung: Rung { start_ns, cwnd: 0, ssthresh: None, packets: 0, resent: 0, loss: None },
            is_settled: false,
            least_end: i64::MAX,
        });
        let packets = segment.piece_count();
        round.rung.packets += packets;
        round.rung.resent += if is_again { packets } else { 0 };
        round.least_end = round.least_end.min(end);
        self.nxt = self.nxt.max(end);
    }

    /// Settles the window of the round in which losses were believed before a send.
    fn look_for_losses(&mut self, number: usize) {
        while let Some(window) = self.windows.get(self.looked).filter(|w| w.sends <= number) {
            let window = *window;
            let before = self.looked.checked_sub(1).map(|place| self.windows[place]);
            self.looked += 1;
            let loss = match window.ca_state {
                CaState::Recovery => Loss::FastRetransmit,
                CaState::Cwr => Loss::Told,
                _ => continue,
            };
            if let Some((before, round)) = before.zip(self.round.as_mut())
                && before.ca_state < CaState::Cwr
                && !round.is_settled
            {
                settle(round, &before);
                round.rung.loss = Some(loss);
                if window.cwnd <= 1 {
                    self.end_round(window.at_ns);
                }
            }
        }
    }

    /// The round is over at an instant.
    fn end_round(&mut self, at_ns: u64) {
        let Some(mut round) = self.round.take() else { return };
        if !round.is_settled
            && let Some(window) = self.windows.iter().rfind(|each| each.at_ns < at_ns)
        {
            settle(&mut round, window);
        }
        self.rungs.push(round.rung);
    }

    fn windows_until(&self, at_ns: u64) -> &[WindowSince] {
        &self.windows[..self.windows.partition_point(|each| each.at_ns <= at_ns)]
    }
}

fn settle(round: &mut Round, window: &WindowSince) {
    round.rung.cwnd = window.cwnd;
    round.rung.ssthresh = Some(window.ssthresh).filter(|each| *each < INFINITE_SSTHRESH);
    round.is_settled = true;
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::profile::{KernelProfile, Version};
    use crate::scenario::Scenario;

    fn rungs(text: &str, overrides: &[&str]) -> Vec<Rung> {
        let overrides: Vec<_> = overrides.iter().map(|&text| text.to_owned()).collect();
        let scenario = Scenario::read("test", text, &overrides).expect("a scenario");
        let kernels = Kernels::both(KernelProfile::of(Version::new(6, 12)));
        ladder(&scenario.variants[0], kernels).expect("the model has all of it")
    }

    fn windows(rungs: &[Rung]) -> Vec<u32> {
        rungs.iter().map(|rung| rung.cwnd).collect()
    }

    fn losses(rungs: &[Rung]) -> Vec<(usize, Loss)> {
        let losses = rungs.iter().enumerate();
        losses.filter_map(|(round, rung)| Some((round, rung.loss?))).collect()
    }

    /// The drawn figure: ssthresh 16, a timeout at 24, three duplicates at 16.
    const FIGURE: &str = include_str!("../../../scenarios/textbook.toml");

    #[test]
    fn the_drawn_figure_comes_out_point_by_point() {
        let rungs = rungs(FIGURE, &["server.route.congctl=textbook-reno"]);
        let up: Vec<_> = [1, 2, 4, 8].into_iter().chain(16..=24).collect();
        let again: Vec<_> = [1, 2, 4, 8].into_iter().chain(12..=16).collect();
        let rest: Vec<_> = (8..=12).collect();
        let all = windows(&rungs);
        assert_eq!(all[..13], up);
        assert_eq!(all[13..22], again);
        assert_eq!(all[22..27], rest);
        assert_eq!(losses(&rungs), [(12, Loss::Timeout), (21, Loss::FastRetransmit)]);
        let thresholds: Vec<_> = [0, 12, 13, 21, 22].map(|round| rungs[round].ssthresh).into();
        assert_eq!(thresholds, [Some(16), Some(16), Some(12), Some(12), Some(8)]);
    }

    #[test]
    fn tahoe_begins_anew_after_three_duplicates() {
        let rungs = rungs(FIGURE, &["server.route.congctl=textbook-tahoe"]);
        assert_eq!(windows(&rungs)[21..28], [16, 1, 2, 4, 8, 9, 10]);
    }

    #[test]
    fn an_inflated_window_lets_new_segments_out_while_the_hole_is_open() {
        let rungs = rungs(FIGURE, &["server.route.congctl=textbook-reno-inflated"]);
        assert_eq!(windows(&rungs)[21..25], [16, 8, 9, 10]);
        // Sixteen, the hole again, and for twelve more duplicates 11 + 12 - 16 new ones.
        assert_eq!((rungs[21].packets, rungs[21].resent), (16 + 1 + 7, 1));
        assert_eq!(rungs[21].loss, Some(Loss::FastRetransmit));
    }

    /// The ladder that is drawn of fast retransmit: M3 is lost, M4 to M6 make three duplicates of
    /// the acknowledgment of M2, and M3 goes out again long before its timer.
    #[test]
    fn three_duplicates_of_m2_bring_m3_again() {
        let rungs = rungs(FIGURE, &["server.route.initcwnd=6", "path.down.loss=exact 3"]);
        let first = rungs[0];
        assert_eq!((first.cwnd, first.loss), (6, None));
        // M1 and M2 grow the window by two and let four more out; then the hole is noticed.
        let second = rungs[1];
        assert_eq!((second.cwnd, second.packets, second.resent), (8, 4 + 1, 1));
        assert_eq!(second.loss, Some(Loss::FastRetransmit));
        let gap = second.start_ns - first.start_ns;
        assert_eq!(gap, 100_000_000, "a round trip, not a timeout");
        assert_eq!(rungs[2].ssthresh, Some(4), "half of the eight under way");
    }

    #[test]
    fn without_a_threshold_and_losses_linux_doubles() {
        let text = "[path]\nrtt = \"6ms\"\n[application]\ndownload = \"512KiB\"\n";
        let rungs = rungs(text, &["path.rate=unlimited"]);
        assert_eq!(windows(&rungs)[..4], [10, 20, 40, 80]);
        assert_eq!(rungs[0].ssthresh, None);
        assert_eq!(losses(&rungs), []);
    }

    #[test]
    fn what_a_router_finds_too_long_is_no_timeout() {
        let text = "[path]\nrtt = \"20ms\"\nmtu = 1400\n[application]\ndownload = \"100kB\"\n";
        let rungs = rungs(text, &[]);
        assert_eq!(losses(&rungs), []);
        assert!(rungs[0].resent > 0 && rungs[0].cwnd == 10);
    }

    #[test]
    fn stop_and_wait_sends_one_a_round_trip() {
        let rungs = rungs(
            FIGURE,
            &[
                "server.route.congctl=stop-and-wait",
                "path.down.loss=none",
                "application.send=14600B",
            ],
        );
        assert_eq!(windows(&rungs), [1; 10]);
        assert!(rungs.iter().all(|rung| rung.packets == 1));
        assert!(rungs.windows(2).all(|w| w[1].start_ns - w[0].start_ns == 100_000_000));
    }
}
