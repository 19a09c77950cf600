//! Packets that the kernel drops between the looks, by the reason that it gives (`skb:kfree_skb`, Linux 5.17).
//!
//! The tracepoint sees all network namespaces and all protocols. Packets that were used up are not among them:
//! those are freed by another function.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::BufReader;
use std::sync::mpsc;
use std::thread::{self, JoinHandle};

use serde::Deserialize;
use tcpwhy::host::snapshot::{Dropped, Drops, Source};

use super::blind::Blind;
use crate::record::trace::{self, TraceError, Traced};
use crate::record::{Clock, Ender, Stop};

const EVENT: &str = "skb/kfree_skb";
/// Ours: some 20 MB of lines; a flood fills it in a second, and is known by then.
const MOST: u64 = 200_000;
/// Ours: as much as a recording has, not measured for this event.
const ROOM_KIB: u32 = 1024;

/// The kernel is being watched.
pub(super) struct Watch {
    began: u64,
    ender: Ender,
    /// Ends with the lines as they were recorded.
    thread: JoinHandle<Result<(Traced, Vec<u8>), TraceError>>,
}

impl Watch {
    /// Begins; what is dropped before this returns is not counted.
    pub(super) fn begin(blind: &mut Blind) -> Option<Self> {
        match Self::try_begin() {
            Ok(watch) => Some(watch),
            Err(error) => {
                blind.say(Source::Drops, None, error.to_string());
                None
            }
        }
    }

    fn try_begin() -> Result<Self, TraceError> {
        let call =
            |what: &'static str| move |source| TraceError::Call { what: what.to_owned(), source };
        let (stop, ender) = Stop::by_hand().map_err(call("make a pipe"))?;
        let options = trace::Options {
            events: vec![EVENT.to_owned()],
            only: true,
            // An instance of the tracing system would be a change of the host.
            method: trace::Method::Perf,
            room_kib: ROOM_KIB,
            most: Some(MOST),
            ..trace::Options::default()
        };
        let (tell, told) = mpsc::channel();
        let thread = thread::Builder::new()
            .name("drops".to_owned())
            .spawn(move || {
                let mut lines = Vec::new();
                let traced = trace::run_into(&mut lines, &options, &stop, move || {
                    let _ = tell.send(());
                });
                Ok((traced?, lines))
            })
            .map_err(call("start a thread"))?;
        if told.recv().is_err() {
            let done = thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
            let ended = std::io::Error::other("it ended before it began");
            return Err(done.err().unwrap_or_else(|| call("watch what is dropped")(ended)));
        }
        Ok(Self { began: Clock::Monotonic.now(), ender, thread })
    }

    /// What was dropped meanwhile.
    pub(super) fn end(self, blind: &mut Blind) -> Option<Drops> {
        let over_ns = Clock::Monotonic.now().saturating_sub(self.began);
        drop(self.ender);
        let traced = self.thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        let found = traced.and_then(|(traced, lines)| {
            let names = trace::symbols(EVENT)?;
            let by = counted(&*lines, &names, &Functions::of_this_kernel());
            let told: u64 = by.iter().map(|each| each.packets).sum();
            let missed = (traced.records + traced.lost + traced.odd).saturating_sub(told);
            Ok(Drops { over_ns, by, missed, cut: traced.full })
        });
        found.map_err(|error| blind.say(Source::Drops, None, error.to_string())).ok()
    }
}

/// What is used of a line.
#[derive(Deserialize)]
struct Line {
    /// Since Linux 5.17.
    reason: Option<u64>,
    location: u64,
}

/// By reason and function, most first.
fn counted(
    lines: impl std::io::BufRead,
    names: &BTreeMap<u64, String>,
    functions: &Functions,
) -> Vec<Dropped> {
    let mut by: BTreeMap<(String, Option<String>), u64> = BTreeMap::new();
    for line in lines.lines().map_while(Result::ok) {
        let Ok(Line { reason, location }) = serde_json::from_str(&line) else { continue };
        let reason = reason.map_or_else(
            || "not given by this kernel".to_owned(),
            |reason| names.get(&reason).cloned().unwrap_or_else(|| reason.to_string()),
        );
        *by.entry((reason, functions.name(location))).or_default() += 1;
    }
    let mut by: Vec<Dropped> = by
        .into_iter()
        .map(|((reason, function), packets)| Dropped { reason, function, packets })
        .collect();
    by.sort_by_key(|each| std::cmp::Reverse(each.packets));
    by
}

/// Functions of the kernel by their first address.
#[derive(Debug, Default)]
struct Functions(Vec<(u64, String)>);

impl Functions {
    /// Empty where the kernel does not tell addresses (`kptr_restrict`).
    fn of_this_kernel() -> Self {
        File::open("/proc/kallsyms")
            .map_or_else(|_| Self::default(), |file| Self::read(BufReader::new(file)))
    }

    /// Of lines as `ffffffff81000000 T tcp_v4_rcv`.
    fn read(lines: impl std::io::BufRead) -> Self {
        let mut all: Vec<(u64, String)> = lines
            .lines()
            .map_while(Result::ok)
            .filter_map(|line| {
                let mut words = line.split_ascii_whitespace();
                let at = u64::from_str_radix(words.next()?, 16).ok().filter(|at| *at > 0)?;
                let is_code = matches!(words.next()?, "t" | "T" | "w" | "W");
                is_code.then(|| (at, words.next().unwrap_or_default().to_owned()))
            })
            .collect();
        all.sort_unstable();
        Self(all)
    }

    fn name(&self, at: u64) -> Option<String> {
        let behind = self.0.partition_point(|(first, _)| *first <= at);
        Some(self.0.get(behind.checked_sub(1)?)?.1.clone())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn drops_are_counted_by_reason_and_function() {
        let functions = "ffffffff81000000 T tcp_v4_rcv\nffffffff81002000 t tcp_data_queue\n\
                         ffffffff81001000 d some_data\n0000000000000000 T hidden\n";
        let functions = Functions::read(functions.as_bytes());
        let lines = "{\"t\":1,\"event\":\"kfree_skb\",\"location\":18446744071578849296,\"reason\":10}\n\
                     {\"t\":2,\"location\":18446744071578849296,\"reason\":10}\n\
                     {\"t\":3,\"location\":18446744071578853378,\"reason\":99}\n{\"t\":4,\"loc";
        let names = [(10, "TCP_CSUM".to_owned())].into();
        let told: Vec<_> = counted(lines.as_bytes(), &names, &functions)
            .into_iter()
            .map(|each| (each.reason, each.function.unwrap_or_default(), each.packets))
            .collect();
        let one = |reason: &str, function: &str, packets| {
            (reason.to_owned(), function.to_owned(), packets)
        };
        assert_eq!(told, [one("TCP_CSUM", "tcp_v4_rcv", 2), one("99", "tcp_data_queue", 1)]);
        assert_eq!(functions.name(1), None);
    }
}
