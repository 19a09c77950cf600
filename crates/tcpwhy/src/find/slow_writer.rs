//! The sending application writes more slowly than TCP could send.
//!
//! # What it says
//! In the middle of a transfer the windows were open and nothing was there to send: the program wrote
//! its data in pieces, with pauses.
//!
//! # How we know
//! Intervals in the state `app`: the receiver's window, the congestion window and the buffer had room,
//! and what came next was not released by an ACK. They hold at least a tenth of the working time. Away from
//! the sender's host there must be more of them than repaired losses, for the wait for a segment lost
//! before the capture point looks alike; and what came no later behind an ACK than the path delays packets at
//! times is not counted, for that ACK may have been late. Segments of 64 bytes or fewer, with waits of 10 ms or
//! more between them, on average, are not counted either: that is slower than a serial line, as people and devices
//! are. What is typed is not there before it is typed.
//!
//! # What it is not
//! Not TCP and not the network. Not the pause before an answer (`THINK_SERVER`): this is within it. A
//! sender that spaces its packets evenly on purpose (pacing) differs from this where its spacing shows
//! it.
//!
//! # What to do
//! Look at what the sending program does between its writes: it may read from a disk or another
//! service, compress or encrypt, or flush piece by piece. No setting of TCP helps.
//!
//! # Sources
//! `docs/reference/limits-method.md` section 6 (`app`). A key is one byte in a segment (RFC 896), and a few tens of
//! bytes in SSH, whose packets have at least 16 bytes besides their MAC (RFC 4253 section 6).

use super::case::{Case, Told, in_each};
use super::{Rule, remedies};
use crate::report::{Connection, Direction, Finding, Severity, State};

/// The mean payload of a segment up to which it may be a key or a device's reading. Ours: a key's byte, framed and
/// encrypted.
const TYPED_BYTES: u64 = 64;
/// The mean wait for each from which on no processor made these. Ours: with [`TYPED_BYTES`] 51 kbit/s, a serial line's rate.
const TYPED_NS: i64 = 10_000_000;

pub(super) const RULE: Rule = Rule {
    code: "SLOW_WRITER",
    severity: Severity::Wrong,
    file: include_str!("slow_writer.rs"),
    find,
};

fn find(connection: &Connection) -> Vec<Finding> {
    in_each(connection, |case| {
        let held = case.held(|state| state == State::App);
        let other = may_be_holes(case, held.limits.len()) || super::scale_lost::explains(case);
        if !held.is_worth_naming() || other || is_typed(case.direction, held.time_ns()) {
            return None;
        }
        let sender = case.sender();
        let told = Told {
            title: format!("the {sender}'s application had nothing to send within its transfers"),
            why: "windows and buffer had room, and no ACK released what came next.".to_owned(),
            not: "not TCP and not the network".to_owned(),
            remedies: vec![remedies::program(
                case.at,
                "see what the program does between its writes; no setting of TCP helps",
            )],
        };
        Some(held.finding(RULE.code, told))
    })
}

/// Whether the program sends a few bytes at a time as they come to be, as of a keyboard.
fn is_typed(direction: &Direction, silent_ns: i64) -> bool {
    let pieces = i64::try_from(direction.segments).unwrap_or(i64::MAX);
    let is_tiny = direction.bytes <= direction.segments.saturating_mul(TYPED_BYTES);
    is_tiny && silent_ns >= pieces.saturating_mul(TYPED_NS)
}

/// Whether each of this many silences may be a loss before this capture point: away from the sender's host the
/// original of a lost segment is not seen, and the wait for its repair looks like silence.
fn may_be_holes(case: &Case<'_>, silences: usize) -> bool {
    let by = &case.direction.retransmitted;
    !case.tap_at_sender() && silences as u64 <= by.fast + by.rto + by.tlp
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
    fn what_is_typed_is_not_written_slowly() {
        let number = |size: u64, every: i64| {
            let writes = Some((size, every));
            let bytes = 100 * size;
            find(&Sim { bytes, initial: 100, writes, ..Sim::default() }.run()).len()
        };
        assert_eq!(number(64, 25 * MS), 0);
        assert_eq!(number(65, 25 * MS), 1, "more than a key");
        assert_eq!(number(64, 7 * MS), 1, "faster than a serial line");
    }

    #[test]
    fn a_silence_for_each_loss_is_no_writers_away_from_its_host() {
        let mut connection = writes(7 * MS);
        let case = Case::of(&connection, 1).expect("data");
        let silences = case.held(|state| state == State::App).limits.len() as u64;
        connection.vantage = crate::report::Vantage::Client;
        for (repairs, number) in [(silences, 0), (silences - 1, 1)] {
            connection.directions[1].as_mut().expect("data").retransmitted.fast = repairs;
            assert_eq!(find(&connection).len(), number, "{repairs}");
        }
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
