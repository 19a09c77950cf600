//! What one looks at: how to read each graph, in the terms of the transfer that it shows.

use core::fmt::Write as _;

use serde::Serialize;

use crate::answer::words::{Ends, noun};
use crate::report::{Connection, Direction, Limit, State, Vantage};
use crate::view::words;

/// Pieces of time that the text names. Ours: as many as fit beside a graph.
const NOTES: usize = 12;

/// A piece of time, and what is to be seen there.
#[derive(Clone, Debug, Eq, PartialEq, Serialize)]
pub struct Note {
    /// Where it begins.
    pub from_ns: i64,
    /// Where it ends.
    pub to_ns: i64,
    /// The letter of its state.
    pub letter: char,
    /// What was waited for.
    pub text: String,
    /// The frames that show it, as a display filter.
    pub filter: String,
}

/// The longest waits of a direction, one for each neighbourhood of one state.
pub(super) fn notes(at: usize, direction: &Direction) -> Vec<Note> {
    let ends = Ends::of(at);
    let mut longest: Vec<&Limit> =
        direction.limits.iter().filter(|limit| limit.end_ns > limit.start_ns).collect();
    longest.sort_by_key(|limit| core::cmp::Reverse(limit.end_ns.saturating_sub(limit.start_ns)));
    let note = |limit: &&Limit| {
        let span = words::time(limit.end_ns.saturating_sub(limit.start_ns));
        let why = ends.put_in(noun(limit.state));
        let evidence = match &*limit.evidence.text {
            "" => String::new(),
            text => format!(" Shown by: {text}."),
        };
        Note {
            from_ns: limit.start_ns,
            to_ns: limit.end_ns,
            letter: limit.state.letter(),
            text: format!("{span}: {why}.{evidence}"),
            filter: limit.evidence.filter.clone(),
        }
    };
    longest.iter().take(NOTES).map(note).collect()
}

/// The longest wait in one of `states`.
fn longest(direction: &Direction, is_meant: impl Fn(State) -> bool) -> Option<&Limit> {
    let meant = direction.limits.iter().filter(|limit| is_meant(limit.state));
    meant.max_by_key(|limit| limit.end_ns.saturating_sub(limit.start_ns))
}

fn span(limit: &Limit) -> String {
    format!(
        "{}, from {} to {}",
        words::time(limit.end_ns.saturating_sub(limit.start_ns)),
        words::time(limit.start_ns),
        words::time(limit.end_ns)
    )
}

pub(super) fn sequence(at: usize, direction: &Direction) -> String {
    let ends = Ends::of(at);
    let mut text = format!(
        "Each bar is a segment of the {}: time goes to the right, bytes go up. The line below is what the {} \
         acknowledged; the line above is how far its receive window reached. A flat piece is waiting.",
        ends.sender, ends.receiver
    );
    let is_wait =
        |state: State| !matches!(state, State::Closing | State::Receiving | State::Handshake);
    if let Some(limit) = longest(direction, is_wait) {
        let _ = write!(
            text,
            " The longest wait here is {}: {}.",
            span(limit),
            ends.put_in(noun(limit.state))
        );
    }
    text
}

pub(super) fn flight(connection: &Connection, at: usize, direction: &Direction) -> String {
    let ends = Ends::of(at);
    let mut text = format!(
        "Bytes that the {} had sent and not yet seen acknowledged. They stay below the receive window and the \
         congestion window: the one that they touch is what holds the {}. Below the bandwidth-delay product the \
         path is not full; above it a queue grows.",
        ends.sender, ends.sender
    );
    let is_far = matches!((connection.vantage, at), (Vantage::Client, 1) | (Vantage::Server, 0));
    if is_far {
        let _ = write!(
            text,
            " This was captured at the {}: segments that are still on their way to it are not seen, and its ACKs \
             count at once. Only what it lets wait is in flight here.",
            ends.receiver
        );
    }
    let is_window = |state| {
        matches!(
            state,
            State::RwndCap | State::RwndAutotune | State::RwndReader | State::ZeroWindow
        )
    };
    if let Some(limit) = longest(direction, is_window) {
        let _ = write!(text, " It touches the receive window for {}.", span(limit));
    }
    text
}

pub(super) fn rate(at: usize, direction: &Direction, piece: i64) -> String {
    let ends = Ends::of(at);
    let mut text = format!(
        "What passed the capture each {}, with repeats, and what the {} acknowledged of it. A gap between both is \
         loss or data still on its way.",
        words::time(piece),
        ends.receiver
    );
    if let Some(rate) = direction.bottleneck_rate_bps {
        let _ = write!(text, " The line at {} is the link.", words::rate(rate));
    }
    text
}

pub(super) fn round_trip(_at: usize, direction: &Direction) -> String {
    let mut text = "How long an acknowledgment took. What lies above the least round trip is waiting in queues, or \
                    a delayed ACK."
        .to_owned();
    let rtt = &direction.rtt;
    if let (Some(least), Some(most)) = (rtt.min_ns, rtt.p95_ns) {
        let _ = write!(
            text,
            " The least is {}; one in twenty took {} or more.",
            words::time(least),
            words::time(most)
        );
    }
    text
}

pub(super) fn window(at: usize, direction: &Direction) -> String {
    let ends = Ends::of(at);
    let mut text = format!(
        "How much the {} said it would take. It shrinks while its program does not read, and grows as the kernel \
         gives it room.",
        ends.receiver
    );
    if let Some(limit) = longest(direction, |state| state == State::ZeroWindow) {
        let _ = write!(text, " It was zero for {}.", span(limit));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn limit(start_ns: i64, end_ns: i64, state: State) -> Limit {
        Limit {
            start_ns,
            end_ns,
            state,
            confidence: crate::report::Sure::default(),
            alternative: Vec::new(),
            evidence: crate::report::LimitEvidence::default(),
        }
    }

    #[test]
    fn what_is_to_be_seen_is_named_with_its_place() {
        let limits = vec![
            limit(0, 5_000_000, State::Handshake),
            limit(5_000_000, 12_000_000, State::CwndSlowStart),
            limit(12_000_000, 14_000_000, State::ZeroWindow),
        ];
        let direction = Direction { limits, ..Direction::default() };
        let told = sequence(1, &direction);
        assert!(
            told.ends_with("is 7.00\u{a0}ms, from 5.00\u{a0}ms to 12.0\u{a0}ms: slow start."),
            "{told}"
        );
        assert!(
            window(1, &direction).contains("It was zero for 2.00\u{a0}ms"),
            "{}",
            window(1, &direction)
        );
        let notes = notes(1, &direction);
        assert_eq!(notes.iter().map(|note| note.letter).collect::<String>(), "sh0");
    }
}
