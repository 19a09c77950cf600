//! Captures that the emulator itself takes: in the middle of the path, and at hosts whose tap lies
//! at a distance from their stack.

use std::fs::File;
use std::path::{Path, PathBuf};

use crate::lab::backend::LabError;
use crate::record::pcapng::{Direction, Interface, Packet, Statistics, Writer};

/// A capture under way.
#[derive(Debug)]
pub(super) struct Capture {
    writer: Writer<File>,
    path: PathBuf,
    known: Statistics,
}

impl Capture {
    /// Begins a file.
    pub(super) fn create(path: &Path, snap_length: u32) -> Result<Self, LabError> {
        let interface = Interface { name: "path".to_owned(), link_type: LINKTYPE_RAW, snap_length };
        let writer = File::create(path)
            .and_then(|file| Writer::begin(file, &interface, PROGRAM))
            .map_err(|source| LabError::writing(path, source))?;
        Ok(Self { writer, path: path.to_owned(), known: Statistics::default() })
    }

    /// Adds a packet, `length` bytes long when it was whole.
    pub(super) fn add(&mut self, time: u64, bytes: &[u8], length: u32) -> Result<(), LabError> {
        if self.known.from == 0 {
            self.known.from = time;
        }
        self.known.to = time;
        self.known.received += 1;
        self.known.written += 1;
        let packet = Packet {
            interface: 0,
            time,
            bytes: [bytes, &[]],
            length,
            direction: Direction::Unknown,
        };
        self.writer.packet(&packet).map_err(|source| LabError::writing(&self.path, source))
    }

    /// Ends the file.
    pub(super) fn finish(self) -> Result<(), LabError> {
        let Self { writer, path, known } = self;
        writer.end(&known).map_err(|source| LabError::writing(&path, source))
    }
}

/// IP packets without a link layer (tcpdump group's registry).
const LINKTYPE_RAW: u16 = 101;

const PROGRAM: &str = concat!("tcpwhy ", env!("CARGO_PKG_VERSION"));
