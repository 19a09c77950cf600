//! What a process that has begun needs no more: files outside some folders, connections of its own, other processes (Landlock,
//! `Documentation/userspace-api/landlock.rst`, Linux 5.13).
//!
//! The rules hold for this thread and those that it starts, and cannot be taken back. With them goes every look into other
//! processes, at their descriptors above all (`hook_ptrace_access_check`, Linux `security/landlock/task.c`).

#![expect(unsafe_code, reason = "system calls that no library here has")]

use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd as _, FromRawFd as _, OwnedFd};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;
use std::ptr::null;

/// Which version of the rules this kernel knows; `None` without Landlock.
fn version() -> Option<u32> {
    // SAFETY: without a place to read from and with this flag the kernel only answers (`landlock_create_ruleset(2)`).
    let answer = unsafe {
        libc::syscall(libc::SYS_landlock_create_ruleset, null::<Rules>(), 0_usize, ASK_VERSION)
    };
    u32::try_from(answer).ok().filter(|version| *version > 0)
}

/// From now on this thread, and those that it starts, read these files and what is beneath these folders alone, write and execute none, and, as far as
/// the kernel can refuse it, connect to nobody. What is open stays open. `false` where the kernel has no Landlock.
///
/// # Errors
/// The kernel has Landlock, and refuses.
pub fn confine(allowed: &[&Path]) -> io::Result<bool> {
    let Some(version) = version() else { return Ok(false) };
    let rules = Rules { files: files(version), connections: CONNECT };
    let length = if version < OF_CONNECTIONS { size_of::<u64>() } else { size_of::<Rules>() };
    // SAFETY: the kernel reads `length` bytes of it, no more than it has; the descriptor is new and nobody else's.
    let rules = unsafe {
        let fd = libc::syscall(libc::SYS_landlock_create_ruleset, &raw const rules, length, 0_u32);
        let fd =
            i32::try_from(fd).ok().filter(|fd| *fd >= 0).ok_or_else(io::Error::last_os_error)?;
        OwnedFd::from_raw_fd(fd)
    };
    for path in allowed {
        let opened = File::options().read(true).custom_flags(libc::O_PATH).open(path);
        // What is not there cannot be read either.
        let Ok(file) = opened else { continue };
        let is_folder = file.metadata().is_ok_and(|there| there.is_dir());
        let allowed = if is_folder { READ_FILE | READ_FOLDER } else { READ_FILE };
        let beneath = Beneath { allowed, folder: file.as_raw_fd() };
        // SAFETY: the kernel reads one `landlock_path_beneath_attr`.
        let added = done(unsafe {
            let kind = BENEATH_PATH;
            libc::syscall(
                libc::SYS_landlock_add_rule,
                rules.as_raw_fd(),
                kind,
                &raw const beneath,
                0,
            )
        });
        // A pipe has no place among files: nothing forbids it (`get_path_from_fd`, `security/landlock/syscalls.c`).
        if let Err(error) = added
            && error.raw_os_error() != Some(libc::EBADFD)
        {
            return Err(error);
        }
    }
    rustix::thread::set_no_new_privs(true)?;
    // SAFETY: takes a descriptor and a number.
    done(unsafe { libc::syscall(libc::SYS_landlock_restrict_self, rules.as_raw_fd(), 0_u32) })?;
    Ok(true)
}

fn done(result: libc::c_long) -> io::Result<()> {
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// All rights to files that this version can refuse: thirteen in the first, then moving, cutting, and commands to devices.
const fn files(version: u32) -> u64 {
    let rights = match version {
        1 => 13,
        2 => 14,
        3 | 4 => 15,
        _ => 16,
    };
    (1 << rights) - 1
}

/// `landlock_ruleset_attr` (Linux `include/uapi/linux/landlock.h`).
#[repr(C)]
struct Rules {
    files: u64,
    connections: u64,
}

/// `landlock_path_beneath_attr`.
#[repr(C, packed)]
struct Beneath {
    allowed: u64,
    folder: i32,
}

/// `LANDLOCK_CREATE_RULESET_VERSION`.
const ASK_VERSION: u32 = 1 << 0;
/// `LANDLOCK_RULE_PATH_BENEATH`.
const BENEATH_PATH: u32 = 1;
/// `LANDLOCK_ACCESS_FS_READ_FILE`, `LANDLOCK_ACCESS_FS_READ_DIR`.
const READ_FILE: u64 = 1 << 2;
const READ_FOLDER: u64 = 1 << 3;
/// `LANDLOCK_ACCESS_NET_CONNECT_TCP`, of version 4 (Linux 6.7).
const CONNECT: u64 = 1 << 1;
const OF_CONNECTIONS: u32 = 4;

#[cfg(test)]
mod tests {
    use std::fs;
    use std::io::ErrorKind;
    use std::net::{TcpListener, TcpStream};

    use super::*;

    #[test]
    fn what_is_confined_reads_beneath_its_folders_alone_and_connects_to_nobody() {
        let outside = tempfile::tempdir().expect("a folder");
        let file = outside.path().join("file");
        fs::write(&file, "x").expect("room");
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let at = listener.local_addr().expect("bound");
        let inside = |file: &Path| {
            let is_confined = confine(&[Path::new("/proc"), Path::new("/no/such")]).expect("taken");
            let stat = fs::read("/proc/self/stat").map(drop).map_err(|error| error.kind());
            let [read, written] = [fs::read(file).map(drop), fs::write(file, "y")]
                .map(|done| done.map_err(|error| error.kind()));
            (is_confined, stat, read, written, TcpStream::connect(at).map_err(|error| error.kind()))
        };
        let (is_confined, stat, read, written, connected) =
            std::thread::scope(|scope| scope.spawn(|| inside(&file)).join()).expect("no panic");
        assert_eq!(stat, Ok(()), "beneath a folder of its own");
        let refused = |kind| is_confined.then_some(kind);
        assert_eq!(read.err(), refused(ErrorKind::PermissionDenied));
        assert_eq!(written.err(), refused(ErrorKind::PermissionDenied));
        let is_refused = version().is_some_and(|version| version >= OF_CONNECTIONS);
        assert_eq!(connected.is_err(), is_refused, "{connected:?}");
        assert!(fs::read(&file).is_ok(), "other threads are free");
    }
}
