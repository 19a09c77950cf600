//! What did the user name, and can it be opened?
//!
//! Names are files, or `-` for standard input. A name tells nothing: formats are the core's business,
//! packing that of [`super::decompress`].

use std::fs::{self, File};
use std::io::{self, ErrorKind, Read, Seek};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use super::decompress::{is_packed, unpack};
use super::held;
use super::input::Input;

/// Bytes of a capture that tell it from others. Ours: some tens of packets of the largest, or 64 short ones packed.
const BEGINNING: u64 = 64 << 10;

/// Why an input cannot be read at all.
#[derive(Debug, thiserror::Error)]
#[error("cannot read {name}: {why}")]
pub struct OpenError {
    /// The input as the user named it.
    pub name: String,
    /// What is wrong and what to try.
    pub why: String,
}

impl Input {
    /// The input that `argument` names.
    pub fn named(argument: &Path) -> Self {
        if argument == Path::new("-") { Self::Stdin } else { Self::File(argument.to_owned()) }
    }

    /// The name in reports and messages.
    pub fn name(&self) -> String {
        match self {
            Self::Stdin => "-".to_owned(),
            Self::File(path) => path.display().to_string(),
        }
    }

    /// Its first bytes as they are stored, which tell captures apart by the times of their packets, under whatever names,
    /// and stay as they are while a capture grows. Of what cannot be read twice, its name.
    pub fn beginning(&self) -> Vec<u8> {
        let read = |path: &Path| {
            let mut bytes = Vec::new();
            File::open(path)?.take(BEGINNING).read_to_end(&mut bytes).map(|_| bytes)
        };
        match self {
            Self::File(path) if self.can_be_reread() => read(path).ok(),
            _ => None,
        }
        .unwrap_or_else(|| self.name().into_bytes())
    }

    /// Whether reading it takes nothing away: a plain file can be read twice, a pipe cannot.
    pub fn can_be_reread(&self) -> bool {
        match self {
            Self::Stdin => false,
            Self::File(path) => fs::metadata(path).is_ok_and(|metadata| metadata.is_file()),
        }
    }

    /// Whether opening it may wait until somebody writes: of descriptors (`/dev/fd/63`) the writer is there.
    pub fn may_wait_for_its_writer(&self) -> bool {
        let Self::File(path) = self else { return false };
        !self.can_be_reread() && !path.starts_with("/dev/fd") && !path.starts_with("/proc")
    }

    /// Size in bytes as stored, where it is known beforehand.
    pub fn size(&self) -> Option<u64> {
        match self {
            Self::Stdin => None,
            Self::File(path) => {
                fs::metadata(path).ok().filter(fs::Metadata::is_file).map(|m| m.len())
            }
        }
    }

    /// Checks that it can be opened, without taking anything from it.
    ///
    /// # Errors
    /// It is missing, forbidden or a directory.
    pub fn check(&self) -> Result<(), OpenError> {
        let Self::File(path) = self else { return Ok(()) };
        let metadata = fs::metadata(path).map_err(|error| self.error(&error))?;
        if metadata.is_dir() {
            return Err(self.error(&ErrorKind::IsADirectory.into()));
        }
        // Opening a named pipe would wait for its writer.
        if metadata.is_file() {
            File::open(path).map_err(|error| self.error(&error))?;
        }
        Ok(())
    }

    /// Opens it, unpacking what is packed; `taken` counts the bytes as stored.
    ///
    /// # Errors
    /// It cannot be opened, or is packed in a way this version does not read.
    pub fn open(&self, taken: &Arc<AtomicU64>) -> Result<Box<dyn Read + Send>, OpenError> {
        let source: Box<dyn Read + Send> = match (held::source(self), self) {
            (Some(held), _) => held,
            (None, Self::Stdin) => Box::new(io::stdin()),
            (None, Self::File(path)) => {
                Box::new(File::open(path).map_err(|error| self.error(&error))?)
            }
        };
        unpack(Counted { source, taken: Arc::clone(taken) }).map_err(|error| self.error(&error))
    }

    /// Opens it if it is a plain file that is not packed: reading that neither waits nor unpacks.
    ///
    /// `None` says nothing of the cause; [`Input::open`] does.
    pub fn open_plain(&self) -> Option<File> {
        let Self::File(path) = self else { return None };
        // A named pipe would wait for its writer.
        fs::metadata(path).ok().filter(fs::Metadata::is_file)?;
        let mut file = File::open(path).ok()?;
        let packed = is_packed(&mut file).ok()?;
        file.rewind().ok()?;
        (!packed).then_some(file)
    }

    /// The error in the user's words.
    fn error(&self, error: &io::Error) -> OpenError {
        let name = self.name();
        let why = match error.kind() {
            ErrorKind::NotFound => "there is no such file".to_owned(),
            ErrorKind::PermissionDenied => format!(
                "permission denied; captures made as root belong to root: \
                 try `sudo cat {name} | tcpwhy -`"
            ),
            ErrorKind::IsADirectory if *self == Self::Stdin => {
                "it is a directory; name the files in it: `tcpwhy DIRECTORY/*`".to_owned()
            }
            ErrorKind::IsADirectory => {
                format!("it is a directory; name the files in it: `tcpwhy {name}/*`")
            }
            _ => error.to_string(),
        };
        OpenError { name, why }
    }
}

/// Counts the bytes that pass.
struct Counted<R> {
    source: R,
    taken: Arc<AtomicU64>,
}

impl<R: Read> Read for Counted<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let got = self.source.read(buffer)?;
        self.taken.fetch_add(got as u64, Ordering::Relaxed);
        Ok(got)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_dash_is_standard_input_and_nothing_else_is() {
        assert_eq!(Input::named(Path::new("-")), Input::Stdin);
        assert_eq!(Input::named(Path::new("./-")), Input::File("./-".into()));
        assert!(!Input::Stdin.can_be_reread());
    }

    #[test]
    fn what_cannot_be_opened_is_told_in_words() {
        let missing = Input::File("no/such/capture.pcap".into()).check().expect_err("missing");
        assert_eq!(missing.to_string(), "cannot read no/such/capture.pcap: there is no such file");
        let here = Input::File("src".into());
        let directory = here.check().expect_err("a directory").to_string();
        assert!(directory.contains("`tcpwhy src/*`"), "{directory}");
    }

    #[test]
    fn a_plain_file_opens_at_its_start_and_a_packed_one_not_as_plain() {
        let directory = tempfile::tempdir().expect("room for files");
        let file = |name: &str, bytes: &[u8]| {
            let path = directory.path().join(name);
            fs::write(&path, bytes).expect("can be written");
            Input::File(path).open_plain()
        };
        for plain in [&b""[..], b"\x1f", b"a capture"] {
            let mut read = Vec::new();
            file("plain", plain).expect("is plain").read_to_end(&mut read).expect("can be read");
            assert_eq!(read, plain);
        }
        assert!(file("packed", b"\x1f\x8b\x08 and so on").is_none());
        assert!(Input::Stdin.open_plain().is_none());
    }

    #[test]
    fn bytes_are_counted_as_stored() {
        let taken = Arc::new(AtomicU64::new(0));
        let manifest = Input::File("Cargo.toml".into());
        let mut text = String::new();
        let mut source = manifest.open(&taken).expect("is there");
        source.read_to_string(&mut text).expect("is text");
        assert_eq!(taken.load(Ordering::Relaxed), text.len() as u64);
        assert_eq!(manifest.size(), Some(text.len() as u64));
    }
}
