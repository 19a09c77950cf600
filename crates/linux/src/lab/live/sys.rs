//! System calls of this backend, each behind a safe signature.
//!
//! All `unsafe` of the live lab is here.

#![expect(unsafe_code, reason = "each function wraps one system call")]

use std::fs::{File, OpenOptions};
use std::io;
use std::os::fd::{AsRawFd as _, BorrowedFd, OwnedFd, RawFd};
use std::os::unix::fs::OpenOptionsExt as _;
use std::os::unix::process::CommandExt as _;
use std::process::Command;

/// Nanoseconds of `CLOCK_MONOTONIC`.
pub(super) fn monotonic_ns() -> u64 {
    clock(libc::CLOCK_MONOTONIC)
}

/// Nanoseconds since 1970 (`CLOCK_REALTIME`).
pub(super) fn real_ns() -> u64 {
    clock(libc::CLOCK_REALTIME)
}

/// Nanoseconds that this thread has been on a processor.
pub(super) fn thread_busy_ns() -> u64 {
    clock(libc::CLOCK_THREAD_CPUTIME_ID)
}

fn clock(id: libc::clockid_t) -> u64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `time` is a valid place to write to; these clocks exist since Linux 2.6.
    unsafe { libc::clock_gettime(id, &raw mut time) };
    time.tv_sec.cast_unsigned() * 1_000_000_000 + time.tv_nsec.cast_unsigned()
}

/// Waits until one of two files can be read or is at its end, at most so long; whether one is.
pub(super) fn wait_readable(fds: [BorrowedFd<'_>; 2], at_most_ns: u64) -> io::Result<bool> {
    let mut polled =
        fds.map(|fd| libc::pollfd { fd: fd.as_raw_fd(), events: libc::POLLIN, revents: 0 });
    let limit = libc::timespec {
        tv_sec: (at_most_ns / 1_000_000_000).cast_signed(),
        tv_nsec: (at_most_ns % 1_000_000_000).cast_signed(),
    };
    // SAFETY: `polled` has two entries and `limit` outlives the call; no mask is given.
    let ready = unsafe { libc::ppoll(polled.as_mut_ptr(), 2, &raw const limit, std::ptr::null()) };
    match check(ready) {
        Err(error) if error.kind() == io::ErrorKind::Interrupted => Ok(false),
        ready => ready.map(|ready| ready > 0),
    }
}

/// Lets this thread's timers fire at once instead of up to 50 us late.
pub(super) fn fine_timers() -> io::Result<()> {
    // SAFETY: PR_SET_TIMERSLACK takes a number and touches no memory.
    check(unsafe { libc::prctl(libc::PR_SET_TIMERSLACK, 1 as libc::c_ulong) }).map(drop)
}

/// Puts this thread under `SCHED_FIFO`.
pub(super) fn run_first(priority: i32) -> io::Result<()> {
    // The raw call, because musl's wrapper always refuses; and the kernel's own structure, one
    // number, because musl's has more.
    // SAFETY: the number is valid and only read; 0 is the calling thread.
    let result = unsafe {
        libc::syscall(libc::SYS_sched_setscheduler, 0, libc::SCHED_FIFO, &raw const priority)
    };
    check(result as i32).map(drop)
}

/// Keeps all memory of this process in memory, so that no page has to be fetched on time.
pub(super) fn lock_memory() -> io::Result<()> {
    // SAFETY: mlockall takes flags and touches no memory of ours.
    check(unsafe { libc::mlockall(libc::MCL_CURRENT | libc::MCL_FUTURE) }).map(drop)
}

/// Lets the kernel kill this process when the thread that started it is gone.
fn die_with_parent() -> io::Result<()> {
    // SAFETY: PR_SET_PDEATHSIG takes a number and touches no memory.
    check(unsafe { libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL as libc::c_ulong) }).map(drop)
}

/// Whose rights this process has: its effective user and group.
pub(super) fn user_and_group() -> (u32, u32) {
    // SAFETY: these calls take nothing and cannot fail.
    unsafe { (libc::geteuid(), libc::getegid()) }
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
        Own::Users => libc::CLONE_NEWUSER,
        Own::Processes => libc::CLONE_NEWPID,
        Own::Network => libc::CLONE_NEWNET,
    };
    // SAFETY: unshare takes flags and touches no memory of ours.
    check(unsafe { libc::unshare(flag) }).map(drop)
}

/// Moves this thread into a network namespace.
pub(super) fn enter_network(namespace: BorrowedFd<'_>) -> io::Result<()> {
    enter_raw(namespace.as_raw_fd())
}

fn enter_raw(namespace: RawFd) -> io::Result<()> {
    // SAFETY: setns takes a descriptor and a flag and touches no memory of ours.
    check(unsafe { libc::setns(namespace, libc::CLONE_NEWNET) }).map(drop)
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
    // SAFETY: between fork and exec only setns and prctl are called, which are async-signal-safe.
    unsafe {
        command.pre_exec(move || {
            die_with_parent()?;
            enter_raw(namespace)
        });
    }
}

/// Has the program start a session of its own, out of reach of the terminal's signals.
pub(super) fn start_apart(command: &mut Command) {
    // SAFETY: between fork and exec only setsid is called, which is async-signal-safe.
    unsafe {
        command.pre_exec(|| check(libc::setsid()).map(drop));
    }
}

/// Has the program die when the thread that starts it does.
pub(super) fn start_guarded(command: &mut Command) {
    // SAFETY: between fork and exec only prctl is called, which is async-signal-safe.
    unsafe {
        command.pre_exec(die_with_parent);
    }
}

/// Kills a child that was not waited for yet.
pub(super) fn kill(process: u32) {
    // SAFETY: as for `ask_to_end`.
    unsafe { libc::kill(process.cast_signed(), libc::SIGKILL) };
}

/// Asks a process, by its number, to end.
pub(super) fn ask_to_end(process: u32) {
    // SAFETY: kill takes numbers; that the process is gone already is no error to us. A child that
    // was not waited for keeps its number, so no stranger is met.
    unsafe { libc::kill(process.cast_signed(), libc::SIGTERM) };
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
    // SAFETY: all zeros is a valid `ifreq`.
    let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
    // The last byte stays 0.
    for (place, byte) in request.ifr_name[..libc::IFNAMSIZ - 1].iter_mut().zip(name.bytes()) {
        *place = byte.cast_signed();
    }
    request.ifr_ifru.ifru_flags = flags as libc::c_short;
    // SAFETY: TUNSETIFF reads and writes one `ifreq`.
    check(unsafe { libc::ioctl(device.as_raw_fd(), libc::TUNSETIFF as _, &raw mut request) })?;
    let offloads = if offload { libc::TUN_F_CSUM | libc::TUN_F_TSO4 | libc::TUN_F_TSO6 } else { 0 };
    let offloads = libc::c_ulong::from(offloads);
    // SAFETY: TUNSETOFFLOAD takes a number.
    check(unsafe { libc::ioctl(device.as_raw_fd(), libc::TUNSETOFFLOAD as _, offloads) })?;
    Ok(device)
}

/// Turns the -1 of a system call into its error.
fn check(result: i32) -> io::Result<i32> {
    if result == -1 { Err(io::Error::last_os_error()) } else { Ok(result) }
}
