//! Something was retransmitted only after a timer ran out.
//!
//! # What it says
//! The end of a flight was lost, or so much that too little came back to show it. Without later
//! segments there is nothing that the receiver could report, so the sender waits for a timer: a
//! probe after two round trips, or the retransmission timeout of at least 200 ms in Linux. Or nothing was
//! lost, and the receiver's ACKs came later than that: a host or program that stood still. The title says
//! which of the two it was. A probe may also carry new data, where there is some: then nothing was sent
//! again at all, and the finding speaks of no loss.
//!
//! # How we know
//! Intervals in the states `rto_wait` and `tlp_wait`: from the last progress to a send that no ACK
//! released, of data sent before (or, where the IP identification shows that the original was lost
//! before this capture point, of what looks new). They hold at least a tenth of the working time. Where
//! the receiver reports that it had all that was retransmitted, its ACKs were late, and the finding says so.
//!
//! # What it is not
//! Not the application's silence, which looks alike where the original was lost before the capture
//! point. Not the wait for a repeated SYN (`SYN_RETRY`), nor segments too long for the path (`BLACK_HOLE`).
//!
//! # What to do
//! Late ACKs: find what kept the receiver from answering. Else the loss is the cause: see what else was found about it. Short answers suffer most: keep
//! connections warm, so that the timer follows the real round trip, and send an answer in one
//! write, so that its end is not a lone segment. Leave SACK and `tcp_early_retrans` on: tail loss
//! probes repair in two round trips what would take 200 ms.
//!
//! # Sources
//! RFC 6298 sections 2 and 5, RFC 8985 section 7 (tail loss probes); Linux `TCP_RTO_MIN` 200 ms,
//! `tcp_schedule_loss_probe` (v6.1, `include/net/tcp.h`, `net/ipv4/tcp_output.c`).

use super::case::{Case, Told, in_each};
use super::{Rule, remedies};
use crate::report::{Connection, Finding, Remedy, RepeatCause, Severity, State};
use tcpwhy_words::said;

pub(super) const RULE: Rule =
    Rule { code: "TIMEOUT", severity: Severity::Wrong, file: include_str!("timeout.rs"), find };

fn find(connection: &Connection) -> Vec<Finding> {
    in_each(connection, |case| {
        let held = case.held(|state| matches!(state, State::RtoWait | State::TlpWait));
        let is_size = super::black_hole::explains(case) || super::path_mtu::explains(case);
        if !held.is_worth_naming() || is_size {
            return None;
        }
        let is_timer = |state| matches!(state, State::RtoWait | State::TlpWait);
        if super::accept_queue::holds_all(case, is_timer) {
            return None;
        }
        let longest = held.limits.iter().map(|each| each.end_ns - each.start_ns).max()?;
        let sender = case.sender();
        let probes = held.limits.iter().filter(|each| each.state == State::TlpWait).count() as u64;
        let timeouts = held.limits.len() as u64 - probes;
        let kinds: Vec<String> =
            [(timeouts, "retransmission timeout"), (probes, "tail loss probe")]
                .into_iter()
                .filter(|(number, _)| *number > 0)
                .map(|(number, what)| said::count(number, what))
                .collect();
        // Which of the two timers fired leaves no trace at the receiver.
        let timers = if case.tap_at_sender() {
            format!("{}{}", said::listed(&kinds), with_new_data(case, probes))
        } else {
            said::count(timeouts + probes, "timer")
        };
        if were_needless(case) {
            return Some(held.finding(RULE.code, needless(case, &timers, longest)));
        }
        if timeouts == 0 && !case.lost_something() {
            return Some(held.finding(RULE.code, nothing_again(case, probes, longest)));
        }
        let told = Told {
            title: "losses were repaired only after a timer ran out".to_owned(),
            why: format!(
                "the {sender} waited for {timers}, {} at the longest: nothing came back that showed the loss.",
                said::time(longest)
            ),
            not: "not an application's silence: what came then was a repair".to_owned(),
            remedies: vec![
                remedies::path("find where the segments are lost: without loss no timer runs out"),
                remedies::program(
                    case.at,
                    "send an answer in one write and keep connections warm: a lone last segment waits longest",
                ),
            ],
        };
        Some(held.finding(RULE.code, told))
    })
}

/// Probes that the count of retransmissions lacks: where there was new data, Linux probes with that
/// (`tcp_send_loss_probe`).
fn with_new_data(case: &Case<'_>, probes: u64) -> String {
    match probes.saturating_sub(case.direction.retransmitted.tlp) {
        0 => String::new(),
        new => format!(" ({} with new data, which repeats nothing)", said::grouped(new)),
    }
}

/// Whether all that timers retransmitted had arrived. Where single repeats are not kept, their counts tell it only if
/// nothing was lost: other repeats may have been needless, too.
fn were_needless(case: &Case<'_>) -> bool {
    let by = &case.direction.retransmitted;
    let each = case.direction.retransmissions.iter();
    let mut of_timers =
        each.filter(|each| matches!(each.cause, RepeatCause::Rto | RepeatCause::Tlp)).peekable();
    if of_timers.peek().is_some() {
        return of_timers.all(|each| each.spurious);
    }
    by.spurious > 0 && by.spurious >= by.rto + by.tlp && case.direction.events.lost == 0
}

/// All that the timers retransmitted had arrived: its ACKs were late.
fn needless(case: &Case<'_>, timers: &str, longest: i64) -> Told {
    let (sender, receiver) = (case.sender(), case.receiver());
    Told {
        title: format!("the {receiver}'s ACKs came so late that a timer ran out"),
        why: format!(
            "the {sender} waited for {timers}, {} at the longest; the {receiver} reports that it had all that \
             was then retransmitted.",
            said::time(longest)
        ),
        not: "not loss: what these timers retransmitted had arrived".to_owned(),
        remedies: vec![acks_held_up(case)],
    }
}

/// The probes carried new data, and nothing was ever retransmitted: all that shows is that no ACK came in time.
fn nothing_again(case: &Case<'_>, probes: u64, longest: i64) -> Told {
    let (sender, receiver) = (case.sender(), case.receiver());
    Told {
        title: format!("the {receiver}'s ACKs came later than the {sender}'s probe timer"),
        why: format!(
            "{}, {} at the longest, the {sender} sent new data after a pause as long as that timer, released by no \
             ACK; nothing was retransmitted.",
            said::times(probes),
            said::time(longest)
        ),
        not: "not loss: nothing had to be repaired".to_owned(),
        remedies: vec![acks_held_up(case)],
    }
}

fn acks_held_up(case: &Case<'_>) -> Remedy {
    let receiver = case.receiver();
    remedies::path(format!(
        "see what held the ACKs up: a capture on the {receiver}'s host shows when they left it"
    ))
}

#[cfg(test)]
mod tests {
    use super::super::sample::{self, held_by};
    use super::*;
    use crate::report::{Retransmission, Vantage};

    #[test]
    fn a_tail_that_waits_for_its_timer_is_told() {
        let found = find(&held_by(State::RtoWait, 5_000));
        assert_eq!(found.len(), 1);
        insta::assert_snapshot!(sample::shown(&found));
    }

    #[test]
    fn a_tenth_is_enough_and_less_is_not() {
        assert_eq!(find(&held_by(State::RtoWait, 1_000)).len(), 1);
        assert!(find(&held_by(State::RtoWait, 999)).is_empty());
    }

    #[test]
    fn a_download_that_only_slow_start_held_is_no_such_thing() {
        assert!(find(&sample::download()).is_empty());
    }

    #[test]
    fn probes_and_timeouts_are_counted_apart() {
        let mut connection = held_by(State::RtoWait, 5_000);
        let limits = &mut connection.directions[1].as_mut().expect("data").limits;
        let mut probe =
            limits.iter().find(|each| each.state == State::RtoWait).expect("one").clone();
        probe.state = State::TlpWait;
        limits.push(probe);
        connection.vantage = Vantage::Server;
        let why = &find(&connection)[0].why;
        let said = "1 retransmission timeout and 1 tail loss probe (1 with new data";
        assert!(why.contains(said), "{why}");
        connection.directions[1].as_mut().expect("data").retransmitted.tlp = 1;
        let why = &find(&connection)[0].why;
        assert!(why.contains("1 tail loss probe, "), "{why}");
    }

    #[test]
    fn a_timer_that_repeats_what_had_arrived_shows_no_loss() {
        let title = |spurious: u64| {
            let mut connection = held_by(State::TlpWait, 5_000);
            let by = &mut connection.directions[1].as_mut().expect("data").retransmitted;
            (by.rto, by.tlp, by.spurious) = (0, 4, spurious);
            find(&connection)[0].title.clone()
        };
        assert!(title(4).contains("ACKs came so late"), "{}", title(4));
        assert!(title(3).contains("losses"), "one of them was needed");
    }

    #[test]
    fn needless_repeats_that_no_timer_sent_acquit_no_timer() {
        let title = |of_timer: &[bool]| {
            let mut connection = held_by(State::RtoWait, 5_000);
            let direction = connection.directions[1].as_mut().expect("data");
            let repeats = |cause: RepeatCause, spurious| Retransmission {
                cause,
                spurious,
                ..Retransmission::default()
            };
            direction.retransmissions = vec![repeats(RepeatCause::Fast, true); 40];
            direction
                .retransmissions
                .extend(of_timer.iter().map(|needless| repeats(RepeatCause::Rto, *needless)));
            let needless = of_timer.iter().filter(|needless| **needless).count() as u64;
            let by = &mut direction.retransmitted;
            (by.rto, by.fast, by.spurious) = (of_timer.len() as u64, 40, 40 + needless);
            direction.events.lost = of_timer.len() as u64 - needless;
            find(&connection)[0].title.clone()
        };
        assert!(title(&[false; 3]).contains("losses"));
        assert!(title(&[true, false]).contains("losses"));
        assert!(title(&[true; 3]).contains("ACKs came so late"));
    }

    #[test]
    fn a_probe_with_new_data_repairs_nothing() {
        let found = find(&held_by(State::TlpWait, 5_000));
        assert_eq!(found.len(), 1);
        insta::assert_snapshot!(sample::shown(&found));
    }

    #[test]
    fn one_segment_sent_again_is_a_repair() {
        let mut connection = held_by(State::TlpWait, 5_000);
        connection.directions[1].as_mut().expect("data").retransmitted.tlp = 1;
        assert!(find(&connection)[0].title.contains("losses"));
    }

    #[test]
    fn a_loss_that_shows_by_its_timeout_alone_is_one() {
        // Away from the sender a retransmission may look new.
        let found = find(&held_by(State::RtoWait, 5_000));
        assert!(found[0].title.contains("losses"));
    }

    #[test]
    fn from_the_receivers_host_the_timers_look_alike() {
        let mut connection = held_by(State::RtoWait, 5_000);
        connection.vantage = Vantage::Client;
        let why = &find(&connection)[0].why;
        assert!(why.contains("waited for 1 timer,"), "{why}");
    }
}
