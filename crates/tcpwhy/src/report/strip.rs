//! A strip over time: the state that held most of each of equal slices.
//!
//! In JSON a string of [`State::letter`]s; other letters are undecided. Kept as runs: a strip of 128 slices nearly always has
//! a handful of them, and a report may hold 200,000 strips.

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::State;

/// The states of equal slices of a lifetime.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Strip {
    /// Neighbours of one state, and how many they are; longer runs are several.
    runs: Box<[(State, u8)]>,
}

impl Strip {
    /// Whether there are no slices.
    pub fn is_empty(&self) -> bool {
        self.runs.is_empty()
    }

    /// The state of each slice.
    pub fn states(&self) -> impl Iterator<Item = State> + '_ {
        self.runs.iter().flat_map(|(state, count)| core::iter::repeat_n(*state, (*count).into()))
    }

    /// The letter of each slice.
    pub fn letters(&self) -> String {
        self.states().map(State::letter).collect()
    }

    /// A strip of runs of one state each; neighbours may be of the same.
    pub fn of_runs(runs: impl IntoIterator<Item = (State, usize)>) -> Self {
        let mut kept: Vec<(State, u8)> = Vec::with_capacity(8);
        for (state, mut count) in runs {
            if let Some(last) = kept.last_mut().filter(|last| last.0 == state) {
                let more = count.min(usize::from(u8::MAX - last.1));
                last.1 += more as u8;
                count -= more;
            }
            while count > 0 {
                let here = count.min(u8::MAX.into());
                kept.push((state, here as u8));
                count -= here;
            }
        }
        Self { runs: kept.into() }
    }
}

impl FromIterator<State> for Strip {
    fn from_iter<I: IntoIterator<Item = State>>(states: I) -> Self {
        Self::of_runs(states.into_iter().map(|state| (state, 1)))
    }
}

impl Serialize for Strip {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.letters())
    }
}

impl<'de> Deserialize<'de> for Strip {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let letters = String::deserialize(deserializer)?;
        let state = |letter| State::from_letter(letter).unwrap_or(State::Unknown);
        Ok(letters.chars().map(state).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_of_any_length_survive_json() {
        let runs = [(State::App, 1), (State::App, 700), (State::Closing, 0), (State::Unknown, 2)];
        let strip = Strip::of_runs(runs);
        assert_eq!(strip.letters(), "A".repeat(701) + "--");
        let json = serde_json::to_string(&strip).expect("a string");
        assert_eq!(serde_json::from_str::<Strip>(&json).expect("letters"), strip);
        let odd = serde_json::from_str::<Strip>("\"A!\"").expect("letters");
        assert_eq!(odd.letters(), "A-", "what is no letter says nothing");
        assert!(Strip::default().is_empty());
    }
}
