//! A live host as a snapshot: what the kernel is set to, its counters, queues, devices and sockets.
//!
//! Everything is read from `/proc` and `/sys` and asked of the kernel by netlink; no program is called,
//! nothing is changed and no packet is sent. What cannot be read is told in `unseen` and never fails the
//! whole. What changes is read twice, some seconds apart, for the checks judge how far it went.

mod blind;
mod info;
mod links;
mod look;
mod machine;
mod settings;
mod sockets;
mod sys;
mod tables;

use std::time::Duration;

use tcpwhy::host::snapshot::{FORMAT, Snapshot};

use crate::record::Stop;
use blind::Blind;

/// What to look at, and how long.
#[derive(Debug, Default)]
pub struct Options {
    /// Another network namespace than that of the caller.
    pub netns: Option<Netns>,
    /// Time between two looks; `None` is one look only.
    pub apart: Option<Duration>,
    /// Find out which processes hold the sockets.
    pub processes: bool,
    /// One socket, by process and descriptor, whose options are asked for.
    pub locks: Option<(u32, u32)>,
    /// Ends the time between the looks: the second is taken at once.
    pub stop: Option<Stop>,
}

/// A network namespace, as people name it.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Netns {
    /// Of `ip netns`.
    Name(String),
    /// That of a process.
    Pid(u32),
    /// A file.
    Path(std::path::PathBuf),
}

/// Looks at this host.
pub fn take(options: &Options) -> Snapshot {
    let mut blind = Blind::default();
    let mut snapshot = Snapshot {
        format: FORMAT.to_owned(),
        made_by: env!("CARGO_PKG_VERSION").to_owned(),
        settings: settings::settings(&mut blind),
        ..Snapshot::default()
    };
    machine::describe(&mut snapshot, &mut blind);
    snapshot.looks.push(look::look(&mut blind));
    snapshot.processors = processors(&snapshot);
    if let Some(apart) = options.apart {
        wait(apart, options.stop.as_ref());
        snapshot.looks.push(look::look(&mut blind));
    }
    snapshot.unseen = blind.into_unseen();
    snapshot
}

fn processors(snapshot: &Snapshot) -> Option<u32> {
    let rows = snapshot.looks.first()?.processors.as_ref()?;
    u32::try_from(rows.len()).ok()
}

fn wait(apart: Duration, stop: Option<&Stop>) {
    let ns = u64::try_from(apart.as_nanos()).unwrap_or(u64::MAX);
    match stop {
        Some(stop) => drop(stop.within(Some(ns))),
        None => std::thread::sleep(apart),
    }
}
