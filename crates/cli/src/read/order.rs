//! In which order were rotated files written, and are they one capture at all?
//!
//! `tcpdump -C` and `-W` number their files in ways a shell does not sort (`x.pcap`, `x.pcap1`,
//! `x.pcap10`, ...) and start again at the first, so names say nothing. Each file's first packet
//! says when it was begun.
//!
//! Files that hold the same packets are no rotated capture: read as one, every packet of the second
//! would be a retransmission. They are copies, or were taken in two places.
//!
//! Left out: files that overlap in time and hold different packets (several interfaces captured
//! at once). They are read one after the other; `mergecap` merges them by packet.

use std::collections::HashMap;

use tcpwhy::units::Time;

use super::glance::Glance;
use super::input::Input;

/// Two inputs hold the same packets.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
#[error(
    "{first} and {second} hold the same packets{}; several files are read as one rotated capture, \
     so explain each alone: `tcpwhy {first}`",
    if *.same_times { ", at the same times: one seems to be a copy of the other" }
    else { ", at different times: they were taken in two places, perhaps at both ends" }
)]
pub struct SamePackets {
    first: String,
    /// The name of the one that began later.
    pub second: String,
    same_times: bool,
}

/// The inputs in the order of their first packets.
///
/// What has no packet, or cannot be read twice, keeps its place behind the others: a pipe goes on
/// where the files end.
///
/// # Errors
/// Two of them hold the same packets.
pub fn by_first_packet(inputs: Vec<Input>) -> Result<Vec<Input>, SamePackets> {
    if inputs.len() < 2 {
        return Ok(inputs);
    }
    let mut all: Vec<(Input, Glance)> = inputs
        .into_iter()
        .map(|input| {
            let glance = Glance::at(&input);
            (input, glance)
        })
        .collect();
    all.sort_by_key(|(_, Glance { first, .. })| (first.is_none(), *first));
    match same_packets(&all) {
        Some(found) => Err(found),
        None => Ok(all.into_iter().map(|(input, _)| input).collect()),
    }
}

/// The first pair of inputs with the same packets.
fn same_packets(all: &[(Input, Glance)]) -> Option<SamePackets> {
    let mut seen: HashMap<u64, (usize, Time)> = HashMap::new();
    for (at, (input, glance)) in all.iter().enumerate() {
        // Marks seen in each earlier input, and how many of them at the same time.
        let mut again: HashMap<usize, (usize, usize)> = HashMap::new();
        for (mark, time) in &glance.marks {
            if let Some((earlier, then)) = seen.get(mark) {
                let count = again.entry(*earlier).or_default();
                count.0 += 1;
                count.1 += usize::from(then == time);
            } else if seen.len() < REMEMBERED {
                seen.insert(*mark, (at, *time));
            }
        }
        let most = again.into_iter().max_by_key(|(earlier, (count, _))| (*count, *earlier));
        if let Some((earlier, (count, at_once))) = most {
            let (first, other) = &all[earlier];
            if is_same(count, glance.marks.len().min(other.marks.len())) {
                let [first, second] = [first, input].map(Input::name);
                return Some(SamePackets { first, second, same_times: at_once * 2 > count });
            }
        }
    }
    None
}

/// Whether `again` packets of an input, seen in another one of `least` or more, make it the same.
///
/// Ours: this finds all 40 pairs of captures in `testdata/kernel`, which were taken at both ends;
/// rotated files share a few retransmissions at most.
const fn is_same(again: usize, least: usize) -> bool {
    again >= 64 || (again >= 4 && again * 4 >= least)
}

/// Marks remembered over all inputs. Ours: under 64 MB.
const REMEMBERED: usize = 1 << 20;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn inputs_without_a_first_packet_keep_their_order() {
        let named = ["missing-b", "-", "missing-a"].map(|name| Input::named(name.as_ref()));
        assert_eq!(by_first_packet(named.to_vec()), Ok(named.to_vec()));
    }

    /// An input whose packets have these marks, each at the time of its number plus `late`.
    fn input(name: &str, marks: impl IntoIterator<Item = u64>, late: i64) -> (Input, Glance) {
        let marks = marks.into_iter().map(|mark| (mark, Time(mark as i64 + late)));
        (Input::named(name.as_ref()), Glance { first: None, marks: marks.collect() })
    }

    #[test]
    fn the_same_packets_are_seen_again() {
        let copy =
            same_packets(&[input("a", 0..10, 0), input("b", 90..99, 0), input("c", 0..9, 0)]);
        let copy = copy.expect("is a copy").to_string();
        assert!(copy.starts_with("a and c hold the same packets, at the same times"), "{copy}");
        let ends = same_packets(&[input("a", 0..10, 0), input("b", 3..40, 7)]);
        assert!(ends.expect("both ends").to_string().contains("two places"));
    }

    #[test]
    fn a_few_packets_at_the_border_of_rotated_files_mean_nothing() {
        assert_eq!(same_packets(&[input("a", 0..10, 0), input("b", 7..40, 7)]), None);
        assert_eq!(same_packets(&[input("a", 0..900, 0), input("b", 840..1_740, 7)]), None);
    }
}
