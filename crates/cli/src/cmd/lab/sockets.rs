//! What looks at the sockets of both hosts saw, and what `check` finds by them.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use serde::Serialize;
use tcpwhy::host::snapshot::{self, Snapshot, State};
use tcpwhy::host::{Severity, judge, saved};
use tcpwhy_linux::lab::folder;
use tcpwhy_model::scenario::expect::SocketState;

/// All looks of a run.
#[derive(Clone, Debug, Default, Eq, PartialEq, Serialize)]
pub(super) struct Sockets {
    /// In the order of time.
    pub(super) looks: Vec<Look>,
    /// What `check` finds by all of them, but for mere remarks.
    pub(super) checked: Vec<Checked>,
}

/// Both hosts at one instant.
#[derive(Clone, Debug, Default, Eq, PartialEq, Serialize)]
pub(super) struct Look {
    /// After the first application started, as the plan asks.
    pub(super) at_ns: u64,
    /// The client's.
    pub(super) client: Vec<Group>,
    /// The server's.
    pub(super) server: Vec<Group>,
}

/// Sockets of one state that the same holds.
#[derive(Clone, Debug, Eq, PartialEq, Serialize)]
pub(super) struct Group {
    /// As filters of ss(8) name it.
    pub(super) state: &'static str,
    /// What holds them.
    pub(super) holder: Holder,
    /// How many.
    pub(super) count: u64,
    /// Least and most that one has received and not handed on.
    pub(super) recv_q: [u64; 2],
    /// Least and most that one has written and that is not acknowledged.
    pub(super) send_q: [u64; 2],
}

/// What holds a socket.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd, Serialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Holder {
    /// A descriptor of a program.
    Program,
    /// The queue of a listener: no program has accepted it.
    AcceptQueue,
    /// The kernel alone: its program has closed it, or it is half-open.
    Kernel,
}

impl Holder {
    /// In words.
    pub(super) const fn words(self) -> &'static str {
        match self {
            Self::Program => "program",
            Self::AcceptQueue => "listener",
            Self::Kernel => "kernel",
        }
    }
}

/// What `check` finds.
#[derive(Clone, Debug, Default, Eq, PartialEq, Serialize)]
pub(super) struct Checked {
    /// `client` or `server`.
    pub(super) host: &'static str,
    /// The finding's code.
    pub(super) code: String,
    /// Its title.
    pub(super) title: String,
}

impl Sockets {
    /// Whether `check` finds this of a host.
    pub(super) fn finds(&self, host: &str, code: &str) -> bool {
        self.checked.iter().any(|found| found.host == host && found.code == code)
    }
}

impl Look {
    /// A host's sockets.
    pub(super) fn of(&self, host: &str) -> &[Group] {
        if host == "client" { &self.client } else { &self.server }
    }
}

/// What the looks of the run in `folder` saw, which were taken `at_ns`; none where nobody looked.
pub(super) fn read(folder: &Path, at_ns: &[u64]) -> Option<Sockets> {
    let host = |name: &str| {
        let text = fs::read_to_string(folder.join(name)).ok()?;
        Some(saved::read(&text).ok()?.snapshot)
    };
    let [client, server] = folder::SOCKETS.map(host);
    let (client, server) = (client?, server?);
    let pairs = at_ns.iter().zip(client.looks.iter().zip(&server.looks));
    let looks = pairs.map(|(&at_ns, (client, server))| Look {
        at_ns,
        client: groups(client),
        server: groups(server),
    });
    let mut checked = checked("client", &client);
    checked.extend(self::checked("server", &server));
    Some(Sockets { looks: looks.collect(), checked })
}

fn groups(look: &snapshot::Look) -> Vec<Group> {
    let mut all: BTreeMap<(usize, Holder), Group> = BTreeMap::new();
    let mut add = |state, holder, count, recv_q: u64, send_q: u64| {
        let place = SocketState::NAMES.iter().position(|name| *name == state);
        let new =
            || Group { state, holder, count: 0, recv_q: [u64::MAX, 0], send_q: [u64::MAX, 0] };
        let group = all.entry((place.unwrap_or(usize::MAX), holder)).or_insert_with(new);
        group.count += count;
        for ([least, most], seen) in [(&mut group.recv_q, recv_q), (&mut group.send_q, send_q)] {
            (*least, *most) = ((*least).min(seen), (*most).max(seen));
        }
    };
    for socket in look.sockets.iter().flatten() {
        let [received, sent] = [socket.receive_queue, socket.send_queue].map(u64::from);
        add(name_of(socket.state), holder_of(socket), 1, received, sent);
    }
    for waiting in look.time_wait.iter().flatten() {
        add("time-wait", Holder::Kernel, u64::from(waiting.count), 0, 0);
    }
    all.into_values().collect()
}

/// What no descriptor holds was never accepted, or was closed: after a close this side has sent its FIN
/// (Linux `tcp_close_state`). What is half-open is not in the accept queue yet.
fn holder_of(socket: &snapshot::Socket) -> Holder {
    match socket.state {
        _ if socket.inode != 0 => Holder::Program,
        State::Established | State::CloseWait => Holder::AcceptQueue,
        _ => Holder::Kernel,
    }
}

const fn name_of(state: State) -> &'static str {
    match state {
        State::Established => "established",
        State::SynSent => "syn-sent",
        State::SynRecv => "syn-recv",
        State::FinWait1 => "fin-wait-1",
        State::FinWait2 => "fin-wait-2",
        State::Close => "closed",
        State::CloseWait => "close-wait",
        State::LastAck => "last-ack",
        State::Closing => "closing",
    }
}

fn checked(host: &'static str, snapshot: &Snapshot) -> Vec<Checked> {
    let told = judge(snapshot).findings.into_iter().filter(|found| found.severity > Severity::Info);
    told.map(|found| Checked { host, code: found.code, title: found.title }).collect()
}

#[cfg(test)]
mod tests {
    use tcpwhy::host::snapshot::{FORMAT, Occupied, Socket};

    use super::*;

    fn socket(state: State, inode: u64, receive_queue: u32) -> Socket {
        let [local, remote] =
            ["192.0.2.2:8000", "192.0.2.1:40000"].map(|end| end.parse().expect("an end"));
        Socket { inode, receive_queue, ..Socket::new(state, local, remote) }
    }

    fn saved(folder: &Path, name: &str, sockets: Vec<Socket>, waiting: u32) {
        let remote = "192.0.2.1:8000".parse().expect("an end");
        let local = "192.0.2.2".parse().expect("an address");
        let occupied = Occupied { local, local_port: None, remote, count: waiting };
        let look = snapshot::Look {
            t_ns: Some(1),
            sockets: Some(sockets),
            time_wait: Some(if waiting > 0 { vec![occupied] } else { Vec::new() }),
            ..snapshot::Look::default()
        };
        let snapshot =
            Snapshot { format: FORMAT.to_owned(), looks: vec![look], ..Snapshot::default() };
        let text = serde_json::to_vec(&snapshot).expect("plain data");
        fs::write(folder.join(name), text).expect("written");
    }

    #[test]
    fn sockets_are_told_by_state_and_by_what_holds_them() {
        let folder = tempfile::tempdir().expect("a folder");
        let [client, server] = folder::SOCKETS;
        saved(folder.path(), client, vec![socket(State::FinWait2, 0, 0)], 3);
        let closed = [(5, 1), (6, 79), (0, 79)]
            .map(|(inode, unread)| socket(State::CloseWait, inode, unread));
        saved(folder.path(), server, closed.to_vec(), 0);
        let told = read(folder.path(), &[2_000_000_000]).expect("looked at");
        let [look] = &told.looks[..] else { panic!("{told:?}") };
        let rows = |groups: &[Group]| {
            groups
                .iter()
                .map(|group| (group.state, group.holder, group.count, group.recv_q))
                .collect::<Vec<_>>()
        };
        assert_eq!(
            rows(&look.client),
            [("fin-wait-2", Holder::Kernel, 1, [0, 0]), ("time-wait", Holder::Kernel, 3, [0, 0])]
        );
        assert_eq!(
            rows(&look.server),
            [
                ("close-wait", Holder::Program, 2, [1, 79]),
                ("close-wait", Holder::AcceptQueue, 1, [79, 79]),
            ]
        );
        assert_eq!(look.at_ns, 2_000_000_000);
    }

    #[test]
    fn where_nobody_looked_nothing_is_told() {
        assert_eq!(read(Path::new("/nowhere"), &[1]), None);
    }
}
