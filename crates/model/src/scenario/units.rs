//! Quantities as people write them: `6ms`, `100mbit`, `512KiB`, `1%`.
//!
//! A number, at most one space, a unit. Everything is exact: `1.5ms` is 1,500,000 ns, and what is
//! finer than the unit kept (a nanosecond, a byte, a bit per second, a millionth) is refused, not
//! rounded. Case of units does not matter. Bytes take decimal (`kB`) and binary (`KiB`) units;
//! rates are bits per second, or bytes per second with a `B` (`10MB/s`).

use core::fmt;

/// A unit's names and what one of it is, in the smallest unit kept.
type Unit = (&'static [&'static str], u64);

/// A kind of quantity.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Quantity {
    /// Nanoseconds.
    Time,
    /// Bytes.
    Size,
    /// Bits per second.
    Rate,
    /// Parts of a million.
    Share,
}

impl Quantity {
    const fn units(self) -> &'static [Unit] {
        match self {
            Self::Time => &[
                (&["ns"], 1),
                (&["us", "µs"], 1_000),
                (&["ms"], 1_000_000),
                (&["s"], 1_000_000_000),
                (&["min"], 60_000_000_000),
                (&["h"], 3_600_000_000_000),
            ],
            Self::Size => &[
                (&["B", "bytes", "byte"], 1),
                (&["kB"], 1_000),
                (&["MB"], 1_000_000),
                (&["GB"], 1_000_000_000),
                (&["KiB", "K"], 1 << 10),
                (&["MiB", "M"], 1 << 20),
                (&["GiB", "G"], 1 << 30),
            ],
            Self::Rate => &[
                (&["bit", "bit/s"], 1),
                (&["kbit", "kbit/s"], 1_000),
                (&["mbit", "mbit/s"], 1_000_000),
                (&["gbit", "gbit/s"], 1_000_000_000),
                (&["kB/s"], 8_000),
                (&["MB/s"], 8_000_000),
                (&["GB/s"], 8_000_000_000),
            ],
            Self::Share => &[(&["%"], 10_000), (&["ppm"], 1)],
        }
    }

    /// How a value of this kind may look.
    pub const fn example(self) -> &'static str {
        match self {
            Self::Time => "6ms",
            Self::Size => "512KiB",
            Self::Rate => "100mbit",
            Self::Share => "1%",
        }
    }

    const fn name(self) -> &'static str {
        match self {
            Self::Time => "a time",
            Self::Size => "a size",
            Self::Rate => "a rate",
            Self::Share => "a share",
        }
    }

    /// Reads a value.
    ///
    /// # Errors
    /// It is no number, has no unit or one of another kind, or is finer or greater than what is kept.
    pub fn read(self, text: &str) -> Result<u64, QuantityError> {
        let text = text.trim();
        let wrong = |kind| QuantityError { quantity: self, text: text.to_owned(), kind };
        let digits = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
        let (number, unit) = text.split_at(digits);
        let unit = unit.strip_prefix(' ').unwrap_or(unit);
        if number.is_empty() {
            return Err(wrong(Wrong::NoNumber));
        }
        if unit.is_empty() && number.bytes().any(|b| b != b'0' && b != b'.') {
            return Err(wrong(Wrong::NoUnit));
        }
        let one = self.one(unit).ok_or_else(|| wrong(Wrong::Unit(unit.to_owned())))?;
        scaled(number, one).map_err(wrong)
    }

    /// What one of a unit is; nothing needs no unit.
    fn one(self, unit: &str) -> Option<u64> {
        if unit.is_empty() {
            return Some(1);
        }
        let is_named = |names: &[&str]| names.iter().any(|name| name.eq_ignore_ascii_case(unit));
        self.units().iter().find(|(names, _)| is_named(names)).map(|&(_, one)| one)
    }

    /// Writes a value, in the largest unit that needs no fraction; [`Quantity::read`] reads it back.
    pub fn write(self, value: u64) -> String {
        let fits = |unit: &&Unit| value.is_multiple_of(unit.1);
        match self.units().iter().filter(fits).max_by_key(|unit| unit.1) {
            Some((names, one)) if value > 0 => format!("{}{}", value / one, names[0]),
            _ => value.to_string(),
        }
    }
}

/// A plain number in thousandths, exactly; none if it is no number or finer.
pub(super) fn thousandths(number: &str) -> Option<u64> {
    let is_number = number.bytes().all(|b| b.is_ascii_digit() || b == b'.');
    scaled(number, 1000).ok().filter(|_| is_number)
}

/// `number` times `one`, exactly.
fn scaled(number: &str, one: u64) -> Result<u64, Wrong> {
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    if fraction.contains('.') || (whole.is_empty() && fraction.is_empty()) {
        return Err(Wrong::NoNumber);
    }
    let fraction = fraction.trim_end_matches('0');
    if fraction.len() > MAX_DECIMALS {
        return Err(Wrong::TooFine);
    }
    let digits = |text: &str| match text {
        "" => Ok(0),
        _ => text.parse::<u64>().map(u128::from).map_err(|_| Wrong::TooGreat),
    };
    let tens = 10_u128.pow(fraction.len() as u32);
    let parts = digits(whole)? * tens + digits(fraction)?;
    let product = parts.checked_mul(u128::from(one)).ok_or(Wrong::TooGreat)?;
    if product % tens != 0 {
        return Err(Wrong::TooFine);
    }
    u64::try_from(product / tens).map_err(|_| Wrong::TooGreat)
}

/// More decimals than this name nothing: the finest step of the greatest unit, `h`, has 13.
const MAX_DECIMALS: usize = 13;

/// A quantity that cannot be read.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct QuantityError {
    quantity: Quantity,
    text: String,
    kind: Wrong,
}

#[derive(Clone, Debug, Eq, PartialEq)]
enum Wrong {
    NoNumber,
    NoUnit,
    Unit(String),
    TooFine,
    TooGreat,
}

impl fmt::Display for QuantityError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { quantity, text, kind } = self;
        let (name, example) = (quantity.name(), quantity.example());
        match kind {
            Wrong::NoNumber => write!(f, "`{text}` is not {name}; write it as `{example}`"),
            Wrong::NoUnit => write!(f, "`{text}` has no unit; write it as `{example}`"),
            Wrong::Unit(unit) => {
                let known: Vec<_> = quantity.units().iter().map(|(names, _)| names[0]).collect();
                write!(f, "`{unit}` is no unit of {name}; known are {}", known.join(", "))
            }
            Wrong::TooFine => {
                let (least, _) =
                    quantity.units().iter().min_by_key(|unit| unit.1).copied().unwrap_or_default();
                let least = least.first().unwrap_or(&"");
                write!(f, "`{text}` is finer than 1 {least}, the smallest step that is kept")
            }
            Wrong::TooGreat => write!(f, "`{text}` is greater than anything that can be kept"),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn people_write_units_in_many_ways() {
        for (quantity, text, value) in [
            (Quantity::Time, "6ms", 6_000_000),
            (Quantity::Time, "0.5 s", 500_000_000),
            (Quantity::Time, "1.5h", 5_400_000_000_000),
            (Quantity::Time, "0", 0),
            (Quantity::Rate, "100mbit", 100_000_000),
            (Quantity::Rate, "100Mbit/s", 100_000_000),
            (Quantity::Rate, "1.25 MB/s", 10_000_000),
            (Quantity::Size, "512KiB", 524_288),
            (Quantity::Size, "64K", 65_536),
            (Quantity::Size, "1448B", 1448),
            (Quantity::Size, "20MB", 20_000_000),
            (Quantity::Share, "1%", 10_000),
            (Quantity::Share, "0.1 %", 1_000),
        ] {
            assert_eq!(quantity.read(text), Ok(value), "{text}");
        }
    }

    #[test]
    fn what_cannot_be_meant_is_refused_with_a_reason() {
        for (quantity, text, reason) in [
            (Quantity::Time, "6", "`6` has no unit; write it as `6ms`"),
            (Quantity::Time, "fast", "`fast` is not a time; write it as `6ms`"),
            (
                Quantity::Time,
                "6mbit",
                "`mbit` is no unit of a time; known are ns, us, ms, s, min, h",
            ),
            (Quantity::Time, "0.5ns", "`0.5ns` is finer than 1 ns, the smallest step that is kept"),
            (
                Quantity::Share,
                "0.00001%",
                "`0.00001%` is finer than 1 ppm, the smallest step that is kept",
            ),
            (Quantity::Size, "1..5kB", "`1..5kB` is not a size; write it as `512KiB`"),
            (
                Quantity::Rate,
                "99999999999999999999gbit",
                "`99999999999999999999gbit` is greater than anything that can be kept",
            ),
            (Quantity::Size, "-5kB", "`-5kB` is not a size; write it as `512KiB`"),
        ] {
            assert_eq!(quantity.read(text).map_err(|e| e.to_string()), Err(reason.to_owned()));
        }
    }

    proptest! {
        #[test]
        fn what_is_written_reads_back(value: u64) {
            for quantity in [Quantity::Time, Quantity::Size, Quantity::Rate, Quantity::Share] {
                prop_assert_eq!(quantity.read(&quantity.write(value)), Ok(value));
            }
        }

        #[test]
        fn no_text_panics(text: String) {
            for quantity in [Quantity::Time, Quantity::Size, Quantity::Rate, Quantity::Share] {
                let _ = quantity.read(&text);
            }
        }
    }
}
