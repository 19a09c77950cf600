//! System calls that the standard library has no name for, each behind a safe signature.
//!
//! What rustix has is asked by it; the `unsafe` that is left is about options, signals, filters and events that
//! it does not know. Options of sockets pass as bytes in the machine's order, so no call depends on the layout of
//! a structure of ours.

#![expect(unsafe_code, reason = "each function wraps one system call")]

use std::ffi::{CStr, CString};
use std::io;
use std::mem::size_of;
use std::net::{Ipv4Addr, UdpSocket};
use std::num::NonZero;
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::path::Path;
use std::ptr::null_mut;

use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::{Errno, retry_on_intr};
use rustix::mount::{FsMountFlags, FsOpenFlags, MountAttrFlags, fsconfig_create, fsmount, fsopen};
use rustix::net::netdevice::{index_to_name, name_to_index};
use rustix::net::{RecvFlags, recv};
use rustix::process::{self, Pid, Signal};
use rustix::thread::{
    LinkNameSpaceType, clock_nanosleep_absolute, move_into_link_name_space, set_current_timer_slack,
};
use rustix::time::{ClockId, Timespec, clock_gettime};

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
    const fn id(self) -> ClockId {
        match self {
            Self::Real => ClockId::Realtime,
            Self::Monotonic => ClockId::Monotonic,
            Self::Boot => ClockId::Boottime,
        }
    }

    /// Nanoseconds since the clock's zero.
    pub fn now(self) -> u64 {
        nanoseconds(clock_gettime(self.id()))
    }

    /// Sleeps until this clock shows `at` nanoseconds; returns at once if it does already.
    pub fn sleep_until(self, at: u64) {
        while clock_nanosleep_absolute(self.id(), &timespec(at)) == Err(Errno::INTR) {}
    }
}

/// Nanoseconds in a second.
pub(crate) const NS_PER_S: u64 = 1_000_000_000;

const fn timespec(ns: u64) -> Timespec {
    Timespec { tv_sec: (ns / NS_PER_S).cast_signed(), tv_nsec: (ns % NS_PER_S).cast_signed() }
}

const fn nanoseconds(time: Timespec) -> u64 {
    time.tv_sec.cast_unsigned() * NS_PER_S + time.tv_nsec.cast_unsigned()
}

/// Lets the timers of this thread, and of those it starts, fire without the usual 50 us of slack.
pub(crate) fn fine_timers() -> io::Result<()> {
    Ok(set_current_timer_slack(Some(NonZero::<u64>::MIN))?)
}

/// Names this process, as `ps` and `ss -p` show it. Where the kernel refuses, it keeps its name.
pub(crate) fn name_process(name: &CStr) {
    // The name of a process is that of its first thread.
    let _ = rustix::thread::set_name(name);
}

/// Descendants whose parent has ended become children of this process, not of init. Where the kernel refuses, they do
/// not.
pub(crate) fn adopt_orphans() {
    let _ = process::set_child_subreaper(Some(process::getpid()));
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
    let mut value = vec![0; 64];
    let length = rustix::fs::getxattr(file, name, &mut value[..])?;
    value.truncate(length);
    Ok(value)
}

/// Nanoseconds of processor time that this thread has taken.
pub(crate) fn taken_by_this_thread() -> u64 {
    nanoseconds(clock_gettime(ClockId::ThreadCPUTime))
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
    let (_, length) = retry_on_intr(|| recv(fd, &mut *place, RecvFlags::TRUNC))?;
    Ok(length)
}

/// The same of one that has come already; else the error is `WouldBlock`.
pub(crate) fn receive_now(fd: BorrowedFd<'_>, place: &mut [u8]) -> io::Result<usize> {
    let flags = RecvFlags::TRUNC | RecvFlags::DONTWAIT;
    let (_, length) = retry_on_intr(|| recv(fd, &mut *place, flags))?;
    Ok(length)
}

/// Asks a netlink socket to say in words what is wrong.
pub(crate) fn explain_refusals(socket: BorrowedFd<'_>) -> io::Result<()> {
    let on = 1_i32;
    // SAFETY: the kernel reads an `i32`, which is what there is.
    check(unsafe {
        libc::setsockopt(
            socket.as_raw_fd(),
            libc::SOL_NETLINK,
            libc::NETLINK_EXT_ACK,
            (&raw const on).cast(),
            size_of_val(&on) as libc::socklen_t,
        )
    })
    .map(drop)
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

/// Asks a process to end (SIGTERM); one that has gone is no fault. A child that was not waited for keeps its number, so
/// no stranger is met.
pub fn ask_to_end(process: u32) {
    signal(process, Signal::TERM);
}

/// Kills a child that was not waited for yet.
pub(crate) fn kill(process: u32) {
    signal(process, Signal::KILL);
}

fn signal(process: u32, signal: Signal) {
    if let Some(process) = i32::try_from(process).ok().and_then(Pid::from_raw) {
        let _ = process::kill_process(process, signal);
    }
}

/// Which of `fds` can be read or are broken; waits at most `timeout_ns` for one, `None` for ever.
pub(crate) fn readable<const N: usize>(
    fds: [BorrowedFd<'_>; N],
    timeout_ns: Option<u64>,
) -> io::Result<[bool; N]> {
    let mut asked = fds.map(|fd| PollFd::from_borrowed_fd(fd, PollFlags::IN));
    match poll(&mut asked, timeout_ns.map(timespec).as_ref()) {
        Err(Errno::INTR) => Ok([false; N]),
        Err(error) => Err(error.into()),
        Ok(_) => Ok(asked.map(|fd| !fd.revents().is_empty())),
    }
}

/// Moves this thread into a network namespace.
pub(crate) fn enter_network(namespace: BorrowedFd<'_>) -> io::Result<()> {
    Ok(move_into_link_name_space(namespace, Some(LinkNameSpaceType::Network))?)
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
    let index = name_to_index(UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0))?, name)?;
    Ok(index.cast_signed())
}

/// The name of an interface of this network namespace.
pub(crate) fn interface_name(index: i32) -> io::Result<String> {
    let socket = UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0))?;
    Ok(index_to_name(socket, index.cast_unsigned())?)
}

/// `SIOCETHTOOL` about an interface of this thread's namespace: a command and its place for the answer,
/// which must be as large as the most that the command can bring.
pub(crate) fn ethtool(interface: &str, place: &mut [u8]) -> io::Result<()> {
    let socket = UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0))?;
    let mut request = request_for(interface)?;
    request.ifr_ifru.ifru_data = place.as_mut_ptr().cast();
    // SAFETY: the kernel reads and writes one `ifreq` and the place it points to, which the caller makes large enough.
    check(unsafe { libc::ioctl(socket.as_raw_fd(), libc::SIOCETHTOOL as _, &raw mut request) })
        .map(drop)
}

/// A request about an interface.
pub(crate) fn request_for(interface: &str) -> io::Result<libc::ifreq> {
    // SAFETY: all zeros is a valid `ifreq`.
    let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
    if interface.len() >= request.ifr_name.len() {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    for (to, from) in request.ifr_name.iter_mut().zip(interface.bytes()) {
        *to = from as libc::c_char;
    }
    Ok(request)
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
    let context = fsopen(kind, FsOpenFlags::FSOPEN_CLOEXEC)?;
    fsconfig_create(&context)?;
    Ok(fsmount(&context, FsMountFlags::FSMOUNT_CLOEXEC, MountAttrFlags::empty())?)
}

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
