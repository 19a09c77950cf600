//! How sure is it that this state held the sender, and which other one may it have been?
//!
//! Each interval has its own confidence and alternatives; what is said of several of one state is
//! weighed by their length, so that one doubtful interval of a hundred casts no doubt on the sum.

use crate::report::{Limit, State};

/// What is to be said about the certainty of one state.
#[derive(Debug, Default, Eq, PartialEq)]
pub(super) struct Doubt {
    /// States that the packets do not tell apart from it for a part of its time worth naming.
    alternatives: Vec<State>,
    /// Mean confidence in percent; `None` where it goes without saying.
    confidence: Option<i128>,
}

/// Confidence from which on it goes without saying.
const SURE: i128 = 80;

/// Ours: a state that is in question for less of the time than a tenth is not worth words.
const WORTH_NAMING: i128 = 10;

impl Doubt {
    /// The doubt about `state` where `limits` say so between two instants.
    pub(super) fn about(state: State, limits: &[Limit], (from, to): (i64, i64)) -> Self {
        let (mut length, mut weighted) = (0, 0);
        let mut alternatives: Vec<(State, i128)> = Vec::new();
        for limit in limits.iter().filter(|limit| limit.state == state) {
            let span = i128::from(limit.end_ns.min(to)) - i128::from(limit.start_ns.max(from));
            if span <= 0 {
                continue;
            }
            length += span;
            weighted += span * i128::from(limit.confidence);
            for other in &limit.alternative {
                match alternatives.iter_mut().find(|row| row.0 == *other) {
                    Some(row) => row.1 += span,
                    None => alternatives.push((*other, span)),
                }
            }
        }
        alternatives.retain(|(_, span)| span * WORTH_NAMING >= length);
        alternatives.sort_by_key(|(state, span)| (core::cmp::Reverse(*span), *state));
        Self {
            alternatives: alternatives.into_iter().map(|row| row.0).collect(),
            confidence: (length > 0).then(|| weighted / length).filter(|mean| *mean < SURE),
        }
    }

    /// The alternatives by name.
    pub(super) fn names(&self) -> Option<String> {
        let names: Vec<&str> = self.alternatives.iter().map(|state| state.name()).collect();
        (!names.is_empty()).then(|| names.join(" or "))
    }

    /// `55 % sure`, where it does not go without saying.
    pub(super) fn sure(&self) -> Option<String> {
        self.confidence.map(|percent| format!("{percent}\u{a0}% sure"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::LimitEvidence;

    fn limit(start_ns: i64, end_ns: i64, confidence: u8, alternative: &[State]) -> Limit {
        let (state, alternative) = (State::CwndAvoidance, alternative.to_vec());
        let evidence = LimitEvidence::default();
        Limit { start_ns, end_ns, state, confidence, alternative, evidence }
    }

    #[test]
    fn doubts_weigh_as_much_as_their_intervals_are_long() {
        let limits = [limit(0, 95, 90, &[]), limit(95, 100, 10, &[State::App])];
        let about = |span| Doubt::about(State::CwndAvoidance, &limits, span);
        assert_eq!(about((0, 100)), Doubt::default());
        assert_eq!(about((90, 100)).sure().as_deref(), Some("50\u{a0}% sure"));
        assert_eq!(about((90, 100)).names().as_deref(), Some("app"));
        assert_eq!(about((200, 300)), Doubt::default(), "nothing is there to doubt");
    }
}
