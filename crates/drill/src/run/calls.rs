//! The system calls of a script.
//!
//! A call becomes an [`Operation`] once, and is attempted until it does not block. Errors are
//! those of Linux (net/ipv4/tcp.c, `net/ipv4/af_inet.c`).

use super::call::{Arguments, Made, Operation, Outcome};
use super::end::{End, Role};
use super::epoll::Epoll;
use super::host::{File, Host};
use super::names;
use super::options;
use super::poll;
use super::port::Port;
use super::stream;
use crate::script::{Call, Expression};
use tcpwhy_model::socket::{Socket, State};

/// What came of an attempt.
pub(super) enum Attempt {
    Done(Outcome),
    Blocks,
}

const NONBLOCK: i64 = 0o4000;

impl Operation {
    /// What a call is to do; what it can do at once is done.
    pub(super) fn of(call: &Call, host: &mut Host) -> Made {
        let arguments = Arguments { call };
        if arguments.has_bad_pointer() {
            return Ok(Operation::Ended(Outcome::error("EFAULT")));
        }
        match call.name.as_str() {
            "socket" => socket(&arguments, host),
            "bind" => {
                let end = arguments.end(host)?;
                host.ends[end].port = Port::Bound;
                Ok(Operation::Ended(Outcome::value(0)))
            }
            "listen" => {
                host.listen(arguments.end(host)?)?;
                Ok(Operation::Ended(Outcome::value(0)))
            }
            "accept" | "accept4" => {
                let nonblocking = if call.name == "accept4" {
                    arguments.number(3)? & NONBLOCK != 0
                } else {
                    false
                };
                // The script says which number the new descriptor has.
                let descriptor = names::number(&call.result)?;
                Ok(Operation::Accept { end: arguments.end(host)?, descriptor, nonblocking })
            }
            "connect" => connect(&arguments, host),
            "read" | "recv" | "recvfrom" | "readv" | "recvmsg" => stream::read(&arguments, host),
            "write" | "send" | "sendto" | "writev" | "sendmsg" => stream::write(&arguments, host),
            "open" => open(&arguments, host),
            "sendfile" => stream::send_file(&arguments, host),
            "close" => Ok(close(&arguments, host)),
            "shutdown" => shutdown(&arguments, host),
            "fcntl" => fcntl(&arguments, host),
            "ioctl" => ioctl(&arguments, host),
            "setsockopt" => options::set(&arguments, host).map(Operation::Ended),
            "getsockopt" => options::get(&arguments, host).map(Operation::Ended),
            "poll" => poll::poll(&arguments, host),
            "epoll_create" => {
                host.open_file(names::number(&call.result)?, File::Epoll(Epoll::default()));
                Ok(Operation::Ended(Outcome::value(names::number(&call.result)?)))
            }
            "epoll_ctl" => poll::epoll_control(&arguments, host),
            "epoll_wait" => poll::epoll_wait(&arguments, host),
            name => Err(format!("the system call {name}")),
        }
    }

    pub(super) fn attempt(&mut self, host: &mut Host) -> Attempt {
        let outcome = match self {
            Operation::Ended(outcome) => Some(outcome.clone()),
            Operation::Connect { end } => connected(&mut host.ends[*end]),
            Operation::Accept { end, descriptor, nonblocking } => {
                accepted(host, *end, *descriptor, *nonblocking)
            }
            Operation::Read { end, bytes, flags, queue } => {
                stream::done_reading(host, *end, *bytes, *flags, *queue)
            }
            Operation::Write { end, bytes, taken, flags, borders } => {
                stream::done_writing(host, *end, *bytes, taken, flags, borders)
            }
            Operation::Poll { wanted, deadline_ns, at_once } => {
                host.polled(wanted, *deadline_ns, *at_once)
            }
            Operation::EpollWait { epoll, wanted, most, deadline_ns, at_once } => {
                host.epolled(*epoll, wanted, *most, *deadline_ns, *at_once)
            }
        };
        outcome.map_or(Attempt::Blocks, Attempt::Done)
    }
}

fn socket(arguments: &Arguments<'_>, host: &mut Host) -> Made {
    let kind = arguments.number(1)?;
    if kind & 0xf != 1 || arguments.word(2)? != "IPPROTO_TCP" {
        return Err(format!("a socket of {:?}", arguments.call.arguments[2]));
    }
    let at = host.new_end(End { nonblocking: kind & NONBLOCK != 0, ..End::default() });
    let descriptor = names::number(&arguments.call.result)?;
    host.open_file(descriptor, File::Socket(at));
    Ok(Operation::Ended(Outcome::value(descriptor)))
}

/// `open("/tmp/file", O_RDONLY)` of a file that a command made.
fn open(arguments: &Arguments<'_>, host: &mut Host) -> Made {
    let Expression::Text(name) = arguments.at(0)? else { return Err("open of no name".into()) };
    let Some(size) = host.sizes.get(name).copied() else {
        return Ok(Operation::Ended(Outcome::error("ENOENT")));
    };
    let descriptor = names::number(&arguments.call.result)?;
    host.open_file(descriptor, File::Plain { size, read: 0 });
    Ok(Operation::Ended(Outcome::value(descriptor)))
}

fn connect(arguments: &Arguments<'_>, host: &mut Host) -> Made {
    let end = arguments.end(host)?;
    if arguments.word(1).is_ok_and(|address| address == "AF_UNSPEC") {
        host.disconnect(end);
        return Ok(Operation::Ended(Outcome::value(0)));
    }
    let deferred = host.ends[end].socket().is_some_and(Socket::is_deferred);
    if deferred || host.ends[end].connected {
        return Ok(Operation::Ended(Outcome::error("EISCONN")));
    }
    // A connection that came about meanwhile is reported once as success (`__inet_stream_connect`).
    if !host.ends[end].used {
        if !host.take_port(end) {
            return Ok(Operation::Ended(Outcome::error("EADDRNOTAVAIL")));
        }
        host.connect(end)?;
    }
    if host.ends[end].socket().is_some_and(Socket::is_deferred) {
        return Ok(Operation::Ended(Outcome::value(0)));
    }
    if host.ends[end].nonblocking && host.ends[end].state() == State::SynSent {
        let errno = if std::mem::replace(&mut host.ends[end].connecting, true) {
            "EALREADY"
        } else {
            "EINPROGRESS"
        };
        return Ok(Operation::Ended(Outcome::error(errno)));
    }
    Ok(Operation::Connect { end })
}

fn connected(end: &mut End) -> Option<Outcome> {
    match end.state() {
        State::SynSent => None,
        State::Closed => Some(Outcome::error(end.error.take().unwrap_or("ECONNABORTED"))),
        _ => {
            end.connected = true;
            Some(Outcome::value(0))
        }
    }
}

fn accepted(host: &mut Host, end: usize, descriptor: i64, nonblocking: bool) -> Option<Outcome> {
    if !matches!(host.ends[end].role, Role::Listener(_)) {
        return Some(Outcome::error("EINVAL"));
    }
    let Some(child) = host.take_connection(end) else {
        return host.ends[end].nonblocking.then(|| Outcome::error("EAGAIN"));
    };
    host.ends[child].nonblocking = nonblocking;
    host.ends[child].connected = true;
    host.open_file(descriptor, File::Socket(child));
    Some(Outcome::value(descriptor))
}

fn close(arguments: &Arguments<'_>, host: &mut Host) -> Operation {
    let descriptor = arguments.number(0).unwrap_or(-1);
    let outcome = match host.files.remove(&descriptor) {
        None => Outcome::error("EBADF"),
        Some(File::Epoll(_) | File::Plain { .. }) => Outcome::value(0),
        Some(File::Socket(at)) => {
            let others =
                host.files.values().any(|file| matches!(file, File::Socket(other) if *other == at));
            if !others {
                host.close(at);
            }
            Outcome::value(0)
        }
    };
    Operation::Ended(outcome)
}

fn shutdown(arguments: &Arguments<'_>, host: &mut Host) -> Made {
    let at = arguments.end(host)?;
    let how = arguments.number(1)?;
    if !host.ends[at].used || host.ends[at].state() == State::Closed {
        return Ok(Operation::Ended(Outcome::error("ENOTCONN")));
    }
    host.ends[at].read_shut |= how != 1;
    if how != 0 {
        host.ends[at].write_shut = true;
        host.with(at, Socket::shutdown);
    }
    Ok(Operation::Ended(Outcome::value(0)))
}

fn fcntl(arguments: &Arguments<'_>, host: &mut Host) -> Made {
    let at = arguments.end(host)?;
    match arguments.word(1)? {
        "F_GETFL" => {
            let flags = 2 | if host.ends[at].nonblocking { NONBLOCK } else { 0 };
            Ok(Operation::Ended(Outcome::value(flags)))
        }
        "F_SETFL" => {
            host.ends[at].nonblocking = arguments.number(2)? & NONBLOCK != 0;
            Ok(Operation::Ended(Outcome::value(0)))
        }
        name => Err(format!("fcntl {name}")),
    }
}

fn ioctl(arguments: &Arguments<'_>, host: &Host) -> Made {
    let at = arguments.end(host)?;
    let socket = host.ends[at].socket().ok_or("ioctl of a socket that is not connected")?;
    let got = match arguments.word(1)? {
        "SIOCINQ" | "FIONREAD" => i64::from(socket.readable()),
        "SIOCOUTQ" => i64::from(socket.unacked()),
        name => return Err(format!("ioctl {name}")),
    };
    Ok(Operation::Ended(Outcome::value(0).filling("the answer", arguments.number(2)?, got)))
}
