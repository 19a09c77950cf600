//! How the sender of most data closed.

use serde::{Deserialize, Serialize};
use tcpwhy::report::{Connection, Direction, FinPassed};

use super::{direction, trace};
use crate::world::Side;

/// When a sender closes.
#[derive(Clone, Copy, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
pub(super) enum Closing {
    /// As soon as it has written all: its FIN leaves with the last data.
    #[default]
    AtOnce,
    /// When all its data is acknowledged.
    Acknowledged,
    /// When its peer has closed.
    Behind,
}

impl Closing {
    /// What the FINs show of `sender`. `None` where they do not tell: it sent none, or how far it is away is not known.
    pub(super) fn of(connection: &Connection, sender: Side) -> Option<Self> {
        let fin_of = |side| direction(connection, side).and_then(|sent| sent.passed.fin);
        let there = trace::tap_rtt(connection, sender)?;
        Self::by_fins(direction(connection, sender)?, fin_of(sender.peer()), there)
    }

    /// The same of what `sent` shows, with the peer's FIN, and the time from the capture point to the sender and back.
    fn by_fins(sent: &Direction, peers: Option<FinPassed>, there: i64) -> Option<Self> {
        let fin = sent.passed.fin?;
        if fin.with_data {
            return Some(Self::AtOnce);
        }
        let is_behind = |passed_ns: i64| fin.at_ns >= passed_ns + there;
        if peers.is_some_and(|FinPassed { at_ns, .. }| is_behind(at_ns)) {
            return Some(Self::Behind);
        }
        let acked = sent.answers.points.iter().find(|answer| answer.acked >= sent.bytes);
        let has_waited = acked.is_some_and(|acked| is_behind(acked.at_ns));
        Some(if has_waited { Self::Acknowledged } else { Self::AtOnce })
    }

    /// The last steps of `[application]`: of the sender, and of its peer.
    pub(super) const fn steps(self) -> [&'static str; 2] {
        match self {
            Self::AtOnce => ["", ""],
            Self::Acknowledged => ["  \"drain\",\n", "  \"read to end\",\n"],
            Self::Behind => ["  \"read to end\",\n", ""],
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::trace::tests::direction;
    use super::*;

    /// How a host closed that was captured, or whose peer was, 10 ns from it. Its data was sent at 10 and 11, and
    /// acknowledged at 30.
    fn closed(
        is_captured: bool,
        own: Option<FinPassed>,
        peers: Option<FinPassed>,
    ) -> Option<Closing> {
        let mut sent = direction(&[(10, 1000), (11, 1300)], &[(29, 1000, 9000), (30, 1300, 9000)]);
        sent.passed.fin = own;
        Closing::by_fins(&sent, peers, if is_captured { 0 } else { 10 })
    }

    const fn alone(at_ns: i64) -> FinPassed {
        FinPassed { at_ns, with_data: false }
    }

    #[test]
    fn a_fin_behind_the_last_acknowledgment_was_not_there_before() {
        assert_eq!(closed(true, Some(alone(30)), None), Some(Closing::Acknowledged));
        assert_eq!(closed(true, Some(alone(29)), None), Some(Closing::AtOnce));
        // The acknowledgment reaches the sender 5 ns behind the capture point, and the FIN needs as long.
        assert_eq!(closed(false, Some(alone(40)), None), Some(Closing::Acknowledged));
        assert_eq!(closed(false, Some(alone(39)), None), Some(Closing::AtOnce));
    }

    #[test]
    fn a_fin_with_data_was_there_when_that_was_sent() {
        let with_data = Some(FinPassed { at_ns: 11, with_data: true });
        assert_eq!(closed(true, with_data, None), Some(Closing::AtOnce));
        assert_eq!(closed(true, None, Some(alone(40))), None, "no FIN");
    }

    #[test]
    fn who_closes_second_follows() {
        assert_eq!(closed(true, Some(alone(31)), Some(alone(31))), Some(Closing::Behind));
        assert_eq!(closed(true, Some(alone(31)), Some(alone(32))), Some(Closing::Acknowledged));
        assert_eq!(closed(false, Some(alone(50)), Some(alone(40))), Some(Closing::Behind));
        assert_eq!(
            closed(false, Some(alone(50)), Some(alone(41))),
            Some(Closing::Acknowledged),
            "they cross"
        );
    }
}
