//! A recording of one connection that is open: the recorder's, in the network namespace where the connection is.

use std::fs::File;
use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;

use socket2::{Domain, Socket, Type};

use super::Netns;
use crate::collect::NetnsError;
use crate::collect::namespace::within;
use crate::record::capture::CaptureError;
use crate::record::recording::{Options, Recorded, Recording, Scope};

/// What is recorded, and how much of it.
#[derive(Clone, Debug)]
pub struct Catch {
    /// Where it is, if not where the caller is.
    pub netns: Option<Netns>,
    /// This host's end.
    pub local: SocketAddr,
    /// The peer's.
    pub remote: SocketAddr,
    /// This host accepted it: many others have the same local port.
    pub is_accepted: bool,
    /// Bytes of packets at most.
    pub max_bytes: u64,
    /// An empty folder for what is not yet narrowed.
    pub spool: PathBuf,
}

/// Why nothing is recorded.
#[derive(Debug, thiserror::Error)]
pub enum CatchError {
    /// The namespace.
    #[error(transparent)]
    Netns(#[from] NetnsError),
    /// Packets may not be captured.
    #[error(transparent)]
    Refused(#[from] CaptureError),
    /// The recording failed.
    #[error("cannot record: {0}")]
    Record(io::Error),
}

/// Whether packets may be captured there.
///
/// # Errors
/// They may not.
pub fn may_capture(netns: Option<&Netns>) -> Result<(), CatchError> {
    let opened = inside(netns, || Socket::new(Domain::PACKET, Type::RAW, None))?;
    opened.map_err(CaptureError::Refused)?;
    Ok(())
}

impl Catch {
    /// Records into `output` as long as `lasts` does not return.
    ///
    /// # Errors
    /// The namespace has gone, packets may not be captured, or the file cannot be written.
    pub fn record(
        &self,
        output: File,
        lasts: impl FnOnce() + Send,
    ) -> Result<Recorded, CatchError> {
        may_capture(self.netns.as_ref())?;
        let recorded = inside(self.netns.as_ref(), || {
            let recording = Recording::begin(self.options())?;
            lasts();
            recording.finish(None, output)
        })?;
        recorded.map_err(CatchError::Record)
    }

    /// One port and the peer's address tell it: the port that the side which opened it chose for it.
    fn options(&self) -> Options {
        let chosen = if self.is_accepted { self.remote } else { self.local };
        let scope = Scope::Ends {
            ports: vec![chosen.port()],
            hosts: vec![self.remote.ip().to_canonical()],
        };
        Options {
            interface: "any".to_owned(),
            snap_length: SNAP_LENGTH,
            max_bytes: self.max_bytes,
            scope,
            spool: self.spool.clone(),
        }
    }
}

fn inside<T: Send>(
    netns: Option<&Netns>,
    work: impl FnOnce() -> T + Send,
) -> Result<T, NetnsError> {
    match netns {
        Some(netns) => within(netns, work),
        None => Ok(work()),
    }
}

/// As `tcpwhy record` keeps it: 100 hold all of the headers of TCP.
const SNAP_LENGTH: u32 = 100;
