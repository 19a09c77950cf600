//! System calls of the guest's first process that the standard library has no name for.

#![expect(unsafe_code, reason = "each function wraps one system call")]

use std::ffi::CString;
use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd as _, FromRawFd as _, OwnedFd};
use std::ptr::null;

use socket2::{Domain, Socket, Type};

/// mount(2) of a file system that needs no device.
pub(super) fn mount(kind: &str, place: &str) -> io::Result<()> {
    let (kind, place) = (CString::new(kind)?, CString::new(place)?);
    // SAFETY: all three are valid strings, and these file systems take no data.
    check(unsafe { libc::mount(kind.as_ptr(), place.as_ptr(), kind.as_ptr(), 0, null()) }).map(drop)
}

/// Moves this thread to a network namespace of its own.
pub(super) fn leave_network() -> io::Result<()> {
    // SAFETY: takes a number and touches no memory.
    check(unsafe { libc::unshare(libc::CLONE_NEWNET) }).map(drop)
}

/// The network namespace that this thread is in.
pub(super) fn network() -> io::Result<OwnedFd> {
    Ok(File::open("/proc/thread-self/ns/net")?.into())
}

/// Moves this thread, and what it starts from now on, to a network namespace.
pub(super) fn enter_network(network: &OwnedFd) -> io::Result<()> {
    // SAFETY: the descriptor is open as long as it is borrowed.
    check(unsafe { libc::setns(network.as_raw_fd(), libc::CLONE_NEWNET) }).map(drop)
}

/// The index of a device in this thread's network namespace.
pub(super) fn index(device: &str) -> io::Result<u32> {
    let name = CString::new(device)?;
    // SAFETY: the name is a valid string.
    match unsafe { libc::if_nametoindex(name.as_ptr()) } {
        0 => Err(io::Error::last_os_error()),
        index => Ok(index),
    }
}

/// Switches segmentation, checksum and receive offloads of a device (`SIOCETHTOOL`).
pub(super) fn offload(device: &str, on: bool) -> io::Result<()> {
    let socket = Socket::new(Domain::IPV4, Type::DGRAM, None)?;
    // Segmentation needs checksums: they come first on the way up and last on the way down.
    let mut order = [ETHTOOL_STXCSUM, ETHTOOL_SSG, ETHTOOL_STSO, ETHTOOL_SGSO, ETHTOOL_SGRO];
    if !on {
        order.reverse();
    }
    for command in order {
        if command == ETHTOOL_SSG && !on {
            continue;
        }
        let mut value = [command, u32::from(on)];
        // SAFETY: all zeros is a valid `ifreq`.
        let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
        for (to, from) in request.ifr_name.iter_mut().zip(device.bytes().take(libc::IFNAMSIZ - 1)) {
            *to = from as libc::c_char;
        }
        request.ifr_ifru.ifru_data = value.as_mut_ptr().cast();
        // SAFETY: `request` names `value`, a `struct ethtool_value`, and both outlive the call.
        check(unsafe { libc::ioctl(socket.as_raw_fd(), SIOCETHTOOL as _, &raw mut request) })?;
    }
    Ok(())
}

/// Stirs `seed` into the kernel's randomness, counts it as such and uses it at once.
pub(super) fn stir(seed: &[u8; 64]) -> io::Result<()> {
    let random = File::options().write(true).open("/dev/urandom")?;
    // `struct rand_pool_info`: bits, bytes, what to stir in.
    let mut pool = [0_u8; 72];
    pool[..4].copy_from_slice(&512_i32.to_ne_bytes());
    pool[4..8].copy_from_slice(&64_i32.to_ne_bytes());
    pool[8..].copy_from_slice(seed);
    // SAFETY: `pool` has the layout asked for and says its own length.
    check(unsafe { libc::ioctl(random.as_raw_fd(), RNDADDENTROPY as _, pool.as_ptr()) })?;
    // SAFETY: takes no argument.
    check(unsafe { libc::ioctl(random.as_raw_fd(), RNDRESEEDCRNG as _) }).map(drop)
}

/// bpf(2): makes a map or loads a program; its attributes are plain bytes.
pub(super) fn bpf_new(command: u32, attributes: &[u8]) -> io::Result<OwnedFd> {
    let fd = bpf(command, attributes)?;
    // SAFETY: these commands return a descriptor that nobody else has.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

/// bpf(2): what returns no descriptor.
pub(super) fn bpf(command: u32, attributes: &[u8]) -> io::Result<i32> {
    // SAFETY: the kernel reads at most this many bytes; pointers in them are our callers' to keep.
    let done =
        unsafe { libc::syscall(libc::SYS_bpf, command, attributes.as_ptr(), attributes.len()) };
    check(done as i32)
}

/// Lets this process lock as much memory as it likes, which maps and programs of bpf(2) count as
/// before Linux 5.11 (v5.10 `kernel/bpf/syscall.c`, `bpf_charge_memlock`).
pub(super) fn lock_without_limit() -> io::Result<()> {
    let none = libc::rlimit { rlim_cur: libc::RLIM_INFINITY, rlim_max: libc::RLIM_INFINITY };
    // SAFETY: the structure is valid and only read.
    check(unsafe { libc::setrlimit(libc::RLIMIT_MEMLOCK, &raw const none) }).map(drop)
}

/// Sends a signal to one process.
pub(super) fn signal(pid: u32, signal: i32) -> io::Result<()> {
    // SAFETY: takes numbers and touches no memory.
    check(unsafe { libc::kill(pid as libc::pid_t, signal) }).map(drop)
}

/// Writes everything out and switches the machine off; returns only if that is refused.
pub(super) fn power_off() -> io::Error {
    // SAFETY: sync takes nothing; reboot takes a number.
    unsafe {
        libc::sync();
        libc::reboot(libc::RB_POWER_OFF);
    }
    io::Error::last_os_error()
}

fn check(result: i32) -> io::Result<i32> {
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(result) }
}

// linux/sockios.h, linux/ethtool.h, linux/random.h
const SIOCETHTOOL: u64 = 0x8946;
const ETHTOOL_STXCSUM: u32 = 0x17;
const ETHTOOL_SSG: u32 = 0x19;
const ETHTOOL_STSO: u32 = 0x1f;
const ETHTOOL_SGSO: u32 = 0x24;
const ETHTOOL_SGRO: u32 = 0x2c;
const RNDADDENTROPY: u64 = 0x4008_5203;
const RNDRESEEDCRNG: u64 = 0x5207;
