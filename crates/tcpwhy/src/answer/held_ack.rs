//! A last ACK that the receiver's timer held back.

use crate::report::{Connection, Limit, Round, State, Transfer};

/// An ACK this late was held by the receiver's timer: 40 to 200 ms in Linux (`TCP_DELACK_MIN`, `TCP_DELACK_MAX`), less a
/// jiffy, more by what hosts take.
const DELAYED_ACK_NS: core::ops::RangeInclusive<i64> = 35_000_000..=210_000_000;
/// Round trips this short are no part of that, and no queue of such a path lasts as long. Ours: an eighth of the
/// shortest.
const SHORT_RTT_NS: i64 = 5_000_000;

/// Whether the last ACK of a transfer over a short path was held by the receiver's timer. One segment, or what is sent
/// as one, draws no ACK at once (RFC 1122 section 4.2.3.2).
pub(crate) fn is_timers(connection: &Connection, transfer: &Transfer) -> bool {
    let Some(direction) = direction_of(transfer).and_then(|at| connection.directions[at].as_ref())
    else {
        return false;
    };
    let in_transfer = |limit: &&Limit| {
        limit.state == State::LastFlight
            && limit.start_ns >= transfer.start_ns
            && limit.end_ns <= transfer.end_ns
    };
    let length = |limit: &Limit| limit.end_ns.saturating_sub(limit.start_ns);
    let longest = direction.limits.iter().filter(in_transfer).max_by_key(|limit| length(limit));
    let is_one_frame = |limit: &Limit| limit.evidence.frames.first == limit.evidence.frames.last;
    // Within a host what was sent as one arrives as one, however long.
    let is_one_segment = connection.client.ip() == connection.server.ip()
        || rounds_of(connection, transfer).1.last().is_some_and(|round| round.segments == 1);
    let rtt = direction.rtt.min_ns.filter(|rtt| *rtt <= SHORT_RTT_NS);
    longest.zip(rtt).is_some_and(|(limit, rtt)| {
        is_one_segment
            && is_one_frame(limit)
            && DELAYED_ACK_NS.contains(&length(limit).saturating_sub(rtt))
    })
}

/// The rounds of a transfer with their number from 1 in the direction; none where none were kept.
pub(crate) fn rounds_of<'a>(connection: &'a Connection, transfer: &Transfer) -> (u64, &'a [Round]) {
    let direction = direction_of(transfer).and_then(|at| connection.directions[at].as_ref());
    let rounds = direction.zip(transfer.rounds).and_then(|(direction, range)| {
        let first = usize::try_from(range.first).ok()?;
        let last = usize::try_from(range.last).ok()?;
        Some((
            range.first,
            direction.rounds.get(first..=last.min(direction.rounds.len().checked_sub(1)?))?,
        ))
    });
    rounds.map_or((1, &[]), |(first, rounds)| (first + 1, rounds))
}

fn direction_of(transfer: &Transfer) -> Option<usize> {
    ["client", "server"].into_iter().position(|name| name == &*transfer.from)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::{Direction, Sure};
    use crate::view::sample;

    /// Whether the last ACK of one segment, or of several sent as this many frames, is said to have been held by a
    /// timer if it came that late over a round trip of `rtt`.
    fn is_held(late: i64, rtt: i64, frames: u64, same_host: bool) -> bool {
        let server = if same_host { "10.0.0.1:2" } else { "10.0.0.2:2" };
        let mut connection = sample::connection(0, "10.0.0.1:1", server, 300_000_000);
        let end_ns = rtt + late;
        let frames = crate::report::FrameRange { first: 5, last: 4 + frames };
        let evidence = crate::report::LimitEvidence { frames, ..Default::default() };
        let (state, alternative) = (State::LastFlight, Vec::new());
        let limit =
            Limit { start_ns: 0, end_ns, state, confidence: Sure::Shown, alternative, evidence };
        let mut direction = Direction { limits: vec![limit], ..Direction::default() };
        direction.rtt.min_ns = Some(rtt);
        connection.directions[0] = Some(Box::new(direction));
        let time_in = sample::time_in(&[(State::LastFlight, end_ns)]);
        let transfer = Transfer {
            from: "client".into(),
            start_ns: 0,
            end_ns,
            bytes: 8_000,
            time_in,
            rounds: None,
        };
        is_timers(&connection, &transfer)
    }

    #[test]
    fn an_ack_as_late_as_the_receivers_timer_makes_it_over_a_short_path_waited_for_that() {
        assert!(is_held(40_000_000, 100_000, 1, true));
        assert!(is_held(200_000_000, 5_000_000, 1, true));
        assert!(!is_held(34_999_999, 100_000, 1, true), "sooner than any timer");
        assert!(!is_held(210_000_001, 100_000, 1, true), "later");
        assert!(!is_held(40_000_000, 5_000_001, 1, true), "a queue may stand as long");
        assert!(!is_held(40_000_000, 100_000, 2, true), "a second segment draws an ACK at once");
        assert!(!is_held(40_000_000, 100_000, 1, false), "a network card cuts what is sent as one");
    }
}
