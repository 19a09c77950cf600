//! The additive line: `handshake 6.86 + request 0.15 + 6 waits 42.28 + ... = 63.06 ms`.
//!
//! The question: which parts make up the lifetime? Readers check such a line with their head, so
//! the printed parts must add up to the printed total to the last digit. Rounding each part by
//! itself breaks that; here all are cut down to the line's grain and the grains that remain go to
//! the parts that lost most (the method of largest remainders).
//!
//! Parts come from a direction's `time_in`. Should a report's states not add up to the lifetime,
//! the difference is a part of its own: the line stays true.

use core::cmp::Reverse;

use super::words::{self, ends};
use crate::report::{Connection, Direction, State};

/// A part's name and its nanoseconds.
pub(super) type Part = (String, i128);

/// The line for one direction of a connection.
pub(super) fn line(connection: &Connection, at: usize, direction: &Direction) -> String {
    let lifetime = i128::from(connection.duration_ns);
    let parts = parts(connection, at, direction);
    let rest = lifetime - parts.iter().map(|part| part.1).sum::<i128>();
    let rest = (rest != 0).then(|| ("not accounted for".to_owned(), rest));
    let parts: Vec<Part> = parts.into_iter().chain(rest).collect();
    print(&parts)
}

/// The parts of the line in their order; together they are the direction's `time_in`.
fn parts(connection: &Connection, at: usize, direction: &Direction) -> Vec<Part> {
    let mut sums = [0_i128; GROUPS];
    for (state, span) in direction.time_in.iter() {
        sums[group_in(direction, state) as usize] += i128::from(span.0);
    }
    let held = i128::from(connection.held_while_silent(at).get(State::IdlePeerThink).0);
    sums[Group::ReceiverSilent as usize] -= held;
    sums[Group::ReceiverHeld as usize] += held;
    let ends = ends(at);
    let waits = waits(direction);
    let silent_receiver = if at == 1 && connection.exchanges.len() == 1 {
        "request".to_owned()
    } else {
        format!("{} silent", ends.receiver)
    };
    let names: [String; GROUPS] = [
        "handshake".to_owned(),
        "repeated SYN".to_owned(),
        silent_receiver,
        format!("{}'s data held back", ends.receiver),
        format!("{} silent", ends.sender),
        format!("{}'s data", ends.receiver),
        waits.map_or_else(|| "waits".to_owned(), |number| words::count(number, "wait")),
        "loss repair".to_owned(),
        "holes of the capture".to_owned(),
        "last flight".to_owned(),
        "waited in vain".to_owned(),
        "kept open".to_owned(),
        "closing".to_owned(),
        "not decided".to_owned(),
    ];
    names.into_iter().zip(sums).filter(|part| part.1 != 0).collect()
}

/// Parts of the line, in the order they are printed.
#[derive(Clone, Copy)]
#[repr(u8)]
enum Group {
    Handshake,
    SynRetry,
    ReceiverSilent,
    /// Silence during which TCP held the receiver's own data.
    ReceiverHeld,
    SenderSilent,
    Receiving,
    Waits,
    Repair,
    Gap,
    LastFlight,
    Vain,
    KeptOpen,
    Closing,
    Unknown,
}

const GROUPS: usize = Group::Unknown as usize + 1;

const fn group(state: State) -> Group {
    use State as S;
    match state {
        S::Handshake => Group::Handshake,
        S::SynRetry => Group::SynRetry,
        S::IdlePeerThink => Group::ReceiverSilent,
        S::IdleAppThink => Group::SenderSilent,
        S::Receiving => Group::Receiving,
        S::RtoWait
        | S::TlpWait
        | S::RecoveryLoss
        | S::RecoveryReorderSpurious
        | S::RecoveryCorrupt
        | S::RecoveryEcn => Group::Repair,
        S::CaptureGap => Group::Gap,
        S::LastFlight => Group::LastFlight,
        S::SilenceNoAck | S::SilenceHole | S::SilenceNoAnswer | S::SilenceCutShort => Group::Vain,
        S::IdleKeptOpen => Group::KeptOpen,
        S::Closing => Group::Closing,
        S::Unknown => Group::Unknown,
        _ => Group::Waits,
    }
}

/// A probe's timer belongs to the repair of a loss, but where nothing was lost: then the probe carried new data.
fn group_in(direction: &Direction, state: State) -> Group {
    let is_whole = direction.retransmitted.total() == 0 && direction.events.lost == 0;
    if state == State::TlpWait && is_whole { Group::Waits } else { group(state) }
}

/// How many rounds ended in a wait; `None` where no rounds were kept to count.
fn waits(direction: &Direction) -> Option<u64> {
    let waiting = |state| matches!(group_in(direction, state), Group::Waits);
    let number = direction.rounds.iter().filter(|round| waiting(round.limited_by)).count();
    (number > 0).then_some(number as u64)
}

/// `a 1.0 + b 2.0 = 3.0 ms`; parts too short for the grain are left out.
pub(super) fn print(parts: &[Part]) -> String {
    let total: i128 = parts.iter().map(|part| part.1).sum();
    let scale = Scale::of(parts.iter().map(|part| part.1.abs()).fold(total.abs(), i128::max));
    let grains = apportion(&parts.iter().map(|part| part.1).collect::<Vec<_>>(), scale.grain_ns);
    let shown: Vec<String> = parts
        .iter()
        .zip(&grains)
        .filter(|(_, grains)| **grains != 0)
        .map(|(part, grains)| words::tie(&format!("{} {}", part.0, scale.digits(*grains))))
        .collect();
    let total = scale.digits(grains.iter().sum());
    let sum = if shown.is_empty() { "0".to_owned() } else { shown.join(" + ") };
    format!("{sum} =\u{a0}{total}\u{a0}{}", scale.unit)
}

/// Each part in whole grains, so that they add up to their rounded sum.
fn apportion(parts: &[i128], grain: i128) -> Vec<i128> {
    let total: i128 = parts.iter().sum();
    let mut grains: Vec<i128> = parts.iter().map(|part| part.div_euclid(grain)).collect();
    let due = (total + grain / 2).div_euclid(grain) - grains.iter().sum::<i128>();
    let mut order: Vec<usize> = (0..parts.len()).collect();
    order.sort_by_key(|&at| (Reverse(parts[at].rem_euclid(grain)), at));
    for &at in order.iter().take(usize::try_from(due).unwrap_or(0)) {
        grains[at] += 1;
    }
    grains
}

/// A unit and how many digits follow the point.
struct Scale {
    unit: &'static str,
    decimals: usize,
    grain_ns: i128,
}

impl Scale {
    /// Four significant digits of the longest span in the line.
    fn of(longest_ns: i128) -> Self {
        let (unit, unit_ns) = match longest_ns {
            1_000_000_000.. => ("s", 1_000_000_000),
            1_000_000.. => ("ms", 1_000_000),
            1_000.. => ("us", 1_000),
            _ => return Self { unit: "ns", decimals: 0, grain_ns: 1 },
        };
        let decimals = match longest_ns / unit_ns {
            100.. => 1,
            10.. => 2,
            _ => 3,
        };
        Self { unit, decimals, grain_ns: unit_ns / 10_i128.pow(decimals as u32) }
    }

    fn digits(&self, grains: i128) -> String {
        if self.decimals == 0 {
            return grains.to_string();
        }
        let tens = 10_u128.pow(self.decimals as u32);
        let (whole, part) = (grains.unsigned_abs() / tens, grains.unsigned_abs() % tens);
        let sign = if grains < 0 { "-" } else { "" };
        format!("{sign}{whole}.{part:0width$}", width = self.decimals)
    }
}

#[cfg(test)]
mod tests {
    use super::super::sample;
    use super::*;
    use proptest::prelude::*;

    fn named(parts: &[i64]) -> Vec<Part> {
        parts.iter().enumerate().map(|(at, ns)| (format!("p{at}"), i128::from(*ns))).collect()
    }

    /// Reads the numbers off a printed line: the parts and the total, in its last digit.
    fn read(line: &str) -> (Vec<i128>, i128) {
        let number =
            |text: &str| -> i128 { text.replace('.', "").parse().expect("a number of the line") };
        let line = line.replace('\u{a0}', " ");
        let (sum, total) = line.split_once(" = ").expect("the line has a total");
        let last = |part: &str| number(part.rsplit(' ').next().expect("split gives one"));
        let total = number(total.split(' ').next().expect("split gives one"));
        (sum.split(" + ").map(last).collect(), total)
    }

    #[test]
    fn three_thirds_make_one() {
        let line = print(&named(&[333_333, 333_333, 333_334]));
        assert_eq!(line.replace('\u{a0}', " "), "p0 0.333 + p1 0.333 + p2 0.334 = 1.000 ms");
    }

    #[test]
    fn nothing_adds_up_to_nothing() {
        assert_eq!(print(&[]).replace('\u{a0}', " "), "0 = 0 ns");
    }

    #[test]
    fn a_probe_repairs_only_where_something_was_sent_again() {
        let connection = sample::connection(0, "10.0.0.1:1", "10.0.0.2:2", 5_000_000);
        let time_in = sample::time_in(&[(State::TlpWait, 5_000_000)]);
        let mut direction = Direction { time_in, ..Direction::default() };
        let shown = |direction: &Direction| line(&connection, 1, direction).replace('\u{a0}', " ");
        assert_eq!(shown(&direction), "waits 5.000 = 5.000 ms");
        direction.retransmitted.tlp = 1;
        assert_eq!(shown(&direction), "loss repair 5.000 = 5.000 ms");
    }

    #[test]
    fn what_tcp_held_back_is_not_the_receivers_silence() {
        let mut connection = sample::connection(0, "10.0.0.1:1", "10.0.0.2:2", 5_000_000);
        let accounted = |state| {
            let time_in = sample::time_in(&[(state, 5_000_000)]);
            Some(Box::new(Direction { time_in, ..Direction::default() }))
        };
        connection.directions = [accounted(State::NagleDelack), accounted(State::IdlePeerThink)];
        let server = connection.directions[1].as_deref().expect("data");
        let shown = line(&connection, 1, server).replace('\u{a0}', " ");
        assert_eq!(shown, "client's data held back 5.000 = 5.000 ms");
    }

    #[test]
    fn time_that_no_state_accounts_for_is_named() {
        let mut connection = sample::connection(0, "10.0.0.1:1", "10.0.0.2:2", 5_000_000);
        let direction = Direction {
            time_in: sample::time_in(&[(State::Handshake, 2_000_000)]),
            ..Direction::default()
        };
        let shown = line(&connection, 1, &direction).replace('\u{a0}', " ");
        assert_eq!(shown, "handshake 2.000 + not accounted for 3.000 = 5.000 ms");
        connection.duration_ns = 2_000_000;
        let shown = line(&connection, 1, &direction).replace('\u{a0}', " ");
        assert_eq!(shown, "handshake 2.000 = 2.000 ms");
    }

    proptest! {
        #[test]
        fn the_line_of_any_direction_adds_up_to_its_lifetime(
            lifetime in any::<i64>(),
            spans in proptest::collection::vec((0..State::COUNT, any::<i64>()), 0..20),
        ) {
            let state = |at| State::all().nth(at).expect("an index of a state");
            let rows: Vec<_> = spans.into_iter().map(|(at, ns)| (state(at), ns)).collect();
            let connection = sample::connection(0, "10.0.0.1:1", "10.0.0.2:2", lifetime);
            let direction = Direction { time_in: sample::time_in(&rows), ..Direction::default() };
            let (shown, total) = read(&line(&connection, 0, &direction));
            prop_assert_eq!(shown.iter().sum::<i128>(), total);
        }

        #[test]
        fn printed_parts_add_up_to_the_printed_total(
            parts in proptest::collection::vec(0..100_000_000_000_i64, 1..12),
        ) {
            let (shown, total) = read(&print(&named(&parts)));
            prop_assert_eq!(shown.iter().sum::<i128>(), total);
        }

        #[test]
        fn they_do_so_for_absurd_parts_too(
            parts in proptest::collection::vec(any::<i64>(), 1..12),
        ) {
            let (shown, total) = read(&print(&named(&parts)));
            prop_assert_eq!(shown.iter().sum::<i128>(), total);
        }

        #[test]
        fn no_part_is_off_by_a_grain(
            parts in proptest::collection::vec(0..100_000_000_i64, 1..12),
            grain in 1..1_000_000_i128,
        ) {
            let parts: Vec<i128> = parts.into_iter().map(i128::from).collect();
            for (part, grains) in parts.iter().zip(apportion(&parts, grain)) {
                prop_assert!((part - grains * grain).abs() < grain);
            }
        }
    }
}
