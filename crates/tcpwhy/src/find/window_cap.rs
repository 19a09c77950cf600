//! The receiver's window is at its maximum and full.
//!
//! # What it says
//! The receiver lets no more than its window be in flight, that window no longer grows, and the sender
//! fills it to the byte. No transfer can go faster than one window per round trip.
//!
//! # How we know
//! Intervals in the state `rwnd.cap`: what was left of the announced window was less than a segment,
//! the congestion window allowed more, and the window was within 5 % of the largest announced lately;
//! none was announced later that was larger by more than that.
//! They hold at least a tenth of the working time. Where the handshake was not captured the window's
//! scale is a guess, and less sure.
//!
//! # What it is not
//! Not the network, and not the sender's host. Not a reader that lags: then the window shrinks
//! or answers come late (`SLOW_READER`), or it is shut for longer than it holds the sender while open (`ZERO_WINDOW`): then a larger
//! one is full as well. Not a window without scaling, which has a finding of its own (`WINDOW_SCALE`).
//!
//! # What to do
//! On the receiver's host. First the program: a socket with `SO_RCVBUF` has a fixed window (the kernel
//! doubles what is asked, bounds it by `net.core.rmem_max`, and stops autotuning for it); remove the
//! option. `ss -tmi` shows `rb`: if it stays the same while data flows fast, the option is set or the
//! ceiling is reached. Only without it does `net.ipv4.tcp_rmem`'s third number matter; it needs about
//! twice the rate times the round trip, for half of it is overhead. `net.core.rmem_max` bounds no
//! autotuning. Cost: memory for each connection. How much faster it gets is not known: what the
//! path carries shows only once the window is out of the way.
//!
//! A window of a few hundred bytes takes no whole segment while one is under way, and the rest waits for the sender's
//! timer, 200 ms or more each time. It comes of a tiny `net.ipv4.tcp_rmem`, or of a small device.
//!
//! # Sources
//! RFC 9293 sections 3.8.6 and 3.8.6.2.1, RFC 7323 section 2; Linux `__tcp_select_window`, `tcp_rcv_space_adjust`
//! and `sk_setsockopt` (v6.1, `net/ipv4/tcp_output.c`, `tcp_input.c`, `net/core/sock.c`).

use super::case::{Case, Held, Told, in_each, window_at};
use super::windows::{at_most, largest_window, takes_segments};
use super::{Rule, remedies, scale_lost, window_scale};
use crate::report::{Connection, Finding, Remedy, Severity, State};
use tcpwhy_words::said;

pub(super) const RULE: Rule = Rule {
    code: "WINDOW_CAP",
    severity: Severity::Wrong,
    file: include_str!("window_cap.rs"),
    find,
};

fn find(connection: &Connection) -> Vec<Finding> {
    in_each(connection, |case| {
        let lags = lags(case);
        let held = case.held(|state| match state {
            State::RwndReader => !lags,
            other => other == State::RwndCap,
        });
        let by_reader = case.held(|state| state == State::RwndReader).time_ns();
        let shut = case.held(|state| state == State::ZeroWindow).time_ns();
        let reader_lags = lags && by_reader > held.time_ns() || shut > held.time_ns();
        if !held.is_worth_naming()
            || window_scale::explains(case)
            || reader_lags
            || scale_lost::explains(case)
        {
            return None;
        }
        let window = largest_window(case, State::RwndCap).filter(|_| stays(case) == Some(true))?;
        let (sender, receiver) = (case.sender(), case.receiver());
        let told = Told {
            title: format!("the {receiver}'s window never exceeds {}", said::bytes(window)),
            why: format!(
                "the {sender} filled it and waited, {} in all{}.{}",
                said::time(held.time_ns()),
                at_most(case, window),
                parts(sender, window),
            ),
            not: not_the_sender(case, &held),
            remedies: help(case),
        };
        Some(held.finding(RULE.code, told))
    })
}

/// What comes of a window that takes no segments.
fn parts(sender: &str, window: u64) -> String {
    if takes_segments(window) {
        return String::new();
    }
    format!(
        " No whole segment fits into the rest of it. The {sender} keeps parts of one back until a timer runs out, mostly \
         200 ms or more."
    )
}

/// What a receiver's window that held the sender is not.
pub(super) fn not_the_sender(case: &Case<'_>, held: &Held<'_>) -> String {
    use State::{App, AppWindow, CwndAvoidance, CwndSlowStart, Sndbuf};
    let sender = case.sender();
    held.not(&[
        ("not the network", &[State::BandwidthSelfQueue, State::BandwidthExternal]),
        (
            &format!("not the {sender}'s congestion window: it allowed more"),
            &[CwndAvoidance, CwndSlowStart],
        ),
        (&format!("not the {sender}'s program"), &[App, AppWindow, Sndbuf]),
    ])
}

/// Whether no window that opened after the flight was first capped was larger, but for a twentieth:
/// such a one was no cap. `None` if no round was capped.
pub(super) fn stays(case: &Case<'_>) -> Option<bool> {
    let rounds = &case.direction.rounds;
    let first = rounds.iter().position(|round| round.limited_by == State::RwndCap)?;
    let later = rounds[first..].iter().filter_map(window_at).max()?;
    let cap = largest_window(case, State::RwndCap)?;
    Some(later.saturating_mul(95) <= cap.saturating_mul(100))
}

/// Whether a reader lags where one is named: windows shrank, or answers were kept back (then the packets allow a
/// window at its maximum as well).
pub(super) fn lags(case: &Case<'_>) -> bool {
    shrank(case) || case.held(|state| state == State::RwndReader).may_be(State::RwndCap)
}

/// Whether half of the windows that a lagging reader is named for, or more, are below three quarters of
/// the largest.
/// Ours: a buffer of one size makes windows that differ by some per cent (Linux 6.1, `SO_RCVBUF`), and
/// those are no reader's doing.
pub(super) fn shrank(case: &Case<'_>) -> bool {
    let rounds = case.direction.rounds.iter().filter(|r| r.limited_by == State::RwndReader);
    let mut windows: Vec<u64> = rounds.filter_map(window_at).collect();
    windows.sort_unstable();
    let usual = windows.get(windows.len().saturating_sub(1) / 2).zip(case.largest_window());
    usual.is_some_and(|(window, largest)| window.saturating_mul(4) <= largest.saturating_mul(3))
}

fn help(case: &Case<'_>) -> Vec<Remedy> {
    let mut help = vec![remedies::look(
        1 - case.at,
        "see whether the program fixes its receive buffer (SO_RCVBUF: `rb` stays the same while data flows) and let \
         the kernel size it",
        remedies::sockets(case, 1 - case.at),
    )];
    if case.receiver_is_linux() {
        let larger = remedies::sysctl(
            case,
            1 - case.at,
            "net.ipv4.tcp_rmem",
            "'FIRST SECOND NEW_THIRD'",
            "only if the program sets no SO_RCVBUF: raise the third number to twice the rate you want times \
             the round trip (it costs memory for each connection; new connections use it)"
                .to_owned(),
        );
        help.push(remedies::predicted_with(
            larger,
            1 - case.at,
            "net.ipv4.tcp_rmem=4096 131072 33554432",
        ));
    }
    help
}

#[cfg(test)]
mod tests {
    use super::super::sample::{self, Sim};
    use super::*;
    use crate::report::Limit;

    #[test]
    fn a_window_of_one_size_that_is_always_full_is_told() {
        let found = find(&Sim { bytes: 2_000_000, window: 131_072, ..Sim::default() }.run());
        assert_eq!(found.len(), 1);
        insta::assert_snapshot!(sample::shown(&found));
    }

    #[test]
    fn a_window_that_grows_ahead_of_the_flight_is_no_cap() {
        assert!(find(&Sim { bytes: 2_000_000, ..Sim::default() }.run()).is_empty());
    }

    #[test]
    fn a_window_that_is_shut_for_longer_than_it_holds_the_sender_open_is_no_cap() {
        let connection = Sim { bytes: 2_000_000, window: 131_072, ..Sim::default() }.run();
        let time = Case::of(&connection, 1).expect("data").held(|s| s == State::RwndCap).time_ns();
        for (share, number) in [(time / 2, 1), (time / 2 + 1, 0)] {
            let mut other = connection.clone();
            let limits = &mut other.directions[1].as_mut().expect("data").limits;
            let at = limits.iter().position(|limit| limit.state == State::RwndCap).expect("a cap");
            let end_ns = limits[at].start_ns + share;
            let shut = Limit { state: State::ZeroWindow, end_ns, ..limits[at].clone() };
            limits[at].start_ns = end_ns;
            limits.insert(at, shut);
            assert_eq!(find(&other).len(), number, "{share} of {time}");
        }
    }

    #[test]
    fn a_cap_that_holds_less_than_a_tenth_is_not_worth_naming() {
        let connection = Sim { bytes: 2_000_000, window: 131_072, ..Sim::default() }.run();
        let cap = Case::of(&connection, 1).expect("data").held(|s| s == State::RwndCap).time_ns();
        let active = super::super::case::working_ns(&connection);
        for (more, number) in [(10 * cap - active, 1), (10 * cap - active + 10, 0)] {
            let mut stretched = connection.clone();
            sample::stretch_opening(&mut stretched, more);
            assert_eq!(find(&stretched).len(), number, "{more}");
        }
    }
}
