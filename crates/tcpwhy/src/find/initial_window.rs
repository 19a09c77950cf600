//! The first flight was smaller than the ten segments that are usual.
//!
//! # What it says
//! Senders may begin with ten segments (RFC 6928, and Linux by default). This one began with fewer
//! although more was waiting: each halving costs one round trip more.
//!
//! # How we know
//! The first flight was stopped by the congestion window, not by the data or the receiver's window,
//! and held less than ten segments. The rounds that ten would have saved follow from doubling; the
//! cost is their time.
//!
//! # What it is not
//! Not the receiver's first window, which had room. Not slow start as such, which every new
//! connection pays (`SLOW_START`).
//!
//! # What to do
//! If the SYN was sent more than twice, the lost SYNs are the cause: Linux then begins with one
//! segment, whatever the route says; see `SYN_RETRY`. Else look at the route: `ip route show match ADDRESS` on the sender
//! shows `initcwnd` if one is set; set it to 10 or take it out. Some senders that are not Linux
//! begin with less by design.
//!
//! # Sources
//! RFC 6928 section 2, RFC 5681 section 3.1 (one segment after a lost SYN); Linux `tcp_init_cwnd`,
//! `tcp_init_transfer` (v6.1, `net/ipv4/tcp_input.c`), `TCP_INIT_CWND`.

use super::case::{Case, active_ns, filter, in_each, severity};
use super::slow_start::{count_rounds, least_time, was_cut_by_syns};
use super::{Rule, remedies};
use crate::report::{
    Connection, Evidence, Finding, FrameRange, Prediction, Remedy, Round, Severity, State, Sure,
    Transfer,
};
use tcpwhy_words::said;

pub(super) const RULE: Rule = Rule {
    code: "INITIAL_WINDOW",
    severity: Severity::Wrong,
    file: include_str!("initial_window.rs"),
    find,
};

/// RFC 6928 section 2, for segments of up to 1,460 bytes; Linux `TCP_INIT_CWND`, for all.
const USUAL: u64 = 10;
/// What was sent before the first ACK shows the first flight: as sure as that.
const SURE: Sure = Sure::Shown;

fn find(connection: &Connection) -> Vec<Finding> {
    in_each(connection, |case| {
        let first = case.direction.initial_window.filter(|first| first.full)?;
        let transfer = case.transfers().next()?;
        let (more, rounds, upto) = lengthened(case, first.segments, transfer)?;
        let cost_ns = upto.start_ns - rounds[0].start_ns;
        if cost_ns * 10 < active_ns(connection) {
            return None;
        }
        let cut = if was_cut_by_syns(case) {
            format!(
                "the {} was repeated, which cuts the congestion window to 1 segment; ",
                syn(case)
            )
        } else {
            String::new()
        };
        Some(Finding {
            code: RULE.code.to_owned(),
            severity: severity(RULE.code, cost_ns, SURE),
            title: format!(
                "the first flight was only {}, where {USUAL} are usual",
                said::count(first.segments, "segment")
            ),
            why: format!(
                "{cut}more was waiting and the {}'s window had room; doubling from there took {} more.",
                case.receiver(),
                said::count(more, "round trip")
            ),
            not: format!("not the {}'s first window, and not slow start as such", case.receiver()),
            evidence: vec![evidence(&rounds[0], upto)],
            cost_ns,
            of_ns: active_ns(connection),
            remedies: help(case, transfer, more),
            ..Finding::default()
        })
    })
}

/// How many round trips more it took than from a usual window, the rounds, and the first that is not one more.
fn lengthened<'a>(
    case: &Case<'a>,
    first: u64,
    transfer: &Transfer,
) -> Option<(u64, &'a [Round], &'a Round)> {
    let rounds = opening(case, transfer)?;
    if first >= USUAL || first == 0 {
        return None;
    }
    let mss = case.mss()?;
    let with = |segments: u64| count_rounds(segments * mss, transfer.bytes, |_| u64::MAX);
    let more = with(first).saturating_sub(with(USUAL)).min(rounds.len() as u64 - 1);
    let upto = rounds.get(usize::try_from(more).ok()?)?;
    (more > 0).then_some((more, rounds, upto))
}

/// The same in words, with the time it took; `None` where they did not.
pub(super) fn cut_by_syns(case: &Case<'_>) -> Option<String> {
    if !was_cut_by_syns(case) {
        return None;
    }
    let took = case.transfers().next().and_then(|transfer| {
        let (more, rounds, upto) = lengthened(case, 1, transfer)?;
        let took = said::time(upto.start_ns - rounds[0].start_ns);
        Some(format!(
            ": doubling from there took {} more ({took})",
            said::count(more, "round trip")
        ))
    });
    Some(format!(
        "The repeated {} also cut the {}'s congestion window to 1 segment{}.",
        syn(case),
        case.sender(),
        took.unwrap_or_default()
    ))
}

fn syn(case: &Case<'_>) -> &'static str {
    ["SYN", "SYN-ACK"][case.at]
}

/// The rounds of the connection's first transfer, if its congestion window stopped the first.
fn opening<'a>(case: &Case<'a>, transfer: &Transfer) -> Option<&'a [Round]> {
    let range = transfer.rounds.filter(|range| range.first == 0)?;
    let rounds = case.direction.rounds.get(..=usize::try_from(range.last).ok()?)?;
    let room = rounds[0].window_room_bytes?;
    (rounds[0].limited_by == State::CwndSlowStart && room >= i64::from(case.connection.mss?))
        .then_some(rounds)
}

fn evidence(first: &Round, upto: &Round) -> Evidence {
    let frames = FrameRange { first: first.frames.first, last: upto.frames.first };
    Evidence {
        from_ns: first.start_ns,
        to_ns: upto.start_ns,
        frames,
        filter: filter(frames),
        text: format!("{} bytes ({} segments) in the first flight", first.bytes, first.segments),
    }
}

fn help(case: &Case<'_>, transfer: &Transfer, more: u64) -> Vec<Remedy> {
    if was_cut_by_syns(case) {
        return vec![remedies::path(
            "find why the SYN had to be repeated: after that a sender begins with one segment",
        )];
    }
    if !case.sender_is_linux() {
        return vec![remedies::program(
            remedies::CLIENT,
            "keep the connection open and use it again: its window is open then",
        )];
    }
    let what = format!(
        "if the route shown has a smaller `initcwnd`, take it out there, or give this peer a route of its own with {USUAL}"
    );
    let took = transfer.end_ns - transfer.start_ns;
    let saved = case.rtt().and_then(|rtt| rtt.checked_mul(i64::try_from(more).ok()?));
    let predicted_ns = saved.filter(|_| !case.lost_something()).map(|saved| {
        let best = (took - saved).max(least_time(case, transfer.bytes).unwrap_or(0)).min(took);
        Prediction { low: best, best, high: took, now: took, ..Prediction::default() }
    });
    vec![Remedy { predicted_ns, ..remedies::route(case, "initcwnd", USUAL, what) }]
}

#[cfg(test)]
mod tests {
    use super::super::sample::{self, Sim};
    use super::*;

    fn begins_with(initial: u64) -> Connection {
        Sim { initial, bytes: 100_000, ..Sim::default() }.run()
    }

    #[test]
    fn two_segments_to_begin_with_are_told() {
        let found = find(&begins_with(2));
        assert_eq!(found.len(), 1);
        insta::assert_snapshot!(sample::shown(&found));
    }

    #[test]
    fn ten_are_usual_and_nine_that_cost_no_round_trip_are_not_worth_it() {
        assert!(find(&begins_with(10)).is_empty());
        // 70 segments: 9, 18, 36, 7 and 10, 20, 40 are four rounds and three.
        assert_eq!(find(&begins_with(9)).len(), 1);
        // 69 segments and less fit the same rounds from 10 as from 9 where 63 do.
        let same = Sim { initial: 9, bytes: 63 * sample::MSS, ..Sim::default() }.run();
        assert!(find(&same).is_empty());
    }

    #[test]
    fn a_receivers_small_first_window_is_not_the_senders() {
        let small = Sim { first_window: 4 * sample::MSS, bytes: 100_000, ..Sim::default() }.run();
        assert!(find(&small).is_empty());
    }

    #[test]
    fn after_repeated_syns_the_route_is_not_blamed() {
        let blames_route = |cut_by_syns: bool| {
            let mut connection = begins_with(2);
            let direction = connection.directions[1].as_mut().expect("data");
            direction.initial_window.as_mut().expect("a first flight").cut_by_syns = cut_by_syns;
            find(&connection)[0].remedies.iter().any(|remedy| remedy.knob.is_some())
        };
        assert!(!blames_route(true));
        assert!(blames_route(false));
    }
}
