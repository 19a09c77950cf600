//! System calls of this backend, each behind a safe signature.
//!
//! All `unsafe` of the live lab is here.

#![expect(unsafe_code, reason = "each function wraps one system call")]

use std::fs::{File, OpenOptions};
use std::io;
use std::os::fd::{AsRawFd as _, BorrowedFd, OwnedFd};
use std::os::unix::fs::OpenOptionsExt as _;
use std::os::unix::process::CommandExt as _;
use std::process::Command;

use rustix::mm::{MlockAllFlags, mlockall};
use rustix::process::{Signal, getegid, geteuid, set_parent_process_death_signal, setsid};
use rustix::thread::{UnshareFlags, unshare_unsafe};

use crate::sys::{Clock, check, ethtool, readable, request_for};

pub(super) use crate::sys::{
    ask_to_end, enter_network, fine_timers, kill, run_first, taken_by_this_thread as thread_busy_ns,
};

/// Nanoseconds of `CLOCK_MONOTONIC`.
pub(super) fn monotonic_ns() -> u64 {
    Clock::Monotonic.now()
}

/// Nanoseconds since 1970 (`CLOCK_REALTIME`).
pub(super) fn real_ns() -> u64 {
    Clock::Real.now()
}

/// Waits until one of two files can be read or is at its end, at most so long; whether one is.
pub(super) fn wait_readable(fds: [BorrowedFd<'_>; 2], at_most_ns: u64) -> io::Result<bool> {
    Ok(readable(fds, Some(at_most_ns))?.contains(&true))
}

/// Keeps all memory of this process in memory, so that no page has to be fetched on time.
pub(super) fn lock_memory() -> io::Result<()> {
    Ok(mlockall(MlockAllFlags::CURRENT | MlockAllFlags::FUTURE)?)
}

/// Lets the kernel kill this process when the thread that started it is gone.
fn die_with_parent() -> io::Result<()> {
    Ok(set_parent_process_death_signal(Some(Signal::KILL))?)
}

/// Whose rights this process has: its effective user and group.
pub(super) fn user_and_group() -> (u32, u32) {
    (geteuid().as_raw(), getegid().as_raw())
}

/// What to take a copy of, apart from everyone else.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Own {
    /// A user namespace, where an ordinary user has rights over the others.
    Users,
    /// A process namespace, for children: they die with its first process.
    Processes,
    /// A network namespace.
    Network,
}

/// unshare(2).
pub(super) fn unshare(own: Own) -> io::Result<()> {
    let flag = match own {
        Own::Users => UnshareFlags::NEWUSER,
        Own::Processes => UnshareFlags::NEWPID,
        Own::Network => UnshareFlags::NEWNET,
    };
    // SAFETY: descriptors stay shared, which is what could surprise other threads.
    Ok(unsafe { unshare_unsafe(flag) }?)
}

/// The network namespace of this thread, held open.
pub(super) fn own_network() -> io::Result<OwnedFd> {
    File::open("/proc/thread-self/ns/net").map(OwnedFd::from)
}

/// Has the program start in a network namespace, and die when the thread that starts it does.
///
/// `namespace` must stay open until it was started.
pub(super) fn start_in(command: &mut Command, namespace: BorrowedFd<'_>) {
    let namespace = namespace.as_raw_fd();
    // SAFETY: between fork and exec only setns and prctl are called, which are async-signal-safe; the caller keeps the
    // namespace open.
    unsafe {
        command.pre_exec(move || {
            die_with_parent()?;
            enter_network(BorrowedFd::borrow_raw(namespace))
        });
    }
}

/// This process's user namespace, by the number that `/proc` knows us by.
pub(super) fn own_users() -> String {
    let own = std::fs::read_link("/proc/self").unwrap_or_default();
    format!("/proc/{}/ns/user", own.display())
}

/// Has the program start in these namespaces, of users first.
///
/// They must stay open until it was started.
pub(super) fn start_within(
    command: &mut Command,
    users: Option<BorrowedFd<'_>>,
    network: BorrowedFd<'_>,
) {
    let (users, network) = (users.map(|users| users.as_raw_fd()), network.as_raw_fd());
    // SAFETY: between fork and exec only setns is called, which is async-signal-safe; the caller keeps both open.
    unsafe {
        command.pre_exec(move || {
            if let Some(users) = users {
                check(libc::setns(users, libc::CLONE_NEWUSER))?;
            }
            enter_network(BorrowedFd::borrow_raw(network))
        });
    }
}

/// Has the program start a session of its own, out of reach of the terminal's signals.
pub(super) fn start_apart(command: &mut Command) {
    // SAFETY: between fork and exec only setsid is called, which is async-signal-safe.
    unsafe {
        command.pre_exec(|| Ok(setsid().map(drop)?));
    }
}

/// Has the program die when the thread that starts it does.
pub(super) fn start_guarded(command: &mut Command) {
    // SAFETY: between fork and exec only prctl is called, which is async-signal-safe.
    unsafe {
        command.pre_exec(die_with_parent);
    }
}

/// Opens a TUN device in this thread's network namespace; it goes when the file is closed.
///
/// With `offload` packets are led by a virtio-net header, and the kernel hands over and takes
/// super-packets with unfinished checksums.
pub(super) fn open_tun(name: &str, offload: bool) -> io::Result<File> {
    let device = OpenOptions::new()
        .read(true)
        .write(true)
        .custom_flags(libc::O_NONBLOCK | libc::O_CLOEXEC)
        .open("/dev/net/tun")?;
    let mut flags = libc::IFF_TUN | libc::IFF_NO_PI;
    if offload {
        flags |= libc::IFF_VNET_HDR | libc::IFF_NAPI;
    }
    let mut request = request_for(name)?;
    request.ifr_ifru.ifru_flags = flags as libc::c_short;
    // SAFETY: TUNSETIFF reads and writes one `ifreq`.
    check(unsafe { libc::ioctl(device.as_raw_fd(), libc::TUNSETIFF as _, &raw mut request) })?;
    let offloads = if offload { libc::TUN_F_CSUM | libc::TUN_F_TSO4 | libc::TUN_F_TSO6 } else { 0 };
    let offloads = libc::c_ulong::from(offloads);
    // SAFETY: TUNSETOFFLOAD takes a number.
    check(unsafe { libc::ioctl(device.as_raw_fd(), libc::TUNSETOFFLOAD as _, offloads) })?;
    Ok(device)
}

/// Has an interface of this thread's network namespace neither cut nor join segments.
pub(super) fn plain_segments(device: &str) -> io::Result<()> {
    // ETHTOOL_STSO, ETHTOOL_SGSO, ETHTOOL_SGRO.
    for command in [0x1f_u32, 0x24, 0x2c] {
        // `struct ethtool_value` (Linux `include/uapi/linux/ethtool.h`): the command, and 0 for off.
        let mut value = [0; 8];
        value[..4].copy_from_slice(&command.to_ne_bytes());
        ethtool(device, &mut value)?;
    }
    Ok(())
}
