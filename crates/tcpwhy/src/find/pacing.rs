//! The sender spaces its packets out on purpose (pacing).
//!
//! # What it says
//! What was sent left in an even rhythm that neither ACKs nor windows set: the sender's congestion
//! control (BBR) or a limit that the program or the host set for this socket.
//!
//! # How we know
//! Intervals in the state `pacing`: evenly spaced sends that no ACK released, with room in all
//! windows. They hold at least a tenth of the working time.
//!
//! # What it is not
//! Not an application that trickles: that is uneven (`SLOW_WRITER`). Not a shaper, which holds
//! packets after TCP has sent them (`LOCAL_QDISC`). Not a receiver's window that ended more rounds than the
//! pace did: a sender that measures paces at what that let through (`SLOW_READER`, `WINDOW_CAP`).
//!
//! # What to do
//! If the rate is less than the path carries, look for `SO_MAX_PACING_RATE` in the sending program
//! and for `maxrate` of an `fq` queue on its device: `ss -ti` shows `pacing_rate` and its limit.
//! BBR paces by design at what it measured: then this is the path's rate or what BBR takes for it.
//!
//! # Sources
//! Linux `tcp_update_pacing_rate`, `sk_max_pacing_rate`, `sch_fq`, `bbr_update_bw` (v6.1);
//! `docs/reference/limits-method.md` section 6 (`pacing`).

use super::case::{Case, Told, in_each};
use super::{Rule, remedies};
use crate::report::{Connection, Finding, Severity, State};
use tcpwhy_words::said;

pub(super) const RULE: Rule =
    Rule { code: "PACING", severity: Severity::Limit, file: include_str!("pacing.rs"), find };

fn find(connection: &Connection) -> Vec<Finding> {
    in_each(connection, |case| {
        let held = case.held(|state| state == State::Pacing);
        if !held.is_worth_naming() || is_receivers(case) {
            return None;
        }
        let sender = case.sender();
        // Writes at even times leave in such a rhythm as well.
        let title = if held.may_be(State::App) {
            format!("the {sender} or its application spaces its packets out")
        } else {
            format!("the {sender} spaces its packets out on purpose")
        };
        let told = Told {
            title,
            why: format!(
                "they left in an even rhythm that no ACK and no window set, for {}.",
                said::time(held.time_ns())
            ),
            not: held.not(&[
                ("not a window", &[State::RwndCap, State::RwndReader, State::RwndAutotune]),
                ("not the application's writes", &[State::App]),
                ("BBR does so by design", &[]),
            ]),
            remedies: vec![remedies::look(
                case.at,
                "see whether a program or a queue limits the rate (`pacing_rate` and the limit behind it; \
                 `maxrate` of fq); with BBR it is what that measured of the path",
                "ss -ti; tc -s qdisc show",
            )],
        };
        Some(held.finding(RULE.code, told))
    })
}

/// Whether the pace is what the receiver's window let through: that ended more rounds than the pace did, and a sender that
/// measures paces at the rate at which data arrived in the last rounds (BBR, `bbr_update_bw`: ten).
pub(super) fn is_receivers(case: &Case<'_>) -> bool {
    let ended = |by: fn(State) -> bool| {
        case.direction.rounds.iter().filter(|round| by(round.limited_by)).count()
    };
    let window = case.held(is_window);
    let by_pace = ended(|state| state == State::Pacing);
    window.is_worth_naming() && ended(is_window) > by_pace
}

const fn is_window(state: State) -> bool {
    matches!(state, State::RwndReader | State::RwndCap | State::ZeroWindow)
}

#[cfg(test)]
mod tests {
    use super::super::sample::{self, held_by};
    use super::*;
    use crate::report::Limit;

    #[test]
    fn an_even_rhythm_is_told() {
        let found = find(&held_by(State::Pacing, 5_000));
        assert_eq!(found.len(), 1);
        insta::assert_snapshot!(sample::shown(&found));
    }

    #[test]
    fn where_the_application_may_have_written_so_it_is_not_acquitted() {
        let mut connection = held_by(State::Pacing, 5_000);
        let direction = connection.directions[1].as_mut().expect("data");
        let paced = direction.limits.iter_mut().filter(|limit| limit.state == State::Pacing);
        paced.for_each(|limit| limit.alternative = vec![State::App]);
        let found = find(&connection).remove(0);
        assert!(found.title.contains("or its application"), "{}", found.title);
        assert!(!found.not.contains("application"), "{}", found.not);
    }

    #[test]
    fn a_pace_that_a_full_window_ends_more_often_than_not_is_the_receivers() {
        let found = |by_window: usize| {
            let mut connection = held_by(State::RwndReader, 5_000);
            let direction = connection.directions[1].as_mut().expect("data");
            let held = direction.limits.iter().position(|l| l.state == State::RwndReader);
            let held = held.expect("a wait");
            let wait = direction.limits[held].clone();
            let middle = i64::midpoint(wait.start_ns, wait.end_ns);
            direction.limits[held].end_ns = middle;
            let paced = Limit { state: State::Pacing, start_ns: middle, ..wait };
            direction.limits.insert(held + 1, paced);
            for (at, round) in direction.rounds.iter_mut().enumerate() {
                round.limited_by = if at < by_window { State::RwndReader } else { State::Pacing };
            }
            let rounds = direction.rounds.len();
            (rounds, find(&connection).len())
        };
        let (rounds, _) = found(0);
        assert_eq!(found(rounds / 2).1, 1, "as often");
        assert_eq!(found(rounds / 2 + 1).1, 0);
    }

    #[test]
    fn a_tenth_is_enough_and_less_is_not() {
        assert_eq!(find(&held_by(State::Pacing, 1_000)).len(), 1);
        assert!(find(&held_by(State::Pacing, 999)).is_empty());
    }

    #[test]
    fn a_download_that_only_slow_start_held_is_no_such_thing() {
        assert!(find(&sample::download()).is_empty());
    }
}
