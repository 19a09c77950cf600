//! `free` and `/proc/meminfo`: all memory, and what programs can have of it.
//!
//! Without a unit the numbers are kibibytes (free(1)), unless the command asked for others. The column
//! `available` is missing before procps 3.3.10.

use super::Taken;
use super::collected::Collected;
use super::command::Command;

/// The head of the table: where `available` is behind the name of the row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Columns(Option<usize>);

/// `total  used  free  shared  buff/cache  available`
pub(super) fn head(text: &str) -> Option<Columns> {
    let words: Vec<&str> = text.split_whitespace().collect();
    (words.get(..3)? == ["total", "used", "free"])
        .then(|| Columns(words.iter().position(|word| *word == "available")))
}

impl Columns {
    /// A row below it.
    pub(super) fn line(
        self,
        text: &str,
        command: &Command,
        collected: &mut Collected,
    ) -> Option<Taken> {
        let (name, rest) = text.split_once(':')?;
        if ["Swap", "Low", "High", "Total", "Comm", "-/+ buffers/cache"].contains(&name) {
            return Some(Taken::Read);
        }
        if name != "Mem" {
            return None;
        }
        let words: Vec<&str> = rest.split_whitespace().collect();
        let unit = unit(command);
        let bytes = |at: usize| words.get(at).and_then(|word| bytes(word, unit));
        match bytes(0) {
            Some(total) if total >= LEAST => {
                collected.memory_bytes = Some(total);
                collected.available_bytes = self.0.and_then(bytes);
                Some(Taken::Read)
            }
            _ => Some(Taken::Useless("only the command says in which unit it counts".to_owned())),
        }
    }
}

/// `MemTotal:       24684092 kB`, and the other lines of `/proc/meminfo` below it; `None` for other lines.
pub(super) fn meminfo(text: &str, goes_on: bool, collected: &mut Collected) -> Option<()> {
    let (name, rest) = text.split_once(':')?;
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"_()".contains(&byte);
    if !name.bytes().all(plain) {
        return None;
    }
    let mut words = rest.split_whitespace();
    let number: u64 = words.next()?.parse().ok()?;
    // Counts of huge pages have no unit.
    let unit = words.next();
    if !matches!(unit, None | Some("kB")) || words.next().is_some() {
        return None;
    }
    let bytes = unit.and(number.checked_mul(1024));
    match name {
        "MemTotal" => collected.memory_bytes = Some(bytes?),
        "MemAvailable" => collected.available_bytes = Some(bytes?),
        _ if goes_on => {}
        _ => return None,
    }
    Some(())
}

/// Ours: with less no Linux runs; then the numbers are in another unit, and which one is not told.
const LEAST: u64 = 16 << 20;

/// What a number without a unit counts.
fn unit(command: &Command) -> u64 {
    let has = |option| command.has("free", option);
    match () {
        () if has('b') => 1,
        () if has('m') => 1 << 20,
        () if has('g') => 1 << 30,
        () => 1 << 10,
    }
}

/// `3934`, `7.7Gi`, `123M`.
fn bytes(text: &str, unit: u64) -> Option<u64> {
    let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let unit = match text.get(digits.len()..)?.chars().next() {
        None => unit,
        Some('B') => 1,
        Some('K') => 1 << 10,
        Some('M') => 1 << 20,
        Some('G') => 1 << 30,
        Some('T') => 1 << 40,
        Some(_) => return None,
    };
    let billionths = tcpwhy_words::printed::stamp::decimal(digits)?;
    u64::try_from(i128::from(billionths) * i128::from(unit) / 1_000_000_000).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn meminfo_is_read_with_or_without_what_it_says_besides() {
        let mut collected = Collected::default();
        let mut read = |text, goes_on| meminfo(text, goes_on, &mut collected).is_some();
        assert!(!read("MemFree:  6624816 kB", false), "nothing says of what it is");
        assert!(read("MemTotal:       24684092 kB", false) && read("MemFree:  6624816 kB", true));
        assert!(
            read("MemAvailable:   22565340 kB", true) && read("HugePages_Total:       0", true)
        );
        for other in ["Tcp: 5 kB", "NIC: up", "MemTotal: x kB", "a b: 7 kB", "MemTotal: 7 MB"] {
            assert!(!read(other, false), "{other}");
        }
        assert_eq!(collected.memory_bytes, Some(24_684_092 << 10));
        assert_eq!(collected.available_bytes, Some(22_565_340 << 10));
    }

    #[test]
    fn units_are_those_of_the_word_or_of_the_command() {
        assert_eq!(bytes("7.5Gi", 1024), Some(8_053_063_680));
        assert_eq!(bytes("3934", 1 << 20), Some(3934 << 20));
        assert_eq!((bytes("0B", 1024), bytes("x", 1024), bytes("9y", 1)), (Some(0), None, None));
    }
}
