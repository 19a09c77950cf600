//! The capture lacks packets here: what happened in them is not known.
//!
//! # What it says
//! Packets are missing in the capture (the capturing host dropped them, a listing left lines out, a
//! file of a rotation is missing), and what the transfer waited for meanwhile cannot be said.
//!
//! # How we know
//! Intervals in the state `capture_gap` hold at least a tenth of the active time: data was
//! acknowledged that the capture does not hold and that was never retransmitted, or the listing says
//! itself that lines are missing.
//!
//! # What it is not
//! Not loss on the network: what was lost there is retransmitted. Nothing else in this report speaks
//! of these times.
//!
//! # What to do
//! Capture again: a larger buffer (`tcpdump -B 16384`), a shorter snap length (`-s 128`), a filter
//! for this connection only, writing to a file (`-w`) instead of printing. For a listing, the whole
//! of it or the capture itself.
//!
//! # Sources
//! pcap(3PCAP) on buffers and `ps_drop`; `docs/reference/limits-method.md` section 2.

use super::case::{Case, Told, active_ns};
use super::{Rule, remedies};
use crate::report::{Connection, Finding, Remedy, Severity, State};
use tcpwhy_words::said;

pub(super) const RULE: Rule = Rule {
    code: "CAPTURE_GAP",
    severity: Severity::Note,
    file: include_str!("capture_gap.rs"),
    find,
};

fn find(connection: &Connection) -> Vec<Finding> {
    let directions = [0, 1].into_iter().filter_map(|at| Case::of(connection, at));
    let gaps = directions.map(|case| (case, case.held(|state| state == State::CaptureGap)));
    let Some((case, held)) = gaps.max_by_key(|(_, held)| held.time_ns()) else {
        return Vec::new();
    };
    if !held.is_share_of(active_ns(connection)) {
        return Vec::new();
    }
    let missing = case.direction.events.not_captured;
    let number = match missing {
        0 => "packets are missing; ".to_owned(),
        some => format!(
            "at least {} of the {} are missing; ",
            said::count(some, "segment"),
            case.sender()
        ),
    };
    let told = Told {
        title: "the capture lacks packets: what happened there is not known".to_owned(),
        why: format!(
            "{number}they were acknowledged and never retransmitted, or the listing says itself that it leaves \
             lines out."
        ),
        not: "not loss on the network: what is lost there is retransmitted".to_owned(),
        remedies: vec![Remedy {
            command: Some(format!(
                "tcpdump -i any -B 16384 -s 128 -w transfer.pcap 'tcp port {}'",
                connection.server.port()
            )),
            ..remedies::application(
                "capture again with a larger buffer, fewer bytes of each packet and only this connection; of a \
                 listing, the whole",
            )
        }],
    };
    let mut finding = held.finding(RULE.code, told);
    // It costs certainty, not time.
    finding.severity = RULE.severity;
    vec![finding]
}

#[cfg(test)]
mod tests {
    use super::super::sample::{self, held_by};
    use super::*;

    #[test]
    fn a_hole_in_the_capture_is_told_as_such() {
        let found = find(&held_by(State::CaptureGap, 5_000));
        assert_eq!(found.len(), 1);
        assert_eq!(found[0].severity, Severity::Note);
        insta::assert_snapshot!(sample::shown(&found));
    }

    #[test]
    fn a_tenth_is_enough_and_less_is_not() {
        let connection = held_by(State::CaptureGap, 1_000);
        let (cost, active) = (find(&connection)[0].cost_ns, active_ns(&connection));
        for (more, number) in [(10 * cost - active, 1), (10 * cost - active + 10, 0)] {
            let mut stretched = connection.clone();
            sample::stretch_opening(&mut stretched, more);
            assert_eq!(find(&stretched).len(), number, "{more}");
        }
    }

    #[test]
    fn a_whole_capture_is_not() {
        assert!(find(&sample::download()).is_empty());
    }
}
