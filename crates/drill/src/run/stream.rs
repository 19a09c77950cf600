//! Reading and writing.
//!
//! Errors and their order are those of Linux (net/ipv4/tcp.c: `tcp_recvmsg_locked`,
//! `tcp_sendmsg_locked`).

use super::call::{Arguments, Made, Operation, Outcome, field};
use super::host::{File, Host};
use super::names;
use super::zero_copy;
use crate::script::Expression;
use tcpwhy_model::profile::fastopen;
use tcpwhy_model::socket::{Socket, State};

/// `MSG_` flags by their numbers in [`names`].
const PEEK: i64 = 0x2;
const DONTWAIT: i64 = 0x40;
const EOR: i64 = 0x80;
const WAITALL: i64 = 0x100;
const MORE: i64 = 0x8000;
const FASTOPEN: i64 = 0x2000_0000;

pub(super) fn read(arguments: &Arguments<'_>, host: &mut Host) -> Made {
    let end = arguments.end(host)?;
    let (bytes, flags, mut queue) = match arguments.call.name.as_str() {
        "read" => (arguments.bytes(2)?, 0, None),
        "readv" => (Arguments::buffers(arguments.at(1)?)?, 0, None),
        "recvmsg" => {
            let buffers = arguments.field(1, "msg_iov").ok_or("recvmsg without buffers")?;
            let flags = arguments.number(2)?;
            if flags & zero_copy::ERROR_QUEUE != 0 {
                let outcome = host.ends[end].zero_copy.read(arguments)?;
                return Ok(Operation::Ended(outcome));
            }
            (Arguments::buffers(buffers)?, flags, queue_told(arguments)?)
        }
        _ => (arguments.bytes(2)?, arguments.number(3)?, None),
    };
    queue = queue.filter(|_| host.ends[end].tells_queue);
    Ok(Operation::Read { end, bytes, flags, queue })
}

/// What the script expects `TCP_CM_INQ` to say.
fn queue_told(arguments: &Arguments<'_>) -> Result<Option<i64>, String> {
    let Some(Expression::List(messages)) = arguments.field(1, "msg_control") else {
        return Ok(None);
    };
    let mut told = None;
    for message in messages {
        match (field(message, "cmsg_type"), field(message, "cmsg_data")) {
            (Some(Expression::Word(kind)), Some(data)) if kind == "TCP_CM_INQ" => {
                told = Some(names::number(data)?);
            }
            (Some(Expression::Word(kind)), _) => return Err(format!("the control message {kind}")),
            _ => return Err("a control message of that form".into()),
        }
    }
    Ok(told)
}

pub(super) fn done_reading(
    host: &mut Host,
    at: usize,
    bytes: u64,
    flags: i64,
    queue: Option<i64>,
) -> Option<Outcome> {
    let end = &mut host.ends[at];
    let Some(socket) = end.socket() else { return Some(Outcome::error("ENOTCONN")) };
    let there = u64::from(socket.readable());
    let at_end = socket.at_end();
    let enough =
        if flags & WAITALL != 0 { there >= bytes || at_end || end.error.is_some() } else { true };
    if there > 0 && enough {
        let wanted = bytes.min(there);
        let read = if flags & PEEK != 0 {
            wanted
        } else {
            host.with(at, |socket, now, out| socket.read(now, wanted, out)).unwrap_or(0)
        };
        let outcome = Outcome::value(read as i64);
        return Some(match (queue, host.ends[at].socket()) {
            (Some(expected), Some(socket)) => {
                // The end of the stream counts as one byte (tcp_inq_hint).
                let rest = i64::from(socket.readable());
                let left = if rest == 0 && socket.at_end() { 1 } else { rest };
                outcome.filling("TCP_CM_INQ", expected, left)
            }
            _ => outcome,
        });
    }
    if let Some(error) = end.error.take() {
        return Some(Outcome::error(error));
    }
    if bytes == 0 || end.read_shut || at_end {
        return Some(Outcome::value(0));
    }
    match end.state() {
        State::SynSent if !end.nonblocking => None,
        _ if end.nonblocking || flags & DONTWAIT != 0 => Some(Outcome::error("EAGAIN")),
        _ => None,
    }
}

pub(super) fn write(arguments: &Arguments<'_>, host: &Host) -> Made {
    let end = arguments.end(host)?;
    let mut borders = Vec::new();
    let (bytes, flags) = match arguments.call.name.as_str() {
        "write" => (arguments.bytes(2)?, 0),
        "writev" => (Arguments::buffers(arguments.at(1)?)?, 0),
        "sendmsg" => {
            let buffers = arguments.field(1, "msg_iov").ok_or("sendmsg without buffers")?;
            let flags = arguments.number(2)?;
            if flags & zero_copy::FLAG != 0 && host.ends[end].zero_copy.on {
                borders = zero_copy::borders(&Arguments::sizes(buffers)?);
            }
            (Arguments::buffers(buffers)?, flags)
        }
        _ => (arguments.bytes(2)?, arguments.number(3)?),
    };
    if flags & FASTOPEN != 0 {
        let unspecified = arguments.word(4).is_ok_and(|address| address == "AF_UNSPEC");
        let refused = host.config().sysctl.fastopen & fastopen::CLIENT == 0;
        if unspecified || refused {
            return Ok(Operation::Ended(Outcome::error("EOPNOTSUPP")));
        }
    }
    Ok(Operation::Write { end, bytes, taken: 0, flags, borders })
}

/// `sendfile(4, 5, [0], 1000)`: from the offset, or from where reading has come to, up to the file's
/// end. The offset that it fills in is not compared.
pub(super) fn send_file(arguments: &Arguments<'_>, host: &mut Host) -> Made {
    let end = arguments.end(host)?;
    let (descriptor, wanted) = (arguments.number(1)?, arguments.bytes_at(3)?);
    let Some(File::Plain { size, read }) = host.files.get_mut(&descriptor) else {
        return Err("sendfile of what is no file".into());
    };
    let given = matches!(arguments.at(2)?, Expression::List(_));
    let offset = if given { arguments.bytes_at(2)? } else { *read };
    let bytes = wanted.min(size.saturating_sub(offset));
    if !given {
        *read += bytes;
    }
    Ok(Operation::Write { end, bytes, taken: 0, flags: 0, borders: Vec::new() })
}

/// A write that opens the connection (`tcp_sendmsg_fastopen`): what the call returns at once, if it
/// does not go on.
fn open_writing(
    host: &mut Host,
    at: usize,
    bytes: u64,
    taken: &mut u64,
    nonblocking: bool,
) -> Option<Outcome> {
    let end = &host.ends[at];
    if end.socket().is_some_and(Socket::is_deferred) {
        let written = host.with(at, |socket, now, out| socket.write(now, bytes, out));
        *taken = written.unwrap_or(0);
    } else if end.used && (end.connected || end.state() == State::SynSent) {
        let errno = if end.connected { "EISCONN" } else { "EALREADY" };
        return Some(Outcome::error(errno));
    } else if end.used {
        // The first call after the handshake learns of it, and goes on (`__inet_stream_connect`).
        host.ends[at].connected = end.state() != State::Closed;
        return None;
    } else {
        // What a socket is configured with is checked when it is.
        *taken = host.connect_writing(at, bytes).unwrap_or(0);
    }
    host.ends[at].connecting = true;
    let waits = !nonblocking && *taken < bytes;
    host.with(at, |socket, _, _| socket.set_writer_waits(waits));
    match *taken {
        _ if !nonblocking => None,
        0 => Some(Outcome::error("EINPROGRESS")),
        taken => Some(Outcome::value(taken as i64)),
    }
}

pub(super) fn done_writing(
    host: &mut Host,
    at: usize,
    bytes: u64,
    taken: &mut u64,
    flags: &mut i64,
    borders: &[u64],
) -> Option<Outcome> {
    let borrows = *flags & zero_copy::FLAG != 0 && host.ends[at].zero_copy.on;
    let outcome = write_on(host, at, bytes, taken, flags, borders)?;
    let end = &mut host.ends[at];
    if borrows
        && outcome.value > 0
        && let Some(info) = end.socket().map(Socket::info)
    {
        end.zero_copy.on_written(info.write_seq);
    }
    Some(outcome)
}

/// Goes on writing; what the call returns, if it does.
fn write_on(
    host: &mut Host,
    at: usize,
    bytes: u64,
    taken: &mut u64,
    flags: &mut i64,
    borders: &[u64],
) -> Option<Outcome> {
    let nonblocking = host.ends[at].nonblocking || *flags & DONTWAIT != 0;
    if *flags & FASTOPEN != 0 || host.ends[at].socket().is_some_and(Socket::is_deferred) {
        *flags &= !FASTOPEN;
        let ended = open_writing(host, at, bytes, taken, nonblocking);
        if ended.is_some() {
            return ended;
        }
    }
    let end = &mut host.ends[at];
    let ended = |taken: u64, errno| {
        if taken > 0 { Outcome::value(taken as i64) } else { Outcome::error(errno) }
    };
    if let Some(error) = end.error.take() {
        // If it was to open the connection, what the SYN took counts for nothing.
        return Some(ended(if end.connecting { 0 } else { *taken }, error));
    }
    match end.state() {
        State::SynSent if nonblocking => return Some(Outcome::error("EAGAIN")),
        State::SynSent => {
            let waits = *taken < bytes;
            host.with(at, |socket, _, _| socket.set_writer_waits(waits));
            return None;
        }
        State::Established | State::CloseWait | State::SynReceived if !end.write_shut => {}
        _ if !end.used => return Some(Outcome::error("EPIPE")),
        _ => return Some(ended(*taken, "EPIPE")),
    }
    // A program that waits for the handshake learns of it by its write.
    end.connected |= std::mem::take(&mut end.connecting) && !nonblocking;
    // A writer that is blocked goes on when it is woken.
    if *taken > 0 && *taken < bytes && !std::mem::take(&mut end.writable) {
        return None;
    }
    end.writable = false;
    let (more, record) = (*flags & MORE != 0, *flags & EOR != 0);
    loop {
        let border = borders.iter().find(|border| **border > *taken).copied();
        let left = border.unwrap_or(bytes) - *taken;
        let ends = record || border.is_some();
        let written =
            host.with(at, |socket, now, out| socket.write_flagged(now, left, more, ends, out));
        *taken += written.unwrap_or(0);
        if *taken == bytes {
            return Some(Outcome::value(bytes as i64));
        }
        if written != Some(left) {
            break;
        }
    }
    // What was sent meanwhile may have made room.
    if host.ends[at].writable {
        return write_on(host, at, bytes, taken, flags, borders);
    }
    nonblocking.then(|| ended(*taken, "EAGAIN"))
}
