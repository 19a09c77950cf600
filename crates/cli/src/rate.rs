//! The path's rate as people write it: scenario files' units, and tc's for bytes.
//!
//! tc(8) writes bits as `2gbit` and bytes as `250mbps`; `10MB/s` is of the scenario language.

use std::str::FromStr;

use tcpwhy_model::scenario::{Quantity, QuantityError};

/// A rate as it was typed.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct PathRate {
    /// As typed.
    pub text: String,
    /// Bits per second.
    pub bps: u64,
}

/// Why it is none.
#[derive(Debug, thiserror::Error)]
pub enum RateError {
    /// It does not parse.
    #[error("{0}")]
    Quantity(QuantityError),
    /// Nothing has that rate.
    #[error("a path has a rate above 0 and below 2^64 bits per second")]
    OutOfRange,
}

impl From<QuantityError> for RateError {
    fn from(error: QuantityError) -> Self {
        Self::Quantity(error)
    }
}

impl FromStr for PathRate {
    type Err = RateError;

    fn from_str(text: &str) -> Result<Self, RateError> {
        let bytes = text.to_ascii_lowercase();
        let bps = match bytes.strip_suffix("bps") {
            // tc(8), "RATES": `kbps` is kilobytes per second.
            Some(number) => Quantity::Rate
                .read(&format!("{number}bit"))?
                .checked_mul(8)
                .ok_or(RateError::OutOfRange)?,
            None => Quantity::Rate.read(text)?,
        };
        if bps == 0 { Err(RateError::OutOfRange) } else { Ok(Self { text: text.to_owned(), bps }) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bits_and_bytes_are_told_apart_as_tc_does() {
        for (text, bps) in [
            ("2gbit", 2_000_000_000),
            ("100Mbit/s", 100_000_000),
            ("10MB/s", 80_000_000),
            ("250mbps", 2_000_000_000),
            ("8bps", 64),
        ] {
            assert_eq!(text.parse::<PathRate>().map(|rate| rate.bps).ok(), Some(bps), "{text}");
        }
        for text in ["2", "fast", "0gbit", "", "99999999999999gbps", "-1mbit"] {
            assert!(text.parse::<PathRate>().is_err(), "{text}");
        }
    }
}
