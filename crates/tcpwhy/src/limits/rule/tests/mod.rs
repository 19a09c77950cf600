//! What rounds of one kind and another are named.

mod lids;
mod pace;
mod paths;

use super::*;
use crate::clocks::StackTime;
use crate::limits::near::Rounds;
use crate::limits::pulse::{Before, Cause};
use crate::limits::round::{Phase, Round};
use crate::limits::wait::{Edge, Release, Window};
use crate::report::Cwnd;
use crate::segments::Segments;

const RTT: i64 = 20_000_000;

/// A round of that flight, its sends 1 ms apart, each answered a round trip later.
fn round(number: u64, flight: u64) -> Round {
    let start = number as i64 * RTT;
    Round {
        number,
        start: StackTime(start),
        end: StackTime(start + RTT),
        flight: flight as i64 * 1448,
        flight_segments: Segments::new(flight),
        segments: Segments::new(flight),
        acked: flight as i64 * 1448,
        sends: 19,
        ack_released: 19,
        gaps: 18,
        longest_gap: 1_000_000,
        ack_gap: 1_000_000,
        stopped_at: StackTime(start + 19_000_000),
        rtt_min: Some(RTT),
        rtt_max: RTT,
        rtt_sum: 19 * RTT,
        rtt_count: 19,
        tap_at_sender: true,
        ..Round::default()
    }
}

/// A wait that an ACK ended, with this much of the receiver's window left.
fn acked(edge: Edge) -> Wait {
    let window = match edge {
        Edge::Far => Window::OPEN,
        Edge::PerhapsNear => Window { is_near: true, ..Window::OPEN },
        Edge::Near(state) => Window { is_near: true, is_told: true, state, ..Window::OPEN },
    };
    Wait { ended_by: Release::Ack { by_data: false }, window, ..Wait::PLAIN }
}

/// One that ended by itself, unless its ACK was late; `whole` if the send before it was a full segment.
fn free(by_ack: bool, whole: bool) -> Wait {
    Wait { ack_may_be_late: by_ack, ended_whole: whole, ..Wait::PLAIN }
}

/// What rounds tell of such a wait behind a send of round `number`.
fn told_of(rounds: &Rounds, number: u64, wait: Wait) -> Verdict {
    by_rounds(&wait, &Near::new(rounds, number, RTT))
}

fn closed(rounds: impl IntoIterator<Item = Round>) -> Rounds {
    let mut kept = Rounds::default();
    rounds.into_iter().for_each(|round| kept.push(&round));
    kept
}

fn state_of(rounds: &Rounds, number: u64) -> State {
    held_in(rounds, number, false)
}

fn held_in(rounds: &Rounds, number: u64, past_pulse: bool) -> State {
    let held = Wait { is_past_pulse: past_pulse, ..acked(Edge::Far) };
    told_of(rounds, number, held).state
}

#[test]
fn each_rule_has_a_name_of_its_own() {
    let mut names: Vec<&str> = ORDER.iter().chain(QUIET).map(|rule| rule.name).collect();
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), ORDER.len() + QUIET.len());
}

#[test]
fn what_a_send_tells_is_asked_before_what_rounds_tell() {
    let is_later = |rule: &Rule| matches!(rule.ask, Ask::TwoRoundsLater(_));
    assert!(
        ORDER.is_sorted_by_key(is_later),
        "else a rule would be asked out of the table's order"
    );
}
