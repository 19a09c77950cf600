//! The sending application writes more slowly than TCP could send.
//!
//! # What it says
//! In the middle of a transfer the windows were open and nothing was there to send: the program wrote
//! its data in pieces, with pauses.
//!
//! # How we know
//! Intervals in the state `app`: the receiver's window, the congestion window and the buffer had room,
//! and what came next was not released by an ACK. They hold at least a tenth of the working time.
//!
//! # What it is not
//! Not TCP and not the network. Not the pause before an answer (`THINK_SERVER`): this is within it. A
//! sender that spaces its packets evenly on purpose (pacing) is told from this where its spacing shows
//! it.
//!
//! # What to do
//! Look at what the sending program does between its writes: it may read from a disk or another
//! service, compress or encrypt, or flush piece by piece. No setting of TCP helps.
//!
//! # Sources
//! `docs/reference/limits-method.md` section 6 (`app`).

use super::case::{Told, active_ns, in_each};
use super::{Rule, remedies};
use crate::report::{Connection, Finding, State};
use crate::words;

pub(super) const RULE: Rule =
    Rule { code: "SLOW_WRITER", file: include_str!("slow_writer.rs"), find };

fn find(connection: &Connection) -> Vec<Finding> {
    in_each(connection, |case| {
        let held = case.held(|state| state == State::App);
        if !held.is_worth_naming() {
            return None;
        }
        let sender = case.sender();
        let share = words::percent(held.time_ns(), active_ns(connection));
        let told = Told {
            title: format!("the {sender}'s application had nothing to send within its transfers"),
            why: format!(
                "windows and buffer had room, and no ACK released what came next; {share} of the active time."
            ),
            not: "not TCP and not the network".to_owned(),
            remedies: vec![remedies::application(format!(
                "see what the {sender}'s program does between its writes; no setting of TCP helps"
            ))],
        };
        Some(held.finding(RULE.code, told))
    })
}

#[cfg(test)]
mod tests {
    use super::super::case::working_ns;
    use super::super::sample::{self, Sim};
    use super::*;

    const MS: i64 = 1_000_000;

    fn writes(every: i64) -> Connection {
        Sim { bytes: 100_000, initial: 100, writes: Some((4_000, every)), ..Sim::default() }.run()
    }

    #[test]
    fn a_program_that_writes_piece_by_piece_is_told() {
        let found = find(&writes(7 * MS));
        assert_eq!(found.len(), 1);
        insta::assert_snapshot!(sample::shown(&found));
    }

    #[test]
    fn a_program_that_writes_all_at_once_is_not() {
        assert!(find(&sample::download()).is_empty());
    }

    #[test]
    fn a_tenth_is_enough_and_less_is_not() {
        let connection = writes(7 * MS);
        let (cost, active) = (find(&connection)[0].cost_ns, working_ns(&connection));
        for (more, number) in [(10 * cost - active, 1), (10 * cost - active + 10, 0)] {
            let mut stretched = connection.clone();
            sample::stretch_opening(&mut stretched, more);
            assert_eq!(find(&stretched).len(), number, "{more}");
        }
    }
}
