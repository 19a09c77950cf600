//! What a network namespace tells of its TCP alone: settings, counters, sockets and who holds them.
//!
//! Nothing of the machine is read, so that looks at two hosts of the lab on one machine can be told apart.

use std::io;

use tcpwhy::host::snapshot::{FORMAT, Look, Snapshot, Source};

use super::blind::Blind;
use super::processes::Owners;
use super::{look, settings, sockets, tables};
use crate::record::Clock;

/// Looks at the namespace of the calling thread.
#[derive(Debug)]
pub struct Alone {
    snapshot: Snapshot,
    owners: Owners,
    blind: Blind,
}

impl Alone {
    /// Begins with no look.
    pub fn begin() -> Self {
        let snapshot = Snapshot {
            format: FORMAT.to_owned(),
            made_by: env!("CARGO_PKG_VERSION").to_owned(),
            ..Snapshot::default()
        };
        Self { snapshot, owners: Owners::default(), blind: Blind::default() }
    }

    /// Looks once more.
    ///
    /// # Errors
    /// The kernel tells no sockets.
    pub fn look(&mut self) -> io::Result<()> {
        let blind = &mut self.blind;
        let mut look = Look {
            t_ns: Some(Clock::Real.now()),
            uptime_ns: Some(Clock::Boot.now()),
            counters: look::counters(blind),
            ..Look::default()
        };
        let sockstat = blind.file(Source::Sockstat, "/proc/thread-self/net/sockstat");
        look.sockstat = sockstat.map(|text| tables::sockstat(&text));
        let found = sockets::sockets(blind).ok_or_else(|| {
            io::Error::other("the kernel tells no TCP sockets (sock_diag); is INET_DIAG built in?")
        })?;
        look.sockets = Some(found.connections);
        look.listeners = Some(found.listeners);
        look.time_wait = Some(found.time_wait);
        self.owners.join(&mut look, blind);
        self.snapshot.looks.push(look);
        Ok(())
    }

    /// All that was seen, and the settings, which are many files: reading them would delay a look.
    pub fn end(mut self) -> Snapshot {
        self.snapshot.settings = settings::settings(&mut self.blind);
        self.snapshot.unseen = self.blind.into_unseen();
        self.snapshot
    }
}
