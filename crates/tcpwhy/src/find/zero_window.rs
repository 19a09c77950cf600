//! The receiver shut its window: its application does not read.
//!
//! # What it says
//! The receiver announced a window of nothing (or less than it takes to send a segment), and the
//! sender had to stop until it opened again.
//!
//! # How we know
//! Intervals in the state `zero_window`: less was left of the announced window than the smaller of a
//! segment and the silly-window limit, with data pending: the sender probed the window, or went on as
//! soon as it opened; or the window was taken back to 0 over data under way, which is then retransmitted as a probe. They
//! hold at least a tenth of the working time.
//!
//! # What it is not
//! Not the network. Not Wireshark's "Window Full", which means that the sender used all of a window
//! that is open. Not a buffer that is full behind a hole (`ZERO_WINDOW_HOLE`). The probes are the persist timer's, not keep-alives.
//!
//! # What to do
//! Look at the program on the receiver: what does it do instead of reading? A larger buffer only
//! delays the stop. After it, probes go out at growing intervals (up to two minutes), so a lost window
//! update may cost more than the pause itself.
//!
//! # Sources
//! RFC 9293 sections 3.8.6.1 and 3.8.6.2; Linux `tcp_probe_timer`, `tcp_select_window` (v6.1,
//! `net/ipv4/tcp_timer.c`, `tcp_output.c`).

use super::case::{Told, in_each};
use super::{Rule, remedies};
use crate::report::{Connection, Finding, Severity, State};
use tcpwhy_words::said;

pub(super) const RULE: Rule = Rule {
    code: "ZERO_WINDOW",
    severity: Severity::Wrong,
    file: include_str!("zero_window.rs"),
    find,
};

fn find(connection: &Connection) -> Vec<Finding> {
    in_each(connection, |case| {
        let held = case.held(|state| state == State::ZeroWindow);
        let is_other = super::scale_lost::explains(case) || super::zero_window_hole::explains(case);
        if !held.is_worth_naming() || is_other {
            return None;
        }
        let receiver = case.receiver();
        let longest = held.limits.iter().map(|each| each.end_ns - each.start_ns).max()?;
        let times = held.times();
        // A window of less than a segment stops a sender as well.
        let shut = match case.direction.events.zero_window {
            0 => "left no room for a segment in its window",
            _ => "shut its window",
        };
        let over = case.direction.window_taken_back.map_or(0, |back| back.over_bytes);
        let (title, more) = match over {
            0 => (format!("the {receiver} {shut}: its application did not read"), String::new()),
            _ => (
                format!("the {receiver} took its window back to 0 while data was under way"),
                format!(
                    " {} were under way that it had allowed before; what the {} then retransmitted are window probes.",
                    said::bytes(over),
                    case.sender()
                ),
            ),
        };
        let told = Told {
            title,
            why: format!("it did so {times}, for {} at the longest.{more}", said::time(longest)),
            not: "not the network: nothing could be sent; a larger buffer only delays it"
                .to_owned(),
            remedies: vec![remedies::reads_at_once(case)],
        };
        Some(held.finding(RULE.code, told))
    })
}

#[cfg(test)]
mod tests {
    use super::super::sample::{self, Sim};
    use super::*;

    const MS: i64 = 1_000_000;

    fn stops_for(pause: i64, window: u64) -> Connection {
        let asleep = Some((60 * MS, 60 * MS + pause));
        let sim = Sim { bytes: 600_000, first_window: window, window, asleep, ..Sim::default() };
        let mut connection = sim.run();
        connection.directions[1].as_mut().expect("data").events.zero_window = 1;
        connection
    }

    #[test]
    fn a_window_of_less_than_a_segment_is_not_called_shut() {
        let mut connection = stops_for(500 * MS, 60_000);
        connection.directions[1].as_mut().expect("data").events.zero_window = 0;
        let title = &find(&connection)[0].title;
        assert!(title.starts_with("the client left no room for a segment"), "{title}");
    }

    #[test]
    fn a_reader_that_sleeps_shuts_the_window() {
        let found = find(&stops_for(500 * MS, 60_000));
        assert_eq!(found.len(), 1);
        insta::assert_snapshot!(sample::shown(&found));
    }

    #[test]
    fn a_window_full_but_open_is_not_shut() {
        assert!(find(&stops_for(0, 60_000)).is_empty());
    }

    #[test]
    fn a_tenth_is_enough_and_less_is_not() {
        let connection = stops_for(500 * MS, 60_000);
        let shut = find(&connection)[0].cost_ns;
        let active = super::super::case::working_ns(&connection);
        for (more, number) in [(10 * shut - active, 1), (10 * shut - active + 10, 0)] {
            let mut stretched = connection.clone();
            sample::stretch_opening(&mut stretched, more);
            assert_eq!(find(&stretched).len(), number, "{more}");
        }
    }
}
