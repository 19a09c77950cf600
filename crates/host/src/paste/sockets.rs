//! Tables of sockets: those of `ss`, of `netstat -ant`, and `/proc/net/tcp`.
//!
//! Each table is a reading of sockets, of listeners, or of both; a later one that tells less (`ss -tan` after
//! `ss -tin`) is taken into the one before it at the end ([`complete`]). `netstat` shows a listener's queue without its limit, so its listeners tell only
//! which end of a connection is the server.

use core::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::collections::{BTreeMap, BTreeSet};

use super::collected::{Collected, Readings};
use super::command::Command;
use super::looped;
use super::proc_tcp;
use super::ss::{self, Row};
use super::{Line, Taken};
use crate::snapshot::{Listener, Owner, Process, Socket, State};

/// A table that is being read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Table {
    /// Which readings it has begun: sockets, listeners, connections in `TIME_WAIT`.
    begun: [bool; 3],
    states: States,
    /// What the lines that follow are about.
    open: Open,
}

/// What states its sockets are in.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
enum States {
    /// A column tells.
    #[default]
    Shown,
    /// All are in this one.
    One(String),
    /// All are in one, which is in the command only.
    Unseen,
    /// A column of `/proc/net/tcp` tells.
    Proc,
    /// Of another protocol: no socket of it is wanted.
    Others,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Open {
    #[default]
    Nothing,
    Socket,
    Listener,
    /// A socket that is not TCP's.
    Other,
}

/// The head of a table, or a socket's line.
pub(super) fn begin(
    line: Line<'_>,
    command: &Command,
    table: Option<&Table>,
    collected: &mut Collected,
) -> Option<(Table, Taken)> {
    let text = line.text;
    if let Some(head) = proc_tcp::head(text) {
        let states = if head == proc_tcp::Head::Other { States::Others } else { States::Proc };
        let both = table.filter(|table| head == proc_tcp::Head::Six && table.states == states);
        let table = both.cloned().unwrap_or_else(|| Table { states, ..Table::default() });
        return Some((table, Taken::Read));
    }
    if let Some(states) = head(text, command) {
        let mut table = Table { states, ..Table::default() };
        table.begin_all(listed(command), collected);
        return Some((table, Taken::Read));
    }
    if let Some(table) = table
        && matches!(table.states, States::Proc | States::Others)
        && let Some(row) = proc_tcp::Row::of(text)
    {
        let mut table = table.clone();
        table.proc_row(row, collected);
        return Some((table, Taken::Read));
    }
    // A state and a number are a count.
    if text.split_whitespace().count() == 2 {
        return None;
    }
    let mut table = table.cloned().unwrap_or_default();
    if ss::is_info(text) && !table.is_open_for_info(collected) {
        let taken = table.without_row(text, collected)?;
        return Some((table, taken));
    }
    let taken = if ss::is_line(text) {
        table.row(Row::of(text), collected)
    } else {
        table.netstat_row(text, collected)?
    };
    Some((table, taken))
}

/// The states that a table's head promises; `None` for other lines.
fn head(text: &str, command: &Command) -> Option<States> {
    let first = text.split_whitespace().next()?;
    if text.starts_with("Active Internet connections") {
        return Some(States::Shown);
    }
    if !text.contains("Recv-Q") || !text.contains("Send-Q") {
        return None;
    }
    match first {
        "State" | "Netid" | "Proto" => Some(States::Shown),
        "Recv-Q" => Some(only_state(command).map_or(States::Unseen, States::One)),
        _ => None,
    }
}

/// The state that `ss` was asked for alone.
fn only_state(command: &Command) -> Option<String> {
    let words = command.arguments("ss")?;
    if let Some(at) = words.iter().position(|word| word == "state") {
        return Some(match words.get(at + 1)?.as_str() {
            "established" => "ESTAB".to_owned(),
            "listening" => "LISTEN".to_owned(),
            other => other.to_uppercase(),
        });
    }
    command.has("ss", 'l').then(|| "LISTEN".to_owned())
}

/// Which kinds of TCP sockets a command lists all of: connections, listeners, those in `TIME_WAIT` (ss(8)). A filter
/// of any kind, and what shows only some lines, lists all of none.
fn listed(command: &Command) -> [bool; 3] {
    let plain = |word: &String| match word.strip_prefix("--") {
        Some(long) => {
            ["tcp", "info", "numeric", "memory", "processes", "extended", "options"].contains(&long)
        }
        None => word
            .strip_prefix('-')
            .is_some_and(|short| short.chars().all(|c| "tinmpeoalr".contains(c))),
    };
    let Some(words) = command.arguments("ss").filter(|words| words.iter().all(plain)) else {
        return [false; 3];
    };
    if command.shows_some_lines() || words.is_empty() {
        return [false; 3];
    }
    match (command.has("ss", 'a'), command.has("ss", 'l')) {
        (true, true) => [false; 3],
        (true, false) => [true; 3],
        (false, true) => [false, true, false],
        (false, false) => [true, false, false],
    }
}

impl Table {
    /// Begins the readings of what is listed in full, so that nothing in it is nothing there.
    fn begin_all(&mut self, listed: [bool; 3], collected: &mut Collected) {
        let now = collected.now;
        let [connections, listeners, time_wait] = listed;
        if connections {
            collected.ends.clear();
            open(&mut self.begun[0], &mut collected.sockets, now);
        }
        if listeners {
            open(&mut self.begun[1], &mut collected.listeners, now);
        }
        if time_wait {
            open(&mut self.begun[2], &mut collected.time_wait, now);
        }
    }

    /// Below its head there is a line that was not understood: what was found empty may not be so.
    pub(super) fn doubt(&mut self, collected: &mut Collected) {
        let [connections, listeners, time_wait] = &mut self.begun;
        *connections = *connections && !collected.sockets.take_back_empty();
        *listeners = *listeners && !collected.listeners.take_back_empty();
        *time_wait = *time_wait && !collected.time_wait.take_back_empty();
    }

    fn row(&mut self, row: Result<Row<'_>, String>, collected: &mut Collected) -> Taken {
        self.open = Open::Nothing;
        let row = match row {
            Ok(row) => row,
            Err(why) => return Taken::Useless(why),
        };
        if row.state == "UNCONN" {
            return Taken::Read;
        }
        if let Some((pid, process)) = ss::process(row.rest) {
            collected.processes.insert(pid, process);
        }
        let now = collected.now;
        if row.state == "LISTEN" {
            let Some(listener) = row.listener(collected.star_is_v4) else {
                return Taken::Useless(format!("{:?} is no address with a port", row.local));
            };
            collected.listening.insert(listener.local.port());
            open(&mut self.begun[1], &mut collected.listeners, now).push(listener);
            self.open = Open::Listener;
            return Taken::Read;
        }
        let names = &mut collected.names;
        match row.socket_at(|word| names.end(word)) {
            Ok(socket) if row.state == "TIME-WAIT" => {
                let ends = (socket.local, socket.remote);
                open(&mut self.begun[2], &mut collected.time_wait, now).push(ends);
            }
            Ok(socket) => {
                // A loop prints its sockets again and again, without a head where they were grepped.
                let ends = (socket.local, socket.remote);
                if self.begun[0] && collected.ends.contains(&ends) {
                    self.begun[0] = false;
                }
                if !self.begun[0] {
                    collected.ends.clear();
                }
                collected.ends.insert(ends);
                open(&mut self.begun[0], &mut collected.sockets, now).push(socket);
                self.open = Open::Socket;
            }
            Err(why) => return Taken::Useless(why),
        }
        Taken::Read
    }

    fn proc_row(&mut self, row: proc_tcp::Row, collected: &mut Collected) {
        let now = collected.now;
        self.open = Open::Nothing;
        match row {
            _ if self.states == States::Others => {}
            proc_tcp::Row::Listens(end) => drop(collected.listening.insert(end.port())),
            proc_tcp::Row::TimeWait(local, remote) => {
                open(&mut self.begun[2], &mut collected.time_wait, now).push((local, remote));
            }
            proc_tcp::Row::Socket(socket) => {
                open(&mut self.begun[0], &mut collected.sockets, now).push(socket);
            }
        }
    }

    /// Whether the line of `ss -i` is still to come for the socket above.
    fn is_open_for_info(&self, collected: &mut Collected) -> bool {
        match self.open {
            Open::Nothing | Open::Other => false,
            Open::Listener => true,
            Open::Socket => {
                collected.sockets.last().and_then(|all| all.last()).is_some_and(|socket| {
                    socket.info.as_ref().is_none_or(|info| info.snd_cwnd.is_none())
                })
            }
        }
    }

    /// A socket that left only this line (`ss -ti | grep cubic`). Its send queue is what was written and not
    /// acknowledged: both parts of it are in the line. In a loop it is the socket of the line before, a look later.
    fn without_row(&mut self, text: &str, collected: &mut Collected) -> Option<Taken> {
        let line = collected.line;
        let mut socket = ss::bare(State::Established, [UNTOLD, UNTOLD], [0, 0]);
        ss::details(&mut socket, text);
        let before = collected.sockets.last().and_then(|all| all.last());
        let again = before.filter(|before| {
            self.begun[0]
                && collected.names.is_placed(before.local)
                && looped::is_again(before, &socket)
        });
        if let Some(before) = again {
            (socket.local, socket.remote) = (before.local, before.remote);
            self.begun[0] = false;
        } else {
            socket.local = collected.names.untold(&format!("the socket of line {line}"))?;
            socket.remote = collected.names.untold(&format!("the peer of line {line}"))?;
        }
        if let Some(info) = &socket.info {
            let flying =
                u64::from(info.unacked.unwrap_or(0)) * u64::from(info.snd_mss.unwrap_or(0));
            let queued = flying.saturating_add(info.notsent_bytes.unwrap_or(0));
            socket.send_queue = u32::try_from(queued).unwrap_or(u32::MAX);
        }
        let now = collected.now;
        open(&mut self.begun[0], &mut collected.sockets, now).push(socket);
        self.open = Open::Socket;
        Some(Taken::Read)
    }

    /// `tcp  0  0 10.0.0.1:22  10.0.0.2:4000  ESTABLISHED`; `None` for other lines.
    fn netstat_row(&mut self, text: &str, collected: &mut Collected) -> Option<Taken> {
        let mut words = text.split_whitespace();
        words.next().filter(|word| matches!(*word, "tcp" | "tcp6"))?;
        let (receive, send) = (words.next()?.parse().ok()?, words.next()?.parse().ok()?);
        let (local, remote, state) = (words.next()?, words.next()?, words.next()?);
        let now = collected.now;
        self.open = Open::Nothing;
        if state == "LISTEN" {
            collected
                .listening
                .extend(ss::listening_at(local, collected.star_is_v4).map(|end| end.port()));
            return Some(Taken::Read);
        }
        let names = &mut collected.names;
        let (Some(local), Some(remote)) = (names.end(local), names.end(remote)) else {
            let why = "it has no address with a port; netstat prints numbers with -n".to_owned();
            return Some(Taken::Useless(why));
        };
        if state == "TIME_WAIT" {
            open(&mut self.begun[2], &mut collected.time_wait, now).push((local, remote));
            return Some(Taken::Read);
        }
        let Some((_, state)) = NETSTAT_STATES.iter().find(|(name, _)| *name == state) else {
            return Some(Taken::Useless(format!("{state:?} is no state of a connection")));
        };
        let mut socket = ss::bare(*state, [local, remote], [receive, send]);
        let words: Vec<&str> = words.collect();
        socket.timer = words.windows(2).find_map(|two| ss::netstat_timer(two[0], two[1]));
        if let Some((pid, name)) = words.iter().find_map(|word| program(word)) {
            socket.owner = Some(Owner { pid, fd: None });
            let process = || Process { name: name.to_owned(), ..Process::default() };
            collected.processes.entry(pid).or_insert_with(process);
        }
        open(&mut self.begun[0], &mut collected.sockets, now).push(socket);
        Some(Taken::Read)
    }
}

/// Of a socket whose ends are not known yet.
const UNTOLD: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::UNSPECIFIED), 0);

/// `4711/nginx:` of `netstat -p`, which cuts what follows short.
fn program(word: &str) -> Option<(u32, &str)> {
    let (pid, name) = word.split_once('/')?;
    let pid = pid.parse().ok().filter(|pid| *pid > 0)?;
    Some((pid, name.trim_end_matches(':'))).filter(|(_, name)| !name.is_empty())
}

/// The reading that a table's sockets go to: a new one at the first.
fn open<'r, T>(
    begun: &mut bool,
    readings: &'r mut Readings<Vec<T>>,
    now: Option<u64>,
) -> &'r mut Vec<T> {
    if !core::mem::replace(begun, true) {
        readings.push(now, Vec::new());
    }
    readings.open(now)
}

/// net-tools 1.60 and 2.10 `netstat.c`, `tcp_state`.
pub(super) const NETSTAT_STATES: [(&str, State); 9] = [
    ("ESTABLISHED", State::Established),
    ("SYN_SENT", State::SynSent),
    ("SYN_RECV", State::SynRecv),
    ("FIN_WAIT1", State::FinWait1),
    ("FIN_WAIT2", State::FinWait2),
    ("CLOSE", State::Close),
    ("CLOSE_WAIT", State::CloseWait),
    ("LAST_ACK", State::LastAck),
    ("CLOSING", State::Closing),
];

/// What tables of sockets begin lines of other protocols with.
/// An MPTCP socket has subflows: each is TCP's, with a line of its own (iproute2 6.1 `misc/ss.c`, `proto_name`).
const OTHERS: [&str; 19] = [
    "udp", "udp6", "raw", "raw6", "unix", "u_str", "u_dgr", "u_seq", "nl", "p_raw", "p_dgr",
    "v_str", "v_dgr", "mptcp", "sctp", "dccp", "tipc", "xdp", "icmp6",
];

/// Lines below a socket's, sockets of a table without states, and those that are not TCP's.
pub(super) fn go_on(line: Line<'_>, table: &mut Table, collected: &mut Collected) -> Option<Taken> {
    let mut words = line.text.split_whitespace();
    let first = words.next()?;
    if matches!(table.states, States::One(_) | States::Unseen)
        && first.bytes().all(|byte| byte.is_ascii_digit())
    {
        // Only a listener has a peer without a port.
        let listens = words.nth(2).is_some_and(|end| end.ends_with(":*"));
        let state = match &table.states {
            States::One(state) => state.clone(),
            _ if listens => "LISTEN".to_owned(),
            _ => return Some(Taken::Useless("its state is not shown".to_owned())),
        };
        return Some(table.row(Row::behind_state(&state, line.text), collected));
    }
    if OTHERS.contains(&first) {
        table.open = Open::Other;
        return Some(Taken::Read);
    }
    if !line.is_indented() && !ss::is_details(line.text) && !line.text.contains("cwnd:") {
        return None;
    }
    match table.open {
        Open::Nothing => return None,
        Open::Other => return Some(Taken::Read),
        Open::Socket => {
            ss::details(collected.sockets.last()?.last_mut()?, line.text);
        }
        Open::Listener => {
            ss::listener_details(collected.listeners.last()?.last_mut()?, line.text);
        }
    }
    if let Some((pid, process)) = ss::process(line.text) {
        collected.processes.insert(pid, process);
    }
    Some(Taken::Read)
}

/// Makes one reading of tables that follow each other where the later tells less, and puts back what `ss`
/// leaves out because it is zero.
pub(super) fn complete(collected: &mut Collected) {
    collected.sockets.merge(|before, next| {
        if is_of_the_peer(before, &next) {
            before.extend(next);
            return None;
        }
        // Where all are listed and there are none, they are gone.
        if next.is_empty() || tells_as_much(before, &next, &SOCKET_DETAILS) {
            return Some(next);
        }
        take_in(before, next, |socket| (socket.local, socket.remote), fill_socket);
        None
    });
    collected.sockets.iter_mut().for_each(|all| ss::finish(all));
    collected.listeners.merge(|before, next| {
        if next.is_empty() || tells_as_much(before, &next, &LISTENER_DETAILS) {
            return Some(next);
        }
        take_in(before, next, |listener| listener.local, fill_listener);
        None
    });
}

/// Whether the second table was printed on the other host: it has the other ends of sockets of the first, and none of
/// its own ends. Both ends of a connection are pasted into one mail.
fn is_of_the_peer(before: &[Socket], next: &[Socket]) -> bool {
    let ends: BTreeSet<_> = before.iter().map(|socket| (socket.local, socket.remote)).collect();
    let has = |local, remote| ends.contains(&(local, remote));
    next.iter().any(|socket| has(socket.remote, socket.local))
        && !next.iter().any(|socket| has(socket.local, socket.remote))
}

type Detail<T> = fn(&T) -> bool;

const SOCKET_DETAILS: [Detail<Socket>; 3] = [
    |socket| socket.info.is_some(),
    |socket| socket.memory.is_some(),
    |socket| socket.owner.is_some(),
];

const LISTENER_DETAILS: [Detail<Listener>; 3] = [
    |listener| listener.drops.is_some(),
    |listener| listener.owner.is_some(),
    |listener| !listener.inode_unseen,
];

/// Whether the second has each kind of detail that the first has.
fn tells_as_much<T>(before: &[T], next: &[T], details: &[Detail<T>]) -> bool {
    details.iter().all(|detail| next.iter().any(detail) || !before.iter().any(detail))
}

/// Adds what is new, and to what is there what it lacks.
fn take_in<T, K: Ord>(mine: &mut Vec<T>, others: Vec<T>, key: fn(&T) -> K, fill: fn(&mut T, &T)) {
    let at: BTreeMap<K, usize> =
        mine.iter().enumerate().map(|(at, each)| (key(each), at)).collect();
    for other in others {
        match at.get(&key(&other)).and_then(|at| mine.get_mut(*at)) {
            Some(mine) => fill(mine, &other),
            None => mine.push(other),
        }
    }
}

fn fill_socket(mine: &mut Socket, other: &Socket) {
    mine.owner = mine.owner.or(other.owner);
    mine.memory = mine.memory.or(other.memory);
    mine.timer = mine.timer.or(other.timer);
    mine.congestion = mine.congestion.take().or_else(|| other.congestion.clone());
    mine.info = mine.info.take().or_else(|| other.info.clone());
    if mine.inode_unseen {
        (mine.inode, mine.uid, mine.inode_unseen) = (other.inode, other.uid, other.inode_unseen);
    }
}

fn fill_listener(mine: &mut Listener, other: &Listener) {
    mine.owner = mine.owner.or(other.owner);
    mine.drops = mine.drops.or(other.drops);
    if mine.inode_unseen {
        (mine.inode, mine.inode_unseen) = (other.inode, other.inode_unseen);
    }
}
