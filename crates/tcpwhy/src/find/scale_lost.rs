//! One side scales its windows and the other does not know.
//!
//! # What it says
//! Window scaling holds only if both SYNs carry the option. Where a device takes it out of one of them on
//! part of the way, one side shifts the windows that it announces and the other takes them as they stand: a
//! window of 64 KiB is read as some 64 or 500 bytes, and a sender sends that much each round trip.
//!
//! # How we know
//! In front of the device both SYNs show the option, yet the sender never has more in flight than the bare
//! window field says, in at least four rounds, and mostly just that, though the scaled window is four times
//! that or more. A field of a segment or more is only believed to stop a sender that went on with the same
//! transfer a round later: short answers fit many a field. Behind it the option is missing, and the windows after the handshake are at most a quarter
//! of the SYN's own, which is never scaled: the right edge goes back, which no receiver does, and the sender
//! keeps to it. All that went by after the first flight, but the closing, is at least a tenth of the working
//! time: a sender whose window is read as less than a segment waits for a timer before each piece, which looks
//! like an application's silence. Where it is read as more, such silence does not count.
//!
//! # What it is not
//! Not a small receive buffer, though it looks like one (`WINDOW_CAP`): no setting of a host helps. Not
//! scaling that both sides do without (`WINDOW_SCALE`).
//!
//! # What to do
//! Find the device that removes or rewrites the option in one direction only (a firewall whose rules see one
//! way, a SYN proxy, a load balancer that opens the connection itself). A capture on each side of it shows
//! the difference. Until then `net.ipv4.tcp_window_scaling=0` on the host that scales makes both agree, at
//! the price of windows of 64 KiB for all its new connections, whoever the peer is.
//!
//! # Sources
//! RFC 7323 section 2.2 (both SYNs; a SYN's window is never scaled), RFC 9293 section 3.8.6 (a window is not
//! taken back). Ours: four rounds, a quarter, not measured.

use super::case::{Case, Held, Told, in_each, window_at};
use super::{Rule, remedies};
use crate::report::{Connection, Finding, Round, Severity, State, WindowScaling};
use tcpwhy_words::said;

pub(super) const RULE: Rule = Rule {
    code: "SCALE_LOST",
    severity: Severity::Broken,
    file: include_str!("scale_lost.rs"),
    find,
};

/// Rounds that must agree. Ours, not measured.
const FEWEST_ROUNDS: usize = 4;
/// The field says this many times less than the scaled window, or the SYN's. Ours: two bits of a shift.
const LEAST_FACTOR: u64 = 4;

fn find(connection: &Connection) -> Vec<Finding> {
    in_each(connection, |case| {
        let window = misread(case)?;
        let held = waits(case, &window);
        if !held.is_worth_naming() {
            return None;
        }
        let (sender, receiver) = (case.sender(), case.receiver());
        let why = match window {
            Misread::BySender(field) => format!(
                "both SYNs agreed on scaling here, but the {sender} never has more in flight than the {} that the \
                 {receiver}'s window field says unscaled",
                said::bytes(field)
            ),
            Misread::Here(field) => format!(
                "the {receiver}'s SYN allowed {}, its windows after that only {}, as a window that is scaled reads \
                 where the option is missing",
                said::bytes(syn_window(case)),
                said::bytes(field)
            ),
        };
        let told = Told {
            title: format!("the {receiver} scales its windows, and the {sender} does not know"),
            why: format!("{why}; {} went by so.", said::time(held.time_ns())),
            not: format!("not a small buffer of the {receiver}: no setting of it helps"),
            remedies: vec![
                remedies::path(
                    "find the device that takes the window scale option out of one SYN only (a capture on each side \
                     of it shows it)",
                ),
                remedies::sysctl(
                    case,
                    1 - case.at,
                    "net.ipv4.tcp_window_scaling",
                    "0",
                    "until then, make both sides agree (for all new connections of this host, with any peer: at most \
                     64 KiB a round trip then; not on a busy server)"
                        .to_owned(),
                ),
            ],
        };
        Some(held.finding(RULE.code, told))
    })
}

/// Whether small windows and flights of this direction have this reason.
pub(super) fn explains(case: &Case<'_>) -> bool {
    misread(case).is_some()
}

/// Who reads the window's field otherwise than it was meant, and what it says at most.
enum Misread {
    BySender(u64),
    Here(u64),
}

fn misread(case: &Case<'_>) -> Option<Misread> {
    // The first flight may go by the SYN's window, which is never scaled.
    let later = case.direction.rounds.get(1..).unwrap_or_default();
    match case.connection.window_scaling {
        WindowScaling::Used => {
            // RFC 7323 section 2.3: a shift above 14 counts as 14.
            let shift = case.connection.syns[1 - case.at]?.window_scale?.min(14);
            by_sender(case, u32::from(shift), case.mss()?).map(Misread::BySender)
        }
        WindowScaling::NotNegotiated => {
            let window = case.direction.window_taken_back?.window_bytes;
            (later.iter().all(|round| round.in_flight_bytes <= window)
                && filled(case, case.mss()?, |_| Some(window)) >= FEWEST_ROUNDS
                && window.saturating_mul(LEAST_FACTOR) <= syn_window(case))
            .then_some(Misread::Here(window))
        }
        WindowScaling::HandshakeNotSeen => None,
    }
}

fn by_sender(case: &Case<'_>, shift: u32, mss: u64) -> Option<u64> {
    let later = case.direction.rounds.get(1..)?;
    let field = |round: &Round| Some(window_at(round)? >> shift);
    let within = |round: &Round| field(round).is_some_and(|field| round.in_flight_bytes <= field);
    if 1 << shift < LEAST_FACTOR || !later.iter().all(within) {
        return None;
    }
    let filled = filled(case, mss, field);
    (filled >= FEWEST_ROUNDS && filled * 2 >= later.len())
        .then(|| later.iter().filter_map(field).max())?
}

/// Rounds after the first in which the sender was stopped by what it took for the window.
fn filled(case: &Case<'_>, mss: u64, taken_for: impl Fn(&Round) -> Option<u64>) -> usize {
    let fills = |(at, round): &(usize, &Round)| match taken_for(round) {
        Some(field) if field >= mss => {
            round.in_flight_bytes + mss > field && has_more(case, *at as u64, field)
        }
        field => field == Some(round.in_flight_bytes),
    };
    case.direction.rounds.iter().enumerate().skip(1).filter(fills).count()
}

/// Whether round `at` is one of a transfer larger than `field` that went on after it.
fn has_more(case: &Case<'_>, at: u64, field: u64) -> bool {
    case.transfers().any(|each| {
        each.bytes > field
            && each.rounds.is_some_and(|rounds| (rounds.first..rounds.last).contains(&at))
    })
}

fn syn_window(case: &Case<'_>) -> u64 {
    case.connection.syns[1 - case.at].map_or(0, |syn| u64::from(syn.window))
}

/// What the sender waited for after the first flight.
fn waits<'a>(case: &Case<'a>, window: &Misread) -> Held<'a> {
    let (Misread::BySender(field) | Misread::Here(field)) = window;
    let by_timer = case.mss().is_some_and(|mss| *field < mss);
    let from = case.direction.rounds.get(1).map_or(i64::MAX, |round| round.start_ns);
    let mut held = case.held(|state| {
        let not_its_own = matches!(
            state,
            State::Handshake
                | State::SynRetry
                | State::Closing
                | State::IdleKeptOpen
                | State::SilenceNoAnswer
                | State::SilenceCutShort
                | State::Receiving
                | State::IdlePeerThink
        );
        !not_its_own && (by_timer || state != State::IdleAppThink)
    });
    held.limits.retain(|limit| limit.end_ns > from);
    held
}

#[cfg(test)]
mod tests {
    use super::super::sample::{self, Sim};
    use super::*;
    use crate::report::TakenBack;

    /// A sender that takes the windows' field as it is: flights of `flight` bytes, a shift of 7.
    fn unscaled(flight: u64) -> Connection {
        let mut connection = Sim { bytes: 60_000, buffer: flight, ..Sim::default() }.run();
        let direction = connection.directions[1].as_mut().expect("data");
        for round in &mut direction.rounds {
            let window = 4_344_i64 << 7;
            round.window_room_bytes = Some(window - round.in_flight_bytes as i64);
        }
        connection
    }

    #[test]
    fn flights_of_the_bare_field_are_told() {
        let connection = unscaled(4_344);
        insta::assert_snapshot!(sample::shown(&find(&connection)));
    }

    #[test]
    fn a_segment_more_than_the_field_is_a_sender_that_scales() {
        assert!(find(&unscaled(4_344 + sample::MSS)).is_empty());
    }

    #[test]
    fn a_shift_that_no_sender_may_offer_is_none_to_shift_by() {
        let mut connection = unscaled(4_344);
        connection.syns[0].as_mut().expect("SYN").window_scale = Some(255);
        assert!(find(&connection).is_empty(), "as by 14: the field would be 33 bytes");
    }

    #[test]
    fn flights_well_below_the_field_have_another_reason() {
        assert!(find(&unscaled(2 * sample::MSS)).is_empty());
    }

    #[test]
    fn answers_that_fit_the_field_by_chance_are_whole() {
        // The field of a window of 128 KiB and a shift of 6, and answers of 2000 bytes.
        let sim =
            Sim { bytes: 2_000, times: 12, pause: 50_000_000, think: 30_000_000, ..Sim::default() };
        let mut connection = sim.run();
        let direction = connection.directions[1].as_mut().expect("data");
        assert!(direction.rounds.len() > FEWEST_ROUNDS);
        for round in &mut direction.rounds {
            round.window_room_bytes = Some((2_058 << 7) - round.in_flight_bytes as i64);
        }
        assert!(find(&connection).is_empty());
    }

    #[test]
    fn where_the_option_is_missing_windows_that_went_back_tell() {
        let flights = 4_344;
        let sim = Sim { bytes: 60_000, scaled: false, buffer: flights, ..Sim::default() };
        let found = |window: Option<u64>, syn: u16| {
            let mut connection = sim.run();
            connection.syns[0].as_mut().expect("SYN").window = syn;
            let direction = connection.directions[1].as_mut().expect("data");
            direction.window_taken_back =
                window.map(|window_bytes| TakenBack { bytes: 1, window_bytes, over_bytes: 0 });
            find(&connection).len()
        };
        assert_eq!([found(Some(flights), 65_160), found(None, 65_160)], [1, 0]);
        assert_eq!(
            [found(Some(flights), 17_376), found(Some(flights), 17_375)],
            [1, 0],
            "a quarter"
        );
        assert_eq!(found(Some(flights - 1), 65_160), 0, "the sender does not keep to it");
    }
}
