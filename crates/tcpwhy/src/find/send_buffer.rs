//! The sender's socket buffer is full: it holds less than the path would.
//!
//! # What it says
//! What a program writes stays in its socket's buffer until it is acknowledged. If the buffer holds
//! less than a round trip's worth, the flight can never be larger than it, however wide the windows
//! and the path are.
//!
//! # How we know
//! Intervals in the state `sndbuf`: ACKs released the sends, the flight stood at one size for rounds,
//! the receiver's window and the congestion window had room, nothing was lost and no queue stood.
//! They hold at least a tenth of the working time. Where the flights were not of one size after all, as of a
//! buffer that grows, the finding says so. A congestion window clamped by a route, an
//! application that writes once a round trip, or its own window look alike on the wire; where the
//! packets allow one of them it is named, and how sure we are.
//!
//! # What it is not
//! Not the receiver, and not the path. The kernel's own counter (`sndbuf_limited`) may be nothing
//! although this is the limit: it runs only while the writer is blocked and the queue is empty.
//!
//! # What to do
//! Remove `SO_SNDBUF` from the program: with it the kernel stops sizing the buffer and ignores
//! `net.ipv4.tcp_wmem`. `ss -tmi` on the sender shows `tb`: one size for all the transfer means that
//! the option is set or the ceiling is reached. Without the option the ceiling is the third number of
//! `tcp_wmem`. How much fits depends on the size of the writes too, for each piece is charged with its
//! overhead: larger writes hold more. Cost: memory for each connection.
//!
//! # Sources
//! Linux `tcp_sndbuf_expand`, `sk_stream_memory_free`, `sk_setsockopt` (v6.1, `net/ipv4/tcp_input.c`,
//! `net/core/sock.c`). Ours: the lab's `sndbuf` scenario (how much fits, by the size of the writes).

use super::case::{Case, Told, in_each};
use super::windows::at_most;
use super::{Rule, remedies};
use crate::report::{Connection, Finding, Remedy, Severity, State};
use tcpwhy_words::said;

pub(super) const RULE: Rule = Rule {
    code: "SEND_BUFFER",
    severity: Severity::Wrong,
    file: include_str!("send_buffer.rs"),
    find,
};

/// A flight larger than the usual one by more than one part in this many is of another size. Ours, not measured: how
/// much a buffer holds depends on how the data is cut.
const SAME_SIZE: u64 = 4;

fn find(connection: &Connection) -> Vec<Finding> {
    in_each(connection, |case| {
        use State::{
            BandwidthExternal, BandwidthSelfQueue, CwndAvoidance, CwndClamp, CwndSlowStart,
            LocalQdisc, RwndAutotune, RwndCap, RwndReader,
        };
        let held = case.held(|state| state == State::Sndbuf);
        if !held.is_worth_naming() || super::scale_lost::explains(case) {
            return None;
        }
        let receiver = case.receiver();
        let (title, why) = size(case, held.time_ns())?;
        let told = Told {
            title,
            why,
            not: held.not(&[
                (
                    &format!("not the {receiver}'s window: it had room"),
                    &[RwndCap, RwndAutotune, RwndReader],
                ),
                (
                    "not the congestion window: it had room",
                    &[CwndSlowStart, CwndAvoidance, CwndClamp],
                ),
                (
                    "not the path: no queue stood",
                    &[LocalQdisc, BandwidthSelfQueue, BandwidthExternal],
                ),
            ]),
            remedies: help(case),
        };
        Some(held.finding(RULE.code, told))
    })
}

/// What is true of the flights: they stood at one size, or they did not.
fn size(case: &Case<'_>, time_ns: i64) -> Option<(String, String)> {
    let flights = flights(case, State::Sndbuf);
    let (least, most) = (*flights.first()?, *flights.last()?);
    let usual = usual_flight(case, State::Sndbuf)?;
    let (sender, time) = (case.sender(), said::time(time_ns));
    // When its packets left and the ACKs came is only rebuilt elsewhere, and the flights with it.
    let about = if case.tap_at_sender() { "" } else { "about " };
    if most <= usual + usual / SAME_SIZE {
        let title = format!(
            "the {sender}'s socket buffer lets no more than {about}{} be in flight",
            said::bytes(most)
        );
        let limit = at_most(case, most);
        let stood = format!(
            "the flight stood at that size and each ACK let just as much go, for {time} in all{limit}."
        );
        return Some((title, stood));
    }
    let title = format!(
        "the {sender}'s socket buffer seems to hold its flights, of {about}{} to {}",
        said::bytes(least),
        said::bytes(most)
    );
    let why = format!(
        "ACKs let each of them go although both windows had room, for {time} in all; they were not of one size: a \
         buffer that the kernel still enlarges, or the program's writes, do so."
    );
    Some((title, why))
}

/// The flights of the rounds that `state` stopped, the smallest first.
fn flights(case: &Case<'_>, state: State) -> Vec<u64> {
    let stopped = case.direction.rounds.iter().filter(|round| round.limited_by == state);
    let mut flights: Vec<u64> = stopped.map(|round| round.in_flight_bytes).collect();
    flights.sort_unstable();
    flights
}

/// The median flight of the rounds that `state` stopped.
pub(super) fn usual_flight(case: &Case<'_>, state: State) -> Option<u64> {
    let flights = flights(case, state);
    flights.get(flights.len() / 2).copied()
}

fn help(case: &Case<'_>) -> Vec<Remedy> {
    let mut help = vec![remedies::look(
        case.at,
        "see whether the program fixes its send buffer (SO_SNDBUF: `tb` stays the same while data flows) and let \
         the kernel size it; failing that, write in larger pieces",
        remedies::sockets(case, case.at),
    )];
    if case.sender_is_linux() {
        let larger = remedies::sysctl(
            case,
            case.at,
            "net.ipv4.tcp_wmem",
            "'FIRST SECOND NEW_THIRD'",
            "only if the program sets no SO_SNDBUF: raise the third number to twice the rate you want times \
             the round trip (it costs memory for each connection; new connections use it)"
                .to_owned(),
        );
        help.push(remedies::predicted_with(
            larger,
            case.at,
            "net.ipv4.tcp_wmem=4096 16384 33554432",
        ));
    }
    help
}

#[cfg(test)]
mod tests {
    use super::super::case::working_ns;
    use super::super::sample::{self, Sim};
    use super::*;

    fn buffered(buffer: u64) -> Connection {
        Sim { bytes: 1_000_000, buffer, ..Sim::default() }.run()
    }

    #[test]
    fn a_flight_of_one_size_with_room_in_all_windows_is_told() {
        let found = find(&buffered(32_768));
        assert_eq!(found.len(), 1);
        insta::assert_snapshot!(sample::shown(&found));
    }

    /// The flights, the largest of them `more` bytes above the usual one.
    fn with_one_larger(more: u64) -> Finding {
        let mut connection = buffered(32_768);
        let direction = connection.directions[1].as_mut().expect("data");
        let mut held = direction.rounds.iter_mut().filter(|r| r.limited_by == State::Sndbuf);
        let last = held.next_back().expect("rounds");
        last.in_flight_bytes += more;
        find(&connection).remove(0)
    }

    #[test]
    fn flights_of_several_sizes_did_not_stand() {
        let case_of = buffered(32_768);
        let usual = Case::of(&case_of, 1).and_then(|case| usual_flight(&case, State::Sndbuf));
        let usual = usual.expect("rounds");
        let found = with_one_larger(usual / SAME_SIZE + 1);
        assert!(!found.title.contains("no more than"), "{}", found.title);
        insta::assert_snapshot!(sample::shown(&[found]));
        let same = with_one_larger(usual / SAME_SIZE);
        assert!(same.title.contains("no more than"), "{}", same.title);
    }

    #[test]
    fn a_flight_that_was_rebuilt_elsewhere_is_about_that_size() {
        use crate::report::Vantage::{Client, Middle, Server};
        let told = |vantage| {
            let found = find(&Connection { vantage, ..buffered(32_768) }).remove(0);
            found.title.contains("about")
        };
        assert_eq!([Server, Client, Middle].map(told), [false, true, true]);
    }

    #[test]
    fn a_receivers_window_of_that_size_is_not_the_senders_buffer() {
        let connection =
            Sim { bytes: 1_000_000, first_window: 32_768, window: 32_768, ..Sim::default() }.run();
        assert!(find(&connection).is_empty());
    }

    #[test]
    fn a_tenth_is_enough_and_less_is_not() {
        let connection = buffered(32_768);
        let cost = find(&connection)[0].cost_ns;
        let active = working_ns(&connection);
        for (more, number) in [(10 * cost - active, 1), (10 * cost - active + 10, 0)] {
            let mut stretched = connection.clone();
            sample::stretch_opening(&mut stretched, more);
            assert_eq!(find(&stretched).len(), number, "{more}");
        }
    }
}
