//! What one socket tells only its owner: locked buffers and options.
//!
//! `pidfd_getfd(2)` makes a copy of the descriptor. While we hold it the application's close sends no FIN,
//! so one socket is asked at a time, on request only, and its copy is closed at once.

use std::io;
use std::os::fd::{AsFd as _, BorrowedFd};
use std::os::linux::fs::MetadataExt as _;

use tcpwhy::host::snapshot::{Locks, Look, Owner, Source};

use super::blind::Blind;
use super::sys;
use crate::sys::option;

/// Asks the socket at a process's descriptor, and puts what it says to the one of the look.
pub(super) fn ask(look: &mut Look, (pid, fd): (u32, u32), blind: &mut Blind) {
    let of = format!("process {pid}, descriptor {fd}");
    let path = format!("/proc/{pid}/fd/{fd}");
    let asked = std::fs::metadata(path).and_then(|file| Ok((file.st_ino(), of_socket(pid, fd)?)));
    let (inode, locks) = match asked {
        Ok(asked) => asked,
        Err(error) if error.raw_os_error() == Some(libc::EPERM) => {
            let denied = io::Error::from(io::ErrorKind::PermissionDenied);
            return blind.refused(Source::Locks, Some(&of), &denied);
        }
        Err(error) => return blind.refused(Source::Locks, Some(&of), &error),
    };
    let found = look.sockets.iter_mut().flatten().find(|socket| socket.inode == inode);
    match found {
        Some(socket) => {
            socket.locks = Some(locks);
            socket.owner = Some(Owner { pid, fd: Some(fd) });
        }
        None => blind.say(Source::Locks, Some(&of), "it is no TCP connection of this namespace"),
    }
}

fn of_socket(pid: u32, fd: u32) -> io::Result<Locks> {
    let copy = sys::copy_of_descriptor(pid, fd)?;
    let socket = copy.as_fd();
    // Not a socket.
    number(socket, libc::SOL_SOCKET, libc::SO_TYPE)?;
    let flag = |level, name| number(socket, level, name).ok().map(|value| value != 0);
    let buffers = number(socket, libc::SOL_SOCKET, SO_BUF_LOCK).ok();
    Ok(Locks {
        sndbuf: buffers.map(|bits| bits & 1 != 0),
        rcvbuf: buffers.map(|bits| bits & 2 != 0),
        nodelay: flag(libc::IPPROTO_TCP, libc::TCP_NODELAY),
        cork: flag(libc::IPPROTO_TCP, libc::TCP_CORK),
        notsent_lowat: number(socket, libc::IPPROTO_TCP, TCP_NOTSENT_LOWAT).ok(),
        keepalive: flag(libc::SOL_SOCKET, libc::SO_KEEPALIVE),
    })
}

fn number(socket: BorrowedFd<'_>, level: i32, name: i32) -> io::Result<u32> {
    let mut value = [0; 4];
    option(socket, level, name, &mut value)?;
    Ok(u32::from_ne_bytes(value))
}

/// Linux `include/uapi/asm-generic/socket.h`, since 5.15.
const SO_BUF_LOCK: i32 = 72;
/// Linux `include/uapi/linux/tcp.h`.
const TCP_NOTSENT_LOWAT: i32 = 25;

#[cfg(test)]
mod tests {
    use std::fs;
    use std::net::{TcpListener, TcpStream};
    use std::os::fd::AsRawFd as _;

    use tcpwhy::host::snapshot::{Socket, State};

    use super::*;

    #[test]
    fn a_locked_buffer_and_options_of_a_socket_of_ours() {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let address = listener.local_addr().expect("bound");
        let ours = TcpStream::connect(address).expect("it listens");
        ours.set_nodelay(true).expect("ours");
        socket2::SockRef::from(&ours).set_recv_buffer_size(8192).expect("ours");
        let fd = ours.as_raw_fd() as u32;
        let local = ours.local_addr().expect("bound");
        let socket = Socket {
            inode: fs::metadata(format!("/proc/self/fd/{fd}")).expect("ours").st_ino(),
            ..Socket::new(State::Established, local, address)
        };
        let mut look = Look { sockets: Some(vec![socket]), ..Look::default() };
        let mut blind = Blind::default();
        ask(&mut look, (std::process::id(), fd), &mut blind);
        let locks = look.sockets.expect("there")[0].locks.expect("a process may see its own");
        assert_eq!((locks.rcvbuf, locks.sndbuf), (Some(true), Some(false)));
        assert_eq!(
            (locks.nodelay, locks.cork, locks.keepalive),
            (Some(true), Some(false), Some(false))
        );
        let mut nothing = Look::default();
        ask(&mut nothing, (std::process::id(), 99_999), &mut blind);
        assert_eq!(blind.into_unseen()[0].source, "socket options");
    }
}
