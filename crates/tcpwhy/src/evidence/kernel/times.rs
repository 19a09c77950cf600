//! The kernel's own times beside ours: busy, stopped by the receiver's window, by the send buffer.
//!
//! Linux counts them in jiffies (`tcp_chrono_set` in `tcp_output.c`): busy while anything is to be
//! sent or in flight, the others as parts of it. Its count of the send buffer misses real cases
//! (limits-method.md section 10), so that it counts none is no contradiction.

use crate::report::{Beside, Connection, Direction, State};
use tcpwhy_words::said;

use super::place::{Placed, Rounds};
use super::{Case, verdict};

/// Ours, not measured: shares of the busy time further apart than this are not the same finding.
const APART_PERCENT: f64 = 10.0;
/// Two jiffies at 100 a second, the longest there are (`CONFIG_HZ_100`).
const JIFFIES_NS: i64 = 20_000_000;

/// A time of the kernel and the states that are the same wait.
struct Kind {
    quantity: &'static str,
    of: fn(&super::Sample) -> Option<i64>,
    is: fn(State) -> bool,
    by: &'static str,
    misses: bool,
}

const KINDS: [Kind; 2] = [
    Kind {
        quantity: "rwnd_limited",
        of: |sample| sample.rwnd_limited_ns,
        is: |state| {
            matches!(
                state,
                State::RwndCap | State::RwndAutotune | State::RwndReader | State::ZeroWindow
            )
        },
        by: "the receiver's window",
        misses: false,
    },
    Kind {
        quantity: "sndbuf_limited",
        of: |sample| sample.sndbuf_limited_ns,
        is: |state| matches!(state, State::Sndbuf),
        by: "its own send buffer",
        misses: true,
    },
];

/// Whether the kernel counts the state as busy: something is to be sent or in flight.
const fn is_busy(state: State) -> bool {
    !matches!(
        state,
        State::Handshake
            | State::SynRetry
            | State::IdleAppThink
            | State::IdlePeerThink
            | State::Receiving
            | State::IdleKeptOpen
            | State::SilenceNoAnswer
            | State::SilenceCutShort
            | State::Closing
            | State::CaptureGap
    )
}

/// The newest times of the kernel, each beside ours up to the same byte.
pub(super) fn of(
    case: &Case<'_>,
    connection: &Connection,
    direction: &Direction,
    rounds: &Rounds,
    placed: &[Placed<'_>],
) -> Vec<Beside> {
    let Some(busy) = case.last(|sample| sample.busy_ns).filter(|busy| *busy > 0) else {
        return Vec::new();
    };
    let newest = placed.iter().rev().find(|placed| placed.sample.busy_ns == Some(busy));
    let upto = newest.and_then(|placed| upto(placed, connection, direction, rounds));
    let ours = |is: fn(State) -> bool| {
        let (from, to) = upto?;
        let sum = |to: i64| -> i64 {
            let spans = direction.limits.iter().filter(|limit| is(limit.state));
            spans.map(|limit| (limit.end_ns.min(to) - limit.start_ns).max(0)).sum()
        };
        Some((sum(from), sum(to)))
    };
    let all = ours(is_busy);
    KINDS
        .iter()
        .filter_map(|kind| {
            let kernel = case.last(kind.of)?;
            one(case, kind, (kernel, busy), ours(kind.is), all)
        })
        .collect()
}

/// One kind of time: the kernel's, and ours between two bounds.
fn one(
    case: &Case<'_>,
    kind: &Kind,
    (kernel, busy): (i64, i64),
    ours: Option<(i64, i64)>,
    all: Option<(i64, i64)>,
) -> Option<Beside> {
    if kernel == 0 && ours.is_none_or(|(_, high)| high == 0) {
        return None;
    }
    let who = case.who();
    let said = format!(
        "the {who}'s kernel was stopped by {} for {} of {} busy ({})",
        kind.by,
        said::time(kernel),
        said::time(busy),
        said::percent(kernel, busy)
    );
    let entry = |verdict, estimated, text| Beside {
        unit: "ns".into(),
        measured: Some(kernel),
        estimated,
        ..case.entry(kind.quantity, verdict, text)
    };
    let (Some((low, high)), Some((_, all))) = (ours, all) else {
        return Some(entry(super::MEASURED, None, said));
    };
    let counted = format!("the packets show {} ({})", said::time(high), said::percent(high, all));
    // The share may lie anywhere between the bounds of the instant.
    let near = kernel.clamp(low, high);
    let share = |part: i64, whole: i64| part as f64 * 100.0 / whole.max(1) as f64;
    let apart = (share(kernel, busy) - share(near, all)).abs() > APART_PERCENT
        && (kernel - near).abs() > JIFFIES_NS;
    let excused = kind.misses && kernel < near;
    let text = match (apart, excused) {
        (true, true) => format!("{said}, {counted}; that counter of the kernel misses real cases"),
        _ => format!("{said}; {counted}"),
    };
    Some(entry(verdict(apart && !excused), Some(high), text))
}

/// Between which instants the sample was taken: its round's start and the next one's, or the end.
fn upto(
    placed: &Placed<'_>,
    connection: &Connection,
    direction: &Direction,
    rounds: &Rounds,
) -> Option<(i64, i64)> {
    if placed.nxt == direction.bytes && placed.una == direction.bytes {
        return Some((connection.duration_ns, connection.duration_ns));
    }
    let at = rounds.sending_in(placed)?;
    let start = direction.rounds.get(at)?.start_ns;
    let next = direction.rounds.get(at + 1).map_or(connection.duration_ns, |round| round.start_ns);
    Some((start, next))
}
