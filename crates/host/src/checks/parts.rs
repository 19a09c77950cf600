//! Parts of hosts to test checks with: sockets, interfaces, queues, processors.

use crate::snapshot::{
    Info, Link, LinkCounters, Look, Owner, Process, Processor, Qdisc, Snapshot, Socket, Softnet,
    State,
};

/// A socket that process 42 holds.
pub(crate) fn socket(state: State, local: &str, remote: &str) -> Socket {
    let end = |text: &str| text.parse().expect("an address");
    Socket {
        inode: 9,
        owner: Some(Owner { pid: 42, fd: Some(3) }),
        ..Socket::new(state, end(local), end(remote))
    }
}

/// The same, silent for so long.
pub(super) fn silent(mut socket: Socket, for_s: u64) -> Socket {
    let since = Some(for_s * 1_000_000_000);
    socket.info = Some(Box::new(Info {
        last_data_sent_ns: since,
        last_data_recv_ns: since,
        last_ack_recv_ns: since,
        ..Info::default()
    }));
    socket
}

/// This many of them, each to another port of the peer `10.0.0.9`.
pub(super) fn peers(count: u16, each: impl Fn(String) -> Socket) -> Vec<Socket> {
    (0..count).map(|nth| each(format!("10.0.0.9:{}", 20_000 + nth))).collect()
}

/// An interface that is up and has a carrier, of 1 Gbit/s.
pub(super) fn link(name: &str) -> Link {
    Link {
        name: name.to_owned(),
        index: 2,
        up: true,
        carrier: true,
        speed: Some(1_000_000_000),
        full_duplex: Some(true),
        counters: Some(LinkCounters::default()),
        ..Link::default()
    }
}

/// A root queueing discipline of `eth0` that nobody asked for.
pub(super) fn root(kind: &str) -> Qdisc {
    Qdisc { dev: "eth0".to_owned(), kind: kind.to_owned(), parent: u32::MAX, ..Qdisc::default() }
}

/// The first and the last look, each changed by `change`, which gets the number of calls before it.
pub(super) fn each_look(mut host: Snapshot, change: impl Fn(u64, &mut Look)) -> Snapshot {
    for (nth, look) in host.looks.iter_mut().enumerate() {
        change(nth as u64, look);
    }
    host
}

/// Process 42 with that name.
pub(super) fn running(host: Snapshot, name: &str, state: char) -> Snapshot {
    each_look(host, |_, look| {
        let process = Process { name: name.to_owned(), state: Some(state), ..Process::default() };
        look.processes.get_or_insert_default().insert(42, process);
    })
}

/// Processors that handled this many packets between the looks, with these shares of their time (percent) in
/// softirqs.
pub(super) fn processors(host: Snapshot, packets_and_softirq: &[(u32, u64)]) -> Snapshot {
    each_look(host, |nth, look| {
        let rows = (0..).zip(packets_and_softirq);
        look.softnet = Some(
            rows.clone()
                .map(|(cpu, &(packets, _))| Softnet {
                    cpu,
                    processed: 1000 + packets * nth as u32,
                    ..Softnet::default()
                })
                .collect(),
        );
        look.processors = Some(
            rows.map(|(cpu, &(_, softirq))| Processor {
                cpu,
                softirq: 100 + softirq * 10 * nth,
                idle: 100 + (100 - softirq) * 10 * nth,
                ..Processor::default()
            })
            .collect(),
        );
    })
}
