//! A file's bytes where the page cache holds them, without a copy.
//!
//! What is mapped changes when somebody writes to the file, and to look at it is fatal (SIGBUS) once the file was cut. So
//! it is mapped under a read lease only (`fcntl(2)`, `F_SETLEASE`): the kernel grants none while the file is open for
//! writing, and whoever opens it for that, or cuts it, waits until the lease is given back: after the next [`Leased::bring`]
//! that finds it asked for. Pages are brought in many at once (`madvise(2)`, `MADV_POPULATE_READ`), so that what the disk
//! cannot give is no window here, and an error of whoever reads it instead.
//!
//! Without a lease we read instead: the file is another's, its filesystem knows no leases, or Linux is older than
//! 5.14. What is left: the kernel breaks a lease that is not given back for 45 s (`fs.lease-break-time`). If a
//! program was stopped for that long while somebody waited to cut the file, it ends by SIGBUS when it goes on.

#![expect(unsafe_code, reason = "memory that is mapped, and each function of the kernel for it")]

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd as _;
use std::ptr::{NonNull, null_mut};

use crate::sys::check;

/// Bytes that are mapped at a time. Ours: for 900 MB 8 MiB took 0.365 s in all, 0.5 and 2 MiB 0.38 s, when all of it was
/// brought in at once.
pub const WINDOW: u64 = 8 << 20;
/// Bytes of them that are brought in at once. Ours: 8 MiB take 0.4 to 0.8 ms, and a thread that waits for what is read had
/// nothing to do for 3.9 ms of 120 ms, and for 0.7 ms with 1 MiB; other sizes were not tried.
pub const STEP: usize = 1 << 20;
// Each step begins with a page.
const _: () = assert!(WINDOW.is_multiple_of(STEP as u64) && STEP.is_multiple_of(64 << 10));

/// `F_SETSIG`, `include/uapi/asm-generic/fcntl.h`, Linux v6.18.
const F_SETSIG: libc::c_int = 10;

/// A file under a read lease, which ends with it.
#[derive(Debug)]
pub struct Leased {
    file: File,
    length: u64,
    window: Option<Window>,
}

/// A part of it.
#[derive(Debug)]
struct Window {
    at: u64,
    start: NonNull<u8>,
    length: usize,
    /// Bytes that were brought in.
    here: usize,
}

impl Leased {
    /// Takes a lease on a file that was opened for reading alone.
    ///
    /// # Errors
    /// The kernel grants none.
    pub fn new(file: &File) -> io::Result<Self> {
        // The lease is of what was opened, which this shares.
        let file = file.try_clone()?;
        let fd = file.as_raw_fd();
        // SAFETY: of a descriptor that lives.
        unsafe {
            // Whether it is asked for is looked up. The signal that tells, too, is one that is ignored, for the usual kills.
            check(libc::fcntl(fd, F_SETSIG, libc::SIGURG))?;
            check(libc::fcntl(fd, libc::F_SETLEASE, libc::F_RDLCK))?;
        }
        let mut leased = Self { file, length: 0, window: None };
        leased.length = leased.file.metadata()?.len();
        Ok(leased)
    }

    /// Brings in what is at `at` and a little behind; `false` behind its end, when somebody wants to write to it, and if it cannot
    /// be had.
    pub fn bring(&mut self, at: u64) -> bool {
        if self.bytes(at).is_empty() {
            // SAFETY: of a descriptor that lives.
            let lease = unsafe { libc::fcntl(self.file.as_raw_fd(), libc::F_GETLEASE) };
            let window = self.window.take().filter(|window| window.has(at));
            if lease == libc::F_RDLCK && at < self.length {
                let window = window.map_or_else(|| Window::new(&self.file, at, self.length), Ok);
                self.window = window.and_then(|window| window.with(at)).ok();
            }
        }
        self.window.is_some()
    }

    /// What was brought in, from `at` on.
    pub fn bytes(&self, at: u64) -> &[u8] {
        let from = |window: &Window| usize::try_from(at.checked_sub(window.at)?).ok();
        let window = self.window.as_ref();
        window.and_then(|window| window.bytes().get(from(window)?..)).unwrap_or_default()
    }
}

impl Drop for Leased {
    fn drop(&mut self) {
        self.window = None;
        // SAFETY: of a descriptor that lives.
        unsafe { libc::fcntl(self.file.as_raw_fd(), libc::F_SETLEASE, libc::F_UNLCK) };
    }
}

impl Window {
    /// That of a file of `end` bytes which has `at` in it.
    fn new(file: &File, at: u64, end: u64) -> io::Result<Self> {
        let at = at - at % WINDOW;
        let length = (end - at).min(WINDOW) as usize;
        let offset = libc::off_t::try_from(at).map_err(|_| io::ErrorKind::FileTooLarge)?;
        // SAFETY: a new mapping at a place the kernel chooses.
        let start = unsafe {
            libc::mmap(
                null_mut(),
                length,
                libc::PROT_READ,
                libc::MAP_SHARED,
                file.as_raw_fd(),
                offset,
            )
        };
        if start == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        let start = NonNull::new(start.cast()).ok_or(io::ErrorKind::OutOfMemory)?;
        Ok(Self { at, start, length, here: 0 })
    }

    fn has(&self, at: u64) -> bool {
        (self.at..self.at + self.length as u64).contains(&at)
    }

    /// It, once what is at `at`, which it has and which is not here yet, was brought in as well.
    fn with(mut self, at: u64) -> io::Result<Self> {
        let at = (at - self.at) as usize;
        let until = (at - at % STEP + STEP).min(self.length);
        let count = until - self.here;
        // SAFETY: inside the mapping.
        check(unsafe {
            let from = self.start.as_ptr().add(self.here).cast();
            libc::madvise(from, count, libc::MADV_POPULATE_READ)
        })?;
        self.here = until;
        Ok(self)
    }

    fn bytes(&self) -> &[u8] {
        // SAFETY: inside the mapping; the lease keeps all from writing there.
        unsafe { std::slice::from_raw_parts(self.start.as_ptr(), self.here) }
    }
}

impl Drop for Window {
    fn drop(&mut self) {
        // SAFETY: made by `mmap` with this length; no slice outlives `self`.
        unsafe { libc::munmap(self.start.as_ptr().cast(), self.length) };
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;
    use std::os::unix::fs::OpenOptionsExt as _;

    use super::*;

    /// A lease; `None` where the filesystem knows none. Another test's child may hold what wrote the file for a moment.
    fn leased(file: &File) -> Option<Leased> {
        let pause = std::time::Duration::from_millis(10);
        (0..100).find_map(|_| Leased::new(file).inspect_err(|_| std::thread::sleep(pause)).ok())
    }

    /// Whether somebody may open it for writing now.
    fn may_write(path: &std::path::Path) -> bool {
        File::options().write(true).custom_flags(libc::O_NONBLOCK).open(path).is_ok()
    }

    #[test]
    fn all_bytes_come_window_by_window() {
        let mut file = tempfile::NamedTempFile::new().expect("room for a file");
        let all: Vec<u8> = (0..2 * WINDOW + 5).map(|at| (at / 999) as u8).collect();
        file.write_all(&all).expect("room for the bytes");
        let path = file.into_temp_path();
        let file = File::open(&path).expect("it is there");
        let Some(mut leased) = leased(&file) else { return };
        let mut seen = Vec::new();
        while leased.bring(seen.len() as u64) {
            let bytes = leased.bytes(seen.len() as u64);
            seen.extend_from_slice(&bytes[..bytes.len().min(1 << 20)]);
        }
        assert!(seen == all);
        assert!(leased.bytes(0).is_empty());
        // Over a step, back to a window before, and the last bytes of both.
        for at in [STEP * 2 + 7, 5, WINDOW as usize - 1, WINDOW as usize, all.len() - 1] {
            assert!(leased.bring(at as u64));
            let bytes = leased.bytes(at as u64);
            assert!(!bytes.is_empty() && all[at..].starts_with(bytes), "{at}");
        }
    }

    #[test]
    fn who_wants_to_write_waits_and_no_more_is_given() {
        let path = tempfile::NamedTempFile::new().expect("room for a file").into_temp_path();
        std::fs::write(&path, vec![7; STEP + 1]).expect("it can be written");
        let file = File::open(&path).expect("it is there");
        let Some(mut leased) = leased(&file) else { return };
        assert!(leased.bring(2));
        assert_eq!(leased.bytes(2).len(), STEP - 2);
        assert!(!may_write(&path));
        assert!(leased.bring(2), "that is here still");
        assert!(!leased.bring(STEP as u64), "it is asked for");
        drop(leased);
        assert!(may_write(&path));
    }

    #[test]
    fn what_is_written_to_is_not_leased() {
        let path = tempfile::NamedTempFile::new().expect("room for a file").into_temp_path();
        let writer = File::options().write(true).open(&path).expect("it is there");
        let file = File::open(&path).expect("it is there");
        assert!(Leased::new(&file).is_err());
        drop(writer);
    }
}
