//! Settings that take several values each, and every combination of them.

use anyhow::{Context, bail};

/// A setting and the values it takes.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(in crate::cmd) struct Axis {
    /// The key as in a scenario, or `kernel`.
    pub(in crate::cmd) key: String,
    /// What heads its column.
    pub(in crate::cmd) title: String,
    pub(in crate::cmd) values: Vec<String>,
}

/// Most runs of one command. Ours: some seconds.
pub(super) const MOST_RUNS: usize = 10_000;

impl Axis {
    /// A setting with what was typed for it: values with commas between them, each alone or a range
    /// of whole numbers of one unit as `10..100`, `10..100:10` or `2ms..8ms:2ms`.
    ///
    /// # Errors
    /// A range that is none.
    pub(in crate::cmd) fn read(title: &str, key: &str, typed: &str) -> anyhow::Result<Self> {
        let mut values = Vec::new();
        for part in typed.split(',').map(str::trim).filter(|part| !part.is_empty()) {
            match part.split_once("..") {
                Some((from, rest)) => values.extend(range(from, rest).with_context(|| {
                    format!(
                        "`{part}` for {title} is no range; write 10..100, 10..100:10 or 2ms..8ms:2ms"
                    )
                })?),
                None => values.push(part.to_owned()),
            }
        }
        if values.is_empty() {
            bail!("{title} has no value");
        }
        Ok(Self { key: key.to_owned(), title: title.to_owned(), values })
    }
}

fn range(from: &str, rest: &str) -> anyhow::Result<Vec<String>> {
    let (to, step) = rest.split_once(':').unwrap_or((rest, "1"));
    let ends = [from, to, step]
        .map(|end| end.split_at(end.find(|c: char| !c.is_ascii_digit()).unwrap_or(end.len())));
    let [from, to, step] = ends.map(|(number, _)| number);
    let (from, to, step): (u64, u64, usize) = (from.parse()?, to.parse()?, step.parse()?);
    let unit = ends.iter().map(|(_, unit)| *unit).find(|unit| !unit.is_empty()).unwrap_or("");
    let is_unit = |text: &str| text.chars().all(|c| c.is_alphabetic() || c == '%' || c == '/');
    if ends.iter().any(|(_, other)| !other.is_empty() && *other != unit) || !is_unit(unit) {
        bail!("it has to be of whole numbers of one unit");
    }
    if step == 0 || to < from {
        bail!("it goes nowhere");
    }
    if (to - from) / step as u64 >= MOST_RUNS as u64 {
        bail!("it has more than {MOST_RUNS} values");
    }
    Ok((from..=to).step_by(step).map(|value| format!("{value}{unit}")).collect())
}

/// Every combination, the last setting changing first.
///
/// # Errors
/// There are too many.
pub(in crate::cmd) fn combinations(axes: &[Axis]) -> anyhow::Result<Vec<Vec<&str>>> {
    let count = axes.iter().try_fold(1_usize, |count, axis| count.checked_mul(axis.values.len()));
    if count.is_none_or(|count| count > MOST_RUNS) {
        bail!("these are more than {MOST_RUNS} combinations; take fewer values");
    }
    Ok(axes.iter().fold(vec![Vec::new()], |before, axis| {
        let with = |row: &Vec<_>| {
            let row = row.clone();
            axis.values.iter().map(move |value| [&row[..], &[value.as_str()]].concat())
        };
        before.iter().flat_map(with).collect()
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn values(typed: &str) -> Vec<String> {
        Axis::read("--size", "application.download", typed)
            .map(|axis| axis.values)
            .unwrap_or_default()
    }

    #[test]
    fn values_are_lists_and_ranges() {
        assert_eq!(values("10, 20,40"), ["10", "20", "40"]);
        assert_eq!(values("8..10,20..40:10,7ms"), ["8", "9", "10", "20", "30", "40", "7ms"]);
        assert_eq!(values("2ms..6ms:2ms"), ["2ms", "4ms", "6ms"]);
        assert_eq!(values("1..3mbit"), ["1mbit", "2mbit", "3mbit"], "a unit is of all of them");
        for wrong in ["", ",", "10..8", "1..9:0", "a..b", "0..99999999", "1..2..3", "500us..5ms"] {
            assert_eq!(values(wrong), [""; 0], "{wrong}");
        }
    }

    #[test]
    fn every_combination_comes_once_and_not_too_many() {
        let axis = |typed| Axis::read("x", "x", typed).expect("values");
        let axes = [axis("1,2"), axis("a,b")];
        let rows = combinations(&axes).expect("four");
        assert_eq!(rows, [["1", "a"], ["1", "b"], ["2", "a"], ["2", "b"]]);
        assert_eq!(combinations(&[]).expect("one"), [[""; 0]]);
        let many = [axis("1..100"), axis("1..101")];
        assert!(combinations(&many).is_err());
        assert!(combinations(&[axis("1..100"), axis("1..100")]).is_ok());
    }
}
