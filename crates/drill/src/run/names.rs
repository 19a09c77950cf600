//! Numbers behind the names of the C headers, as far as scripts compare them.
//!
//! Of x86-64 Linux (include/uapi/asm-generic/fcntl.h, include/uapi/linux/eventpoll.h,
//! include/uapi/asm-generic/poll.h, include/linux/socket.h, `include/net/tcp_states.h`,
//! include/uapi/linux/tcp.h). Options of sockets are known by their names alone.

use crate::script::Expression;

const NUMBERS: &[(&str, i64)] = &[
    ("O_RDONLY", 0),
    ("O_WRONLY", 1),
    ("O_RDWR", 2),
    ("O_NONBLOCK", 0o4000),
    ("POLLIN", 1),
    ("POLLPRI", 2),
    ("POLLOUT", 4),
    ("POLLERR", 8),
    ("POLLHUP", 0x10),
    ("POLLNVAL", 0x20),
    ("POLLRDNORM", 0x40),
    ("POLLRDBAND", 0x80),
    ("POLLWRNORM", 0x100),
    ("POLLWRBAND", 0x200),
    ("POLLRDHUP", 0x2000),
    ("EPOLLIN", 1),
    ("EPOLLPRI", 2),
    ("EPOLLOUT", 4),
    ("EPOLLERR", 8),
    ("EPOLLHUP", 0x10),
    ("EPOLLRDNORM", 0x40),
    ("EPOLLWRNORM", 0x100),
    ("EPOLLRDHUP", 0x2000),
    ("EPOLLEXCLUSIVE", 1 << 28),
    ("EPOLLONESHOT", 1 << 30),
    ("EPOLLET", 1 << 31),
    ("MSG_PEEK", 0x2),
    ("MSG_DONTWAIT", 0x40),
    ("MSG_EOR", 0x80),
    ("MSG_WAITALL", 0x100),
    ("MSG_NOSIGNAL", 0x4000),
    ("MSG_MORE", 0x8000),
    ("MSG_ERRQUEUE", 0x2000),
    ("MSG_ZEROCOPY", 0x400_0000),
    ("MSG_FASTOPEN", 0x2000_0000),
    ("AF_UNSPEC", 0),
    ("SHUT_RD", 0),
    ("SHUT_WR", 1),
    ("SHUT_RDWR", 2),
    ("SOCK_STREAM", 1),
    ("SOCK_NONBLOCK", 0o4000),
    ("SOCK_CLOEXEC", 0o2_000_000),
    ("F_GETFL", 3),
    ("F_SETFL", 4),
    ("NULL", 0),
];

/// Names that code may use beside those of `TCP_INFO` itself.
const OF_TCP_INFO: &[(&str, i128)] = &[
    ("TCP_ESTABLISHED", 1),
    ("TCP_SYN_SENT", 2),
    ("TCP_SYN_RECV", 3),
    ("TCP_FIN_WAIT1", 4),
    ("TCP_FIN_WAIT2", 5),
    ("TCP_TIME_WAIT", 6),
    ("TCP_CLOSE", 7),
    ("TCP_CLOSE_WAIT", 8),
    ("TCP_LAST_ACK", 9),
    ("TCP_LISTEN", 10),
    ("TCP_CLOSING", 11),
    ("TCP_CA_Open", 0),
    ("TCP_CA_Disorder", 1),
    ("TCP_CA_CWR", 2),
    ("TCP_CA_Recovery", 3),
    ("TCP_CA_Loss", 4),
    ("TCPI_OPT_TIMESTAMPS", 1),
    ("TCPI_OPT_SACK", 2),
    ("TCPI_OPT_WSCALE", 4),
    ("TCPI_OPT_ECN", 8),
    ("TCPI_OPT_ECN_SEEN", 16),
    ("TCPI_OPT_SYN_DATA", 32),
    ("TCP_INFINITE_SSTHRESH", 0x7fff_ffff),
];

/// The number of a name that code may use.
pub(super) fn of_tcp_info(name: &str) -> Option<i128> {
    OF_TCP_INFO.iter().find(|(known, _)| *known == name).map(|(_, number)| *number)
}

/// The number that an expression means, with the names in it; the name that is not known.
pub(super) fn number(expression: &Expression) -> Result<i64, String> {
    match expression {
        Expression::Int(number) => Ok(*number),
        Expression::Word(name) => NUMBERS
            .iter()
            .find(|(known, _)| known == name)
            .map(|(_, number)| *number)
            .ok_or_else(|| format!("`{name}`")),
        Expression::Or(all) => all.iter().try_fold(0, |bits, one| Ok(bits | number(one)?)),
        Expression::List(all) | Expression::Struct(all) if all.len() == 1 => number(&all[0]),
        _ => Err("an argument that is no number".into()),
    }
}
