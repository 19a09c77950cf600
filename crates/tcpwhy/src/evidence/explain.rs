//! Which system call explains a wait? The calls of the thread that uses the socket, between two instants.
//!
//! The time is split: in calls that wait for this very socket (then the cause is elsewhere), in other
//! calls, outside of any call, and where the file leaves lines out. What takes half of the time or more
//! explains it; if no call does, that is said.

use std::collections::BTreeMap;

use tcpwhy_words::printed::calls::{Call, Calls, Moved};
use tcpwhy_words::said;

use crate::report::{CallsIn, LongestCall};

/// What the calls say of a wait.
pub(super) struct Told {
    /// `explains`, `waits_for_tcp`, `no_call` or `unclear`.
    pub(super) verdict: &'static str,
    /// To follow "in that time".
    pub(super) text: String,
    pub(super) calls: CallsIn,
}

/// The calls between `from` and `to`, of the thread that uses `socket` about then; `None` if the trace
/// does not reach over half of that time. An excerpt may begin and end at the very calls that fill a wait: what
/// lies before and behind it is left out of the file.
pub(super) fn explain(trace: &Calls, socket: u32, from: i64, to: i64) -> Option<Told> {
    let first = trace.calls.first()?.start;
    let last = trace.calls.iter().map(Call::end).max()?;
    let covered = to.min(last).saturating_sub(from.max(first));
    if to <= from || covered.saturating_mul(2) < to - from {
        return None;
    }
    let beyond = (first - from).max(0).saturating_add((to - last).max(0));
    let thread = thread_of(trace, socket, from)?;
    let mut account = Account::default();
    for call in trace.calls.iter().filter(|call| call.thread == thread) {
        account.add(trace, call, socket, (from, to));
    }
    let cut = |span: &(i64, i64)| (span.1.min(to) - span.0.max(from)).max(0);
    let left_out = trace.left_out.iter().map(cut).fold(beyond, i64::saturating_add);
    let length = to - from;
    account.calls.left_out_ns = left_out;
    let CallsIn { waiting_ns, working_ns, .. } = account.calls;
    let inside = waiting_ns.saturating_add(working_ns).saturating_add(left_out);
    account.calls.outside_ns = (length - inside).max(0);
    let (verdict, text) = account.verdict(trace, length, beyond);
    Some(Told { verdict, text, calls: account.calls })
}

/// The thread of the last call on the socket before `from`, else of the first after it.
fn thread_of(trace: &Calls, socket: u32, from: i64) -> Option<u32> {
    let at = trace.calls.partition_point(|call| call.start < from);
    let (before, after) = trace.calls.split_at(at);
    let uses = |call: &&Call| call.socket == Some(socket);
    before.iter().rev().find(uses).or_else(|| after.iter().find(uses)).map(|call| call.thread)
}

#[derive(Default)]
struct Account {
    calls: CallsIn,
    /// Calls that wait for nothing of the socket, by name and target.
    by_kind: BTreeMap<(u32, Option<u32>), Kind>,
    /// Time in calls that wait for the socket, or for one that is not told, by name.
    waits: BTreeMap<u32, i64>,
    /// Of that the time for one that is not told, where the trace has several.
    unknown_ns: i64,
}

/// Calls of one name about one thing.
#[derive(Default)]
struct Kind {
    /// Their time in the wait.
    span: i64,
    count: u64,
    /// Their time in all: calls may begin before the wait, and end after it.
    whole: i64,
}

impl Account {
    fn add(&mut self, trace: &Calls, call: &Call, socket: u32, (from, to): (i64, i64)) {
        let span = call.end().min(to) - call.start.max(from);
        if call.start > to || call.end() < from || span < 0 {
            return;
        }
        self.calls.count += 1;
        let has_others = trace.sockets.len() > 1;
        if call.waits_for_some() && has_others {
            self.unknown_ns = self.unknown_ns.saturating_add(span);
        }
        if call.waits_for(socket) || call.waits_for_some() {
            self.calls.waiting_ns = self.calls.waiting_ns.saturating_add(span);
            let waits = self.waits.entry(call.name).or_default();
            *waits = waits.saturating_add(span);
            return;
        }
        self.calls.working_ns = self.calls.working_ns.saturating_add(span);
        let kind = self.by_kind.entry((call.name, call.target)).or_default();
        kind.span = kind.span.saturating_add(span);
        kind.whole = kind.whole.saturating_add(call.took);
        kind.count += 1;
        if self.calls.longest.as_ref().is_none_or(|longest| span > longest.took_ns) {
            self.calls.longest = Some(LongestCall {
                name: trace.word(call.name).to_owned(),
                target: call.target.map(|at| trace.word(at).to_owned()),
                took_ns: span,
                whole_ns: call.took,
            });
        }
    }

    fn verdict(&self, trace: &Calls, length: i64, beyond: i64) -> (&'static str, String) {
        let most = |span: i64| span.saturating_mul(2) >= length;
        let calls = &self.calls;
        let longest = self.by_kind.iter().max_by_key(|(_, kind)| kind.span);
        if let Some(((name, target), kind)) = longest
            && most(kind.span)
        {
            let name = named(trace.word(*name), target.map(|at| trace.word(at)));
            let took = took(kind.span, kind.whole);
            let text = match kind.count {
                1 => format!("{name} took {took}"),
                count => format!("{} calls of {name} took {took} together", said::grouped(count)),
            };
            return ("explains", text);
        }
        if most(calls.working_ns) {
            let text = format!(
                "{} of several kinds took {} together",
                said::count(self.by_kind.values().map(|kind| kind.count).sum(), "call"),
                said::time(calls.working_ns)
            );
            return ("explains", text);
        }
        if most(calls.waiting_ns) {
            let name = self.waits.iter().max_by_key(|wait| wait.1).map_or("", |w| trace.word(*w.0));
            if !most(calls.waiting_ns.saturating_sub(self.unknown_ns)) {
                let text = format!(
                    "the program waited ({name}) for {}; for which of its sockets the trace does not tell",
                    said::time(calls.waiting_ns)
                );
                return ("unclear", text);
            }
            let text = format!(
                "the program waited for this socket ({name}) for {}: the cause is not in the program",
                said::time(calls.waiting_ns)
            );
            return ("waits_for_tcp", text);
        }
        let rest = self.rest(trace);
        // A call beyond the ends of the excerpt may have taken what lies there.
        let within = calls.left_out_ns.saturating_sub(beyond);
        if most(calls.outside_ns.saturating_add(within)) {
            return ("no_call", format!("no call explains it: {rest}"));
        }
        ("unclear", format!("no call alone explains it: {rest}"))
    }

    /// The longest call, and where the time was that is in no call.
    fn rest(&self, trace: &Calls) -> String {
        let CallsIn { count, outside_ns, left_out_ns, longest, .. } = &self.calls;
        let mut parts = vec![match longest {
            Some(LongestCall { name, target, took_ns, whole_ns }) => format!(
                "the longest of {}, {}, took {}",
                said::count(*count, "call"),
                named(name, target.as_deref()),
                took(*took_ns, *whole_ns)
            ),
            None => "there was none but on this socket".to_owned(),
        }];
        if *left_out_ns > 0 {
            let time = said::time(*left_out_ns);
            parts.push(format!("{time} are lines that the file leaves out"));
        }
        if *outside_ns > 0 {
            let time = said::time(*outside_ns);
            parts.push(format!(
                "{time} were outside of any call (the program itself, a processor that was not free, \
                 or the tracing)"
            ));
        }
        if trace.only_sockets() {
            parts.push("the file has only calls on sockets".to_owned());
        }
        parts.join("; ")
    }
}

/// `80.0 ms of it (120 ms in all)`; only the time where the wait holds the whole call.
fn took(span: i64, whole: i64) -> String {
    if whole > span {
        format!("{} of it ({} in all)", said::time(span), said::time(whole))
    } else {
        said::time(span)
    }
}

/// `write to /srv/rcv.dat`
fn named(name: &str, target: Option<&str>) -> String {
    match target {
        Some(target) if name.contains("write") => format!("{name} to {target}"),
        Some(target) => format!("{name} of {target}"),
        None => name.to_owned(),
    }
}

/// A wait between two calls that moved bytes of a socket.
pub(super) struct Gap {
    pub(super) from: i64,
    pub(super) to: i64,
    /// The usual one.
    pub(super) median: i64,
    pub(super) of: usize,
}

/// Gaps named of one socket. Ours: more are not read.
const GAPS: usize = 5;

/// The longest times in which nothing moved on `socket`, by the trace alone: from the return of a call
/// that moved bytes to the return of the next. Only those that stand out ([`stands_out`]).
pub(super) fn gaps(trace: &Calls, socket: u32) -> Vec<Gap> {
    let moved = |call: &&Call| match call.moved {
        Moved::Read { got, .. } => got > 0,
        Moved::Wrote(bytes) => bytes > 0,
        Moved::Nothing => false,
    };
    let mut ends: Vec<i64> = trace.of(socket).filter(moved).map(Call::end).collect();
    // Two threads may use one socket at a time.
    ends.sort_unstable();
    let spans: Vec<i64> = ends.windows(2).map(|two| two[1] - two[0]).collect();
    let Some(median) = median(&spans) else { return Vec::new() };
    let mut gaps: Vec<Gap> = ends
        .windows(2)
        .filter(|two| stands_out(two[1] - two[0], median))
        .map(|two| Gap { from: two[0], to: two[1], median, of: spans.len() })
        .collect();
    gaps.sort_by_key(|gap| core::cmp::Reverse(gap.to - gap.from));
    gaps.truncate(GAPS);
    gaps.sort_by_key(|gap| gap.from);
    gaps
}

/// The middle one; of two the lesser.
pub(super) fn median(spans: &[i64]) -> Option<i64> {
    let mut sorted = spans.to_vec();
    sorted.sort_unstable();
    sorted.get(sorted.len().checked_sub(1)? / 2).copied()
}

/// Whether a span is a spike among others. Ours, not measured: three times the median, for half as much
/// again is the noise of any machine, and a millisecond, for nobody looks for less.
pub(super) const fn stands_out(span: i64, median: i64) -> bool {
    span >= 1_000_000 && span > median.saturating_mul(3)
}

#[cfg(test)]
mod tests {
    use super::*;
    use tcpwhy_words::printed::calls::strace;

    /// Reads 100 bytes, naps from 100 ms to 300 ms after the first call, and reads again.
    const TRACE: &str = "7 1795343771.000000 connect(3, {sa_family=AF_INET, sin_port=htons(80), \
                         sin_addr=inet_addr(\"10.0.0.2\")}, 16) = 0 <0.000010>\n\
                         7 1795343771.050000 read(3, \"\"..., 4096) = 100 <0.000010>\n\
                         7 1795343771.100000 clock_nanosleep(CLOCK_REALTIME, 0, {tv_sec=0, tv_nsec=200000000}, NULL) = 0 <0.200000>\n\
                         7 1795343771.400000 read(3, \"\"..., 4096) = 100 <0.000010>\n";

    fn said(from_ms: i64, to_ms: i64) -> Told {
        said_of(TRACE, from_ms, to_ms)
    }

    fn said_of(trace: &str, from_ms: i64, to_ms: i64) -> Told {
        let (trace, _) = strace::read(trace).expect("a trace");
        let at = |ms: i64| trace.calls[0].start + ms * 1_000_000;
        explain(&trace, 0, at(from_ms), at(to_ms)).expect("it reaches so far")
    }

    #[test]
    fn a_call_longer_than_the_wait_is_told_with_its_own_length() {
        let told = said(200, 310);
        assert_eq!(told.text, "clock_nanosleep took 100 ms of it (200 ms in all)");
        let longest = told.calls.longest.expect("a call");
        assert_eq!((longest.took_ns, longest.whole_ns), (100_000_000, 200_000_000));
    }

    #[test]
    fn a_wait_for_one_of_several_sockets_clears_nobody() {
        let waits = TRACE.replace(
            "clock_nanosleep(CLOCK_REALTIME, 0, {tv_sec=0, tv_nsec=200000000}, NULL) = 0",
            "epoll_wait(9, [], 8, -1) = 1",
        );
        let alone = said_of(&waits, 60, 390);
        assert_eq!(alone.verdict, "waits_for_tcp", "{}", alone.text);
        let database = "7 1795343771.010000 connect(5, {sa_family=AF_INET, sin_port=htons(5432), \
                        sin_addr=inet_addr(\"10.0.0.3\")}, 16) = 0 <0.000010>\n";
        let (first, rest) = waits.split_once('\n').expect("lines");
        let several = said_of(&format!("{first}\n{database}{rest}"), 60, 390);
        assert_eq!(several.verdict, "unclear", "{}", several.text);
        assert!(several.text.contains("does not tell"), "{}", several.text);
    }

    #[test]
    fn what_lies_beyond_the_ends_of_an_excerpt_acquits_no_call() {
        // The trace ends at 400 ms; 100 ms before that were in no call.
        assert_eq!(said(255, 430).verdict, "no_call", "100 of 175 ms");
        let told = said(255, 480);
        assert_eq!(told.verdict, "unclear", "100 of 225 ms: {}", told.text);
        assert_eq!(told.calls.left_out_ns / 1_000_000, 79);
        let (trace, _) = strace::read(TRACE).expect("a trace");
        let at = |ms: i64| trace.calls[0].start + ms * 1_000_000;
        assert!(explain(&trace, 0, at(255), at(546)).is_none(), "less than half is in it");
    }

    #[test]
    fn a_call_within_the_wait_has_one_length() {
        assert_eq!(said(60, 390).text, "clock_nanosleep took 200 ms");
    }
}
