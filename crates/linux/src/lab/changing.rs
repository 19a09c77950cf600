//! Settings of a network namespace, and what its kernel remembers of peers: set as a host is built, and while it runs.
//!
//! Both act on the network namespace of the calling thread.

use std::fs;
use std::io;
use std::path::PathBuf;

use crate::netlink::Generic;

/// Writes a setting, by its name with dots.
///
/// # Errors
/// A sentence: the kernel has no such setting, or does not take the value.
pub(super) fn set(name: &str, value: &str) -> Result<(), String> {
    let path = PathBuf::from("/proc/sys").join(name.replace('.', "/"));
    fs::write(&path, value).map_err(|e| match e.kind() {
        io::ErrorKind::NotFound => format!("this kernel has no setting `{name}`"),
        _ => format!("cannot set `{name}` to `{value}`: {e}"),
    })
}

/// Has the kernel forget all peers, as `ip tcp_metrics flush` does: a deletion that names no address (Linux v6.12
/// `net/ipv4/tcp_metrics.c`, `tcp_metrics_nl_cmd_del`).
///
/// # Errors
/// It has no such service, or refuses: it takes `CAP_NET_ADMIN` over the machine, which a user namespace does not give.
pub(super) fn forget_peers() -> io::Result<()> {
    let Some(mut metrics) = Generic::open(c"tcp_metrics")? else {
        return Err(io::Error::new(io::ErrorKind::NotFound, "this kernel keeps no tcp_metrics"));
    };
    metrics.carry_out(TCP_METRICS_CMD_DEL)
}

// linux/tcp_metrics.h
const TCP_METRICS_CMD_DEL: u8 = 2;
