//! Tracepoints by an instance of the tracing system of our own.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{self, Read as _};
use std::os::fd::AsFd as _;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::PathBuf;
use std::process;
use std::sync::atomic::{AtomicU32, Ordering};

use super::event::Event;
use super::guardian::Guardian;
use super::tracefs::Tracefs;
use super::{Options, Sink, TraceError, pages, perf};
use crate::record::clock::ClockMap;
use crate::sys::Clock;

/// An instance under way; dropping it removes it.
#[derive(Debug)]
pub(super) struct Instance {
    path: PathBuf,
    /// One ring for each processor.
    pipes: Vec<File>,
    page: Vec<u8>,
    /// Goes last: it removes what we have not.
    _guardian: Guardian,
}

impl Instance {
    pub(super) fn open(
        tracefs: &Tracefs,
        events: &BTreeMap<u16, Event>,
        options: &Options,
    ) -> Result<Self, TraceError> {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let call = |what: &str| {
            let what = what.to_owned();
            move |source| TraceError::Call { what, source }
        };
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        let name = format!("instances/tcpwhy-{}-{count}", process::id());
        let guardian = Guardian::over(tracefs.as_fd(), &name).map_err(call("start a guardian"))?;
        fs::create_dir(tracefs.path(&name)).map_err(call("make an instance of tracefs"))?;
        let page =
            tracefs.read("buffer_subbuf_size_kb").ok().and_then(|kib| kib.trim().parse().ok());
        let mut instance = Self {
            path: tracefs.path(&name),
            pipes: Vec::new(),
            page: vec![0; page.unwrap_or(PAGE_KIB) * 1024],
            _guardian: guardian,
        };
        let set = |file: &str, word: &str| {
            let what = format!("write {word:?} to tracefs' {name}/{file}");
            tracefs.write(&format!("{name}/{file}"), word).map_err(call(&what))
        };
        set("trace_clock", "mono")?;
        set("buffer_size_kb", &options.room_kib.max(1).to_string())?;
        instance.open_pipes().map_err(call("open the rings of tracefs"))?;
        for event in events.values() {
            if let Some(filter) = perf::filter(event, &options.ports) {
                set(&format!("events/{}/filter", event.path), &filter)?;
            }
        }
        for event in events.values() {
            set(&format!("events/{}/enable", event.path), "1")?;
        }
        Ok(instance)
    }

    /// Hands on all records.
    pub(super) fn read(&mut self, sink: &mut Sink<'_>) -> Result<(), TraceError> {
        let map = ClockMap::of(Clock::Monotonic);
        for pipe in &mut self.pipes {
            loop {
                match pipe.read(&mut self.page) {
                    Ok(0) => break,
                    Ok(length) => {
                        let page = &self.page[..length];
                        if pages::events(page, |t, record| sink.take(map.real(t), record)).is_none()
                        {
                            sink.odd += 1;
                        }
                    }
                    Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                    Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                    Err(source) => {
                        return Err(TraceError::Call {
                            what: "read a ring of tracefs".to_owned(),
                            source,
                        });
                    }
                }
            }
        }
        Ok(())
    }

    pub(super) fn stop(&self) -> Result<(), TraceError> {
        fs::write(self.path.join("tracing_on"), "0")
            .map_err(|source| TraceError::Call { what: "stop the trace".to_owned(), source })
    }

    /// How many records found no room.
    pub(super) fn lost(&self) -> Result<u64, TraceError> {
        let call = |source| TraceError::Call { what: "read tracefs' stats".to_owned(), source };
        let mut lost = 0;
        for entry in fs::read_dir(self.path.join("per_cpu")).map_err(call)? {
            let stats = fs::read_to_string(entry.map_err(call)?.path().join("stats"));
            lost += lost_records(&stats.map_err(call)?);
        }
        Ok(lost)
    }

    fn open_pipes(&mut self) -> io::Result<()> {
        for entry in fs::read_dir(self.path.join("per_cpu"))? {
            let pipe = fs::OpenOptions::new()
                .read(true)
                .custom_flags(libc::O_NONBLOCK)
                .open(entry?.path().join("trace_pipe_raw"))?;
            self.pipes.push(pipe);
        }
        Ok(())
    }
}

impl Drop for Instance {
    fn drop(&mut self) {
        self.pipes.clear();
        // What goes wrong here is the guardian's to mend.
        let _ = fs::remove_dir(&self.path);
    }
}

/// Sum of what a processor's `stats` file says of lost records.
fn lost_records(stats: &str) -> u64 {
    let count = |name| -> Option<u64> {
        stats.lines().find_map(|line| line.strip_prefix(name)?.trim().parse().ok())
    };
    ["overrun:", "commit overrun:", "dropped events:"].into_iter().filter_map(count).sum()
}

/// A sub-buffer is a page unless `buffer_subbuf_size_kb` says otherwise (Linux 6.8).
const PAGE_KIB: usize = 4;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_of_loss_counts() {
        let stats = "entries: 5\noverrun: 3\ncommit overrun: 1\nbytes: 88\ndropped events: 20\n";
        assert_eq!(lost_records(stats), 24);
    }
}
