//! How sure is it?

use serde::{Deserialize, Serialize};

/// How sure a verdict is; `make accuracy` measures how often each word is right (`docs/accuracy.md`).
#[derive(Clone, Copy, Debug, Default, Eq, Ord, PartialEq, PartialOrd, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Sure {
    /// One of several that these packets do not tell apart.
    #[default]
    Possible,
    /// The packets speak for it, but do not exclude all else.
    Likely,
    /// The packets exclude the rest.
    Shown,
}

impl Sure {
    /// All of them, the least sure first.
    pub const ALL: [Self; 3] = [Self::Possible, Self::Likely, Self::Shown];

    /// As reports have it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Possible => "possible",
            Self::Likely => "likely",
            Self::Shown => "shown",
        }
    }

    /// How sure a sum of parts is, each a word and its time: the surest word for which nine tenths of it or more are as sure.
    /// One doubtful part of a hundred casts no doubt on the sum.
    pub fn of_parts(parts: &(impl Iterator<Item = (Self, i64)> + Clone)) -> Self {
        let time_of = |least: Self| -> i128 {
            let own = parts.clone().filter(|part| part.0 >= least && part.1 > 0);
            own.map(|part| i128::from(part.1)).sum()
        };
        let whole = time_of(Self::Possible);
        let is_most = |word: &Self| time_of(*word) * 10 >= whole * 9;
        Self::ALL.into_iter().rev().find(is_most).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::Sure::{self, Likely, Possible, Shown};

    #[test]
    fn a_tenth_casts_no_doubt_and_more_does() {
        let of = |parts: &[(Sure, i64)]| Sure::of_parts(&parts.iter().copied());
        assert_eq!(of(&[(Shown, 90), (Possible, 10)]), Shown);
        assert_eq!(of(&[(Shown, 89), (Possible, 11)]), Possible);
        assert_eq!(of(&[(Shown, 50), (Likely, 45), (Possible, 5)]), Likely);
        assert_eq!(of(&[(Shown, i64::MAX), (Likely, i64::MAX)]), Likely);
        assert_eq!(of(&[]), Shown, "nothing is in doubt");
    }
}
