//! What the applications did: one JSON object a line, in the order the calls returned.
//!
//! Lines carry `who`, `flow`, `connection` (from 1), `step`, `from` and `to` (`CLOCK_REALTIME`,
//! ns) and what else is known:
//!
//! | step | lasts | more |
//! |---|---|---|
//! | `listen`, `accept`, `connect` | the call | `socket`: addresses, asked and granted options |
//! | `write` | from call to return | `bytes`, `sleeps`; `unacked`, `unsent` of the queue after it |
//! | `read` | likewise | `bytes` (0 at the end of the stream), `sleeps`, `unread` after it |
//! | `sleep` | as it was | `asked_ns` |
//! | `drain` | until all was acknowledged, seen late by at most 0.2 ms | |
//! | `end_writing`, `reset`, `close` | the call | |
//! | `was_reset` | an instant | the peer ended the connection by a reset, as its steps say |
//! | `tcp_info` | an instant, before the socket is closed | `tcp_info` |
//!
//! `sleeps` counts how often the kernel put the caller to sleep: a write with `sleeps` 0 was never
//! blocked, any other was blocked from `from` to `to` but for the time of copying.
//!
//! The bytes of all `read` lines add up to what was received, those of `write` to what was sent.

use std::fs::{File, OpenOptions};
use std::io::{self, BufWriter, Write as _};
use std::net::SocketAddr;
use std::path::Path;
use std::sync::{Mutex, PoisonError};

use serde::Serialize;

/// Which end of a flow.
#[derive(Clone, Copy, Debug, Eq, PartialEq, Serialize, clap::ValueEnum)]
#[serde(rename_all = "snake_case")]
pub enum Side {
    /// Accepts.
    Server,
    /// Connects.
    Client,
}

impl std::fmt::Display for Side {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Server => "server",
            Self::Client => "client",
        })
    }
}

/// The log of one application; its connections share it.
#[derive(Debug)]
pub(super) struct Log {
    who: Side,
    flow: usize,
    file: Mutex<BufWriter<File>>,
}

/// One line without what all lines of an application share.
#[derive(Debug, Default, Serialize)]
pub struct Entry {
    /// Counted from 1; 0 for what happened before the first.
    pub connection: u32,
    /// What was done.
    pub step: &'static str,
    /// When it began.
    pub from: u64,
    /// When it was done.
    pub to: u64,
    /// Bytes moved by the call.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bytes: Option<u64>,
    /// How often the kernel put the caller to sleep.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sleeps: Option<u64>,
    /// Bytes written and not acknowledged (`SIOCOUTQ`).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unacked: Option<u32>,
    /// Bytes written and not sent (`SIOCOUTQNSD`).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unsent: Option<u32>,
    /// Bytes received and not read (`SIOCINQ`).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unread: Option<u32>,
    /// How long a sleep should have been.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub asked_ns: Option<u64>,
    /// The socket as the kernel made it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub socket: Option<SocketFacts>,
    /// `TCP_INFO`, names as the kernel's without `tcpi_`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tcp_info: Option<serde_json::Value>,
    /// Why the connection failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub failed: Option<String>,
}

/// A socket's addresses and buffers.
#[derive(Debug, Serialize)]
pub struct SocketFacts {
    /// Its own address.
    pub local: Option<SocketAddr>,
    /// Its peer's.
    pub peer: Option<SocketAddr>,
    /// `SO_SNDBUF` as asked for.
    pub asked_sndbuf: Option<u32>,
    /// `SO_SNDBUF` as the kernel has it: twice what it granted.
    pub sndbuf: Option<u32>,
    /// `SO_RCVBUF` as asked for.
    pub asked_rcvbuf: Option<u32>,
    /// `SO_RCVBUF` as the kernel has it.
    pub rcvbuf: Option<u32>,
    /// `TCP_CONGESTION`.
    pub congestion: Option<String>,
    /// `TCP_MAXSEG`.
    pub mss: Option<u32>,
}

#[derive(Serialize)]
struct Line<'a> {
    who: Side,
    flow: usize,
    #[serde(flatten)]
    entry: &'a Entry,
}

impl Log {
    /// Opens `path` to add lines to it; several applications may share one file.
    pub(super) fn open(path: &Path, who: Side, flow: usize) -> io::Result<Self> {
        let file = OpenOptions::new().append(true).create(true).open(path)?;
        Ok(Self { who, flow, file: Mutex::new(BufWriter::with_capacity(BUFFER, file)) })
    }

    /// Adds a line.
    pub(super) fn add(&self, entry: &Entry) -> io::Result<()> {
        let mut line = serde_json::to_vec(&Line { who: self.who, flow: self.flow, entry })?;
        line.push(b'\n');
        let mut file = self.file.lock().unwrap_or_else(PoisonError::into_inner);
        if file.buffer().len() + line.len() > BUFFER {
            // Whole lines only, or those of another application might get between.
            file.flush()?;
        }
        file.write_all(&line)
    }

    /// Writes down what is still in memory.
    pub(super) fn flush(&self) -> io::Result<()> {
        self.file.lock().unwrap_or_else(PoisonError::into_inner).flush()
    }
}

/// Ours: so large that the log of most runs is written after the last step.
const BUFFER: usize = 1 << 20;
