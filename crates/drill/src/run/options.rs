//! `setsockopt` and `getsockopt`.

use super::call::{Arguments, Outcome};
use super::cookies::key_of_text;
use super::end::End;
use super::host::Host;
use super::names;
use super::port::Port;
use crate::script::Expression;
use tcpwhy_model::profile::fastopen;

/// Options that change nothing a script can see.
const WITHOUT_EFFECT: &[&str] = &[
    "SO_REUSEADDR",
    "SO_REUSEPORT",
    "IP_FREEBIND",
    "IP_BIND_ADDRESS_NO_PORT",
    "IP_TRANSPARENT",
    "SO_MARK",
    "SO_PRIORITY",
    "SO_DEBUG",
    "SO_OOBINLINE",
    "IP_TOS",
    "IPV6_TCLASS",
    "IP_MTU_DISCOVER",
    "IPV6_MTU_DISCOVER",
];

type Done = Result<Outcome, String>;

/// `setsockopt(3, SOL_TCP, TCP_NODELAY, [1], 4)`
pub(super) fn set(arguments: &Arguments<'_>, host: &mut Host) -> Done {
    let at = arguments.end(host)?;
    let name = arguments.word(2)?;
    match name {
        "TCP_CONGESTION" => return congestion(arguments, host, at),
        "SO_LINGER" => return linger(arguments, host, at),
        _ if name.starts_with("TCP_FASTOPEN") => return fast_open(name, arguments, host, at),
        _ if WITHOUT_EFFECT.contains(&name) => return Ok(Outcome::value(0)),
        _ => {}
    }
    let number = match arguments.at(3)? {
        Expression::List(_) | Expression::Int(_) => arguments.number(3)?,
        _ => return Err(format!("such a value of {name}")),
    };
    let bytes = u32::try_from(number.max(0)).unwrap_or(u32::MAX);
    let sysctl = &host.config().sysctl;
    let (wmem_max, rmem_max) = (sysctl.wmem_max, sysctl.rmem_max);
    let end = &mut host.ends[at];
    match name {
        "TCP_NODELAY" => {
            end.options.nodelay = number != 0;
            host.with(at, |socket, now, out| socket.set_nodelay(now, number != 0, out));
        }
        "TCP_CORK" => {
            end.options.cork = number != 0;
            host.with(at, |socket, now, out| socket.set_cork(now, number != 0, out));
        }
        "SO_SNDBUF" | "SO_SNDBUFFORCE" => {
            let bytes = if name == "SO_SNDBUF" { bytes.min(wmem_max) } else { bytes };
            end.options.sndbuf = Some(bytes);
            host.with(at, |socket, _, _| socket.set_sndbuf(bytes));
        }
        "SO_RCVBUF" | "SO_RCVBUFFORCE" => {
            let bytes = if name == "SO_RCVBUF" { bytes.min(rmem_max) } else { bytes };
            end.options.rcvbuf = Some(bytes);
            host.with(at, |socket, _, _| socket.set_rcvbuf(bytes));
        }
        "TCP_NOTSENT_LOWAT" => {
            end.options.notsent_lowat = Some(bytes).filter(|bytes| *bytes > 0);
            host.with(at, |socket, _, _| socket.set_notsent_lowat(bytes));
        }
        "TCP_USER_TIMEOUT" => {
            end.options.user_timeout_ms = Some(bytes).filter(|ms| *ms > 0);
            host.with(at, |socket, _, _| socket.set_user_timeout(bytes));
        }
        "TCP_SYNCNT" => {
            end.options.syn_retries = Some(bytes);
            host.with(at, |socket, _, _| socket.set_syn_retries(bytes));
        }
        "SO_KEEPALIVE" | "TCP_KEEPIDLE" | "TCP_KEEPINTVL" | "TCP_KEEPCNT" => {
            keepalive(name, bytes, host, at);
        }
        "IP_LOCAL_PORT_RANGE" => end.port = Port::of_range(bytes),
        "SO_ZEROCOPY" => end.zero_copy.on = number != 0,
        "TCP_INQ" => end.tells_queue = number != 0,
        "TCP_MAXSEG" if end.socket().is_none() => end.options.max_segment = Some(bytes),
        "TCP_WINDOW_CLAMP" if end.socket().is_none() => end.options.window_clamp = Some(bytes),
        _ => return Err(format!("setting {name}")),
    }
    Ok(Outcome::value(0))
}

fn keepalive(name: &str, number: u32, host: &mut Host, at: usize) {
    let asked = &mut host.ends[at].options.keepalive;
    match name {
        "SO_KEEPALIVE" => asked.on = number != 0,
        "TCP_KEEPIDLE" => asked.idle_s = Some(number),
        "TCP_KEEPINTVL" => asked.interval_s = Some(number),
        _ => asked.probes = Some(number),
    }
    let asked = *asked;
    host.with(at, |socket, now, _| socket.set_keepalive(now, asked));
}

fn linger(arguments: &Arguments<'_>, host: &mut Host, at: usize) -> Done {
    let field = |field| arguments.field(3, field).map_or(Ok(0), names::number);
    // With time the kernel closes as ever, and waits before it returns.
    if field("onoff")? != 0 && field("linger")? != 0 {
        return Err("SO_LINGER with time".into());
    }
    host.ends[at].resets = field("onoff")? != 0;
    Ok(Outcome::value(0))
}

/// `TCP_FASTOPEN` and its like (`do_tcp_setsockopt`, `tcp_fastopen_reset_cipher`).
fn fast_open(name: &str, arguments: &Arguments<'_>, host: &mut Host, at: usize) -> Done {
    if name == "TCP_FASTOPEN_KEY" {
        let Expression::Text(text) = arguments.at(3)? else {
            return Err("such a value of TCP_FASTOPEN_KEY".into());
        };
        let Some(key) = key_of_text(text).filter(|_| arguments.number(4) == Ok(16)) else {
            return Ok(Outcome::error("EINVAL"));
        };
        host.ends[at].key = Some(key);
        return Ok(Outcome::value(0));
    }
    let number = arguments.number(3)?;
    let client = host.config().sysctl.fastopen & fastopen::CLIENT != 0;
    let end = &mut host.ends[at];
    match name {
        "TCP_FASTOPEN" if number < 0 || end.socket().is_some() => {
            return Ok(Outcome::error("EINVAL"));
        }
        "TCP_FASTOPEN" => {
            end.options.fast_open = number > 0;
            end.early_most = usize::try_from(number).unwrap_or(0);
        }
        "TCP_FASTOPEN_CONNECT" if !client => return Ok(Outcome::error("EOPNOTSUPP")),
        "TCP_FASTOPEN_CONNECT" => end.options.fast_open_connect = number != 0,
        "TCP_FASTOPEN_NO_COOKIE" => end.options.fast_open_no_cookie = number != 0,
        _ => return Err(format!("setting {name}")),
    }
    Ok(Outcome::value(0))
}

fn congestion(arguments: &Arguments<'_>, host: &mut Host, at: usize) -> Done {
    let Expression::Text(name) = arguments.at(3)? else {
        return Err("TCP_CONGESTION without a name".into());
    };
    if !matches!(name.as_str(), "reno" | "cubic" | "bbr") {
        return Err(format!("the congestion control {name}"));
    }
    if host.ends[at].socket().is_some() {
        return Err("TCP_CONGESTION of a connection".into());
    }
    host.ends[at].options.congestion = Some(name.clone());
    Ok(Outcome::value(0))
}

/// `getsockopt(3, SOL_SOCKET, SO_ERROR, [0], [4])`
pub(super) fn get(arguments: &Arguments<'_>, host: &mut Host) -> Done {
    let at = arguments.end(host)?;
    let name = arguments.word(2)?;
    if name == "SO_ERROR" {
        let got = host.ends[at].error.take();
        return Ok(match (arguments.at(3)?, got) {
            (Expression::List(expected), got) => {
                let expected = match &expected[..] {
                    [Expression::Word(errno)] => errno.clone(),
                    [Expression::Int(0)] => String::new(),
                    [Expression::Int(number)] => number.to_string(),
                    _ => return Err("such a value of SO_ERROR".into()),
                };
                let got = got.unwrap_or_default();
                Outcome::value(0).filling_text("SO_ERROR", &expected, got)
            }
            _ => Outcome::value(0),
        });
    }
    let got =
        value(name, &host.ends[at], host.config()).ok_or_else(|| format!("getting {name}"))?;
    Ok(Outcome::value(0).filling("the value", names::number(arguments.at(3)?)?, got))
}

fn value(name: &str, end: &End, host: &tcpwhy_model::socket::Config) -> Option<i64> {
    Some(match name {
        "TCP_NODELAY" => end.options.nodelay.into(),
        "TCP_CORK" => end.options.cork.into(),
        "SO_ZEROCOPY" => end.zero_copy.on.into(),
        "TCP_INQ" => end.tells_queue.into(),
        "TCP_USER_TIMEOUT" => end.options.user_timeout_ms.unwrap_or(0).into(),
        // Before there is a connection, what was asked for (`do_tcp_getsockopt`).
        "TCP_MAXSEG" => match end.socket() {
            Some(socket) => socket.info().snd_mss.into(),
            None => end.options.max_segment.unwrap_or(DEFAULT_MSS).into(),
        },
        "TCP_NOTSENT_LOWAT" => end.options.notsent_lowat.unwrap_or(0).into(),
        "SO_SNDBUF" => match end.socket() {
            Some(socket) => socket.info().sndbuf.into(),
            None => end.options.sndbuf.map_or(host.sysctl.wmem[1], |bytes| bytes * 2).into(),
        },
        "SO_RCVBUF" => match end.socket() {
            Some(socket) => socket.info().rcvbuf.into(),
            None => end.options.rcvbuf.map_or(host.sysctl.rmem[1], |bytes| bytes * 2).into(),
        },
        _ => return None,
    })
}

/// `TCP_MSS_DEFAULT` of include/net/tcp.h.
const DEFAULT_MSS: u32 = 536;
