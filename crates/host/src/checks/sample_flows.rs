//! Hosts with connections to test checks with.

use crate::flow::bare;
use crate::snapshot::{Info, Memory, Owner, Process, Snapshot, Socket};

use super::sample::host;

/// A connection to 10.0.0.7, port 50000 plus `number`.
pub(super) fn socket(number: u16, info: &Info, memory: Memory) -> Socket {
    let remote = core::net::SocketAddr::new([10, 0, 0, 7].into(), 50_000 + number);
    Socket {
        inode: u64::from(number) + 1,
        owner: Some(Owner { pid: 42, fd: Some(u32::from(number)) }),
        memory: Some(memory),
        info: Some(Box::new(*info)),
        ..bare(remote)
    }
}

/// Sockets in the first look and ten seconds later, all of one program.
pub(super) fn connected(
    settings: &[(&str, &str)],
    before: Vec<Socket>,
    now: Vec<Socket>,
) -> Snapshot {
    let mut host = host(settings);
    let nginx = Process { name: "nginx".to_owned(), ..Process::default() };
    for (look, sockets) in host.looks.iter_mut().zip([before, now]) {
        look.sockets = Some(sockets);
        look.processes = Some([(42, nginx.clone())].into());
    }
    host
}
