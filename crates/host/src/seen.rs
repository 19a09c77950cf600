//! A snapshot as the checks ask it.

use core::cell::OnceCell;
use core::fmt;
use std::collections::BTreeMap;

use super::flow::{Flow, paired};
use super::snapshot::{Link, Listener, Look, Process, Qdisc, Snapshot, Socket, Source};

/// What a check needed and was not seen.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Missing {
    /// The source.
    pub source: Source,
    /// What of it, where that is not all.
    pub of: Option<String>,
}

impl Missing {
    /// All of a source.
    pub const fn all(source: Source) -> Self {
        Self { source, of: None }
    }

    /// A part of one.
    pub fn part(source: Source, of: impl Into<String>) -> Self {
        Self { source, of: Some(of.into()) }
    }
}

impl fmt::Display for Missing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.source.name())?;
        self.of.as_ref().map_or(Ok(()), |of| write!(f, " ({of})"))
    }
}

/// An answer, or what was not seen.
pub type Asked<T> = Result<T, Missing>;

/// How far a counter went.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Growth {
    /// By how much.
    pub by: u64,
    /// In which time: between two looks, or since the host started; 0 where that is not known, as of looks
    /// that were pasted without their times.
    pub over_ns: u64,
    /// There was one look only: the growth is that since the host started, and the event may be long past.
    pub since_start: bool,
    /// With one look: or since nstat was last run, which its text does not tell.
    pub or_since_nstat: bool,
}

impl Growth {
    /// Times a second.
    pub fn per_second(self) -> f64 {
        if self.over_ns == 0 { 0.0 } else { self.by as f64 * 1e9 / self.over_ns as f64 }
    }
}

/// The time in which counters grew: between two looks, or since the host started.
#[derive(Clone, Copy, Debug)]
pub struct Time {
    over_ns: u64,
    since_start: bool,
}

impl Time {
    /// As [`Seen::growth_of`].
    pub fn growth(self, now: u64, before: Option<u64>) -> Option<Growth> {
        let Self { over_ns, since_start } = self;
        let then = if since_start { 0 } else { before? };
        Some(Growth { by: now.checked_sub(then)?, over_ns, since_start, or_since_nstat: false })
    }
}

/// A snapshot as the checks ask it: the last look, what grew since the first, and settings by name.
#[derive(Clone, Debug)]
pub struct Seen<'a> {
    /// All of it.
    pub snapshot: &'a Snapshot,
    /// The last look.
    pub now: &'a Look,
    /// The first look, where there are two. Of pasted ones only if it shows all that the last one shows: else
    /// what is in it alone would seem gone, and what it lacks new.
    pub before: Option<&'a Look>,
    /// The first look even so.
    first: Option<&'a Look>,
    /// Many checks ask for the flows, and pairing them is most of the work.
    flows: OnceCell<Vec<Flow<'a>>>,
}

impl<'a> Seen<'a> {
    /// `None` for a snapshot without a look.
    pub fn new(snapshot: &'a Snapshot) -> Option<Self> {
        let now = snapshot.looks.last()?;
        let first = snapshot.looks.first().filter(|_| snapshot.looks.len() > 1);
        let before = first.filter(|first| !snapshot.pasted || shows_all_of(first, now));
        Some(Self { snapshot, now, before, first, flows: OnceCell::new() })
    }

    /// What was found; where that is nothing, and a part of the source was refused or could not be read, it was not
    /// seen whether all is well.
    ///
    /// # Errors
    /// That part.
    pub fn unless_refused<T>(&self, source: Source, found: Vec<T>) -> Asked<Vec<T>> {
        let mut unseen = self.snapshot.unseen.iter();
        match unseen.find(|unseen| unseen.source == source.name()) {
            Some(part) if found.is_empty() => {
                Err(Missing::part(source, part.of.as_ref().unwrap_or(&part.why)))
            }
            _ => Ok(found),
        }
    }

    /// A setting; `None` if this kernel does not have it.
    ///
    /// # Errors
    /// The settings were not seen, or only some and not this one.
    pub fn setting(&self, key: &str) -> Asked<Option<&'a str>> {
        let settings = self.snapshot.settings.as_ref().ok_or(Missing::all(Source::Settings))?;
        match settings.values.get(key) {
            Some(value) => Ok(Some(value)),
            None if settings.complete && !settings.unread.contains(key) => Ok(None),
            None => Err(Missing::part(Source::Settings, key)),
        }
    }

    /// The numbers of a setting; `None` if this kernel does not have it or it holds something else.
    ///
    /// # Errors
    /// As for [`Self::setting`].
    pub fn numbers<const N: usize>(&self, key: &str) -> Asked<Option<[i64; N]>> {
        let Some(text) = self.setting(key)? else { return Ok(None) };
        let mut numbers = [0; N];
        let mut words = text.split_whitespace();
        for number in &mut numbers {
            let Some(read) = words.next().and_then(|word| word.parse().ok()) else {
                return Ok(None);
            };
            *number = read;
        }
        Ok(Some(numbers))
    }

    /// A setting of one number.
    ///
    /// # Errors
    /// As for [`Self::setting`].
    pub fn number(&self, key: &str) -> Asked<Option<i64>> {
        Ok(self.numbers::<1>(key)?.map(|[number]| number))
    }

    /// Whether the kernel is at least this version by its name; `None` where that was not seen. Distributions bring changes into
    /// older versions: that one is older says less.
    pub fn is_kernel_from(&self, major: u32, minor: u32) -> Option<bool> {
        let mut numbers = self.snapshot.kernel.as_deref()?.split(|c: char| !c.is_ascii_digit());
        let (own_major, own_minor) = (numbers.next()?.parse().ok()?, numbers.next()?.parse().ok()?);
        Some((own_major, own_minor) >= (major, minor))
    }

    /// How far a counter of `group` went; `None` if this kernel does not have it.
    ///
    /// # Errors
    /// The counters of that group were not seen, or only some and not this one, or it went back.
    pub fn growth(&self, group: &str, name: &str) -> Asked<Option<Growth>> {
        let of = |look: &'a Look| {
            let all = look.counters.as_ref().ok_or(Missing::all(Source::Counters))?;
            let all = all.get(group).ok_or_else(|| Missing::part(Source::Counters, group))?;
            match all.get(name) {
                None if look.counters_cut => Err(Missing::part(Source::Counters, name)),
                value => Ok(value.and_then(|value| u64::try_from(*value).ok())),
            }
        };
        let now = of(self.now)?;
        // Counters may have been pasted twice where nothing else was.
        let (time, then) = match self.first.map(|first| (first, of(first))) {
            Some((first, Ok(then))) => (between(first, self.now), then),
            _ => (since_start(self.now), None),
        };
        if now.zip(then).is_some_and(|(now, then)| now < then) {
            let why = "which went back: another start of the host, or nstat without -a";
            return Err(Missing::part(Source::Counters, format!("{name}, {why}")));
        }
        let or_since_nstat = time.since_start && self.now.counters_of_nstat;
        Ok(now.and_then(|now| Some(Growth { or_since_nstat, ..time.growth(now, then)? })))
    }

    /// The growth of any counter that began at 0 with the host, from its value at the last look and, where
    /// there are two, at the first; `None` if it went back, or was not there.
    pub fn growth_of(&self, now: u64, before: Option<u64>) -> Option<Growth> {
        self.time().growth(now, before)
    }

    /// The time in which counters grew.
    pub fn time(&self) -> Time {
        self.before.map_or_else(|| since_start(self.now), |before| between(before, self.now))
    }

    /// Time between the looks.
    pub fn apart_ns(&self) -> Option<u64> {
        apart_ns(self.before?, self.now)
    }

    /// The sockets.
    ///
    /// # Errors
    /// They were not seen.
    pub fn sockets(&self) -> Asked<&'a [Socket]> {
        self.now.sockets.as_deref().ok_or(Missing::all(Source::Sockets))
    }

    /// The sockets, each with itself in the first look.
    ///
    /// # Errors
    /// They were not seen.
    pub fn flows(&self) -> Asked<&[Flow<'a>]> {
        let now = self.sockets()?;
        let before = || self.before.and_then(|look| look.sockets.as_deref());
        Ok(self.flows.get_or_init(|| paired(now, before())))
    }

    /// The listeners.
    ///
    /// # Errors
    /// They were not seen.
    pub fn listeners(&self) -> Asked<&'a [Listener]> {
        self.now.listeners.as_deref().ok_or(Missing::all(Source::Sockets))
    }

    /// Processes by number.
    ///
    /// # Errors
    /// They were not seen.
    pub fn processes(&self) -> Asked<&'a BTreeMap<u32, Process>> {
        self.now.processes.as_ref().ok_or(Missing::all(Source::Processes))
    }

    /// The interfaces.
    ///
    /// # Errors
    /// They were not seen.
    pub fn links(&self) -> Asked<&'a [Link]> {
        self.now.links.as_deref().ok_or(Missing::all(Source::Links))
    }

    /// The queueing disciplines.
    ///
    /// # Errors
    /// They were not seen.
    pub fn qdiscs(&self) -> Asked<&'a [Qdisc]> {
        self.now.qdiscs.as_deref().ok_or(Missing::all(Source::Qdiscs))
    }

    /// The same where their numbers are asked for.
    ///
    /// # Errors
    /// They were not seen, or the statistics of one were not.
    pub fn counted_qdiscs(&self) -> Asked<&'a [Qdisc]> {
        let qdiscs = self.qdiscs()?;
        if qdiscs.iter().any(|qdisc| qdisc.uncounted) {
            return Err(Missing::part(Source::Qdiscs, "statistics: tc -s"));
        }
        Ok(qdiscs)
    }
}

fn since_start(now: &Look) -> Time {
    Time { over_ns: now.uptime_ns.unwrap_or(0), since_start: true }
}

fn between(first: &Look, last: &Look) -> Time {
    Time { over_ns: apart_ns(first, last).unwrap_or(0), since_start: false }
}

fn apart_ns(first: &Look, last: &Look) -> Option<u64> {
    last.t_ns?.checked_sub(first.t_ns?)
}

/// Whether `first` has each source that is pasted and that `last` has.
fn shows_all_of(first: &Look, last: &Look) -> bool {
    fn is_there<T>(first: Option<&T>, last: Option<&T>) -> bool {
        first.is_some() || last.is_none()
    }
    let links = |look: &Look| look.links.as_ref().map(Vec::len).unwrap_or_default();
    is_there(first.counters.as_ref(), last.counters.as_ref())
        && is_there(first.sockstat.as_ref(), last.sockstat.as_ref())
        && is_there(first.sockets.as_ref(), last.sockets.as_ref())
        && is_there(first.listeners.as_ref(), last.listeners.as_ref())
        && is_there(first.qdiscs.as_ref(), last.qdiscs.as_ref())
        && is_there(first.softnet.as_ref(), last.softnet.as_ref())
        && is_there(first.interrupts.as_ref(), last.interrupts.as_ref())
        && is_there(first.bonds.as_ref(), last.bonds.as_ref())
        && is_there(first.states.as_ref(), last.states.as_ref())
        && links(first) == links(last)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::snapshot::Unseen;

    fn counted(value: Option<i64>) -> Look {
        let all = value.map(|value| ("RetransSegs".to_owned(), value)).into_iter().collect();
        Look { counters: Some([("Tcp".to_owned(), all)].into()), ..Look::default() }
    }

    #[test]
    fn nothing_found_in_what_was_refused_is_not_all_well() {
        let refused = Unseen {
            source: Source::Processes.name().to_owned(),
            of: Some("3 processes".to_owned()),
            ..Unseen::default()
        };
        let host =
            |unseen| Snapshot { looks: vec![Look::default()], unseen, ..Snapshot::default() };
        let (whole, part) = (host(Vec::new()), host(vec![refused]));
        let of = |snapshot, source, found| {
            Seen::new(snapshot).expect("a look").unless_refused::<u8>(source, found)
        };
        assert_eq!(of(&whole, Source::Processes, vec![]), Ok(vec![]));
        assert_eq!(of(&part, Source::Processes, vec![7]), Ok(vec![7]));
        assert_eq!(of(&part, Source::Links, vec![]), Ok(vec![]));
        let missing = Missing::part(Source::Processes, "3 processes");
        assert_eq!(of(&part, Source::Processes, vec![]), Err(missing));
    }

    #[test]
    fn a_counter_that_went_back_tells_nothing() {
        let growth = |looks: [Option<i64>; 2]| {
            let looks = looks.map(counted).to_vec();
            let snapshot = Snapshot { looks, ..Snapshot::default() };
            let seen = Seen::new(&snapshot).expect("looks");
            seen.growth("Tcp", "RetransSegs").map(|growth| growth.map(|growth| growth.by))
        };
        assert_eq!(growth([Some(7), Some(9)]), Ok(Some(2)));
        assert_eq!(growth([Some(7), Some(7)]), Ok(Some(0)));
        assert_eq!(growth([None, None]), Ok(None), "this kernel has none");
        let missing = growth([Some(7), Some(6)]).expect_err("it went back");
        assert_eq!(missing.source, Source::Counters);
        assert!(missing.of.is_some_and(|of| of.contains("RetransSegs, which went back")));
    }
}
