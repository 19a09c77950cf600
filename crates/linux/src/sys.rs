//! System calls that the standard library has no name for, each behind a safe signature.
//!
//! All `unsafe` of the recorders is here and in `memory`. Options of sockets pass as
//! bytes in the machine's order, so no call depends on the layout of a structure of ours.

#![expect(unsafe_code, reason = "each function wraps one system call")]

use std::ffi::{CStr, CString};
use std::io;
use std::mem::size_of;
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;
use std::ptr::{null, null_mut};

/// A clock of the kernel.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Clock {
    /// `CLOCK_REALTIME`: what captures are stamped with.
    Real,
    /// `CLOCK_MONOTONIC`.
    Monotonic,
    /// `CLOCK_BOOTTIME`: monotonic, and goes on in suspend.
    Boot,
}

impl Clock {
    const fn id(self) -> libc::clockid_t {
        match self {
            Self::Real => libc::CLOCK_REALTIME,
            Self::Monotonic => libc::CLOCK_MONOTONIC,
            Self::Boot => libc::CLOCK_BOOTTIME,
        }
    }

    /// Nanoseconds since the clock's zero.
    pub fn now(self) -> u64 {
        let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
        // SAFETY: `time` is a valid place to write to; these clocks exist on every kernel we run on.
        unsafe { libc::clock_gettime(self.id(), &raw mut time) };
        time.tv_sec as u64 * NS_PER_S + time.tv_nsec as u64
    }

    /// Sleeps until this clock shows `at` nanoseconds; returns at once if it does already.
    pub fn sleep_until(self, at: u64) {
        let time = timespec(at);
        loop {
            // SAFETY: `time` is valid; the remaining time is not asked for.
            let refused = unsafe {
                libc::clock_nanosleep(self.id(), libc::TIMER_ABSTIME, &raw const time, null_mut())
            };
            if refused != libc::EINTR {
                return;
            }
        }
    }
}

/// Nanoseconds in a second.
pub(crate) const NS_PER_S: u64 = 1_000_000_000;

const fn timespec(ns: u64) -> libc::timespec {
    libc::timespec { tv_sec: (ns / NS_PER_S) as _, tv_nsec: (ns % NS_PER_S) as _ }
}

/// Lets the timers of this thread, and of those it starts, fire without the usual 50 us of slack.
pub(crate) fn fine_timers() {
    // SAFETY: PR_SET_TIMERSLACK takes a number and touches no memory.
    unsafe { libc::prctl(libc::PR_SET_TIMERSLACK, 1 as libc::c_ulong) };
}

/// Descendants whose parent has ended become children of this process, not of init. Where the kernel refuses, they do
/// not.
pub(crate) fn adopt_orphans() {
    // SAFETY: PR_SET_CHILD_SUBREAPER takes a number and touches no memory.
    unsafe { libc::prctl(libc::PR_SET_CHILD_SUBREAPER, 1 as libc::c_ulong) };
}

/// Puts this thread, and those it starts, under `SCHED_FIFO`.
pub(crate) fn run_first(priority: i32) -> io::Result<()> {
    // The raw call, because musl's wrapper always refuses.
    // SAFETY: the kernel's `sched_param` is one int, which is read only; 0 is the calling thread.
    check(unsafe {
        libc::syscall(libc::SYS_sched_setscheduler, 0, libc::SCHED_FIFO, &raw const priority)
    } as i32)
    .map(drop)
}

/// An extended attribute of a file, its first bytes.
pub(crate) fn attribute(file: &Path, name: &CStr) -> io::Result<Vec<u8>> {
    let file = CString::new(file.as_os_str().as_bytes())?;
    let mut value = vec![0; 64];
    // SAFETY: both strings end with a zero, and no more than `value` holds is written to it.
    let length = check(unsafe {
        libc::getxattr(file.as_ptr(), name.as_ptr(), value.as_mut_ptr().cast(), value.len())
    } as i32)?;
    value.truncate(length as usize);
    Ok(value)
}

/// Nanoseconds of processor time that this thread has taken.
pub(crate) fn taken_by_this_thread() -> u64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `time` is a valid place to write to; every thread has this clock.
    unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &raw mut time) };
    time.tv_sec as u64 * NS_PER_S + time.tv_nsec as u64
}

/// How often this thread went to sleep of its own accord (`ru_nvcsw`, getrusage(2)).
pub(crate) fn sleeps() -> u64 {
    // SAFETY: all zeros is a valid `rusage`, and the kernel writes just one of them.
    let usage = unsafe {
        let mut usage: libc::rusage = std::mem::zeroed();
        libc::getrusage(libc::RUSAGE_THREAD, &raw mut usage);
        usage
    };
    usage.ru_nvcsw as u64
}

/// setsockopt(2) of an option that is plain bytes.
pub(crate) fn set_option(
    fd: BorrowedFd<'_>,
    level: i32,
    name: i32,
    value: &[u8],
) -> io::Result<()> {
    // SAFETY: the kernel reads at most `value.len()` bytes from `value`.
    check(unsafe {
        libc::setsockopt(
            fd.as_raw_fd(),
            level,
            name,
            value.as_ptr().cast(),
            value.len() as libc::socklen_t,
        )
    })
    .map(drop)
}

/// getsockopt(2) into `value`; how many bytes there were.
pub(crate) fn option(
    fd: BorrowedFd<'_>,
    level: i32,
    name: i32,
    value: &mut [u8],
) -> io::Result<usize> {
    let mut length = value.len() as libc::socklen_t;
    // SAFETY: the kernel writes at most `length` bytes, which is what `value` holds.
    check(unsafe {
        libc::getsockopt(fd.as_raw_fd(), level, name, value.as_mut_ptr().cast(), &raw mut length)
    })?;
    Ok(length as usize)
}

/// recv(2) of one message; how long it was, which may be more than `place` holds.
pub(crate) fn receive(fd: BorrowedFd<'_>, place: &mut [u8]) -> io::Result<usize> {
    loop {
        // SAFETY: the kernel writes at most `place.len()` bytes to `place`.
        let length = unsafe {
            libc::recv(fd.as_raw_fd(), place.as_mut_ptr().cast(), place.len(), libc::MSG_TRUNC)
        };
        match usize::try_from(length).map_err(|_| io::Error::last_os_error()) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            length => return length,
        }
    }
}

/// A number that an ioctl gives, as `SIOCOUTQ`.
pub(crate) fn queue(fd: BorrowedFd<'_>, request: Queue) -> io::Result<u32> {
    let mut bytes: libc::c_int = 0;
    // SAFETY: these requests write one int.
    check(unsafe { libc::ioctl(fd.as_raw_fd(), request as _, &raw mut bytes) })?;
    Ok(bytes as u32)
}

/// What [`queue`] can ask (Linux `include/uapi/linux/sockios.h`, tcp(7)).
#[derive(Clone, Copy, Debug)]
pub(crate) enum Queue {
    /// `SIOCINQ`: received and not read.
    Unread = 0x541B,
    /// `SIOCOUTQ`: written and not acknowledged.
    Unacked = 0x5411,
    /// `SIOCOUTQNSD`: written and not sent.
    Unsent = 0x894B,
}

/// Readable as soon as the process was asked to end (SIGTERM, SIGINT, SIGHUP), or a part of it by
/// the holder of an [`Ender`].
#[derive(Debug)]
pub struct Stop(OwnedFd);

/// Asks for the end when it is dropped.
#[derive(Debug)]
pub struct Ender {
    _open: io::PipeWriter,
}

impl Stop {
    /// From now on these signals interrupt neither this thread nor those it starts: they are
    /// heard by [`Stop`] alone. To be called before any thread is started.
    ///
    /// # Errors
    /// What `signalfd` refuses: no descriptor left.
    pub fn listen() -> io::Result<Self> {
        // SAFETY: all zeros is a valid signal set, which `sigemptyset` then prepares; the
        // descriptor is new and belongs to nobody else.
        unsafe {
            let mut signals: libc::sigset_t = std::mem::zeroed();
            libc::sigemptyset(&raw mut signals);
            for signal in [libc::SIGTERM, libc::SIGINT, libc::SIGHUP] {
                libc::sigaddset(&raw mut signals, signal);
            }
            let refused = libc::pthread_sigmask(libc::SIG_BLOCK, &raw const signals, null_mut());
            if refused != 0 {
                return Err(io::Error::from_raw_os_error(refused));
            }
            let fd = check(libc::signalfd(-1, &raw const signals, libc::SFD_CLOEXEC))?;
            Ok(Self(OwnedFd::from_raw_fd(fd)))
        }
    }

    /// One that nobody but the holder of its other half asks: by letting go of it.
    ///
    /// # Errors
    /// No descriptor left.
    pub fn by_hand() -> io::Result<(Self, Ender)> {
        let (reader, writer) = io::pipe()?;
        Ok((Self(reader.into()), Ender { _open: writer }))
    }

    /// Ends [`Self::listen`]: signals have their usual effect again; those that were heard are done with.
    pub fn release(self) {
        let mut heard = [0_u8; size_of::<libc::signalfd_siginfo>()];
        let mut file = std::fs::File::from(self.0);
        let is_heard = |file: &std::fs::File| {
            use std::os::fd::AsFd as _;
            readable([file.as_fd()], Some(0)).is_ok_and(|ready| ready[0])
        };
        while is_heard(&file) && io::Read::read(&mut file, &mut heard).is_ok_and(|read| read > 0) {}
        // SAFETY: all zeros is a valid signal set, which `sigemptyset` then prepares.
        unsafe {
            let mut signals: libc::sigset_t = std::mem::zeroed();
            libc::sigemptyset(&raw mut signals);
            for signal in [libc::SIGTERM, libc::SIGINT, libc::SIGHUP] {
                libc::sigaddset(&raw mut signals, signal);
            }
            libc::pthread_sigmask(libc::SIG_UNBLOCK, &raw const signals, null_mut());
        }
    }

    /// Waits until the process is asked to end.
    pub fn wait(&self) {
        while !self.within(None).unwrap_or(true) {}
    }

    /// Whether the process was asked to end; waits at most `timeout_ns` for it, `None` for ever.
    ///
    /// # Errors
    /// What `ppoll` refuses.
    pub fn within(&self, timeout_ns: Option<u64>) -> io::Result<bool> {
        use std::os::fd::AsFd as _;
        Ok(readable([self.0.as_fd()], timeout_ns)?[0])
    }
}

impl std::os::fd::AsFd for Stop {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

/// Asks a process to end (SIGTERM).
pub fn ask_to_end(process: u32) {
    // SAFETY: takes numbers; a process that has gone is no fault.
    unsafe { libc::kill(process as i32, libc::SIGTERM) };
}

/// Which of `fds` can be read or are broken; waits at most `timeout_ns` for one, `None` for ever.
pub(crate) fn readable<const N: usize>(
    fds: [BorrowedFd<'_>; N],
    timeout_ns: Option<u64>,
) -> io::Result<[bool; N]> {
    let mut asked =
        fds.map(|fd| libc::pollfd { fd: fd.as_raw_fd(), events: libc::POLLIN, revents: 0 });
    let time = timespec(timeout_ns.unwrap_or(0));
    let limit = if timeout_ns.is_some() { &raw const time } else { null() };
    // SAFETY: `asked` has N entries and `time` outlives the call.
    let ready = unsafe { libc::ppoll(asked.as_mut_ptr(), N as libc::nfds_t, limit, null()) };
    match check(ready) {
        Err(error) if error.kind() == io::ErrorKind::Interrupted => Ok([false; N]),
        Err(error) => Err(error),
        Ok(_) => Ok(asked.map(|fd| fd.revents != 0)),
    }
}

/// One instruction of a packet filter in the classic language (bpf(4)): code, jumps, operand.
pub(crate) type Instruction = libc::sock_filter;

/// Attaches a filter to a socket, in the place of the one before.
pub(crate) fn attach_filter(fd: BorrowedFd<'_>, program: &[Instruction]) -> io::Result<()> {
    let program = libc::sock_fprog {
        len: program.len() as libc::c_ushort,
        filter: program.as_ptr().cast_mut(),
    };
    // SAFETY: the kernel copies `len` instructions from `filter` and writes nothing.
    check(unsafe {
        libc::setsockopt(
            fd.as_raw_fd(),
            libc::SOL_SOCKET,
            libc::SO_ATTACH_FILTER,
            (&raw const program).cast(),
            size_of::<libc::sock_fprog>() as libc::socklen_t,
        )
    })
    .map(drop)
}

/// The number of an interface of this network namespace.
pub(crate) fn interface_index(name: &str) -> io::Result<i32> {
    let name = CString::new(name)?;
    // SAFETY: `name` ends in a zero.
    let index = unsafe { libc::if_nametoindex(name.as_ptr()) };
    if index == 0 { Err(io::Error::last_os_error()) } else { Ok(index as i32) }
}

/// The name of an interface of this network namespace.
pub(crate) fn interface_name(index: i32) -> io::Result<String> {
    let mut name = [0; libc::IFNAMSIZ];
    // SAFETY: the place has room for the longest name and its end.
    let found = unsafe { libc::if_indextoname(index as u32, name.as_mut_ptr()) };
    if found.is_null() {
        return Err(io::Error::last_os_error());
    }
    let bytes = name.iter().map(|&letter| letter as u8).take_while(|&byte| byte != 0);
    Ok(String::from_utf8_lossy(&bytes.collect::<Vec<_>>()).into_owned())
}

/// Binds a packet socket to an interface (0 is all) and a protocol (0 is none yet); the
/// interface's hardware type.
pub(crate) fn bind_packets(fd: BorrowedFd<'_>, index: i32, protocol: u16) -> io::Result<u16> {
    // SAFETY: all zeros is a valid `sockaddr_ll`.
    let mut at: libc::sockaddr_ll = unsafe { std::mem::zeroed() };
    at.sll_family = libc::AF_PACKET as u16;
    at.sll_protocol = protocol.to_be();
    at.sll_ifindex = index;
    let mut length = size_of_val(&at) as libc::socklen_t;
    // SAFETY: the kernel reads `length` bytes of `at`.
    check(unsafe { libc::bind(fd.as_raw_fd(), (&raw const at).cast(), length) })?;
    // SAFETY: the kernel writes at most `length` bytes to `at`.
    check(unsafe { libc::getsockname(fd.as_raw_fd(), (&raw mut at).cast(), &raw mut length) })?;
    Ok(at.sll_hatype)
}

/// A file system mounted nowhere: its root, which goes when it is closed (Linux 5.2).
pub(crate) fn detached_mount(kind: &CStr) -> io::Result<OwnedFd> {
    let none = null::<libc::c_char>();
    // SAFETY: `kind` ends in a zero; no other memory is read. Descriptors are new and ours.
    unsafe {
        let context = own(libc::syscall(libc::SYS_fsopen, kind.as_ptr(), FSOPEN_CLOEXEC))?;
        let fd = context.as_raw_fd();
        check(libc::syscall(libc::SYS_fsconfig, fd, FSCONFIG_CMD_CREATE, none, none, 0) as i32)?;
        own(libc::syscall(libc::SYS_fsmount, fd, FSMOUNT_CLOEXEC, 0))
    }
}

/// Linux `include/uapi/linux/mount.h`.
const FSOPEN_CLOEXEC: libc::c_int = 1;
const FSMOUNT_CLOEXEC: libc::c_int = 1;
const FSCONFIG_CMD_CREATE: libc::c_int = 6;

/// A tracepoint on one processor, for all processes, stamped by `CLOCK_MONOTONIC`; switched off.
pub(crate) fn perf_tracepoint(id: u16, processor: u32) -> io::Result<OwnedFd> {
    // `perf_event_attr` in its form of Linux 4.1, by offset: see perf_event_open(2).
    let mut attributes = [0_u8; 112];
    let mut put = |at: usize, value: &[u8]| attributes[at..at + value.len()].copy_from_slice(value);
    put(0, &PERF_TYPE_TRACEPOINT.to_ne_bytes());
    put(4, &112_u32.to_ne_bytes());
    put(8, &u64::from(id).to_ne_bytes());
    put(16, &1_u64.to_ne_bytes());
    put(24, &(PERF_SAMPLE_TIME | PERF_SAMPLE_RAW).to_ne_bytes());
    put(40, &(DISABLED | WATERMARK | USE_CLOCKID).to_ne_bytes());
    // Nobody polls: rings are read at fixed times.
    put(48, &u32::MAX.to_ne_bytes());
    // Not CLOCK_REALTIME, which perf refuses to tracepoints: it cannot be read in an NMI
    // (perf_event_set_clock).
    put(92, &libc::CLOCK_MONOTONIC.to_ne_bytes());
    // SAFETY: the kernel reads the 112 bytes that the attributes say they have.
    unsafe {
        own(libc::syscall(
            libc::SYS_perf_event_open,
            attributes.as_ptr(),
            -1,
            processor,
            -1,
            PERF_FLAG_FD_CLOEXEC,
        ))
    }
}

/// Records only what passes a filter, as `sport==80`.
pub(crate) fn perf_filter(event: BorrowedFd<'_>, filter: &str) -> io::Result<()> {
    let filter = CString::new(filter)?;
    // SAFETY: the kernel reads the text up to its zero.
    check(unsafe { libc::ioctl(event.as_raw_fd(), PERF_SET_FILTER as _, filter.as_ptr()) })
        .map(drop)
}

/// Lets an event write to the ring of another.
pub(crate) fn perf_output(event: BorrowedFd<'_>, ring: BorrowedFd<'_>) -> io::Result<()> {
    // SAFETY: takes a descriptor.
    check(unsafe { libc::ioctl(event.as_raw_fd(), PERF_SET_OUTPUT as _, ring.as_raw_fd()) })
        .map(drop)
}

/// Switches an event on or off.
pub(crate) fn perf_switch(event: BorrowedFd<'_>, on: bool) -> io::Result<()> {
    let request = if on { PERF_ENABLE } else { PERF_DISABLE };
    // SAFETY: takes a number.
    check(unsafe { libc::ioctl(event.as_raw_fd(), request as _, 0) }).map(drop)
}

/// Linux `include/uapi/linux/perf_event.h`.
const PERF_TYPE_TRACEPOINT: u32 = 2;
const PERF_SAMPLE_TIME: u64 = 1 << 2;
const PERF_SAMPLE_RAW: u64 = 1 << 10;
const DISABLED: u64 = 1;
const WATERMARK: u64 = 1 << 14;
const USE_CLOCKID: u64 = 1 << 25;
const PERF_FLAG_FD_CLOEXEC: libc::c_ulong = 8;
const PERF_ENABLE: i32 = 0x2400;
const PERF_DISABLE: i32 = 0x2401;
const PERF_SET_OUTPUT: i32 = 0x2405;
const PERF_SET_FILTER: i32 = 0x4008_2406;

/// A new descriptor of a raw system call.
///
/// # Safety
/// `result` must be what a call returned that makes a descriptor.
unsafe fn own(result: libc::c_long) -> io::Result<OwnedFd> {
    let fd = check(result as i32)?;
    // SAFETY: new, and nobody else's.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

/// Turns the -1 of a system call into its error.
pub(crate) fn check(result: i32) -> io::Result<i32> {
    if result == -1 { Err(io::Error::last_os_error()) } else { Ok(result) }
}
