//! System calls of this room, each behind a name of its own.

use std::ffi::OsStr;
use std::io;
use std::os::fd::{BorrowedFd, OwnedFd};

use rustix::fs::readlinkat_raw;
use rustix::process::{Pid, PidfdFlags, PidfdGetfdFlags, geteuid, pidfd_getfd, pidfd_open};

/// How large a page of memory is.
pub(super) fn page_bytes() -> u64 {
    rustix::param::page_size() as u64
}

/// Whether this process acts as user 0.
pub(super) fn is_root() -> bool {
    geteuid().is_root()
}

/// readlinkat(2): as much of a link as `place` holds.
pub(super) fn read_link<'a>(
    folder: BorrowedFd<'_>,
    name: &OsStr,
    place: &'a mut [u8],
) -> io::Result<&'a [u8]> {
    let length = readlinkat_raw(folder, name, &mut *place)?;
    Ok(&place[..length])
}

/// A copy of another process's descriptor: `pidfd_open(2)` and `pidfd_getfd(2)`, Linux 5.6.
pub(super) fn copy_of_descriptor(process: u32, descriptor: u32) -> io::Result<OwnedFd> {
    let process = i32::try_from(process).ok().and_then(Pid::from_raw);
    let process = pidfd_open(process.ok_or(io::ErrorKind::InvalidInput)?, PidfdFlags::empty())?;
    Ok(pidfd_getfd(process, descriptor.cast_signed(), PidfdGetfdFlags::empty())?)
}
