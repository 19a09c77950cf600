//! Whose samples are these? Two ends may have several connections, one after the other.
//!
//! A sample names its socket by the two ends alone. Where it also tells its time, it belongs to the
//! connection that lived then; `tcp_probe`, whose clock counts from the boot, has sequence numbers instead.
//! A clock is believed only if it puts a sample of these ends into one of their connections: another
//! host's clock may be off, and then the one connection there is keeps its samples, placed by their bytes.
//!
//! Left out: times of a day without a date. Their zone is not known.

use crate::report::Connection;
use tcpwhy_words::said;
use tcpwhy_words::units::Time;

use super::sample::Sample;
use tcpwhy_words::printed::stamp::Stamp;

/// A sample may be told this much before or after the packets. Ours: `date` prints whole seconds.
const SLACK_NS: i64 = 1_000_000_000;

/// The connections of two ends, with the side of each that the samples speak of.
pub(super) type Holders<'a> = [(&'a Connection, usize)];

/// What became of samples.
#[derive(Debug, Default)]
pub(super) struct Shared<'a> {
    /// Those of each holder.
    pub(super) of: Vec<Vec<&'a Sample>>,
    pub(super) fate: Fate,
}

/// Samples that have no clear owner.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub(super) struct Fate {
    /// Taken when no connection of their ends was captured.
    of_other_times: u64,
    /// Any of several connections may be theirs.
    unclear: u64,
    /// The clock puts none into the connection, which is the only one that they can be of.
    strange_clock: u64,
}

impl Fate {
    /// Both together.
    pub(super) const fn and(self, other: Self) -> Self {
        Self {
            of_other_times: self.of_other_times.saturating_add(other.of_other_times),
            unclear: self.unclear.saturating_add(other.unclear),
            strange_clock: self.strange_clock.saturating_add(other.strange_clock),
        }
    }

    /// What is to be said of the file.
    pub(super) fn notes(self) -> impl Iterator<Item = String> {
        let told = |count: u64, what: &str| {
            (count > 0).then(|| format!("{} {what}", said::count(count, "sample")))
        };
        [
            told(
                self.of_other_times,
                "left out: taken when no connection between those ends was captured",
            ),
            told(
                self.unclear,
                "left out: several connections of this report have those ends, and no time tells which",
            ),
            told(
                self.strange_clock,
                "taken for those of the only connection between those ends, though the times do not \
                 meet: is a clock off, or was it an earlier connection?",
            ),
        ]
        .into_iter()
        .flatten()
    }
}

/// Gives each sample to the holder that it is of.
pub(super) fn share<'a>(samples: &[&'a Sample], holders: &Holders<'_>) -> Shared<'a> {
    let lives: Vec<Option<Life>> = holders.iter().map(|(each, _)| Life::of(each)).collect();
    let lived = |time: i64| lives.iter().flatten().any(|life| life.distance(time) <= SLACK_NS);
    let is_clock_known = samples.iter().filter_map(|sample| time_of(sample)).any(lived);
    let mut shared = Shared { of: vec![Vec::new(); holders.len()], fate: Fate::default() };
    for &sample in samples {
        let owner = match time_of(sample).filter(|_| lives.iter().any(Option::is_some)) {
            Some(time) if is_clock_known => {
                let owner = nearest(&lives, time);
                shared.fate.of_other_times += u64::from(owner.is_none());
                owner
            }
            Some(_) if holders.len() == 1 => {
                shared.fate.strange_clock += 1;
                Some(0)
            }
            Some(_) => {
                shared.fate.of_other_times += 1;
                None
            }
            None => {
                let owner = only_fitting(sample, holders);
                shared.fate.unclear += u64::from(owner.is_none());
                owner
            }
        };
        if let Some(own) = owner.and_then(|at| shared.of.get_mut(at)) {
            own.push(sample);
        }
    }
    shared
}

/// When a connection was captured, since 1970.
#[derive(Clone, Copy, Debug)]
struct Life {
    from: i64,
    to: i64,
}

impl Life {
    fn of(connection: &Connection) -> Option<Self> {
        let from = Time::from_rfc3339(&connection.start)?.0;
        Some(Self { from, to: from.saturating_add(connection.duration_ns) })
    }

    /// How far a time is from it; 0 within.
    fn distance(self, time: i64) -> i64 {
        self.from.saturating_sub(time).max(time.saturating_sub(self.to)).max(0)
    }
}

const fn time_of(sample: &Sample) -> Option<i64> {
    match sample.at {
        Some(Stamp::Unix(time)) => Some(time),
        _ => None,
    }
}

/// The connection that lived at `time`; of two within the slack the nearer, then the later.
fn nearest(lives: &[Option<Life>], time: i64) -> Option<usize> {
    let distances = lives.iter().enumerate().filter_map(|(at, life)| {
        let distance = life.as_ref()?.distance(time);
        (distance <= SLACK_NS).then_some((distance, core::cmp::Reverse(at)))
    });
    distances.min().map(|(_, core::cmp::Reverse(at))| at)
}

/// The only holder whose numbers the sample's are among; the only one there is, where it has none.
fn only_fitting(sample: &Sample, holders: &Holders<'_>) -> Option<usize> {
    let fits = |(connection, side): &(&Connection, usize)| {
        let (Some(sequence), Some(syn)) = (sample.sequence, connection.syns[*side]) else {
            return true;
        };
        let held = connection.directions[*side].as_deref().map_or(0, |direction| direction.bytes);
        // Its FIN is counted, too.
        u64::from(sequence.nxt.wrapping_sub(syn.seq.wrapping_add(1))) <= held.saturating_add(1)
            || held > u64::from(u32::MAX)
    };
    if holders.len() == 1 {
        return Some(0);
    }
    let mut fitting = (0..holders.len()).filter(|at| fits(&holders[*at]));
    fitting.next().filter(|_| fitting.next().is_none())
}

#[cfg(test)]
mod tests {
    use super::super::ends::ends_at;
    use super::*;
    use crate::evidence::sample::Sequence;
    use crate::report::{Direction, Syn};
    use crate::view::sample;

    const SECOND: i64 = 1_000_000_000;

    /// A connection of 10 s that begins `later_s` seconds after the first.
    fn connection(later_s: i64, isn: u32) -> Connection {
        let mut connection = sample::connection(0, "10.0.0.1:1", "10.0.0.2:2", 10 * SECOND);
        let first = Time::from_rfc3339(&connection.start).expect("a date");
        connection.start = Time(first.0 + later_s * SECOND).rfc3339();
        connection.syns[0] = Some(Syn { seq: isn, ..Syn::default() });
        connection.directions[0] =
            Some(Box::new(Direction { bytes: 1_000, ..Direction::default() }));
        connection
    }

    /// A sample this many seconds after the first connection's begin.
    fn at(seconds: i64) -> Sample {
        let connection = connection(0, 0);
        let start = Time::from_rfc3339(&connection.start).expect("a date").0;
        let stamp = Some(Stamp::Unix(start + seconds * SECOND));
        Sample::new(1, stamp, ends_at(&connection, 0))
    }

    /// How many samples each connection got, and what became of the rest.
    fn shares(samples: &[Sample], connections: &[Connection]) -> (Vec<usize>, Fate) {
        let holders: Vec<(&Connection, usize)> = connections.iter().map(|each| (each, 0)).collect();
        let samples: Vec<&Sample> = samples.iter().collect();
        let shared = share(&samples, &holders);
        (shared.of.iter().map(Vec::len).collect(), shared.fate)
    }

    #[test]
    fn of_two_connections_each_gets_the_samples_of_its_time() {
        let two = [connection(0, 7), connection(100, 9)];
        let (got, fate) = shares(&[at(0), at(5), at(11), at(50), at(100), at(109)], &two);
        assert_eq!(got, [3, 2]);
        assert_eq!(fate, Fate { of_other_times: 1, ..Fate::default() });
    }

    #[test]
    fn an_earlier_connection_that_was_not_captured_keeps_its_samples() {
        let (got, fate) = shares(&[at(-60), at(-50), at(5)], &[connection(0, 7)]);
        assert_eq!((got, fate.of_other_times), (vec![1], 2));
    }

    #[test]
    fn a_clock_that_meets_nothing_is_not_believed() {
        let (got, fate) = shares(&[at(7_200), at(7_205)], &[connection(0, 7)]);
        assert_eq!((got, fate.strange_clock), (vec![2], 2));
        assert!(fate.notes().next().expect("a note").contains("is a clock off"));
        let (got, fate) = shares(&[at(7_200)], &[connection(0, 7), connection(100, 9)]);
        assert_eq!((got, fate.of_other_times), (vec![0, 0], 1));
    }

    #[test]
    fn without_a_time_numbers_tell_and_else_nothing_does() {
        let two = [connection(0, 7), connection(100, 500_000)];
        let untimed = Sample { at: None, ..at(0) };
        let numbered =
            |nxt| Sample { sequence: Some(Sequence { nxt, una: nxt }), ..untimed.clone() };
        let (got, fate) = shares(&[numbered(500_100), numbered(8), untimed.clone()], &two);
        assert_eq!((got, fate.unclear), (vec![1, 1], 1));
        assert_eq!(shares(&[untimed], &two[..1]).0, [1]);
    }
}
