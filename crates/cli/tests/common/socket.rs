//! Sockets whose program sets what the standard library does not.

#![expect(unsafe_code, reason = "setsockopt has no safe way in")]

use std::io;
use std::os::fd::AsRawFd;

/// Sets an option of `SOL_SOCKET` that is a number: `SO_SNDBUF`, `SO_RCVBUF`.
pub(crate) fn set(socket: &impl AsRawFd, option: libc::c_int, value: libc::c_int) {
    // SAFETY: the value outlives the call, and its size is told.
    let done = unsafe {
        libc::setsockopt(
            socket.as_raw_fd(),
            libc::SOL_SOCKET,
            option,
            (&raw const value).cast(),
            size_of_val(&value) as libc::socklen_t,
        )
    };
    assert_eq!(done, 0, "{}", io::Error::last_os_error());
}
