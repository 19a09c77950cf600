//! Sockets as a plan wants them.
//!
//! Options are set before `connect` and `listen`, because the window scale and the first window
//! follow from the buffers. An accepted socket inherits nearly all from its listener
//! (Linux `inet_csk_clone_lock`); what may differ there is set again, nothing else, because
//! setting a congestion control anew would forget what it has learned.

use std::io;
use std::net::SocketAddr;
use std::os::fd::AsFd as _;

use socket2::{Domain, Protocol, SockAddr, Socket, Type};
use tcpwhy_model::scenario::plan;

use super::log::SocketFacts;
use crate::sys;

/// A socket that listens on `at`.
pub(super) fn listener(at: SocketAddr, options: &plan::Socket) -> io::Result<Socket> {
    let socket = new(at)?;
    socket.set_reuse_address(true)?;
    set_before(&socket, options)?;
    if options.fast_open {
        // The number is how many connections may wait whose handshake is not complete.
        set_number(&socket, libc::TCP_FASTOPEN, FAST_OPEN_QUEUE)?;
    }
    socket.bind(&at.into())?;
    let backlog = options.backlog.unwrap_or(BACKLOG);
    socket.listen(i32::try_from(backlog).unwrap_or(i32::MAX))?;
    Ok(socket)
}

/// A socket connected to `to`; with Fast Open not before the first write.
pub(super) fn connected(to: SocketAddr, options: &plan::Socket) -> io::Result<Socket> {
    let socket = new(to)?;
    set_before(&socket, options)?;
    if options.fast_open {
        set_number(&socket, libc::TCP_FASTOPEN_CONNECT, 1)?;
    }
    socket.connect(&SockAddr::from(to))?;
    set_after(&socket, options)?;
    Ok(socket)
}

/// The next connection of `listener`.
pub(super) fn accepted(listener: &Socket, options: &plan::Socket) -> io::Result<Socket> {
    let (socket, _) = listener.accept()?;
    set_after(&socket, options)?;
    Ok(socket)
}

/// What the kernel made of a socket.
pub(super) fn facts(socket: &Socket, options: &plan::Socket) -> SocketFacts {
    let address = |found: io::Result<SockAddr>| found.ok().and_then(|a| a.as_socket());
    let number = |level, name| {
        let mut value = [0; 4];
        sys::option(socket.as_fd(), level, name, &mut value).ok()?;
        Some(u32::from_ne_bytes(value))
    };
    SocketFacts {
        local: address(socket.local_addr()),
        peer: address(socket.peer_addr()),
        asked_sndbuf: options.sndbuf,
        sndbuf: number(libc::SOL_SOCKET, libc::SO_SNDBUF),
        asked_rcvbuf: options.rcvbuf,
        rcvbuf: number(libc::SOL_SOCKET, libc::SO_RCVBUF),
        congestion: congestion(socket).ok(),
        mss: number(libc::IPPROTO_TCP, libc::TCP_MAXSEG),
    }
}

fn new(at: SocketAddr) -> io::Result<Socket> {
    Socket::new(Domain::for_address(at), Type::STREAM, Some(Protocol::TCP))
}

/// What has to be set before the handshake, and what it does no harm to.
fn set_before(socket: &Socket, options: &plan::Socket) -> io::Result<()> {
    let buffer = |name, bytes: u32| {
        sys::set_option(socket.as_fd(), libc::SOL_SOCKET, name, &bytes.to_ne_bytes())
    };
    if let Some(bytes) = options.sndbuf {
        buffer(libc::SO_SNDBUF, bytes).map_err(|e| named(&e, "SO_SNDBUF"))?;
    }
    if let Some(bytes) = options.rcvbuf {
        buffer(libc::SO_RCVBUF, bytes).map_err(|e| named(&e, "SO_RCVBUF"))?;
    }
    if let Some(name) = &options.congestion {
        set_congestion(socket, name)?;
    }
    if let Some(bytes) = options.notsent_lowat {
        set_number(socket, libc::TCP_NOTSENT_LOWAT, bytes)?;
    }
    if let Some(rate) = options.max_pacing {
        // Kernels before 4.20 read the lower four bytes alone.
        let name = libc::SO_MAX_PACING_RATE;
        sys::set_option(socket.as_fd(), libc::SOL_SOCKET, name, &rate.to_ne_bytes())
            .map_err(|e| named(&e, "SO_MAX_PACING_RATE"))?;
    }
    if let Some(bytes) = options.window_clamp {
        set_number(socket, libc::TCP_WINDOW_CLAMP, bytes)?;
    }
    Ok(())
}

/// What is set on each connection.
fn set_after(socket: &Socket, options: &plan::Socket) -> io::Result<()> {
    if let Some(name) = &options.congestion
        && congestion(socket)? != *name
    {
        set_congestion(socket, name)?;
    }
    if options.nodelay {
        set_number(socket, libc::TCP_NODELAY, 1)?;
    }
    if options.cork {
        set_number(socket, libc::TCP_CORK, 1)?;
    }
    Ok(())
}

/// Sends what a cork holds back.
pub(super) fn uncork(socket: &Socket) -> io::Result<()> {
    set_number(socket, libc::TCP_CORK, 0)
}

fn set_number(socket: &Socket, name: i32, value: u32) -> io::Result<()> {
    sys::set_option(socket.as_fd(), libc::IPPROTO_TCP, name, &value.to_ne_bytes()).map_err(|e| {
        let word = match name {
            libc::TCP_FASTOPEN => "TCP_FASTOPEN",
            libc::TCP_FASTOPEN_CONNECT => "TCP_FASTOPEN_CONNECT",
            libc::TCP_NOTSENT_LOWAT => "TCP_NOTSENT_LOWAT",
            libc::TCP_WINDOW_CLAMP => "TCP_WINDOW_CLAMP",
            libc::TCP_NODELAY => "TCP_NODELAY",
            _ => "TCP_CORK",
        };
        named(&e, word)
    })
}

fn set_congestion(socket: &Socket, name: &str) -> io::Result<()> {
    sys::set_option(socket.as_fd(), libc::IPPROTO_TCP, libc::TCP_CONGESTION, name.as_bytes())
        .map_err(|e| {
            io::Error::new(
                e.kind(),
                format!(
                    "congestion control {name}: {e}; this kernel lacks it or does not allow it \
                     here, see net.ipv4.tcp_allowed_congestion_control"
                ),
            )
        })
}

fn congestion(socket: &Socket) -> io::Result<String> {
    let mut name = [0; 16];
    let length = sys::option(socket.as_fd(), libc::IPPROTO_TCP, libc::TCP_CONGESTION, &mut name)?;
    let name = &name[..length.min(name.len())];
    let end = name.iter().position(|&byte| byte == 0).unwrap_or(name.len());
    Ok(String::from_utf8_lossy(&name[..end]).into_owned())
}

fn named(error: &io::Error, option: &str) -> io::Error {
    io::Error::new(error.kind(), format!("cannot set {option}: {error}"))
}

/// What `listen` is given unless the plan says otherwise: `SOMAXCONN` since Linux 5.4.
const BACKLOG: u32 = 4096;

/// Ours: more than any scenario has at a time.
const FAST_OPEN_QUEUE: u32 = 256;
