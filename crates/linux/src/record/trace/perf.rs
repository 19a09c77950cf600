//! Tracepoints by `perf_event_open`: one ring for each processor, all events into it.
//!
//! The kernel counts how often each event passed its filter; what is missing in the rings was
//! lost. (Its own notes of loss in the ring need room, too, and the last one may never be made.)

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{self, Read as _};
use std::os::fd::AsFd as _;

use super::event::Event;
use super::{Options, Sink, TraceError};
use crate::record::clock::ClockMap;
use crate::record::memory::EventRing;
use crate::sys::{self, Clock};

/// Events under way.
#[derive(Debug)]
pub(super) struct Perf {
    processors: Vec<Processor>,
    /// Records read.
    records: u64,
}

#[derive(Debug)]
struct Processor {
    ring: EventRing,
    events: Vec<File>,
}

impl Perf {
    pub(super) fn open(
        events: &BTreeMap<u16, Event>,
        options: &Options,
    ) -> Result<Self, TraceError> {
        let call = |what: String| move |source| TraceError::Call { what, source };
        let online = fs::read_to_string(ONLINE).map_err(call(format!("read {ONLINE}")))?;
        let list = processors(&online).ok_or_else(|| {
            let odd = io::Error::new(io::ErrorKind::InvalidData, format!("{online:?}"));
            call(format!("understand {ONLINE}"))(odd)
        })?;
        let pages = (options.room_kib.max(1) as usize * 1024 / PAGE).max(1).next_power_of_two();
        let mut opened = Vec::new();
        for processor in list {
            let mut fds: Vec<File> = Vec::new();
            let mut ring = None;
            for event in events.values() {
                let fd = sys::perf_tracepoint(event.id, processor)
                    .map_err(call(format!("open the perf event {}", event.path)))?;
                if let Some(filter) = filter(event, &options.ports) {
                    sys::perf_filter(fd.as_fd(), &filter)
                        .map_err(call(format!("filter {} by {filter}", event.path)))?;
                }
                match fds.first() {
                    None => {
                        let map = EventRing::new(fd.as_fd(), pages);
                        ring = Some(map.map_err(call("share a ring with the kernel".to_owned()))?);
                    }
                    Some(first) => sys::perf_output(fd.as_fd(), first.as_fd())
                        .map_err(call("join events in one ring".to_owned()))?,
                }
                fds.push(fd.into());
            }
            if let Some(ring) = ring {
                opened.push(Processor { ring, events: fds });
            }
        }
        let perf = Self { processors: opened, records: 0 };
        perf.switch(true)?;
        Ok(perf)
    }

    /// Hands on all records.
    pub(super) fn read(&mut self, sink: &mut Sink<'_>) {
        let map = ClockMap::of(Clock::Monotonic);
        for processor in &mut self.processors {
            let bytes = processor.ring.take();
            let mut rest = &bytes[..];
            while let Some((kind, body, next)) = record(rest) {
                rest = next;
                if kind != SAMPLE {
                    continue;
                }
                self.records += 1;
                match sample(body) {
                    Some((t, raw)) => sink.take(map.real(t), raw),
                    None => sink.odd += 1,
                }
            }
        }
    }

    /// How many records found no room; right after the last [`Perf::read`].
    pub(super) fn lost(&self) -> Result<u64, TraceError> {
        let mut passed = 0;
        for mut event in self.processors.iter().flat_map(|processor| &processor.events) {
            let mut count = [0; 8];
            event.read_exact(&mut count).map_err(|source| TraceError::Call {
                what: "read the count of a perf event".to_owned(),
                source,
            })?;
            passed += u64::from_ne_bytes(count);
        }
        Ok(passed.saturating_sub(self.records))
    }

    pub(super) fn stop(&self) -> Result<(), TraceError> {
        self.switch(false)
    }

    fn switch(&self, on: bool) -> Result<(), TraceError> {
        for fd in self.processors.iter().flat_map(|processor| &processor.events) {
            sys::perf_switch(fd.as_fd(), on).map_err(|source| TraceError::Call {
                what: "switch a perf event".to_owned(),
                source,
            })?;
        }
        Ok(())
    }
}

/// The filter that lets pass what has one of `ports` at either end.
pub(super) fn filter(event: &Event, ports: &[u16]) -> Option<String> {
    if ports.is_empty() || !event.has_ports {
        return None;
    }
    let tests = ports.iter().map(|port| format!("sport=={port}||dport=={port}"));
    Some(tests.collect::<Vec<_>>().join("||"))
}

/// The first record: type, body, and what follows it (`perf_event_header`).
fn record(bytes: &[u8]) -> Option<(u32, &[u8], &[u8])> {
    let kind = u32::from_ne_bytes(*bytes.first_chunk()?);
    let size = usize::from(u16::from_ne_bytes(bytes.get(6..8)?.try_into().ok()?));
    Some((kind, bytes.get(8..size)?, &bytes[size..]))
}

/// Time and raw record of a sample (`PERF_SAMPLE_TIME`, `PERF_SAMPLE_RAW`).
fn sample(body: &[u8]) -> Option<(u64, &[u8])> {
    let size = u32::from_ne_bytes(body.get(8..12)?.try_into().ok()?) as usize;
    Some((word(body, 0)?, body.get(12..12 + size)?))
}

fn word(bytes: &[u8], at: usize) -> Option<u64> {
    Some(u64::from_ne_bytes(bytes.get(at..at + 8)?.try_into().ok()?))
}

/// Processors of a list such as `0-3,8`.
pub(super) fn processors(list: &str) -> Option<Vec<u32>> {
    let mut all = Vec::new();
    for part in list.trim().split(',') {
        let (from, to) = part.split_once('-').unwrap_or((part, part));
        let (from, to): (u32, u32) = (from.parse().ok()?, to.parse().ok()?);
        if to < from || to > MOST_PROCESSORS {
            return None;
        }
        all.extend(from..=to);
    }
    Some(all)
}

const ONLINE: &str = "/sys/devices/system/cpu/online";
/// Linux `CONFIG_NR_CPUS` is at most this on the largest machines.
const MOST_PROCESSORS: u32 = 8192;
/// Ours: only sizes the ring; the kernel rounds by its own.
const PAGE: usize = 4096;
/// `PERF_RECORD_SAMPLE` (Linux `include/uapi/linux/perf_event.h`).
const SAMPLE: u32 = 9;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_of_processors_are_understood() {
        assert_eq!(processors("0-2,5\n"), Some(vec![0, 1, 2, 5]));
        assert_eq!(processors("0\n"), Some(vec![0]));
        assert_eq!(processors(""), None);
        assert_eq!(processors("3-1"), None);
        assert_eq!(processors("0-4294967295"), None);
    }

    #[test]
    fn a_record_that_claims_too_much_is_none() {
        let mut bytes = vec![0; 24];
        bytes[0] = SAMPLE as u8;
        bytes[6] = 24;
        assert!(record(&bytes).is_some());
        bytes[6] = 25;
        assert!(record(&bytes).is_none());
        bytes[6] = 7;
        assert!(record(&bytes).is_none());
    }
}
