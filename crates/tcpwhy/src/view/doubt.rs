//! How sure is it that this state held the sender, and which other one may it have been?
//!
//! Each interval has its own word and alternatives; what is said of several of one state is
//! weighed by their length, so that one doubtful interval of a hundred casts no doubt on the sum.

use crate::report::{Limit, State, Sure};

/// What is to be said about the certainty of one state.
#[derive(Debug, Default, Eq, PartialEq)]
pub(super) struct Doubt {
    /// States that the packets do not tell apart from it for a part of its time worth naming.
    alternatives: Vec<State>,
    /// How sure it is; `None` if these were no part of the time.
    sure: Option<Sure>,
}

/// Ours: a state that is in question for less of the time than a tenth is not worth words.
const WORTH_NAMING: i128 = 10;

impl Doubt {
    /// The doubt about `state` where `limits` say so between two instants.
    pub(super) fn about(state: State, limits: &[Limit], (from, to): (i64, i64)) -> Self {
        let mut length = 0;
        let mut parts = Vec::new();
        let mut alternatives: Vec<(State, i128)> = Vec::new();
        for limit in limits.iter().filter(|limit| limit.state == state) {
            let span = i128::from(limit.end_ns.min(to)) - i128::from(limit.start_ns.max(from));
            if span <= 0 {
                continue;
            }
            length += span;
            parts.push((limit.confidence, i64::try_from(span).unwrap_or(i64::MAX)));
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
            sure: (length > 0).then(|| Sure::of_parts(&parts.iter().copied())),
        }
    }

    /// The alternatives by name.
    pub(super) fn names(&self) -> Option<String> {
        let names: Vec<&str> = self.alternatives.iter().map(|state| state.name()).collect();
        (!names.is_empty()).then(|| names.join(" or "))
    }

    /// `likely`, where it is not shown.
    pub(super) fn sure(&self) -> Option<String> {
        let unsure = self.sure.filter(|sure| *sure < Sure::Shown);
        unsure.map(|sure| sure.name().to_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::LimitEvidence;

    fn limit(start_ns: i64, end_ns: i64, confidence: Sure, alternative: &[State]) -> Limit {
        let (state, alternative) = (State::CwndAvoidance, alternative.to_vec());
        let evidence = LimitEvidence::default();
        Limit { start_ns, end_ns, state, confidence, alternative, evidence }
    }

    #[test]
    fn doubts_weigh_as_much_as_their_intervals_are_long() {
        let limits = [limit(0, 95, Sure::Shown, &[]), limit(95, 100, Sure::Likely, &[State::App])];
        let about = |span| Doubt::about(State::CwndAvoidance, &limits, span);
        assert_eq!((about((0, 100)).sure(), about((0, 100)).names()), (None, None));
        assert_eq!(about((90, 100)).sure().as_deref(), Some("likely"));
        assert_eq!(about((90, 100)).names().as_deref(), Some("app"));
        assert_eq!(about((200, 300)), Doubt::default(), "nothing is there to doubt");
    }
}
