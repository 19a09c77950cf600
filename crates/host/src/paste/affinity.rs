//! On which processors an interrupt may come: `/proc/irq/N/smp_affinity` and `smp_affinity_list`.
//!
//! The number of the interrupt is in the name of the file: in front of the value (`grep . /proc/irq/*/..`),
//! above it (`head`), or in the command, which may be a loop over numbers.

use std::collections::VecDeque;

use super::collected::Collected;
use super::command::Command;

/// Interrupts whose values follow, one a line.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Asked(VecDeque<u32>);

/// What follows a command; `None` if it shows no such file.
pub(super) fn asked_by(command: &Command) -> Option<Asked> {
    let text = command.text();
    let (_, behind) = text.split_once("/proc/irq/")?;
    if !text.contains("affinity") {
        return None;
    }
    let number = behind.split('/').next()?;
    let numbers: Vec<u32> = if number.starts_with('$') {
        let (_, listed) = text.split_once(" in ")?;
        let listed = listed.split([';', '\n']).next()?;
        listed.split_whitespace().flat_map(several).collect()
    } else {
        several(number)
    };
    Some(Asked(numbers.into()))
}

/// `52`, `{52,53}`, `{52..55}`.
fn several(text: &str) -> Vec<u32> {
    let inside = text.trim_matches(['{', '}']);
    if let Some((first, last)) = inside.split_once("..") {
        let ends = first.parse::<u32>().ok().zip(last.parse::<u32>().ok());
        // Ours: no host has more interrupts.
        return ends.map_or_else(Vec::new, |(first, last)| (first..=last).take(4096).collect());
    }
    inside.split(',').filter_map(|number| number.parse().ok()).collect()
}

/// `==> /proc/irq/52/smp_affinity <==`
pub(super) fn header(text: &str) -> Option<Asked> {
    let file = text.strip_prefix("==> ")?.strip_suffix(" <==")?;
    Some(Asked([of_file(file)?].into()))
}

fn of_file(file: &str) -> Option<u32> {
    let (irq, name) = file.strip_prefix("/proc/irq/")?.split_once('/')?;
    name.contains("affinity").then(|| irq.parse().ok())?
}

/// `/proc/irq/52/smp_affinity_list:0-3`
pub(super) fn line(text: &str, collected: &mut Collected) -> bool {
    let Some((file, value)) = text.split_once(':') else { return false };
    let Some(irq) = of_file(file) else { return false };
    collected.take_affinity(irq, value, file.contains("list"))
}

impl Asked {
    /// A value of the next of them.
    pub(super) fn value(
        &mut self,
        text: &str,
        command: &Command,
        collected: &mut Collected,
    ) -> bool {
        let is_list = command.text().contains("affinity_list");
        let Some(irq) = self.0.front().copied() else { return false };
        let is_taken = collected.take_affinity(irq, text, is_list);
        if is_taken {
            self.0.pop_front();
        }
        is_taken
    }
}

impl Collected {
    /// Of several files of an interrupt the narrowest tells: `effective_affinity` is within `smp_affinity`.
    fn take_affinity(&mut self, irq: u32, value: &str, is_list: bool) -> bool {
        let value = value.trim();
        let list = if is_list { is_cpus(value).then(|| value.to_owned()) } else { of_mask(value) };
        let Some(list) = list else { return false };
        self.affinity.insert(irq, list);
        true
    }
}

fn is_cpus(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit() || b",-".contains(&byte))
}

/// `00000000,0000000f` as `0-3`.
fn of_mask(text: &str) -> Option<String> {
    let words: Vec<&str> = text.split(',').collect();
    let is_word = |word: &&str| (1..=8).contains(&word.len());
    if words.len() > 256 || !words.iter().all(is_word) {
        return None;
    }
    let mut cpus: Vec<u32> = Vec::new();
    for (place, word) in words.iter().rev().enumerate() {
        let bits = u32::from_str_radix(word, 16).ok()?;
        let base = u32::try_from(place).ok()? * 32;
        cpus.extend((0..32).filter(|bit| bits >> bit & 1 == 1).map(|bit| base + bit));
    }
    let mut list = String::new();
    let mut rest = cpus.as_slice();
    while let Some(first) = rest.first() {
        let run = rest.iter().zip(*first..).take_while(|(cpu, at)| **cpu == *at).count();
        let last = rest.get(run - 1)?;
        let comma = if list.is_empty() { "" } else { "," };
        list.push_str(comma);
        list.push_str(&first.to_string());
        if run > 1 {
            list.push('-');
            list.push_str(&last.to_string());
        }
        rest = rest.get(run..)?;
    }
    (!list.is_empty()).then_some(list)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn masks_are_read_as_lists() {
        let read = ["1", "f", "00000000,00000001", "00000001,00000005", "8001", "xyz", "0", ""]
            .map(of_mask);
        let want =
            [Some("0"), Some("0-3"), Some("0"), Some("0,2,32"), Some("0,15"), None, None, None];
        assert_eq!(read, want.map(|each| each.map(str::to_owned)));
    }

    #[test]
    fn loops_and_braces_name_their_interrupts() {
        let of =
            |line| Command::of(line).and_then(|command| asked_by(&command)).map(|asked| asked.0);
        assert_eq!(
            of("$ for i in 52 54; do cat /proc/irq/$i/smp_affinity; done"),
            Some([52, 54].into())
        );
        assert_eq!(of("$ cat /proc/irq/{7..9}/smp_affinity_list"), Some([7, 8, 9].into()));
        assert_eq!(of("$ cat /proc/irq/7/smp_affinity"), Some([7].into()));
        assert_eq!(of("$ cat /proc/interrupts"), None);
    }
}
