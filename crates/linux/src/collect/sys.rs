//! System calls of this room that the standard library has no name for, each behind a safe signature.

#![expect(unsafe_code, reason = "each function wraps one system call")]

use std::ffi::{CString, OsStr};
use std::io;
use std::os::fd::{AsRawFd as _, BorrowedFd, FromRawFd as _, OwnedFd};
use std::os::unix::ffi::OsStrExt as _;

/// `_SC_PAGESIZE` of sysconf(3).
pub(super) fn page_bytes() -> Option<u64> {
    // SAFETY: sysconf takes a number and touches no memory of ours.
    u64::try_from(unsafe { libc::sysconf(libc::_SC_PAGESIZE) }).ok()
}

/// Whether this process acts as user 0.
pub(super) fn is_root() -> bool {
    // SAFETY: geteuid takes nothing, touches no memory of ours and cannot fail.
    unsafe { libc::geteuid() == 0 }
}

/// readlinkat(2): as much of a link as `place` holds.
pub(super) fn read_link<'a>(
    folder: BorrowedFd<'_>,
    name: &OsStr,
    place: &'a mut [u8],
) -> io::Result<&'a [u8]> {
    let name = CString::new(name.as_bytes())?;
    // SAFETY: `name` ends in a zero; the kernel writes at most `place.len()` bytes to `place`.
    let length = unsafe {
        libc::readlinkat(folder.as_raw_fd(), name.as_ptr(), place.as_mut_ptr().cast(), place.len())
    };
    let length = usize::try_from(length).map_err(|_| io::Error::last_os_error())?;
    Ok(&place[..length])
}

/// `SIOCETHTOOL` about an interface of this thread's namespace: a command and its place for the answer,
/// which must be as large as the most that the command can bring.
pub(super) fn ethtool(interface: &str, place: &mut [u8]) -> io::Result<()> {
    let socket = std::net::UdpSocket::bind((std::net::Ipv4Addr::UNSPECIFIED, 0))?;
    // SAFETY: all zeros is a valid `ifreq`.
    let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
    if interface.len() >= request.ifr_name.len() {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    for (to, from) in request.ifr_name.iter_mut().zip(interface.bytes()) {
        *to = from.cast_signed();
    }
    request.ifr_ifru.ifru_data = place.as_mut_ptr().cast();
    // SAFETY: the kernel reads and writes one `ifreq` and the place it points to, which the caller makes
    // large enough for the command; only `devices::ioctl` calls this.
    let result =
        unsafe { libc::ioctl(socket.as_raw_fd(), libc::SIOCETHTOOL as _, &raw mut request) };
    if result == -1 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// Moves this thread into a network namespace.
pub(super) fn enter_network(namespace: BorrowedFd<'_>) -> io::Result<()> {
    // SAFETY: setns takes a descriptor and a flag and touches no memory of ours.
    let result = unsafe { libc::setns(namespace.as_raw_fd(), libc::CLONE_NEWNET) };
    if result == -1 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// A copy of another process's descriptor: `pidfd_open(2)` and `pidfd_getfd(2)`, Linux 5.6.
pub(super) fn copy_of_descriptor(process: u32, descriptor: u32) -> io::Result<OwnedFd> {
    // SAFETY: both calls take numbers and make a descriptor that is nobody else's.
    unsafe {
        let process = new(libc::syscall(libc::SYS_pidfd_open, process, 0))?;
        new(libc::syscall(libc::SYS_pidfd_getfd, process.as_raw_fd(), descriptor, 0))
    }
}

/// # Safety
/// `result` must be what a call returned that makes a descriptor.
unsafe fn new(result: libc::c_long) -> io::Result<OwnedFd> {
    if result < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: new, and nobody else's.
    Ok(unsafe { OwnedFd::from_raw_fd(result as i32) })
}
