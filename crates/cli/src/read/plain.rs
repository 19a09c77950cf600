//! A plain file, chunk by chunk: mapped where that is safe, else read.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};

use tcpwhy_linux::leased::{Leased, WINDOW};

/// Bytes of a plain file taken at a time. Ours: of 32 to 256 KiB the quickest for 900 MB that were read; the bytes
/// are still in the second-level cache, beside the events, when they are looked at.
const CHUNK: usize = 64 << 10;

/// A plain file that is read from its start.
pub(super) struct Plain {
    file: File,
    /// While it is mapped.
    leased: Option<Leased>,
    at: u64,
    buffer: Vec<u8>,
}

impl Plain {
    /// What `file` holds.
    pub(super) fn new(file: File) -> Self {
        // A smaller one is read as quickly.
        let is_large = file.metadata().is_ok_and(|metadata| metadata.len() >= WINDOW);
        let leased = is_large.then(|| Leased::new(&file).ok()).flatten();
        Self { file, leased, at: 0, buffer: Vec::new() }
    }

    /// The next chunk, empty at the end.
    ///
    /// # Errors
    /// It cannot be read.
    pub(super) fn next(&mut self) -> io::Result<&[u8]> {
        if let Some(leased) = &mut self.leased
            && !leased.bring(self.at)
        {
            self.leased = None;
            self.file.seek(SeekFrom::Start(self.at))?;
        }
        if let Some(leased) = &self.leased {
            let bytes = leased.bytes(self.at);
            let chunk = &bytes[..bytes.len().min(CHUNK)];
            self.at += chunk.len() as u64;
            return Ok(chunk);
        }
        self.buffer.resize(CHUNK, 0);
        let read = read_some(&mut self.file, &mut self.buffer)?;
        Ok(&self.buffer[..read])
    }
}

/// Reads once, again if a signal came in between.
pub(super) fn read_some(source: &mut impl Read, buffer: &mut [u8]) -> io::Result<usize> {
    loop {
        match source.read(buffer) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            other => return other,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::OpenOptionsExt as _;

    use tcpwhy_linux::leased::STEP;

    use super::*;

    /// This many windows and a little more, each byte of its own.
    fn file(windows: u64) -> (tempfile::TempPath, Vec<u8>) {
        let bytes: Vec<u8> = (0..windows * WINDOW + 5).map(|at| (at / 999) as u8).collect();
        let path = tempfile::NamedTempFile::new().expect("room for a file").into_temp_path();
        fs::write(&path, &bytes).expect("room for the bytes");
        (path, bytes)
    }

    fn rest(plain: &mut Plain) -> Vec<u8> {
        let mut all = Vec::new();
        loop {
            match plain.next().expect("it can be read") {
                [] => return all,
                chunk => all.extend_from_slice(chunk),
            }
        }
    }

    /// It, mapped if that can be: another test's child may hold what wrote it for a moment.
    fn opened(path: &tempfile::TempPath) -> Plain {
        let open = || Plain::new(File::open(path).expect("it is there"));
        for _ in 0..100 {
            let plain = open();
            if plain.leased.is_some() {
                return plain;
            }
            std::thread::sleep(std::time::Duration::from_millis(10));
        }
        open()
    }

    #[test]
    fn small_and_large_files_come_whole() {
        for windows in [0, 1, 2] {
            let (path, bytes) = file(windows);
            let mut plain = Plain::new(File::open(&path).expect("it is there"));
            assert!(windows > 0 || plain.leased.is_none(), "it is too small");
            assert!(rest(&mut plain) == bytes);
            assert!(plain.leased.is_none());
        }
    }

    #[test]
    fn what_follows_is_read_once_somebody_wants_to_write() {
        let (path, bytes) = file(2);
        let mut plain = opened(&path);
        if plain.leased.is_none() {
            return; // This filesystem knows no leases.
        }
        let mut seen = plain.next().expect("it can be read").to_vec();
        let write = || File::options().append(true).custom_flags(libc::O_NONBLOCK).open(&path);
        assert!(write().is_err(), "it is leased");
        seen.extend(rest(&mut plain));
        assert!(seen == bytes);
        assert_eq!(plain.at, STEP as u64, "no more was brought in");
        assert!(write().is_ok());
    }
}
