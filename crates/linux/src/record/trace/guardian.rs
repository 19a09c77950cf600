//! Removes an instance of the tracing system when its owner is gone, however it went.
//!
//! A child in a session of its own waits for the end of a pipe that its parent holds open; the
//! kernel closes it even after SIGKILL. The child makes system calls only, because after a fork
//! in a process with threads nothing else is safe.

#![expect(unsafe_code, reason = "fork, and what its child may do")]

use std::ffi::CString;
use std::io;
use std::os::fd::{AsRawFd as _, BorrowedFd, OwnedFd, RawFd};

/// A child that keeps watch; dropping it lets it do its work and waits for its end.
#[derive(Debug)]
pub(super) struct Guardian {
    child: libc::pid_t,
    alive: Option<OwnedFd>,
}

impl Guardian {
    /// Watches over the folder `name` below `root`.
    pub(super) fn over(root: BorrowedFd<'_>, name: &str) -> io::Result<Self> {
        let name = CString::new(name)?;
        let (watch, alive) = io::pipe()?;
        // SAFETY: the child calls `keep_watch` alone, which makes system calls only and does
        // not return.
        let child = unsafe { libc::fork() };
        if child == -1 {
            return Err(io::Error::last_os_error());
        }
        if child == 0 {
            keep_watch(watch.as_raw_fd(), root.as_raw_fd(), &name);
        }
        Ok(Self { child, alive: Some(alive.into()) })
    }
}

impl Drop for Guardian {
    fn drop(&mut self) {
        self.alive = None;
        // SAFETY: our own child, which ends now that the pipe is closed.
        unsafe { libc::waitpid(self.child, std::ptr::null_mut(), 0) };
    }
}

fn keep_watch(pipe: RawFd, root: RawFd, name: &CString) -> ! {
    let mut byte = 0_u8;
    // SAFETY: system calls on descriptors of this process and memory of this function, or what
    // was there before the fork.
    unsafe {
        // A signal to our parent's terminal or group is none of ours.
        libc::setsid();
        // Nobody shall wait for an end of ours: only the pipe and the folder stay open.
        libc::dup2(pipe, 0);
        libc::dup2(root, 1);
        libc::dup2(root, 2);
        if libc::syscall(libc::SYS_close_range, 3, libc::c_uint::MAX, 0) != 0 {
            // Before Linux 5.9.
            for fd in 3..65_536 {
                libc::close(fd);
            }
        }
        while libc::read(0, (&raw mut byte).cast(), 1) == -1
            && io::Error::last_os_error().kind() == io::ErrorKind::Interrupted
        {}
        for _ in 0..TRIES {
            let removed = libc::unlinkat(1, name.as_ptr(), libc::AT_REMOVEDIR) == 0;
            let busy = io::Error::last_os_error().raw_os_error() == Some(libc::EBUSY);
            if removed || !busy {
                break;
            }
            let pause = libc::timespec { tv_sec: 0, tv_nsec: 20_000_000 };
            libc::nanosleep(&raw const pause, std::ptr::null_mut());
        }
        libc::_exit(0)
    }
}

/// Ours: the kernel closes a killed process's files within milliseconds; this waits 10 s.
const TRIES: u32 = 500;
